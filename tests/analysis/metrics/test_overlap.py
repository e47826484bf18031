"""The same cycles in gctrace and metrics."""

from __future__ import annotations

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.metrics.overlap import Overlap
from gctrace_analyzer.testing import read_text
from tests.conftest import CORPUS


def both(traced_mib: float | None, scraped_mib: float | None, cycles: float = 10) -> Overlap:
    unknown = {"pause_total_ms": None, "gc_cpu_share": None}
    return Overlap(
        90.0,
        {"cycles": 10, "allocated_mib": traced_mib, **unknown},
        {"cycles": cycles, "allocated_mib": scraped_mib, **unknown},
    )


@pytest.mark.parametrize(
    ("traced", "scraped", "expected"),
    [
        (149, 100, True),
        (150, 100, False),
        (100, 149, True),
        (100, 150, False),
        (None, 100, True),
        (100, 0, True),
    ],
)
def test_sources_with_far_apart_allocation_are_not_one_process(
    traced: float | None, scraped: float, expected: bool
) -> None:
    found = both(traced, scraped)
    assert found.is_one_process is expected
    assert ("not of the same process" in found.sentence) is not expected


def test_differences_of_more_than_a_tenth_are_named() -> None:
    assert both(109, 100).sentence.endswith("cover 1m 30s, and agree within 10 %.")
    assert both(120, 100).sentence.endswith(
        "gctrace shows allocation +20 % relative to the metrics."
    )
    assert both(100, 100, 8).sentence.endswith("shows cycles +25 % relative to the metrics.")
    assert both(100, 125, 12.5).sentence.endswith(
        "cycles -20 %, allocation -20 % relative to the metrics."
    )
    assert both(300, 100).sentence.endswith(
        "but with 3.0 times the allocation in gctrace: they are not of the same process, so only "
        "gctrace is used."
    )


def test_scrapes_within_long_cycles_show_no_difference() -> None:
    """Each of six cycles allocates 20 MiB; a scrape can be anywhere in one."""
    lines = [
        f"gc {n} @{60 * n}.000s 0%: 0.1+1.0+0.1 ms clock, 0.2+0/1.0/1.0+0.2 ms cpu, "
        f"40->40->20 MB, 40 MB goal, 2 P\n2026/11/27 13:{n:02}:30 "
        f"TotalAlloc = {20 * n + 15 * (n > 6)} MiB\tSys = 77 MiB\tNumGC = {n}\n"
        for n in range(1, 8)
    ]
    analysis = read_text("".join(lines)).analysis
    assert analysis.overlap is not None
    assert analysis.overlap.sentence.endswith("agree within 12 %.")
    assert analysis.summary.alloc_total_mib == pytest.approx(160, rel=0.02)


@pytest.mark.parametrize(
    "name", ["go1.9-idle", "go1.26-spike", "go1.26-steady", "go1.19-thrash"]
)
def test_dumps_that_are_more_or_less_frequent_than_cycles_agree_with_them(name: str) -> None:
    folder = CORPUS / "gctrace" / name
    found = gca.read(folder / "run.log", folder / "memstats.csv").analysis.overlap
    assert found is not None
    assert found.ratio("cycles") == 1
    assert found.ratio("allocated_mib") == pytest.approx(1, abs=0.1)
    assert found.ratio("pause_total_ms") == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize(("first", "is_counted"), [(10, True), (50, False)])
def test_the_allocation_is_that_of_dumps_that_cover_most_of_the_time(
    first: int, is_counted: bool
) -> None:
    """The lines show 23 MiB for each cycle, the dumps 20 MiB."""
    lines = [
        f"gc {n} @{n}.000s 1%: 0.1+1.0+0.1 ms clock, 0.2+0/1.0/1.0+0.2 ms cpu, 42->43->20 MB, "
        "44 MB goal, 2 P\n"
        + f"2026/11/27 13:06:{n - 1:02} Alloc = 41 MiB\tTotalAlloc = {20 * n} MiB\tSys = 77 MiB\t"
        f"NumGC = {n}\n" * (n > first)
        for n in range(1, 61)
    ]
    run = read_text("".join(lines))
    total, expected = run.summary().alloc_total_mib, 60 * 20 if is_counted else 60 * 23
    assert total == pytest.approx(expected, rel=0.02)
    said = "The allocation shown is that of the metrics"
    assert (said in str(run.summary().warnings)) is is_counted
