"""What less allocation in a function saves, predicted and measured."""

from __future__ import annotations

import json
import statistics
from typing import TYPE_CHECKING

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.advise.whatif import LESS_ERROR, saved_by_less
from gctrace_analyzer.errors import BadSettingError
from tests.conftest import ROOT
from tests.helpers.profiles import MANIFEST, PROFILES

if TYPE_CHECKING:
    from pathlib import Path

REMOVED = [
    (row["name"], function, side)
    for row in MANIFEST["own"]
    for function, side in row["removed"].items()
]
REQUESTS = PROFILES / "requests"


def gc_cpu_s(log: Path) -> float:
    """GC CPU of a run with idle marking, for the work that all runs do."""
    cores = gca.read(log, gogc=100).summary().gc_cpu_with_idle_cores
    assert cores is not None
    wall_s: float = json.loads(log.with_suffix(".json").read_text())["wall_s"]
    return cores * wall_s


def measured(program: str, side: str) -> float:
    """The share of GC CPU that the removal of a function saved (median of five runs a side)."""
    runs = PROFILES / program / "runs"
    before, after = (
        statistics.median(gc_cpu_s(runs / f"{name}-{number}.log") for number in range(1, 6))
        for name in ("all", side)
    )
    return 1 - after / before


@pytest.mark.parametrize(("program", "function", "side"), REMOVED)
def test_what_a_removed_function_saved_was_predicted(
    program: str, function: str, side: str
) -> None:
    folder = PROFILES / program
    saved = measured(program, side)
    run = gca.read(folder / "run.log", folder / "allocs.pb.gz", gogc=100)
    site = run.sites().filter(function=function).row(0, named=True)
    cores = run.summary().gc_cpu_with_idle_cores
    assert cores is not None
    assert site["cum_gc_cpu_cores"] / cores == pytest.approx(saved, rel=LESS_ERROR)
    logs = (folder / f"runs/all-{number}.log" for number in range(1, 6))
    predicted = []
    for log in logs:
        rows = gca.read(log, folder / "allocs.pb.gz", gogc=100).whatif(less={function: "100%"})
        now, less = rows["gc_cpu_cores"]
        predicted.append(1 - less / now)
    assert statistics.median(predicted) == pytest.approx(saved, rel=LESS_ERROR)


def test_less_is_of_a_function_and_what_it_calls() -> None:
    run = gca.read(REQUESTS / "run.log", REQUESTS / "allocs.pb.gz")
    sites = run.sites()
    total = sites["alloc_bytes"].sum()
    render = sites.filter(function="main.render")["cum_alloc_bytes"][0]
    rows = run.whatif(gogc=[100, 200], less={"main.render": "50%"})
    assert rows["allocation"].to_list()[:2] == [1.0, 1.0]
    assert rows["allocation"][2] == pytest.approx(1 - 0.5 * render / total)
    assert rows["gogc"].to_list() == [100.0, 200.0, 100.0, 200.0]
    # What main.main calls is all of it: nothing is counted twice.
    both = run.whatif(less={"main.render": 0.5, "main.page": 0.5})
    assert both["allocation"][1] == pytest.approx(rows["allocation"][2])


def test_savings_are_of_equal_settings() -> None:
    run = gca.read(REQUESTS / "run.log", REQUESTS / "allocs.pb.gz")
    rows = run.whatif(gogc=[100, 200], less={"main.decode": "50%"})
    saved = list(saved_by_less(rows))
    assert [setting.gogc for setting, _ in saved] == [100.0, 200.0]
    now, less = rows.filter(pl.col("gogc") == 100)["gc_cpu_cores"]
    assert saved[0][1][1] == pytest.approx(now - less)
    assert saved[0][1][0] > saved[1][1][0] > 0


@pytest.mark.parametrize(
    ("less", "words"),
    [
        ({"main.decod": "50%"}, r"Did you mean main\.decode"),
        ({"main.decode": "much"}, r"a share such as main\.decode=50%"),
        ({"main.decode": 0}, "a share"),
    ],
)
def test_what_is_no_function_or_share_is_refused(
    less: dict[str, str | float], words: str
) -> None:
    run = gca.read(REQUESTS / "run.log", REQUESTS / "allocs.pb.gz")
    with pytest.raises(BadSettingError, match=words):
        run.whatif(less=less)


def test_without_a_profile_no_function_is_known() -> None:
    with pytest.raises(BadSettingError, match="a heap or allocs profile"):
        gca.read(ROOT / "samples/steady-go1.26.log").whatif(less={"main.f": "50%"})
