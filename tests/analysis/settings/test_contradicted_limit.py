"""A stated memory limit that the heap goals contradict."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.advise.verdict import verdict
from gctrace_analyzer.present.sections.report import document
from gctrace_analyzer.present.text import plain
from gctrace_analyzer.testing import read_text
from tests.conftest import SAMPLES
from tests.helpers.corpus import log_of

if TYPE_CHECKING:
    from collections.abc import Callable


def live(n: int) -> int:
    return 150 + n % 5


def by_gogc(n: int) -> int:
    return 2 * live(n - 1) if n > 1 else 4


def by_limit(_: int) -> int:
    return 210


def run_of(limit: str, goal: Callable[[int], int]) -> gca.Run:
    end = {"start": lambda n: goal(n) - 6, "end": lambda n: goal(n) - 5}
    return read_text(
        f"GOMEMLIMIT={limit} GODEBUG=gctrace=1 ./server\n"
        + log_of(60, every=5, live=live, goal=goal, **end)
    )


@pytest.mark.parametrize(
    ("limit", "goal", "said"),
    [
        ("120MiB", by_gogc, "GOMEMLIMIT=120 MiB is not in effect: goals are above it."),
        ("120MiB", by_limit, "GOMEMLIMIT=120 MiB is not in effect: goals are above it."),
        (
            "900MiB",
            by_limit,
            "but the heap goals stop at 210 MiB, as under a memory limit of 219 to 257 MiB: "
            "another limit is in effect, or much memory outside the heap counts towards it.",
        ),
    ],
)
def test_what_is_not_in_effect_is_said_first(
    limit: str, goal: Callable[[int], int], said: str
) -> None:
    run = run_of(limit, goal)
    found = verdict(run.analysis, run.advice)
    assert found is not None
    assert said in found.sentence.split(" GOMEMLIMIT is close")[0]
    assert found.action.startswith(
        "Check whether the stated value is right, whether the variable"
    )


@pytest.mark.parametrize(("given", "contradicted"), [("128MiB", False), ("200MiB", True)])
def test_a_limit_that_the_user_gives_is_believed_and_questioned(
    given: str, contradicted: bool
) -> None:
    run = gca.read(SAMPLES / "leak-into-limit-go1.24.log", memory_limit=given)
    (source,) = run.regimes()["memory_limit_source"]
    assert source == "given"
    evidence = run.findings().filter(id="GC027")["evidence"].to_list()
    assert len(evidence) == contradicted
    if contradicted:
        assert "stop at 88 MiB, as under a memory limit of 94 to 121 MiB" in evidence[0]


def test_settings_are_predicted_from_what_is_in_effect() -> None:
    run = run_of("120MiB", by_gogc)
    assert run.regimes()["memory_limit_mib"].to_list() == [None]
    now = run.recommend().filter("now").row(0, named=True)
    assert (now["gogc"], now["memory_limit_mib"]) == (100.0, None)


@pytest.mark.parametrize(("limit", "goal"), [("900MiB", by_gogc), ("235MiB", by_limit)])
def test_a_limit_that_the_goals_allow_is_believed(
    limit: str, goal: Callable[[int], int]
) -> None:
    run = run_of(limit, goal)
    assert run.regimes()["memory_limit_mib"].to_list() == [float(limit.removesuffix("MiB"))]
    assert not len(run.findings().filter(id="GC027"))


def test_no_row_says_ok_about_what_the_verdict_is_about() -> None:
    text = plain(document(run_of("120MiB", by_gogc).report()), everything=False)
    (row,) = (line for line in text.splitlines() if line.startswith("  Heap goal"))
    assert row.endswith("warn")


@pytest.mark.parametrize("large", [0, 4])
def test_an_inferred_limit_is_above_every_goal(large: int) -> None:
    """An odd GOGC, or a limit, would explain equal goals; larger ones exclude the limit."""

    def live(n: int) -> int:
        return 2500 if 60 < n <= 60 + large else 20

    def goal(n: int) -> int:
        return int(1.37 * live(n - 1))

    ends = {"start": lambda n: goal(n) - 4, "end": lambda n: goal(n) - 3}
    text = log_of(120, every=5, live=live, goal=goal, **ends)
    # Without the first line, nothing shows what the heap started from.
    run = read_text(text.partition("\n")[2])
    high = run.regimes()["memory_limit_mib_high"].to_list()
    assert len(high) == 1
    assert (high[0] is None) is bool(large)
    assert ("or a limit" in plain(document(run.report()))) is not bool(large)
