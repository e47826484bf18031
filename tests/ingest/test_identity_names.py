"""One table of the names that identify a process, whatever the source."""

from __future__ import annotations

import json

import pytest

from gctrace_analyzer.ingest import identity_names
from gctrace_analyzer.schema import IDENTITY
from gctrace_analyzer.testing import read_text

CYCLES = [
    f"gc {n} @{n}.5s 1%: 0.02+1.0+0.03 ms clock, 0.1+0.2/0.9/0.1+0.2 ms cpu, 4->5->2 MB, 5 MB goal, "
    "0 MB stacks, 0 MB globals, 4 P"
    for n in range(1, 4)
]


@pytest.mark.parametrize("table", ["JSON", "CSV", "LABELS"])
def test_the_columns_are_those_of_the_schema(table: str) -> None:
    assert set(getattr(identity_names, table)) <= set(IDENTITY)


@pytest.mark.parametrize(
    ("name", "column"),
    [("node", "host"), ("hostname", "host"), ("pod_name", "pod"), ("container", "container"),
     ("k8s.namespace.name", "namespace"), ("kubernetes.pod.name", "pod")],
)  # fmt: skip
def test_json_csv_and_metrics_have_the_same_names(name: str, column: str) -> None:
    in_json = "\n".join(json.dumps({"message": line, name: "x-1"}) for line in CYCLES)
    in_csv = "\n".join([f"{name},message", *(f'x-1,"{line}"' for line in CYCLES)])
    scrapes = "\n".join(
        f'go_gc_duration_seconds_count{{"{name}"="x-1"}} {n} {1_700_000_000 + n}000'
        for n in range(3)
    )
    for text in (in_json, in_csv, scrapes):
        assert read_text(text + "\n").processes[column].to_list() == ["x-1"]


def test_members_of_members_are_read_as_well() -> None:
    lines = [
        json.dumps(
            {"log": line, "kubernetes": {"pod": {"name": "api-1"}, "node": {"name": "n1"}}}
        )
        for line in CYCLES
    ]
    processes = read_text("\n".join(lines) + "\n").processes
    assert processes.select("pod", "host").rows() == [("api-1", "n1")]
