"""Programs that mark assists hold back."""

from __future__ import annotations

from typing import Any

import pytest

from gctrace_analyzer.advise.prediction.held_back import Assists
from tests.helpers.loads import steady_load

HELD: dict[str, Any] = {"start": 34, "end": 40, "assist": 6, "background": 4, "every": 0.1}
"""All of the 6 MiB of room are allocated during marking, 0.6 of which goroutines do in assists."""


def test_assists_that_end_the_heap_at_its_goal_hold_the_program_back() -> None:
    load = steady_load(**HELD)
    assert load.room_used == 1
    assert Assists(load).hold_back == 1
    # Background workers would need 10 ms of CPU on half a processor, a quarter of two.
    assert Assists(load).mark_ms_without == pytest.approx(20)
    rate = max(14 / 0.09, 6 / 0.010) * 0.8 / 1000
    free = rate * (20 - load.cpu_bound * 10 / 2)
    assert Assists(load).in_mark_of(20) == pytest.approx(free, rel=0.01)
    assert Assists(load).free_in_mark_times == pytest.approx(free / 6, rel=0.01)
    assert Assists(load).mark_ms_of(free, 10) == pytest.approx(20, rel=0.01)
    # With idle workers too, as many as there were.
    helped = steady_load(**{**HELD, "idle": 4})
    assert Assists(helped).mark_ms_without == pytest.approx(14 / 0.8)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        # Half, three quarters and nine tenths of the room
        ({"end": 37}, 0.0), ({"goal": 42, "end": 40}, 0.0), ({"goal": 44, "end": 43}, 1.0),
        # A quarter, three tenths and two fifths of the work
        ({"assist": 2, "background": 6}, 0.0), ({"assist": 3, "background": 7}, 1 / 3),
        ({"assist": 4, "background": 6}, 1.0),
        # Less room than whole MiB show
        ({"start": 37}, 0.0),
    ],
)  # fmt: skip
def test_other_programs_are_not_held_back(changed: dict[str, int], expected: float) -> None:
    load = steady_load(**{**HELD, **changed})
    assert Assists(load).hold_back == pytest.approx(expected)
    if not expected:
        assert Assists(load).free_in_mark_times == 1
