"""Cycles tables of programs whose figures vary from cycle to cycle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from gctrace_analyzer.testing import read_text
from tests.helpers.facts import log_of

if TYPE_CHECKING:
    import polars as pl


@st.composite
def cycle_tables(draw: Any) -> pl.DataFrame:
    """Returns the cycles of a log of one process."""
    count = draw(st.integers(2, 40))
    every = draw(st.sampled_from([0.06, 0.2, 1.0, 120.2]))
    sizes = st.lists(st.integers(1, 200), min_size=count, max_size=count)
    live, grown, room, mark = (draw(sizes) for _ in range(4))
    text = log_of(
        count,
        every=every,
        mark=lambda n: min(mark[n - 1], 900 * every) // 1 or 1,
        assist=lambda n: grown[n - 1] / 50,
        live=lambda n: live[n - 1],
        start=lambda n: live[n - 2] + grown[n - 1],
        end=lambda n: max(live[n - 2] + grown[n - 1], live[n - 1]) + room[n - 1] // 20,
        goal=lambda n: live[n - 2] + room[n - 1],
    )
    return read_text(text).cycles


few = settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
"""Settings for properties of whole tables, which take milliseconds each."""
