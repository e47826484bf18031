"""Compressed inputs read like plain ones, and damage is reported."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gctrace_analyzer as gca
from gctrace_analyzer.testing import read_text
from tests.conftest import SAMPLES
from tests.helpers.logs import records

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LOG = (SAMPLES / "steady-go1.26.log").read_bytes()

CYCLES = 33


def zstd(data: bytes) -> bytes:
    try:
        from compression import zstd as library  # type: ignore[import-not-found,unused-ignore]
    except ModuleNotFoundError:
        from backports import zstd as library
    packed: bytes = library.compress(data)
    return packed


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "bzip2": bz2.compress,
    "zstd": zstd,
}


@settings(max_examples=30)
@given(st.sampled_from(sorted(PACKERS)), st.integers(1, 40), st.integers(1, 3))
def test_compressed_logs_read_like_plain_ones(kind: str, count: int, members: int) -> None:
    log = ("\n".join(records(count)) + "\n").encode()
    cut = len(log) // members
    packed = b"".join(
        PACKERS[kind](log[n * cut : (n + 1) * cut if n + 1 < members else None])
        for n in range(members)
    )
    assert gca.read(io.BytesIO(packed)).cycles.equals(read_text(log).cycles)


@pytest.mark.parametrize("kind", PACKERS)
def test_compression_is_detected_by_content(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(PACKERS[kind](LOG))
    run = gca.read(path)
    assert len(run.cycles) == CYCLES
    assert run.sources[0].compression == kind


@pytest.mark.parametrize("kind", PACKERS)
def test_every_member_of_a_compressed_file_is_read(kind: str) -> None:
    half = LOG.index(b"\n", len(LOG) // 2) + 1
    packed = PACKERS[kind](LOG[:half]) + PACKERS[kind](LOG[half:])
    assert len(gca.read(io.BytesIO(packed)).cycles) == CYCLES


def test_zeros_after_compressed_data_are_not_damage() -> None:
    run = gca.read(io.BytesIO(gzip.compress(LOG) + b"\0" * 512))
    assert len(run.cycles) == CYCLES
    assert run.sources[0].damage is None


def test_the_readable_part_of_a_truncated_file_is_used_and_the_loss_reported() -> None:
    packed = gzip.compress(os.urandom(40_000).hex().encode() + b"\n" + LOG * 40)
    run = gca.read(io.BytesIO(packed[:-40]))
    assert 0 < len(run.cycles) < 40 * CYCLES
    assert run.sources[0].damage == "truncated: the gzip data ends in the middle"
    assert "truncated" in str(run.summary())


def test_data_before_the_damage_is_used() -> None:
    packed = bytearray(gzip.compress(LOG, mtime=0) + gzip.compress(LOG, mtime=0))
    packed[-len(packed) // 4] ^= 0xFF
    run = gca.read(io.BytesIO(bytes(packed)))
    assert len(run.cycles) >= CYCLES
    assert "damaged" in (run.sources[0].damage or "")


def test_unreadable_compressed_data_is_an_error() -> None:
    with pytest.raises(gca.UnreadableInputError, match=r"truncated.*\n.*Fetch the file again"):
        gca.read(io.BytesIO(zstd(LOG)[:20]))


def zipped(files: dict[str, bytes]) -> io.BytesIO:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in files.items():
            packed.writestr(name, data)
    archive.seek(0)
    return archive


@pytest.mark.parametrize(
    "files",
    [
        {"run.log": LOG},
        {"logs/": b"", "logs/run.log": LOG, "__MACOSX/logs/._run.log": b"x"},
        {"run.log.gz": gzip.compress(LOG)},
    ],
    ids=["alone", "with what Finder adds", "compressed once more"],
)
def test_the_only_file_of_a_zip_archive_is_read(files: dict[str, bytes]) -> None:
    run = gca.read(zipped(files))
    assert run.cycles.height == gca.read(io.BytesIO(LOG)).cycles.height > 0
    assert run.sources[0].compression == "zip"


def test_a_zip_archive_of_several_files_is_refused_with_their_names() -> None:
    archive = zipped({f"{n}.log": LOG for n in range(9)})
    with pytest.raises(
        gca.UnreadableInputError, match=r"of 9 files[^$]*4\.log\n    and 4 more"
    ):
        gca.read(archive)


def test_a_zip_archive_from_a_pipe_is_refused() -> None:
    archive = zipped({"run.log": LOG})
    archive.seekable = lambda: False  # type: ignore[method-assign]  # as of a pipe
    with pytest.raises(gca.UnreadableInputError, match="zip archive from a pipe"):
        gca.read(archive)


@pytest.mark.parametrize("at", [0.3, 0.6, 0.9])
def test_a_damaged_zip_archive_is_refused_or_its_damage_is_known(at: float) -> None:
    data = bytearray(zipped({"run.log": os.urandom(90_000).hex().encode()}).getvalue())
    data[int(len(data) * at)] ^= 0xFF
    with pytest.raises(gca.GctraceError):
        gca.read(io.BytesIO(bytes(data)))
    with pytest.raises(gca.UnreadableInputError, match="zip archive is damaged"):
        gca.read(io.BytesIO(bytes(data[: int(len(data) * at)])))


def test_what_is_before_the_damage_in_a_zip_archive_is_read() -> None:
    data = LOG * 4 + b"".join(b"%d\n" % n for n in range(900_000))
    packed = bytearray(zipped({"run.log": data}).getvalue())
    packed[-200_000] ^= 0xFF
    run = gca.read(io.BytesIO(bytes(packed)))
    assert run.cycles.height > 0
    assert "zip data is damaged" in (run.sources[0].damage or "")


@pytest.mark.parametrize("kind", ["tar", "tar.gz", "tar.xz", "zip"])
def test_the_parts_of_a_rotated_log_in_an_archive_are_read_in_order(
    kind: str, tmp_path: Path
) -> None:
    lines = LOG.splitlines(keepends=True)
    third = len(lines) // 3
    parts = {
        "logs/run.log": b"".join(lines[2 * third :]),
        "logs/run.log.1": b"".join(lines[third : 2 * third]),
        "logs/run.log.2.gz": gzip.compress(b"".join(lines[:third])),
        "logs/server": b"\x7fELF" + bytes(64),
    }
    path = tmp_path / f"logs.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in parts.items():
                archive.writestr(name, data)
    else:
        with tarfile.open(path, f"w:{kind.partition('.')[2]}") as bundle:  # type: ignore[call-overload]
            for name, data in parts.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(data)
                bundle.addfile(entry, io.BytesIO(data))
    run = gca.read(path)
    whole = gca.read(SAMPLES / "steady-go1.26.log")
    assert run.cycles.drop("source", "line_no").equals(whole.cycles.drop("source", "line_no"))
    names = [source.name.removeprefix(f"{path}/") for source in run.sources]
    assert names == ["logs/run.log.2.gz", "logs/run.log.1", "logs/run.log"]
    assert any("1 other file was not" in note for note in run.analysis.log.notes)
