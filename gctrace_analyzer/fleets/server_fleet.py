"""The rows of a fleet from a server: it computes them, and the worst are read in full."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.analysis.fleet import scraped
from gctrace_analyzer.analysis.fleet.answers import answers as answers_of
from gctrace_analyzer.errors import GctraceError
from gctrace_analyzer.fleets.fleet_rows import rows_of
from gctrace_analyzer.fleets.inputs import Item
from gctrace_analyzer.fleets.output import Output, span_of
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.prometheus import queries
from gctrace_analyzer.prometheus.address import parse
from gctrace_analyzer.prometheus.question import Question, answered, question

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import polars as pl

    from gctrace_analyzer.prometheus.access import QuestionOptions
    from gctrace_analyzer.prometheus.discovery import Target
    from gctrace_analyzer.schema import Row

SINCE = "6h"


@frozen
class Asking:
    """Progress of the queries to a server: those done so far, and all."""

    done: int
    queries: int


def fleet_of_server(
    url: str,
    where: str,
    *,
    worst: int,
    overwrite: bool = False,
    progress: Callable[[Asking], None] | None = None,
    server: QuestionOptions,
    facts: Mapping[str, Any],
) -> pl.LazyFrame:
    """Returns a row for each Go process of a server (`schema.FLEET`).

    Each query covers up to 2,000 processes. An interrupted run resumes with the same time range;
    finished groups of processes are in the output already.

    Args:
        url: the address of the server.
        where: the folder for the rows.
        worst: how many processes are read sample by sample, and get recommendations.
        overwrite: discard what is in the output already.
        progress: called after each query.
        server: `QuestionOptions`; by default the last six hours.
        facts: options of `read` for the processes that are read.

    Raises:
        GctraceError: as `read`.
    """
    server = {**server, "since": server.get("since") or SINCE}
    options = {
        "server": parse(url).url,
        **{name: str(server.get(name)) for name in ("match", "since", "until")},
        "read": {name: str(value) for name, value in facts.items() if value},
    }
    if not overwrite and (span := span_of(where, options)) is not None:
        server["since"], server["until"] = span
    asked = question(url, **server)
    ends = (asked.span.begin, asked.span.end)
    target = Output(where, options, overwrite=overwrite, span=ends)
    named = _named(asked)
    _ask(asked, target, named, progress)
    ranked = answers_of(target.frame().collect()).processes["file"].to_list()
    for name in ranked[:worst]:
        target.add(_read(asked.only(named[name]), name, facts), len(named))
    target.finish(len(named))
    return target.frame()


def _named(asked: Question) -> dict[str, Target]:
    """Returns the processes by name; equal names get all of their labels."""
    often = Counter(target.name for target in asked.targets)
    return {
        target.name if often[target.name] == 1 else ",".join(map(str, target.matchers)): target
        for target in asked.targets
    }


def _ask(
    asked: Question,
    target: Output,
    named: Mapping[str, Target],
    progress: Callable[[Asking], None] | None,
) -> None:
    """Saves the rows that the server computes, group by group."""
    groups = list(queries.batches(asked))
    called = {id(target): name for name, target in named.items()}
    done = 0

    def tick() -> None:
        nonlocal done
        done += 1
        if progress:
            progress(Asking(done, len(groups) * queries.QUERIES_PER_BATCH))

    for number, batch in enumerate(groups):
        own = [called[id(target)] for target in batch.targets]
        if not target.done.issuperset(own):
            figures = queries.figures(asked, batch, tick)
            rows = scraped.rows(figures, asked.span.seconds, own, asked.server.url)
            target.add_computed(rows, len(named))
        done = (number + 1) * queries.QUERIES_PER_BATCH


def _read(asked: Question, name: str, facts: Mapping[str, Any]) -> list[Row]:
    """Returns the row of one process from its samples; the computed row if they are unusable."""
    from gctrace_analyzer.api import read

    known = queries.identified(asked.targets[0])
    identity = {name_: known[name_] for name_ in ("service", "namespace", "pod", "container")}
    try:
        with answered(asked) as answers:
            limit = facts.get("container_limit") or answers.container_limit_mib
            rows = rows_of(
                read(answers.file(), **{**facts, "container_limit": limit}),
                Item(name, name, None),
                {name: value for name, value in identity.items() if value},
            )
            return [{**row, "server": asked.server.url} for row in rows]
    except GctraceError:
        return []
