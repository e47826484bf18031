"""Parts of a process whose heap goals one setting explains, and its stated settings."""

from __future__ import annotations

import math
from typing import NamedTuple

import polars as pl

from gctrace_analyzer.analysis.settings import search
from gctrace_analyzer.analysis.settings.goal_ranges import not_raised
from gctrace_analyzer.analysis.settings.known import METRICS, Settings
from gctrace_analyzer.analysis.settings.limits import goal_range
from gctrace_analyzer.analysis.settings.releases import go_version
from gctrace_analyzer.analysis.settings.search import FEWEST_GOALS, Part, State
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.ingest.rows import at_least, median, not_null

STATED_TOLERANCE = 0.08
"""Relative difference between the stated GOGC and the printed goals that counts as none."""

_SAME_LIMIT = 2.0
"""Ratio of two goals that one limit can set, as memory outside the heap drifts."""

_JUMP, _JUMP_CYCLES = 1.3, 5
"""Ratio of the goals before and after a change of the limit, and the cycles of both medians."""

_LONG_WAIT_S, _WAIT_TIMES = 1.0, 5.0
"""Seconds, and times the usual interval, in which the scavenger returns much memory."""

_SAME_LIVE, _CLIMBING = 1.1, 3
"""Ratio of live heaps that count as equal, and goals in a row that show memory returning."""

_MOSTLY = 0.9
"""Share of the goals that one explanation must cover."""

_SWEPT_MIB = 2.0
"""MiB between live heap and goal, as printed, that the sweeper may need, with truncation."""

_FEWEST_RAISED = 2
"""Goals in a row, the last ones, that prove a higher GOGC."""

_FEWEST_APART = 3
"""Goals at one end of a log, and next to them, that prove a change at the same live heap."""

_NARROW = 1.25
"""Ratio of the ends of an interval of GOGC. In a narrower one, a usual value is hardly chance."""


class Stated(NamedTuple):
    """A setting from outside the goals: its value (infinite: off; None: unknown) and source.

    A value that `wins` comes from the running process or the user. Other values come from its
    start, and hold until the goals contradict them.
    """

    value: float | None = None
    source: str | None = None
    wins: bool = False


class Known(NamedTuple):
    """What is stated about GOGC and the memory limit of a process.

    `counts_printed_stacks` is False if the release may be Go 1.19. It prints allocated stacks, but
    the goal counts only what GC scans of them (maxStackScan, lastStackScan in mgcpacer.go).
    """

    gogc: Stated = Stated()
    limit: Stated = Stated()
    counts_printed_stacks: bool = False


NOTHING = Known()


def stated_in(settings: Settings) -> Known:
    """Returns GOGC and the memory limit as stated by the user or the inputs."""
    known = []
    for setting in (settings.gogc, settings.memory_limit_mib):
        if setting is None:
            known.append(Stated())
            continue
        value = math.inf if setting.value in (None, "off") else float(setting.value)
        given = setting.source == "given"
        running = given or setting.source.startswith((METRICS, "no cycle"))
        known.append(Stated(value, "given" if given else "stated", running))
    return Known(
        known[0], known[1], go_version(settings.value("go_version")) not in (None, (1, 19))
    )


def parts_of(seen: pl.DataFrame, known: Known) -> list[Part]:
    """Returns the parts of a process in order of time; one part if it has no goals.

    Args:
        seen: the rows of `gogc_ranges` that show something, in order.
        known: what is stated about the process.
    """
    if (part := _settled(seen, known)) is not None:
        return [part]
    no_limit = known.limit.value == math.inf or not seen["stacks"].count()
    tops = None if no_limit else _stated_tops(seen, known)
    joined: list[Part] = []
    for part in search.search(seen, known.gogc.value, tops):
        joined.append(part)
        while len(joined) > 1:
            both = _drained(joined[-2], joined[-1], seen) or _joined(
                joined[-2], joined[-1], seen, known
            )
            if both is None:
                break
            joined[-2:] = [both]
    joined += _raised_last(joined, seen, known)
    joined = _with_changed_ends(joined, seen, known)
    limited = any(part.state.is_limited for part in joined)
    return [_with_alternative(part, seen, known, limited=limited) for part in joined]


def _raised_last(joined: list[Part], seen: pl.DataFrame, known: Known) -> list[Part]:
    """Takes from the last part its last goals if only a higher GOGC explains them; returns it.

    A high GOGC has few cycles, and only one allocation or a change of GOGC raises a goal so far.
    """
    state, begin, end = joined[-1][:3]
    if state.is_limited or state.is_off or known.gogc.wins:
        return []
    is_far = seen["low_raised"][begin:end] > search.FAR_TIMES * state.gogc
    last = is_far.fill_null(value=False).reverse() if is_far.any() else is_far
    first = end - (last.arg_min() or 0)
    if first > end - _FEWEST_RAISED:
        return []
    rows = seen[first:end]
    joined[-1] = joined[-1]._replace(end=first)
    low, high = greatest(rows["low"]), -greatest(-rows["high"])
    usual = search.usual_between(low, high)
    return [Part(State(usual or (low + high) / 2, math.inf, 0.0), first, end)]


def _with_changed_ends(joined: list[Part], seen: pl.DataFrame, known: Known) -> list[Part]:
    """Returns the parts, with first or last goals apart that need another setting.

    The search accepts a few unexplained goals, and a limit's goal that drifts. But neither are
    all the goals at one end of a log next to steady ones, if the live heap is the same.
    """
    first = joined[0]
    count, other = _apart(seen[: first.end], first.state, known)
    if other is not None:
        head = Part(other, 0, count)
        joined = [head, first._replace(begin=count), *joined[1:]]
    last = joined[-1]
    # Of a long log, only the rows that can matter are reversed.
    ends = seen[last.begin : last.end].tail(2 * search.MOST_UNLIKE)
    count, other = _apart(ends.reverse(), last.state, known)
    if other is not None:
        tail = Part(other, last.end - count, last.end)
        joined = [*joined[:-1], last._replace(end=tail.begin), tail]
    return joined


def _apart(rows: pl.DataFrame, state: State, known: Known) -> tuple[int, State | None]:
    """Returns how many first goals a state does not explain, and the only one that does."""
    count = next(
        (at for at, is_unlike in enumerate(search.unlike(rows, state)) if not is_unlike), 0
    )
    if count < _FEWEST_APART:
        return 0, None
    own, following = rows[:count], rows[count : 2 * count]
    live = rows["live"][: 2 * count]
    is_same = greatest(live) <= _SAME_LIVE * -greatest(-live) + 1
    if len(following) < _FEWEST_APART or not is_same or any(search.unlike(following, state)):
        return 0, None
    tops = None if known.limit.value == math.inf or not rows["stacks"].count() else ()
    part, *others = search.search(own, known.gogc.value, tops)
    # The goal of the cycle that a change starts may be that of neither.
    is_one = not others and sum(search.unlike(own, part.state)) < 2
    return count, part.state if is_one else None


def _settled(seen: pl.DataFrame, known: Known) -> Part | None:
    """Returns the whole process as one part if one usual GOGC explains every goal."""
    if seen["no_goal"].any():
        return None
    low = greatest(seen["low"]) if len(seen) else -math.inf
    high = -greatest(-seen["high"]) if len(seen) else math.inf
    usual = search.usual_between(low, high, known.gogc.value)
    if usual is None or (seen["least"] > usual).any():
        return None
    part = Part(State(usual, math.inf, 0.0), 0, len(seen))
    if search.cost_of(usual, known.gogc.value) == 0.0:
        return part
    # A limit may explain the goals as well: a stated one, or any if the goals hardly vary.
    if known.limit.value not in (None, math.inf):
        return None
    return _with_alternative(part, seen, known, limited=False)


def _stated_tops(seen: pl.DataFrame, known: Known) -> tuple[float, ...]:
    """Returns the goals that stated limits may set."""
    if known.limit.value is None:
        return ()
    ends = goal_range(known.limit.value, median(seen["stacks"]))
    at_limit = seen["goal"].filter(seen["goal"].is_between(*ends))
    return (median(at_limit),) if len(at_limit) >= FEWEST_GOALS else ()


def _joined(first: Part, second: Part, seen: pl.DataFrame, known: Known) -> Part | None:
    """Returns both parts as one if a GOGC and a limit explain them together; else None.

    The goal is the lower of GOGC's and the limit's. What the limit leaves to the heap drifts with
    the memory outside it, but does not jump.
    """
    parts = (first, second)
    limited = [part for part in parts if part.state.is_limited]
    if not limited:
        return None
    longest = max(limited, key=lambda part: part.end - part.begin)
    gogc = min(part.state.gogc for part in limited)
    if len(limited) == 1:
        other = (second if first.state.is_limited else first).state
        is_odd = search.cost_of(other.gogc, known.gogc.value) > search.COMMON
        if gogc in (other.gogc, math.inf) and _is_at_least(longest, other.gogc, seen):
            gogc = other.gogc
        # Next to a limit, the limit explains goals that would need an unusual GOGC.
        elif not is_odd:
            return None
        if other.is_off:
            return None
    if any(not _is_at_least(part, gogc, seen) for part in limited):
        gogc = math.inf
    rows = seen[first.begin : first.end], seen[second.begin : second.end]
    around = rows[0].tail(_JUMP_CYCLES), rows[1].head(_JUMP_CYCLES)
    joint = pl.concat(around)
    # A stated limit applies to all goals below it, and memory is returned in long intervals.
    may_jump = greatest(joint["goal"]) <= (known.limit.value or 0.0) < math.inf
    may_jump |= _follows_a_wait(joint["start_s"])
    # While a program thrashes, memory that it does not return lowers the goal.
    thrashes = bool((joint["goal"] <= joint["live"]).any())
    jump = _SAME_LIMIT if thrashes else _JUMP
    if not (may_jump or _fits(*around, gogc, jump)) or not _fits(*rows, gogc, _SAME_LIMIT):
        return None
    top = max(part.state.top_mib for part in limited)
    return Part(State(gogc, top, longest.state.cost), first.begin, second.end)


def _fits(first: pl.DataFrame, second: pl.DataFrame, gogc: float, times: float) -> bool:
    """Returns whether one limit explains the goals of two parts, within a factor.

    The limit must leave at least the goals that GOGC set, and exactly the goals below GOGC's.
    """
    for one, other in ((first, second), (second, first)):
        limited, by_limit = (rows.filter(pl.col("high") < gogc) for rows in (one, other))
        if not len(by_limit):
            continue
        left, most = above_live(limited), above_live(by_limit)
        if not len(most):
            # A goal equal to its live heap does not fit under a limit that has room for it.
            most, times = by_limit["live"], _JUMP
        if len(left) > (1 - _MOSTLY) * len(one):
            fits = median(left) <= times * median(most) + 1
        else:
            by_gogc = one["goal"].filter(one["high"] >= gogc)
            fits = quantile(by_gogc, 0.9) <= search.DRIFT_HIGH * quantile(most, 0.9) + 1
        if not fits:
            return False
    return True


def _follows_a_wait(starts_s: pl.Series) -> bool:
    """Returns whether the middle of some cycles comes long after the cycle before.

    In the meantime the scavenger returns memory, which raises the goal.
    """
    waits = starts_s.diff()
    wait = waits[len(waits) // 2] if len(waits) > 2 else None
    return wait is not None and wait > max(_LONG_WAIT_S, _WAIT_TIMES * median(waits))


def _drained(limited: Part, part: Part, seen: pl.DataFrame) -> Part | None:
    """Returns both parts as one if the limit's goals rise while memory is returned to the OS.

    GOGC sets its goal at once, so goals between the live heap and GOGC's goal come from a limit.
    """
    begin = part.begin
    around = seen[
        max(begin - _JUMP_CYCLES, limited.begin) : min(begin + _JUMP_CYCLES, part.end)
    ]
    live, room = around["live"], around["goal"] - around["live"]
    below = around["goal"].filter((room > _SWEPT_MIB) & (around["high"] < part.state.gogc))
    starts_low = limited.state.is_limited and room[0] is not None and room[0] <= _SWEPT_MIB
    is_same = greatest(live) <= _SAME_LIVE * -greatest(-live)
    if not (starts_low and is_same and len(below) >= _CLIMBING and below.is_sorted()):
        return None
    top = quantile(above_live(seen[begin : part.end]), 0.9)
    return Part(State(math.inf, top, limited.state.cost), limited.begin, part.end)


def _is_at_least(limited: Part, gogc: float, seen: pl.DataFrame) -> bool:
    """Returns whether a GOGC would set at least the goals of a part without its limit."""
    least = quantile(seen["low"][limited.begin : limited.end], 0.9)
    return gogc * (1 + STATED_TOLERANCE) >= least


def _with_alternative(part: Part, seen: pl.DataFrame, known: Known, *, limited: bool) -> Part:
    """Returns the part, marked if GOGC and a limit each explain its goals.

    Args:
        part: a part under a GOGC or a limit.
        seen: the rows of the process.
        known: what is stated.
        limited: whether a memory limit sets the goals of any part.
    """
    rows = seen[part.begin : part.end]
    stated = known.limit.value, known.gogc.value
    # While nearly nothing is live, GOGC alone sets its heap minimum, which never changes.
    minima = rows["goal"].filter((rows["live"] == 0) & rows["low"].is_finite())
    if part.state.is_limited:
        # The sweeper needs room above a small heap, and one large allocation may come first.
        raised = rows["goal"] - rows["live"] <= _SWEPT_MIB
        if part.begin == 0 and len(raised):
            raised[0] = True
        raised |= rows["low"] == -math.inf
        lows = search.as_evidence(rows)["low_raised"].zip_with(raised, rows["low"])
        low, high = max(greatest(lows), 0.0), -greatest(-rows["high"])
        usual = search.usual_between(low, high)
        # Hardly anyone sets so low a GOGC, but a limit leaves as little room.
        is_one = low + high > 2 * search.TINY_GOGC and low <= high and minima.n_unique() < 2
        if stated != (None, None):
            return part
        if usual is None and not is_one:
            return part._replace(in_turn=_in_turn(lows, rows["high"]))
        state = State((low + high) / 2 if usual is None else usual, math.inf, 0.0)
        # Few goals do not suggest what the limit leaves.
        top = part.state.top_mib or median(rows["goal"])
        drift = part.state._replace(top_mib=top).drift
        return part._replace(state=state, both=not exceeds(rows, drift[1]))
    gogc = part.state.gogc
    cost = search.cost_of(gogc, known.gogc.value)
    no_limit = known.limit.value == math.inf or not rows["stacks"].count()
    if part.state.is_off or cost == 0 or no_limit:
        return part
    low = greatest(rows["low"].filter(rows["low"] <= gogc))
    high = -greatest(-rows["high"].filter(rows["high"] >= gogc))
    # Intervals contain usual values by chance. Few goals and tiny heaps prove little.
    is_narrow = low > 0 and high <= _NARROW * low and len(rows) >= DEFAULT.short_log_cycles
    if cost <= search.COMMON and is_narrow and not limited:
        return part
    top = median(rows["goal"])
    ends = search.near(top)
    if known.gogc.wins and (known.gogc.value or 0.0) > (1 + STATED_TOLERANCE) * high:
        if (rows["goal"] < ends[0]).sum() >= _FEWEST_RAISED:
            # Goals below any limit that allows the others follow another GOGC than the stated one.
            return part
        # A GOGC that is known for sure is too high for these goals.
        return part._replace(state=State(known.gogc.value or math.inf, top, search.LIMIT))
    is_near = rows["goal"].is_between(*ends).sum() >= _MOSTLY * len(rows)
    return part._replace(both=bool(is_near) and not exceeds(rows, ends[1]))


def _in_turn(lows: pl.Series, highs: pl.Series) -> tuple[float, float] | None:
    """Returns two usual values of GOGC that explain all goals one after the other, if any do.

    Args:
        lows: the lowest GOGC that explains each goal.
        highs: the highest one.
    """
    usual = (search.DEFAULT_GOGC, *search.USUAL)

    def most(lows: pl.Series, highs: pl.Series) -> tuple[int, float]:
        """Returns how many of the first goals one GOGC explains, and this GOGC."""
        low, high = lows.fill_null(-math.inf).cum_max(), highs.fill_null(math.inf).cum_min()
        return max((int(((low <= gogc) & (gogc <= high)).sum()), gogc) for gogc in usual)

    (before, first), (after, last) = most(lows, highs), most(lows.reverse(), highs.reverse())
    return (first, last) if before + after >= len(lows) else None


def above_live(rows: pl.DataFrame) -> pl.Series:
    """Returns the goals that a setting set and that leave room above the live heap."""
    return rows.filter(pl.col("goal") > pl.col("live"), not_raised())["goal"]


def exceeds(rows: pl.DataFrame, top_mib: float) -> bool:
    """Returns whether a goal is above the highest one of a limit, which then is not in effect.

    A goal may be just above the live heap or one large allocation, whatever the limit.
    """
    least = at_least(rows["live"] + 1, top_mib)
    return bool((rows["low"].is_finite() & (rows["goal"] > least)).any())


def above_limit(limit_mib: float, goal: str, live: pl.Expr) -> pl.Expr:
    """Returns whether a goal is above a limit. Enough of them prove that it was not in effect.

    The goal is never below the live heap, whatever the limit, nor below a heap that one large
    allocation made; all are printed in whole MiB.

    Args:
        limit_mib: the limit.
        goal: the column of the goals.
        live: the live heap after the cycle before.
    """
    return pl.col(goal) > pl.max_horizontal(limit_mib, live + 1, pl.col("heap_start_mib") + 1)


def greatest(values: pl.Series) -> float:
    """Returns the greatest of the known values; 0 without any."""
    most = values.max()
    return most if isinstance(most, float) else 0.0


def quantile(values: pl.Series, share: float) -> float:
    """Returns a quantile of the known values; 0 without any."""
    return float(not_null(values).quantile(share) or 0.0)
