"""The dashboard for Grafana: every query in a real Prometheus, its JSON by Grafana's own types."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
import yaml

from gctrace_analyzer.analysis.thresholds import DEFAULT
from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DASHBOARD: dict[str, Any] = json.loads((ROOT / "docs/examples/dashboard.json").read_text())
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
QUERIES = [
    pytest.param(target["expr"], panel, id=f"{panel['id']}-{target['refId']}")
    for panel in PANELS
    for target in panel["targets"]
]
NEEDS_RUNTIME_METRICS = ("go_cpu_classes", "go_sched_pauses_total_gc")
NEEDS_KUBERNETES = "kube_pod_container_resource_limits"


def values(url: str, query: str, job: str) -> list[float]:
    """What a query returns for a job, as Grafana would send it."""
    written = query.replace("$__rate_interval", "5m").replace("$instance", ".+")
    asked = urlencode({"query": written.replace("$job", job)})
    with urlopen(f"{url}/api/v1/query?{asked}", timeout=10) as answer:
        results = json.load(answer)["data"]["result"]
    return [float(result["value"][1]) for result in results]


@pytest.mark.parametrize(("query", "panel"), QUERIES)
def test_every_query_has_data_where_its_metrics_are_exported(
    query: str, panel: dict[str, Any], backfilled: str
) -> None:
    job = "thrashing" if panel["title"].startswith("Room") else "growing"
    every, plain = (values(backfilled, query, name) for name in (f"{job}-all", job))
    assert len(every) == (0 if NEEDS_KUBERNETES in query else 1), panel["title"]
    assert len(plain) == (0 if any(name in query for name in NEEDS_RUNTIME_METRICS) else 1)
    assert all(0 <= value < float("inf") for value in every + plain), (every, plain)
    both = values(backfilled, query, f"{job}|{job}-all")
    assert len(both) == (1 if panel["type"] == "stat" else len(every + plain))


def titled(title: str, kind: str = "stat") -> dict[str, Any]:
    return next(panel for panel in PANELS if (panel["title"], panel["type"]) == (title, kind))


def colour(panel: dict[str, Any], value: float) -> str:
    steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    reached = [step for step in steps if step["value"] is None or value >= step["value"]]
    return str(reached[-1]["color"])


@pytest.mark.parametrize(
    ("title", "job", "expected"),
    [
        ("GC CPU", "growing-all", "green"),
        ("GC CPU", "straining-all", "red"),
        ("Mark assists", "straining-all", "yellow"),
        ("Room under GOMEMLIMIT", "thrashing", "red"),
        ("Room under GOMEMLIMIT", "thrashing-all", "red"),
        ("Live heap", "thrashing-all", "yellow"),
        ("Time to GOMEMLIMIT", "growing", "red"),
        ("Time to GOMEMLIMIT", "growing-all", "red"),
        ("Pauses per cycle", "waiting", "red"),
        ("Pauses per cycle", "growing", "green"),
    ],
)
def test_the_verdict_has_the_colour_of_the_state(
    title: str, job: str, expected: str, backfilled: str
) -> None:
    panel = titled(title)
    (value,) = values(backfilled, panel["targets"][0]["expr"], job)
    assert colour(panel, value) == expected, value


CPU = (DEFAULT.gc_cpu_warn, DEFAULT.gc_cpu_bad)
PAUSES = (DEFAULT.stw_single_ms / 1000, DEFAULT.stw_bad_ms / 1000)
STEPS = {
    ("GC CPU", "stat"): CPU,
    ("Mark assists", "stat"): (DEFAULT.assist_warn_cpu_share,),
    ("Pauses per cycle", "stat"): PAUSES,
    ("Room under GOMEMLIMIT", "stat"): (
        DEFAULT.server_thrash_cycle_share, DEFAULT.server_near_cycle_share,
    ),
    ("Live heap", "stat"): (DEFAULT.fleet_limit_share,),
    ("Time to GOMEMLIMIT", "stat"): (
        3600 * DEFAULT.alert_hours_to_limit, 3600 * DEFAULT.hours_to_limit,
    ),
    ("GC CPU", "timeseries"): CPU,
    ("Pauses", "timeseries"): PAUSES,
}  # fmt: skip


def test_thresholds_are_those_of_the_rules() -> None:
    for panel in PANELS:
        first, *steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
        assert first["value"] is None
        expected = STEPS.get((panel["title"], panel["type"]), ())
        assert tuple(step["value"] for step in steps) == expected, panel["title"]
    room, growth = (queries(titled(name))[0] for name in ("Room under GOMEMLIMIT", TIME))
    assert room.endswith(f"> {DEFAULT.server_at_limit_share:g})")
    assert f"[1h:1m]) > {DEFAULT.growth_min_share / 3600:.3g} * go_memstats_next_gc" in growth
    assert (
        f"last 1 h: by {DEFAULT.growth_min_share:.0%} of the goal"
        in titled(TIME)["description"]
    )


TIME = "Time to GOMEMLIMIT"
FIGURES = {
    "instance:go_gc_cpu:share5m": ("GC CPU",),
    "instance:go_gc_assist_cpu:share5m": ("Mark assists", "GC CPU"),
    "instance:go_gc_pause_seconds:mean5m": ("Pauses per cycle", "Pauses"),
    "instance:go_gc_pause_seconds:p99_1h": ("Pauses",),
    "instance:go_gc_room:ratio5m": ("Room under GOMEMLIMIT",),
    "instance:go_gc_memory_of_limit:ratio5m": ("Room under GOMEMLIMIT",),
    "instance:go_gc_memory_limit_bytes": ("Live heap", TIME, "Heap", "Memory"),
    "instance:go_gc_heap_live_bytes": ("Live heap", TIME, "Heap"),
    "instance:go_memstats_alloc_bytes:rate5m": ("Allocation",),
    "instance:go_gc_cycles:rate5m": ("GC cycles",),
}


@pytest.mark.parametrize("record", FIGURES)
def test_figures_are_those_of_the_rules(record: str) -> None:
    groups = yaml.safe_load((ROOT / "docs/examples/rules.yml").read_text())["groups"]
    rule = next(one for one in groups[0]["rules"] if one["record"] == record)
    expression = " ".join(rule["expr"].split())
    for title in FIGURES[record]:
        shown = [
            text.replace('{job=~"$job",instance=~"$instance"}', "")
            for panel in PANELS
            if panel["title"] == title
            for text in queries(panel)
        ]
        # A dashboard has a range of its own.
        written = re.sub(r"\[\d+[mh]\]", "[$__rate_interval]", expression)
        assert any(written in text for text in shown), title


def queries(panel: dict[str, Any]) -> list[str]:
    return [target["expr"] for target in panel["targets"]]


def test_panels_are_in_the_order_of_a_report_and_do_not_overlap() -> None:
    titles = [panel["title"] for panel in PANELS if panel["type"] == "timeseries"]
    assert titles[:5] == ["GC CPU", "Pauses", "Heap", "Allocation", "Memory"]
    taken: set[tuple[int, int]] = set()
    for panel in PANELS:
        cells = set(covered(panel["gridPos"]))
        assert not cells & taken
        assert max(x for x, _ in cells) < 24
        taken |= cells
    assert [panel["type"] for panel in PANELS[:6]] == ["stat"] * 6


def covered(place: dict[str, int]) -> Iterator[tuple[int, int]]:
    for x in range(place["x"], place["x"] + place["w"]):
        yield from ((x, y) for y in range(place["y"], place["y"] + place["h"]))


def test_it_asks_for_data_source_job_and_instance() -> None:
    names = [variable["name"] for variable in DASHBOARD["templating"]["list"]]
    assert names == ["datasource", "job", "instance"]
    for panel in PANELS:
        for target in panel["targets"]:
            assert target["datasource"]["uid"] == panel["datasource"]["uid"] == "${datasource}"
            assert 'job=~"$job",instance=~"$instance"' in target["expr"]


def go(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["go", *words], cwd=folder, capture_output=True, text=True, check=False
    )


def test_grafanas_own_types_accept_every_field(tmp_path: Path) -> None:
    if shutil.which("go") is None:
        pytest.skip("there is no go command here (https://go.dev/dl)")
    shutil.copytree(ROOT / "tests/helpers/grafana_types", tmp_path / "types")
    got = go(tmp_path / "types", "mod", "download")
    if got.returncode:
        pytest.skip(f"Grafana's types cannot be downloaded: {got.stderr.strip()[-200:]}")
    # Optimised, Grafana's types take twice as long to compile.
    fast = "-gcflags=github.com/grafana/...=-N -l"
    done = go(tmp_path / "types", "run", fast, ".", str(ROOT / "docs/examples/dashboard.json"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"schema {DASHBOARD['schemaVersion']}, {len(PANELS)} panels\n"
