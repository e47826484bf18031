"""The lowest part of the terminal, which is redrawn below what the program prints."""

from __future__ import annotations

import math
import os
import time
from threading import RLock
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console
from rich.control import Control
from rich.live import Live
from rich.segment import ControlType, Segment
from rich.text import Text

from gctrace_analyzer.cli.screen import with_theme

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

    from rich.console import ConsoleOptions, RenderResult

    from gctrace_analyzer.cli.screen import Colors
    from gctrace_analyzer.present.text import Line

_PARTIAL_LINE_S = 0.3
"""How long the beginning of a line waits for its end before it is printed."""

_TOGETHER_S, _MOST_BYTES = 0.1, 1 << 16
"""Text written within this time is printed together, unless it is larger than this: the lines below
are redrawn each time."""


class BottomLines:
    """Lines at the bottom of the screen; output goes above them."""

    def __init__(self, file: TextIO, colors: Colors) -> None:
        console = Console(file=file, no_color=colors.no_color, highlight=False)
        self._console = with_theme(console, colors.theme)
        self._lock = RLock()
        self._live: Live | None = None
        self._waiting = self._partial = b""
        self._printed_at = self._partial_at = 0.0
        self._shown: list[Line] = []
        self._size = (0, 0)
        self._lengths: list[int] = []
        self._drawn_width = self.width
        self.start()

    @property
    def width(self) -> int:
        """The terminal's present number of columns."""
        return self._console.size.width

    @property
    def height(self) -> int:
        """The terminal's present number of lines."""
        return self._console.size.height

    def start(self) -> None:
        """Starts drawing."""
        with self._lock:
            self._shown, self._lengths = [], []
            self._live = Live(
                console=self._console,
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
                vertical_overflow="crop",
            )
            self._live.start()

    def stop(self) -> None:
        """Removes the dashboard from the screen and shows the cursor again."""
        with self._lock:
            if self._live is not None:
                self._erase_wrapped()
                self._live.stop()
                self._live = None

    def end(self) -> None:
        """Stops drawing and prints the rest of a line that never ended."""
        self.stop()
        with self._lock:
            rest = self._waiting + self._partial + (b"\n" if self._partial else b"")
            self._waiting = self._partial = b""
            if rest:
                self._print(rest)

    def update(self, lines: list[Line]) -> None:
        """Draws these lines, if they have changed."""
        with self._lock:
            size = (self.width, self.height)
            if self._live is None or (lines == self._shown and size == self._size):
                return
            self._shown, self._size = lines, size
            # The terminal echoes what is typed, also ^C, at the cursor, so the last line is
            # left empty.
            shown = [*lines[: max(self.height - 2, 1)], ()]
            text = Text("\n").join(Text.assemble(*line) for line in shown)
            text.no_wrap, text.overflow = True, "crop"
            self._erase_wrapped()
            self._lengths = [cell_len("".join(part for part, _ in line)) for line in shown]
            self._live.update(_Drawn(text, self._console), refresh=True)

    def write(self, data: bytes) -> None:
        """Prints above the dashboard, unchanged; a partial line waits for its end."""
        with self._lock:
            data = self._partial + data
            end = data.rfind(b"\n") + 1
            self._partial, self._partial_at = data[end:], time.monotonic()
            self._waiting += data[:end]
            self._print_waiting()

    def flush(self) -> None:
        """Prints text that has waited long enough, including a partial line such as a prompt."""
        with self._lock:
            if self._partial and time.monotonic() - self._partial_at > _PARTIAL_LINE_S:
                self._waiting += self._partial + b"\n"
                self._partial = b""
            self._print_waiting()

    def _print_waiting(self) -> None:
        is_due = time.monotonic() - self._printed_at > _TOGETHER_S
        if self._waiting and (is_due or len(self._waiting) > _MOST_BYTES):
            data, self._waiting = self._waiting, b""
            self._print(data)
            self._printed_at = time.monotonic()

    def _erase_wrapped(self) -> None:
        """Erases the old lines after the terminal became narrower.

        The terminal may have wrapped them into more rows than Live knows of.
        """
        width, before = self.width, self._drawn_width
        drawn = (min(length, before) for length in self._lengths)
        more = sum(math.ceil(length / width) - 1 for length in drawn if length)
        if more and _wraps_again(os.environ):
            up = ((ControlType.CURSOR_UP, 1), (ControlType.ERASE_IN_LINE, 2))
            first = (ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2))
            self._console.control(Control(*first, *(up * more)))
        self._drawn_width = width

    def _print(self, data: bytes) -> None:
        self._erase_wrapped()
        self._console.print(
            _Raw(data.decode(errors="replace")), end="", soft_wrap=True, crop=False
        )


def _wraps_again(environment: Mapping[str, str]) -> bool:
    """Returns whether the terminal wraps lines again when it becomes narrower.

    Most do: VTE, Konsole, kitty, Alacritty, foot, iTerm2, Windows Terminal, tmux. XTerm, rxvt, the
    Linux console and GNU screen cut the lines off.
    """
    kind = environment.get("TERM", "")
    if "TMUX" in environment:
        return True
    return "XTERM_VERSION" not in environment and not kind.startswith(
        ("linux", "rxvt", "screen")
    )


class _Drawn:
    """Text that is ready to be drawn again, because printing above it redraws it."""

    def __init__(self, text: Text, console: Console) -> None:
        self._segments = list(text.render(console))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self._segments


class _Raw:
    """Text that reaches the terminal exactly as the program wrote it, with its colours."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Segment(self._text)
