"""A part of the terminal that is redrawn, below what the program prints."""

from __future__ import annotations

import time
from threading import RLock
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.segment import Segment
from rich.text import Text

if TYPE_CHECKING:
    from typing import TextIO

    from rich.console import ConsoleOptions, RenderResult

    from gctrace_analyzer.present.table import Line

_PATIENCE_S = 0.3


class Dashboard:
    """Lines at the end of the screen; what is printed goes above them."""

    def __init__(self, file: TextIO, color: str) -> None:
        self._console = Console(
            file=file, no_color=True if color == "never" else None, highlight=False
        )
        self._lock = RLock()
        self._live: Live | None = None
        self._carry = b""
        self._carried_at = 0.0
        self._shown: list[Line] = []
        self._size = (0, 0)
        self.start()

    @property
    def width(self) -> int:
        """Columns of the terminal, now."""
        return self._console.size.width

    @property
    def height(self) -> int:
        """Lines of the terminal, now."""
        return self._console.size.height

    def start(self) -> None:
        """Begins to draw."""
        with self._lock:
            self._shown = []
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
        """Takes the dashboard off the screen; the cursor is there again."""
        with self._lock:
            if self._live is not None:
                self._live.stop()
                self._live = None

    def end(self) -> None:
        """Stops, and prints what is left of a line that never ended."""
        self.stop()
        if self._carry:
            self._print(self._carry + b"\n")
            self._carry = b""

    def update(self, lines: list[Line]) -> None:
        """Draws these lines, if they are others than before."""
        with self._lock:
            size = (self.width, self.height)
            if self._live is None or (lines == self._shown and size == self._size):
                return
            self._shown, self._size = lines, size
            # What is typed, ^C as well, is echoed behind the last line: it gets one of its own.
            shown = [*lines[: max(self.height - 2, 1)], ()]
            text = Text("\n").join(Text.assemble(*line) for line in shown)
            text.no_wrap, text.overflow = True, "crop"
            self._live.update(text, refresh=True)

    def write(self, data: bytes) -> None:
        """Prints above the dashboard, as it is; the beginning of a line waits for its end."""
        with self._lock:
            data = self._carry + data
            end = data.rfind(b"\n") + 1
            self._carry, self._carried_at = data[end:], time.monotonic()
            if end:
                self._print(data[:end])

    def flush(self) -> None:
        """Prints the beginning of a line that has waited for its end: a question, maybe."""
        with self._lock:
            if self._carry and time.monotonic() - self._carried_at > _PATIENCE_S:
                data, self._carry = self._carry + b"\n", b""
                self._print(data)

    def _print(self, data: bytes) -> None:
        self._console.print(
            _Raw(data.decode(errors="replace")), end="", soft_wrap=True, crop=False
        )


class _Raw:
    """Text that reaches the terminal as the program wrote it, colours and all."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Segment(self._text)
