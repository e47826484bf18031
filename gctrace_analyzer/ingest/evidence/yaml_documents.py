"""Reads YAML: pods printed by kubectl, and entries printed by gcloud.

gcloud's entries are found by their fields, because a YAML library takes a second per megabyte.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.ingest import json_values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.ingest.wrappers.journal import NumberedLine

ENTRIES = re.compile(r"^insertId: ", re.MULTILINE)

_FIELD = re.compile(
    r"^(?:---|(?P<indent> *)(?P<key>textPayload|message|timestamp|pod_name|container_name|"
    r"namespace_name|node_name): *(?P<value>[^\n]*(?:\n(?P=indent) [^\n]*)*))",
    re.MULTILINE,
)
_LABELS = ("pod_name", "container_name", "namespace_name", "node_name")
_JOINED = re.compile(r"\\\n[ \t]*\\?")
_GOES_ON = r"[|>#&!]|[\"'\[{][^\"'\]}\n]*\n"
_ITEM = re.compile(
    rf"\A(?:[ \t]*\n)*(?P<indent> *)- \w[\w.]*: +(?!{_GOES_ON})[^ \n][^\n]*\n(?P<next> +)\w[\w.]*:"
)
"""An item that begins with a whole value: a following key is another key of the item. After a key
without a value, or with a value that continues, a key may belong to that value."""
_BLOCK = re.compile(r"[|>][-+0-9]*[ \t]*\n")


def entries(text: str) -> Iterator[NumberedLine]:
    """Yields the log entries that `gcloud logging read` prints, as lines of JSON."""
    entry: dict[str, object] = {}
    at, line_no, counted = 1, 1, 0
    for match in _FIELD.finditer(text):
        key, value, indent = match["key"], match["value"], match["indent"]
        if key is None:
            if "textPayload" in entry:
                yield at, json.dumps(entry)
            entry = {}
            continue
        if key in _LABELS:
            entry.setdefault(key, scalar(value))
        elif key in ("textPayload", "message"):
            line_no += text.count("\n", counted, match.start())
            counted, at = match.start(), line_no
            entry["textPayload"] = scalar(value)
        elif not indent:
            entry[key] = scalar(value)
    if "textPayload" in entry:
        yield at, json.dumps(entry)


def scalar(text: str) -> str:
    r"""Returns the text of a scalar in any of YAML's styles.

    >>> scalar("'gc 1 @0.005s 0%:\n  it''s folded'")
    "gc 1 @0.005s 0%: it's folded"
    """
    if block := _BLOCK.match(text):
        lines = [line.strip() for line in text[block.end() :].split("\n")]
        return ("\n" if text[0] == "|" else " ").join(lines).rstrip()
    text = text.rstrip()
    if len(text) > 1 and text[0] == text[-1] == "'":
        return _folded(text[1:-1]).replace("''", "'")
    if len(text) > 1 and text[0] == text[-1] == '"':
        folded = _folded(_JOINED.sub("", text))
        try:
            return str(json_values.loads(folded))
        except ValueError:
            return folded[1:-1]
    return _folded(text)


def _folded(text: str) -> str:
    return " ".join(line.strip() for line in text.split("\n"))


def _aligned(text: str) -> str:
    """Returns a text whose first line, an item, is indented like the next ones.

    A copy that starts in the middle of a line lacks a part of the indentation.
    """
    match = _ITEM.match(text)
    if match is None or len(match["indent"]) + 2 == len(match["next"]):
        return text
    indent = match["next"][2:]
    return f"{text[: match.start('indent')]}{indent}{text[match.end('indent') :]}"


def values(text: str) -> Iterator[tuple[int, Any]]:
    """Yields each document with its first line.

    Raises:
        ValueError: the rest is not YAML; `lineno` has the line if it is known.
    """
    # Hardly any input is YAML.
    import yaml

    text = _aligned(text)
    base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[valid-type,misc]  # in C where it was built
        """Leaves times as they are printed."""

        yaml_implicit_resolvers = {  # noqa: RUF012  # as in the base class
            first: [each for each in resolvers if each[0] != "tag:yaml.org,2002:timestamp"]
            for first, resolvers in base.yaml_implicit_resolvers.items()
        }

    try:
        if any(isinstance(each, yaml.AliasEvent) for each in yaml.parse(text, Loader=base)):
            # Real output never uses a value several times, and such references can expand to
            # gigabytes.
            msg = "YAML with aliases"
            raise ValueError(msg)
        loader = Loader(text)
        while loader.check_node():
            node = loader.get_node()
            value = loader.construct_document(node)
            # Without types that JSON lacks: dates, sets, keys that are not texts
            plain = json.dumps(value, default=str, skipkeys=True)
            yield node.start_mark.line + 1, json_values.loads(plain)
    except yaml.YAMLError as err:
        mark = getattr(err, "problem_mark", None)
        problem = getattr(err, "problem", None) or "invalid YAML"
        # From PyYAML 6.0.4 on its parser in C has a limit of its own.
        error = ValueError(json_values.TOO_DEEP if "nesting depth" in problem else problem)
        error.lineno = mark.line + 1 if mark else 1  # type: ignore[attr-defined]  # as in JSON
        raise error from err
    except RecursionError as err:
        raise ValueError(json_values.TOO_DEEP) from err
