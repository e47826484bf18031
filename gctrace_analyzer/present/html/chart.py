"""A panel as a chart of the page: SVG paths that stretch, labels in HTML, values for the script.

The SVG has a box of 1000 × 100 and stretches to any size, while its lines keep their width and its
labels, which are HTML, keep theirs. To zoom, the script only changes the visible part of the box.
"""

from __future__ import annotations

import math
from dataclasses import replace
from os.path import commonprefix
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.present.plots import ticks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gctrace_analyzer.present.plots.figure import Figure, Mark, Panel
    from gctrace_analyzer.present.plots.palette import Look

    Place = Callable[[float], float]

WIDTH, HEIGHT = 1000, 100
_DIGITS = 5
_MARGIN = 0.02
_FEW = 40
"""Points. A line over time with this few also shows dots."""

_DOT = 5


@frozen
class Path:
    """One path of the SVG: a `line`, a `fill`, `points` or their `stems`."""

    d: str
    kind: str
    look: Look
    size: int = 0
    series: int = 0


@frozen
class Label:
    """A text at a position of the chart, in percent from the left and from the top."""

    left: float
    top: float
    text: str
    kind: str
    flipped: bool = False


@frozen
class Chart:
    """The values for the template, and for the script in `values`."""

    id: str
    title: str
    statement: str
    timed: bool
    paths: tuple[Path, ...]
    events: tuple[tuple[str, str, float, float], ...]
    levels: tuple[tuple[float, str], ...]
    labels: tuple[Label, ...]
    legend: tuple[tuple[str, str, Look], ...]
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    x_title: str
    values: dict[str, object]
    process: int | None = None
    """The process of the chart, on a page with a switch between processes."""
    is_away: bool = False

    @property
    def rows_above(self) -> float:
        """Rows of names of bands and moments above the data."""
        kinds = ("band", "moment")
        return max(
            (1 + label.top for label in self.labels if label.kind.startswith(kinds)), default=0
        )


def charts_of(figure: Figure, statements: dict[str, str], *, linked: bool) -> Iterator[Chart]:
    """Yields a chart for each panel; if `linked`, the time axes of the page move together."""
    for panel in figure.drawn_panels:
        name = f"{figure.name}-{panel.name}"
        yield _chart(figure, panel, name, statements.get(name, ""), linked=linked)


def _legend(marks: Sequence[Mark]) -> Iterator[tuple[str, str, Look]]:
    """Yields the name of each mark; of marks that look alike, the first has what they share."""
    alike: dict[tuple[str, Look], list[str]] = {}
    for mark in marks:
        alike.setdefault((mark.kind, mark.look), []).append(mark.name)
    for mark in marks:
        names = alike[mark.kind, mark.look]
        shared = names[0] if len(names) == 1 else _shared(names)
        yield shared if mark.name == names[0] else "", mark.kind, mark.look


def _shared(names: Sequence[str]) -> str:
    """Returns what names have in common, with the values of a setting that differ.

    >>> _shared(["or: GOGC=150", "or: GOGC=100"]), _shared(["live (a)", "live (b)"])
    ('or: GOGC=150, 100', 'live')
    """
    common = commonprefix(names)  # noqa: RUF071
    end = common.rfind("=") + 1
    values = ", ".join(name[end:] for name in names)
    return f"{common[:end]}{values}" if end else common.rstrip(" (")


def _chart(figure: Figure, panel: Panel, name: str, statement: str, *, linked: bool) -> Chart:
    if panel.is_timed and figure.x_range is None:
        figure = replace(figure, x_range=panel.time_range)
    zero = figure.x_range[0] if figure.x_range and panel.is_timed else None
    ends = _ends(figure, panel, zero)
    span = panel.span
    x = _scale(*ends, is_log=panel.log_x, size=WIDTH)
    y = _scale(span.high, span.low, is_log=panel.log_y, size=HEIGHT)
    frames = [(mark, _points(mark, zero)) for mark in panel.marks if mark.y.count()]
    shown = tuple(
        replace(path, series=number)
        for number, (mark, frame) in enumerate(frames)
        for path in _paths(mark, frame, panel, x, y)
    )
    timed = linked and panel.is_timed

    def place(at: Any) -> float:
        return x(_seconds(at, zero))

    return Chart(
        id=name,
        title=panel.title,
        statement=_statement(statement, panel),
        timed=timed,
        paths=shown,
        events=tuple(
            (event.kind, event.severity, place(event.ends[0]), place(event.ends[1]))
            for event in (figure.events_of(panel.name) if panel.is_timed else ())
        ),
        levels=tuple((y(level.y), level.dash) for level in span.levels),
        labels=tuple(_labels(figure, panel, zero, x, y)),
        legend=tuple(_legend([mark for mark, _ in frames])),
        x_ticks=tuple(_x_ticks(figure, panel, ends, x)),
        y_ticks=tuple((y(at), _value(at, panel)) for at in _y_ticks(panel)),
        x_title=_x_title(figure, panel),
        values={
            "timed": timed,
            "x": ends,
            "y": (span.low, span.high),
            "logX": panel.log_x,
            "logY": panel.log_y,
            "fromZero": panel.from_zero and not span.is_cut,
            "percent": panel.percent,
            "filled": any(mark.filled for mark, _ in frames),
            "unit": panel.unit,
            "xUnit": panel.x_unit,
            "levels": [level.y for level in span.levels],
            "series": [_series(mark, frame) for mark, frame in frames],
        },
    )


def _statement(statement: str, panel: Panel) -> str:
    """Returns the statement of a chart, and what its vertical axis omits."""
    cut = " The axis does not start at 0." if panel.span.is_cut else ""
    above = f" Above the axis: {'; '.join(panel.above)}." if panel.above else ""
    return f"{statement}{cut}{above}".strip()


def _x_title(figure: Figure, panel: Panel) -> str:
    """Returns the title of the horizontal axis; charts below each other show it once."""
    if panel.is_timed and figure.shared_x and panel is not figure.drawn_panels[-1]:
        return ""
    return panel.x_title or figure.x_title


def _ends(figure: Figure, panel: Panel, zero: Any) -> tuple[float, float]:
    if figure.x_range and panel.is_timed:
        low, high = (_seconds(moment, zero) for moment in figure.x_range)
    else:
        low, high = panel.extent("x")
    if high > low and (panel.is_timed or panel.log_x):
        return low, high
    if high > low:
        # A point at the edge would be cut in half.
        return low - _MARGIN * (high - low), high + _MARGIN * (high - low)
    return (low / 2, high * 2) if panel.log_x and low > 0 else (low - 0.5, high + 0.5)


def _seconds(at: Any, zero: Any) -> float:
    return float(at) if isinstance(at, int | float) else float((at - zero).total_seconds())


def _scale(low: float, high: float, *, is_log: bool, size: int) -> Place:
    """Returns a function from values to positions in the box."""
    if is_log:
        begin, end = math.log10(low), math.log10(high)
        return lambda value: size * (math.log10(value) - begin) / ((end - begin) or 1)
    return lambda value: size * (value - low) / ((high - low) or 1)


def _points(mark: Mark, zero: Any) -> pl.DataFrame:
    """Returns `x y low high` as numbers, `x` in seconds since the start of the axis."""
    x = mark.x
    if x.dtype.is_temporal():
        x = (x - zero).dt.total_microseconds() / 1e6
    frame = pl.DataFrame({"x": x.cast(pl.Float64), "y": mark.top.cast(pl.Float64)})
    if mark.low is not None and mark.high is not None:
        frame = frame.with_columns(low=mark.low, high=mark.high)
    return frame


def _paths(mark: Mark, frame: pl.DataFrame, panel: Panel, x: Place, y: Place) -> Iterator[Path]:
    across = _expression("x", x, is_log=panel.log_x).round(3)
    placed = frame.with_columns(
        across,
        *(
            _expression(name, y, is_log=panel.log_y).round(2)
            for name in frame.columns
            if name != "x"
        ),
        run=pl.col("y").is_null().cum_sum(),
    )
    # A step lasts to the next interval, even if that has no value.
    placed = placed.with_columns(until=pl.col("x").shift(-1).fill_null(pl.col("x")))
    placed = placed.drop_nulls("y")
    if mark.kind == "points":
        if mark.has_stems:
            yield Path(_stems(placed), "stems", mark.look)
        yield Path(_dots(placed), "points", mark.look, mark.size)
        return
    if "low" in placed.columns:
        yield Path(_area(placed, "high"), "fill", mark.look)
    elif mark.filled:
        bottom = placed.with_columns(low=pl.lit(float(HEIGHT)))
        yield Path(_area(bottom, "y", mark), "fill", mark.look)
    lines = _joined(placed, _point("y", mark))
    alone = "" if len(lines) < 2 else "h2"  # A value between two gaps would be invisible.
    d = "".join(f"M{line}{'' if set(line) & set('LH') else alone}" for line in lines)
    yield Path(d, "line", mark.look)
    if (
        (panel.is_timed or panel.name == "memory")
        and mark.kind == "line"
        and all(mark.y.count() <= _FEW for mark in panel.marks if mark.kind == "line")
    ):
        # A line alone does not show what was measured; with one point it shows nothing.
        yield Path(_dots(placed), "points", mark.look, _DOT)


def _stems(placed: pl.DataFrame) -> str:
    """Returns a line from each point down to the lower edge."""
    return str(placed.select(pl.format(f"M{{}} {{}}V{HEIGHT}", "x", "y").str.join("")).item())


def _dots(placed: pl.DataFrame) -> str:
    # PDF has no square caps on lines of no length.
    return str(placed.select(pl.format("M{} {}h.01", "x", "y").str.join("")).item())


def _expression(name: str, place: Place, *, is_log: bool) -> pl.Expr:
    """Returns the scale as an expression over a column."""
    if is_log:
        # Two positions give the scale, which is a straight line over the logarithm.
        begin, slope = place(1.0), place(10.0) - place(1.0)
        return (begin + slope * pl.col(name).log10()).alias(name)
    begin, slope = place(0.0), place(1.0) - place(0.0)
    return (begin + slope * pl.col(name)).alias(name)


def _point(column: str, mark: Mark | None) -> pl.Expr:
    if mark is None or mark.kind != "step":
        return pl.format("{} {}", "x", column)
    return pl.format("{} {}H{}", "x", column, "until")


def _area(placed: pl.DataFrame, upper: str, mark: Mark | None = None) -> str:
    """Returns the area from a column down to `low`; for steps, with a stepped upper edge."""
    forth = _joined(placed, _point(upper, mark))
    back = _joined(placed, pl.format("{} {}", "x", "low").reverse())
    return "".join(f"M{one}L{other}Z" for one, other in zip(forth, back, strict=True))


def _joined(placed: pl.DataFrame, point: pl.Expr) -> list[str]:
    runs = placed.group_by("run", maintain_order=True).agg(d=point)
    return runs["d"].list.join("L").to_list()


def _labels(figure: Figure, panel: Panel, zero: Any, x: Place, y: Place) -> Iterator[Label]:
    for event, row, flipped in (
        figure.labelled(panel) if panel.is_timed and figure.x_range else ()
    ):
        left = x(_seconds(event.begin, zero)) / 10
        yield Label(left, row, event.name, f"{event.kind} {event.severity}", flipped)
    span = panel.span
    for level in span.levels:
        low = " below" if span.is_near_the_top(level) else ""
        yield Label(0, y(level.y), level.name, f"limit{low}")
    for at, value, text in panel.labels:
        yield Label(x(at) / 10, y(value), text, "point", flipped=x(at) > 0.95 * WIDTH)


def _x_ticks(
    figure: Figure, panel: Panel, ends: tuple[float, float], x: Place
) -> Iterator[tuple[float, str]]:
    if panel.is_timed:
        begin, end = figure.x_range or ends
        zero = begin if figure.x_range else None
        for at, label in ticks.times(begin, end, 6):
            yield x(_seconds(at, zero)) / 10, label
        return
    several = panel.ticks("x") if panel.log_x else ticks.linear(*ends, 6)
    for at in several:
        yield x(at) / 10, f"{at:,g}"


def _y_ticks(panel: Panel) -> list[float]:
    if panel.log_y:
        return panel.ticks("y")
    return ticks.linear(panel.span.low, panel.span.high, 4)


def _value(at: float, panel: Panel) -> str:
    return f"{100 * at:,.10g} %" if panel.percent else f"{at:,.10g}"


def _series(mark: Mark, frame: pl.DataFrame) -> dict[str, object]:
    """Returns the values of a series, as its tooltip shows them."""
    known = frame["y"].is_not_null()
    series: dict[str, object] = {
        "name": mark.name,
        "x": frame["x"].filter(known).round(4),
        "y": frame["y"].filter(known).round_sig_figs(_DIGITS),
    }
    for name in ("low", "high"):
        if name in frame.columns and mark.kind != "points":
            series[name] = frame[name].filter(known).round_sig_figs(_DIGITS)
    if mark.kind == "step":
        series["step"] = True
        series["until"] = frame["x"].shift(-1).fill_null(frame["x"]).filter(known).round(4)
    if mark.where is not None:
        series["where"] = mark.where.filter(known).to_list()
    return series
