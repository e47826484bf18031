"""Tells the program starts in a log apart.

Cycle numbers and times of one program only grow, and each cycle begins after the one before
has ended. A number that falls is a restart, unless an older program's cycles go on afterwards:
then several programs share the stream (`go test` and the compiler it runs), and each cycle
goes to the program that it continues best. A change of GOMAXPROCS never starts a program.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.ingest.gctrace.grammar import SHAPES, version_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

CLOCK_SLACK_S = 0.002
"""`@` and the phases are truncated to a millisecond or two digits."""

OPEN_CHAINS = 64
"""Programs that may still go on; a crash loop's older starts need not be asked."""

LOOK_AHEAD = 32
"""How many cycles of other programs may stand between two of one."""


def process_of(frames: Sequence[pl.DataFrame]) -> list[pl.Series]:
    """The program start, 0, 1, …, that each cycle belongs to, for each of the frames.

    The frames are parts of one log, none of them empty, rows in the order of the log.
    """
    links = list(_links(frames))
    if all(each["follows"].all() for each in links):
        return [pl.repeat(0, len(f), dtype=pl.Int64, eager=True) for f in frames]
    chains = _one_after_the_other(*_ends_of_runs(frames, links))
    if chains is None:
        numbers = iter(_side_by_side(_rows(frames)))
        return [pl.Series([next(numbers) for _ in range(len(f))]) for f in frames]
    process = pl.Series(chains, dtype=pl.Int64)
    found, before = [], -1
    for each in links:
        run = each["begins"].cast(pl.Int64).cum_sum() + before
        before = run[-1]
        found.append(process.gather(run))
    return found


def _links(frames: Sequence[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """For each cycle: `follows`, it may continue the row before; `begins`, it does not at once.

    A run is cycles whose numbers follow without a gap; it `begins` with the first of them.
    """
    num, later = pl.col("num"), pl.col("start") >= pl.col("end").shift() - CLOCK_SLACK_S
    follows = (num > num.shift()) & later.fill_null(value=True)
    follows = (follows & (pl.col("kind") == pl.col("kind").shift())).fill_null(value=False)
    begins = ~(follows & (num == num.shift() + 1).fill_null(value=False))
    yield _facts(frames[0]).select(
        follows=follows | (pl.int_range(pl.len()) == 0), begins=begins
    )
    for before, frame in pairwise(frames):
        facts = pl.concat([_facts(before.tail(1)), _facts(frame)])
        yield facts.select(follows=follows, begins=begins).slice(1)


def _ends_of_runs(
    frames: Sequence[pl.DataFrame], links: Sequence[pl.DataFrame]
) -> tuple[list[_Cycle], list[_Cycle]]:
    """The first and the last cycle of each run."""
    firsts: list[_Cycle] = []
    lasts: list[_Cycle] = []
    for index, (frame, each) in enumerate(zip(frames, links, strict=True)):
        begins = each["begins"]
        more = links[index + 1]["begins"][0] if index + 1 < len(links) else True
        ends = begins.slice(1).append(pl.Series([more]))
        firsts += _rows([frame.filter(begins)])
        lasts += _rows([frame.filter(ends)])
    return firsts, lasts


def _rows(frames: Iterable[pl.DataFrame]) -> Iterator[_Cycle]:
    return (_Cycle._make(row) for frame in frames for row in _facts(frame).iter_rows())


def _facts(cycles: pl.DataFrame) -> pl.DataFrame:
    """What tells whose a cycle is, as in `_Cycle`."""
    phases = ("stw_sweep_term_ms", "concurrent_mark_ms", "stw_mark_term_ms")
    gc_cpu = (
        "stw_sweep_term_cpu_ms",
        "assist_cpu_ms",
        "background_cpu_ms",
        "stw_mark_term_cpu_ms",
    )
    # One program prints one shape; the leak check is a note within it.
    plain = pl.lit("gc18").cast(pl.Categorical)
    shape = pl.when(pl.col("format") == "gc26").then(plain).otherwise("format")
    return cycles.select(
        pl.col("gc_num").alias("num"),
        pl.col("start_s").alias("start"),
        (pl.col("start_s") + pl.sum_horizontal(phases) / 1000).alias("end"),
        pl.col("heap_start_mib").alias("heap"),
        pl.col("heap_live_mib").alias("live"),
        pl.col("heap_goal_mib").alias("goal"),
        pl.col("procs"),
        pl.col("stacks_mib").alias("stacks"),
        pl.col("gc_cpu_since_start_pct").alias("share"),
        (pl.sum_horizontal(gc_cpu) / 1000).alias("cpu"),
        shape.to_physical().alias("kind"),
    )


class _Cycle(NamedTuple):
    """The facts of a row that tell whose it is."""

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


@dataclass(slots=True)
class _Chain:
    """A program: its last cycle, its GC CPU so far in s, the GOGC its goals amount to."""

    process: int
    last: _Cycle
    cpu: float = 0.0
    gogc: float | None = None

    def __post_init__(self) -> None:
        if self.last.num == 1:
            self.cpu = self.last.cpu
        else:
            capacity = (self.last.end or 0.0) * (self.last.procs or 0)
            self.cpu = capacity * ((self.last.share or 0) + 0.5) / 100

    def missing(self, cycle: _Cycle) -> float:
        """How many cycles lie between the last one and `cycle`; infinite if it is not ours."""
        last = self.last
        apart = cycle.num - last.num
        if apart < 1 or cycle.kind != last.kind:
            return math.inf
        if _less(cycle.start, last.end, CLOCK_SLACK_S):
            return math.inf
        if apart == 1 and _less(cycle.heap, last.live, 1):
            return math.inf  # between cycles the heap only grows
        return apart - 1

    def strangeness(self, cycle: _Cycle) -> tuple[float, bool]:
        """How unlike this program the cycle is: goal, GC CPU so far, stacks, processors."""
        gogc = _gogc(self.last, cycle)
        odd = abs(math.log((gogc + 1) / (self.gogc + 1))) if gogc and self.gogc else 0.0
        odd += abs((cycle.stacks or 0) - (self.last.stacks or 0)) / 4
        capacity = (cycle.end or 0.0) * (cycle.procs or 0)
        if capacity and cycle.share is not None:
            # The printed percentage counts all cycles so far, and no two programs' are alike.
            odd += abs(100 * (self.cpu + cycle.cpu) / capacity - cycle.share - 0.5) / 2
        return round(odd, 1), cycle.procs != self.last.procs

    def add(self, cycle: _Cycle) -> None:
        if cycle.num == self.last.num + 1:
            self.gogc = _gogc(self.last, cycle) or self.gogc
        self.cpu += cycle.cpu
        self.last = cycle


def _less(one: float | None, other: float | None, slack: float) -> bool:
    return one is not None and other is not None and one < other - slack


def _gogc(before: _Cycle, cycle: _Cycle) -> float | None:
    if not before.live or cycle.goal is None or cycle.goal <= before.live:
        return None
    return 100 * (cycle.goal - before.live) / before.live


def _one_after_the_other(firsts: list[_Cycle], lasts: list[_Cycle]) -> list[int] | None:
    """The program of each run of consecutive numbers; None if programs ran side by side.

    They did where a run continues an earlier program better than the last one, or the last
    one as it was before a gap.
    """
    chains: list[_Chain] = []
    before_gap = None
    process: list[int] = []
    for first, last in zip(firsts, lasts, strict=True):
        here = chains[-1].missing(first) if chains else math.inf
        earlier = [*chains[-OPEN_CHAINS:-1], *([before_gap] if before_gap else [])]
        if min((chain.missing(first) for chain in earlier), default=math.inf) < here:
            return None
        if here == math.inf:
            chains.append(_Chain(len(chains), last))
        elif here:
            before_gap = _Chain(chains[-1].process, chains[-1].last)
        chains[-1].last = last
        process.append(chains[-1].process)
    return process


def _side_by_side(cycles: Iterable[_Cycle]) -> list[int]:
    """The program of each cycle: the one it continues best, of those that last spoke."""
    chains: list[_Chain] = []  # the one that spoke last is at the end
    process: list[int] = []
    programs = 0
    for cycle, coming in _with_coming(cycles):
        found = None
        for chain, missing in _candidates(chains, cycle):
            # A gap, though the program's very next cycle is still to come: not this one.
            if not missing or not any(chain.missing(later) == 0 for later in coming):
                found = chain
                break
        if found is None:
            found = _Chain(programs, cycle)
            programs += 1
        else:
            chains.remove(found)
            found.add(cycle)
        chains.append(found)
        process.append(found.process)
    return process


def _candidates(chains: list[_Chain], cycle: _Cycle) -> list[tuple[_Chain, float]]:
    """The programs that the cycle may continue, the likeliest first."""
    costs = []
    for age, chain in enumerate(reversed(chains[-OPEN_CHAINS:])):
        missing = chain.missing(cycle)
        if missing < math.inf:
            costs.append(((missing, chain.strangeness(cycle), age), chain))
    return [(chain, cost[0]) for cost, chain in sorted(costs, key=lambda each: each[0])]


def _with_coming(cycles: Iterable[_Cycle]) -> Iterator[tuple[_Cycle, deque[_Cycle]]]:
    """Each cycle with the next few."""
    ahead = iter(cycles)
    coming = deque(islice(ahead, LOOK_AHEAD))
    while coming:
        cycle = coming.popleft()
        coming.extend(islice(ahead, 1))
        yield cycle, coming


def processes(cycles: pl.DataFrame, companions: Iterable[pl.DataFrame] = ()) -> pl.DataFrame:
    """One row per program start: its cycles, what is missing, and the Go that prints so."""
    table = (
        cycles.lazy()
        .select("process", "gc_num", "format")
        .with_row_index("row")
        .group_by("process")
        .agg(
            pl.col("gc_num").first().alias("first_gc"),
            pl.col("gc_num").last().alias("last_gc"),
            pl.len().cast(pl.Int64).alias("cycles"),
            pl.col("format").unique().alias("formats"),
            pl.col("row").min().alias("begins"),
            pl.col("row").max().alias("ends"),
        )
        .sort("process")
        .collect()
        .with_columns(pl.col("formats").list.eval(pl.element().cast(pl.String)))
    )
    also = [
        frame.group_by("process").agg(pl.col("format").cast(pl.String).unique().alias("also"))
        for frame in companions
        if frame.width
    ]
    for shapes in also:
        table = (
            table.join(shapes, on="process", how="left")
            .with_columns(
                pl.concat_list("formats", pl.col("also").fill_null([])).alias("formats")
            )
            .drop("also")
        )
    versions = [go_versions(formats) for formats in table["formats"]]
    restarted = table["begins"].shift(-1) > table["ends"]
    table = table.with_columns(
        (pl.col("last_gc") - pl.col("first_gc") + 1 - pl.col("cycles")).alias("missing_cycles"),
        pl.Series("go_version_min", [low for low, _ in versions], pl.String),
        pl.Series("go_version_max", [high for _, high in versions], pl.String),
        pl.when(restarted)
        .then(pl.lit("restart"))
        .otherwise(pl.lit("end of input"))
        .alias("ended_by"),
    )
    return schema.conform("processes", table)


def go_versions(formats: Iterable[str]) -> tuple[str | None, str | None]:
    """The oldest and newest Go that prints all these shapes; None as newest: still does."""
    shapes = [SHAPES[name] for name in formats if name in SHAPES]
    low = max((shape.go_min for shape in shapes), key=version_key, default=None)
    high = min(
        (shape.go_max for shape in shapes if shape.go_max), key=version_key, default=None
    )
    return low, high
