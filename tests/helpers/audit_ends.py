"""Holds what a report says about ends of containers against the truth of `written_ends`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from tests.helpers.traced import SIZE, mib, milliseconds
from tests.helpers.written_ends import (
    HOST_MIB,
    NOT_GO,
    OF_PODS,
    SHOWS_LIMIT,
    Container,
    pod_name,
)

Pair = tuple[object, object]


def audit(
    found: Sequence[Container],
    tool: str,
    report: dict[str, Any],
    markdown: str,
    traced: Container | None = None,
    form: str = "",
) -> list[tuple[str, object, object]]:
    """Returns what a report says that the ends contradict, with the check."""
    text = re.sub(r"\\(?=[<>|_`*+#-])", "", markdown)
    wrong = [("rows", *pair) for pair in _rows(found, tool, report)]
    wrong += [("deaths", *pair) for pair in _deaths(found, tool, report, traced, form)]
    wrong += [("headline", *pair) for pair in _headline(found, tool, report, traced)]
    for it in _died(found, tool):
        if it.name not in text:
            wrong.append(("text", "not named", it.name))
    wrong += [("text", *pair) for pair in _text(found, tool, text, traced, form)]
    return wrong


def _died(found: Sequence[Container], tool: str) -> list[Container]:
    """Returns the containers with an end that may have been for memory, as the tool shows it."""
    ends = ("oom", "kill") if tool == "docker ps" else ("oom", "kill", "child")
    return [it for it in found if it.end in ends]


def _limit(it: Container, tool: str) -> int | None:
    return it.limit if tool in SHOWS_LIMIT else None


def _rows(found: Sequence[Container], tool: str, report: dict[str, Any]) -> Iterator[Pair]:
    rows = report["container_states"]
    if "events" in tool:
        return
    names = sorted(row["name"] for row in rows)
    shown = [
        it.name for it in found if tool != "docker ps" or it.end not in ("running", "done")
    ]
    if names != sorted(shown):
        yield names, sorted(shown)
        return
    by_name = {it.name: it for it in found}
    for row in rows:
        it = by_name[row["name"]]
        truth: dict[str, object] = {}
        if tool in SHOWS_LIMIT:
            # Docker prints 0 for no limit.
            truth["memory_limit_bytes"] = (it.limit or 0) * 1048576
            truth["restart_count"] = it.restarts
        if tool in OF_PODS:
            truth["pod"] = pod_name(it)
        if it.end != "running":
            truth["exit_code"] = it.code
        elif tool != "docker stats":
            truth["exit_code"] = None
        for name, value in truth.items():
            if (row[name] or 0) != (value or 0):
                yield (it.name, name, row[name]), value


def _deaths(  # noqa: C901  # several sentences
    found: Sequence[Container],
    tool: str,
    report: dict[str, Any],
    traced: Container | None,
    form: str,
) -> Iterator[Pair]:
    deaths, died = report["post_mortems"], _died(found, tool)
    victims = sorted(death["victim"] or "" for death in deaths)
    if victims != sorted(it.name for it in died):
        yield victims, sorted(it.name for it in died)
        return
    by_name = {it.name: it for it in died}
    for death in deaths:
        it = by_name[death["victim"]]
        proven = it.end in ("oom", "child") and tool != "docker ps"
        truth = {
            "proven": proven,
            "limit_mib": _limit(it, tool),
            "pod": pod_name(it) if tool in OF_PODS else None,
        }
        for name, value in truth.items():
            if death[name] != value:
                yield (it.name, name, death[name]), value
        if tool != "docker ps":
            at = datetime.fromisoformat(death["logged_at"])
            if abs((at - it.at).total_seconds()) > 1:
                yield (it.name, at), it.at
            ran = death["ran_s"]
            if ran is not None and abs(ran - it.ran_s) > 1.1:
                yield (it.name, "ran_s", ran), it.ran_s
        # Without a name, the only log may be that of the only victim.
        of_go = [name for name in victims if name not in NOT_GO]
        is_only = form in ("plain", "timestamps") and of_go == [it.name]
        is_own = traced is not None and traced.name == it.name
        if death["process"] is not None and not (is_own or is_only):
            yield (it.name, "is the process of the log"), traced and traced.name
        own = " ".join([*death["reading"], *death["advice"]])
        yield from _advice(it, tool, own)
        if death["process"] is None:
            yield from _sizes(it, tool, own)
        if death["subject"] == "The container" and it.end == "child":
            yield (death["subject"], it.name), "a process in it"
        for count, within in re.findall(
            r"restarted (\d+) times?(?: within ([\ddhms ]+))?", own
        ):
            if int(count) != it.restarts:
                yield (it.name, count), it.restarts
            if within and milliseconds(within) < 1000 * it.ran_s * 0.99:
                yield (it.name, within), it.ran_s


def _advice(it: Container, tool: str, text: str) -> Iterator[Pair]:
    settings = [int(size) for size in re.findall(r"GOMEMLIMIT=(\d+)MiB", text)]
    limit = _limit(it, tool)
    if it.name in NOT_GO and (settings or "written in Go, set" in text or "gctrace=1" in text):
        yield (it.name, "advice for Go", text), it.name
    for size in settings:
        if limit is None or size > 0.9 * limit:
            yield (it.name, f"GOMEMLIMIT={size}MiB"), limit
    text = text.replace("a group above it reached its limit", "").replace("under the limit", "")
    if (
        limit is None
        and tool in SHOWS_LIMIT
        and re.search(r"reached its (?:memory )?limit|raise (?:the|its) limit", text)
    ):
        yield (it.name, text), "no limit"
    if limit is not None and "Add the memory limit" in text:
        yield (it.name, "asks for the limit"), limit


def _sizes(it: Container, tool: str, text: str) -> Iterator[Pair]:
    """Yields sizes that are not those of this container."""
    limit = _limit(it, tool)
    known = [limit] if limit else []
    for value, unit in re.findall(SIZE, re.sub(r"GOMEMLIMIT=\d+MiB", "", text)):
        size = mib(value, unit)
        if not any(abs(size - each) <= 0.006 * each for each in known):
            yield (it.name, f"{value} {unit}", text), known


_MOST_NAMED = 3
"""Programs that a headline names; more are only counted."""


def _headline(  # noqa: C901  # several sentences
    found: Sequence[Container], tool: str, report: dict[str, Any], traced: Container | None
) -> Iterator[Pair]:
    verdict, died = report["verdict"], _died(found, tool)
    if verdict is None:
        if died:
            yield "no verdict", [it.name for it in died]
        return
    sentence, action = verdict["sentence"], verdict["action"] or ""
    if not died:
        if re.search("killed|137|memory ran out", sentence):
            yield sentence, "none died"
        return
    proven = [it for it in died if it.end in ("oom", "child") and tool != "docker ps"]
    first = proven or died
    is_of_death = re.search("killed|137", sentence)
    for it in first if is_of_death and len(first) <= _MOST_NAMED else ():
        if it.name not in sentence:
            yield sentence, it.name
    said = sentence.replace("the GC cycles in the input are those of ", "")
    for it in found if is_of_death else ():
        if it not in (*died, traced) and re.search(rf"\b{it.name}\b", f"{said} {action}"):
            yield (sentence, action), f"{it.name} did not die"
    if "memory ran out" in sentence and not proven:
        yield sentence, "nothing proves memory"
    if traced is None and len(proven) == 1:
        yield from _sizes(proven[0], tool, sentence)


def _text(  # noqa: C901  # several sentences
    found: Sequence[Container], tool: str, text: str, traced: Container | None, form: str
) -> Iterator[Pair]:
    by_name = {it.name: it for it in found}
    for value, unit, name in re.findall(
        rf"container limit {SIZE} \(state of the container, ([\w-]+)\)", text
    ):
        it = by_name.get(name)
        if (
            it is None
            or it.limit is None
            or abs(mib(value, unit) - it.limit) > 0.006 * it.limit
        ):
            yield (value, unit, name), it
        elif (
            traced
            and traced.limit != it.limit
            and not (
                # Without a name, the log may be that of the only one that was killed.
                [it.name]
                == [
                    other.name
                    for other in _died(found, tool)
                    if other.end == "oom" and other.name not in NOT_GO
                ]
                and (form == "plain" or (form == "timestamps" and it.is_up))
            )
        ):
            yield (value, unit, name), f"the log is of {traced.name}"
    for count in re.findall(r"(\d+) container states?", text):
        if "events" not in tool and int(count) > len(found):
            yield count, len(found)
    if tool == "docker stats":
        for name, it in by_name.items():
            for value, unit, of, of_unit in re.findall(
                rf"{name}[^.;]*? used {SIZE} of {SIZE}", text
            ):
                if abs(mib(value, unit) - it.used) > 0.006 * it.used:
                    yield (name, value, unit), it.used
                limit = it.limit or HOST_MIB
                if abs(mib(of, of_unit) - limit) > 0.006 * limit:
                    yield (name, of, of_unit), it.limit
