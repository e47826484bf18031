"""`gctrace-analyze measure`: runs a program under several settings and says which is better."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.analysis.compare.rounds import FEWEST_ROUNDS
from gctrace_analyzer.cli import compare
from gctrace_analyzer.cli.deliver import Result, printed, text_writer
from gctrace_analyzer.cli.options import Parser, add_options, whole_number
from gctrace_analyzer.cli.screen import drawing, say
from gctrace_analyzer.cli.watch.signals import handling
from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.present.document import Code, Gap, Paragraphs
from gctrace_analyzer.units import duration_text

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from gctrace_analyzer.comparison import Comparison
    from gctrace_analyzer.trials.experiment import NoChangeError, Progress

_MEASURED = ("wall_s", "cpu_s", "max_rss_mib")

_DESCRIPTION = """\
Runs a program under several settings in turn, in rounds of random order, until
it is clear which setting is better or that they do not differ by more than
2 %. Measures run time, CPU time, resident memory and all that gctrace shows.

  gctrace-analyze measure --gogc 100,200 -- ./bench -n 5

The first setting is the baseline; the effects of the others are predicted from
its first run, before they run. Without settings, the current environment is
compared with the recommended settings:

  gctrace-analyze measure -- ./bench -n 5

A server runs for a fixed time, or until its load ends:

  gctrace-analyze measure --gogc 100,200 --ready http://localhost:8080/ \\
      --load 'hey -n 20000 http://localhost:8080/' -- ./server"""

_EPILOG = """\
examples:
  gctrace-analyze measure --gogc 100,200,400 --runs 5 -- ./bench
  gctrace-analyze measure --memory-limit off,1GiB -o measured.html -- ./bench
  gctrace-analyze measure --metric 'ns/op=([\\d.]+) ns/op' --gogc 100,200 \\
      -- ./parse.test -test.bench Parse -test.run '^$'
  gctrace-analyze measure --gogc 100,200 --for 30s --ready 'listening on' \\
      --metric 'p99=99%+ in (.+)' --load 'hey -z 1h http://localhost:8080/' \\
      -- ./server
  gctrace-analyze measure --side base='./base.test -test.bench .' \\
      --side head='./head.test -test.bench .' --fail-on 'wall_s>+2%'
  gctrace-analyze measure --logs measured-1 --runs 40    continue
  gctrace-analyze measure --logs measured-1              show it again

One figure decides: there is a change if its interval excludes 0 %, and none if
its interval lies within -2 % to +2 %. That figure is the first of --metric and
--metric-up; without them, the run time, or the CPU time with --for or --load.

The program runs in its own session, without standard input. When it ends,
everything that it started is ended as well. For `go run` and `go test`, the
program that they build is measured.

exit codes: 0 measured, or no other setting is recommended, 1 a --fail-on
condition is true, 2 wrong usage, 3 the program cannot be started or fails,
70 internal error, 130 interrupted"""


def run(args: argparse.Namespace) -> Result:
    """Measures the sides."""
    from gctrace_analyzer.present.sections.comparison import verdict
    from gctrace_analyzer.trials.experiment import NoChangeError

    options = _options(args)
    compare.validate(args, options.pop("measured"))
    folder: list[Path] = []
    try:
        with handling(_end, ("SIGTERM", "SIGHUP")), drawing("starting") as draw:
            comparison = _measure(args, options, draw, folder)
        result = compare.result(comparison, args)
        steps = [Code(text) for path in folder for text in _next(comparison, str(path))]
        said = [verdict(comparison.pairs)]
    except NoChangeError as err:
        result, said = _no_change(err, args), []
        logs = sorted(log for path in folder for log in path.glob("*.log"))
        steps = [Code(shlex.join(["gctrace-analyze", str(log)])) for log in logs]
    if not folder or not folder[0].exists():
        return result
    where = f"Logs: {folder[0]}"
    if printed(args) != "text":
        say(" ".join((*said, where)))
    return replace(result, closing=lambda: (Gap(), Paragraphs([where]), *steps))


def _next(comparison: Comparison, logs: str) -> Iterator[str]:
    """Yields commands that show every figure, and commands that add the rounds to decide a side."""
    yield shlex.join(["gctrace-analyze", "compare", logs, "--all"])
    if (measurement := comparison.pairs[0].measurement) is None:
        return
    needed = [
        measurement.rounds_needed(side) or FEWEST_ROUNDS
        for side in measurement.sides[1:]
        if (decision := measurement.decision(side)) is None or not decision.decides
    ]
    rounds = max([FEWEST_ROUNDS, *needed])
    if needed and rounds > measurement.rounds:
        words = ["gctrace-analyze", "measure", "--logs", logs, "--runs", str(rounds)]
        yield f"{shlex.join(words)}    # continue"


def _measure(
    args: argparse.Namespace, options: Mapping[str, Any], draw: Any, folder: list[Path]
) -> Comparison:
    from gctrace_analyzer.trials.experiment import measure
    from gctrace_analyzer.trials.measurements import MANIFEST

    def progress(now: Progress) -> None:
        folder[:] = [now.folder]
        if now.may_be_server:
            draw("", always=True)
            say(_of_server(args.program, now.port))
        if not (now.side or sys.stderr.isatty()):
            # A log of CI has no line to redraw: it shows each round once.
            say(_how_far(now))
        draw(_how_far(now), always=True)

    try:
        return measure(args.program or None, **options, progress=progress)
    except KeyboardInterrupt:
        draw("", always=True)
        if folder and (folder[0] / MANIFEST).exists():
            say(
                f"gctrace-analyze: interrupted; the runs are kept: add --logs {folder[0]} "
                "to continue"
            )
        raise


def _how_far(now: Progress) -> str:
    """Returns the round, the side that runs, and the time that is left."""
    most = f"{'' if now.is_fixed else 'at most '}{now.most}"
    name = f"round {now.round} of {most}" if now.round else "warm-up"
    parts = [name, now.side, "again, because other work disturbed it" if now.is_repeat else ""]
    if now.left_s:
        at_most = "" if now.is_fixed else "at most "
        parts.append(f"{at_most}about {duration_text(max(round(now.left_s), 1))} left")
    return " · ".join(filter(None, parts))


def _of_server(program: Sequence[str], port: int | None) -> str:
    """Returns a note for a program that does not end by itself."""
    ready = "URL" if port is None else f"tcp://127.0.0.1:{port}"
    what = "still runs" if port is None else f"listens on port {port} and still runs"
    name = program[0] if program else "The program"
    return (
        f"gctrace-analyze: {name} {what}. A server does not end by itself: stop this with Ctrl-C "
        f"and add\n  --for 30s, or --ready {ready} --load COMMAND"
    )


def _end(*_: object) -> None:
    """Ends like Ctrl-C when this process is asked to end, so that no program keeps running."""
    raise KeyboardInterrupt


def _no_change(err: NoChangeError, args: argparse.Namespace) -> Result:
    """Returns why there is nothing to compare, and what to try."""
    from gctrace_analyzer.present import json

    values = ",".join(f"{value:g}" for value in err.gogc)
    options = args.words[1 : args.words.index("--")] if "--" in args.words else []
    words = ["gctrace-analyze", "measure", "--gogc", values, *options, "--", *args.program]
    command = shlex.join(words)
    sentence = f"{err.problem[:1].upper()}{err.problem[1:]}."
    record = {"schema_version": json.SCHEMA_VERSION, "verdict": sentence, "try": command}
    return Result(
        document=lambda: [Paragraphs([f"{sentence} To try one:"]), Code(command)],
        writers={"json": text_writer(lambda: json.written(record))},
    )


def command_parser() -> Parser:
    """Returns the parser of this command."""
    parser = Parser(
        "measure",
        _DESCRIPTION,
        _EPILOG,
        "[options] -- PROGRAM [ARGUMENT...]",
        "[options] --side NAME=COMMAND --side NAME=COMMAND",
    )
    parser.takes_program = True
    add_options(parser.add_argument_group("what is compared"), *_SIDES)
    rounds = "number of rounds (default: until it is decided, 6 to 20)"
    add_options(
        parser.add_argument_group("how many runs"),
        ("--runs", "N", rounds, whole_number("runs", 1)),
    )
    add_options(parser.add_argument_group("how it is run"), *_HOW)
    compare.add_delivery(parser)
    parser.add_facts(suffix="-now")
    parser.add_general()
    return parser


_SIDES = (
    ("--gogc", "LIST", "GOGC values to try: 100,200,off or 100..400"),
    ("--memory-limit", "LIST", "GOMEMLIMIT values to try: off,1GiB or 1GiB..2GiB"),
    ("--side", "NAME=COMMAND", "a command to compare, with its own settings (repeatable)"),
    ("--metric", "NAME=REGEX", "a figure in the output of the program or its load; lower is "
     "better. Its value is the first group of the last match (repeatable; the first one decides). "
     "Or one of " + ", ".join(_MEASURED)),
    ("--metric-up", "NAME=REGEX", "likewise; higher is better"),
)  # fmt: skip
_HOW = (
    ("--logs", "FOLDER", "folder for the logs of all runs (default: a new one, measured-1); runs "
     "already in it count, and new ones are added"),
    ("--stdin", "FILE", "what the program reads (default: nothing)"),
    ("--timeout", "TIME", "how long a run, or its load, may take (default: 10m)"),
    ("--for", "TIME", "for a server: stop it after this time, such as 30s"),
    ("--ready", "URL|REGEX", "for a server: it is ready when this http://, https:// or tcp:// "
     "address answers, or when its output matches"),
    ("--load", "COMMAND", "for a server: start this command when the server is ready, and stop the "
     "server when the command has ended"),
)  # fmt: skip


def _options(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the options as `measure` takes them, and the names of the metrics."""
    from gctrace_analyzer.trials.experiment import Facts

    metrics = {name: _by_name(getattr(args, name), name) for name in ("metric", "metric_up")}
    values = {
        name: text.split(",")
        for name in ("gogc", "memory_limit")
        if (text := getattr(args, name)) is not None
    }
    names = ("runs", "ready", "load", "stdin", "timeout", "logs", *Facts.__annotations__)
    given = {name: value for name in names if (value := getattr(args, name)) is not None}
    length = {} if (text := getattr(args, "for")) is None else {"serve_for": text}
    measured = [*_MEASURED, *metrics["metric"], *metrics["metric_up"]]
    sides, first = _by_name(args.side, "sides"), _first_metric(args)
    given |= {"sides": sides, "decides": first, "measured": measured}
    return {**given, **length, **values, **metrics}


def _first_metric(args: argparse.Namespace) -> str | None:
    """Returns the first metric on the command line; None without any."""
    options = args.words[: args.words.index("--")] if "--" in args.words else args.words
    word = next((word for word in options if word.startswith("--metric")), None)
    if word is None:
        return None
    first = args.metric_up if word.startswith("--metric-up") else args.metric
    return str(first[0]).partition("=")[0]


def _by_name(words: Sequence[str], option: str) -> dict[str, str]:
    """Returns the values of an option that is given as NAME=VALUE.

    Raises:
        BadSettingError: a value has another form.
    """
    named = {}
    for word in words:
        name, _, value = word.partition("=")
        if not value and name in _MEASURED and option == "metric":
            named[name] = ""
            continue
        if not name or not value:
            expected = "NAME=COMMAND" if option == "sides" else "NAME=REGEX"
            raise BadSettingError(option, word, expected)
        named[name] = value
    return named
