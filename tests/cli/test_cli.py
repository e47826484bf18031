"""The command line as people and scripts use it: exit codes, messages, outputs, pipes."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.checks import FigureCondition, condition
from gctrace_analyzer.analysis.summary import FIGURES
from gctrace_analyzer.cli import main
from gctrace_analyzer.cli.deliver import SUFFIXES
from gctrace_analyzer.cli.main import is_debugging, module_of
from gctrace_analyzer.cli.report import TABLES
from gctrace_analyzer.cli.screen import to_ascii
from gctrace_analyzer.present.plots.palette import PAGE
from tests.conftest import CORPUS
from tests.helpers.lines import LINES

if TYPE_CHECKING:
    from collections.abc import Sequence

STEADY = "samples/steady-go1.26.log"
TWO = "samples/restart-go1.26.log"
COMMAND = (sys.executable, "-m", "gctrace_analyzer")


def command(*words: str | Path, **settings: Any) -> subprocess.CompletedProcess[str]:
    """Runs a command; in this process if it has the input and environment of the tests."""
    if not settings:
        out, err = (io.TextIOWrapper(io.BytesIO()) for _ in range(2))
        with redirect_stdout(out), redirect_stderr(err):
            code = main([str(word) for word in words])
        printed = [each.read() for each in (out, err) if each.seek(0) == 0]
        return subprocess.CompletedProcess(words, code, *printed)
    return subprocess.run(
        [*COMMAND, *words], capture_output=True, text=True, check=False, timeout=60, **settings
    )


def complaint(
    capsys: pytest.CaptureFixture[str], words: Sequence[str | Path], code: int
) -> str:
    """Runs a command that fails with `code` and returns what it printed to standard error."""
    try:
        ended: Any = main([str(word) for word in words])
    except SystemExit as err:
        ended = err.code
    out, message = capsys.readouterr()
    assert (ended, out) == (code, "")
    assert "Traceback" not in message
    return message


@pytest.mark.parametrize("name", ["report", "recommend", "whatif", "compare", "fleet"])
def test_options_may_stand_between_files(name: str) -> None:
    for words in (["a", "--year", "2026", "-"], ["--year", "2026", "--", "a", "-c"]):
        args = import_module(module_of(name)).command_parser().parse_args(words)
        given = args.sides if name == "compare" else args.inputs
        assert (args.year, given) == (2026, ["a", words[-1]])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "usage: gctrace-analyze [options] FILE..."),
        (["whatif", STEADY, "--gogc", "100-400"], "Did you mean 100..400?"),
        (["measure", "gofmt", "-l"], "argument 'gofmt -l'; the program comes after --"),
        (["explain", STEADY], f"one in a file ({STEADY}:1)"),
        (
            ["measure"],
            "no PROGRAM given.\n  Expected the program to measure.\n  Try gctrace-analyze measure --help.",
        ),
        (["measure", "./bench"], "unexpected argument './bench'; the program comes after --"),
        (
            ["measure", "GOGC=100,200"],
            "no such file: GOGC=100,200.\n  Settings are options. Did you mean --gogc 100,",
        ),
        (["whatif", STEADY, "GOGC=200", "GOMEMLIMIT=1GiB"], "--gogc 200 --memory-limit 1GiB?"),
        ([STEADY, "GOGC=off"], "To try it:\n    gctrace-analyze whatif FILE --gogc off\n"),
        (
            ["compare", STEADY, "GOGC=200"],
            "Settings are options: --gogc 200, if the program ran with it.",
        ),
        (["fleet"], "no INPUT given.\n  Expected logs, such as 'logs/**/*.log'; or"),
        (["compare", STEADY], "the second SIDE is missing or empty.\n  Expected two sides"),
        ([STEADY, "recommend"], f"the command comes first: gctrace-analyze recommend {STEADY}"),
        (["explian"], "explian: no such command or file. Did you mean explain?"),
        (
            ["report", STEADY],
            "report: no such command or file. Did you mean gctrace-analyze FILE?",
        ),
        (["analyze", STEADY], "Did you mean gctrace-analyze FILE?"),
        (["post-mortem", STEADY], "Did you mean gctrace-analyze FILE?"),
        (["diff", STEADY, STEADY], "diff: no such command or file. Did you mean compare?"),
        (["help", "compre"], "Did you mean compare?"),
        ([STEADY, "--fromat", "csv"], "unknown option --fromat. Did you mean --format?"),
        ([STEADY, "--foo"], "unknown option --foo.\n  Try gctrace-analyze --help."),
        (["help", "--foo"], "unknown option --foo.\n  Try gctrace-analyze --help."),
        ([STEADY, "--json"], "unknown option --json. Did you mean -f json?"),
        ([STEADY, "--html"], "unknown option --html. Did you mean -o report.html?"),
        ([STEADY, "--csv"], "unknown option --csv. Did you mean -f csv?"),
        ([STEADY, "--aim", "cpu"], "--aim is an option of recommend"),
        (["help", "compar"], "invalid value 'compar' for COMMAND.\n  Did you mean compare?"),
        ([STEADY, "--container-limit", "2GBi"], "a size in MiB, Mi, M or MB, or the same with"),
        (["recommend", STEADY, "--limit", "2GiB"], "Did you mean --container-limit?"),
        (["recommend", STEADY, "--cpus=2"], "unknown option --cpus. Did you mean --cpu-limit?"),
        (["explain", "GC001", "--json"], "unknown option --json.\n"),
        (["recommend", STEADY, "--memory", "2GiB"], "Did you mean --memory-limit or"),
        ([STEADY, "-f", "xml"], "'xml' for --format.\n  Expected one of text, json, "),
        ([STEADY, "-o", "report.docx"], "Expected a file name ending in .txt"),
        (
            [STEADY, "-o", "absent/report.md"],
            "a file in an existing folder: absent does not exist",
        ),
        ([STEADY, "-o", "/proc/report.md"], "/proc/report.md: cannot be written"),
        ([STEADY, "--between", "soon"], "invalid value 'soon' for --between"),
        ([STEADY, "--between", "1h.."], "invalid value '3600s..' for --between"),
        (
            [STEADY, "--between", "1h..2h"],
            "'3600s..7200s' for --between.\n  Expected a range in which a cycle starts; the log covers 0.010 s to 1.9",
        ),
        ([STEADY, "--process", "7"], "Expected 0, the only process."),
        ([TWO, "--process", "7"], "Expected a process from 0 to 1."),
        ([STEADY, "--table", "oom_kils"], "Did you mean oom_kills?"),
        ([STEADY, "--table", "cylces"], "Did you mean cycles?"),
        ([STEADY, "--plot", "timline"], "Did you mean timeline?"),
        ([STEADY, "-f", "md", "--table", "pauses"], "'pauses' for --table.\n  Expected also"),
        ([STEADY, "-o", "run.json", "--table", "pauses"], "-f csv, -f jsonl, -o FILE.jsonl"),
        ([STEADY, "-o", "run.svg", "--table", "pauses"], "-f csv, -f jsonl, -o FILE.jsonl"),
        ([STEADY, "--plot", "pauses"], "-o FILE.png or -o FILE.svg"),
        ([STEADY, "--match", '{job="api"}'], "Expected a server, such as prometheus+http"),
        (["fleet", STEADY, "--since", "6h"], "prometheus+http://"),
        ([STEADY, "-o", "run.html", "--plot", "pauses"], "-o FILE.png or -o FILE.svg"),
        ([STEADY, "--kind", "logs"], "Did you mean log?"),
        ([STEADY, "--fail-on", "finding:limit-trash"], "Did you mean limit-thrash?"),
        ([STEADY, "--fail-on", "stw_p9_ms>2"], "Did you mean stw_p99_ms?"),
        (["explain", "limit-trash"], "Did you mean limit-thrash?"),
        (
            ["prometheus", STEADY],
            "for URL.\n  Expected the address of a server; to read this file",
        ),
        (["explain", "GC999"], "for the id of a finding.\n  Expected GC001 to GC0"),
        (["explain", "frobnicate"], "for LINE.\n  Expected a line in quotes"),
        ([STEADY, "--fail-on", "finding:GC999"], "for --fail-on.\n  Expected finding: "),
        (
            [STEADY, "--fail-on", "stw_p99>2"],
            "a figure of the summary: stw_p99_ms, stw_p50_ms, ",
        ),
        (["help", "qwxz"], "Expected a command (recommend, "),
        ([STEADY, "--gogc", "100", "--gogc", "200"], "invalid value '100,200' for --gogc"),
        ([STEADY, "--off-heap", "1MiB", "--off-heap", "2MiB"], "'1MiB,2MiB' for --off-heap"),
        (
            ["recommend", STEADY, "--aim", "memry"],
            "for --aim.\n  Did you mean memory?\n  Expected one of",
        ),
        (
            [STEADY, "--memory-limit", "90"],
            ".\n  Expected a size with its unit, such as",
        ),
        (
            [STEADY, "--container-limit", "2"],
            "for --container-limit.\n  Expected a size with its unit, such as",
        ),
        (["whatif", STEADY, "--memory-limit", "900M"], "Did you mean 900MiB?"),
        (["whatif", STEADY, "--memory-limit-now", "1g"], "for --memory-limit-now"),
        ([STEADY, "--gogc", "50%"], "Did you mean 50?"),
        ([STEADY, "--cpu-limit", "many"], "invalid value 'many' for --cpu-limit"),
        ([STEADY, "--year", "26"], "for --year.\n  Expected a whole number, 1970 or more"),
        ([STEADY, "--format"], "--format needs a value"),
        ([STEADY, "--fail-on", "stw_p99_ms"], "a condition such as"),
        ([STEADY, "--fail-on", "p99>3"], "a figure of the summary: stw_p99_ms, "),
        ([STEADY, "--fail-on", "cycles>3ms"], "a limit for cycles without a unit"),
    ],
)
def test_wrong_usage_is_one_message_and_exit_2(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in complaint(capsys, words, 2)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("absent.log", None, "absent.log: no such file."),
        ("folder", ..., "folder: a folder, not a log."),
        (".", ..., "(in Python, fleet("),
        ("empty.log", b"", "empty (0 bytes)"),
        ("other.log", b"listening on :8080\n", "First line: 'listening on :8080'"),
        ("noise.log", bytes(range(256)) * 20, "noise.log: "),
        ("noise.gz", b"\x1f\x8b\x08" + bytes(range(256)), "noise.gz: "),
        ("core", b"\x7fELF" + bytes(2000), "core: this is an executable"),
    ],
)
def test_unusable_input_is_one_message_and_exit_3(
    name: str,
    data: Any,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / name
    if data is ...:
        path.mkdir(exist_ok=True)
    elif data is not None:
        path.write_bytes(data)
    assert message in complaint(capsys, [path], 3)


def test_rejected_lines_alone_are_shown_with_exit_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cut.log"
    path.write_text(LINES["gc18"][:50] + "\n")
    assert main([str(path)]) == 3
    assert "cut short" in capsys.readouterr().out


def test_strict_names_file_and_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cut.log"
    path.write_text(f"{LINES['gc18']}\n{LINES['gc18'][:50]}\n")
    assert main([str(path)]) == 0
    capsys.readouterr()
    assert f"{path}:2: cut short" in complaint(capsys, [path, "--strict"], 3)


def test_a_truncated_gz_is_used_as_far_as_it_goes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import gzip

    path = tmp_path / "cut.gz"
    whole = gzip.compress(Path(STEADY).read_bytes())
    path.write_bytes(whole[: len(whole) // 2])
    assert main([str(path)]) == 0
    out, err = capsys.readouterr()
    assert 5 < int(re.search(r"(\d+) cycles", out)[1]) < 33  # type: ignore[index]
    assert "truncated" in out
    assert "cut.gz: truncated: the gzip data ends in the middle; everything before" in err


def test_no_escape_sequence_reaches_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "evil.log"
    line = LINES["gc18"]
    path.write_text(f"{line}\n\x1b]0;owned\x07{line[:60]}\x1b[2J\x9b31m\n")
    for words in (
        [path],
        [path, "--color=always"],
        [path, "--strict"],
        ["explain", f"{path}:2"],
    ):
        done = command(*words)
        assert not re.search(r"\x1b(?!\[[\d;]*m)|[\x07\x9b]", done.stdout + done.stderr)


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("cycles>30", 1),
        ("cycles<=33", 1),
        ("cycles==34", 0),
        ("gc_cpu_share>90%", 0),
        ("gc_cpu_share>0.1%", 1),
        ("stw_p99_ms>1us", 1),
        ("stw_p99_ms>1s", 0),
        ("span_s >= 1000ms", 1),
        ("live_heap_max_mib<1GiB", 1),
        ("live_heap_growth_mib_per_h<1", 1),
    ],
)
def test_fail_on(condition: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([STEADY, "--fail-on", condition]) == code
    err = capsys.readouterr().err
    assert bool(err) == bool(code)
    assert condition in err or not err


def test_a_check_that_the_log_cannot_answer_never_passes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    unknown, held = "gc_per_s>1", "cycles>1"
    for conditions, code in (((unknown,), 3), ((unknown, held), 1), ((held, unknown), 1)):
        words = [word for each in conditions for word in ("--fail-on", each)]
        assert main(["samples/go1.4.log", *words]) == code
        assert "gc_per_s is unknown for this log" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "limit"),
    [("stw_max_ms > 0.5s", 500), ("heap_peak_mib>1GiB", 1024), ("alloc_mib_per_s>300", 300)],
)
def test_a_condition_is_read_in_the_unit_of_its_figure(text: str, limit: float) -> None:
    found = condition(text, FIGURES)
    assert isinstance(found, FigureCondition)
    assert found.limit == limit


def test_every_suffix_writes_what_the_library_gives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [tmp_path / f"report{suffix}" for suffix in SUFFIXES]
    words = [word for path in paths for word in ("-o", str(path))]
    assert main([TWO, *words]) == 0
    assert capsys.readouterr() == ("", "")
    assert sorted(tmp_path.iterdir()) == sorted(paths)
    (tmp_path / "plain").touch()
    run = gca.read(TWO)
    assert (tmp_path / "report.txt").read_text() == f"{run.summary()}\n"
    summary = json.loads((tmp_path / "report.json").read_text())["summary"]
    assert summary["cycles"] == run.summary().cycles == 69
    assert pl.read_parquet(tmp_path / "report.parquet").equals(run.cycles)
    read_back = gca.from_frame(pl.read_csv(tmp_path / "report.csv"))
    for name, figure in run.summary().to_dict().items():
        assert read_back.summary().to_dict()[name] == (
            pytest.approx(figure, rel=1e-12) if isinstance(figure, float) else figure
        )
    assert (tmp_path / "report.jsonl").read_text().count("\n") == 69
    assert (tmp_path / "report.md").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_rows_alone_need_no_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_run: gca.Run) -> None:
        raise AssertionError

    monkeypatch.setattr(gca.Run, "advice", property(fail))
    assert main([TWO, "-o", str(tmp_path / "cycles.parquet")]) == 0


@pytest.mark.parametrize("table", TABLES)
def test_every_table_in_every_row_format(
    table: str, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    rows = len(gca.read(TWO).table(table))  # type: ignore[arg-type]  # one of TABLES
    path = tmp_path / "table.parquet"
    assert main([TWO, "--table", table, "-o", str(path)]) == 0
    assert len(pl.read_parquet(path)) == rows
    assert main([TWO, "--table", table]) == 0
    assert capsysbinary.readouterr().out.count(b"\n") == rows + 1
    assert main([TWO, "--table", table, "-f", "jsonl"]) == 0
    assert capsysbinary.readouterr().out.count(b"\n") == rows


def test_a_table_needs_only_one_format_that_has_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, picture = tmp_path / "run.html", tmp_path / "run.svg"
    words = [
        "-o",
        str(page),
        "-o",
        str(picture),
        "--plot",
        "mmu",
        "-f",
        "csv",
        "--table",
        "mmu",
    ]
    assert main([STEADY, *words]) == 0
    assert capsys.readouterr().out.startswith("process,window_ms")
    assert "Minimum mutator utilization" in picture.read_text()
    assert page.exists()


def test_format_and_output_together_print_and_save(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main([STEADY, "-f", "json", "-o", str(tmp_path / "r.md")]) == 0
    assert json.loads(capsysbinary.readouterr().out)["schema_version"] == 1
    assert (tmp_path / "r.md").read_text().startswith("## ")


def test_an_output_that_fails_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.md"
    path.write_text("old")

    def interrupted(_: Any) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("gctrace_analyzer.present.markdown.dumps", interrupted)
    assert main([STEADY, "-o", str(path)]) == 130
    assert [file.read_text() for file in tmp_path.iterdir()] == ["old"]


@pytest.mark.parametrize(
    ("time", "options", "arguments"),
    [
        ("2026-02-03 02:30:00", "--tz", "`tz`"),
        ("Feb  3 02:30:00 host api[7]:", "--year and --tz", "`year` and `tz`"),
    ],
)
@pytest.mark.parametrize("verb", [[], ["watch"]])
def test_notes_name_options_as_they_are_typed(
    time: str,
    options: str,
    arguments: str,
    verb: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = tmp_path / "local.log"
    log.write_text(
        "".join(f"{time} {line}\n" for line in Path(STEADY).read_text().splitlines())
    )
    if verb:
        done = command("watch", "-", input=log.read_text())
        shown = done.stdout + done.stderr
    else:
        assert main([str(log)]) == 0
        shown = capsys.readouterr().out
    assert f"set {options} to date them" in " ".join(shown.split())
    assert arguments not in shown
    assert f"set {arguments} to date them" in str(gca.read(log).summary().warnings)


def test_between_and_process_narrow_everything(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    def document(*words: str) -> dict[str, Any]:
        assert main([TWO, "-f", "json", *words]) == 0
        return dict(json.loads(capsysbinary.readouterr().out))

    whole = document()
    second = document("--process", "1")
    assert second["summary"] == whole["processes"][1]["summary"]
    late = document("--process", "1", "--between", "0.5s..1s")
    assert 0 < late["summary"]["cycles"] < second["summary"]["cycles"]
    assert late["summary"]["span_s"] < 0.6
    open_ended = document("--between", "0.5..")
    assert open_ended["summary"]["cycles"] < whole["summary"]["cycles"]


def test_standard_input_and_parts_in_order() -> None:
    data = Path(STEADY).read_bytes()
    piped = command("-", "-f", "json", input=data.decode())
    named = command(STEADY, "-f", "json")
    assert json.loads(piped.stdout)["summary"] == json.loads(named.stdout)["summary"]
    assert command("-", input=data.decode()).stdout.startswith("<stdin> · ")
    first, second = "samples/leak-go1.26.log", "samples/steady-go1.26.log"
    both = json.loads(command(first, second, "-f", "json").stdout)
    assert [source["name"] for source in both["sources"]] == [first, second]
    assert [row["cycles"] for row in both["processes"]][1] == 33


def test_one_part_without_records_is_only_a_warning(tmp_path: Path) -> None:
    part = tmp_path / "quiet.log"
    part.write_text("nothing here\n")
    done = command(STEADY, part)
    assert done.returncode == 0
    assert f"{part}: 1 line, none of them gctrace output" in done.stderr


@pytest.mark.parametrize("kind", ["text", "csv", "json"])
def test_a_closed_pipe_ends_silently(kind: str) -> None:
    writer = subprocess.Popen(
        [*COMMAND, STEADY, "-f", kind], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert writer.stdout
    assert writer.stderr
    writer.stdout.close()
    assert writer.stderr.read() == b""
    assert writer.wait() == 0
    writer.stderr.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
@pytest.mark.parametrize("kind", ["text", "csv", "json"])
def test_a_full_disk_is_one_message(kind: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*COMMAND, STEADY, "-f", kind], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 2
    assert done.stderr == b"gctrace-analyze: standard output: No space left on device\n"


def test_interrupted_while_waiting_for_input() -> None:
    reader = subprocess.Popen([*COMMAND, "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert reader.stdin
    # More than a pipe holds: once it is written, the reader is at work.
    reader.stdin.write(Path(STEADY).read_bytes() * 40)
    reader.stdin.flush()
    time.sleep(0.5)
    reader.send_signal(signal.SIGINT)
    reader.stdin.close()
    assert reader.wait(10) == 130
    assert reader.stderr
    assert reader.stderr.read() == b""
    reader.stderr.close()


def on_a_terminal(*words: str, **env: str) -> str:
    """What the command shows on a terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update({"TERM": "xterm-256color", "COLORTERM": "", **env})
        os.execv(sys.executable, [*COMMAND, *words])
    shown = b""
    try:
        while piece := os.read(terminal, 65536):
            shown += piece
    except OSError:
        pass  # how Linux says that the other end is closed
    os.waitpid(pid, 0)
    os.close(terminal)
    return shown.decode()


def test_colours_on_a_terminal_only() -> None:
    plain = command(STEADY).stdout
    assert "\x1b" not in plain
    assert "\x1b" in command(STEADY, "--color", "always").stdout
    assert "\x1b" in command(STEADY, env={**os.environ, "FORCE_COLOR": "1"}).stdout
    coloured = on_a_terminal(STEADY)
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured).replace("\r\n", "\n") == plain
    assert "\x1b" not in on_a_terminal(STEADY, "--color", "never")
    assert not re.search(r"\x1b\[(?:3|9)\d", on_a_terminal(STEADY, NO_COLOR="1"))


THRASHING = "samples/thrash-go1.19.log"
VERDICT = re.compile(r"\x1b\[([\d;]*)mGOMEMLIMIT is too low")


class Terminal(io.StringIO):
    """What a terminal gets."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("words", "env", "color"),
    [
        ([], {}, "1;31"),
        (["--theme", "light"], {}, "1;38;5;130"),
        (["--theme", "dark"], {}, "1;38;5;209"),
        ([], {"COLORFGBG": "0;15"}, "1;38;5;130"),
        ([], {"COLORFGBG": "15;default;0"}, "1;38;5;209"),
        ([], {"COLORFGBG": "default;default"}, "1;31"),
        (["--theme", "dark"], {"COLORFGBG": "0;15"}, "1;38;5;209"),
        (["--theme", "light"], {"TERM": "xterm"}, "1;31"),
        (["--theme", "light"], {"NO_COLOR": "1"}, "1"),
        (["--theme", "light", "--color", "always"], {"NO_COLOR": "1"}, "1;38;5;130"),
    ],
)
def test_colours_fit_the_background(
    words: list[str], env: dict[str, str], color: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"TERM": "xterm-256color", "COLORTERM": "", **env}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", shown := Terminal())
    assert main([THRASHING, *words]) == 0
    found = VERDICT.search(shown.getvalue())
    assert found
    assert found[1] == color


def test_a_terminal_with_all_colours_gets_those_of_the_theme() -> None:
    shown = on_a_terminal(THRASHING, "--theme", "light", COLORTERM="truecolor")
    found = VERDICT.search(shown)
    assert found
    assert found[1] == "1;38;2;176;58;0"


def test_a_theme_does_not_colour_what_is_not_a_terminal() -> None:
    assert "\x1b" not in command(STEADY, "--theme", "dark").stdout
    assert "\x1b" not in on_a_terminal(STEADY, "--theme", "dark", "--color", "never")


def test_pages_and_plots_are_written_in_the_theme(tmp_path: Path) -> None:
    page, plot, sides = (tmp_path / name for name in ("run.html", "run.svg", "sides.html"))
    assert main([STEADY, "--theme", "dark", "-o", str(page), "-o", str(plot)]) == 0
    assert main(["compare", STEADY, TWO, "--theme", "light", "-o", str(sides)]) == 0
    assert '<html lang="en" data-theme="dark">' in page.read_text()
    assert '<html lang="en" data-theme="light">' in sides.read_text()
    assert PAGE["dark"]["ground"] in plot.read_text()
    assert main([STEADY, "-o", str(page)]) == 0
    assert '<html lang="en">' in page.read_text()


def test_an_internal_error_is_reported_as_a_bug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        msg = "off by one"
        raise ValueError(msg)

    monkeypatch.setattr("gctrace_analyzer.api.read", broken)
    assert "a bug in gctrace-analyzer: ValueError: off by one" in complaint(
        capsys, [STEADY], 70
    )
    assert main([STEADY, "--debug"]) == 70
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("asked", ["explain", "explain 'gc 1'", "explain samples/x.log:1"])
def test_explain_reports_what_it_cannot_explain(
    asked: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word.strip("'") for word in asked.split(" ", 1)]
    code = 2 if asked == "explain" else 3
    assert complaint(capsys, words, code)


def test_wrong_outputs_are_refused_before_anything_is_read(
    capsys: pytest.CaptureFixture[str],
) -> None:
    begin = time.monotonic()
    complaint(capsys, ["-", "-o", "x.docx"], 2)
    assert time.monotonic() - begin < 5


def test_the_library_leaves_the_umask_and_the_signal_handlers_alone(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
        assert main([STEADY, "-o", str(tmp_path / "r.md")]) == 0
        assert os.umask(0o077) == 0o077
        assert {number: signal.getsignal(number) for number in handlers} == handlers
    finally:
        os.umask(before)


def test_recommend_prints_the_settings_and_the_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["recommend", STEADY]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{STEADY} · ")
    assert "now     GOGC=100" in out
    assert "\n  Why " in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("kind", ["csv", "json", "jsonl"])
def test_recommend_gives_the_rows_of_the_library(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["recommend", STEADY, "--aim", "memory", "-f", kind]) == 0
    out = capsys.readouterr().out
    file = io.BytesIO(out.encode())
    if kind == "csv":
        rows = pl.read_csv(file)
    else:
        rows = pl.read_json(file) if kind == "json" else pl.read_ndjson(file)
    expected = gca.read(STEADY).recommend(aim="memory")
    assert rows["rank"].to_list() == expected["rank"].to_list()
    assert rows["why"].to_list() == expected["why"].to_list()


@pytest.mark.parametrize("words", [["whatif"], ["recommend"], []])
def test_a_go_version_that_never_printed_such_lines_is_named(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, STEADY, "--go-version", "1.5"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.count("so Go 1.5, which was given, is ignored.") == 1
    assert main([*words, STEADY, "--go-version", "1.26"]) == 0
    assert "ignored" not in capsys.readouterr().out


def test_recommend_and_whatif_use_the_facts_that_are_given(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["recommend", STEADY, "--container-limit", "80MiB", "-f", "csv"]) == 0
    limits = pl.read_csv(io.StringIO(capsys.readouterr().out))["memory_limit_mib"]
    assert limits.drop_nulls().len()
    assert main(["whatif", STEADY, "--gogc", "100", "--gogc-now", "off", "-f", "csv"]) == 0
    row = pl.read_csv(io.StringIO(capsys.readouterr().out)).row(0, named=True)
    assert row["gogc"] == 100


def test_a_log_without_cycles_gives_no_recommendation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cut.log"
    path.write_text(LINES["gc18"][:50] + "\n")
    assert main(["recommend", str(path)]) == 3
    assert "No recommendation" in capsys.readouterr().out


def test_one_scrape_gives_no_recommendation_but_says_what_to_add(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "metrics.txt"
    path.write_text("go_memstats_heap_inuse_bytes 6e7\ngo_gc_duration_seconds_count 42\n")
    assert main(["recommend", str(path)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "No recommendation: the input does not show what GC costs now." in shown
    assert "record several dumps with their times" in shown


def test_explain_knows_findings_by_id_and_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for query in ("GC016", "gc016", "limit-thrash", "limit thrash"):
        assert main(["explain", query]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0].startswith("GC016 limit-thrash\n")
    assert len(set(printed)) == 1


def test_explain_shortens_a_control_group(capsys: pytest.CaptureFixture[str]) -> None:
    group = f"/kubepods.slice/kubepods-burstable.slice/cri-containerd-{'a' * 64}.scope"
    line = f"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset={'a' * 64},mems_allowed=0,"
    assert (
        main(["explain", f"{line}oom_memcg={group},task_memcg={group},task=api,pid=9,uid=0"])
        == 0
    )
    figures = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert any(line.startswith("  container aaaaaaaaaaaa ") for line in figures)
    assert max(map(len, figures)) <= 80


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("samples/thrash-go1.19.log:106", "Mark assists were 41.5 % of its GC CPU"),
        ("samples/steady-go1.26.log:77", "Nothing unusual in this cycle."),
        # The line names a container, of which those around it say how it ended.
        ("samples/describe-pod.txt:7", "The container orders was killed"),
        ("samples/oom-journal.jsonl:22", "The program leakd was killed"),
        # The limit is on another line.
        (
            "samples/oom-journal.jsonl:22",
            "It reached the limit of /system.slice/leakd.service: 512 MiB.",
        ),
        # Of several kills, the one of the line.
        (
            f"{CORPUS}/inputs/kernel_oom/k5.x-parenthesised-comm.log:3",
            "OOM kill: (resolved). The",
        ),
        # Assists were 40 % of GC CPU, but 0.7 % of the CPU while marking.
        ("samples/steady-go1.26.log:5", "Nothing unusual in this cycle."),
    ],
)
def test_explain_says_first_what_a_line_means(
    place: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", place]) == 0
    assert says in " ".join(capsys.readouterr().out.split("\n\n")[1].split())


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        # One base for both shares, and idle marking named as what it is.
        (
            "samples/steady-go1.14.log:4",
            "GC CPU of this cycle: mark assists 95.1 %, background workers 1.4 %",
        ),
        (
            "samples/steady-go1.14.log:4",
            "Idle CPUs did 78.7 % of the marking, which GC CPU does",
        ),
        ("scvg: 0 MB released", "0 MiB returned to the system in this step"),
        ("scvg: inuse: 3", "3 MiB heap spans in use"),
        ("scvg7: inuse: 3, idle: 4", "7 number of the periodic scavenge"),
        ("idle", "marking on CPUs that had nothing else to do"),
        ("promise", "It held if the measured figure"),
        ("is_of_single_cycles", "summary: Whether no two cycles are consecutive"),
        ("pause_p99_ms", "summary: The 99 % quantile of the pauses"),
        ("last_gc", "segments, regimes, episodes: its last cycle"),
    ],
)
def test_explain_says_what_figures_and_words_mean(
    asked: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", asked]) == 0
    assert says in " ".join(capsys.readouterr().out.split())


def test_a_line_without_a_cycle_is_shown_with_the_next_one_that_has_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    message = complaint(capsys, ["explain", "samples/leak-into-limit-go1.24.log:70"], 3)
    assert "nor of a kill: '2026/11/21 07:36:27.057667 GET" in message
    assert "The next line with a GC cycle is samples/leak-into-limit-go1.24.log:71." in message


@pytest.mark.parametrize(
    ("option", "tried"), [("--gogc", ("200", "400")), ("--memory-limit", ("60MiB", "80MiB"))]
)
def test_values_to_try_that_are_given_one_by_one_are_all_tried(
    option: str, tried: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["whatif", STEADY, option, tried[0], option, tried[1]]) == 0
    one_by_one = capsys.readouterr().out
    assert main(["whatif", STEADY, option, ",".join(tried)]) == 0
    assert one_by_one == capsys.readouterr().out


def test_a_hint_has_no_line_that_ends_in_the_middle(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("What the oom-killer did is not known yet.\n")
    lines = complaint(capsys, [notes], 3).splitlines()
    assert "gctrace" in lines[0]
    assert all(
        after.startswith("    ") or before.endswith((".", ":", "'"))
        for before, after in pairwise(lines)
    )


@pytest.mark.parametrize("locale", ["C", "POSIX"])
def test_with_a_c_locale_the_report_is_ascii(locale: str) -> None:
    shown = command(STEADY, env={**os.environ, "LC_ALL": locale}).stdout
    assert shown.isascii()
    assert "?" not in shown
    normal = command(STEADY).stdout
    assert not normal.isascii()
    assert len(shown.splitlines()) == len(normal.splitlines())


def test_an_ascii_stream_gets_no_question_marks() -> None:
    shown = command(STEADY, env={**os.environ, "PYTHONIOENCODING": "ascii"}).stdout
    assert shown.isascii()
    assert "?" not in shown


def test_the_sign_of_every_report_has_an_ascii_form() -> None:
    signs = set("".join(path.read_text() for path in Path("tests/golden").glob("*.txt")))
    assert to_ascii("".join(sorted(signs))).isascii()


def test_debug_after_two_dashes_is_for_the_program() -> None:
    assert is_debugging(["watch", "--debug", "--", "./server"])
    assert not is_debugging(["watch", "--", "./server", "--debug"])
    done = command("watch", "--", "./nosuch", "--debug")
    assert done.returncode == 127
    assert done.stderr.startswith("gctrace-analyze: ./nosuch: no such program.")


@settings(max_examples=30)
@given(
    st.lists(
        st.text(alphabet=st.characters(codec="ascii", exclude_characters=","), min_size=1),
        min_size=1,
    ).filter(lambda words: "-" not in words)  # which reads standard input
)
def test_any_argument_ends_in_a_message_or_a_result(words: list[str]) -> None:
    silent = io.StringIO()
    with redirect_stderr(silent), redirect_stdout(silent):
        try:
            code = main(["explain", "--color=never", *words])
        except SystemExit as ended:
            code = int(str(ended.code))
    assert code in (0, 2, 3)
    assert "Traceback" not in silent.getvalue()


def test_a_file_name_cannot_control_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no\x1b]0;title\x07thing.log"]) == 3
    printed = capsys.readouterr().err
    assert "\x1b" not in printed
    assert "no\\x1b]0;title\\x07thing.log" in printed


@pytest.mark.parametrize("words", [[], ["recommend"], ["whatif"], ["watch", "-f", "lines"]])
def test_a_pipe_needs_no_dash(words: list[str]) -> None:
    done = command(*words, input=Path(STEADY).read_text())
    assert done.returncode == 0
    assert "GOGC=100" in done.stdout or done.stdout.count("<stdin> · ") == 1


def test_without_a_pipe_a_file_is_missing() -> None:
    done = command("recommend", stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (2, "")
    assert "no FILE given.\n  Try gctrace-analyze" in done.stderr


def test_a_file_that_is_given_already_is_not_suggested(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = tmp_path / "run.log"
    given.write_bytes(Path(STEADY).read_bytes())
    assert "Did you mean" not in complaint(capsys, ["compare", given, tmp_path / "rum.log"], 3)


def test_the_name_of_a_file_that_is_nearly_right_is_suggested(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.log").touch()
    message = complaint(capsys, [tmp_path / "run.lgo"], 3)
    assert message.endswith(f"Did you mean {tmp_path / 'run.log'}?\n")
    assert "Did you mean" not in complaint(capsys, [tmp_path / "other.csv"], 3)


def test_a_cpu_limit_is_written_as_kubernetes_writes_it() -> None:
    assert gca.read(STEADY, cpu_limit="500m").settings.value("cpu_limit") == 0.5
    with pytest.raises(gca.BadSettingError, match=r"CPUs, such as 1\.5 or 500m"):
        gca.read(STEADY, cpu_limit="500x")


def test_a_log_that_is_piped_is_of_the_pod_next_to_it() -> None:
    with Path("samples/leak-go1.26.log").open("rb") as log:
        done = command("-", "samples/describe-pod.txt", stdin=log)
    assert (
        "container limit 512 MiB, CPU limit 0.5 (state of the container, orders)"
        in " ".join(done.stdout.split())
    )
    assert "another program" not in done.stdout


def test_several_logs_may_be_a_list() -> None:
    assert len(gca.read([STEADY, TWO]).sources) == 2


def test_a_text_in_a_pipe_is_as_wide_as_it_is_told_to_be(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert main([STEADY]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 60
