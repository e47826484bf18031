"""The notebooks: thin, cleared, and each of them runs."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

nbformat = pytest.importorskip("nbformat", reason="the extra [notebook] is not installed")
nbclient = pytest.importorskip("nbclient")

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MOST_LINES_OF_A_DEF = 3
SECONDS = 120
"""A cell may take that long on a machine that is busy with other tests; all take seconds."""

every = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def code_of(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_there_are_notebooks() -> None:
    assert [path.stem[:2] for path in NOTEBOOKS][:7] == [f"{n:02}" for n in range(1, 8)]


@every
def test_it_is_cleared(path: Path) -> None:
    for cell in code_of(read(path)):
        assert cell.outputs == []
        assert cell.execution_count is None


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
def test_it_runs_and_shows_something(path: Path) -> None:
    notebook = read(path)
    client = nbclient.NotebookClient(
        notebook, timeout=SECONDS, resources={"metadata": {"path": str(path.parent)}}
    )
    client.execute()
    shown = [output for cell in code_of(notebook) for output in cell.outputs]
    kinds = {kind for output in shown for kind in output.get("data", {})}
    assert "text/html" in kinds
    assert kinds & {"application/vnd.plotly.v1+json", "image/png"}
    said = [output.text for output in shown if output.output_type == "stream"]
    assert not [text for text in said if "Warning" in text]
