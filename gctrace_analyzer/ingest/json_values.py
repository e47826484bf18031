"""Decodes JSON from untrusted input, where any defect is a `ValueError`, and its timestamps."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

_TOO_DEEP = "nested too deeply"
_NEVER = "0001-01-01"
"""Go prints the zero time for something that never happened."""


def loads(text: str) -> Any:
    """Returns the value of a JSON text.

    Raises:
        ValueError: not JSON, or nested more deeply than Python can decode.
    """
    try:
        return json.loads(text)
    except RecursionError as err:
        raise ValueError(_TOO_DEEP) from err


def raw_decode(text: str, at: int) -> tuple[Any, int]:
    """Returns the JSON value that begins at `at`, and where it ends.

    Raises:
        ValueError: not JSON, or nested more deeply than Python can decode.
    """
    try:
        return json.JSONDecoder().raw_decode(text, at)
    except RecursionError as err:
        raise ValueError(_TOO_DEEP) from err


def iso_utc(text: str | None) -> datetime | None:
    """Returns a timestamp in UTC; None if it is unset, invalid or without a time zone."""
    if not text or text.startswith(_NEVER):
        return None
    try:
        time = datetime.fromisoformat(text)
        return time.astimezone(UTC) if time.tzinfo else None
    except (ValueError, OverflowError):
        return None
