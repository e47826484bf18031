"""Decides which kill by the kernel a report of systemd or a container engine is about.

A cgroup in the kernel's messages names the unit or container. Without it, what agrees decides:
the name of the process with that of the unit or container, and otherwise the time, because what
systemd and container engines report as an OOM kill is always a kill by the kernel.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from gctrace_analyzer.analysis.postmortem.match import NEAR, task_name
from gctrace_analyzer.ingest.evidence import cgroups

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gctrace_analyzer.analysis.postmortem.match import Row

    _Clock = Callable[[Row], float | None]

EARLY_S = 1.0
"""Seconds. Timestamps may be truncated, so a report may seem to precede the kill."""

LATE_S = 10.0
"""Seconds after a kill. systemd and container engines report it within a second, or a few if the
memory of a large process takes long to free."""

_EVERY = ""
"""Stands for all hosts."""

MOST_COMPARED = 64
"""Kills without a clock in common with a report that are compared with it."""

_PLACES = ("unit", "cgroup", "container_id", "pod_uid", "pod", "container")
"""If one of these is known of a kill, another unit or container cannot mean it."""

_NAMES = ("unit", "name", "container", "container_id")
"""What a report may name a program by. Kernel and systemd do not know the names of pods."""

_OF_PROCESSES = ("kernel", "earlyoom")
"""Killers that name the process, and are not those who report the end of its container."""

_FACTS = (
    "logged_at", "monotonic_s", "host", "unit", "name", "container", "container_id", "pod",
    "limit_bytes", "scope", "restart_count",
)  # fmt: skip


def without_kill(kills: Iterable[Row], reports: list[Row]) -> list[Row]:
    """Returns the reports of deaths that no recorded kill explains.

    The kills that explain the others are completed with what those know.
    """
    by_unit: dict[str, list[Row]] = {}
    unknown: list[Row] = []
    kills = list(kills)
    reports = _left_unnamed(kills, reports)
    for kill in kills:
        for unit in {kill["unit"], *cgroups.units(kill["cgroup"])} - {None}:
            by_unit.setdefault(unit, []).append(kill)
        if kill["killer"] == "kernel" and not any(kill.get(name) for name in _PLACES):
            unknown.append(kill)
    of_units = {unit: Kills(rows) for unit, rows in by_unit.items()}
    # A unit is killed as often as the kernel or systemd says, whichever is more. What is left
    # after comparing the times belongs together too, as the clock of `dmesg -T` may be wrong.
    for take in (Kills.near, Kills.first):
        reports = _left(reports, lambda report: of_units.get(report.get("unit") or ""), take)
    return _left_by_name_and_time(unknown, reports)


def _left_unnamed(kills: list[Row], reports: list[Row]) -> list[Row]:
    """Returns the reports without those that name no program and come right after a kill.

    What names nothing, as in the log of a platform, may mean a kill in any cgroup.
    """
    unnamed = [report for report in reports if not any(report.get(name) for name in _NAMES)]
    if not unnamed:
        return reports
    every = Kills([kill for kill in kills if kill["killer"] in _OF_PROCESSES])
    for take in (Kills.near, Kills.first_without_clock):
        unnamed = _left(unnamed, lambda _: every, take)
    left = {id(report) for report in unnamed}
    named = (report for report in reports if any(report.get(name) for name in _NAMES))
    return [*named, *(report for report in reports if id(report) in left)]


def _left_by_name_and_time(kills: list[Row], reports: list[Row]) -> list[Row]:
    """Returns the reports that none of the kills in an unknown cgroup explains."""
    taken: set[int] = set()
    by_comm: dict[str, list[Row]] = {}
    for kill in kills:
        by_comm.setdefault(kill["comm"] or "", []).append(kill)
    named = {comm: Kills(rows, taken) for comm, rows in by_comm.items()}
    every = Kills(kills, taken)
    by_kernel = [report for report in reports if not report.get("killer")]

    def of_name(report: Row) -> Kills | None:
        return next((named[name] for name in _task_names(report) if name in named), None)

    for take in (Kills.soon, Kills.first_without_clock):
        by_kernel = _left(by_kernel, of_name, take)
    for take in (Kills.near, Kills.line_before):
        by_kernel = _left(by_kernel, lambda _: every, take)
    return [*by_kernel, *(report for report in reports if report.get("killer"))]


def _left(
    reports: list[Row],
    kills_of: Callable[[Row], Kills | None],
    take: Callable[[Kills, Row], Row | None],
) -> list[Row]:
    """Returns the reports that none of the kills explains; completes the kills of the others."""
    left = []
    for report in reports:
        kills = kills_of(report)
        kill = take(kills, report) if kills else None
        if kill is None:
            left.append(report)
        else:
            complete(kill, report, _FACTS)
    return left


def complete(kill: Row, report: Row, names: Iterable[str]) -> None:
    """Adds what only the report knows to the row of a kill."""
    kill |= {name: report.get(name) for name in names if kill.get(name) is None}


def _task_names(report: Row) -> Iterator[str]:
    """Yields what the kernel may call a process of a unit or container."""
    unit = report.get("unit") or ""
    for name in (unit.rpartition(".")[0], report.get("name"), report.get("container")):
        if name:
            yield task_name(name)


def same_host(one: Row, other: Row) -> bool:
    """Returns False if two rows are of different hosts."""
    hosts = (one.get("host"), other.get("host"))
    return None in hosts or hosts[0] == hosts[1]


def gap_s(one: Row, other: Row) -> float | None:
    """Returns the time from one row to another, on a clock that both have."""
    for clock in (_wall_s, _monotonic_s):
        begin, end = clock(one), clock(other)
        if begin is not None and end is not None:
            return end - begin
    return None


def _wall_s(row: Row) -> float | None:
    return row["logged_at"].timestamp() if row.get("logged_at") else None


def _monotonic_s(row: Row) -> float | None:
    return row.get("monotonic_s")


def _line(row: Row) -> float | None:
    undated = _wall_s(row) is None and _monotonic_s(row) is None
    return row["line_no"] if undated else None


class Kills:
    """Kills that reports may be about; each is given to one report only.

    They are sorted, because a log may have thousands. Several collections may share the set of
    those that are given already, by their `id`.
    """

    def __init__(self, rows: list[Row], taken: set[int] | None = None) -> None:
        self._rows = list(rows)
        self._taken = set[int]() if taken is None else taken
        self._sorted: dict[_Clock, dict[str | None, list[tuple[float, Row]]]] = {}
        for clock in (_wall_s, _monotonic_s, _line):
            timed = [(at, row) for row in rows if (at := clock(row)) is not None]
            by_host = self._sorted[clock] = {_EVERY: sorted(timed, key=lambda kill: kill[0])}
            for kill in by_host[_EVERY]:
                by_host.setdefault(kill[1].get("host"), []).append(kill)

    def near(self, report: Row, late_s: float = LATE_S) -> Row | None:
        """Returns the last kill in the seconds before a report, or a moment after it."""
        kill = self._last(_wall_s, report, late_s)
        return kill or self._last(_monotonic_s, report, late_s)

    def soon(self, report: Row) -> Row | None:
        """Returns the last kill in the minute before a report."""
        return self.near(report, NEAR.total_seconds())

    def line_before(self, report: Row) -> Row | None:
        """Returns the last kill on an earlier line of the same input, if neither is dated."""
        return self._last(_line, report, float("inf"), 0.0)

    def first(self, report: Row) -> Row | None:
        """Returns the first kill that is left."""
        return self._first(report, lambda _: True)

    def first_without_clock(self, report: Row) -> Row | None:
        """Returns the first kill that is left and has no clock in common with the report."""
        return self._first(report, lambda row: gap_s(row, report) is None)

    def _last(
        self,
        clock: _Clock,
        report: Row,
        late_s: float,
        early_s: float = EARLY_S,
    ) -> Row | None:
        if (end := clock(report)) is None:
            return None
        host = report.get("host")
        # The last kill whose host is the same or unknown; of an unknown host, of all.
        candidates = [
            kill
            for each_host in ((_EVERY,) if host is None else (host, None))
            if (kill := self._last_of(each_host, clock, report, end - late_s, end + early_s))
        ]
        if not candidates:
            return None
        _, row = max(candidates, key=lambda kill: kill[0])
        self._taken.add(id(row))
        return row

    def _last_of(
        self, host: str | None, clock: _Clock, report: Row, begin: float, end: float
    ) -> tuple[float, Row] | None:
        kills = self._sorted[clock].get(host, [])
        at = bisect_right(kills, end, key=lambda kill: kill[0])
        while at > 0 and kills[at - 1][0] >= begin:
            at -= 1
            row = kills[at][1]
            if id(row) in self._taken:
                del kills[at]
            elif _comparable(clock, row, report):
                return kills[at]
        return None

    def _first(self, report: Row, fits: Callable[[Row], bool]) -> Row | None:
        while self._rows and id(self._rows[0]) in self._taken:
            del self._rows[0]
        for row in self._rows[:MOST_COMPARED]:
            if id(row) not in self._taken and same_host(row, report) and fits(row):
                self._taken.add(id(row))
                return row
        return None


def _comparable(clock: _Clock, row: Row, report: Row) -> bool:
    if clock is _line:
        return bool(row["source"] == report["source"])
    # The time since the boot may be that of another boot.
    return clock is _wall_s or _wall_s(row) is None or _wall_s(report) is None
