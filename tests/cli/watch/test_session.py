"""How watching follows what happens to the program."""

from __future__ import annotations

from typing import Any

import pytest

from gctrace_analyzer.cli.watch.session import _watch_child


class StoppedOnce:
    """A program that the system reports as stopped at one call, as it does."""

    def __init__(self, at: int) -> None:
        self.states = ["running"] * at + ["stopped", "running", "ended"]
        self.suspended = 0

    def poll(self) -> str:
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]

    def suspend(self) -> None:
        self.suspended += 1

    def join(self) -> None:
        pass


class Nothing:
    """A view and a log without anything in them."""

    def __getattr__(self, _: str) -> Any:
        return lambda *_: None


@pytest.mark.parametrize("at", range(4))
def test_a_stop_is_seen_whenever_it_is_reported(at: int) -> None:
    child: Any = StoppedOnce(at)
    nothing: Any = Nothing()
    _watch_child(nothing, nothing, child, debug=False)
    assert child.suspended == 1
