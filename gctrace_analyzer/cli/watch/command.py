"""`gctrace-analyze watch`: a program while it runs, or a log while it is written."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from gctrace_analyzer.cli.deliver import Result, suffixes_of, write_files
from gctrace_analyzer.cli.options import (
    OneOf,
    Parser,
    add_options,
    is_piped,
    read_options,
    with_options,
)
from gctrace_analyzer.cli.report import FORMATS as REPORT_FORMATS
from gctrace_analyzer.cli.report import Page, of_run
from gctrace_analyzer.cli.screen import Colors, say
from gctrace_analyzer.errors import (
    NO_GCTRACE,
    BadSettingError,
    GctraceError,
    UnwritableOutputError,
)
from gctrace_analyzer.files import near_name
from gctrace_analyzer.units import duration_s

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from typing import IO, NoReturn, TextIO

    from gctrace_analyzer.cli.watch.session import Watched
    from gctrace_analyzer.present.document import Block
    from gctrace_analyzer.run import Run

FORMATS = ("dashboard", "lines", "jsonl")
_EXECUTABLE_STARTS = (b"\x7fELF", b"#!")

_DESCRIPTION = """\
Shows what the garbage collector is doing right now: starts a program with
gctrace on, follows a log while it is written (also through log rotation), or
reads a pipe.

  gctrace-analyze watch -- ./server --port 8080

On a terminal it shows a dashboard, elsewhere one line per interval. When the
program ends, or on Ctrl-C, it prints the full report."""

_EPILOG = """\
examples:
  gctrace-analyze watch -- ./server --port 8080      start a program
  gctrace-analyze watch run.log                      follow a log
  kubectl logs -f api-7d9f | gctrace-analyze watch
  gctrace-analyze watch --advise --log run.log -- ./server
  gctrace-analyze watch -f jsonl --every 5s run.log | jq .gc_cpu_share
  gctrace-analyze watch -o report.html -- ./parse.test -test.bench .
  gctrace-analyze watch --pprof http://localhost:6060 --log run.log -- ./server

A program keeps its standard input and output, its signals and its terminal;
gctrace=1 is added to its GODEBUG. Its standard error stays visible, without
the gctrace lines; the lines about intervals and the report go there too. For a
log or a pipe, both go to standard output.

exit codes: for a program, its own (128+n if signal n ended it; 127 if it does
not exist, 126 if it cannot be executed). For a log or pipe: 0 analysed, also
after Ctrl-C, 2 wrong usage, 3 no usable input"""


def run(args: argparse.Namespace) -> Result:
    """Watches to the end, and shows the report."""
    command: list[str] = args.program
    _validate(args)
    if sys.stderr is None:
        # The parent process closed standard error; the program must run anyway.
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115  # until the process ends
    out = sys.stderr if command else sys.stdout
    with ExitStack() as stack:
        args.log_file = stack.enter_context(_open_output(args.log)) if args.log else None
        args.intervals_file = (
            stack.enter_context(_open_output(args.intervals)) if args.intervals else None
        )
        outcome = _watch(args, command, out)
    whole = outcome.live.run().with_notes(with_options) if outcome.live.lines else None
    has_data = whole is not None and not whole.is_empty
    if whole is not None and has_data:
        whole = _with_profiles(whole, args)
        _print_report(args, whole, out)
        write_files(of_run(whole, Page(theme=args.theme)), args)
    else:
        _print_nothing_found(outcome, command, args)
    _print_profiles(args, whole)
    if outcome.signal:
        _die_by_signal(outcome.signal)
    return Result(is_empty=not has_data, program_code=(outcome.code or 0) if command else None)


def command_parser() -> Parser:
    """Returns the parser of this command."""
    parser = Parser(
        "watch",
        _DESCRIPTION,
        _EPILOG,
        "[options] -- PROGRAM [ARGUMENT...]",
        "[options] FILE",
        "[options] -",
    )
    parser.takes_program = True
    text = (
        "a log that is being written (waited for if it does not exist yet); - or a pipe: "
        "standard input"
    )
    parser.add_input("input", "FILE", text, nargs="?")
    _add_view(parser)
    _add_files(parser)
    parser.add_facts()
    parser.add_reading(growing=True)
    parser.add_general()
    return parser


def _add_view(parser: argparse.ArgumentParser) -> None:
    view = parser.add_argument_group("what to show")
    add_options(
        view,
        ("-f --format", "FORMAT", "dashboard (default on a terminal), lines (default elsewhere), "
         "or jsonl: JSON objects of type interval and episode, and finally report",
         OneOf("format", FORMATS)),
        ("--every", "TIME", "length of an interval, for example 5s or 1m (default: 10s)",
         str, "10s"),
        ("--window", "TIME", "how far back the dashboard looks, for example 30m (default: 5m)",
         str, "5m"),
        ("--advise", "", "keep showing the recommended settings"),
        ("--show-gctrace", "", "also show the program's gctrace lines"),
    )  # fmt: skip


def _add_files(parser: argparse.ArgumentParser) -> None:
    files = parser.add_argument_group("files to write")
    parser.set_defaults(formats=REPORT_FORMATS)
    suffixes = " ".join(suffixes_of(REPORT_FORMATS))
    add_options(
        files,
        ("-o --output", "FILE", "write the final report to FILE; the suffix sets the format: "
         f"{suffixes} (repeatable)", Path),
        ("--intervals", "FILE",
         "write one JSON line per interval to FILE, in addition to what is shown", Path),
        ("--log", "FILE", "save the program's complete standard error to FILE", Path),
        ("--pprof", "URL", "fetch heap profiles from net/http/pprof at URL: at the first severe "
         "finding or growing heap, then every minute, and before Ctrl-C or SIGTERM reaches the "
         "program; the first and the last are kept next to the log"),
    )  # fmt: skip


def _validate(args: argparse.Namespace) -> None:
    """Refuses options that cannot work, and converts durations to seconds."""
    if os.name == "nt":
        command_parser().error(
            "watch needs the signals and terminals of Unix; on Windows, use WSL"
        )
    if not args.program and not args.input and is_piped():
        args.input = "-"
    if bool(args.input) == bool(args.program):
        command_parser().error(
            "give one of: the FILE of a log, - for standard input, a program after --"
        )
    if args.log and not args.program:
        command_parser().error("--log is for a program after --; for a pipe, use tee")
    args.profiles = args.pprof_address = None
    if args.pprof:
        from gctrace_analyzer.cli.watch.profiles import address

        args.pprof_address = address(args.pprof)
    args.every_s = _positive_s(args.every, "every")
    args.window_s = _positive_s(args.window, "window")
    if args.input:
        _validate_input(args.input)


def _positive_s(text: str, argument: str) -> float:
    seconds = duration_s(text, argument=argument)
    if seconds <= 0:
        raise BadSettingError(argument, text, "a duration above 0")
    return seconds


def _validate_input(name: str) -> None:
    """Refuses inputs that would never deliver a line."""
    if name == "-":
        if sys.stdin.isatty():
            raise BadSettingError(
                "stdin", "the terminal", "a pipe: ./server 2>&1 | gctrace-analyze watch -"
            )
        return
    if "://" in name:
        expected = (
            "a log: gctrace-analyze URL reads /metrics once, prometheus URL asks a server"
        )
        raise BadSettingError("input", name, expected)
    path = Path(name)
    if path.is_file():
        with path.open("rb") as file:
            is_program = file.read(4).startswith(_EXECUTABLE_STARTS)
        if is_program:
            expected = (
                f"a log; to start a program: gctrace-analyze watch -- {shlex.quote(name)}"
            )
            raise BadSettingError("input", name, expected)
    elif not path.parent.is_dir():
        raise BadSettingError(
            "input", name, f"a log in an existing folder: {path.parent} does not exist"
        )


def _open_output(path: Path) -> IO[bytes]:
    try:
        return path.open("wb", buffering=0)
    except OSError as err:
        raise UnwritableOutputError(str(path), err.strerror or str(err)) from err


def _watch(args: argparse.Namespace, command: list[str], out: TextIO) -> Watched:
    """Watches to the end; returns what was read and how it ended."""
    environment = dict(os.environ)
    options = read_options(args)
    if command:
        from gctrace_analyzer.program import with_gctrace

        environment["GODEBUG"] = with_gctrace(environment.get("GODEBUG", ""))
        options["environment"] = environment
    from gctrace_analyzer.api import live
    from gctrace_analyzer.cli.watch.session import LogInput, Program, watch
    from gctrace_analyzer.cli.watch.views import ViewOptions

    name = args.input if args.input != "-" else "<stdin>"
    can_draw = out.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    view = ViewOptions(
        kind=args.format or ("dashboard" if can_draw else "lines"),
        out=out,
        colors=Colors.of(args),
        title=" ".join(command) if command else name,
        every_s=args.every_s,
        window_s=args.window_s,
        advise=args.advise,
        intervals=args.intervals_file,
    )
    source: Program | LogInput = LogInput(args.input)
    if command:
        source = Program(
            command,
            environment,
            log=args.log_file,
            records=args.show_gctrace,
            debug=args.debug,
        )
    reading = live(**options)
    if args.pprof_address:
        from gctrace_analyzer.cli.watch.profiles import HeapProfiles

        log = _profiled_log(args, command)
        args.profiles = HeapProfiles(args.pprof_address, log, reading, args.window_s)
    return watch(reading, view, source, args.profiles)


def _profiled_log(args: argparse.Namespace, command: list[str]) -> Path:
    """Returns the log next to which profiles are kept; without a log, one named after the input."""
    if command:
        return args.log or Path(Path(command[0]).name)
    return Path("stdin" if args.input == "-" else args.input)


def _with_profiles(whole: Run, args: argparse.Namespace) -> Run:
    """Returns the run with the heap profiles that were kept."""
    if args.profiles is None or not args.profiles.kept:
        return whole
    from gctrace_analyzer.api import read

    try:
        return whole.with_profiles_of([read(path) for path in args.profiles.kept])
    except GctraceError as err:
        say(f"gctrace-analyze: {err}")
        return whole


def _print_profiles(args: argparse.Namespace, whole: Run | None) -> None:
    """Prints which heap profiles were kept and how to use them, or how to get them."""
    if args.profiles is None:
        named = (
            (source.profiles_at for source in whole.sources if source.profiles_at)
            if whole
            else ()
        )
        if url := next(iter(named), None):
            say(f"Next: the log names net/http/pprof; watch --pprof {url} keeps heap profiles.")
        return
    kept = [shlex.quote(str(path)) for path in args.profiles.kept]
    if not kept:
        return
    log = args.log or (args.input if args.input not in (None, "-") else None)
    words = ["gctrace-analyze", *([shlex.quote(str(log))] if log else []), *kept]
    count = "A heap profile was" if len(kept) == 1 else "Two heap profiles were"
    say(f"{count} kept. The same report again:\n  {' '.join(words)}")


def _print_report(args: argparse.Namespace, whole: Run, out: TextIO) -> None:
    """Prints the report: as JSON after JSON lines, otherwise as one screen of text."""
    report = whole.report()
    try:
        if args.format == "jsonl":
            from gctrace_analyzer.present import json

            out.write(json.line("report", json.document(report)))
        else:
            from gctrace_analyzer.cli.screen import show
            from gctrace_analyzer.present.document import Gap
            from gctrace_analyzer.present.sections.report import document
            from gctrace_analyzer.present.text import lines

            def blocks() -> Iterator[Block]:
                yield Gap()
                yield from document(report)

            show(lines(blocks(), everything=False), Colors.of(args), out)
        out.flush()
    except OSError:
        if out is sys.stdout:
            raise
        # Ignore a closed stderr; the program's exit code must still be propagated.


def _print_nothing_found(
    outcome: Watched, command: list[str], args: argparse.Namespace
) -> None:
    if outcome.code in (126, 127):
        return
    count = outcome.live.lines
    lines = (
        f"{count:,} {'line' if count == 1 else 'lines'}, no gctrace" if count else "no gctrace"
    )
    if command:
        say(f"gctrace-analyze: {command[0]}: {lines}.\n  {NO_GCTRACE}")
    elif args.input != "-" and not Path(args.input).exists():
        say(
            f"gctrace-analyze: {args.input}: this file did not appear.{near_name(Path(args.input))}"
        )
    else:
        name = "<stdin>" if args.input == "-" else args.input
        say(
            f"gctrace-analyze: {name}: {lines}.\n"
            "  Was the program started with GODEBUG=gctrace=1, and is this its stderr?"
        )


def _die_by_signal(number: int) -> NoReturn:
    """Ends this process by a signal, so that the parent process sees how the program ended."""
    import resource

    sys.stdout.flush()
    sys.stderr.flush()
    # The program has written its core dump; a second one would be of no use.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    # Process 1 is still running here, because it ignores signals that it sends to itself.
    os._exit(128 + number)
