"""`gctrace-analyze compare`: before and after a change, or several settings."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.cli.deliver import Result, next_steps, retyped, row_writers, text_writer
from gctrace_analyzer.cli.options import Parser, add_options, read_options
from gctrace_analyzer.cli.reading import add_server_as_input, reading_inputs, say_damage
from gctrace_analyzer.cli.screen import working
from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.ingest.sources import is_server

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from gctrace_analyzer.comparison import Comparison

FORMATS = ("text", "md", "json", "csv", "html", "parquet")
_RANGES = ("before", "after")
_PER_SIDE = ("gogc", "memory_limit", "go_version")

_DESCRIPTION = """\
Compares logs from before and after a change, figure by figure, with 95 %
confidence intervals. A difference that is not significant is marked ~. Warns
first if the logs should not be compared: different load, GOMAXPROCS, Go
version or settings.

  gctrace-analyze compare before.log after.log

A SIDE is a log, or NAME=LOG,LOG,... for several runs of the same program with
the same settings; a quoted pattern stands for all matching files. With more
than two sides, each is compared with the first, in a table with one row per
side. Files with metrics work as well as logs. With a heap profile on each side,
the functions whose allocation changed are listed. A folder written by measure
contains all of its sides. Outputs of `go test -bench` are compared benchmark by
benchmark, old and new value; with gctrace also what GC costs in each:

  GODEBUG=gctrace=1 go test -bench . -benchmem -count 6 > after.log 2>&1

Two time ranges of a Prometheus server, such as before and after a deploy; each
process of the service is a run, so several pods show how much runs differ:

  gctrace-analyze compare prometheus+http://localhost:9090 \\
      --match '{job="api"}' --before 25h..24h --after 1h.."""

_EPILOG = """\
examples:
  gctrace-analyze compare before=a1.log,a2.log after=b1.log,b2.log
  gctrace-analyze compare before=a.log,a.pb.gz after=b.log,b.pb.gz
  gctrace-analyze compare 100='gogc100-*.log' 200='gogc200-*.log' --gogc 100,200
  gctrace-analyze compare 900MiB='900-*.log' 1GiB='1g-*.log' 2GiB='2g-*.log'
  gctrace-analyze compare before.log after.log -o comparison.html -o comment.md
  gctrace-analyze compare before.log after.log --promise promise.json
  gctrace-analyze compare measured-1
  gctrace-analyze compare main.log branch.log --fail-on 'gc_cpu_share>+10%'

conditions for --fail-on:
  'gc_cpu_share>+10%'   rose by more than 10 %, and the rise is significant
  'gc_per_s>+0.5'       rose by more than 0.5/s, and the rise is significant
  'bytes_per_op>+5%'    likewise, in any benchmark (also allocs_per_op)
  'stw_p99_ms>2'        above 2 ms after the change, whatever it was before
  verdict:worse         any figure is worse; stw_p99_ms:worse for one figure
  finding:bad           a bad finding after the change; also warn, GC016, a name
With more than two sides, each is compared with the first.

exit codes: 0 compared, 1 a --fail-on condition is true, 2 wrong usage,
3 no usable input, 70 internal error, 130 interrupted"""


def run(args: argparse.Namespace) -> Result:
    """Compares the sides."""
    validate(args)
    if len(args.sides) == 1 and Path(args.sides[0]).is_dir():
        from gctrace_analyzer.trials.measurements import Measurements

        with working("comparing"):
            return result(Measurements.opened(Path(args.sides[0])).comparison(), args)
    return result(_compare(args), args)


def result(comparison: Comparison, args: argparse.Namespace) -> Result:
    """Returns a comparison in every format."""
    is_cut = len(comparison.pairs) == 1 and not args.everything
    return Result(
        document=comparison.document,
        everything=args.everything,
        closing=lambda: next_steps(retyped(args, "comparison.html")) if is_cut else (),
        writers={
            **row_writers(lambda: comparison.frame, safe=False),
            "json": text_writer(comparison.to_json),
            "html": text_writer(partial(comparison.to_html, theme=args.theme)),
        },
        check=comparison.check,
    )


def command_parser() -> argparse.ArgumentParser:
    """Returns the parser of this command."""
    parser = Parser("compare", _DESCRIPTION, _EPILOG, "[options] SIDE SIDE...")
    text = "a log, or NAME=LOG,LOG,...: two or more sides"
    parser.add_input("sides", "SIDE", text, nargs="+")
    add_delivery(parser)
    add_options(
        parser.add_argument_group("selection"),
        ("--between", "A..B", "only cycles that start in this range of every run, counted from the "
         "start of the program: 10s..60s, 5m.."),
    )  # fmt: skip
    add_options(
        parser.add_argument_group("promises"),
        ("--promise", "FILE", "what was recommended before the change (recommend before.log -o "
         "promise.json): shows for each figure whether the prediction held"),
    )  # fmt: skip
    parser.add_facts(per_side="; 'A,B' gives one value per side")
    parser.add_reading()
    group = add_server_as_input(parser)
    for name, example in zip(_RANGES, ("3h..2h", "1h.."), strict=True):
        text = (
            f"of one server, the time range {name} the change: {example} (hours before now), "
            "or two times such as 2026-11-21T09:00Z"
        )
        add_options(group, (f"--{name}", "A..B", text))
    parser.add_general()
    return parser


def add_delivery(parser: Parser) -> None:
    """Adds the options for output and checks."""
    every = ("--all", "", "print every figure of two sides, not only the main ones")
    add_options(parser.add_output(FORMATS), every)
    parser.add_checks("'gc_cpu_share>+10%%', 'stw_p99_ms>2', verdict:worse or finding:bad")


def validate(args: argparse.Namespace, more: Sequence[str] = ()) -> None:
    """Refuses invalid conditions before any log is read.

    Args:
        args: with the conditions.
        more: the names of metrics that logs do not have.
    """
    from gctrace_analyzer.analysis.checks import condition
    from gctrace_analyzer.analysis.compare.metrics import NAMED

    for text in args.fail_on:
        condition(text, [*more, *NAMED], changes=True)


def _logs_by_side(words: list[str]) -> dict[str, list[str]]:
    """Returns the logs of each side, by the name of the side."""
    if len(words) < 2:
        expected = f"two sides or more: compare {shlex.join([*words, 'after.log'])}"
        raise BadSettingError("second side", "", expected)
    sides: dict[str, list[str]] = {}
    short = _short_names(words)
    for word in words:
        name, logs = _side(word)
        if name in short:
            name = short[name]
            # If the same log is given twice, the second one gets a number.
            name += f" ({words.count(word)})" if name in sides else ""
        if name in sides:
            expected = f"a side with another name, {name!r} is used twice: NAME={logs[0]}"
            raise BadSettingError("side", word, expected)
        sides[name] = logs
    return sides


def _short_names(words: list[str]) -> dict[str, str]:
    """Returns names for the sides that have none, by path.

    A name is the name of the file, or that of its folder if all files have the same name.
    """
    from gctrace_analyzer.present.format import short_paths

    paths = [word for word in words if "=" not in word or Path(word).exists()]
    names = short_paths(paths)
    if len(paths) == len(words) and len({Path(path).name for path in paths}) == 1:
        names = [str(Path(name).parent) if "/" in name else name for name in names]
    return dict(zip(paths, names, strict=True))


def _side(word: str) -> tuple[str, list[str]]:
    """Returns the name and the logs of a side given as LOG or NAME=LOG,LOG,..."""
    name, equals, logs = word.partition("=")
    if not equals or Path(word).exists():
        return word, [word]
    paths = (
        [logs] if logs and Path(logs).exists() else [path for path in logs.split(",") if path]
    )
    if not name or not paths:
        expected = "a log, or NAME=LOG,LOG,..."
        raise BadSettingError("side", word, expected)
    return name, paths


def _compare(args: argparse.Namespace) -> Comparison:
    from gctrace_analyzer.advise.expectation import promised_by
    from gctrace_analyzer.api import runs_of
    from gctrace_analyzer.comparison import Comparison, side_of
    from gctrace_analyzer.units import span_s

    promised = None if args.promise is None else promised_by(args.promise)
    sides = []
    for name, logs, settings in _read_as(args):
        with reading_inputs(args) as options:
            runs = runs_of(logs, **{**options, **settings})
        say_damage(*runs)
        if args.between is not None:
            span = span_s(args.between, argument="between")
            runs = [run.between(*span) for run in runs]
        sides.append(side_of(name, runs))
    with working("comparing"):
        return Comparison(sides, promised=promised)


def _read_as(args: argparse.Namespace) -> list[tuple[str, list[str], dict[str, Any]]]:
    """Returns the name, the inputs and the own options of each side.

    Raises:
        BadSettingError: there are no two sides, or options do not fit them.
    """
    ranges = {name: text for name in _RANGES if (text := getattr(args, name)) is not None}
    if not ranges:
        named = _logs_by_side(args.sides)
        own = options_per_side(read_options(args), len(named))
        return [(*side, how) for side, how in zip(named.items(), own, strict=True)]
    from gctrace_analyzer.prometheus.question import time_range

    if len(args.sides) != 1 or not is_server(args.sides[0]) or len(ranges) < len(_RANGES):
        name, text = next(iter(ranges.items()))
        expected = "one server, prometheus+http://…, with --before and --after"
        raise BadSettingError(name, text, expected)
    own = options_per_side(read_options(args), len(ranges))
    sides = []
    for (name, text), how in zip(ranges.items(), own, strict=True):
        since, until = time_range(text, name)
        sides.append((name, args.sides, {**how, "since": since, "until": until}))
    return sides


def options_per_side(options: dict[str, Any], sides: int) -> list[dict[str, Any]]:
    """Returns the options of each side.

    A single value applies to all sides; of several values, each applies to one side.
    """
    options_of_sides: list[dict[str, Any]] = [dict(options) for _ in range(sides)]
    for name in _PER_SIDE:
        if (text := options[name]) is None:
            continue
        values = [value.strip() for value in text.split(",")]
        if len(values) not in (1, sides):
            raise BadSettingError(name, text, f"one value, or {sides}: one for each side")
        for index, own in enumerate(options_of_sides):
            own[name] = values[index % len(values)] or None
    return options_of_sides
