"""A share of the CPUs above all of them is unknown: the times are shorter than the clock shows."""

from __future__ import annotations

import pytest

from gctrace_analyzer.testing import read_text

CYCLES = "\n".join(
    f"gc {n} @0.000s 12%: 0.015+0.063+0.022 ms clock, 0.062+0/0.026/0.083+0.091 ms cpu, "
    "0->0->0 MB, 4 MB goal, 4 P (forced)"
    for n in range(1, 5)
)


def test_gc_takes_no_more_than_all_cpus() -> None:
    """Four cycles at 0.000 s: their CPU time is ten times that of the CPUs until the last end."""
    s = read_text(CYCLES).summary()
    assert s.gc_cpu_with_idle_share is None
    # What the last line prints holds for the time since the start, however long that was.
    assert (s.gc_cpu_share_low, s.gc_cpu_share_high) == pytest.approx((0.12, 0.13))
    assert s.gc_cpu_cores == pytest.approx(0.125 * 4)
    assert s.gc_per_s is s.stw_share is None
    assert s.assist_share_of_gc_cpu == 0


def test_a_printed_share_holds_for_the_time_of_missing_lines_as_well() -> None:
    """GC takes a third of the CPU at first; then nothing is known of it but the share in all."""
    line = (
        "gc {} @{:.3f}s {}%: 0.010+10+0.010 ms clock, 0.020+0/7.0/0+0.020 ms cpu, "
        "10->11->5 MB, 10 MB goal, 2 P\n"
    )
    first = "".join(line.format(n, n / 50, 20) for n in range(1, 11))
    s = read_text(first + line.format(60, 2.0, 4)).summary()
    assert (s.gc_cpu_share_low, s.gc_cpu_share_high) == pytest.approx((0.04, 0.05))
    # The lines that follow each other are of the first part only.
    assert s.gc_cpu_share == pytest.approx(0.045)
    assert s.gc_cpu_with_idle_share is None
