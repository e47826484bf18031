"""Results from inputs without GC cycles: memory sizes, kills, and what is missing."""

from __future__ import annotations

import re
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.metrics.goroutines import GREW, growth_of_goroutines
from gctrace_analyzer.analysis.metrics.since_start import shows_costs
from gctrace_analyzer.analysis.postmortem.circumstances import GO_CODE, holders, restarted
from gctrace_analyzer.analysis.postmortem.death import UNITS
from gctrace_analyzer.analysis.postmortem.explanation import KERNEL_LOG
from gctrace_analyzer.analysis.postmortem.facts import LEAST_LIMIT_MIB, MOST_OF_LIMIT
from gctrace_analyzer.analysis.postmortem.group_memory import LOWER_LIMIT, near_limit
from gctrace_analyzer.analysis.postmortem.memory_of_dumps import (
    FEWEST_DUMPS,
    Memory,
    needed_mib,
)
from gctrace_analyzer.analysis.postmortem.remedies import of_stop
from gctrace_analyzer.analysis.settings.known_programs import is_not_go
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.ingest.evidence.cgroups import short_name
from gctrace_analyzer.ingest.evidence.docker import SIGKILL_CODE
from gctrace_analyzer.ingest.evidence.message import AT_LIMIT, OWN_CODE, SLOWED, WAITS
from gctrace_analyzer.ingest.evidence.words import not_started, to_start
from gctrace_analyzer.present.format import (
    count,
    duration,
    mib,
    place,
    printable,
    rounded,
    share,
)
from gctrace_analyzer.present.sections.memory_parts import (
    LEAST_MIB,
    MUCH,
    above_limit,
    goals,
    largest_part,
    of_scavenger,
)
from gctrace_analyzer.present.sections.since_start import (
    GCTRACE,
    KEPT,
    costs,
    figures,
    force_less,
    has_only_go,
    how_to_see_costs,
    is_costly,
    is_little,
    lack_counters,
    of_unread,
)
from gctrace_analyzer.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gctrace_analyzer.analysis.settings.known import Settings
    from gctrace_analyzer.present.report import Report
    from gctrace_analyzer.schema import Row

_LARGEST = re.compile(r"^(?:Resident(?: memory of|:)|Memory of) ([^\s:]{1,64})")
"""The process with the most memory among those that an input lists."""
_MOST_CONTAINERS = 3
_CHANGED = 2.0
"""Factor. Under GOGC=100, a smaller change may occur from one cycle to the next."""
_ROSE = 1.25
"""Factor. A size that is highest in the last of `FEWEST_DUMPS` dumps has risen, unless it went up
and down: then the smallest one of the second half has not risen half as much."""
_TO_RECORD = (
    f"run the program with {GCTRACE}, such as `(date; curl -s URL/metrics) >> dumps.txt` "
    "(`gctrace-analyze prometheus URL` asks a server that scrapes it)."
)
_RECORD = f"R{_TO_RECORD[1:]}"
_RECORD_IF_GO = f"If it is written in Go, {_TO_RECORD}".replace("run the program", "run it")
HOLDS = (
    "To see what holds the heap, take a heap profile (`go tool pprof "
    "http://HOST:PORT/debug/pprof/heap`)."
)
_OUTSIDE = (
    "Find out what grows outside Go: cgo, mmap, pages of files, libraries. No heap profile of Go "
    "shows it; `/proc/PID/smaps` of Linux and VMMap of Windows do."
)
_RECORD_LATER = "To see what GC costs, record it again under load."
_OFF = (
    "GOGC is off: without GOMEMLIMIT, GC never starts by itself and the heap only grows. If the "
    "program runs long, set GOMEMLIMIT too."
)
_RECORD_TOO = "Add the log of the same run (GODEBUG=gctrace=1) to see what it costs."
_LAST_WORDS = f"Read what it printed last; to see what GC costs, run it with {KEPT}."
_EXIT_CODES = {
    0: "it finished",
    GO_CODE: "in Go, that of a panic, a fatal error or a wrong flag",
    134: "SIGABRT",
    139: "SIGSEGV",
    143: "SIGTERM: it was asked to stop",
}
_OF_BENCHMARKS = (
    "Compare it with another one (`gctrace-analyze compare base.log head.log`), and run both with "
    "GODEBUG=gctrace=1 to see what GC costs in each benchmark."
)
_NOT_KILLABLE = (
    "Find out which processes of the cgroup, or of the host, have an oom_score_adj of -1000 and "
    "are never killed (/proc/PID/oom_score_adj), and whether the limit leaves room for them."
)

_LIMIT_OTHER = "Limit the memory of {} by its own settings, or give it more."
_ADD_WHOLE = "Add the log as the program printed it."
_LET_KILL = "Raise its limit, which lets its processes go on, or turn its OOM killer on."
_PANICS = "With vm.panic_on_oom=0 the kernel kills one process instead of stopping the host."


def no_verdict(report: Report) -> tuple[str, str]:
    """Returns what an input without a verdict shows, and what to add; both are sentences."""
    tables, settings = report.analysis.tables, report.analysis.settings
    if (ended := _of_ends(tables)) is not None:
        return ended
    unnamed = "Its control group" if report.analysis.memory else "The container"
    states = tables["container_states"]
    used = [*islice(dict.fromkeys(_used_of_limits(states, unnamed)), _MOST_CONTAINERS)]
    if restarts := [*islice(_restarted(states), _MOST_CONTAINERS)]:
        is_slowed = (states["event"] == SLOWED).any()
        advice = _next_of_used(report, used) if is_slowed else _LAST_WORDS
        return " ".join([*restarts, *used]), advice
    if report.analysis.memory:
        said = [*costs(report)], [*(above_limit if figures(report) else _sizes)(report)]
        if not shows_costs(report.analysis.dumps.since_start):
            said = said[::-1]
        return " ".join(chain(*said, used)), _next_of_memory(report)
    if used:
        return " ".join(used), _next_of_used(report, used)
    if (profiled := report.analysis.profiled) and (shown := profiled.allocation):
        return f"The profile shows no costs of GC. In it, {shown}.", _RECORD_TOO
    if runs := len(tables["benchmarks"]):
        return (
            f"The input has {count(runs, 'run')} of benchmarks, and no gctrace.",
            _OF_BENCHMARKS,
        )
    if returned := " ".join(of_scavenger(report)):
        return f"The input does not show what GC costs. {returned}", _RECORD
    log = report.analysis.log
    if log.notes and all(source.found.keys() == {"notes"} for source in log.sources):
        shown = " ".join(note.split(": ", 1)[-1] for note in log.notes)
        largest = _LARGEST.search(shown)
        name = largest[1] if largest else None
        record = _RECORD if has_only_go(report, [name]) else _RECORD_IF_GO
        return shown, _LIMIT_OTHER.format(name) if is_not_go(name) else record
    unread = of_unread(tables["rejected"])
    return (unread, _ADD_WHOLE) if unread else _of_settings(settings)


def _of_settings(settings: Settings) -> tuple[str, str]:
    """Returns what settings alone show, and what to do."""
    own, limit = map(settings.value, ("memory_limit_mib", "container_limit_mib"))
    if not (limit and isinstance(own, float) and own > DEFAULT.tight_limit_share * limit):
        return "The input does not show how the garbage collector performs.", ""
    return (
        f"GOMEMLIMIT is {mib(own)}, which leaves no room for memory that Go does not count below "
        f"the container's limit, {mib(limit)}.",
        LOWER_LIMIT.format(int(MOST_OF_LIMIT * limit), "the limit"),
    )


def _next_of_used(report: Report, used: list[str]) -> str:
    """Returns what to do about containers of which only the memory use is known."""
    states, settings = report.analysis.tables["container_states"], report.analysis.settings
    if used[0].startswith("The node "):
        return ""
    if (states["event"] == WAITS).any():
        return _LET_KILL
    most = pl.coalesce("memory_now_bytes", "memory_used_bytes") / pl.col("memory_limit_bytes")
    is_enough = pl.col("memory_limit_bytes") > LEAST_LIMIT_MIB * MIB
    is_near = (most > MOST_OF_LIMIT) | pl.col("event").eq_missing(SLOWED)
    near = states.filter(is_enough, is_near)
    for row in near.sort(most, descending=True).head(1).iter_rows(named=True):
        given = (row["gomemlimit_bytes"] or 0) / MIB or None
        if states.select(pl.coalesce("name", "container", "pod")).n_unique() == 1:
            given = given or settings.value("memory_limit_mib")
        return near_limit(row, _subject(row, "it").replace("The ", "the ", 1), given)
    if has_only_go(report, states.select(pl.coalesce("name", "container")).to_series()):
        return _RECORD.replace("the program", "one of them") if len(used) > 1 else _RECORD
    return _RECORD_IF_GO.replace("If it", "If one of them" if len(used) > 1 else "If it")


def _next_of_memory(report: Report) -> str:
    """Returns what to do about a program of which memory sizes are known."""
    if is_costly(report):
        return force_less(report) or f"To get settings that lower it, {_TO_RECORD}"
    if report.analysis.dumps.since_start["gc_cycles"].max() == 0:
        return _OFF if report.analysis.settings.value("gogc") == "off" else _RECORD_LATER
    of_costs = "" if is_little(report) else how_to_see_costs(report)
    if part := largest_part(report):
        return f"{part}\n{of_costs}".rstrip()
    if len(report.analysis.memory) == 1 and _grew_beyond_go(report.analysis.tables["memstats"]):
        return f"{_OUTSIDE}\n{of_costs}".rstrip()
    sizes = [(own.needed_mib or 0.0, own.rss_mib or 0.0) for own in report.analysis.memory]
    is_small = all(needed < max(LEAST_MIB, resident / 2) for needed, resident in sizes)
    is_profile = any(source.kind == "pprof" for source in report.analysis.log.sources)
    if is_small or is_profile:
        return of_costs if lack_counters(report) else of_costs and _RECORD
    return f"{of_costs}\n{HOLDS}".lstrip()


def _of_ends(tables: Mapping[str, pl.DataFrame]) -> tuple[str, str] | None:
    """Returns what an input shows about ends, or about signs of one, and what to add."""
    if len(ran := tables["oom_invocations"]):
        sentence, advice = without_victim(ran)
        return " ".join((sentence, *holders(tables["oom_tasks"]))), advice
    if len(tables["oom_tasks"]):
        number = count(len(tables["oom_tasks"]), "task")
        listed = (
            f"The kernel listed {number}, as it does before an OOM kill, but the kill itself is "
            "not in the input."
        )
        return " ".join((listed, *holders(tables["oom_tasks"]))), KERNEL_LOG
    states = tables["container_states"]
    if len(stopped := states.filter(event="stop").drop_nulls("stopped_by")):
        said = (
            f"{_subject(row)} was ended: {row['stopped_by']}." for row in stopped.to_dicts()
        )
        text = " ".join(islice(dict.fromkeys(said), _MOST_CONTAINERS))
        return text, of_stop(stopped["stopped_by"][0])[0]
    ends = " ".join(islice(otherwise_ended(states), _MOST_CONTAINERS))
    why = next(filter(None, map(not_started, states.iter_rows(named=True))), None)
    return (ends, to_start(why) if why else _LAST_WORDS) if ends else None


def _subject(row: Row, unnamed: str = "The container") -> str:
    """Returns the name of a container, a pod or a systemd unit."""
    if name := row["name"] or row["container"]:
        return f"The {'unit' if name.endswith(UNITS) else 'container'} {name}"
    kind = "pod" if row["pod"] else "node"
    return f"The {kind} {row[kind]}" if row[kind] else unnamed


def otherwise_ended(states: pl.DataFrame, least: int = 0) -> Iterator[str]:
    """Yields how each container ended that was not killed, with at least this exit code."""
    for row in states.iter_rows(named=True):
        code = row["exit_code"]
        if why := not_started(row):
            yield f"{_subject(row)} did not start: {printable(why)}."
        is_end = {row["status"], row["last_status"]} & {"exited", "dead", "terminated"}
        is_killed = row["oom_killed"] or code == SIGKILL_CODE
        if why or not is_end or is_killed or code is None or code < least:
            continue
        means = f" ({_EXIT_CODES[code]})" if code in _EXIT_CODES else ""
        restarts = row["restart_count"]
        again = f"; it was {restarted(restarts, row['restarts_in_s'])}" if restarts else ""
        yield (
            f"{_subject(row)} ended with exit code {code}{means}, not by "
            f"SIGKILL, as a kill for memory would ({SIGKILL_CODE}){again}."
        )


def _restarted(states: pl.DataFrame) -> Iterator[str]:
    """Yields how often each container without a known end was restarted."""
    known = states.filter(
        pl.col("restart_count") > 0, ~pl.col("oom_killed").fill_null(value=False)
    )
    for row in known.iter_rows(named=True):
        often = restarted(row["restart_count"], row["restarts_in_s"])
        is_pod = row["pod"] and not (row["name"] or row["container"])
        who = _subject(row)
        who = f"Containers of {who[0].lower()}{who[1:]} were" if is_pod else f"{who} was"
        yield f"{who} {often}; the input does not say why."


def _used_of_limits(states: pl.DataFrame, unnamed: str) -> Iterator[str]:
    """Yields how close to its limit each container is that was not killed (`unnamed`: no name)."""
    sizes = ("memory_now_bytes", "memory_used_bytes", "memory_limit_bytes")
    used_bytes = pl.coalesce(sizes[:2])
    alive = states.filter(~pl.col("oom_killed").fill_null(value=False))
    nearest = [used_bytes / pl.col(sizes[-1]), used_bytes]
    alive = alive.sort(nearest, descending=True, nulls_last=True, maintain_order=True)
    for row in alive.iter_rows(named=True):
        # A limit of 0 is none.
        now, most, limit = ((row[name] or 0) / MIB or None for name in sizes)
        used, subject = most if now is None else now, _subject(row, unnamed)
        swap = (row["memory_swap_bytes"] or 0) / MIB
        hits = f", and hit that {row['failcnt']:,} times" if row["failcnt"] else ""
        if row["event"] == WAITS:
            of = "" if limit is None else f" of {mib(limit)}"
            yield (
                f"{subject} reached its memory limit{of} with its OOM killer off "
                "(oom_kill_disable): then its processes wait until memory is free, instead of "
                "being killed."
            )
        elif row["event"] == SLOWED and limit is not None:
            yield (
                f"{subject} used {mib(used)}, and has reached its MemoryHigh, {mib(limit)}: above "
                "it, the kernel takes memory back and slows its processes down, and kills none"
                f"{f'; {mib(swap)} more are in swap' if swap else ''}."
            )
        elif used is not None and limit is not None:
            cache = ", and more if part of it is page cache" * (used > MOST_OF_LIMIT * limit)
            left = f"{mib(limit - used)} are left{hits or cache}"
            # A status of its own: a signal would be printed as "signal: killed".
            by_itself = OWN_CODE in (row["error"] or "") and used < limit
            no_kill = f", and its runtime ended with {OWN_CODE}, not by the limit" * by_itself
            over = (
                f"it {'is over' if mib(used) != mib(limit) else 'has reached'} its limit{hits}"
            )
            if subject.endswith(UNITS):
                over += ", page cache included, which the kernel frees before it kills"
            in_swap = "and {} of swap" if subject.endswith(UNITS) else "{} of it swapped out"
            swapped = f", {in_swap.format(mib(swap))}" if swap else ""
            peak = (
                f" It used at most {mib(most)} ({share(most / limit)})."
                if most is not None and mib(most) != mib(used)
                else ""
            )
            yield (
                f"{subject} used {mib(used)} of its {mib(limit)} ({share(used / limit)})"
                f"{swapped}: {left if used < limit else over}{no_kill}.{peak}"
            )
        elif used is not None and row["memory_of_host_bytes"]:
            of = row["memory_of_host_bytes"] / MIB
            yield (
                f"{subject} used {mib(used)} of {mib(of)} ({share(used / of)}), its limit or, if "
                "it has none, the memory of its host."
            )
        elif row["failcnt"] or row["event"] == AT_LIMIT:
            job = row["name"] or row["container"] or row["pod"] or "The container"
            often = f"{row['failcnt']:,} times" if row["failcnt"] else "at least once"
            yield (
                f"{subject if row['failcnt'] else job} reached its memory limit {often}, which "
                "does not always kill it."
            )
        elif now is not None:
            # `systemctl status` prints sizes of 1 GiB or more in tenths of it.
            size = partial(rounded, step=102.4) if subject.endswith(UNITS) else mib
            printed, peak = size(now), size(most)
            most_of = f" ({peak} at most)" if peak not in (printed, mib(None)) else ""
            yield f"{subject} used {printed}{most_of}."


def without_victim(invocations: pl.DataFrame) -> tuple[str, str]:
    """Returns that the OOM killer ran without a victim in the input, and what to add."""
    nothing = invocations["nothing_killable"].fill_null(value=False).all()
    panicked = invocations["panicked"].fill_null(value=False).any()
    advice = _NOT_KILLABLE if nothing else _PANICS if panicked else KERNEL_LOG
    first = invocations.row(0, named=True)
    exiting = invocations.drop_nulls("comm")
    programs = invocations["invoker_comm"].drop_nulls().unique().sort()
    by = f" while {programs[0]} asked for memory" if len(programs) == 1 else ""
    where = place(first["source"], first["line_no"], whole=True)
    limit, scope, path = (
        invocations[name][0] if invocations[name].n_unique() == 1 else None
        for name in ("limit_bytes", "scope", "oom_memcg")
    )
    # Its trace shows a lack of pages, but not whether of all memory nodes.
    of = ", probably because the host ran out of memory" if scope == "global" else ""
    of = ", because somebody started it (SysRq+F)" if first["order"] == -1 else of
    if scope == "memcg":
        group = printable(short_name(path)) if path else "a container or unit"
        size = "" if limit is None else f", {mib(limit / MIB)}"
        of = f", because {group} reached its memory limit{size}"
    times = f" {len(invocations):,} times, first" if len(invocations) > 1 else ""
    killed = " and found no process that it may kill" if nothing else ""
    if panicked:
        killed += "; the kernel panicked, which stops or restarts the whole host"
    elif len(exiting) == len(invocations):
        chosen = f"{printable(first['comm'])} (pid {first['pid']})"
        killed, advice = f": {chosen}, which it chose, was already exiting", ""
    elif not nothing:
        killed = "; the input does not show what it killed"
    return f"The OOM killer ran{times}{by} ({where}){of}{killed}.", advice


def _sizes(report: Report) -> Iterator[str]:
    """Yields how much memory the only program needed and obtained, and the heap goals."""
    known = [memory for memory in report.analysis.memory if memory.needed_max_mib is not None]
    if len(known) > 1:
        return
    held = {
        rounded(memory.sys_mib, memory.resolution_mib)
        for memory in known or report.analysis.memory
        if memory.sys_mib is not None
    }
    parts = [f"the runtime obtained {held.pop()} from the OS"] if len(held) == 1 else []
    dumps = report.analysis.tables["memstats"]
    for memory in known:
        returned = memory.released_mib or 0.0
        # What an earlier dump had returned is no part of what the last one had obtained.
        if parts and dumps["heap_released_bytes"][-1] is not None:
            back = rounded(returned, memory.resolution_mib) if returned else "none"
            parts = [f"{parts[0]} and returned {back} of it"]
        elif not parts and returned > MUCH * (memory.heap_sys_mib or 0.0):
            parts = [f"{mib(returned)} were returned to the OS"]
        named = memory.needed_is or ""
        subject = named if named.startswith("the ") else f"the {named}"
        parts.insert(0, f"{subject} {_course(memory, dumps)}")
        if memory.rss_mib is not None:
            is_small = memory.sys_mib and memory.rss_mib < LEAST_MIB
            beyond = memory.rss_mib - (memory.sys_mib or 0.0) if is_small else 0.0
            of_others = f", at least {mib(beyond)} of it not in Go's count" * (beyond > 0)
            was = _resident(dumps, memory)
            parts.append(was + of_others * ("more than" not in was))
    if text := "; ".join(parts):
        yield f"{text[0].upper()}{text[1:]}."
    if numbers := growth_of_goroutines(dumps):
        yield f"{GREW} from {numbers[0]:,} to {numbers[1]:,}."
    yield from above_limit(report)
    yield from goals(dumps)


def _resident(dumps: pl.DataFrame, memory: Memory) -> str:
    """Returns the resident memory at the end, and its maximum."""
    at_end = memory.rss_mib or 0.0
    if memory.dumps == 1:
        return f"{rounded(at_end, memory.resolution_mib)} were resident"
    if (grew := _grew_beyond_go(dumps)) is not None:
        first_mib, beyond_mib = grew
        return (
            f"resident memory rose from {mib(first_mib)} to {mib(at_end)}, {mib(beyond_mib)} more "
            "than what Go obtained"
        )
    sizes = (dumps["rss_bytes"].drop_nulls().cast(pl.Float64) / MIB).to_list()
    first, most = sizes[0], max(sizes)
    if _has_risen(sizes):
        step = memory.resolution_mib
        return f"resident memory rose from {rounded(first, step)} to {rounded(at_end, step)}"
    peak = f" ({rounded(most, memory.resolution_mib)} at most)" if most > at_end else ""
    return f"{rounded(at_end, memory.resolution_mib)} were resident at the end{peak}"


def _grew_beyond_go(dumps: pl.DataFrame) -> tuple[float, float] | None:
    """Returns the first resident size, and the last size beyond all that Go obtained, in MiB.

    None if nothing may have changed: memory that Go obtained need not have been resident at first.
    """
    sizes = dumps.select("rss_bytes", "sys_bytes").drop_nulls().cast(pl.Float64) / MIB
    if len(sizes) < 2:
        return None
    first, last = sizes.row(0), sizes.row(-1)
    beyond = last[0] - last[1]
    return (first[0], beyond) if beyond > first[0] else None


def rise(report: Report) -> tuple[str, str]:
    """Returns how the memory of the only program rose between dumps, and what to do.

    Both are empty if it did not rise, or if a finding reports it.
    """
    names = {finding.name for finding in report.analysis.findings}
    if len(report.analysis.memory) != 1 or not report.analysis.by_dumps or names & _OF_GROWTH:
        return "", ""
    memory, dumps = report.analysis.memory[0], report.analysis.tables["memstats"]
    course, named = _course(memory, dumps), memory.needed_is or ""
    if not course.startswith("rose") or (memory.needed_mib or 0.0) <= LEAST_MIB:
        return "", ""
    subject = named if named.startswith("the ") else f"the {named}"
    span = f"within {duration(memory.elapsed_s)}, " if memory.elapsed_s else ""
    steps = needed_mib(dumps)[0].drop_nulls().diff().drop_nulls()
    cycles, still = memory.gcs_between or 0, steps[-1] > 0 and (steps >= 0).all()
    never = still and min(cycles, len(steps)) >= FEWEST_DUMPS - 1
    rising = (
        f", and was no lower in any of {len(steps) + 1} dumps than in the one before" * never
    )
    text = f"{span}{subject} {course}{rising}."
    return f"{text[0].upper()}{text[1:]}", _STILL_RISES * never


_STILL_RISES = (
    "If it keeps rising, compare two heap profiles (`go tool pprof -diff_base`, "
    "/debug/pprof/heap)."
)
_OF_GROWTH = {"live-heap-growth", "off-heap-growth"}


def _course(memory: Memory, dumps: pl.DataFrame) -> str:
    """Returns how the needed memory changed from the first dump to the last."""
    first, last, most = memory.needed_first_mib, memory.needed_mib, memory.needed_max_mib
    step, (sizes, _) = memory.resolution_mib, needed_mib(dumps)
    is_course = memory.dumps > 1 and dumps["process"].n_unique() == 1
    if is_course and first is not None and last is not None and most is not None:
        begin, peak, end = (rounded(size, step) for size in (first, most, last))
        is_change = not first / _CHANGED < last < first * _CHANGED
        if begin != end and (is_change or _has_risen(sizes.drop_nulls().to_list())):
            went = "rose" if begin != peak else "fell"
            if begin != peak != end:
                return f"{went} from {begin} to {peak}, and was {end} at the end"
            return f"{went} from {begin} to {end}"
    return f"was {rounded(most or 0.0, step)}{' at most in the dumps' * (memory.dumps > 1)}"


def _has_risen(sizes: Sequence[float]) -> bool:
    half = len(sizes) // 2
    is_highest = len(sizes) >= FEWEST_DUMPS and sizes[-1] == max(sizes) > _ROSE * sizes[0]
    return is_highest and min(sizes[half:]) > (1 + _ROSE) / 2 * min(sizes[:half])
