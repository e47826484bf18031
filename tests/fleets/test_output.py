"""The output of a fleet run: Parquet files and their manifest."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl
import pytest

from gctrace_analyzer.errors import BadSettingError, UnreadableInputError
from gctrace_analyzer.fleets.output import Output, existing
from tests.helpers.fleet import row

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


def test_a_missing_output_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnreadableInputError, match="not an output of fleet"):
        existing(str(tmp_path / "none.parquet"))
