"""Reads Kubernetes container states that a Go program prints as values: maps and API types.

`kubectl get pod -o go-template` prints maps; controllers log the types of k8s.io/api.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gctrace_analyzer.ingest import numbers
from gctrace_analyzer.ingest.evidence import kubernetes
from gctrace_analyzer.ingest.evidence.docker import with_signal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gctrace_analyzer.ingest.evidence.message import Message, Row

HINT = r"xitCode:-?\d+[ ,](?:finishedAt|Signal):"

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
