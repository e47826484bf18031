"""Decodes log entries that queues of clouds deliver in base64, compressed or not.

CloudWatch Logs subscriptions give `awslogs.data` to Lambda and `kinesis.data` to Kinesis, both
compressed with gzip; Pub/Sub gives `message.data`, an entry of Cloud Logging.
"""

from __future__ import annotations

import binascii
import re
import zlib
from collections.abc import Iterator

HEAD = re.compile(
    r'"(?:awslogs|kinesis|message)"\s*:\s*\{(?:[^{}]|\{[^{}]*\})*?"data"\s*:\s*"[A-Za-z0-9+/]{16}'
)
"""Text in the JSON of an object with a payload."""

_WITHIN = ("awslogs", "kinesis", "message")
_GZIP = b"\x1f\x8b"
_RATIO = 250
"""A payload that unpacks to more than this multiple of its size is cut: logs rarely do."""


def payloads(value: dict[str, object]) -> Iterator[str]:
    """Yields the decoded payloads of an event, or of each of its `Records`."""
    records = value.get("Records")
    for each in [value, *(records if isinstance(records, list) else [])]:
        for name in _WITHIN:
            inner = each.get(name) if isinstance(each, dict) else None
            data = inner.get("data") if isinstance(inner, dict) else None
            if isinstance(data, str) and (text := _decoded(data)) is not None:
                yield text


def _decoded(data: str) -> str | None:
    """Returns the text encoded in base64; None if there is none."""
    try:
        raw = binascii.a2b_base64(data)
        if raw.startswith(_GZIP):
            raw = zlib.decompressobj(wbits=31).decompress(raw, _RATIO * len(raw))
    except (ValueError, zlib.error):
        return None
    return raw.decode("utf-8", "replace") or None
