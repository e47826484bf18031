"""Records programs: one run of one program under one setting, with its load."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from gctrace_analyzer.trials.machine import CROWDED_SHARE
from lab.services.build import HOME, BuildError, binary, go_version, title
from lab.services.plans import ADVISED, Plan, Run, environment, promised_environment, runs
from lab.services.processes import (
    Process,
    answers,
    fixed_work_ms,
    load_words,
    machine_busy_s,
    start,
    start_load,
    stop_all,
    wait_until_quiet,
)

if TYPE_CHECKING:
    from lab.services.advised import Adviser
    from lab.services.programs import Load, Program

CYCLE = re.compile(rb"^gc \d+ @([\d.]+)s .* \d+->\d+->(\d+) MB,", re.MULTILINE)
NOTE = (
    "gctrace of real programs under settings and a load; `crowded`: other work took more than"
    " 6 % of the machine's CPU time (foreign_cpu_s), so times are longer there; load_window_s:"
    " where the load ran, in seconds since the program started; live_mib: median heap after"
    " marking in that window; finished: false if the program was stopped before it was ready"
    " or, for a batch, before its end; fixed_work_ms: how long a fixed piece of work took before"
    " and after the run, for comparing the machine's speed; times and CPU seconds last until"
    " the end of the window"
)
IN_MEMORY = Path("/dev/shm/gctrace-lab")
ATTEMPTS = 3
QUIET_WAIT_S = 20
READY_S = 40
BATCH_S = 120
# A batch that thrashes is stopped after this multiple of its usual time.
BATCH_FACTOR = 4
# Settles the program before the load, so that its start is not part of the window.
SETTLE_S = 1.0


@dataclass(slots=True)
class Lab:
    """A folder of recordings and how they are made."""

    folder: Path
    seconds: float
    manifest: list[dict[str, Any]]
    adviser: Adviser | None = None

    @classmethod
    def opened(cls, folder: Path, seconds: float, *, resume: bool) -> Lab:
        """Opens the folder; without `resume`, its manifest starts empty."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "manifest.json"
        known = json.loads(path.read_text())["runs"] if resume and path.exists() else []
        return cls(folder, seconds, known)

    def record(self, plan: Plan, programs: list[Program], repeats: int) -> None:
        """Makes every recording of the plan that the manifest does not have yet."""
        planned = list(runs(plan, programs, repeats))
        done = {row["dir"] for row in self.manifest}
        for number, run in enumerate(planned, 1):
            if run.folder in done:
                continue
            promise = None
            if run.setting.label == ADVISED:
                promise = self.promise(run.program)
                if promise is None:
                    say(f"{run.folder}: skipped, no change is recommended")
                    continue
            env = (
                environment(run.setting, self.live_mib(run.program))
                if promise is None
                else promised_environment(promise)
            )
            if env is None:
                say(f"{run.folder}: skipped, no GC cycle at GOGC=100 gives its live heap")
                continue
            try:
                row = self.quietest(run, env)
            except (OSError, BuildError) as error:
                say(f"{run.folder}: skipped: {error}")
                continue
            if promise is not None:
                row["promise"] = promise
            self.add(row)
            say(f"{number}/{len(planned)} {line(row)}")

    def promise(self, program: Program) -> dict[str, Any] | None:
        """Returns what is recommended for a program after its GOGC=100 recording."""
        row = next(
            (row for row in self.manifest if row["dir"] == f"{program.name}/gogc100"), None
        )
        if row is None:
            return None
        if self.adviser is None:
            from lab.services.advised import Adviser

            self.adviser = Adviser(self.folder)
        return self.adviser.advice(row)

    def quietest(self, run: Run, env: dict[str, str]) -> dict[str, Any]:
        """Records until a run is not crowded, at most three times; keeps the quietest."""
        best: dict[str, Any] | None = None
        for attempt in range(ATTEMPTS):
            wait_until_quiet(QUIET_WAIT_S)
            folder = self.folder / f".{run.program.name}-{attempt}"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            before_ms = fixed_work_ms()
            try:
                row = self.once(run, env, folder)
            finally:
                stop_all()
            row["fixed_work_ms"] = [before_ms, fixed_work_ms()]
            if best is None or foreign_share(row) < foreign_share(best):
                best = row
                keep(folder, self.folder / run.folder)
            shutil.rmtree(folder, ignore_errors=True)
            if not best["crowded"]:
                break
            say(f"  crowded: {line(row)}")
        assert best is not None
        return best

    def once(self, run: Run, env: dict[str, str], folder: Path) -> dict[str, Any]:
        """Runs the program once and returns its row of the manifest."""
        program, setting = run.program, run.setting
        prepare(program)
        sidecars = [start_load(load, 3600, subprocess.DEVNULL) for load in program.sidecars]
        with (folder / "run.log").open("wb") as log, tempfile.TemporaryDirectory() as outputs:
            date = datetime.now(UTC)
            busy = machine_busy_s()
            sidecars_cpu_s = -sum(process.cpu_s() for process in sidecars)
            process = start(
                program.source,
                (*program.words, *setting.words),
                env={**program.env, "GODEBUG": "gctrace=1", **env},
                stderr=log,
                cpu_quota=setting.cpu_quota,
            )
            if program.kind == "batch":
                found = self.batch(program, process)
            else:
                found = self.serve(run, process, folder, Path(outputs))
            machine_cpu_s = machine_busy_s() - busy
            server_cpu_s = process.cpu_s()
            sidecars_cpu_s += sum(each.cpu_s() for each in sidecars)
            elapsed_s = time.monotonic() - process.started
            rss = process.peak_rss_mib()
            process.stop()
        for each in sidecars:
            each.stop()
        load_cpu_s = found.pop("load_cpu_s") + sidecars_cpu_s
        foreign_cpu_s = machine_cpu_s - server_cpu_s - load_cpu_s
        cores = os.cpu_count() or 1
        window = found["load_window_s"]
        cycles, live_mib = read_cycles(folder / "run.log", window)
        return {
            "dir": run.folder,
            "name": program.name,
            "kind": program.kind,
            "setting": setting.label,
            "repeat": run.repeat,
            "program": title(program.source),
            "go_version": go_version(program.source),
            "env": env,
            "command": [binary(program.source).name, *program.words, *setting.words],
            "load": [
                [title(load.source), *load_words(load, self.seconds)]
                for load in (*program.fill, *program.load, *setting.load, *program.sidecars)
            ],
            "cores": cores,
            "procs": int(env["GOMAXPROCS"]) if "GOMAXPROCS" in env else None,
            "cpu_quota": setting.cpu_quota or None,
            "date": date.strftime("%Y-%m-%dT%H:%M:%SZ"),
            **found,
            "cycles": cycles,
            "live_mib": live_mib,
            "elapsed_s": round(elapsed_s, 2),
            "server_cpu_s": round(server_cpu_s, 2),
            "load_cpu_s": round(load_cpu_s, 2),
            "foreign_cpu_s": round(foreign_cpu_s, 2),
            "machine_cpu_s": round(machine_cpu_s, 2),
            "rss_peak_mib": round(rss),
            "crowded": foreign_cpu_s > CROWDED_SHARE * elapsed_s * cores,
        }

    def batch(self, program: Program, process: Process) -> dict[str, Any]:
        """Waits for a batch, at most four times as long as it usually takes."""
        usual_s = self.usual_s(program)
        finished = process.wait(BATCH_FACTOR * usual_s if usual_s else BATCH_S)
        return {
            "load_window_s": [0, round(time.monotonic() - process.started, 2)],
            "achieved_rps": [],
            "finished": finished and process.child.returncode in (0, 1, 2),
            "load_cpu_s": 0.0,
        }

    def serve(self, run: Run, process: Process, folder: Path, outputs: Path) -> dict[str, Any]:
        """Runs the load against a server, and reads its metrics at the end."""
        program = run.program
        ready = wait_for_port(program.port, process)
        load_cpu_s = 0.0
        if ready:
            time.sleep(SETTLE_S)
            _, load_cpu_s = run_loads(program.fill, 0, outputs)
        begin = time.monotonic()
        texts: list[str] = []
        if ready:
            texts, cpu_s = run_loads((*program.load, *run.setting.load), self.seconds, outputs)
            load_cpu_s += cpu_s
        end = time.monotonic()
        if program.metrics and ready:
            scrape(program.metrics, folder / "metrics.txt.gz")
        return {
            "load_window_s": [round(each - process.started, 2) for each in (begin, end)],
            "achieved_rps": [rate(text) for text in texts],
            "finished": ready and not process.ended,
            "load_cpu_s": load_cpu_s,
        }

    def first_run(self, program: Program) -> dict[str, Any] | None:
        """Returns the first recording of the program at GOGC=100."""
        rows = [row for row in self.manifest if row["name"] == program.name]
        return next((row for row in rows if row["env"].get("GOGC") == "100"), None)

    def live_mib(self, program: Program) -> float | None:
        row = self.first_run(program)
        return row["live_mib"] if row else None

    def usual_s(self, program: Program) -> float | None:
        row = self.first_run(program)
        return row["elapsed_s"] if row and row["finished"] else None

    def add(self, row: dict[str, Any]) -> None:
        """Appends a row to the manifest, which is valid JSON at every moment."""
        self.manifest.append(row)
        path = self.folder / "manifest.json"
        unfinished = path.with_suffix(".json.part")
        unfinished.write_text(
            json.dumps({"note": NOTE, "runs": self.manifest}, indent=1) + "\n"
        )
        unfinished.rename(path)


def prepare(program: Program) -> None:
    """Empties the run folder and runs the commands that precede the program."""
    folder = HOME / "run"
    shutil.rmtree(IN_MEMORY, ignore_errors=True)
    if folder.is_symlink():
        folder.unlink()
    shutil.rmtree(folder, ignore_errors=True)
    if program.in_memory:
        IN_MEMORY.mkdir()
        folder.symlink_to(IN_MEMORY)
    else:
        folder.mkdir()
    for words in program.first:
        process = start(program.source, words, env=program.env)
        process.wait(30)
        process.stop()


def run_loads(
    loads: tuple[Load, ...], seconds: float, outputs: Path
) -> tuple[list[str], float]:
    """Runs the loads together; returns what they printed and their CPU time.

    With `seconds`, they end by themselves at that time, or are interrupted 3 s later.
    """
    paths = [outputs / f"{seconds:g}-{number}.txt" for number in range(len(loads))]
    with contextlib.ExitStack() as stack:
        files: list[BinaryIO] = [stack.enter_context(path.open("wb")) for path in paths]
        begin = time.monotonic()
        processes = [
            start_load(load, seconds, file) for load, file in zip(loads, files, strict=True)
        ]
        for process, load in zip(processes, loads, strict=True):
            timed = any("{seconds}" in word for word in load.words)
            limit_s = seconds + (3 if timed else 0) if seconds else 20
            process.wait(begin + limit_s - time.monotonic())
        for process in processes:
            process.stop(grace_s=3, first=signal.SIGINT)
    return [path.read_text(errors="replace") for path in paths], sum(
        process.cpu_s() for process in processes
    )


def wait_for_port(port: int, process: Process) -> bool:
    end = time.monotonic() + READY_S
    while time.monotonic() < end and not process.ended:
        if answers(port):
            return True
        time.sleep(0.05)
    return False


def rate(text: str) -> str:
    """Returns the requests per second that hey, dnsperf or nats report."""
    found = re.search(r"(?:Requests/sec:|Queries per second:|Pub stats:)\s*([\d.,]+)", text)
    return found[1].replace(",", "") if found else ""


def scrape(url: str, path: Path) -> None:
    with contextlib.suppress(OSError, ValueError):
        text = urllib.request.urlopen(url, timeout=5).read()
        path.write_bytes(gzip.compress(text, mtime=0))


def read_cycles(log: Path, window: list[float]) -> tuple[int, float | None]:
    """Returns the number of cycles, and the median live heap in the window."""
    cycles = [(float(at), int(live)) for at, live in CYCLE.findall(log.read_bytes())]
    inside = [live for at, live in cycles if window[0] <= at <= window[1]]
    live = inside or [live for _, live in cycles]
    return len(cycles), statistics.median(live) if live else None


def keep(folder: Path, target: Path) -> None:
    """Moves a recording to its place, with its log compressed and without paths of the machine."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    text = (folder / "run.log").read_bytes().replace(str(HOME).encode(), b"/lab")
    (target / "run.log.gz").write_bytes(gzip.compress(text, mtime=0))
    if (folder / "metrics.txt.gz").exists():
        shutil.copy(folder / "metrics.txt.gz", target)


def foreign_share(row: dict[str, Any]) -> float:
    """Other work's share of the machine's CPU time."""
    return float(row["foreign_cpu_s"] / (row["elapsed_s"] * row["cores"]))


def line(row: dict[str, Any]) -> str:
    """Returns a run as one line of progress."""
    settings = " ".join(f"{name}={value}" for name, value in row["env"].items())
    idle = 1 - row["machine_cpu_s"] / (row["elapsed_s"] * row["cores"])
    return (
        f"{row['name']} {settings}{' quota' if row['cpu_quota'] else ''}:"
        f" {row['cycles']} cycles, live {row['live_mib']} MiB, {row['elapsed_s']:.1f} s,"
        f" CPU {row['server_cpu_s']:.1f} s, {idle:.0%} idle, foreign {foreign_share(row):.1%}"
        f" ({'crowded' if row['crowded'] else 'quiet'}) {' '.join(row['achieved_rps'])}"
        f"{'' if row['finished'] else ' not finished'}"
    )


def say(message: str) -> None:
    print(f"{datetime.now(UTC):%H:%M:%S} {message}", flush=True)
