"""What makes two sides incomparable, with its numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from gctrace_analyzer.analysis.compare.change import Change
from gctrace_analyzer.analysis.compare.comparability import (
    Circumstances,
    Difference,
    _drift,
    differences,
    have_other_limits,
)
from gctrace_analyzer.analysis.compare.compare import Measured, late_pauses
from gctrace_analyzer.testing import read_text
from tests.helpers.facts import log_of

SUMMARY = replace(
    read_text(log_of(20)).summary(), cycles=1000, missing_cycles=0, forced_cycles=0, span_s=60.0
)
PAUSES = {"stw_sweep_term_ms": 0.1, "stw_mark_term_ms": 0.01, "stacks_mib": 0}


def points(live: list[float | None], **columns: Any) -> pl.DataFrame:
    """The spans of a run, with pauses that are all equal."""
    equal = {"procs": 2, **PAUSES, **columns}
    return pl.DataFrame({"heap_live_mib": live}).with_columns(**equal)


POINTS = points([100] * 40)
LATE = points(
    [100] * 40,
    stw_sweep_term_ms=pl.Series([1.5] * 4 + [0.1] * 36),
)
BEFORE = Circumstances("before", "go1.26", "100", None)
AFTER = replace(BEFORE, label="after")
SAME = {"before": 100.0, "after": 100.0, "delta": 0.0, "delta_low": -1.0, "delta_high": 1.0}
ROWS: dict[str, dict[str, Any]] = {
    "alloc_mib_per_s": SAME | {"verdict": "~"},
    "live_heap_p50_mib": SAME | {"verdict": "~"},
    "true_live_heap_mib": SAME | {"verdict": "~"},
}


def side(spans: pl.DataFrame = POINTS, **summary: Any) -> list[Measured]:
    known = replace(SUMMARY, **summary)
    return [Measured(spans, known, {}, {}, late=late_pauses(spans, known))]


def found(
    before: Circumstances = BEFORE,
    after: Circumstances = AFTER,
    runs: tuple[list[Measured], list[Measured]] | None = None,
    *,
    given: bool = True,
    **rows: dict[str, Any],
) -> list[Difference]:
    first, second = runs or (side(), side())
    every = {name: Change(name, **row | rows.get(name, {})) for name, row in ROWS.items()}
    return list(differences((before, first), (after, second), every, load_is_given=given))


def only(*args: Any, **keywords: Any) -> Difference:
    (each,) = found(*args, **keywords)
    return each


def test_sides_that_are_alike_have_no_difference() -> None:
    assert found() == []


@pytest.mark.parametrize(
    ("name", "old", "new", "sentence"),
    [
        ("gogc", "100", "200", "GOGC 100 → 200"),
        ("memory_limit", None, "1 GiB", "GOMEMLIMIT none → 1 GiB"),
        ("ballast", "64 MiB", None, "ballast 64 MiB → none"),
    ],
)
def test_a_setting_that_was_changed(
    name: str, old: str | None, new: str | None, sentence: str
) -> None:
    was: dict[str, Any] = {name: old}
    now: dict[str, Any] = {name: new}
    each = only(replace(BEFORE, **was), replace(AFTER, **now))
    assert (each.kind, each.what, each.sentence) == ("changed", name, sentence)


def test_another_go_or_gomaxprocs_is_incomparable() -> None:
    each = only(after=replace(AFTER, go="go1.25"))
    assert (each.kind, each.what) == ("incomparable", "go_version")
    assert "(go1.26 → go1.25)" in each.sentence
    assert found(after=replace(AFTER, go=None)) == []
    # The lines of one side need not show as much of the version as those of the other.
    assert found(replace(BEFORE, go="go1.21+"), replace(AFTER, go="go1.18+")) == []
    both = POINTS.with_columns(procs=pl.Series([4] * 20 + [8] * 20))
    each = only(runs=(side(), side(both)))
    assert (each.kind, each.what) == ("incomparable", "procs")
    assert "(2 → 4–8)" in each.sentence


def test_gctrace_and_metrics_differ_by_themselves() -> None:
    each = only(after=replace(AFTER, by_metrics=True, go="go1.25"))
    assert (each.what, each.sentence.split()[0]) == ("source", "before")
    assert only(before=replace(BEFORE, by_metrics=True)).sentence.startswith("after is from")


@pytest.mark.parametrize(
    ("delta", "below", "given", "kind", "what"),
    [
        (11.0, 5.0, True, "incomparable", "load"),
        (-11.0, 5.0, True, "incomparable", "load"),
        (11.0, 5.0, False, "note", "throughput"),
        (11.0, 12.0, True, "note", "unclear_load"),
        (10.0, 5.0, True, None, None),
    ],
)
def test_another_allocation_rate_is_another_load(
    delta: float, below: float, given: bool, kind: str | None, what: str | None
) -> None:
    row = {
        "after": 100 + delta, "delta": delta, "delta_low": delta - below,
        "delta_high": delta + 0.5,
    }  # fmt: skip
    every = found(given=given, alloc_mib_per_s=row)
    assert [(each.kind, each.what) for each in every] == ([(kind, what)] if kind else [])
    if kind and delta > 0:
        assert "(100 → 111 MiB/s allocated)" in every[0].sentence


def test_another_live_heap_is_noted_if_it_is_certain() -> None:
    row = {"after": 120.0, "delta": 20.0, "delta_low": 1.0, "delta_high": 30.0}
    each = only(true_live_heap_mib=row)
    assert (each.kind, each.what) == ("note", "live_heap")
    assert "(mean 100 → 120 MiB)" in each.sentence, "as in the table"
    assert found(true_live_heap_mib=row | {"delta_low": -1.0}) == []
    assert found(true_live_heap_mib=row | {"delta": 10.0}) == []
    assert found(live_heap_p50_mib=row) == [], "a median over cycles depends on the settings"


def test_long_pauses_of_a_side_are_noted_unless_they_are_known_to_be_contention() -> None:
    delayed = replace(BEFORE, delay="The pause takes up to 145 ms.")
    each = only(delayed)
    assert (each.kind, each.what) == ("note", "delayed")
    assert each.sentence.startswith("before: The pause takes up to 145 ms. Other work or")
    assert only(delayed, runs=(side(LATE), side())).what == "contended"


def test_notes_on_a_side() -> None:
    each = only(runs=(side(missing_cycles=11), side()))
    assert each.sentence.startswith("before: 11 of 1,011 cycles have no line")
    assert found(runs=(side(missing_cycles=10), side())) == []
    each = only(runs=(side(), side(forced_cycles=51)))
    assert each.sentence.startswith("after: the program forced 51 of 1,000 cycles")
    assert found(runs=(side(), side(forced_cycles=50))) == []


def test_other_work_on_the_cpus_is_noted_once() -> None:
    busy, quiet = side(LATE), side()
    each = only(runs=(busy, quiet))
    assert each.what == "contended"
    assert each.sentence.startswith(
        "GC CPU and pauses are not compared (–): other work or a CPU quota probably held up threads of "
        "before (4 of 80 pauses take over 1 ms and 10 times the median of their phase)."
    )
    assert "of after (4 of 80" in only(runs=(quiet, busy)).sentence
    assert " and of after (4 of 80" in only(runs=(busy, busy)).sentence
    # All pauses are long, or there are fewer CPUs than processors.
    assert found(runs=(side(points([100] * 40, stw_mark_term_ms=18.0)), quiet)) == []
    assert found(runs=(side(LATE, cpus=1.0), quiet)) == []


def drifting(*quarters: float | None) -> pl.DataFrame:
    live = [value for value in quarters for _ in range(10)]
    return points(live)


def test_a_live_heap_that_has_not_settled_is_noted() -> None:
    assert _drift(drifting(10.0, 100.0, 110.0, 130.0)) == pytest.approx(0.3)
    assert _drift(drifting(10.0, 100.0, 90.0, 80.0)) == pytest.approx(-0.2)
    assert _drift(drifting(10.0, 0.0, 90.0, 80.0)) is None
    assert _drift(drifting(10.0, 90.0, 80.0, None)) is None
    assert _drift(POINTS.head(3)) is None
    assert _drift(POINTS.head(4)) == 0
    each = only(runs=(side(drifting(50.0, 100.0, 110.0, 116.0)), side()))
    assert each.sentence.startswith("before: the live heap changes by +16 %")
    assert found(runs=(side(drifting(50.0, 100.0, 110.0, 114.0)), side())) == []
    each = only(runs=(side(), side(drifting(50.0, 100.0, 90.0, 80.0))))
    assert "changes by -20 %" in each.sentence


@pytest.mark.parametrize(
    ("was", "now", "differ"),
    [
        ({"limit_ends": (512.0, 512.0)}, {"limit_ends": (1024.0, 1024.0)}, True),
        ({"limit_ends": (67.0, 91.0)}, {"limit_ends": (55.0, 77.0)}, False),
        ({"limit_ends": (67.0, 91.0)}, {"limit_ends": (512.0, 512.0)}, True),
        ({"goal_mib": 94.0}, {"limit_ends": (67.0, 91.0)}, True),
        ({"limit_ends": (67.0, 91.0)}, {"goal_mib": 94.0}, True),
        ({"goal_mib": 80.0}, {"limit_ends": (67.0, 91.0)}, False),
        ({}, {"limit_ends": (67.0, 91.0)}, False),
    ],
)
def test_an_inferred_limit_differs_only_if_it_certainly_does(
    was: dict[str, Any], now: dict[str, Any], differ: bool
) -> None:
    sides = (Circumstances("a", None, None, None, **own) for own in (was, now))
    assert have_other_limits(*sides) is differ
