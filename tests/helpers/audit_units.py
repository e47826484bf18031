"""Holds what a report says about ends of systemd units against the truth of `written_units`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from tests.helpers.traced import SIZE, mib
from tests.helpers.written_units import NOT_GO, Unit

Pair = tuple[object, object]
_HOST = (7353, 7756, 1843, 2048)
"""MiB. What systemd-oomd prints of the memory and swap of the host."""


def audit(
    form: str,
    found: Sequence[Unit],
    report: dict[str, Any],
    markdown: str,
    traced: Unit | None,
) -> list[tuple[str, object, object]]:
    """Returns what a report says that the ends contradict, with the check."""
    text = re.sub(r"\\(?=[<>|_`*+#-])", "", markdown)
    wrong = [("deaths", *pair) for pair in _deaths(form, found, report, traced)]
    wrong += [("headline", *pair) for pair in _headline(form, found, report)]
    if said := re.search(
        r"container limit [^(\n]*\(state of the container[^)]*\.service", text
    ):
        wrong.append(("text", said[0], "a unit"))
    return wrong


def _proven(it: Unit, form: str) -> bool:
    """Returns whether the input shows that memory was the reason."""
    if not it.is_for_memory:
        return False
    # Before 243, only the kernel's log shows it.
    return it.release >= 243 or it.end in ("pressure", "swap")


def _deaths(  # noqa: C901  # several facts
    form: str, found: Sequence[Unit], report: dict[str, Any], traced: Unit | None
) -> Iterator[Pair]:
    deaths = report["post_mortems"]
    victims = sorted(death["victim"] or "" for death in deaths)
    proven = {it.unit for it in found if _proven(it, form)}
    # An end by SIGKILL counts if its log is there, or nothing else is.
    possible = {it.unit for it in found if it.end in ("kill", "oom")} | proven
    if len(set(victims)) < len(victims) or not proven <= set(victims) <= possible:
        yield victims, (sorted(proven), sorted(possible))
        return
    by_name = {it.unit: it for it in found}
    for death in deaths:
        it = by_name[death["victim"]]
        limit = it.limit if "show" in form and it.end not in ("pressure", "swap") else None
        truth: dict[str, object] = {"proven": it.unit in proven, "killer": None}
        if it.end in ("pressure", "swap") and form != "show":
            truth["killer"] = "systemd-oomd"
        for name, value in truth.items():
            if death[name] != value:
                yield (it.unit, name, death[name]), value
        if death["limit_mib"] not in (None, it.limit if "show" in form else None):
            yield (it.unit, "limit", death["limit_mib"]), it.limit
        is_below = it.peak is not None and it.peak < (limit or 0)
        if limit and it.is_for_memory and death["limit_mib"] is None and not is_below:
            yield (it.unit, "no limit"), limit
        if form != "show" and death["logged_at"]:
            at = datetime.fromisoformat(death["logged_at"])
            if abs((at - it.at).total_seconds()) > 1.1:
                yield (it.unit, at), it.at
        if death["process"] is not None and (traced is None or traced.unit != it.unit):
            yield (it.unit, "is the process of the log"), traced and traced.unit
        own = " ".join([*death["reading"], *death["advice"]])
        yield from _said(it, own, form, is_traced=death["process"] is not None)
        if (
            it.end == "child"
            and death["subject"] != "A process of the unit"
            and "A process in" not in death["subject"]
        ):
            yield (it.unit, death["subject"]), "a process of the unit"


def _said(  # noqa: C901  # several sentences
    it: Unit, text: str, form: str, *, is_traced: bool
) -> Iterator[Pair]:
    """Yields what the post-mortem of a unit says that is not so."""
    limit = it.limit if "show" in form else None
    settings = [int(size) for size in re.findall(r"GOMEMLIMIT=(\d+)MiB", text)]
    if it.name in NOT_GO and (settings or "written in Go, set" in text or "gctrace=1" in text):
        yield (it.unit, "advice for Go", text), it.name
    for size in settings:
        if limit is None or size > 0.9 * limit:
            yield (it.unit, f"GOMEMLIMIT={size}MiB"), limit
    stated = text.replace("a group above it reached its limit", "")
    if limit is None and re.search(r"reached (?:its|the) limit|raise the limit", stated):
        yield (it.unit, text), "no limit"
    if (
        re.search(r"It reached its limit: [^(]*\.", text)
        and form != "show"
        and it.end in ("pressure", "swap")
    ):
        yield (it.unit, text), it.end
    whole = re.search(r"reached its limit: [\d.,]+ [MG]iB(?:\.|, and as)", text)
    if it.end == "child" and whole and "or its host" not in text:
        # Nothing shows whose memory ran out.
        yield (it.unit, text), "or its host"
    if re.search(r"has no memory limit", text) and it.limit is not None:
        yield (it.unit, text), it.limit
    known = [size for size in (limit, it.peak, *_HOST) if size]
    if not is_traced:
        for value, unit in re.findall(SIZE, re.sub(r"GOMEMLIMIT=\d+MiB", "", text)):
            in_mib = mib(value, unit)
            if not any(abs(in_mib - each) <= 0.006 * each for each in known):
                yield (it.unit, f"{value} {unit}", text), known
    for count in re.findall(r"restarted (\d+) times", text):
        if int(count) != it.restarts:
            yield (it.unit, count), it.restarts


def _headline(form: str, found: Sequence[Unit], report: dict[str, Any]) -> Iterator[Pair]:
    verdict = report["verdict"]
    proven = [it for it in found if _proven(it, form)]
    if verdict is None:
        if proven:
            yield "no verdict", [it.unit for it in proven]
        return
    sentence, action = verdict["sentence"], verdict["action"] or ""
    for it in proven if len(proven) <= 3 else ():
        if it.unit not in sentence:
            yield sentence, it.unit
    said = re.sub(r"GC cycles in the input are those of \S+", "", sentence)
    for it in found:
        is_dead = it.end not in ("done", "running", "panic")
        if not is_dead and it.unit in f"{said} {action}":
            yield (sentence, action), f"{it.unit} did not die"
    if "memory ran out" in sentence and not proven:
        yield sentence, "nothing proves memory"
    if re.search(r"\d+ times\b", re.sub(r"restarted \d+ times", "", sentence)):
        yield sentence, "once each"
