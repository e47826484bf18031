"""Texts that make a regular expression work hard, derived from the expression itself."""

from __future__ import annotations

import importlib
import pkgutil
import re
import time
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import ModuleType

_OF_CATEGORY = {
    sre.CATEGORY_DIGIT: "1",
    sre.CATEGORY_NOT_DIGIT: "a",
    sre.CATEGORY_SPACE: " ",
    sre.CATEGORY_NOT_SPACE: "a",
    sre.CATEGORY_WORD: "a",
    sre.CATEGORY_NOT_WORD: " ",
}


def patterns_of(package: ModuleType) -> dict[str, re.Pattern[str]]:
    """Returns the compiled text patterns at the top level of a package's modules, by name."""
    found: dict[str, re.Pattern[str]] = {}
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        module = importlib.import_module(info.name)
        for name, value in vars(module).items():
            if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
                found[f"{info.name}.{name}"] = value
    return found


def fragments(pattern: re.Pattern[str]) -> list[str]:
    """Returns the beginnings of a text that matches, each of its parts, and common characters."""
    parts = list(_parts(_parser.parse(pattern.pattern, pattern.flags)))
    beginnings = {"".join(parts[: end + 1]) for end in range(len(parts))}
    return sorted({*beginnings, *parts, "a", "1", " ", '"', "a.", "1.", "1 ", "a "} - {""})


def growth(pattern: re.Pattern[str], fragment: str, small: int, large: int) -> float:
    """Returns how many times longer a search takes in `large` characters than in `small`."""
    texts = [
        (fragment * (size // len(fragment) + 1))[:size] + "\x00" for size in (small, large)
    ]
    quick, slow = (_fastest(pattern, text) for text in texts)
    return slow / max(quick, 1e-4)


def _fastest(pattern: re.Pattern[str], text: str) -> float:
    best = float("inf")
    for _ in range(3):
        begin = time.perf_counter()
        pattern.search(text)
        best = min(best, time.perf_counter() - begin)
        if best < 1e-3:
            break
    return best


def _parts(nodes: Iterable[tuple[Any, Any]]) -> Iterator[str]:
    """Yields, for each part of an expression, a text that it matches."""
    for kind, value in nodes:
        if kind is sre.LITERAL:
            yield chr(value)
        elif kind is sre.NOT_LITERAL:
            yield "a" if value != ord("a") else "b"
        elif kind is sre.ANY:
            yield "a"
        elif kind is sre.IN:
            yield _one_of(value)
        elif kind in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            yield from list(_parts(value[2])) * min(max(value[0], 1), 8)
        elif kind is sre.SUBPATTERN:
            yield from _parts(value[3])
        elif kind is sre.ATOMIC_GROUP:
            yield from _parts(value)
        elif kind is sre.BRANCH:
            yield from max((list(_parts(branch)) for branch in value[1]), key=len)


def _one_of(members: list[tuple[Any, Any]]) -> str:
    kind, value = members[0]
    if kind is sre.NEGATE:
        return next(char for char in "a1 -" if ord(char) not in [v for _, v in members[1:]])
    if kind is sre.LITERAL:
        return chr(value)
    return chr(value[0]) if kind is sre.RANGE else _OF_CATEGORY[value]
