"""The wheel in a clean environment, and the scripts of the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

import gctrace_analyzer as gca
from tests.conftest import ROOT, SAMPLES

if TYPE_CHECKING:
    from pathlib import Path

LOG = SAMPLES / "steady-go1.26.log"


def run(
    *words: str | Path, core: str = "off", **settings: Any
) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    clean["GCTRACE_ANALYZER_CORE"] = core
    return subprocess.run(
        words, capture_output=True, text=True, check=False, env=clean, **settings
    )


def built(folder: Path, core: str) -> Path:
    build = ("build", "--wheel", "--no-isolation", "--outdir", folder, ROOT)
    done = run(sys.executable, "-m", *build, core=core)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.glob("*.whl")
    return path


def created(folder: Path) -> Path:
    """Returns where the programs of a new environment are."""
    # Installing pip first takes as long as everything else: `pip` below is that of the tests.
    venv.create(folder)
    return folder / ("Scripts" if os.name == "nt" else "bin")


def pip(programs: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-m", "pip", "--python", programs / "python", *words)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("dist"), core="off")


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the programs are of an environment with the wheel and what it needs, no more."""
    programs = created(tmp_path_factory.mktemp("clean"))
    done = pip(programs, "install", "--quiet", "--no-compile", wheel)
    assert done.returncode == 0, done.stdout + done.stderr
    return programs


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    info = f"gctrace_analyzer-{gca.__version__}.dist-info"
    assert tops == {"gctrace_analyzer", info}
    assert {"gctrace_analyzer/py.typed", f"{info}/licenses/LICENSE"} <= set(names)
    assert wheel.name.endswith("-py3-none-any.whl")
    assert not any(name.startswith("gctrace_analyzer/_core.") for name in names)


def test_without_rust_the_wheel_is_built_without_the_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert built(tmp_path / "dist", core="").name.endswith("-py3-none-any.whl")
    build = ("build", "--wheel", "--no-isolation", "--outdir", tmp_path, ROOT)
    done = run(sys.executable, "-m", *build, core="require")
    assert done.returncode != 0
    assert "cargo was not found" in done.stdout + done.stderr


@pytest.mark.skipif(not shutil.which("cargo"), reason="cargo is not installed")
def test_with_rust_the_wheel_has_the_core(tmp_path: Path) -> None:
    wheel = built(tmp_path / "dist", core="")
    if wheel.name.endswith("-py3-none-any.whl"):
        pytest.skip("cargo could not build the core (is there no network?)")
    assert "-cp311-abi3-" in wheel.name
    zipfile.ZipFile(wheel).extractall(tmp_path / "there")
    shown = run(
        sys.executable, "-m", "gctrace_analyzer", "--version", core="", cwd=tmp_path / "there"
    )
    assert shown.stdout == f"gctrace-analyze {gca.__version__} (core: compiled)\n"
    # Linked to the library of one Python, it could not be loaded by others.
    core = next((tmp_path / "there").rglob("_core.*"))
    assert b"libpython" not in core.read_bytes()


def test_the_installed_command(installed: Path, tmp_path: Path) -> None:
    done = run(installed / "gctrace-analyze", LOG, "-o", "r.json", "-o", "r.csv", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert {path.name for path in tmp_path.iterdir()} == {"r.json", "r.csv"}
    page = run(installed / "gctrace-analyze", LOG, "-o", "r.html", cwd=tmp_path)
    assert (page.returncode, page.stderr) == (0, "")
    assert "<svg" in (tmp_path / "r.html").read_text()
    picture = run(installed / "gctrace-analyze", LOG, "-o", "r.png", cwd=tmp_path)
    assert picture.returncode == 2
    assert "pip install 'gctrace-analyzer[plot]'" in picture.stderr
    shown = run(installed / "gctrace-analyze", LOG, cwd=tmp_path)
    assert shown.stdout.startswith(f"{gca.read(LOG).summary()}\n\nNext: ")
    version = run(installed / "gctrace-analyze", "--version")
    assert version.stdout == f"gctrace-analyze {gca.__version__} (core: pure Python)\n"


def test_the_installed_library(installed: Path, tmp_path: Path) -> None:
    code = (
        "import sys, gctrace_analyzer as gca; run = gca.read(sys.argv[1]);"
        "print(run.summary().cycles); run.to_pandas()"
    )
    done = run(installed / "python", "-c", code, LOG, cwd=tmp_path)
    assert done.stdout == "33\n"
    assert done.stderr.endswith(
        "pandas is not installed.\n  pip install 'gctrace-analyzer[pandas]'\n"
    )
    assert pip(installed, "check").returncode == 0


@pytest.fixture(scope="module")
def lowest(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with the oldest versions that `pyproject.toml` allows, as others may require them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["pandas"], *extras["plot"]]
    oldest = [each.replace(">=", "==") for each in wanted if not each.startswith("gctrace")]
    programs = created(tmp_path_factory.mktemp("lowest"))
    only = ("--quiet", "--no-compile", "--only-binary", ":all:")
    done = pip(programs, "install", *only, *oldest, wheel)
    if done.returncode and "No matching distribution" in done.stderr:
        pytest.skip("the oldest versions have no packages for this Python")
    assert done.returncode == 0, done.stdout + done.stderr
    return programs


def test_the_oldest_versions_print_the_same(lowest: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from gctrace_analyzer.cli import main;"
        "print([main([log, *more]) for log in sys.argv[1:] for more in ([], ['-f', 'json'])])"
    )
    logs = [
        SAMPLES / name
        for name in ("together-go1.22.log", "leak-go1.26.log", "oom-journal.jsonl")
    ]
    mine, other = (
        run(python, "-c", code, *logs, cwd=tmp_path)
        for python in (sys.executable, lowest / "python")
    )
    assert mine.stdout.endswith("[0, 0, 0, 0, 0, 0]\n")
    assert (other.returncode, other.stderr) == (mine.returncode, mine.stderr)
    assert other.stdout == mine.stdout


def test_the_oldest_versions_draw_and_hand_over(lowest: Path, tmp_path: Path) -> None:
    command = lowest / "gctrace-analyze"
    done = run(command, LOG, "-o", "r.html", "-o", "r.png", "-o", "r.parquet", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    code = (
        "import sys, gctrace_analyzer as gca; run = gca.read(sys.argv[1]);"
        "print(len(run.to_pandas()), len(run.plot.timeline().data) > 3);"
        "print(gca.from_frame(run.to_pandas()).summary().cycles)"
    )
    found = run(lowest / "python", "-c", code, LOG, cwd=tmp_path)
    assert (found.stdout, found.stderr) == ("33 True\n33\n", "")


def test_trying_it_shows_the_report_and_says_where_the_results_lie() -> None:
    done = run(sys.executable, ROOT / "scripts" / "try", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert "GC CPU" in done.stdout
    assert "report.md, report.json, cycles.parquet: see try-out/" in done.stdout + done.stderr
    assert {"report.md", "report.json", "cycles.parquet"} <= {
        path.name for path in (ROOT / "try-out").iterdir()
    }
