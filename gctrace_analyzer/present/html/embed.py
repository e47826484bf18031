"""What every page embeds: style, script, values, and its content security policy."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import polars as pl
from markupsafe import Markup

from gctrace_analyzer import __version__
from gctrace_analyzer.present.plots.palette import DARK, LIGHT, PAGE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from gctrace_analyzer.present.html.chart import Chart
    from gctrace_analyzer.present.plots.palette import Theme


def embedded(
    charts: Sequence[Chart],
    zero: datetime | None = None,
    *,
    figures: dict[str, Any] | None = None,
    records: dict[str, Any] | None = None,
    theme: Theme = "auto",
) -> dict[str, Any]:
    """Returns the values for `page.html.j2`; `zero` is the start of a wall-clock time axis."""
    code = _asset("report.js")
    return {
        **without_script(theme),
        "script": code,
        "policy": _policy(code),
        "data": _packed(
            {
                "zero": None if zero is None else zero.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
                "charts": {each.id: each.values for each in charts},
                "figures": figures or {},
                "records": records or {"columns": []},
            }
        ),
    }


def without_script(theme: Theme = "auto") -> dict[str, Any]:
    """Returns the values for a page that needs no script."""
    return {
        "version": __version__,
        "theme": theme,
        "style": style(),
        "script": "",
        "policy": _policy(),
        "data": "",
    }


def style() -> Markup:
    """Returns the style of all pages, with the colours of the plots as variables."""
    light, dark = (
        " ".join(
            [f"--{name}: {color};" for name, color in PAGE[theme].items()]
            + [f"--c-{name}: {color};" for name, color in colors.items()]
        )
        for theme, colors in (("light", LIGHT), ("dark", DARK))
    )
    uses = " ".join(f".{name} {{ --c: var(--c-{name}); }}" for name in LIGHT)
    sheet = _asset("report.css")
    return Markup(sheet.replace("/*light*/", light).replace("/*dark*/", dark) + uses)


def _asset(name: str) -> Markup:
    return Markup(files(__package__).joinpath(name).read_text("utf-8"))


def _policy(*scripts: str) -> str:
    """Returns the content security policy: only these scripts run, and nothing is loaded."""
    hashes = (
        base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in scripts
    )
    allowed = " ".join(f"'sha256-{each}'" for each in hashes) or "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


_EACH = pl.first().cast(pl.String).fill_null("null").str.join(",")
_FINITE = (
    pl.when(pl.first().is_finite())
    .then(pl.first().cast(pl.String))
    .fill_null("null")
    .str.join(",")
)
"""A column as one text, and one of floats, in which only finite numbers are."""


def _packed(values: dict[str, Any]) -> Markup:
    """Returns the values as JSON, compressed, in characters that cannot end the element."""
    text = _json(values)
    # Level 6 takes six times as long, for a page that is 10 % smaller.
    return Markup(base64.b64encode(zlib.compress(text.encode(), 2)).decode())


def _json(value: Any) -> str:
    """Returns a value as JSON; a column becomes an array, in which only finite numbers are."""
    if isinstance(value, dict):
        return f"{{{','.join(f'{_json(key)}:{_json(each)}' for key, each in value.items())}}}"
    if isinstance(value, list) and any(isinstance(each, dict) for each in value):
        return f"[{','.join(map(_json, value))}]"
    if isinstance(value, pl.Series):
        # Polars writes numbers ten times faster than json.
        joined = value.to_frame().select(_FINITE if value.dtype.is_float() else _EACH)
        return f"[{joined.item() or ''}]"
    return json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
