"""Figures of a process that was read in several stretches."""

from __future__ import annotations

import polars as pl

import gctrace_analyzer as gca
from gctrace_analyzer.fleets import figures
from tests.conftest import SAMPLES
from tests.helpers.fleet import rows_of


def test_the_largest_difference_of_the_self_check_keeps_its_sign() -> None:
    log = SAMPLES / "steady-go1.26.log"
    corrected, (row,) = gca.read(log).analysis.corrected, rows_of(log)
    parts = [
        figures.of_stretch(corrected, pl.lit(value=True), row | {"log_check_points": points})
        for points in (0.5, -7.0, None)
    ]
    assert figures.combined(parts)["log_check_points"] == -7.0
