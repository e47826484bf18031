"""Full disks, kills and vanishing files: an error that says what happened, never half a file."""

from __future__ import annotations

import io
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.api import live
from gctrace_analyzer.cli.deliver import write
from gctrace_analyzer.cli.report import of_run
from gctrace_analyzer.files import write_atomically
from gctrace_analyzer.ingest.follow import Followed, Stop
from tests.conftest import ROOT, SAMPLES
from tests.helpers.programs import started

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STEADY = SAMPLES / "steady-go1.26.log"
COMMAND = [sys.executable, "-m", "gctrace_analyzer"]
PATIENCE_S = 60
KINDS = ("text", "json", "jsonl", "csv", "md", "html", "parquet", "png", "svg")
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")


class FullDisk(io.BytesIO):
    """A file on a disk that is full after some bytes."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room

    def write(self, data: Any, /) -> int:
        self.room -= memoryview(data).nbytes
        if self.room < 0:
            raise OSError(28, "No space left on device")
        return super().write(data)


def content(kind: str) -> bytes:
    file = io.BytesIO()
    write(of_run(gca.read(STEADY)), kind, file)
    return file.getvalue()


@pytest.mark.parametrize("kind", KINDS)
def test_every_output_that_does_not_fit_leaves_the_old_file(kind: str, tmp_path: Path) -> None:
    if kind in ("png", "svg"):
        pytest.importorskip("matplotlib")
    path = tmp_path / "report"
    path.write_text("old")
    run, size = gca.read(STEADY), len(content(kind))
    table = "timeline" if kind in ("png", "svg") else "cycles"
    for room in sorted({0, 1, size // 3, size // 2, size - 1}):

        def fill(file: object, room: int = room) -> None:
            del file
            write(of_run(run, table=table), kind, FullDisk(room))

        with pytest.raises(gca.UnwritableOutputError, match="No space left") as caught:
            write_atomically(path, fill)
        assert caught.value.kept
        assert [each.read_text() for each in tmp_path.iterdir()] == ["old"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
@pytest.mark.parametrize("words", [["-f", "md"], ["-f", "jsonl"], ["-f", "html"]])
def test_a_full_standard_output_is_one_message(words: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*COMMAND, str(STEADY), *words], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 2
    assert done.stderr == b"gctrace-analyze: standard output: No space left on device\n"


@pytest.fixture
def kills(request: pytest.FixtureRequest) -> int:
    """How often a whole command is killed; few in most runs, because each takes seconds."""
    return int(request.config.getoption("--kills"))


class Killed:
    """A program that kills itself at a given moment of its writing (`tests.helpers.kills`)."""

    def __init__(self, kind: str, path: Path, log: Path) -> None:
        command = [sys.executable, "-m", "tests.helpers.kills", kind, str(path), str(log)]
        self.program = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.program.communicate(timeout=PATIENCE_S)

    def at(self, moment: int) -> int:
        """Runs it; returns how many moments it had, or a negative number if it was killed."""
        assert self.program.stdin is not None
        assert self.program.stdout is not None
        self.program.stdin.write(f"{moment}\n")
        self.program.stdin.flush()
        return int(self.program.stdout.readline())

    def finish(self) -> int:
        """Runs it to its end; returns how many moments it had."""
        moments = self.at(-1)
        assert moments > 0
        return moments


def undated(path: Path) -> bytes:
    """The content of a report without the minute in which it was made."""
    return re.sub(rb"Made on \S+ at \S+ UTC", b"Made", path.read_bytes())


def some(moments: int, most: int) -> list[int]:
    """Some moments, and the last ones, in which the new file takes the place of the old one."""
    rest = range(max(moments - 6, 0))
    chosen = random.Random(0).sample(rest, min(most - 6, len(rest)))
    return sorted({*chosen, *range(len(rest), moments)})


@ON_LINUX
@pytest.mark.parametrize(("name", "most"), [("o.parquet", 8), ("o.json", 7), ("o.html", 7)])
def test_a_report_killed_while_it_is_written_is_the_old_one_or_the_new(
    name: str, most: int, tmp_path: Path
) -> None:
    path = tmp_path / name
    with Killed("report", path, SAMPLES / "go1.4.log") as program:
        moments = program.finish()
        whole, states, left = undated(path), [], []
        for moment in some(moments, most):
            path.write_bytes(b"old")
            assert program.at(moment) < 0
            states.append(undated(path))
            assert states[-1] in (b"old", whole), moment
            for file in set(tmp_path.iterdir()) - {path}:
                left.append(undated(file))
                file.unlink()
    # The file changes once, and it is new before the last moment.
    assert states == sorted(states, key=lambda state: state != b"old")
    assert {states[0], states[-1]} == {b"old", whole}
    # Nothing is left behind but, between its naming and its move, the whole new file.
    assert len(left) <= 4
    assert {whole} >= set(left)


@ON_LINUX
def test_a_fleet_killed_while_it_writes_has_whole_rows_and_resumes(tmp_path: Path) -> None:
    pytest.importorskip("dask")
    from gctrace_analyzer.fleets.output import existing
    from tests.helpers.kills import FILES

    out = tmp_path / "fleet.parquet"
    manifest = out.with_name("fleet.parquet.manifest.json")
    counts = []
    with Killed("fleet", out, STEADY) as program:
        moments = program.finish()
        for moment in some(moments, 30):
            shutil.rmtree(out)
            manifest.unlink(missing_ok=True)
            assert program.at(moment) < 0
            # Before the manifest exists, there is no output yet.
            rows = existing(str(out)).collect() if manifest.exists() else None
            counts.append(0 if rows is None else len(rows))
            if rows is not None:
                assert rows["file"].to_list() == [f"{n}.log" for n in range(len(rows))]
                assert rows["cycles"].to_list() == list(range(len(rows)))
            program.finish()
            assert sorted(existing(str(out)).collect()["cycles"]) == list(range(FILES))
    assert counts == sorted(counts)
    assert {0, FILES} < set(counts)


def kill_at_random_moments(words: list[str], kills: int) -> Iterator[None]:
    """Runs a command as often as given, and kills it at another moment each time."""
    begin = time.monotonic()
    subprocess.run([*COMMAND, *words], capture_output=True, check=True, timeout=PATIENCE_S)
    whole = time.monotonic() - begin
    rng = random.Random(0)
    for _ in range(kills):
        with started(
            [*COMMAND, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as command:
            # Most of the time passes before the output is written.
            time.sleep(whole * rng.uniform(0.5, 1.05))
            command.kill()
        yield


def test_a_killed_command_leaves_the_old_report_or_the_new_one(
    kills: int, tmp_path: Path
) -> None:
    path = tmp_path / "report.html"
    words = [str(STEADY), "-o", str(path)]
    subprocess.run([*COMMAND, *words], check=True)
    whole = undated(path)
    path.write_text("old")
    for _ in kill_at_random_moments(words, kills):
        assert undated(path) in (b"old", whole)
        path.write_text("old")


def test_a_killed_fleet_resumes(kills: int, tmp_path: Path) -> None:
    pytest.importorskip("dask")
    logs = tmp_path / "logs"
    logs.mkdir()
    for number in range(6):
        (logs / f"{number}.log").write_bytes(STEADY.read_bytes())
    out = tmp_path / "fleet.parquet"
    words = ["fleet", str(logs), "--workers", "1", "-o", str(out)]
    from gctrace_analyzer.fleets.output import existing

    manifest = out.with_name("fleet.parquet.manifest.json")
    for _ in kill_at_random_moments(words, kills):
        if manifest.exists():
            rows = existing(str(out)).collect()
            assert rows["file"].is_unique().all()
            assert rows["cycles"].null_count() == 0
            # A complete output is made again, so that the next run has something to write.
            if len(rows) == 6:
                shutil.rmtree(out)
                manifest.unlink()
    subprocess.run([*COMMAND, *words], check=True, capture_output=True)
    assert len(existing(str(out)).collect()) == 6


def test_a_followed_file_that_can_no_longer_be_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(STEADY.read_bytes())
    segments = Followed(str(path), Stop()).segments()
    segment = next(segments)
    assert segment.read(1 << 20)

    def gone(*_: object) -> bytes:
        raise OSError(116, "Stale file handle")

    monkeypatch.setattr(os, "pread", gone)
    with pytest.raises(gca.UnreadableInputError, match="stale file handle"):
        segment.read(1 << 20)


def test_a_log_whose_clock_goes_back_loses_no_cycles() -> None:
    lines = [line for line in STEADY.read_text().splitlines() if line.startswith("gc ")][:20]
    stamps = [f"2026-03-01T10:{30 + n - 15 * (n >= 10):02}:00.5Z" for n in range(20)]
    text = "".join(f"{at} {line}\n" for at, line in zip(stamps, lines, strict=True))
    seen = live()
    seen.follow(io.BytesIO(text.encode()), lambda: None)
    run = seen.run()
    assert len(run.cycles) == 20
    assert run.cycles["logged_at"].null_count() == 0
    assert len(run.processes) == 1


@ON_LINUX
def test_a_program_ends_when_watch_is_killed(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    script = f"echo $$ > {pid}; exec sleep 600"
    with started(
        [*COMMAND, "watch", "--", "sh", "-c", script],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as watch:
        until(lambda: pid.exists() and bool(pid.read_text().strip()))
        number = int(pid.read_text())
        assert is_running(number)
        watch.kill()
    until(lambda: not is_running(number))


@ON_LINUX
@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("exit 3", 3),
        ("exec 2>&-; echo out; exit 4", 4),
        ("yes 'a line that is no gctrace' | head -c 8000000 >&2; exit 5", 5),
    ],
    ids=["dies at once", "closes its standard error", "floods"],
)
def test_watch_exits_as_a_difficult_program_does(script: str, code: int) -> None:
    done = subprocess.run(
        [*COMMAND, "watch", "--", "sh", "-c", script],
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == code
    assert b"Traceback" not in done.stderr


@ON_LINUX
def test_a_program_that_ignores_sigterm_is_not_left_behind(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    script = f"trap '' TERM; echo $$ > {ready}; sleep 1; sleep 1; exit 7"
    with started(
        [*COMMAND, "watch", "--", "sh", "-c", script], stderr=subprocess.DEVNULL
    ) as watch:
        until(lambda: ready.exists() and bool(ready.read_text().strip()))
        watch.send_signal(signal.SIGTERM)
        # `watch` waits for the program, whose decision it is when to end.
        assert watch.wait(PATIENCE_S) == 7
    assert not is_running(int(ready.read_text()))


def is_running(pid: int) -> bool:
    """Whether a process exists and is no zombie, which waits for its parent only."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state != "Z"


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.05)
