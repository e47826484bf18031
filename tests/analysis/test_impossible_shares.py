"""A share of the CPUs above all of them is unknown: the times are shorter than the clock shows."""

from __future__ import annotations

from gctrace_analyzer.testing import read_text

CYCLES = "\n".join(
    f"gc {n} @0.000s 12%: 0.015+0.063+0.022 ms clock, 0.062+0/0.026/0.083+0.091 ms cpu, "
    "0->0->0 MB, 4 MB goal, 4 P (forced)"
    for n in range(1, 5)
)


def test_gc_takes_no_more_than_all_cpus() -> None:
    """Four cycles at 0.000 s: their CPU time is ten times that of the CPUs until the last end."""
    s = read_text(CYCLES).summary()
    assert s.gc_cpu_share is s.gc_cpu_with_idle_share is s.gc_cpu_cores is None
    assert s.assist_share_of_gc_cpu == 0
