"""Shared by HTML pages and notebook cells: templates, code in sentences, trend lines, footers."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemBytecodeCache, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from gctrace_analyzer import __version__
from gctrace_analyzer.present.format import unbroken, words

if TYPE_CHECKING:
    from datetime import datetime

    from jinja2.bccache import Bucket

    from gctrace_analyzer.present.document import KeyFigure


_LONGEST_TEXT = 1_000
"""Characters. A longer text is the path of a drawing."""


class _Compiled(FileSystemBytecodeCache):
    """Keeps compiled templates where Python keeps compiled modules, if it may write there.

    Compiling them takes a tenth of a short log's page.
    """

    def __init__(self) -> None:
        super().__init__(str(Path(__file__).with_name("__pycache__")))

    def get_source_checksum(self, source: str) -> str:
        """Returns what a compiled template depends on: its source, and the environment below."""
        return super().get_source_checksum(source + Path(__file__).read_text(encoding="utf-8"))

    def dump_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):
            super().dump_bytecode(bucket)


def rendered(template: str, **values: object) -> str:
    """Returns a template of this folder with its values."""
    return environment().get_template(template).render(**values)


@cache
def environment() -> Environment:
    """Returns the environment for the templates in this folder."""
    # Every value is escaped, so that text from a log stays text.
    jinja = Environment(
        loader=PackageLoader("gctrace_analyzer.present.html", "."),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_unbroken,
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=None if sys.dont_write_bytecode else _Compiled(),
    )
    jinja.filters |= {"code": code, "led": led, "spark": spark, "words": words}
    return jinja


def _unbroken(value: object) -> object:
    """Returns a text without line breaks in figures; escaped code stays unchanged for copying."""
    short = type(value) is str and len(value) < _LONGEST_TEXT
    return _RANGE.sub(_JOINED, unbroken(str(value))) if short else value


_RANGE, _JOINED = re.compile(r"(?<=\d)\N{EN DASH}(?=\d)"), "\N{EN DASH}\N{WORD JOINER}"


def code(text: str) -> Markup:
    """Returns the escaped text, with text in backticks as code.

    >>> code("run `go tool pprof <x>`")
    Markup('run <code>go tool pprof &lt;x&gt;</code>')
    """
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(unbroken(text)))))


_CLAUSE = re.compile(r"(?:`[^`]*`|[^`])+?(?=[,:;]? \(|[,:;.] |\.?$)")


def led(text: str) -> Markup:
    r"""Returns the text like `code`, with its first clause, the action, in bold.

    >>> led("Set GOMEMLIMIT=460MiB (90 % of 512 MiB): it fits.")
    Markup('<b>Set GOMEMLIMIT=460MiB</b> (90\xa0% of 512\xa0MiB): it fits.')
    """
    clause = _CLAUSE.match(text)
    end = clause.end() if clause else 0
    return Markup("<b>") + code(text[:end]) + Markup("</b>") + code(text[end:])


def spark(figure: KeyFigure) -> str:
    """Returns the trend of a figure as SVG points in a box of 100 × 24."""
    values = [value for value in figure.trend if value is not None]
    top = max(values, default=0.0)
    if len(values) < 2 or top <= 0:
        return ""
    step = 100 / (len(figure.trend) - 1)
    return " ".join(
        f"{step * index:.1f},{22 - 20 * value / top:.1f}"
        for index, value in enumerate(figure.trend)
        if value is not None
    )


def made(made_at: datetime | None) -> str:
    """Returns when and by what a page was made, for its end."""
    when = "" if made_at is None else f" on {made_at:%Y-%m-%d at %H:%M} UTC"
    return f"Made{when} by gctrace-analyzer {__version__}"
