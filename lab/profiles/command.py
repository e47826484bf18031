"""Records profiles with their logs: the command."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lab.profiles.recorder import record_all

if TYPE_CHECKING:
    import argparse

ABOUT = """Records programs with their gctrace and their profiles, and what is true of them.

    lab/record profiles -o FOLDER                    everything (12 minutes)
    lab/record profiles -o FOLDER --only real,leaks  some of own, real, leaks, others, samples

own: two of our programs count what each function allocates; each function that allocates a fifth
is removed in turn, five runs a side. real: four programs of public modules. leaks: six. others:
other kinds of profiles, other languages, damaged files. `go tool pprof` says what is in each.
samples: those in samples/profiles, from the others.
Run it as root, so that the programs come before other work.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of profiles."""
    parser.add_argument("-o", dest="folder", type=Path, help="folder for the recordings")
    parser.add_argument(
        "--only", metavar="A,B", help="only these of own, real, leaks, others, samples"
    )


def run(given: argparse.Namespace) -> None:
    """Records what is chosen."""
    if not given.folder:
        sys.exit("-o FOLDER is required")
    record_all(given.folder.resolve(), given.only)
