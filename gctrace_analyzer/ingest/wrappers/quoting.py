"""The marks at the beginning of all lines of a quotation or a comment."""

from __future__ import annotations

import re
from itertools import takewhile

_BLANK = "> \t"
_QUOTED_BY, COMMENTED_BY = re.compile(r"[ \t>]+"), re.compile(r"(?:[ \t]|//|# )+")
"""Possible marks of all lines of a quoted text, and of a commented one."""


def quoting(text: str) -> re.Pattern[bytes] | None:
    """Returns a pattern for the marks of a text quoted nearly throughout, or for its blanks."""
    written = [line for line in text.split("\n") if line.strip()]
    quoted = [line for line in written if line.lstrip().startswith(">")]
    mostly = 3 * len(quoted) > 2 * len(written)
    if not (margin := margin_of("\n".join(quoted) if mostly else text, _QUOTED_BY)):
        return None
    begin, blank = map(re.escape, (margin, margin.rstrip()))
    # Some programs wrap quoted lines, and end each with the mark of the next.
    end = "|(?<![a-z])>$" if ">" in margin else ""
    return re.compile(f"(?m)^(?:{begin}|{blank}$){end}".encode())


def margin_of(text: str, marks: re.Pattern[str]) -> str:
    """Returns the marks at the beginning of all lines of a text."""
    written = [line for line in text.split("\n") if line.strip(_BLANK)]
    if not written:
        return ""
    alike = takewhile(
        lambda pair: pair[0] == pair[1], zip(min(written), max(written), strict=False)
    )
    shared = marks.match("".join(first for first, _ in alike))
    return shared[0] if shared else ""
