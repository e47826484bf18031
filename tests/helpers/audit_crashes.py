"""Holds what a report says about ends of Go programs against the truth of `written_crashes`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from tests.helpers.traced import SIZE, mib
from tests.helpers.written_crashes import FOR_MEMORY, Program

Pair = tuple[object, object]


def audit(
    found: Sequence[Program], form: str, report: dict[str, Any], markdown: str
) -> list[tuple[str, object, object]]:
    """Returns what a report says that the ends contradict, with the check."""
    wrong = [("deaths", *pair) for pair in _deaths(found, form, report)]
    wrong += [("headline", *pair) for pair in _headline(found, form, report)]
    # All are 64-bit programs, as their addresses show, and the OOM killer killed none.
    wrong += [
        ("text", said, "not so")
        for said in re.findall(
            r"32-bit|OOM kill(?!er| is )|memory ran out|GOMEMLIMIT=", markdown
        )
    ]
    return wrong


def _deaths(  # noqa: C901  # several facts
    found: Sequence[Program], form: str, report: dict[str, Any]
) -> Iterator[Pair]:
    refused = [it for it in found if it.end in FOR_MEMORY]
    deaths = [death for death in report["post_mortems"] if death["proven"]]
    rows = report["runtime_fatal"]
    if not len(deaths) == len(rows) == len(refused):
        yield (len(deaths), len(rows)), len(refused)
        return
    traced = [it for it in found if it.traced]
    if len(report["processes"]) != len(traced):
        yield ("processes", len(report["processes"])), len(traced)
        return
    number_of = {it.name: number for number, it in enumerate(traced)}
    for it, death, row in zip(refused, deaths, rows, strict=True):
        # On Windows, the runtime does not print what is in use.
        in_use = None if it.end == "windows" else it.in_use
        sizes = row["requested_bytes"], row["in_use_bytes"]
        if sizes != (it.requested, in_use):
            yield (it.name, sizes), (it.requested, in_use)
        if form != "none" and it.name not in (death["victim"] or ""):
            yield death["victim"], it.name
        # Without names, a child that was killed may have ended before its parent.
        is_clear = form != "none" or all(other.end != "killed" for other in found)
        own = (None, number_of.get(it.name))
        if is_clear and death["process"] not in own:
            yield (it.name, death["process"]), number_of.get(it.name)
        if death["process"] is None and it.traced and form != "none":
            yield (it.name, "no process"), number_of[it.name]
        said = death["reading"][0]
        known = [size / (1 << 20) for size in (it.requested, in_use) if size]
        for value, unit in re.findall(SIZE, said):
            if not any(abs(mib(value, unit) - size) <= 0.006 * size for size in known):
                yield (it.name, value, unit), known
    for death in report["post_mortems"]:
        if not death["proven"] and not any(it.end == "killed" for it in found):
            yield death["kind"], "nobody was killed"


def _headline(  # several sentences
    found: Sequence[Program], form: str, report: dict[str, Any]
) -> Iterator[Pair]:
    verdict = report["verdict"]
    refused = [it for it in found if it.end in FOR_MEMORY]
    sentence = verdict["sentence"] if verdict else ""
    if ("got no more memory" in sentence) != bool(refused):
        yield sentence, [it.end for it in found]
    if refused and "killed" in sentence.replace("OOM killer", ""):
        yield sentence, "ended by the runtime"
    for it in found if form != "none" and refused else ():
        if (it.name in sentence) != (it in refused):
            yield sentence, (it.name, it.end)
