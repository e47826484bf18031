"""What a terminal shows while work goes on."""

from __future__ import annotations

import io
import re
from threading import Event
from typing import TYPE_CHECKING

from gctrace_analyzer.cli import screen
from gctrace_analyzer.cli.main import main
from gctrace_analyzer.cli.reading import reading
from gctrace_analyzer.cli.screen import wrapped
from gctrace_analyzer.ingest.sources import SourceFacts
from tests.helpers.logs import logfile, records

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


class Terminal(io.StringIO):
    """A stream that says it is a terminal, and when something was written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.written = Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        count = super().write(text)
        self.written.set()
        return count

    def lines(self) -> list[str]:
        return [line for line in re.split(r"\r\x1b\[K", self.getvalue()) if line]


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    shown = Terminal()
    monkeypatch.setattr("sys.stderr", shown)
    monkeypatch.setattr(screen, "_REDRAWN_EVERY_S", 0.01)
    return shown


def test_work_is_named_while_it_goes_on_and_the_line_is_cleared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = terminal(monkeypatch)
    with screen.working("analysing") as change:
        assert shown.written.wait(10)
        change("drawing")
        shown.written.clear()
        assert shown.written.wait(10)
    assert shown.lines()[0] == "analysing · 0 s"
    assert shown.lines()[-1].startswith("drawing · ")
    assert shown.getvalue().endswith("\r\x1b[K")


def test_short_work_shows_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shown = terminal(monkeypatch)
    monkeypatch.setattr(screen, "_REDRAWN_EVERY_S", 60)
    assert main([str(logfile(tmp_path / "run.log", records(5))), "-f", "json"]) == 0
    assert shown.getvalue() == ""


def test_a_terminal_is_told_which_files_were_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shown = terminal(monkeypatch)
    monkeypatch.setattr(screen, "_REDRAWN_EVERY_S", 60)
    page = tmp_path / "report.html"
    assert main([str(logfile(tmp_path / "run.log", records(5))), "-o", str(page)]) == 0
    assert shown.getvalue() == f"Wrote {page}\n"
    rows = tmp_path / "rows.parquet"
    assert main(["fleet", str(tmp_path / "run.log"), "-o", str(rows), "-o", str(page)]) == 0
    assert shown.getvalue().endswith(f"Wrote {rows}\nWrote {page}\n")


def test_the_line_ends_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = terminal(monkeypatch)
    assert _is_interrupted(shown)
    assert shown.getvalue().endswith("\r\x1b[K")


def _is_interrupted(shown: Terminal) -> bool:
    try:
        with screen.working("comparing"):
            assert shown.written.wait(10)
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        return True


def test_a_file_that_is_read_is_named_with_how_far(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shown = terminal(monkeypatch)
    path = tmp_path / "run.log"
    path.write_bytes(b"x" * 200)
    with reading() as progress:
        for read in (50, 200):
            facts = SourceFacts(name=str(path))
            facts.bytes = read
            progress(facts)
            shown.written.clear()
            assert shown.written.wait(10)
    assert "reading run.log: 25 % · 0 s" in shown.lines()
    assert "reading run.log: 100 %, putting its tables together · 0 s" in shown.lines()


def test_nothing_is_said_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = io.StringIO()
    monkeypatch.setattr("sys.stderr", hidden)
    with screen.working("analysing"):
        pass
    assert hidden.getvalue() == ""


def test_a_line_is_replaced_now_and_then_and_never_wraps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = terminal(monkeypatch)
    with screen.drawing("starting") as draw:
        draw("first")
        draw("too soon")
        draw("x" * 200, always=True)
    assert shown.lines() == ["starting", "first", "x" * 79]
    assert shown.getvalue().endswith("\r\x1b[K")


def test_a_message_with_a_long_path_is_wrapped_after_what_is_wrong_with_it() -> None:
    path = "/var/log/" + "a" * 60 + ".log"
    lines = wrapped(f"{path}: this looks like a log. {'It has many lines. ' * 6}").splitlines()
    assert lines[0] == f"{path}: this looks like a log."
    assert all(len(line) <= 80 for line in lines[1:])
    assert wrapped(f"x.log: none. Did you mean {path}?").endswith(f"Did you mean {path}?")
