"""The dashboard of `watch` while its terminal changes size."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT, SAMPLES
from tests.helpers.terminal import Terminal, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pyte = pytest.importorskip("pyte", reason="pyte is not installed")

# Relative, as the dashboard shortens a long name.
LOG = (SAMPLES / "thrash-go1.19.log").relative_to(ROOT)
# The screen is full, as it is after a while.
WATCH = [
    "/bin/sh", "-c", 'seq 60; exec "$@"', "sh",
    sys.executable, "-m", "gctrace_analyzer", "watch", "--advise", str(LOG),
]  # fmt: skip
LINES = 45
SIZES = (80, 120, 60, 80)


def is_whole(rows: list[str], width: int) -> bool:
    """Whether the screen shows one dashboard for this width, below what was printed before."""
    text = [row.rstrip() for row in rows if row.strip()]
    text = text[sum(row.isdecimal() for row in text) :]
    titles = [number for number, row in enumerate(text) if row.startswith(str(LOG))]
    figures = [row for row in text if row.startswith("  GC CPU ")]
    levels = [row for row in text if row.endswith((" bad", " warn"))]
    return (
        titles == [0]
        and sum("Figures of the last" in row for row in text) == 1
        and len(figures) == 1
        # The level of a figure ends its line, whatever the width is.
        and {len(row) for row in levels} == {width - 1}
        and max(map(len, text)) <= width
    )


def test_the_dashboard_survives_a_resize() -> None:
    screen = pyte.Screen(SIZES[0], LINES)
    stream = pyte.ByteStream(screen)
    # This emulator cuts lines off when it becomes narrower, as XTerm does.
    with Terminal(WATCH, XTERM_VERSION="XTerm(379)") as terminal:
        read = 0
        for width in SIZES:
            terminal.resize(LINES, width)
            screen.resize(LINES, width)

            def shows(width: int = width) -> bool:
                nonlocal read
                terminal.read()
                stream.feed(terminal.seen[read:])
                read = len(terminal.seen)
                return is_whole(screen.display, width)

            until(shows)
        terminal.type(b"\x03")
        terminal.wait_for(b"code 0")
        terminal.type(b"home\n")
        terminal.wait_for(b"back home")
        terminal.end()


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """A terminal that wraps lines again when it becomes narrower."""
    if not shutil.which("tmux"):
        pytest.skip("no tmux here: `scripts/test --all` installs it")
    socket = tmp_path / f"tmux-{uuid.uuid4().hex[:8]}"

    def call(*words: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", str(socket), "-f", "/dev/null", *words],
            check=True,
            capture_output=True,
            text=True,
            cwd=ROOT,
            # Python's `readline` sets COLUMNS, which says more than the terminal.
            env={name: value for name, value in os.environ.items() if name != "COLUMNS"},
        )
        return done.stdout

    yield call
    call("kill-server")


def test_the_dashboard_survives_a_resize_that_wraps_its_lines(
    tmux: Callable[..., str],
) -> None:
    size = ("-x", str(SIZES[0]), "-y", str(LINES))
    tmux("new-session", "-d", *size, *WATCH)
    for width in SIZES:
        tmux("resize-window", "-x", str(width), "-y", str(LINES))
        until(lambda width=width: is_whole(tmux("capture-pane", "-p").split("\n"), width))  # type: ignore[misc]
