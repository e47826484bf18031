"""Where the program allocates, as rows of text for all output formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.analysis.sites.functions import place
from gctrace_analyzer.analysis.sites.gc_functions import ALL_GC, ASSISTS, MARKING, SWEEPING
from gctrace_analyzer.present.document import Paragraphs, Table
from gctrace_analyzer.present.format import NONE, mib, printable, share
from gctrace_analyzer.units import MIB, digits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import polars as pl

    from gctrace_analyzer.analysis.sites.profiled import Profiled
    from gctrace_analyzer.present.report import Report
    from gctrace_analyzer.schema import Row

MOST_SITES = 5
"""Rows of the tables; the table `sites` has all."""


def of_profiles(report: Report, most: int = MOST_SITES) -> Iterator[Table | Paragraphs]:
    """Yields the tables on allocation, growth and a CPU profile; nothing without profiles."""
    profiled = report.analysis.profiled
    if profiled is None:
        return
    if len(profiled.top):
        yield allocation(profiled, most)
    if profiled.has_growth and (grown := growth(profiled, most)):
        yield grown
    if len(profiled.goroutines) and (profiled.heap is None or profiled.has_many_goroutines):
        yield goroutines(profiled, most)
    if notes := [*_notes(report, profiled)]:
        yield Paragraphs(notes, "dim", indent=2)


def allocation(profiled: Profiled, most: int) -> Table:
    """Returns the sites that allocate most, with their cost."""
    columns: list[tuple[str, Callable[[Row], str]]] = [
        ("share", lambda site: share(site["attributed_share"])),
        ("allocated", lambda site: _size(site["attributed_alloc_bytes"])),
        ("live", lambda site: _size(site["attributed_inuse_bytes"])),
    ]
    if profiled.top["alloc_mib_per_s"].count():
        columns[1] = ("MiB/s", lambda site: digits(site["alloc_mib_per_s"], 2))
    if profiled.top["gc_cpu_cores"].count():
        columns.insert(2, ("GC cores", lambda site: _cores(site["gc_cpu_cores"])))
    return _table("Allocation by function", profiled.top, columns, most)


def _cores(cores: float) -> str:
    return digits(cores, 2) if cores >= _LEAST_CORES else f"<{_LEAST_CORES}"


_LEAST_CORES = 0.001
"""Cores. What samples attribute to a function is no more exact."""


def changes(before: Profiled, after: Profiled, names: Sequence[str]) -> Table | None:
    """Returns the functions whose allocation changed most; None unless both have heap profiles."""
    changed = before.changes(after)
    if changed is None:
        return None
    times, unit = (1, "MiB/s") if changed["unit"][0] == "alloc_mib_per_s" else (100, "%")
    rows = [
        (
            printable(place(row)),
            *(digits(times * row[side], 3) for side in ("before", "after")),
            f"{digits(times * row['delta'], 2)}" if row["significant"] else "~",
        )
        for row in changed.head(MOST_SITES).iter_rows(named=True)
    ]
    head = ("Allocation by function", f"{names[0]}, {unit}", names[1], "change")
    return Table(head, "lrrr", rows, least=(24, 0, 0, 0))


CHANGES_NOTE = (
    "Of the functions of the program; ~: within the error of the sampling of both profiles (95 %). "
    "Differences in load and between runs add to this."
)


def growth(profiled: Profiled, most: int) -> Table | None:
    """Returns the sites that hold most of the growth; None if nothing grew."""
    column = "attributed_growth_bytes"
    grown = profiled.holding(column)
    if grown.is_empty():
        return None
    total = int(grown[column].sum())
    return _table(
        "Growth by function",
        grown,
        [
            ("share", lambda site: share(site[column] / total)),
            ("growth", lambda site: _size(site[column])),
            ("live", lambda site: _size(site["attributed_inuse_bytes"])),
        ],
        most,
    )


def goroutines(profiled: Profiled, most: int) -> Table:
    """Returns the functions with most goroutines."""
    number = ("goroutines", lambda site: f"{site['goroutines']:,}")
    return _table("Goroutines by function", profiled.goroutines, [number], most)


def _table(
    title: str,
    sites: pl.DataFrame,
    columns: list[tuple[str, Callable[[Row], str]]],
    most: int,
) -> Table:
    rows = [
        (printable(place(site)), *(value(site) for _, value in columns))
        for site in sites.head(most).iter_rows(named=True)
    ]
    left = len(sites) - len(rows)
    return Table(
        (title, *(name for name, _ in columns)),
        "l" + "r" * len(columns),
        rows,
        f"… and {left:,} more (table sites)" if left > 0 else "",
        least=(24, *[0] * len(columns)),
    )


def _size(size_bytes: int | None) -> str:
    return NONE if size_bytes is None else mib(size_bytes / MIB)


def _notes(report: Report, profiled: Profiled) -> Iterator[str]:
    """Yields how the tables were made, and the GC CPU of a CPU profile."""
    figures, heap = report.analysis.figures, profiled.heap
    if heap is not None and len(profiled.top):
        size = mib(int(heap.stacks["alloc_bytes"].sum()) / MIB)
        total = figures.alloc_total_mib
        of = "MemStats" if report.analysis.cycles.is_empty() else "log"
        of_log = "" if total is None else f", the {of} {mib(total)}".replace("the M", "M")
        has_cores = profiled.costs.gc_cpu_cores is not None
        yield (
            "Functions of the program, with what the runtime and the standard library allocate "
            f"for them, estimated from samples. The profile has {size}{of_log}."
            f"{' GC cores: cycles follow allocation; with idle marking.' if has_cores else ''}"
        )
    cpu = profiled.gc_functions
    for name in cpu["profile"].unique(maintain_order=True):
        parts = {row["part"]: row for row in cpu.filter(profile=name).to_dicts()}
        whole, log = parts[ALL_GC], figures.gc_cpu_with_idle_cores
        cores = [
            f"{what} {digits(parts[part]['cores'], 2)}"
            for what, part in (
                ("marking", MARKING),
                ("assists", ASSISTS),
                ("sweeping", SWEEPING),
            )
            if parts[part]["cores"]
        ]
        in_cores = f": {digits(whole['cores'], 2)} cores ({', '.join(cores)})" if cores else ""
        of_log = (
            "" if log is None else f"; the log has {digits(log, 2)} cores, without sweeping"
        )
        yield (
            f"In the CPU profile, GC takes {share(whole['cpu_share'])} of the CPU time "
            f"used{in_cores}{of_log}."
        )
