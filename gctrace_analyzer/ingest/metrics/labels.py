"""Parses a series as Prometheus writes it: a name, and labels in braces."""

from __future__ import annotations

import re

_LABEL = re.compile(
    r'(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[A-Za-z_][\w.]*))'
    r'(?:\s*=\s*"(?P<value>(?:[^"\\]|\\.)*)")?'
)
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
    labels: dict[str, str] = {}
    name = name.strip()
    for found in _LABEL.finditer(rest):
        key = found["plain"] or _unescaped(found["quoted"] or "")
        if found["value"] is not None:
            labels[key] = _unescaped(found["value"])
        elif found["quoted"] is not None and not name:
            name = key
    return name or labels.get("__name__", ""), labels


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[1]), text)
