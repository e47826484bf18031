"""Metrics about containers: which are read, and what identifies a container."""

from __future__ import annotations

import polars as pl
import pytest

from gctrace_analyzer.ingest.metrics.containers import column_of, identity, kills, states
from gctrace_analyzer.testing import read_text

API = {"namespace": "shop", "pod": "api-1", "container": "api"}


@pytest.mark.parametrize(
    ("name", "labels", "column"),
    [
        ("container_spec_memory_limit_bytes", {}, "memory_limit_bytes"),
        ("kube_pod_container_resource_limits", {"resource": "memory"}, "memory_limit_bytes"),
        ("kube_pod_container_resource_limits", {"resource": "cpu"}, "cpu_limit"),
        ("kube_pod_container_resource_limits", {"resource": "storage"}, None),
        ("kube_pod_container_resource_limits", {}, None),
        (
            "kube_pod_container_resource_requests",
            {"resource": "memory"},
            "memory_request_bytes",
        ),
        ("kube_pod_container_resource_requests", {"resource": "cpu"}, None),
        ("kube_pod_container_status_restarts_total", {}, "restart_count"),
        (
            "kube_pod_container_status_last_terminated_reason",
            {"reason": "OOMKilled"},
            "oom_killed",
        ),
        ("kube_pod_container_status_last_terminated_reason", {"reason": "Error"}, None),
        ("container_memory_rss", {}, None),
    ],
)
def test_a_metric_fills_a_column(name: str, labels: dict[str, str], column: str | None) -> None:
    assert column_of(name, {**API, **labels}) == column


@pytest.mark.parametrize("container", ["", "POD", None])
def test_metrics_of_a_whole_pod_or_of_its_network_are_not_read(container: str | None) -> None:
    labels = {k: v for k, v in API.items() if k != "container"}
    if container is not None:
        labels["container"] = container
    assert column_of("container_spec_memory_limit_bytes", labels) is None


def test_labels_that_prometheus_or_old_kubernetes_renamed_identify_a_container() -> None:
    assert identity(API) == {"namespace": "shop", "pod": "api-1", "container": "api"}
    renamed = {"exported_namespace": "shop", "pod_name": "api-1", "container_name": "api"}
    assert identity(renamed) == identity(API)
    assert identity({"pod": "api-1", "container": ""}) == {"pod": "api-1"}
    assert column_of("container_spec_memory_limit_bytes", renamed) == "memory_limit_bytes"


CONTAINERS = [{"pod": "api-1", "container": "api"}, {"pod": "web-1", "container": "web"}]
NO_RESTARTS = pl.DataFrame(
    schema={"container": pl.Int64, "before_us": pl.Int64, "at_us": pl.Int64}
)


def samples(*rows: tuple[int, str, int, float]) -> pl.DataFrame:
    """Samples: container, column, time in s and value; each has its number as its line."""
    return pl.DataFrame(
        [(c, name, at * 10**6, float(value), n) for n, (c, name, at, value) in enumerate(rows, 1)],
        schema={"container": pl.Int64, "column": pl.String, "at_us": pl.Int64,
                "value": pl.Float64, "line_no": pl.Int64},
        orient="row",
    )  # fmt: skip


def test_a_container_has_its_last_values_in_any_order_of_the_samples() -> None:
    rows = states(
        samples(
            (0, "memory_limit_bytes", 30, 4096), (1, "restart_count", 20, 5),
            (0, "memory_limit_bytes", 10, 1024), (0, "restart_count", 20, 0),
            (0, "memory_request_bytes", 20, 0), (1, "memory_limit_bytes", 10, 0),
            (1, "oom_killed", 10, 1), (0, "oom_killed", 10, 1), (0, "oom_killed", 40, 0),
            (0, "cpu_limit", 10, 1.5),
        ),
        CONTAINERS,
    )  # fmt: skip
    by_pod = {row["pod"]: row for row in rows}
    assert by_pod["api-1"] == {
        "line_no": 3, "at_us": 40 * 10**6, "pod": "api-1", "container": "api",
        "memory_limit_bytes": 4096, "restart_count": 0, "memory_request_bytes": 0, "cpu_limit": 1.5,
    }  # fmt: skip
    assert by_pod["web-1"] == {
        "line_no": 6, "at_us": 20 * 10**6, "pod": "web-1", "container": "web",
        "memory_limit_bytes": None, "restart_count": 5, "last_reason": "OOMKilled",
    }  # fmt: skip


def found_kills(*rows: tuple[int, str, int, float]) -> list[tuple[str, float | None, float]]:
    """Returns pod, earliest and latest time of each kill."""
    return [
        (
            row["pod"],
            row["not_before_at"] and row["not_before_at"].timestamp(),
            row["at_us"] / 10**6,
        )
        for row in kills(samples(*rows), CONTAINERS, NO_RESTARTS)
    ]


def counted(container: int, *values: float) -> list[tuple[int, str, int, float]]:
    return [(container, "restart_count", 15 * n, value) for n, value in enumerate(values)]


def reasons(container: int, *values: float) -> list[tuple[int, str, int, float]]:
    return [(container, "oom_killed", 15 * n, value) for n, value in enumerate(values)]


@pytest.mark.parametrize(
    ("restarts", "why", "at"),
    [
        ([0, 1, 1], [0, 1, 1], [15]),
        ([0, 1, 1], [0, 0, 1], [15]),  # the reason is scraped later than the restart
        ([0, 0, 1], [1, 1, 1], [30]),
        ([0, 1, 2], [0, 1, 1], [15, 30]),
        ([0, 1, 2], [0, 0, 1], [30]),
        ([0, 1, 2], [0, 1, 0], [15]),
        ([1, 1, 1], [1, 1, 1], []),
        ([2, 1, 0], [1, 1, 1], []),  # a new pod of the same name counts from zero
        ([0, 3, 3], [0, 1, 1], [15]),
        ([1], [1], []),
    ],
)
def test_each_restart_for_lack_of_memory_is_a_kill(
    restarts: list[float], why: list[float], at: list[int]
) -> None:
    rows = counted(0, *restarts) + reasons(0, *why)
    assert found_kills(*rows) == [("api-1", each - 15, each) for each in at]
    # Another container restarts at the same time for another reason.
    both = rows + counted(1, 0, 1, 2) + reasons(1, 0, 0, 0)
    assert found_kills(*both) == found_kills(*rows)


def test_a_kill_has_the_limit_of_its_container() -> None:
    rows = [
        *counted(0, 0, 1), *reasons(0, 0, 1), *counted(1, 0, 1), *reasons(1, 0, 1),
        (0, "memory_limit_bytes", 0, 1024), (0, "memory_limit_bytes", 15, 2048),
        (1, "memory_limit_bytes", 0, 0),
    ]  # fmt: skip
    found = kills(samples(*rows), CONTAINERS, NO_RESTARTS)
    assert [(row["pod"], row["limit_bytes"]) for row in found] == [
        ("api-1", 2048),
        ("web-1", None),
    ]
    assert {row["reported_by"] for row in found} == {"kube-state-metrics"}


def test_restarts_by_start_time_count_where_none_are_counted() -> None:
    restarts = pl.DataFrame(
        {"container": [0, 1], "before_us": [0, 0], "at_us": [15 * 10**6] * 2}
    )
    rows = samples(*counted(0, 1, 1), *reasons(0, 1, 1), *reasons(1, 1, 1))
    assert [row["pod"] for row in kills(rows, CONTAINERS, restarts)] == ["web-1"]


def test_no_samples_are_no_containers() -> None:
    assert states(samples(), CONTAINERS) == []


def test_metrics_of_a_container_alone_are_read() -> None:
    labels = 'namespace="shop",pod="api-1",container="api"'
    lines = ["# TYPE kube_pod_container_status_restarts_total counter"]
    for n, (restarts, reason) in enumerate([(0, 0), (1, 1)]):
        at_ms = 1_770_112_800_000 + 15_000 * n
        lines += [
            f"kube_pod_container_status_restarts_total{{{labels}}} {restarts} {at_ms}",
            f"container_spec_memory_limit_bytes{{{labels}}} 1024 {at_ms}",
            f'kube_pod_container_status_last_terminated_reason{{{labels},reason="OOMKilled"}} '
            f"{reason} {at_ms}",
        ]
    run = read_text("\n".join(lines) + "\n")
    (state,) = run.container_states.to_dicts()
    assert (state["pod"], state["restart_count"], state["memory_limit_bytes"]) == (
        "api-1",
        1,
        1024,
    )
    (kill,) = run.oom_kills.to_dicts()
    assert (kill["container"], kill["limit_bytes"]) == ("api", 1024)
    assert kill["logged_at"].timestamp() == 1_770_112_815


def test_a_state_of_metrics_does_not_date_the_kill() -> None:
    """The reason stays after a kill, so the time of its scrape is not that of the kill."""
    labels = 'namespace="prod",pod="api-1",container="api"'
    text = (
        f"container_spec_memory_limit_bytes{{{labels}}} 536870912 1794221600000\n"
        f"container_oom_events_total{{{labels}}} 2 1794221600000\n"
        f'kube_pod_container_status_last_terminated_reason{{{labels},reason="OOMKilled"}} 1\n'
    )
    (death,) = read_text(text).post_mortems()
    assert (death.proven, death.logged_at) == (True, None)
