"""Makes the samples for the notebooks: one program under several settings."""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

from lab import sample
from lab.own import ROOT, built, ran

ABOUT = """Makes the samples for the notebooks: one program under several settings.

    lab/record studies                   all of them: about eight minutes on an idle machine
    lab/record studies ballast limits    some of them

    ballast    a service with 10 cycles a second: unchanged, with a ballast, GOGC, GOMEMLIMIT
    versions   one program built with Go 1.9 to 1.27
    limits     a fixed amount of work under tight and ample memory limits, three runs each
    change     a server before and after doubling GOGC, two runs each
    refill     a service that briefly has its cache twice, under a tight limit
    leak       a service whose live heap grows into its limit
    recycling  buffers that are dropped, and buffers that are reused: rows of MemStats

Each study is a folder of samples/ with its logs and `runs.csv`: the settings of each run, and
what the program, its runtime (runtime/metrics) and the system (the largest resident set)
measured. The programs are lab/go/loads and lab/go/workload.
"""
SAMPLES = ROOT / "samples"
SERVICE = ("-mode", "service", "-live", "25", "-rate", "250", "-dur", "20s")
WORK = ("-mode", "batch", "-live", "60", "-total", "3000")
SERVER = ("-mode", "http", "-live", "25", "-rate", "24000", "-dur", "20s")
REFILL = ("-mode", "refill", "-live", "40", "-rate", "150", "-dur", "20s")
LEAK = ("-mode", "leak", "-live", "40", "-rate", "150", "-leak", "400", "-dur", "125s")
BALLAST_MIB = 2048
LIMITS_MIB = (64, 72, 80, 88, 100, 120, 160, 240)
VERSIONS = ("1.9.7", "1.11.13", "1.14.15", "1.18.10", "1.22.12", "1.27.1")
FIELDS = (
    "name", "log", "go_version", "gogc", "memory_limit_mib", "ballast_mib", "wall_s", "work_s",
    "cycles", "gc_cpu_with_idle_share", "max_rss_mib",
)  # fmt: skip


def ballast() -> list[dict[str, Any]]:
    """Runs an unchanged service, and three ways to have fewer cycles."""
    same = str(round(100 * (BALLAST_MIB + 25) / 25))
    return [
        load("ballast", "as it is", SERVICE),
        load("ballast", "ballast", (*SERVICE, "-ballast", str(BALLAST_MIB))),
        load("ballast", "GOGC", SERVICE, GOGC=same),
        load("ballast", "GOMEMLIMIT", SERVICE, GOGC="off", GOMEMLIMIT=f"{BALLAST_MIB}MiB"),
    ]


def limits() -> list[dict[str, Any]]:
    """Runs with GOGC alone, then with memory limits from far too low to ample."""
    settings = [("GOGC=100", {"GOGC": "100"})]
    settings += [
        (f"{each} MiB", {"GOGC": "off", "GOMEMLIMIT": f"{each}MiB"}) for each in LIMITS_MIB
    ]
    return [
        load("limits", name, WORK, repeat=repeat, **env)
        for name, env in settings
        for repeat in (1, 2, 3)
    ]


def change() -> list[dict[str, Any]]:
    """Runs a server before and after a change of GOGC."""
    return [
        load("change", name, SERVER, repeat=repeat, GOGC=gogc)
        for repeat in (1, 2)
        for name, gogc in (("before", "100"), ("after", "200"))
    ]


def refill() -> list[dict[str, Any]]:
    """Runs under a limit that is sufficient until the cache is reloaded."""
    return [load("refill", "service", REFILL, GOMEMLIMIT="104MiB")]


def leak() -> list[dict[str, Any]]:
    """Runs a leak whose first part is enough to predict when it reaches the limit."""
    return [load("leak", "service", LEAK, GOMEMLIMIT="120MiB")]


def versions() -> list[dict[str, Any]]:
    """Runs the same work with every generation of the garbage collector."""
    return [
        {
            "name": version,
            "log": str(workload("versions", version, "steady", 5)),
            "go_version": version,
            "gogc": 100,
        }
        for version in VERSIONS
    ]


def recycling() -> list[dict[str, Any]]:
    """Runs a program that allocates buffers and prints MemStats."""
    return [
        {"name": name, "log": str(workload("recycling", "1.26.8", scenario, 10, name))}
        for name, scenario in (("new buffers", "buffers"), ("recycled", "recycled"))
    ]


STUDIES = {
    study.__name__: study
    for study in (ballast, versions, limits, change, refill, leak, recycling)
}


def load(
    study: str, name: str, words: tuple[str, ...], repeat: int | None = None, **env: str
) -> dict[str, Any]:
    """Runs lab/go/loads once and returns the row of the run."""
    stem = slug(name) + (f"-{repeat}" if repeat else "")
    log = SAMPLES / study / f"{stem}.log"
    with tempfile.TemporaryDirectory() as folder:
        truth = Path(folder) / "truth.json"
        settings = {"GODEBUG": "gctrace=1", "GOGC": "100", **env}
        usage = ran([built("loads"), *words, "-truth", truth], log, settings)
        found = json.loads(truth.read_text())
    print(f"{log.relative_to(ROOT)}: {found['NumGC']} cycles", flush=True)
    limit = env.get("GOMEMLIMIT", "").removesuffix("MiB")
    ballast_mib = words[words.index("-ballast") + 1] if "-ballast" in words else ""
    return {
        "name": name,
        "log": packed(log),
        "go_version": found["go_version"].removeprefix("go"),
        "gogc": settings["GOGC"],
        "memory_limit_mib": limit,
        "ballast_mib": ballast_mib,
        "wall_s": round(found["wall_s"], 3),
        "work_s": round(found["work_s"], 3),
        "cycles": found["NumGC"],
        "gc_cpu_with_idle_share": round(
            found["/cpu/classes/gc/total:cpu-seconds"]
            / found["/cpu/classes/total:cpu-seconds"],
            5,
        ),
        "max_rss_mib": round(usage.ru_maxrss / 1024, 1),
    }


def workload(study: str, go: str, scenario: str, seconds: int, name: str = "") -> str:
    """Makes a sample of lab/go/workload; returns the name of its file."""
    log = SAMPLES / study / f"{slug(name) or 'go' + go}.log"
    words = [str(log), "--go", go, "--scenario", scenario, "--seconds", str(seconds)]
    if name:
        words += ["--stdout", str(log.with_suffix(".csv"))]
    parser = argparse.ArgumentParser()
    sample.add_options(parser)
    sample.run(parser.parse_args(words))
    return log.with_suffix(".csv").name if name else packed(log)


def packed(log: Path) -> str:
    """Compresses the log reproducibly and returns the name of the file."""
    path = log.with_name(f"{log.name}.gz")
    with path.open("wb") as file, gzip.GzipFile("", "wb", mtime=0, fileobj=file) as packed:
        packed.write(log.read_bytes())
    log.unlink()
    return path.name


def slug(name: str) -> str:
    """Returns the name as part of a file name."""
    return name.lower().replace("gogc=", "gogc-").replace(" ", "-")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of studies."""
    parser.add_argument("names", nargs="*", choices=[*STUDIES, []], metavar="STUDY")


def run(args: argparse.Namespace) -> None:
    """Makes the studies named on the command line, by default all."""
    for name in args.names or STUDIES:
        folder = SAMPLES / name
        folder.mkdir(exist_ok=True)
        rows = STUDIES[name]()
        with (folder / "runs.csv").open("w", newline="") as file:
            table = csv.DictWriter(file, FIELDS, restval="", lineterminator="\n")
            table.writeheader()
            table.writerows(rows)
