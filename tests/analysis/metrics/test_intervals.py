"""Intervals between dumps, and the runs of a part of them."""

from __future__ import annotations

import gzip
import json
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer import schema
from gctrace_analyzer.analysis.metrics.intervals import intervals
from gctrace_analyzer.analysis.settings.known import Known, Settings
from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.testing import read_text
from tests.helpers.intervals import between_dumps
from tests.helpers.logs import logfile
from tests.helpers.metrics import CORPUS, recording

if TYPE_CHECKING:
    from pathlib import Path

RAW = "own/gogc100/query-raw.json.gz"


def test_intervals_have_the_columns_of_the_schema() -> None:
    run = recording(RAW).run
    assert run.intervals.columns == schema.names("intervals")
    assert run.table("intervals").equals(run.intervals)
    assert set(between_dumps(run)["source_kind"]) == {"Prometheus JSON"}


def test_read_columns_are_not_named_as_estimated() -> None:
    assert between_dumps(recording(RAW).run)["estimated"].list.len().sum() == 0
    by_goal = recording("caddy/gogc100/query-raw.json.gz").run
    assert set(between_dumps(by_goal)["estimated"].explode()) == {"heap_live_mib"}
    assert "live_heap_p50_mib" in by_goal.summary().estimated
    assert "live_heap_p50_mib" not in recording(RAW).run.summary().estimated


def test_gc_cpu_from_the_fraction_needs_the_start_of_the_process() -> None:
    by_ring = recording("own/gogc100/expvar.jsonl.gz").run
    young = recording("own/gogc100/memstats.csv.gz").run
    late = recording("own/otel-old/memstats.csv.gz").run
    by_classes = recording(RAW).run.summary().gc_cpu_share
    for run in (by_ring, young):
        assert run.summary().gc_cpu_share == pytest.approx(by_classes, rel=0.2)
        assert "gc_cpu_share" in run.summary().estimated
    assert late.summary().gc_cpu_share is None
    assert any(
        "because the start time of the process is unknown" in w for w in late.summary().warnings
    )


def test_the_ring_of_a_dump_has_each_pause_once() -> None:
    run = recording("own/gogc100/expvar.jsonl.gz").run
    pauses = run.cycle_pauses
    assert pauses["gc_num"].to_list() == list(range(1, 134))
    observed = pauses.filter(pl.col("gc_num") > 133 - 127)
    assert observed["pause_ms"].sum() == pytest.approx(run.summary().stw_total_ms, rel=1e-6)
    (row,) = run.pauses().to_dicts()
    assert (row["pauses"], row["max_gc"]) == (127, 125)


def test_percentiles_are_of_the_pauses_that_the_longest_is_of(tmp_path: Path) -> None:
    """The ring of the first dump also has the long pauses of the start-up."""
    ring = [9_000_000, 8_000_000, 7_000_000, 1_000_000, 2_000_000, 3_000_000]
    lines = [
        json.dumps(
            {
                "Alloc": 1,
                "TotalAlloc": n,
                "Sys": 10,
                "Lookups": 0,
                "HeapSys": 9,
                "NextGC": 9,
                "NumGC": n,
                "time": f"2026-11-23T03:13:{n:02}Z",
                "PauseTotalNs": sum(ring[:n]),
                "PauseNs": ring[:n] + [0] * (256 - n),
                "PauseEnd": [10**18 + 10**9 * each for each in range(n)] + [0] * (256 - n),
            }
        )
        for n in (3, 4, 5, 6)
    ]
    run = gca.read(logfile(tmp_path / "dumps.jsonl", lines))
    (row,) = run.pauses().to_dicts()
    assert (row["pauses"], row["total_ms"], row["max_ms"], row["max_gc"]) == (3, 6, 3, 6)
    assert row["p50_ms"] == run.summary().stw_p50_ms == 2
    assert row["p99_ms"] <= row["max_ms"]


def test_dumps_without_times_are_placed_by_their_last_cycle(tmp_path: Path) -> None:
    text = (CORPUS / "own/gogc100/expvar.jsonl.gz").read_bytes()
    timed = gca.read(CORPUS / "own/gogc100/expvar.jsonl.gz")
    path = tmp_path / "vars.jsonl"
    path.write_bytes(re.sub(rb'"time":[\d.]+,', b"", gzip.decompress(text)))
    run = gca.read(path)
    assert run.summary().gc_per_s == pytest.approx(timed.summary().gc_per_s, rel=0.02)
    assert "end_s" in between_dumps(run)["estimated"][0]


def test_one_process_of_several() -> None:
    run = recording("own/restart/query-raw.json.gz").run
    second = run.process(1)
    assert set(between_dumps(second)["process"]) == {1}
    assert second.summary().cycles == 64


def test_a_part_of_the_time() -> None:
    run = recording(RAW).run
    part = run.between("10s", "30s")
    assert between_dumps(part)["begin_s"].min() >= 10  # type: ignore[operator]
    assert between_dumps(part)["end_s"].max() <= 30  # type: ignore[operator]
    assert 0 < part.summary().cycles < run.summary().cycles
    with pytest.raises(BadSettingError, match="the input covers"):
        run.between("1h", "2h")


def test_a_part_of_the_time_of_dumps_without_dates_says_why_not() -> None:
    page = "go_gc_duration_seconds_count {n}\ngo_memstats_last_gc_time_seconds {at}\n"
    text = "".join(page.format(n=n, at=1_770_000_000 + 5 * n) for n in range(1, 7))
    with pytest.raises(BadSettingError, match="those of this one have none"):
        read_text(text).between("1s", "9s")


def test_windows_have_the_totals_of_the_intervals() -> None:
    run = recording(RAW).run
    windows = run.windows("10s")
    assert windows["start_s"].to_list() == [0, 10, 20, 30, 40, 50, 60]
    assert windows["cycles"].sum() == pytest.approx(run.summary().cycles, abs=3)
    share = windows["gc_cpu_share"].mean()
    assert share == pytest.approx(run.summary().gc_cpu_share, rel=0.3)


def test_the_figures_of_intervals_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "dumps.csv"
    dumps = [("125", 10), ("375", 12), ("875", 20)]
    lines = [
        f"2026-02-03T10:00:00.{ms}Z,{n},{4 * n << 20},{3 << 20},{500_000 * n},{12 << 20}"
        for ms, n in dumps
    ]
    path.write_text("time,NumGC,TotalAlloc,HeapAlloc,PauseTotalNs,Sys\n" + "\n".join(lines))
    first, second = between_dumps(gca.read(path)).to_dicts()
    assert (first["begin_s"], first["end_s"], second["end_s"]) == (0, 0.25, 0.75)
    assert (first["gc_cycles"], second["gc_cycles"]) == (2, 8)
    assert (first["gc_per_s"], second["gc_per_s"]) == (8, 16)
    assert (first["alloc_mib"], second["alloc_mib"]) == (8, 32)
    assert (first["alloc_mib_per_s"], second["alloc_mib_per_s"]) == (32, 64)
    assert (first["stw_total_ms"], second["stw_total_ms"]) == (1, 4)
    assert (first["heap_alloc_mib"], second["line_no"]) == (3, 4)


AT = datetime(2026, 2, 3, 10, tzinfo=UTC)
S = 10**9


def dumps(*changed: dict[str, Any]) -> pl.DataFrame:
    """Returns dumps; `t` is the time in seconds after `AT`, `last` that of the last cycle."""
    types = schema.polars_schema("memstats")
    rows = []
    for row in changed:
        own = {**dict.fromkeys(types), "process": 0, "source": "log", **row}
        at, last = own.pop("t", None), own.pop("last", None)
        own["logged_at"] = None if at is None else AT + timedelta(seconds=at)
        if last is not None:
            own["last_gc_unix_ns"] = round((AT.timestamp() + last) * S)
        rows.append(own)
    return pl.DataFrame(rows, schema=types)


def pauses_of(*changed: dict[str, Any]) -> pl.DataFrame:
    types = schema.polars_schema("cycle_pauses")
    rows = [{**dict.fromkeys(types), "process": 0, **row} for row in changed]
    return pl.DataFrame(rows, schema=types)


def found(
    memstats: pl.DataFrame, pauses: pl.DataFrame | None = None, settings: Settings | None = None
) -> Any:
    table = pauses_of() if pauses is None else pauses
    return intervals(memstats, table, settings or Settings()).to_dicts()


def test_counters_of_successive_dumps_are_subtracted() -> None:
    first, second, other = found(
        dumps(
            # In another order, one repeated, and the counter of the third fell.
            {"t": 30, "num_gc": 9, "total_alloc_bytes": 60 << 20, "heap_alloc_bytes": 3 << 20},
            {"t": 0, "num_gc": 10, "total_alloc_bytes": 10 << 20, "heap_alloc_bytes": 1 << 20},
            {"t": 10, "num_gc": 0, "total_alloc_bytes": 5, "heap_alloc_bytes": 5},
            {"t": 10, "num_gc": 14, "total_alloc_bytes": 50 << 20, "heap_alloc_bytes": 2 << 20},
            # The same sample again is none.
            {"t": 20, "num_gc": 14, "total_alloc_bytes": 50 << 20, "heap_alloc_bytes": 2 << 20},
            {"process": 1, "t": 0, "num_gc": 1},
            {"process": 1, "t": 5, "num_gc": 2},
            {"process": 2, "t": 5, "num_gc": 2},
            {"process": None, "t": 6, "num_gc": 3},
        )
    )
    assert (first["length_s"], first["gc_cycles"], first["gc_per_s"]) == (10, 4, 0.4)
    assert (first["alloc_mib"], first["alloc_mib_per_s"]) == (40, 4)
    assert (first["begin_at"], first["end_at"]) == (AT, AT + timedelta(seconds=10))
    assert (second["length_s"], second["gc_cycles"], second["alloc_mib"]) == (20, None, 10)
    assert (other["process"], other["gc_cycles"], other["length_s"]) == (1, 1, 5)
    assert [each["heap_alloc_mib"] for each in (first, second, other)] == [2, 3, None]


def test_the_start_of_a_process_is_known_or_estimated() -> None:
    two = ({"t": 100, "num_gc": 10}, {"t": 200, "num_gc": 110})
    # Ten cycles took 10 s, a tenth of the 100 s: the process is young.
    (young,) = found(dumps(*two))
    assert young["start_is_estimate"]
    # An estimate is no time that the input has.
    assert (young["begin_s"], young["end_s"]) == (0, 100)
    # Eleven did not; then the first dump is where time begins.
    (old,) = found(dumps({"t": 100, "num_gc": 11}, {"t": 200, "num_gc": 111}))
    assert (old["begin_s"], old["end_s"]) == (0, 100)
    ended = [{"gc_num": n, "ended_at": AT + timedelta(seconds=n * 60)} for n in (2, 1)]
    (by_ring,) = found(dumps(*two), pauses_of(*ended))
    assert (by_ring["begin_s"], by_ring["start_is_estimate"]) == (40, True)
    started = [{**row, "started_at": AT + timedelta(seconds=30)} for row in two]
    (by_start,) = found(dumps(*started), pauses_of(*ended))
    assert (by_start["begin_s"], by_start["start_is_estimate"]) == (70, False)


def test_gc_cpu_from_the_average_since_the_start() -> None:
    """25 % until 100 s and 30 % until 200 s: 35 % in between."""
    started = {"started_at": AT, "procs": 4}
    one = {"t": 110, "num_gc": 5, "gc_cpu_fraction": 0.25, "last": 100, **started}
    two = {"t": 210, "num_gc": 9, "gc_cpu_fraction": 0.30, "last": 200, **started}
    (row,) = found(dumps(one, two))
    assert row["gc_cpu_share"] == pytest.approx(0.35)
    assert row["gc_cpu_base"] == pytest.approx(100)
    assert row["gc_cpu_s"] == pytest.approx(0.35 * 100 * 4)
    assert row["available_cpu_s"] == pytest.approx(400)
    assert row["ends_s"] == pytest.approx(100)
    assert row["estimated"] == []
    # Before the first cycle, nothing was spent.
    (first,) = found(
        dumps({**one, "t": 0, "num_gc": 0, "gc_cpu_fraction": 0.0, "last": None}, one)
    )
    assert first["gc_cpu_share"] == pytest.approx(0.25)
    assert first["ends_s"] is None
    # A falling average is rounding, not a negative share.
    (least,) = found(dumps(one, {**two, "gc_cpu_fraction": 0.1}))
    assert least["gc_cpu_share"] == 0
    (same,) = found(dumps(one, {**two, "last": 100}))
    assert same["gc_cpu_share"] is None
    estimated = [{**row, "started_at": None, "num_gc": n} for row, n in ((one, 1), (two, 101))]
    (young,) = found(dumps({**estimated[0], "last": 109.5}, estimated[1]))
    assert young["estimated"] == ["gc_cpu_share", "gc_cpu_s"]
    # If the start is only known to be before the first cycle, its cost is unknown.
    (unknown,) = found(dumps(*estimated))
    assert unknown["gc_cpu_share"] is None


def test_gc_cpu_from_cpu_classes() -> None:
    cpu = [
        {"available_cpu_s": 100.0, "gc_cpu_s": 20.0, "gc_cpu_idle_s": 5.0, "gc_cpu_assist_s": 1.0,
         "gc_cpu_pause_s": 0.5, "process_cpu_s": 50.0, "pause_total_ns": 10**6, "procs": 4},
        {"available_cpu_s": 140.0, "gc_cpu_s": 32.0, "gc_cpu_idle_s": 7.0, "gc_cpu_assist_s": 4.0,
         "gc_cpu_pause_s": 1.5, "process_cpu_s": 80.0, "pause_total_ns": 9 * 10**6, "procs": 4},
    ]  # fmt: skip
    (row,) = found(dumps(*({"t": 10 * n, "num_gc": n, **each} for n, each in enumerate(cpu))))
    assert row["gc_cpu_s"] == pytest.approx(12 - 2)
    assert row["gc_cpu_share"] == pytest.approx(10 / 40)
    assert (row["gc_cpu_base"], row["available_cpu_s"]) == (40, 40)
    assert (row["idle_cpu_s"], row["assist_cpu_s"], row["pause_cpu_s"]) == (2, 3, 1)
    assert (row["cpu_s"], row["stw_total_ms"], row["procs"]) == (30, 8, 4)
    assert row["by_fraction"] is False


@pytest.mark.parametrize(
    ("last", "active"), [(None, None), (0, False), (5, False), (10, False), (11, True)]
)
def test_the_limiter_was_active_if_it_was_enabled_since_the_dump_before(
    last: int | None, active: bool | None
) -> None:
    rows = ({"t": n, "num_gc": 10 + n, "limiter_last_gc": last} for n in range(2))
    (row,) = found(dumps(*rows))
    assert row["limiter_active"] is active


def test_settings_are_those_of_the_dumps_then_those_given() -> None:
    plain = ({"t": 0, "num_gc": 1}, {"t": 1, "num_gc": 2})
    given = {"gogc": Known(50.0, "given"), "memory_limit_mib": Known(64.0, "given")}
    (row,) = found(dumps(*plain), settings=Settings(**given))
    assert (row["gogc_pct"], row["memory_limit_mib"], row["limit_known"]) == (50, 64, True)
    (off,) = found(dumps(*plain), settings=Settings(gogc=Known("off", "given")))
    assert (off["gogc_pct"], off["memory_limit_mib"], off["limit_known"]) == (-1, None, False)
    # Settings found in the metrics of another process are not those of this one.
    elsewhere = {name: Known(each.value, "metrics") for name, each in given.items()}
    (other,) = found(dumps(*plain), settings=Settings(**elsewhere))
    assert (other["gogc_pct"], other["memory_limit_mib"], other["limit_known"]) == (
        None,
        None,
        False,
    )
    own = [{**row, "gogc_pct": 200, "gomemlimit_bytes": 32 << 20} for row in plain]
    (read,) = found(dumps(*own), settings=Settings(**given))
    assert (read["gogc_pct"], read["memory_limit_mib"], read["limit_known"]) == (200, 32, True)


@pytest.mark.parametrize(
    ("pauses", "second", "longest"),
    [
        # Both cycles between the dumps have a pause of their own.
        ([(1, 9.0), (2, 3.0), (3, 4.0), (4, 8.0)], {}, 4.0),
        ([(2, 3.0), (2, 7.0), (3, 4.0)], {}, 4.0),
        # One is missing, so the maximum is unknown, unless the last 256 have a new one.
        ([(2, 3.0)], {}, None),
        ([(2, 3.0)], {"pause_max_s": 0.006}, 6.0),
        ([(2, 3.0)], {"pause_max_s": 0.005}, None),
        ([], {"pause_max_s": 0.001, "num_gc": 257}, 1.0),
        ([], {"pause_max_s": 0.001, "num_gc": 256}, None),
        ([], {"num_gc": 2}, 2.0),
        ([], {"num_gc": 1, "pause_max_s": 0.006}, None),
    ],
)
def test_the_longest_pause_between_two_dumps(
    pauses: list[tuple[int, float]], second: dict[str, Any], longest: float | None
) -> None:
    first = {"t": 0, "num_gc": 1, "pause_total_ns": 0, "pause_max_s": 0.005}
    after = {"t": 1, "num_gc": 3, "pause_total_ns": 2 * 10**6, "pause_max_s": 0.005, **second}
    table = pauses_of(*({"gc_num": n, "pause_ms": ms} for n, ms in pauses))
    (row,) = found(dumps(first, after), table)
    assert row["stw_max_ms"] == pytest.approx(longest)


def test_dumps_without_times_are_as_late_as_their_last_cycle() -> None:
    rows = found(
        dumps(
            {"num_gc": 0, "last_gc_unix_ns": 0},
            {"num_gc": 4, "last": 10, "total_alloc_bytes": 0},
            {"num_gc": 9, "last": 30, "total_alloc_bytes": 10 << 20},
        )
    )
    (row,) = rows
    assert (row["gc_cycles"], row["length_s"], row["is_timeless"]) == (
        5,
        pytest.approx(20),
        True,
    )
    assert row["estimated"] == ["begin_s", "end_s", "alloc_mib_per_s"]


def test_times_to_the_second_give_a_range_of_rates() -> None:
    head = "time,alloc_mb,sys_mb,num_gc\n"
    at = [(0, 2), (0, 6), (3, 40), (3, 50)]
    rows = [f"2026-11-29T09:02:1{s}Z,{20 + n},68,{n}" for s, n in at]
    run = read_text(head + "\n".join(rows) + "\n")
    assert run.summary().cycles == 48
    assert "GC runs 12.0–24.0 times a second" in (text := run.to_markdown())
    assert "median" not in text
