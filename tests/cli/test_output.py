"""What is printed: tables as CSV, and text as wide as the terminal."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

import polars as pl
import pytest

from gctrace_analyzer.cli import main
from gctrace_analyzer.cli.deliver import csv_text
from tests.conftest import ROOT
from tests.helpers.facts import log_of
from tests.helpers.programs import started


def test_no_text_in_safe_csv_is_a_formula() -> None:
    names = ["=cmd|' /C calc'!A0", "+1", "-x", "@SUM(A1)", "\tx", "api", None]
    frame = pl.DataFrame({"name": names, "change": [-1.5] * 7}).with_columns(
        kind=pl.col("name").cast(pl.Categorical)
    )
    plain = pl.read_csv(csv_text(frame, safe=False).encode())
    assert plain["name"].to_list() == names
    safe = pl.read_csv(csv_text(frame, safe=True).encode())
    expected = [f"'{each}" for each in names[:5] if each] + ["api", None]
    assert safe["name"].to_list() == safe["kind"].to_list() == expected
    assert safe["change"].to_list() == [-1.5] * 7


def test_lists_become_text() -> None:
    frame = pl.DataFrame(
        {
            "number": [1, 2, 3],
            "texts": [["a", "b"], [], None],
            "records": [[{"kind": "x"}, {"kind": "y"}], [], None],
        }
    )
    assert pl.read_csv(csv_text(frame, safe=False).encode()).to_dict(as_series=False) == {
        "number": [1, 2, 3],
        "texts": ["a; b", "", None],
        "records": ['{"kind":"x"}; {"kind":"y"}', "", None],
    }


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo terminals")
@pytest.mark.parametrize(
    ("columns", "least", "most"), [(40, 56, 60), (60, 56, 60), (100, 81, 100), (200, 101, 120)]
)
def test_60_to_120_columns_are_used(columns: int, least: int, most: int) -> None:
    # Relative, as the name of a file is not cut.
    log = Path("samples", "thrash-go1.19.log")
    code = (
        "import sys, fcntl, struct, termios\n"
        "fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack('HHHH', 50, int(sys.argv[1]), 0, 0))\n"
        "from gctrace_analyzer.cli import main\n"
        "sys.exit(main([sys.argv[2], '--color', 'never']))\n"
    )
    ours, theirs = os.openpty()
    with started(
        [sys.executable, "-c", code, str(columns), str(log)],
        stdout=theirs,
        cwd=ROOT,
        env={**os.environ, "TERM": "xterm", "COLUMNS": str(columns)},
    ) as child:
        os.close(theirs)
        printed = b""
        with contextlib.suppress(OSError):
            while piece := os.read(ours, 65536):
                printed += piece
        os.close(ours)
    assert child.returncode == 0
    longest = max(len(line.rstrip()) for line in printed.decode().splitlines())
    assert least <= longest <= most


@pytest.mark.parametrize(
    ("kind", "setting"),
    [
        ("env", "GOGC=100\nGOMEMLIMIT=230MiB\n"),
        ("k8s", 'env:\n  - name: GOGC\n    value: "100"\n'),
        ("systemd", "[Service]\nEnvironment=GOGC=100\n"),
    ],
)
def test_a_recommended_setting_is_printed_as_configuration(
    kind: str, setting: str, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = ["--memory-limit", "104MiB", "--container-limit", "256MiB"]
    assert main(["recommend", "samples/refill/service.log.gz", *facts, "-f", kind]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(setting)
    assert "a higher limit makes GC less frequent" in err


def test_without_a_recommendation_there_is_no_configuration(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["recommend", "samples/go1.4.log", "-f", "env"]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert "nothing to set: no recommendation: " in " ".join(err.split())


@pytest.mark.parametrize("command", ["recommend", "whatif"])
def test_predictions_are_a_page_that_says_first_what_to_set(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "samples/steady-go1.26.log", "-f", "html"]) == 0
    page = capsys.readouterr().out
    assert "GOGC=100" in page
    assert "80\N{NO-BREAK SPACE}% intervals" in page
    assert ("<b>Keep GOGC=100</b>" in page) == (command == "recommend")
    assert 'id="trade_off-' in page


def test_only_commands_that_have_something_to_say_are_suggested(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "run.log"
    other = tmp_path / "other.log"
    other.write_text(log_of(60).replace("0.02 ms clock", "0.03 ms clock"))
    for count, others, names in (
        (3, [], ""),
        (60, [], " · run recommend, whatif"),
        (3, [other], " · run recommend, whatif, compare A.log B.log"),
    ):
        log.write_text(log_of(count))
        assert main([str(log), *map(str, others)]) == 0
        assert f"Next: add --all or -o report.html{names}\n" in capsys.readouterr().out
    monkeypatch.chdir(tmp_path)
    assert main([log.name]) == 0
    command = "gctrace-analyze run.log --all -o report.html"
    assert capsys.readouterr().out.endswith(f"Next: {command}\n")
    assert main([other.name]) == 0
    command = "gctrace-analyze recommend other.log · also whatif, --all, -o report.html"
    assert capsys.readouterr().out.endswith(f"Next: {command}\n")
