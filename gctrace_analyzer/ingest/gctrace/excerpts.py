"""Removes the lines that are not of the log: those that inputs repeat, and those of an article.

The text around a log explains it: it shows a line again, or quotes one of another article. Such a
line is in the text and not in the log, so nothing counts it. Where all lines are quoted, they are
the log.
"""

from __future__ import annotations

from itertools import accumulate, chain
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.ingest.chains import RUN, process_of
from gctrace_analyzer.ingest.evidence.words import STARTS
from gctrace_analyzer.ingest.gctrace.lines import fences_of, lines_with
from gctrace_analyzer.ingest.processes import NAMED, key_of
from gctrace_analyzer.ingest.sniff import SNIFF_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gctrace_analyzer.ingest.input import Part

FEWEST_REPEATED = 3
"""With fewer common cycles, it is not proven that two inputs overlap."""

_TELLING_FIGURES = 5
"""Equal lines of one input with this many different durations are copies."""

_PRINTED = (
    "gc_num", "start_s", "stw_sweep_term_ms", "concurrent_mark_ms", "stw_mark_term_ms",
    "stw_sweep_term_cpu_ms", "assist_cpu_ms", "background_cpu_ms", "idle_cpu_ms",
    "stw_mark_term_cpu_ms", "heap_start_mib", "heap_end_mib", "heap_live_mib",
    "heap_goal_mib", "gc_cpu_since_start_pct", "procs",
)  # fmt: skip
"""Columns with the printed values of a cycle."""

_INSIDE_A_SENTENCE = (
    r"(?:[`“‘「『：]|\be\.g\.[,:]?|\b[Ee]xampl[eo]s?:|[Нн]апример[,:]|例えば、?|例[如子:：，]+) *"
    r"(?:gc #?\d+ +@\d|gc\d+\(\d+\): \d|(?:forced )?scvg-?\d*: |pacer: )"
)
"""A record behind the words, or the quotation mark, of a sentence."""

_SHOWS_ONE_LINE = (
    r"gctrace=1.*\| *(?:sed -n '?\d+p'?|(?:head|tail) +-(?:n *)?1|grep -m *1 .*) *$"
)
"""A command that shows one line of its program's output."""

_IS_START = pl.col("text").str.contains(STARTS)

_TIME = r"(?:^|[^\d\s])\s*@(\d+\.\d{3})s(?-u:\b)"
"""The time of a cycle without its number, as in the explanation of its record."""


def log_alone(parts: Sequence[Part]) -> list[str]:
    """Removes from the inputs the lines that are not of their logs; returns notes on them."""
    notes = [*_without_repeated(parts), *chain.from_iterable(map(_without_quoted, parts))]
    for part in parts:
        if notes:
            counts = part.counts().items()
            part.facts.found |= {table: count for table, count in counts if count}
        _add_runs(part)
    return notes


def _without_quoted(part: Part) -> list[str]:
    """Removes what the text around the log of an input quotes; returns a note on it."""
    text, cycles = part.beginning, [frame for frame in part.cycles if len(frame)]
    if not cycles or not text or len(text) >= SNIFF_BYTES:
        return []
    lines = pl.Series("text", text.split("\n"))
    inside = lines_with(text, _INSIDE_A_SENTENCE)
    quoted = _quoted_cycles(part, cycles, lines, inside)
    if len(quoted) == sum(map(len, cycles)):
        return []
    others = [frame["line_no"] for frames in part.companions.values() for frame in frames]
    at = pl.concat([inside.clear(), *(line_no.cast(pl.Int64) for line_no in others)])
    quoted = quoted.append(at.filter(at.is_in(inside.implode())))
    if quoted.is_empty():
        return []
    kept = ~pl.col("line_no").is_in(quoted.implode())
    part.cycles = [frame.filter(kept) for frame in part.cycles]
    part.companions = {
        table: [frame.filter(kept) for frame in frames]
        for table, frames in part.companions.items()
    }
    numbers = [*map(str, quoted.unique().sort())]
    where = f"line{'s' if numbers[1:] else ''} {', '.join(numbers)}"
    return [
        f"{part.facts.name}: gctrace that the text around the log quotes is not counted ({where})."
    ]


def _quoted_cycles(
    part: Part, cycles: list[pl.DataFrame], lines: pl.Series, inside: pl.Series
) -> pl.Series:
    """Returns the lines of cycles that continue no process of the log, and are quoted.

    They are in a sentence, or alone, and the text explains them.

    Args:
        part: the input.
        cycles: its cycles.
        lines: its lines.
        inside: the lines with a record in a sentence.
    """
    rows = pl.concat(cycles, how="diagonal")
    of_log = pl.col("line_no").is_in(rows["line_no"].implode())
    text = lines.to_frame().with_row_index("line_no", offset=1).filter(~of_log)["text"]
    times = text.str.extract(_TIME).drop_nulls()
    if inside.is_empty() and times.is_empty():
        return inside
    # A command above a record shows another run.
    runs = _starts_of(part).search_sorted(rows["line_no"])
    rows = rows.select(
        pl.col("line_no").cast(pl.Int64),
        process_of([rows])[0].alias("process"),
        is_inside=pl.col("line_no").is_in(inside.implode()),
        is_explained=pl.col("start_s").is_in(times.cast(pl.Float64).implode())
        & (runs.diff().fill_null(runs[0]) == 0),
    )
    size = pl.len().over("process")
    is_alone = (size == 1) & (size.max() > 1)
    is_quoted = pl.col("is_inside").all().over("process")
    return rows.filter(is_quoted | (pl.col("is_explained") & is_alone))["line_no"]


def _without_repeated(parts: Sequence[Part]) -> list[str]:
    """Removes cycles that occur twice in the inputs; returns a note on each such input.

    Logs that were fetched twice overlap. A log may also be saved with and without timestamps: then
    the lines with timestamps are kept. And a text may repeat a line to explain it.
    """
    frames = [(of, frame) for of, part in enumerate(parts) for frame in part.cycles]
    # Comparing names takes longer than comparing numbers, and hardly any inputs overlap.
    if not frames:
        return []
    places = pl.concat(frame.select("gc_num", "start_s") for _, frame in frames)
    if (places["gc_num"].diff() > 0).all():
        return []
    # Cycles without a start, of Go 1.4 and earlier, may be equal by chance.
    twice = places["start_s"].is_not_null() & places.is_duplicated()
    if not twice.any():
        return []
    names = (*_PRINTED, "logged_at", "repaired", "line_no")
    rows = pl.concat(
        frame.select(*names, key_of(frame), of=pl.lit(of)) for of, frame in frames
    ).with_row_index("row")
    # Lines of other text are between it and the cycle above.
    apart = rows["line_no"].diff() > 1
    best = (pl.col("logged_at").is_null(), "repaired", "row")
    first = pl.col("row", "of", "key").sort_by(*best).first().over(_PRINTED)
    rows = rows.with_columns(apart.alias("apart")).filter(twice)
    rows = rows.with_columns(first.name.prefix("first_"))
    # Programs with different names that print the same lines are different programs.
    key, of_first, of = pl.col("key"), pl.col("first_key"), pl.col("of")
    named = (key != of_first) & key.str.contains(NAMED) & of_first.str.contains(NAMED)
    again = rows.filter((pl.col("row") != pl.col("first_row")) & ~named)
    again = again.with_columns(elsewhere=of != pl.col("first_of"))
    is_overlap = again["elsewhere"].sum() >= FEWEST_REPEATED
    # If cycles repeat from the first one on without text in between, it is another process.
    begins = pl.col("row").diff().fill_null(0) != 1
    is_restart = ((pl.col("gc_num") == 1) & ~pl.col("apart")).first().over(begins.cum_sum())
    figures = pl.concat_list("^.*_ms$").list.drop_nulls().list.n_unique()
    shown_again = (figures >= _TELLING_FIGURES) & (key == of_first) & ~is_restart
    again = again.filter(pl.when("elsewhere").then(is_overlap).otherwise(shown_again))
    kept = pl.repeat(value=True, n=len(places), eager=True)
    kept = kept.scatter(again["row"], False)  # noqa: FBT003
    for part in parts:
        count = sum(map(len, part.cycles))
        part.cycles = _each(part.cycles, kept[:count], pl.DataFrame.filter)
        kept = kept[count:]
    counts = again.group_by("of", "elsewhere").len().sort("of", "elsewhere")
    return [
        f"{parts[of].facts.name}: cycles that are in {'another' if elsewhere else 'this'} input "
        f"as well are counted once ({count:,})."
        for of, elsewhere, count in counts.iter_rows()
    ]


def _each(
    frames: Sequence[pl.DataFrame],
    values: pl.Series,
    change: Callable[[pl.DataFrame, pl.Series], pl.DataFrame],
) -> list[pl.DataFrame]:
    """Returns the frames, changed by the values of their rows."""
    ends = accumulate(map(len, frames))
    return [
        change(frame, values[end - len(frame) : end])
        for frame, end in zip(frames, ends, strict=True)
    ]


def _add_runs(part: Part) -> None:
    """Adds `RUN` to the cycles of an input if commands in it start programs.

    So does a block of code in its beginning, if neither its numbers continue those before, nor its
    clock, with as much time for each cycle as in one of the two blocks.
    """
    starts, fences = _starts_of(part), fences_of(part.beginning)
    if not any(map(len, part.cycles)) or not (len(starts) or len(fences)):
        return
    places = pl.concat(frame.select("line_no", "gc_num", "start_s") for frame in part.cycles)
    block, run = (of.search_sorted(places["line_no"]) for of in (fences, starts))
    step = places["gc_num"].diff()
    apart_s = places["start_s"].diff() / step
    goes_on = (step > 0) & (apart_s > 0)
    near = [(apart_s / apart_s.shift(n)).is_between(1 / _NEAR, _NEAR) for n in (1, -1)]
    goes_on &= near[0].fill_null(value=False) | near[1].fill_null(value=False)
    is_other = (block.diff() != 0) & (step != 1) & ~goes_on.fill_null(value=False)
    run = (run + is_other.fill_null(value=False).cum_sum()).alias(RUN)
    single = lines_with(part.beginning, _SHOWS_ONE_LINE)
    if 1 < len(single) == len(places) and single[-1] < places["line_no"][0]:
        run += pl.int_range(len(run), eager=True)
    part.cycles = _each(part.cycles, run, lambda frame, of_frame: frame.with_columns(of_frame))


def _starts_of(part: Part) -> pl.Series:
    """Returns the lines of the commands that start programs, in order."""
    starts = (at for frame in part.messages for at in frame.filter(_IS_START)["line_no"])
    return pl.Series(sorted(starts), dtype=pl.Int64)


_NEAR = 2.0
"""Ratio of times per cycle. In two excerpts of the same run they are closer than that."""
