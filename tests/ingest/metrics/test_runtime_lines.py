"""Metrics of runtime/metrics that programs print into their logs."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from gctrace_analyzer.testing import read_text
from tests.helpers.logs import records

if TYPE_CHECKING:
    from collections.abc import Callable

    from gctrace_analyzer.run import Run

BEGIN = datetime(2026, 11, 23, 10, tzinfo=UTC)


def metrics(number: int) -> dict[str, float]:
    return {
        "/cpu/classes/gc/mark/idle:cpu-seconds": 0.0,
        "/cpu/classes/gc/total:cpu-seconds": 0.25 * number,
        "/cpu/classes/total:cpu-seconds": 2.5 * number,
        "/gc/cycles/total:gc-cycles": 3 * number,
        "/gc/gomemlimit:bytes": 9223372036854775807,
        "/gc/heap/allocs:bytes": 50_000_000 * number,
        "/gc/heap/goal:bytes": 4_194_304,
        "/gc/heap/live:bytes": 2_000_000 + number,
        **{f"/godebug/non-default-behavior/x{n}:events": 0 for n in range(20)},
        "/memory/classes/heap/objects:bytes": 3_000_000,
        "/memory/classes/total:bytes": 8_000_000,
    }


def stamped(number: int) -> str:
    return (BEGIN + timedelta(seconds=10 * number)).isoformat()


def printed(form: str, number: int) -> str:
    each = (form.format(name=name, value=value) for name, value in metrics(number).items())
    return "".join(f"{stamped(number)} {line}\n" for line in each)


def zap(number: int) -> str:
    about = {"level": "info", "ts": stamped(number), "msg": "runtime"}
    other = json.dumps({"level": "info", "ts": stamped(number), "msg": "request"})
    return f"{other}\n" * 9 + json.dumps(about | metrics(number)) + "\n"


WRITERS: dict[str, Callable[[int], str]] = {
    "the documentation's example": lambda number: printed("{name}: {value}", number),
    "blanks": lambda number: printed("{name} {value}", number),
    "aligned": lambda number: printed("{name:<48} = {value:>20}", number),
    "slog": lambda number: (
        f"time={stamped(number)} level=INFO msg=runtime "
        + " ".join(f"{name}={value}" for name, value in metrics(number).items())
        + "\n"
    ),
    "zap": zap,
    "JSON, indented": lambda number: (
        json.dumps({"time": stamped(number), **metrics(number)}, indent=2) + "\n"
    ),
}


def dumps(run: Run) -> list[dict[str, Any]]:
    return run.memstats.to_dicts()


@pytest.mark.parametrize("writer", WRITERS)
def test_metrics_in_a_log_are_dumps(writer: str) -> None:
    run = read_text("".join(map(WRITERS[writer], range(1, 5))))
    assert [row["num_gc"] for row in dumps(run)] == [3, 6, 9, 12]
    assert [row["heap_live_bytes"] for row in dumps(run)] == [2_000_001 + n for n in range(4)]
    assert {row["heap_alloc_bytes"] for row in dumps(run)} == {3_000_000}
    assert {row["gomemlimit_bytes"] for row in dumps(run)} == {None}
    assert [row["logged_at"] for row in dumps(run)] == [
        BEGIN + timedelta(seconds=10 * n) for n in range(1, 5)
    ]
    assert run.summary().gc_per_s == pytest.approx(0.3)
    assert run.summary().gc_cpu_share == pytest.approx(0.1)


def test_metrics_among_records_are_dumps() -> None:
    lines = "".join(f"{line}\n" for line in records(200))
    run = read_text(lines + printed("{name}: {value}", 1))
    assert len(run.cycles) == 200
    assert [row["heap_live_bytes"] for row in dumps(run)] == [2_000_001]


@pytest.mark.parametrize("value", ["4.2 MB", "17 KiB", "31 ms", "12%", "12ms", "-3", "true"])
def test_a_value_with_a_unit_of_its_own_is_not_read(value: str) -> None:
    lines = "".join(f"{line}\n" for line in records(3))
    text = f"/gc/heap/live:bytes: {value}\n/gc/heap/goal:bytes: 7\n/gc/gogc:percent: 100\n"
    (row,) = dumps(read_text(lines + text))
    assert (row["heap_live_bytes"], row["next_gc_bytes"]) == (None, 7)


def test_a_single_metric_is_no_dump() -> None:
    lines = "".join(f"{line}\n" for line in records(3))
    assert not dumps(read_text(f"{lines}GET /gc/heap/live:bytes 200\n"))


def test_the_cpu_time_of_gc_is_the_sum_of_its_parts() -> None:
    parts = {"gc/mark/assist": 1, "gc/mark/dedicated": 2, "gc/mark/idle": 4, "gc/pause": 0.5}
    others = {"idle": 80, "user": 12, "scavenge/assist": 0.25, "scavenge/background": 0.25}
    text = "".join(
        f"/cpu/classes/{name}:cpu-seconds {s}\n" for name, s in (parts | others).items()
    )
    (row,) = read_text(text).memstats.to_dicts()
    assert (row["gc_cpu_s"], row["available_cpu_s"]) == (7.5, 100)
    without = text.replace("gc/pause", "gc/other").replace("/user", "/others")
    (row,) = read_text(without).memstats.to_dicts()
    assert (row["gc_cpu_s"], row["available_cpu_s"]) == (None, None)
