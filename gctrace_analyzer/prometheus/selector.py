"""Label matchers in PromQL."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gctrace_analyzer.errors import BadSettingError

_STRING = r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|`[^`]*`'
_MATCHER = re.compile(
    rf"\s*(?P<label>[A-Za-z_]\w*|{_STRING})\s*(?P<op>=~|!~|!=|=)\s*(?P<value>{_STRING})\s*(?:,|$)"
)
_NAMED = re.compile(r"\A\s*+[A-Za-z_:][\w:]*+\s*+(?=\{)")
_UNQUOTED = re.compile(
    r"\s*+\{?+\s*+([A-Za-z_]\w*+)\s*+(=~|!~|!=|=)\s*+([^\"'`{},\s]++)\s*+\}?+\s*+"
)


class Matcher(NamedTuple):
    """One matcher; `value` is in quotes."""

    label: str
    operator: str
    value: str

    def __str__(self) -> str:
        return f"{self.label}{self.operator}{self.value}"


def parse(text: str | None) -> list[Matcher]:
    """Returns the matchers of a selector; braces and a metric name are optional.

    Raises:
        BadSettingError: the text is not a selector.

    >>> [str(each) for each in parse('{job="api", pod=~"api-.*"}')]
    ['job="api"', 'pod=~"api-.*"']
    >>> [str(each) for each in parse('go_goroutines{job="api"}')], parse(None), parse("{}")
    (['job="api"'], [], [])
    """
    inner = _NAMED.sub("", text or "", count=1).strip()
    if inner.startswith("{"):
        if not inner.endswith("}"):
            raise _invalid(text or "")
        inner = inner[1:-1].strip()
    matchers, at = [], 0
    while at < len(inner):
        match = _MATCHER.match(inner, at)
        if match is None:
            raise _invalid(text or "")
        # The metric's name is replaced by the names to fetch.
        if match["label"] != "__name__":
            matchers.append(Matcher(match["label"], match["op"], match["value"]))
        at = match.end()
    return matchers


def _invalid(text: str) -> BadSettingError:
    near = _UNQUOTED.fullmatch(text)
    return BadSettingError(
        "match",
        text,
        'label matchers in PromQL such as {job="api"}',
        f'{{{near[1]}{near[2]}"{near[3]}"}}' if near else None,
    )


def equals(labels: Mapping[str, str]) -> list[Matcher]:
    """Returns matchers for exactly these labels."""
    return [Matcher(_label(name), "=", quoted(value)) for name, value in labels.items()]


def one_of(label: str, values: Iterable[str]) -> Matcher:
    r"""Returns a matcher for several values of a label.

    >>> str(one_of("instance", ["a:1", "b.c:2"]))
    'instance=~"a:1|b\\\\.c:2"'
    """
    several = sorted(set(values))
    if len(several) == 1:
        return Matcher(_label(label), "=", quoted(several[0]))
    return Matcher(_label(label), "=~", quoted("|".join(map(_escaped, several))))


def selector(name: str, matchers: Iterable[Matcher], *more: str) -> str:
    """Returns a selector of a metric.

    >>> selector("go_info", parse('{job="api"}'))
    'go_info{job="api"}'
    """
    inner = ",".join([*map(str, matchers), *more])
    return f"{name}{{{inner}}}" if inner or not name else name


def quoted(text: str) -> str:
    r"""Returns a string in PromQL.

    >>> quoted('a"b')
    '"a\\"b"'
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _label(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else quoted(name)


def _escaped(value: str) -> str:
    # RE2 only knows its own letter escapes, so only its special characters get one.
    return re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", value)
