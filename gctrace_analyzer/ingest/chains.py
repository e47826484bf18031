"""Assigns each cycle of one stream to its process, by numbers and times.

In one process, numbers and times only grow, and no cycle begins before the last one has ended. A
lower number means a restart, unless an older process continues afterwards. Then several processes
share the stream (`go test` and the compiler it runs), and each cycle goes to the process that it
continues best. A change of GOMAXPROCS alone never starts a process.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, chain, pairwise
from typing import NamedTuple

import polars as pl

from gctrace_analyzer import core
from gctrace_analyzer.ingest.evidence.words import BEGUN_UNREAD
from gctrace_analyzer.ingest.gctrace.columns import WALL_PHASES, end_s
from gctrace_analyzer.ingest.rows import constant, in_steps

CLOCK_SLACK_S = 0.002
"""Tolerance for times, because `@` is truncated to a millisecond and phases to two digits."""

SHARE_FROM_S = 0.1
"""Seconds since the start. Earlier, rounding of the time changes the share of GC."""

SHARE_SLACK = 0.98
"""Share of the GC CPU time. A decrease by more than this is not rounding."""

OTHER_LIVE = 4
"""Factor between live heaps. With another GOMAXPROCS after missing lines, it is another process."""

OPEN_CHAINS = 64
"""Only this many of the last processes can get more cycles, to limit the cost of crash loops."""

LOOKAHEAD = 32
"""How many cycles of other processes may come between two of one process."""

_FAR_FEWER = 2
"""Factor between missing cycles of two processes that decides which of them goes on."""

_FIRST_CYCLE = pl.col("text").str.extract(r"\bgc #?1 @(\d+\.\d{3})s")

RUN = "run"
"""Column with the number of program starts (commands) above a cycle."""


def begun_unread(cycles: pl.DataFrame, rejected: pl.DataFrame) -> list[str]:
    """Returns a note if a line behind the last cycle is the damaged first cycle of a process."""
    if cycles.is_empty() or rejected.is_empty():
        return []
    begun = rejected.with_columns(first=_FIRST_CYCLE).drop_nulls("first")
    needed = cycles["source", "line_no", "gc_num", "start_s"]
    own = needed.filter(pl.col("source") == needed["source"][-1])
    if not own["line_no"].is_sorted():
        return []
    behind = (pl.col("source") == own["source"][-1]) & (pl.col("line_no") > own["line_no"][-1])
    # An explanation below a log may repeat its first line.
    known = {f"{start:.3f}" for start in own.filter(gc_num=1)["start_s"].drop_nulls()}
    lines = begun.filter(behind, ~pl.col("first").is_in(known))["line_no"]
    return [f"Line {line_no:,} {BEGUN_UNREAD}." for line_no in lines.tail(1)]


def process_of(frames: Sequence[pl.DataFrame]) -> list[pl.Series]:
    """Returns the process, 0, 1, …, of each cycle, for each of the frames.

    The frames are parts of one log, not empty, with rows in the order of the log.
    """
    facts = [_facts(frame) for frame in frames]
    links = list(_links(facts))
    if all(link["follows"].all() for link in links):
        return only_process(frames)
    chains = _sequential(_ends_of_runs(facts, links))
    if chains is None:
        process = _concurrent(facts)
        ends = list(accumulate(map(len, frames), initial=0))
        return [process[begin:end] for begin, end in pairwise(ends)]
    process = pl.Series(chains, dtype=pl.Int64)
    numbers, before = [], -1
    for link in links:
        run = link["begins"].cast(pl.Int64).cum_sum() + before
        before = run[-1]
        numbers.append(process.gather(run))
    return numbers


def may_be_one_process(frames: Sequence[pl.DataFrame]) -> bool:
    """Returns whether one process may have printed all cycles, one after another."""
    places = pl.concat([frame.select(*_place().values()) for frame in frames])
    return bool(in_steps(places, *_follows())["follows"][1:].all())


def only_process(frames: Sequence[pl.DataFrame]) -> list[pl.Series]:
    """Returns process 0 for each cycle."""
    first = pl.Series("process", [0], pl.Int64)
    return [constant(first, len(frame)) for frame in frames]


def predecessors(inputs: Sequence[Sequence[pl.DataFrame]], most: int) -> list[list[int]]:
    """Returns for each input the others whose last process its first row may continue.

    Args:
        inputs: the frames of each input, at least one with at least one row each.
        most: the most cycles that may be missing in between.
    """
    firsts = _ends([frames[0].head(1) for frames in inputs])
    lasts = _ends([frames[-1].tail(1) for frames in inputs])
    by_number: dict[int, list[int]] = {}
    for at, last in enumerate(lasts):
        by_number.setdefault(last.num, []).append(at)
    before = []
    for at, first in enumerate(firsts):
        near = (by_number.get(first.num - apart, []) for apart in range(1, most + 2))
        fits = (
            other
            for other in chain.from_iterable(near)
            if other != at and _Chain(0, lasts[other]).missing(first) <= most
        )
        before.append(sorted(fits))
    return before


def _ends(rows: list[pl.DataFrame]) -> list[_Cycle]:
    """Returns the only row of each frame, all at once, because there may be thousands of frames."""
    return list(_rows(_facts(pl.concat([frame.select(_NEEDED) for frame in rows]))))


def _links(facts: Sequence[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Yields whether each cycle `follows` the previous row, and whether it `begins` a run.

    A cycle follows another if one process may have printed both. A run is a series of
    cycles with consecutive numbers.
    """
    follows, num = pl.col("follows"), pl.col("num")
    for index, rows in enumerate(facts):
        both = pl.concat([facts[index - 1].tail(1), rows]) if index else rows
        link = in_steps(both, *_follows()).select("num", follows.fill_null(value=False))
        begins = ~(follows & (num == num.shift() + 1).fill_null(value=False))
        # Nothing precedes the first cycle of all.
        first = pl.int_range(pl.len()) < 1 - index
        yield link.select(follows | first, begins=begins)[min(index, 1) :]


@cache
def _follows() -> tuple[dict[str, pl.Expr], ...]:
    """Returns as `follows` whether a cycle may follow the row before, in steps of columns.

    It has a larger number, the same kind, and begins after the end of that row. The GC CPU time
    since the start has not fallen, and GOMAXPROCS and the live heap have not both changed where
    lines are missing.
    """
    num, start, end, procs, live, share, kind = map(pl.col, _place())
    before, now, most = map(pl.col, ("_before", "_now", "_most"))
    later = (start >= end.shift() - CLOCK_SLACK_S).fill_null(value=True)
    # The printed share of the total time is truncated.
    of_time = {"_now": before.shift() + procs * (end - end.shift())}
    of_time["_most"] = pl.when(end > SHARE_FROM_S).then(SHARE_SLACK * share * before)
    falls = ((share + 1) * now < most.shift()).fill_null(value=False)
    larger, smaller = (of(live, live.shift()) for of in (pl.max_horizontal, pl.min_horizontal))
    other = (
        (num > num.shift() + 1)
        & (procs != procs.shift())
        & (larger > OTHER_LIVE * (smaller + 1))
    )
    follows = (
        (num > num.shift())
        & (kind == kind.shift())
        & later
        & ~falls
        & ~other.fill_null(value=False)
    )
    return {"_before": procs * end}, of_time, {"follows": follows}


@cache
def _place() -> dict[str, pl.Expr]:
    """Returns the facts that decide which cycle another may follow."""
    columns = {
        "num": pl.col("gc_num"),
        "start": pl.col("start_s"),
        "end": end_s(),
        "procs": pl.col("procs"),
        "live": pl.col("heap_live_mib"),
        "share": _share_pct(),
        "kind": _kind_of_format(),
    }
    return {name: column.alias(name) for name, column in columns.items()}


def _share_pct() -> pl.Expr:
    """Returns the printed share of GC CPU since the start; null if no process can have it."""
    share = pl.col("gc_cpu_since_start_pct")
    return pl.when(share.is_between(0, 100)).then(share)


def _kind_of_format() -> pl.Expr:
    """Returns the kind of a cycle's format, which is the same in all of a process.

    Cycles that check for goroutine leaks have a format of their own.
    """
    shape = pl.col("format")
    usual = pl.lit("gc18").cast(pl.Categorical)
    return pl.when(shape == "gc26").then(usual).otherwise(shape).to_physical()


def _ends_of_runs(
    facts: Sequence[pl.DataFrame], links: Sequence[pl.DataFrame]
) -> Iterator[tuple[_Cycle, _Cycle]]:
    """Yields the first and the last cycle of each run."""
    unfinished: list[_Cycle] = []
    for index, (rows, link) in enumerate(zip(facts, links, strict=True)):
        begins = link["begins"]
        more = links[index + 1]["begins"][0] if index + 1 < len(links) else True
        ends = begins.slice(1).append(pl.Series([more]))
        firsts = chain(unfinished, _rows(rows.filter(begins)))
        for last in _rows(rows.filter(ends)):
            yield next(firsts), last
        unfinished = list(firsts)


def _rows(facts: pl.DataFrame) -> Iterator[_Cycle]:
    return map(_Cycle._make, facts.iter_rows())


_GC_CPU = (
    "stw_sweep_term_cpu_ms", "assist_cpu_ms", "background_cpu_ms", "stw_mark_term_cpu_ms",
)  # fmt: skip
_NEEDED = (
    "gc_num", "start_s", *WALL_PHASES, "heap_start_mib", "heap_live_mib", "heap_goal_mib", "procs",
    "stacks_mib", "gc_cpu_since_start_pct", *_GC_CPU, "format",
)  # fmt: skip


def _facts(cycles: pl.DataFrame) -> pl.DataFrame:
    """Returns the columns of `_Cycle`."""
    columns = _place() | {
        "heap": pl.col("heap_start_mib"),
        "goal": pl.col("heap_goal_mib"),
        "stacks": pl.col("stacks_mib"),
        "cpu": pl.sum_horizontal(_GC_CPU) / 1000,
    }
    return cycles.select(columns[name].alias(name) for name in _Cycle._fields)


class _Cycle(NamedTuple):
    """The facts that decide the process of a cycle."""

    num: int
    start: float | None
    end: float | None
    heap: int | None
    live: int | None
    goal: int | None
    procs: int | None
    stacks: int | None
    share: int | None
    cpu: float
    kind: int


@dataclass(slots=True, eq=False)
class _Chain:
    """The known state of a process: last cycle, GC CPU time in seconds.

    `live` and `goal` are the last live heap and its next goal, if the goal is larger.
    """

    process: int
    last: _Cycle
    cpu: float = 0.0
    live: int | None = None
    goal: int | None = None

    def __post_init__(self) -> None:
        if self.last.num == 1:
            self.cpu = self.last.cpu
        else:
            capacity = (self.last.end or 0.0) * (self.last.procs or 0)
            self.cpu = capacity * ((self.last.share or 0) + 0.5) / 100

    def missing(self, cycle: _Cycle) -> float:
        """Returns how many cycles are missing between the last cycle and `cycle`.

        The number is infinite if `cycle` cannot be of this process.
        """
        last = self.last
        apart = cycle.num - last.num
        if apart < 1 or cycle.kind != last.kind:
            return math.inf
        start, end = cycle.start, last.end
        if start is not None and end is not None and start < end - CLOCK_SLACK_S:
            return math.inf
        heap, live = cycle.heap, last.live
        if apart > 1:
            less, more = sorted((live or 0, cycle.live or 0))
            is_other = cycle.procs != last.procs and more > OTHER_LIVE * (less + 1)
            return math.inf if is_other else apart - 1
        # The heap cannot shrink between cycles.
        return math.inf if heap is not None and live is not None and heap < live - 1 else 0

    def mismatch(self, cycle: _Cycle) -> tuple[float, bool]:
        """Returns how badly the cycle fits this process, and whether GOMAXPROCS differs."""
        growth = _goal_growth_pct(self.last.live, cycle.goal)
        usual = _goal_growth_pct(self.live, self.goal)
        odd = abs(math.log((growth + 1) / (usual + 1))) if growth and usual else 0.0
        odd += abs((cycle.stacks or 0) - (self.last.stacks or 0)) / 4
        capacity = (cycle.end or 0.0) * (cycle.procs or 0)
        if capacity and cycle.share is not None:
            # The printed percentage counts all cycles so far, so it differs between processes.
            odd += abs(100 * (self.cpu + cycle.cpu) / capacity - cycle.share - 0.5) / 2
        return round(odd, 1), cycle.procs != self.last.procs

    def add(self, cycle: _Cycle) -> None:
        """Makes the cycle the last one of this process."""
        live, goal = self.last.live, cycle.goal
        if live and goal and goal > live and cycle.num == self.last.num + 1:
            self.live, self.goal = live, goal
        self.cpu += cycle.cpu
        self.last = cycle


def _loses_gc_cpu(last: _Cycle, cycle: _Cycle) -> bool:
    """Returns whether the GC CPU time up to a cycle is less than up to an earlier one."""
    if last.end is None or cycle.end is None or last.share is None or cycle.share is None:
        return False
    before = (last.procs or 0) * last.end
    now = before + (cycle.procs or 0) * (cycle.end - last.end)
    fell = (cycle.share + 1) * now < SHARE_SLACK * last.share * before
    return fell and last.end > SHARE_FROM_S and cycle.share >= 0


def _goal_growth_pct(live: int | None, goal: int | None) -> float | None:
    """Returns by what percentage the goal exceeds the live heap of the cycle before.

    Unlike in `effective_gogc`, stacks and globals are ignored: this only serves to compare cycles.
    """
    if not live or goal is None or goal <= live:
        return None
    return 100 * (goal - live) / live


def _sequential(runs: Iterable[tuple[_Cycle, _Cycle]]) -> list[int] | None:
    """Returns the process of each run of consecutive numbers; None if processes ran concurrently.

    A run is given by its first and its last cycle.

    Processes ran concurrently if a run continues an earlier process with far fewer missing cycles
    than the newest one, or if it fits into a gap of the newest process.
    """
    chains: list[_Chain] = []
    before_gap = None
    process: list[int] = []
    for first, last in runs:
        here = chains[-1].missing(first) if chains else math.inf
        if chains and _loses_gc_cpu(chains[-1].last, first):
            here = math.inf
        earlier = [*chains[-OPEN_CHAINS:-1], *([before_gap] if before_gap else [])]
        least = min((process.missing(first) for process in earlier), default=math.inf)
        # After a restart, lines that somebody left out are of the process that was started.
        if _FAR_FEWER * least < here:
            return None
        if here == math.inf:
            chains.append(_Chain(len(chains), last))
        elif here:
            before_gap = _Chain(chains[-1].process, chains[-1].last)
        chains[-1].last = last
        process.append(chains[-1].process)
    return process


def _concurrent(facts: Sequence[pl.DataFrame]) -> pl.Series:
    """Returns the process of each cycle, with the core in a twentieth of the time."""
    compiled = core.compiled()
    if compiled is None:
        cycles = [*chain.from_iterable(map(_rows, facts))]
        return pl.Series("process", _best_fits(cycles), dtype=pl.Int64)
    numbers = pl.concat(facts).select(pl.all().cast(pl.Float64).fill_null(math.nan))
    table = compiled.concurrent_processes(
        b"".join(core.packed(numbers)),
        slack_s=CLOCK_SLACK_S,
        open=OPEN_CHAINS,
        other_live=OTHER_LIVE,
        lookahead=LOOKAHEAD,
    )
    return pl.DataFrame(table)["process"]


def _best_fits(cycles: list[_Cycle]) -> list[int]:
    """Returns the best-fitting recent process of each cycle, or a new one."""
    chains: list[_Chain] = []  # the most recent last
    process: list[int] = []
    for place, cycle in enumerate(cycles, start=1):
        best = _next_of(chains, cycle)
        if best is None:
            best = _after_gap(chains, cycle, cycles[place : place + LOOKAHEAD])
        if best is None:
            best = _Chain(len(chains), cycle)
            chains.append(best)
        else:
            best.add(cycle)
        if best is not chains[-1]:
            chains.remove(best)
            chains.append(best)
        process.append(best.process)
    return process


def _next_of(chains: list[_Chain], cycle: _Cycle) -> _Chain | None:
    """Returns the process whose next cycle this is; the best-fitting one of several."""
    before = cycle.num - 1
    fitting = [
        process
        for process in chains[-OPEN_CHAINS:]
        if process.last.num == before and process.missing(cycle) == 0
    ]
    if len(fitting) < 2:
        return fitting[0] if fitting else None
    # Of equally good processes, the one seen last.
    return min(reversed(fitting), key=lambda process: process.mismatch(cycle))


def _after_gap(
    chains: list[_Chain], cycle: _Cycle, upcoming: Iterable[_Cycle]
) -> _Chain | None:
    """Returns the process that this cycle continues with cycles missing in between.

    If the number that comes next in a process follows later in the input, this cycle belongs to
    another process.
    """
    for process in _candidates(chains, cycle):
        if not any(process.missing(later) == 0 for later in upcoming):
            return process
    return None


def _candidates(chains: list[_Chain], cycle: _Cycle) -> list[_Chain]:
    """Returns the processes that this cycle may belong to, most likely first."""
    costs = []
    for age, process in enumerate(reversed(chains[-OPEN_CHAINS:])):
        missing = process.missing(cycle)
        if missing < math.inf:
            costs.append(((missing, process.mismatch(cycle), age), process))
    return [process for _, process in sorted(costs, key=lambda cost: cost[0])]
