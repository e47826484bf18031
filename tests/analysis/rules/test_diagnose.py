"""Findings of several processes, their order and their causes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.rules import log
from gctrace_analyzer.analysis.rules.diagnose import (
    _merge_processes,
    _with_causes,
    _without_short_starts,
    _worst_first,
    proven,
)
from gctrace_analyzer.analysis.rules.finding import (
    Finding,
    OverallFacts,
    cycles_text,
    example_lines,
    frame,
    maximum,
    minimum,
    percent,
    total,
)
from gctrace_analyzer.analysis.rules.headline_levels import levels
from gctrace_analyzer.analysis.summary import MOST_DIAGNOSED, MOST_SHORT
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.analysis.trend import LiveGrowth
from gctrace_analyzer.ingest.rows import median
from gctrace_analyzer.testing import read_text
from tests.conftest import SAMPLES
from tests.helpers.facts import facts_of, log_of
from tests.helpers.logs import read_lines

if TYPE_CHECKING:
    from pathlib import Path

    from gctrace_analyzer.analysis.rules.finding import Severity

BUSY = log_of(60, every=0.02, background=12)


def test_a_finding_of_several_processes_is_listed_once() -> None:
    findings = read_text(BUSY * 3).findings().filter(id="GC001")
    assert len(findings) == 1
    assert "Also found in 2 other processes" in findings["evidence"][0]
    assert "in process 1" in read_text(BUSY * 2).findings()["evidence"][0]


@pytest.mark.parametrize(("cycles", "most"), [(3, MOST_SHORT), (20, MOST_DIAGNOSED)])
def test_of_a_crash_loop_only_the_longest_processes_are_diagnosed(
    cycles: int, most: int
) -> None:
    loop = log_of(cycles) * (MOST_DIAGNOSED + 5)
    run = read_text(loop + BUSY)
    assert len(run.processes) == MOST_DIAGNOSED + 6
    (caveat,) = [each for each in run.summary().warnings if "findings" in each]
    assert (
        f"{len(run.processes)} processes; findings and episodes are of the {most} with"
        in caveat
    )
    finding = run.findings().filter(id="GC001")
    assert finding["process"].to_list() == [MOST_DIAGNOSED + 5]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (log_of(19) * 10, None),  # as many short ones as are looked at
        (log_of(19) * 11, 10),
        (log_of(20) * 11, None),
        (log_of(20) * 12 + log_of(19) * 3, 12),
    ],
)
def test_few_of_the_short_processes_are_diagnosed(text: str, found: int | None) -> None:
    run = read_text(text)
    caveat = [each for each in run.summary().warnings if "findings" in each]
    assert len(caveat) == (found is not None)
    assert all(f"of the {found} with the most cycles" in each for each in caveat)


def test_a_short_process_next_to_a_long_one_is_not_reported() -> None:
    long = log_of(600)
    assert "GC042" in set(read_text(log_of(5)).findings()["id"])
    assert "GC042" not in set(read_text(log_of(5) + long).findings()["id"])


def test_the_worst_findings_come_first_and_effects_after_causes() -> None:
    for path in sorted(SAMPLES.glob("*.log")):
        findings = gca.read(path).findings()
        cause_of = dict(findings.select("id", "because_of").iter_rows())
        worst: dict[str, int] = {}
        for name, severity in findings.select("id", "severity").iter_rows():
            each, rank = name, ("bad", "warn", "info", "ok").index(severity)
            while each is not None:
                worst[each] = min(rank, worst.get(each, rank))
                each = cause_of[each]
        ranks = [worst[each] for each in findings["id"]]
        assert ranks == sorted(ranks)
        for rank in set(ranks):
            explained = [cause_of[each] is not None for each in worst if worst[each] == rank]
            assert explained == sorted(explained)
        assert set(findings["because_of"].drop_nulls()) <= set(findings["id"])


def test_a_process_without_cycles_has_no_findings() -> None:
    assert gca.read(SAMPLES / "describe-pod.txt").findings().filter(id="GC044").is_empty()


def finding(rule_id: str, severity: Severity, *examples: str) -> Finding:
    return Finding(
        severity, "It happened.", id=rule_id, name="a-name", source="test", examples=examples
    )


def test_the_lines_to_look_at_are_part_of_the_evidence_of_a_row() -> None:
    table = frame([finding("GC001", "bad", "a.log:1", "a.log:2"), finding("GC002", "info")])
    assert table["evidence"].to_list() == ["It happened (a.log:1, a.log:2).", "It happened."]
    assert isinstance(table, pl.DataFrame)


def test_levels_agree_with_the_findings() -> None:
    summary = read_text(BUSY).summary()
    # 32 % of the CPU would be a finding in a longer log, and so may be what it consists of.
    assert levels(summary, [summary], [], DEFAULT) == dict.fromkeys(
        ("pauses", "heap_goal"), "ok"
    )
    roomy = replace(DEFAULT, gc_cpu_warn=0.9)
    assert levels(summary, [summary], [], roomy) == dict.fromkeys(
        ("gc_cpu", "assist", "pauses", "frequency", "heap_goal"), "ok"
    )
    findings = [finding("GC001", "bad"), finding("GC005", "warn")]
    both = levels(summary, [summary], findings, DEFAULT)
    assert (both["gc_cpu"], both["assist"], both["pauses"]) == ("bad", "warn", "ok")


def test_unknown_figures_have_no_level() -> None:
    summary = gca.read(SAMPLES / "go1.4.log").summary()
    assert set(levels(summary, [summary], [], DEFAULT)) == {"pauses"}
    growing = log_of(60, every=5, live=lambda n: 100 + 2 * n, goal=lambda n: 200 + 4 * n)
    assert "live_heap" in levels(read_text(growing).summary(), [], [], DEFAULT)


def test_episodes_are_of_the_diagnosed_processes() -> None:
    thrashing = log_of(16, every=0.05, live=100, goal=100, start=100, end=101)
    some = read_text(thrashing * MOST_SHORT).episodes()
    many = read_text(thrashing * (2 * MOST_SHORT)).episodes()
    assert some["process"].n_unique() == many["process"].n_unique() == MOST_SHORT


def test_the_figures_of_an_empty_column_are_zero() -> None:
    empty = pl.Series([], dtype=pl.Float64)
    values = pl.Series([3.0, None, 1.0, 1.5])
    for function, expected in ((total, 5.5), (minimum, 1.0), (maximum, 3.0), (median, 1.5)):
        assert function(empty) == 0
        assert function(values) == expected


def test_cycles_are_counted_in_words() -> None:
    assert [cycles_text(n) for n in (0, 1, 2, 1000)] == [
        "0 cycles", "1 cycle", "2 cycles", "1,000 cycles",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.1, "10 %"), (0.0994, "9.9 %"), (0.0, "0 %"), (1.0, "100 %"), (0.00012, "0.012 %")],
)
def test_small_shares_have_two_digits(share: float, text: str) -> None:
    assert percent(share) == text


def test_the_lines_to_look_at_are_the_three_largest_that_are_known() -> None:
    cycles = pl.DataFrame(
        {
            "source": ["a/log"] * 6,
            "line_no": [1, 2, None, 4, 5, 6],
            "size": [3.0, None, 9.0, 7.0, 5.0, 1.0],
        }
    )
    assert example_lines(cycles, "size") == ("log:4", "log:5", "log:1")
    assert example_lines(cycles) == ("log:1", "log:2", "log:4")
    assert example_lines(cycles.head(3), "size") == ("log:1",)
    assert example_lines(cycles.with_columns(size=pl.lit(None, pl.Float64)), "size") == ()


def test_the_start_up_is_left_out_unless_hardly_anything_is_left() -> None:
    facts = facts_of(log_of(8, every=0.1))
    # 0.5 s are start-up: the fifth cycle is the first one after it.
    assert facts.warmed_up["gc_num"].to_list() == [5, 6, 7, 8]
    assert len(replace(facts, cycles=facts.cycles.head(7)).warmed_up) == 3
    assert len(replace(facts, cycles=facts.cycles.head(6)).warmed_up) == 6
    shuffled = replace(facts, cycles=facts.cycles.reverse())
    assert shuffled.warmed_up["gc_num"].to_list() == [8, 7, 6, 5]
    untimed = facts.cycles.with_columns(start_s=pl.lit(None, pl.Float64))
    assert len(replace(facts, cycles=untimed).warmed_up) == 8


def test_releases_that_a_log_may_be_of() -> None:
    facts = replace(facts_of(log_of(5)), go_versions=((1, 9), (1, 17)))
    assert [facts.may_be_before(1, minor) for minor in (9, 10)] == [False, True]
    assert [facts.may_be_from(1, minor) for minor in (17, 18)] == [True, False]
    unknown = replace(facts, go_versions=(None, None))
    assert unknown.may_be_before(1, 1)
    assert unknown.may_be_from(9, 9)


@pytest.mark.parametrize(
    ("live", "kinds", "gogc", "grew"),
    [
        ([100.0] * 10 + [150.0] * 5, ["limit-thrash"], 2.0, True),
        ([100.0] * 10 + [149.0] * 5, ["limit-thrash"], 2.0, False),
        ([100.0] * 10 + [150.0] * 5, ["gc-burst"], 2.0, False),
        ([100.0] * 4 + [150.0] * 5, ["limit-thrash"], 2.0, False),
        ([100.0] * 5 + [150.0] * 5, ["limit-thrash"], 2.0, True),
        # The first live heap did not fit either.
        ([100.0] * 10 + [150.0] * 5, ["limit-thrash"], 1.0, False),
    ],
)
def test_a_live_heap_that_grows_until_it_thrashes(
    live: list[float], kinds: list[str], gogc: float, grew: bool
) -> None:
    count = len(live)
    starts = [float(n + 1) for n in range(count)]
    cycles = pl.DataFrame(
        {
            "start_s": starts, "end_s": [each + 0.5 for each in starts], "heap_live_mib": live,
            "effective_gogc": [gogc] * count, "goal_set_by": ["memory-limit"] * count,
            "interval_s": [1.0] * count, "forced": [False] * count,
        }
    )  # fmt: skip
    growth = LiveGrowth(100, 50, 150, 0.0, 300.0, 100, 160, 5.0)
    facts = replace(
        facts_of(log_of(5)),
        cycles=cycles,
        episodes=pl.DataFrame({"kind": kinds}),
        growth=growth,
    )
    assert facts.grew_into_limit is grew
    assert replace(facts, growth=None).grew_into_limit is False


def summaries(**figures: Any) -> OverallFacts:
    one = read_text(BUSY).summary()
    several = {n: replace(one, **{k: v[n] for k, v in figures.items()}) for n in range(2)}
    return OverallFacts(several, [], DEFAULT)


@pytest.mark.parametrize(
    ("cpu", "p99", "evidence"),
    [
        ((0.02, 0.051), (2.951, 1.0), "GC CPU at most 5.1 % (warns at 10 %); pauses 3.0 ms p99 (warns at 5.0 ms)"),
        ((0.02, None), (None, 2.949), "GC CPU 2.0 % (warns at 10 %); pauses 2.9 ms p99 (warns at 5.0 ms)"),
        ((None, None), (1.0, 1.0), "pauses 1.0 ms p99 (warns at 5.0 ms)"),
        ((0.0, None), (None, None), "GC CPU 0 % (warns at 10 %)"),
        ((None, None), (None, None), "nothing stands out"),
    ],
)  # fmt: skip
def test_a_healthy_program_has_figures_with_their_limits(
    cpu: tuple[float | None, ...], p99: tuple[float | None, ...], evidence: str
) -> None:
    facts = summaries(gc_cpu_share=cpu, gc_cpu_share_low=(None, None), stw_p99_ms=p99)
    (found,) = log.healthy.check(facts)
    assert (found.severity, found.evidence) == ("ok", evidence)
    for severity, healthy in (("info", 1), ("warn", 0), ("bad", 0)):
        other = replace(facts, findings=[finding("GC001", severity)])  # type: ignore[arg-type]
        assert len(list(log.healthy.check(other))) == healthy


def test_of_a_log_without_gc_cpu_nobody_says_that_it_is_healthy() -> None:
    summary = replace(read_text(BUSY).summary(), gc_cpu_share=0.01, stw_p99_ms=1.0)
    every = [finding(each.id, "info") for each in (log.healthy, log.short_log, log.old_go)]

    def left(*, short: bool = True, **figures: Any) -> list[str]:
        found = proven(every, replace(summary, **figures), pauses_are_short=short)
        return [each.id for each in found]

    assert left() == ["GC044", "GC042", "GC043"]
    assert left(gc_cpu_share=None) == left(short=False) == ["GC042", "GC043"]
    assert left(stw_p99_ms=None) == left()
    assert left(gc_per_s=None) == ["GC044", "GC043"]


def test_findings_are_in_the_order_of_what_they_cost() -> None:
    found = [
        replace(finding("GC005", "warn")),
        replace(finding("GC010", "warn"), figures={"max_ms": 7.0}),
        replace(finding("GC009", "warn"), figures={"max_ms": 9.0}),
        replace(finding("GC022", "warn"), explained_by=("GC021",)),
        finding("GC021", "warn"),
        finding("GC011", "info"),
        replace(finding("GC001", "bad"), explained_by=("GC011", "GC005")),
    ]
    ordered = _worst_first(_with_causes(found))
    assert [each.id for each in ordered] == [
        "GC005", "GC001", "GC021", "GC009", "GC010", "GC022", "GC011",
    ]  # fmt: skip
    assert [each.because_of for each in ordered] == [None, "GC005", *[None] * 3, "GC021", None]


def test_a_single_long_pause_does_not_come_before_what_happens_all_the_time() -> None:
    def first(number: int) -> str:
        pause = replace(finding("GC009", "bad"), figures={"max_ms": 30.0, "long": number})
        return _worst_first([pause, finding("GC015", "warn")])[0].id

    assert [first(number) for number in (1, 2, 3)] == ["GC015", "GC015", "GC009"]


def test_a_tight_limit_leads_although_one_pause_was_long(tmp_path: Path) -> None:
    gogc30 = {"start": 125, "end": 128, "goal": 130, "live": lambda n: 95 + 5 * (n % 3)}
    text = log_of(60, every=0.2, **gogc30).splitlines()
    text[40] = text[40].replace(": 0.02+5", ": 30+5")
    found = read_lines(tmp_path, *text, memory_limit="140MiB")
    by_id = {each.id: each for each in found.analysis.findings}
    assert by_id["GC009"].severity == "bad"
    assert by_id["GC015"].severity == "warn"
    verdict = found.report().verdict
    assert verdict is not None
    assert verdict.finding == "GC015"


def test_a_cause_is_as_bad_as_its_worst_effect() -> None:
    """Growth into a limit is a warning, the thrashing that follows is bad; pauses come after."""
    found = [
        replace(finding("GC016", "bad"), explained_by=("GC021",)),
        replace(finding("GC001", "warn"), explained_by=("GC016",)),
        replace(finding("GC009", "bad"), figures={"max_ms": 53.0}),
        finding("GC021", "warn"),
    ]
    ordered = _worst_first(_with_causes(found))
    assert [each.id for each in ordered] == ["GC021", "GC016", "GC009", "GC001"]


def test_a_cause_explains_findings_of_its_own_process_only() -> None:
    """One program of a stream may thrash while another one has a low GOGC."""
    costly = replace(finding("GC001", "bad"), explained_by=("GC016", "GC039"))
    found = [
        replace(finding("GC016", "bad"), process=0),
        replace(costly, process=0),
        replace(costly, process=1),
    ]
    assert [each.because_of for each in _with_causes(found)] == [None, "GC016", None]
    # A cause of the whole log is one of each process.
    found.append(replace(finding("GC039", "bad"), process=None))
    assert [each.because_of for each in _with_causes(found)] == [None, "GC016", "GC039", None]


def test_of_several_processes_the_worst_finding_is_kept() -> None:
    one = finding("GC001", "warn")
    several = [replace(one, process=0), replace(one, process=1, severity="bad"),
               replace(one, process=1), replace(one, process=2)]  # fmt: skip
    (merged,) = _merge_processes(several, {})
    assert (merged.process, merged.severity) == (1, "bad")
    assert merged.evidence.endswith(" Also found in 2 other processes.")
    (two,) = _merge_processes(several[:2], {})
    assert two.evidence.endswith(" Also found in process 0.")
    # Of equally bad pauses, the longest is the one that reports name.
    pauses = [replace(finding("GC009", "bad"), process=at, figures={"max_ms": ms})
              for at, ms in enumerate([68.0, 329.0, 11.0])]  # fmt: skip
    (longest,) = _merge_processes(pauses, {})
    assert longest.process == 1
    # Of other findings, the one that most cycles show.
    (largest,) = _merge_processes([several[0], several[3]], {0: 9, 2: 40})
    assert largest.process == 2
    # Several of one process stay.
    assert len(_merge_processes(several[1:3], {})) == 2


def test_a_short_process_is_reported_if_all_are_short() -> None:
    short, other = finding("GC042", "info"), finding("GC001", "warn")
    assert _without_short_starts([short, other, short], processes=2) == [short, other, short]
    assert _without_short_starts([short, other], processes=2) == [other]
