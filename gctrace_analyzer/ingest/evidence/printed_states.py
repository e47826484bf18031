"""Reads Kubernetes container states that programs and people print.

`kubectl get pod -o go-template` prints maps, and controllers log the types of k8s.io/api.
Dashboards, alerts and people name the reason OOMKilled as a field, a cell or a part of a sentence,
with the names and the exit code next to it or on the next lines.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gctrace_analyzer.ingest import json_values, numbers
from gctrace_analyzer.ingest.evidence import kubernetes
from gctrace_analyzer.ingest.evidence.docker import with_signal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from gctrace_analyzer.ingest.evidence.message import Message, Row

HINT = r"xitCode:-?\d+[ ,](?:finishedAt|Signal):|OOMKilled"

_CODE = r"xitCode:(?P<code>-?\d{1,10})"
# Not beyond the code of the next state: each would be searched again from every one before it.
_MESSAGE = r"(?:(?!xitCode:).){0,4096}?"
_TERMINATED = (
    # fmt prints the keys of a map in order; a message may contain brackets.
    re.compile(
        rf"map\[(?:containerID:(?P<id>\S{{1,200}}) )?e{_CODE} finishedAt:(?P<finished>\S{{1,40}})"
        rf"(?: message:{_MESSAGE})?(?: reason:(?P<reason>\S{{1,200}}))?(?: signal:\d{{1,9}})? "
        r"startedAt:(?P<started>[^\s\]]{1,40})\]"
    ),
    # String() of the type separates its fields by commas, fmt's %+v by blanks.
    re.compile(
        rf"\{{E{_CODE}[ ,]Signal:\d{{1,9}}[ ,]Reason:(?P<reason>[^\s,]{{0,200}})[ ,]"
        rf"Message:{_MESSAGE}[ ,]StartedAt:(?P<started>[^,a-z]{{0,60}})[ ,]"
        r"FinishedAt:(?P<finished>[^,a-z]{0,60})[ ,]ContainerID:(?P<id>[^\s,}]{0,200}),?\}"
    ),
)
_TYPE = "ContainerStateTerminated"
_AROUND = 2000
"""Characters. How far from a state the name of its container may be."""

_NAMES_BEFORE = re.compile(
    r" name:(?P<map>[^\s\]]{1,253}) ready:\w+ "
    r"|ContainerStatus\{Name:(?P<type>[^\s,]{1,253}),"
    r"|\{(?P<bare>[a-z0-9][-a-z0-9]{0,252}) \{(?:nil|&)"
)
_RESTARTS_BEFORE = re.compile(r" ready:\w+ .{0,1000}?restartCount:(\d{1,9}) ")
_NAME_AFTER = re.compile(
    r"\]{1,2} name:(?P<name>[^\s\]]{1,253}) ready:\w+ .{0,1000}?restartCount:(?P<restarts>\d{1,9})"
)
_RESTARTS_AFTER = re.compile(r"(?:,\},Ready:\w+,RestartCount:|\} (?:true|false) )(\d{1,9})[ ,]")
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(\.\d{1,9})?(Z| ?[+-]\d\d:?\d\d)(?: \w{1,5})?"
)


def read(messages: Iterable[Message]) -> list[Row]:
    """Returns the states of containers that have ended, each death once."""
    rows: dict[tuple[object, ...], Row] = {}
    for message in messages:
        if "xitCode:" not in message.text:
            continue
        for row in _states(message.text):
            known = {
                name: value
                for name in ("pod", "namespace", "container", "container_id")
                if (value := getattr(message, name)) is not None
            }
            place = {"line_no": message.line_no, "logged_at": message.logged_at}
            key = (row["container_id"], row["finished_at"], row["exit_code"], row.get("name"))
            rows.setdefault(
                key, place | known | {k: v for k, v in row.items() if v is not None}
            )
    return list(rows.values())


def _states(text: str) -> Iterator[Row]:
    for pattern in _TERMINATED:
        for match in pattern.finditer(text):
            ended = {
                "exitCode": numbers.whole(match["code"]),
                "reason": match["reason"] or None,
                "startedAt": _iso(match["started"]),
                "finishedAt": _iso(match["finished"]),
            }
            about, is_last = _container(text, match.start(), match.end())
            state = {"terminated": ended}
            row = kubernetes.states({}, state) if is_last else kubernetes.states(state, {})
            container_id = (match["id"] or "").rpartition("/")[2] or None
            yield with_signal({**row, **about, "container_id": container_id})


def _container(text: str, begin: int, end: int) -> tuple[Row, bool]:
    """Returns name and restarts of the container, and whether the state is its last one."""
    before, after = text[max(begin - _AROUND, 0) : begin], text[end : end + _AROUND]
    is_last = (
        before.endswith("lastState:map[terminated:") or "LastTerminationState:" in before[-120:]
    )
    name = counted = None
    if is_last and (match := _NAME_AFTER.match(after)):
        name, counted = match["name"], match["restarts"]
    elif names := [*_NAMES_BEFORE.finditer(before)]:
        nearest = names[-1]
        name = nearest.group(nearest.lastgroup or 0)
        # Without field names, a state is the last one if the present one has not ended.
        is_last |= nearest.lastgroup == "bare" and before.endswith("{nil nil &" + _TYPE)
        restarts = _RESTARTS_BEFORE.search(before, nearest.start()) or _RESTARTS_AFTER.match(
            after
        )
        counted = restarts[1] if restarts else None
    return {"container": name, "name": name, "restart_count": numbers.whole(counted)}, is_last


def _iso(text: str) -> str | None:
    """Returns a time that Go printed in ISO 8601; None if it has no zone."""
    if not (match := _TIME.match(text)):
        return None
    day, clock, fraction, zone = match.groups()
    return f"{day}T{clock}{(fraction or '')[:7]}{zone.strip()}"


_NAMES_OF_STATES = r"(?:reason|status|state|last state|terminated)"
_ENDED = re.compile(
    r"(?:"
    rf"(?i:\b{_NAMES_OF_STATES})\"?\s{{0,9}}[:=]\s{{0,9}}\\{{0,3}}[\"']?"
    r"(?:Terminated[^\w]{1,3}(?:reason[:=] ?)?)?OOMKilled"
    r"|(?i:terminated|killed|died|exited|restarted|failed)\s{0,9}(?:\(|-|:|,|\bwith\b|\bas\b|"
    r"\bdue to\b|\bbecause of\b|\breason\b|\s){1,3}\s{0,9}[\"']?OOMKilled"
    r"|(?:was|were|been|got|is|are)\s{1,9}[\"']?OOMKilled"
    r"|[,;|\t(\[]\s{0,9}[\"']?OOMKilled\"?\s{0,9}(?:[,;|\t)\]]|$)"
    r"|\b(?:and|with)\s{1,9}reason\s{1,9}[\"']?OOMKilled"
    r"|OOMKilled\s{0,9}\(exit code \d{1,3}\)"
    r"|OOMKilled\"?\s{0,9}[:=]\s{0,9}\"?[Tt]rue"
    r"|\b(?:[Cc]ontainer|[Pp]od)\s{1,9}\S{1,253}\s{1,9}OOMKilled"
    r")"
)
_NOT = re.compile(
    r"\b(?:not|isn't|wasn't|never|no longer|without)\b.{0,20}OOMKilled|OOMKilled.{0,3}\?|"
    r"\bif\b.{0,60}OOMKilled|OOMKilled\"?\s{0,9}[:=]\s{0,9}\"?[Ff]alse"
)

_NAME = r"[a-z0-9][a-z0-9.-]{0,252}"
_POD_NAMED = re.compile(
    r"\b[Pp]ods?(?:_?[Nn]ame)?[\"']?\s?[/=: ]\s?\\*[\"']?"
    rf"(?:(?P<namespace>{_NAME})/)?(?P<pod>{_NAME})"
)
_CONTAINER_NAMED = re.compile(
    rf"\b[Cc]ontainer(?:_?[Nn]ame)?[\"']?\s?[=: ]\s?\\*[\"']?(?P<container>{_NAME})"
)
_NAMESPACE = re.compile(rf"\bnamespace[\"']?\s?[=: ]\s?\\*[\"']?(?P<namespace>{_NAME})")
_POD_CELL = re.compile(r"[a-z0-9][a-z0-9-]*-(?:[a-f0-9]{8,10}-[a-z0-9]{5}|\d{1,4})")
_EXIT = re.compile(
    r"(?i)\bexit\s?_?code\"?\s?[:=]?\s?\"?(?P<code>\d{1,3})\b|[,;|\t]\s*(?P<cell>137)\b"
)
_RESTARTS = re.compile(r"(?i)\brestart(?:s|\s?_?count)\"?\s?[:=]\s?\"?(?P<n>\d{1,6})\b")
_AT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)")
_FINISHED = re.compile(r"(?i)\bfinished(?:at)?\"?\s?[:=]\s")
_WORDS = {
    "terminated",
    "with",
    "reason",
    "is",
    "was",
    "has",
    "in",
    "killed",
    "oomkilled",
    "state",
}
_NEXT_LINES = 3
"""Fields of the same state that follow on lines of their own."""


def read_words(messages: Sequence[Message], taken: Collection[int]) -> list[Row]:
    """Returns one row per container that was killed.

    Args:
        messages: all messages.
        taken: the numbers of lines that another reader understood.
    """
    rows: dict[tuple[object, ...], Row] = {}
    for at, message in enumerate(messages):
        if "OOMKilled" not in message.text or message.line_no in taken:
            continue
        if (
            "xitCode:" in message.text
            or _NOT.search(message.text)
            or not _ENDED.search(message.text)
        ):
            continue
        row = _row_of(message)
        for near in messages[at + 1 : at + 1 + _NEXT_LINES]:
            if near.line_no - message.line_no > _NEXT_LINES or "OOMKilled" in near.text:
                break
            row = _facts_of(near.text) | row
        key = tuple(
            row.get(name) for name in ("pod", "container", "logged_at", "restart_count")
        )
        rows.setdefault(key if any(key) else (message.line_no,), with_signal(row))
    return list(rows.values())


def _row_of(message: Message) -> Row:
    known = {
        "logged_at": message.logged_at,
        "namespace": message.namespace,
        "pod": message.pod,
        "container": message.container,
    }
    place = {"line_no": message.line_no, "oom_killed": True, "reason": "OOMKilled"}
    given = {name: value for name, value in known.items() if value is not None}
    at = _AT.search(message.text)
    dated = {"logged_at": json_values.iso_utc(at[0])} if at else {}
    return {**dated, **_cells(message.text), **_facts_of(message.text), **given, **place}


def _facts_of(text: str) -> Row:
    """Returns the names and numbers that a line has about a container."""
    row: Row = {}
    for pattern in (_NAMESPACE, _POD_NAMED, _CONTAINER_NAMED):
        if match := pattern.search(text):
            row |= {
                name: value
                for name, value in match.groupdict().items()
                if value and value not in _WORDS
            }
    if match := _EXIT.search(text):
        row["exit_code"] = numbers.whole(match["code"] or match["cell"])
    if match := _RESTARTS.search(text):
        row["restart_count"] = numbers.whole(match["n"])
    if _FINISHED.search(text) and (at := _AT.search(text)):
        row["finished_at"] = json_values.iso_utc(at[0])
    return row


def _cells(text: str) -> Row:
    """Returns pod, container and restarts of a row of a table without names."""
    cells = [cell.strip(' "') for cell in re.split(r"[,;|\t]", text)]
    row: Row = {}
    for before, cell, after in zip(["", *cells], cells, [*cells[1:], ""], strict=False):
        if _POD_CELL.fullmatch(cell) and "pod" not in row:
            row["pod"] = cell
            if after and cell.startswith(after):
                row |= {"container": after, "name": after}
        elif cell in ("Terminated", "OOMKilled") and before.isdigit():
            row.setdefault("restart_count", numbers.whole(before))
    return row
