"""Reads inputs, and shows progress and warnings; options for a server instead of a file."""

from __future__ import annotations

import warnings
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from gctrace_analyzer.cli.options import add_options, read_options
from gctrace_analyzer.cli.screen import drawing, say, working
from gctrace_analyzer.errors import BadSettingError, GctraceWarning

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from gctrace_analyzer.ingest.sources import SourceFacts
    from gctrace_analyzer.prometheus.fetch import FetchProgress
    from gctrace_analyzer.run import Run

    OnProgress: TypeAlias = Callable[[SourceFacts], None]

_OPTIONS = (
    "match", "since", "until", "instance", "step", "save", "token_file", "user", "password_file",
    "ca_file",
)  # fmt: skip


_AS_INPUT = """\
In place of a file: prometheus+http://localhost:9090, with --match, --since
(default: {}), --until, --instance, --step, --save, --token-file, --user,
--password-file, --header, --ca-file: see gctrace-analyze help prometheus"""


def add_server_as_input(
    parser: argparse.ArgumentParser, since: str = "1h"
) -> argparse._ArgumentGroup:
    """Adds the options for an input such as `prometheus+http://localhost:9090`.

    The help only names them: `help prometheus` explains them.

    Args:
        parser: where to add them.
        since: how far back the time range begins by default.
    """
    group = add_server(parser, since)
    group.title, group.description = "a Prometheus server as input", _AS_INPUT.format(since)
    group._group_actions.clear()  # The help shows this; the options are still parsed and completed.
    return group


def add_server(parser: argparse.ArgumentParser, since: str = "1h") -> argparse._ArgumentGroup:
    """Adds the options for a server, with their help."""
    group = parser.add_argument_group("the server")

    add_options(
        group,
        ("--match", "SELECTOR", "label matchers that select processes, for example "
         """'{job="api"}' (default: all Go processes)"""),
        ("--since", "TIME",
         f"start of the time range: 6h, 7d or 2026-11-21T09:00:00Z (default: {since})"),
        ("--until", "TIME", "end of the time range, in the same form (default: now)"),
        ("--instance", "NAME", "only the process with this address, host or pod"),
        ("--step", "STEP",
         "fetch one point per STEP instead of all samples, for long ranges: 1m"),
        ("--save", "FILE", "also save the answers of the server: raw.json.gz, or raw.json"),
        ("--token-file", "FILE", "file with a bearer token; without credentials here, "
         "PROMETHEUS_TOKEN, or PROMETHEUS_USER and PROMETHEUS_PASSWORD, are taken from the "
         "environment"),
        ("--user", "NAME", "user for basic authentication"),
        ("--password-file", "FILE", "file with the password of the user"),
        ("--header", "HEADER", "another header, for example 'X-Scope-OrgID: team-a', or @FILE with "
         "one per line (repeatable)"),
        ("--ca-file", "FILE", "certificates to trust, in PEM format"),
    )  # fmt: skip
    return group


def server_options(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the options for a server that were given, as `read` takes them.

    Raises:
        BadSettingError: a header is not valid, or the file to save to has no folder.
    """
    options = {
        name: value for name in _OPTIONS if (value := getattr(args, name, None)) is not None
    }
    if args.header:
        from gctrace_analyzer.prometheus.credentials import parse_headers

        options["headers"] = parse_headers(args.header)
    if "save" in options:
        _validate_file(Path(options["save"]))
    return options


def _validate_file(path: Path) -> None:
    """Refuses a file that cannot be written, before anything is fetched."""
    if path.is_dir() or not path.resolve().parent.is_dir():
        raise BadSettingError("save", str(path), "a file in an existing folder")


@contextmanager
def reading_inputs(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yields the options for `read`; shows progress while inputs are read."""
    options = {**read_options(args), **server_options(args)}
    with reading() as progress, fetching() if _asks_server(args) else nullcontext() as fetched:
        of_server = {"fetching": fetched} if fetched else {}
        yield {**options, **of_server, "progress": progress}


def _asks_server(args: argparse.Namespace) -> bool:
    from gctrace_analyzer.ingest.sources import is_server

    words = getattr(args, "inputs", None) or args.sides
    return any(is_server(word) or "=prometheus+" in word for word in words)


@contextmanager
def fetching() -> Iterator[Callable[[FetchProgress], None]]:
    """Yields the `fetching` argument of `read`, which draws one line on a terminal."""
    with drawing() as draw:

        def progress(now: FetchProgress) -> None:
            share = 100 * now.done_s / now.span_s if now.span_s else 100
            draw(f"fetching: {share:3.0f} %, {now.samples:,} samples, {now.bytes >> 20} MiB")

        yield progress


@contextmanager
def reading() -> Iterator[OnProgress]:
    """Yields the `progress` argument for `read`; prints the warnings at the end."""
    with saying_warnings(), working() as say_what:
        yield lambda facts: say_what(_how_far(facts))


@contextmanager
def saying_warnings(advice: str = "") -> Iterator[None]:
    """Prints the warnings of the block at its end, each followed by what to do."""
    with warnings.catch_warnings(
        record=True, action="always", category=GctraceWarning
    ) as caught:
        yield
    for warning in caught:
        say(f"gctrace-analyze: {warning.message}{advice}")


def say_damage(*runs: Run) -> None:
    """Prints which inputs could only be read in part, such as a truncated archive."""
    for run in runs:
        for source in run.sources:
            if source.damage:
                loss = f"{source.damage}; everything before it was used"
                say(f"gctrace-analyze: {source.name}: {loss}")


def _how_far(facts: SourceFacts) -> str:
    """Returns how much of an input is read, and then that its tables are being built."""
    path = Path(facts.name)
    size = path.stat().st_size if path.is_file() else 0
    if not size:
        return f"reading {path.name}: {facts.bytes >> 20} MiB"
    if facts.bytes >= size:
        return f"reading {path.name}: 100 %, putting its tables together"
    return f"reading {path.name}: {100 * facts.bytes / size:.0f} %"
