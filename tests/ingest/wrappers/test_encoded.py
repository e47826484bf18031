"""Log entries that queues of clouds deliver in base64."""

from __future__ import annotations

import base64
import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from gctrace_analyzer.ingest.wrappers import encoded
from gctrace_analyzer.testing import read_text
from tests.helpers.logs import records

if TYPE_CHECKING:
    from collections.abc import Callable

LINES = list(records(6))
DELIVERY = {
    "messageType": "DATA_MESSAGE",
    "logStream": "api/1",
    "logEvents": [
        {"id": str(n), "timestamp": 1770112800000 + 100 * n, "message": line}
        for n, line in enumerate(LINES)
    ],
}
ENTRIES = [
    {"textPayload": line, "timestamp": f"2026-02-03T10:00:0{n}Z"}
    for n, line in enumerate(LINES)
]


def base_64(data: str | bytes) -> str:
    return base64.b64encode(data if isinstance(data, bytes) else data.encode()).decode()


PACKED = base_64(gzip.compress(json.dumps(DELIVERY).encode()))
AWS = {"awslogs": {"data": PACKED}}
KINESIS = {"Records": [{"kinesis": {"partitionKey": "p", "data": PACKED}}]}
PUSHED = [
    {
        "message": {
            "attributes": {"a": "b"},
            "data": base_64(json.dumps(entry)),
            "messageId": "1",
        }
    }
    for entry in ENTRIES
]
PLAIN = [{"message": {"data": base_64(line), "messageId": "1"}} for line in LINES]

DELIVERED: dict[str, Callable[[], str]] = {
    "Lambda": lambda: json.dumps(AWS),
    "Lambda, indented": lambda: json.dumps(AWS, indent=2),
    "Kinesis": lambda: json.dumps(KINESIS),
    "push, one per line": lambda: "".join(f"{json.dumps(each)}\n" for each in PUSHED),
    "gcloud pubsub subscriptions pull": lambda: json.dumps(PUSHED, indent=2),
    "lines as text": lambda: json.dumps(PLAIN, indent=2),
}


@pytest.mark.parametrize("delivery", DELIVERED)
def test_a_delivery_has_the_cycles_of_its_log(delivery: str) -> None:
    run = read_text(DELIVERED[delivery]())
    assert run.cycles["gc_num"].to_list() == list(range(1, 7))
    assert run.cycles["logged_at"].null_count() == (6 if delivery == "lines as text" else 0)


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"message": "text"},
        {"message": {"data": 7}},
        {"message": {"data": "not base64"}},
        {"awslogs": {"data": base_64(b"\x1f\x8bno gzip")}},
        {"Records": "none"},
        {"Records": [7, {"kinesis": None}]},
    ],
)
def test_a_value_without_a_payload_has_none(value: dict[str, Any]) -> None:
    assert list(encoded.payloads(value)) == []


def test_a_payload_unpacks_to_so_many_times_its_size_at_most() -> None:
    packed = gzip.compress(bytes(64 << 20))
    (text,) = encoded.payloads({"awslogs": {"data": base_64(packed)}})
    assert len(text) == encoded._RATIO * len(packed)
    assert len(text) < 64 << 20
