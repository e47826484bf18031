"""Decides which kill by the kernel a report of systemd or a container engine means.

A cgroup in the kernel's messages names the unit or container. Without a cgroup, the name of the
process is compared with that of the unit or container, and otherwise the time: every OOM kill that
systemd or a container engine reports is a kill by the kernel.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from dataclasses import replace
from datetime import UTC, datetime
from operator import itemgetter
from typing import TYPE_CHECKING

from gctrace_analyzer.analysis.postmortem.death import KILLED_FOR_MEMORY
from gctrace_analyzer.analysis.postmortem.facts import MOST_OF_ALL
from gctrace_analyzer.analysis.postmortem.match import NEAR, task_name
from gctrace_analyzer.ingest.evidence import cgroups
from gctrace_analyzer.ingest.evidence.wordings import THRESHOLD_KILLERS
from gctrace_analyzer.units import MIB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gctrace_analyzer.analysis.postmortem.death import Death
    from gctrace_analyzer.schema import Row

    _Clock = Callable[[Death], float | None]

EARLY_S = 1.0
"""Seconds. Truncated timestamps may make a report seem to precede the kill."""

LATE_S = 10.0
"""Seconds after a kill. systemd and container engines report it within a second, or a few if the
memory of a large process takes long to free."""

_EVERY = ""
"""A key that means all hosts."""

MOST_COMPARED = 64
"""Kills to compare with a report if they share no clock."""

_PLACES = ("unit", "cgroup", "container_id", "pod_uid", "pod", "container")
"""If a kill has one of these, a report on another unit or container cannot mean it."""

_BY_KERNEL = ("unit", "container_id", "pod_uid")
"""Names that both the kernel and a report may have: the kernel does not know the names of pods."""

_NAMES = ("unit", "name", "container", "container_id")
"""Names that a report may use for a program. systemd does not know the names of pods either."""

_OF_PROCESSES = ("kernel", *THRESHOLD_KILLERS)
"""Killers that name the process, and do not report the end of its container."""

_TIMES = ("logged_at", "printed_at", "started_at", "monotonic_s")
_FACTS = (
    *_TIMES, "host", "unit", "name", "container",
    "container_id", "pod", "limit_bytes", "scope", "restart_count",
    "restarts_in_s", "memory_now_bytes",
)  # fmt: skip


def name_pods(rows: Iterable[Row], kills: list[Death]) -> None:
    """Adds the names of pods to kills of which the kernel knows only the uid of the pod."""
    of_pod: dict[str, dict[str | None, Row]] = {}
    for row in rows:
        of_pod.setdefault(row["pod_uid"] or "", {})[row["container"]] = row
    for number, kill in enumerate(kills):
        if kill.pod_uid and (containers := of_pod.get(kill.pod_uid)):
            row = next(iter(containers.values()))
            names = ("pod", "container", "name") if len(containers) == 1 else ("pod",)
            kills[number] = kill.completed(replace(kill, **{n: row[n] for n in names}), names)


def each_end_once(
    states: list[Death], incidents: list[Death]
) -> tuple[list[Death], list[Death]]:
    """Returns the states of units and ends in the journal, without one of two that mean the same.

    A state is that after the last end. Of both, the one that proves the reason is kept.
    """
    last = {incident.unit: incident for incident in incidents}
    ends = [(state, last[of]) for state in states if (of := state.unit or state.name) in last]
    same = [pair for pair in ends if abs(gap_s(*pair) or 0) <= LATE_S]
    repeated = {id(one if other.proven >= one.proven else other) for one, other in same}
    return (
        [state for state in states if id(state) not in repeated],
        [incident for incident in incidents if id(incident) not in repeated],
    )


def without_kill(kills: list[Death], reports: list[Death]) -> list[Death]:
    """Returns the reports of deaths that no recorded kill explains.

    Kills that explain a report are completed with its details.
    """
    by_unit: dict[str, list[int]] = {}
    unknown: list[int] = []
    reports = _left_unnamed(kills, reports)
    for number, kill in enumerate(kills):
        own = (kill.unit,) if kill.unit else ()
        for unit in {*own, *cgroups.units(kill.cgroup)}:
            by_unit.setdefault(unit, []).append(number)
        if kill.killer == "kernel" and not _has_any(kill, _PLACES):
            unknown.append(number)
    of_units = {unit: Kills(kills, numbers) for unit, numbers in by_unit.items()}
    # Both report the same kills, so the larger number counts. Reports left after comparing the
    # times are matched too, because the clock of `dmesg -T` may be wrong.
    for take in (Kills.near, Kills.first):
        reports = _left(reports, lambda report: of_units.get(report.unit or ""), take)
    reports = _left_of_pods(kills, reports)
    return _left_by_name_and_time(kills, unknown, reports)


def with_run(end: Death, runs: list[Death]) -> Death:
    """Returns an end with the runs of the OOM killer at its time."""
    near = [run for run in runs if abs(gap_s(run, end) or 0) <= LATE_S]
    is_of_host = all(run.scope == "global" for run in near)
    invokers = (run.invoker_comm for run in near)
    return replace(
        end,
        oom_killer_ran=bool(near),
        scope="global" if near and is_of_host else end.scope,
        invoker_comm=next(filter(None, invokers), None),
    )


def _left_of_pods(kills: list[Death], reports: list[Death]) -> list[Death]:
    """Returns the reports except those of pods with the limit that a kill in a pod reached.

    `kubectl describe` shows neither the uid of a pod nor the id of a container that ended.
    """
    by_limit: dict[int, list[int]] = {}
    for number, kill in enumerate(kills):
        if kill.pod_uid and not kill.pod and kill.limit_bytes:
            by_limit.setdefault(kill.limit_bytes, []).append(number)
    of_limit = {limit: Kills(kills, numbers) for limit, numbers in by_limit.items()}
    return _left(
        reports,
        lambda report: (
            of_limit.get(report.limit_bytes or 0)
            if report.pod and not report.container_id
            else None
        ),
        Kills.near,
    )


def _has_any(death: Death, names: Iterable[str]) -> bool:
    return any(getattr(death, name) for name in names)


def _left_unnamed(kills: list[Death], reports: list[Death]) -> list[Death]:
    """Returns the reports except those that name no program and come right after a kill.

    A report without names, as in the log of a platform, may mean a kill in any cgroup.
    """
    unnamed = [report for report in reports if not _has_any(report, _NAMES)]
    if not unnamed:
        return reports
    every = Kills(kills, [n for n, kill in enumerate(kills) if kill.killer in _OF_PROCESSES])
    for take in (Kills.near, Kills.first_without_clock):
        unnamed = _left(unnamed, lambda _: every, take)
    left = {id(report) for report in unnamed}
    named = (report for report in reports if _has_any(report, _NAMES))
    return [*named, *(report for report in reports if id(report) in left)]


def _left_by_name_and_time(
    kills: list[Death], numbers: list[int], reports: list[Death]
) -> list[Death]:
    """Returns the reports that no kill in an unknown cgroup explains.

    A report that shares no names with cgroups may mean a kill of its program in any cgroup.
    """
    taken: set[int] = set()

    def by_comm(own: Iterable[int]) -> dict[str, Kills]:
        of_comm: dict[str, list[int]] = {}
        for number in own:
            of_comm.setdefault(kills[number].comm or "", []).append(number)
        return {comm: Kills(kills, several, taken) for comm, several in of_comm.items()}

    unplaced = by_comm(numbers)
    anywhere = by_comm(n for n, kill in enumerate(kills) if kill.killer == "kernel")
    every = Kills(kills, numbers, taken)
    by_kernel = [report for report in reports if not report.killer]

    def of_name(report: Death) -> Kills | None:
        named = unplaced if _has_any(report, _BY_KERNEL) else anywhere
        return next((named[name] for name in _task_names(report) if name in named), None)

    for take in (Kills.soon, Kills.first_without_clock):
        by_kernel = _left(by_kernel, of_name, take)
    for take in (Kills.near, Kills.line_before):
        by_kernel = _left(by_kernel, lambda _: every, take)
    if len(by_kernel) == len(kills) == 1:
        # A message without times may quote the kernel's line below its own words.
        by_kernel = _left(by_kernel, lambda _: every, Kills.undated)
    return [*by_kernel, *(report for report in reports if report.killer)]


def _left(
    reports: list[Death],
    kills_of: Callable[[Death], Kills | None],
    take: Callable[[Kills, Death], int | None],
) -> list[Death]:
    """Returns the reports that no kill explains; completes the kills of the others."""
    left = []
    for report in reports:
        kills = kills_of(report)
        number = take(kills, report) if kills else None
        if kills is None or number is None:
            left.append(report)
        else:
            kill = kills.all[number]
            # A unit around the killed one reports the kill too: its name is not the victim's.
            is_around = kill.unit and report.unit and kill.unit != report.unit
            # An end without a word about memory may be another one, at another time.
            is_other = not report.proven and gap_s(kill, report) is None
            left_out = (*(_NAMES if is_around else ()), *(_TIMES if is_other else ()))
            facts = [name for name in _FACTS if name not in left_out]
            kill = kill.completed(report, facts)
            kills.all[number] = replace(kill, logged_in=(report.source, report.line_no))
    return left


def _task_names(report: Death) -> Iterator[str]:
    """Yields the names that the kernel may give to a process of a unit or container."""
    for name in ((report.unit or "").rpartition(".")[0], report.name, report.container):
        if name:
            # Docker Compose adds the number of a replica.
            yield from map(task_name, (name, re.sub(r"-\d+$", "", name)))


def same_host(one: Death, other: Death) -> bool:
    """Returns False if two records are of different hosts."""
    return None in (one.host, other.host) or one.host == other.host


def gap_s(one: Death, other: Death) -> float | None:
    """Returns the time between two records, on a clock that both have: dates decide.

    It is infinite if the kernel's clock began again between them: no more is known of two boots.
    """
    if (clock := _common_clock(one, other)) is None:
        return None
    gap = (clock(other) or 0.0) - (clock(one) or 0.0)
    if clock is _monotonic_s and one.source == other.source:
        order = 1 if (other.line_no or 0) >= (one.line_no or 0) else -1
        return gap if order * gap >= -EARLY_S else order * math.inf
    if clock is _printed_s and abs(gap) > _YEAR_S / 2 and _has_no_year(one, other):
        return gap - math.copysign(_YEAR_S, gap)
    return gap


def _common_clock(one: Death, other: Death) -> _Clock | None:
    """Returns the clock to compare two records by."""
    for clock in _CLOCKS:
        has_both = clock(one) is not None and clock(other) is not None
        # A date with a year and one without are not known to be of the same year.
        is_same = one.source == other.source and _has_no_year(one) is _has_no_year(other)
        if has_both and (is_same or clock is not _printed_s):
            return clock
    return None


_YEAR_S = 366 * 86_400.0
"""Seconds in the year that dates without one get."""


def _has_no_year(*deaths: Death) -> bool:
    return not any((death.printed_at or "")[:1].isdigit() for death in deaths)


_NEIGHBOURS = 16
"""Deaths on each side that are looked at for one at about the same time."""


def larger_beside(deaths: list[Death], number: int) -> tuple[str, float] | None:
    """Returns the largest program killed in the same minute, and its MiB, if much larger.

    Both may be of the same limit or host, which the smaller one did not fill. One that was still
    alive comes first: the name of one killed before is empty, because it had no memory any more.
    """
    death, own, first = (
        deaths[number],
        deaths[number].own_bytes or 0,
        max(number - _NEIGHBOURS, 0),
    )
    sizes = [
        (
            "" if (gap_s(death, other) or at - number) < 0 else other.victim or "",
            (other.own_bytes or 0) / MIB,
        )
        for at, other in enumerate(deaths[first : number + _NEIGHBOURS], start=first)
        if 0 < own < MOST_OF_ALL * (other.own_bytes or 0) and _is_beside(death, other)
    ]
    return max(sizes, key=lambda named: (bool(named[0]), named[1]), default=None)


def _is_beside(death: Death, other: Death) -> bool:
    gap = gap_s(death, other)
    is_near = death.source == other.source if gap is None else abs(gap) <= NEAR.total_seconds()
    is_same = None in (death.oom_memcg, other.oom_memcg) or death.oom_memcg == other.oom_memcg
    return is_near and is_same and death.scope == other.scope and same_host(death, other)


def _wall_s(death: Death) -> float | None:
    return death.logged_at.timestamp() if death.logged_at else None


def _monotonic_s(death: Death) -> float | None:
    return death.monotonic_s


def _printed_s(death: Death) -> float | None:
    """Returns the time of a record without year or zone: one input has one zone."""
    text = None if death.logged_at else death.printed_at
    if text is None:
        return None
    # The year of a date without one counts as a leap year.
    text = text if text[0].isdigit() else f"2000 {text}"
    form = "%Y-%m-%d %H:%M:%S" if "-" in text else "%Y %b %d %H:%M:%S"
    return datetime.strptime(text, form).replace(tzinfo=UTC).timestamp()


_CLOCKS = (_wall_s, _printed_s, _monotonic_s)


def _line(death: Death) -> float | None:
    undated = death.logged_at is None and death.monotonic_s is None
    return death.line_no if undated else None


class Kills:
    """Kills that reports may mean, by number; each is given to only one report.

    They are sorted, because a log may have thousands. Several collections may share the set of
    kills that are already given to a report.
    """

    def __init__(
        self, every: list[Death], numbers: list[int], taken: set[int] | None = None
    ) -> None:
        self.all = every
        self._numbers = list(numbers)
        self._taken = set[int]() if taken is None else taken
        self._sorted: dict[_Clock, dict[str | None, list[tuple[float, int]]]] = {}
        for clock in (*_CLOCKS, _line):
            timed = [(at, n) for n in numbers if (at := clock(every[n])) is not None]
            by_host = self._sorted[clock] = {_EVERY: sorted(timed, key=itemgetter(0))}
            for kill in by_host[_EVERY]:
                by_host.setdefault(every[kill[1]].host, []).append(kill)

    def near(self, report: Death, late_s: float = LATE_S) -> int | None:
        """Returns the last kill in the seconds before a report, or a moment after it."""
        found = (self._last(clock, report, late_s) for clock in _CLOCKS)
        return next((kill for kill in found if kill is not None), None)

    def soon(self, report: Death) -> int | None:
        """Returns the last kill in the minute before a report."""
        return self.near(report, NEAR.total_seconds())

    def line_before(self, report: Death) -> int | None:
        """Returns the last kill on an earlier line of the same input, if neither is dated."""
        return self._last(_line, report, float("inf"), 0.0)

    def undated(self, report: Death) -> int | None:
        """Returns the first remaining kill in the same input, if neither is dated."""
        return self._first(report, lambda kill: _same_text(kill, report))

    def first(self, report: Death) -> int | None:
        """Returns the first remaining kill."""
        return self._first(report, lambda _: True)

    def first_without_clock(self, report: Death) -> int | None:
        """Returns the first remaining kill that shares no clock with the report."""
        return self._first(report, lambda kill: gap_s(kill, report) is None)

    def _last(
        self, clock: _Clock, report: Death, late_s: float, early_s: float = EARLY_S
    ) -> int | None:
        if (end := clock(report)) is None:
            return None
        # Prefer kills of the same host; without a host, take the last kill of any.
        hosts = (_EVERY,) if report.host is None else (report.host, None)
        candidates = [
            kill
            for host in hosts
            if (kill := self._last_of(host, clock, report, end - late_s, end + early_s))
        ]
        if not candidates:
            return None
        _, number = max(candidates, key=itemgetter(0))
        self._taken.add(number)
        return number

    def _last_of(
        self, host: str | None, clock: _Clock, report: Death, begin: float, end: float
    ) -> tuple[float, int] | None:
        kills = self._sorted[clock].get(host, [])
        at = bisect_right(kills, end, key=itemgetter(0))
        while at > 0 and kills[at - 1][0] >= begin:
            at -= 1
            number = kills[at][1]
            if number in self._taken:
                del kills[at]
            elif _comparable(clock, self.all[number], report):
                return kills[at]
        return None

    def _first(self, report: Death, fits: Callable[[Death], bool]) -> int | None:
        while self._numbers and self._numbers[0] in self._taken:
            del self._numbers[0]
        for number in self._numbers[:MOST_COMPARED]:
            kill = self.all[number]
            if number not in self._taken and same_host(kill, report) and fits(kill):
                self._taken.add(number)
                return number
        return None


def _same_text(kill: Death, report: Death) -> bool:
    is_quote = report.kind.startswith(KILLED_FOR_MEMORY) and kill.source == report.source
    return is_quote and not any(clock(death) for clock in _CLOCKS for death in (kill, report))


def _comparable(clock: _Clock, kill: Death, report: Death) -> bool:
    if clock is _line:
        return kill.source == report.source and gap_s(kill, report) is None
    return clock is _common_clock(kill, report) and math.isfinite(gap_s(kill, report) or 0.0)
