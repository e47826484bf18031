"""How far a text is a record's beginning, and where a rest completes it.

Told by skeletons: what stands before a seam and what comes after it, both without digits, must
make up the skeleton of a record. Only between digits is there a choice; `oddity` and `look`
help to make it.
"""

from __future__ import annotations

import math
import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from gctrace_analyzer.ingest.gctrace.grammar import MODERN, Field, Shape, Variant, any_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_NUMERIC = re.compile(r"[\d.]+")
# A number that may be half written.
_LOOSE = {"int": r"\d*", "sint": r"-?\d*", "dec": r"[\d.]*", "float": r"[-+\w.]*"}


def reach(text: str, shapes: tuple[Shape, ...]) -> int:
    """How many characters of `text` may be the beginning of a record."""
    matches = (beginning.match(text) for beginning in _beginnings(shapes))
    return max(match.end() for match in matches if match)


def seams(begin: str, rest: str, shapes: tuple[Shape, ...]) -> Iterator[tuple[int, str]]:
    """Each cut of `begin` at which `rest` completes a record, and that record."""
    bones = _NUMERIC.sub("", rest)
    seen = set()
    for skeleton in _skeletons(shapes):
        if not skeleton.endswith(bones):
            continue
        at = _past(begin, skeleton[: len(skeleton) - len(bones)])
        while at is not None and at not in seen:
            seen.add(at)
            record = begin[:at] + rest
            if whole_record(shapes).fullmatch(record):
                yield at, record
            at = at + 1 if begin[at : at + 1].isdigit() or begin[at : at + 1] == "." else None


@cache
def whole_record(shapes: tuple[Shape, ...]) -> re.Pattern[str]:
    """A whole record of one of the shapes."""
    return re.compile(any_of(shapes))


@lru_cache(1024)
def look(text: str) -> str:
    """How a line begins, digits and letters made alike."""
    return re.sub(r"[^\W\d_]", "a", re.sub(r"\d", "0", text))


def oddity(record: str) -> float:
    """How far a record's numbers are from what the runtime prints: 0 is quite usual."""
    matches = ((shape, re.fullmatch(shape.pattern, record)) for shape in MODERN)
    shape, match = next(((s, m) for s, m in matches if m), (None, None))
    if shape is None or match is None:
        return 0.0
    odd = sum(not _printable(f, match[f.name]) for f in shape.fields if match[f.name]) * 10.0
    odd += int(match["heap_start_mib"]) > int(match["heap_end_mib"]) + 1
    odd += int(match["heap_live_mib"]) > int(match["heap_end_mib"]) + 1
    for phase in ("stw_sweep_term", "stw_mark_term"):
        # The CPU of a pause is its length times the processors stopped.
        expected = float(match[f"{phase}_ms"]) * int(match["procs"])
        printed = float(match[f"{phase}_cpu_ms"])
        odd += min(abs(math.log((printed + 0.001) / (expected + 0.001))), 5)
    return odd


def cycle_num(record: str) -> int | None:
    """The number of the cycle in a record."""
    match = re.match(r"gc #?(\d+)", record)
    return int(match[1]) if match else None


def _past(text: str, bones: str) -> int | None:
    """Where `text` has spelt out `bones`, digits and dots aside; None if it does not."""
    at = 0
    for char in bones:
        while at < len(text) and text[at] != char and (text[at].isdigit() or text[at] == "."):
            at += 1
        if at == len(text) or text[at] != char:
            return None
        at += 1
    return at or None


@cache
def _skeletons(shapes: tuple[Shape, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(variant.skeleton for variant in _variants(shapes)))


@cache
def _variants(shapes: tuple[Shape, ...]) -> tuple[Variant, ...]:
    return tuple(variant for shape in shapes for variant in shape.variants)


@cache
def _beginnings(shapes: tuple[Shape, ...]) -> tuple[re.Pattern[str], ...]:
    """For each variant, a pattern that takes as much of its beginning as there is."""
    patterns = []
    for variant in _variants(shapes):
        steps: list[str] = []
        for part in variant.parts:
            if isinstance(part, Field):
                steps.append(_LOOSE.get(part.kind, r"\w*"))
            else:
                steps += map(re.escape, part)
        patterns.append(re.compile("(?:".join(["", *steps]) + ")?" * len(steps)))
    return tuple(patterns)


def _printable(part: Field, text: str) -> bool:
    """Whether the runtime would print this number so (fmtNSAsMS in runtime/mgc.go)."""
    if part.name == "start_s":
        return bool(re.fullmatch(r"\d+\.\d{3}", text))
    if part.kind == "dec":
        return bool(re.fullmatch(r"[1-9]\d+|\d\.\d|0\.\d\d|0\.0\d\d|0", text))
    return text == "0" or not text.startswith("0")
