"""Long pauses and single ones that stand out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gctrace_analyzer.analysis.rules import pauses
from tests.helpers.facts import facts_of, log_of, matches


def with_pauses(count: int, **pauses_ms: str) -> str:
    """Returns a log in which one cycle has another mark termination."""
    lines = log_of(count).splitlines()
    for number, pause in pauses_ms.items():
        index = int(number[1:]) - 1
        lines[index] = lines[index].replace("+5+0.02 ms clock", f"+5+{pause} ms clock")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("longest", "severities"),
    [("4.0", []), ("6.0", ["info"]), ("12", ["warn"]), ("30", ["bad"])],
)
def test_one_long_pause_is_enough(longest: str, severities: list[str]) -> None:
    found = matches(pauses.long_mark_termination, facts_of(with_pauses(60, c30=longest)))
    assert [each.severity for each in found] == severities
    assert not matches(pauses.long_sweep_termination, facts_of(with_pauses(60, c30=longest)))


def test_many_pauses_above_a_millisecond_are_a_note() -> None:
    text = log_of(60).replace(": 0.02+5", ": 1.4+5")
    (finding,) = matches(pauses.long_sweep_termination, facts_of(text))
    assert finding.severity == "info"
    assert "before marking" in finding.evidence


def test_the_advice_does_not_mention_releases_that_the_log_excludes() -> None:
    facts = facts_of(log_of(60).replace("0.02+5+0.02", "1.4+5+1.4"))
    newer = replace(facts, go_versions=((1, 19), None))
    older = replace(facts, go_versions=((1, 6), (1, 17)))
    for rule in (pauses.long_sweep_termination, pauses.long_mark_termination):
        assert "Go" not in matches(rule, newer)[0].advice.replace("GOMAXPROCS", "")
        assert "Go" in matches(rule, older)[0].advice.replace("GOMAXPROCS", "")


def test_a_single_outlier_is_a_note() -> None:
    (finding,) = matches(pauses.pause_outliers, facts_of(with_pauses(60, c30="7.0")))
    assert finding.severity == "info"
    assert finding.examples == ("gc 30",)
    assert "1 pause was" in finding.evidence


def test_outliers_that_nothing_explains_point_to_the_host() -> None:
    (finding,) = matches(pauses.pause_outliers, facts_of(with_pauses(60, c20="3.0", c40="3.0")))
    assert "2 pauses were far longer" in finding.evidence
    assert "look at the host" in finding.evidence


def test_outliers_that_grow_with_the_heap_do_not_point_to_the_host() -> None:
    grown = with_pauses(60, **{f"c{n}": f"0.0{20 + n}"[:5] for n in range(1, 59)}, c60="3.0")
    facts = facts_of(grown)
    cycles = facts.cycles.with_columns(heap_live_mib=facts.cycles["gc_num"])
    (finding,) = matches(pauses.pause_outliers, replace(facts, cycles=cycles))
    assert "look at the host" not in finding.evidence


def test_ordinary_pauses_are_no_finding() -> None:
    facts = facts_of(log_of(60))
    for rule in (
        pauses.long_sweep_termination,
        pauses.long_mark_termination,
        pauses.pause_outliers,
    ):
        assert not matches(rule, facts)
