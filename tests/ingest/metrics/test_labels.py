"""Series as Prometheus writes them, with names that are quoted since version 3."""

from __future__ import annotations

import pytest

from gctrace_analyzer.ingest.metrics.labels import series
from gctrace_analyzer.testing import read_text

AT_MS = 1_770_112_800_000


@pytest.mark.parametrize(
    ("text", "name", "labels"),
    [
        ("go_goroutines", "go_goroutines", {}),
        (" go_goroutines {}", "go_goroutines", {}),
        ('go_info{version="go1.26.0"}', "go_info", {"version": "go1.26.0"}),
        ('m{ a = "1" , b="2",}', "m", {"a": "1", "b": "2"}),
        ('{__name__="m",a="1"}', "m", {"__name__": "m", "a": "1"}),
        ('{"go.memory.used"}', "go.memory.used", {}),
        ('{"go.memory.used","service.name"="api",job="x"}', "go.memory.used",
         {"service.name": "api", "job": "x"}),
        ('{job="x","service.name"="api","go.memory.used"}', "go.memory.used",
         {"service.name": "api", "job": "x"}),
        ('{"service.name"="api",__name__="m"}', "m", {"service.name": "api", "__name__": "m"}),
        ('m{"service.name"="api","host.name"="h"}', "m", {"service.name": "api", "host.name": "h"}),
        (r'm{a="x\"y",b="C:\\",c="1\n2"}', "m", {"a": 'x"y', "b": "C:\\", "c": "1\n2"}),
        (r'm{a="\\\"",b="}"}', "m", {"a": '\\"', "b": "}"}),
        ('m{a="1",b="cut\\', "m", {"a": "1", "b": 'cut"'}),
        ('m{a="1",b="cut', "m", {"a": "1", "b": "cut"}),
        ("", "", {}),
    ],
)  # fmt: skip
def test_a_series_has_its_name_and_its_labels(
    text: str, name: str, labels: dict[str, str]
) -> None:
    assert series(text) == (name, labels)


def test_pages_with_quoted_names_are_read() -> None:
    text = "".join(
        f'{{"go.memory.gc.goal","service.name"="api"}} {n}e6 {AT_MS + n}\n'
        f'{{"go.memory.allocated","service.name"="api"}} {n}e9 {AT_MS + n}\n'
        for n in (1, 2)
    )
    run = read_text(text)
    assert run.memstats.select("next_gc_bytes", "total_alloc_bytes").rows() == [
        (10**6, 10**9), (2 * 10**6, 2 * 10**9)
    ]  # fmt: skip
    assert run.processes["ident"].to_list() == ["api"]
