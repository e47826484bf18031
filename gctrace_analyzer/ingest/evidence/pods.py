"""Reads what Kubernetes prints of pods that ended for memory: evictions, and `kubectl get pods`.

The kubelet evicts pods when their node runs low on memory: those first that use more than they
request, whatever their limits. Formats: pkg/kubelet/eviction/helpers.go and eviction_manager.go of
Kubernetes 1.6 to 1.36.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gctrace_analyzer.ingest import numbers
from gctrace_analyzer.ingest.evidence import kubernetes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gctrace_analyzer.ingest.evidence.message import Message, Row, Rows

HINT = (
    r"low on resource: memory|viction manager: must evict|viction manager: pod .+ evicted|"
    r"\d/\d+ +(?:Init:)?(?:OOMKilled|Evicted|CrashLoopBackOff) |(?:  |\t)OOMKilled(?:  |\t|\s*$)"
)

_LOW = re.compile(r"The node was low on resource: memory\.")
_QUANTITY = r"\d{1,20}(?:\.\d{1,9})?[A-Za-z]{0,2}"
_CONTAINER = re.compile(
    rf"Container (?P<name>[\w.-]{{1,253}}) was using (?P<used>{_QUANTITY}), "
    rf"(?:which exceeds its request of|request is) (?P<request>{_QUANTITY})"
)
_RECLAIM = re.compile(
    r"viction manager: must evict pod\(s\) to reclaim(?: (?P<old>\w+)|\".{0,64}?"
    r"resourceName=\"(?P<name>[\w.-]+)\")"
)
_EVICTED = re.compile(
    r"viction manager: pod (?:is evicted successfully\" pod=\"(?P<namespace>[\w.-]+)/"
    r"(?P<pod>[\w.-]+)\"|(?P<old_pod>[a-z0-9.-]+)_(?P<old_namespace>[a-z0-9-]+)\(\S{1,64}\) "
    r"(?:is )?evicted)"
)
_POD_OF_LOG = re.compile(r"\bpod=\"(?P<namespace>[\w.-]+)/(?P<pod>[\w.-]+)\"")

_LISTED = re.compile(
    r"^\s*(?:(?P<namespace>[a-z0-9-]+) +)?(?P<pod>[a-z0-9][a-z0-9.-]*) +\d+/\d+ +"
    r"(?:Init:)?(?P<reason>OOMKilled|Evicted|CrashLoopBackOff) +(?P<restarts>\d{1,9})"
    r"(?: \(\S+ ago\))? +\S+(?: +\S+ +(?P<node>[a-z0-9][\w.-]*))?"
)
_COLUMN_OF_REASONS = re.compile(
    # With `-o custom-columns` and `-o jsonpath`, columns have any order after the name.
    r"^(?P<pod>[a-z0-9][a-z0-9.-]*)(?:  +|\t)(?:\S+(?:  +|\t))*?(?P<reason>OOMKilled)(?:\s|$)"
)


def read(messages: Sequence[Message]) -> Rows:
    """Returns evictions for memory, and pods whose listed status is the end of a container."""
    return {"oom_kills": _evictions(messages), "container_states": _listed(messages)}


def _evictions(messages: Iterable[Message]) -> list[Row]:
    """Returns each eviction once, though several lines report it: event, pod and kubelet."""
    evictions: dict[tuple[object, ...], Row] = {}
    reclaimed = None
    for message in messages:
        if "evict" not in message.text and "low on" not in message.text:
            continue
        row = None
        if _LOW.search(message.text):
            row = _by_message(message)
        elif low := _RECLAIM.search(message.text):
            reclaimed = low["name"] or low["old"]
        elif (gone := _EVICTED.search(message.text)) and reclaimed == "memory":
            names = {
                "pod": gone["pod"] or gone["old_pod"],
                "namespace": gone["namespace"] or gone["old_namespace"],
            }
            row = _row(message) | names
        if row:
            key = (row["pod"], row.get("container"), row.get("anon_rss_bytes"))
            known = evictions.setdefault(key, row)
            known |= {name: value for name, value in row.items() if known.get(name) is None}
    # The kubelet's log has no sizes.
    sized = {row["pod"] for row in evictions.values() if row.get("container")}
    return [
        row for row in evictions.values() if row.get("container") or row["pod"] not in sized
    ]


def _row(message: Message) -> Row:
    place = {"pod": message.pod, "namespace": message.namespace}
    return message.place() | place | {"killer": "kubelet", "scope": "global"}


def _by_message(message: Message) -> Row:
    """Returns the eviction of which a message names the container that used most."""
    row = _row(message)
    if event := kubernetes.event(message.text):
        row |= {name: value for name, value in event.facts().items() if value is not None}
    if of_log := _POD_OF_LOG.search(message.text):
        row |= of_log.groupdict()
    sizes = [
        (numbers.whole(kubernetes.quantity(each["used"])) or 0, each)
        for each in _CONTAINER.finditer(message.text)
    ]
    if sizes:
        used, most = max(sizes, key=lambda size: size[0])
        row |= {
            "container": most["name"],
            "anon_rss_bytes": used or None,
            "memory_request_bytes": numbers.whole(kubernetes.quantity(most["request"])),
        }
    return row


def _listed(messages: Iterable[Message]) -> list[Row]:
    """Returns the rows of `kubectl get pods` whose status is the end of a container.

    A pod that was listed several times since it ended is returned once.
    """
    rows: dict[tuple[object, ...], Row] = {}
    for message in messages:
        if not (match := _LISTED.match(message.text) or _COLUMN_OF_REASONS.match(message.text)):
            continue
        listed = {**dict.fromkeys(("namespace", "node", "restarts")), **match.groupdict()}
        reason = listed["reason"]
        row: Row = {
            "line_no": message.line_no,
            "logged_at": message.logged_at,
            "pod": listed["pod"],
            "namespace": listed["namespace"],
            "node": listed["node"] if listed["node"] != "<none>" else None,
            "status": "waiting" if reason == "CrashLoopBackOff" else "terminated",
            "reason": reason,
            "oom_killed": reason == "OOMKilled" or None,
            "restart_count": numbers.whole(listed["restarts"]),
        }
        key = tuple(listed[name] for name in ("namespace", "pod", "reason", "restarts"))
        rows.setdefault(key, {name: value for name, value in row.items() if value is not None})
    return list(rows.values())
