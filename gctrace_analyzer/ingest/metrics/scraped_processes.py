"""Recognises the processes behind dumps of MemStats and scrapes of metrics.

Rows with the same labels belong to one process until it restarts: its start time changes, or a
counter falls. Two jobs that scrape one process are one process if instance and start time agree;
the job with more metrics is kept, and the other one fills what it lacks.
"""

from __future__ import annotations

from collections import Counter

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.ingest import believable
from gctrace_analyzer.schema import IDENTITY
from gctrace_analyzer.units import digits

_COUNTERS = ("num_gc", "total_alloc_bytes")
_SAME_START_US = 1_000_000
_ONE_SCRAPE_US = 60_000_000
"""Largest time between two jobs with one scrape each, in µs."""

_HIDDEN = ("target", "same_target")


def with_processes(
    memstats: pl.DataFrame, known: pl.DataFrame, cycles: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame, Counter[str], list[str]]:
    """Returns the rows with `process`, and the rows for the table of processes.

    The third result counts the values, by column, that became null because they contradict others;
    the fourth has a note for each source whose dumps are not of the process of the log.

    Args:
        memstats: the rows of every source, with `target` and `same_target` where labels are
            known.
        known: the processes of the cycles in the same log. If there are some, dumps belong to the
            process that started at the same time, or to the only one. Restarts under the same
            labels get further numbers; all other dumps have no process.
        cycles: of these processes.
    """
    if memstats.is_empty():
        return memstats, pl.DataFrame(), Counter(), []
    ordered, contradicting = believable.of_dumps(_ordered(memstats.with_row_index("row")))
    rows = _joined(_with_lives(ordered))
    order = rows.group_by("life").agg(begin=pl.col("t_us").min(), first=pl.col("row").min())
    order = order.sort("begin", "first", nulls_last=True).with_row_index("number")
    rows = rows.join(
        order.select("life", process=pl.col("number").cast(pl.Int64)),
        on="life", how="left", maintain_order="left",
    )  # fmt: skip
    shown = _processes(rows)
    of_others = _contradictions(memstats, cycles) if len(known) == 1 else {}
    if len(known):
        own = rows.filter(~pl.col("source").cast(pl.String).is_in([*of_others]))
        matches = _matches(_of(own, shown), known)
        if len(known) == 1 and not matches:
            # Dumps between the cycles are of their program; those of another file may not be.
            matches = _matches(_of(own.filter(source=known["source"][0]), shown), known)
        numbers = _numbered(own, matches, known)
        rows = rows.with_columns(
            pl.col("process").replace_strict(
                numbers,
                default=None,
                return_dtype=pl.Int64,
            )
        )
    given = [*memstats.columns, *(["process"] if "process" not in memstats.columns else [])]
    kept = [name for name in given if name not in _HIDDEN]
    return rows.sort("row").select(kept), shown, contradicting, [*of_others.values()]


def _of(rows: pl.DataFrame, shown: pl.DataFrame) -> pl.DataFrame:
    """Returns the processes of some rows."""
    return shown.filter(pl.col("process").is_in(rows["process"].implode()))


def _contradictions(memstats: pl.DataFrame, cycles: pl.DataFrame) -> dict[str, str]:
    """Returns why the dumps of a source are not of the process of a log.

    The log must begin with the first cycle.
    """
    pauses_ms = pl.col("stw_sweep_term_ms") + pl.col("stw_mark_term_ms")
    printed = cycles.select("gc_num", ms=pauses_ms.cum_sum()).with_row_index("row", 1)
    dumps = memstats.select(
        pl.col("source").cast(pl.String), "num_gc", counted_ms=pl.col("pause_total_ns") / 1e6
    )
    both = printed.filter(pl.col("row") == pl.col("gc_num")).join(
        dumps, left_on="gc_num", right_on="num_gc"
    )
    ms, counted_ms = pl.col("ms"), pl.col("counted_ms")
    is_near = counted_ms.is_between(ms / _NEAR - _NEAR_MS, ms * _NEAR + _NEAR_MS)
    other = both.filter(~is_near).unique("source", keep="first", maintain_order=True)
    return {
        source: (
            f"The memory statistics in {source} are not of the process of the log: up to cycle "
            f"{number:,} they count {digits(counted_ms, 2)} ms of pauses, and the log has "
            f"{digits(ms, 2)} ms. Report on each by itself."
        )
        for source, number, ms, counted_ms in other.select(
            "source", "gc_num", "ms", "counted_ms"
        ).iter_rows()
    }


_NEAR, _NEAR_MS = 1.5, 1.0
"""How far the pauses in a log and in dumps of its process are apart at most: ratio and rest."""


def with_process(pauses: pl.DataFrame, memstats: pl.DataFrame) -> pl.DataFrame:
    """Returns single pauses with the process of the dump in which they were found."""
    if pauses.is_empty():
        return schema.conform("cycle_pauses", pl.DataFrame())
    dumps = memstats.select("source", "line_no", "process").unique(["source", "line_no"])
    cycle_pauses = pauses.join(
        dumps, on=["source", "line_no"], how="left", maintain_order="left"
    )
    # Several files of one process repeat pauses, like the dumps in one file.
    cycle_pauses = cycle_pauses.unique(
        ["process", "gc_num", "ended_at"], keep="first", maintain_order=True
    )
    return schema.conform("cycle_pauses", cycle_pauses)


def _matches(shown: pl.DataFrame, known: pl.DataFrame) -> dict[int, int]:
    """Returns the process in `known` for each process in `shown` that has a match."""
    if len(shown) == len(known) == 1:
        return {shown["process"][0]: known["process"][0]}
    starts = known.drop_nulls("started_at").select("process", "started_at")
    matches = {}
    for number, start in shown.select("process", "started_at").drop_nulls().iter_rows():
        near = (starts["started_at"] - start).dt.total_microseconds().abs()
        if len(near) and near.min() <= _SAME_START_US:
            matches[number] = int(starts["process"][int(near.arg_min() or 0)])
    return matches


def _numbered(
    rows: pl.DataFrame, matches: dict[int, int], known: pl.DataFrame
) -> dict[int, int]:
    """Returns the matches, and further numbers for restarts under the same labels."""
    targets = rows.filter(pl.col("process").is_in(list(matches)))["target"].unique()
    if not matches and len(known) == 1 and rows["target"].n_unique() == 1:
        targets = rows["target"].unique()
    lives = rows.filter(pl.col("target").is_in(targets.implode()))["process"].unique().sort()
    others = [number for number in lives if number not in matches]
    first = int(known["process"].max() or 0) + 1  # type: ignore[arg-type]  # a numeric column
    return matches | dict(zip(others, range(first, first + len(others)), strict=True))


def _ordered(memstats: pl.DataFrame) -> pl.DataFrame:
    """Returns the rows of each target together, in order of time."""
    absent = [name for name in ("target", "same_target") if name not in memstats.columns]
    rows = memstats.drop("process", strict=False).with_columns(
        pl.lit(None, pl.String).alias(name) for name in absent
    )
    identity = pl.concat_str(
        [pl.col("source").cast(pl.String), *(pl.col(name) for name in IDENTITY)],
        separator="\x1f", ignore_nulls=True,
    )  # fmt: skip
    own = pl.coalesce(
        pl.col("logged_at").dt.epoch("us"), (pl.col("elapsed_s") * 1e6).cast(pl.Int64)
    )
    rows = rows.with_columns(target=pl.coalesce("target", identity), t_us=own)
    known = pl.col("t_us").is_not_null()
    return rows.sort("target", known, "t_us", maintain_order=True)


def _with_lives(rows: pl.DataFrame) -> pl.DataFrame:
    fell = [pl.col(name).forward_fill().diff().over("target") < 0 for name in _COUNTERS]
    moved = (
        pl.col("started_at").forward_fill().dt.epoch("us").diff().abs().over("target")
        > _SAME_START_US
    )
    begins = pl.any_horizontal(each.fill_null(value=False) for each in (*fell, moved))
    new_target = (pl.col("target") != pl.col("target").shift()).fill_null(value=True)
    return rows.with_columns(life=(begins | new_target).cum_sum())


def _joined(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns the rows with the runs of one process joined to the best of them.

    During the best run, the others only supply the columns that it lacks.
    """
    numbers = [c.name for c in schema.TABLES["memstats"] if c.dtype in ("Int64", "Float64")]
    known = [name for name in numbers if name in rows.columns and name != "line_no"]
    lives = rows.group_by("life", maintain_order=True).agg(
        pl.col("target").first(),
        pl.col("same_target").first(),
        start=pl.col("started_at").drop_nulls().first().dt.truncate("10ms"),
        begin=pl.col("t_us").min(),
        end=pl.col("t_us").max(),
        step=pl.col("t_us").diff().median().fill_null(_ONE_SCRAPE_US),
        rows=pl.len(),
        known=pl.sum_horizontal(pl.col(name).is_not_null().any() for name in known),
    )
    key = ["same_target", "start"]
    # A job with only a few scrapes is not the better one because it has more metrics.
    is_long = 2 * pl.col("rows") >= pl.col("rows").max().over(key)
    same = (
        lives.drop_nulls([*key, "begin"])
        .filter((pl.len().over(key) > 1) & (pl.col("target").n_unique() == pl.len()).over(key))
        .sort(is_long, "known", "rows", descending=True, maintain_order=True)
    )
    if same.is_empty():
        return rows
    of_best = {
        name: pl.col(name).first().over(key) for name in ("life", "begin", "end", "step")
    }
    best = same.select(pl.col("life"), **{f"best_{k}": each for k, each in of_best.items()})
    rows = rows.join(best, on="life", how="left", maintain_order="left")
    rows = rows.with_columns(
        is_other=(pl.col("best_life") != pl.col("life")).fill_null(value=False)
    )
    low, high = (
        pl.col("best_begin") - pl.col("best_step"),
        pl.col("best_end") + pl.col("best_step"),
    )
    is_spare = pl.col("is_other") & pl.col("t_us").is_between(low, high)
    spare, rows = rows.filter(is_spare), rows.filter(~is_spare)
    rows = rows.with_columns(life=pl.coalesce("best_life", "life"))
    added = ("best_life", "best_begin", "best_end", "best_step", "is_other")
    return _filled(rows, spare, known).drop(added)


def _filled(rows: pl.DataFrame, spare: pl.DataFrame, known: list[str]) -> pl.DataFrame:
    """Returns the rows with columns that their job lacks, from a nearby scrape of `spare`."""
    given = [name for name in known if spare[name].count() and rows[name].null_count()]
    if not given:
        return rows
    near = spare.drop_nulls("t_us").select(
        pl.col("best_life").alias("life"), "t_us", pl.col("t_us").alias("spare_us"),
        pl.col(given).name.prefix("spare_"),
    )  # fmt: skip
    dated = rows.drop_nulls("t_us").sort("t_us", maintain_order=True)
    joined = dated.join_asof(
        near.sort("t_us"), on="t_us", by="life", strategy="nearest", check_sortedness=False
    )
    is_near = (pl.col("t_us") - pl.col("spare_us")).abs() <= 2 * pl.col("best_step")
    joined = joined.with_columns(
        pl.when(pl.col(name).is_null().all().over("life", "is_other") & is_near)
        .then(pl.col(f"spare_{name}"))
        .otherwise(pl.col(name))
        .alias(name)
        for name in given
    )
    undated = rows.filter(pl.col("t_us").is_null())
    return pl.concat([joined.select(rows.columns), undated])


def _processes(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns the table of processes, as far as dumps show it."""
    last_gc = pl.from_epoch(pl.col("last_gc_unix_ns") // 1000, "us").dt.replace_time_zone("UTC")
    version = (
        pl.col("go_version").drop_nulls().last().str.extract(r"^(\d{1,3}\.\d{1,3})(?:\D|$)")
    )
    first, last = (
        getattr(pl.col("num_gc").drop_nulls(), which)() for which in ("first", "last")
    )
    rows = rows.sort("process", "t_us", maintain_order=True)
    table = rows.group_by("process", maintain_order=True).agg(
        pl.when(last > first).then(first + 1).alias("first_gc"),
        last.alias("last_gc"),
        pl.col("started_at").drop_nulls().first(),
        pl.max_horizontal(last_gc.max(), pl.col("logged_at").max()).alias("ended_at"),
        version.alias("go_version_min"),
        version.alias("go_version_max"),
        (last - first).alias("cycles"),
        pl.lit(0, pl.Int64).alias("missing_cycles"),
        *(pl.col(name).drop_nulls().first() for name in ("source", *IDENTITY)),
        pl.col("target").first(),
    )
    restarted = pl.col("process") != pl.col("process").max().over("target")
    ended = pl.when(restarted).then(pl.lit("restart")).otherwise(pl.lit("end of input"))
    return table.with_columns(ended_by=ended).drop("target").sort("process")
