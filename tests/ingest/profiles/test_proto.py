"""profile.proto: what Go writes, what others write, and what is damaged."""

from __future__ import annotations

import gzip
import io
import random
import zipfile
from typing import TYPE_CHECKING

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.errors import GctraceWarning, NoDataError, UnreadableInputError
from gctrace_analyzer.ingest import sniff
from gctrace_analyzer.ingest.profiles import proto
from tests.helpers.lines import LINES
from tests.helpers.written_profiles import (
    DECODE,
    MAIN,
    RUNTIME,
    UNMARSHAL,
    message,
    number,
    profile,
    service,
)

if TYPE_CHECKING:
    from pathlib import Path

    from gctrace_analyzer.ingest.profiles.profile import Profile

STACK = [UNMARSHAL, DECODE, MAIN, RUNTIME]


def read(data: bytes) -> Profile:
    return proto.read([data], "heap.pb")


def test_values_and_frames_are_those_of_the_samples() -> None:
    heap = read(profile([(STACK, [1, 2**40, 3, 300]), ([MAIN, RUNTIME], [5, 6, 0, 0])]))
    assert heap.kind == "heap"
    assert heap.period == 524_288
    assert heap.stacks.select(heap.values).rows() == [(1, 2**40, 3, 300), (5, 6, 0, 0)]
    frames = next(heap.frames())
    names = heap.places["function"].gather(frames["place"])
    assert names.to_list()[:4] == [
        "encoding/json.Unmarshal", "main.decode", "main.main", "runtime.main",
    ]  # fmt: skip
    assert frames["stack"].to_list() == [0, 0, 0, 0, 1, 1]


def test_equal_stacks_are_one_and_differences_may_be_negative() -> None:
    heap = read(profile([([MAIN], [1, 10, 1, -10]), ([MAIN], [2, 20, 2, 5])]))
    assert heap.stacks.select(heap.values).rows() == [(3, 30, 3, -5)]


@pytest.mark.parametrize("size", [1, 7, 100])
@pytest.mark.parametrize("packed", [True, False])
def test_blocks_may_end_anywhere(size: int, *, packed: bool) -> None:
    data = profile([(STACK, [1, 200, 3, 300]), ([MAIN], [5, 6, 0, 0])], packed=packed)
    blocks = [data[at : at + size] for at in range(0, len(data), size)]
    whole, cut = read(data), proto.read(blocks, "heap.pb")
    assert whole.stacks.equals(cut.stacks)
    assert whole.places.equals(cut.places)


def test_a_profile_is_recognised_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "core"
    path.write_bytes(gzip.compress(profile([(STACK, [1, 2, 3, 4])])))
    run = gca.read(path)
    assert run.sources[0].kind == "pprof"
    assert not run.is_empty
    path.write_bytes(profile([(STACK, [5, 6])], ["samples", "cpu"], duration_s=2))
    assert run.sources[0].kind == gca.read(path).sources[0].kind


@pytest.mark.parametrize(
    "text", [*LINES.values(), "\n\n\nHello", "2026-11-21 09:00 start", "Z", ""]
)
def test_no_text_is_taken_for_a_profile(text: str) -> None:
    assert not sniff.is_profile(text.encode())
    assert not proto.is_profile(text.encode() * 50)


def test_what_is_cut_off_is_refused() -> None:
    data = profile([(STACK, [1, 2, 3, 4]), ([MAIN], [5, 6, 7, 8])])
    for size in range(len(data) - 20):
        with pytest.raises(NoDataError, match="profile"):
            read(data[:size])


def test_a_truncated_file_is_refused_and_the_log_is_read(tmp_path: Path) -> None:
    packed = service()
    path, log = tmp_path / "heap.pb.gz", tmp_path / "run.log"
    path.write_bytes(packed[: len(packed) // 2])
    log.write_text(LINES["gc18"] + "\n")
    with pytest.raises(NoDataError, match=r"heap\.pb\.gz: .*truncated"):
        gca.read(path)
    with pytest.warns(GctraceWarning, match="heap.pb.gz"):
        assert len(gca.read(log, path).cycles) == 1


def test_damaged_bytes_raise_nothing_else() -> None:
    data = bytearray(profile([(STACK, [1, 2, 3, 4]), ([MAIN], [5, 6, 7, 8])]))
    chance = random.Random(7)
    for _ in range(500):
        damaged = bytearray(data)
        for _ in range(3):
            damaged[chance.randrange(len(data))] = chance.randrange(256)
        try:
            read(bytes(damaged))
        except NoDataError:
            continue


@pytest.mark.parametrize(
    ("function", "file", "language"),
    [
        ("f", "/app/Main.java", "Java"),
        ("java.util.Arrays.copyOf", "", "Java"),
        ("f", "app.py", "Python"),
        ("f", "lib.rs", "Rust"),
        ("__libc_malloc", "", "C or C++"),
    ],
)
def test_profiles_of_other_languages_are_refused(
    function: str, file: str, language: str
) -> None:
    with pytest.raises(NoDataError) as refused:
        read(profile([([[(function, file, 1)]], [1, 2, 3, 4])]))
    assert f"a program in {language}, not in Go" in str(refused.value)


def test_numbers_that_no_profile_has_are_refused() -> None:
    own = profile([(STACK, [1, 2, 3, 4])])
    with pytest.raises(NoDataError, match="a damaged profile"):
        read(own + message(4, b"\x08" + b"\xff" * 12 + b"\x01"))
    line = message(4, number(1, 9) + message(4, number(2, 2**64 - 1)))
    assert read(own + line).places["line"].min() == -1


def test_of_several_with_one_number_the_first_counts() -> None:
    own = profile([([MAIN], [1, 2, 3, 4])])
    again = message(4, number(1, 1)) + message(5, number(1, 1))
    assert next(read(own + again).frames())["place"].to_list() == [0]


def test_profiles_of_locks_are_refused() -> None:
    with pytest.raises(NoDataError, match="a block or mutex profile"):
        read(profile([([MAIN], [1, 2])], ["contentions", "delay"]))


@pytest.mark.parametrize(
    ("magic", "what"), [(b"FLR\0", "Flight Recorder"), (b"PERFILE2", "perf")]
)
def test_recordings_of_other_tools_are_named(magic: bytes, what: str) -> None:
    with pytest.raises(UnreadableInputError, match=what):
        gca.read(io.BytesIO(magic + bytes(100)))


def test_folders_and_archives_of_profiles_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "profiles"
    folder.mkdir()
    (folder / "heap-1.pb.gz").write_bytes(service())
    (folder / "heap-2.pb.gz").write_bytes(service(decode=700))
    (folder / "notes.txt").write_text("taken under load\n")
    run = gca.read(folder)
    assert run.sites()["profile"].n_unique() == 2
    assert "1 other file was not" in run.summary().warnings[0]
    with zipfile.ZipFile(tmp_path / "profiles.zip", "w") as archive:
        archive.write(folder / "heap-1.pb.gz", "a.pb.gz")
        archive.write(folder / "heap-2.pb.gz", "b.pb.gz")
    zipped = gca.read(tmp_path / "profiles.zip")
    assert zipped.sites().drop("profile").equals(run.sites().drop("profile"))
