"""Programs that change GOGC while they run, and limits that cease to set the goals."""

from __future__ import annotations

import io
from typing import Any

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.cycles import with_metrics
from gctrace_analyzer.analysis.goals.levels import last_level, steady
from gctrace_analyzer.analysis.thresholds import DEFAULT
from tests.conftest import CORPUS
from tests.helpers.facts import log_of

UNCLEAR = "Either GOGC or the memory limit was changed"
OF_LIMITS = {"GC014", "GC015", "GC016", "GC017"}


def setters(run: gca.Run, *, before_s: float = 1e9, after_s: float = 0.5) -> dict[str, int]:
    cycles = run.table("metrics").filter(pl.col("start_s").is_between(after_s, before_s))
    counts = cycles["goal_set_by"].cast(pl.String).fill_null("unknown").value_counts()
    return dict(counts.iter_rows())


def evidence_of_levels(run: gca.Run) -> str:
    return str(run.findings().filter(id="GC026")["evidence"].item())


@pytest.mark.parametrize(
    ("log", "text"),
    [
        ("gogc-50-200-swinging", "The effective GOGC was 50, then 200."),
        (
            "gogc-50-400-100-swinging",
            "The effective GOGC was 50, then 400 for 5 cycles, then 100.",
        ),
    ],
)
def test_a_change_of_gogc_is_not_a_memory_limit(log: str, text: str) -> None:
    run = gca.read(CORPUS / f"retuned/{log}.log")
    counts = setters(run)
    # A level of five cycles is too short to know.
    assert counts.pop("unknown", 0) <= 5
    assert set(counts) == {"gogc"}
    assert evidence_of_levels(run) == text
    assert not OF_LIMITS & set(run.findings()["id"])


@pytest.mark.parametrize(
    ("log", "levels"),
    [("gogc-50-200-constant", (50, 200)), ("gogc-10-100-constant", (10, 100))],
)
def test_of_a_constant_live_heap_it_is_said_that_the_log_does_not_show_what_changed(
    log: str, levels: tuple[int, int]
) -> None:
    run = gca.read(CORPUS / f"retuned/{log}.log")
    assert set(setters(run, before_s=2.9)) == {"unknown"}
    assert set(setters(run, after_s=3.1)) == {"gogc"}
    evidence = evidence_of_levels(run)
    assert evidence.startswith(
        f"The effective GOGC was {levels[0]}, then {levels[1]}. {UNCLEAR}"
    )
    assert not OF_LIMITS & set(run.findings()["id"])


@pytest.mark.parametrize(
    ("log", "last_gogc"), [("go1.18-bigglobals", 100), ("go1.26-retune", 50)]
)
def test_goals_of_a_constant_live_heap_that_are_those_of_the_default_are_set_by_gogc(
    log: str, last_gogc: int
) -> None:
    """The first began with GOGC=100 and kept it; the second was set to 50 halfway."""
    run = gca.read(CORPUS / f"gctrace/{log}/run.log")
    counts = setters(run)
    assert counts.pop("unknown", 0) <= 5
    assert set(counts) == {"gogc"}
    assert run.advice.baseline.now.gogc == pytest.approx(last_gogc, abs=1)
    assert UNCLEAR not in run.findings()["evidence"].str.join(" ").item()


@pytest.mark.parametrize(
    "log", ["limit-lifted-constant", "limit-lifted-swinging", "limit-left-by-live-heap"]
)
def test_a_limit_that_ceases_to_set_the_goals_is_a_limit(log: str) -> None:
    run = gca.read(CORPUS / f"retuned/{log}.log")
    assert set(setters(run, before_s=2.9)) == {"memory-limit"}
    assert set(setters(run, after_s=4)) == {"gogc"}
    assert {"GC014", "GC015"} <= set(run.findings()["id"])
    assert "GC026" not in run.findings()["id"].to_list()
    (tight,) = run.findings().filter(id="GC015").to_dicts()
    verdict = run.report().verdict
    assert verdict is not None
    # A limit that was raised needs no action; one that the live heap left may be met again.
    is_raised = log.startswith("limit-lifted")
    assert (tight["severity"] == "info") is is_raised
    assert verdict.sentence.startswith("GOMEMLIMIT is close") is not is_raised
    if is_raised:
        assert tight["end_s"] < 4


def swinging(n: int) -> int:
    """A live heap between 60 and 70 MiB."""
    return 60 + abs(n % 20 - 10)


@pytest.mark.parametrize(
    ("middle", "text"),
    [
        (12, "100, then 400, then 50"),
        (7, "100, then 400 for 7 cycles, then 50"),
        (4, "100, then 400 for 4 cycles, then 50"),
        # So few may be anything.
        (2, "100, then 50"),
    ],
)
def test_a_short_level_between_others_is_listed_with_its_cycles(middle: int, text: str) -> None:
    levels = {1: 100, 61: 400, 61 + middle: 50}
    log = log_of(140, live=swinging, goal=lambda n: goals(n, levels, swinging(n - 1)))
    run = gca.testing.read_text(log)
    assert evidence_of_levels(run) == f"The effective GOGC was {text}."
    last = last_level(run.table("metrics"), run.analysis.gogc_levels(0), DEFAULT)
    assert last is not None
    assert last.gogc == pytest.approx(50, abs=1.5)
    assert last.first_gc - (61 + middle) in (0, 1)


def test_of_many_levels_the_last_one_is_listed() -> None:
    levels = {1 + 20 * n: (50, 150)[n % 2] for n in range(8)}
    log = log_of(160, live=swinging, goal=lambda n: goals(n, levels, swinging(n - 1)))
    assert evidence_of_levels(gca.testing.read_text(log)) == (
        "The effective GOGC was 50, then 150, then 50, then 150, then 50, then 2 other levels, "
        "then 150."
    )


def counts_of(text: str) -> dict[str, int]:
    setter = with_metrics(gca.testing.read_text(text).cycles)["goal_set_by"].cast(pl.String)
    return dict(setter.drop_nulls().value_counts().iter_rows())


def goals(n: int, levels: dict[int, int], live: int) -> int:
    """The goal of cycle n by the GOGC of the last level that began before it."""
    gogc = [value for first, value in levels.items() if first <= n][-1]
    return live + live * gogc // 100


@pytest.mark.parametrize("count", [11, 40])
def test_each_level_has_the_gogc_that_explains_its_goals(count: int) -> None:
    levels = {1: 60, 1 + count: 150, 1 + 2 * count: 30, 1 + 3 * count: 90}
    text = log_of(4 * count, live=swinging, goal=lambda n: goals(n, levels, swinging(n - 1)))
    found = counts_of(text)
    assert "memory-limit" not in found
    assert found["gogc"] >= 4 * count - 6
    # Of two programs in one log, each has its own levels.
    other = log_of(4 * count, live=swinging, goal=lambda n: 2 * swinging(n - 1))
    both = counts_of(text + other)
    assert both["gogc"] >= 8 * count - 8
    assert "memory-limit" not in both


def test_goals_that_do_not_follow_the_live_heap_are_a_limit_next_to_changes_of_gogc() -> None:
    """GOGC 60, a limit of 80 MiB that sets some goals, then GOGC 150."""

    def goal(n: int) -> int:
        live = swinging(n - 1)
        if 30 < n <= 70:
            return 80 - n % 3
        return goals(n, {1: 60, 71: 150}, live)

    text = log_of(110, live=swinging, goal=goal)
    found = counts_of(text)
    assert found["memory-limit"] >= 36
    assert found["gogc"] >= 60


@pytest.mark.parametrize(
    ("constant", "later", "is_limit"), [(90, 180, False), (90, 100, True), (62, 180, True)]
)
def test_a_constant_goal_is_a_limit_unless_far_higher_goals_follow(
    constant: int, later: int, *, is_limit: bool
) -> None:
    """A goal of 62 MiB is so close to a live heap of 60 that it is a limit all the same."""
    text = log_of(
        100,
        live=lambda n: 60 if n <= 30 else swinging(n),
        goal=lambda n: constant if n <= 30 else swinging(n - 1) * later // 60,
    )
    found = counts_of(text)
    assert ("memory-limit" in found) is is_limit
    assert found["gogc"] >= 60


def test_stacks_that_took_the_room_of_the_heap_are_no_change_of_the_limit() -> None:
    """Goals of 90 MiB with 100 MiB of stacks, of a limit that allows 190 MiB without them."""
    text = log_of(
        100,
        live=lambda n: 60 if n <= 30 else swinging(n),
        goal=lambda n: 90 if n <= 30 else 3 * swinging(n - 1),
    ).splitlines()
    early = [line.replace("0 MB stacks", "110 MB stacks") for line in text[:30]]
    assert early != text[:30]
    assert counts_of("\n".join([*early, *text[30:], ""])).get("memory-limit", 0) >= 25


@pytest.mark.parametrize("count", [4, 6])
def test_a_few_goals_that_follow_a_growing_live_heap_are_set_by_gogc(count: int) -> None:
    """A limit does not raise the goal as the live heap grows."""

    def growing(n: int) -> int:
        return 100 + 20 * n

    text = log_of(
        12 + count,
        live=growing,
        goal=lambda n: goals(n, {1: 200, 13: 50}, growing(n - 1)),
    )
    found = counts_of(text)
    assert "memory-limit" not in found
    assert found["gogc"] >= 10 + count


def test_a_few_goals_that_stay_the_same_are_set_by_a_limit() -> None:
    text = log_of(
        18,
        live=lambda n: 100 + 15 * min(n, 13),
        goal=lambda n: 3 * (100 + 15 * (n - 1)) if n <= 12 else 400 - n % 3,
    )
    assert counts_of(text)["memory-limit"] >= 5


def test_samples_of_metrics_have_no_last_level() -> None:
    """They are points in time, not cycles with a number."""
    run = gca.read(CORPUS / "retuned/gogc-50-200-swinging.log")
    cycles = run.table("metrics")
    assert last_level(cycles, steady(cycles, DEFAULT), DEFAULT) is not None
    samples = cycles.with_columns(gc_num=pl.lit(None, pl.Int64))
    assert last_level(samples, steady(samples, DEFAULT), DEFAULT) is None


def two_levels(n: int) -> int:
    """A live heap that rises from 21 to 67 MiB and stays there."""
    return 21 if n <= 20 else 67


def of_two_levels(**options: Any) -> gca.Run:
    """Goals of 43 MiB under GOGC=100, then of 77 MiB: under GOGC=15, or under a limit."""
    text = log_of(110, live=two_levels, goal=lambda n: 43 + n % 2 if n <= 21 else 77)
    return gca.read(io.BytesIO(text.encode()), **options)


def limited_in(run: gca.Run) -> int:
    return setters(run).get("memory-limit", 0)


def test_goals_just_below_a_known_limit_are_no_change_of_gogc() -> None:
    assert "GC026" in of_two_levels().findings()["id"].to_list()
    run = of_two_levels(memory_limit="90MiB")
    assert limited_in(run) >= 85
    assert setters(run)["gogc"] >= 18
    assert "GC026" not in run.findings()["id"].to_list()
    best = run.recommend().filter(pl.col("now")).row(0, named=True)
    assert best["gogc"] == 100


def test_goals_that_do_not_follow_the_live_heap_are_not_set_by_gogc() -> None:
    """The effective GOGC is 49 to 54 in all cycles, but the goal falls where the live heap rises."""
    live = {0: 113, 1: 117, 2: 120, 3: 116}
    sizes: dict[str, Any] = {"live": lambda n: live[n % 4], "start": 150, "end": 155}
    text = log_of(40, goal=lambda n: 174 - (n % 4 == 3), **sizes)
    assert counts_of(text) == {"memory-limit": 39}
    # Of goals that follow it, the same GOGC is one.
    follows = log_of(40, goal=lambda n: int(1.5 * live[(n - 1) % 4]), **sizes)
    assert counts_of(follows) == {"gogc": 39}
    # Go 1.17 and earlier have no memory limit, so something else raised these goals.
    older = text.replace(" 0 MB stacks, 0 MB globals,", "")
    assert counts_of(older).get("memory-limit", 0) == 0


@pytest.mark.parametrize(
    "run",
    [
        "svc-b/off-limit197",
        "svc-b/gogc100-limit184",
        "svc-small/off-limit49",
        "svc-stkc/off-limit71",
    ],
)
def test_an_effective_gogc_that_hardly_varies_may_still_be_a_limit(run: str) -> None:
    found = gca.read(CORPUS / "advice" / run / "run.log")
    assert set(setters(found)) == {"memory-limit"}
    assert "specify the memory limit" in str(
        found.advice.baseline.refused
    ) or "thrashing" in str(found.advice.baseline.refused)


def test_a_limit_far_above_all_goals_explains_none() -> None:
    assert limited_in(of_two_levels(memory_limit="900MiB")) == limited_in(of_two_levels())


def test_a_low_gogc_that_is_known_sets_goals_below_the_limit_too() -> None:
    known = of_two_levels(memory_limit="90MiB", gogc=15)
    assert limited_in(known) == limited_in(of_two_levels())
