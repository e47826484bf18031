"""Frames of any kind in, the same kind out."""

from __future__ import annotations

import pickle
import sys
from typing import TYPE_CHECKING, Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer import schema
from tests.conftest import CORPUS, SAMPLES

if TYPE_CHECKING:
    from collections.abc import Callable

    from gctrace_analyzer.schema import TableName

LOG = str(SAMPLES / "steady-go1.26.log")
FORMS: dict[str, Callable[[pl.DataFrame], Any]] = {
    "polars": lambda frame: frame,
    "lazy": lambda frame: frame.lazy(),
    "pandas": lambda frame: frame.to_pandas(),
    "arrow": lambda frame: frame.to_arrow(),
}
OF_THE_SCHEMA: tuple[TableName, ...] = (
    "cycles", "processes", "scavenges", "pacer", "scans", "rejected", "windows", "pauses",
)  # fmt: skip
"""Tables that have the columns of the schema and no others."""


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> Callable[[pl.DataFrame], Any]:
    chosen: Callable[[pl.DataFrame], Any] = FORMS[request.param]
    return chosen


def test_add_metrics_gives_back_the_kind_it_was_given(
    form: Callable[[pl.DataFrame], Any],
) -> None:
    given = form(gca.cycles(LOG))
    derived = gca.add_metrics(given)
    assert type(derived) is type(given)
    names = (
        derived.column_names if isinstance(derived, pa.Table) else list(gca_columns(derived))
    )
    assert names == schema.names("cycles") + schema.names("metrics")


def gca_columns(frame: Any) -> list[str]:
    return (
        frame.collect_schema().names()
        if isinstance(frame, pl.LazyFrame)
        else list(frame.columns)
    )


def test_metrics_are_the_same_for_every_kind(form: Callable[[pl.DataFrame], Any]) -> None:
    expected = gca.add_metrics(gca.cycles(LOG))
    derived = gca.add_metrics(form(gca.cycles(LOG)))
    mine = derived.collect() if isinstance(derived, pl.LazyFrame) else pl.DataFrame(derived)
    for name in ("gc_cpu_share", "alloc_mib_per_s", "effective_gogc", "stw_total_ms"):
        assert mine[name].to_list() == pytest.approx(expected[name].to_list(), nan_ok=True)


def test_a_run_comes_back_from_a_frame(form: Callable[[pl.DataFrame], Any]) -> None:
    run = gca.read(LOG)
    again = gca.from_frame(form(run.cycles))
    assert again.summary().to_dict() == run.summary().to_dict()
    assert again.processes["cycles"].to_list() == run.processes["cycles"].to_list()


def test_a_frame_without_processes_is_stitched() -> None:
    cycles = gca.cycles(str(CORPUS / "gctrace/go1.12-restart/run.log"))
    again = gca.from_frame(cycles.drop("process"))
    assert again.cycles["process"].to_list() == cycles["process"].to_list()


def test_a_frame_with_only_some_columns_is_enough() -> None:
    run = gca.from_frame(
        pd.DataFrame({"gc_num": [1, 2], "start_s": [0.1, 0.4], "stw_mark_term_ms": [1.0, 2.0]})
    )
    summary = run.summary()
    assert summary.cycles == 2
    assert summary.gc_per_s == pytest.approx(1 / 0.3)
    assert summary.gc_cpu_share is None


def test_a_frame_without_goals_says_nothing_of_gogc() -> None:
    frame = gca.cycles(LOG).select("gc_num", "start_s", "heap_live_mib")
    run = gca.from_frame(frame)
    assert "GC019" not in run.findings()["id"].to_list()
    assert "GOGC is off" not in str(run.summary())
    assert " –  ms" not in str(run.summary())


MISSING = {
    "start_s": ["span_s", "gc_per_s", "gc_cpu_share", "alloc_total_mib", "alloc_mib_per_s"],
    "assist_cpu_ms": ["gc_cpu_with_idle_share", "gc_cpu_nonidle_share"],
    "background_cpu_ms": ["gc_cpu_with_idle_share", "gc_cpu_nonidle_share"],
    "idle_cpu_ms": ["gc_cpu_with_idle_share", "gc_cpu_nonidle_share"],
    "heap_start_mib": ["alloc_total_mib", "alloc_mib_per_s", "true_live_heap_mib"],
    "heap_end_mib": ["alloc_total_mib", "alloc_mib_per_s", "heap_peak_mib"],
    "heap_live_mib": ["alloc_total_mib", "alloc_mib_per_s", "live_heap_p50_mib"],
    "heap_goal_mib": ["heap_goal_p50_mib", "effective_gogc_p50"],
    "procs": ["alloc_total_mib", "alloc_mib_per_s"],
}
"""The figures that need a column."""


@pytest.mark.parametrize("log", ["steady-go1.26", "thrash-go1.19", "steady-go1.9"])
@pytest.mark.parametrize(
    "column", sorted({*schema.names("cycles")} - {"gc_num", "process", "line_no"})
)
def test_a_missing_column_is_unknown_and_never_zero(log: str, column: str) -> None:
    frame = gca.cycles(SAMPLES / f"{log}.log")
    run, whole = (gca.from_frame(part) for part in (frame.drop(column), frame))
    figures, known = run.summary().to_dict(), whole.summary().to_dict()
    assert {figures[name] for name in MISSING.get(column, ())} <= {None}
    # Truncation is corrected less exactly without the column.
    for name in (
        "gc_cpu_share",
        "gc_cpu_with_idle_share",
        "alloc_mib_per_s",
        "alloc_total_mib",
    ):
        assert figures[name] is None or figures[name] == pytest.approx(known[name], rel=0.1)
    (setting, *_), (real, *_) = run.regimes().to_dicts(), whole.regimes().to_dicts()
    for name in ("gogc_pct", "memory_limit_mib"):
        assert setting[name] in (None, real[name])
    why = run.recommend()["why"][0]
    assert "values that no program can have" not in why


def test_a_frame_of_something_else_is_a_clear_error() -> None:
    with pytest.raises(gca.MissingColumnsError, match="lacks gc_num"):
        gca.from_frame(pl.DataFrame({"a": [1]}))
    with pytest.raises(gca.MissingColumnsError, match="lacks process"):
        gca.add_metrics(pl.DataFrame({"gc_num": [1]}))
    with pytest.raises(TypeError, match="pandas, polars or Arrow"):
        gca.from_frame([1, 2])


def test_numbers_that_are_texts_are_a_clear_error(
    form: Callable[[pl.DataFrame], Any],
) -> None:
    texts = gca.cycles(LOG).with_columns(heap_live_mib=pl.lit("about 5"))
    for use in (gca.add_metrics, gca.from_frame):
        with pytest.raises(gca.BadSettingError, match="heap_live_mib of type String"):
            use(form(texts))


def test_a_frame_is_read_like_a_file(form: Callable[[pl.DataFrame], Any]) -> None:
    run = gca.read(LOG, gogc=100)
    frame = form(run.cycles)
    again = gca.read(frame, gogc=100, thresholds={"gc_cpu_warn": 0.01})
    assert again.summary().to_dict() == run.summary().to_dict()
    assert len(gca.cycles(frame)) == len(run.cycles)
    assert gca.compare(frame, frame)["gc_per_s"].verdict == "~"
    with pytest.raises(gca.BadSettingError, match="a frame alone"):
        gca.read(frame, LOG)


def test_cycles_out_of_order_are_refused(form: Callable[[pl.DataFrame], Any]) -> None:
    shuffled = form(gca.cycles(LOG).sort("stw_sweep_term_ms"))
    wrong = (
        r"gc_num 2 after gc_num 14 of process 0, in row 1 .*\n.*\.sort\(.process., .gc_num.\)"
    )
    with pytest.raises(gca.BadSettingError, match=wrong):
        gca.from_frame(shuffled)
    with pytest.raises(gca.BadSettingError, match=wrong):
        gca.add_metrics(shuffled)


def test_two_logs_with_one_process_number_are_refused() -> None:
    first, second = gca.cycles(LOG), gca.cycles(str(SAMPLES / "ballast-go1.26.log"))
    for both in (pl.concat([first, second]), pl.concat([first, second]).sort("gc_num")):
        with pytest.raises(gca.BadSettingError, match="log a process number of their own"):
            gca.from_frame(both)
        with pytest.raises(gca.BadSettingError, match="log a process number of their own"):
            gca.add_metrics(both)
    own = pl.concat([first, second.with_columns(pl.col("process") + 1)])
    assert gca.from_frame(own).processes["cycles"].to_list() == [len(first), len(second)]
    mixed = own.sort("start_s")
    assert gca.from_frame(mixed).summary().cycles == len(own)


@pytest.mark.parametrize("folder", ["inputs", "gctrace", "wild", "broken", "real"])
def test_what_was_read_is_in_order(folder: str) -> None:
    logs = 0
    for path in sorted((CORPUS / folder).rglob("*")):
        if not path.is_file() or path.suffix in (".json", ".md"):
            continue
        try:
            cycles = gca.cycles(str(path))
        except gca.GctraceError:
            continue
        logs += 1
        assert len(gca.from_frame(cycles).cycles) == len(gca.add_metrics(cycles))
    assert logs


def test_order_cannot_be_seen_without_numbers() -> None:
    frame = gca.cycles(LOG).with_columns(gc_num=pl.lit(None, pl.Int64))
    assert len(gca.add_metrics(frame)) == len(frame)


def test_integers_with_gaps_stay_integers_in_pandas() -> None:
    frame = gca.read(str(CORPUS / "gctrace/pre-1.9/go1.4.log")).to_pandas()
    assert frame["heap_goal_mib"].dtype == "Int64"
    assert frame["gc_num"].dtype == "int64"
    assert frame["gc_num"].tolist() == list(range(1, 21))
    assert frame["forced"].dtype == "bool"


def test_every_table_becomes_pandas() -> None:
    run = gca.read(str(SAMPLES / "pacertrace-go1.16.log"))
    tables: tuple[TableName, ...] = (*OF_THE_SCHEMA, "metrics")
    for name in tables:
        frame = run.to_pandas(name)
        assert list(frame.columns) == run.table(name).columns
        assert len(frame) == len(run.table(name))


def test_a_pandas_frame_keeps_its_index() -> None:
    frame = gca.read(LOG).to_pandas().set_index("gc_num", drop=False).iloc[5:9]
    assert gca.add_metrics(frame).index.tolist() == [6, 7, 8, 9]


def test_a_missing_extra_names_the_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        gca.MissingExtraError, match=r"pip install 'gctrace-analyzer\[pandas\]'"
    ):
        gca.read(LOG).to_pandas()


def test_columns_are_those_of_the_schema() -> None:
    run = gca.read(str(SAMPLES / "pacertrace-go1.16.log"))
    for table in OF_THE_SCHEMA:
        assert dict(run.table(table).schema) == schema.polars_schema(table), table
    for table in ("cycles", "metrics"):
        assert set(schema.names(table)) <= set(run.table("metrics").columns)


def test_a_shuffled_frame_without_processes_is_refused() -> None:
    """Each place where the order was changed would be a restart, and half of the times lost."""
    cycles = gca.cycles(LOG).drop("process")
    for mixed in (cycles.sample(fraction=1, shuffle=True, seed=1), cycles.reverse()):
        for frame in (mixed, mixed.drop("line_no")):
            with pytest.raises(gca.BadSettingError, match="sort them by line_no"):
                gca.from_frame(frame)


def test_restarts_in_a_frame_without_processes_are_recognised() -> None:
    cycles = gca.cycles(SAMPLES / "restart-go1.26.log").drop("process")
    assert len(gca.from_frame(cycles).processes) == 2
    # The first process is known from its middle on: by time it would follow the second one.
    late = cycles.slice(20).with_columns(
        start_s=pl.col("start_s") + pl.when(pl.int_range(pl.len()) < 14).then(900).otherwise(0),
        gc_num=pl.col("gc_num") + pl.when(pl.int_range(pl.len()) < 14).then(500).otherwise(0),
    )
    for frame in (late, late.drop("line_no")):
        assert len(gca.from_frame(frame).processes) == 2


@pytest.mark.parametrize("column", ["forced", "start_s", "heap_live_mib"])
def test_a_column_of_another_kind_is_named(column: str) -> None:
    frame = gca.cycles(LOG).with_columns(pl.lit("no").alias(column))
    with pytest.raises(gca.BadSettingError, match=f"{column} of type String"):
        gca.from_frame(frame)


def test_nan_is_an_unknown_value() -> None:
    frame = gca.cycles(LOG).with_columns(start_s=pl.lit(float("nan")))
    assert gca.from_frame(frame).summary().gc_cpu_share is None


def test_lines_are_whole_numbers() -> None:
    run = gca.read(LOG)
    assert len(run.line_range(1, 20).cycles) == 9
    first, last = run.cycles.to_pandas()["line_no"].iloc[[0, 4]]
    assert len(run.line_range(first, last).cycles) == 5, "numbers of NumPy"
    with pytest.raises(gca.BadSettingError, match=r"invalid value '1' for first"):
        run.line_range("1", 2)  # type: ignore[arg-type]
    with pytest.raises(gca.BadSettingError, match="Expected a line at or after 5"):
        run.line_range(5, 2)


def test_a_run_can_be_sent_to_another_process() -> None:
    run = gca.read(LOG)
    advised = run.recommend()
    again = pickle.loads(pickle.dumps(run))
    assert again.recommend().equals(advised)
    assert again.whatif(gogc=400).equals(run.whatif(gogc=400))


def test_a_frame_of_numbers_alone_shows_no_costs() -> None:
    run = gca.from_frame(gca.cycles(LOG).select("gc_num"))
    text = " ".join(str(run.summary()).split())
    assert "The input does not show what GC costs." in text
    assert "Go 1.4" not in text
    assert run.recommend()["why"][0].startswith(
        "no recommendation: the cycles have no start_s, heap_start_mib, "
    )


def test_a_renamed_column_is_named_in_a_warning() -> None:
    cycles = gca.cycles(LOG)
    with pytest.warns(
        gca.GctraceWarning, match="has no heap_live_mib, but unknown columns: live"
    ):
        gca.from_frame(cycles.rename({"heap_live_mib": "live"}))
    # Neither columns that are left out nor columns in addition are a mistake.
    gca.from_frame(cycles.drop("heap_live_mib"))
    gca.from_frame(gca.add_metrics(cycles).with_columns(pod=pl.lit("a")))
