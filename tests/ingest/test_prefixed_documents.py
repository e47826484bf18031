"""A document whose lines all have a prefix is read like the same document without it."""

from __future__ import annotations

import html
import json
from typing import TYPE_CHECKING, Any

import pytest

from gctrace_analyzer.testing import read_text
from lab.evaluation import cases
from tests.helpers.excerpts import NOT_YET

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

QUOTES: dict[str, Callable[[str], str]] = {
    "quoted": lambda line: f"> {line}".rstrip(),
    "quoted twice": lambda line: f"> > {line}",
    "indented": lambda line: f"    {line}",
    "tab": lambda line: f"\t{line}",
    "Windows": lambda line: f"{line}\r",
}
LOGS: dict[str, Callable[[str], str]] = {
    "compose": lambda line: f"app-1  | {line}",
    "kubectl": lambda line: f"[pod/app-7d9/app] {line}",
    "time": lambda line: f"2026-01-02T03:04:05.678901Z {line}",
    "syslog": lambda line: f"Jan  2 03:04:05 host app[123]: {line}",
    "docker": lambda line: json.dumps({"log": f"{line}\n", "stream": "stdout", "time": ""}),
    "comment": lambda line: f"// {line}",
    "HTML": lambda line: html.escape(line, quote=False),
}
METRICS = """\
# HELP go_gc_duration_seconds A summary of the pause duration of garbage collection cycles.
# TYPE go_gc_duration_seconds summary
go_gc_duration_seconds{quantile="0"} 3.4e-05
go_gc_duration_seconds{quantile="1"} 0.0021
go_gc_duration_seconds_sum 12.5
go_gc_duration_seconds_count 20480
go_memstats_heap_inuse_bytes 1.2e+08
go_memstats_next_gc_bytes 2.0e+08
go_memstats_sys_bytes 3.1e+08
"""
MEMSTATS = json.dumps(
    {"HeapAlloc": 5 << 20, "HeapInuse": 6 << 20, "Sys": 30 << 20, "NumGC": 12}, indent=2
)


@pytest.mark.parametrize("text", [METRICS, MEMSTATS], ids=["metrics", "JSON"])
@pytest.mark.parametrize("prefix", [*QUOTES, *LOGS])
def test_a_document_with_a_prefix_has_the_same_dumps(text: str, prefix: str) -> None:
    prefixed = {**QUOTES, **LOGS}[prefix]
    lines = "\n".join(map(prefixed, text.splitlines()))
    own, found = (read_text(each).table("memstats") for each in (text, f"{lines}\n"))
    assert len(own) == 1
    names = [name for name in own.columns if name.endswith(("_bytes", "gc", "_ns"))]
    assert found[names].rows() == own[names].rows()


CONSUL = json.dumps(
    {
        "Gauges": [
            {"Name": "consul.node1.runtime.alloc_bytes", "Value": 5 << 20, "Labels": {}},
            {"Name": "consul.node1.runtime.sys_bytes", "Value": 30 << 20, "Labels": {}},
        ],
        "Samples": [{"Name": "consul.runtime.gc_pause_ns", "Count": 2, "Sum": 90000.0}],
    },
    indent=2,
)


@pytest.mark.parametrize("text", [METRICS, MEMSTATS, CONSUL], ids=["metrics", "JSON", "Consul"])
def test_a_document_in_a_fence_or_a_reply_has_the_same_dumps(text: str) -> None:
    quoted = "\n".join(map(QUOTES["quoted"], text.splitlines()))
    said = {
        "fenced": f"Is this much?\n\n```\n{text}\n```\nThanks.\n",
        "cut": f"Is this much?\n```json\n{text}\n",
        "reply": f"On Monday, Bob wrote:\n{quoted}\n",
    }
    own = read_text(text).table("memstats")
    assert len(own) == 1
    names = [name for name in own.columns if name.endswith(("_bytes", "gc", "_ns"))]
    for how, each in said.items():
        if how == "reply" and text is CONSUL:
            continue  # Only a fence shows where it begins.
        assert read_text(each).table("memstats")[names].rows() == own[names].rows(), how


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", cases.cases()[::12], ids=lambda case: case["name"])
def test_what_is_said_about_a_quoted_excerpt_is_the_same(
    case: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whatever it is: people paste into replies and lists."""
    if case["name"] in NOT_YET:
        return
    text = cases.path_of(case["name"]).read_text()
    quoted = "\n".join(map(QUOTES["quoted"], text.splitlines()))
    monkeypatch.setattr(cases, "path_of", lambda _: tmp_path / "excerpt.log")
    (tmp_path / "excerpt.log").write_text(f"{quoted}\n")
    for cached in (cases.read, cases.said):
        cached.cache_clear()
    try:
        assert not [miss for miss in cases.missed(case) if not miss.minor]
    finally:
        for cached in (cases.read, cases.said):
            cached.cache_clear()
