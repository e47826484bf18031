"""Reads JSON and YAML documents: inspections, pods, MemStats, and the results of log services."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.errors import UnreadableInputError
from gctrace_analyzer.ingest import identity_names, json_values, numbers
from gctrace_analyzer.ingest.evidence import docker, kubernetes, platforms, yaml_documents
from gctrace_analyzer.ingest.evidence.message import given
from gctrace_analyzer.ingest.evidence.words import JSON_FRAGMENT
from gctrace_analyzer.ingest.json_values import array, objects
from gctrace_analyzer.ingest.memstats import json_records
from gctrace_analyzer.ingest.wrappers import encoded
from gctrace_analyzer.ingest.wrappers.json_lines import source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gctrace_analyzer.ingest.evidence.message import Row, Rows
    from gctrace_analyzer.ingest.wrappers.journal import NumberedLine

_UNEXPECTED = "JSON with values of unexpected types"
_BLANK = re.compile(r"[\s,]*")
_REST_OF_CUT = re.compile(r"\"[^\"]*+|[\s.…]*+")

_NESTED = 8
"""Depth of Ansible's nesting around the result of a task: plays, tasks, hosts, results."""


@dataclass(slots=True)
class Values:
    """The contents of JSON documents.

    Attributes:
        rows: rows by table.
        records: log records as lines of JSON.
        cut: values that are incomplete or of unexpected types: line, reason and text.
        kinds: the recognised formats, one name per row or value.
        dumps: documents of MemStats and expvar, with their lines.
    """

    rows: Rows = field(default_factory=dict)
    records: list[NumberedLine] = field(default_factory=list)
    cut: list[tuple[int, str, str]] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    dumps: list[tuple[int, dict[str, object]]] = field(default_factory=list)

    def add(self, kind: str, table: str, row: Row, line_no: int) -> None:
        """Adds a row that was found in a value of the given kind."""
        self.kinds += [kind] if kind else []
        self.rows.setdefault(table, []).append({"line_no": line_no, **row})

    def add_records(self, records: Iterable[dict[str, object]], line_no: int) -> None:
        """Adds log records of a value."""
        self.records += [(line_no, json.dumps(record)) for record in records]


def read(text: str, name: str) -> Values:
    """Returns the contents of a document: one value, several, or a fragment of one.

    Raises:
        UnreadableInputError: no value can be read; the error says where the problem is.
    """
    values = Values()
    if JSON_FRAGMENT.match(text):
        begin = len(text) - len(text.lstrip())
        text = (
            text[:begin]
            + "{"
            + text[begin:].rstrip().rstrip(",")
            + "}" * (1 + max(0, text.count("{") - text.count("}")))
        )
        # Removes a comma before a closing brace, which remains when something was cut out.
        text = re.sub(r",(\s*[}\]])", r"\1", text)
    _add_values(_values_of(text, name, values), values)
    return values


def read_yaml(text: str, name: str) -> Values:
    """Returns the contents of YAML documents.

    Raises:
        UnreadableInputError: it is not YAML; the error says where the problem is.
    """
    values = Values()
    if yaml_documents.ENTRIES.search(text):
        values.records = list(yaml_documents.entries(text))
        values.kinds = ["gcloud logging read"] * len(values.records)
        return values
    try:
        _add_values(yaml_documents.values(text), values)
    except ValueError as err:
        problem, line_no = f"invalid YAML: {err}", getattr(err, "lineno", 1)
        hint = "If it is a log, pass"
        raise UnreadableInputError(
            name, problem, hint, line_no=line_no, argument="kind", argument_value="log"
        ) from err
    values.kinds = [kind.replace("-o json", "-o yaml") for kind in values.kinds]
    return values


def _add_values(numbered: Iterable[tuple[int, Any]], values: Values) -> None:
    for line_no, value in numbered:
        try:
            _add_value(value, line_no, values)
        except (AttributeError, LookupError, TypeError, ValueError, OverflowError):
            values.cut.append((line_no, _UNEXPECTED, json.dumps(value)[:200]))


def _values_of(text: str, name: str, values: Values) -> Iterator[tuple[int, Any]]:
    """Yields each value with its line number; an array yields its items."""
    at, end, has_value = _skip(text, 0), len(text), False
    line_no, counted = 1, 0
    in_array = False
    while at < end:
        if text[at] == ("]" if in_array else "["):
            in_array = not in_array
            at = _skip(text, at + 1)
            continue
        line_no += text.count("\n", counted, at)
        counted = at
        try:
            value, at = json_values.raw_decode(text, at)
        except ValueError as err:
            is_cut = not has_value and _REST_OF_CUT.fullmatch(text, getattr(err, "pos", 0))
            if is_cut and (begun := json_values.before_cut(text[at:])):
                yield line_no, begun
            elif not has_value:
                _raise_invalid(err, text, name)
            values.cut.append((line_no, json_values.CUT, text[at : at + 200]))
            return
        has_value = True
        at = _skip(text, at)
        yield line_no, value


def _raise_invalid(err: ValueError, text: str, name: str) -> None:
    lineno, colno = getattr(err, "lineno", 1), getattr(err, "colno", 1)
    near = text.split("\n")[lineno - 1][max(0, colno - 40) : colno + 20] if text else ""
    problem = f"invalid JSON at column {colno}: {getattr(err, 'msg', str(err))}"
    hint = f"Near: …{near}\n  If it was truncated, fetch it again; if it is a log, pass"
    raise UnreadableInputError(
        name, problem, hint, line_no=lineno, argument="kind", argument_value="log"
    ) from err


def _skip(text: str, at: int) -> int:
    return _BLANK.match(text, at).end()  # type: ignore[union-attr]  # matches nothing too


def _add_value(value: Any, line_no: int, values: Values) -> None:
    if isinstance(value, list):
        for item in value:
            _add_value(item, line_no, values)
    elif isinstance(value, str):
        # A list of lines, from a shell's output in JSON or a recorded terminal.
        values.records += [(line_no, line) for line in value.splitlines()]
    # A report of this package has figures, but is no dump.
    elif isinstance(value, dict) and not {"schema_version", "verdict"} <= value.keys():
        _add_object(_watched(value), line_no, values)


def _add_object(value: dict[str, object], line_no: int, values: Values) -> None:
    """Adds the result of the first reader that understands an object."""
    messages = list(_pod_messages(value))
    values.kinds += ["kubectl get pods -o json"] * len(messages)
    values.add_records(messages, line_no)
    for kind, table, rows_of in _ROWS:
        if rows := list(rows_of(value)):
            for row in rows:
                values.add(kind, table, row, line_no)
            if table == "memstats":
                values.dumps.append((line_no, value))
            return
    if messages:
        return
    for kind, records_of in _RECORDS.items():
        if records := list(records_of(value)):
            values.kinds += [kind] if kind else []
            values.add_records(records, line_no)
            return
    texts = list(encoded.payloads(value))
    for text in texts:
        _add_payload(text, line_no, values)
    if not texts:
        values.add_records([_entry(value)], line_no)


def _watched(value: dict[str, object]) -> dict[str, object]:
    """Returns the object in a report of a Kubernetes watch or an event router."""
    if "involvedObject" in (event := _object(value.get("event"))):
        return {"kind": "Event", **event}
    watched = _object(value.get("object"))
    return watched if watched.get("kind") in ("Event", "Pod") else value


_ENTRIES = ("data", "logs", "entries")
"""Members with the entries of a log in answers of Datadog, ClickHouse and others."""

_MESSAGES = {"msg", "message", "log"}


def _entries(value: dict[str, object]) -> Iterator[dict[str, object]]:
    if not _MESSAGES & value.keys():
        for key in _ENTRIES:
            yield from map(_entry, objects(value.get(key)))


def _add_payload(text: str, line_no: int, values: Values) -> None:
    """Adds the decoded content of a value: an entry in JSON, or lines of a log."""
    try:
        inner = json_values.loads(text)
    except ValueError:
        inner = None
    if isinstance(inner, dict) and not any(encoded.payloads(inner)):
        _add_value(inner, line_no, values)
    else:
        values.records += [(line_no, line) for line in text.splitlines()]


def _pods(value: dict[str, object]) -> list[Row]:
    """Returns the containers of a pod, a list of pods, or the part of one that kubectl printed.

    The part may be the status of a container, or only its last state.
    """
    if _are_pods(value) or "containerStatuses" in _object(value.get("status")):
        return kubernetes.pods(value)
    if "kind" in value:
        return []
    is_status = "containerStatuses" in value
    return kubernetes.pods({"status": value}) if is_status else [*_ended_inside(value, depth=1)]


def _ended_inside(value: Any, name: str | None = None, depth: int = _NESTED) -> Iterator[Row]:
    """Yields the containers inside an object that have ended, and perhaps run again.

    Examples are the steps of a Tekton TaskRun, and the tasks of a Nomad allocation, whose events
    repeat its driver.
    """
    for item in objects(value if isinstance(value, list) else [value]) if depth else ():
        own = next((str(item[key]) for key in ("name", "container") if item.get(key)), name)
        last, now = _object(item.get("lastState")), _object(item.get("state"))
        now = {"terminated": item["terminated"]} if "terminated" in item else now
        ended = _object(last.get("terminated") or now.get("terminated"))
        if details := _object(item.get("Details")):
            if details.get("oom_killed") == "true":
                ended_at = json_values.epoch_utc(numbers.whole(item.get("Time")))
                code = numbers.whole(details.get("exit_code"))
                row: Row = {"oom_killed": True, "exit_code": code, "finished_at": ended_at}
                yield docker.with_signal({"name": own, "status": "terminated", **row})
        elif "exitCode" in ended or ("restartCount" in item and now):
            status = {**item, "name": own, "state": now}
            yield from kubernetes.pods({"status": {"containerStatuses": [status]}})
        else:
            for key, inner in item.items():
                below = key if isinstance(inner, dict) else own
                yield from _ended_inside(inner, below, depth - 1)


def _are_pods(value: dict[str, object]) -> bool:
    items = objects(value.get("items"))
    is_list = value.get("kind") == "List" and any(item.get("kind") == "Pod" for item in items)
    return value.get("kind") in ("Pod", "PodList") or is_list


def _pod_messages(value: dict[str, object]) -> Iterator[dict[str, object]]:
    """Yields why pods ended, as records: an evicted pod may have no containers left."""
    for pod in objects(value.get("items", [value])) if _are_pods(value) else []:
        if message := _object(pod.get("status")).get("message"):
            names = _object(pod.get("metadata"))
            yield {
                "message": message,
                "podName": names.get("name"),
                "namespace": names.get("namespace"),
                "nodeName": _object(pod.get("spec")).get("nodeName"),
            }


def _dump(value: Any) -> list[Row]:
    return [json_records.from_record(value)] if json_records.is_record(value) else []


def _object(value: Any) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _kubernetes_events(value: dict[str, object]) -> Iterator[dict[str, object]]:
    if value.get("kind") in ("Event", "EventList", "List") and not _are_pods(value):
        yield from map(_kubernetes_event, objects(value.get("items", [value])))


def _kubernetes_event(item: dict[str, object]) -> dict[str, object]:
    about = _object(item.get("involvedObject") or item.get("regarding"))
    at = item.get("eventTime") or item.get("lastTimestamp") or item.get("firstTimestamp")
    record = {"message": item.get("message") or item.get("note"), "time": at}
    if about.get("kind") == "Node":
        record["nodeName"] = about.get("name")
    elif about.get("kind") == "Pod":
        record |= given({"podName": about.get("name"), "namespace": about.get("namespace")})
    return record


def _cloudwatch_events(value: dict[str, object]) -> list[dict[str, object]]:
    events = objects(value.get("events")) or objects(value.get("logEvents"))
    # A subscription names the stream once for all its events.
    stream = {"logStreamName": value["logStream"]} if "logStream" in value else {}
    records = [stream | event for event in events if "message" in event]
    return sorted(records, key=lambda event: numbers.real(event.get("timestamp")) or 0)


def _loki_query(value: dict[str, object]) -> list[dict[str, object]]:
    data = _object(value.get("data"))
    return _streams(data.get("result")) if data.get("resultType") == "streams" else []


def _streams(streams: Any) -> list[dict[str, object]]:
    """Returns the lines of Loki's streams, the oldest first."""
    lines = [
        {**_object(stream.get("stream")), "line": entry[1], "timestamp": entry[0]}
        for stream in objects(streams)
        for entry in array(stream.get("values"))
        if isinstance(entry, list) and len(entry) > 1
    ]
    return sorted(lines, key=lambda line: numbers.whole(line["timestamp"]) or 0)


def _kernel(value: dict[str, object]) -> list[dict[str, object]]:
    """Returns the messages of `dmesg --json` as journald records, with times since boot."""
    return [
        {
            "message": entry["msg"],
            "__MONOTONIC_TIMESTAMP": str(numbers.real(entry.get("time") or 0, 1e6)),
        }
        for entry in objects(value.get("dmesg"))
        if "msg" in entry
    ]


def _hits(value: dict[str, object]) -> list[dict[str, object]]:
    """Returns the documents in a search result of Elasticsearch or OpenSearch."""
    outer = value.get("hits")
    return [source(hit) for hit in objects(_object(outer).get("hits"))]


def _otlp(value: dict[str, object]) -> Iterator[dict[str, object]]:
    """Yields the log records of OpenTelemetry's JSON."""
    for part in objects(value.get("resourceLogs")):
        resource = _attributes(_object(part.get("resource")))
        for scope in objects(part.get("scopeLogs")):
            for record in objects(scope.get("logRecords")):
                at = record.get("timeUnixNano")
                time = (
                    at if at not in (None, "", "0", 0) else record.get("observedTimeUnixNano")
                )
                yield {
                    **resource,
                    **_attributes(record),
                    "body": _object(record.get("body")).get("stringValue"),
                    "time": time,
                }


def _attributes(value: dict[str, object]) -> dict[str, object]:
    return {
        attribute["key"]: _object(attribute.get("value")).get("stringValue")
        for attribute in objects(value.get("attributes"))
        if attribute.get("key") in identity_names.ATTRIBUTES
    }


def _of_tables(value: dict[str, object]) -> Iterator[dict[str, object]]:
    """Yields the rows of tables in query answers of Azure Monitor and Elasticsearch."""
    for table in objects(value.get("tables")) or [value]:
        names = [str(column.get("name")) for column in objects(table.get("columns"))]
        for row in array(table.get("rows")) or array(table.get("values")):
            if isinstance(row, list) and len(row) == len(names):
                yield dict(zip(names, row, strict=True))


def _query_rows(value: dict[str, object]) -> list[dict[str, object]]:
    """Returns the rows of a CloudWatch Logs Insights query, oldest first."""
    rows = [
        {
            cell["field"]: cell.get("value")
            for cell in row
            if isinstance(cell, dict) and isinstance(cell.get("field"), str)
        }
        for row in array(value.get("results"))
        if isinstance(row, list)
    ]
    rows = [row for row in rows if "@message" in row]
    for row in rows:
        # The times are in UTC, but have no offset.
        if at := row.get("@timestamp"):
            row["@timestamp"] = f"{str(at).removesuffix('Z')}Z"
    return sorted(rows, key=lambda row: str(row.get("@timestamp") or ""))


def _once(value: Any, depth: int = _NESTED) -> Any:
    """Returns a value without lists of lines that repeat a text next to them."""
    if isinstance(value, list) and depth:
        return [_once(item, depth - 1) for item in value]
    if not isinstance(value, dict) or not depth:
        return value
    return {
        key: _once(field, depth - 1)
        for key, field in value.items()
        if not (key.endswith("_lines") and key.removesuffix("_lines") in value)
    }


def _entry(value: dict[str, object]) -> dict[str, object]:
    """Returns a log entry; a message in Google Cloud's `jsonPayload` is moved out of it.

    Ansible prints the output of a command twice: as text, and as a list of lines.
    """
    value = _once(value)
    payload = value.get("jsonPayload")
    if isinstance(payload, dict) and "textPayload" not in value:
        message = payload.get("message") or payload.get("msg") or payload.get("MESSAGE")
        if isinstance(message, str):
            # Records of journald keep its fields, such as _HOSTNAME, next to the message.
            own = {key: field for key, field in payload.items() if key.startswith("_")}
            return {**own, **value, "textPayload": message}
    return value


_ROWS: tuple[tuple[str, str, Callable[[dict[str, object]], Iterable[Row]]], ...] = (
    ("docker inspect", "container_states", docker.inspections),
    ("crictl inspect", "container_states", kubernetes.inspections),
    ("AWS ECS", "container_states", platforms.ecs_containers),
    ("kubectl get pods -o json", "container_states", _pods),
    ("metrics.k8s.io", "container_states", kubernetes.shown_by_metrics),
    ("", "container_states", _ended_inside),
    (
        "expvar",
        "memstats",
        lambda value: _dump(value.get("memstats") and json_records.dump_of(value)),
    ),
    ("MemStats JSON", "memstats", lambda value: _dump(value.get("MemStats"))),
    (
        "MemStats JSON",
        "memstats",
        lambda value: [] if _MESSAGES & value.keys() else _dump(value),
    ),
    ("docker events", "container_states", docker.events),
    ("docker stats", "container_states", docker.stats),
)
"""Readers that make rows of an object: the name of its format, the table, and the reader."""

_RECORDS: dict[str, Callable[[dict[str, object]], Iterable[dict[str, object]]]] = {
    "kubectl get events -o json": _kubernetes_events,
    "CloudWatch events": _cloudwatch_events,
    "dmesg --json": _kernel,
    "search hits": _hits,
    "OTLP logs": _otlp,
    "query result": _of_tables,
    "CloudWatch Insights": _query_rows,
    "Loki query": _loki_query,
    "Loki push": lambda value: _streams(value.get("streams")),
    "": _entries,
}
"""Readers that make log records of an object, by the name of its format."""
