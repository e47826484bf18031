"""The first lines of a report: the consequence, its cause, and what to do."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.advise.phrases import costs, with_effects
from gctrace_analyzer.advise.verdict import _began_late, verdict
from gctrace_analyzer.present.sections.headline import state
from gctrace_analyzer.present.sections.report import document
from gctrace_analyzer.present.text import plain
from gctrace_analyzer.testing import read_text
from tests.conftest import CORPUS, SAMPLES
from tests.helpers.corpus import LINE
from tests.helpers.facts import log_of

if TYPE_CHECKING:
    from gctrace_analyzer.advise.verdict import Verdict

HEALTHY = "GC takes 0.55 % of the CPU (0.011 of 2 CPUs) and the longest pause took 0.02 ms"


def of(text: str) -> Verdict:
    run = read_text(text)
    found = verdict(run.analysis, run.advice)
    assert found is not None
    return found


def with_pause(ms: float) -> str:
    lines = log_of(600).splitlines(keepends=True)
    clock = lines[300].replace("+5+0.02 ms clock", f"+5+{ms} ms clock")
    lines[300] = clock.replace("+0.04 ms cpu", f"+{2 * ms} ms cpu")
    return "".join(lines)


def test_a_healthy_log_needs_nothing() -> None:
    found = of(log_of(600))
    assert found.level == "ok"
    assert found.sentence == f"GC is not a problem here: {HEALTHY}."
    assert found.action == "Leave the settings as they are."
    assert (found.finding, found.process, found.start_s) == (None, None, None)


@pytest.mark.parametrize(("ms", "long"), [(15, True), (9.0, False)])
def test_single_long_pauses_are_excepted(ms: float, long: bool) -> None:
    found = of(with_pause(ms))
    assert found.level == "ok"
    assert found.sentence.startswith(
        "GC is not a problem here, except for single long pauses: GC takes"
        if long
        else "GC is not a problem here: GC takes"
    )


def test_long_pauses_do_not_hide_a_longer_one_of_the_start_up() -> None:
    lines = log_of(600).splitlines(keepends=True)
    lines[0] = lines[0].replace(": 0.02+5+", ": 120+5+")
    for number in range(300, 330):
        lines[number] = lines[number].replace("+5+0.02 ms clock", "+5+15 ms clock")
    assert of("".join(lines)).sentence.startswith(
        "The longest pause took 120 ms. The pause after marking takes up to 15 ms. GC takes"
    )


def test_cycles_of_the_start_up_alone_are_no_reason_to_allocate_less() -> None:
    """Fewer than five cycles are later than the half second that predictions leave out as well."""
    early, late = (
        log_of(count, mark=60, background=50, every=every)
        for count, every in ((5, 0.09), (8, 0.18))
    )
    assert of(log_of(6, mark=60, background=50, every=0.18)).level == "info"
    assert of(early).sentence.startswith("The log is too short to judge: GC takes")
    assert of(late).sentence.startswith("GC takes")


def test_a_short_log_says_so() -> None:
    found = of(log_of(10))
    assert found.level == "info"
    # Of ten cycles no hundredth is known.
    longest = "GC takes 0.55 % of the CPU (0.011 of 2 CPUs) and the longest pause took 0.02 ms."
    cost = "In all, GC took 22 ms of CPU time."
    assert found.sentence == f"The log is short, but shows no problem: {longest} {cost}"
    # A program that ended has no longer log.
    longer = "Record a longer log (at least 10 s and 20 cycles) under the usual load"
    assert found.action == f"{longer}, unless this is the whole run."
    late = of("".join(log_of(20).splitlines(keepends=True)[12:]))
    assert late.action == f"{longer}."


@pytest.mark.parametrize(("cycles", "every"), [(1, 0.1), (3, 0.01), (7, 0.02)])
def test_a_log_of_less_than_a_start_up_states_no_share(cycles: int, every: float) -> None:
    report = read_text(log_of(cycles, every=every)).report()
    assert report.verdict is not None
    assert report.verdict.sentence.startswith("The log is too short to judge: GC took ")
    assert "%" not in report.verdict.sentence
    gc_cpu, *others = state(report)
    assert gc_cpu.value.endswith(" ms")
    assert gc_cpu.note.startswith("of CPU time in ")
    levels = {each.label: each.level for each in (gc_cpu, *others)}
    assert not {"GC CPU", "Mark assist", "Frequency"} & {
        each for each in levels if levels[each]
    }


def test_large_blocks_allow_no_prediction_and_ask_for_no_longer_log() -> None:
    log = log_of(15, every=0.1, live=200, start=400, end=400, goal=400, background=0.2)
    run = read_text(log)
    assert str(run.advice.baseline.refused).startswith(
        "after the start-up, cycles start at 400 MiB, at the goal or just before it: single "
    )
    found = of(log)
    assert found.action == "Leave the settings as they are."
    assert read_text(log.replace("400->400", "380->400")).advice.baseline.refused is None


def test_a_limit_known_as_an_interval_gives_one_limit_and_roughly_the_rest() -> None:
    found = of(log_of(60, every=0.2, live=100, start=105, end=108, goal=110, mark=9))
    assert re.search(
        r"GOMEMLIMIT=\d+MiB, .*1.5 × the \d+ MiB that the live heap plus 25 % and other memory may need",
        found.action,
    )


def test_stacks_lead_only_if_gc_costs_something() -> None:
    log = log_of(600, goal=320, start=290, end=295)
    found = of(log.replace("0 MB stacks", "120 MB stacks"))
    assert found.level == "ok"
    assert found.sentence == (
        f"GC is not a problem here: {HEALTHY}. Stacks of 120 MiB, next to a live heap of 100 MiB, "
        "may be most of what GC scans, and raise the heap goal."
    )
    large = io.StringIO(log.replace("0 MB stacks", "120 MB stacks"))
    known = gca.read(large, go_version="1.22").report().verdict
    assert known is not None
    assert "are most of what GC scans" in known.sentence


def test_a_range_of_gc_cpu_reaches_what_the_runtime_may_have_counted() -> None:
    # The runtime prints 1 %, which is 1.0 to 2.0: of the pauses, only a part counts.
    line = (
        "gc {} @{:.3f}s 1%: 2.0+1.0+0.01 ms clock, 4.0+0/1.0/0+0.02 ms cpu, 2->2->0 MB, "
        "4 MB goal, 0 MB stacks, 0 MB globals, 2 P\n"
    )
    text = "".join(line.format(n, n / 10) for n in range(1, 60))
    low, high = read_text(text).analysis.summary.gc_cpu_range or (0, 0)
    assert low == pytest.approx(0.01, rel=0.05)
    assert high == pytest.approx(0.02, rel=0.05)
    assert "GC takes 1.0–2.0 % of the CPU (up to 0.04 of 2 CPUs)" in of(text).sentence


SMALL = "gc {} @{:.3f}s 6%: 0.05+5.0+0.01 ms clock, 0.1+4.0/0.8/0.2+0.02 ms cpu, 3->3->2 MB, 3 MB goal, 0 MB stacks, 0 MB globals, 2 P\n"
"""A live heap of 2 to 3 MiB and a goal of 3 to 4: GOGC is anything up to 100."""


def test_a_gogc_that_the_present_one_may_exceed_is_not_advised() -> None:
    run = read_text("".join(SMALL.format(n, n / 50) for n in range(1, 600)))
    assert "now     GOGC≤100" in str(plain(document(run.report())))
    others = run.recommend().filter(~pl.col("now"))["gogc"].drop_nulls()
    assert len(others)
    assert (others > 100).all()


def assisting(count: int, every: float, times: int, assist: float) -> list[str]:
    """Lines of a program with a live heap of 4 and 5 MiB in turn; its goal is so many times it."""

    def goal(n: int) -> int:
        return times * (4 + (n - 1) % 2) + 1

    sizes = {
        "live": lambda n: 4 + n % 2,
        "start": lambda n: goal(n) - 1,
        "end": goal,
        "goal": goal,
    }
    cost = {"mark": 2, "assist": assist, "background": 0.6 * assist}
    return log_of(count, every=every, **cost, **sizes).splitlines(keepends=True)


@pytest.mark.parametrize("assist", [1.2, 1.6])
def test_the_action_and_the_recommended_settings_are_one_answer(assist: float) -> None:
    report = read_text("".join(assisting(600, 0.015, 2, assist))).report()
    found, first = report.verdict, report.advice.recommendations.row(0, named=True)
    assert found is not None
    assert found.finding == "GC005"
    assert "GC CPU is" not in first["why"], "the finding is not about GC CPU"
    if first["now"]:
        assert "try" not in found.action
        assert first["why"].removeprefix("no change: ") in found.action
    else:
        assert f"GOGC={first['gogc']:g}," in found.action


def test_a_present_setting_under_which_gc_costs_little_needs_no_action() -> None:
    busy, calm = assisting(600, 0.015, 2, 2.2), assisting(900, 0.02, 5, 0.01)
    found = of("".join(busy + calm[600:]))
    assert found.finding == "GC005"
    assert "The settings changed: since" in found.sentence
    assert found.action == "Leave the settings as they are now."


def test_in_old_go_what_else_delays_a_stop_is_named() -> None:
    text = log_of(40, live=lambda n: 90).replace("0 MB stacks, 0 MB globals, ", "")
    late = of(text.replace(": 0.02+5+", ": 9.0+5+", 3))
    assert "clearing a large block (before 1.17) also delays the stop." in late.action


def test_a_goal_of_two_settings_is_not_said_to_be_set_by_the_last_one() -> None:
    sizes: dict[str, Any] = {"live": 4, "start": 20, "end": 21, "goal": 21}
    later = log_of(700, every=0.02, mark=2, **sizes).splitlines(keepends=True)[600:]
    first = assisting(600, 0.015, 2, 2.2)
    alone, both = (
        str(plain(document(read_text("".join(x)).report()))) for x in (later, first + later)
    )
    assert "set by GOGC=" in alone
    assert "set by GOGC=" not in both


def test_the_cost_of_the_first_cycle_may_be_of_the_time_before_the_log() -> None:
    late = "".join(log_of(10).splitlines(keepends=True)[5:])
    summary = read_text(late).analysis.summary
    low, high = summary.gc_cpu_share_low, summary.gc_cpu_share_high
    assert summary.gc_cpu_range == (low, high)
    assert low == pytest.approx(0.8 * (high or 0), rel=0.05)
    assert "GC takes 0.54–0.69 % of the CPU (up to 0.014 of 2 CPUs)" in of(late).sentence
    assert read_text(log_of(600)).analysis.summary.gc_cpu_range is None
    assert verdict(read_text("gc 1 @0.0").analysis, read_text("gc 1 @0.0").advice) is None


def test_few_cycles_that_cost_little_are_enough_for_a_verdict() -> None:
    found = of(log_of(10, every=2.0))
    assert found.sentence.startswith(
        "The log is short, but shows no problem: GC takes 0.055 % of"
    )
    assert found.action == "Leave the settings as they are."


def test_a_log_of_a_few_seconds_does_not_show_the_load_whatever_gc_took() -> None:
    often, rarely = (of(log_of(count, every=6 / count)) for count in (30, 11))
    assert often.sentence.startswith("The log is short, but shows no problem: GC takes 0.5")
    assert rarely.sentence.startswith("The log is short, but shows no problem: GC takes 0.2")
    assert often.action == rarely.action
    assert often.action.startswith("Record a longer log (at least 10 s and 20 cycles) ")


def test_what_gc_took_before_the_log_leaves_a_short_log_unclear() -> None:
    late = log_of(9, every=0.5, background=9).replace("s 0%:", "s 15%:")
    late = late.replace("@", "@280").replace("gc ", "gc 1")
    assert "prints. The log is too short to judge: GC takes" in of(late).sentence


def test_two_of_many_cycles_do_not_show_what_gc_takes() -> None:
    lines = log_of(60, background=12).splitlines(keepends=True)
    summary = read_text("".join((lines[3], lines[50]))).summary()
    assert (summary.gc_cpu_share, summary.gc_cpu_cores, summary.alloc_mib_per_s) == (None,) * 3
    assert summary.stw_share is None
    assert (
        "GC has taken under 1 % of the CPU since the start"
        in of("".join((lines[3], lines[50]))).sentence
    )


def test_shares_are_of_the_time_whose_lines_are_there() -> None:
    lines = log_of(60).splitlines(keepends=True)
    rest = read_text("".join(lines[:8] + lines[58:]))
    whole = read_text("".join(lines)).summary().gc_cpu_share
    assert rest.summary().gc_cpu_share == pytest.approx(whole, rel=0.05)
    found = of("".join(lines[:8] + lines[58:]))
    assert found.sentence.startswith(
        "Only 10 of 60 cycles have a line; these show no problem: GC takes"
    )
    assert "the longest pause seen took" in found.sentence
    assert found.action == "Use the complete standard error of a single program."
    assert "GC044" not in rest.findings()["id"]
    few = of("".join(lines[:20] + lines[25:])).sentence
    assert few.startswith(
        "GC is not a problem in the 55 of 60 cycles that have a line: GC takes"
    )


def test_a_busy_collector_gets_a_setting_with_its_effect() -> None:
    found = of(log_of(300, every=0.02, background=12))
    assert (found.level, found.finding, found.process) == ("bad", "GC001", 0)
    assert found.sentence.startswith("GC takes 31.5–31.7 % of the CPU: the program allocates")
    assert found.action.startswith(
        "Try GOGC=200, if the container has room for it; test it first with `gctrace-analyze "
        "measure`. Predicted: GC CPU with idle 15 % instead of "
    )
    assert (found.changed, found.start_s) == ("", None), "it was so from the start"


def test_a_problem_that_began_late_has_its_time() -> None:
    run = gca.read(SAMPLES / "steady-go1.26.log")
    finding = read_text(log_of(300, every=0.02, background=12)).analysis.findings[0]
    ends = float(run.analysis.enriched["end_s"].max())  # type: ignore[arg-type]
    for start_s, late in (
        (None, False),
        (0.0, False),
        (0.09 * ends, False),
        (0.11 * ends, True),
    ):
        at = replace(finding, start_s=start_s, process=0)
        assert _began_late(at, run.analysis) == late
    at = replace(finding, start_s=0.5 * ends, process=0)
    assert not _began_late(replace(at, process=None), run.analysis)
    assert not _began_late(replace(at, id="GC021"), run.analysis), "growth has no beginning"


def test_what_a_log_begins_with_began_before_it() -> None:
    late = log_of(300, every=0.02, background=12).splitlines(keepends=True)[200:220]
    analysis = read_text("".join(late)).analysis
    starts = analysis.enriched["start_s"]
    finding = replace(analysis.findings[0], id="GC016", process=0)
    for at, is_late in ((1, False), (3, True)):
        assert _began_late(replace(finding, start_s=float(starts[at])), analysis) == is_late


def test_what_gc_costs_as_far_as_it_is_known() -> None:
    s = read_text(log_of(600)).summary()
    cpu, pauses = costs(s)
    assert cpu == "GC takes 0.55 % of the CPU (0.011 of 2 CPUs)"
    assert pauses == "the longest pause took 0.02 ms"
    (_, longer) = costs(replace(s, stw_max_ms=2.0))
    assert longer == "99 % of pauses take at most 0.02 ms, the longest 2.0 ms"
    assert next(costs(replace(s, cpus=None))) == "GC takes 0.55 % of the CPU"
    unknown = replace(s, gc_cpu_share=None, gc_per_s=4.0, stw_p99_ms=None, stw_max_ms=2.0)
    assert list(costs(unknown)) == [
        "GC runs 4.00 times a second (its CPU time is unknown)",
        "the longest pause took 2.0 ms",
    ]
    (_, mean) = costs(replace(unknown, stw_max_ms=None, stw_total_ms=60.0))
    assert mean == "stops the program for 0.10 ms in a cycle, on average"
    assert list(costs(replace(unknown, gc_per_s=None, stw_max_ms=None))) == []


def test_the_largest_live_heap_of_an_advice_is_that_of_the_figures_or_says_of_what_it_is() -> (
    None
):
    """The start-up marked 32 MiB, steady cycles at most 31."""
    run = gca.read(CORPUS / "gctrace" / "go1.27-near-limit" / "run.log")
    verdict = run.report().verdict
    assert run.summary().live_heap_max_mib == 32
    assert verdict is not None
    assert verdict.action.startswith("Try GOGC=100 GOMEMLIMIT=80MiB")
    tight = gca.read(CORPUS / "gctrace" / "go1.26-thrash" / "run.log").report().verdict
    assert tight is not None
    assert (
        "(1.5 × the 164 MiB that the live heap plus 25 % and other memory may need)"
        in tight.action
    )


def test_a_short_time_of_metrics_is_no_short_log() -> None:
    scrapes = CORPUS / "inputs" / "broken" / "json-lines-one-bad.jsonl"
    verdict = gca.read(scrapes).report().verdict
    assert verdict is not None
    assert verdict.sentence.startswith("The input is too short to judge")
    assert verdict.action == "Record metrics of a longer time, under the usual load."


def test_of_several_processes_the_verdict_is_of_the_worst_one() -> None:
    found = of(log_of(40, every=0.5) + log_of(40, every=0.5, mark=60, background=60))
    assert found.level == "ok"
    assert "GC takes 6.1 % of the CPU (0.12 of 2 CPUs) in process 1" in found.sentence
    assert found.sentence.endswith("the longest pause took 0.02 ms in process 0.")


def test_the_cost_beside_a_long_pause_is_of_the_same_process() -> None:
    costly = log_of(40, every=0.5, mark=60, background=60)
    slow = log_of(40, every=0.5).replace(": 0.02+", ": 9.02+").replace(", 0.04+", ", 18.04+")
    found = of(costly + slow)
    assert found.sentence.startswith("Process 1: The pause ")
    assert "GC takes 0.2" in found.sentence


def test_the_first_of_several_kills_is_the_earliest() -> None:
    container = (
        "  {name}:\n    Last State:     Terminated\n      Reason:       OOMKilled\n"
        "      Exit Code:    137\n      Finished:     Sun, 01 Mar 2026 {at} +0100\n"
    )
    text = "Name:             api-7d9f\nContainers:\n" + "".join(
        container.format(name=name, at=at)
        for name, at in (("api", "09:14:09"), ("envoy", "09:12:00"))
    )
    verdict = read_text(text).report().verdict
    assert verdict is not None
    assert "first at 2026-03-01 08:12:00 UTC" in verdict.sentence
    unknown = read_text(
        text.replace("      Finished:     Sun, 01 Mar 2026 09:12:00 +0100\n", "")
    )
    verdict = unknown.report().verdict
    assert verdict is not None
    assert "first at" not in verdict.sentence


def test_a_heap_that_grew_until_the_kill_gets_no_setting_that_saves_cpu() -> None:
    log = log_of(
        60,
        every=0.5,
        live=lambda n: 8 * n,
        start=lambda n: 14 * n,
        end=lambda n: 15 * n,
        goal=lambda n: 16 * n,
    )
    kill = "memory.max 805306368\noom_kill 1\nMemory cgroup out of memory: Killed process 7 (api)\n"
    (death,) = (run := read_text(f"{log}{kill}")).post_mortems()
    assert death.preventable == "for a while"
    found = run.report().verdict
    assert found is not None
    assert found.action.startswith("Try GOMEMLIMIT=691MiB, so that")
    assert "If the live heap grows further, a limit only buys time" in found.action


def test_a_growing_heap_gets_no_setting_whose_time_is_unknown() -> None:
    """30 s in which the live heap grew past GOMEMLIMIT: how long a higher one lasts is unknown."""
    text = log_of(
        150,
        live=lambda n: 5 + n,
        start=lambda n: min(6 + 2 * n, max(108, 4 + n)),
        end=lambda n: min(9 + 2 * n, max(110, 5 + n)),
        goal=lambda n: min(10 + 2 * n, max(111, 4 + n)),
    )
    found = of(text)
    assert found.finding == "GC021"
    expected = "If this memory is needed, raise GOMEMLIMIT to about 317 MiB; if not, compare"
    assert found.action.startswith(expected)


def test_a_problem_does_not_hide_that_the_container_is_too_small() -> None:
    run = gca.read(SAMPLES / "assists-go1.16.log", container_limit="170MiB")
    found = verdict(run.analysis, run.advice)
    assert found is not None
    assert found.sentence.startswith("GC takes 51 % of the CPU")
    assert "Memory may run out: the peak of 186 MiB" in found.sentence


@pytest.mark.parametrize(("end", "above"), [(150, True), (105, False)])
def test_a_heap_above_the_limit_is_said(end: int, above: bool) -> None:
    text = log_of(
        200, live=lambda _: 100, start=lambda _: 100, end=lambda _: end, goal=lambda _: 100
    )
    run = gca.read(io.StringIO(text), memory_limit="110MiB")
    (thrash,) = (found for found in run.report().analysis.findings if found.id == "GC016")
    said = "The heap reached 150 MiB, above GOMEMLIMIT (110 MiB), which is a soft limit."
    assert (said in thrash.evidence) is above


def test_load_that_idle_times_hide_in_the_mean_is_judged_alone() -> None:
    sizes: dict[str, Any] = {"live": 3, "start": 5, "end": 6, "goal": 6}
    busy = {"every": 0.006, "mark": 2.2, "assist": 1.6, "background": 2.1}
    calm = log_of(8, every=6.0, **sizes, mark=2, assist=0, background=1)
    load = re.sub(
        r"@([\d.]+)s", lambda at: f"@{50 + float(at[1]):.3f}s", log_of(40, **busy, **sizes)
    )
    lines = load.splitlines(keepends=True)[8:]
    found = of(calm + "".join(lines))
    assert found.level == "warn"
    assert found.sentence.startswith("Under load (for ")
    assert "--between 50." in found.action
    begin, end = re.findall(r"(\d[\d.]*s)", found.action)
    part = read_text(calm + "".join(lines)).between(begin, end).analysis.summary
    low, high = part.gc_cpu_range or [part.gc_cpu_share or 0.0] * 2
    said = re.search(r"GC takes (?:[\d.]+–)?([\d.]+) %", found.sentence)
    assert said is not None
    assert 0.97 * low <= float(said[1]) / 100 <= 1.03 * high
    assert "Under load" not in of(calm).sentence


def test_one_late_cycle_is_no_reason_to_doubt_what_the_runtime_prints_since_the_start() -> None:
    line = log_of(20, every=60.0, mark=50, background=30).splitlines(keepends=True)[-1]
    assert of(line).sentence.startswith(
        "The log is short, but shows no problem: GC has taken under 1 % of the CPU since the start"
    )
    costly = of(line.replace("s 0%:", "s 30%:"))
    assert costly.level == "warn"
    assert costly.sentence.startswith(
        "Since the start (20m 00s, 20 cycles), GC has taken 30 % of"
    )
    assert costly.sentence.endswith("The log is too short to say what it takes now.")


def test_a_limit_that_fits_the_container_comes_before_a_larger_container() -> None:
    run = gca.read(SAMPLES / "thrash-go1.19.log", container_limit="256MiB")
    assert (found := run.report().verdict)
    why = "the most that fits the container; better 249 MiB in one of 277 MiB"
    assert found.action == f"Set GOMEMLIMIT=230MiB ({why})."
    first = run.recommend().row(0, named=True)
    assert (first["memory_limit_mib"], first["why"]) == (230, why)


_BUILT = """\
# runtime
gc 1 @0.842s 8%: 3.2+464+0.23 ms clock, 6.4+0.32/203/224+0.46 ms cpu, 67->72->49 MB, 70 MB goal, 2 P
# reflect
gc 1 @1.232s 2%: 0.085+162+11 ms clock, 0.17+0/58/114+23 ms cpu, 67->69->19 MB, 70 MB goal, 2 P
"""


@pytest.mark.parametrize("text", [_BUILT, _BUILT.replace("# ", "")], ids=["built", "sections"])
def test_what_the_go_command_prints_of_packages_is_no_program(text: str) -> None:
    reached = read_text(text).report().verdict
    assert reached is not None
    assert ("those of the Go toolchain" in reached.sentence) is (text == _BUILT)


def test_a_program_that_starts_after_the_last_package_is_judged() -> None:
    """As `go run` prints it, if the command itself was not recorded."""
    linked = "# command-line-arguments\n" + log_of(1, every=0.02)
    run = read_text(f"{_BUILT}{linked}{log_of(60, every=0.2)}")
    reached = run.report().verdict
    assert reached is not None
    assert "GC takes 0.55 % of the CPU" in reached.sentence
    assert reached.sentence.endswith("in process 3.")
    assert "those of `go run`: go, compile" in run.summary().warnings[0]
    (of_program,) = [text for text in run.summary().warnings if "findings" in text]
    assert "of process 3, which is probably the program." in of_program
    assert "ok" not in run.report().analysis.levels.values()


@pytest.mark.parametrize(
    "head", ["gc 1 @0.000s 2%: 0.004%", "gc 1 @0.001s 3%: 0.0", "gc 1 @0.2"]
)
def test_a_program_whose_only_line_is_torn_has_no_figures(head: str) -> None:
    run = read_text(f"$ go run .\n{log_of(3, every=0.01)}# p\n{log_of(2, every=0.02)}{head}\n")
    reached = run.report().verdict
    assert reached is not None
    is_timed = "s " in head
    assert ("those of the Go toolchain" in reached.sentence) is is_timed
    warnings = run.summary().warnings
    begun = "Line 8 begins another process, whose first cycle could not be read."
    assert (begun in warnings) is is_timed
    assert any("probably the program" in text for text in warnings) is not is_timed


def test_a_first_cycle_that_is_quoted_below_a_log_begins_no_process() -> None:
    log = log_of(6, every=0.01)
    quoted = log.splitlines()[0].partition(" ms")[0]
    for below in (f"{quoted} ...", f"so {quoted}"):
        assert not any(
            "begins another" in text for text in read_text(log + below).summary().warnings
        )


def test_a_late_cycle_of_the_go_command_is_not_the_program() -> None:
    """The go command is idle while its program runs, and runs a forced cycle after two minutes."""
    program = log_of(12, every=0.2, live=300, start=300, end=310, goal=305)
    late = log_of(14, every=9, start=4, end=4, live=2, goal=6).splitlines()[-1]
    last = log_of(13, every=10, start=300, end=300, live=299, goal=302).splitlines()[-1]
    lines = f"{program}GC forced\n{late}\nGC forced\n{last}\n"
    run = read_text(f"$ GODEBUG=gctrace=1 go run .\n{lines}")
    assert run.processes["cycles"].to_list() == [13, 1]
    assert run.report().subject == 0
    (of_program,) = [text for text in run.summary().warnings if "findings" in text]
    assert of_program.endswith("of process 0, which is probably the program.")


def test_a_line_that_explains_the_format_is_not_the_program() -> None:
    """It follows the last cycles of a program that `go run` started, in a block of its own."""
    cycle = (
        "gc {} @{}.736s 17%: 0.010+1815+0.004 ms clock, 0.17+0/7254/21744+0.067 ms cpu, "
        "984->984->984 MB, 1968 MB goal, 16 P (forced)\n"
    )
    text = (
        "$ GODEBUG=gctrace=1 go run main.go\n...\n"
        + "".join(cycle.format(n, 2 * n) for n in range(6, 11))
        + "```\n\nWhat it means:\n\n```\n"
        "gc 1 @0.004s 4%: 0.22+1.4+0.021 ms clock, 1.7+0.009/0.40/0.073+0.16 ms cpu, "
        "4->5->1 MB, 5 MB goal, 8 P\n```\n"
    )
    warnings = read_text(text).summary().warnings
    assert any("of process 0, which is probably the program" in note for note in warnings)


def test_of_go_run_that_only_compiled_no_process_is_the_program() -> None:
    linked = f"{log_of(3)}# command-line-arguments\n{log_of(2)}"
    for text in (f"$ GODEBUG=gctrace=1 go run .\n{linked}", linked):
        run = read_text(text)
        reached = run.report().verdict
        assert reached is not None
        assert "those of the Go toolchain" in reached.sentence
        assert not any("probably the program" in text for text in run.summary().warnings)


@pytest.mark.parametrize(
    "second", ["go build -gcflags=-m ./shop", "GODEBUG=gctrace=1 go run ."]
)
def test_cycles_of_a_later_build_do_not_hide_those_of_a_program(second: str) -> None:
    ran = f"$ GODEBUG=gctrace=1 go run shop.go  # under load\n{log_of(40, every=0.2)}"
    run = read_text(f"{ran}$ {second}\n{_BUILT}")
    reached = run.report().verdict
    assert reached is not None
    assert "those of the Go toolchain" not in reached.sentence
    noted = f"Some cycles may be those of compile or link, started by `{second}`: go"
    assert any(text.startswith(noted) for text in run.summary().warnings)
    # The first command only built as well.
    built = read_text(f"$ GODEBUG=gctrace=1 go run shop.go\n{_BUILT}$ {second}\n{_BUILT}")
    assert "those of the Go toolchain" in getattr(built.report().verdict, "sentence", "")


def test_a_clock_that_shows_nothing_of_several_processes_is_said_in_a_sentence() -> None:
    cycle = (
        "gc {} @0.0{:02}s 0%: 0+0+0 ms clock, 0+0/0/0+0 ms cpu, 4->5->1 MB, 5 MB goal, 8 P\n"
    )
    text = "".join(cycle.format(n, 4 * n) for of in (24, 3) for n in range(1, of))
    reached = read_text(text).report().verdict
    assert reached is not None
    assert reached.sentence.endswith(
        ": the clock of the log is too coarse for the CPU time of GC and for its pauses."
    )


def test_no_process_that_go_vet_starts_is_judged_as_the_program() -> None:
    """Every process may be behind the figures of all; the last one costs nothing."""
    vetted = "# p\n# [p]\n" + log_of(2, every=0.01)
    run = read_text(f"{_BUILT}{log_of(40, every=0.01, pauses=30)}{vetted}")
    reached = run.report().verdict
    assert reached is not None
    assert "those of the Go toolchain" in reached.sentence
    assert run.report().analysis.levels["pauses"] == "bad"
    assert not any("probably the program" in text for text in run.summary().warnings)


def test_a_benchmark_is_judged_and_not_the_go_command_that_started_it() -> None:
    """The go command and the linker cost more, and the package has a name of its own."""
    tools = log_of(3, every=0.01) + "# shop/price.test\n" + log_of(3, every=0.02)
    run = read_text(f"{tools}goos: linux\n{log_of(60, every=0.2)}PASS\n")
    reached = run.report().verdict
    assert reached is not None
    assert reached.sentence.endswith("in process 2.")


def test_what_gc_took_since_the_start_of_a_busy_process_comes_first() -> None:
    line = (
        "gc 25915 @4.541s 12%: 0.01+0.05+0.002 ms clock, 0.1+0.02/0.1/0.1+0.02 ms cpu, "
        "3->3->0 MB, 4 MB goal, 0 MB stacks, 0 MB globals, 10 P\\n"
    )
    reached = read_text(line).report().verdict
    assert reached is not None
    assert reached.sentence.startswith(
        "Since the start (4.5 s, 25,915 cycles), GC has taken 12 %"
    )
    assert "no problem" not in reached.sentence


def test_growth_is_named_beside_long_pauses() -> None:
    lines = "".join(
        f"gc {n} @{0.5 * n:.3f}s 1%: {ms}+1+0.01 ms clock, {2 * ms}+0.1/1/0+0.02 ms cpu, "
        f"{16 * n}->{16 * n + 1}->{8 * n} MB, {16 * n} MB goal, 0 MB stacks, 0 MB globals, 2 P\\n"
        for n in range(1, 31)
        for ms in ((60 if n > 10 else 0.1),)
    )
    reached = read_text(lines).report().verdict
    assert reached is not None
    assert reached.finding == "GC009"
    assert "The live heap grew from" in reached.sentence
    assert "of the CPU" in reached.sentence


def test_a_setting_is_not_said_to_prevent_the_peak_of_a_burst() -> None:
    advice = read_text(log_of(200, every=0.05, mark=9)).advice
    row = advice.recommendations.row(0, named=True)
    old = row["heap_peak_mib"]
    lower = row | {"heap_peak_mib": old / 2, "heap_peak_mib_low": old / 2}
    may_stay = with_effects(lower | {"heap_peak_mib_high": old + 1}, advice)
    assert "heap peak 90.2–181 MiB instead of 180 MiB" in may_stay
    falls = with_effects(lower | {"heap_peak_mib_high": old - 1}, advice)
    assert "heap peak 90 MiB instead of 180 MiB" in falls


def test_a_setting_after_a_kill_is_given_with_what_would_leave_more_room() -> None:
    log = log_of(60, every=0.5, live=84, start=150, end=155, goal=168, background=60)
    kill = "memory.max 134217728\noom_kill 1\nMemory cgroup out of memory: Killed process 7 (api)\n"
    run = read_text(f"{log}{kill}")
    found = run.report().verdict
    assert found is not None
    assert found.action.startswith("Try GOGC=100 GOMEMLIMIT=115MiB. Predicted: ")
    # The post-mortem is no surer of it.
    text = " ".join(str(run.summary()).split())
    assert "Action Try GOMEMLIMIT=115MiB, so that GC runs" in text
    assert "Set GOMEMLIMIT" not in text
    assert "Better: raise the limit of 128 MiB to about" in found.action
    assert found.action.count("GOMEMLIMIT") == 1


def test_a_leak_into_a_limit_gets_one_limit_to_set() -> None:
    for log in ("leak/service.log.gz", "leak-into-limit-go1.24.log"):
        found = gca.read(SAMPLES / log).report().verdict
        assert found is not None
        assert found.finding == "GC021"
        assert found.action.count("GOMEMLIMIT") == 1


@pytest.mark.parametrize("pauses", ["", '"PauseNs":[54191,253478,216393,151686,71586,154671],'])
def test_a_heap_that_grew_in_dumps_before_a_kill_is_named_once(pauses: str) -> None:
    dump = (
        '{{"Alloc":{0},"HeapAlloc":{0},"HeapSys":{1},"Sys":{2},"NextGC":{3},"LastGC":{4},'
        '"NumGC":{5},"TotalAlloc":{6},"HeapIdle":{7},"HeapReleased":{8},{pauses}"EnableGC":true}}'
    )
    rows = (
        (12881864, 24870912, 29464840, 25219650, 507679908, 7, 34371376, 11730944, 5349376),
        (32500152, 37453824, 42572040, 39917258, 508320797, 9, 69002992, 4653056, 4653056),
        (43071928, 50036736, 55286024, 61732554, 509322087, 11, 103235760, 6668288, 5529600),
        (59484992, 62619648, 68528408, 82270682, 510159932, 12, 137583216, 2826240, 2719744),
        (68250432, 83591168, 89860376, 105945562, 511258451, 13, 172069872, 15032320, 3956736),
        (
            70560576,
            108756992,
            115665176,
            141285850,
            512783152,
            14,
            206753200,
            37879808,
            5447680,
        ),
        (
            105456832,
            108756992,
            115730712,
            141285850,
            512783152,
            14,
            241649456,
            2973696,
            2949120,
        ),
    )
    dumps = [
        dump.format(*row[:4], 1795965 * 10**12 + row[4] * 1000, *row[5:], pauses=pauses)
        for row in rows
    ]
    kill = (
        "memory: usage 131072kB, limit 131072kB, failcnt 88\nMemory cgroup out of memory: Killed "
        "process 2456 (leak) total-vm:1310720kB, anon-rss:128400kB, file-rss:1600kB, shmem-rss:0kB"
    )
    verdict = read_text("\n".join((*dumps, kill, ""))).report().verdict
    assert verdict is not None
    assert "GOMEMLIMIT=115MiB" in verdict.action
    assert verdict.action.count("compare two heap profiles") == 1
    assert "longer log" not in verdict.action


def test_one_cycle_of_a_start_judges_nothing_and_shows_no_range() -> None:
    line = (
        "gc 1 @3.003s 0%: 0.012+0.15+0.003 ms clock, 0.29+0/0.16/0+0.074 ms cpu, 4->4->4 MB, "
        "4 MB goal, 0 MB stacks, 0 MB globals, 24 P\n"
    )
    report = read_text(line).report()
    assert report.verdict is not None
    assert report.verdict.sentence.startswith("The log is short, but shows no problem")
    assert "Leave the settings" not in report.verdict.action
    assert "GC CPU is a range" not in plain(document(report))


def test_a_first_cycle_has_its_cpu_time_and_the_number_of_cpus() -> None:
    found = of(
        "gc 1 @0.002s 87%: 22+0.47+0.11 ms clock, 269+0.25/0.27/0+1.3 ms cpu, 459->459->459 MB, "
        "460 MB goal, 12 P\n"
    )
    assert "GC took 271 ms of CPU time in 25 ms on up to 12 CPUs." in found.sentence


def test_the_cpu_time_of_a_short_log_is_that_of_the_cycles_that_have_a_line() -> None:
    lines = log_of(7, every=0.005, start=3, end=4, live=1, goal=4, background=9).splitlines(
        True
    )
    found = of("".join(lines[:3] + lines[4:]))
    assert "of CPU time in 6 of 7 cycles" in found.sentence


def test_cycles_within_milliseconds_are_no_rate() -> None:
    lines = [
        f"gc {n} @{0.015 + 0.001 * n:.3f}s 38%: 11+0.63+0 ms clock, 89+1.2/1.2/0+0 ms cpu, "
        "16->80->64 MB, 80 MB goal, 8 P\n"
        for n in (3, 6)
    ]
    said = of("".join(lines)).sentence
    assert "GC has taken 38 % of the CPU since the start" in said
    assert "times a second" not in said


def test_some_milliseconds_of_a_start_get_no_gogc() -> None:
    found = of(log_of(7, every=0.005, start=3, end=4, live=1, goal=4, background=9))
    assert found.sentence.startswith("The log is too short to judge")
    assert "GOGC" not in found.action


def test_few_cycles_show_the_range_that_their_lines_allow() -> None:
    """Only Go 1.23 and later count a part of the time to stop the world, and it may be of these."""
    line = (
        "gc {n} @{at:.3f}s 9%: 0.05+1.0+0.05 ms clock, 0.4+0/4.0/0+0.4 ms cpu, 4->4->2 MB, "
        "4 MB goal, 0 MB stacks, 0 MB globals, 8 P\n"
    )
    report = read_text("".join(line.format(n=n, at=n / 100) for n in range(1, 8))).report()
    assert report.verdict is not None
    assert re.search(r"GC took \d+–\d+ ms of CPU time", report.verdict.sentence)


def test_calls_of_package_testing_are_not_to_be_removed() -> None:
    line = LINE.format(n=1, s=0.001, percent=1, mark=1, assist=0, background=1, start=1, end=1,
                       live=1, goal=4, procs=2)  # fmt: skip
    text = f"BenchmarkX-2 100 12 ns/op\n{line.replace(' P', ' P (forced)')}\n" * 4
    assert "-benchtime" in of(text).action


def test_a_live_heap_that_rises_in_too_few_cycles_for_a_leak_is_named() -> None:
    text = log_of(3, every=1, live=lambda n: 100 * n, start=350, end=352, goal=400)
    verdict = read_text(text).report().verdict
    assert verdict is not None
    assert verdict.sentence.startswith(
        "The live heap rose from 100 to 300 MiB in 3 cycles: a longer log shows whether that is "
        "the start-up or a leak."
    )
    assert "no problem" not in verdict.sentence
    assert "Record a longer log" in verdict.action
    level = log_of(
        3, every=1, live=lambda n: (100, 300, 200)[n - 1], start=350, end=352, goal=400
    )
    assert "rose" not in str(read_text(level).report().verdict)


def test_a_live_heap_that_fell_at_the_end_is_not_said_to_grow_there() -> None:
    sizes = (40, 50, 55, 60, 66, 70, 80, 85, 90, 97, 103, 107, 138, 130)
    text = log_of(
        len(sizes), every=2, live=lambda n: sizes[n - 1], start=150, end=152, goal=280
    )
    first = read_text(text).recommend().row(0, named=True)
    assert first["why"] == (
        "no change: the live heap grew over the last third of the log: later peaks may be higher"
    )
