"""`--slo` and `--thresholds` on the command line, and the table in pyproject.toml."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gctrace_analyzer.cli.main import main
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

LOG = str(ROOT / "samples" / "steady-go1.26.log")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def report(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main([LOG, "--color", "never", *words]) == 0
    return capsys.readouterr().out


def test_service_levels_are_options(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = report(capsys, "--slo", "pause=2ms", "--slo", "gc_cpu=5%")
    assert "pauses ≤ 2 ms" in text
    assert "≤ 5 %" in text


def test_the_project_file_is_used(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "pyproject.toml").write_text(
        '[tool.gctrace-analyzer]\ngc_cpu_warn = 0.0001\n[tool.gctrace-analyzer.slo]\npause = "1ms"\n'
    )
    text = report(capsys)
    assert "pauses ≤ 1 ms" in text
    assert "\nGC takes" in text


def test_a_file_of_thresholds_needs_no_table(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "limits.toml").write_text('[slo]\npause = "1ms"\n')
    assert "pauses ≤ 1 ms" in report(capsys, "--thresholds", "limits.toml")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--slo", "pause"), "--slo"),
        (("--slo", "pause=2"), "a limit with its unit, such as pause=2ms"),
        (("--slo", "latency=2ms"), "--slo"),
        (("--thresholds", "none.toml"), "none.toml"),
    ],
)
def test_mistakes_are_named(
    folder: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str
) -> None:
    assert main([LOG, *words]) in (2, 3)
    assert message in capsys.readouterr().err
