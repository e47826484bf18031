"""Reads the memory of one process or container from any tool's output.

A size has a name before it or above its column: `VmRSS: 20 kB`, `"rss": 20480`,
`container_memory_rss{pod="a"} 2e+04`, the columns RSS, RES and MEM USAGE. The meaning of the names
is known for /proc/PID/status and smaps (proc(5)), `memory.stat` (cgroup-v2.rst), cAdvisor, ps, top,
pmap, time, `docker stats` and `kubectl top`, macOS and Windows.
"""

from __future__ import annotations

import re
from functools import partial
from itertools import chain, takewhile
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.ingest.memstats import fields, mappings, pprof
from gctrace_analyzer.ingest.memstats.size_sentences import (
    DIGIT,
    MUCH,
    alone,
    mib,
    of_heap,
    sentences,
    whole_text,
)
from gctrace_analyzer.ingest.metrics import exposition
from gctrace_analyzer.units import MIB, size_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gctrace_analyzer.ingest.evidence.message import Row
    from gctrace_analyzer.ingest.input import Part

_NUMBER = r"(?P<value>\d{1,20}(?:,\d{3})*(?:\.\d{1,9})?(?:[eE][+-]?\d{1,2})?)"
_UNIT = r"[kKMGT]i?[bB]?(?:ytes)?|[mM]egs?|[gG]igs?|[bB](?:ytes)?"
_SIZE = rf"{_NUMBER}(?:\s?(?P<unit>{_UNIT})(?![\w.]))?"

_BYTES, _KIB, _PRINTED, _STATUS = 1, 1 << 10, 0, -1
"""The unit of a number without one; for `_PRINTED`, such a number is not a size. Text of `systemctl
status` does not occur in sentences."""

_LINE = r"(?:^|kernel: )[>\t ]{0,40}"
_OF_STAT = {
    "anon": "anonymous", "rss": "anonymous", "file": "cache", "cache": "cache",
    "shmem": "shared", "slab": "slab", "kernel": "kernel", "inactive_file": "inactive",
}  # fmt: skip
_IN_STAT = (
    "(?:total_)?(?:" + "|".join(_OF_STAT).replace("rss", r"rss(?= \d{1,20} *(?:#|$))") + ")"
)
"""Names in `memory.stat`; its totals include the groups below."""
_NAMES: tuple[tuple[str, str, int], ...] = (
    # Resident memory of a process, and of the processes in a container
    (rf"{_LINE}(?:VmRSS|Rss):", "resident", _KIB),
    (r"container_memory_rss|\"(?:rssBytes|total_rss)\" ?:", "resident", _BYTES),
    (r"namegroup_memory_bytes\{[^}\n]{0,300}memtype=\"resident\"[^}\n]{0,300}\}",
        "resident", _BYTES),
    (r"\bWorkingSet(?:64|Size)\b", "resident", _BYTES),
    (r"Physical footprint(?=:)|(?<![\w-])(?:RES|(?i:RSS|resident(?: (?:set|memory))?(?: size)?))\b",
        "resident", _PRINTED),
    (rf"{_LINE}VmSize:", "virtual", _KIB),
    (r"(?i:Maximum resident set size \(kbytes\)|VmHWM|(?<!# )\bmaxrss\b)", "peak", _KIB),
    (r"Physical footprint \(peak\)|(?i:peak (?:RSS|resident\w*|memory))", "peak", _PRINTED),
    # Its parts
    (rf"{_LINE}(?:RssAnon|Anonymous):", "anonymous", _KIB),
    (rf"{_LINE}LazyFree:", "returned", _KIB),
    (rf"{_LINE}RssFile:", "file", _KIB),
    (rf"{_LINE}RssShmem:", "shared", _KIB),
    (r"\bPrivateMemorySize(?:64)?\b", "anonymous", _BYTES),
    # What each GC cycle scans
    *(
        (rf"/gc/scan/{part}:bytes|go_gc_scan_{part}_bytes", f"scan_{part}", _BYTES)
        for part in ("stack", "globals", "total")
    ),
    # Memory charged to a control group or container, with page cache and kernel memory
    (r"memory\.(?:current|usage_in_bytes)|\"?workingSetBytes\"?:", "charged", _BYTES),
    (r"container_memory_working_set_bytes", "charged", _BYTES),
    # Docker's API has `memory.stat` between the two; with cgroup v1, a count of failures.
    (r"\"usage\":(?=\s*\d+,\s*(?:\"\w+\":\s*\d+,\s*){0,3}\"stats\")", "charged", _BYTES),
    (r"\"usage\" ?:(?=\s*\d+,\s*\"failcnt\")", "charged", _BYTES),
    # For a container without a limit, it shows the memory of the host.
    (r"\},\s*\"limit\":", "host", _BYTES),
    (r"hierarchical_memory_limit", "limit", _BYTES),
    (r"memory: usage", "charged", _KIB),
    (r"kmem: usage", "kernel", _KIB),
    (r"^ {0,20}Memory(?=: [\d.]{1,9}[KMGT](?: \(|$))", "charged", _STATUS),
    (r"(?i:\bworking[ _]set(?:[ _]size)?\b)", "charged", _PRINTED),
    (r"container_memory_cache", "cache", _BYTES),
    (r"container_memory_kernel_usage", "kernel", _BYTES),
    (rf"{_LINE}(?P<stat>{_IN_STAT})(?=[ :=]+\d)|\"(?P<quoted>{_IN_STAT})\":", "", _BYTES),
)  # fmt: skip
"""Names of sizes, what they count (for `memory.stat`, see `_OF_STAT`), and the unit of a bare
number."""

_BETWEEN = (
    # "RSS keeps ~740M", but not "RSS is 740M higher"
    r"(?:\s(?:is|was|of|at|to|up|keeps|stays|remains|about|around|reache[sd]|grows|grew)){0,4}"
    r"(?!\s+\S+\s*\S{0,5} (?:more|higher|larger|bigger|less|lower|above|below))"
    r"[\"']?(?:\{[^}\n]{0,500}\})?[\"']?"
    r"\s{0,40}(?:[:=|,]|->|(?<=\s))\s{0,40}[\"~≈]?"
)
_PAIRS = [
    (re.compile(rf"(?:{name}){_BETWEEN}{_SIZE}", re.MULTILINE), fact, unit)
    for name, fact, unit in _NAMES
]

_COLUMNS = {
    **dict.fromkeys(("rss", "res", "rsize", "ws(k)", "rss(kb)"), ("resident", _KIB)),
    "shr": ("shared", _KIB),
    **dict.fromkeys(
        ("mem", "memory", "mem usage", "mem usage / limit", "memory(bytes)"),
        ("charged", _PRINTED),
    ),
}
"""Columns of tables, in lower case, and the unit of a bare number."""

_HEADER = re.compile(
    r"^(?=[^\n]{0,300}\b(?:RSS|RES|RSIZE|WS\(K\)|MEM|MEMORY|MEM USAGE|MEMORY\(bytes\))(?:[\s(]|$))"
    r"[^\n=:]{0,40}[A-Z][^\n]{4,400}$",
    re.MULTILINE,
)
_RULE = re.compile(r"[\s=+|-]*")
_OWN_NAMES = re.compile(r"^\s*[$#>%] |[=:]\s|\":|[a-z]=\d")
_OTHER, _ITS = r"[\d.]{1,15}[kmgt]?", r"(?P<value>[\d.]{1,15})(?P<unit>[kmgt]?)"
_OF_PROCESS = {
    fact: [
        re.compile(
            rf"^[>|\t\x20]{{0,20}}{row} (?P<name>\S+)".replace(" ", r"[ \t]+")
            + r"(?![^\n]*\bgrep )",
            re.MULTILINE,
        )
        for row in (
            # ps aux and ps u, then top
            rf"\S{{1,32}} (?P<pid>\d{{1,10}}) \d{{1,4}}[.,]\d \d{{1,3}}[.,]\d {sizes_of_row} "
            r"\S{1,16} [A-Z]\S{0,5} \S+ \S+",
            rf"(?P<pid>\S{{1,10}}) \S{{1,32}} (?:rt|-?\d{{1,3}}) -?\d{{1,2}} {sizes_of_row} "
            r"[\d.]{1,12}[kmgt]? [A-Z] \d{1,5}[.,]\d \d{1,3}[.,]\d "
            r"\d{1,7}(?::\d\d(?:[.:,]\d\d)?|[hdw])",
        )
    ]
    for fact, sizes_of_row in (
        ("virtual", f"{_ITS} {_OTHER}"),
        ("resident", f"{_OTHER} {_ITS}"),
    )
}
"""Rows of processes that need no header: grep, tail and quoting leave it out."""

_PAIRS += [(row, fact, _KIB) for fact, rows in _OF_PROCESS.items() for row in rows]
_PAIRS += [
    (re.compile(row, re.MULTILINE), "resident", _KIB)
    for row in (
        # pmap -x and tasklist
        r"^\s*total(?: kB)?\s+\d{1,15}K?\s+(?P<value>\d{1,15})(?P<unit>)\s+\d",
        r"[\s\"]\d{1,3}[\s\",]{1,40}(?P<value>\d[\d,]{3,20})(?P<unit>) K\"?[ \r]*$",
    )
]
_STATUS_OF = re.compile(
    r"^[>|\t ]{0,20}/proc/(?P<pid>\d{1,10})/status:VmRSS:\s+(?P<value>\d{1,15})(?P<unit>) kB",
    re.MULTILINE,
)
"""Output of `grep RSS /proc/*/status`."""

_PAIRS.append((_STATUS_OF, "resident", _KIB))
_PS_NAMES = ("comm", "cmd", "args", "command")
_PS_COLUMNS = re.compile(r"\bps [^\n|]{0,80}?-[A-Za-z]{0,3}o[ =]?[\"']?([a-z%,=]{3,80})")
"""Columns that the command names; their header may be cut off."""

_OF_SMAPS = re.compile(
    r"^Size:\s+\d{1,15} kB\n(?:\w{1,30}:\s+\d{1,15} kB\n){0,3}Rss:\s+(\d{1,15}) kB",
    re.MULTILINE,
)
_CELL = re.compile(rf"{_NUMBER}\s?(?P<unit>[kmgt]?i?b?)(?:\s*/.*)?", re.IGNORECASE)
_LEAST = 1 << 20
"""Bytes. No program has less memory."""


def sizes(text: str, *, prose: bool = True) -> dict[str, int]:
    r"""Returns the sizes of the only process or container that a text shows, in bytes.

    If there are several different sizes of a kind, none is returned. Without `prose`, only output
    of tools counts, and no name that may occur in a sentence. `digit` is the unit of the last
    digit of the coarsest size, if that is a MiB or more.

    >>> sizes("  PID   RSS COMMAND\n 8812 20480 ledger"), sizes("RSS: 3.0 GiB")
    ({'resident': 20971520}, {'resident': 3221225472, 'digit': 107374182})
    """
    known: dict[str, set[int]] = {}
    for fact, size in (*_of_pairs(text, prose=prose), *_of_tables(text)):
        known.setdefault(fact, set()).add(size)
    if DIGIT in known:
        known[DIGIT] = {max(known[DIGIT])}
    own = {fact: of_fact.pop() for fact, of_fact in known.items() if len(of_fact) == 1}
    own |= {fact[6:]: size for fact, size in own.items() if fact.startswith("total_")}
    if len(resident := [int(match[1]) for match in _OF_SMAPS.finditer(text)]) > 1:
        own["resident"] = sum(resident) << 10
    if "cache" in own:
        # It includes files in memory.
        own["file"] = own["cache"] - own.get("shared", 0)
    if "resident" in own and "returned" in own:
        own["resident"] -= own["returned"]
    return own


def added_to(part: Part, heap_mib: float | None = None) -> list[str]:
    """Adds the sizes in an input without cycles to its last dump; returns notes on them.

    An input with nothing else becomes a container if its limit is known, or only the notes.
    `heap_mib` is the largest heap in the cycles of other inputs.
    """
    text = part.beginning
    known = sizes(text)
    # The sizes that the kernel counted at a kill are in its post-mortem.
    is_of_kill = any("group_anon_bytes" in row for row in part.rows.get("oom_kills", ()))
    states = part.rows.get("container_states", [])
    ended = any(state.get(name) for state in states for name in _OF_END)
    parts = () if is_of_kill else sentences(known)
    notes = [
        *(f"{about}{_AT_OTHER_TIME * ended}" for about in parts),
        *_of_processes(text),
        *mappings.of_mappings(text),
        *pprof.of_table(text, whole_text(known)),
        *pprof.of_goroutines(text),
    ]
    if part.memstats is None or "pause_max_s" not in part.memstats.columns:
        notes += exposition.of_pauses(text)
    dumps, frame = part.rows.get("memstats", []), part.memstats
    rss = next((known[k] for k in ("resident", "anonymous") if k in known), None)
    if rss is None and (dumps or frame is not None) and not _has_resident(part, known):
        rss = known.get("charged")
        charged = "charged to the container, with page cache, are counted as resident memory."
        notes += [f"The {mib(rss)} {charged}"] if rss else []
    # The cache of a container is not part of what is resident.
    files = known.get("file") if "resident" in known and "cache" not in known else None
    own = {"rss_bytes": rss, "rss_file_bytes": files, "rss_peak_bytes": known.get("peak")}
    own["resolution_bytes"] = known.get(DIGIT)
    is_all = not any(part.facts.found.values())
    if is_all and not notes:
        names = {name for name, *_ in _readings(text)}
        process = names.pop() if len(names) == 1 else None
        notes += alone(sizes(text, prose=False), heap_mib, process)
    if is_all and notes:
        part.facts.found = {"notes": len(notes)}
        of = next((name for name in _OF if 0 < known.get(name, 0) < _UNLIMITED), None)
        if of and "charged" in known:
            row = {"line_no": 1, "status": "running", "memory_used_bytes": known["charged"]}
            states = part.rows["container_states"] = [row | {_OF[of]: known[of]}]
    limit = len(states) == 1 and states[0].get("memory_limit_bytes")
    counted = sum(known.get(name, 0) for name in ("anonymous", "cache", "kernel"))
    is_near = limit and known.get("charged", counted) > (1 - MUCH) * limit
    if is_near and not ended and "anonymous" in known:
        states[0].setdefault("anon_rss_bytes", known["anonymous"])
    if frame is None and dumps and (len(dumps) == 1 or _is_after(text, dumps[-1], rss)):
        unit = max(known.get(DIGIT, 0), dumps[-1].pop("resolution_bytes", None) or 0)
        dumps[-1] |= {name: size for name, size in own.items() if dumps[-1].get(name) is None}
        dumps[-1]["resolution_bytes"] = unit or None
    elif frame is not None and not dumps:
        lines = frame["line_no"] if "line_no" in frame.columns else None
        below = lines is not None and _is_after(text, {"line_no": lines.max() or 0}, rss)
        if len(frame) == 1 or below:
            part.memstats = frame.with_columns(
                pl.when(pl.int_range(pl.len()) == pl.len() - 1)
                .then(pl.lit(size, pl.Float64))
                .alias(name)
                for name, size in own.items()
                if size
                and (name not in frame.columns or frame[name].null_count() == len(frame))
            )
    return [f"{part.facts.name}: {text}" for text in notes]


def _has_resident(part: Part, known: Mapping[str, int]) -> bool:
    """Returns whether a resident size of the process is known, if only its largest."""
    names, frame = {"rss_bytes", "rss_peak_bytes"}, part.memstats
    frame = pl.DataFrame() if frame is None else frame
    given = names & {*frame.columns}
    in_rows = any(names & row.keys() for row in part.rows.get("memstats", ()))
    return "peak" in known or in_rows or any(frame[name].count() for name in given)


_OF_END = ("oom_killed", "kills", "signal", "exit_code")
_AT_OTHER_TIME = " The reading is not of the moment of a kill."
_OF = {"limit": "memory_limit_bytes", "host": "memory_of_host_bytes"}
_UNLIMITED = 1 << 60
"""Bytes. Without a limit, cgroup v1 has the largest number of whole pages."""


def next_to_cycles(part: Part) -> list[str]:
    """Returns a note on the memory of a process or container in an input with cycles."""
    known = sizes(part.beginning)
    most = pl.concat([frame["heap_end_mib"] for frame in part.cycles]).max()
    heap_mib = float(most or 0)  # type: ignore[arg-type]  # a numeric column
    for fact, words in _NEXT_TO.items():
        if fact in known:
            size_mib = known[fact] / MIB
            heap = of_heap(size_mib, heap_mib, "these cycles")
            return [f"{part.facts.name}: {size_text(size_mib)} were {words}; {heap}"]
    return []


_NEXT_TO = {"resident": "resident", "charged": "charged to the control group, files included"}


def _is_after(text: str, dump: Row, size: int | None) -> bool:
    """Returns whether a size is below a dump, and so gets its time."""
    below = "\n".join(text.split("\n")[dump["line_no"] :])
    return size is not None and size in sizes(below).values()


def _of_pairs(text: str, *, prose: bool) -> Iterator[tuple[str, int]]:
    for pattern, fact, unit in _PAIRS:
        for match in pattern.finditer(text) if prose or unit != _PRINTED else ():
            yield from _size(
                fact or _fact_of_stat(match["stat"] or match["quoted"]), match, unit
            )


def _fact_of_stat(name: str) -> str:
    own = name.removeprefix("total_")
    return name.replace(own, _OF_STAT[own])


def _size(fact: str, match: re.Match[str], unit: int) -> Iterator[tuple[str, int]]:
    """Yields the size in a match, unless it has no unit or is a small number."""
    size, digit = _bytes(match, unit)
    if size is not None and size >= _LEAST:
        yield fact, size
        if digit >= MIB:
            yield DIGIT, digit


def _bytes(match: re.Match[str], unit: int) -> tuple[int | None, int]:
    """Returns the size in a match, and the unit of its last digit."""
    printed = (match["unit"] or "").lower()
    # In tables, Podman prints decimal units without an i, and Docker binary ones with it.
    is_decimal = match.re is _CELL and printed[1:] == "b"
    prefixes = fields.DECIMAL if is_decimal else fields.PREFIXES
    size, digit = fields.quantity(
        "rss_bytes", match["value"].replace(",", ""), printed, unit, prefixes
    )
    return None if size is None else int(size), digit


def _of_tables(text: str) -> Iterator[tuple[str, int]]:
    """Yields the sizes in tables of a single process."""
    for header in _HEADER.finditer(text):
        names = _cells(header[0], header[0])
        following = text[header.end() + 1 : header.end() + 4000].split("\n")
        lines = (row for row in following if not _RULE.fullmatch(row) or not row)
        are_rows = partial(_is_row, header=header[0], columns=len(names))
        rows = [row for row in takewhile(are_rows, lines) if " grep " not in row]
        if len(rows) != 1:
            continue
        for name, cell in zip(names, _cells(rows[0], header[0]), strict=False):
            fact, unit = _COLUMNS.get(name.lower(), ("", 0))
            # Next to a process, as in macOS' top, it belongs to the process.
            fact = "resident" if fact == "charged" and "PID" in names else fact
            if fact and (match := _CELL.fullmatch(cell)):
                yield from _size(fact, match, unit)


def _is_row(line: str, header: str, columns: int) -> bool:
    """Returns whether a line is a row of a table, which may have no name and value of its own."""
    has_cells = len(_cells(line, header)) >= columns - 1 and not line.isspace() and line != ""
    return has_cells and not _OWN_NAMES.search(line)


def _cells(line: str, header: str) -> list[str]:
    """Returns the cells of a line; tables whose names have blanks use two between columns."""
    has_blanks = re.search(r"(?<!%)CPU %|MEM USAGE|(?<!%)MEM %", header)
    return re.split(r"\s{2,}|\t", line.strip()) if has_blanks else line.split()


def _readings(text: str) -> Iterator[tuple[str, str, list[int]]]:
    """Yields name, pid and resident bytes of each process row, if there are many bytes."""
    for match in chain.from_iterable(row.finditer(text) for row in _OF_PROCESS["resident"]):
        size, _ = _bytes(match, _KIB)
        yield match["name"].rpartition("/")[2], match["pid"], [] if size is None else [size]
    for match in _STATUS_OF.finditer(text):
        yield "process", match["pid"], [int(match["value"]) << 10]
    for command in _PS_COLUMNS.finditer(text):
        names = command[1].replace("=", "").strip(",").split(",")
        for line in text[command.end() : command.end() + 4000].split("\n")[1:]:
            row = dict(zip(names, line.split(), strict=False))
            if not row.get("rss", "").isdigit():
                if "RSS" in line:
                    continue
                break
            name = next((row[each] for each in _PS_NAMES if each in row), "process")
            yield name.rpartition("/")[2], row.get("pid", ""), [int(row["rss"]) << 10]


def _of_processes(text: str) -> Iterator[str]:
    """Yields what the processes of a table have."""
    readings: dict[tuple[str, str], list[int]] = {}
    for name, pid, some in _readings(text):
        readings.setdefault((name, pid), []).extend(some)
    by_name: dict[str, list[int]] = {}
    for (name, pid), own in readings.items():
        each = name if len(readings) > _MOST else f"{name} (pid {pid})"
        by_name.setdefault(each, []).extend(own[-1:])
    if len(readings) > 1:
        largest = sorted(by_name.items(), key=lambda item: -sum(item[1]))[:_MOST]
        listed = (
            f"{name} {mib(sum(own))}{f' ({len(own)} processes)' if len(own) > 1 else ''}"
            for name, own in largest
        )
        yield (
            f"Resident: {', '.join(listed)}. What processes share counts more than once. GOGC and "
            "GOMEMLIMIT act on each Go process by itself (children inherit them), and on no other."
        )
    for (name, _), own in readings.items() if len(readings) == 1 else ():
        if len({*own}) > 1:
            yield (
                f"Resident memory of {name} in {len(own)} readings: {mib(own[0])} at first, "
                f"{mib(max(own))} at most, {mib(own[-1])} at last."
            )


_MOST = 4
