"""The documentation site has every page, and the files around a release are valid."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.rules.registry import RULES
from gctrace_analyzer.cli.main import VERBS
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLES = ROOT / "docs" / "examples"
CONFIGURATION = ROOT / "scripts" / "site" / "mkdocs.yml"
LIBRARIES = ("material", "mkdocs", "mkdocs_jupyter", "mkdocstrings")

FOREIGN = re.compile(r"<(?:script|img|link|iframe)[^>]*(?:src|href)=[\"']?(?:https?:)?//[^>]*>")
"""What a page would load from another server."""

needs_mkdocs = pytest.mark.skipif(
    not all(find_spec(name) for name in LIBRARIES),
    reason="MkDocs is not installed: pip install '.[docs]'",
)


def load(path: Path) -> Any:
    return pytest.importorskip("yaml", reason="comes with MkDocs").safe_load(path.read_text())


def pages(nav: list[Any]) -> list[str]:
    """The paths of a navigation, in order."""
    found: list[str] = []
    for entry in nav:
        (value,) = entry.values()
        found += pages(value) if isinstance(value, list) else [value]
    return found


def test_the_container_image_copies_what_the_build_needs() -> None:
    text = (EXAMPLES / "Containerfile").read_text()
    copied = [
        word
        for line in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE)
        for word in line.split()
    ]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert all((ROOT / each).exists() for each in copied)
    assert {"pyproject.toml", "gctrace_analyzer", project["readme"]} <= set(copied)
    (extra,) = re.findall(r'"\.\[(\w+)\]"', text)
    assert extra in project["optional-dependencies"]
    (entry,) = re.findall(r'ENTRYPOINT \["([^"]+)"\]', text)
    assert entry in project["scripts"]


PICTURE = re.compile(r"!\[[^\]]+\]\((pictures/findings/gc\d+\.svg)\)")


def test_every_rule_has_an_example_and_every_picture_is_shown_and_small() -> None:
    text = (ROOT / "docs" / "findings.md").read_text()
    sections = text.split("\n## ")[1:]
    assert len(sections) == len(RULES)
    for section in sections:
        ends = ("No log of the repository shows it well.", "No chart shows it.", "![")
        assert sum(each in section for each in ends) == 1, section[:30]
    shown = {ROOT / "docs" / name for name in PICTURE.findall(text)}
    assert shown == set((ROOT / "docs" / "pictures" / "findings").glob("*"))
    assert len(shown) > 30
    for path in shown:
        picture = path.read_text()
        assert len(picture) <= 25 * 1024, path
        assert "prefers-color-scheme:dark" in picture
        assert str(ROOT) not in picture


@needs_mkdocs
def test_the_site_is_complete_and_no_link_is_broken(tmp_path: Path) -> None:
    """One test, because building takes several seconds. `--strict` fails at a broken link."""
    mkdocs = (sys.executable, "-m", "mkdocs", "build", "--strict", "-f", CONFIGURATION)
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        [*mkdocs, "-d", tmp_path], capture_output=True, text=True, check=False, env=quiet
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for page in pages(load(CONFIGURATION)["nav"]):
        name = re.sub(r"\.(md|ipynb)$", ".html", page).replace("README", "index")
        assert "</html>" in (tmp_path / name).read_text(), page
    assert (tmp_path / "search" / "search_index.json").stat().st_size > 100_000
    for path in tmp_path.rglob("*.html"):
        assert FOREIGN.findall(path.read_text()) == [], path
    findings = (tmp_path / "docs" / "findings.html").read_text()
    for rule in RULES.values():
        page, _, anchor = rule.page.partition("#")
        assert page == "docs/findings.md"
        assert f'id="{anchor}"' in findings
    described = re.findall(
        r'id="gctrace_analyzer[\w.]*\.(\w+)"', (tmp_path / "python.html").read_text()
    )
    assert set(gca.__all__) <= set(described)


def test_every_page_and_notebook_is_in_the_navigation() -> None:
    named = set(pages(load(CONFIGURATION)["nav"]))
    there = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("notebooks/*.ipynb")]
    assert {path.relative_to(ROOT).as_posix() for path in there} <= named


@pytest.mark.parametrize("name", ["nightly.yml", "tests.yml", "publish.yml"])
def test_the_workflows_run_scripts_that_exist(name: str) -> None:
    steps = [step for job in load(EXAMPLES / name)["jobs"].values() for step in job["steps"]]
    scripts = set(
        re.findall(r"scripts/[\w-]+", " ".join(step.get("run", "") for step in steps))
    )
    assert all((ROOT / script).exists() for script in scripts)
    assert all("uses" in step or "run" in step for step in steps)


def test_versions_and_requirements_are_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    recipe = load(EXAMPLES / "recipe.yaml")
    wanted = {each.partition(";")[0].replace(" ", "") for each in project["dependencies"]}
    wanted.add(f"python{project['requires-python']}")
    assert {each.replace(" ", "") for each in recipe["requirements"]["run"]} == wanted
    citation = load(ROOT / "CITATION.cff")
    assert citation["version"] == recipe["context"]["version"] == gca.__version__
    assert citation["license"] == recipe["about"]["license"] == project["license"]


@pytest.mark.skipif(
    not find_spec("argparse_manpage"), reason="needs argparse-manpage: pip install '.[release]'"
)
def test_every_command_has_a_man_page(tmp_path: Path) -> None:
    code = (
        "import runpy, sys; from pathlib import Path; sys.path.insert(0, 'scripts');"
        "runpy.run_path('scripts/release')['write_man_pages'](Path(sys.argv[1]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    names = {"gctrace-analyze.1", *(f"gctrace-analyze-{verb}.1" for verb in VERBS)}
    assert {path.name for path in tmp_path.iterdir()} == names - {"gctrace-analyze-help.1"}
    text = (tmp_path / "gctrace-analyze-compare.1").read_text()
    for heading in ("NAME", "SYNOPSIS", "DESCRIPTION", "EXAMPLES", "EXIT CODES"):
        assert f".SH {heading}\n" in text
    if shutil.which("groff"):
        for path in tmp_path.iterdir():
            shown = subprocess.run(
                ["groff", "-man", "-Tutf8", "-ww", path],
                capture_output=True,
                text=True,
                check=False,
            )
            assert (shown.returncode, shown.stderr) == (0, ""), path.name
