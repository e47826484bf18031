"""Builds the Go programs of this folder with any version of Go, and runs them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from resource import struct_rusage

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
BUILT = ROOT / "build" / "lab"


def built(name: str, version: str = "local", tag: str = "") -> Path:
    """Builds a program of `lab/go`, unless that is done; returns its path.

    Args:
        name: the folder of the program.
        version: of Go from 1.9 on, such as 1.19.13; `local` is that of this machine.
        tag: of files that are built with it only; with `metrics` the program's own go.mod counts.
    """
    program = BUILT / "-".join(filter(None, (name, tag, version)))
    if program.exists():
        return program
    if not shutil.which("go"):
        sys.exit("The go command is not installed: see https://go.dev/dl.")
    BUILT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        source = shutil.copytree(HERE / "go" / name, Path(folder) / "source")
        if tag != "metrics":
            # Go 1.16 and later need a module; up to 1.10 the file is ignored.
            (source / "go.mod").write_text(f"module {name}\n\ngo 1.9\n")
        # A flag that every release accepts: this machine's GOFLAGS may be too new for old ones.
        # Go 1.19 mistakes a toolchain in the module cache for a module unless the index is off.
        toolchain = version if version == "local" else f"go{version}"
        settings = {"GOTOOLCHAIN": toolchain, "GOFLAGS": "-p=2", "GODEBUG": "goindex=0"}
        done = subprocess.run(
            ["go", "build", "-tags", tag, "-o", f"{folder}/{name}", "."],
            cwd=source,
            env={**os.environ, **settings},
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            sys.exit(f"{toolchain} could not build lab/go/{name}:\n{done.stderr}")
        # Under its name only once it is whole: others may be waiting for it.
        partial = program.with_suffix(f".{os.getpid()}")
        shutil.copy(Path(folder) / name, partial)
        partial.replace(program)
    return program


def ran(command: Sequence[object], log: Path, settings: Mapping[str, str]) -> struct_rusage:
    """Runs a program to its end and returns what it used; its standard error is the log."""
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*map(str, command)], env={**os.environ, **settings}, stderr=file
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"the program failed: see {log}")
    return usage
