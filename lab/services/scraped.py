"""Records programs through a real Prometheus, together with the gctrace of the same processes."""

from __future__ import annotations

import contextlib
import gzip
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.own import ROOT
from lab.services.build import HOME, binary, get, go_version, title
from lab.services.processes import Process, answers, start, stop_all
from lab.services.programs import Debian
from lab.services.recorder import say

if TYPE_CHECKING:
    from lab.services.scraped_programs import Scraped, Wave

SERVER = Debian("prometheus", "usr/bin/prometheus")
INTERVALS = ("1s", "15s", "60s")
EXPVAR_S = 15
READY_S = 60
# The samples of the server's own pages have no use here, and histograms no part in the figures.
KEPT = "(go|process)_.*"
DROPPED = ".*_bucket"
# Lines of a program's log may name the machine; only those of the collector are kept.
GC_LINES = (b"gc ", b"scvg")


@dataclass(slots=True)
class Running:
    """One program under way."""

    run: Scraped
    process: Process
    started: float
    ports: dict[str, str]
    folder: Path
    log: Path
    loads: list[Process] = field(default_factory=list)
    expvar: list[str] = field(default_factory=list)

    def filled(self, text: str) -> str:
        """Returns the text with this run's ports and folder."""
        return filled(text, self.ports)


@dataclass(slots=True)
class MetricsLab:
    """A folder of recordings; each wave of programs runs at the same time."""

    folder: Path
    manifest: list[dict[str, Any]]

    @classmethod
    def opened(cls, folder: Path) -> MetricsLab:
        """Opens the folder; what it has is kept."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "manifest.json"
        return cls(folder, json.loads(path.read_text())["runs"] if path.exists() else [])

    def record(self, wave: Wave, seconds: float | None = None) -> None:
        """Runs the programs of a wave together and keeps what Prometheus scraped."""
        done = {row["dir"] for row in self.manifest}
        runs = [run for run in wave.runs if self.directory(wave, run) not in done]
        if not runs:
            return
        span_s = seconds or wave.seconds
        get(SERVER)
        for source in dict.fromkeys(
            source
            for run in runs
            for source in (run.target.source, *(load.source for load in run.target.load))
        ):
            get(source)
        with tempfile.TemporaryDirectory(dir=HOME) as temporary:
            running = [launched(run, Path(temporary)) for run in runs]
            try:
                running = [each for each in running if ready(each)]
                self.scrape(wave, running, span_s, Path(temporary))
            finally:
                stop_all()

    @staticmethod
    def directory(wave: Wave, run: Scraped) -> str:
        """Returns the folder of a recording, relative to the lab's."""
        return f"{wave.name}/{run.folder}"

    def scrape(
        self, wave: Wave, running: list[Running], span_s: float, temporary: Path
    ) -> None:
        """Has Prometheus scrape what runs, under load, for the given time."""
        url = serve(running, temporary)
        date = datetime.now(UTC)
        for each in running:
            for load in each.run.target.load:
                words = tuple(
                    each.filled(word).replace("{seconds}", f"{span_s + 5:g}")
                    for word in load.words
                )
                each.loads.append(start(load.source, words, env={}))
        begin = time.time()
        say(f"{wave.name}: {len(running)} programs, {span_s:g} s")
        while (left := begin + span_s - time.time()) > 0:
            read_expvar(running)
            time.sleep(min(left, EXPVAR_S))
        end = time.time()
        for each in running:
            try:
                row = self.keep(wave, each, url, begin, end)
            except (OSError, RuntimeError) as error:
                say(f"{each.run.folder}: not kept: {error}")
                continue
            row["date"] = date.strftime("%Y-%m-%dT%H:%M:%SZ")
            self.add(row)
            say(f"{row['dir']}: {row['cycles']} cycles, {row['cpu_s']:.1f} s of CPU")

    def keep(
        self, wave: Wave, each: Running, url: str, begin: float, end: float
    ) -> dict[str, Any]:
        """Saves what the server has of one program, and the program's log."""
        run = each.run
        target = self.folder / self.directory(wave, run)
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for interval in INTERVALS:
            save(url, run, interval, (begin, end), target / f"raw-{interval}.json.gz")
        query_range(url, run, "15s", (begin, end), target / "query_range-15s.json.gz")
        if each.expvar:
            text = "".join(f"{line}\n" for line in each.expvar).encode()
            (target / "expvar.jsonl.gz").write_bytes(gzip.compress(text, mtime=0))
        ended, cpu_s, rss = (
            each.process.ended,
            each.process.cpu_s(),
            each.process.peak_rss_mib(),
        )
        each.process.stop(grace_s=1)
        lines = [
            line
            for line in each.log.read_bytes().splitlines(keepends=True)
            if line.startswith(GC_LINES)
        ]
        (target / "run.log.gz").write_bytes(gzip.compress(b"".join(lines), mtime=0))
        return {
            "dir": self.directory(wave, run),
            "wave": wave.name,
            "name": run.target.name,
            "setting": run.label,
            "program": title(run.target.source),
            "go_version": go_version(run.target.source),
            "env": run.env,
            "command": [binary(run.target.source).name, *run.target.words],
            "load": [[binary(load.source).name, *load.words] for load in run.target.load],
            "started_unix_s": round(each.started, 3),
            "window_unix_s": [round(begin, 3), round(end, 3)],
            "finished": not ended,
            "cycles": len(lines),
            "cpu_s": round(cpu_s, 2),
            "rss_peak_mib": round(rss),
        }

    def add(self, row: dict[str, Any]) -> None:
        """Appends a row to the manifest, which is valid JSON at every moment."""
        self.manifest.append(row)
        path = self.folder / "manifest.json"
        unfinished = path.with_suffix(".json.part")
        unfinished.write_text(json.dumps({"runs": self.manifest}, indent=1) + "\n")
        unfinished.rename(path)


def filled(text: str, ports: dict[str, str]) -> str:
    for name, value in ports.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def free_ports(number: int) -> list[str]:
    """Returns ports that nothing listens on, different from each other."""
    with contextlib.ExitStack() as stack:
        found = []
        for _ in range(number):
            probe = stack.enter_context(socket.socket())
            probe.bind(("127.0.0.1", 0))
            found.append(str(probe.getsockname()[1]))
    return found


def launched(run: Scraped, temporary: Path) -> Running:
    """Starts a program with gctrace."""
    folder = temporary / run.folder.replace("/", "-")
    folder.mkdir()
    ports = dict(zip("abc", free_ports(3), strict=True)) | {"run": str(folder)}
    for name, text in run.target.files.items():
        (folder / name).write_text(filled(text, ports))
    log = folder / "stderr.log"
    env = {name: filled(value, ports) for name, value in run.target.env.items()}
    with log.open("wb") as stderr:
        process = start(
            run.target.source,
            tuple(filled(word, ports) for word in run.target.words),
            env={**env, "HOME": str(folder), "GODEBUG": "gctrace=1", **run.env},
            stderr=stderr,
        )
    return Running(run, process, time.time(), ports, folder, log)


def ready(each: Running) -> bool:
    """Waits until the program serves its metrics; False if it does not."""
    address = each.filled(each.run.target.metrics)
    port = int(address.partition(":")[2].partition("/")[0])
    end = time.monotonic() + READY_S
    while time.monotonic() < end and not each.process.ended:
        if answers(port):
            return True
        time.sleep(0.05)
    say(f"{each.run.folder}: left out, it serves no metrics: {each.log.read_text()[-300:]}")
    return False


def serve(running: list[Running], temporary: Path) -> str:
    """Starts a Prometheus that scrapes the programs by three jobs; returns its address."""
    jobs = []
    for interval in INTERVALS:
        for each in running:
            address, _, path = each.filled(each.run.target.metrics).partition("/")
            jobs.append(
                {
                    "job_name": f"{interval} {each.run.folder}",
                    "scrape_interval": interval,
                    "scrape_timeout": "1s",
                    "metrics_path": f"/{path}",
                    "static_configs": [
                        {
                            "targets": [address],
                            "labels": {"job": interval, "lab": each.run.folder},
                        }
                    ],
                    "metric_relabel_configs": [
                        {"source_labels": ["__name__"], "regex": KEPT, "action": "keep"},
                        {"source_labels": ["__name__"], "regex": DROPPED, "action": "drop"},
                    ],
                }
            )
    config = temporary / "scrape.yml"
    # JSON is YAML.
    config.write_text(json.dumps({"scrape_configs": jobs}))
    (port,) = free_ports(1)
    start(
        SERVER,
        (
            f"--config.file={config}",
            f"--storage.tsdb.path={temporary / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--log.level=error",
        ),
        env={},
    )
    end = time.monotonic() + READY_S
    while not answers(int(port)) and time.monotonic() < end:
        time.sleep(0.1)
    return f"http://127.0.0.1:{port}"


def read_expvar(running: list[Running]) -> None:
    """Reads the MemStats of the programs that serve them."""
    for each in running:
        if not each.run.target.expvar:
            continue
        with contextlib.suppress(OSError, ValueError, KeyError):
            address = f"http://{each.filled(each.run.target.expvar)}"
            at = time.time()
            found = json.load(urllib.request.urlopen(address, timeout=2))["memstats"]
            found.pop("BySize", None)
            each.expvar.append(json.dumps({"time": round(at, 3), "memstats": found}))


def save(url: str, run: Scraped, interval: str, span: tuple[float, float], path: Path) -> None:
    """Saves the samples of one job as gctrace-analyzer fetches them."""
    since, until = (datetime.fromtimestamp(at, UTC).isoformat() for at in span)
    command = [
        *(sys.executable, "-m", "gctrace_analyzer", "prometheus", url),
        *("--match", f'{{job="{interval}",lab="{run.folder}"}}'),
        *("--since", since, "--until", until, "--save", str(path), "-f", "json"),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    # A minute may have no sample of a slow job.
    if not path.exists() and interval == INTERVALS[0]:
        raise RuntimeError(done.stderr[-300:])


def query_range(
    url: str, run: Scraped, interval: str, span: tuple[float, float], path: Path
) -> None:
    """Saves the answer to a range query whose step is the scrape interval."""
    begin, end = span
    fields = {
        "query": f'{{__name__=~"{KEPT}",job="{interval}",lab="{run.folder}"}}',
        "start": f"{begin:.3f}",
        "end": f"{end:.3f}",
        "step": interval,
    }
    address = f"{url}/api/v1/query_range?{urllib.parse.urlencode(fields)}"
    text = urllib.request.urlopen(address, timeout=60).read()
    path.write_bytes(gzip.compress(text, mtime=0))
