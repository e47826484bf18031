"""The outputs of `gctrace-analyze fleet`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gctrace_analyzer.cli import main
from gctrace_analyzer.fleets.output import Output
from tests.helpers.fleet import rows_of

if TYPE_CHECKING:
    from pathlib import Path

SAMPLE = "samples/steady-go1.26.log"


def test_a_report_in_a_missing_folder_is_refused_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gctrace_analyzer.cli.fleet._rows", pytest.fail)
    assert main(["fleet", SAMPLE, "-o", str(tmp_path / "none" / "report.html")]) == 2
    assert "a file in an existing folder" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["report.HTML", "report.Csv"])
def test_the_suffix_of_a_report_may_be_upper_case(name: str, tmp_path: Path) -> None:
    rows = Output(str(tmp_path / "fleet.parquet"), {})
    rows.add(rows_of(SAMPLE), 1)
    report = tmp_path / name
    assert main(["fleet", "-o", str(tmp_path / "fleet.parquet"), "-o", str(report)]) == 0
    assert "1 process" in report.read_text() or SAMPLE in report.read_text()


def test_the_output_of_an_earlier_run_can_be_the_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "fleet.parquet"
    Output(str(folder), {}).add(rows_of(SAMPLE), 1)
    assert main(["fleet", f"{folder}/"]) == 0
    assert "1 file · 1 process" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nofolder/"], "nofolder/: no such folder."),
        ([SAMPLE, "--compare-with", SAMPLE], f"invalid value {SAMPLE!r} for --compare-with."),
        ([SAMPLE, "--widht", "60"], "Did you mean --width?"),
    ],
)
def test_errors_name_what_the_user_typed(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(["fleet", *words])
    except SystemExit as ended:
        code = int(ended.code or 0)
    assert code in (2, 3)
    assert said in capsys.readouterr().err
