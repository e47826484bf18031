"""Whether what was recommended before a change held after it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.advise.expectation import promised_by
from gctrace_analyzer.analysis.compare.change import Change
from gctrace_analyzer.cli import main
from tests.conftest import CORPUS

if TYPE_CHECKING:
    from pathlib import Path


def log(program: str, setting: str) -> str:
    return str(CORPUS / "advice" / program / setting / "run.log")


def test_the_row_with_the_deployed_setting_is_the_promise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = log("svc-a", "gogc100"), log("svc-a", "gogc200")
    path = tmp_path / "promise.json"
    assert main(["whatif", before, "--gogc", "50,200", "-o", str(path)]) == 0
    assert main(["compare", before, after, "--promise", str(path), "-f", "json"]) == 0
    promises = json.loads(capsys.readouterr().out)["promises"]
    row = next(row for row in promises if row["metric"] == "gc_per_s")
    promised = next(row for row in json.loads(path.read_text()) if row["gogc"] == 200)
    assert row["promised"] == pytest.approx(promised["gc_per_s"])
    assert row["promised_low"] == pytest.approx(promised["gc_per_s_low"])
    assert row["held"] in (True, None)


def test_another_setting_that_was_deployed_is_named() -> None:
    before, after = log("svc-a", "gogc100"), log("svc-a", "gogc200")
    promise = gca.read(before).whatif(gogc=[50, 400])
    found = gca.compare(before, after, promise=promise)
    assert found.no_expectation is not None
    assert "another setting was deployed (GOGC=2" in found.no_expectation
    assert "promised: GOGC=50, GOGC=400" in found.no_expectation
    assert found.no_expectation in " ".join(str(found).split())


def test_a_promise_is_named_with_its_file_and_its_setting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = (f"samples/change/{side}-1.log.gz" for side in ("before", "after"))
    path = tmp_path / "promise.json"
    assert main(["recommend", before, "--container-limit", "256MiB", "-o", str(path)]) == 0
    assert main(["compare", before, after, "--promise", str(path)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "Promised in promise.json for GOGC=200 GOMEMLIMIT=230MiB, where GOGC=100 GOMEMLIMIT=230MiB is "
        "recommended; whether that GOMEMLIMIT was set is unknown."
    ) in said
    assert "Predicted from" not in said
    without = gca.read(after, memory_limit="off")
    other = gca.compare(before, without, promise=path).no_expectation
    assert "another setting was deployed (GOGC=200; promised in promise.json: GOGC=100" in str(
        other
    )


def test_a_small_heap_that_shows_a_range_of_gogc_ran_with_a_setting_in_it() -> None:
    """Sizes in whole MiB show no value, but the report calls it GOGC=400."""
    before, small = (
        gca.read(log("svc-a", "gogc100")),
        "samples/measured/gofmt/gogc400-02.log.gz",
    )
    for gogc, is_deployed in ((400, True), (50, False)):
        found = gca.compare(before, small, promise=before.whatif(gogc=gogc))
        assert ("another setting was deployed" in str(found.no_expectation)) != is_deployed


def test_goals_that_show_no_gogc_ask_for_the_option() -> None:
    promise = gca.read(log("svc-a", "gogc100")).whatif(gogc=400)
    known = SimpleNamespace(settings=SimpleNamespace(memory_limit_mib=None), regime=None)
    side: Any = SimpleNamespace(
        by_limit=False, gogc=None, has_several_gogc=False, baseline=known
    )
    why = promised_by(promise)(None, side)[1]
    assert "do not show GOGC; specify what it ran with (`--gogc`)" in str(why)


@pytest.mark.parametrize(
    ("measured", "held"),
    [
        ((1.0, 0.9, 1.1), True),
        ((1.35, 1.15, 1.5), False),
        ((None, 1.0, 1.2), True),
        ((2.0, 1.9, 2.1), False),
        ((3.0, 2.0, 4.0), False),
        ((1.0, 0.7, 1.3), None),
        ((1.0, None, None), None),
    ],
)
def test_a_promise_is_held_if_the_measured_value_is_in_it_and_open_if_it_is_known_less_well(
    measured: tuple[float | None, float | None, float | None], held: bool | None
) -> None:
    change = Change("gc_per_s").promised((1.0, 0.8, 1.2), measured)
    assert change.held is held
    assert (change.open_because is None) == (held is not None)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[{"gogc": 1}]'])
def test_a_file_without_recommendations_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "promise.json"
    path.write_text(text)
    with pytest.raises(gca.UnreadableInputError):
        gca.compare(log("svc-a", "gogc100"), log("svc-a", "gogc200"), promise=path)
