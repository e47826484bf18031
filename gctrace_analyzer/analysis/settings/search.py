"""The most probable sequence of settings that set the heap goals of a process.

A state sets the goals for some time. It is a GOGC, a memory limit (a goal that does not follow the
live heap), or both, and then the lower goal wins. A goal that its state does not explain costs 1,
and a change of state costs `SWITCH`. Each state also has a cost by how unlikely it is: the default
costs nothing, usual values of GOGC little, a memory limit and odd values more. A goal far from what
its state allows costs `_FAR`, because truncation cannot explain it. The first goal may show a limit
that no later goal shows: nothing is live before it, so GOGC alone would set the heap minimum. The
cheapest sequence is found by dynamic programming (Viterbi), in the compiled core or, with the same
result, here.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate
from operator import sub
from typing import NamedTuple

import polars as pl

from gctrace_analyzer import core
from gctrace_analyzer.analysis.settings.goal_ranges import not_raised
from gctrace_analyzer.ingest.rows import complete, where

SWITCH = 6.0
"""Number of unexplained goals that a change of settings must save."""

_NEAR, _DRIFT = 0.12, 0.3
"""Cost of a goal near the limit's, and of one that drift of other memory explains."""

_FAR, FAR_TIMES = 3.0, 1.75
"""Cost of a goal far from what its state allows, and the factor that counts as far."""

_NEAR_SHARE, _NEAR_TIMES = 0.02, 2.0
"""Share of the limit's goal within which a goal is at it, and factor for being near it."""

DRIFT_LOW, DRIFT_HIGH = 0.7, 1.1
"""Shares of the limit's goal. Memory outside the heap drifts, and lowers the goal."""

DEFAULT_GOGC = 100.0

LIMIT, ODD, TINY = 2.0, 2.5, 4.0
"""Costs of a memory limit, of a GOGC that nobody would choose, and of one below `TINY_GOGC`."""

TINY_GOGC = 10

USUAL: dict[float, float] = {
    **dict.fromkeys((50, 200, 400), 1.0),
    **dict.fromkeys((25, 75, 150, 300, 800), 1.1),
    **dict.fromkeys((10, 20, 40, 500, 1000), 1.2),
    **dict.fromkeys((5, 15, 30, 60, 70, 80, 90, 120, 125, 175, 250, 350, 600, 700), 1.5),
    **dict.fromkeys((900, 1200, 1500, 1600, 2000, 3200), 1.5),
}
"""Cost of the values of GOGC that people set."""

COMMON = 1.2
"""Highest cost of a GOGC that is accepted next to a memory limit that sets other goals."""

_DRIFTING = 0.75
"""Quantile of the goals that is tried as a limit's, if few goals are similar."""

_PARTS, _MOST_GOGC, _MOST_TOPS = 8, 14, 5
"""Parts of a log that each suggest a GOGC, and the most states of each kind."""

FEWEST_GOALS, _FEWEST_TRIED = 4, 3
"""Goals. Fewer do not prove a GOGC or limit, but three goals far from what the previous setting
allows prove a change. A GOGC that explains fewer goals than the second value is not tried: the
default is assumed."""


MOST_UNLIKE = 20
"""Goals at the end of a part that its state does not explain. More would be a part of their own."""


def as_evidence(ranges: pl.DataFrame, usual: float = DEFAULT_GOGC) -> pl.DataFrame:
    """Returns the columns that the costs of states depend on.

    A buffer that doubles raises goals to the same multiple of the live heap as a high GOGC does, so
    raised goals are weak evidence of an unusual GOGC, but strong evidence of the usual one.
    """
    is_usual = (pl.col("low") == -math.inf) & pl.lit(usual).is_between("least", "high")
    low_raised = pl.when(is_usual).then("least").otherwise("low_raised").alias("low_raised")
    columns = ranges.select("least", low_raised, "high", "goal", "live")
    return columns.with_columns(pl.all().fill_null(math.nan))


class State(NamedTuple):
    """What sets the goals: GOGC in percent (infinite: off), and the limit's goal in MiB.

    `top_mib` is infinite without a limit, and 0 for one below the live heap.
    """

    gogc: float
    top_mib: float
    cost: float

    @property
    def is_limited(self) -> bool:
        """Whether a memory limit sets goals."""
        return self.top_mib < math.inf

    @property
    def is_off(self) -> bool:
        """Whether there are no goals: GOGC is off, and there is no limit."""
        return math.isinf(self.gogc) and math.isinf(self.top_mib)

    @property
    def drift(self) -> tuple[float, float]:
        """The range of goals in MiB that drift of other memory explains."""
        return DRIFT_LOW * self.top_mib - 1, DRIFT_HIGH * self.top_mib + 1


class Part(NamedTuple):
    """Consecutive goals of one state: rows from `begin` to before `end`.

    `both`: a GOGC and a limit explain them. `in_turn`: two values of GOGC, one after the other,
    explain them as well as a limit.
    """

    state: State
    begin: int
    end: int
    both: bool = False
    in_turn: tuple[float, float] | None = None


def near(goal_mib: float) -> tuple[float, float]:
    """Returns the range of goals in MiB near that of a limit."""
    width = _NEAR_TIMES * max(1.0, _NEAR_SHARE * goal_mib)
    return goal_mib - width, goal_mib + width


def cost_of(gogc: float, stated: float | None = None) -> float:
    """Returns how unlikely a GOGC is; the stated value, by default 100, costs nothing."""
    if gogc == (DEFAULT_GOGC if stated is None else stated):
        return 0.0
    if gogc == DEFAULT_GOGC:
        return 1.0
    return USUAL.get(gogc, TINY if gogc < TINY_GOGC else ODD)


@cache
def _values() -> pl.Series:
    """Returns the values of GOGC to try, in order."""
    steps = (1.035**step for step in range(241))
    odd = {round(value, 1) if value < TINY_GOGC else float(round(value)) for value in steps}
    return pl.Series(sorted({*odd, *USUAL, DEFAULT_GOGC}), dtype=pl.Float64)


@cache
def _costs(stated: float | None) -> tuple[float, ...]:
    """Returns how unlikely each value is."""
    return tuple(cost_of(gogc, stated) for gogc in _values())


def _usual(stated: float | None) -> float:
    """Returns the stated GOGC if it is on, else the default."""
    return DEFAULT_GOGC if stated is None or math.isinf(stated) else stated


def usual_between(
    low: float | None, high: float | None, stated: float | None = None
) -> float | None:
    """Returns the most usual GOGC of an interval; None if all are odd or it has no ends."""
    if low is None or high is None:
        return None
    usual = {DEFAULT_GOGC, *USUAL} | ({stated} if stated else set())
    inside = [gogc for gogc in usual if low <= gogc <= high]
    return min(inside, key=lambda gogc: cost_of(gogc, stated), default=None)


def has_other_usual(low: float, high: float) -> bool:
    """Returns whether an interval has another common GOGC than the default."""
    return any(low <= gogc <= high and cost <= COMMON for gogc, cost in USUAL.items())


def search(
    ranges: pl.DataFrame, stated: float | None, tops: Sequence[float] | None
) -> list[Part]:
    """Returns the most probable sequence of states of a process.

    Args:
        ranges: `goal_ranges.gogc_ranges` of a process, only rows that show something.
        stated: the known GOGC; infinite: off.
        tops: goals in MiB that known limits would set; None if there is no limit.
    """
    states = list(_states(ranges, stated, tops))
    constants = (
        *(SWITCH, _NEAR, _DRIFT, _FAR, FAR_TIMES),
        *(_NEAR_SHARE, _NEAR_TIMES, DRIFT_LOW, DRIFT_HIGH),
    )
    columns = as_evidence(ranges, _usual(stated))
    if (compiled := core.compiled()) is not None:
        runs = compiled.settings_path(core.packed(columns), states, constants)
    else:
        runs = _path([column.to_list() for column in columns], states)
    stretches, begin = [], 0
    for number, length in runs:
        stretches.append(Part(states[number], begin, begin + length))
        begin += length
    return stretches


def _states(
    ranges: pl.DataFrame, stated: float | None, tops: Sequence[float] | None
) -> Iterator[State]:
    """Yields the states that explain something, at most 64."""
    values = _gogc_values(ranges, stated)
    for gogc in values:
        yield State(gogc, math.inf, cost_of(gogc, stated))
    if ranges["no_goal"].any():
        yield State(math.inf, math.inf, cost_of(math.inf, stated))
    if tops is None:
        return
    candidates = list(dict.fromkeys([*tops, *_tops(ranges)]))
    for top in [0.0, *candidates]:
        yield State(math.inf, top, LIMIT)
    usual = _usual(stated)
    # The first goal is the heap minimum, whatever the limit sets later.
    first = usual_between(ranges["low"][0], ranges["high"][0], stated)
    for top in candidates:
        # GOGC and a limit together, although the limit alone may explain all goals.
        yield State(usual, top, 2 * LIMIT)
        if first is not None and first != usual:
            yield State(first, top, LIMIT + cost_of(first, stated))


def _gogc_values(ranges: pl.DataFrame, stated: float | None) -> list[float]:
    """Returns the values of GOGC that explain most goals, in the whole log and in its parts."""
    # Goals that an allocation raised may suggest another GOGC than the real one.
    values, found = _values(), {_usual(stated): None}
    size = max(-(-len(ranges) // _PARTS), 1)
    shown = complete(ranges[["least", "high"]].with_row_index("at"), "least", "high").select(
        pl.lit(values).search_sorted(pl.col("least"), side="left").alias("first"),
        pl.lit(values).search_sorted(pl.col("high"), side="right").alias("after"),
        pl.col("at") // size,
    )
    parts = where(shown, shown["first"] < shown["after"])
    # The values from `first` to before `after` explain this many goals of a part.
    explaining = rest = parts.group_by(pl.all()).len().rows()
    while rest and len(found) < _PARTS:
        best, count = _most_explaining(rest, stated)
        if count < _FEWEST_TRIED:
            break
        found[values[best]] = None
        rest = [row for row in rest if not row[0] <= best < row[1]]
    if size >= 2 * FEWEST_GOALS:
        for part in range(-(-len(ranges) // size)):
            if len(found) < _MOST_GOGC:
                own = [row for row in explaining if row[2] == part]
                found[values[_most_explaining(own, stated)[0]]] = None
    return list(found)


def _most_explaining(
    goals: list[tuple[int, int, int, int]], stated: float | None
) -> tuple[int, int]:
    """Returns the GOGC that explains most goals, preferring usual values, and their number.

    A GOGC is given as its position in `_values`.
    """
    change = [0] * (len(_values()) + 1)
    for first, after, _, count in goals:
        change[first] += count
        change[after] -= count
    explained = list(accumulate(change[:-1]))
    scores = list(map(sub, explained, _costs(stated)))
    best = scores.index(max(scores))
    return best, explained[best]


def _tops(ranges: pl.DataFrame) -> list[float]:
    """Returns the most common goals, which may be a limit's, each with its neighbours."""
    above = ranges.filter(pl.col("goal") > pl.col("live"), not_raised())["goal"]
    common = dict(sorted(above.value_counts().iter_rows()))
    goals, whole = list(common), list(common.values())
    width = [max(_NEAR_SHARE * goal, 1.0) for goal in goals]
    first = [bisect_left(goals, goal - near) for goal, near in zip(goals, width, strict=True)]
    after = [bisect_right(goals, goal + near) for goal, near in zip(goals, width, strict=True)]
    tops: list[float] = []
    left, counts = list(range(len(goals))), whole
    while left and len(tops) < _MOST_TOPS:
        total = [0, *accumulate(counts)]
        near = [total[after[at]] - total[first[at]] for at in left]
        if max(near) < FEWEST_GOALS:
            break
        best = left[near.index(max(near))]
        tops.append(goals[best])
        reach = _NEAR_TIMES * width[best]
        left = [at for at in left if abs(goals[at] - tops[-1]) > reach]
        counts = [0] * len(goals)
        for at in left:
            counts[at] = whole[at]
    if not tops and len(above) >= FEWEST_GOALS:
        tops = [float(above.quantile(_DRIFTING) or 0.0)]
    return tops


def _path(columns: list[list[float]], states: list[State]) -> list[tuple[int, int]]:
    """Returns the states of the cheapest path and how many goals each explains.

    The core computes the same in far less time.
    """
    numbers = range(len(states))
    costs = [state.cost for state in states]
    entered: list[tuple[int, frozenset[int]]] = []
    for row in zip(*columns, strict=True):
        cheapest = min(numbers, key=costs.__getitem__)
        changed = [costs[cheapest] + SWITCH + state.cost for state in states]
        if entered:
            stay = frozenset(number for number in numbers if costs[number] <= changed[number])
            costs = [min(costs[number], changed[number]) for number in numbers]
        else:
            stay = frozenset(numbers)
        entered.append((cheapest, stay))
        costs = [
            cost + _unexplained(state, *row) for cost, state in zip(costs, states, strict=True)
        ]
    number = min(numbers, key=costs.__getitem__)
    runs: list[tuple[int, int]] = []
    for cheapest, stay in reversed(entered):
        length = runs.pop()[1] + 1 if runs and runs[-1][0] == number else 1
        runs.append((number, length))
        number = number if number in stay else cheapest
    return runs[::-1]


def unlike(ranges: pl.DataFrame, state: State) -> list[bool]:
    """Returns of each of the first goals whether a state explains it at most by drift."""
    goals = as_evidence(ranges.head(MOST_UNLIKE)).iter_rows()
    return [_unexplained(state, *goal) >= _DRIFT for goal in goals]


def _unexplained(
    state: State, low: float, low_raised: float, high: float, goal: float, live: float
) -> float:
    """Returns the cost of a goal under a state: 0 if explained, 1 or more if not."""
    gogc, top, _ = state
    if math.isinf(top) and math.isinf(gogc):
        return 0.0 if math.isnan(goal) else 1.0
    set_by_gogc = _NEAR if low_raised <= gogc <= high else 1.0
    if low <= gogc <= high:
        set_by_gogc = 0.0
    elif low_raised > FAR_TIMES * gogc or gogc > FAR_TIMES * high:
        set_by_gogc = _FAR
    if math.isinf(top):
        return set_by_gogc
    is_higher = low_raised <= gogc or math.isinf(gogc)
    return _under_limit(state, goal, live, set_by_gogc, is_higher=is_higher)


def _under_limit(
    state: State, goal: float, live: float, set_by_gogc: float, *, is_higher: bool
) -> float:
    """Returns the cost of a goal under a limit.

    Args:
        state: a state with a limit.
        goal: the goal in MiB.
        live: the live heap of the cycle before, in MiB.
        set_by_gogc: the cost under GOGC alone.
        is_higher: whether GOGC alone would set at least this goal.
    """
    top = state.top_mib
    width = max(1.0, _NEAR_SHARE * top)
    wide = _NEAR_TIMES * width
    if goal <= live and live >= top - wide:
        return 0.0
    if top == 0.0:
        return 1.0
    if set_by_gogc == 0.0 and goal <= top + width:
        return 0.0
    if is_higher:
        low, high = state.drift
        if abs(goal - top) <= wide:
            return 0.0 if abs(goal - top) <= width else _NEAR
        if low < goal < high:
            return _DRIFT
    if goal > max(top + wide, FAR_TIMES * top):
        return _FAR
    # Memory outside the heap may have left less, but no setting allows more than GOGC.
    if not is_higher:
        return set_by_gogc
    return 1.0 if goal > top + wide else min(set_by_gogc, 1.0)
