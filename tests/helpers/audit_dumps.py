"""Holds what a report says about MemStats dumps and scrapes against their fields.

Each check computes a figure a second time, with nothing of the package, and yields what the report
says and what is true. A figure whose fields are missing must not be there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from tests.helpers.traced import NUMBER, SIZE, half_digit, mib, milliseconds, number

MIB = 1 << 20
RING = 256
Dump = dict[str, Any]
Pair = tuple[object, object]
TIME = rf"{NUMBER} ?(?:ms|µs|s|m|h|d)(?: {NUMBER}s)?"


def audit(
    dumps: Sequence[Dump], dropped: frozenset[str], markdown: str
) -> list[tuple[str, object, object]]:
    """Returns what a report says that the dumps of one process contradict, with the check.

    Args:
        dumps: the fields by Go's names, in the order of time.
        dropped: names of fields that the input does not have.
        markdown: the report as Markdown.
    """
    text = re.sub(r"\\(?=[<>|_`*+#-])", "", markdown)
    checks = (_sizes, _pauses, _since_start, _between, _gc_cpu)
    given = [
        completed({name: dump[name] for name in dump if name not in dropped}) for dump in dumps
    ]
    return [(check.__name__, *pair) for check in checks for pair in check(given, text)]


def completed(dump: Dump) -> Dump:
    """Adds what follows from other fields: HeapSys is HeapInuse and HeapIdle."""
    if "Alloc" in dump:
        dump.setdefault("HeapAlloc", dump["Alloc"])
    for name, whole, part in (
        ("HeapInuse", "HeapSys", "HeapIdle"),
        ("HeapIdle", "HeapSys", "HeapInuse"),
    ):
        if name not in dump and whole in dump and part in dump:
            dump[name] = dump[whole] - dump[part]
    return dump


def _row(text: str, label: str) -> tuple[str, str] | None:
    found = re.search(rf"^\| {label} \| ([^|]*) \| ([^|]*)", text, re.M)
    return (found[1], found[2]) if found else None


def _is(said: str, true: float, slack: float = 0.0) -> bool:
    return abs(number(said) - true) <= 1.02 * half_digit(said) + slack + 0.004 * abs(true)


def _is_size(said: Sequence[str], size: float) -> bool:
    step = half_digit(said[0]) * {"KiB": 1 / 1024, "MiB": 1, "GiB": 1024}[said[1]]
    return abs(mib(*said) - size / MIB) <= 1.02 * step + 0.004 * size / MIB


def _needs(dumps: Sequence[Dump], *names: str) -> bool:
    return all(name in dump for name in names for dump in dumps)


_SIZES = {
    rf"^\| Heap in use \| {SIZE}": "HeapInuse",
    rf"^\| From the OS \| {SIZE}": "Sys",
    rf"^\| heap objects \| {SIZE}": "HeapAlloc",
    rf"^\| GC metadata \| {SIZE}": "GCSys",
    rf"^\| profiling \| {SIZE}": "BuckHashSys",
    rf"^\| stacks \| {SIZE}": "StackSys",
    rf"heap goal (?:was )?{SIZE}": "NextGC",
    rf"{SIZE} of it returned": "HeapReleased",
    rf"heap goal [^|]*; live heap {SIZE}": "live_bytes",
}
_COLUMNS = {"in use": "HeapInuse", "heap objects": "HeapAlloc", "all from OS": "Sys"}


def _sizes(dumps: Sequence[Dump], text: str) -> Iterator[Pair]:
    """Yields sizes that are no fields; those of the memory table are the largest of each."""
    for pattern, name in _SIZES.items():
        known = [dump[name] for dump in dumps if name in dump]
        for said in re.findall(pattern, text, re.M):
            if not any(_is_size(said[-2:], size) for size in known):
                yield (name, said), known
    table = re.search(r"^\| Memory \((?:MemStats|metrics)\)(.*)\n.*\n\| [^|]*(.*)", text, re.M)
    heads, cells = (
        ([part.strip() for part in row.split("|")] for row in table.groups())
        if table
        else ((), ())
    )
    for head, cell in zip(heads[1:], cells[1:], strict=True):
        known = [dump[name] for dump in dumps for name in [_COLUMNS.get(head)] if name in dump]
        said = re.match(SIZE, cell)
        if said and head in _COLUMNS and not (known and _is_size(said.groups(), max(known))):
            yield (head, cell), known
        if head == "GCs" and cell[:1].isdigit() and number(cell) != dumps[-1].get("NumGC"):
            yield (head, cell), dumps[-1].get("NumGC")


def _ring(dump: Dump, after: int = 0) -> list[float]:
    """Returns the pauses (ms) of cycles after this one, as far as the runtime remembers them."""
    last = dump["NumGC"]
    return [
        dump["PauseNs"][(cycle - 1) % RING] / 1e6
        for cycle in range(max(after, last - RING) + 1, last + 1)
    ]


def _pauses(dumps: Sequence[Dump], text: str) -> Iterator[Pair]:
    row, first, last = _row(text, "Pauses"), dumps[0], dumps[-1]
    if row is None:
        return
    if len(dumps) == 1 and not ({"PauseNs", "PauseTotalNs"} & set(last)):
        yield row, "no field of pauses"
    if not _needs([last], "PauseNs", "NumGC"):
        return
    own = _ring(last, first["NumGC"] if len(dumps) > 1 else 0)
    if not own:
        return
    longest = (
        re.match(rf"({TIME})", row[0])
        if re.match("longest|max", row[1])
        else re.search(rf"({TIME}) max", row[1])
    )
    if (
        longest
        and "up to" not in row[0]
        and abs(milliseconds(longest[1]) - max(own)) > 0.05 * max(own) + 0.002
    ):
        yield row, max(own)
    in_order = sorted(own)
    middle = in_order[(len(own) - 1) // 2], in_order[len(own) // 2]
    for word, low, high in (("median", *middle), ("shortest", min(own), min(own))):
        said = re.search(rf"{word} ({TIME})", row[1]) if len(dumps) == 1 else None
        if said and not 0.97 * low - 0.002 <= milliseconds(said[1]) <= 1.03 * high + 0.002:
            yield (word, row), (low, high)


def _since_start(  # noqa: C901  # several sentences
    dumps: Sequence[Dump], text: str
) -> Iterator[Pair]:
    """Yields figures since the start that are not those of the dump; of one dump only."""
    if len(dumps) > 1:
        return
    (dump,) = dumps
    number_of, total_ms = dump.get("NumGC"), dump.get("PauseTotalNs", -1) / 1e6
    for count in re.findall(r"([\d,]+) (?:GC )?cycles? (?:ha(?:s|ve) stopped|ran|in)", text):
        if (
            count.replace(",", "") != str(number_of)
            and f"{count} cycles in the input" not in text
        ):
            yield count, number_of
    for said in re.findall(rf"stopped the program for ({TIME}) in all", text):
        if abs(milliseconds(said) - total_ms) > 0.05 * total_ms:
            yield said, total_ms
    for said in re.findall(rf"({TIME}) on average", text):
        if (
            number_of is None
            or abs(milliseconds(said) - total_ms / number_of) > 0.03 * total_ms / number_of
        ):
            yield ("mean", said), (total_ms, number_of)
    length_s = dump["at_s"]
    for rate, per in re.findall(rf"^\| Frequency \| ({NUMBER})/(s|min|h)", text, re.M):
        true = (number_of or 0) / length_s * {"s": 1, "min": 60, "h": 3600}[per]
        if not _is(rate, true, 0.01 * true):
            yield ("rate", rate, per), true
    for said in re.findall(rf"^\| Allocation \| {SIZE}/s", text, re.M):
        if "TotalAlloc" not in dump or not _is_size(said, dump["TotalAlloc"] / length_s):
            yield ("allocation", said), dump.get("TotalAlloc")
    share = 100 * dump["gc_cpu_s"] / dump["procs"] / (dump["last_s"] or 1)
    for said in re.findall(rf"(?:GC has taken|that is) ({NUMBER}) % of (?:the|all) CPU", text):
        if "GCCPUFraction" not in dump or not _is(said, share, 0.02 * share):
            yield ("share", said), share
    for own, used, said in re.findall(
        rf"GC has taken ({NUMBER}) of the ({NUMBER}) CPU seconds that were not idle \(({NUMBER}) %",
        text,
    ):
        if not (
            _is(own, dump["gc_cpu_s"])
            and _is(used, dump["cpu_s"])
            and _is(said, 100 * dump["gc_cpu_s"] / dump["cpu_s"])
        ):
            yield (own, used, said), (dump["gc_cpu_s"], dump["cpu_s"])
    for said in re.findall(rf"^\| CPU used \| ({NUMBER}) %", text, re.M):
        if not _is(said, 100 * dump["cpu_s"] / length_s):
            yield ("used", said), dump["cpu_s"] / length_s


def _between(dumps: Sequence[Dump], text: str) -> Iterator[Pair]:
    """Yields rates between the first dump and the last one that their fields contradict."""
    first, last = dumps[0], dumps[-1]
    if len(dumps) == 1 or "began with its process" in text:
        return
    # Dumps without times are as far apart as their last cycles.
    spans = [last[name] - first[name] or 1 for name in ("at_s", "last_s")]
    seconds = spans[0]
    row, rate = _row(text, "Frequency"), None
    if row and (rate := re.match(rf"({NUMBER})(?:–({NUMBER}))?/(s|min|h)", row[0])):
        cycles = last["NumGC"] - first["NumGC"] if _needs(dumps, "NumGC") else None
        per = {"s": 1, "min": 60, "h": 3600}[rate[3]]
        # Between the first cycle and the last one, or between the dumps.
        true = (
            None
            if cycles is None
            else [(cycles - 1) / max(spans) * per, (cycles + 1) / min(spans) * per]
        )
        low, high = number(rate[1]), number(rate[2] or rate[1])
        if true is None or not (0.97 * low - 0.01 <= true[1] and true[0] <= 1.03 * high + 0.01):
            yield row, true
    row = _row(text, "Allocation")
    if row:
        total = re.search(rf"{SIZE} in total", f"{row[0]} {row[1]}")
        grown = (
            last["TotalAlloc"] - first["TotalAlloc"] if _needs(dumps, "TotalAlloc") else None
        )
        if total and (grown is None or not _is_size(total.groups(), grown)):
            yield row, grown
        speed = re.match(rf"{SIZE}/s", row[0])
        if speed and (
            grown is None or not any(_is_size(speed.groups(), grown / each) for each in spans)
        ):
            yield row, grown and grown / seconds / MIB
    row = _row(text, "Pauses")
    share = row and re.search(
        rf"(?<![\d.])(?<!under )({NUMBER}) % of time", f"{row[0]} {row[1]}"
    )
    if row and share:
        known = _needs(dumps, "PauseTotalNs")
        total = (last["PauseTotalNs"] - first["PauseTotalNs"]) / 1e7 if known else None
        if total is None or not any(
            _is(share[1], total / each, 0.12 * total / each) for each in spans
        ):
            yield row, total
    row = _row(text, "Heap goal")
    goals = [dump["NextGC"] / MIB for dump in dumps if "NextGC" in dump]
    said = row and re.match(rf"{SIZE}", row[0])
    if (
        row
        and said
        and not (goals and 0.97 * min(goals) <= mib(*said.groups()) <= 1.03 * max(goals))
    ):
        yield row, goals


def _gc_cpu(dumps: Sequence[Dump], text: str) -> Iterator[Pair]:
    """Yields shares of GC CPU between two dumps that no field shows, or that are others."""
    first, last = dumps[0], dumps[-1]
    row = _row(text, "GC CPU")
    said = row and re.match(rf"({NUMBER})(?:–({NUMBER}))? %", row[0])
    if len(dumps) == 1 or row is None or not said:
        return
    if not _needs(dumps, "GCCPUFraction"):
        yield row, "no GCCPUFraction"
        return
    seconds = last["last_s"] - first["last_s"] or 1
    true = 100 * (last["gc_cpu_s"] - first["gc_cpu_s"]) / last["procs"] / seconds
    low, high = number(said[1]), number(said[2] or said[1])
    # Without a known start, GCCPUFraction is taken as a mean since an estimated one.
    slack = max(half_digit(end) for end in (said[1], said[2] or said[1]))
    if not 0.45 * low - slack <= true <= 2.2 * high + slack:
        yield row, true
