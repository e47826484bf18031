"""Reads MemStats from log messages: `Alloc = 5 MiB`, `heap_sys=1024`, or JSON."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.ingest import clock, numbers
from gctrace_analyzer.ingest.memstats import dump_times, fields, json_records

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gctrace_analyzer.ingest.evidence.message import Message, Row

HINT = (
    # Names of several words, with any signs between them.
    r"(?i:heap|memory|mem|gc)[\w .-]{0,24}(?i:sys|alloc|in.?use|idle|released?|next|goal|pause|"
    r"runs|count|cycles|forced|fraction|gc|times|usage|obtained|max)[\w ]{0,16}"
    r"(?:\"?\s?[:=|]|\t|\s\s|->|\.\.\.| \.\.)|"
    r"Alloc|HeapSys|HeapIdle|HeapIn[uU]se|HeapRelease|(?i:num[_ ]?gc|next[_ ]?gc|pause_?total)|"
    r"runtime stats: |alloc_bytes|StackInuse|\bSys\b|heap_(?:sys|inuse|idle|alloc|released?)|"
    r"total_alloc|Pause(?:Ns|Quantiles|: \[)|\.\.\. \d+ more|gc_cpu_fraction|\b(?:alloc|sys)=\d|"
    r"GC uses|GC used|GC takes|GC took|GC spen|GC is us|GC has |GC CPU|gcCPU|gc_cpu|gc cpu|"
    r"^[ \t#>]*[0-9]+,? [0-9]+,? [0-9]+,? [0-9]+,? [0-9]|^[ \t#>]*[0-9]+,(?: ?[0-9]+,)*$|"
    r"alloc_(?:[kmg]i?b)\b|Mallocs|\bFrees\b|\bLookups\b|HeapObject|StackSys|Stack =|MSpan|MCache|"
    r"BuckHashSys|GCSys|OtherSys|LastGC|NumForcedGC|GCCPUFraction|BySize|DebugGC|"
    r"(?:heap|stack)-(?:alloc|sys|idle|in-use|released)|stack-m(?:span|cache)-|total-alloc|(?:next|num|forced)-gc|gc-(?:pause|cpu)|"
    r"\b(?:alloc|sys|mallocs|frees|other-sys|gc-sys): \d|"
    # A value below its name, and Hugo's name.
    r"^[ \t]{0,9}\d[\d.]*(?: ?[KMGT]i?B|[mµ]?s)?$|"
    r"^(?:[A-Z][A-Za-z]+ ){1,4}(?:Usage|Obtained|Idle|Use|Released|Recycle|Pause|Times|"
    r"Allocated):?(?:$|\s\d)|"
    r"^hugo v\d|uilding sites"
)

_VALUE = (
    r"(?P<value>0x[0-9a-f]{1,16}|\d[\d,]{0,40}(?:\.\d{1,30})?(?:[eE][+-]?\d{1,2})?)"
    r"\s?(?P<unit>(?i:(?:[kmgt]i?|kilo|mega?|giga?)(?:b(?:ytes)?)?|(?:meg|gig)s|b(?:ytes)?|"
    r"[nuµm]?s)(?![\w.])|%)?"
)
_SEPARATOR = r"=>?|:|＝|\||->|\.{3,40}|</t[dh]>\s*<t[dh][^>]{0,50}>"
"""Text between a name and its value; after a name of MemStats, a blank is enough."""

_PAIR = re.compile(
    r"(?<![\w.-])[\"']?(?:(?:mem|memory|memstats|runtime|go)\.)?"
    r"(?P<key>[A-Za-z][A-Za-z_.]*+(?:[ -][A-Za-z][A-Za-z_]*+){0,4}+)[\"']?\s*+"
    # go-spew prints the type; gops prints the condition of the next cycle and the exact size.
    rf"(?:{_SEPARATOR}|(?:(?<=\s)|,)(?P<bare>))\s*(?:\([\w.]{{1,20}}\) |when heap-alloc >= )?\"?"
    rf"{_VALUE}(?![\w.]*\w|-\d)(?:\s\((?P<exact>\d{{1,20}}) bytes\))?"
)
_GLUED = re.compile(
    r"(?:(?<=\d P)|(?<=\d)((?: ?[KMGT]?i?B)?))(?=(?:(?:mem|memory|memstats|ms?)\.)?"
    r"(?:(?:Total)?Alloc|Sys|Mallocs|Frees|(?:Num|Next|Last)GC|Heap[A-Z]\w{2,8})\s?[:=])"
)
"""Place between a value and the next name, if a page lost the blank or line end."""

_ONLY_VALUE = re.compile(_VALUE)
_ONLY_NAME = re.compile(r"([A-Za-z]+(?: [A-Za-z]+){1,4}):?")
"""Dashboards have each name on one line, and its value on the next."""

_IN_USE_AND_SYS = re.compile(r"\b(Stack|MSpan|MCache) = (\d{1,20}) / (\d{1,20})\b")
_INSIDE = re.compile(r"\"memstats\" ?: ?\{[^{}]{0,2000}\}")
_SINCE_LAST = "on-zero metrics in the last"
"""Beats' line with changes: the size of memory from the OS is its growth."""

_ROW = re.compile(
    r"^\W*(?:[\w.]{1,40}\.)?(?P<key>[A-Z]\w{2,15}|[A-Za-z]\w*(?: \w+){0,4}(?=\s*\t|\s{2}))"
    rf"(?:\s+|, *){_VALUE}(?P<exact>)\s*(?:\(|$)"
)
"""A name, its value, and perhaps an explanation, as in a table."""

_SIGN = re.compile(_SEPARATOR)
_GO_DURATION = re.compile(r"(?<![\w.])(?:(\d{1,9})h)?(\d{1,9})m(\d{1,2}(?:\.\d{1,9})?)s\b")
_OF_CPU = re.compile(
    # A whole message: a part of a sentence is somebody's text, and may name a time.
    r"^[^A-Za-z]{0,60}GC (?:is |was |has )?(?:us|tak|took|spen)\w{0,4}\s(?:about |only |~ ?)?"
    r"(?P<share>\d{1,3}(?:\.\d{1,9})?) ?% of (?:the |its |all |total |available )*CPU[ \t]*$"
    r"|\b[gG][cC][ _-]?(?:CPU|cpu)(?:[ _-]?(?:fraction|usage|time|share|percent))?\s?[:=]\s?"
    r"(?:(?P<printed>\d{1,3}(?:\.\d{1,9})?) ?%|(?P<fraction>0\.\d{4,20})(?![\d.]| ?%))"
)
"""Wordings for GCCPUFraction. Without a unit, fewer decimals may be those of a percentage."""

_LENGTH = r"\d{1,20}+(?:\.\d{1,9}+)?+(?:[nuµm]?s\b)?+"
_LENGTHS = rf"[\s,]{{0,9}}{_LENGTH}(?:[\s,]{{1,9}}{_LENGTH}){{0,300}}+"
_PAUSES = re.compile(
    r"\b(?:PauseNs|Pause|(?P<quantiles>[pP]ause_?[qQ]uantiles))[\"']?\s{0,9}[:=]\s{0,9}"
    r"(?:\(\w{1,20}\) ?)?"
    rf"(?:\[\d{{0,9}}\][\w.]{{1,20}} ?)?[\[{{(]?(?P<lengths>{_LENGTHS}|\s{{0,9}}$)"
)
_LISTS = ("pauses_ns", "quantiles_ns")
"""Keys of a row: the pauses of the last cycles, and the quantiles of `debug.GCStats`."""

_OPEN = "open"
"""Key of a row whose list of pauses has no end yet."""

_CLOSED = re.compile(r"[\])}]")
_PAUSES_BY_NAME = {"pause_total_ns", "last_pause_ns"}
"""Columns of a pause that is identified by its name."""

_MORE_PAUSES = re.compile(rf"[^\w,.]{{0,9}}{_LENGTHS}[^\w]{{0,9}}")
"""The pauses of MemStats or of `debug.GCStats`, on the line of their name or on the next ones."""


def read(messages: Iterable[Message]) -> list[Row]:
    """Returns one row per dump.

    A dump is one line, or several nearby lines up to the first field that is repeated.
    """
    rows = _built(messages)
    for row in rows:
        row.pop("last_line", None)
        quantiles = fields.quantiles(row.pop("quantiles_ns", ()))
        row |= _of_pauses(row, row.pop("pauses_ns", ())) or quantiles
    dumps = [row for row in rows if _is_dump(row)]
    for row in dumps:
        row.pop(_VAGUE, None)
    return with_distances(dumps)


def _built(messages: Iterable[Message]) -> list[Row]:
    """Returns the dumps with their last line and the list of their pauses."""
    rows: list[Row] = []
    building: dict[object, Row] = {}
    by_size: set[object] = set()
    listed: tuple[object, str] | None = None
    prefixes, before = fields.PREFIXES, None
    for message in messages:
        if record := _record(message.text):
            rows.append(place(message) | record)
            continue
        prefixes = fields.DECIMAL if fields.HUGO.search(message.text) else prefixes
        before, message = message, _with_name(message, before)
        pairs = _line(message.text, prefixes)
        key = message.identity() | {"line_no": 0, "logged_at": None, "monotonic_s": None}
        stream = tuple(key.values())
        row = building.get(stream)
        if row is not None and _CLOSED.search(message.text):
            row.pop(_OPEN, None)
        goes_on = listed is not None and listed[0] == stream
        if row is not None and listed and goes_on and _MORE_PAUSES.fullmatch(message.text):
            row[listed[1]] += _lengths_ns(message.text)
            row["last_line"] = message.line_no
            continue
        kind = next((name for name in _LISTS if name in pairs), "")
        listed = (stream, kind) if kind and _goes_on(message.text) else None
        if _is_of_size(message.text, pairs, by_size, stream):
            if row is not None:
                row["last_line"] = message.line_no
            continue
        known = {column for column in pairs if column in _FIELDS}
        if not known:
            continue
        if row is None or not _is_near(message, row) or known & row.keys():
            row = place(message) | {"last_line": message.line_no}
            building[stream] = row
            rows.append(row)
        vague = row.get(_VAGUE, set()) | pairs.get(_VAGUE, set())
        if unit := max(row.get("resolution_bytes", 0), pairs.get("resolution_bytes", 0)):
            pairs["resolution_bytes"] = unit
        row |= pairs | {"last_line": message.line_no, _VAGUE: vague}
    return rows


def _record(text: str) -> Row | None:
    """Returns the row of a line that ends with JSON: log libraries write words before it.

    In a truncated line, the object `memstats` may be complete.
    """
    begin = text.find("{") if text.endswith("}") else -1
    whole = text[begin:] if begin >= 0 else ""
    if begin < 0 and (inner := _INSIDE.search(text)):
        whole = f"{{{inner[0]}}}"
    record = json_records.from_text(whole) if whole else None
    if record and _SINCE_LAST in text:
        record.pop("sys_bytes", None)
    return record


def _line(text: str, prefixes: Mapping[str, int]) -> Row:
    """Returns the fields on a line, with the list of pauses that it has or begins."""
    text = _SIZES.sub("", text)
    row: Row = dict(_cockroach(text) or _both_sizes(text) or _pairs(text, prefixes))
    if _SINCE_LAST in text:
        row.pop("sys_bytes", None)
    if (unit := row.get("resolution_bytes")) and text[-1:].isdigit():
        # If a size has fewer bytes than the unit of the others, its own unit was cut off.
        sizes = [name for name in row if name.endswith("_bytes") and 0 < row[name] < unit]
        row = {n: v for n, v in row.items() if n not in sizes or not text.endswith(f" {v}")}
    if pauses := _PAUSES.search(text):
        lengths = _lengths_ns(pauses["lengths"])
        named = row.keys() & _PAUSES_BY_NAME if lengths else _ONLY_NAME.fullmatch(text)
        if lengths[1:] or not named:
            row[_LISTS[bool(pauses["quantiles"])]] = lengths
        if text[pauses.start("lengths") - 1] in "[{(" and _goes_on(text):
            row[_OPEN] = True
    return row


def _both_sizes(text: str) -> Row:
    """Returns the used and the obtained size from text with both on one line."""
    both = _IN_USE_AND_SYS.search(text)
    sizes = zip(("inuse", "sys"), both.groups()[1:], strict=True) if both else ()
    return {f"{both[1].lower()}_{end}_bytes": int(size) for end, size in sizes if both}


def _goes_on(text: str) -> bool:
    """Returns whether the list of pauses on a line may continue on the next: it has no end."""
    match = _PAUSES.search(text)
    return match is None or _CLOSED.search(text, match.end()) is None


def _with_name(message: Message, before: Message | None) -> Message:
    """Returns a message that is only a value with its name, which is on the line before."""
    if before is None or message.line_no - before.line_no != 1:
        return message
    name, value = _ONLY_NAME.fullmatch(before.text.strip()), message.text.strip()
    if name and _ONLY_VALUE.fullmatch(value) and fields.scaled(name[1])[0]:
        return message._replace(text=f"{name[1]}: {value}")
    return message


def _lengths_ns(text: str) -> list[int]:
    """Returns the pauses in a list; without a unit they are in ns.

    >>> _lengths_ns("41802117, 39951026"), _lengths_ns("1.5ms 230µs")
    ([41802117, 39951026], [1500000, 230000])
    """
    pairs = re.findall(r"(\d+(?:\.\d+)?)([nuµm]?s\b)?", text)
    lengths = (numbers.whole(value, fields.DURATIONS[unit or "ns"]) for value, unit in pairs)
    return [length for length in lengths if length is not None]


def _of_pauses(row: Row, lengths_ns: Sequence[int]) -> Row:
    """Returns the columns of a list of pauses; a single number is the pause of the last cycle."""
    if len(lengths_ns) == 1:
        return {"last_pause_ns": lengths_ns[0]}
    if row.pop(_OPEN, False):
        # The rest of a truncated number is a number too.
        lengths_ns = lengths_ns[:-1]
    last = {"last_pause_ns": fields.last_pause(lengths_ns, row.get("num_gc"))}
    return fields.pauses(lengths_ns) | (last if len(lengths_ns) == fields.RING else {})


def place(message: Message) -> Row:
    """Returns the metadata of a message, with the time whose date or zone is unknown."""
    known = message.local_s is not None or message.logged_at is not None
    local_s = message.local_s if known else dump_times.of_day_s(message.text)
    return message.identity() | {"local_s": local_s}


def with_distances(rows: list[Row]) -> list[Row]:
    """Returns the rows with what local times show, if no other time is known.

    They show `elapsed_s`, and whether any Go of that time had GOMEMLIMIT.
    """
    printed = [at for row in rows if re.match(r"20\d\d-", at := row.get("printed_at") or "")]
    if printed and (releases := clock.releases_at(max(printed))):
        rows = [{"go_version": releases} | row for row in rows]
    local_s = pl.Series([row.pop("local_s", None) for row in rows], dtype=pl.Float64)
    dated = any(row.get("logged_at") is not None for row in rows)
    if not local_s.count() or dated or (since := clock.distances_s(local_s)) is None:
        return rows
    return [
        row if at is None else row | {"elapsed_s": at}
        for row, at in zip(rows, since, strict=True)
    ]


_SIZES = re.compile(r"\bBySize[\"']?:? ?\[[^\]]{1,9999}")
_OF_SIZES = {"mallocs", "frees"}
"""Fields that a dump has once, and `BySize` once for each size class."""


def _is_of_size(text: str, pairs: Row, by_size: set[object], stream: object) -> bool:
    """Returns whether a line is part of `BySize`, one field per line; notes where that is."""
    if "BySize" in text and not pairs and "]" not in text:
        by_size.add(stream)
    elif stream in by_size and (not pairs.keys() <= _OF_SIZES or "DebugGC" in text):
        by_size.remove(stream)
    return stream in by_size


_NEAR_LINES, _NEAR_LINES_OF_ALL = 8, 1000
"""Most lines between two fields of one dump, and of a full dump, which has arrays."""

_NEARLY_ALL = 12
"""A full dump has at least this many fields."""


def _is_near(message: Message, row: Row) -> bool:
    fields_of_all = sum(name in _FIELDS for name in row)
    most = _NEAR_LINES_OF_ALL if fields_of_all >= _NEARLY_ALL else _NEAR_LINES
    return bool(message.line_no - row["last_line"] <= most)


def _is_dump(row: Row) -> bool:
    given = [
        name
        for name in (*fields.KNOWN, "mapped_bytes")
        if row.get(name) is not None and name in _MEMORY_FIELDS - row.get(_VAGUE, set())
    ]
    has_share = row.get("gc_cpu_fraction") is not None
    return len(given) >= fields.ENOUGH or (
        has_share and "gc_cpu_fraction" not in row.get(_VAGUE, ())
    )


_VAGUE = "vague"
"""Key of a row: the columns whose names another program may also use."""

_FIELDS = {*fields.KNOWN, *_LISTS} - {"resolution_bytes"}
_OTHER_FIELDS = {
    "resolution_bytes",
    "rss_bytes",
    "rss_peak_bytes",
    "gomemlimit_bytes",
    "pool_bytes",
}
_MEMORY_FIELDS = {
    *(name for name in fields.KNOWN if name.endswith("_bytes") and name not in _OTHER_FIELDS),
    "mapped_bytes", "num_gc", "pause_total_ns", "pause_max_s", "num_forced_gc",
}  # fmt: skip
"""Fields that no other program prints; two of them are a dump."""


_OF_HEAP = {name: f"heap_{name}_bytes" for name in ("idle", "inuse", "released")}
"""Names that other programs use too: next to MemStats fields, they mean its heap."""


def _pairs(
    text: str, prefixes: Mapping[str, int]
) -> Iterator[tuple[str, float | int | set[str]]]:
    """Yields column and value of each field on a line; sizes are in bytes.

    If sizes are printed in a larger unit, `resolution_bytes` is the unit of the last digit.
    """
    resolution, seen, vague = 1, set[str](), set[str]()
    if of_cpu := _OF_CPU.search(text):
        percent = of_cpu["share"] or of_cpu["printed"]
        share = float(percent) * fields.PERCENT if percent else float(of_cpu["fraction"])
        yield "gc_cpu_fraction", share
    text = _GLUED.sub(r"\1 ", _GO_DURATION.sub(_in_seconds, text))
    for match in _PAIR.finditer(text) if _SIGN.search(text) else _ROW.finditer(text):
        name, column, factor = _named(match["key"].split(" "))
        if column in (None, "line_no", "source") or (factor != 1 and column not in _FIELDS):
            continue
        # BySize repeats the names.
        is_bare = match.groupdict().get("bare") == "" and not fields.is_unmistakable(name)
        if is_bare or column in seen:
            continue
        seen.add(column)
        value, unit = match["value"].replace(",", ""), (match["unit"] or "").lower()
        if match["exact"]:
            value, unit = match["exact"], "b"
        number, digit = fields.quantity(column, value, unit, factor, prefixes)
        resolution = max(resolution, digit)
        if number is not None:
            yield column, number
            if fields.is_vague(name) or factor == fields.PERCENT:
                vague.add(column)
    if vague:
        yield _VAGUE, vague
    if resolution > 1:
        yield "resolution_bytes", resolution


def _named(words: Sequence[str]) -> tuple[str, str | None, float]:
    """Returns the name, the column and the factor of a field after any other words."""
    # The words before may be anything, such as the log level.
    names = (" ".join(words[at:]) for at in range(len(words)))
    for name in names:
        column, factor = fields.scaled(name)
        # What is printed may be the difference of two fields.
        if column and "minus" not in words:
            return name, column, factor
    return words[-1], _OF_HEAP.get(words[-1].lower()), 1.0


def _in_seconds(duration: re.Match[str]) -> str:
    hours, minutes, seconds = (float(part or 0) for part in duration.groups())
    return f"{3600 * hours + 60 * minutes + seconds:.9f}s"


_COCKROACH = re.compile(
    r"runtime stats: (?P<rss_bytes>{0}) RSS, (?P<goroutines>\d{{1,12}}) goroutines"
    r"(?: \(stacks: (?P<stack_sys_bytes>{0})\))?.{{0,200}}?, "
    r"(?P<alloc_bytes>{0})/(?:(?P<heap_free_bytes>{0})/)?(?P<mapped_bytes>{0}) G[oO] alloc"
    r"(?:/total(?:(?:\(stale\))? \(heap fragmentation: (?P<fragmented_bytes>{0}), heap reserved: "
    r"(?P<reserved_bytes>{0}),|.{{0,80}}?) heap released: (?P<heap_released_bytes>{0})\))?"
    r"(?:.{{0,40}}? {0}/(?P<cgo_bytes>{0}) CGO alloc)?".format(
        r"\d{1,30}(?:\.\d{1,30})? (?:[KMGT]i?)?B"
    )
)
_OF_LAST_TIME = re.compile(r" (\d{1,3}\.\d{1,2}) ?%gc \((\d{1,9})x\)")
"""Pauses and cycles since the previous line, every ten seconds (GCPausePercent, GCRunCount)."""

_IN_C = re.compile(r"[, ](\d[\d.]{0,9} [KMGT]?i?B)/(\d[\d.]{0,9} [KMGT]?i?B) CGO alloc")


def of_last_times(messages: Iterable[Message]) -> Iterator[str]:
    """Yields a note on GC in CockroachDB's lines, which show no total."""
    texts = [message.text for message in messages if "runtime stats: " in message.text]
    known = [(float(of[1]), int(of[2])) for of in map(_OF_LAST_TIME.search, texts) if of]
    if known:
        most, cycles = max(known)[0], max(count for _, count in known)
        ran = f"{cycles:,} {'cycle' if cycles == 1 else 'cycles'}"
        yield (
            "CockroachDB counts GC from line to line, usually ten seconds "
            f"({len(known):,} lines in the input): {ran} at most, and pauses for under "
            f"{most + 0.05:.4g} % of the time."
        )
    if in_c := [of.groups() for of in map(_IN_C.search, texts) if of]:
        yield (
            f"Outside Go, CockroachDB's C code (jemalloc) had allocated {in_c[-1][0]} of "
            f"{in_c[-1][1]} at last."
        )


def _cockroach(text: str) -> Row:
    """Returns the fields of CockroachDB's line of runtime statistics."""
    row: Row = {}
    for column, size in match.groupdict().items() if (match := _COCKROACH.search(text)) else ():
        if column == "goroutines":
            row[column] = int(size)
        elif size:
            row[column], digit = fields.quantity(column, *size.lower().split(" "))
            row["resolution_bytes"] = max(row.get("resolution_bytes", 1), digit)
    if "heap_released_bytes" in row:
        row["sys_bytes"] = row["mapped_bytes"] + row["heap_released_bytes"]
    if "reserved_bytes" in row:
        row["heap_inuse_bytes"] = row["alloc_bytes"] + row.pop("fragmented_bytes")
        row["heap_idle_bytes"] = row.pop("reserved_bytes") + row["heap_released_bytes"]
    return row
