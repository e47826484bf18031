"""The outputs of `gctrace-analyze fleet`."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from gctrace_analyzer.analysis.fleet.answers import answers
from gctrace_analyzer.cli import main
from gctrace_analyzer.fleets.fleet import fleet
from gctrace_analyzer.fleets.output import Output
from gctrace_analyzer.present.html.fleet_page import dumps
from tests.helpers.fleet import rows_of

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


def test_nothing_to_read_is_an_error_of_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fleet", "typo", "-o", str(tmp_path / "x")]) == 3
    assert "typo: no such file." in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_what_is_next_has_the_options_that_were_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = Path(SAMPLE).read_text()
    monkeypatch.chdir(tmp_path)
    for service in ("api", "web"):
        (tmp_path / service).mkdir()
        (tmp_path / service / "0.log").write_text(text)
    words = ["fleet", "*/*.log", "--id", "{service}/{pod}.log"]
    assert main(words) == 0
    text = " ".join(capsys.readouterr().out.split())
    typed = "gctrace-analyze fleet '*/*.log' --id '{service}/{pod}.log'"
    assert f"Next: {typed} --all {typed} -o fleet.html --reports reports" in text


def test_what_is_next_and_what_is_printed_are_commands_and_the_summary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = str(Path(SAMPLE).resolve())
    monkeypatch.chdir(tmp_path)
    rows, page = Path("x.parquet"), Path("p.html")
    assert main(["fleet", sample, "-o", str(rows)]) == 0
    assert f"gctrace-analyze fleet -o {rows} -o fleet.html" in capsys.readouterr().out
    assert main(["fleet", "-o", str(rows), "-o", str(page)]) == 0
    printed = capsys.readouterr().out
    assert "1 process" in printed
    assert f"Next: gctrace-analyze fleet -o {rows} --all\n" in printed
    assert main(["fleet", "-o", str(rows), "-o", str(page), "--all"]) == 0
    assert "Next:" not in capsys.readouterr().out
    assert main([str(rows)]) == 3
    assert f"gctrace-analyze fleet {rows}" in capsys.readouterr().err
    assert main(["fleet", str(rows), "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"]["sentence"]


def test_a_damaged_file_and_each_reason_are_in_the_summary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = gzip.compress(Path(SAMPLE).read_bytes())
    (tmp_path / "cut.log.gz").write_bytes(data[: len(data) // 2])
    (tmp_path / "noise.log").write_bytes(bytes(range(1, 256)) * 80)
    (tmp_path / "fake.log.gz").write_text("hello\n")
    (tmp_path / "web.log").write_text("GET / 200\n" * 50)
    assert main(["fleet", str(tmp_path), "--width", "120"]) == 0
    printed = capsys.readouterr().out
    assert "1 read only in part" in printed
    assert "not text" in printed
    assert "not gzip" in printed
    assert "50 lines" in printed


@pytest.mark.parametrize(
    ("wanted", "code", "said"),
    [
        ("gc_per_s>1", 1, "gc_per_s>1: 1 of 1 process, steady-go1.26"),
        ("gc_per_s>1000", 0, ""),
        ("finding:GC016", 0, ""),
        ("finding:info", 1, "finding:info: 1 of 1 process"),
        ("limit-thrash", 2, "Did you mean finding:limit-thrash?"),
    ],
)
def test_a_condition_is_checked_in_each_process(
    wanted: str, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fleet", SAMPLE, "--fail-on", wanted]) == code
    assert said in capsys.readouterr().err


def test_names_of_options_on_the_page_are_code() -> None:
    found = answers(fleet("samples/steady-go1.26.log").collect())
    assert "`" not in re.sub(r"<(script|style).*?</\1>", "", dumps(found), flags=re.S)
