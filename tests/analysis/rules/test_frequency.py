"""How often GC runs."""

from __future__ import annotations

import re
from dataclasses import replace

import polars as pl
import pytest

from gctrace_analyzer.analysis.rules import frequency, long_pauses
from gctrace_analyzer.testing import read_text
from tests.helpers.facts import facts_of, log_of, matches


def test_gc_that_is_always_running_is_a_warning_and_then_bad() -> None:
    severities = [
        [
            each.severity
            for each in matches(
                frequency.gc_always_on, facts_of(log_of(60, every=0.02, mark=mark))
            )
        ]
        for mark in (5, 12, 19)
    ]
    assert severities == [[], ["warn"], ["bad"]]


def test_a_short_log_is_not_called_always_on() -> None:
    assert not matches(frequency.gc_always_on, facts_of(log_of(19, every=0.03, mark=29)))
    assert not matches(frequency.gc_always_on, facts_of(log_of(4, every=0.02, mark=19)))


def test_frequent_cycles_are_a_note_unless_they_cost_cpu() -> None:
    def severities(**values: float) -> list[str]:
        found = matches(frequency.too_frequent, facts_of(log_of(100, **values)))
        return [each.severity for each in found]

    assert severities(every=0.2) == []
    assert severities(every=0.05) == ["info"]
    assert severities(every=0.05, background=15) == ["warn"]
    assert severities(every=0.015, background=5) == ["bad"]


def test_a_few_busy_moments_of_an_idle_program_are_not_too_frequent() -> None:
    """Of 24 cycles, 20 follow each other by 50 ms; then there is one per minute."""
    begin = log_of(20, every=0.05).splitlines()
    rest = [line.replace(f"gc {n} ", f"gc {n + 20} ") for n, line in
            enumerate(log_of(4, every=60).splitlines(), start=1)]  # fmt: skip
    facts = facts_of("\n".join([*begin, *rest]))
    assert facts.summary.gc_interval_p50_ms == pytest.approx(50)
    assert not matches(frequency.too_frequent, facts)
    # Where they cost CPU, they are reported however rare the others are.
    costly = replace(facts, summary=replace(facts.summary, gc_cpu_share=0.2))
    (finding,) = matches(frequency.too_frequent, costly)
    assert finding.evidence.endswith("every 50 ms (median).")


def test_forced_cycles_are_not_called_too_frequent() -> None:
    text = log_of(60, every=0.05).replace(" P\n", " P (forced)\n")
    assert not matches(frequency.too_frequent, facts_of(text))
    (finding,) = matches(frequency.forced_gc, facts_of(text))
    assert finding.evidence.startswith("60 of 60 cycles are marked as forced")


def test_a_few_forced_cycles_are_no_finding() -> None:
    lines = log_of(60).splitlines()
    text = "\n".join([*(f"{line} (forced)" for line in lines[:10]), *lines[10:]]) + "\n"
    assert not matches(frequency.forced_gc, facts_of(text))


def test_the_only_cycle_that_is_forced_is_a_note() -> None:
    text = log_of(1).replace(" P", " P (forced)")
    (finding,) = matches(frequency.forced_gc, facts_of(text))
    assert finding.severity == "info"
    assert finding.evidence.startswith("1 of 1 cycle is marked as forced")
    assert not matches(frequency.forced_gc, facts_of(text + log_of(2).splitlines()[1] + "\n"))


@pytest.mark.parametrize(
    ("calls", "go", "others"),
    # Go 1.9 to 1.19 may mark two cycles for each call.
    [(10, "", False), (5, "", False), (4, "", True), (5, "1.21", True)],
)
def test_forced_cycles_of_free_os_memory_are_not_a_question(
    calls: int, go: str, *, others: bool
) -> None:
    line = "scav 0 KiB work (bg), 0 KiB work (eager), 9 KiB now, 97% util (forced)\n"
    if not go:
        line = "scav 2 0 KiB work, 9 KiB total, 86% util (forced)\n"
    text = log_of(10).replace(" P", " P (forced)") + calls * line
    (row,) = read_text(text).findings().filter(id="GC024").iter_rows(named=True)
    assert f"`debug.FreeOSMemory` was called {calls} times in the log)" in row["evidence"]
    assert row["advice"].startswith("Call `debug.FreeOSMemory` less often")
    assert ("Find who forces the others" in row["advice"]) == others


def test_cycles_every_two_minutes_are_an_idle_program() -> None:
    assert matches(frequency.periodic_only, facts_of(log_of(30, every=120.2)))
    assert not matches(frequency.periodic_only, facts_of(log_of(30, every=60)))
    assert not matches(frequency.periodic_only, facts_of(log_of(2, every=120.2)))
    forced = log_of(30, every=120.2).replace(" P\n", " P (forced)\n")
    assert not matches(frequency.periodic_only, facts_of(forced))


def test_the_load_of_an_idle_program_is_not_called_idle() -> None:
    line = log_of(1).split(" ", 3)[3]
    times = (5.0, 10.0, *(10.0 + 120.01 * n for n in range(1, 5)))
    facts = facts_of("".join(f"gc {n} @{at:.3f}s {line}" for n, at in enumerate(times, 1)))
    (finding,) = matches(frequency.periodic_only, facts)
    assert finding.evidence.startswith("For 8m 00s of 8m 10s the program allocated too little")
    assert finding.figures["loaded"] == 1


def test_a_program_may_allocate_much_until_the_marking_before_a_periodic_cycle_ends() -> None:
    line = log_of(1).split(" ", 3)[3]
    long = re.sub(r"(: [^+]*)\+[^+]*\+", r"\1+5696+", line, count=1)
    times = (10.0, *(21.0 + 120.01 * n for n in range(5)))
    lines = [f"gc {n} @{at:.3f}s {long if n == 2 else line}" for n, at in enumerate(times, 1)]
    (finding,) = matches(frequency.periodic_only, facts_of("".join(lines)))
    assert finding.evidence.startswith("For 7m 54s of 8m 21s the program allocated too little")


def test_the_pauses_before_a_program_is_idle_are_those_of_its_start_up() -> None:
    line = log_of(1).split(" ", 3)[3]
    long = line.replace(": 0.02+", ": 9.02+").replace(", 0.04+", ", 18.04+")
    times = (0.1, *(0.6 + n / 10 for n in range(9)), *(1.4 + 120.01 * n for n in range(1, 5)))
    lines = [f"gc {n} @{at:.3f}s {long if at < 2 else line}" for n, at in enumerate(times, 1)]
    facts = facts_of("".join(lines))
    (finding,) = matches(long_pauses.long_sweep_termination, facts)
    assert finding.severity == "info"
    (finding,) = matches(long_pauses.long_sweep_termination, facts_of("".join(lines[:10])))
    assert finding.severity == "warn"


def test_frequent_cycles_of_an_unknown_cost_are_a_note() -> None:
    facts = facts_of(log_of(60, every=0.02, background=12))
    (known,) = matches(frequency.too_frequent, facts)
    assert known.severity == "warn"
    unknown = replace(facts, summary=replace(facts.summary, gc_cpu_share=None))
    (finding,) = matches(frequency.too_frequent, unknown)
    assert finding.severity == "info"


def test_the_forced_cycles_of_benchmarks_are_those_of_package_testing() -> None:
    facts = facts_of(log_of(60).replace(" P\n", " P (forced)\n"))
    (finding,) = matches(frequency.forced_gc, facts)
    assert "runtime.GC" in finding.advice
    (finding,) = matches(frequency.forced_gc, replace(facts, is_benchmark=True))
    assert (finding.severity, finding.advice) == ("info", "No action needed.")
    assert "go test -bench" in finding.evidence


def test_cycles_next_to_a_benchmark_without_its_result_are_those_of_go_test() -> None:
    cycle = (
        "gc {} @0.00{}s 4%: 0.006+0.091+0.005 ms clock, 0.051+0/0.098/0.059+0.046 ms cpu, "
        "0->0->0 MB, 4 MB goal, 0 MB stacks, 0 MB globals, 8 P (forced)\n"
    )
    text = "".join(cycle.format(n, n) for n in range(1, 4))
    run = read_text(
        f"{text}pkg: example.com/x\nBenchmark_add/##add##-8           {cycle.format(4, 4)}"
    )
    assert (
        "gc-forced" not in run.findings().filter(pl.col("severity") != "info")["name"].to_list()
    )
    assert "Lines of `go test -bench`" in " ".join(str(run.report().analysis.log.notes).split())
