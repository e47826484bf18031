"""Reads pods and events as kubectl prints them, including `kubectl describe pod`."""

from __future__ import annotations

import json
import re
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest import numbers
from gctrace_analyzer.ingest.evidence.docker import (
    go_settings,
    got_sigkill,
    quota_cpus,
    with_signal,
)
from gctrace_analyzer.ingest.evidence.message import KILLED_AT_START, bare_id
from gctrace_analyzer.ingest.evidence.words import NOT_STARTED, may_be_described
from gctrace_analyzer.ingest.json_values import iso_utc, seconds_between

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gctrace_analyzer.ingest.evidence.message import Message, Row

_DESCRIBED = re.compile(
    r"^\s*(?:Warning|Normal)\s+(?P<reason>\w+)\s+(?P<age>(?:\d+[smhdy])+)(?: \(x\d+ over "
    r"[^)]*\))?\s+"
    r"(?P<from>[^\s,]+(?:, \S+)?)\s+(?P<message>.*)$"
)
_LISTED = re.compile(
    r"^\s*(?:(?P<namespace>[a-z0-9-]+)\s+)?(?P<age>(?:\d+[smhdy])+|<unknown>)"
    r"(?: \(x\d+ over [^)]*\))?\s+"
    r"(?:Warning|Normal)\s+(?P<reason>\w+)\s+(?P<object>[^\s/]++/\S++)\s+(?P<message>.*)$"
)
_REPORTERS = {"OOMKilling": "node-problem-detector", "SystemOOM": "kubelet"}
_AGE = re.compile(r"(?<!\d)(\d+)([smhdy])")
_AGE_S = {"s": 1, "m": 60, "h": 3600, "d": 86400, "y": 365 * 86400}


@frozen
class Event:
    """A row of a table of events: its message, its age, the node that reported it, the pod."""

    message: str
    reason: str
    age_s: float | None
    node: str | None
    pod: str | None = None
    namespace: str | None = None

    def facts(self) -> Row:
        """Returns what the event adds to the row of a kill: age, reporter, node and pod."""
        about: Row = {"age_s": self.age_s, "reported_by": _REPORTERS.get(self.reason)}
        if self.pod:
            about |= {"pod": self.pod, "namespace": self.namespace}
        return about | ({"node": self.node, "host": self.node} if self.node else {})


def event(text: str) -> Event | None:
    """Returns the event on a line of `kubectl describe` or `kubectl get events`, or None."""
    if not (match := _DESCRIBED.match(text) or _LISTED.match(text)):
        return None
    given = match.groupdict()
    node = pod = None
    kind, _, name = (given.get("object") or "").partition("/")
    if kind.lower() in ("node", "nodes"):
        node = name
    elif kind.lower() in ("pod", "pods", "po"):
        pod = name
    elif "," in (given.get("from") or ""):
        node = given["from"].partition(", ")[2]
    age = age_s(match["age"])
    return Event(match["message"], match["reason"], age, node, pod, given.get("namespace"))


def age_s(text: str) -> float | None:
    """Returns an age in seconds, as kubectl prints it: `3h12m`."""
    parts = [numbers.real(number, _AGE_S[unit]) for number, unit in _AGE.findall(text)]
    return sum(part for part in parts if part is not None) if parts else None


def quantity(text: str) -> float | None:
    """Returns the value of a Kubernetes quantity: `512Mi`, `1G`, `500m`, `2`."""
    match = re.fullmatch(
        r"(\d{1,30}(?:\.\d{0,30})?(?:e\d{1,2})?)(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?", text.strip()
    )
    if not match:
        return None
    factors = {"m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
    factors |= {f"{letter}i": 1024.0 ** (1 + i) for i, letter in enumerate("KMGTP")}
    return numbers.real(match[1], factors[match[2]] if match[2] else 1.0)


_MEMORY = "MEMORY(bytes)"


def shown_by_top(messages: Iterable[Message], known: Sequence[Row]) -> list[Row]:
    """Returns the nodes, pods and containers of `kubectl top`, with the memory they use.

    If another source describes the same container, its row gets the memory instead.
    """
    names: list[str] = []
    rows: list[Row] = []
    for message in messages:
        cells = message.text.split()
        if _MEMORY in cells:
            names = cells
        elif not names or len(cells) != len(names):
            names = []
        else:
            of_container = dict(zip(names, cells, strict=True))
            size = numbers.whole(quantity(of_container[_MEMORY]))
            name, is_node = of_container.get("NAME"), names[-1] != _MEMORY
            pod = of_container.get("POD") or (None if is_node else name)
            row: Row = {
                "line_no": message.line_no,
                "namespace": of_container.get("NAMESPACE"),
                "pod": pod,
                "node": name if is_node else None,
                "container": name if "POD" in names else None,
                "memory_now_bytes": size,
            }
            if (name or pod) and not _is_moved(row, known):
                rows.append(row | {"name": row["container"], "status": "running"})
    return rows


def _is_moved(row: Row, known: Iterable[Row]) -> bool:
    """Returns whether the row of one other container takes over the memory use."""
    same = [
        other
        for other in known
        if row["pod"] and other is not row and other.get("pod") == row["pod"]
        if row["container"] in (None, other.get("container"))
    ]
    if len(same) == 1:
        same[0].setdefault("memory_now_bytes", row["memory_now_bytes"])
    return len(same) == 1


def shown_by_metrics(value: Row) -> Iterator[Row]:
    """Yields the containers of the metrics API (metrics.k8s.io), with the memory they use."""
    items = value.get("items") if value.get("kind") == "PodMetricsList" else [value]
    for pod in items or [] if str(value.get("kind")).startswith("PodMetrics") else []:
        about = pod.get("metadata") or {}
        for container in pod.get("containers") or []:
            size = numbers.whole(quantity(str((container.get("usage") or {}).get("memory"))))
            names = {name: container.get("name") for name in ("name", "container")}
            of_pod = {"pod": about.get("name"), "namespace": about.get("namespace")}
            yield {**names, **of_pod, "memory_now_bytes": size, "status": "running"}


def join_shown(inputs: Iterable[list[Row]]) -> None:
    """Joins the output of `kubectl top` in one input with the containers that others describe."""
    every = [states for states in inputs if states]
    for states in every if len(every) > 1 else ():
        known = [row for other in every if other is not states for row in other]
        is_top = {"namespace", "node", "pod", "container", "memory_now_bytes", "name", "status"}
        states[:] = [
            row for row in states if not (is_top <= row.keys() and _is_moved(row, known))
        ]


def pods(value: dict[str, Any]) -> list[Row]:
    """Returns the containers of a pod or a list of pods from `kubectl get -o json`."""
    if value.get("kind", "").endswith("List"):
        items = value.get("items") or []
        return [row for item in items if isinstance(item, dict) for row in pods(item)]
    if value.get("kind") not in ("Pod", None):
        return []
    meta, spec, status = (value.get(key) or {} for key in ("metadata", "spec", "status"))
    specs = {
        c.get("name"): c for c in spec.get("containers", []) + spec.get("initContainers", [])
    }
    rows, cause = [], _disruption(status.get("conditions") or [])
    for state in status.get("containerStatuses", []) + status.get("initContainerStatuses", []):
        described = specs.get(state.get("name"), {})
        row: Row = {
            "pod": meta.get("name"),
            "pod_uid": meta.get("uid"),
            "namespace": meta.get("namespace"),
            "node": spec.get("nodeName"),
            "container": state.get("name"),
            "name": state.get("name"),
            "container_id": bare_id(state.get("containerID")),
            "restart_count": state.get("restartCount"),
            # The API server's answer has every limit of a container, including defaults.
            **_resources(
                described.get("resources") or {},
                is_whole="resources" in described and not spec.get("resources"),
            ),
            **go_settings(_environment(described)),
        }
        row |= states(state.get("state") or {}, state.get("lastState") or {})
        row["restarts_in_s"] = seconds_between(
            iso_utc(status.get("startTime")), row["finished_at"]
        )
        if cause and got_sigkill(row) and not row["oom_killed"]:
            row |= {"stop_requested": True, "stopped_by": cause}
        rows.append(with_signal(row))
    return rows


_DISRUPTIONS = {
    "PreemptionByScheduler": "its pod was preempted by a more important one",
    "DeletionByTaintManager": "its pod was evicted from a node with a taint (NoExecute)",
    "EvictionByEvictionAPI": "its pod was evicted on request (such as `kubectl drain`)",
    "DeletionByPodGC": "its pod was deleted, as its node was gone or out of service",
    "TerminationByKubelet": "the kubelet ended its pod for a reason other than memory",
}
"""Reasons why a pod was ended, by the reason of its condition DisruptionTarget."""


def _disruption(conditions: list[Row]) -> str | None:
    """Returns why Kubernetes ended a pod, unless its node was low on memory."""
    return next(
        (
            _DISRUPTIONS.get(str(condition.get("reason")))
            for condition in conditions
            if condition.get("type") == "DisruptionTarget" and condition.get("status") == "True"
            if "memory" not in (condition.get("message") or "")
        ),
        None,
    )


def inspections(value: dict[str, object]) -> list[Row]:
    """Returns the row of a container from `crictl inspect`; None for other values."""
    status = value.get("status")
    if not isinstance(status, dict) or not str(status.get("state")).startswith("CONTAINER_"):
        return []
    labels, linux = (
        status.get("labels") or {},
        (status.get("resources") or {}).get("linux") or {},
    )
    about = status.get("metadata") or {}
    row: Row = {
        "pod": labels.get("io.kubernetes.pod.name"),
        "pod_uid": labels.get("io.kubernetes.pod.uid"),
        "namespace": labels.get("io.kubernetes.pod.namespace"),
        "container": about.get("name"),
        "name": about.get("name"),
        "container_id": status.get("id"),
        "status": str(status["state"]).removeprefix("CONTAINER_").lower(),
        "reason": status.get("reason") or None,
        "oom_killed": status.get("reason") == "OOMKilled",
        "exit_code": status.get("exitCode"),
        "restart_count": about.get("attempt"),
        "memory_limit_bytes": numbers.whole(linux.get("memoryLimitInBytes")),
        "cpu_limit": quota_cpus(linux.get("cpuQuota"), linux.get("cpuPeriod")),
        "started_at": iso_utc(status.get("startedAt")),
        "finished_at": iso_utc(status.get("finishedAt")),
    }
    return [with_signal(row)]


def _environment(described: dict[str, Any]) -> dict[str, str]:
    """Returns the environment variables, including those set from the memory limit."""
    environment, resources = {}, described.get("resources") or {}
    for variable in described.get("env") or []:
        name, value = variable.get("name"), variable.get("value")
        source = (variable.get("valueFrom") or {}).get("resourceFieldRef") or {}
        if value is None and source.get("resource") == "limits.memory":
            limit = quantity(str((resources.get("limits") or {}).get("memory", "")))
            value = str(int(limit)) if limit else None
        if name and value is not None:
            environment[name] = str(value)
    return environment


def _resources(resources: dict[str, Any], *, is_whole: bool = False) -> Row:
    """Returns limits and requests; a memory limit of 0 means none if all limits are known."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    memory, request = (quantity(str(of.get("memory", ""))) for of in (limits, requests))
    return {
        "memory_limit_bytes": numbers.whole(memory or (0.0 if is_whole else None)),
        "memory_request_bytes": numbers.whole(request or None),
        "cpu_limit": quantity(str(limits.get("cpu", ""))),
    }


def states(now: dict[str, Any], last: dict[str, Any]) -> Row:
    """Returns the columns of a container's present and last state, as the API gives them."""
    row: Row = {}
    for prefix, states in (("", now), ("last_", last)):
        for name, state in states.items():
            row |= {f"{prefix}status": name, f"{prefix}reason": state.get("reason")}
    ended = now.get("terminated") or last.get("terminated") or {}
    why = ended or now.get("waiting") or {}
    row |= {
        "exit_code": ended.get("exitCode"),
        **_killed(why.get("reason"), why.get("message")),
    }
    running = now.get("running") or {}
    # A container that was started again has another id than the one that ended.
    if (ended_id := bare_id(ended.get("containerID"))) or (ended and running):
        row["container_id"] = ended_id
    row["started_at"] = iso_utc(ended.get("startedAt") or running.get("startedAt"))
    row["finished_at"] = iso_utc(ended.get("finishedAt"))
    return row


def _killed(reason: str | None, message: str | None) -> Row:
    """Returns whether a container was killed for memory, with the message if at its start."""
    at_start = KILLED_AT_START in (message or "")
    row: Row = {"oom_killed": at_start or reason == "OOMKilled"}
    never_ran = at_start or re.search(NOT_STARTED, reason or "")
    return row | {"error": message} if message and never_ran else row


_KEY = re.compile(
    # The value includes blanks at its end: a pattern that excludes them takes quadratic time.
    r"^(?P<indent>[ \t]*+)(?P<key>[A-Za-z][\w .()/-]*+|\d[\w-]*+):(?:\s+(?P<value>.*))?$"
)
_LOW = "The node was low on resource"
_SECTIONS = {"limits", "requests", "environment", "state", "last state"}
_OF_STATE, _OF_LIMITS = ("reason", "exit code", "started", "finished"), ("memory", "cpu")
_OF_SECTION = {
    "state": _OF_STATE,
    "last state": _OF_STATE,
    "limits": _OF_LIMITS,
    "requests": _OF_LIMITS,
}
"""Lines that belong to a section even without their indentation."""


def describe(lines: list[str]) -> tuple[list[Row], list[tuple[int, str]]]:
    """Reads `kubectl describe pod`, whole or in part.

    Returns one row per container, and the lines about events with their numbers.
    """
    reader = _Described()
    events: list[tuple[int, str]] = []
    in_events = False
    for number, line in enumerate(lines, start=1):
        if line.startswith(("Name:", "Events:")):
            in_events = line.strip() == "Events:"
        if _LOW in line:
            # Neither the event nor the message names the pod.
            names = {"podName": reader.pod.get("pod"), "namespace": reader.pod.get("namespace")}
            events.append((number, json.dumps({"message": line, **names})))
        elif in_events:
            events.append((number, line))
        else:
            reader.line(line, number)
    return reader.rows(), events


class _Described:
    def __init__(self) -> None:
        self.pod: Row = {}
        self.found: list[Row] = []
        self.fields: dict[str, str] = {}
        self.environment: dict[str, str] = {}
        self.section, self.section_indent = "", -1
        self.in_containers = False
        self.name_indent: int | None = None
        self.is_only_named = False

    def line(self, text: str, line_no: int) -> None:
        if not (match := _KEY.match(text)):
            # Fields directly follow the name of a container; other words end with a colon, too.
            if self.is_only_named and not text.strip():
                self.in_containers, self.fields, self.is_only_named = False, {}, False
            return
        self.is_only_named = False
        indent, key = len(match["indent"].expandtabs()), match["key"].strip()
        value = (match["value"] or "").rstrip()
        lower = key.lower()
        # The part about one container that someone copied may start with its name, or after it.
        is_part = not (self.in_containers or self.pod or self.found or self.fields)
        is_after_part = bool(self.fields) and indent <= self.section_indent
        of_name = self.name_indent in (None, indent)
        is_next = of_name if self.in_containers else is_after_part
        if indent == 0 and self.in_containers and self.name_indent:
            self.flush()
            self.in_containers = False
        if lower in ("containers", "init containers") and not value:
            self.flush()
            self.in_containers, self.name_indent = True, None
        elif (is_part or is_next) and not value and lower not in _NAMED:
            self.flush()
            self.is_only_named = is_part
            self.in_containers, self.name_indent = True, indent
            self.fields = {"container": key, "line_no": str(line_no)}
        elif lower in _POD and indent == 0:
            if lower == "name":
                self.flush()
                self.in_containers, self.pod = False, {}
            self.pod[_POD[lower]] = value.partition("/")[0] if lower == "node" else value
            self.without_limits(value)
        else:
            self.field(indent, lower, key, value, line_no)

    def without_limits(self, qos: str) -> None:
        """Notes that the containers of a pod have no limit, as its QoS class shows."""
        if qos == "BestEffort":
            self.flush()
            self.in_containers = False
            for row in self.found:
                if row.get("pod") == self.pod.get("pod"):
                    row["memory_limit_bytes"] = 0

    def field(self, indent: int, lower: str, key: str, value: str, line_no: int) -> None:
        is_inside = indent > self.section_indent or lower in _OF_SECTION.get(self.section, ())
        if not is_inside:
            self.section = ""
        if lower in _SECTIONS:
            self.section, self.section_indent = lower, indent
            if value:
                self.fields[lower] = value
        elif self.section == "environment":
            # A value from the downward API is followed by its origin.
            self.environment[key] = re.sub(
                r"(?<!\s)\s+\((?:limits|requests)\.\w+\)$", "", value
            )
        elif self.section:
            self.fields[f"{self.section} {lower}"] = value
        elif lower in ("container id", "restart count"):
            self.fields[lower] = value
        self.fields.setdefault("line_no", str(line_no)) if lower in _SECTIONS else None

    def flush(self) -> None:
        fields, self.fields = self.fields, {}
        environment, self.environment = self.environment, {}
        self.section = ""
        if not fields.keys() & {"state", "last state", "restart count", "limits memory"}:
            return
        ended = "state" if fields.get("state") == "Terminated" else "last state"
        now, last = (fields.get(name, "").lower() for name in ("state", "last state"))
        is_later = (now, last) == ("running", "terminated")
        row: Row = {
            "line_no": int(fields.get("line_no", 1)),
            "container": fields.get("container"),
            "name": fields.get("container"),
            "container_id": None if is_later else bare_id(fields.get("container id")),
            "status": now or None,
            "reason": fields.get("state reason"),
            "last_status": last or None,
            "last_reason": fields.get("last state reason"),
            **_killed(fields.get(f"{ended} reason"), fields.get(f"{ended} message")),
            "exit_code": numbers.whole(fields.get(f"{ended} exit code")),
            "started_at": iso_utc(
                fields.get(f"{ended} started") or fields.get("state started"),
                parsedate_to_datetime,
            ),
            "finished_at": iso_utc(fields.get(f"{ended} finished"), parsedate_to_datetime),
            "restart_count": numbers.whole(fields.get("restart count")),
            **_resources(
                {
                    section: {name: fields.get(f"{section} {name}", "") for name in _OF_LIMITS}
                    for section in ("limits", "requests")
                },
                # kubectl prints limits between the restarts and these two.
                is_whole="restart count" in fields
                and bool(environment or fields.keys() & {"requests memory", "environment"}),
            ),
            **go_settings(environment),
        }
        about = {**self.pod}
        about.pop("qos", None)
        started = iso_utc(about.pop("started", None), parsedate_to_datetime)
        row["restarts_in_s"] = seconds_between(started, row["finished_at"])
        self.found.append(about | with_signal(row))

    def rows(self) -> list[Row]:
        self.flush()
        return self.found


_POD = {
    "name": "pod",
    "namespace": "namespace",
    "node": "node",
    "start time": "started",
    "qos class": "qos",
}
_NAMED = {
    "state", "last state", "resources", "limits", "requests", "environment", "mounts", "args",
    "command", "liveness", "readiness", "startup", "ports", "conditions", "volumes", "port",
    "host port",
}  # fmt: skip
_DESCRIBES = re.compile(
    r"^[ \t]*(?:Last )?State:[ \t]+(?:Waiting|Running|Terminated)"
    r"|^[ \t]*Restart Count:[ \t]+\d",
    re.MULTILINE,
)
_ENDED = re.compile(
    r"^[ \t]*(?:Last )?State:[ \t]+Terminated[ \t]*\n[ \t]*Reason:[ \t]", re.MULTILINE
)


def is_described(text: str) -> bool:
    """Returns whether a text looks like `kubectl describe pod`, or part of it."""
    if not may_be_described(text):
        return False
    return len(_DESCRIBES.findall(text)) >= 2 or _ENDED.search(text) is not None
