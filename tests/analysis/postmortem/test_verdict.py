"""Explanations of deaths, from facts."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from gctrace_analyzer import schema
from gctrace_analyzer.analysis.postmortem.verdict import Explanation, explain_death
from gctrace_analyzer.analysis.settings import Known, Settings

FACTS: dict[str, Any] = {
    "proven": True, "scope": "memcg", "kind": "OOM kill", "limit_mib": 512.0,
    "limit_is": "the limit of api", "live_mib": 100, "resident_mib": 500.0,
    "next_goal_mib": 200, "gap_s": 1.0, "usual_interval_s": 1.0, "off_heap_mib": 20.0,
    "alloc_mib_per_s": 50.0, "live_before_mib": 95,
}  # fmt: skip
TABLES = {"oom_tasks": pl.DataFrame(schema=schema.polars_schema("oom_tasks"))}


def explained(memory_limit_mib: float | None = None, **facts: Any) -> Explanation:
    settings = Settings()
    if memory_limit_mib is not None:
        settings = Settings(memory_limit_mib=Known(memory_limit_mib, "test"))
    return explain_death({**FACTS, **facts}, {}, TABLES, settings)


def test_a_kill_far_above_the_live_heap_could_have_been_prevented() -> None:
    found = explained()
    assert found.preventable == "yes"
    assert found.reading[0] == "It reached the limit of api: 512 MiB."
    assert found.advice[0].startswith("Set GOMEMLIMIT=460MiB")


def test_growth_makes_a_memory_limit_a_delay_only() -> None:
    found = explained(live_before_mib=50)
    assert found.preventable == "for a while"
    assert "The live heap grew from 50 to 100 MiB" in found.reading[-1]


@pytest.mark.parametrize(("limit", "advice"), [(500.0, 1), (400.0, 0)])
def test_a_memory_limit_that_was_too_high_should_be_lower(limit: float, advice: int) -> None:
    found = explained(memory_limit_mib=limit)
    assert found.preventable == "partly"
    assert len(found.advice) == advice


def test_without_a_limit_the_resident_memory_is_the_ceiling() -> None:
    found = explained(limit_mib=None, scope="global")
    assert found.reading[0].startswith("The host ran out of memory")
    assert found.advice == (
        "Set a memory limit for the service, and GOMEMLIMIT to 90 % of it.",
    )


@pytest.mark.parametrize(
    ("facts", "advice"),
    [
        ({"live_mib": None}, "GODEBUG=gctrace=1"),
        ({"limit_mib": None, "resident_mib": None}, "Specify the container's memory limit"),
    ],
)
def test_missing_facts_are_asked_for(facts: dict[str, Any], advice: str) -> None:
    found = explained(**facts)
    assert found.preventable == "cannot tell"
    assert any(advice in each for each in found.advice)


def test_memory_outside_the_heap_cannot_be_limited() -> None:
    found = explained(off_heap_mib=400.0)
    assert found.preventable == "cannot tell"
    assert "GOMEMLIMIT does not affect it" in found.reading[-1]
    assert explained(off_heap_mib=400.0, gap_s=10.0).preventable == "yes"
    assert explained(off_heap_mib=400.0, gap_s=None).preventable == "yes"


def test_a_long_time_without_a_cycle_and_a_goal_above_the_limit_are_named() -> None:
    reading = " ".join(explained(gap_s=90.0, next_goal_mib=900).reading)
    assert "no GC cycle in the last 1m 30s" in reading
    assert "the next cycle was due at 900 MiB" in reading


def test_gos_own_out_of_memory_is_not_the_oom_killer() -> None:
    reading = explained(kind="Go's own out of memory", limit_mib=None).reading
    assert "ulimit -v" in reading[0]


UNSEEN: dict[str, Any] = {
    "live_mib": None,
    "limit_mib": None,
    "limit_is": None,
    "process": None,
}


def dumps(*alloc_mib: int) -> dict[str, pl.DataFrame]:
    """Tables with one dump of each program."""
    rows = [
        {"source": "a.log", "ident": f"api-{n}", "process": n, "alloc_bytes": size * 2**20}
        for n, size in enumerate(alloc_mib)
    ]
    frame = pl.DataFrame(rows, schema=schema.polars_schema("memstats"))
    return {**TABLES, "memstats": frame}


@pytest.mark.parametrize(
    ("sizes", "process", "said"),
    [
        ((480,), None, "shows 480 MiB of heap allocated: the heap was 96 % of the resident"),
        ((100,), None, "the heap was 20 % of the resident memory; it may have grown since"),
        ((100, 480), 1, "shows 480 MiB of heap allocated: the heap was 96 %"),
        ((450, 480), None, "each with 450 MiB of heap allocated or more: 90 % of what was"),
        ((10, 480), None, "with 10 to 480 MiB of heap allocated, and does not say which"),
        ((), None, "How much of its memory was the Go heap is unknown"),
    ],
)
def test_dumps_show_the_heap_of_a_kill_without_cycles(
    sizes: tuple[int, ...], process: int | None, said: str
) -> None:
    facts = {**FACTS, **UNSEEN, "process": process, "scope": "global", "victim": "api"}
    found = explain_death(facts, {}, dumps(*sizes), Settings())
    assert said in found.reading[-1]
    assert found.advice[0].startswith(
        "Run the program with" if sizes else "If api is written in Go, run it with"
    )


def test_a_kill_without_cycles_in_a_known_limit_has_a_setting_to_begin_with() -> None:
    facts = {**FACTS, **UNSEEN, "limit_mib": 512.0, "limit_is": "its limit"}
    found = explain_death(facts, {}, TABLES, Settings())
    assert found.advice[0].startswith("Set GOMEMLIMIT=460MiB (90 % of the limit)")
    unknown = explain_death({**FACTS, **UNSEEN}, {}, TABLES, Settings())
    assert "which the input does not name" in unknown.reading[0]
    assert "the memory limit as well" in unknown.advice[-1]
