"""The archives of the corpus: packed and unpacked without a difference, each with a note."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.helpers import archives

if TYPE_CHECKING:
    from pathlib import Path

# Numbers and paths that mean something on one machine only.
PRIVATE = re.compile(rb"index id|/home/|/root/|/tmp/[a-z]")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(archives, "FOLDER", tmp_path)
    return tmp_path


def test_every_archive_has_a_note_and_every_note_an_archive() -> None:
    assert archives.names() == sorted(path.stem for path in archives.FOLDER.glob("*.md"))


@pytest.mark.parametrize("name", archives.names())
def test_an_archive_is_what_was_unpacked(name: str) -> None:
    packed = archives.contents((archives.FOLDER / f"{name}.tar.gz").read_bytes())
    assert packed
    assert all((archives.FOLDER / name / path).read_bytes() == packed[path] for path in packed)


@pytest.mark.parametrize("name", archives.names())
def test_descriptions_name_nothing_of_one_machine(name: str) -> None:
    packed = archives.contents((archives.FOLDER / f"{name}.tar.gz").read_bytes())
    notes = {path: data for path, data in packed.items() if path.endswith((".json", ".md"))}
    manifests = {path: data for path, data in notes.items() if b'"source"' in data}
    assert [path for path, data in manifests.items() if PRIVATE.search(data)] == []


def test_a_file_that_was_added_stays_when_the_archive_changes(folder: Path) -> None:
    old = archives.packed({"a/1.log": b"one", "2.log": b"two"})
    new = archives.packed({"a/1.log": b"other", "3.log": b"three"})
    (folder / "logs.tar.gz").write_bytes(old)
    archives.unpack_all()
    (folder / "logs" / "mine.log").write_bytes(b"mine")
    (folder / "logs.tar.gz").write_bytes(new)
    archives.unpack_all()
    left = {path.name: path.read_bytes() for path in folder.rglob("*.log")}
    assert left == {"1.log": b"other", "3.log": b"three", "mine.log": b"mine"}


def test_packing_says_what_changed_and_does_not_depend_on_times(folder: Path) -> None:
    (folder / "logs").mkdir()
    (folder / "logs" / "1.log").write_bytes(b"one")
    assert archives.pack("logs") == ["added 1.log"]
    first = (folder / "logs.tar.gz").read_bytes()
    (folder / "logs" / "1.log").touch()
    assert archives.pack("logs") == []
    (folder / "logs" / "1.log").unlink()
    (folder / "logs" / "2.log").write_bytes(b"one")
    assert archives.pack("logs") == ["added 2.log", "removed 1.log"]
    (folder / "logs" / "2.log").rename(folder / "logs" / "1.log")
    archives.pack("logs")
    assert (folder / "logs.tar.gz").read_bytes() == first
