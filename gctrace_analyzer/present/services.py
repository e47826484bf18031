"""The services that a Prometheus server knows, ranked: as text, Markdown, JSON and HTML."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.present.document import (
    Code,
    Gap,
    Heading,
    Paragraphs,
    Statement,
    Title,
)
from gctrace_analyzer.present.fleet import MOST_ROWS, finite
from gctrace_analyzer.present.fleet_tables import cores
from gctrace_analyzer.present.format import (
    NONE,
    count,
    duration,
    mib,
    mib_per_s,
    printable,
    rate,
    share,
)
from gctrace_analyzer.present.format import milliseconds as ms
from gctrace_analyzer.present.ranking import Column, Ranking, ranking
from gctrace_analyzer.present.sections.verdict import WORDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from gctrace_analyzer.present.document import Block, Document
    from gctrace_analyzer.present.plots.palette import Theme

SCHEMA_VERSION = 1
_NAME_CHARS = 22
_GO_LINE = (
    "collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsAll))"
)
_STATES = {"thrashing": "thrashing", "killed": "killed for memory", "near": "close to it"}


@frozen
class Advised:
    """What the samples of one process say: its headline and its recommendation."""

    instance: str
    headline: str
    settings: str
    why: str


@frozen
class Services:
    """The processes of a server, ranked.

    Attributes:
        title: the server and the selector.
        span_s: the time range.
        rows: one row per process (`schema.PROMETHEUS`), the worst first.
        services: the same per service.
        advised: recommendations for the worst processes.
    """

    title: str
    span_s: float
    rows: pl.DataFrame
    services: pl.DataFrame
    advised: Sequence[Advised] = ()

    @property
    def facts(self) -> list[str]:
        """How many processes there are, and the verdict."""
        number = self.services["service"].n_unique()
        return [
            " · ".join(
                (
                    printable(self.title),
                    count(number, "service"),
                    count(len(self.rows), "process", "processes"),
                    duration(self.span_s),
                )
            )
        ]

    @property
    def verdict(self) -> tuple[str, str]:
        """The severity and the most important statement."""
        states = self.rows["state"]
        thrashing = int(states.eq("thrashing").sum())
        if thrashing:
            worst = self.rows.row(0, named=True)
            number = count(thrashing, "process is thrashing", "processes are thrashing")
            return "bad", f"{number}; the worst is {_whole_name(worst)}: {worst['reason']}"
        if killed := int(states.eq("killed").sum()):
            return "bad", count(
                killed, "process was killed for memory", "processes were killed for memory"
            )
        if near := int(states.eq("near").sum()):
            return "warn", count(
                near,
                "process is close to a memory limit",
                "processes are close to a memory limit",
            )
        return "ok", "no process is thrashing or close to its memory limit"


def document(found: Services, most: int = MOST_ROWS) -> Document:
    """Returns the verdict, the ranked tables, the advice for the worst, and notes."""
    severity, verdict = found.verdict
    blocks: list[Block] = [
        Title("Go garbage collection of services"),
        Paragraphs(found.facts, "bold"),
        Gap(),
        Statement(severity, WORDS[severity], f"{verdict[0].upper()}{verdict[1:]}."),
        *(ranked.table() for ranked in rankings(found, most)),
    ]
    for advised in found.advised:
        blocks += [Gap(), Heading(f"{printable(advised.instance)}: {advised.headline}")]
        blocks += (
            [Paragraphs([f"▸ {advised.settings}"], "bold green")] if advised.settings else []
        )
        blocks += [Paragraphs([advised.why], indent=2)] if advised.why else []
    blocks += [Gap(), Paragraphs(notes(found), "dim", indent=2)]
    return [*blocks, Code(_GO_LINE, in_terminal=True)] if _unknown(found) else blocks


def to_json(found: Services) -> str:
    """Returns the tables as one JSON object; unknown values are null."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "title": found.title,
        "span_s": found.span_s,
        "services": found.services.to_dicts(),
        "processes": found.rows.to_dicts(),
        "advice": [
            {
                "instance": each.instance,
                "headline": each.headline,
                "settings": each.settings or None,
                "why": each.why,
            }
            for each in found.advised
        ],
    }
    return json.dumps(finite(document), indent=2, ensure_ascii=False) + "\n"


def to_html(found: Services, most: int = MOST_ROWS, *, theme: Theme = "auto") -> str:
    """Returns the tables as an HTML document."""
    from gctrace_analyzer.present.html import fleet

    return fleet.page(
        found.facts[0],
        [f"{each.instance}: {each.headline} {each.settings}" for each in found.advised],
        found.verdict,
        rankings(found, fleet.MOST_ON_PAGE),
        [*notes(found), *([_GO_LINE] if _unknown(found) else [])],
        first=most,
        theme=theme,
    )


def rankings(found: Services, most: int = MOST_ROWS) -> list[Ranking]:
    """Returns the tables that have rows, each with at most `most` of them."""
    stateful = found.rows.filter(found.rows["state"].is_not_null())
    several = found.services if len(found.services) > 1 else found.services.clear()
    made = (
        ranking("Services", several, _SERVICES, most),
        ranking("Processes", found.rows, _PROCESSES, most),
        ranking("Thrashing or close", stateful, _STATEFUL, most),
        ranking("Memory", found.rows, _MEMORY, most),
    )
    return [each for each in made if each.rows]


def notes(found: Services) -> list[str]:
    """Returns sentences about how the figures were computed."""
    sentences = [
        "Rates and means over the whole time range, computed by the server. Pauses: the longest "
        "of one cycle, both pauses added, that a scrape saw. Instances are listed by their state, "
        "then by the CPU they spend on GC."
    ]
    if unknown := _unknown(found):
        whose = count(unknown, "process does", "processes do")
        sentences.append(
            f"{whose} not export GC CPU, and their order follows cycles/s × live heap. One line "
            "of Go in place of the default collector exports it:"
        )
    return sentences


def _unknown(found: Services) -> int:
    """Returns how many processes do not export their GC CPU."""
    return int(found.rows["gc_cores"].is_null().sum())


_NAME = Column("Process", lambda row: row["instance"], "instance", "l", _NAME_CHARS)
_GC_CPU = Column("GC CPU", lambda row: share(row["gc_cpu_share"]), "gc_cpu_share")
_GC_PER_S = Column("cycles/s", lambda row: rate(row["gc_per_s"]), "gc_per_s")
_PAUSE = Column("pause max", lambda row: ms(row["stw_max_ms"]), "stw_max_ms")
_HELD = Column("held by Go", lambda row: mib(row["go_memory_mib"]), "go_memory_mib")
_SERVICES = (
    Column("Service", lambda row: row["service"] or "(no name)", "service", "l", _NAME_CHARS),
    Column("replicas", lambda row: f"{row['processes']:,}", "processes"),
    _GC_CPU,
    Column("GC cores", lambda row: cores(row["gc_cores"]), "gc_cores"),
    _GC_PER_S,
    _PAUSE,
    _HELD,
)
_PROCESSES = (
    _NAME,
    _GC_CPU,
    _GC_PER_S,
    _PAUSE,
    Column("allocation", lambda row: mib_per_s(row["alloc_mib_per_s"]), "alloc_mib_per_s"),
    Column("heap goal", lambda row: mib(row["heap_goal_mib"]), "heap_goal_mib"),
)
_STATEFUL = (
    _NAME,
    Column("state", lambda row: _STATES[row["state"]], align="l"),
    Column("why", lambda row: row["reason"] or "", "reason", "l", is_wide=True),
)
_MEMORY = (
    _NAME,
    _HELD,
    Column("RSS max", lambda row: mib(row["rss_max_mib"]), "rss_max_mib"),
    Column("GOMEMLIMIT", lambda row: mib(row["memory_limit_mib"]), "memory_limit_mib"),
    Column("container", lambda row: mib(row["container_limit_mib"]), "container_limit_mib"),
    Column("GOGC", lambda row: row["gogc"] or NONE, "gogc"),
    Column(
        "restarts",
        lambda row: NONE if row["restarts"] is None else f"{row['restarts']:.0f}",
        "restarts",
    ),
)


def _whole_name(row: Mapping[str, Any]) -> str:
    service = row["service"]
    return printable(f"{row['instance']} ({service})" if service else row["instance"])
