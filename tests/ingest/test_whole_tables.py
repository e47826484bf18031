"""Every column of every table that reading an input fills."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from gctrace_analyzer import schema
from gctrace_analyzer.ingest.clock import Clock
from gctrace_analyzer.ingest.read import ReadOptions, read_log
from tests.conftest import CORPUS
from tests.helpers.corpus import INPUTS, expectation

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MOST_ROWS = 4
FOLDERS: dict[str, list[Path]] = {}
for _path in INPUTS:
    if expectation(_path)["expect"]["error"] is None:
        FOLDERS.setdefault(_path.parent.name, []).append(_path)
for _name in ("exports", "metrics/formats"):
    _paths = (CORPUS / _name).iterdir()
    FOLDERS[_name.rpartition("/")[2]] = sorted(each for each in _paths if each.suffix != ".md")


def shown(row: dict[str, Any]) -> str:
    given = {name: value for name, value in row.items() if value is not None}
    if "text" in given:
        given["text"] = given["text"][:60]
    return json.dumps(given, default=str, ensure_ascii=False)


def tables_of(path: Path) -> list[str]:
    """Returns what is known of an input, and the first and the last rows of each table."""
    log = read_log([path], ReadOptions(clock=Clock(year=2026, tz="UTC")))
    (facts,) = log.sources
    lines = [f"# {path.name}: {facts.lines} lines of {facts.kind}, {facts.encoding}"]
    more = [facts.compression, facts.damage, facts.wrappers, facts.found, *log.notes]
    lines += [f"{each}".replace(f"{path}", path.name) for each in more if each]
    for name in schema.LOG_TABLES:
        rows = log.tables[name].drop("source", strict=False).to_dicts()
        few = rows if len(rows) <= MOST_ROWS else [*rows[:2], *rows[-2:]]
        lines += [f"{name} {shown(row)}" for row in few]
    return lines


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_column_of_an_input_is_read(
    folder: str, golden: Callable[[str, str], None]
) -> None:
    text = "\n\n".join("\n".join(tables_of(path)) for path in FOLDERS[folder])
    golden(f"tables/{folder}.txt", text + "\n")


# One input of each format; a binary export of journald has lengths in bytes.
SMALL = [
    path
    for folder in ("broken", "container_state", "memstats", "systemd", "exports", "formats")
    for path in FOLDERS[folder]
    if path.stat().st_size < 20_000 and path.suffix not in (".zst", ".bin")
]


@pytest.mark.parametrize("path", SMALL, ids=lambda path: path.name)
def test_blank_lines_and_line_ends_of_windows_only_change_line_numbers(path: Path) -> None:
    data = path.read_bytes()
    lead = b"\n\n\n"
    changed = lead + data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n") + b"\r\n\r\n"
    options = ReadOptions(clock=Clock(year=2026, tz="UTC"))
    plain, log = (read_log([io.BytesIO(each)], options).tables for each in (data, changed))
    for name in schema.LOG_TABLES:
        numbers = [each for each in plain[name].columns if each.endswith("line_no")]
        moved = plain[name].with_columns(pl.col(numbers) + len(lead))
        assert log[name].equals(moved), name
