"""The command as people and scripts use it: exit codes, messages, outputs, pipes, signals."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.checks import FigureCondition, condition
from gctrace_analyzer.analysis.summary import FIGURES
from gctrace_analyzer.cli import main
from gctrace_analyzer.cli.report import SUFFIXES, TABLES
from tests.helpers.lines import LINES

if TYPE_CHECKING:
    from collections.abc import Sequence

STEADY = "samples/steady-go1.26.log"
TWO = "samples/restart-go1.26.log"
COMMAND = (sys.executable, "-m", "gctrace_analyzer")


def command(*words: str | Path, **settings: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *words], capture_output=True, text=True, check=False, timeout=60, **settings
    )


def complaint(
    capsys: pytest.CaptureFixture[str], words: Sequence[str | Path], code: int
) -> str:
    """What stands on standard error after a command that ends with `code`."""
    try:
        ended: Any = main([str(word) for word in words])
    except SystemExit as err:
        ended = err.code
    out, told = capsys.readouterr()
    assert (ended, out) == (code, "")
    assert "Traceback" not in told
    return told


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "required: FILE\n  Try gctrace-analyze --help."),
        (["explian"], "explian: no such file.\n  Did you mean the verb 'explain'?"),
        ([STEADY, "--fromat", "csv"], "unrecognized arguments: --fromat"),
        ([STEADY, "-f", "xml"], "invalid choice: 'xml'"),
        ([STEADY, "-o", "report.docx"], "Expected a name ending in .txt"),
        ([STEADY, "-o", "absent/report.md"], "an existing folder: absent is none"),
        ([STEADY, "-o", "/proc/report.md"], "/proc/report.md: cannot be written"),
        ([STEADY, "--between", "soon"], "between: cannot read 'soon'"),
        (
            [STEADY, "--between", "1h..2h"],
            "'3600s..7200s'.\n  Expected times within the log: the last cycle starts at 1.9",
        ),
        ([STEADY, "--process", "7"], "one of the processes: 0 to 0"),
        ([STEADY, "--table", "oom"], "invalid choice: 'oom'"),
        ([STEADY, "--fail-on", "stw_p99_ms"], "a condition such as"),
        ([STEADY, "--fail-on", "p99>3"], "a figure of the summary: cycles, "),
        ([STEADY, "--fail-on", "cycles>3ms"], "a limit for cycles without a unit"),
    ],
)
def test_wrong_usage_is_one_message_and_exit_2(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in complaint(capsys, words, 2)


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("absent.log", None, "absent.log: no such file."),
        ("folder", ..., "folder: a folder, not a log."),
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
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / name
    if data is ...:
        path.mkdir()
    elif data is not None:
        path.write_bytes(data)
    assert said in complaint(capsys, [path], 3)


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
    assert "ends before its end" in out + err or "truncated" in out + err


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


def test_a_gate_on_what_the_log_does_not_tell_never_passes(
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
def test_a_condition_accepts_the_units_of_its_figure(text: str, limit: float) -> None:
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
    assert (tmp_path / "report.md").stat().st_mode & 0o444 == 0o444 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize("table", TABLES)
def test_every_table_in_every_row_format(
    table: str, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    rows = len(gca.read(TWO).table(table))
    path = tmp_path / "table.parquet"
    assert main([TWO, "--table", table, "-o", str(path)]) == 0
    assert len(pl.read_parquet(path)) == rows
    assert main([TWO, "--table", table]) == 0
    assert capsysbinary.readouterr().out.count(b"\n") == rows + 1
    assert main([TWO, "--table", table, "-f", "jsonl"]) == 0
    assert capsysbinary.readouterr().out.count(b"\n") == rows


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


def test_one_part_without_records_is_a_remark(tmp_path: Path) -> None:
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
        os.environ.update(env, TERM="xterm-256color")
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


def test_a_bug_is_told_as_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        msg = "off by one"
        raise ValueError(msg)

    monkeypatch.setattr("gctrace_analyzer.api.read", broken)
    assert "a bug in gctrace-analyzer: ValueError: off by one" in complaint(
        capsys, [STEADY], 70
    )
    with pytest.raises(ValueError, match="off by one"):
        main([STEADY, "--debug"])


@pytest.mark.parametrize("asked", ["explain", "explain 'gc 1'", "explain samples/x.log:1"])
def test_explain_says_what_it_cannot(asked: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = [word.strip("'") for word in asked.split(" ", 1)]
    code = 2 if asked == "explain" else 3
    assert complaint(capsys, words, code)


def test_the_manifest_of_a_log_of_many_parts_is_quick_to_refuse(
    capsys: pytest.CaptureFixture[str],
) -> None:
    # What is wrong with the outputs is told before anything is read.
    begin = time.monotonic()
    complaint(capsys, ["-", "-o", "x.docx"], 2)
    assert time.monotonic() - begin < 5
