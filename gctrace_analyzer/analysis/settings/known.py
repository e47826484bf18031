"""The known settings of the program (GOGC, limits, Go version), each with its source."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypedDict

import polars as pl

from gctrace_analyzer import units
from gctrace_analyzer.analysis.settings.of_containers import (
    container_of,
    of_program,
    stated_version,
)
from gctrace_analyzer.analysis.settings.printed import as_lines
from gctrace_analyzer.analysis.settings.releases import (
    go_version,
    is_before_limits,
    newest_time,
    outside_go,
)
from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest.clock import releases_at
from gctrace_analyzer.ingest.evidence.message import SLOWED, STATED
from gctrace_analyzer.ingest.gctrace.columns import end_s
from gctrace_analyzer.ingest.processes import longest_process
from gctrace_analyzer.ingest.rows import median, of_process
from gctrace_analyzer.units import MIB, duration_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gctrace_analyzer.analysis.postmortem.death import Death


NEIGHBOUR_SHARE = 0.05
"""Share of the limit. Other processes that use less than this are ignored: the
program has nearly the whole limit to itself."""

OFF_HEAP_MIN_MIB = 32.0
"""MiB. If resident memory exceeds Go's mapped memory by less than this, the difference is the
code of the program, or the two values are from different moments."""

_LEAST_STEPS = 4
"""Steps of the printed sizes, each off by half a step. Fewer steps show no size."""

MEMORY_LIMITS = {"memory_limit_mib": "GOMEMLIMIT", "container_limit_mib": "container"}
"""The settings that limit the heap, and their names in a sentence."""


class CommonFacts(TypedDict, total=False):
    """Facts about the program that `read` and `measure` take."""

    container_limit: str | float | None
    cpu_limit: str | float | None
    go_version: str | None
    off_heap: str | float | None


class ProgramFacts(CommonFacts, total=False):
    """Facts about the program that its log may not show; `read` and `from_frame` take them."""

    gogc: str | float | None
    memory_limit: str | float | None
    ballast: str | float | None


@frozen
class Known:
    """A setting's value and its source."""

    value: float | str | None
    source: str


@frozen
class Settings:
    """The settings, None where unknown: GOGC in percent (or `off`), limits in MiB, CPUs.

    `off_heap_mib` is memory of the process that Go does not count (cgo, mmap); `beside_mib` is
    the memory of other processes under the same limit.
    """

    gogc: Known | None = None
    memory_limit_mib: Known | None = None
    container_limit_mib: Known | None = None
    cpu_limit: Known | None = None
    go_version: Known | None = None
    ballast_mib: Known | None = None
    off_heap_mib: Known | None = None
    beside_mib: Known | None = None

    def __str__(self) -> str:
        return as_lines(self.to_dict())

    def value(self, name: str) -> Any:
        """Returns the value of a setting; None if it is unknown."""
        setting = getattr(self, name)
        return None if setting is None else setting.value

    @property
    def room_mib(self) -> float | None:
        """The memory that the container leaves to this process; None if there is no limit."""
        limit = self.value("container_limit_mib")
        if not limit:
            return None
        return float(limit) - float(self.value("beside_mib") or 0.0)

    def to_dict(self) -> dict[str, Any]:
        """Returns the known settings, ready for JSON."""
        return {
            field.name: {"value": setting.value, "source": setting.source}
            for field in fields(self)
            if (setting := getattr(self, field.name)) is not None
        }


@frozen
class MemoryLimit:
    """A known memory limit, its name, and how far the live heap is below it."""

    mib: float
    name: str
    room_mib: float


def nearest_limit(settings: Settings, live_mib: float) -> MemoryLimit | None:
    """Returns the lowest known limit above the live heap; None if there is none.

    A live heap above GOMEMLIMIT, which is a soft limit, next reaches the container's limit.
    """
    known = ((settings.value(key), name) for key, name in MEMORY_LIMITS.items())
    above = [(mib, name) for mib, name in known if mib is not None and mib > live_mib]
    if not above:
        return None
    mib, name = min(above)
    return MemoryLimit(mib, name, mib - live_mib)


def given_settings(
    gogc: str | float | None = None,
    memory_limit: str | float | None = None,
    container_limit: str | float | None = None,
    cpu_limit: str | float | None = None,
    go_version: str | None = None,
    ballast: str | float | None = None,
    off_heap: str | float | None = None,
) -> Settings:
    """Returns the settings that the user gave to `read`.

    Raises:
        BadSettingError: one of the values is not valid.
    """
    return Settings(
        gogc=_given(gogc, lambda value: units.gogc_percent(value, argument="gogc")),
        memory_limit_mib=_given(memory_limit, units.memory_limit_mib),
        container_limit_mib=_given(
            container_limit,
            lambda value: units.positive_size_mib(value, argument="container_limit"),
        ),
        cpu_limit=_given(cpu_limit, _cpus),
        go_version=_given(go_version, _version),
        ballast_mib=_given(ballast, lambda value: units.size_mib(value, argument="ballast")),
        off_heap_mib=_given(off_heap, lambda value: units.size_mib(value, argument="off_heap")),
    )


def _cpus(value: str | float) -> float:
    thousandths = isinstance(value, str) and value.endswith("m")  # as Kubernetes writes them
    try:
        cpus = float(str(value)[:-1]) / 1000 if thousandths else float(value)
        cpus = 0.0 if isinstance(value, bool) else cpus
    except (TypeError, ValueError):
        cpus = 0.0
    if not 0 < cpus < math.inf:
        raise BadSettingError("cpu_limit", str(value), "CPUs, such as 1.5 or 500m")
    return cpus


def _version(value: Any) -> str:
    version = str(value).removeprefix("go")
    if go_version(version) is None:
        raise BadSettingError("go_version", str(value), "a version such as 1.22")
    return version


def _given(value: Any, parse: Callable[[Any], Any]) -> Known | None:
    if value is None:
        return None
    parsed = parse(value)
    off = "off" if parse is not units.memory_limit_mib else None
    return Known(off if parsed is None else parsed, "given")


def known(
    given: Settings,
    tables: Mapping[str, pl.DataFrame],
    all_processes: pl.DataFrame | None = None,
) -> Settings:
    """Returns the given settings, completed from the inputs.

    Args:
        given: the settings that the user gave.
        tables: the tables of the processes in question.
        all_processes: all processes in the inputs, to match kills; by default those in the tables.
    """
    everyone = tables["processes"] if all_processes is None else all_processes
    found = {field.name: getattr(given, field.name) for field in fields(given)}
    memstats = tables["memstats"]
    version = stated_version(tables["container_states"], tables["processes"])
    stated = {"go_version": Known(*version)} if version else {}
    for source in (
        _of_container(container_of(tables["container_states"], tables["processes"])),
        *_of_kills(tables, everyone),
        _of_metrics(memstats, tables["processes"]),
        _of_cycles(tables["cycles"], tables["processes"]),
        stated,
    ):
        found |= {name: each for name, each in source.items() if found[name] is None}
    if given.off_heap_mib is None:
        found |= _off_heap(memstats, Settings(**found).value("go_version"))
    if contradicted_version(known := Settings(**found), tables["processes"]) is not None:
        known = replace(known, go_version=stated.get("go_version"))
        if contradicted_version(known, tables["processes"]) is not None:
            known = replace(known, go_version=None)
    limit = known.memory_limit_mib
    is_old = is_before_limits(None, tables["processes"], known.value("go_version"))
    if limit is None or limit.value is None or not is_old:
        return known
    ignored = f"{units.size_text(float(limit.value))} has no effect before Go 1.19"
    return replace(known, memory_limit_mib=Known(None, f"{limit.source}: {ignored}"))


def known_of_container(
    given: Settings, tables: Mapping[str, pl.DataFrame], death: Death
) -> Settings:
    """Returns the settings of the killed container; of any container if it has no name."""
    others, of = (
        {name for name in (*death.names, death.unit, death.comm) if name},
        ("container_id", "name", "container", "pod"),
    )
    own = pl.any_horizontal(pl.col(of).is_in(list(others))) | pl.lit(not others)
    for name in ("pod", "container"):
        if value := getattr(death, name):
            own &= pl.col(name).is_null() | (pl.col(name) == value)
    states = tables["container_states"]
    containers = {"container_states": states.filter(own)}
    none = {name: tables[name].clear() for name in ("processes", "cycles", "memstats")}
    return known(given, {**tables, **none, **containers})


def contradicted_version(given: Settings, processes: pl.DataFrame) -> str | None:
    """Returns a sentence if no process can have the given Go version, else None."""
    version = go_version(given.value("go_version"))
    if version is None or processes.is_empty():
        return None
    ranges = list(dict.fromkeys(processes[["go_version_min", "go_version_max"]].rows()))
    oldest = [go_version(low) or version for low, _ in ranges]
    newest = [go_version(high) or version for _, high in ranges]
    if any(low <= version <= high for low, high in zip(oldest, newest, strict=True)):
        return None
    low, high = ranges[0]
    lines = f"{low} to {high}" if high else f"{low} or later"
    return (
        f"The log has the lines of Go {lines if low != high else low}, so Go "
        f"{given.value('go_version')}, which was given, is ignored."
    )


def _of_container(row: dict[str, Any] | None) -> dict[str, Known]:
    if row is None:
        return {}
    # Metrics do not show the state of the container, and platforms only its end.
    source = "message of the platform" if row["error"] else "Kubernetes metrics"
    is_named = row["container_id"] or (row["name"] and row["pod"]) or not row["error"]
    about_state = ("status", "last_status", "event", "reason", "oom_killed")
    is_state = is_named and any(row[name] for name in about_state)
    name = row["name"] or row["container"]
    what = "unit" if (name or "").endswith(".service") else "container"
    where = ", ".join(filter(None, (f"state of the {what}" if is_state else source, name)))
    if row["event"] == STATED:
        where = f"{PurePath(str(row['source'])).name}:{row['line_no']}"
    elif row["is_limit_stated"]:
        where = PurePath(str(row["source"])).name
    is_soft = row["event"] == SLOWED
    values = {
        "memory_limit_mib": _mib(row["gomemlimit_bytes"]),
        "container_limit_mib": _mib(None if is_soft else row["memory_limit_bytes"] or None),
        "cpu_limit": row["cpu_limit"],
        "gogc": as_set(row["gogc"], units.gogc_percent),
        "go_version": row["go_version"],
    }
    return {name: Known(value, where) for name, value in values.items() if value is not None}


def as_set(variable: str | None, read: Callable[[str], float | None]) -> float | str | None:
    """Returns GOGC (%) or GOMEMLIMIT (MiB) from its environment variable.

    Args:
        variable: its value.
        read: the function of `units` that parses it.

    Returns:
        `off`, its number, or None if it is invalid: Go ignores GOGC then, and exits otherwise.
    """
    if not variable:
        return None
    try:
        value = read(variable)
    except BadSettingError:
        return None
    return "off" if value is None else value


METRICS = "metrics"
"""Beginning of the source of settings from metrics."""


def _of_metrics(memstats: pl.DataFrame, processes: pl.DataFrame) -> dict[str, Known]:
    """Returns the last settings of the process with the most cycles."""
    if memstats.is_empty():
        return {}
    longest = longest_process(processes)
    own = memstats if longest is None else memstats.filter(process=longest)
    own = own if len(own) else memstats
    names = ("gogc_pct", "gomemlimit_bytes", "go_version")
    last = {name: own[name].drop_nulls() for name in names}
    known = {}
    if len(last["gogc_pct"]):
        gogc = last["gogc_pct"][-1]
        others = _of_others(memstats, own, "gogc_pct", gogc, _gogc_text) or _earlier(own)
        known["gogc"] = Known("off" if gogc < 0 else float(gogc), METRICS + others)
    if len(last["go_version"]) and go_version(last["go_version"][-1]):
        version = last["go_version"][-1]
        others = _of_others(memstats, own, "go_version", version, str)
        known["go_version"] = Known(version, METRICS + others)
    elif releases := releases_at(newest := newest_time(own)):
        known["go_version"] = Known(releases, f"{METRICS} of {newest:%Y-%m}")
    elif (own["lookups"] > 0).any():
        known["go_version"] = Known("<1.19", f"{METRICS}: later ones count no Lookups")
    if len(limits := last["gomemlimit_bytes"]):
        limit = limits[-1]
        others = _of_others(
            memstats, own, limits.name, limit, lambda size: units.size_text(size / MIB)
        )
        known["memory_limit_mib"] = Known(_mib(limit), METRICS + others)
    elif own["gomemlimit_off"].any():
        known["memory_limit_mib"] = Known(None, METRICS)
    return known


_MOST_NAMED = 3
"""Earlier values, or those of other processes, that are named in a sentence."""


def _of_others(
    memstats: pl.DataFrame, own: pl.DataFrame, name: str, value: Any, text: Callable[[Any], str]
) -> str:
    """Returns the last values of other processes, as the end of a sentence."""
    last = memstats.filter(~pl.col("process").is_in(own["process"].unique().implode()))
    values = last.group_by("process").agg(pl.col(name).drop_nulls().last())[name]
    others = values.drop_nulls().unique().sort()
    others = others.filter(others != value)
    if others.is_empty():
        return ""
    texts = [text(setting) for setting in others.head(_MOST_NAMED)]
    more = ", …" if len(others) > _MOST_NAMED else ""
    return f"; other processes have {', '.join(texts)}{more}"


def _gogc_text(percent: float) -> str:
    return "off" if percent < 0 else f"{percent:g}"


def _earlier(memstats: pl.DataFrame) -> str:
    """Returns the earlier values of GOGC of a process, as the end of a sentence."""
    if memstats["process"].n_unique() != 1:
        return ""
    values = memstats["gogc_pct"].drop_nulls()
    levels = values.filter((values != values.shift()).fill_null(value=True))[:-1]
    if levels.is_empty():
        return ""
    texts = [_gogc_text(level) for level in levels[-_MOST_NAMED:]]
    more = "others, " if len(levels) > _MOST_NAMED else ""
    return f", after {more}{', '.join(texts)}"


LONGEST_REST_S = 185.0
"""Seconds. While GOGC is on, a cycle runs after two minutes without one (forcegcperiod,
runtime/proc.go). In an idle program, the monitor that starts it looks only once a minute."""

_BY_HEAP_SHARE = 0.5
"""Share of the headroom above which the heap, not the 2-minute timer, started the cycle. After a
process was stopped for minutes, its first cycle is a periodic one."""


def _of_cycles(cycles: pl.DataFrame, processes: pl.DataFrame) -> dict[str, Known]:
    """Returns GOGC=off if the time without a cycle exceeds what the runtime allows with GOGC on."""
    longest = longest_process(processes)
    if longest is None:
        return {}
    own = of_process(cycles, longest)
    starts = own["start_s"]
    if not (starts[1:] - starts[:-1] > LONGEST_REST_S).any():
        return {}
    live, num = pl.col("heap_live_mib").shift(), pl.col("gc_num")
    room = pl.col("heap_goal_mib") - live
    rests = own.with_columns(rest_s=pl.col("start_s") - end_s().shift()).filter(
        (pl.col("rest_s") > LONGEST_REST_S)
        & (num == num.shift() + 1)
        & ~pl.col("forced")
        & (room > 0)
        & (pl.col("heap_start_mib") - live > _BY_HEAP_SHARE * room)
    )
    if rests.is_empty():
        return {}
    row = rests.row(0, named=True)
    where = f"no cycle for {duration_text(row['rest_s'])}, {row['source']}:{row['line_no']}"
    return {"gogc": Known("off", where)}


def _of_kills(
    tables: Mapping[str, pl.DataFrame], all_processes: pl.DataFrame
) -> Iterator[dict[str, Known]]:
    """Yields what the OOM kills of the program show."""
    if tables["oom_kills"].is_empty():
        return
    from gctrace_analyzer.analysis.postmortem.death import Death
    from gctrace_analyzer.analysis.postmortem.match import match_all

    kills = tables["oom_kills"].to_dicts()
    matches = match_all([Death.of(kill) for kill in kills], all_processes)
    for kill, match in zip(kills, matches, strict=True):
        is_own = match is not None and match.process in of_program(tables["processes"])
        if is_own and kill["scope"] == "memcg" and kill["limit_bytes"]:
            yield _of_kill(kill, tables["oom_tasks"])


def _of_kill(kill: dict[str, Any], tasks: pl.DataFrame) -> dict[str, Known]:
    """Returns the limit in the program's OOM kill, and other processes' memory under it."""
    from gctrace_analyzer.analysis.postmortem.match import listed_tasks

    limit = kill["limit_bytes"]
    where = f"OOM kill, {PurePath(str(kill['source'])).name}:{kill['line_no']}"
    known = {"container_limit_mib": Known(limit / MIB, where)}
    if kill["pid"] is None:
        # The victim is one of the tasks, but it is unknown which.
        return known
    others = listed_tasks(tasks, kill["source"], kill["line_no"]).filter(
        (pl.col("pid") != kill["pid"]) & (pl.col("rss_bytes") >= NEIGHBOUR_SHARE * limit)
    )
    if len(others):
        names = ", ".join(dict.fromkeys(others["comm"].drop_nulls()))
        known["beside_mib"] = Known(float(others["rss_bytes"].sum()) / MIB, f"{names}; {where}")
    return known


def _off_heap(memstats: pl.DataFrame, go: str | None) -> dict[str, Known]:
    """Returns the resident memory that Go has not mapped or has returned: cgo, mmap, file pages.

    Each resident size is compared with the mapped size of that time. The result is the median of
    the second half, or the last one if larger: a limit has to leave room at the end.
    """
    if not memstats["rss_bytes"].count():
        return {}
    known = outside_go(memstats, go)
    if known.is_empty():
        return {}
    beyond = max(median(known.tail((len(known) + 1) // 2)), float(known[-1]))
    step: Any = memstats["resolution_bytes"].max() or 0
    if beyond < max(OFF_HEAP_MIN_MIB * MIB, _LEAST_STEPS * step):
        return {}
    files = f"with{'out' * bool(memstats['rss_file_bytes'].count())} file pages"
    by = f"MemStats, resident beyond Go's mapped memory, {files}"
    return {"off_heap_mib": Known(beyond / MIB, by)}


def _mib(size: float | None) -> float | None:
    return None if size is None else size / MIB
