"""Holds a report on an excerpt of a MemStats series against the whole recording.

Each check computes bounds with nothing of the package, from the dumps that the input has and from
the cycles that it does not show, and yields what the report says and what is true.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tests.helpers.audit_dumps import completed
from tests.helpers.traced import NUMBER, SIZE, half_digit, mib, milliseconds, number
from tests.helpers.written_dumps import MIB, Dump

if TYPE_CHECKING:
    from tests.helpers.written_series import Cycle, Excerpt

Fault = tuple[str, object, object]
TIME = rf"(?:{NUMBER} ?(?:ms|µs|s)|\d+[mhd] \d+[smh])"
ROUNDED = 0.006
"""Share: three digits."""


def audit(it: Excerpt, report: Mapping[str, Any], markdown: str) -> list[Fault]:
    """Returns what a report says that the recording contradicts.

    Args:
        it: the excerpt.
        report: the report as JSON.
        markdown: the same as Markdown.
    """
    text = re.sub(r"\\(?=[<>|_`*+#-])", "", markdown)
    seen = _Seen(it, report)
    return [
        *seen.rates(), *seen.pauses(), *seen.gc_cpu(), *seen.heap(), *seen.settings(),
        *seen.memory(), *_rows(seen, text), *_sentences(seen, text), *_of_kill(seen, text),
    ]  # fmt: skip


class _Seen:
    """The part of a recording that the figures of a report are about."""

    def __init__(self, it: Excerpt, report: Mapping[str, Any]) -> None:
        self.it, self.report, self.summary = it, report, report["summary"]
        self.dumps = [_completed(dump, it) for dump in it.dumps]
        self.is_since_start = self.summary["window"] == "since-start"
        timed = it.dumps
        if it.tick_s is None:
            # Without times, a dump has that of its last cycle.
            timed = tuple(dump for dump in timed if dump["NumGC"]) or timed
        self.first: Dump = dict.fromkeys(timed[0], 0) if self.is_since_start else timed[0]
        self.last = it.dumps[-1]
        numbers = (self.first["NumGC"], self.last["NumGC"])
        self.cycles = [
            each for each in it.recording.cycles if numbers[0] < each.num <= numbers[1]
        ]
        low_s = high_s = self.last["at_s"] - self.first["at_s"]
        if it.tick_s is None:
            # Times are those of the last cycles, or of a regular loop that fits them.
            between_s = self.last["last_s"] - self.first["last_s"]
            low_s, high_s = min(between_s, low_s), max(between_s, high_s)
            low_s, high_s = 0.5 * low_s, 1.4 * high_s
        self.span_s = low_s, high_s

    def has(self, *names: str) -> bool:
        return not {*names} & self.it.dropped

    def difference(self, name: str) -> float:
        return float(self.last[name] - self.first[name])

    def between(
        self, name: str, low: float, high: float, slack: float = ROUNDED
    ) -> Iterator[Fault]:
        said = self.summary[name]
        if (
            said is not None
            and not low * (1 - slack) - 1e-9 <= said <= high * (1 + slack) + 1e-9
        ):
            yield name, said, (low, high)

    def known(self, name: str, *fields: str) -> Iterator[Fault]:
        """Yields a figure whose fields the input lacks."""
        if self.summary[name] is not None and not self.has(*fields):
            yield f"{name} without {fields}", self.summary[name], None

    @property
    def tick(self) -> float:
        return 1.0 if self.it.tick_s == 1 else 0.0

    def rate(
        self, name: str, total: tuple[float, float], slack: float = ROUNDED
    ) -> Iterator[Fault]:
        low_s, high_s = self.span_s
        low = total[0] / max(high_s + self.tick, 1e-9)
        high = total[1] / max(low_s - self.tick, 1e-9)
        yield from self.between(name, low, high, slack)

    def rates(self) -> Iterator[Fault]:
        low_s, high_s = self.span_s
        yield from self.between("span_s", low_s - self.tick, high_s + self.tick)
        yield from self.known("gc_per_s", "NumGC")
        yield from self.known("alloc_total_mib", "TotalAlloc")
        cycles, forced = self.summary["cycles"], self.summary["forced_cycles"]
        if self.has("NumGC") and cycles != len(self.cycles) and cycles:
            yield "cycles", cycles, len(self.cycles)
        if self.has("NumForcedGC") and forced not in (None, 0, self.difference("NumForcedGC")):
            yield "forced", forced, self.difference("NumForcedGC")
        number_of = len(self.cycles)
        yield from self.rate("gc_per_s", (number_of, number_of))
        total = self.difference("TotalAlloc") / MIB
        step = self.it.unit / MIB if self.it.unit > 1 else 0
        yield from self.between("alloc_total_mib", total - step, total + step)
        yield from self.rate("alloc_mib_per_s", (total - step, total + step))

    def pauses(self) -> Iterator[Fault]:
        yield from self.known("stw_total_ms", "PauseTotalNs") if self.has("PauseNs") else ()
        pauses = [cycle.pause_ms for cycle in self.cycles]
        total = sum(pauses)
        if self.has("PauseTotalNs"):
            yield from self.between("stw_total_ms", total, total)
            yield from self.rate("stw_share", (total / 1000, total / 1000))
        if pauses:
            ring = [cycle.pause_ms for cycle in self.it.recording.cycles[: self.last["NumGC"]]][
                -256:
            ]
            longest = max(ring if self.is_since_start else pauses)
            least = 0.0
            if self.has("PauseNs") and self.it.form in ("json", "expvar"):
                least = longest if len(pauses) < 256 else 0.0
            yield from self.between("stw_max_ms", least, longest)
            if self.summary["stw_p50_ms"] is not None:
                own = ring if self.is_since_start else pauses
                # The upper one in metrics, as in readGCStats_m of runtime/debug.
                middle = statistics.median_low(own), statistics.median_high(own)
                yield from self.between("stw_p50_ms", 0.97 * middle[0], 1.03 * middle[1])

    def gc_cpu(self) -> Iterator[Fault]:
        yield from self.known("gc_cpu_share", "GCCPUFraction")
        said = self.summary["gc_cpu_share"]
        if said is None:
            return
        spent = self.difference("gc_cpu_s") / self.it.recording.procs
        bases = [self.difference("last_s") or 1e-9, self.difference("at_s") or 1e-9]
        if self.it.tick_s == 1:
            bases += [bases[0] + 1, max(bases[0] - 1, 1e-9)]
        low, high = spent / max(bases), spent / min(bases)
        ends = [self.summary[f"gc_cpu_share_{end}"] for end in ("low", "high")]
        ends = [said if end is None else end for end in ends]
        slack = 0.03 * high + 2e-6
        if not (ends[0] - slack <= high and low <= ends[1] + slack):
            yield "gc_cpu_share", (said, *ends), (low, high)

    def heap(self) -> Iterator[Fault]:
        live, goals = self._of_cycles("live"), self._of_cycles("goal")
        own = [dump["live_bytes"] / MIB for dump in self.dumps if dump["live_bytes"] > 0]
        is_read = self.it.form.startswith("scrapes") and self.has("GCCPUFraction")
        near = 1.03 if is_read else 1.35
        least, most = min([*live, *own]), max([*live, *own])
        is_estimate = "live_heap_max_mib" in self.summary["estimated"]
        # A report does not print the largest of estimates.
        for name in ("live_heap_p50_mib", "live_heap_max_mib")[: 1 if is_estimate else 2]:
            yield from self.between(name, least / near - 1, most * near + 1)
        named = None if is_estimate else self.summary["live_heap_max_mib"]
        if named is not None and own and len(self.it.dumps) > 1 and named < max(own) / near - 1:
            yield "live_heap_max_mib below a dump", named, max(own)
        of_dumps = [dump["NextGC"] / MIB for dump in self.dumps if "NextGC" in dump]
        if of_dumps:
            step = self.it.unit / MIB
            yield from self.between(
                "heap_goal_p50_mib", min(of_dumps) - step, max(of_dumps) + step
            )
        elif self.summary["heap_goal_p50_mib"] is not None:
            yield "goal", self.summary["heap_goal_p50_mib"], None
        peak = max([cycle.peak for cycle in self._near()] + goals + of_dumps)
        peak = max(
            peak, *(dump["HeapAlloc"] / MIB for dump in self.dumps if "HeapAlloc" in dump), 0
        )
        yield from self.between("heap_peak_mib", max((d["HeapAlloc"] / MIB - 1 for d in self.dumps
                                                       if "HeapAlloc" in d), default=0), 1.1 * peak + 1)  # fmt: skip

    def _near(self) -> list[Cycle]:
        """Returns the cycles of the excerpt, with the one before it and the one after it."""
        low, high = self.first["NumGC"], self.last["NumGC"] + 1
        return [each for each in self.it.recording.cycles if low <= each.num <= high]

    def _of_cycles(self, name: str) -> list[float]:
        return [getattr(cycle, name) for cycle in self._near()] or [4.0]

    def settings(self) -> Iterator[Fault]:
        real = self.it.recording
        for row in self.report["regimes"]:
            for name, true in (("gogc_pct", real.gogc), ("memory_limit_mib", real.limits)):
                low, high = row[f"{name}_low"], row[f"{name}_high"]
                ends = [row[name] if end is None else end for end in (low, high)]
                ends = [float("inf") if end == "off" else end for end in ends]
                if (
                    None in ends
                    or row[name] is None
                    or row[f"{name.replace('_pct', '').replace('_mib', '')}_source"]
                    == "assumed"
                ):
                    continue
                if not any(0.97 * ends[0] - 1 <= value <= 1.03 * ends[1] + 1 for value in true):
                    yield name, row, sorted(true)

    def memory(self) -> Iterator[Fault]:
        fields = {
            "heap_sys_mib": "HeapSys", "sys_mib": "Sys", "alloc_mib": "HeapAlloc",
            "released_mib": "HeapReleased", "num_gc": "NumGC", "idle_unreleased_mib": None,
        }  # fmt: skip
        for row in self.report["memory"] if len(self.report["memory"]) == 1 else ():
            for column, name in fields.items():
                value = row[column]
                if value is None or name is None:
                    continue
                known = [
                    dump[name] / (MIB if "mib" in column else 1)
                    for dump in self.dumps
                    if name in dump
                ]
                step = self.it.unit / MIB if "mib" in column else 0
                if not known or abs(value - known[-1]) > 2 * step + 1e-6 * known[-1]:
                    yield column, value, known[-1:]


def _completed(dump: Dump, it: Excerpt) -> Dump:
    """Returns the fields that the input has, and what follows from them."""
    own = completed({name: value for name, value in dump.items() if name not in it.dropped})
    if "HeapInuse" in own and "HeapIdle" in own:
        own.setdefault("HeapSys", own["HeapInuse"] + own["HeapIdle"])
    if "StackInuse" in own:
        own.setdefault("StackSys", own["StackInuse"])
    return own


def _row(text: str, label: str) -> str | None:
    found = re.search(rf"^\| {label} \| ([^|]*) \| ([^|]*)", text, re.M)
    return f"{found[1]} · {found[2]}" if found else None


def _is_near(said: str, true: tuple[float, float], factor: float = 1.0) -> bool:
    """Returns whether a printed number, with the error of its last digit, is in a range."""
    value, half = number(said) * factor, 1.05 * half_digit(said) * factor
    return true[0] - half - 1e-9 <= value <= true[1] + half + 1e-9


def _rows(  # noqa: C901  # several rows
    seen: _Seen, text: str
) -> Iterator[Fault]:
    """Yields rows of the terminal report that the recording contradicts."""
    low_s, high_s = seen.span_s
    low_s, high_s = max(low_s - seen.tick, 1e-9), high_s + seen.tick
    cycles = len(seen.cycles)
    if row := _row(text, "Frequency"):
        found = re.match(rf"({NUMBER})(?:–({NUMBER}))?/(s|min|h)", row)
        if found:
            per = {"s": 1, "min": 60, "h": 3600}[found[3]]
            true = cycles / high_s * per, cycles / low_s * per
            if last := re.search(r"last ([\d,]+) cycles", row):
                # By the times at which the cycles ended.
                ends_s = [cycle.end_s for cycle in seen.cycles][-int(number(last[1])) :]
                true = ((len(ends_s) - 1) / (ends_s[-1] - ends_s[0]) * per,) * 2
            ends = found[1], found[2] or found[1]
            if not seen.has("NumGC") or (
                number(ends[1]) + half_digit(ends[1]) < true[0] * 0.99
                or number(ends[0]) - half_digit(ends[0]) > true[1] * 1.01
            ):
                yield "Frequency", row, true
    if (row := _row(text, "Pauses")) and (
        share := re.search(rf"({NUMBER})(?:–({NUMBER}))? % of time", row)
    ):
        total = 100 * sum(cycle.pause_ms for cycle in seen.cycles) / 1000
        true = total / high_s, total / low_s
        if "under" not in row and not (
            _is_near(share[1], (true[0] * 0.97, true[1] * 1.03))
            or (share[2] and number(share[1]) <= true[1] and number(share[2]) >= true[0])
        ):
            yield "pauses of time", row, true
    if row := _row(text, "Allocation"):
        total = seen.difference("TotalAlloc") / MIB
        if (said := re.search(rf"{SIZE} in total", row)) and not _is_size(
            said.groups(), total, seen.it.unit
        ):
            yield "allocation in total", row, total
        if said := re.match(rf"(?:about )?({NUMBER})(?:–({NUMBER}))? (MiB|GiB|KiB)/s", row):
            true = total / high_s, total / low_s
            sizes = [mib(said[1], said[3]), mib(said[2] or said[1], said[3])]
            if sizes[1] < true[0] * 0.9 - 0.06 or sizes[0] > true[1] * 1.1 + 0.06:
                yield "allocation rate", row, true
    for label, name in (("Live heap", "live"), ("Heap goal", "goal")):
        if row := _row(text, label):
            yield from _row_of_sizes(seen, label, name, row)


def _row_of_sizes(seen: _Seen, label: str, name: str, row: str) -> Iterator[Fault]:
    """Yields the words of a row of the live heap or the goal that are wrong."""
    own = [d["live_bytes"] / MIB for d in seen.dumps if d["live_bytes"] > 0] if name == "live" else [
        d["NextGC"] / MIB for d in seen.dumps if "NextGC" in d]  # fmt: skip
    of_cycles = seen._of_cycles(name)
    near = 1.03 if name == "goal" else 1.35
    both = [*own, *of_cycles]
    if not own and name == "goal":
        yield label, row, None
        return
    for said in re.findall(rf"{SIZE}(?![\d.]*/)", row.split(" of stacks")[0]):
        value, half = mib(*said), half_digit(said[0])
        if not min(both) / near - half - 1 <= value <= max(both) * near + half + 1:
            yield label, (said, row), (min(both), max(both))
    figures = dict(re.findall(rf"(median|last|max) ({SIZE})", row) and [
        (m[1], mib(m[2], m[3])) for m in re.finditer(rf"(median|last|max) {SIZE}", row)])  # fmt: skip
    if m := re.match(SIZE, row):
        word = re.match(r"[^·]*· (last|next|median|estimated median|max)", row)
        figures[word[1].split()[-1] if word else "median"] = mib(m[1], m[2])
    if figures.get("max", 1e9) < max(figures.get("last", 0), figures.get("median", 0)) - 0.6:
        yield f"{label} max is lower", row, figures
    if (
        name == "goal"
        and "next" in figures
        and abs(figures["next"] - own[-1]) > 0.51 + seen.it.unit / MIB
    ):
        yield "next goal", row, own[-1]
    last = figures.get("last") if name == "live" and own else None
    if last is not None and not own[-1] / 1.35 - 1 <= last <= own[-1] * 1.35 + 1:
        yield "last live", row, own[-1]


def _is_size(said: Sequence[str], size: float, unit: float = 1) -> bool:
    step = half_digit(said[0]) * {"KiB": 1 / 1024, "MiB": 1, "GiB": 1024}[said[1]]
    return abs(mib(*said) - size) <= 1.02 * step + 0.004 * abs(size) + (
        2 * unit / MIB if unit > 1 else 0
    )


_WORDS = {
    r"the runtime obtained SIZE from the OS": ("Sys", -1),
    r"from the OS and returned SIZE of it": ("HeapReleased", -1),
    r"(?:the )?heap allocated rose from SIZE": ("HeapAlloc", 0),
    r"(?:the )?heap in use rose from SIZE": ("HeapInuse", 0),
    r"heap allocated (?:rose|fell) from [\d.,]+ [MG]iB to SIZE[;.]": ("HeapAlloc", -1),
    r"resident memory rose from SIZE": ("rss_bytes", 0),
    r"^\| heap objects \| SIZE": ("HeapAlloc", -1),
    r"^\| From the OS \| SIZE": ("Sys", -1),
    r"^\| Heap in use \| SIZE": ("HeapInuse", -1),
    r"^\| stacks \| SIZE": ("StackSys", -1),
}


def _sentences(  # noqa: C901  # several sentences
    seen: _Seen, text: str
) -> Iterator[Fault]:
    """Yields sentences on sizes, and on the time since the start, that are wrong."""
    for pattern, (name, place) in _WORDS.items():
        for said in re.findall(pattern.replace("SIZE", SIZE), text, re.M | re.I):
            known = [dump[name] / MIB for dump in seen.dumps if name in dump]
            if not known or not any(
                _is_size(said[-2:], value, seen.it.unit) for value in known[place:][:1]
            ):
                yield pattern, said, known[place:][:1]
    last = seen.it.dumps[-1]
    all_cycles = [cycle.pause_ms for cycle in seen.it.recording.cycles[: last["NumGC"]]]
    for count in re.findall(r"([\d,]+) GC cycles? (?:have|has) stopped", text):
        if number(count) != last["NumGC"]:
            yield "cycles since the start", count, last["NumGC"]
    for said in re.findall(rf"stopped the program for ({TIME}) in all", text):
        if abs(milliseconds(said) - sum(all_cycles)) > 0.06 * sum(all_cycles) + 0.01:
            yield "pauses since the start", said, sum(all_cycles)
    for said in re.findall(rf"in all, ({TIME}) on average", text):
        mean = sum(all_cycles) / len(all_cycles)
        if abs(milliseconds(said) - mean) > 0.03 * mean + 0.001:
            yield "mean pause", said, mean
    for said in re.findall(rf"cycle stopped it for at most ({TIME})", text):
        longest = max(all_cycles[-256:])
        if abs(milliseconds(said) - longest) > 0.03 * longest + 0.001:
            yield "longest pause", said, longest
    share = 100 * last["GCCPUFraction"]
    for said in re.findall(rf"GC has taken ({NUMBER}) % of the CPU", text):
        if not seen.has("GCCPUFraction") or not _is_near(said, (0.97 * share, 1.03 * share)):
            yield "GC CPU since the start", said, share
    if seen.it.killed_s is None and re.search(r"\bkilled\b", text.split("## Inputs")[0]):
        yield "killed", re.findall(r".{40}\bkilled\b.{20}", text), None


def _of_kill(seen: _Seen, text: str) -> Iterator[Fault]:
    """Yields what is said about a kill that the recording contradicts."""
    it = seen.it
    if it.killed_s is None or it.limit_mib is None:
        return
    last = it.dumps[-1]
    for said in re.findall(
        rf"reached the limit of [^:]*: {SIZE}|of the {SIZE} of the limit", text
    ):
        if not _is_size([*filter(None, said)], it.limit_mib):
            yield "limit", said, it.limit_mib
    heap = last["HeapAlloc"] / MIB
    for said in re.findall(
        rf"At least {SIZE} of the [\d.,]+ [MG]iB of the limit was Go heap", text
    ):
        if mib(*said) > 1.03 * max(heap, last["live_bytes"] / MIB) + it.unit / MIB + 1:
            yield "Go heap at the kill", said, heap
