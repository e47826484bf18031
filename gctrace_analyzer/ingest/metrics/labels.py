"""Parses a series as Prometheus writes it: a name, and labels in braces."""

from __future__ import annotations

import re
from collections.abc import Iterator

_ESCAPE = re.compile(r"\\(.)")
_ESCAPES = {"n": "\n", "t": "\t"}


def series(text: str) -> tuple[str, dict[str, str]]:
    r"""Returns the name and the labels of a series.

    >>> series('go_gc_duration_seconds{job="api",quantile="1"}')
    ('go_gc_duration_seconds', {'job': 'api', 'quantile': '1'})
    >>> series('{"go.memory.used", job="a\\"b"}')
    ('go.memory.used', {'job': 'a"b'})
    """
    name, _, rest = text.partition("{")
    name, key = name.strip(), ""
    labels: dict[str, str] = {}
    for outside, quoted in _strings(rest):
        is_value = outside.rstrip().endswith("=")
        if not is_value:
            # A quoted label name, or the name of the metric.
            key = quoted
            name = name or key
            continue
        plain = outside.strip(" \t,=")
        labels[plain or key] = quoted
        if not plain and name == key:
            name = ""
    return name or labels.get("__name__", ""), labels


def _strings(text: str) -> Iterator[tuple[str, str]]:
    """Yields each quoted string, and the text before it."""
    pieces = iter(text.split('"'))
    outside = next(pieces, "")
    for piece in pieces:
        parts = [piece]
        # An odd number of backslashes escapes the quote that follows.
        while (len(parts[-1]) - len(parts[-1].rstrip("\\"))) % 2:
            parts.append(next(pieces, ""))
        yield outside, _unescaped('"'.join(parts))
        outside = next(pieces, "")


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[1]), text)
