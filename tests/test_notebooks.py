"""The notebooks: thin, and each shows what a run of it shows."""

from __future__ import annotations

import ast
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import ROOT
from tests.helpers import notebook_runs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from jupyter_client.manager import KernelManager

if find_spec("nbclient") is None:
    pytest.skip("the extra [notebook] is not installed", allow_module_level=True)

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
ALONE = {"08_fleet"}
"""Notebooks with a kernel of their own: a fleet starts processes that import the main module."""
MOST_LINES_OF_A_DEF = 3
MOST_COLUMNS = 8

every = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@cache
def read(path: Path) -> Any:
    import nbformat  # It takes seconds to load, which other tests need not wait for.

    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]  # it has no types


def code_of(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_there_are_notebooks() -> None:
    assert [path.stem[:2] for path in NOTEBOOKS] == [f"{n:02}" for n in range(1, 12)]


@every
def test_its_first_cell_has_the_question_and_the_answer(path: Path) -> None:
    first = read(path).cells[0]
    assert first.cell_type == "markdown"
    assert first.source.startswith("# ")
    assert "**The question:**" in first.source
    assert "**The answer" in first.source


@every
def test_it_shows_and_does_not_compute(path: Path) -> None:
    for cell in code_of(read(path)):
        for node in ast.walk(ast.parse(cell.source)):
            if isinstance(node, ast.FunctionDef):
                assert node.end_lineno is not None
                assert node.end_lineno - node.lineno < MOST_LINES_OF_A_DEF
            assert not isinstance(node, ast.While)
            if isinstance(node, ast.Import):
                assert "re" not in {alias.name for alias in node.names}


@every
def test_it_ends_with_what_to_do(path: Path) -> None:
    headings = [cell.source for cell in read(path).cells if cell.source.startswith("## ")]
    assert any(word in headings[-1] for word in ("What to set", "What to do", "Tables for"))


@pytest.fixture(scope="module")
def kernel() -> Iterator[KernelManager]:
    with notebook_runs.shared_kernel() as started:
        yield started


@every
def test_it_shows_what_a_run_of_it_shows(path: Path, kernel: KernelManager) -> None:
    """After a change that is meant, `scripts/docs --notebooks` writes the new outputs."""
    shared = None if path.stem in ALONE else kernel
    committed, fresh = read(path), notebook_runs.executed(path, shared)
    assert list(notebook_runs.differences(committed, fresh)) == []
    shown = [output for cell in code_of(committed) for output in cell.outputs]
    kinds = {kind for output in shown for kind in output.get("data", {})}
    assert "text/html" in kinds
    assert "image/png" in kinds, "GitHub and nbconvert show no interactive figure"
    said = [output.text for output in shown if output.output_type == "stream"]
    assert not [text for text in said if "Warning" in text]


@every
def test_its_tables_are_narrow(path: Path) -> None:
    for cell in code_of(read(path)):
        for output in cell.outputs:
            head = output.get("data", {}).get("text/html", "").partition("</thead>")[0]
            if 'class="dataframe"' in head:
                assert head.count("<th") <= MOST_COLUMNS + 2, cell.source
