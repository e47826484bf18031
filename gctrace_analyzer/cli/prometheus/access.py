"""The options for which server to ask, how and what; and progress while it answers."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from gctrace_analyzer.cli.screen import drawing

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from gctrace_analyzer.prometheus.read import ReadKwargs
    from gctrace_analyzer.prometheus.samples import Progress


def add_which(parser: argparse.ArgumentParser, since: str) -> argparse._ArgumentGroup:
    """Adds the options for which processes and which time range are asked for."""
    group = parser.add_argument_group("which metrics")
    add_match(group)
    group.add_argument(
        "--since",
        metavar="TIME",
        default=since,
        help=f"begin of the time range: 6h, 7d or 2026-11-21T09:00:00Z (default: {since})",
    )
    group.add_argument(
        "--until", metavar="TIME", help="its end, in the same form (default: now)"
    )
    return group


def add_match(group: argparse._ArgumentGroup) -> None:
    """Adds the option for which processes are asked for."""
    group.add_argument(
        "--match",
        metavar="SELECTOR",
        help="""label matchers that select processes, for example '{job="api"}' """
        "(default: all Go processes)",
    )


def add_sampling(group: argparse._ArgumentGroup) -> None:
    """Adds the options for one process and for how many of its samples are fetched."""
    group.add_argument(
        "--instance", metavar="NAME", help="only the process with this address, host or pod"
    )
    group.add_argument(
        "--step",
        metavar="STEP",
        help="fetch one point per STEP instead of all samples, for long ranges: 1m",
    )


def add_access(parser: argparse.ArgumentParser) -> None:
    """Adds the options for credentials and certificates."""
    group = parser.add_argument_group(
        "access",
        "Without these, PROMETHEUS_TOKEN, or PROMETHEUS_USER and PROMETHEUS_PASSWORD\n"
        "are taken from the environment. HTTPS_PROXY and NO_PROXY are respected.",
    )
    group.add_argument("--token-file", metavar="FILE", help="file with a bearer token")
    group.add_argument("--user", metavar="NAME", help="user for basic authentication")
    group.add_argument("--password-file", metavar="FILE", help="file with that user's password")
    group.add_argument(
        "--header",
        action="append",
        default=[],
        metavar="HEADER",
        help="a further header, for example 'X-Scope-OrgID: team-a', or @FILE with one per line "
        "(repeatable)",
    )
    group.add_argument("--ca-file", metavar="FILE", help="certificates to trust, in PEM format")


def asked_for(args: argparse.Namespace) -> ReadKwargs:
    """Returns the parsed options as arguments of `read_prometheus`."""
    from gctrace_analyzer.prometheus.credentials import parse_headers

    found: ReadKwargs = {
        "match": args.match,
        "token_file": args.token_file,
        "user": args.user,
        "password_file": args.password_file,
        "headers": parse_headers(args.header),
        "ca_file": args.ca_file,
    }
    if "since" in args:
        found["since"], found["until"] = args.since, args.until
    if "instance" in args:
        found["instance"], found["step"] = args.instance, args.step
    return found


@contextmanager
def downloading() -> Iterator[Callable[[Progress], None] | None]:
    """Yields the `progress` argument for a download: one line, if the user sees a terminal."""
    with drawing() as draw:

        def progress(now: Progress) -> None:
            share = 100 * now.done_s / now.span_s if now.span_s else 100
            draw(f"fetching: {share:3.0f} %, {now.samples:,} samples, {now.bytes >> 20} MiB")

        yield progress
