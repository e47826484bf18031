"""What `recommend` and `whatif` print, compared with the report of the same input."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gctrace_analyzer as gca
from gctrace_analyzer.cli import main
from gctrace_analyzer.present.sections import headline
from gctrace_analyzer.present.sections.advice import refusal
from gctrace_analyzer.testing import read_text
from tests.conftest import SAMPLES
from tests.helpers.corpus import log_of

if TYPE_CHECKING:
    import pytest

THRASHES = SAMPLES / "thrash-go1.19.log"


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_after_a_kill_a_recommendation_starts_like_the_report() -> None:
    run = gca.read(SAMPLES / "oom-journal.jsonl")
    shown, said = one_line(str(run.recommend())), headline.verdict(run.report())
    assert said.sentence in shown
    assert all(f"▸ {step}" in shown for step in said.steps)


def test_page_and_command_word_a_refusal_the_same() -> None:
    run = gca.read(THRASHES)
    assert (text := refusal(run.report())).startswith("Only GOMEMLIMIT is recommended: ")
    assert text in run.to_html().replace("\xa0", " ")
    assert text in one_line(str(run.recommend()))


def test_whatif_of_a_thrashing_program_shows_now_and_the_advised_limit(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["whatif", str(THRASHES)]) == 0
    _, _, now, other, *_ = capsys.readouterr().out.splitlines()
    assert "GOMEMLIMIT=60–111MiB (now)" in now
    assert "GOMEMLIMIT=249MiB" in other


def test_whatif_says_that_all_settings_fit_the_container() -> None:
    run = gca.read(SAMPLES / "steady-go1.26.log", container_limit="2GiB")
    fit = "All of these fit the 2,048 MiB"
    assert fit in one_line(str(run.whatif(gogc=[50, 200])))
    run = gca.read(SAMPLES / "steady-go1.26.log", container_limit="80MiB")
    assert fit[:12] not in one_line(str(run.whatif(gogc=[50, 800])))


def test_several_processes_together_have_no_trend() -> None:
    one = log_of(60)
    for text, has_trend in ((one, True), (one + one, False)):
        report = read_text(text).report()
        shown = headline.with_trends(report, headline.state(report))
        assert any(figure.trend for figure in shown) == has_trend


def test_a_growing_heap_is_not_called_no_problem() -> None:
    found = headline.verdict(gca.read(SAMPLES / "leak-go1.26.log").report())
    assert found.sentence.startswith("The live heap grew from 6 to 238 MiB")
    assert "no problem" not in found.sentence
    assert found.word == "Live heap grew"
