"""`gctrace-analyze watch`: a program while it runs, a log while it is written."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gctrace_analyzer.cli import EXIT_INPUT
from gctrace_analyzer.cli.options import Parser, common, given, known
from gctrace_analyzer.cli.output import output, save
from gctrace_analyzer.cli.report import SUFFIXES, write
from gctrace_analyzer.cli.screen import say
from gctrace_analyzer.errors import BadSettingError, UnwritableOutputError
from gctrace_analyzer.units import duration_s

if TYPE_CHECKING:
    import argparse
    from typing import IO, NoReturn, TextIO

    from gctrace_analyzer.cli.watch.session import End
    from gctrace_analyzer.run import Run

_DESCRIPTION = """\
What the garbage collector does now. Starts a program with GODEBUG=gctrace=1
added to its environment, follows a log that is written to (through rotation
and truncation), or reads a pipe. On a terminal it shows a dashboard, elsewhere
a line per interval; when the program ends, or on Ctrl-C, the full report."""

_EPILOG = """\
examples:
  gctrace-analyze watch -- ./server --port 8080      start it, and watch
  gctrace-analyze watch run.log                      a log somebody else writes
  kubectl logs -f api-7d9f | gctrace-analyze watch -
  gctrace-analyze watch --advise --log run.log -- ./server
  gctrace-analyze watch -f jsonl --every 5s run.log | jq .gc_cpu_share
  gctrace-analyze watch -o report.html -- ./parse.test -test.bench .

a program keeps its standard input, output and signals; Ctrl-C reaches it once.
What it writes to standard error stays visible, but for the lines of gctrace;
what watch itself says goes there, too. Of a file or pipe it goes to standard
output.

exit codes: those of the program (128+n if a signal ended it; 127, 126 if it
could not be started). Of a file or pipe: 0 analysed, also after Ctrl-C,
3 nothing found"""

FORMATS = ("dashboard", "lines", "jsonl")


def run(words: list[str]) -> int:
    """Runs the verb; the exit code."""
    mine, command = _divided(words)
    parser = _parser()
    args = parser.parse_args(mine)
    if os.name == "nt":
        parser.error("there are no such signals and terminals on Windows; WSL has them")
    if bool(args.input) == bool(command):
        parser.error("name a log, or - for a pipe, or a program after --")
    if args.log and not command:
        parser.error("--log keeps what a program writes; a pipe can go through tee")
    outputs = [(path, output(path, SUFFIXES)) for path in args.output]
    args.every_s = _positive(args.every, "--every")
    args.window_s = _positive(args.window, "--window")
    if args.input:
        _check(args.input)
    if sys.stderr is None:
        # Closed by who started us: the program runs all the same.
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115  # to the very end
    out = sys.stderr if command else sys.stdout
    with ExitStack() as stack:
        args.log_file = stack.enter_context(_opened(args.log)) if args.log else None
        args.intervals_file = (
            stack.enter_context(_opened(args.intervals)) if args.intervals else None
        )
        end = _session(args, command, out)
    whole = end.live.run() if end.live.lines else None
    if whole is not None and whole.holds_anything:
        _tell(args, whole, out)
        for path, kind in outputs:
            save(path, partial(write, whole, kind, "timeline" if kind in _DRAWN else "cycles"))
    else:
        _nothing(end, command, args)
    if end.signal:
        _die(end.signal)
    if command:
        return end.code or 0
    return 0 if whole is not None and whole.holds_anything else EXIT_INPUT


_DRAWN = ("png", "svg")


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="gctrace-analyze watch",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        usage="%(prog)s [options] (FILE | - | -- PROGRAM [ARGUMENT ...])",
    )
    parser.add_argument(
        "input", nargs="?", metavar="FILE", help="a log that is written to, or - for a pipe"
    )
    parser.add_argument(
        "-f", "--format", choices=FORMATS, metavar="FORMAT",
        help="dashboard (on a terminal), lines (elsewhere), jsonl: objects of type interval, "
        "episode, and in the end report",
    )  # fmt: skip
    parser.add_argument(
        "--every", default="10s", metavar="TIME", help="length of an interval (default: 10s)"
    )
    parser.add_argument(
        "--window", default="5m", metavar="TIME",
        help="what the dashboard looks back on (default: 5m)",
    )  # fmt: skip
    parser.add_argument("--advise", action="store_true", help="say what to set, all along")
    parser.add_argument(
        "-o", "--output", action="append", default=[], metavar="FILE", type=Path,
        help=f"write the report to FILE in the end, by its suffix: {' '.join(SUFFIXES)} "
        "(repeatable)",
    )  # fmt: skip
    parser.add_argument(
        "--intervals", metavar="FILE", type=Path,
        help="write a JSON line per interval to FILE, whatever is shown",
    )  # fmt: skip
    parser.add_argument(
        "--log", metavar="FILE", type=Path,
        help="keep all that the program writes to standard error, byte for byte",
    )  # fmt: skip
    parser.add_argument(
        "--show-gctrace", action="store_true", help="show the program's lines of gctrace, too"
    )
    known(parser, growing=True)
    common(parser)
    return parser


def _divided(words: list[str]) -> tuple[list[str], list[str]]:
    """The options of ours, and the program with its own."""
    if "--" not in words:
        return words, []
    at = words.index("--")
    return words[:at], words[at + 1 :]


def _positive(text: str, option: str) -> float:
    seconds = duration_s(text, argument=option)
    if seconds <= 0:
        raise BadSettingError(argument=option, value=text, expected="a duration above 0")
    return seconds


def _check(name: str) -> None:
    """Refuses what would wait in vain."""
    if name == "-":
        if sys.stdin.isatty():
            raise BadSettingError(
                argument="-", value="the terminal", expected="a pipe: ./server 2>&1 | … watch -"
            )
        return
    path = Path(name)
    if path.is_file():
        with path.open("rb") as file:
            begin = file.read(4)
        if begin == b"\x7fELF" or begin.startswith(b"#!"):
            expected = f"a log. To start it: gctrace-analyze watch -- {shlex.quote(name)}"
            raise BadSettingError(argument="FILE", value=name, expected=expected)
    elif not path.parent.is_dir():
        raise BadSettingError(
            argument="FILE",
            value=name,
            expected=f"a log in an existing folder: {path.parent} is none",
        )


def _opened(path: Path) -> IO[bytes]:
    try:
        return path.open("wb", buffering=0)
    except OSError as err:
        raise UnwritableOutputError(str(path), err.strerror or str(err)) from err


def _session(args: argparse.Namespace, command: list[str], out: TextIO) -> End:
    """Watches to the end; what was seen, and how it ended."""
    environment = dict(os.environ)
    options = given(args)
    if command:
        from gctrace_analyzer.cli.watch.child import with_gctrace

        environment["GODEBUG"] = with_gctrace(environment.get("GODEBUG", ""))
        for name, variable in (("gogc", "GOGC"), ("memory_limit", "GOMEMLIMIT")):
            options[name] = options[name] or _understood(environment.get(variable), name)
    from gctrace_analyzer.api import live
    from gctrace_analyzer.cli.watch.session import Program, Reading, watch
    from gctrace_analyzer.cli.watch.views import Plan

    kind = args.format or ("dashboard" if _can_draw(out) else "lines")
    title = " ".join(command) if command else args.input if args.input != "-" else "<stdin>"
    plan = Plan(
        kind=kind,
        out=out,
        color=args.color,
        title=title,
        every_s=args.every_s,
        window_s=args.window_s,
        advise=args.advise,
        intervals=args.intervals_file,
    )
    if command:
        return watch(
            live(**options),
            plan,
            Program(command, environment, log=args.log_file, records=args.show_gctrace),
        )
    return watch(live(**options), plan, Reading(args.input))


def _understood(value: str | None, what: str) -> str | None:
    """A setting of the environment, if it is one that Go understands as we do."""
    from gctrace_analyzer import units

    try:
        if value and what == "gogc":
            units.gogc_percent(value, argument=what)
        elif value and value != "off":
            units.size_mib(value, argument=what)
    except BadSettingError:
        return None
    return value or None


def _can_draw(out: TextIO) -> bool:
    return out.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def _tell(args: argparse.Namespace, whole: Run, out: TextIO) -> None:
    """The full report, as what was shown all along."""
    report = whole.report()
    try:
        if args.format == "jsonl":
            from gctrace_analyzer.present import json

            out.write(json.line("report", json.document(report)))
        else:
            from gctrace_analyzer.cli.screen import show
            from gctrace_analyzer.present.text import lines

            show([(), *lines(report)], args.color, out)
        out.flush()
    except OSError:
        if out is sys.stdout:
            raise
        # Nobody reads our standard error: the program's exit code still counts.


def _nothing(end: End, command: list[str], args: argparse.Namespace) -> None:
    if end.code in (126, 127):
        return
    lines = f"{end.live.lines:,} lines, " if end.live.lines else ""
    if command:
        say(
            f"{command[0]}: {lines}no gctrace among them.\n"
            "  Is it a Go program that ran long enough to collect, and does GODEBUG reach it\n"
            "  (not cleared by sudo, env -i, a container)?"
        )
    else:
        name = "<stdin>" if args.input == "-" else args.input
        say(
            f"{name}: {lines}no gctrace.\n"
            "  Was the program started with GODEBUG=gctrace=1, and is this its stderr?"
        )


def _die(number: int) -> NoReturn:
    """Ends as the program did, so that whoever started us sees the same."""
    import resource

    sys.stdout.flush()
    sys.stderr.flush()
    # The program has written its core dump; ours would tell nothing.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    # A process 1 is spared by its own signals.
    os._exit(128 + number)
