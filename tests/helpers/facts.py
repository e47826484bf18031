"""Facts for single rules, from small logs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.analysis.cycles import since_before, with_metrics
from gctrace_analyzer.analysis.durations import correct_durations, on_real_cpus
from gctrace_analyzer.analysis.rules.finding import ProcessFacts
from gctrace_analyzer.analysis.settings.explained import stated_in
from gctrace_analyzer.analysis.settings.known import Known, Settings
from gctrace_analyzer.analysis.settings.regimes import regimes
from gctrace_analyzer.analysis.spans import of_cycles
from gctrace_analyzer.analysis.summary import summarize
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.analysis.timeline.episodes import as_table, enrich, fills, found_in
from gctrace_analyzer.analysis.timeline.levels import moved
from gctrace_analyzer.analysis.trend import live_growth
from gctrace_analyzer.testing import read_text

# The same log, for tests of rules.
from tests.helpers.corpus import log_of as log_of

if TYPE_CHECKING:
    import polars as pl

    import gctrace_analyzer as gca
    from gctrace_analyzer.analysis.rules.finding import Finding
    from gctrace_analyzer.analysis.rules.registry import Rule


def episodes(enriched: pl.DataFrame) -> pl.DataFrame:
    """The table of episodes of what `enrich` returns."""
    return as_table(found_in(enriched, DEFAULT))


def facts_of(text: str, **settings: Any) -> ProcessFacts:
    """Returns the facts of a log of one process."""
    return facts_of_run(read_text(text), **settings)


def facts_of_run(run: gca.Run, **settings: Any) -> ProcessFacts:
    durations = correct_durations(run.cycles)
    known = Settings(**{name: Known(value, "test") for name, value in settings.items()})
    found, setter = regimes(run.cycles, stated_in(known))
    metrics = with_metrics(run.cycles, goal_set_by=setter)
    full = fills(setter, since_before(run.cycles), durations)
    enriched = enrich(metrics, full, of_cycles(on_real_cpus(durations)))
    return ProcessFacts(
        process=0,
        cycles=enriched,
        summary=summarize(run.cycles, run.processes),
        episodes=episodes(enriched),
        thresholds=DEFAULT,
        growth=live_growth(enriched),
        moved=moved(enriched),
        settings=known,
        regimes=next(iter(found.values()), ()),
    )


def matches(rule: Rule[ProcessFacts], facts: ProcessFacts, *after: str) -> list[Finding]:
    """Returns the findings of a rule, after the rules with the given ids have matched."""
    return list(rule.check(replace(facts, matched=set(after))))
