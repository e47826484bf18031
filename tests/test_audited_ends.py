"""Reports of written ends of containers and units say nothing that these inputs contradict."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.errors import NoDataError
from gctrace_analyzer.testing import read_text
from tests.helpers import (
    audit_crashes,
    audit_ends,
    audit_units,
    written_crashes,
    written_ends,
    written_units,
)

if TYPE_CHECKING:
    from pathlib import Path

SEEDS = range(24)
"""More find nothing in every run: thousands were read when this was written."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", SEEDS)
def test_containers(seed: int) -> None:
    tool, found, text = written_ends.written(Random(seed))
    try:
        run = read_text(text)
    except NoDataError:
        # `docker ps` shows no end.
        return
    assert not audit_ends.audit(found, tool, json.loads(run.to_json()), run.to_markdown())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("is_apart", [True, False], ids=["two inputs", "one input"])
@pytest.mark.parametrize("seed", SEEDS)
def test_containers_with_the_log_of_one(seed: int, is_apart: bool, tmp_path: Path) -> None:
    tool, found, text, own, form, log = written_ends.traced(Random(seed))
    if own is None:
        return
    if is_apart:
        (tmp_path / "app.log").write_text(log)
        (tmp_path / "state.txt").write_text(text)
        run = gca.read(tmp_path / "app.log", tmp_path / "state.txt")
    else:
        run = read_text(log + text)
    report = json.loads(run.to_json())
    assert not audit_ends.audit(found, tool, report, run.to_markdown(), own, form)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", SEEDS)
def test_units(seed: int) -> None:
    form, found, text, traced = written_units.written(Random(seed))
    try:
        run = read_text(text)
    except NoDataError:
        # Only the start of a unit.
        return
    report = json.loads(run.to_json())
    assert not audit_units.audit(form, found, report, run.to_markdown(), traced)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", [*SEEDS, 210])
def test_programs_that_the_runtime_ended(seed: int) -> None:
    found, form, text = written_crashes.written(Random(seed))
    try:
        run = read_text(text)
    except NoDataError:
        # A crash for another reason than memory.
        return
    report = json.loads(run.to_json())
    assert not audit_crashes.audit(found, form, report, run.to_markdown())
