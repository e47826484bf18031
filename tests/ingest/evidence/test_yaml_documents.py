"""YAML as kubectl and gcloud print it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

import gctrace_analyzer as gca
from gctrace_analyzer.errors import UnreadableInputError
from gctrace_analyzer.ingest.evidence.yaml_documents import scalar
from gctrace_analyzer.testing import read_text
from tests.helpers.logs import AT, RECORDS, logfile

if TYPE_CHECKING:
    from pathlib import Path

POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: api-0
  namespace: shop
spec:
  containers:
  - name: api
    env:
    - name: GOGC
      value: "50"
    resources:
      limits:
        memory: 512Mi
  nodeName: n1
status:
  containerStatuses:
  - containerID: containerd://0f1e2d3c4b5a
    lastState:
      terminated:
        exitCode: 137
        finishedAt: "2026-02-03T10:00:00Z"
        reason: OOMKilled
        startedAt: 2026-02-03T09:00:00Z
    name: api
    restartCount: 3
    state:
      running:
        startedAt: "2026-02-03T10:00:01Z"
"""

STATUS = POD.partition("status:\n")[2]


def killed(text: str, path: Path) -> gca.Run:
    path.write_text(text)
    run = gca.read(path)
    assert run.container_states["oom_killed"].any()
    return run


def test_a_pod_shows_its_kill_and_its_settings(tmp_path: Path) -> None:
    run = killed(POD, tmp_path / "pod.yaml")
    row = run.container_states.row(0, named=True)
    assert (row["pod"], row["container"], row["exit_code"]) == ("api-0", "api", 137)
    assert row["memory_limit_bytes"] == 512 << 20
    assert run.settings.value("gogc") == 50
    (death,) = run.post_mortems()
    assert death.logged_at is not None
    assert death.logged_at.isoformat() == "2026-02-03T10:00:00+00:00"
    assert run.sources[0].wrappers == {"kubectl get pods -o yaml": 1}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"---\n{POD}", id="with a separator"),
        pytest.param(f"{POD}---\n{POD.replace('api-0', 'api-1')}", id="two documents"),
        pytest.param(
            "apiVersion: v1\nitems:\n- "
            + POD.replace("\n", "\n  ").rstrip()
            + "\nkind: List\n",
            id="a list",
        ),
        pytest.param(f"status:\n{STATUS}", id="the status alone"),
        pytest.param(STATUS, id="the statuses of containers"),
        pytest.param(STATUS.partition("\n")[2].partition("    name:")[0], id="a last state"),
    ],
)
def test_parts_of_pods_are_read(text: str, tmp_path: Path) -> None:
    killed(text, tmp_path / "pod.yaml")


@pytest.mark.parametrize("width", [40, 80, 10_000])
@pytest.mark.parametrize("key", ["textPayload", "jsonPayload"])
def test_entries_of_gcloud_are_read(width: int, key: str, tmp_path: Path) -> None:
    entries = [
        {
            "insertId": f"a{number}",
            key: record if key == "textPayload" else {"level": "info", "message": record},
            "logName": "projects/shop/logs/stderr",
            "resource": {
                "labels": {
                    "container_name": "api",
                    "namespace_name": "shop",
                    "pod_name": "api-0",
                },
                "type": "k8s_container",
            },
            "timestamp": "2026-02-03T10:00:00.005Z",
        }
        for number, record in enumerate(RECORDS)
    ]
    text = "".join(f"---\n{yaml.safe_dump(entry, width=width)}" for entry in entries)
    path = tmp_path / "log"
    path.write_text(text)
    run = gca.read(path)
    assert run.cycles["gc_num"].to_list() == [1, 2]
    assert run.cycles["logged_at"].to_list() == [AT, AT]
    assert not run.cycles["repaired"].any()
    (row,) = run.processes.to_dicts()
    assert (row["pod"], row["container"], row["namespace"]) == ("api-0", "api", "shop")
    lines = [number for number, line in enumerate(text.split("\n"), 1) if "gc " in line]
    assert run.cycles["line_no"].to_list() == lines


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("plain", "plain"),
        ("folded\n  twice\n  over", "folded twice over"),
        ("'it''s\n  quoted'", "it's quoted"),
        ('"a\\tb \\\n  \\ c"', "a\tb  c"),
        ('"bad \\q escape"', "bad \\q escape"),
        ("|-\n  one\n  two", "one\ntwo"),
        (">\n  one\n  two\n", "one two"),
        ("", ""),
    ],
)
def test_a_scalar_of_each_style_has_its_text(text: str, value: str) -> None:
    assert scalar(text) == value


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("kind: Pod\nstatus: [\n", 3, "invalid YAML"),
        ("kind: Pod\nmetadata: &a {name: x}\nstatus: *a\n", 1, "aliases"),
        ("kind: Pod\nstatus:\n  " + "[" * 20_000 + "\n", 1, "YAML"),
    ],
)
def test_what_is_not_yaml_is_an_error_with_its_line(
    text: str, line: int, why: str, tmp_path: Path
) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text(text)
    with pytest.raises(UnreadableInputError, match=why) as caught:
        gca.read(path)
    assert f"pod.yaml:{line}" in str(caught.value) or line == 1


def test_values_that_json_does_not_have_are_read(tmp_path: Path) -> None:
    odd = POD.replace("  name: api-0\n", "  name: api-0\n  2026-02-03: !!set {x}\n  1: .nan\n")
    killed(odd, tmp_path / "pod.yaml")


def test_a_log_that_begins_like_yaml_is_a_log(tmp_path: Path) -> None:
    run = gca.read(logfile(tmp_path / "log", ["status: 200 GET /", *RECORDS]))
    assert run.sources[0].kind == "log"
    assert len(run.cycles) == 2


def test_an_entry_of_gcloud_has_the_node_of_its_pod() -> None:
    text = (
        "insertId: a1\nlabels:\n  compute.googleapis.com/resource_name: x\nresource:\n  labels:\n"
        "    node_name: node-7\n    pod_name: api-0\ntextPayload: '{}'\n"
        "timestamp: '2026-02-03T10:00:00.005Z'\n"
    )
    run = read_text("---\n".join(text.format(record) for record in RECORDS))
    assert run.processes.select("host", "pod").rows() == [("node-7", "api-0")]


def test_yaml_that_is_nested_too_deeply_is_an_error() -> None:
    nested = "- " * 3000 + "a"
    with pytest.raises(gca.UnreadableInputError, match="nested too deeply"):
        read_text(f"apiVersion: v1\nitems:\n{nested}\n")
