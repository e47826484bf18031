"""The architecture: imports point one way, and every fact has one home."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING

import pytest

import gctrace_analyzer
from tests.conftest import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

import ceilings

if TYPE_CHECKING:
    from pathlib import Path

PACKAGE = ROOT / "gctrace_analyzer"
ORDER = (
    ("units", "errors", "extras", "core", "files", "frozen", "schema"),
    ("ingest",),
    ("prometheus",),
    ("analysis",),
    ("advise",),
    ("present",),
    ("frames", "predicted"),
    ("run",),
    ("comparison",),
    ("live",),
    ("api",),
    ("program",),
    ("trials", "fleets", "testing"),
    ("cli",),
    ("__init__", "__main__"),
)
RANK = {name: rank for rank, names in enumerate(ORDER) for name in names}
MOST_LINES = 500
MOST_MODULES = 16
MODULES = sorted(PACKAGE.rglob("*.py"))
# Data, one row per line.
TABLES = {"ingest/gctrace/grammar.py", "schema.py", "analysis/thresholds.py"}


def named(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imports(path: Path, *, for_types: bool = False) -> list[str]:
    """Returns every imported module, at the top or inside a function.

    Args:
        path: the module.
        for_types: include imports that only type checkers see.
    """
    tree = parsed(path)
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    found = []
    for node in ast.walk(tree):
        if id(node) in typing_only and not for_types:
            continue
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "gctrace_analyzer":
            found += [f"gctrace_analyzer.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append(node.module)
    return found


def test_imports_point_one_way() -> None:
    for path in MODULES:
        here = RANK[named(path).split("/")[0].removesuffix(".py")]
        for module in imports(path):
            parts = module.split(".")
            if parts[0] == "gctrace_analyzer" and len(parts) > 1 and parts[1] in RANK:
                assert RANK[parts[1]] <= here, f"{named(path)} looks upstream at {module}"


def module_name(path: Path) -> str:
    name = named(path).removesuffix(".py").replace("/", ".").removesuffix("__init__")
    return f"gctrace_analyzer.{name}".rstrip(".")


def test_no_modules_import_each_other_in_a_circle() -> None:
    names = {module_name(path) for path in MODULES}
    arrows: dict[str, set[str]] = {}
    for path in MODULES:
        if path.name == "__init__.py":
            continue
        found = set()
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ImportFrom) and node.module:
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                found |= (inner & names) or ({node.module} & names)
        arrows[module_name(path)] = found - {module_name(path)}
    order = TopologicalSorter(arrows)
    order.prepare()  # raises CycleError, which names the circle


@pytest.mark.parametrize(
    "folder", sorted({path.parent for path in MODULES}), ids=lambda folder: folder.name
)
def test_a_folder_has_at_most_sixteen_modules(folder: Path) -> None:
    modules = [path.name for path in folder.glob("*.py") if not path.name.startswith("__")]
    assert len(modules) <= MOST_MODULES, sorted(modules)


def test_no_test_imports_another_test() -> None:
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for module in imports(path):
            assert not module.rpartition(".")[2].startswith("test_"), f"{path}: {module}"


def test_a_module_is_one_job() -> None:
    for path in MODULES:
        lines = len(path.read_text().splitlines())
        assert lines <= MOST_LINES or named(path) in TABLES, f"{named(path)}: {lines} lines"


@pytest.mark.parametrize("name", ceilings.COUNTS)
def test_a_count_is_at_most_its_ceiling(name: str) -> None:
    assert ceilings.COUNTS[name]() <= ceilings.ceilings()[name]


def test_every_ceiling_has_a_count() -> None:
    assert ceilings.ceilings().keys() == ceilings.COUNTS.keys()


def test_only_lines_with_code_count() -> None:
    source = '"""Of a module."""\n\nA = """two\nlines"""\n"""A note."""\n# A comment.\n\n'
    assert ceilings.code_lines(source) == 2
    function = 'def f(x: int,\n) -> int:\n    """One.\n\n    More.\n    """\n    return x  # as it is\n'
    assert ceilings.code_lines(function) == 3


def test_repeated_module_names_are_known() -> None:
    """A command, a section and a plot may be named after what they show."""
    repeated = ceilings.repeated_module_names()
    assert len(repeated) <= ceilings.ceilings()["repeated-module-names"], repeated


def test_no_public_function_is_hidden_by_a_module() -> None:
    top = {path.stem for path in PACKAGE.iterdir()}
    assert not top & set(gctrace_analyzer.__all__)


def test_only_the_edge_knows_other_frame_libraries() -> None:
    foreign = {"pandas", "pyarrow", "numpy", "matplotlib", "plotly"}
    for path in MODULES:
        assert not foreign & {module.split(".")[0] for module in imports(path)}, named(path)


@cache
def called(path: Path) -> frozenset[str]:
    """Every function that a module calls, as it is written."""
    return frozenset(
        ast.unparse(node.func) for node in ast.walk(parsed(path)) if isinstance(node, ast.Call)
    )


def test_json_of_inputs_passes_one_gate() -> None:
    for path in (PACKAGE / "ingest").rglob("*.py"):
        if named(path) != "ingest/json_values.py":
            assert not called(path) & {"json.loads", "json.load", "json.JSONDecoder"}, path


# `fleets.inputs` opens what is not local, and hands it to `ingest.sources`;
# `prometheus.connection` opens URLs.
OPENING = {
    "ingest/sources.py", "ingest/follow.py", "fleets/inputs.py", "prometheus/connection.py",
    "files.py", "program.py", "trials/guard.py", "trials/trial.py", "cli/screen.py",
    "cli/watch/command.py",
}  # fmt: skip


def test_only_sources_opens_inputs_and_only_the_command_line_prints() -> None:
    for path in MODULES:
        names = {name.rpartition(".")[2] for name in called(path)}
        assert named(path) in OPENING or "open" not in names, named(path)
        assert named(path).startswith("cli/") or "print" not in names, named(path)


def test_public_names_are_sorted_and_there() -> None:
    names = gctrace_analyzer.__all__
    assert names == sorted(names)
    assert all(hasattr(gctrace_analyzer, name) for name in names)


def modules_loaded_by(code: str) -> set[str]:
    show = "import sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{show}"], capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()[-1].split())


def loaded_by(code: str) -> set[str]:
    """The top-level modules loaded by a program."""
    return {name.split(".")[0] for name in modules_loaded_by(code)}


def test_importing_the_package_loads_no_library() -> None:
    assert not loaded_by("import gctrace_analyzer") & {"polars", "rich", "pandas", "numpy"}


def test_a_text_report_loads_no_library_it_does_not_show() -> None:
    code = "from gctrace_analyzer.cli import main\nmain(['samples/steady-go1.26.log'])"
    assert not loaded_by(code) & {"pandas", "pyarrow", "matplotlib", "plotly", "hypothesis"}


def test_a_word_is_explained_without_tables() -> None:
    code = "from gctrace_analyzer.cli import main\nmain(['explain', 'mark', 'assist'])"
    assert not loaded_by(code) & {"polars", "jinja2"}


def test_a_report_of_gctrace_loads_no_reader_of_anything_else() -> None:
    code = "from gctrace_analyzer.cli import main\nmain(['samples/steady-go1.26.log'])"
    loaded = modules_loaded_by(code)
    for package in ("ingest.evidence", "ingest.metrics", "ingest.memstats", "analysis.metrics"):
        inside = {name for name in loaded if name.startswith(f"gctrace_analyzer.{package}.")}
        assert len(inside) <= 6, sorted(inside)
    assert not loaded & {
        "gctrace_analyzer.advise.prediction.scaling",
        "gctrace_analyzer.analysis.checks",
        "gctrace_analyzer.analysis.metrics.dumps",
        "gctrace_analyzer.analysis.postmortem.post_mortems",
        "gctrace_analyzer.ingest.evidence.dispatch",
        "gctrace_analyzer.ingest.gctrace.torn",
        "gctrace_analyzer.present.plots.palette",
    }


def test_help_loads_no_frame_library() -> None:
    code = (
        "from gctrace_analyzer.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass"
    )
    assert "polars" not in loaded_by(code)
