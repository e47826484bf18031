"""Files are written completely or not at all, with the usual permissions."""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.files import write_atomically

if TYPE_CHECKING:
    from pathlib import Path


def write_text(file: IO[bytes]) -> None:
    file.write(b"new")


def fail(file: IO[bytes]) -> None:
    file.write(b"half")
    raise OSError(28, "No space left on device")


def test_a_file_is_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "report.txt"
    path.write_text("old")
    write_atomically(path, write_text)
    assert [each.read_text() for each in tmp_path.iterdir()] == ["new"]


@pytest.mark.parametrize(("before", "after"), [(None, []), ("old", ["old"])])
def test_a_failed_write_changes_nothing(
    before: str | None, after: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "report.txt"
    if before:
        path.write_text(before)
    with pytest.raises(gca.UnwritableOutputError, match="No space left") as caught:
        write_atomically(path, fail)
    assert caught.value.kept is bool(before)
    assert [each.read_text() for each in tmp_path.iterdir()] == after


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_the_permissions_are_those_of_an_ordinary_file(mask: int, tmp_path: Path) -> None:
    before = os.umask(mask)
    try:
        write_atomically(tmp_path / "report.txt", write_text)
        (tmp_path / "ordinary.txt").touch()
        assert os.umask(mask) == mask
    finally:
        os.umask(before)
    modes = {path.stat().st_mode for path in tmp_path.iterdir()}
    assert len(modes) == 1


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target = tmp_path / "target.txt"
    target.write_text("old")
    link = tmp_path / "link.txt"
    link.symlink_to(target)
    write_atomically(link, write_text)
    assert link.is_symlink()
    assert target.read_text() == "new"
