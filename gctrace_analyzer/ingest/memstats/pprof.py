"""Reads MemStats from the end of a heap profile (debug=1), and what `go tool pprof -top` prints."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gctrace_analyzer.ingest import numbers
from gctrace_analyzer.ingest.evidence.message import Message
from gctrace_analyzer.ingest.memstats import fields, log_messages
from gctrace_analyzer.ingest.metrics import go_json
from gctrace_analyzer.units import digits

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from gctrace_analyzer.ingest.evidence.message import Row

_TRAILER = re.compile(r"# (?:runtime\.MemStats$|\w+ = )")


def read(lines: list[str]) -> list[Row]:
    """Returns the rows of the `# runtime.MemStats` sections of a heap profile."""
    numbered = enumerate(lines, start=1)
    return log_messages.read(Message(at, line) for at, line in numbered if _TRAILER.match(line))


_LISTED = re.compile(r"# (NumGC|PauseNs|PauseEnd) = \[?(\d[\d ]*)")


def pauses(lines: list[str], dumps: list[Row]) -> pl.DataFrame | None:
    """Returns the last pauses, which the only profile lists with their ends; None if unknown."""
    lists = {match[1]: match[2] for line in lines if (match := _LISTED.match(line))}
    cycles, lengths, ends = (
        [numbers.whole(value) or 0 for value in lists.get(name, "0").split()]
        for name in ("NumGC", "PauseNs", "PauseEnd")
    )
    ring = {"num_gc": cycles[0], "ended_at": ends, "pause_ns": lengths}
    rows = go_json.pauses([{"line_no": row["line_no"], **ring} for row in dumps])
    return rows if len(dumps) == 1 and len(rows) else None


_TYPE = re.compile(
    r"^Type: (\w+)\s*$|(?:[ \t]--?(?:sample_index=)?|^\(pprof\) (?:sample_index ?= ?)?)"
    r"((?:inuse|alloc)_(?:space|objects))\b",
    re.MULTILINE,
)
_TOTAL = re.compile(
    # Up to Go 1.9 there are no words in front. Before Go had pprof, a Perl script printed it.
    r"^[ \t>]*(?:Showing nodes accounting for .{1,60} of (\S+) total|\d\S* of (\S+) total \(.*\)|"
    r"Total: (\d\S* ?MB))\s*$",
    re.MULTILINE,
)
_ROW = re.compile(
    r"^[ \t>]*(?P<flat>\d\S*) +(?P<flat_pct>[\d.]+)% +(?P<sum_pct>[\d.]+)% +(?P<cum>\d\S*) +"
    r"(?P<cum_pct>[\d.]+)% +(?P<name>\S.*)$",
    re.MULTILINE,
)
_IN_GIB_FROM = 10.0
_LARGEST, _FEWEST = 3, 2
"""Rows that are quoted, and the fewest that are a table without its header."""

_EMPTY = re.compile(r"^heap profile: \d+: \d+ \[\d+: \d+\] @ heap/0\s*$", re.MULTILINE)
"""The number after `heap/` is twice MemProfileRate (writeHeapInternal of runtime/pprof)."""

_SINCE_START = ": all that was allocated since the start, not what is held"
_OF_MALG = (
    " runtime.malg allocates goroutines, which Go keeps for later ones: it shows how many there "
    "were at once, and is a leak only if they do not end (compare the goroutine profile)."
)
_OF_GC = re.compile(
    r"runtime\.(?:(?P<background>gcBgMarkWorker)|(?P<idle>gcDrainMarkWorkerIdle)"
    r"|(?P<assists>gcAssistAlloc|gcDrainN)|(?P<sweeping>bgsweep|deductSweepCredit))\b"
)
"""The parts of GC in a CPU profile, and the functions that contain each part."""


def of_goroutines(text: str) -> Iterator[str]:
    """Yields how many goroutines the profiles in a text have."""
    if numbers_of := [f"{int(match[1]):,}" for match in _GOROUTINES.finditer(text)]:
        yield f"{fields.IN_PROFILE}{'s' * (len(numbers_of) > 1)}: {', '.join(numbers_of)}."


_GOROUTINES = re.compile(r"^[ \t>]*goroutine profile: total (\d{1,9})\s*$", re.MULTILINE)


def of_table(text: str, whole: str) -> Iterator[str]:
    """Yields results from each output of `go tool pprof -top`, even if its ends are missing.

    Args:
        text: the output, with anything around it.
        whole: the memory of the process, as a clause; empty if unknown.
    """
    if _EMPTY.search(text):
        yield (
            "The heap profile in the input is empty: its rate is 0 (heap/0; "
            "runtime.MemProfileRate), so nothing was sampled."
        )
    totals = [(match.start(), match[match.lastindex or 0]) for match in _TOTAL.finditer(text)]
    totals = totals or [(0, "")]
    ends = [*(begin for begin, _ in totals[1:]), len(text)]
    for (begin, total), end in zip(totals, ends, strict=True):
        rows = [*_ROW.finditer(text, begin, end)]
        if total or len(rows) >= _FEWEST:
            kinds = [kind[kind.lastindex or 0] for kind in _TYPE.finditer(text, 0, begin)]
            yield from _of_rows(rows, kinds[-1] if kinds else "", total, whole)


def _in_gib(total: str) -> str:
    """Returns ` = 15.6 TiB` for a large total in MB, GB or TB; empty for other totals."""
    match = re.fullmatch(r"([\d.]{1,20})([MGT])B", total)
    gib = float(match[1]) / 1024 * 1024.0 ** "MGT".index(match[2]) if match else 0.0
    unit, size = ("TiB", gib / 1024) if gib >= 1024 else ("GiB", gib)
    return f" = {digits(size, 3)} {unit}" if gib >= _IN_GIB_FROM else ""


def _of_rows(rows: list[re.Match[str]], kind: str, total: str, whole: str) -> Iterator[str]:
    by = "cum" if kind == "goroutine" else "flat"
    largest = sorted(rows, key=lambda row: -float(row[f"{by}_pct"]))
    # Without its first rows, the largest are unknown.
    is_whole = rows and float(rows[0]["sum_pct"]) <= float(rows[0]["flat_pct"])
    texts = [
        f"{row[by]} ({row[f'{by}_pct']} %) {row['name']}"
        for row in (largest if is_whole else ())
        if float(row[f"{by}_pct"]) and (by == "flat" or not row["name"].startswith("runtime."))
    ]
    listed = f"largest ({by}): {', '.join(texts[:_LARGEST])}"
    listed = listed if texts else "the rows of the largest functions are not in the input"
    kept = _OF_MALG if "runtime.malg" in listed else ""
    kind = f"{kind}{_SINCE_START}" if kind.startswith("alloc_") else kind
    named = f" ({kind or 'of what: see its line Type'})"
    whole_of = f"{total}{_in_gib(total)}" if total else "a total that was cut off"
    yield f"The profile shows {whole_of}{named}; {listed}.{kept}"
    if whole and kind == "inuse_space":
        yield (
            f"{whole}, so {total} of objects at the last GC are only a part: the rest is garbage "
            "until the heap goal, idle heap, stacks and memory outside Go, whose sizes MemStats "
            "shows."
        )
    parts: dict[str | None, str] = {}
    for row in sorted(rows, key=lambda row: float(row["cum_pct"])):
        if row["cum"].endswith("s") and (function := _OF_GC.match(row["name"])):
            parts[function.lastgroup] = (
                f"{function.lastgroup} {row['cum']} ({row['cum_pct']} %)"
            )
    if parts:
        yield f"GC in these samples of CPU time, with what it calls: {', '.join(parts.values())}."
