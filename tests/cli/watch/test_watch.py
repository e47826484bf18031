"""`gctrace-analyze watch`: programs passed through, files followed, what is shown."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import IO, TYPE_CHECKING, Any

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer import live as live_module
from gctrace_analyzer.api import live
from gctrace_analyzer.cli import main
from gctrace_analyzer.cli.screen import Colors
from gctrace_analyzer.cli.watch.child import StderrFilter
from gctrace_analyzer.cli.watch.views import ViewOptions, create_view
from gctrace_analyzer.ingest.follow import Followed, Stop
from gctrace_analyzer.ingest.sources import SourceFacts
from gctrace_analyzer.present import dashboard
from gctrace_analyzer.present import json as report_json
from gctrace_analyzer.present.document import KeyFigure
from gctrace_analyzer.present.format import duration
from gctrace_analyzer.present.sections import headline
from tests.conftest import ROOT, SAMPLES
from tests.helpers.logs import records
from tests.helpers.programs import started
from tests.helpers.terminal import PATIENCE_S, Terminal, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SAMPLE = SAMPLES / "steady-go1.26.log"
WATCH = [sys.executable, "-m", "gctrace_analyzer", "watch"]

PROGRAM = """
import os, signal, sys, time
log = open(sys.argv[1], "rb").read()
def got(number, frame):
    # No print: this may interrupt another one.
    os.write(1, f"got {signal.Signals(number).name}\\n".encode())
for name in sys.argv[2:]:
    signal.signal(getattr(signal, name), got)
print("GODEBUG", os.environ["GODEBUG"], flush=True)
sys.stderr.buffer.write(log)
sys.stderr.flush()
asked = sys.stdin.readline().split()
print("asked", *asked, flush=True)
time.sleep(float(asked[1]) if asked[0] == "linger" else 0)
if asked[0] == "die":
    os.kill(os.getpid(), int(asked[1]))
sys.exit(int(asked[1]) if asked[0] == "exit" else 0)
"""


@pytest.fixture
def program(tmp_path: Path) -> list[str]:
    """A program that writes the sample, prints the signals it receives, and ends as requested."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return [sys.executable, str(path), str(SAMPLE)]


def watched(
    words: list[str], *, says: str = "", env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*WATCH, *words],
        input=says.encode(),
        capture_output=True,
        env={**os.environ, **(env or {})},
        timeout=PATIENCE_S,
        check=False,
    )


def test_a_program_is_passed_through_and_reported(program: list[str], tmp_path: Path) -> None:
    kept = tmp_path / "kept.log"
    words = ["--log", str(kept), "--", *program]
    done = watched(words, says="exit 7\n", env={"GODEBUG": "madvdontneed=1"})
    assert done.returncode == 7
    assert done.stdout == b"GODEBUG madvdontneed=1,gctrace=1\nasked exit 7\n"
    assert kept.read_bytes() == SAMPLE.read_bytes()
    said = done.stderr.decode()
    others = [line for line in SAMPLE.read_text().splitlines() if not line.startswith("gc ")]
    assert all(f"{line}\n" in said for line in others)
    assert "MB goal" not in said
    report = said[said.index(kept.name) :]
    assert report.rstrip("\n") == f"{gca.read(kept).summary()}"


def test_a_gctrace_setting_is_kept_and_its_lines_can_be_shown(program: list[str]) -> None:
    done = watched(
        ["--show-gctrace", "--", *program], says="exit 0\n", env={"GODEBUG": "gctrace=2"}
    )
    assert done.stdout.startswith(b"GODEBUG gctrace=2\n")
    assert SAMPLE.read_bytes() in done.stderr


@pytest.mark.parametrize(
    ("says", "code"), [("exit 3", 3), ("die 15", -15), ("die 9", -9), ("die 6", -6)]
)
def test_watch_exits_as_the_program_does(program: list[str], says: str, code: int) -> None:
    done = watched(["--", *program], says=says + "\n")
    assert done.returncode == code
    assert b"Recommended settings" in done.stderr


@pytest.mark.parametrize(
    ("name", "code", "says"),
    [("no-such-program", 127, "no such program"), (str(SAMPLE), 126, "permission denied")],
)
def test_a_program_that_cannot_be_started(name: str, code: int, says: str) -> None:
    done = watched(["--", name])
    assert done.returncode == code
    assert says in done.stderr.decode()
    assert b"Traceback" not in done.stderr


def test_signals_reach_the_program_once_each(program: list[str]) -> None:
    names = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH"]
    # What is ignored here (nohup) is ignored by what is started here.
    names = [n for n in names if signal.getsignal(getattr(signal, n)) != signal.SIG_IGN]
    with started(
        [*WATCH, "--", *program, *names],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as watch:
        assert watch.stdin is not None
        assert watch.stdout is not None
        assert watch.stdout.readline().startswith(b"GODEBUG")
        for name in names:
            watch.send_signal(getattr(signal, name))
            assert watch.stdout.readline() == f"got {name}\n".encode()
        watch.stdin.write(b"exit 5\n")
        watch.stdin.close()
        assert watch.stdout.read() == b"asked exit 5\n"
        assert watch.wait(PATIENCE_S) == 5


def test_at_a_terminal_control_c_reaches_the_program_once_and_the_terminal_is_restored(
    program: list[str],
) -> None:
    with Terminal([*WATCH, "--", *program, "SIGINT"]) as terminal:
        terminal.wait_for(b"33 cycles in 79 lines")
        assert b"\x1b[?25l" in terminal.seen
        terminal.type(b"\x03")
        terminal.wait_for(b"got SIGINT")
        terminal.type(b"exit 4\n")
        terminal.wait_for(b"code 4")
        terminal.type(b"home\n")
        terminal.wait_for(b"back home")
        terminal.end()
    assert terminal.seen.count(b"got SIGINT") == 1
    assert terminal.after == terminal.before
    assert terminal.seen.rindex(b"\x1b[?25h") > terminal.seen.rindex(b"\x1b[?25l")
    assert b"Recommended settings" in terminal.seen
    drawn = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", terminal.seen).decode()
    # The name of the program is not cut, wherever it lies.
    drawn = drawn.replace(sys.executable, "program")
    assert max(map(len, re.split(r"[\r\n]+", drawn))) <= 80


def test_a_stopped_program_stops_watch_and_continues_with_it(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    command = " ".join([*WATCH, "--", sys.executable, str(path), str(SAMPLE)])
    script = f"set -m; {command}; echo stopped $?; fg >/dev/null; echo code $?"
    with Terminal(["/bin/bash", "-c", script]) as terminal:
        terminal.wait_for(b"33 cycles in 79 lines")
        terminal.type(b"\x1a")
        terminal.wait_for(b"stopped 14")
        terminal.type(b"exit 9\n")
        terminal.wait_for(b"code 9")
        terminal.type(b"\n")
        terminal.end()


def test_a_pipe_as_json_lines() -> None:
    done = watched(["-f", "jsonl", "--every", "1s", "-"], says=SAMPLE.read_text())
    assert done.returncode == 0
    *intervals, last = map(json.loads, done.stdout.splitlines())
    whole = gca.read(SAMPLE)
    assert [row["type"] for row in intervals] == ["interval"] * len(whole.windows("1s"))
    assert [row["cycles"] for row in intervals] == whole.windows("1s")["cycles"].to_list()
    expected = json.loads(report_json.dumps(whole.report()))
    assert last.pop("type") == "report"
    assert last["summary"] == expected["summary"]
    assert last["findings"] == json.loads(
        json.dumps(expected["findings"]).replace(SAMPLE.name, "<stdin>")
    )


def test_a_pipe_without_gctrace_is_unusable_input() -> None:
    done = watched(["-"], says="hello\nworld\n")
    assert done.returncode == 3
    assert b"<stdin>: 2 lines, no gctrace." in done.stderr


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc here")
def test_the_program_comes_before_the_watcher() -> None:
    nice = "cut -d' ' -f19 /proc/$PPID/stat /proc/$$/stat"
    done = watched(["--", "sh", "-c", f"sleep 0.5; {nice}; exit 0"])
    watcher, program = map(int, done.stdout.split()[:2])
    assert watcher == min(program + 5, 19)


def test_a_program_without_gctrace_keeps_its_exit_code() -> None:
    done = watched(["--", "sh", "-c", "echo out; echo err >&2; exit 4"])
    assert done.returncode == 4
    assert done.stdout == b"out\n"
    assert b"sh: 1 line, no gctrace." in done.stderr


def test_a_program_keeps_running_if_watching_fails() -> None:
    script = r"printf '\177ELF is no log\n' >&2; sleep 0.5; echo err >&2; echo out; exit 6"
    done = watched(["--", "sh", "-c", script])
    assert done.returncode == 6
    assert done.stdout == b"out\n"
    assert b"\nerr\n" in done.stderr
    assert b"Watching has stopped; the program keeps running." in done.stderr


def test_control_c_ends_following_a_file_with_a_report(tmp_path: Path) -> None:
    path, report = tmp_path / "run.log", tmp_path / "report.json"
    rows = tmp_path / "rows.jsonl"
    words = ["--every", "1s", "-o", str(report), "--intervals", str(rows), str(path)]
    with started([*WATCH, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as watch:
        assert watch.stdout is not None
        assert b"does not exist yet" in watch.stdout.readline()
        path.write_bytes(SAMPLE.read_bytes())
        assert b"1.0 s" in watch.stdout.readline()
        watch.send_signal(signal.SIGINT)
        assert b"Recommended settings" in watch.stdout.read()
        assert watch.wait(PATIENCE_S) == 0
    assert report.read_text() == report_json.dumps(gca.read(path).report())
    written = [json.loads(line) for line in rows.read_text().splitlines()]
    assert [row["cycles"] for row in written] == gca.read(path).windows("1s")[
        "cycles"
    ].to_list()


@contextmanager
def follower(path: Path) -> Iterator[tuple[live_module.Live, Stop]]:
    """A file that is followed, until the end of the block."""
    seen, stop = live(), Stop()

    def take() -> None:
        for segment in Followed(str(path), stop).segments():
            seen.follow(segment, lambda: None)

    thread = Thread(target=take)
    thread.start()
    try:
        yield seen, stop
    finally:
        stop.ask()
        thread.join(PATIENCE_S)
    assert not thread.is_alive()


def test_a_file_is_followed_through_rotation(tmp_path: Path) -> None:
    path, old = tmp_path / "run.log", tmp_path / "run.log.1"
    lines = SAMPLE.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:20]))
    with follower(path) as (seen, _):
        until(lambda: seen.lines == 20)
        writer: IO[bytes]
        with path.open("ab", buffering=0) as writer:
            path.rename(old)
            path.write_bytes(b"".join(lines[40:]))
            # The program was not notified yet, and continues in the old file.
            writer.write(b"".join(lines[20:40]))
        until(lambda: seen.lines == len(lines))
    whole = gca.read(SAMPLE)
    assert (
        seen.run()
        .cycles.drop("source", "line_no")
        .equals(whole.cycles.drop("source", "line_no"))
    )
    assert seen.run().summary().gc_cpu_share == whole.summary().gc_cpu_share
    assert [source.name for source in seen.run().sources] == [str(path), f"{path} (2)"]


def test_a_file_is_followed_through_truncation(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    lines = SAMPLE.read_bytes().splitlines(keepends=True)
    with path.open("ab", buffering=0) as writer, follower(path) as (seen, _):
        writer.write(b"".join(lines[:50]))
        until(lambda: seen.lines == 50)
        os.truncate(path, 0)
        writer.write(b"".join(lines[50:]))
        until(lambda: seen.lines == len(lines))
    assert len(seen.run().cycles) == len(gca.read(SAMPLE).cycles)


def test_a_truncated_file_that_is_already_longer_is_read_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    lines = SAMPLE.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3]))
    with follower(path) as (seen, _):
        until(lambda: seen.lines == 3)
        with path.open("r+b", buffering=0) as writer:
            writer.write(b"".join(lines[3:]))
        until(lambda: seen.lines == len(lines))


def test_the_oldest_cycles_are_dropped_and_the_report_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live_module, "MOST_CYCLES", 50)
    monkeypatch.setattr("gctrace_analyzer.ingest.live_input.CHUNK_BYTES", 1000)
    seen = live()
    seen.begin(SourceFacts("run.log"))
    for line in (SAMPLES / "thrash-go1.19.log").read_bytes().splitlines(keepends=True):
        seen.add(line)
    kept = len(seen.run().cycles)
    assert 30 < kept <= 60
    gone = f"The oldest {seen.cycles - kept:,} cycles are not in these figures"
    assert any(gone in warning for warning in seen.run().summary().warnings)


def drawn_dashboard(name: str, width: int) -> list[str]:
    seen = live()
    path = SAMPLES / name
    seen.begin(SourceFacts(path.name))
    seen.add(path.read_bytes())
    view = seen.latest(60)
    assert view is not None
    bar_s = dashboard.bar_s(view.run.summary().span_s or 0, dashboard.bars(width))
    shown = dashboard.dashboard(
        view.run.report(),
        view.run.windows(bar_s),
        dashboard.WatchProgress(
            "./server --port 8080", seen.cycles, seen.lines, seen.newest, 2.5, 60
        ),
        last_gc=view.gc_num,
        now_s=view.end_s,
        width=width,
        advise=width >= 60,
    )
    drawn = ["".join(part for part, _ in line).rstrip() for line in shown]
    assert max(map(len, drawn)) <= width
    return drawn


def test_no_bar_is_longer_than_the_time_that_is_shown(tmp_path: Path) -> None:
    begin = tmp_path / "begin.log"
    begin.write_text("".join(SAMPLE.read_text().splitlines(keepends=True)[:7]))
    (about,) = [line for line in drawn_dashboard(str(begin), 80) if "Figures of" in line]
    assert about.endswith(", up to gc 4")


def test_a_dashboard_counts_the_cycle_that_it_calls_the_newest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen, drawn = live(), list[dashboard.WatchProgress]()
    seen.begin(SourceFacts("run.log"))
    lines = SAMPLE.read_bytes().splitlines(keepends=True)
    seen.add(b"".join(lines[:20]))
    options = ViewOptions(
        "dashboard", io.StringIO(), Colors("never"), "run", 1, 60, False, None
    )
    view: Any = create_view(options, seen)
    calculate = view._calculate

    def calculate_while_lines_arrive() -> None:
        calculate()
        seen.add(b"".join(lines[20:30]))

    monkeypatch.setattr(view, "_calculate", calculate_while_lines_arrive)

    def draw(
        _: object, __: object, progress: dashboard.WatchProgress, **___: object
    ) -> list[Any]:
        drawn.append(progress)
        return []

    monkeypatch.setattr(dashboard, "dashboard", draw)
    view.tick()
    view.end()
    newest = drawn[-1].newest
    assert newest is not None
    assert newest["gc_num"] == drawn[-1].cycles > 9


def test_an_episode_of_no_consequence_says_so() -> None:
    row: Any = {
        "severity": "info", "kind": "gc-burst", "start_s": 0.0, "end_s": 0.25,
        "reason": "GC ran 7 times.",
    }  # fmt: skip
    assert dashboard.episode_line(row).endswith("GC ran 7 times. No action needed.")
    assert "action" not in dashboard.episode_line({**row, "severity": "bad"})


@pytest.mark.parametrize("width", [80, 60, 40])
def test_the_dashboard_has_room_for_a_range(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = [
        KeyFigure("GC CPU", "0.059–0.11 %", "under 0.01 of 2 CPUs", level="ok"),
        KeyFigure("Live heap", "64 MiB", "median; max 66 MiB", level="ok"),
    ]
    monkeypatch.setattr(headline, "state", lambda _: figures)
    rows = [
        line
        for line in drawn_dashboard("steady-go1.26.log", width)
        if line.startswith(("  GC CPU", "  Live heap"))
    ]
    assert all(line.endswith(" ok") for line in rows)
    assert len({len(line) for line in rows}) == 1


@pytest.mark.parametrize("width", [80, 120, 60, 40])
def test_the_dashboard_fits(width: int, golden: Callable[[str, str], None]) -> None:
    drawn = drawn_dashboard("thrash-go1.19.log", width)
    text = " ".join(" ".join(drawn).split())
    assert "Found GOMEMLIMIT is too low for the live heap: GC takes 56 % of the CPU." in text
    assert "▸ Set GOMEMLIMIT=249MiB" in text
    assert "marked 5.7 ms" in text
    assert "Ctrl-C ends it" in text
    assert "Figures of the last 4.0 s, up to gc 67" in text
    if width == 80:
        golden("watch/dashboard.txt", "\n".join(drawn) + "\n")
        documented = (ROOT / "docs" / "tasks" / "watch.md").read_text(encoding="utf-8")
        assert "\n".join(drawn) in documented


def test_standard_error_is_forwarded_without_gctrace() -> None:
    passed: list[bytes] = []
    forward = StderrFilter(passed.append, records=False)
    data = b"ask? " + SAMPLE.read_bytes() + b"gc 12 is no record\nthe end"
    for at in range(0, len(data), 7):
        forward(data[at : at + 7])
    forward.end()
    lines = (b"ask? " + SAMPLE.read_bytes()).splitlines(keepends=True)
    kept = b"".join(line for line in lines if not line.startswith(b"gc "))
    assert b"".join(passed) == kept + b"gc 12 is no record\nthe end"


def test_what_is_written_into_a_record_is_forwarded_without_the_record() -> None:
    """The runtime writes a record in parts, so a line of the program may come between them."""
    lines = SAMPLE.read_bytes().splitlines(keepends=True)
    record = next(line for line in lines if line.startswith(b"gc "))
    for cut in (3, record.index(b"@"), len(record) - 5):
        passed: list[bytes] = []
        forward = StderrFilter(passed.append, records=False)
        for data in (record[:cut], b"2026/11/28 served 10\n", record[cut:], record, b"end\n"):
            forward(data)
        forward.end()
        assert b"".join(passed) == b"2026/11/28 served 10\nend\n"


def test_a_time_without_cycles_is_counted_from_the_last_report(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    colors = Colors("never")
    options = ViewOptions("lines", sys.stdout, colors, "run", 10, 60, False, None)
    view: Any = create_view(options, live())
    for clock[0] in (5.0, 10.0, 20.0, 30.0):
        view.tick()
    says = [line.split(";")[0] for line in capsys.readouterr().out.splitlines()]
    assert says == ["no GC cycle for 10 s", "no GC cycle for 20 s", "no GC cycle for 30 s"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "give one of: the FILE of a log"),
        (["a.log", "--", "ls"], "give one of: the FILE of a log"),
        (["--every", "0s", "-"], "above 0"),
        (["--log", "x", "a.log"], "--log is for a program after --"),
        (["no-folder/a.log"], "existing folder"),
        ([sys.executable], "watch -- "),
        (["-o", "x.pdf", "-"], "a file name ending in"),
    ],
)
def test_wrong_usage(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main(["watch", *words])
    except SystemExit as end:
        code = int(str(end.code))
    assert code == 2
    assert says in capsys.readouterr().err


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real Go program."""
    if shutil.which("go") is None:
        pytest.skip("there is no go command here (https://go.dev/dl)")
    path = tmp_path_factory.mktemp("go") / "loads"
    folder = ROOT / "lab" / "go" / "loads"
    subprocess.run(["go", "build", "-o", path, "."], cwd=folder, check=True)
    return path


def truth_of(path: Path) -> Any:
    return json.loads(path.read_text())


def test_a_go_program_watched(load: Path, tmp_path: Path) -> None:
    log, truth = tmp_path / "run.log", tmp_path / "truth.json"
    command = [str(load), "-mode", "service", "-dur", "2s", "-live", "10", "-truth", str(truth)]
    done = watched(["--every", "500ms", "--log", str(log), "--", *command])
    assert done.returncode == 0
    said = done.stderr.decode()
    whole = gca.read(log)
    assert whole.summary().cycles > 0
    assert said[said.index(log.name) :].rstrip("\n") == f"{whole.summary()}"
    intervals = [line for line in said.splitlines() if re.search(r"s +\d+ cycles?(  |$)", line)]
    assert len(intervals) == len(whole.windows("500ms"))


def test_a_go_program_at_a_terminal(load: Path) -> None:
    words = [str(load), "-mode", "service", "-dur", "120s", "-live", "10"]
    with Terminal([*WATCH, "--advise", "--", *words]) as terminal:
        terminal.wait_for(b"just now")
        terminal.wait_for(b"Recommended settings")
        terminal.type(b"\x03")
        terminal.wait_for(b"code 130")
        terminal.wait_for(b"Recommended settings")
        terminal.type(b"home\n")
        terminal.wait_for(b"back home")
        terminal.end()


def test_the_last_line_of_intervals_ends_with_the_log() -> None:
    done = watched(["-f", "lines", "-"], says=SAMPLE.read_text())
    end = duration(gca.read(SAMPLE).summary().span_s)
    lines = [line for line in done.stdout.decode().splitlines() if " cycles  " in line]
    assert [line.partition("  ")[0] for line in map(str.strip, lines)] == [end]


def test_lines_name_long_pauses_before_and_after_marking() -> None:
    log = records(60)
    for cycle, pauses in ((33, "13+12+0.01"), (47, "0.02+12+9.5")):
        log[cycle - 1] = re.sub(r"[\d.+]+ ms clock", f"{pauses} ms clock", log[cycle - 1])
    done = watched(["-f", "lines", "-"], says="\n".join([*log, ""]))
    lines = re.findall(
        r"pause-outlier \(.+\): (\w+) termination took (\S+)", done.stdout.decode()
    )
    assert lines == [("Sweep", "13"), ("Mark", "9.5")]


def cycles_of(sizes: list[int], every_s: float) -> str:
    """Cycles at equal distances with these live heaps in MiB."""
    return "".join(
        f"gc {number} @{number * every_s:.3f}s 1%: 0.02+1.2+0.01 ms clock, "
        f"0.04+0.1/0.4/0.2+0.02 ms cpu, {2 * live}->{2 * live}->{live} MB, {2 * live} MB goal, "
        "0 MB stacks, 0 MB globals, 2 P\n"
        for number, live in enumerate(sizes, start=1)
    )


def test_a_line_has_the_last_live_heap_and_the_longest_pause() -> None:
    log = cycles_of([10] * 15 + [70] * 4, 0.1)
    done = watched(["-f", "lines", "--every", "2s", "-"], says=log)
    (line,) = [line for line in done.stdout.decode().splitlines() if "GC CPU 0" in line][:1]
    assert "  live 70 MiB" in line
    assert "pause ≤ 0.0" in line
    assert len(line) <= 80


def test_a_line_leaves_out_what_is_unknown() -> None:
    log = cycles_of([10] * 22, 0.1)
    done = watched(["-f", "lines", "--every", "2s", "-"], says=log)
    (line,) = [line for line in done.stdout.decode().splitlines() if " 3 cycles " in line]
    assert "–" not in line
    assert "GC CPU" not in line
    assert "live 10 MiB" in line


def test_an_old_episode_of_no_consequence_is_no_news() -> None:
    early = cycles_of([8] * 12, 0.02).splitlines(True)
    late = [
        re.sub(
            r"^gc (\d+) @[\d.]+s",
            lambda m: f"gc {int(m[1]) + 12} @{int(m[1]) * 0.25:.3f}s",
            line,
        )
        for line in cycles_of([70] * 40, 0.25).splitlines(True)
    ]
    seen = live()
    options = ViewOptions("lines", io.StringIO(), Colors("never"), "run", 1, 60, False, None)
    view = create_view(options, seen)
    seen.begin(SourceFacts("run"))
    for line in [*early, *late]:
        seen.add(line.encode())
        view.added()
    view.end()
    printed = options.out.getvalue()  # type: ignore[attr-defined]  # it is a StringIO
    assert seen.run().episodes()["kind"].to_list() == ["gc-burst"]
    assert "gc-burst" not in printed
    done = watched(["-f", "lines", "-"], says="".join([*early, *late]))
    assert "info: gc-burst (40 ms → 2" in done.stdout.decode()


def test_the_dashboard_always_shows_the_last_size(tmp_path: Path) -> None:
    path = tmp_path / "grown.log"
    path.write_text(cycles_of([4] * 20 + [70] * 3, 0.1))
    for width in (80, 120):
        shown = drawn_dashboard(str(path), width)
        (live_heap,) = [line for line in shown if line.startswith("  Live heap")]
        (goal,) = [line for line in shown if line.startswith("  Heap goal")]
        assert "70 MiB" in live_heap[:28]
        assert "140 MiB" in goal[:28]
        assert " last" in live_heap
