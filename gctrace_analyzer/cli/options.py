"""Options and what they have in common."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from gctrace_analyzer import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Parser(argparse.ArgumentParser):
    """An argument parser that does not guess abbreviations and ends with the next step."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            **settings,
        )

    def error(self, message: str) -> NoReturn:
        """Wrong usage: what is wrong, and where the help is."""
        self.exit(2, f"{self.prog}: {message}\n  Try {self.prog} --help.\n")


def common(parser: argparse.ArgumentParser) -> None:
    """Adds the options every command has."""
    parser.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        metavar="WHEN",
        help="colours on a terminal only (auto, the default), always or never",
    )
    parser.add_argument("--debug", action="store_true", help="show tracebacks")
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")


def written(
    parser: argparse.ArgumentParser, formats: Sequence[str], suffixes: Iterable[str]
) -> None:
    """Adds what a report is printed as, and the files it is written to."""
    parser.add_argument(
        "-f", "--format", choices=formats, metavar="FORMAT",
        help=f"what to print: {', '.join(formats)} (default: text)",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", action="append", default=[], metavar="FILE", type=Path,
        help=f"write to FILE, by its suffix: {' '.join(suffixes)} (repeatable)",
    )  # fmt: skip


def known(
    parser: argparse.ArgumentParser,
    *,
    wanted: bool = False,
    by_side: bool = False,
    growing: bool = False,
) -> None:
    """Adds what is known of the program and its inputs.

    GOGC and limit may be `wanted` ones, or, like the Go version, one for each of several
    sides; a `growing` input can only be a log.
    """
    sides = "; 100,200: one for each side" if by_side else ""
    program = parser.add_argument_group("what is known of the program")
    program.add_argument(
        "--gogc",
        metavar="PERCENT",
        help="GOGC to try: 50,200,off" if wanted else f"its GOGC: 100, 50, off{sides}",
    )
    program.add_argument(
        "--memory-limit",
        metavar="SIZE",
        help="GOMEMLIMIT to try: 1GiB,off"
        if wanted
        else "its GOMEMLIMIT: 900MiB, off" + ("; off,1GiB: each side's" if by_side else ""),
    )
    program.add_argument(
        "--container-limit", metavar="SIZE", help="memory its container may have"
    )
    program.add_argument("--cpu-limit", metavar="CPUS", type=float, help="CPUs it may use: 1.5")
    program.add_argument(
        "--go-version", metavar="VERSION", help="the Go it was built with: 1.22"
    )
    program.add_argument(
        "--ballast", metavar="SIZE",
        help="ballasts to try: 0,64MiB" if wanted else "the ballast it keeps: 64MiB",
    )  # fmt: skip
    program.add_argument(
        "--off-heap", metavar="SIZE",
        help="its memory that Go does not count (cgo, mmap): 200MiB",
    )  # fmt: skip
    inputs = parser.add_argument_group("how to read the inputs")
    inputs.add_argument(
        "--year", type=int, help="year of the first line, where stamps have none"
    )
    inputs.add_argument(
        "--tz", metavar="ZONE", help="zone of stamps that name none: Europe/Berlin"
    )
    inputs.add_argument(
        "--start", metavar="TIME", help="start of the program, where nothing is stamped"
    )
    if growing:
        return
    inputs.add_argument(
        "--kind",
        metavar="KIND",
        help="what the inputs are, if not what they look like: log, json, journal-export, "
        "journal-verbose, memstats-csv, pprof, metrics, describe",
    )
    inputs.add_argument(
        "--columns",
        metavar="NAMES",
        help="columns of a MemStats table without a header: HeapSys,HeapAlloc,…",
    )
    inputs.add_argument(
        "--unpack-limit", metavar="SIZE", help="the most a compressed input may unpack to"
    )


def given(args: argparse.Namespace) -> dict[str, Any]:
    """These options as `read`, or `live`, takes them."""
    names = (
        "gogc", "memory_limit", "container_limit", "cpu_limit", "go_version", "ballast",
        "off_heap", "year", "tz", "start", "kind", "unpack_limit", "columns",
    )  # fmt: skip
    found = {name: getattr(args, name) for name in names if name in args}
    if found.get("columns"):
        found["columns"] = found["columns"].split(",")
    return found
