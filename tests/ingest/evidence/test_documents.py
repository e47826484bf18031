"""JSON documents, and the results of log services."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.ingest.evidence import documents, words
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


CONTAINER = {"name": "api", "restartCount": 2, "state": {"running": {}}}
PAIR = ["1770112800005000000", records(1)[0]]
KINDS: dict[str, tuple[Any, str, int, int]] = {
    # document, name of its kind, rows, log records
    "inspect": ({"State": STATE, "Id": "a" * 64}, "docker inspect", 1, 0),
    "state alone": (STATE, "docker inspect", 1, 0),
    "pod": ({"kind": "Pod", "status": {"containerStatuses": [CONTAINER] * 2}}, "kubectl get pods -o json", 2, 0),
    "pods": ({"kind": "List", "items": [{"kind": "Pod", "status": {"containerStatuses": [CONTAINER]}}]},
             "kubectl get pods -o json", 1, 0),
    "status of a pod": ({"status": {"containerStatuses": [CONTAINER]}}, "kubectl get pods -o json", 1, 0),
    "status of a container": (CONTAINER, "kubectl get pods -o json", 1, 0),
    "terminated": ({"terminated": {"exitCode": 1}}, "kubectl get pods -o json", 1, 0),
    "event": ({"kind": "Event", "message": "x"}, "kubectl get events -o json", 0, 1),
    "events": ({"kind": "EventList", "items": [{"message": "x"}, {"note": "y"}, 5]}, "kubectl get events -o json", 0, 2),
    "expvar": ({"cmdline": ["x"], "memstats": DUMP}, "expvar", 1, 0),
    "MemStats": ({"MemStats": DUMP}, "MemStats JSON", 1, 0),
    "bare MemStats": (DUMP, "MemStats JSON", 1, 0),
    "MemStats in a log entry": ({**DUMP, "msg": "memory"}, "", 0, 1),
    "CloudWatch": ({"events": [{"message": "x", "timestamp": 5}, {"timestamp": 4}, 3]}, "CloudWatch events", 0, 1),
    "dmesg": ({"dmesg": [{"msg": "x", "time": 1.5}, {"pri": 3}, 4]}, "dmesg --json", 0, 1),
    "hits": ({"hits": {"hits": [{"_source": {"message": "x"}}, 3]}}, "search hits", 0, 1),
    "Insights": ({"results": [[{"field": "@message", "value": "x"}]]}, "CloudWatch Insights", 0, 1),
    "Loki": ({"data": {"resultType": "streams", "result": [{"stream": {}, "values": [PAIR]}]}}, "Loki query", 0, 1),
    "docker event": ({"Type": "container", "Action": "die", "id": "a"}, "docker events", 1, 0),
    "entry": ({"message": "x"}, "", 0, 1),
    "nothing": (5, "", 0, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_document_is_recognised(name: str) -> None:
    document, kind, rows, entries = KINDS[name]
    for text in (
        json.dumps(document),
        "\n\n" + json.dumps(document, indent=1),
        json.dumps([document, document]),
    ):
        values = documents.read(text, "x.json")
        times = 2 if text.startswith("[") else 1
        assert len(values.records) == entries * times
        assert sum(map(len, values.rows.values())) == rows * times
        assert set(values.kinds) <= {kind}
        assert bool(values.kinds) is bool(kind)
        assert values.cut == []


def test_values_have_the_line_on_which_they_end_or_begin() -> None:
    text = (
        "[\n"
        + ",\n".join(json.dumps({"State": {"ExitCode": n}}, indent=1) for n in range(3))
        + "\n]\n"
    )
    rows = documents.read(text, "x.json").rows["container_states"]
    begins = [n for n, line in enumerate(text.split("\n"), 1) if line == "{"]
    assert [row["line_no"] for row in rows] == begins
    assert [row["exit_code"] for row in rows] == [0, 1, 2]


def test_a_fragment_of_a_document_is_completed() -> None:
    """People paste the part of `docker inspect` that matters."""
    text = '        "State": {\n            "Status": "exited",\n            "ExitCode": 137,\n        },\n'
    (row,) = documents.read(text, "x").rows["container_states"]
    assert (row["exit_code"], row["signal"]) == (137, "KILL")
    cut = '"State": {"Status": "exited", "ExitCode": 137'
    assert documents.read(cut, "x").rows["container_states"][0]["exit_code"] == 137


@pytest.mark.parametrize("end", ["", "\n    ...\n", "\n…"])
@pytest.mark.parametrize(
    "begun",
    ['"Path": "/bin/x",', '"HostConfig": {"Binds": ["/a:/b", "/c', '"Env": ["A={[", "B=\\"{",'],
)
def test_the_state_in_an_object_that_was_cut_is_read(begun: str, end: str) -> None:
    state = '"Args": ["-v"], "State": {"Status": "exited", "OOMKilled": false, "ExitCode": 137}'
    values = documents.read(f'[\n {{"Id": "{"ab" * 32}", {state}, {begun}{end}', "x.json")
    (row,) = values.rows["container_states"]
    assert (row["exit_code"], row["oom_killed"]) == (137, False)
    assert len(values.cut) == 1


def test_invalid_json_is_named_with_its_place() -> None:
    text = '{\n "State": {"Status": exited, "ExitCode": 137}}'
    with pytest.raises(gca.UnreadableInputError) as error:
        documents.read(text, "state.json")
    assert (error.value.line_no, error.value.argument) == (2, "kind")
    assert str(error.value).startswith(
        "state.json:2: invalid JSON at column 22: Expecting value"
    )
    assert 'Near: … "State": {"Status": exited, "ExitCode": 1\n' in str(error.value)


def test_values_of_unexpected_types_are_rejected_and_the_others_are_kept() -> None:
    odd = {"kind": "Pod", "status": {"containerStatuses": [5]}}
    values = documents.read(json.dumps(odd) + "\n" + json.dumps(STATE), "x.json")
    assert [(line, reason) for line, reason, _ in values.cut] == [
        (1, "JSON with values of unexpected types")
    ]
    assert values.cut[0][2] == json.dumps(odd)[:200]
    assert len(values.rows["container_states"]) == 1


def test_entries_are_in_the_order_of_their_times() -> None:
    pairs = [[str(10**18 + n), f"line {n}"] for n in (3, 1)], [[str(10**18 + 2), "line 2"]]
    streams = [{"stream": {"pod": f"p{n}"}, "values": each} for n, each in enumerate(pairs)]
    loki = {"data": {"resultType": "streams", "result": streams}}
    found = [json.loads(text) for _, text in documents.read(json.dumps(loki), "x").records]
    assert [(each["line"], each["pod"]) for each in found] == [
        ("line 1", "p0"),
        ("line 2", "p1"),
        ("line 3", "p0"),
    ]
    events = [{"message": str(at), "timestamp": at} for at in (30, 4, 200)]
    records = documents.read(json.dumps({"events": events}), "x").records
    assert [json.loads(text)["timestamp"] for _, text in records] == [4, 30, 200]


@pytest.mark.parametrize(
    ("text", "begins"),
    [('{"a":1}', True), ("[1]", False), ('["a"]', True), ("[[1]]", True), ("[", True), ("{", True),
     (" \n[ {", True), ("{}", True), ('[{"a":1}]', True), ("[{}]", True), ("{api {nil", False),
     ("[{api {nil", False), ("[pod/api] x", False), ("{time} x", False), ("[ 12.5] kernel", False)],
)  # fmt: skip
def test_what_begins_like_json(text: str, begins: bool) -> None:
    assert bool(words.JSON.match(text)) is begins


def test_a_list_of_lines_is_a_log(tmp_path: Path) -> None:
    lines = list(records(4))
    for document in (json.dumps(lines), json.dumps(lines, indent=1)):
        run = read_lines(tmp_path, document)
        assert run.cycles["gc_num"].to_list() == [1, 2, 3, 4]


def test_a_recorded_terminal_is_a_log(tmp_path: Path) -> None:
    header = json.dumps({"version": 2, "width": 80, "height": 24, "timestamp": 1795427998})
    events = [json.dumps([n / 10, "o", f"{line}\r\n"]) for n, line in enumerate(records(4))]
    run = read_lines(tmp_path, "\n".join([header, *events]))
    assert run.cycles["gc_num"].to_list() == [1, 2, 3, 4]
    assert run.cycles["line_no"].to_list() == [2, 3, 4, 5]


def test_text_in_braces_is_a_log_and_not_invalid_json(tmp_path: Path) -> None:
    entries = [
        f'{{\n    "@timestamp" => 2026-11-23T10:00:00.00{n}Z,\n      "message" => "{line}"\n}}'
        for n, line in enumerate(records(4))
    ]
    run = read_lines(tmp_path, "\n".join(entries))
    assert run.cycles["gc_num"].to_list() == [1, 2, 3, 4]
    assert run.cycles["line_no"].to_list() == [3, 7, 11, 15]
    assert run.rejected["line_no"].to_list() == [2]


def test_lines_that_ansible_prints_twice_are_read_once_however_deep(tmp_path: Path) -> None:
    lines = list(records(4))
    result = {"stdout_lines": lines, "stdout": "\n".join(lines), "rc": 0}
    document = {"plays": [{"tasks": [{"hosts": {"web1": result}}]}]}
    run = read_lines(tmp_path, json.dumps(document, indent=4))
    assert run.cycles["gc_num"].to_list() == [1, 2, 3, 4]
    assert run.cycles["process"].n_unique() == 1


def _answers() -> dict[str, Any]:
    """Answers of log services, by service."""
    rows = [(f"2026-02-03T10:00:0{n}Z", line) for n, line in enumerate(records(6))]
    columns = [{"name": "@timestamp", "type": "date"}, {"name": "message", "type": "text"}]
    return {
        "Elasticsearch ES|QL": {"columns": columns, "values": [list(row) for row in rows]},
        "Elasticsearch SQL": {"columns": columns, "rows": [list(row) for row in rows]},
        "Kibana": {
            "hits": {
                "hits": [
                    {
                        "_id": "1",
                        "fields": {
                            "@timestamp": [at],
                            "message": [line],
                            "kubernetes.pod.name": ["api-0"],
                            "tags": ["a", "b"],
                        },
                    }
                    for at, line in rows
                ]
            }
        },
        "Datadog": {
            "data": [
                {"id": "1", "type": "log", "attributes": {"timestamp": at, "message": line}}
                for at, line in rows
            ],
            "meta": {"status": "done"},
        },
        "ClickHouse": {
            "meta": [{"name": "Timestamp", "type": "DateTime"}],
            "data": [{"Timestamp": at, "Body": line} for at, line in rows],
            "rows": 6,
        },
    }


@pytest.mark.parametrize("service", _answers())
@pytest.mark.parametrize("indent", [None, 2])
def test_answers_of_log_services_have_the_times_of_their_entries(
    service: str, indent: int | None
) -> None:
    run = read_text(json.dumps(_answers()[service], indent=indent))
    assert run.cycles["gc_num"].to_list() == list(range(1, 7))
    assert run.cycles["logged_at"].null_count() == 0
    assert run.processes["pod"].to_list() == (["api-0"] if service == "Kibana" else [None])


@pytest.mark.parametrize("key", ["event", "object"])
@pytest.mark.parametrize("indent", [None, 1])
def test_events_of_a_watch_are_messages(key: str, indent: int | None) -> None:
    event = {
        "metadata": {"name": "n1.17683ea4"},
        "kind": "Event",
        "involvedObject": {"kind": "Node", "name": "n1"},
        "message": KILL.format(pid=7, comm="api", kb=1000),
        "lastTimestamp": "2026-02-03T10:00:00Z",
    }
    lines = "\n".join(
        json.dumps({"verb": "ADDED", key: event}, indent=indent) for _ in range(2)
    )
    assert set(read_text(lines).oom_kills["pid"]) == {7}
