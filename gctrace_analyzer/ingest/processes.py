"""Assigns each cycle to a process, and summarises the processes.

Lines with different hosts, units, containers or process ids in their log prefix belong to
different processes. Within one such identity, cycle numbers and times decide: in one process
both only grow, and no cycle begins before the last one has ended. A number that falls is a
restart, unless an older process continues afterwards: then several processes share the stream
(`go test` and the compiler it runs), and each cycle goes to the process that it continues best.
A change of GOMAXPROCS never starts a process.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.ingest.clock import MOSTLY, falls
from gctrace_analyzer.ingest.gctrace.columns import end_s
from gctrace_analyzer.ingest.gctrace.grammar import SHAPES, version_key
from gctrace_analyzer.schema import IDENTITY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gctrace_analyzer.ingest.input import Part

CLOCK_SLACK_S = 0.002
"""Tolerance for times, because `@` is truncated to a millisecond and phases to two digits."""

OPEN_CHAINS = 64
"""Only this many of the last processes can get more cycles; limits the cost of crash loops."""

LOOKAHEAD = 32
"""How many cycles of other processes may come between two of one process."""


def process_of(frames: Sequence[pl.DataFrame]) -> list[pl.Series]:
    """Returns the process, 0, 1, …, of each cycle, for each of the frames.

    The frames are parts of one log, none of them empty, rows in the order of the log.
    """
    links = list(_links(frames))
    if all(each["follows"].all() for each in links):
        return [pl.repeat(0, len(f), dtype=pl.Int64, eager=True) for f in frames]
    chains = _sequential(_ends_of_runs(frames, links))
    if chains is None:
        return [pl.Series(numbers, dtype=pl.Int64) for numbers in _concurrent(frames)]
    process = pl.Series(chains, dtype=pl.Int64)
    found, before = [], -1
    for each in links:
        run = each["begins"].cast(pl.Int64).cum_sum() + before
        before = run[-1]
        found.append(process.gather(run))
    return found


def _links(frames: Sequence[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Yields whether each cycle `follows` the previous row, and whether it `begins` a run.

    A cycle follows another if one process may have printed both. A run is a series of
    cycles with consecutive numbers.
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
) -> Iterator[tuple[_Cycle, _Cycle]]:
    """Yields the first and the last cycle of each run."""
    unfinished: list[_Cycle] = []
    for index, (frame, each) in enumerate(zip(frames, links, strict=True)):
        begins = each["begins"]
        more = links[index + 1]["begins"][0] if index + 1 < len(links) else True
        ends = begins.slice(1).append(pl.Series([more]))
        firsts = chain(unfinished, _rows(frame.filter(begins)))
        for last in _rows(frame.filter(ends)):
            yield next(firsts), last
        unfinished = list(firsts)


def _rows(frame: pl.DataFrame) -> Iterator[_Cycle]:
    return map(_Cycle._make, _facts(frame).iter_rows())


def _facts(cycles: pl.DataFrame) -> pl.DataFrame:
    """Returns the columns of `_Cycle`."""
    gc_cpu = (
        "stw_sweep_term_cpu_ms",
        "assist_cpu_ms",
        "background_cpu_ms",
        "stw_mark_term_cpu_ms",
    )
    # A process prints one line format only, except for cycles that check for goroutine leaks.
    plain = pl.lit("gc18").cast(pl.Categorical)
    shape = pl.when(pl.col("format") == "gc26").then(plain).otherwise("format")
    return cycles.select(
        pl.col("gc_num").alias("num"),
        pl.col("start_s").alias("start"),
        end_s().alias("end"),
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
    """The facts of a cycle by which its process is found."""

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
    """What is known of a process so far: last cycle, GC CPU time in seconds.

    `live` and `goal` are the last live heap with the goal after it, where that is larger.
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
        if _less(cycle.start, last.end, CLOCK_SLACK_S):
            return math.inf
        if apart == 1 and _less(cycle.heap, last.live, 1):
            return math.inf  # the heap cannot shrink between cycles
        return apart - 1

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


def _less(one: float | None, other: float | None, slack: float) -> bool:
    return one is not None and other is not None and one < other - slack


def _goal_growth_pct(live: int | None, goal: int | None) -> float | None:
    """Returns by how many percent the goal exceeds the live heap of the cycle before.

    Unlike in `effective_gogc`, stacks and globals are ignored: this only serves to compare cycles.
    """
    if not live or goal is None or goal <= live:
        return None
    return 100 * (goal - live) / live


def _sequential(runs: Iterable[tuple[_Cycle, _Cycle]]) -> list[int] | None:
    """Returns the process of each run of consecutive numbers; None if processes ran concurrently.

    A run is given by its first and its last cycle.

    Processes ran concurrently if a run continues an earlier process with fewer missing cycles
    than it continues the newest process, or if it fits into a gap of the newest process.
    """
    chains: list[_Chain] = []
    before_gap = None
    process: list[int] = []
    for first, last in runs:
        here = chains[-1].missing(first) if chains else math.inf
        earlier = [*chains[-OPEN_CHAINS:-1], *([before_gap] if before_gap else [])]
        if min((each.missing(first) for each in earlier), default=math.inf) < here:
            return None
        if here == math.inf:
            chains.append(_Chain(len(chains), last))
        elif here:
            before_gap = _Chain(chains[-1].process, chains[-1].last)
        chains[-1].last = last
        process.append(chains[-1].process)
    return process


def _concurrent(frames: Sequence[pl.DataFrame]) -> Iterator[list[int]]:
    """Yields the process of each cycle of a frame: the recent process that it fits best."""
    chains: list[_Chain] = []  # the most recent last
    count = 0
    for rows, following in _with_following(frames):
        process: list[int] = []
        for place, cycle in enumerate(rows, start=1):
            found = _next_of(chains, cycle)
            if found is None:
                upcoming = [*rows[place : place + LOOKAHEAD], *following][:LOOKAHEAD]
                found = _after_gap(chains, cycle, upcoming)
            if found is None:
                found = _Chain(count, cycle)
                count += 1
                chains.append(found)
            else:
                found.add(cycle)
                if found is not chains[-1]:
                    chains.remove(found)
                    chains.append(found)
            process.append(found.process)
        yield process


def _next_of(chains: list[_Chain], cycle: _Cycle) -> _Chain | None:
    """Returns the process whose next cycle this is; of several, the one that it fits best."""
    before = cycle.num - 1
    next_to = [each for each in chains[-OPEN_CHAINS:] if each.last.num == before]
    fitting = [each for each in next_to if each.missing(cycle) == 0]
    if len(fitting) < 2:
        return fitting[0] if fitting else None
    # Of those that fit alike, the one that was seen last.
    return min(reversed(fitting), key=lambda each: each.mismatch(cycle))


def _after_gap(
    chains: list[_Chain], cycle: _Cycle, upcoming: Iterable[_Cycle]
) -> _Chain | None:
    """Returns the process that this cycle continues with cycles missing in between.

    If the number that comes next in a process follows later in the input, this cycle belongs to
    another process.
    """
    for each in _candidates(chains, cycle):
        if not any(each.missing(later) == 0 for later in upcoming):
            return each
    return None


def _candidates(chains: list[_Chain], cycle: _Cycle) -> list[_Chain]:
    """Returns the processes that this cycle may belong to, most likely first."""
    costs = []
    for age, each in enumerate(reversed(chains[-OPEN_CHAINS:])):
        missing = each.missing(cycle)
        if missing < math.inf:
            costs.append(((missing, each.mismatch(cycle), age), each))
    return [each for _, each in sorted(costs, key=lambda cost: cost[0])]


def _with_following(
    frames: Sequence[pl.DataFrame],
) -> Iterator[tuple[list[_Cycle], list[_Cycle]]]:
    """Yields the cycles of each frame, and the `LOOKAHEAD` cycles after them."""
    for index, frame in enumerate(frames):
        following: list[_Cycle] = []
        for later in frames[index + 1 :]:
            if len(following) >= LOOKAHEAD:
                break
            following += _rows(later.head(LOOKAHEAD - len(following)))
        yield list(_rows(frame)), following


def processes(cycles: pl.DataFrame, companions: Iterable[pl.DataFrame] = ()) -> pl.DataFrame:
    """Returns one row per process: its cycles, missing cycles, and possible Go versions."""
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
    """Returns the oldest and the newest Go release that print all these line formats.

    The newest is None if there is no upper limit; both are None if there is no format.
    """
    shapes = [SHAPES[name] for name in formats if name in SHAPES]
    low = max((shape.go_min for shape in shapes), key=version_key, default=None)
    high = min(
        (shape.go_max for shape in shapes if shape.go_max), key=version_key, default=None
    )
    return low, high


def take_cycles(parts: Sequence[Part]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Removes the cycles from the parts; returns them with the identities of the processes.

    The cycles are one frame with a `process` column. The identities are one row per process,
    with host, unit, container and so on from the log prefix. The frame of cycles is not made
    contiguous, because that would need twice the memory.
    """
    frames = []
    for part in parts:
        name = pl.lit(part.facts.name).cast(pl.Categorical).alias("source")
        given = [frame.with_columns(name) for frame in part.cycles if len(frame)]
        frames += _in_time_order(given)
        part.cycles = []
    if not frames:
        empty = schema.empty("cycles")
        return empty.with_columns(resolution_s=pl.lit(None, pl.Float64)), _no_identities()
    numbers, identities = _processes_of(frames)
    drop = [name for name in IDENTITY if any(name in frame.columns for frame in frames)]
    rows = [
        (frame.drop(drop, strict=False) if drop else frame).with_columns(of.alias("process"))
        for frame, of in zip(frames, numbers, strict=True)
    ]
    alike = all(frame.columns == rows[0].columns for frame in rows)
    whole = pl.concat(rows, how="vertical" if alike else "diagonal")
    return whole, identities


def _in_time_order(frames: list[pl.DataFrame]) -> list[pl.DataFrame]:
    """Returns the cycles of an input in the order in which they happened."""
    if not frames:
        return frames
    at = pl.concat([frame["logged_at"] for frame in frames]).drop_nulls()
    if falls(at) or _numbers_fall(frames):
        return [frame.reverse() for frame in reversed(frames)]
    return frames


def _numbers_fall(frames: list[pl.DataFrame]) -> bool:
    """Returns whether numbers count down, and each cycle starts before the one above it."""
    if frames[0]["gc_num"].head(3).is_sorted():
        return False
    facts = pl.concat([frame.select("gc_num", "start_s") for frame in frames])
    steps = facts.select(
        (pl.col("gc_num").diff() == -1) & (pl.col("start_s").diff() < 0)
    ).to_series()
    return len(facts) > 2 and bool(steps.sum() >= MOSTLY * (len(facts) - 1))


def _processes_of(frames: list[pl.DataFrame]) -> tuple[list[pl.Series], pl.DataFrame]:
    """Returns the process of each cycle of each frame, and the identity of each process."""
    if not any(name in frame.columns for frame in frames for name in IDENTITY):
        return process_of(frames), _no_identities()
    if _has_one_identity(frames):
        numbers = process_of(frames)
    else:
        numbers = _by_key(frames, [_key(frame) for frame in frames])
    return numbers, _identities(frames, numbers)


def _has_one_identity(frames: list[pl.DataFrame]) -> bool:
    """Returns whether all log prefixes give the same identity."""
    names = [name for name in IDENTITY if name != "stream"]
    seen = set()
    for frame in frames:
        each = [frame[name].unique() if name in frame.columns else [None] for name in names]
        if any(len(values) > 1 for values in each):
            return False
        seen.add(tuple(values[0] for values in each))
    return len(seen) == 1


def _key(frame: pl.DataFrame) -> pl.Series:
    """Returns the identity of each line as one text.

    The stream (stdout or stderr) is left out, because one process may write to both.
    """
    names = [name for name in IDENTITY if name != "stream" and name in frame.columns]
    if not names:
        return pl.repeat("", len(frame), dtype=pl.String, eager=True).alias("key")
    parts = [pl.col(name).cast(pl.String).fill_null("") for name in names]
    return frame.select(pl.concat_str(parts, separator="\x1f").alias("key")).to_series()


def _by_key(frames: list[pl.DataFrame], keys: list[pl.Series]) -> list[pl.Series]:
    """Returns the process of each cycle, found among the cycles with the same key.

    The processes are numbered in the order in which they appear in the log.
    """
    whole = pl.concat(frames, how="diagonal").with_columns(pl.concat(keys).alias("key"))
    whole = whole.with_row_index("row")
    rows, numbers, so_far = [], [], 0
    for one in whole.partition_by("key", maintain_order=True):
        process = process_of([one.drop("row", "key")])[0]
        rows.append(one["row"])
        numbers.append(process + so_far)
        so_far += int(process.max() or 0) + 1  # type: ignore[arg-type]  # an integer column
    table = pl.DataFrame({"row": pl.concat(rows), "process": pl.concat(numbers)}).sort("row")
    first = table.group_by("process").agg(pl.col("row").min()).sort("row")["process"]
    order = pl.DataFrame({"process": first, "number": pl.int_range(len(first), eager=True)})
    number = table.join(order, on="process", how="left", maintain_order="left")["number"]
    found, at = [], 0
    for frame in frames:
        found.append(number[at : at + len(frame)])
        at += len(frame)
    return found


def _identities(frames: list[pl.DataFrame], processes: list[pl.Series]) -> pl.DataFrame:
    """Returns the identity of each process, in the columns of `processes`."""
    firsts = []
    for frame, process in zip(frames, processes, strict=True):
        given = [name for name in IDENTITY if name in frame.columns]
        if given:
            firsts.append(
                frame.select(given)
                .with_columns(process.alias("process"))
                .group_by("process", maintain_order=True)
                .agg(pl.all().drop_nulls().first())
            )
    if not firsts:
        return _no_identities()
    types = schema.polars_schema("processes")
    whole = (
        pl.concat(firsts, how="diagonal")
        .group_by("process", maintain_order=True)
        .agg(pl.all().drop_nulls().first())
    )
    return whole.cast({name: types[name] for name in whole.columns})


def several_services(processes: pl.DataFrame) -> list[str]:
    """Returns a note if the inputs contain several services, not counting container ids."""
    names = [name for name in ("unit", "container", "ident") if name in processes.columns]
    if not names:
        return []
    name = pl.coalesce(names).cast(pl.String)
    named = processes.select(name.alias("name")).to_series().drop_nulls()
    services = named.filter(~named.str.contains(r"^[0-9a-f]{12,64}$")).unique(
        maintain_order=True
    )
    if len(services) < 2:
        return []
    shown = ", ".join(services.head(4)) + (", …" if len(services) > 4 else "")
    return [
        f"The inputs contain {len(services)} services ({shown}); the figures are for all of "
        "them together. Select one process to see it alone."
    ]


def _no_identities() -> pl.DataFrame:
    return pl.DataFrame(schema={"process": pl.Int64})
