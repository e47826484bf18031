"""The names that logs and metrics use for the identity of a process.

Every source has the common names in its own spelling, and some further names; the best comes first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_COMMON = {
    "host": ("hostname", "host", "node", "node_name", "host.name", "k8s.node.name",
             "kubernetes.node.name", "kubernetes.node_name", "kubernetes.host"),
    "ident": ("app", "program", "service", "service.name"),
    "unit": ("unit", "systemd_unit"),
    "container": ("container", "container_name", "container.name", "k8s.container.name",
                  "kubernetes.container.name", "kubernetes.container_name"),
    "container_id": ("container_id", "container.id", "kubernetes.container_id",
                     "kubernetes.docker_id"),
    "pod": ("pod", "pod_name", "k8s.pod.name", "kubernetes.pod.name", "kubernetes.pod_name"),
    "namespace": ("namespace", "namespace_name", "k8s.namespace.name", "kubernetes.namespace",
                  "kubernetes.namespace_name"),
    "stream": ("stream", "log.iostream"),
}  # fmt: skip

_OF_JSON = {
    "host": ("_HOSTNAME", "nodeName", "jsonPayload/_HOSTNAME", "Host", "_host", "Computer",
             "labels/instance"),
    "ident": ("SYSLOG_IDENTIFIER", "appname", "ident", "_app", "attrs/tag"),
    "log_pid": ("_PID", "SYSLOG_PID", "pid", "procid", "jsonPayload/_PID"),
    "unit": ("_SYSTEMD_UNIT", "jsonPayload/_SYSTEMD_UNIT"),
    "container": ("CONTAINER_NAME", "containerName", "ContainerName",
                  "resource/labels/service_name", "resource/labels/function_name"),
    "container_id": ("CONTAINER_ID_FULL", "CONTAINER_ID"),
    "pod": ("podName", "PodName", "involvedObject/name"),
    "namespace": ("involvedObject/namespace",),
    "stream": ("logStreamName",),
}  # fmt: skip
_PARTS = ("", "labels/", "fields/", "resource/", "resource/labels/", "attributes/")
"""Places of names in a JSON entry: at the top, or in a part; `a/b` is the member b of a."""

_OF_CSV = {
    "host": ("computer", "source", "_sourcehost"),
    "pod": ("podname",),
    "container": ("containername",),
    "container_id": ("containerid",),
    "namespace": ("podnamespace",),
    "stream": ("@logstream", "logentrysource"),
}

# Prometheus renames a page's label that the target has too; the page knows better.
_OF_LABELS = {
    "host": ("exported_instance", "instance"),
    "ident": ("exported_job", "job"),
    **{name: (f"exported_{name}",) for name in ("pod", "container", "namespace")},
}


JSON = {
    column: (
        *own,
        *(f"{part}{name}" for part in _PARTS for name in _COMMON.get(column, ())),
        *(name.replace(".", "/") for name in _COMMON.get(column, ()) if "." in name),
    )
    for column, own in _OF_JSON.items()
}
"""Members of entries in JSON, by column."""

CSV = {
    column: (*names, *(f"resource.labels.{name}" for name in names), *_OF_CSV.get(column, ()))
    for column, names in _COMMON.items()
}
"""Columns of exports, in lower case."""

LABELS = {
    column: (
        *_OF_LABELS.get(column, ()),
        *names,
        *(name.replace(".", "_") for name in names if "." in name),
    )
    for column, names in _COMMON.items()
}
"""Labels of Prometheus and Loki, attributes of OpenTelemetry, and fields of logfmt."""

OF_METRICS = ("host", "ident", "pod", "container", "namespace")
"""Columns that identify a process in metrics; labels such as `unit` mean something else there."""

ATTRIBUTES = frozenset(name for names in _COMMON.values() for name in names if "." in name)
"""OpenTelemetry attributes that identify a process."""


def of_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Returns the identity of a process from the labels of its metrics, by column.

    >>> of_labels({"job": "api", "instance": "a:1", "code": "200"})
    {'host': 'a:1', 'ident': 'api'}
    """
    names = {column: (labels.get(name) for name in LABELS[column]) for column in OF_METRICS}
    identity = {column: next(filter(None, values), None) for column, values in names.items()}
    return {column: value for column, value in identity.items() if value}


def of_json(value: Mapping[str, Any]) -> dict[str, str | int]:
    """Returns the identity of a process from an object with its figures, by column.

    >>> of_json({"pod": "api-1", "pid": 7, "service": 3, "NumGC": 12})
    {'log_pid': 7, 'pod': 'api-1'}
    """
    identity: dict[str, str | int] = {}
    for column, names in JSON.items():
        # Other numbers may be figures of the program.
        wanted = int if column == "log_pid" else str
        members = (_member(value, name) for name in names)
        if known := next((one for one in members if one and type(one) is wanted), None):
            identity[column] = known
    return identity


def _member(value: Mapping[str, Any], name: str) -> Any:
    outer, _, inner = name.partition("/")
    member = value.get(outer)
    if not inner:
        return member
    return member.get(inner) if isinstance(member, dict) else None
