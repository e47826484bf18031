"""`gctrace-analyze compare`: two sides of a change, or several settings."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from gctrace_analyzer.cli import fail_on, to_a_reader
from gctrace_analyzer.cli.options import Parser, common, given, known, written
from gctrace_analyzer.cli.output import output, save
from gctrace_analyzer.cli.progress import reading
from gctrace_analyzer.errors import BadSettingError

if TYPE_CHECKING:
    import argparse

    from gctrace_analyzer.comparison import Comparison, Sweep

FORMATS = ("text", "md", "json", "csv", "html")
SUFFIXES = {
    ".txt": "text", ".md": "md", ".json": "json", ".csv": "csv", ".parquet": "parquet",
    ".html": "html",
}  # fmt: skip
_BY_SIDE = ("gogc", "memory_limit", "go_version")

_DESCRIPTION = """\
Is it really better? Two sides of a change, figure by figure, with 95 %
intervals; ~ marks what noise could do. Whether the sides can be compared at
all is said first: load, GOMAXPROCS, Go version, settings.

  gctrace-analyze compare before.log after.log

A SIDE is a log, or NAME=LOG,LOG,… for several runs of the same program under
the same setting; a quoted pattern stands for all files of that name. More than
two sides make a table with one row each, the best marked."""

_EPILOG = """\
examples:
  gctrace-analyze compare before=a1.log,a2.log,a3.log after=b1.log,b2.log,b3.log
  gctrace-analyze compare 100='gogc100-*.log' 200='gogc200-*.log' --gogc 100,200
  gctrace-analyze compare 900MiB='900-*.log' 1GiB='1g-*.log' 2GiB='2g-*.log'
  gctrace-analyze compare before.log after.log -o comparison.html -o comment.md
  gctrace-analyze compare main.log branch.log --fail-on 'gc_cpu_share>+10%'

conditions of --fail-on:
  'gc_cpu_share>+10%'   more than 10 % above before, and not by noise
  'gc_per_s>+0.5'       more than 0.5/s above before, and not by noise
  'stw_p99_ms>2'        after, whatever it was before
  verdict:worse         any figure worse; stw_p99_ms:worse for one
  finding:bad           something bad is found after (also warn, GC016, a name)
Of several settings each is held against the first.

exit codes: 0 compared, 1 a --fail-on held, 2 wrong usage, 3 input unusable,
70 a bug, 130 interrupted"""


def run(words: list[str]) -> int:
    """Runs the verb; the exit code."""
    args = _parser().parse_args(words)
    outputs = [(path, output(path, SUFFIXES)) for path in args.output]
    named = _named(args.sides)
    fail_on.check(args)
    from gctrace_analyzer.analysis.checks import condition
    from gctrace_analyzer.analysis.compare.metrics import NAMED

    for text in args.fail_on:
        condition(text, list(NAMED), changes=True)
    found = _compared(named, args)
    code = 0
    if args.fail_on or args.junit:
        code = fail_on.verdict(args, found.judge(*args.fail_on))
    for path, kind in outputs:
        save(path, partial(_write, found, kind))
    if args.format or not outputs:
        with to_a_reader():
            _print(found, args.format or "text", args.color)
    return code


def _print(found: Comparison | Sweep, kind: str, color: str) -> None:
    if kind == "text":
        from gctrace_analyzer.cli.screen import show

        show(found.lines(), color)
    else:
        _write(found, kind, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="gctrace-analyze compare", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument(
        "sides", nargs="+", metavar="SIDE", help="a log, or NAME=LOG,LOG,…: two or more"
    )
    written(parser, FORMATS, SUFFIXES)
    parser.add_argument(
        "--between", metavar="A..B", help="only cycles that start then, in every run: 10s..60s"
    )
    fail_on.gating(parser, "'gc_cpu_share>+10%%', 'stw_p99_ms>2', verdict:worse, finding:bad")
    known(parser, by_side=True)
    common(parser)
    return parser


def _named(words: list[str]) -> dict[str, list[str]]:
    """The logs of each side by its name."""
    if len(words) < 2:
        raise BadSettingError(
            what="compare", value=words[0], expected="two sides or more: before.log after.log"
        )
    named: dict[str, list[str]] = {}
    short = _short_names(words)
    for word in words:
        label, logs = _side(word)
        if label in short:
            label = short[label]
            # The same log twice: of two sides one is to be told from the other.
            label += f" ({words.count(word)})" if label in named else ""
        if label in named:
            raise BadSettingError(
                what="compare", value=word,
                expected=f"another name: {label!r} is taken. NAME=LOG gives one",
            )  # fmt: skip
        named[label] = logs
    return named


def _short_names(words: list[str]) -> dict[str, str]:
    """For sides without a name: that of the file, or of its folder if all are called alike."""
    from gctrace_analyzer.present.format import told_apart

    paths = [word for word in words if "=" not in word or Path(word).exists()]
    names = told_apart(paths)
    if len(paths) == len(words) and len({Path(path).name for path in paths}) == 1:
        names = [str(Path(name).parent) if "/" in name else name for name in names]
    return dict(zip(paths, names, strict=True))


def _side(word: str) -> tuple[str, list[str]]:
    label, equals, logs = word.partition("=")
    if not equals or Path(word).exists():
        return word, [word]
    paths = (
        [logs] if logs and Path(logs).exists() else [path for path in logs.split(",") if path]
    )
    if not label or not paths:
        raise BadSettingError(what="compare", value=word, expected="a log, or NAME=LOG,LOG,…")
    return label, paths


def _compared(named: dict[str, list[str]], args: argparse.Namespace) -> Comparison | Sweep:
    from gctrace_analyzer.api import runs_of
    from gctrace_analyzer.comparison import between, over
    from gctrace_analyzer.sides import Side
    from gctrace_analyzer.units import span_s

    options = _by_side(given(args), len(named))
    sides = []
    for (label, logs), settings in zip(named.items(), options, strict=True):
        with reading() as progress:
            runs = runs_of(logs, progress=progress, **settings)
        if args.between is not None:
            span = span_s(args.between, what="--between")
            runs = [run.between(*span) for run in runs]
        sides.append(Side(label, runs))
    return between(*sides) if len(sides) == 2 else over(sides)


def _by_side(options: dict[str, Any], sides: int) -> list[dict[str, Any]]:
    """The options of each side: one value is for all of them, several are one each."""
    every: list[dict[str, Any]] = [dict(options) for _ in range(sides)]
    for name in _BY_SIDE:
        if (text := options[name]) is None:
            continue
        values = [value.strip() for value in text.split(",")]
        if len(values) not in (1, sides):
            raise BadSettingError(
                what="--" + name.replace("_", "-"), value=text,
                expected=f"one value, or {sides}: one for each side",
            )  # fmt: skip
        for index, each in enumerate(every):
            each[name] = values[index % len(values)] or None
    return every


def _write(found: Comparison | Sweep, kind: str, file: IO[bytes]) -> None:
    if kind == "parquet":
        found.frame.write_parquet(file)
        return
    match kind:
        case "md":
            text = found.to_markdown()
        case "json":
            text = found.to_json()
        case "csv":
            text = found.frame.write_csv()
        case "html":
            text = found.to_html()
        case _:
            text = f"{found}\n"
    file.write(text.encode("utf-8", "replace"))
