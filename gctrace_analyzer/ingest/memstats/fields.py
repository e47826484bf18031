"""Maps the names of MemStats fields, in every spelling, to columns."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from gctrace_analyzer import schema
from gctrace_analyzer.ingest import numbers

RING = 256
"""The runtime remembers the pauses of this many cycles (MemStats.PauseNs and PauseEnd)."""

PAUSES_STOPPED = "GC pauses have stopped the program"
"""Text of the note on a histogram of pauses, which is not a column of a dump."""

IN_PROFILE = "Goroutines in the profile"

NOTES_OF_GO = (PAUSES_STOPPED, IN_PROFILE)
"""Texts of notes that show that a program is written in Go."""

_UNITS = ("_bytes", "_unix_ns", "_ns", "_s", "_pct")
_OWN = {
    "lastgc": "last_gc_unix_ns", "pausetotal": "pause_total_ns", "malloccount": "mallocs",
    "freecount": "frees", "poolsize": "pool_bytes",
    **dict.fromkeys(
        ("goroutines", "numgoroutine", "numgoroutines", "goroutinecount", "goroutinescount"),
        "goroutines",
    ),
    "pool": "pool_bytes", "rss": "rss_bytes", "maxrss": "rss_peak_bytes",
    "residentsize": "rss_bytes", "residentmemory": "rss_bytes",
    "gogc": "gogc_pct", "gomemlimit": "gomemlimit_bytes", "stackmspaninuse": "mspan_inuse_bytes",
    "stackmspansys": "mspan_sys_bytes", "stackmcacheinuse": "mcache_inuse_bytes",
    "stackmcachesys": "mcache_sys_bytes",
    # The dashboards of Gogs, Gitea and others
    "bootstrapstackusage": "stack_inuse_bytes", "mspanstructuresusage": "mspan_inuse_bytes",
    "mspanstructuresobtained": "mspan_sys_bytes", "mcachestructuresusage": "mcache_inuse_bytes",
    "mcachestructuresobtained": "mcache_sys_bytes", "gcmetadataobtained": "gc_sys_bytes",
    "profilingbuckethashtableobtained": "buck_hash_sys_bytes", "lastgcpause": "last_pause_ns",
    "othersystemallocationobtained": "other_sys_bytes", "pointerlookuptimes": "lookups",
    "memoryallocatetimes": "mallocs", "memoryallocations": "mallocs", "memoryfreetimes": "frees",
}  # fmt: skip
_OF_PERCENTILES = {"gcpauseusec100": ("pause_max_s", 1e-6)}
"""Pauses of the last cycles with the unit inside the name, as in nsqd."""

_UNMISTAKABLE = 9
"""Characters. With an ending, a shorter name such as `frees` becomes another word."""

NAMES: dict[str, str] = {}
"""The columns by each spelling of their names, without case, `_`, `-`, blanks and unit."""

_TIMES = (
    "time", "ts", "timestamp", "unix", "unixtime", "datetime", "date", "at", "loggedat",
)  # fmt: skip
ELAPSED = ("elapsed", "elapseds", "seconds", "uptime", "uptimes", "t")


_OF_METRICS = {
    "logged_at", "elapsed_s", "source", "line_no", "process", "started_at", "go_version", "procs",
    "heap_live_bytes", "heap_free_bytes", "mapped_bytes", "stack_scan_bytes",
    "globals_scan_bytes", "gc_cpu_s", "gc_cpu_idle_s", "gc_cpu_assist_s", "gc_cpu_pause_s",
    "available_cpu_s", "process_cpu_s",
    "limiter_last_gc", "goroutines", "cgo_bytes", "idle_cpu_s", "pause_longest_s", "pause_least_s",
}  # fmt: skip
"""Columns that do not occur in dumps of MemStats."""

_NOT_OF_GO = {
    *schema.IDENTITY, "gogc_pct", "gomemlimit_bytes", "last_pause_ns", "makes", "pause_max_s",
    "pause_min_s", "pause_p50_s", "pause_p90_s", "pauses", "pool_bytes", "resolution_bytes",
    "rss_bytes", "rss_file_bytes", "rss_peak_bytes",
}  # fmt: skip


PERCENT = 0.01

_SYNONYMS = {
    "system": "sys", "allocated": "alloc", "release": "released", "use": "inuse", "in": "inuse",
    **dict.fromkeys(("runs", "count", "cycles", "collections", "number"), "num"),
    "pauses": "pause", "percentage": "percent", "pct": "percent", "obtained": "sys",
    "usage": "alloc", "times": "num",
}  # fmt: skip
_FILLERS = {
    "beat", "current", "recycle", "mem", "memory", "memstats", "runtime", "go", "golang", "stats",
    "bytes", "ns",
}  # fmt: skip
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_CLEAN = re.compile(r"(?!.*\.go$)\s*[A-Za-z][A-Za-z_ .()\[\]-]*")
"""A valid name. The source position of a log call, such as `usage.go:61`, is not one."""
_COMPOUND = re.compile(r"(?<=.)(?=sys$|inuse$|idle$|released$)")
_BY_WORDS: dict[frozenset[str], str] = {}
"""The columns by the words of their names, in any order."""


def _words(name: str) -> frozenset[str]:
    """Returns the words of a name, without meaningless ones.

    >>> sorted(_words("mem.heap.inuse")), sorted(_words("Heap in use")), sorted(_words("GCSys"))
    (['heap', 'inuse'], ['heap', 'inuse'], ['gc', 'sys'])
    """
    if _CLEAN.fullmatch(name) is None:
        return frozenset()
    words = (part for word in _WORD.findall(name) for part in _COMPOUND.split(word.lower()))
    return frozenset(_SYNONYMS.get(word, word) for word in words) - _FILLERS


def _by_words(name: str) -> str | None:
    """Returns the column that the words of a name mean; an extra `total` is allowed."""
    words = _words(name)
    if plain(name) == "system":
        # Often means the CPU time that the kernel spends.
        return None
    return _BY_WORDS.get(words) or _BY_WORDS.get(words - {"total"})


@lru_cache(maxsize=4096)
def plain(name: str) -> str:
    """Returns a name in its plainest spelling: `heapalloc` for `Heap-Alloc`."""
    return re.sub(r"[\s_\-.]", "", name.strip().strip('"').lower())


_TIME_UNITS = ("nanos", "nano", "ns", "micros", "us", "millis", "ms", "seconds", "sec", "s")


def is_time(name: str) -> bool:
    """Returns whether a column is the time of a dump, by its name.

    >>> [is_time(name) for name in ("@timestamp", "unix_ns", "ts", "time_ms", "times_called")]
    [True, True, True, True, False]
    """
    key = plain(name).removeprefix("@")
    return key in _TIMES or any(key.removesuffix(unit) in _TIMES for unit in _TIME_UNITS)


def _add_spellings() -> None:
    for column in schema.names("memstats"):
        if column in _OF_METRICS - {"logged_at", "elapsed_s", "source", "line_no"}:
            continue
        NAMES[plain(column)] = column
        for unit in _UNITS:
            if column.endswith(unit):
                NAMES.setdefault(plain(column.removesuffix(unit)), column)
    NAMES.update(_OWN)
    for name, column in [*NAMES.items()]:
        if len(name) >= _UNMISTAKABLE:
            NAMES.update({near: column for near in _near(name) if near not in NAMES})
    for column in schema.names("memstats"):
        if column not in {*_OF_METRICS, *_NOT_OF_GO}:
            _BY_WORDS[_words(column)] = column
    _BY_WORDS[frozenset(("gc", "pause"))] = "last_pause_ns"
    _BY_WORDS[frozenset(("gc", "pause", "total"))] = "pause_total_ns"
    _BY_WORDS[frozenset(("last", "gc"))] = "last_gc_unix_ns"


def _near(name: str) -> Iterator[str]:
    """Yields spellings that people use for a field: HeapRelease, HeapObject, HeapAllocated."""
    yield f"{name}s"
    for ending in ("ed", "d", "s"):
        if name.endswith(ending):
            yield name.removesuffix(ending)
    if name.endswith("alloc"):
        yield f"{name}ated"


_add_spellings()
KNOWN = [c for c in schema.names("memstats") if c not in _OF_METRICS]
INTEGERS = {c.name for c in schema.TABLES["memstats"] if c.dtype == "Int64"}
FIGURES = {*KNOWN, "goroutines"} - {*schema.IDENTITY}
OF_GO = set(KNOWN) - _NOT_OF_GO
"""The fields of `runtime.MemStats`."""

ENOUGH = 2
"""Number of MemStats fields that identify a dump; a single one may belong to another program."""


SIZES = {
    "bytes": 1, "kib": 1 << 10, "kb": 1 << 10, "mib": 1 << 20, "mb": 1 << 20,
    "gib": 1 << 30, "gb": 1 << 30,
}  # fmt: skip
"""Units of sizes in column names; "MB" means 1024 × 1024 bytes here."""

DURATIONS = {
    "ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "sec": 10**9, "seconds": 10**9,
}  # fmt: skip
"""Units of durations in nanoseconds."""


@lru_cache(maxsize=4096)
def scaled(name: str) -> tuple[str | None, float]:
    """Returns the column of a name that may end with a unit, and the unit in bytes or ns.

    >>> scaled("HeapAlloc (MiB)"), scaled("heap_sys_kb"), scaled("NumGC"), scaled("requests")
    (('heap_alloc_bytes', 1048576), ('heap_sys_bytes', 1024), ('num_gc', 1), (None, 1))
    >>> scaled("pauseTotalMs"), scaled("gc_pause_total_seconds")
    (('pause_total_ns', 1000000), ('pause_total_ns', 1000000000))
    """
    key = re.sub(r"[()\[\]]", "", plain(name))
    if key in NAMES:
        return NAMES[key], 1
    if key in _OF_PERCENTILES:
        return _OF_PERCENTILES[key]
    if key in ("gccpupercent", "gccpupct"):
        return "gc_cpu_fraction", PERCENT
    for units, kind in ((SIZES, "_bytes"), (DURATIONS, "_ns")):
        for unit, factor in units.items():
            column = NAMES.get(key.removesuffix(unit)) if key.endswith(unit) else None
            if column and column.endswith(kind) and column != "last_gc_unix_ns":
                return column, factor
    return _scaled_by_words(name)


def _scaled_by_words(name: str) -> tuple[str | None, float]:
    if (column := _by_words(name)) is not None:
        return column, 1
    *words, unit = _WORD.findall(name) or [""]
    for units, kind in ((SIZES, "_bytes"), (DURATIONS, "_ns")):
        column = _by_words(" ".join(words)) if unit.lower() in units else None
        if column and column.endswith(kind) and column != "last_gc_unix_ns":
            return column, units[unit.lower()]
    return None, 1


@lru_cache(maxsize=4096)
def is_vague(name: str) -> bool:
    """Returns whether a recognised name may come from another program: `System memory`."""
    key = re.sub(r"[()\[\]]", "", plain(name))
    return key not in NAMES and "memstats" not in key and len(_words(name)) < ENOUGH


PREFIXES = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
"""The first letters of printed units, in bytes."""

DECIMAL = {"b": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
"""The same for Hugo, which uses decimal units."""

HUGO = re.compile(r"^hugo v\d|uilding sites", re.M)
"""Hugo's line before its MemStats."""

_IN_MB = re.compile(
    r"(?i)(?:alloc|sys|heap|idle|in_?use|releas|mem|rss|goal|next)\w{0,20}"
    r"(?:\W{1,9}[\d.,]{1,20} ?|_|\W{0,3}\()(?P<unit>[mg])b\b"
)
"""A size with such a unit behind a name of a field, or a name with such a unit."""


def of_units(text: str) -> Iterator[str]:
    """Yields a note on rounded sizes if their unit has two meanings.

    >>> [*of_units("Alloc: 1.2 GB")], [*of_units("Alloc = 12 MiB")]
    (['Sizes in GB are read as GiB; in decimal units, they are 7 % smaller.'], [])
    >>> [*of_units("Alloc = 12 MiB; it never used more than 128MB")]
    []
    """
    if (named := _IN_MB.search(text)) and not HUGO.search(text):
        prefix, less = ("M", 5) if named["unit"] in "Mm" else ("G", 7)
        yield (
            f"Sizes in {prefix}B are read as {prefix}iB; in decimal units, they are {less} % "
            "smaller."
        )


def quantity(
    column: str,
    value: str,
    unit: str,
    factor: float = 1,
    prefixes: Mapping[str, int] = PREFIXES,
) -> tuple[float | int | None, int]:
    """Returns a printed number in the unit of its column, and the bytes of its last digit.

    Args:
        column: the column of the number.
        value: the number as printed.
        unit: the unit that follows it, in lower case; empty if there is none.
        factor: the unit at the end of the name, if no unit follows.
        prefixes: the meaning of the first letters of its unit.

    >>> quantity("heap_sys_bytes", "1.5", "mib"), quantity("pause_total_ns", "18.9", "ms")
    ((1572864, 104858), (18900000, 1))
    >>> quantity("num_gc", "7", ""), quantity("num_gc", "7", "mib")
    ((7, 1), (None, 1))
    >>> quantity("heap_sys_bytes", "138.5", ""), quantity("heap_sys_bytes", "138.0", "")
    ((None, 1), (138, 1))
    """
    if column == "last_gc_unix_ns" and unit not in ("", "ns"):
        # The age of the value.
        return None, 1
    if column.endswith("_ns") and (unit in DURATIONS or not unit):
        return numbers.whole(value, DURATIONS.get(unit, factor)), 1
    if column.endswith("_bytes") and unit not in DURATIONS:
        # "MB" in this idiom is bytes / 1024 / 1024.
        scale = prefixes.get(unit[:1], factor)
        if not unit and scale == 1 and "." in value and float(value) % 1:
            # A part of a byte: the unit is elsewhere, such as in the head of a table.
            return None, 1
        decimals = len(value.partition(".")[2]) if "e" not in value.lower() else 0
        return numbers.whole(value, scale), max(round(scale / 10**decimals), 1)
    if column == "gc_cpu_fraction":
        share = numbers.real(value, 0.01 if unit == "%" else factor)
        return (share if share is not None and share <= 1 and unit in ("", "%") else None), 1
    if unit and (unit, column) != ("%", "gogc_pct"):
        return None, 1
    return (numbers.whole if column in INTEGERS else numbers.real)(value, factor), 1


def last_pause(lengths: Any, cycles: int | None) -> int | None:
    """Returns the pause of the last cycle, as in MemStats.PauseNs; None if unknown.

    >>> last_pause([7, 8, 9], 2)
    8
    """
    if not isinstance(lengths, list) or not lengths or not cycles:
        return None
    return numbers.whole(lengths[(cycles + RING - 1) % RING % len(lengths)])


def pauses(lengths_ns: Iterable[object]) -> dict[str, float]:
    """Returns the columns for the pauses of the last cycles; 0 means a place without a cycle.

    >>> list(pauses([3000000, 1000000, 0]).values())
    [2, 0.001, 0.002, 0.003, 0.003]
    """
    known = sorted(filter(None, map(numbers.real, lengths_ns)))
    if not known:
        return {}
    return {
        "pauses": len(known),
        "pause_min_s": known[0] / 1e9,
        "pause_p50_s": statistics.median(known) / 1e9,
        "pause_p90_s": known[len(known) * 9 // 10] / 1e9,
        "pause_max_s": known[-1] / 1e9,
    }


def quantiles(lengths_ns: Sequence[object]) -> dict[str, float]:
    """Returns the columns for `PauseQuantiles`: of the last cycles, in unknown number.

    >>> quantiles([1000000, 2000000, 8000000])
    {'pause_min_s': 0.001, 'pause_p50_s': 0.002, 'pause_max_s': 0.008}
    """
    known = ("pause_min_s", *(("pause_p50_s",) if len(lengths_ns) % 2 else ()), "pause_max_s")
    of_pauses = pauses(lengths_ns) if len(lengths_ns) > 1 else {}
    return {name: of_pauses[name] for name in known if name in of_pauses}


@lru_cache(maxsize=4096)
def is_unmistakable(name: str) -> bool:
    """Returns whether a name stands for a field of MemStats even before a blank and a number.

    >>> is_unmistakable("NumGC"), is_unmistakable("heap alloc"), is_unmistakable("Alloc")
    (True, False, True)
    """
    own = name.rpartition(".")[2]
    return own[:1].isupper() and " " not in own and plain(own) in NAMES


def is_field(name: str) -> bool:
    """Returns whether a name is a field of `runtime.MemStats`, in any spelling."""
    column, _ = scaled(name)
    return column in OF_GO and not is_vague(name)
