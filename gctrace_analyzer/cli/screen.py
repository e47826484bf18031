"""Prints to standard output and standard error: colours, encodings, closed pipes."""

from __future__ import annotations

import math
import os
import re
import shutil
import sys
import time
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING, NamedTuple, Protocol, TextIO

from gctrace_analyzer.present.format import WIDTH, as_wide_as, printable
from gctrace_analyzer.units import duration_text

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator

    from rich.console import Console

    from gctrace_analyzer.present.plots.palette import Theme
    from gctrace_analyzer.present.text import Line

_ASCII = str.maketrans(
    "▁▂▃▄▅▆▇█·▸✗×–—−─│≈∝µΔ∆◀▶“”’‘\u202f\xa0", "_.-=+*#@|>xx----|~~udd<>\"\"''  "
) | str.maketrans({"→": "->", "…": "...", "±": "+-", "≥": ">=", "≤": "<="})
"""ASCII replacements for the special characters of the reports."""


_CLEAR_LINE = "\r\033[K"
_REDRAWN_EVERY_S, _REDRAW_S = 0.6, 0.2


@contextmanager
def working(text: str = "") -> Iterator[Callable[[str], None]]:
    """Shows on a terminal what is being done and for how long, unless it is quick.

    Yields a function that changes the text; nothing is shown while the text is empty.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    begin, done, said = time.monotonic(), Event(), [text]

    def change(text: str) -> None:
        said[0] = text

    def say_now_and_then() -> None:
        shown = False
        while not done.wait(_REDRAWN_EVERY_S):
            if said[0]:
                shown = True
                seconds = round(time.monotonic() - begin)
                since = f"{seconds} s" if seconds < 60 else duration_text(seconds)
                _redraw(f"{said[0]} · {since}")
        if shown:
            _redraw("")

    # The work does not hold the lock: one call of Polars may take seconds.
    thread = Thread(target=say_now_and_then, daemon=True)
    thread.start()
    try:
        yield change
    finally:
        done.set()
        thread.join()


class Draw(Protocol):
    """The function that `drawing` yields."""

    def __call__(self, line: str, *, always: bool = False) -> None:
        """Draws one line in place of the last one; unless `always`, only now and then."""


@contextmanager
def drawing(first: str = "") -> Iterator[Draw]:
    """Yields a function that draws one line on a terminal, in place of the last one.

    Args:
        first: the text until something is drawn.
    """
    if not sys.stderr.isatty():
        yield lambda _, *, always=False: None
        return
    last = -math.inf

    def draw(line: str, *, always: bool = False) -> None:
        nonlocal last
        if always or time.monotonic() - last >= _REDRAW_S:
            last = time.monotonic()
            _redraw(line)

    if first:
        _redraw(first)
    try:
        yield draw
    finally:
        _redraw("")


def _redraw(line: str) -> None:
    """Replaces the last line on the terminal; the new one is cut, as a wrapped line would stay."""
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns or WIDTH
    except OSError:
        columns = WIDTH
    print(f"{_CLEAR_LINE}{line[: columns - 1]}", end="", file=sys.stderr, flush=True)


class Colors(NamedTuple):
    """Whether colours are used, and which.

    Attributes:
        when: auto, always or never.
        theme: the background: auto, light or dark.
    """

    when: str = "auto"
    theme: Theme = "auto"

    @classmethod
    def of(cls, args: argparse.Namespace) -> Colors:
        """Returns what `--color` and `--theme` ask for."""
        return cls(args.color, args.theme)

    @property
    def no_color(self) -> bool | None:
        """Whether to use no colours; None leaves it to NO_COLOR.

        An option takes precedence over the environment, as no-color.org asks.
        """
        return {"never": True, "always": False}.get(self.when)


def background(theme: str) -> str:
    """Returns the background of the terminal: light, dark, or auto if unknown.

    Terminals such as Konsole and rxvt set COLORFGBG to the numbers of their own colours, such as
    `0;15` for black on white. Asking the terminal itself would delay every command, and mix the
    answer with typed input.
    """
    number = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    if theme != "auto" or not number.isdecimal():
        return theme
    return "light" if int(number) in _LIGHT_NUMBERS else "dark"


_LIGHT_NUMBERS = (7, *range(9, 16))
"""The numbers of light colours; 8 is dark grey."""


def with_theme(console: Console, theme: str) -> Console:
    """Gives a console colours for its background, and returns it.

    Without a theme the terminal's own 16 colours are used, which its user has chosen. Terminals
    that have only those always use them, because the nearest of 16 has another meaning.
    """
    ground = background(theme)
    has_colors = console.color_system in ("256", "truecolor") and not console.no_color
    if ground != "auto" and has_colors:
        from rich.theme import Theme

        from gctrace_analyzer.present.plots.palette import terminal_styles

        console.push_theme(Theme(terminal_styles(ground)))
    return console


def show(lines: Iterable[Line], colors: Colors, file: TextIO | None = None) -> None:
    """Prints styled lines, with colours only where they are wanted and can be seen."""
    file = sys.stdout if file is None else file
    if hasattr(file, "reconfigure"):
        file.reconfigure(errors="replace")
    console = None if _is_plain(file, colors) else _console(file, colors)
    ascii_only = is_ascii_only(file)
    # Lines made while they are shown use the present width of the terminal.
    piped = shutil.get_terminal_size((WIDTH, 1)).columns
    with as_wide_as(console.width if console and file.isatty() else piped):
        with working("analysing"):
            made = list(lines)
        for line in made:
            pieces = tuple(
                (to_ascii(text) if ascii_only else text, style) for text, style in line
            )
            if console and console.is_terminal:
                _print_styled(console, pieces)
            else:
                print(without_commands("".join(text for text, _ in pieces).rstrip()), file=file)


def _is_plain(file: TextIO, colors: Colors) -> bool:
    """Returns whether there are certainly no colours: then rich need not be loaded."""
    forced = any(os.environ.get(name) for name in ("FORCE_COLOR", "TTY_COMPATIBLE"))
    return not (colors.when == "always" or forced or file.isatty())


def _console(file: TextIO, colors: Colors) -> Console:
    from rich.console import Console

    console = Console(
        file=file,
        force_terminal={"always": True, "never": False}.get(colors.when),
        no_color=colors.no_color,
        highlight=False,
        soft_wrap=True,
    )
    with_theme(console, colors.theme)
    return console


def _print_styled(console: Console, pieces: Line) -> None:
    from rich.text import Text

    text = Text.assemble(*pieces)
    text.rstrip()
    console.print(text)


def is_ascii_only(file: TextIO) -> bool:
    """Returns whether a stream can only show ASCII, because of its encoding or a C locale.

    A C locale counts only if the environment sets it: containers often set no locale, but can
    show Unicode. (Python itself writes UTF-8 in either case.)
    """
    try:
        "▁·".encode(getattr(file, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return True
    chosen = (os.environ.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    return next(filter(None, chosen), "") in ("C", "POSIX")


def to_ascii(text: str) -> str:
    """Returns the text with ASCII replacements for the special characters of the reports.

    >>> to_ascii("▁▄█ · 3–6 µs …")
    '_=@ | 3-6 us ...'
    """
    return text if text.isascii() else text.translate(_ASCII)


def say(message: str) -> None:
    """Prints text that is not a result to standard error."""
    print(without_commands(message), file=sys.stderr)


def say_wrote(place: str) -> None:
    """Says on a terminal what was written."""
    if sys.stderr.isatty():
        print(f"Wrote {printable(place)}", file=sys.stderr)


def without_commands(text: str) -> str:
    """Returns text without commands for GitHub Actions workflows; outside of them, unchanged."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return text
    return re.sub(r"(?m)^\s*:(?=:)|##(?=\[)", "\\g<0>\N{WORD JOINER}", text)


@contextmanager
def to_a_reader() -> Iterator[None]:
    """Ignores a closed standard output while the block runs, so that the exit code is kept."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output()


def discard_output() -> None:
    """Discards what is still buffered for standard output.

    Otherwise Python would report at exit that it could not be written.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


_LONG_PATH = 40
"""Length of a word that takes most of a line."""


def wrapped(message: str) -> str:
    """Returns a message in lines of at most 80 columns; commands to copy are not broken."""
    import textwrap

    lines: list[str] = []
    for line in message.splitlines():
        is_command = "gctrace-analyze " in line or line.startswith("    ")
        if is_command or max(map(len, line.split()), default=0) > _LONG_PATH:
            # Text to copy stays on one line, and so does a path with its problem.
            first, stop, rest = (line, "", "") if is_command else line.partition(". ")
            lines += [first + stop.strip(), *wrapped(stop and f"  {rest}").splitlines()]
            continue
        lines += textwrap.wrap(
            line,
            80,
            subsequent_indent="    ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(lines)
