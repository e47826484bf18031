"""A followed file is read through truncation and rotation, and a pipe to its end."""

from __future__ import annotations

import os
import socket
import sys
import threading
from typing import TYPE_CHECKING

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.ingest import follow
from gctrace_analyzer.ingest.follow import Followed, Pipe, Segment, Stop

if TYPE_CHECKING:
    from pathlib import Path


def test_a_pipe_is_read_to_its_end() -> None:
    read_end, write_end = os.pipe()
    os.write(write_end, b"one\ntwo\n")
    os.close(write_end)
    pipe = Pipe(read_end, "<pipe>", Stop())
    assert pipe.read(1 << 20) == b"one\ntwo\n"
    assert pipe.read(1 << 20) == b""
    os.close(read_end)


def test_a_followed_file_is_read_through_truncation_and_rotation(tmp_path: Path) -> None:
    path, stop = tmp_path / "run.log", Stop()
    path.write_bytes(b"first\n")
    segments = Followed(str(path), stop).segments()
    first = next(segments)
    assert isinstance(first, Segment)
    assert first.read(100) == b"first\n"
    path.write_bytes(b"2\n")
    assert first.read(100) == b""
    assert first.truncated
    second = next(segments)
    assert second.read(100) == b"2\n"
    path.rename(tmp_path / "run.log.1")
    path.write_bytes(b"third\n")
    assert second.read(100) == b""
    third = next(segments)
    assert third.read(100) == b"third\n"
    stop.ask()
    assert third.read(100) == b""
    assert list(segments) == []


def test_a_directory_cannot_be_followed(tmp_path: Path) -> None:
    with pytest.raises(gca.UnreadableInputError, match="folder"):
        Followed(str(tmp_path), Stop())


def test_waiting_for_a_missing_file_can_be_stopped(tmp_path: Path) -> None:
    stop = Stop()
    stop.ask()
    assert list(Followed(str(tmp_path / "absent.log"), stop).segments()) == []


def test_a_named_pipe_is_read_like_a_pipe(tmp_path: Path) -> None:
    path, stop = tmp_path / "fifo", Stop()
    os.mkfifo(path)
    # Open for both directions, or opening waits for the other end.
    both = os.open(path, os.O_RDWR)
    segments = Followed(str(path), stop).segments()
    pipe = next(segments)
    assert isinstance(pipe, Pipe)
    os.write(both, b"one\n")
    assert pipe.read(100) == b"one\n"
    stop.ask()
    assert pipe.read(100) == b""
    os.close(both)


def test_a_pipe_waits_for_the_first_whole_line() -> None:
    read_end, write_end = os.pipe()
    os.write(write_end, b"gc 1 ")
    pipe = Pipe(read_end, "<pipe>", Stop())
    rest = threading.Timer(0.2, os.write, (write_end, b"@0.1s\n"))
    rest.start()
    assert pipe.read(100) == b"gc 1 @0.1s\n"
    rest.join()
    os.write(write_end, b"second")
    assert pipe.read(100) == b"second"
    os.write(write_end, b"0123456789")
    assert pipe.read(4) == b"0123"
    os.close(read_end)
    os.close(write_end)


def test_a_pipe_that_never_pauses_is_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "GATHER_S", 0.0)
    read_end, write_end = os.pipe()
    os.write(write_end, b"line\n" * 12_000)
    pipe = Pipe(read_end, "<pipe>", Stop())
    # Without time to gather, one piece is enough, although more could come.
    assert pipe.read(1 << 20) == b"line\n" * 12_000
    os.close(read_end)
    os.close(write_end)


def test_reading_ends_when_the_time_after_a_stop_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "DRAIN_S", -1.0)
    path, stop = tmp_path / "run.log", Stop()
    path.write_bytes(b"unread\n")
    segments = Followed(str(path), stop).segments()
    segment = next(segments)
    stop.ask()
    stop.ask()
    assert stop.overdue
    assert segment.read(100) == b""


def test_a_deleted_file_is_followed_until_stopped(tmp_path: Path) -> None:
    path, stop = tmp_path / "run.log", Stop()
    path.write_bytes(b"first\n")
    segments = Followed(str(path), stop).segments()
    segment = next(segments)
    assert segment.read(100) == b"first\n"
    path.unlink()
    timer = threading.Timer(follow.QUIET_S + 0.2, stop.ask)
    timer.start()
    assert segment.read(100) == b""
    assert stop.asked
    timer.join()


def test_a_file_is_awaited_until_it_exists(tmp_path: Path) -> None:
    path, stop = tmp_path / "late.log", Stop()
    timer = threading.Timer(0.1, path.write_bytes, (b"late\n",))
    timer.start()
    segments = Followed(str(path), stop).segments()
    segment = next(segments)
    assert segment.read(100) == b"late\n"
    stop.ask()
    timer.join()


def test_a_socket_cannot_be_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        with pytest.raises(
            gca.UnreadableInputError, match=r"socket: no such device or address\.\n"
        ):
            Followed("socket", Stop())


def test_standard_input_is_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    read_end, write_end = os.pipe()
    os.write(write_end, b"typed\n")
    os.close(write_end)
    with os.fdopen(read_end) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        pipe = follow.standard_input(Stop())
        assert pipe.name == "<stdin>"
        assert pipe.read(100) == b"typed\n"


def test_a_pipe_is_not_read_when_the_time_after_a_stop_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(follow, "DRAIN_S", -1.0)
    read_end, write_end = os.pipe()
    os.write(write_end, b"unread\n")
    stop = Stop()
    assert not stop.overdue
    stop.ask()
    assert Pipe(read_end, "<pipe>", stop).read(100) == b""
    os.close(read_end)
    os.close(write_end)


def test_a_stopped_pipe_still_gives_what_has_arrived() -> None:
    read_end, write_end = os.pipe()
    os.write(write_end, b"arrived\n")
    stop = Stop()
    stop.ask()
    pipe = Pipe(read_end, "<pipe>", stop)
    assert pipe.read(100) == b"arrived\n"
    assert pipe.read(100) == b""
    os.close(read_end)
    os.close(write_end)


def test_what_arrives_one_after_another_is_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "GATHER_S", 30.0)
    read_end, write_end = os.pipe()
    pipe = Pipe(read_end, "<pipe>", Stop())
    os.write(write_end, b"first\n")

    def more() -> None:
        os.write(write_end, b"second\n")
        os.close(write_end)

    later = threading.Timer(0.15, more)
    later.start()
    assert pipe.read(100) == b"first\nsecond\n"
    later.join()
    os.close(read_end)


def test_what_is_appended_in_pieces_is_read_in_order(tmp_path: Path) -> None:
    path, stop = tmp_path / "run.log", Stop()
    path.write_bytes(b"")
    segments = Followed(str(path), stop).segments()
    segment = next(segments)
    assert isinstance(segment, Segment)
    read = b""
    for piece in (b"x" * 300 + b"\n", b"second\n", b"y" * 200_000 + b"\n"):
        with path.open("ab") as file:
            file.write(piece)
        part = b""
        while len(part) < len(piece):
            part += segment.read(100_000)
        read += part
    assert read == path.read_bytes()
    # Another beginning of the same length is another log.
    path.write_bytes(b"z" + read[1:])
    assert segment.read(100) == b""
    assert segment.truncated
    stop.ask()


def test_the_parts_of_a_followed_file_are_numbered(tmp_path: Path) -> None:
    path, stop = tmp_path / "run.log", Stop()
    path.write_bytes(b"first line\n")
    segments = Followed(str(path), stop).segments()
    names = []
    for content in (b"2\n", b"", None):
        segment = next(segments)
        names.append(segment.name)
        assert segment.read(100)
        if content is None:
            break
        path.write_bytes(content)
        assert segment.read(100) == b""
        path.write_bytes(content or b"3\n")
    assert names == [str(path), f"{path} (2)", f"{path} (3)"]
    stop.ask()


def test_a_file_that_can_no_longer_be_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(b"first\n")
    segments = Followed(str(path), Stop()).segments()
    segment = next(segments)

    def fails(*_: object) -> None:
        raise OSError(116, "Stale file handle")

    monkeypatch.setattr(os, "pread", fails)
    with pytest.raises(gca.UnreadableInputError, match="stale file handle") as error:
        segment.read(100)
    assert "It was readable before" in str(error.value)
    assert error.value.problem == "stale file handle"
