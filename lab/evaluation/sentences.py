"""Lists every sentence that a report can print, with what it needs."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gctrace_analyzer.analysis.rules.diagnose import ALL_RULES
from gctrace_analyzer.analysis.thresholds import filled
from lab.own import ROOT

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from pathlib import Path

ABOUT = """Lists every sentence that a report can print, with what it needs.

Each function is followed by when it prints (its own description; of a finding, what it needs and
what would speak against it), and by its sentences with {} for figures.
"""
FOLDERS = ("analysis/rules", "analysis/metrics", "analysis/postmortem", "analysis/compare",
           "analysis/settings", "advise", "present/sections")  # fmt: skip
_FEWEST_WORDS = 4
"""Words. Shorter texts are labels and parts of sentences."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds a filter."""
    parser.add_argument("--only", default="", help="functions whose name contains this")


def run(given: argparse.Namespace) -> None:
    """Prints the list and how many sentences it has."""
    count = 0
    for name, needs, sentences in listed():
        if given.only in name:
            print(
                f"\n{name}\n  when: {needs}", *(f"  - {text}" for text in sentences), sep="\n"
            )
            count += len(sentences)
    print(f"\n{count} sentences and parts of sentences")


def listed() -> Iterator[tuple[str, str, list[str]]]:
    """Yields each function that prints sentences, what they need, and the sentences."""
    rules = {rule.function.__name__: rule for rule in ALL_RULES}
    package = ROOT / "gctrace_analyzer"
    for folder in FOLDERS:
        for path in sorted((package / folder).rglob("*.py")):
            place = path.relative_to(package).with_suffix("").as_posix()
            for function in _functions(path):
                sentences = list(_sentences(function))
                when = (ast.get_docstring(function) or "(not described)").partition("\n")[0]
                if rule := rules.get(function.name):
                    sentences = [rule.meaning, rule.advice, *sentences]
                    when = (
                        f"{filled(rule.condition)} Needs: {filled(rule.needs)}. Against it speaks: "
                        f"{rule.contradicted_by}."
                    )
                if sentences:
                    yield f"{place}.{function.name}", when, sentences


def _functions(path: Path) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            yield node


def _sentences(function: ast.FunctionDef) -> Iterator[str]:
    inner: set[ast.AST] = set()
    for node in (node for part in function.body for node in ast.walk(part)):
        if node in inner or not isinstance(node, ast.JoinedStr | ast.Constant):
            continue
        inner.update(ast.walk(node))
        text = _text(node)
        if len(text.split()) >= _FEWEST_WORDS and text != ast.get_docstring(
            function, clean=False
        ):
            yield text


def _text(node: ast.JoinedStr | ast.Constant) -> str:
    """Returns a text with {} for each figure in it."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    return "".join(
        str(part.value)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
        else "{}"
        for part in parts
    )
