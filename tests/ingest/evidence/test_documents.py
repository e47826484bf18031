"""JSON documents, and the results of log services."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from gctrace_analyzer.testing import read_text
from tests.helpers.logs import KILL, read_lines, records

if TYPE_CHECKING:
    from pathlib import Path


def test_kernel_messages_in_json_contain_kills(tmp_path: Path) -> None:
    kill = KILL.format(pid=4242, comm="api", kb=524288)
    entry = {"fac": "kern", "pri": "warn", "time": 5.5, "msg": kill}
    row = read_lines(tmp_path, json.dumps({"dmesg": [entry]}, indent=3)).oom_kills.row(
        0, named=True
    )
    assert (row["pid"], row["comm"], row["anon_rss_bytes"]) == (4242, "api", 512 << 20)
    assert row["monotonic_s"] == 5.5


def test_kubernetes_events_are_messages() -> None:
    event = {
        "kind": "Event",
        "involvedObject": {"kind": "Node", "name": "n1"},
        "message": KILL.format(pid=7, comm="api", kb=1000),
        "lastTimestamp": "2026-02-03T10:00:00Z",
    }
    kills = read_text(json.dumps({"kind": "List", "items": [event]}, indent=1)).oom_kills
    assert kills.select("pid", "host").rows() == [(7, "n1")]


def test_kernel_messages_in_json_have_times_since_boot() -> None:
    entries = [{"pri": 3, "time": 12.5, "msg": KILL.format(pid=7, comm="api", kb=1000)}]
    kills = read_text(json.dumps({"dmesg": entries}, indent=1)).oom_kills
    assert kills.select("pid", "monotonic_s").rows() == [(7, 12.5)]


def test_a_payload_with_a_message_is_a_log_entry() -> None:
    entries = [{"jsonPayload": {"message": line}} for line in records(2)]
    assert len(read_text(json.dumps(entries, indent=1)).cycles) == 2
