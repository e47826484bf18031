"""The output of a fleet run: Parquet files and their manifest."""

from __future__ import annotations

import json
import os
import shutil
import sys
from typing import TYPE_CHECKING

import polars as pl
import pytest

from gctrace_analyzer.errors import (
    BadSettingError,
    GctraceWarning,
    MissingExtraError,
    UnreadableInputError,
    UnwritableOutputError,
)
from gctrace_analyzer.fleets.fleet import fleet
from gctrace_analyzer.fleets.output import Output, existing
from tests.helpers.fleet import row, sample

if TYPE_CHECKING:
    from pathlib import Path


def test_files_that_the_manifest_does_not_list_do_not_count(tmp_path: Path) -> None:
    where = tmp_path / "out.parquet"
    one = Output(str(where), {"id": None})
    one.add([row("a")], 2)
    kept = (where.parent / "out.parquet.manifest.json").read_text()
    one.add([row("b")], 2)
    (where.parent / "out.parquet.manifest.json").write_text(
        kept
    )  # as if the run had been killed before
    two = Output(str(where), {"id": None})
    assert two.done == {"a"}
    two.add([row("b")], 2)
    two.finish(2)
    assert two.frame().collect()["file"].to_list() == ["a", "b"]
    assert pl.scan_parquet(where).collect()["file"].sort().to_list() == ["a", "b"]
    assert json.loads((where.parent / "out.parquet.manifest.json").read_text())["complete"]
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []


def test_an_output_made_with_other_options_is_not_resumed(tmp_path: Path) -> None:
    where = str(tmp_path / "out.parquet")
    Output(where, {"id": None}).add([row("a")], 1)
    with pytest.raises(BadSettingError, match="Or pass overwrite"):
        Output(where, {"id": "{pod}.log"})
    assert Output(where, {"id": "{pod}.log"}, overwrite=True).done == set()


def test_a_folder_with_other_content_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(BadSettingError, match="something else"):
        Output(str(tmp_path), {})
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_unreachable_files_are_retried_and_damaged_files_are_not(tmp_path: Path) -> None:
    where = str(tmp_path / "out.parquet")
    first = Output(where, {})
    first.add([row("a", error_kind="unreachable"), row("b", error_kind="damaged")], 2)
    assert Output(where, {}).done == {"b"}
    assert Output(where, {}, retry=True).done == set()


def test_a_missing_part_is_an_error(tmp_path: Path) -> None:
    where = tmp_path / "out.parquet"
    Output(str(where), {}).add([row("a")], 1)
    next(where.iterdir()).unlink()
    with pytest.raises(UnreadableInputError, match="the manifest lists it"):
        existing(str(where))


def test_a_folder_that_was_deleted_is_made_again(tmp_path: Path) -> None:
    where = tmp_path / "out.parquet"
    Output(str(where), {}).add([row("a")], 1)
    shutil.rmtree(where)
    again = Output(str(where), {"other": 1})
    assert again.done == set()
    again.add([row("b")], 1)
    assert set(existing(str(where)).collect()["file"]) == {"b"}


def test_a_missing_output_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnreadableInputError, match="not an output of fleet"):
        existing(str(tmp_path / "none.parquet"))


def test_an_unknown_kind_of_store_is_refused() -> None:
    pytest.importorskip("fsspec")
    with pytest.raises(BadSettingError, match=r"for output\.\n.*s3://"):
        Output("nosuch://bucket/out.parquet", {})


def test_a_missing_library_of_a_store_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fsspec")
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    with pytest.raises(MissingExtraError, match="gcs"):
        existing("gs://bucket/out.parquet")


@pytest.mark.parametrize("method", ["ls", "rm_file", "cat_file", "pipe_file"])
def test_a_store_that_fails_is_an_error(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = pytest.importorskip("fsspec.implementations.memory").MemoryFileSystem
    where = f"memory://{method}/out.parquet"
    output = Output(where, {})
    output.add([row("a")], 1)
    memory().pipe_file(f"/{method}/out.parquet/unlisted.parquet", b"")

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("the store is down")

    monkeypatch.setattr(memory, method, fail)
    with pytest.raises(UnwritableOutputError, match="the store is down"):
        Output(where, {})


def test_other_content_in_a_store_is_left_alone() -> None:
    memory = pytest.importorskip("fsspec.implementations.memory").MemoryFileSystem
    memory().pipe_file("/other/out.parquet/notes.txt", b"")
    with pytest.raises(BadSettingError, match="something else"):
        Output("memory://other/out.parquet", {})
    assert memory().exists("/other/out.parquet/notes.txt")


@pytest.mark.usefixtures("read_here")
def test_a_file_that_has_changed_is_read_again(tmp_path: Path) -> None:
    log, other, where = tmp_path / "a.log", tmp_path / "b.log", tmp_path / "out.parquet"
    log.write_text(sample()[:2000])
    other.write_text(sample())
    inputs = [str(log), str(other)]
    before = fleet(inputs, output=where).collect()
    log.write_text(sample())
    after = fleet(inputs, output=where).collect().sort("file")
    assert before.sort("file")["cycles"][0] < after["cycles"][0] == after["cycles"][1]
    assert after["file"].to_list() == inputs
    os.utime(log, (1, 1))
    assert len(fleet(inputs, output=where).collect()) == 2


@pytest.mark.usefixtures("read_here")
def test_rows_of_other_files_in_an_output_are_named(tmp_path: Path) -> None:
    log, where = tmp_path / "a.log", tmp_path / "out.parquet"
    log.write_text(sample())
    fleet("samples/steady-go1.26.log", output=where)
    with pytest.warns(
        GctraceWarning, match=r"1 other file, such as samples/steady-go1\.26\.log"
    ):
        fleet(str(log), output=where)
    assert len(fleet(str(log), output=where, overwrite=True).collect()) == 1
