"""Findings about the log itself."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from gctrace_analyzer.analysis.rules import log
from tests.helpers.facts import facts_of, log_of, matches
from tests.helpers.lines import LINES


def test_missing_cycles_are_counted() -> None:
    facts = replace(facts_of(log_of(60)), missing_cycles=3)
    (finding,) = matches(log.log_incomplete, facts)
    assert finding.evidence == "3 of 63 cycles have no line."
    assert not matches(log.log_incomplete, facts_of(log_of(60)))


def test_a_log_that_contradicts_its_own_percentage_is_incomplete() -> None:
    (more,) = matches(log.log_incomplete, facts_of(log_of(60, background=90, every=0.2)))
    assert "points more GC CPU than the log prints" in more.evidence
    (less,) = matches(log.log_incomplete, facts_of(log_of(60, percent=40)))
    assert "points less GC CPU" in less.evidence


def test_a_short_log_is_reported_with_its_length() -> None:
    (few,) = matches(log.short_log, facts_of(log_of(5, every=10)))
    assert few.evidence == "The log has only 5 cycles in 50 s."
    (brief,) = matches(log.short_log, facts_of(log_of(30)))
    assert brief.evidence.startswith("The log has only 30 cycles in 6.0 s")
    assert not matches(log.short_log, facts_of(log_of(60)))
    (untimed,) = matches(log.short_log, facts_of(LINES["gc14"] + "\n"))
    assert untimed.evidence == "The log has only 1 cycle."


def test_the_advice_for_an_old_go_lists_what_newer_releases_improve() -> None:
    oldest = replace(facts_of(LINES["gc14"] + "\n"), go_versions=((1, 4), (1, 4)))
    (short,), (finding,) = (matches(log.old_go, oldest, *after) for after in ((), ("GC010",)))
    assert (short.severity, finding.severity) == ("info", "warn")
    assert "Go 1.5 marks" in finding.advice
    old = facts_of(log_of(60).replace(", 0 MB stacks, 0 MB globals", ""))
    assert not matches(log.old_go, old)
    newer = replace(old, go_versions=((1, 14), (1, 17)))
    (finding,) = matches(log.old_go, newer, "GC005", "GC010")
    assert finding.severity == "info"
    assert finding.evidence.endswith("improve on GC005 and GC010.")
    assert "Go 1.14" not in finding.advice
    assert "Go 1.18" in finding.advice


def test_a_new_go_is_not_called_old() -> None:
    assert not matches(log.old_go, facts_of(log_of(60)), "GC005")


@pytest.mark.parametrize(
    ("newest", "releases"),
    [
        ((1, 4), ["1.5", "1.8", "1.14", "1.18", "1.19"]),
        ((1, 5), ["1.8", "1.14", "1.18", "1.19"]),
        ((1, 13), ["1.14", "1.18", "1.19"]),
        ((1, 17), ["1.18", "1.19"]),
        (None, ["1.5", "1.8", "1.14", "1.18", "1.19"]),
    ],
)
def test_only_releases_newer_than_the_log_are_advised(
    newest: tuple[int, int] | None, releases: list[str]
) -> None:
    facts = replace(facts_of(LINES["gc14"] + "\n"), go_versions=(None, newest))
    (finding,) = matches(log.old_go, facts)
    assert re.findall(r"Go (\d\.\d+) ", finding.advice) == releases


@pytest.mark.parametrize(
    ("points", "found"), [(1.1, 1), (1.0, 0), (-1.1, 1), (0.0, 0), (None, 0)]
)
def test_sums_that_contradict_the_printed_share_are_a_finding(
    points: float | None, found: int
) -> None:
    facts = facts_of(log_of(30))
    facts = replace(facts, summary=replace(facts.summary, log_check_points=points))
    assert len(matches(log.log_incomplete, facts)) == found
