"""The report as one JSON object. Unknown values are null, never NaN."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.advise.killed import steps
from gctrace_analyzer.analysis.pauses import pause_ranges
from gctrace_analyzer.present.sections.evidence import MOST_REJECTED
from gctrace_analyzer.schema import OF_MESSAGES
from gctrace_analyzer.units import without_noise

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gctrace_analyzer.advise.sides import Pair, Side
    from gctrace_analyzer.analysis.fleet.answers import Answers
    from gctrace_analyzer.analysis.rules.finding import Finding
    from gctrace_analyzer.present.report import Report

SCHEMA_VERSION = 1

MOST_ROWS = 1000
"""Most rows of a table in the report; exporting the table gives all rows."""


def document(report: Report) -> dict[str, object]:
    """Returns the report as plain values."""
    return {
        "schema_version": SCHEMA_VERSION,
        "sources": [asdict(source) for source in report.analysis.log.sources],
        "selection": part.text if (part := report.analysis.log.selection) else None,
        "facts": {
            "go_version": report.analysis.go_versions,
            "procs": list(report.analysis.procs),
            "repaired": report.analysis.repaired,
            "goal_set_by": report.analysis.goal_set_by,
            "runtime_lines": report.analysis.log.runtime_lines,
            "levels": report.levels,
        },
        "verdict": None if report.verdict is None else report.verdict.to_dict(),
        "summary": report.analysis.figures.to_dict(),
        "regimes": [
            {name: "off" if value == math.inf else value for name, value in row.items()}
            for row in report.analysis.regimes.to_dicts()
        ],
        "processes": [
            {**row, "summary": own.to_dict()} for row, own in report.analysis.per_process
        ],
        "pauses": report.analysis.pauses.to_dicts(),
        "pause_ranges": pause_ranges(report.analysis.corrected),
        "service_levels": [level.to_dict() for level in report.analysis.service_levels],
        "worst_cycles": report.analysis.worst_cycles.to_dicts(),
        "segments": report.analysis.segments.to_dicts(),
        "episodes": report.analysis.episodes.to_dicts(),
        "findings": [_finding(finding) for finding in report.analysis.findings],
        "recommendations": report.advice.recommendations.to_dicts(),
        "settings": report.analysis.settings.to_dict(),
        "post_mortems": [
            {**death.to_dict(), "advice": list(steps(death, report.analysis, report.advice))}
            for death in report.analysis.post_mortems
        ],
        "memory": [memory.to_dict() for memory in report.analysis.memory],
        "consumed": [asdict(unit) for unit in report.analysis.unit_cpu],
        **{
            table: report.analysis.tables[table].head(MOST_ROWS).to_dicts()
            for table in OF_MESSAGES
            # The kernel's list may have thousands of tasks.
            if table != "oom_tasks"
        },
        "sites": _of_profiles(report),
        "rejected": {
            "count": len(report.analysis.rejected),
            "by_reason": dict(report.analysis.rejected_reasons),
            "examples": report.analysis.rejected.head(MOST_REJECTED).to_dicts(),
        },
    }


def _of_profiles(report: Report) -> list[dict[str, object]]:
    """Returns the largest sites of each profile."""
    profiled = report.analysis.profiled
    return (
        []
        if profiled is None
        else profiled.sites.group_by("profile", maintain_order=True).head(MOST_ROWS).to_dicts()
    )


def _finding(finding: Finding) -> dict[str, object]:
    return {
        **finding.row(),
        "evidence": finding.evidence,
        "figures": dict(finding.figures),
        "examples": list(finding.examples),
        "page": finding.page,
    }


def dumps(report: Report) -> str:
    """Returns the report as JSON text."""
    return written(document(report))


def written(document: Any) -> str:
    """Returns plain values as JSON text."""
    return json.dumps(_plain(document), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def line(kind: str, values: dict[str, object]) -> str:
    """Returns one line of JSON Lines: an object with its `type`."""
    return (
        json.dumps(_plain({"type": kind, **values}), ensure_ascii=False, allow_nan=False) + "\n"
    )


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return without_noise(value) if math.isfinite(value) else None
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def of_comparison(pairs: Sequence[Pair]) -> dict[str, object]:
    """Returns a comparison as plain values."""
    from gctrace_analyzer.advise.sides import all_differences, sides_of
    from gctrace_analyzer.present.sections.comparison import statement

    last = pairs[-1]
    measurement = last.measurement
    measured: dict[str, object] = (
        {"promises": [*_promises(pairs)]}
        if measurement is None
        else {
            "measured": {
                "decided_by": measurement.decider.name,
                "decided": measurement.is_decided,
                "rounds": measurement.rounds,
                "metrics": [metric.to_dict() for metric in measurement.metrics],
                "runs": [{**run.to_dict(), "warm_up": run.warm_up} for run in measurement.runs],
                "promises": [*_promises(pairs)],
            }
        }
    )
    return {
        "schema_version": SCHEMA_VERSION,
        "verdict": statement(pairs).sentence,
        "sides": [_side(side) for side in sides_of(pairs)],
        "comparable": all(pair.comparable for pair in pairs),
        "load_is_given": last.load_is_given,
        "differences": [difference.to_dict() for difference in all_differences(pairs)],
        "metrics": [row for pair in pairs for row in pair.frame.to_dicts()],
        "sites": [*_changed_sites(pairs)],
        "no_expectation_because": last.no_expectation,
        **measured,
    }


def _changed_sites(pairs: Sequence[Pair]) -> Iterator[dict[str, object]]:
    """Yields how the allocation of functions changed, by side, if both have profiles."""
    for pair in pairs:
        before, after = pair.before.profiled, pair.after.profiled
        changed = before.changes(after) if before and after else None
        for row in () if changed is None else changed.head(MOST_ROWS).to_dicts():
            yield {"side": pair.after.label, **row}


def _promises(pairs: Sequence[Pair]) -> Iterator[dict[str, object]]:
    """Yields the predictions for each side, with the measured values."""
    for pair in pairs:
        for change in pair.changes.values():
            if change.expected is not None:
                yield {
                    "side": pair.after.label,
                    "metric": change.metric,
                    "promised": change.expected,
                    "promised_low": change.expected_low,
                    "promised_high": change.expected_high,
                    "measured": change.measured,
                    "measured_low": change.measured_low,
                    "measured_high": change.measured_high,
                    "held": change.held,
                    "open_because": change.open_because,
                }


def of_fleet(answers: Answers) -> str:
    """Returns the summary of a fleet as JSON text."""
    from gctrace_analyzer.present.sections.fleet import verdict

    shown = verdict(answers)
    said = {"level": shown.level, "sentence": shown.sentence, "action": shown.action}
    return written({"schema_version": SCHEMA_VERSION, "verdict": said, **answers.to_dict()})


def _side(side: Side) -> dict[str, object]:
    where = side.circumstances
    return {
        "label": side.label,
        "sources": side.names,
        "runs": len(side.measured),
        "seconds": side.seconds,
        "cycles": side.cycles,
        "go_version": where.go,
        "gogc": where.gogc,
        "memory_limit": where.memory_limit,
        "by_run": [part.values for part in side.measured],
    }
