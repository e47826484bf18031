"""A followed file is read through truncation and rotation, and a pipe to its end."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

import gctrace_analyzer as gca
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
