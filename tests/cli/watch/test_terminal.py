"""What is printed above the dashboard, and when."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from gctrace_analyzer.cli.screen import Colors
from gctrace_analyzer.cli.watch import terminal
from gctrace_analyzer.cli.watch.terminal import BottomLines

if TYPE_CHECKING:
    import pytest


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


def screen(monkeypatch: pytest.MonkeyPatch) -> tuple[BottomLines, io.StringIO, Clock]:
    clock, file = Clock(), io.StringIO()
    monkeypatch.setattr(terminal, "time", clock)
    return BottomLines(file, Colors("never")), file, clock


def test_lines_that_come_together_are_printed_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown, file, clock = screen(monkeypatch)
    shown.write(b"first\n")
    assert "first" in file.getvalue(), "the first line does not wait"
    shown.write(b"second\n")
    shown.write(b"third\n")
    shown.flush()
    assert "second" not in file.getvalue()
    clock.now += 0.2
    shown.flush()
    assert "second\nthird\n" in file.getvalue()
    shown.end()


def test_what_still_waits_is_printed_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    shown, file, _ = screen(monkeypatch)
    for text in (b"first\n", b"second\n", b"a prompt"):
        shown.write(text)
    shown.end()
    assert file.getvalue().endswith("second\na prompt\n")


def test_many_bytes_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    shown, file, _ = screen(monkeypatch)
    shown.write(b"first\n")
    shown.write(b"x" * (1 << 16) + b"\n")
    assert "xxx" in file.getvalue()
    shown.end()


def test_the_beginning_of_a_line_waits_for_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    shown, file, clock = screen(monkeypatch)
    shown.write(b"password: ")
    clock.now += 0.2
    shown.flush()
    assert "password" not in file.getvalue()
    clock.now += 0.2
    shown.flush()
    assert "password: " in file.getvalue()
    shown.end()
