"""Holds what a report says about a gctrace log against the lines of the log.

Each check computes a statement a second time, with nothing of the package; the runtime truncates
what it prints, so most truths are intervals. A check yields what it found, and what is true.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from tests.helpers.traced import (
    NUMBER,
    SIZE,
    TIME,
    Trace,
    half_digit,
    is_about,
    is_near,
    mib,
    milliseconds,
    number,
    step,
    trace_of,
)


@dataclass(frozen=True)
class Said:
    """A report: as JSON, and as Markdown without its escapes, with everything that is folded."""

    report: dict[str, Any]
    text: str

    @property
    def summary(self) -> dict[str, Any]:
        return dict(self.report["summary"])

    @property
    def verdict(self) -> str:
        return self.text.partition("| Figure |")[0]

    def all(self, pattern: str) -> list[Any]:
        return re.findall(pattern, self.text, re.MULTILINE)

    def row(self, label: str, pattern: str) -> re.Match[str] | None:
        return re.search(rf"\| {label} \| {pattern}", self.text)


Pair = tuple[object, object]
"""What a report says, and what its log shows."""

OF_TEXT: list[Callable[[Said], Iterator[Pair]]] = []
OF_TRACE: list[Callable[[Trace, Said], Iterator[Pair]]] = []


def of_text(check: Callable[[Said], Iterator[Pair]]) -> Callable[[Said], Iterator[Pair]]:
    OF_TEXT.append(check)
    return check


def of_trace(
    check: Callable[[Trace, Said], Iterator[Pair]],
) -> Callable[[Trace, Said], Iterator[Pair]]:
    OF_TRACE.append(check)
    return check


def audit(log: str, report: dict[str, Any], markdown: str) -> list[tuple[str, object, object]]:
    """Returns what a report says that its log or the report itself contradicts, with the check."""
    said = Said(report, re.sub(r"\\(?=[<>|_`*+#-])", "", markdown))
    wrong = [(check.__name__, *pair) for check in OF_TEXT for pair in check(said)]
    wrong += [("go_versions", *pair) for pair in _go_versions(log, said)]
    trace = trace_of(log)
    is_one = len(report["processes"]) == 1
    if trace is None or not is_one or len(trace.cycles) != said.summary["cycles"]:
        return wrong
    return wrong + [
        (check.__name__, *pair) for check in OF_TRACE for pair in check(trace, said)
    ]


@of_text
def ranges_in_order(said: Said) -> Iterator[Pair]:
    for low, high in said.all(rf"(?<![\d.\-–\w])({NUMBER})–({NUMBER})(?![\d\-])"):
        if number(low) > number(high):
            yield f"{low}–{high}", ""
    for value, low, high in said.all(rf"({NUMBER}) \(({NUMBER})–({NUMBER})\)"):
        if not number(low) <= number(value) <= number(high):
            yield f"{value} ({low}–{high})", ""


@of_text
def shares_up_to_100(said: Said) -> Iterator[Pair]:
    for value in said.all(rf"({NUMBER}) % of (?:the )?(?:time|all CPU|the CPU|GC CPU)"):
        if number(value) > 100:
            yield value, 100


@of_text
def one_number_per_fact(said: Said) -> Iterator[Pair]:
    most = said.row("Live heap", rf".*?max {SIZE}")
    for value, unit in said.all(rf"largest live heap, {SIZE}"):
        if most and abs(mib(value, unit) / mib(*most.groups()) - 1) > 0.02:
            yield f"{value} {unit}", most[0]
    seen = re.search(rf"longest pause (?:seen )?took ({TIME})(?!.* in process)", said.verdict)
    pauses = said.row("Pauses", r"(.*?) \| (.*?) \|")
    if seen and pauses and seen[1] not in f"{pauses[1]} max {pauses[2]}":
        yield seen[0], pauses[0]
    p99 = said.row("Pauses", rf"({TIME}) \| p99(?! before| after)")
    table = said.row("all pauses", rf"(?:{TIME} \| ){{3}}({TIME}) \|")
    if p99 and table and p99[1] != table[1]:
        yield p99[0], table[0]
    allocation = said.row("Allocation", rf"{SIZE}/s")
    for value, unit in said.all(rf"the program allocates {SIZE}/s"):
        if (
            len(said.report["processes"]) == 1
            and allocation
            and not is_about(mib(value, unit), mib(*allocation.groups()))
        ):
            yield f"{value} {unit}/s", allocation[0]
    ideal = said.all(rf"GOMEMLIMIT of about {SIZE}")
    for limit in said.all(rf"Raise GOMEMLIMIT to about {SIZE}"):
        if ideal and limit not in ideal:
            yield limit, ideal


@of_text
def headlines_name_the_share_of_a_process(said: Said) -> Iterator[Pair]:
    """Also with its range, if there is one: of the CPU, for all of the time."""
    summaries = [said.summary, *(row["summary"] for row in said.report["processes"])]
    known = [[s[f"gc_cpu_share{end}"] for end in ("_low", "_high")] for s in summaries]
    clause = rf"[^.;:()▸]*?GC takes ({NUMBER})(?:–({NUMBER}))? % of the CPU(?! for)"
    for match in re.finditer(clause, said.verdict):
        if re.search(
            "[Ss]ince|Under load", said.text[max(match.start() - 110, 0) : match.end()]
        ):
            continue
        ends = match[1], match[2] or match[1]
        low, high = (number(end) / 100 for end in ends)
        slack = 1.02 * max(map(half_digit, ends)) / 100
        shares = [pair for pair in known if None not in pair]
        if not any(a - slack <= low and high <= b + slack for a, b in shares):
            yield match[0], shares
        row = said.row("GC CPU", rf"{NUMBER}(–{NUMBER})? %")
        if len(summaries) == 2 and row and bool(row[1]) != bool(match[2]):
            yield match[0], row[0]


@of_text
def the_verdict_is_that_of_the_findings(said: Said) -> Iterator[Pair]:
    verdict, levels = said.report["verdict"], said.report["facts"].get("levels", {})
    if (
        verdict is None
        or "cycles are probably those of the Go toolchain" in verdict["sentence"]
    ):
        return
    serious = [
        each["name"] for each in said.report["findings"] if each["severity"] in ("warn", "bad")
    ]
    raised = [name for name, level in levels.items() if level in ("warn", "bad")]
    of_phase = verdict["sentence"].startswith(("Since the start", "Under load"))
    if bool(serious or raised) != (verdict["level"] in ("warn", "bad")) and not of_phase:
        yield verdict["sentence"], (serious, raised)
    grows = [each["name"] for each in said.report["findings"] if each["id"] == "GC021"]
    if verdict["finding"] == "GC012" and grows and (said.summary["gc_cpu_share"] or 0) < 0.01:
        yield verdict["sentence"], grows
    advised = re.search(r"[Ss]et GOGC=(\d+)", verdict["action"] or "")
    if advised and {row["gogc_pct"] for row in said.report["regimes"]} == {float(advised[1])}:
        yield advised[0], "the present value"


_RELEASES = {
    r"^gc \d+ @.*MB stacks, \d+ MB globals": (18, 99),
    r"^gc \d+ @[^+]*\+[^+]*\+[\d.]+ ms clock.* MB goal, \d+ P": (6, 17),
    # mheap.go numbers them up to Go 1.12; mgcscavenge.go of 1.13 does not, and 1.14 has `scav`.
    r"^scvg-?\d+: ": (0, 12),
    r"^(?:forced )?scvg: ": (13, 13),
}


def _go_versions(log: str, said: Said) -> Iterator[Pair]:
    """Yields ranges of releases that a line of the log excludes; it must be of one process."""
    rows = said.report["processes"]
    if len(rows) != 1 or re.search(r"^(?!gc ).*\bgc \d+ @", log, re.MULTILINE):
        return
    low, high = (rows[0][f"go_version_{end}"] or "1.99" for end in ("min", "max"))
    oldest, newest = (int(version.split(".")[1]) for version in (low, high))
    for pattern, (least, most) in _RELEASES.items():
        if re.search(pattern, log, re.MULTILINE) and not least <= oldest <= newest <= most:
            yield f"{low}–{high}", pattern


@of_trace
def figures(trace: Trace, said: Said) -> Iterator[Pair]:
    s, cycles = said.summary, trace.cycles
    first, last = cycles[0], cycles[-1]
    pauses = [text for c in cycles for text in (c.clock[0], c.clock[2])]
    shortest, highest = [float(t) for t in pauses], [float(t) + step(t) for t in pauses]
    truths: dict[str, tuple[float, ...]] = {
        "forced_cycles": (*[sum(c.forced for c in cycles)] * 2, 0),
        "missing_cycles": (*[last.num - first.num + 1 - len(cycles)] * 2, 0),
        "stw_max_ms": (max(shortest), max(highest), 1e-9),
        "stw_total_ms": (sum(shortest), sum(highest), 1e-6),
        "live_heap_p50_mib": (*[median(c.live for c in cycles)] * 2, 0.5),
        "live_heap_max_mib": (*[max(c.live for c in cycles)] * 2, 0.5),
        "heap_peak_mib": (*[max(c.end for c in cycles)] * 2, 0.5),
    }
    # Up to Go 1.8, the goal of a cycle that stops for all is none.
    if trace.goals and (first.newer or not any(c.forced for c in cycles)):
        truths["heap_goal_p50_mib"] = (*[median(trace.goals)] * 2, 1)
    if trace.apart_ms:
        truths["gc_interval_p50_ms"] = (*[median(trace.apart_ms)] * 2, 1.01)
    time_s = last.at_s - first.at_s
    if time_s > 0.05:
        count = last.num - first.num
        truths["gc_per_s"] = (count / trace.span_s, (count + 1) / time_s, 1e-9)
    shares = [c.assist_share for c in cycles if sum(map(float, c.cpu)) > 0]
    if shares:
        ends = min(low for low, _ in shares), max(high for _, high in shares)
        truths["assist_share_of_gc_cpu"] = (*ends, 1e-6)
        row = said.row("Mark assist", rf"({NUMBER})(?:–({NUMBER}))? %")
        for end in filter(None, row.groups() if row else ()):
            if not is_near(number(end) / 100, *ends, 0.005):
                yield row and row[0], ends
    if not truths["missing_cycles"][0]:
        grown = sum(b.start - a.live for a, b in trace.follow) + first.start * trace.is_whole
        whole = grown + sum(c.end - c.start for c in cycles)
        rounded = 0.15 * abs(whole) + 1.2 * (2 * len(cycles)) ** 0.5 + 2
        truths["alloc_total_mib"] = (whole - (first.end - first.start), whole, rounded)
    for name, truth in truths.items():
        if s[name] is not None and not is_near(s[name], *truth):
            yield (name, s[name]), truth


@of_trace
def gc_cpu_is_what_the_runtime_prints(trace: Trace, said: Said) -> Iterator[Pair]:
    s, first, last = said.summary, trace.cycles[0], trace.cycles[-1]
    row = said.row("GC CPU", rf"({NUMBER})(?:–({NUMBER}))? %")
    contradicts = abs(s["log_check_points"] or 0) > 1 and not s["missing_cycles"]
    if row is None or len({c.procs for c in trace.cycles}) != 1 or contradicts:
        return
    begin_s = 0.0 if trace.is_whole else first.end_s
    time_s = last.end_s - begin_s
    if time_s < 0.05 and begin_s:
        return
    least = (last.pct * last.end_s - (first.pct + 1) * begin_s) / time_s
    most = ((last.pct + 1) * last.end_s - first.pct * begin_s) / time_s
    ends = row[1], row[2] or row[1]
    slack = max(map(half_digit, ends)) + 0.1
    times = first.procs / (s["cpus"] or first.procs)
    if times > 1:
        # Workers that wait for a CPU count in what the runtime prints.
        least, most = 0.0, min(most * times, 100.0)
    if not all(is_near(number(end), least, most, slack) for end in ends):
        yield row[0], (least, most)


@of_trace
def pauses(trace: Trace, said: Said) -> Iterator[Pair]:  # noqa: C901  # several sentences
    for phase, value in said.all(rf"The pause (before|after) marking takes up to ({TIME})"):
        own, most = trace.phases[f"{phase} marking"], milliseconds(value)
        if not is_about(own[-1], most) or len(own) < 2 or own[-2] < most / 2.1:
            yield f"{phase}: up to {value}", own[-3:]
    for phase, value in said.all(rf"One pause (before|after) marking took ({TIME})"):
        own, most = trace.phases[f"{phase} marking"], milliseconds(value)
        if not is_about(own[-1], most) or (len(own) > 1 and own[-2] > 0.6 * most):
            yield f"{phase}: one took {value}", own[-3:]
    middles = [median(own) for own in trace.phases.values()]
    for count, value in said.all(rf"median of the (\d[\d,]*) pauses [a-z ]*is ({TIME})"):
        is_all = number(count) == len(trace.cycles) and not trace.cycles[0].newer
        known = trace.cycles[0].newer or is_all
        if known and not any(is_about(milliseconds(value), middle) for middle in middles):
            yield f"{count}: {value}", middles
    table = rf"^\| (sweep|mark) termination \| \d.*?\| ({TIME}) \| gc \d+ \|$"
    for (name, value), own in zip(said.all(table), trace.phases.values(), strict=False):
        if not is_about(milliseconds(value), own[-1]):
            yield (name, value), own[-1]
    for few, count in said.all(r"(\d[\d,]*) of (\d[\d,]*) pauses take over 1 ms and 10 times"):
        long = sum(ms > 1 for own in trace.phases.values() for ms in own)
        if number(few) > long or number(count) > 2 * len(trace.cycles):
            yield (few, count), (long, 2 * len(trace.cycles))


@of_trace
def growth(trace: Trace, said: Said) -> Iterator[Pair]:
    cycles, kept = trace.cycles, [c.kept for c in trace.cycles]
    third = max(len(kept) // 3, 1)
    claims = said.all(
        rf"live heap (?:grew|grows) from ({NUMBER}) to ({NUMBER}) (MiB|GiB)(?: in ({TIME}))?"
    )
    if claims and median(kept[-third:]) <= median(kept[:third]) + 1:
        yield claims[0], kept
    for begin, end, unit, time in claims:
        sizes = mib(begin, unit), mib(end, unit)
        if not all(any(abs(size - c.live) <= 1.01 for c in cycles) for size in sizes):
            yield (begin, end), [c.live for c in cycles]
        if time and milliseconds(time) > 1060 * cycles[-1].end_s + 100:
            yield time, cycles[-1].end_s
    went = r"during marking went from (\d[\d,]*) MiB in the first quarter of the cycles to (\d[\d,]*)"
    for ends in said.all(went):
        if not all(is_near(number(end), min(kept), max(kept), 1) for end in ends):
            yield ends, (min(kept), max(kept))


@of_trace
def limits(trace: Trace, said: Said) -> Iterator[Pair]:
    cycles = trace.cycles
    # What the next cycle kept, too, or the last one marked.
    lasting = max([min(a.live, b.live) for a, b in trace.follow] or [0])
    lasting = max(lasting, cycles[-1].live)
    limit = rf"(?:Raise GOMEMLIMIT to about|[Ss]et GOMEMLIMIT=|GOMEMLIMIT of about) ?{SIZE}"
    for value, unit in said.all(limit):
        if not is_near(mib(value, unit), max(c.kept for c in cycles), 2.2 * lasting + 128):
            yield (value, unit), lasting
    rooms = [(b.goal - a.live) / (a.live + b.roots) for a, b in trace.follow if a.live]
    for value in said.all(rf"leaves the live heap only as much room as GOGC=({NUMBER})"):
        if rooms and not is_near(number(value) / 100, min(rooms), max(rooms), 0.05):
            yield value, (min(rooms), max(rooms))


@of_trace
def frequency(trace: Trace, said: Said) -> Iterator[Pair]:
    apart, s = trace.apart_ms, said.summary
    every = said.row("Frequency", rf".*?(?<!bursts: )every ({TIME})")
    slack = 1.5 + 0.06 * max(apart, default=0)
    if every and apart and not is_near(milliseconds(every[1]), min(apart), max(apart), slack):
        yield every[0], (min(apart), max(apart))
    bursts = said.row("Frequency", rf".*?bursts: every ({TIME})")
    inside = [ms for ms in apart if ms < 1000 / (s["gc_per_s"] or 1)]
    if bursts and inside and not is_about(milliseconds(bursts[1]), median(inside), 1):
        yield bursts[0], median(inside)
    seconds = {"second": 1, "minute": 60, "hour": 3600}
    for since, value in said.all(rf"since ({TIME}) \(.*?\) GC runs ({NUMBER}) times a second"):
        later = [c.at_s for c in trace.cycles if 1000 * c.at_s > milliseconds(since)]
        rate = (len(later) - 1) / (later[-1] - later[0])
        if not is_near(number(value), rate, rate, 0.1 * rate):
            yield (since, value), rate
    for value, per in said.all(rf"(?<!\) )GC runs ({NUMBER}) times an? (second|minute|hour)"):
        if s["gc_per_s"] and not is_about(number(value) / seconds[per], s["gc_per_s"]):
            yield (value, per), s["gc_per_s"]
    active = sum(c.active_s for c in trace.cycles) / trace.span_s if trace.span_s else 1
    for value in said.all(rf"is running ({NUMBER}) % of the time"):
        if number(value) / 100 > 1.15 * active + 0.02:
            yield value, active


@of_trace
def counts(trace: Trace, said: Said) -> Iterator[Pair]:  # noqa: C901  # several sentences
    cycles = trace.cycles
    forced = sum(c.forced for c in cycles)
    for own in said.all(r"(\d[\d,]*) of (\d[\d,]*) (?:cycles )?(?:are )?(?:marked as )?forced"):
        if (*map(number, own),) != (forced, len(cycles)):
            yield own, (forced, len(cycles))
    for missing, whole in said.all(r"(\d[\d,]*) of (\d[\d,]*) cycles have no line"):
        if number(whole) - number(missing) != len(cycles):
            yield (missing, whole), len(cycles)
    late = [c for c in cycles if c.at_s >= 0.4]
    for value in said.all(r"only (\d[\d,]*) steady cycles?"):
        if number(value) > len(late):
            yield value, len(late)
    if "no steady cycle after the first 0.5 s" in said.text:
        steady = [c.num for c in cycles if c.at_s >= 0.51 and not c.forced]
        if len(steady) > 1:
            yield "no steady cycle", steady
    begins = rf"log begins ({TIME}) after .*?, at cycle (\d[\d,]*); since the start, GC has taken (under 1|\d+) %"
    for begin, num, share in said.all(begins):
        own = number(num), 0 if "under" in share else int(share)
        if own != (cycles[0].num, cycles[-1].pct) or not is_about(
            milliseconds(begin) / 1000, cycles[0].at_s, 0.1
        ):
            yield (begin, num, share), cycles[0]
    for begin in said.all(rf"It began at ({TIME})[.,]"):
        if milliseconds(begin) > 1060 * cycles[-1].end_s + 100:
            yield begin, cycles[-1].end_s
    heaps = {c.num: f"{c.start}→{c.end}→{c.live}" for c in cycles}
    for num, heap in said.all(r"^\| gc (\d+) \| [^|]+ \| [^|]+ \|[^|]*\|[^|]*\| (\d[\d→]*) "):
        if heaps.get(int(num), heap) != heap:
            yield (num, heap), heaps[int(num)]


@of_trace
def cpu_time(trace: Trace, said: Said) -> Iterator[Pair]:
    """A CPU time is the sum of the lines, with all or no time to stop the world."""
    if any(c.num != a.num + 1 for a, c in pairwise(trace.cycles)):
        return
    least = most = 0.0
    for c in trace.cycles:
        marking = [float(text) for text in c.cpu[1:3]]
        stopped = [c.cpu[0], c.cpu[4]]
        least += sum(marking) + (0.0 if c.newer else sum(map(float, stopped)))
        most += sum(marking) + sum(float(text) for text in stopped)
        most += sum(step(text) for text in (*stopped, *c.cpu[1:3]))
    told = said.all(rf"GC took ({TIME})(?: of CPU time|–)")
    told += said.all(rf"GC took (?:[\d.]+–|{TIME}–)({TIME}) of CPU time")
    for time in told:
        if not is_near(milliseconds(time), least, most, 0.06 * most + 0.01):
            yield time, (least, most)


@of_trace
def sizes(trace: Trace, said: Said) -> Iterator[Pair]:
    """Medians, ranges of few cycles, and last values."""
    for label, own in ("Live heap", [c.live for c in trace.cycles]), ("Heap goal", trace.goals):
        row = said.row(label, rf"(?:({NUMBER})(?: (MiB|GiB))?–)?{SIZE} \| (.*?) \|")
        if row is None or not own or max(own) < 1:
            continue
        low, low_unit, high, unit, note = row.groups()
        in_order, most = sorted(own), mib(high, unit)
        slack = 0.06 * most + 1
        truths: list[tuple[float, float]] = []
        if low:
            truths += [(mib(low, low_unit or unit), in_order[0]), (most, in_order[-1])]
        elif "over time" in note:
            truths.append((most, min(max(most, in_order[0]), in_order[-1])))
        elif not re.match("last|next", note) and "since" not in note:
            truths.append((most, median(own)))
        if last := re.search(rf"last {SIZE}", note):
            truths.append((mib(*last.groups()), own[-1]))
        if any(abs(value - truth) > slack for value, truth in truths):
            yield row[0], truths


@of_trace
def setting(trace: Trace, said: Said) -> Iterator[Pair]:
    """A GOGC that is said to set all goals explains most of them."""
    row = said.row("Heap goal", r"[^|]*\| [^|]*?set by GOGC=(\d+)(?:–(\d+))?(?![–\d]| or| and)")
    pairs = [(a, b) for a, b in trace.follow if a.live > 3]
    if row is None or len(pairs) < 3:
        return
    ends = float(row[1]), float(row[2] or row[1])
    explained = 0
    for a, b in pairs:
        low = a.live * (1 + ends[0] / 100) - 1
        # Stacks and globals count as well, and a large allocation raises the trigger and the goal.
        roots = 0.25 * a.live + 8 + b.roots
        high = a.live + 1 + (a.live + 1 + roots) * ends[1] / 100 + 8
        explained += is_near(b.goal, low, max(high, 4.0 * (1 + ends[1] / 100)))
    if explained < 0.6 * len(pairs):
        yield row[0], [(a.live, b.goal) for a, b in pairs][:12]


@of_trace
def thrashing(trace: Trace, said: Said) -> Iterator[Pair]:
    """Goals at or below the live heap are counted, and thrashing begins without much room."""
    before = {b.num: a for a, b in trace.follow}
    for row in said.report["episodes"]:
        own = [c for c in trace.cycles if row["first_gc"] <= c.num <= row["last_gc"]]
        if row["kind"] != "limit-thrash" or not own:
            continue
        below = sum(c.num in before and c.goal <= before[c.num].live for c in own)
        counted = re.search(
            r"goal was at or below the live heap in (?:all )?(\d[\d,]*)", row["reason"]
        )
        if counted and abs(number(counted[1]) - below) > 1:
            yield row["reason"], below
        first, previous = own[0], before.get(own[0].num)
        if previous and previous.live > 8 and first.goal > 1.3 * previous.live + 2:
            yield ("begins", first.num), (previous.live, first.goal)


@of_trace
def stopped(trace: Trace, said: Said) -> Iterator[Pair]:
    if len(trace.follow) < len(trace.cycles) - 1 or not trace.span_s:
        return
    pauses = sum(sum(c.pauses) for c in trace.cycles) / 1000
    steps = sum(step(c.clock[0]) + step(c.clock[2]) for c in trace.cycles) / 1000
    for value in said.all(rf"pauses take ({NUMBER}) % of the time"):
        if not is_near(
            number(value) / 100, pauses / trace.span_s, (pauses + steps) / trace.span_s, 0.06
        ):
            yield value, pauses / trace.span_s
    row = said.row("Pauses", rf"[^|]*\|[^|]*?(?<![\d.])(?<!under )({NUMBER}) % of time")
    if row and trace.span_s > 0.05:
        ends = 100 * pauses / trace.span_s, 100 * (pauses + steps) / trace.span_s
        if not is_near(number(row[1]), *ends, 0.06 * ends[1] + half_digit(row[1])):
            yield row[0], ends
