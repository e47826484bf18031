"""Evidence of deaths from flat facts."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from gctrace_analyzer.analysis.postmortem.death import Death
from gctrace_analyzer.analysis.postmortem.facts import Evidence, LastMinute, Limit, Resident
from gctrace_analyzer.analysis.postmortem.match import Match


def evidence(**facts: Any) -> Evidence:
    """Returns evidence with these facts, each in the record that has a field of its name."""
    facts = dict(facts)
    process = facts.pop("process", None)
    before_limits = facts.pop("is_before_limits", False)
    by_goals = facts.pop("by_goals_mib", None)
    parts = [
        record(
            **{
                field.name: facts.pop(field.name)
                for field in fields(record)
                if field.name in facts
            }
        )
        for record in (Death, Limit, LastMinute, Resident)
    ]
    assert not facts
    match = None if process is None else Match(process, ("pid",), "high")
    death, limit, minute, memory = parts
    return Evidence(death, match, limit, minute, memory, before_limits, by_goals)  # type: ignore[arg-type]  # in this order
