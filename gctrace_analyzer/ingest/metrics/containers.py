"""Limits and restarts of containers, from the metrics of cAdvisor and kube-state-metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.ingest import identity_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gctrace_analyzer.ingest.evidence.message import Row

_COLUMNS = {
    ("container_spec_memory_limit_bytes", None): "memory_limit_bytes",
    ("container_oom_events_total", None): "failcnt",
    ("kube_pod_container_resource_limits", "memory"): "memory_limit_bytes",
    ("kube_pod_container_resource_limits", "cpu"): "cpu_limit",
    ("kube_pod_container_resource_requests", "memory"): "memory_request_bytes",
    ("kube_pod_container_status_restarts_total", None): "restart_count",
    ("kube_pod_container_status_last_terminated_reason", "OOMKilled"): "oom_killed",
}
"""The column that each metric fills, by its name and its resource or reason."""

HINTS = (
    "container_spec_memory_limit_bytes",
    "container_oom_events_total",
    "kube_pod_container_",
)
"""Every relevant metric has one of these in its name."""

_PAUSE_CONTAINER = "POD"
"""The container that holds a pod's network; it runs no program."""


def column_of(name: str, labels: Mapping[str, str]) -> str | None:
    """Returns the column of `container_states` for a metric; None if it is not read."""
    if identity(labels).get("container", _PAUSE_CONTAINER) == _PAUSE_CONTAINER:
        return None
    return _COLUMNS.get((name, labels.get("resource") or labels.get("reason")))


def identity(labels: Mapping[str, str]) -> dict[str, str]:
    """Returns what identifies a container in the labels of its metrics."""
    known = identity_names.of_labels(labels)
    return {name: known[name] for name in ("namespace", "pod", "container") if name in known}


def states(
    samples: pl.DataFrame, containers: list[dict[str, str]], *, is_alone: bool = False
) -> list[Row]:
    """Returns a row of `container_states` for each container, with its last known values.

    Args:
        samples: `container` (a place in `containers`), `column`, `at_us`, `value`, `line_no`.
        containers: namespace, pod and name of each container.
        is_alone: whether no Go program in the input has metrics; one may have started after the
            kill.
    """
    if samples.is_empty():
        return []
    rows: list[Row] = []
    ordered = samples.sort("at_us", maintain_order=True)
    for key, part in ordered.partition_by(
        "container", as_dict=True, maintain_order=True
    ).items():
        last = part.group_by("column", maintain_order=True).agg(pl.col("value").last())
        row: Row = dict(last.iter_rows())
        # A limit of 0 means no limit.
        for name in ("memory_limit_bytes", "memory_request_bytes", "restart_count", "failcnt"):
            if name in row:
                row[name] = int(row[name]) or (None if name == "memory_limit_bytes" else 0)
        hits = row.pop("failcnt", 0)
        if row.pop("oom_killed", None):
            row |= {"last_reason": "OOMKilled"} | ({"oom_killed": True} if is_alone else {})
        elif is_alone and hits:
            row |= {"event": "oom", "oom_killed": True, "failcnt": hits}
        # The state shows that a kill was before the scrape, not when.
        at = None if row.get("oom_killed") else part["at_us"].max()
        where = containers[int(key[0])]
        rows.append({"line_no": part["line_no"][0], "at_us": at, **where, **row})
    return rows


def kills(
    samples: pl.DataFrame, containers: list[dict[str, str]], restarts: pl.DataFrame
) -> list[Row]:
    """Returns a row of `oom_kills` for each restart whose reason was OOMKilled.

    The reason is a state that stays until the next restart. So only a restart dates the kill: it
    was between the scrapes before and after the restart.

    Args:
        samples: as in `states`.
        containers: as in `states`.
        restarts: `container`, `before_us`, `at_us`: restarts by the start times of processes,
            for the containers whose restarts are not counted.
    """
    ordered = samples.sort("container", "at_us", maintain_order=True)
    counts = ordered.filter(pl.col("column") == "restart_count")
    rose = counts.select(
        "container",
        pl.col("at_us").shift().over("container").alias("before_us"),
        "at_us",
        rise=pl.col("value").diff().over("container"),
    ).filter(pl.col("rise") > 0)
    others = restarts.filter(~pl.col("container").is_in(counts["container"].unique().implode()))
    changes = pl.concat([rose.drop("rise"), others]).sort("container", "at_us")
    reasons = ordered.filter(pl.col("column") == "oom_killed").select(
        "container", "line_no", reason_us="at_us", is_oom=pl.col("value") > 0
    )
    until = pl.col("at_us").shift(-1).over("container")
    killed = (
        changes.with_columns(until_us=until.fill_null(1 << 62))
        .join(reasons, on="container")
        .filter(pl.col("reason_us").is_between("at_us", "until_us", closed="left"))
        .sort("container", "at_us", "reason_us")
        .group_by("container", "at_us", maintain_order=True)
        .agg(pl.col("before_us").first(), pl.col("line_no", "is_oom").last())
        .filter("is_oom")
        .with_columns(before=pl.col("before_us").cast(pl.Datetime("us", "UTC")))
    )
    limits = dict(
        ordered.filter((pl.col("column") == "memory_limit_bytes") & (pl.col("value") > 0))
        .group_by("container")
        .agg(pl.col("value").last().cast(pl.Int64))
        .iter_rows()
    )
    return [
        {
            "line_no": row["line_no"],
            "at_us": row["at_us"],
            "not_before_at": row["before"],
            "reported_by": "kube-state-metrics",
            "limit_bytes": limits.get(row["container"]),
            **where,
        }
        for row in killed.iter_rows(named=True)
        for where in [containers[row["container"]]]
    ]
