"""Finds documents in a text with several: what someone pasted, or the output of some commands.

Documents are JSON, YAML, `kubectl describe`, heap profiles and pages of metrics. All other lines
are read as a log.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from itertools import accumulate, islice, takewhile, zip_longest
from typing import TYPE_CHECKING, NamedTuple

from gctrace_analyzer.ingest import json_values
from gctrace_analyzer.ingest.evidence import dispatch, kubernetes
from gctrace_analyzer.ingest.evidence.words import YAML_FIRST
from gctrace_analyzer.ingest.gctrace.patterns import RUNTIME
from gctrace_analyzer.ingest.metrics import layouts
from gctrace_analyzer.ingest.sniff import DOCUMENTS, MIXED_BYTES, sniff
from gctrace_analyzer.ingest.wrappers.json_lines import MESSAGE_FIELD

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gctrace_analyzer.ingest.evidence.message import Row

_DOCUMENTS = (
    r"(?P<json>[\[{][ \t]*(?:\{[ \t]*)?(?:> )?$|\[\{\"|"
    r"\{\"(?:memstats|cmdline|kind|apiVersion|Id)\")"
    r"|(?P<fragment>\"[A-Za-z]\w*\"[ \t]*:[ \t])"
    rf"|(?P<yaml>(?:- )?(?:{YAML_FIRST})[ \t]*$)"
    r"|(?P<describe>Name:[ \t]+\S|(?:Init )?Containers:[ \t]*$|(?:Last )?State:[ \t]|"
    r"Restart Count:[ \t]|"
    r"[a-z0-9][a-z0-9.-]{0,62}:[ \t]*\n[ \t]*(?:Container ID|Image|State):[ \t])"
    r"|(?P<pprof>heap profile: |# runtime\.MemStats[ \t]*$)"
)
_METRICS = rf"(?P<metrics># (?:HELP|TYPE|UNIT) \S+|{layouts.GO_SAMPLE})"
_START = re.compile(
    rf"^(?P<quote>[ \t]*+(?:>[ \t]?+)*+)[ \t]*+(?:{_DOCUMENTS}|{_METRICS})", re.MULTILINE
)
"""The first line of a document."""

_LINES = {
    "fragment": r"[ \t]*+(?:\"[^\"]*\"[ \t]*[:,]?|[\]\[{}]|-?\d|true|false|null)",
    "yaml": r"[ \t]|#|---|- |[a-z][\w./-]*+:(?:[ \t]|$)",
    # Limits may have lost their indentation.
    "describe": r"[ \t]|$|\W{0,3}(?:\.\.\.|…)\W*$|(?:[A-Z][\w .()/-]*+|memory|cpu):(?:[ \t]|$)|"
    r"[a-z0-9][a-z0-9.-]*+:[ \t]*+$",
    "pprof": r"[ \t]*+(?:#|$|\d++: \d++ \[|heap profile: )",
    "metrics": r"[ \t]*+(?:#|$|[\w:.]*+(?:\{.*\})?[ \t]++[-+]?(?:\d|\.\d|Inf|NaN)\S*+"
    r"(?:[ \t]++-?\d\S*+)?+[ \t]*+(?:#.*)?$)",
}
"""Beginnings, or whole forms, of the lines of a document."""

_BELONGS = {kind: re.compile(f"^(?:{line})") for kind, line in _LINES.items()}

_FOREIGN = {
    "json": re.compile(r"^[^\s{}\[\]\",\d\-tfn]", re.MULTILINE),
    **{
        kind: re.compile(f"^(?!{_LINES[kind]}|$)", re.MULTILINE)
        for kind in ("yaml", "describe", "pprof")
    },
    # Other text between pages of metrics, such as their times, is read with them.
    "metrics": re.compile(
        rf"^gc #?\d+ @|[Kk]illed process|oom-kill|invoked oom|out of memory|^(?:{_DOCUMENTS})",
        re.MULTILINE,
    ),
}
"""Text that shows that a text is not only one document of the kind it begins with."""

_OPENING, _CLOSING = re.compile(r"[\[{]"), re.compile(r"[\]}]")

_LEFT_ALIGNED = ("pprof", "metrics")
"""Documents whose lines are never indented, unless someone quoted them."""

_OF_LOG = re.compile(f"{RUNTIME}|{dispatch.HINT}")

_OF_RECORD = re.compile(rf"{MESSAGE_FIELD}|\\")
"""A record with a message, or with escapes that only decoding shows."""

_MOST_FAILURES = 100
"""The search for JSON stops after this many lines that only seemed to begin a value."""


_ASKED = re.compile(
    r"\b(?:docker|podman|nerdctl|kubectl|oc) [^|;]{0,200}?(?:\binspect\b|(?P<get>\bget\b))"
    r"(?P<about>.{0,500}?)(?:-f|-?-format|template|jsonpath|\bjq(?: -\w+)*)[ =]{1,9}"
    r"(?P<template>'[^']+'|\"[^\"]+\"|\S+)(?P<more>[^|]{0,200})"
)
"""A command that prints some fields of one container or pod."""

_FIELD = re.compile(
    r"\{\{-? ?(?:json )?\.([\w.\[\]]+) ?-?\}\}|\{\.([\w.*\[\]]+)\}|"
    r"^\.(?:\[0?\]\.?)?([\w.\[\]]+)$"
)
_BLANKS = re.compile(r"(?:\\[nt]|\{\"\\[nt]\"\}|\s)+")
_POD = re.compile(r"\b(?:po|pods?)[ /](?P<name>[a-z0-9][\w.-]*)")
_CONTAINER = re.compile(r"(?:^|\s)(?P<name>[A-Za-z0-9][\w.-]*)\s*$")


_LONGEST = 64
"""Most lines of an answer in JSON."""


class Section(NamedTuple):
    """The documents of one kind (`sniff.KINDS`): their lines, counted from 0, and their text.

    Other lines are empty, so that the line numbers are those of the whole text. Quotes (`> `) are
    removed.
    """

    kind: str
    lines: frozenset[int]
    text: str


def is_mixed(kind: str, text: str) -> bool:
    """Returns whether a text that begins like one kind may have parts of other kinds."""
    if kind not in _FOREIGN or len(text) > MIXED_BYTES:
        return False
    if kind == "metrics" and layouts.layout_of(text[: 1 << 16]) != "exposition":
        return False
    return _FOREIGN[kind].search(text) is not None


def has_log(text: str) -> bool:
    """Returns whether a text has a line that is read from logs."""
    return _OF_LOG.search(text) is not None


def have_messages(records: Iterable[tuple[int, str]]) -> bool:
    """Returns whether a record of a document, as a line of JSON, may come from a log."""
    return any(_OF_RECORD.search(record) or has_log(record) for _, record in records)


def without(text: str, sections: Sequence[Section]) -> str:
    """Returns a text in which the lines of the sections are empty."""
    taken = frozenset[int]().union(*(section.lines for section in sections))
    lines = text.split("\n")
    return "\n".join("" if at in taken else line for at, line in enumerate(lines))


def sections_of(text: str) -> list[Section]:
    """Returns possible documents; the reader of each kind makes the final decision.

    Each YAML document is a section; all documents of another kind form one section.
    """
    lines = text.split("\n")
    lines_by_kind: dict[tuple[str, int | str | None], dict[int, str]] = {}
    fences = [at for at, line in enumerate(lines) if line.lstrip().startswith("```")]
    for begin, end in zip_longest(fences[::2], fences[1::2], fillvalue=len(lines)):
        inside = lines[begin + 1 : end]
        if (kind := sniff(b"", "\n".join(inside))) in DOCUMENTS:
            lines_by_kind[kind, begin] = dict(enumerate(inside, start=begin + 1))
            lines[begin + 1 : end] = [""] * len(inside)
    for name, answers in _answers(lines).items():
        lines_by_kind["json", name] = answers
        for at in answers:
            lines[at] = ""
    for kind, begin, own in _documents("\n".join(lines), lines):
        name = "json" if kind == "fragment" else kind
        key = (name, begin if kind in ("yaml", "fragment") else None)
        lines_by_kind.setdefault(key, {}).update(enumerate(own, start=begin))
    return [
        Section(kind, frozenset(own), _placed(own, len(lines)))
        for (kind, _), own in lines_by_kind.items()
    ]


def _placed(own: dict[int, str], total: int) -> str:
    """Returns lines at their places; the last line has the end of the text."""
    parts, last = list[str](), 0
    for at in sorted(own):
        parts += ["\n" * (at - last), own[at]]
        last = at
    text = "".join(parts)
    return text if last == total - 1 else f"{text}\n"


def _documents(text: str, lines: list[str]) -> Iterator[tuple[str, int, list[str]]]:
    """Yields kind, first line and lines of each possible document, without quotes."""
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    at = failures = 0
    while at < len(text) and (match := _START.search(text, at)):
        kind, begin = str(match.lastgroup), bisect_right(starts, match.start()) - 1
        at = starts[begin + 1]
        following: Iterator[str] = islice(lines, begin, None)
        offset = match.start(kind)
        if ">" in (quote := match["quote"].rstrip()):
            unquoted = list(_unquoted(following, quote))
            text_of_json, offset, following = "\n".join(unquoted), 0, iter(unquoted)
        else:
            text_of_json = text
        if kind != "json":
            own = _belonging(kind, following)
        elif failures < _MOST_FAILURES:
            own = list(islice(following, _lines_of_json(text_of_json, offset)))
            failures += not own
        else:
            own = []
        if kind == "describe" and not kubernetes.is_described("\n".join(own)):
            continue
        if own:
            at = starts[begin + len(own)]
            yield kind, begin, own


def _unquoted(lines: Iterable[str], quote: str) -> Iterator[str]:
    """Yields lines without their quote mark, up to the first without one."""
    for line in takewhile(lambda line: line.startswith(quote), lines):
        # Some programs wrap quoted lines, and begin the rest with the mark.
        yield line[len(quote) :].removeprefix(" ").removesuffix("> ")


def _lines_of_json(text: str, at: int) -> int:
    """Returns the length in lines of the JSON value that begins there; 0 without one."""
    try:
        _, end = json_values.raw_decode(text, at)
    except ValueError:
        return 0
    return text.count("\n", at, end) + 1


def _belonging(kind: str, lines: Iterable[str]) -> list[str]:
    """Returns the lines that belong to the document of this kind that begins with the first."""
    own = list(takewhile(_BELONGS[kind].match, lines))
    if kind == "fragment":
        # The braces around it may be missing, but no closing one may be added.
        change = (len(_OPENING.findall(line)) - len(_CLOSING.findall(line)) for line in own)
        inside = takewhile(lambda depth: depth >= 0, accumulate(change))
        return own[: sum(1 for _ in inside)]
    return [line.lstrip() for line in own] if kind in _LEFT_ALIGNED else own


def _answers(lines: Sequence[str]) -> dict[str, dict[int, str]]:
    """Returns the lines of commands that print fields of a container or pod, and of their answers.

    The last line is replaced by a JSON object with these fields.
    """
    objects: dict[str, Row] = {}
    answers: dict[str, dict[int, str]] = {}
    command, begin = "", 0
    for at, line in enumerate(lines):
        command, begin = (f"{command} {line}", begin) if command else (line, at)
        if line.endswith("\\") and at - begin < _LONGEST:
            command = command[:-1]
            continue
        asked, command = _ASKED.search(command), ""
        if asked is None:
            continue
        fields, count = _fields(asked["template"].strip("'\""), lines[at + 1 :][:_LONGEST])
        if not fields:
            continue
        of_pod = asked["get"] is not None
        about = f"{asked['about'].partition('|')[0]} {asked['more']}"
        named = (_POD if of_pod else _CONTAINER).search(about)
        name = named["name"] if named else ""
        new = {"kind": "Pod", "metadata": {"name": name}} if of_pod else {"Name": name}
        value = objects.setdefault(name, new)
        for path, field in fields.items():
            _set(value, path, field)
        own = dict.fromkeys([*answers.get(name, ()), *range(begin, at + 1 + count)], "")
        answers[name] = own | {at + count: json.dumps(value)}
    return answers


def _fields(template: str, lines: Sequence[str]) -> tuple[Row, int]:
    """Returns the value of each field of a template in an answer, and the number of its lines."""
    blank = sum(1 for _ in takewhile(lambda line: not line.strip(), lines))
    if blank == len(lines):
        return {}, 0
    names = [match[match.lastindex or 0] for match in _FIELD.finditer(template)]
    answer = lines[blank].strip()
    if len(names) == 1 and answer.startswith("{"):
        text = "\n".join(lines[blank:])
        count = _lines_of_json(text, 0)
        return ({names[0]: json_values.raw_decode(text, 0)[0]} if count else {}), blank + count
    literals = [_BLANKS.sub(" ", part) for part in _FIELD.sub("\0", template).split("\0")]
    rest = _BLANKS.sub(" ", answer).removeprefix(literals[0])
    fields: Row = {}
    for name, after in zip(names, literals[1:], strict=True):
        value, _, rest = rest.partition(after) if after else (rest, "", "")
        try:
            fields[name] = json_values.loads(value)
        except ValueError:
            fields[name] = value
    return fields, blank + 1


def _set(value: Row, path: str, field: object) -> None:
    """Sets the member at a path like `status.containerStatuses[0].name` of an object."""
    *parts, last = path.split(".")
    for part in parts:
        name, is_list, _ = part.partition("[")
        inner = value.setdefault(name, [{}] if is_list else {})
        inner = inner[0] if is_list and isinstance(inner, list) and inner else inner
        if not isinstance(inner, dict):
            return  # The query asked for a field and for the object around it.
        value = inner
    value[last] = field
