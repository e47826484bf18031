"""Runs made in rounds: which figure decides."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from gctrace_analyzer.analysis.compare.change import Change
from gctrace_analyzer.analysis.compare.rounds import CPU, RSS, WALL, Measurement, TrialRun
from gctrace_analyzer.present.sections import measured
from gctrace_analyzer.trials.plan import Trial

DELAYS = (0.002, 0.001, 0.0, 0.15, 0.004, 0.001)
"""How much longer than its fixed time a run takes, in seconds."""


def measurement(base_s: float, other_s: float, spread: float = 1.0) -> Measurement:
    """Returns six rounds of two sides that take these times, and half the CPU on the second."""
    runs = [
        TrialRun(side, number, wall_s=took + spread * delay, cpu_s=cpu + delay)
        for number, delay in enumerate(DELAYS, start=1)
        for side, took, cpu in (("a", base_s, 2.0), ("b", other_s, 1.0))
    ]
    return Measurement(("a", "b"), tuple(runs), (WALL, CPU, RSS), fixed=False, most=20)


def test_the_run_time_of_a_fixed_time_decides_nothing() -> None:
    fixed = measurement(10.0, 10.0)
    assert fixed.fixed_time_s == 10.0
    assert fixed.decider == CPU
    changes = fixed.changes("b")
    assert changes["wall_s"].verdict is None
    assert "whatever the setting" in str(changes["wall_s"].no_verdict_because)
    assert changes["cpu_s"].verdict == "better"
    assert "CPU time is compared instead" in " ".join(measured.notes(fixed))


def test_run_times_that_differ_decide() -> None:
    for one in (measurement(10.0, 9.0), measurement(1.0, 1.0, spread=20.0)):
        assert one.fixed_time_s is None
        assert one.decider == WALL
        assert not [*measured.notes(one)]


def test_a_program_that_is_given_its_time_runs_for_this_time() -> None:
    """Other work makes runs longer, so that they differ: arguments still have the time."""
    words = ("./load", "-d", "2s", "--warm-up=500ms", "2", "v2s")
    assert Trial("a", words).given_s == {2.0, 0.5}
    disturbed = measurement(2.2, 2.1)
    assert disturbed.fixed_time_s is None
    assert replace(disturbed, given_s=(0.5, 2.0)).fixed_time_s == 2.0
    # What ends earlier, or far later, has another reason to end.
    assert replace(disturbed, given_s=(0.5, 10.0, 1.6)).fixed_time_s is None


def test_a_difference_of_time_may_be_smaller_without_other_work() -> None:
    """With a fifth of the CPUs, everything takes five times as long, differences too."""
    quiet = measurement(2.0, 1.0)
    assert (known := quiet.decision("b")) is not None
    runs = [replace(run, foreign_cpu_s=1.6 * (run.wall_s or 0), cpus=2) for run in quiet.runs]
    crowded = replace(quiet, runs=tuple(runs))
    assert (other := crowded.decision("b")) is not None
    assert (other.mean, other.low) == (known.mean, known.low)
    assert known.high is not None
    assert other.high == pytest.approx(0.2 * known.high)
    assert crowded.changes("b")["cpu_s"] == replace(quiet.changes("b")["cpu_s"])


def verdict_on(one: Any) -> str:
    """The verdict on a measurement whose runs have 100 cycles and no benchmarks."""
    side = SimpleNamespace(label="b", cycles=100, benchmarks={})
    pair: Any = SimpleNamespace(
        before=side,
        after=side,
        changes=one.changes("b") | {"alloc_mib_per_s": Change("alloc_mib_per_s")},
    )
    return measured.verdict([pair], one)


def test_what_is_undecided_does_not_hide_the_memory() -> None:
    noisy, peaks = measurement(10.0, 10.0), {"a": 100.0, "b": 127.0}
    waits_s = (3.0, -2.0, 1.0, -4.0, 2.0, -1.0)
    took_s = {"a": 10.0, "b": 10.1}
    runs = [
        replace(run, wall_s=wall_s, cpu_s=wall_s, max_rss_mib=peaks[run.side] + 0.1 * run.round)
        for run in noisy.runs
        for wall_s in (took_s[run.side] + waits_s[run.round - 1] * (run.side == "a"),)
    ]
    one = replace(noisy, runs=tuple(runs))
    said = verdict_on(one)
    assert said.startswith("b: undecided after 6 rounds")
    assert "it takes 27.0 MiB more" in said


def test_an_undecided_run_time_does_not_hide_the_cpu_time() -> None:
    noisy = measurement(10.0, 10.0)
    waits_s = (3.0, -2.0, 1.0, -4.0, 2.0, -1.0)
    runs = [
        replace(run, wall_s=(run.wall_s or 0) + waits_s[run.round - 1] * (run.side == "a"))
        for run in noisy.runs
    ]
    one = replace(noisy, runs=tuple(runs))
    found = verdict_on(one)
    assert found.startswith("b: undecided after 6 rounds, run time")
    assert "it uses 49 % less CPU" in found
