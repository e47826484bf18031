"""Counts code, and what there should be less of; the ceilings are in pyproject.toml."""

from __future__ import annotations

import ast
import io
import tokenize
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "gctrace_analyzer"
_PAGE_FILES = ("*.js", "*.css", "*.j2")
_NOT_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER,
}  # fmt: skip
# Inside each of these a name is used once, and it may be one from elsewhere: a command, a section
# and a plot are named after what they show.
_NAMED_AFTER_WHAT_THEY_SHOW = ("cli", "present/sections", "present/plots/kinds")


def ceilings() -> dict[str, int]:
    """Returns the ceiling of each count."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    table: dict[str, int] = settings["tool"]["ceilings"]
    return table


def counts() -> dict[str, int]:
    """Returns every count under the name of its ceiling."""
    return {name: count() for name, count in COUNTS.items()}


def table() -> str:
    """Returns every count with its ceiling, one per line."""
    highest = ceilings()
    return "\n".join(
        f"{name:24} {count:7,} of {highest[name]:7,}" for name, count in counts().items()
    )


def code_lines(source: str) -> int:
    """Returns the number of lines with code: no docstrings, comments and blank lines."""
    notes: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for inner in node.body:
                if _is_text(inner):
                    notes.update(range(inner.lineno, (inner.end_lineno or inner.lineno) + 1))
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NOT_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - notes)


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


@cache
def _modules() -> dict[Path, str]:
    return {
        path.relative_to(PACKAGE): path.read_text(encoding="utf-8")
        for path in sorted(PACKAGE.rglob("*.py"))
    }


@cache
def _nodes() -> Counter[str]:
    """Returns how often each name stands for a value, and each annotation."""
    seen: Counter[str] = Counter()
    for source in _modules().values():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Name):
                seen[node.id] += 1
            elif isinstance(node, ast.arg):
                seen[node.arg] += 1
            elif isinstance(node, ast.Subscript):
                seen[ast.unparse(node)] += 1
    return seen


def repeated_module_names() -> dict[str, list[str]]:
    """Returns the modules of each base name that stands for more than one."""
    places: dict[tuple[str, str], list[str]] = {}
    for path in _modules():
        folder = path.parent.as_posix()
        kind = folder if folder in _NAMED_AFTER_WHAT_THEY_SHOW else ""
        if not path.stem.startswith("__"):
            places.setdefault((kind, path.stem), []).append(path.as_posix())
    return {name: paths for (_, name), paths in places.items() if len(paths) > 1}


def _python_scripts() -> Iterator[str]:
    for path in sorted((ROOT / "scripts").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            data = path.read_bytes()
            if path.suffix == ".py" or data.startswith(b"#!/usr/bin/env python3"):
                yield data.decode()


def _lines(folder: Path, *patterns: str) -> int:
    paths = [path for pattern in patterns for path in folder.rglob(pattern)]
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


COUNTS: dict[str, Callable[[], int]] = {
    "package": lambda: sum(map(code_lines, _modules().values())),
    "scripts": lambda: sum(map(code_lines, _python_scripts())),
    "core": lambda: _lines(ROOT / "core" / "src", "*.rs"),
    "page": lambda: _lines(PACKAGE, *_PAGE_FILES),
    "found": lambda: _nodes()["found"],
    "each": lambda: _nodes()["each"],
    "dict-str-any": lambda: _nodes()["dict[str, Any]"],
    "repeated-module-names": lambda: len(repeated_module_names()),
}
