"""Predictions, checked against what the same programs did under other settings."""

from __future__ import annotations

import json
import re
import statistics
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.advise.prediction import pacer
from gctrace_analyzer.advise.prediction.load import load_of
from gctrace_analyzer.advise.prediction.model import Setting
from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.testing import read_text
from tests.conftest import ROOT, SAMPLES
from tests.helpers.corpus import run_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ADVICE = ROOT / "tests" / "corpus" / "advice"

LOADS = sorted(path.parent for path in ADVICE.glob("*/gogc100/run.log"))


def test_a_published_table_follows_from_the_model() -> None:
    """GC CPU 11.9, 6.3, 3.3 % at GOGC 50, 100, 200; peaks 45, 60, 90."""
    gogcs = [pacer.gogc_for_cpu(0.063, 100, share) for share in (0.119, 0.063, 0.033)]
    assert gogcs == pytest.approx([50, 100, 200], rel=0.03)
    assert [pacer.goal_from_gogc(30, gogc) for gogc in (50, 100, 200)] == [45, 60, 90]


def test_a_ballast_has_equivalent_settings() -> None:
    """10 GiB of ballast over a small heap: some 99 % fewer cycles."""
    live, ballast = 100.0, 10_240.0
    like = pacer.gogc_like_ballast(100, live, ballast)
    fewer = 1 - 100 / like
    assert fewer == pytest.approx(0.99, abs=0.005)
    assert pacer.goal_from_gogc(live + ballast, 100) - ballast == pytest.approx(
        pacer.goal_from_gogc(live, like)
    )


def setting_of(folder: Path) -> Setting:
    meta = json.loads((folder / "meta.json").read_text())
    env, args = meta["env"], meta["args"]
    gogc, limit = env.get("GOGC", "100"), env.get("GOMEMLIMIT")
    ballast = float(args[args.index("-ballast") + 1]) if "-ballast" in args else 0.0
    return Setting(
        None if gogc == "off" else float(gogc),
        float(limit.removesuffix("MiB")) if limit else None,
        ballast,
    )


def pairs() -> list[tuple[dict[str, Any], Any, int]]:
    """Each prediction from a gogc100 log, what came of it, and whether it thrashed."""
    limiter = {
        run["dir"]: run["limiter_last_enabled_cycle"]
        for run in json.loads((ADVICE / "manifest.json").read_text())["runs"]
    }
    found = []
    for baseline in LOADS:
        log = gca.read(baseline / "run.log", gogc=100)
        for folder in sorted(baseline.parent.iterdir()):
            wanted, real = setting_of(folder), load_of(gca.read(folder / "run.log").cycles)
            if folder == baseline or real is None:
                continue
            rows = log.whatif(wanted.gogc, wanted.limit, wanted.ballast)
            found.append(
                (
                    rows.row(0, named=True),
                    real,
                    limiter[f"{baseline.parent.name}/{folder.name}"],
                )
            )
    return found


@pytest.fixture(scope="module")
def predicted() -> list[tuple[dict[str, Any], Any, int]]:
    return pairs()


FIGURES: dict[str, tuple[Callable[[Any], float], float, float]] = {
    "gc_per_s": (lambda real: real.gc_per_s, 0.07, 0.26),
    "heap_peak_mib": (lambda real: real.heap_end_max, 0.05, 0.16),
    "live_heap_mib": (lambda real: real.marked_live, 0.02, 0.06),
    "gc_cpu_with_idle_share": (
        lambda real: real.gc_cpu_share + real.gc_per_s * real.idle_ms / 1000 / real.procs, 0.14, 0.45,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FIGURES)
def test_predictions_are_within_their_intervals(
    name: str, predicted: list[tuple[dict[str, Any], Any, int]]
) -> None:
    measure, median, p90 = FIGURES[name]
    errors, inside = [], []
    for row, real, _ in predicted:
        if real.effective_gogc < 12 or row["refused"]:
            continue
        value = measure(real)
        errors.append(abs(row[name] / value - 1))
        inside.append(row[f"{name}_low"] <= value <= row[f"{name}_high"])
    errors.sort()
    assert len(errors) > 60
    assert statistics.median(errors) <= median
    assert errors[int(0.9 * len(errors))] <= p90
    assert 0.75 <= sum(inside) / len(inside) <= 1


def test_all_thrashing_is_predicted_with_few_false_alarms(
    predicted: list[tuple[dict[str, Any], Any, int]],
) -> None:
    thrashing = [
        row["thrash"]
        for row, real, _ in predicted
        if row["memory_limit_mib"] and real.effective_gogc < 12
    ]
    healthy = [row["thrash"] for row, real, _ in predicted if real.effective_gogc >= 12]
    assert thrashing
    assert "no" not in thrashing
    # One of them prints 8 MiB of stacks, which may be 55 MiB.
    assert sum(word != "no" for word in healthy) <= 0.06 * len(healthy)
    assert all(row["thrash"] != "no" for row, _, on in predicted if on)


def test_the_true_live_heap_does_not_depend_on_the_setting() -> None:
    for baseline in LOADS:
        sizes = []
        for folder in baseline.parent.iterdir():
            real, setting = load_of(gca.read(folder / "run.log").cycles), setting_of(folder)
            if real and real.cycles >= 12:
                sizes.append(real.true_live - setting.ballast)
        assert max(sizes) - min(sizes) <= max(0.03 * min(sizes), 1.2)


def test_a_log_that_allows_no_prediction_is_refused(tmp_path: Path) -> None:
    def why(run: gca.Run, **options: Any) -> str:
        return str(run.whatif(**(options or {"gogc": 200}))["refused"][0])

    assert "GOGC=off without a memory limit" in why(run_of(tmp_path, 100), gogc="off")
    assert "steady cycles" in why(run_of(tmp_path, 6))
    given = gca.read(tmp_path / "log", gogc=50)
    run_of(tmp_path, 100)
    given = gca.read(tmp_path / "log", gogc=50)
    assert "the effective GOGC is" in why(given)
    assert "was thrashing" in why(
        gca.read(ROOT / "samples" / "thrash-go1.19.log", memory_limit="40MiB")
    )
    assert "program forced" in why(gca.read(ROOT / "samples" / "forced-go1.26.log"))
    old = gca.read(ROOT / "samples" / "assists-go1.16.log", go_version="1.9.7")
    assert "Go 1.9 and earlier" in why(old)
    assert "no CPU" in why(gca.read(ROOT / "samples" / "go1.4.log"))


def test_a_grid_has_a_row_for_each_combination(tmp_path: Path) -> None:
    run = run_of(tmp_path, 100)
    rows = run.whatif(gogc=[50, 200], memory_limit=["1GiB", None], ballast=[0, "64MiB"])
    assert rows["now"].to_list() == [False] * 8 + [True]
    assert rows["memory_limit_mib"].to_list()[:4] == [1024, 1024, None, None]
    assert (rows["gc_per_s_low"] <= rows["gc_per_s"]).all()
    assert (rows["gc_per_s"] <= rows["gc_per_s_high"]).all()
    with pytest.raises(BadSettingError):
        run.whatif(gogc="many")


def test_no_change_is_recommended_if_gc_costs_little(tmp_path: Path) -> None:
    rows = run_of(tmp_path, 100).recommend()
    assert rows["now"][0]
    assert "no change" in rows["why"][0]


def test_recommendations_for_a_busy_program_are_ranked() -> None:
    run = gca.read(ADVICE / "svc-big" / "gogc100" / "run.log", gogc=100, container_limit="1GiB")
    rows = run.recommend(aim="cpu")
    assert rows["rank"].to_list() == list(range(1, len(rows) + 1))
    assert rows["now"].sum() == 1
    assert set(rows["thrash"]) == {"no"}
    memory = run.recommend(aim="memory").row(0, named=True)
    now = rows.filter(pl.col("now")).row(0, named=True)
    assert memory["heap_peak_mib"] <= now["heap_peak_mib"]
    assert (rows["memory_limit_mib"].drop_nulls() <= 0.9 * 1024).all()
    with pytest.raises(BadSettingError):
        run.recommend(aim="everything")  # type: ignore[arg-type]
    with pytest.raises(BadSettingError):
        run.recommend(gc_cpu_target="much")


@pytest.mark.parametrize("container", [None, "256MiB"])
def test_after_thrash_the_advice_clears_the_largest_live_heap(container: str | None) -> None:
    log = SAMPLES / "refill" / "service.log.gz"
    run = gca.read(log, gogc=100, memory_limit="104MiB", container_limit=container)
    assert "limit-thrash" in run.episodes()["kind"].to_list()
    first = run.recommend().row(0, named=True)
    now = run.recommend().filter(pl.col("now")).row(0, named=True)
    assert now["thrash"] == "certain"
    assert now["gc_cpu_share"] == pytest.approx(run.summary().gc_cpu_share, rel=0.1)
    assert first["memory_limit_mib"] > 1.25 * run.cycles.select(pl.max("heap_live_mib")).item()
    assert first["gc_cpu_share_high"] < now["gc_cpu_share"]
    assert any("without limit thrashing" in each for each in run.advice.baseline.warnings)


def test_a_log_that_only_thrashes_has_a_least_memory_limit() -> None:
    run = gca.read(SAMPLES / "thrash-go1.19.log", memory_limit="70MiB")
    assert "A GOMEMLIMIT of about 249 MiB leaves GC room (estimated)" in str(
        run.advice.baseline.refused
    )


def test_growth_of_seconds_is_not_called_a_leak() -> None:
    run = gca.read(SAMPLES / "leak-go1.26.log")
    assert "leak" not in run.recommend()["why"][0]


@pytest.mark.parametrize("limit", ["36MiB", "40MiB", "45MiB"])
def test_a_peak_under_a_tight_limit_is_not_below_the_live_heap(limit: str) -> None:
    run = gca.read(SAMPLES / "versions" / "go1.22.12.log.gz")
    (row,) = run.whatif(memory_limit=limit).filter(~pl.col("now")).to_dicts()
    live = run.advice.baseline.live_max_mib
    assert live is not None
    assert live <= row["heap_peak_mib_low"] <= row["heap_peak_mib"] <= row["heap_peak_mib_high"]


def test_the_present_share_says_since_when_it_is_only_for_one_process() -> None:
    """After two quiet seconds, GC takes more than over the whole log."""
    log = (SAMPLES / "assists-go1.16.log").read_text()
    late = re.sub(r"@(\d+\.\d+)s", lambda start: f"@{float(start[1]) + 2:.3f}s", log)
    other = (SAMPLES / "steady-go1.9.log").read_text()
    for text, is_said in ((log, False), (late, True), (late + other, False)):
        verdict = read_text(text).report().verdict
        assert verdict is not None
        assert "GC CPU with idle 42 % instead of" in verdict.action
        assert ("after the first 2.0 s" in verdict.action) is is_said
