"""The screen of `watch`: a dashboard, or one line per interval."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.rules.finding import SEVERITIES, cycles_text
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.present import format, text
from gctrace_analyzer.present.format import wrap
from gctrace_analyzer.present.sections import findings, headline
from gctrace_analyzer.present.sections.report import settings
from gctrace_analyzer.present.text import LEVEL_STYLES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.present.document import KeyFigure
    from gctrace_analyzer.present.report import Report
    from gctrace_analyzer.present.text import Line
    from gctrace_analyzer.schema import Row

_TREND = {
    **headline.TRENDS, "Heap goal": "heap_goal_mib", "Allocation": "alloc_mib_per_s",
}  # fmt: skip
_UNITS = {
    "Pauses": format.milliseconds, "Frequency": format.rate, "Live heap": format.mib,
    "Heap goal": format.mib, "Allocation": format.mib_per_s,
}  # fmt: skip
"""Formats of the values of a trend; all others are shares."""

_BAR_S = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600)
_VALUE = 10
_LEFT, _LEVEL, _SCALE = 15 + _VALUE, 6, 14
_MOST_BARS = 60
_MOST_OTHERS = 4
_COLUMNS, _SCALED = 100, 80
"""Terminal widths above which whole notes, and the height of the highest bar, fit next to the
bars."""

_ENDING = "Ctrl-C ends it, with a report"

JUST_NOW_S = 1.0
"""If the newest cycle is younger than this, its age is shown as "just now"."""


@frozen
class WatchProgress:
    """What a dashboard shows in addition to the figures: title, counts, newest cycle."""

    title: str
    cycles: int
    lines: int
    newest: Row | None
    age_s: float
    window_s: float
    notice: str = ""


def bars(width: int) -> int:
    """Returns the number of bars of a sparkline on a terminal of this width."""
    notes = 44 if width >= _COLUMNS else 25
    scale = _SCALE if width >= _SCALED else 0
    return max(min(width - _LEFT - _LEVEL - scale - notes, _MOST_BARS), 8)


def bar_s(span_s: float, count: int) -> float:
    """Returns the round number of seconds per bar with which `count` bars show `span_s`.

    >>> bar_s(25, 30), bar_s(290, 30), bar_s(3600, 40)
    (1, 10, 120)
    """
    return next((seconds for seconds in _BAR_S if seconds * count >= span_s), span_s / count)


def elapsed(seconds: float) -> str:
    """Formats elapsed time in whole seconds.

    >>> elapsed(2.7), elapsed(75)
    ('2 s', '1m 15s')
    """
    return f"{math.floor(seconds)} s" if seconds < 60 else format.duration(seconds)


def waiting(progress: WatchProgress) -> list[Line]:
    """Returns the dashboard before the first cycle."""
    shown: list[Line] = [((format.printable(progress.title), "bold"),)]
    if progress.notice:
        return [*shown, ((f"  {format.printable(progress.notice)}", "yellow"),)]
    lines = format.count(progress.lines, "line")
    return [*shown, ((f"  {lines}, no GC cycle yet · {_ENDING}", "dim"),)]


def dashboard(
    report: Report,
    trend: pl.DataFrame,
    progress: WatchProgress,
    *,
    last_gc: int,
    now_s: float | None,
    width: int,
    advise: bool,
) -> list[Line]:
    """Returns the figures of the window, the current episode, the problem and the settings.

    Args:
        report: the report on the cycles in the window.
        trend: `schema.WINDOWS` of the same cycles, all of one length.
        progress: what to show in addition to the figures.
        last_gc: the last cycle in the window; newer ones may have been read since.
        now_s: the time since the start of the process.
        width: the width of the terminal.
        advise: whether to show recommended settings.
    """
    shown = [*_head(report, progress, width), ()]
    span = min(progress.window_s, report.analysis.summary.span_s or progress.window_s)
    about = f"Figures of the last {format.duration(span)}, up to gc {last_gc:,}"
    bar_is = trend["end_s"][0] - trend["start_s"][0] if len(trend) else math.inf
    points = _points(trend, bar_is, now_s, bars(width)) if bar_is <= span else {}
    bar = format.duration(bar_is) if points and width >= _SCALED else ""
    until = "" if now_s is None else ", up to now"
    shown.append(((about, "bold"), (f"; a bar is {bar}{until}" if bar else "", "dim")))
    figures = [_at_the_end(figure, report) for figure in headline.state(report)]
    longest = max((len(figure.value) for figure in figures), default=0)
    for figure in figures:
        values = points.get(_TREND.get(figure.label, ""), [])
        shown.append(_figure(figure, values, width, value_width=max(longest, _VALUE)))
    shown += [(), *_now(report, last_gc, width), *_found(report, width)]
    if advise:
        statement = headline.verdict(report)
        said = f"{statement.sentence} {statement.action}"
        with format.as_wide_as(width):
            shown += text.lines(settings(report, said), everything=False)
    return shown


def _head(report: Report, progress: WatchProgress, width: int) -> Iterator[Line]:
    facts = [format.printable(progress.title), *report.program]
    title = " · ".join(facts)
    if len(title) > width:
        room = width - len(title) + len(facts[0])
        title = " · ".join([facts[0][: max(room - 1, 8)] + "…", *facts[1:]])
    yield ((title[:width], "bold"),)
    cycles, lines = format.count(progress.cycles, "cycle"), format.count(progress.lines, "line")
    counts = format.dotted((f"{cycles} in {lines}", _ENDING), width, "  ")
    yield from (((line, "dim"),) for line in counts)
    if progress.newest:
        newest = format.dotted(_newest(progress.newest, progress.age_s), width, "  ")
        yield from (((line, ""),) for line in newest)
    if progress.notice:
        notice = wrap(format.printable(progress.notice), width, "  ", "    ")
        yield from (((line, "yellow"),) for line in notice)


def _newest(row: Row, age_s: float) -> list[str]:
    """Returns the newest cycle and its age."""
    ago = "just now" if age_s < JUST_NOW_S else f"{elapsed(age_s)} ago"
    parts = [f"gc {row['gc_num']:,} {ago}"]
    sizes = [row.get(f"heap_{when}_mib") for when in ("start", "end", "live")]
    if None not in sizes:
        parts.append("→".join(f"{size:,}" for size in sizes) + " MiB")
    pauses = [row.get("stw_sweep_term_ms"), row.get("stw_mark_term_ms")]
    stopped = [format.milliseconds(pause) for pause in pauses if pause is not None]
    parts.append(f"stopped {' + '.join(stopped)}")
    if row.get("concurrent_mark_ms") is not None:
        parts.append(f"marked {format.milliseconds(row['concurrent_mark_ms'])}")
    if row.get("forced"):
        parts.append("forced")
    return parts


def _points(
    trend: pl.DataFrame, length: float, now_s: float | None, count: int
) -> dict[str, list[float | None]]:
    """Returns the last `count` windows of this length by column; None for unknown values."""
    at = (trend["start_s"] / length).round().cast(pl.Int64)
    last = int(at[-1]) if now_s is None else max(math.floor(now_s / length), int(at[-1]))
    # Starts at the first window, so that the line grows from the left until it is full.
    first = max(last - count + 1, int(at[0]))
    wanted = pl.DataFrame({"at": range(first, last + 1)}, schema={"at": pl.Int64})
    table = wanted.join(trend.with_columns(at=at), on="at", how="left", maintain_order="left")
    return {name: table[name].to_list() for name in _TREND.values()}


def _figure(
    figure: KeyFigure, values: list[float | None], width: int, *, value_width: int
) -> Line:
    room = width - _LEFT - _LEVEL - (value_width - _VALUE)
    spark = f"{format.sparkline(values):<{bars(width)}}  " if values else ""
    known = [value for value in values if value is not None]
    if known and width >= _SCALED:
        highest = f" to {_UNITS.get(figure.label, format.share)(max(known))}"
        spark = f"{format.sparkline(values) + highest:<{bars(width) + _SCALE - 1}} "
    if len(spark) > room:
        spark = ""
    note = _shortened(figure.note, room - len(spark))
    return (
        (f"  {figure.label:<11}", ""),
        (f"{figure.value:>{value_width}}  ", "bold"),
        (spark, "cyan"),
        (f"{note:<{room - len(spark)}}", "dim"),
        (f"{figure.level:>{_LEVEL - 1}}", LEVEL_STYLES.get(figure.level, "")),
    )


def _at_the_end(figure: KeyFigure, report: Report) -> KeyFigure:
    """Returns the figure with its last value, if it is a size: a live view shows what is now."""
    first, *others = figure.note.split("; ")
    if figure.label not in ("Live heap", "Heap goal") or first in ("last", "next"):
        return figure
    last = report.analysis.cycles[_TREND[figure.label]].drop_nulls()[-1]
    parts = [part for part in (first, *others) if not part.startswith("last ")]
    if first.startswith("median"):
        parts[:1] = ["last", f"{first} {figure.value}"]
    return replace(figure, value=format.live_heap(last), note="; ".join(parts))


def _shortened(note: str, room: int) -> str:
    """Returns the parts of the note that fit on the line."""
    while len(note) > max(room, 0):
        cut = max(note.rfind("; "), note.rfind(" · "), note.rfind(" ("))
        if cut < 0:
            note = note.removeprefix("set by ")
            return note if len(note) <= room else note[: room - 1] + "…"
        note = note[:cut]
    return note


def current_episodes(report: Report, gc_num: int) -> list[Row]:
    """Returns the episodes that include the newest cycle, the worst first."""
    now = report.analysis.episodes.filter(pl.col("last_gc") >= gc_num - 1)
    severity = pl.col("severity").cast(pl.Enum(SEVERITIES))
    return now.sort(severity, "start_s", descending=[True, False]).to_dicts()


def _now(report: Report, last_gc: int, width: int) -> Iterator[Line]:
    present = current_episodes(report, last_gc)
    for episode in present[:1]:
        style = LEVEL_STYLES.get(episode["severity"], "")
        lasts = format.duration(episode["end_s"] - episode["start_s"])
        yield (
            ("Now    ", "bold"),
            (episode["kind"], style or "bold"),
            (f"  for {lasts}", "dim"),
        )
        for line in wrap(format.printable(episode["reason"]), width - 9):
            yield ((f"         {line}", ""),)
    if not present:
        yield (("Now    ", "bold"), ("no episode", "dim"))


def _found(report: Report, width: int) -> Iterator[Line]:
    """Yields the consequence of the worst problem, the first action, and the other problems."""
    problems = findings.problems(report)
    if not problems:
        good = findings.healthy(report)
        word, style = ("no action needed", "green") if good else ("nothing yet", "dim")
        yield (("Found  ", "bold"), (word, style))
        return
    statement = headline.verdict(report)
    action = format.sentences("".join(statement.steps[:1]))[0]
    first = report.verdict and report.verdict.finding
    others = [problem.name for problem in problems if problem.id != first]
    for label, said, style in (
        ("Found  ", statement.sentence, LEVEL_STYLES.get(statement.level, "")),
        ("     ▸ ", action, "bold"),
        ("  also ", ", ".join(others[:_MOST_OTHERS]), "dim"),
    ):
        for index, line in enumerate(wrap(said, width - len(label))):
            yield ((" " * len(label) if index else label, "bold"), (line, style))


def interval_line(row: Row, live_mib: float | None) -> str:
    """Formats one interval (`schema.WINDOWS`) and its last live heap in 80 columns at most."""
    at = format.moment(row["end_s"])
    which = f"[{row['process']}] " if row["process"] else ""
    shown = (
        ("GC CPU", 13, format.share, row["gc_cpu_share"]),
        ("assist", 13, format.share, row["assist_share_of_gc_cpu"]),
        ("pause ≤", 15, format.milliseconds, row["stw_max_ms"]),
        ("live", 13, format.mib, live_mib),
    )
    cells = [f"{which + at:>7}", f"{cycles_text(row['cycles']):>9}"]
    # Shares are unknown if the interval is too short.
    cells += [
        ("" if value is None else f"{name} {write(value)}").rjust(size)
        for name, size, write, value in shown
    ]
    return "  ".join(cells).rstrip()


def needs_no_action(row: Row) -> bool:
    """Returns whether an episode has no consequence."""
    # A single long pause may still be a problem of the whole run.
    return bool(row["severity"] == "info" and row["kind"] != "pause-outlier")


def episode_line(row: Row) -> str:
    """Formats an episode (`schema.EPISODES`) that has started, in lines of 80 columns."""
    times = " → ".join(
        dict.fromkeys(format.moment(row[f"{end}_s"]) for end in ("start", "end"))
    )
    text = f"{row['severity']}: {row['kind']} ({times}): {format.printable(row['reason'])}"
    text += " No action needed." * needs_no_action(row)
    return "\n".join(wrap(text, 80, " " * 10, " " * 10))
