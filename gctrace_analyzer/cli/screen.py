"""Standard output: colours where they belong, and characters that it can show."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TextIO

    from gctrace_analyzer.present.table import Line


def show(lines: Iterable[Line], color: str, file: TextIO | None = None) -> None:
    """Writes styled lines; without colour unless it is wanted and can be seen."""
    from rich.console import Console
    from rich.text import Text

    file = sys.stdout if file is None else file
    if hasattr(file, "reconfigure"):
        file.reconfigure(errors="replace")
    console = Console(
        file=file,
        force_terminal={"always": True, "never": False}.get(color),
        no_color=True if color == "never" else None,
        highlight=False,
        soft_wrap=True,
    )
    for line in lines:
        if console.is_terminal:
            text = Text.assemble(*line)
            text.rstrip()
            console.print(text)
        else:
            print("".join(text for text, _ in line).rstrip(), file=file)


def say(message: str) -> None:
    """Writes to standard error: all that is not a result."""
    print(message, file=sys.stderr)
