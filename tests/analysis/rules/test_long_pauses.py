"""Long pauses and single ones that stand out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gctrace_analyzer.analysis.rules import long_pauses
from gctrace_analyzer.present.sections.headline import state
from gctrace_analyzer.testing import read_text
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
    found = matches(long_pauses.long_mark_termination, facts_of(with_pauses(60, c30=longest)))
    assert [each.severity for each in found] == severities
    assert not matches(
        long_pauses.long_sweep_termination, facts_of(with_pauses(60, c30=longest))
    )


def test_the_row_of_pauses_has_the_figure_that_its_level_is_from() -> None:
    """The 99 % quantile of all pauses is short, but that of the pauses after marking is not."""
    shown = read_text(with_pauses(60, c30="30")).report()
    row = next(figure for figure in state(shown) if figure.label == "Pauses")
    assert row.level == "bad"
    assert row.note.startswith("p99 after marking · 30 ms max")
    assert float(row.value.removesuffix(" ms")) > shown.analysis.thresholds.stw_bad_ms
    calm = read_text(with_pauses(150, c30="30")).report()
    row = next(figure for figure in state(calm) if figure.label == "Pauses")
    assert (row.level, row.note[:6]) == ("info", "p99 · ")


def test_a_long_pause_of_the_start_up_is_a_note() -> None:
    lines = log_of(60, every=0.1).splitlines()
    for at, severity in ((1, "info"), (29, "bad")):
        text = "\n".join(
            line.replace("+5+0.02 ms clock", "+5+30 ms clock") if number == at else line
            for number, line in enumerate(lines)
        )
        (finding,) = matches(long_pauses.long_mark_termination, facts_of(text))
        assert finding.severity == severity
        assert "30 ms" in finding.evidence


def test_a_single_pause_has_no_median() -> None:
    (finding,) = matches(long_pauses.long_mark_termination, facts_of(with_pauses(1, c1="11.5")))
    assert finding.evidence == "One pause after marking took 12 ms."


def test_many_pauses_above_a_millisecond_are_a_note() -> None:
    text = log_of(60).replace(": 0.02+5", ": 1.4+5")
    (finding,) = matches(long_pauses.long_sweep_termination, facts_of(text))
    assert finding.severity == "info"
    assert "before marking" in finding.evidence


def test_the_advice_does_not_mention_releases_that_the_log_excludes() -> None:
    facts = facts_of(log_of(60).replace("0.02+5+0.02", "1.4+5+1.4"))
    newer = replace(facts, go_versions=((1, 19), None))
    older = replace(facts, go_versions=((1, 6), (1, 17)))
    for rule in (long_pauses.long_sweep_termination, long_pauses.long_mark_termination):
        assert "Go" not in matches(rule, newer)[0].advice.replace("GOMAXPROCS", "")
        assert "Go" in matches(rule, older)[0].advice.replace("GOMAXPROCS", "")


def test_a_single_outlier_is_a_note() -> None:
    (finding,) = matches(long_pauses.pause_outliers, facts_of(with_pauses(60, c30="7.0")))
    assert finding.severity == "info"
    assert finding.examples == ("gc 30",)
    assert finding.evidence.endswith("than the others: up to 7.0 ms.")


def test_ordinary_pauses_are_no_finding() -> None:
    facts = facts_of(log_of(60))
    for rule in (
        long_pauses.long_sweep_termination,
        long_pauses.long_mark_termination,
        long_pauses.pause_outliers,
    ):
        assert not matches(rule, facts)


def test_a_single_long_pause_is_not_said_to_happen_every_time() -> None:
    def headline(text: str) -> str:
        return matches(long_pauses.long_mark_termination, facts_of(text))[0].headline

    assert headline(with_pauses(60, c30="30")) == ("One pause after marking took 30 ms.")
    assert headline(with_pauses(60, c30="30", c40="18")) == (
        "The pause after marking takes up to 30 ms."
    )


def test_a_forced_collection_of_go_1_8_is_not_called_a_slow_stop() -> None:
    line = "gc {} @{}s 0%: 0.05+{}+{} ms clock, 0.1+0/{}/0+{} ms cpu, 79->79->79 MB, 158 MB goal, 4 P"
    paced = [line.format(n, n, "8.0", "0.05", "9.0", "0.1") for n in range(1, 30)]
    forced = [
        line.format(n, n, 0, pause, "9.0", 4 * pause) + " (forced)"
        for n, pause in ((30, 60), (31, 80))
    ]
    facts = facts_of("\n".join([*paced, *forced]) + "\n")
    (finding,) = matches(long_pauses.long_mark_termination, facts)
    assert finding.evidence.startswith(
        "The whole program stops for up to 80 ms for a forced collection."
    )
    assert finding.advice.startswith("Call `runtime.GC` less often")
