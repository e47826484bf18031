"""JSON documents, and the results of log services."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.ingest.evidence import documents
from gctrace_analyzer.testing import read_text
from tests.helpers.logs import KILL, read_lines, records

if TYPE_CHECKING:
    from pathlib import Path

STATE = {"Status": "exited", "OOMKilled": True, "ExitCode": 137}

DUMP = {"HeapAlloc": 100, "HeapSys": 200, "NumGC": 3}


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


def test_a_list_in_a_list_is_read() -> None:
    values = documents.read(json.dumps([[STATE], [[STATE]], 5]), "state.json")
    assert len(values.rows["container_states"]) == 2


@pytest.mark.parametrize("document", [{"MemStats": DUMP}, {"memstats": DUMP}, DUMP])
def test_a_dump_may_be_nested(document: dict[str, Any]) -> None:
    (row,) = documents.read(json.dumps(document), "dump.json").rows["memstats"]
    assert (row["heap_alloc_bytes"], row["num_gc"]) == (100, 3)


def test_a_status_without_a_kind_is_a_pod() -> None:
    state = {"name": "api", "restartCount": 2, "state": {"running": {}}}
    values = documents.read(json.dumps({"status": {"containerStatuses": [state]}}), "pod.json")
    (row,) = values.rows["container_states"]
    assert (row["container"], row["restart_count"], row["status"]) == ("api", 2, "running")


def test_events_about_pods_have_no_node() -> None:
    event = {"kind": "Event", "regarding": {"kind": "Pod"}, "note": "Killing", "eventTime": "x"}
    ((_, record),) = documents.read(json.dumps(event), "events.json").records
    assert json.loads(record) == {"message": "Killing", "time": "x"}


def test_rows_of_cloudwatch_insights_are_in_the_order_of_their_times() -> None:
    def cells(**values: str) -> list[dict[str, str]]:
        return [{"field": f"@{name}", "value": value} for name, value in values.items()]

    results = [
        cells(timestamp="2026-02-03 10:00:01.000", message="second"),
        cells(message="undated"),
        cells(timestamp="2026-02-03 10:00:00.000Z", message="first"),
        cells(ptr="no message"),
    ]
    values = documents.read(json.dumps({"results": results}), "insights.json")
    rows = [json.loads(record) for _, record in values.records]
    assert [row["@message"] for row in rows] == ["undated", "first", "second"]
    assert rows[2]["@timestamp"] == "2026-02-03 10:00:01.000Z"


def test_a_payload_without_a_message_is_kept_as_it_was() -> None:
    entry = {"jsonPayload": {"code": 5}}
    ((_, record),) = documents.read(json.dumps(entry), "entries.json").records
    assert json.loads(record) == entry


def test_a_value_that_is_cut_off_is_rejected_with_its_line() -> None:
    values = documents.read(json.dumps(STATE) + '\n{"State": {', "state.json")
    assert len(values.rows["container_states"]) == 1
    assert [(line, reason) for line, reason, _ in values.cut] == [
        (2, "JSON that ends inside a value")
    ]


def test_a_document_that_is_nested_too_deeply_is_an_error() -> None:
    with pytest.raises(gca.UnreadableInputError, match="nested too deeply"):
        documents.read("[" * 100_000 + "5", "deep.json")


def test_a_journald_record_in_a_google_cloud_export_keeps_its_host() -> None:
    payload = {"_HOSTNAME": "node-1", "MESSAGE": KILL.format(pid=7, comm="api", kb=5)}
    entry = {"insertId": "x", "timestamp": "2026-02-03T10:00:00Z", "jsonPayload": payload}
    assert read_text(json.dumps([entry])).oom_kills["host"].to_list() == ["node-1"]


def test_one_damaged_entry_of_a_query_leaves_the_others() -> None:
    good, damaged = [records(1)[0]], ["1e999", 5, "x"]
    values = [[str(10**18 + n), line] for n, line in enumerate(good)]
    stream = {"stream": {}, "values": [*values, damaged, 7, ["1"]]}
    result = {"data": {"resultType": "streams", "result": [stream, "x"]}}
    assert len(read_text(json.dumps(result)).cycles) == 1


@pytest.mark.parametrize("between", ["", "\n", ",", " "])
def test_arrays_that_follow_each_other_are_read(between: str) -> None:
    """`docker inspect` prints an array each time."""
    arrays = [
        [{"State": {"Status": "exited", "OOMKilled": False, "ExitCode": code}}]
        for code in (1, 2, 3)
    ]
    text = between.join(json.dumps(array) for array in arrays)
    assert read_text(text).container_states["exit_code"].to_list() == [1, 2, 3]
