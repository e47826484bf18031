"""What to set, in rows of words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.advise.candidates import without_ballast
from gctrace_analyzer.advise.model import Setting
from gctrace_analyzer.present.format import NONE, duration, mib
from gctrace_analyzer.present.sections.manifest import environment
from gctrace_analyzer.present.sections.overview import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.advise.baseline import Baseline

MOST_ROWS = 3


def setting_of(row: dict[str, Any]) -> Setting:
    """The setting of a row of predictions."""
    return Setting(row["gogc"], row["memory_limit_mib"], row["ballast_mib"] or 0.0)


def named(row: dict[str, Any]) -> str:
    """A row's setting as one writes it."""
    return written(setting_of(row))


def written(setting: Setting) -> str:
    """A setting as one writes it."""
    parts = environment(setting, shown=True)
    if setting.ballast:
        parts.append(f"ballast {mib(setting.ballast)}")
    return " ".join(parts)


_THRASH = {"risk": "?", "certain": "✗"}
_HEAD = ("GC CPU* %", "cycles/s", "peak MiB")
_IDLE = "* with idle marking: all that marking costs"


def advice(rows: pl.DataFrame) -> Table | None:
    """The advice and the present setting, with what they do."""
    if rows.is_empty():
        return None
    body = []
    for row in rows.head(MOST_ROWS).iter_rows(named=True):
        word = "now" if row["now"] else "set" if row["rank"] == 1 else "or"
        body.append((f"{_mark(row)} {word:<3} {named(row)}", *_figures(row)))
    return Table(("What to set", *_HEAD), "lrrr", body)


def predictions(rows: pl.DataFrame) -> Table:
    """Every row of a what-if."""
    marks = any(_mark(row) != " " for row in rows.iter_rows(named=True))
    body = [
        (f"{_mark(row)} {named(row)}" if marks else named(row), *_figures(row))
        for row in rows.iter_rows(named=True)
    ]
    return Table(("What if", *_HEAD), "lrrr", body)


def lasting(rows: pl.DataFrame) -> Iterator[str]:
    """How long each setting lasts, where the live heap grows."""
    for row in rows.drop_nulls("lasts_h").iter_rows(named=True):
        if not row["lasts_h"]:
            yield f"{named(row)}: no longer."
            continue
        low, middle, high = (duration(3600 * row[f"lasts_h{end}"]) for end in _ENDS)
        end = "it thrashes" if row["fits"] is None else "it thrashes or does not fit"
        yield f"{named(row)}: {middle} ({low} to {high}) until {end}."


_ENDS = ("_low", "", "_high")


def when(rows: pl.DataFrame) -> str:
    """For when the predictions are, if not for now."""
    later = rows.filter(pl.col("refused").is_null())["horizon_s"].max()
    return f"; {duration(later)} later" if isinstance(later, float) and later else ""


def about_ballasts(baseline: Baseline, rows: pl.DataFrame) -> Iterator[str]:
    """What does the same as each ballast in the rows, and what one is."""
    shown = rows.head(MOST_ROWS) if "rank" in rows.columns else rows
    settings = dict.fromkeys(setting_of(row) for row in shown.iter_rows(named=True))
    like = [(each, without_ballast(baseline, each)) for each in settings if each.ballast]
    for setting, words in like:
        if words:
            yield f"{written(setting)}: {words}."
    if like:
        yield (
            "It is address space (VSZ), not memory (RSS), until something writes to it or huge "
            "pages back it. The peaks here are without it; gctrace prints them with it."
        )


def legend(shown: Table) -> str:
    """What the signs in a table of settings mean, as far as they occur."""
    signs = {row[0][:1] for row in shown.rows}
    words = [f"{sign} {word}" for sign, word in _SIGNS.items() if sign in signs]
    return " · ".join([_IDLE, *words])


_SIGNS = {"✗": "thrashes", "?": "may thrash", "!": "does not fit the container"}


def _mark(row: dict[str, Any]) -> str:
    """One sign before a setting: what it does, or that it is the advice."""
    if row["thrash"] in _THRASH:
        return _THRASH[row["thrash"]]
    if row["fits"] is False:
        return "!"
    return "▸" if row.get("rank") == 1 and row["confidence"] != "none" else " "


def _figures(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(
        _interval(row, name, times)
        for name, times in (
            ("gc_cpu_with_idle_share", 100), ("gc_per_s", 1), ("heap_peak_mib", 1),
        )
    )  # fmt: skip


def _interval(row: dict[str, Any], name: str, times: float) -> str:
    if row[name] is None:
        return NONE
    # A ballast is address space: what is weighed against CPU is the memory without it.
    less = (row["ballast_mib"] or 0.0) if name == "heap_peak_mib" else 0.0
    value = _number(times * row[name] - less)
    if row.get("now"):
        return value  # measured, not predicted
    low, high = (_number(times * row[f"{name}_{end}"] - less) for end in ("low", "high"))
    return f"{value} ({low}–{high})"


def _number(value: float) -> str:
    """Two significant digits, three of large numbers.

    >>> [_number(value) for value in (9.63, 10.94, 0.184, 142.3, 1234.5)]
    ['9.6', '11', '0.18', '142', '1,234']
    """
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.2g}"


def reasons(rows: pl.DataFrame, warnings: tuple[str, ...]) -> list[tuple[str, str]]:
    """Why, what to mind, and the lines to paste."""
    first = rows.row(0, named=True)
    told = [("Why", first["why"])]
    if first["risk"]:
        told.append(("Mind", first["risk"]))
    told += [("Mind", text) for text in warnings]
    if not first["now"]:
        told.append(("Set", written(setting_of(first))))
        told.append(("Trust", f"{first['confidence']} confidence; 80 % intervals"))
    return told
