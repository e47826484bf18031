"""Records programs under known settings: the command."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lab.regimes import cases, others, tiny
from lab.regimes.recorder import NOTE, record
from lab.regimes.tiny import scraped
from lab.services.build import BuildError

if TYPE_CHECKING:
    import argparse

ABOUT = """Records programs whose settings are known at every moment, and change while they run.

    lab/record settings --list
    lab/record settings -o FOLDER
    lab/record settings -o FOLDER --only go1.9,limit-tight-5

FOLDER gets a log of each, and manifest.json with the settings from when on. Half of them are
programs of others; only the settings are compared, so other work may use the machine. The
states of a tiny service (--only tiny/) are judged by their pauses too: `chrt -f 10 lab/record …`
puts them before other work.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of settings."""
    parser.add_argument("--list", action="store_true", help="list the recordings")
    parser.add_argument("-o", dest="folder", type=Path, help="folder for the recordings")
    parser.add_argument("--only", metavar="A,B", help="only those whose names begin so")


def run(given: argparse.Namespace) -> None:
    """Records what is chosen; the manifest keeps the rows of the others."""
    begins = tuple(given.only.split(",")) if given.only else ("",)
    chosen = [
        case
        for case in (*cases.every(), *others.every(), *tiny.states())
        if case.name.startswith(begins)
    ]
    if given.list:
        for case in chosen:
            env = " ".join(f"{name}={value}" for name, value in case.env.items())
            print(f"{case.name:28} {env:32} {case.plan}")
        return
    if not given.folder:
        sys.exit("-o FOLDER or --list is required")
    given.folder.mkdir(parents=True, exist_ok=True)
    manifest = given.folder / "manifest.json"
    known = json.loads(manifest.read_text())["logs"] if manifest.exists() else []
    rows = {row["log"]: row for row in known}
    for case in chosen:
        try:
            recording = scraped(case) if case.tag == "metrics" else record(case)
        except BuildError as error:
            print(f"{case.name} is left out: {error}", file=sys.stderr)
            continue
        for name, data in recording.files.items():
            path = given.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        rows[recording.row["log"]] = recording.row
        ordered = [rows[name] for name in sorted(rows)]
        manifest.write_text(json.dumps({"note": NOTE, "logs": ordered}, indent=1) + "\n")
        print(f"{case.name}: {recording.row['cycles']} cycles", flush=True)
