"""Where predictions start from, and why there are none."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.advise.candidates import without_ballast
from gctrace_analyzer.advise.expectation import expectation
from gctrace_analyzer.advise.observed import baseline_of, longest_calm_part, present_setting
from gctrace_analyzer.advise.prediction.model import Setting
from gctrace_analyzer.advise.predictor import Baseline, lasts
from gctrace_analyzer.advise.whatif import lasts_text, trade_off
from gctrace_analyzer.analysis.settings.explained import stated_in
from gctrace_analyzer.analysis.settings.known import Known, Settings
from gctrace_analyzer.analysis.settings.regimes import regimes
from gctrace_analyzer.testing import read_text
from tests.conftest import CORPUS, SAMPLES
from tests.helpers import loads
from tests.helpers.corpus import live
from tests.helpers.facts import log_of
from tests.helpers.lines import LINES

if TYPE_CHECKING:
    from pathlib import Path


def test_a_log_without_cycles_has_no_baseline() -> None:
    advice = read_text(LINES["gc18"][:40]).advice
    assert advice.baseline.refused == "no GC cycles"
    assert not advice.is_available
    assert advice.baseline.non_heap_mib == 0
    assert advice.baseline.least_limit_mib is None
    assert isinstance(advice.baseline, Baseline)
    assert lasts(advice.baseline, Setting(100.0)) == {}
    assert trade_off(advice.baseline, Setting(100.0)).is_empty()
    assert without_ballast(advice.baseline, Setting(100.0, None, 64.0)) == ""


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"count": 4}, "only 2 steady cycles after the first 0.5 s; at least 5 are needed"),
        ({"count": 300, "every": 0.002, "mark": 1}, "s are too few: 0.4 s are needed"),
        ({"count": 449, "every": 0.002, "mark": 1}, " 0.398 s after the first 0.5 s are"),
        (
            {"start": 100, "end": 100, "live": 100, "goal": 200},
            "do not show how much the program allocates",
        ),
    ],
)
def test_a_log_that_shows_no_load_is_refused_with_the_reason(
    values: dict[str, Any], reason: str
) -> None:
    text = log_of(**({"count": 100} | values))
    assert reason in str(read_text(text).advice.baseline.refused)


def test_more_gc_than_a_cpu_limit_allows_is_neither_shown_nor_predicted(tmp_path: Path) -> None:
    """The limit is one to come: the log was recorded with more CPUs."""
    path = tmp_path / "run.log"
    path.write_text(log_of(100, every=0.1, mark=50))
    free, limited = (gca.read(path, cpu_limit=cpus) for cpus in (None, 0.01))
    assert free.advice.baseline.refused is None
    assert "GC took more CPU time than 0.01 CPUs have" in str(limited.advice.baseline.refused)
    rows = limited.whatif(["100", "200"]).frame
    for name in ("gc_cpu_share", "gc_cpu_with_idle_share", "gc_cpu_cores"):
        assert rows[name].null_count() == len(rows)
    assert rows["heap_peak_mib"].null_count() == 0


def test_gogc_off_needs_a_memory_limit(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text(log_of(100))
    baseline = gca.read(path, gogc="off").advice.baseline
    assert "GOGC is off, and an unknown memory limit sets the heap goal" in str(
        baseline.refused
    )
    found, reason = expectation(baseline, Setting(200.0))
    assert found == {}
    assert reason == baseline.refused


def test_equal_goals_under_an_unknown_limit_do_not_prove_that_gogc_is_off() -> None:
    """GOGC=400 with a limit has the same goals."""
    times, live = (0.13, 0.16, 0.65, 0.69, 0.71, 2.28), (3, 6, 4, 5, 4, 4)
    text = "".join(
        f"gc {n + 20} @{5 + at:.2f}s 15%: 0.02+5+0.02 ms clock, 0.04+1/2/0+0.04 ms cpu, "
        f"10->13->{live[n]} MB, 13 MB goal, 0 MB stacks, 0 MB globals, 2 P\n"
        for n, at in enumerate(times)
    )
    refused = str(read_text(text).advice.baseline.refused)
    assert refused.startswith("an unknown memory limit may set the heap goal; specify")


def test_memory_outside_the_heap_is_taken_from_memstats(tmp_path: Path) -> None:
    path, dump = tmp_path / "run.log", tmp_path / "dump.csv"
    path.write_text(log_of(100))
    mib = 1 << 20
    dump.write_text(f"Sys,HeapIdle,HeapAlloc\n{300 * mib},{60 * mib},{180 * mib}\n")
    baseline = gca.read(path, dump).advice.baseline
    assert baseline.non_heap_mib == 60
    row = gca.read(path, dump).whatif(gogc=200).row(0, named=True)
    assert row["memory_peak_mib"] == pytest.approx(row["heap_peak_mib"] + 60, rel=0.2)


def test_an_unusual_gogc_may_be_set_by_something_else() -> None:
    text = log_of(100, goal=lambda n: 5 if n == 1 else 233, start=209, end=216, live=100)
    warnings = " ".join(read_text(text).advice.baseline.warnings)
    assert "like GOGC=126–137 or like a memory limit of 243 to 2" in warnings


def test_only_the_cycles_since_a_change_of_gomaxprocs_count() -> None:
    baseline = read_text(log_of(100, procs=lambda n: 2 if n < 50 else 8)).advice.baseline
    assert baseline.refused is None
    assert baseline.load is not None
    assert (baseline.load.procs, baseline.load.cycles) == (8, 50)
    assert "the settings were changed while the program ran" in baseline.warnings[0]


def test_a_live_heap_that_varies_makes_predictions_rough() -> None:
    text = log_of(
        100,
        live=lambda n: 60 if n % 2 else 140,
        start=lambda n: 250 if n % 2 else 100,
        end=lambda n: 255 if n % 2 else 150,
        goal=lambda n: 280 if n % 2 else 120,
    )
    baseline = read_text(text).advice.baseline
    assert any("rough" in each or "varies" in each for each in baseline.warnings)


@pytest.mark.parametrize("name", ["spike-go1.26", "steady-gogc200-go1.26"])
def test_settings_that_are_listed_lie_on_the_trade_off(name: str) -> None:
    advice = gca.read(SAMPLES / f"{name}.log").report().advice
    figures = ("gogc", "heap_peak_mib", "gc_cpu_with_idle_share")
    listed = advice.recommendations.filter(ballast_mib=0).select(figures).rows()
    curve = {row[0]: row for row in advice.trade_off.select(figures).rows()}
    assert len(listed) > 1
    for row in listed:
        assert curve[row[0]] == pytest.approx(row, rel=0.01)


def test_how_long_a_setting_lasts_has_an_interval_only_if_its_ends_differ() -> None:
    row = {"lasts_h_low": 13.7 / 3600, "lasts_h": 14 / 3600, "lasts_h_high": 14.2 / 3600}
    assert lasts_text(row) == "14 s"
    assert lasts_text(row | {"lasts_h_high": 20 / 3600}) == "14 s (14 s to 20 s)"


def test_the_trade_off_covers_many_values_of_gogc() -> None:
    run = gca.read(CORPUS / "advice" / "svc-big" / "gogc100" / "run.log", gogc=100)
    assert run.advice.is_available
    curve = trade_off(run.advice.baseline, run.advice.baseline.now)
    assert len(curve) > 5
    assert curve.sort("gogc")["heap_peak_mib"].is_sorted()


STEADY = {"start": 340, "end": 352, "live": 200, "goal": 400, "mark": 40, "background": 18}


def steady_baseline(count: int = 41, **values: Any) -> Baseline:
    lines = [
        loads.LINE.format(n=n, s=n / 2, **{**loads.STEADY, **STEADY, **values})
        for n in range(1, count + 1)
    ]
    return baseline_of(read_text("\n".join(lines) + "\n").analysis)


@pytest.mark.parametrize(
    ("more", "model"), [(0.30, "fixed-rate"), (0.15, "between"), (0.05, "cpu-bound")]
)
def test_the_load_model_says_whether_the_cpu_limits_the_program(
    more: float, model: str
) -> None:
    baseline = steady_baseline()
    load = baseline.load
    assert load is not None
    # 19 ms of marking on two CPUs in 40 ms leave 76 % of them.
    left = 1 - load.work_ms / load.mark_ms / load.cpus
    # While it marks, it allocates at this share of its rate, and a little more.
    found = replace(baseline, load=replace(load, alloc_in=(left + more) * load.alloc_off))
    assert found.load_model == model


def test_without_a_load_a_program_counts_as_one_of_fixed_rate() -> None:
    assert read_text(LINES["gc18"][:40]).advice.baseline.load_model == "fixed-rate"


@pytest.mark.parametrize(
    ("version", "has_limit"),
    [(None, True), ("1.18.10", False), ("1.19", True), ("1.19.3", True), ("1.26", True)],
)
def test_memory_limits_exist_from_go_1_19_on(version: str | None, has_limit: bool) -> None:
    settings = {} if version is None else {"go_version": Known(version, "test")}
    baseline = replace(steady_baseline(), settings=Settings(**settings))
    assert baseline.has_limit == has_limit
    assert baseline.load is not None
    assert not replace(baseline, load=replace(baseline.load, new_pacer=False)).has_limit


def present(text: str, **settings: Any) -> Setting:
    known = Settings(**{name: Known(value, "test") for name, value in settings.items()})
    ((regime,),) = regimes(read_text(text).cycles, stated_in(known))[0].values()
    return present_setting(regime, known)


def test_the_present_setting_is_given_or_inferred_from_the_goals() -> None:
    swinging = log_of(60)
    assert present(swinging) == Setting(100.0)
    assert present(log_of(60, goal=lambda n: 3 * live(n - 1))) == Setting(200.0)
    # What the goals contradict was stated of the start of the process.
    assert present(swinging, gogc=80.0) == Setting(100.0)
    assert present(swinging, gogc=100.0, memory_limit_mib=450.0, ballast_mib=20.0) == Setting(
        100.0, 450.0, 20.0
    )
    # Where a limit sets the goals, they do not show GOGC: most programs keep the default.
    limited = log_of(60, goal=140)
    assert present(limited, memory_limit_mib=165.0) == Setting(100.0, 165.0)
    assert present(limited, memory_limit_mib=165.0, gogc="off") == Setting(None, 165.0)


def test_a_replay_that_does_not_fit_its_own_log_is_a_warning() -> None:
    baseline = steady_baseline(start=384, end=396)
    assert not any("the model predicts" in each for each in baseline.warnings)
    # The goals of GOGC=100, but each cycle starts far earlier than its pacer would.
    early = steady_baseline(start=300, end=312)
    (warning,) = [each for each in early.warnings if "the model predicts" in each]
    assert early.model is not None
    assert early.load is not None
    times = early.load.gap_mib / early.model.own.gap
    assert f"{times:.2g} times the cycles of the log" in warning
    assert times < 1
    refused = steady_baseline(start=240, end=252).refused
    assert "so it does not describe this program" in (refused or "")


def test_the_memory_of_the_process_is_the_heap_and_what_is_outside() -> None:
    known = Settings(off_heap_mib=Known(30.0, "test"), container_limit_mib=Known(512.0, "test"))
    baseline = replace(steady_baseline(), settings=known)
    assert baseline.memory_mib(400.0, 25.0, 0.0) == 455
    assert baseline.memory_mib(400.0, 25.0, 100.0) == 355, "a ballast is address space"
    least = baseline.least_limit_mib
    assert least is not None
    assert least == pytest.approx(1.25 * 200.5 + baseline.non_heap_mib, abs=1)
    assert baseline.near_live_heap(Setting(100.0, least)) is None
    assert baseline.near_live_heap(Setting(100.0)) is None
    assert "(200 MiB): the program may thrash" in str(
        baseline.near_live_heap(Setting(100.0, least - 1))
    )


def calm_part(
    starts: list[float], *thrashing: tuple[float, float], tight_until_s: float = 0.0
) -> tuple[list[float], bool]:
    gogc = [50.0 if start >= tight_until_s else 5.0 for start in starts]
    cycles = pl.DataFrame({"process": 0, "start_s": starts, "effective_gogc": gogc})
    episodes = pl.DataFrame(
        [(0, "limit-thrash", begin, end) for begin, end in thrashing],
        schema=["process", "kind", "start_s", "end_s"],
        orient="row",
    ).cast({"kind": pl.String, "process": pl.Int64})
    found, thrashed = longest_calm_part(cycles, episodes)
    assert found.columns == cycles.columns
    return found["start_s"].to_list(), thrashed


def test_predictions_start_from_the_longest_part_without_thrashing() -> None:
    starts = [float(n) for n in range(60)]
    assert calm_part(starts) == (starts, False)
    assert calm_part(starts, (20.0, 25.0)) == (starts[26:], True)
    # After thrashing, memory above the limit is returned, until the heap has room again.
    assert calm_part(starts, (20.0, 25.0), tight_until_s=40) == (starts[40:], True)
    assert calm_part(starts, (20.0, 25.0), tight_until_s=55) == (starts[26:], True)
    assert calm_part(starts, (40.0, 45.0)) == (starts[:40], True)
    assert calm_part(starts, (20.0, 25.0), (30.0, 32.0)) == (starts[33:], True)
    # Twelve cycles are needed: with eleven, all are taken, and it is still known.
    assert calm_part(starts[:23], (11.0, 30.0)) == (starts[:23], True)
    assert calm_part(starts[:23], (12.0, 30.0)) == (starts[:12], True)
    # The longest in time, not in cycles.
    slow = [*[n / 10 for n in range(100)], *[20.0 + n for n in range(20)]]
    assert calm_part(slow, (9.9, 19.0)) == (slow[100:], True)


def test_steady_cycles_without_possible_durations_are_not_called_too_few() -> None:
    damaged = log_of(50, mark=99_999)
    refused = read_text(damaged).advice.baseline.refused
    assert refused == "the log has values that no program can have"


SMALL_HEAPS = (
    "caddy/gogc50", "caddy-proxy/gogc50", "caddy-proxy/gogc200", "caddy-proxy/gogc400",
    "etcd/gogc50", "etcd/gogc400", "etcd-3.6/gogc50", "nsqd/gogc50", "nsqd/gogc200",
    "pushgateway/gogc400",
)  # fmt: skip


@pytest.mark.parametrize("name", SMALL_HEAPS)
def test_goals_of_a_small_heap_show_the_gogc_that_set_them(name: str) -> None:
    """Sizes in whole MiB hide up to a fifth of heaps of 4 to 20 MiB."""
    run = gca.read(CORPUS / "services" / name / "run.log.gz")
    assert run.advice.baseline.now.gogc == float(name.rpartition("gogc")[2])


def test_goals_raised_by_one_large_allocation_show_no_gogc() -> None:
    run = gca.read(CORPUS / "wild" / "go42642-multims-sweepterm.log")
    assert run.advice.baseline.now.gogc == 100, "two of four goals were raised to twice that"


@pytest.mark.parametrize(("procs", "is_old"), [((5, 2, 8), True), ((5, 5, 5), False)])
def test_pauses_charged_to_varying_processors_prove_an_old_go(
    procs: tuple[int, ...], *, is_old: bool
) -> None:
    line = (
        "gc {n} @{at:.3f}s 5%: 0.10+9.0+0.20 ms clock, {first:.2f}+20/30/0+{second:.2f} ms cpu, "
        "124->128->65 MB, 130 MB goal, 12 P\n"
    )
    text = "".join(
        line.format(n=n, at=n / 10, first=0.1 * charged, second=0.2 * charged)
        for n, charged in enumerate(procs * 10, 1)
    )
    refused = str(read_text(text).advice.baseline.refused)
    assert ("Go 1.9 or earlier printed this log (pauses count" in refused) is is_old
