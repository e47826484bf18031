"""Texts that make a regular expression work hard, derived from the expression itself."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import time
from collections import Counter
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


Pattern = re.Pattern[str] | re.Pattern[bytes]
_CALL = re.compile(r"\b(\w+)\.(\w+)\(")
_CALLS = ("findall", "finditer", "sub", "split", "search", "match", "fullmatch")
_CALL_OF_RE = re.compile(rf"\bre\.(?:{'|'.join(_CALLS)})\(")
_COMMON = (
    "a",
    "1",
    " ",
    '"',
    ".",
    ":",
    ",",
    "(",
    ")",
    "[",
    "]",
    "/",
    "=",
    "-",
    "a.",
    "1.",
    "1 ",
    "a ",
)


def patterns_of(package: ModuleType) -> dict[str, tuple[Pattern, str]]:
    """Returns the patterns of a package's modules, by name, with how they are used.

    These are the compiled ones at the top level, alone or in a collection, and the literals
    that functions pass to `re`. Of several uses, the most expensive one is returned.
    """
    found: dict[str, tuple[Pattern, str]] = {}
    names = [
        info.name for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    modules = [importlib.import_module(name) for name in names if "__main__" not in name]
    # The compiled core has none.
    modules = [each for each in modules if str(each.__file__).endswith(".py")]
    sources = {module.__name__: inspect.getsource(module) for module in modules}
    calls = {name: Counter(_CALL.findall(source)) for name, source in sources.items()}
    for module in modules:
        for name, value in vars(module).items():
            patterns = list(_compiled(value))
            if not patterns:
                continue
            users = [each.__name__ for each in modules if vars(each).get(name) is value]
            used = {call for user in users for call in _CALLS if calls[user][name, call]}
            use = next((call for call in _CALLS if call in used), "search")
            for index, pattern in enumerate(patterns):
                place = f"{module.__name__}.{name}" + (f".{index}" if index else "")
                found[place] = pattern, use
        for line, call, literal in _literals(sources[module.__name__]):
            found.setdefault(f"{module.__name__}:{line}", (re.compile(literal), call))
    unique = {each: name for name, each in reversed(found.items())}
    return {name: found[name] for name in sorted(unique.values())}


def _compiled(value: object) -> Iterator[Pattern]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        yield from _compiled(tuple(value.values()))
    elif isinstance(value, tuple | list):
        for each in value:
            yield from _compiled(getattr(each, "compiled", each))


def _literals(source: str) -> Iterator[tuple[int, str, str | bytes]]:
    # Most modules pass no pattern to `re`, and parsing them all takes seconds.
    if not _CALL_OF_RE.search(source):
        return
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in _CALLS
            and ast.unparse(node.func.value) == "re"
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            yield node.lineno, node.func.attr, node.args[0].value  # type: ignore[misc]  # a text


def hard_texts(pattern: Pattern) -> Iterator[tuple[str, str]]:
    """Yields beginnings of texts that match, each with what may be repeated after it.

    A beginning is repeated itself, or followed by one of its parts or a common character.
    """
    source = pattern.pattern
    text = source.decode("latin-1") if isinstance(source, bytes) else source
    parts = list(_parts(_parser.parse(text, pattern.flags & ~re.UNICODE)))
    beginnings = {"".join(parts[: end + 1]) for end in range(len(parts))}
    alone = sorted({*beginnings, *parts, *_COMMON} - {""})
    yield from (("", each) for each in alone)
    for begin in sorted(beginnings - {""}):
        yield from ((begin, each) for each in _COMMON)


def seconds(pattern: Pattern, use: str, begin: str, repeated: str, chars: int) -> float:
    """Returns how long the use of a pattern takes on a text that does not match at its end."""
    text = begin + (repeated * (chars // len(repeated) + 1))[:chars] + "\x00"
    given: Any = text if isinstance(pattern.pattern, str) else text.encode()
    called = getattr(pattern, use if use in ("search", "match", "fullmatch") else "findall")
    start = time.thread_time()
    called(given)
    return time.thread_time() - start


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
