"""Decodes JSON from untrusted input, where any defect is a `ValueError`."""

from __future__ import annotations

import json
from typing import Any

_TOO_DEEP = "nested too deeply"


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
