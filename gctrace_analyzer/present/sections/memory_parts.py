"""The parts of the memory that a program holds, and how to reduce each part."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gctrace_analyzer.analysis.postmortem.memory_of_dumps import programs
from gctrace_analyzer.analysis.postmortem.memory_of_scavenger import (
    calls_of_free_os_memory,
    idle_kept_mib,
    last_scavenge,
)
from gctrace_analyzer.analysis.settings.releases import (
    go_version,
    may_keep_returned,
    may_limit,
    may_use_madv_free,
)
from gctrace_analyzer.ingest.processes import go_versions
from gctrace_analyzer.ingest.rows import distinct
from gctrace_analyzer.present.document import Table
from gctrace_analyzer.present.format import (
    duration,
    is_rounded,
    mib,
    printable,
    rounded,
    rounded_range,
    share,
    shares_between,
)
from gctrace_analyzer.units import MIB, times_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import polars as pl

    from gctrace_analyzer.analysis.analysis import Analysis
    from gctrace_analyzer.present.report import Report
    from gctrace_analyzer.schema import Row


class _Part(NamedTuple):
    """A part; its size is exact, or the middle of a range."""

    name: str
    size_mib: float
    remedy: str
    within_mib: float = 0.0


LEAST_STACK_MIB = 2 / 1024
"""The smallest stack of a goroutine (`_StackMin`, since Go 1.4)."""

_OF_RUNTIME = (
    ("stacks", ("stack_inuse_bytes", "stack_sys_bytes"), "fewer goroutines (pprof: goroutine)"),
    ("GC metadata", ("gc_sys_bytes",), "a restart, then a smaller heap"),
    ("spans", ("mspan_sys_bytes", "mspan_inuse_bytes"), "a smaller heap of larger objects"),
    ("profiling", ("buck_hash_sys_bytes",), "runtime.MemProfileRate"),
    (
        "runtime (OtherSys)",
        ("other_sys_bytes",),
        "a restart, then fewer finalizers, connections, traces (no GOGC)",
    ),
)
_LEAST_REMEDY = 30
"""Fewest characters per line of a remedy, which takes several lines if there is no room."""

MUCH = 0.25
"""Share of what Go obtained. A part this large gets a sentence."""

_CONSPICUOUS = 0.1
"""Share of the memory. If no part explains this much of it, that gets a row."""

LEAST_MIB = 64.0
"""MiB. A smaller part of the memory gets no row."""

_MOST = 0.5
"""Share of the memory. The report first names a part of this size."""

_ALLOCATED = ("heap_alloc_bytes", "alloc_bytes")
_IN_USE, _OBJECTS = "heap in use", "heap objects"
_HEAP = (_IN_USE, _OBJECTS)
_AT_LEAST, _PROBABLY = " (at least)", " (probably)"

_IN_WORDS = {
    "of RSS": "of RSS",
    "of peak": "of the peak RSS",
    "of Go": "of what Go holds",
    "obtained": "of what Go obtained",
    "of heap": "of the heap",
}

_HEAD = {
    "of RSS": "of {} RSS",
    "of peak": "of {} peak RSS",
    "of Go": "of {} of Go",
    "obtained": "of {} obtained",
    "of heap": "of {} heap",
}
"""The heading of the shares, by their total."""

_MOST_SENTENCES = 3

_NEAR_LIMIT = 0.95
"""Share of GOMEMLIMIT. With more, the limit sets the heap goal, and a lower one is not kept."""

_TENTH_OF_PERCENT = 0.001
_SMALL = 0.01
"""Share. Smaller parts are left out."""


def memory_parts(report: Report) -> Table | None:
    """Returns the parts of the memory of the only program, from its last dump with sizes."""
    if (known := _known(report)) is None:
        return None
    parts, total, of = known
    rest, row = total - sum(part.size_mib for part in parts), _last(report)
    # Memory in a peak beyond later parts may be gone.
    step, digit = (_step(row), _digit(row)) if row else (0.0, 0.0)
    if rest > _CONSPICUOUS * total and of != "of peak":
        unknown = "unknown: the input does not say what it is"
        goroutines = (row or {}).get("goroutines") or 0
        stacks = goroutines * LEAST_STACK_MIB
        if not (row or {}).get("stack_inuse_bytes") and _SMALL * total < stacks < rest:
            unknown = (
                f"fewer goroutines: {goroutines:,} have stacks of at least "
                f"{mib(stacks)}; the rest is unknown"
            )
        parts.append(_Part("other memory", rest, unknown, step))
    rows = [
        (part.name, *_printed(part, total, digit), part.remedy)
        for part in parts
        if part.size_mib > max(_SMALL * total, part.within_mib)
    ]
    if len(rows) < 2:
        return None
    several = report.analysis.memory[-1].dumps > 1
    label = "Memory, last dump" if several else "Memory by use"
    head = (label, "size", _HEAD[of].format(rounded(total, digit)), "what lowers it")
    return Table(head, "lrrl", rows, least=(0, 0, 0, _LEAST_REMEDY))


def _digit(row: Mapping[str, int | None]) -> float:
    """Returns the unit of the last digit of the sizes in MiB; 0 for bytes."""
    return _mib(row, "resolution_bytes") or 0.0


def _step(row: Mapping[str, int | None]) -> float:
    """Returns that unit if sums and differences of sizes become ranges by it, otherwise 0."""
    return _digit(row) if _digit(row) > _SMALL * (_total(row) or 0.0) else 0.0


def _within(row: Mapping[str, int | None], *names: str) -> float:
    """Returns the possible error of a sum or difference of such sizes, in MiB."""
    step, sizes = _step(row), (_mib(row, name) for name in names)
    return sum(step / 2 for size in sizes if size is not None and is_rounded(size, step))


def _printed(part: _Part, total: float, step: float) -> tuple[str, str]:
    """Returns the size and share of a part with only reliable digits."""
    size, within = part.size_mib, part.within_mib
    if not within:
        parts = ((size, 1 / total), (total, size / total**2))
        error = sum(step / 2 * times for known, times in parts if is_rounded(known, step))
        is_coarse = error > _TENTH_OF_PERCENT / 2
        of_all = f"{100 * size / total:.0f} %" if is_coarse else share(size / total)
        return rounded(size, step), of_all
    low, high = size - within, size + within
    return rounded_range(low, high, step), shares_between(low / total, min(high / total, 1.0))


def largest_part(report: Report) -> str:
    """Returns the largest part of that memory and how to reduce it; empty for the heap in use."""
    if (known := _known(report)) is None:
        return ""
    parts, total, of = known
    part = max(parts, key=lambda part: part.size_mib)
    if part.name in _HEAP or part.size_mib < _MOST * total:
        return ""
    size, of_all = _printed(part, total, _digit(_last(report) or {}))
    bound = next(filter(part.name.endswith, (_AT_LEAST, _PROBABLY)), "")
    size = f"{bound.strip(' ()')} {size}".lstrip()
    size += " at its peak" * (of == "of peak" and bool(bound))
    name = f"{part.name.removesuffix(bound)} ({size}, {of_all} {_IN_WORDS[of]})"
    return f"Most of the memory is {name}. What lowers it: {part.remedy}."


def _known(report: Report) -> tuple[list[_Part], float, str] | None:
    """Returns the parts, their total in MiB, and its name; None if they are of no interest."""
    row = _last(report)
    total = None if row is None else _total(row)
    if row is None or total is None or total < LEAST_MIB:
        return None
    parts = [*_parts(row, report.analysis)]
    # Mapped memory need not be resident, so resident memory may be less than a part.
    if not parts or max(part.size_mib for part in parts) > total:
        return None
    resident = row["rss_bytes"] or row["rss_peak_bytes"]
    if resident and sum(part.size_mib for part in parts) > total and (held := _held(row)):
        total, resident = held, None
    of_process = "of RSS" if row["rss_bytes"] else "of peak"
    if resident:
        return parts, total, of_process
    if not _held(row):
        others = {part.name for part in _of_runtime(row)}
        return [part for part in parts if part.name not in others], total, "of heap"
    # What was returned, if that is unknown, still counts as obtained.
    known = (row[name] for name in ("heap_released_bytes", "mapped_bytes"))
    return parts, total, "obtained" if all(size is None for size in known) else "of Go"


def memory_sentences(report: Report) -> Iterator[str]:
    """Yields a sentence on memory that no GOGC changes, and on the scavenger's reports."""
    known = report.analysis.memory
    said = "" if report.verdict else largest_part(report)
    sentences = [
        (size, f"{printable(memory.of or memory.source)}: {text}" if len(known) > 1 else text)
        for memory, dumps in zip(
            known, programs(report.analysis.tables["memstats"]), strict=True
        )
        for size, text in _not_heap(dumps.row(-1, named=True))
        if mib(size) not in said
    ]
    yield from (text for _, text in sorted(sentences, reverse=True)[:_MOST_SENTENCES])
    yield from of_scavenger(report)


def _not_heap(row: Mapping[str, int | None]) -> Iterator[tuple[float, str]]:
    """Yields the size of each large part of the runtime's memory, and a sentence."""
    held = _held(row) or 0.0
    for part in _of_runtime(row) if held > LEAST_MIB else ():
        if part.size_mib > MUCH * held:
            of_held = f"{mib(part.size_mib)} of the {mib(held)} that Go holds"
            text = f"({share(part.size_mib / held)}) are {part.name}, not heap."
            yield part.size_mib, f"{of_held} {text} What lowers it: {part.remedy}."


def _last(report: Report) -> Mapping[str, int | None] | None:
    dumps = report.analysis.tables["memstats"]
    return None if len(report.analysis.memory) != 1 else dumps.row(-1, named=True)


def _total(row: Mapping[str, int | None]) -> float | None:
    """Returns the total for the shares in MiB: resident memory, all of Go's, or the heap."""
    parts = _mib(row, "heap_idle_bytes"), _mib(row, "heap_inuse_bytes", *_ALLOCATED)
    heap = None if None in parts else sum(filter(None, parts))
    resident = _mib(row, "rss_bytes"), _mib(row, "rss_peak_bytes")
    heap = _mib(row, "heap_sys_bytes") or heap
    kept = heap and heap - (_mib(row, "heap_released_bytes") or 0.0)
    return next((size for size in (*resident, _held(row), kept) if size), None)


def _held(row: Mapping[str, int | None]) -> float | None:
    """Returns what Go obtained and, as far as known, did not return, in MiB."""
    sys, mapped = _mib(row, "sys_bytes"), _mib(row, "mapped_bytes")
    # Some programs export it as one figure.
    return mapped or (sys and max(sys - (_mib(row, "heap_released_bytes") or 0.0), 0.0))


def _mib(row: Mapping[str, int | None], *names: str) -> float | None:
    known = (row[name] for name in names)
    return next((size / MIB for size in known if size is not None), None)


def _parts(row: Mapping[str, int | None], analysis: Analysis) -> Iterator[_Part]:
    """Yields the heap, the runtime's other memory, and what is not Go's."""
    go, limit = map(analysis.settings.value, ("go_version", "memory_limit_mib"))
    at_limit = isinstance(limit, int | float) and (_held(row) or 0.0) > _NEAR_LIMIT * limit
    # Dumps need not name a limit that thrashes; a lower one makes it worse.
    at_limit |= "limit-thrash" in analysis.episodes["kind"]
    yield from _of_heap(row, may_limit=may_limit(go) and not at_limit, at_limit=at_limit)
    of_runtime = [*_of_runtime(row)]
    yield from of_runtime
    sys, heap, in_use = (
        _mib(row, f"{part}_bytes") for part in ("sys", "heap_sys", "heap_inuse")
    )
    if sys is not None and heap is not None and heap >= (in_use or 0.0):
        rest = sys - heap - sum(part.size_mib for part in of_runtime)
        is_known = _mib(row, "stack_inuse_bytes", "stack_sys_bytes") is not None
        lowers = "unknown: tables of the runtime that the input does not name"
        lowers = lowers if is_known else _STACKS_OR_TABLES
        yield _Part("outside the heap", rest, lowers)
    yield from _beyond_go(row, go)


_STACKS_OR_TABLES = "fewer goroutines if it is stacks; unknown if it is tables of the runtime"
_DROPPED = "the kernel, when memory is needed; the executable's pages are among them"
_KEPT = ("returned, kept", "GODEBUG=madvdontneed=1, or Go 1.16 and later")
_MAY_BE_KEPT = ("returned, or other", "Go 1.12–1.15: madvdontneed=1; else less {}code")
"""Text for memory that neither the Go version nor the C code explains."""


def _beyond_go(row: Mapping[str, int | None], go: str | None) -> Iterator[_Part]:
    """Yields the resident memory that Go does not hold, or may not hold."""
    released, of_go = _mib(row, "heap_released_bytes"), _held(row)
    is_known = released is not None or row["mapped_bytes"] is not None
    # Not all that Go obtained needs to be resident; huge pages may make returned memory resident.
    name = _PROBABLY if released else _AT_LEAST
    if row["rss_bytes"] is None:
        # Memory that Go obtained never shrinks, so a peak beyond it was not Go's.
        name, is_known, of_go = _AT_LEAST, False, _mib(row, "sys_bytes")
    resident = _mib(row, "rss_bytes", "rss_peak_bytes")
    heap = [_mib(row, f"heap_{part}_bytes") for part in ("inuse", "free")]
    if resident is not None and of_go is None and None not in heap:
        rest = resident - sum(filter(None, heap))
        yield _Part(
            "outside the heap", rest, "less cgo, mmap, files, code; or it is of the runtime"
        )
    if resident is None or of_go is None or resident <= of_go:
        return
    beyond, kept = resident - of_go, may_keep_returned(row, go)
    of_files = _mib(row, "rss_file_bytes") if row["rss_bytes"] is not None else None
    if of_files:
        yield _Part("pages of files", min(of_files, beyond), _DROPPED)
        beyond = max(beyond - of_files, 0.0)
    of_c = min(_mib(row, "cgo_bytes") or 0.0, beyond)
    if of_c:
        yield _Part("C code (cgo)", of_c, "smaller caches in C (no GOGC or GOMEMLIMIT)")
        beyond -= of_c
    within = _within(row, "rss_bytes", "mapped_bytes", *(["cgo_bytes"] if of_c else []))
    if is_known and released and kept is not False:
        # Nothing shows how much of it the host has taken back.
        of_returned = min(released, beyond)
        said, less = _KEPT if kept else _MAY_BE_KEPT
        less = less.format("" if of_c else "cgo, ")
        yield _Part(said, of_returned, less, within if of_returned == beyond else 0.0)
        beyond -= of_returned
    if beyond > 0:
        files = ", pages of files (such as the executable's)" * (of_files is None)
        less = f"less {'' if of_c else 'cgo, '}mmap{files}; no GOGC or GOMEMLIMIT"
        yield _Part(f"outside Go{name}", beyond, less, within)


def _of_heap(
    row: Mapping[str, int | None], *, may_limit: bool, at_limit: bool
) -> Iterator[_Part]:
    """Yields the objects, the free memory between them, and the idle memory."""
    in_use, idle, released = (
        _mib(row, f"heap_{name}_bytes") for name in ("inuse", "idle", "released")
    )
    objects, whole, within = _mib(row, *_ALLOCATED), _mib(row, "heap_sys_bytes"), 0.0
    # HeapSys is HeapInuse and HeapIdle.
    if in_use is None and whole is not None and idle is not None:
        in_use = max(whole - idle, 0.0)
        within = _within(row, "heap_sys_bytes", "heap_idle_bytes")
    lower = f", lower GOGC{' or GOMEMLIMIT' * may_limit}"
    fewer = f"fewer live objects{lower * (not at_limit)}"
    if in_use is not None and (objects is None or objects > in_use):
        yield _Part(_IN_USE, in_use, fewer, within)
    elif objects is not None:
        yield _Part(_OBJECTS, objects, fewer)
        # Objects never move: one that stays keeps its whole span.
        yield _Part(
            "free inside spans",
            (in_use or objects) - objects,
            "lower peaks; fewer objects that stay",
            within,
        )
    kept, within = _mib(row, "heap_free_bytes"), 0.0
    if idle is None and whole is not None and in_use is not None:
        idle = max(whole - in_use, 0.0)
        within = _within(row, "heap_sys_bytes", "heap_inuse_bytes", "heap_released_bytes")
    if kept is None and idle is not None and released is not None:
        kept = max(idle - released, 0.0)
    if kept is not None:
        lowers = f"{'GOMEMLIMIT, ' * may_limit}debug.FreeOSMemory"
        yield _Part("idle heap", kept, lowers, within)
    elif idle is not None:
        by = "GOMEMLIMIT" if may_limit else "debug.FreeOSMemory"
        lowers = f"{by}, as far as it is not returned already"
        yield _Part("not in use", idle, lowers, within)


def _of_runtime(row: Mapping[str, int | None]) -> Iterator[_Part]:
    for name, columns, remedy in _OF_RUNTIME:
        if name == "stacks" and (goroutines := row["goroutines"]):
            remedy = f"fewer goroutines (now {goroutines:,})"
        if size := _mib(row, *columns):
            yield _Part(name, size, remedy)
    both, of_goroutines = _mib(row, "stack_sys_bytes"), _mib(row, "stack_inuse_bytes")
    if both is not None and of_goroutines is not None and both > of_goroutines:
        yield _Part("OS thread stacks", both - of_goroutines, "fewer threads of cgo")


def shows_scavenger(tables: Mapping[str, pl.DataFrame]) -> bool:
    """Returns whether the last such line matters: someone asked for it, or much is idle."""
    if (last := last_scavenge(tables)) is None:
        return False
    if last["idle_mib"] is None or last["sys_mib"] is None:
        # Only GODEBUG=scavtrace=1 prints it; up to Go 1.13, gctrace does too.
        return True
    return bool(last["idle_mib"] > max(LEAST_MIB, MUCH * last["sys_mib"]))


def of_scavenger(report: Report) -> Iterator[str]:
    """Yields how much memory is idle and how much was returned, from the last such line."""
    if (last := last_scavenge(report.analysis.tables)) is None:
        return
    when = _when(last, report)
    returned = mib(last["released_total_kib"] / 1024)
    if last["idle_mib"] is not None and last["sys_mib"] is not None:
        kept = idle_kept_mib(last)
        later = (
            " Go up to 1.12 returns memory that was idle for five minutes; debug.FreeOSMemory "
            "returns all idle memory at once. Until then it counts as resident."
        )
        yield (
            f"The scavenger's last line{when and f' ({when})'}: of {mib(last['sys_mib'])} from the "
            f"OS, {mib(kept)} are idle and kept, and {returned} are returned."
            f"{later if kept > LEAST_MIB and last['format'] == 'scvg' else ''}"
        )
    else:
        used = last["heap_in_use_pct"]
        rest = "" if used is None else f", and {used} % of what is kept is in use"
        line = ", ".join(filter(None, ("last scavenger line", when)))
        yield f"{returned} of the heap are returned to the OS{rest} ({line})."
    if calls := sum(calls_of_free_os_memory(report.analysis.tables["scavenges"]).values()):
        yield f"debug.FreeOSMemory was called {times_text(calls)} in this log."
    if last["released_total_kib"] and _may_be_madv_free(last, report):
        yield (
            "With Go 1.12 to 1.15, returned memory may count as resident until the host needs it "
            "(GODEBUG=madvdontneed=1 changes that)."
        )


def _when(scavenge: Row, report: Report) -> str:
    """Returns after which cycle a line was printed, and the process if there are several."""
    process, gc_num = scavenge["process"], scavenge["after_gc"]
    if process is None or not gc_num:
        return ""
    cycles = report.analysis.tables["cycles"].filter(process=process, gc_num=gc_num)
    of = f"process {process}, " * (len(report.analysis.tables["processes"]) > 1)
    begin_s = next(iter(cycles["start_s"]), None)
    at = "" if begin_s is None else f" at {report.moment(process, begin_s)}"
    return f"{of}after gc {gc_num}{at}"


def _may_be_madv_free(scavenge: Row, report: Report) -> bool:
    """Returns whether memory returned by such a program may stay resident."""
    formats = distinct(report.analysis.tables["cycles"], "format")
    low, high = go_versions([*formats, scavenge["format"]])
    known = report.analysis.settings.value("go_version")
    return may_use_madv_free(go_version(known or low), go_version(known or high))


def above_limit(report: Report) -> Iterator[str]:
    """Yields how far each program is above its GOMEMLIMIT, which counts Sys - HeapReleased."""
    limit_mib = report.analysis.settings.value("memory_limit_mib")
    if not isinstance(limit_mib, int | float):
        return
    for memory in report.analysis.memory:
        of_go = memory.of_go_mib
        if of_go is not None and of_go > limit_mib:
            above = f"{mib(of_go - limit_mib)} above GOMEMLIMIT ({mib(limit_mib)})"
            yield f"The {mib(of_go)} that Go holds are {above}."


def goals(dumps: pl.DataFrame) -> Iterator[str]:
    """Yields the range of the heap goals, the time they cover, and the last live heap."""
    goals = dumps["next_gc_bytes"].drop_nulls() / MIB
    if goals.is_empty():
        return
    low, high = (mib(goal) for goal in goals.sort().gather([0, -1]))
    at = dumps["elapsed_s"].drop_nulls().sort()
    span = at[-1] - at[0] if len(at) else 0.0
    when = f" within {duration(span)}" if span else ""
    ends = low if low == high else f"{low.removesuffix(' MiB')} to {high}"
    live = dumps["heap_live_bytes"].drop_nulls() / MIB
    of_live = (
        ""
        if live.is_empty()
        else f", with a live heap of {mib(live.sort()[-1])}{' at most' * (len(live) > 1)}"
    )
    yield f"The heap goal was {ends}{when}{of_live}."
