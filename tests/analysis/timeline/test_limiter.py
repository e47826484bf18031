"""The fill of the runtime's CPU limiter."""

from __future__ import annotations

import random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gctrace_analyzer.analysis.durations import correct_durations
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.analysis.timeline.limiter import fills, verdict
from gctrace_analyzer.testing import read_text
from tests.helpers.tables import cycle_tables, few


@few
@given(cycle_tables())
def test_the_limiter_is_never_fuller_than_full(cycles: pl.DataFrame) -> None:
    assert fills(correct_durations(cycles)).drop_nulls().is_between(0, 1 + 1e-9).all()


def filled_step_by_step(corrected: pl.DataFrame) -> list[float]:
    """The bucket as the runtime keeps it: one cycle after the other, between empty and full."""
    fill: dict[int, float] = {}
    found = []
    for row in corrected.iter_rows(named=True):
        full, now = float(row["procs"]), fill.get(row["process"], 0.0)
        mark_s = (row["concurrent_mark_ms"] or 0) / 1000
        gap_s = row["start_s"] - (row["end_s"] - row["elapsed_s"])
        marking = (2 * (row["assist_cpu_ms"] or 0) + (row["idle_cpu_ms"] or 0)) / 1000
        for step in (
            -max(gap_s, 0) * full,
            (row["stw_sweep_term_ms"] or 0) / 1000 * full,
            # A quarter of the processors marks in the background and counts twice.
            marking - 0.5 * mark_s * full,
            (row["stw_mark_term_ms"] or 0) / 1000 * full,
        ):
            now = min(max(now + step, 0.0), full)
        fill[row["process"]] = now
        found.append(now / full)
    return found


@pytest.mark.parametrize("pause_ms", [0.05, 40, 400], ids=["short", "long", "full"])
@pytest.mark.parametrize("assist_ms", [0.0, 1.0, 30.0], ids=["none", "some", "many"])
def test_the_fill_is_that_of_a_bucket_filled_step_by_step(
    pause_ms: float, assist_ms: float
) -> None:
    lines = []
    for number in range(1, 30):
        wall = f"{pause_ms:g}+{10 + number % 3}+{pause_ms / 2:g}"
        cpu = f"{4 * pause_ms:g}+{assist_ms * (number % 5):g}/9.0/{number % 7}+{2 * pause_ms:g}"
        lines.append(
            f"gc {number} @{number * (0.02 + 1.5 * pause_ms / 1000):.3f}s 9%: {wall} ms clock, "
            f"{cpu} ms cpu, 30->31->20 MB, 31 MB goal, 0 MB stacks, 0 MB globals, 4 P"
        )
    corrected = correct_durations(read_text("\n".join(lines * 2) + "\n").cycles)
    assert corrected["process"].n_unique() == 2
    expected = filled_step_by_step(corrected)
    assert fills(corrected).to_list() == pytest.approx(expected, abs=1e-9)
    assert max(expected) > 0.99 or pause_ms < 400


def test_only_a_full_bucket_proves_that_the_limiter_was_active() -> None:
    nearly = DEFAULT.limiter_likely
    fills_and_verdicts = {
        None: "unlikely", 0.0: "unlikely", nearly - 0.01: "unlikely", nearly: "likely",
        0.99: "likely", 1 - 1e-12: "certain", 1.0: "certain",
    }  # fmt: skip
    assert {fill: verdict(fill) for fill in fills_and_verdicts} == fills_and_verdicts


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**20), st.sampled_from([2, 30]), st.sampled_from([0.01, 0.3, 3.0]))
def test_any_bucket_is_that_filled_step_by_step(
    seed: int, count: int, longest_s: float
) -> None:
    """Gaps, pauses and marking of any length: the bucket may be full in the middle of a cycle."""
    rng = random.Random(seed)
    rows, at = [], 0.0
    for number in range(count):
        gap, first, mark, second = (
            rng.choice([0.0, rng.random()]) * longest_s for _ in range(4)
        )
        elapsed = gap + first + mark + second
        at += elapsed
        rows.append(
            {
                "process": number * 2 // count, "procs": 2, "end_s": at,
                "elapsed_s": elapsed, "start_s": at - elapsed + gap,
                "stw_sweep_term_ms": 1000 * first, "stw_mark_term_ms": 1000 * second,
                "concurrent_mark_ms": 1000 * mark, "stacks_mib": 0,
                "assist_cpu_ms": 1000 * rng.choice([0.0, 0.3, 1.0]) * mark,
                "idle_cpu_ms": 1000 * rng.choice([0.0, 0.5]) * mark,
            }
        )  # fmt: skip
    frame = pl.DataFrame(rows)
    assert fills(frame).to_list() == pytest.approx(filled_step_by_step(frame), abs=1e-9)
    for unknown in ("assist_cpu_ms", "stacks_mib"):
        without = frame.with_columns(pl.lit(None, pl.Float64).alias(unknown))
        assert fills(without).null_count() == count
