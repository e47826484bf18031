"""The parts embedded in every page: style, script, values, content security policy."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import polars as pl
from markupsafe import Markup

from gctrace_analyzer import __version__
from gctrace_analyzer.present.plots.palette import DARK, LIGHT, PAGE, Theme

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gctrace_analyzer.present.html.chart import Chart


def embedded(
    charts: Sequence[Chart],
    processes: Sequence[Mapping[str, object]] = ({"zero": None, "figures": {}},),
    *,
    records: Mapping[str, object] | None = None,
    theme: Theme = "auto",
) -> dict[str, object]:
    """Returns the values for `page.html.j2`.

    Each of `processes` has its number and name, `zero` (the start of its wall-clock time axis), and
    `figures` (the values to sum for a range). The first process is shown first.
    """
    code = _asset("report.js")
    return {
        **without_script(theme),
        "script": code,
        "policy": _policy(code),
        "data": _packed(
            {
                "processes": list(processes),
                "charts": {chart.id: chart.values for chart in charts},
                "records": records or {"columns": []},
            }
        ),
    }


def without_script(theme: Theme = "auto") -> dict[str, object]:
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
        base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        for script in scripts
    )
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes) or "'none'"
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
"""A column in text form, and one of floats with only finite numbers."""


_COMPRESSED_AT_ONCE = 1 << 17


def _packed(values: dict[str, object]) -> Markup:
    """Returns the values as JSON, compressed, in characters that cannot end the element."""
    # Level 6 takes six times as long, for a page that is 10 % smaller.
    compressor = zlib.compressobj(2)
    # Written text is compressed while Polars writes the rest.
    with ThreadPoolExecutor(1) as pool:
        parts = [pool.submit(compressor.compress, part) for part in _blocks(_json(values))]
        packed = b"".join(part.result() for part in parts) + compressor.flush()
    return Markup(base64.b64encode(packed).decode())


def _blocks(texts: Iterable[str]) -> Iterator[bytes]:
    """Yields texts joined, so that each but the last has at least `_COMPRESSED_AT_ONCE` bytes."""
    block: list[bytes] = []
    size = 0
    for text in texts:
        block.append(text.encode())
        size += len(block[-1])
        if size >= _COMPRESSED_AT_ONCE:
            yield b"".join(block)
            block, size = [], 0
    yield b"".join(block)


def _json(value: Any) -> Iterator[str]:
    """Yields a value as JSON; a column becomes an array with only finite numbers."""
    if isinstance(value, dict):
        for number, (key, item) in enumerate(value.items()):
            yield f"{',' if number else '{'}{_dumps(key)}:"
            yield from _json(item)
        yield "}" if value else "{}"
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for number, item in enumerate(value):
            yield "," if number else "["
            yield from _json(item)
        yield "]"
    elif isinstance(value, pl.Series):
        # Polars writes numbers ten times faster than json.
        joined = value.to_frame().select(_FINITE if value.dtype.is_float() else _EACH)
        yield f"[{joined.item() or ''}]"
    else:
        yield _dumps(value)


def _dumps(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
