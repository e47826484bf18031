"""Replaces tabs and non-breaking spaces within records by blanks, as the runtime prints them.

Editors, chats and spreadsheets put them there. This comes before anything else is read.
"""

from __future__ import annotations

import re

import polars as pl

from gctrace_analyzer.ingest.gctrace.lines import split
from gctrace_analyzer.ingest.gctrace.patterns import HEADS

_TAB, _SPACES = b"\t", ("\u00a0".encode(), "\u202f".encode())
_OTHER = re.compile(b"|".join((_TAB, *_SPACES)))
_ANY = b"(?:%b| )" % _OTHER.pattern
_RECORD = re.compile(
    b"(?:%b)[^\n]*" % b"|".join(head.encode().replace(b" ", _ANY) for head, _ in HEADS)
)
_WORDS = (b"@", b"ms", b"us", b"MB", b"KiB", b"idle", b"CPU")
"""In a record with another blank, it precedes one of these words; most logs with tabs have none."""


def with_blanks(data: bytes) -> bytes:
    """Returns lines with blanks in the place of tabs and non-breaking spaces in records.

    Text before a record is unchanged. Returns the same object if nothing has changed.
    """
    others = [
        other for other in ((_TAB,) if data.isascii() else (_TAB, *_SPACES)) if other in data
    ]
    if not any(other + word in data for other in others for word in _WORDS):
        return data
    changed = _RECORD.sub(lambda record: _OTHER.sub(b" ", record[0]), data)
    return data if changed == data else changed


def changed_lines(before: bytes, after: bytes) -> pl.Series:
    """Returns the numbers of the lines that `with_blanks` has changed."""
    return (split(before)["text"] != split(after)["text"]).arg_true().cast(pl.Int64) + 1
