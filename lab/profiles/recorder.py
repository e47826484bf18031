"""Runs the programs, and keeps their logs, profiles, counters and what pprof makes of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from typing import TYPE_CHECKING, Any

import plotly

from lab.own import ROOT
from lab.profiles.programs import BUILT, LEAKS, OWN, REAL, Own, Real, built, go, installed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SIDES = 5
"""Runs with everything, and without each function."""
PROCS = 2
SCRAPES, SCRAPE_S = 400, 12.0
"""Requests to a server, and at most this many seconds of them."""
REPORTS = {
    "top": ("-top",),
    "alloc_space": ("-sample_index=alloc_space", "-top"),
    "alloc_space-cum": ("-sample_index=alloc_space", "-top", "-cum"),
    "alloc_space-lines": ("-sample_index=alloc_space", "-top", "-lines"),
    "alloc_objects": ("-sample_index=alloc_objects", "-top"),
    "inuse_space": ("-sample_index=inuse_space", "-top"),
}
"""Reports of pprof that are kept: one as people read it, and all functions in bytes."""
EVERYTHING = ("-unit=B", "-nodefraction=0", "-nodecount=1000000")


def environment() -> dict[str, str]:
    """Returns the environment of every program."""
    return {
        **os.environ,
        "GODEBUG": "gctrace=1",
        "GOGC": "100",
        "GOMAXPROCS": str(PROCS),
        "STATICCHECK_CACHE": str(BUILT / "cache"),
    }


def first_of_all(words: Sequence[object]) -> list[str]:
    """Returns the command that runs before other work of this machine."""
    return ["chrt", "-f", "10", *map(str, words)]


def ran(words: Sequence[object], log: Path) -> None:
    """Runs a program to its end; its standard error is the log."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as errors:
        code = subprocess.run(
            [*map(str, words)],
            env=environment(),
            stderr=errors,
            stdout=subprocess.DEVNULL,
            check=False,
        ).returncode
    # What lists files with findings exits with 1.
    if code not in (0, 1):
        sys.exit(f"{words[0]} failed: see {log}")
    # Only the records: what a program prints is not needed.
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(line for line in lines if line.startswith((b"gc ", b"scav"))))


def reports(profile: Path, folder: Path) -> None:
    """Keeps what `go tool pprof` prints about a profile."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, words in REPORTS.items():
        more = () if name == "top" else EVERYTHING
        text = go(["tool", "pprof", *words, *more, str(profile)], BUILT)
        (folder / f"{name}.txt").write_text(text)


def record_own(program: Own, folder: Path) -> dict[str, Any]:
    """Runs one of our programs with all its sites, and without each large one in turn."""
    path = built(program.name)
    home = folder / program.name
    words = [path, *program.words]
    for number in range(1, SIDES + 1):
        for side in ("", *program.removed):
            run = home / "runs" / f"{short(side) or 'all'}-{number}"
            more = ["-off", side] if side else []
            if not side and number == 1:
                more = ["-allocs", f"{home}/allocs.pb.gz", "-heap", f"{home}/heap.pb.gz"]
            truth = run.with_suffix(".json")
            truth.parent.mkdir(parents=True, exist_ok=True)
            ran(first_of_all([*words, *more, "-truth", truth]), run.with_suffix(".log"))
    reports(home / "allocs.pb.gz", home / "pprof")
    shutil.copy(home / "runs" / "all-1.log", home / "run.log")
    shutil.copy(home / "runs" / "all-1.json", home / "truth.json")
    print(program.name, flush=True)
    return {
        "name": program.name,
        "source": f"lab/go/{program.name}",
        "removed": {side: short(side) for side in program.removed},
    }


def short(function: str) -> str:
    """Returns parse for main.(*worker).parse."""
    return function.rpartition(".")[2]


def record_real(program: Real, folder: Path) -> dict[str, Any]:
    """Runs a program of others."""
    path, home = installed(program), folder / program.name
    home.mkdir(parents=True, exist_ok=True)
    profile = home / "allocs.pb.gz"
    # With its results of an earlier run, staticcheck has nothing to do.
    shutil.rmtree(BUILT / "cache", ignore_errors=True)
    inputs = BUILT / "inputs"
    inputs.mkdir(exist_ok=True)
    script = plotly.offline.get_plotlyjs()
    for name in ("script.js", "copy.js"):
        (inputs / name).write_text(script)
    places = {
        "profile": profile,
        "inputs": inputs,
        "goroot": go(["env", "GOROOT"], BUILT).strip(),
    }
    words = [path, *(word.format(**places) for word in program.words)]
    if program.serves:
        serve(words, program.serves, home)
    else:
        ran(first_of_all(words), home / "run.log")
        whole = profile.read_bytes()
        if not whole.startswith(b"\x1f\x8b"):
            sys.exit(f"{program.name} wrote no profile")
    reports(profile, home / "pprof")
    print(program.name, flush=True)
    return {
        "name": program.name,
        "source": f"{program.package}@{program.version}",
        "command": " ".join([program.name, *program.words]),
        "go": go(["env", "GOVERSION"], BUILT).strip(),
    }


def serve(words: Sequence[object], port: int, home: Path) -> None:
    """Runs a server under requests, and fetches its profiles as a user would."""
    address = f"http://127.0.0.1:{port}"
    log = home / "run.log"
    with log.open("wb") as errors:
        server = subprocess.Popen(first_of_all(words), env=environment(), stderr=errors)
        try:
            until_ready(f"{address}/debug/pprof/")
            end = time.monotonic() + SCRAPE_S
            for _ in range(SCRAPES):
                fetched(f"{address}/metrics")
                if time.monotonic() > end:
                    break
            for kind in ("allocs", "heap"):
                (home / f"{kind}.pb.gz").write_bytes(fetched(f"{address}/debug/pprof/{kind}"))
        finally:
            server.terminate()
            server.wait()
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(line for line in lines if line.startswith(b"gc ")))


def fetched(url: str) -> bytes:
    """Returns the body of an answer."""
    with urllib.request.urlopen(url, timeout=60) as answer:
        body: bytes = answer.read()
        return body


def until_ready(url: str) -> None:
    """Waits until a server answers."""
    for _ in range(100):
        try:
            fetched(url)
        except OSError:
            time.sleep(0.05)
        else:
            return
    sys.exit(f"{url} does not answer")


def record_leaks(folder: Path) -> list[dict[str, Any]]:
    """Runs all leaks side by side: only their memory matters."""
    path = built("leaks")
    running = []
    for name in LEAKS:
        home = folder / "leaks" / name
        home.mkdir(parents=True, exist_ok=True)
        with (home / "run.log").open("wb") as errors:
            words = [str(path), "-leak", name, "-folder", str(home)]
            running.append(subprocess.Popen(words, env=environment(), stderr=errors))
    for process in running:
        if process.wait():
            sys.exit("a leak failed")
    print("leaks", flush=True)
    return [
        {
            "name": name,
            "source": source,
            "function": subprocess.run(
                [path, "-leak", name, "-function"], text=True, capture_output=True, check=True
            ).stdout.strip(),
        }
        for name, source in LEAKS.items()
    ]


SLOW = ("-seconds", "20", "-rate", "16000", "-work", "2", "-live", "48")
"""A service that allocates so fast that its goroutines have to help with marking."""


def record_samples(folder: Path) -> None:
    """Records the samples of the notebook, and copies those of the documentation."""
    samples = ROOT / "samples" / "profiles"
    samples.mkdir(exist_ok=True)
    path = built("requests")
    for name, more in {
        "service": ("-allocs", str(samples / "service-allocs.pb.gz")),
        "service-fixed": ("-off", "main.decode"),
    }.items():
        ran(first_of_all([path, *SLOW, *more]), samples / f"{name}.log")
    for name in ("esbuild", "staticcheck", "node_exporter", "leaks/cache"):
        short_name = name.rpartition("/")[2].replace("cache", "leak")
        shutil.copy(folder / name / "run.log", samples / f"{short_name}.log")
        for kind in ("allocs", "heap-early", "heap-late"):
            if (profile := folder / name / f"{kind}.pb.gz").exists():
                shutil.copy(profile, samples / f"{short_name}-{profile.name}")


def record_all(folder: Path, only: str | None) -> None:
    """Records everything, or what `only` names; the manifest keeps the rest."""
    from lab.profiles.others import record_others

    path = folder / "manifest.json"
    manifest = json.loads(path.read_text()) if path.exists() else {}
    chosen = only.split(",") if only else ["own", "real", "leaks", "others", "samples"]
    folder.mkdir(parents=True, exist_ok=True)
    steps = {
        "own": lambda: [record_own(program, folder) for program in OWN],
        "real": lambda: [record_real(program, folder) for program in REAL],
        "leaks": lambda: record_leaks(folder),
        "others": lambda: record_others(folder / "others"),
    }
    for name in chosen:
        if name == "samples":
            record_samples(folder)
            continue
        manifest[name] = steps[name]()
        path.write_text(json.dumps(manifest, indent=1) + "\n")
