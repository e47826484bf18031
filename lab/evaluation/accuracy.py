"""Compares figures from metrics alone with the gctrace of the same process."""

from __future__ import annotations

import json
import math
import warnings
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

import gctrace_analyzer as gca
from lab.evaluation.predictions import state_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

LAYOUTS = {
    "raw-1s.json.gz": "1 s",
    "raw-15s.json.gz": "15 s",
    "raw-60s.json.gz": "60 s",
    "query_range-15s.json.gz": "query_range, 15 s",
    "expvar.jsonl.gz": "expvar, 15 s",
}
"""How the metrics of a recording were read, by the file."""

FIGURES = {
    "gc_per_s": "cycles/s",
    "stw_total_ms": "pause total",
    "alloc_total_mib": "allocation",
    "live_heap_p50_mib": "live heap",
    "heap_goal_p50_mib": "heap goal",
    "mark_share": "marking CPU",
    "gc_cpu_share": "GC CPU",
}
OF_HEAP = ("live_heap_p50_mib", "heap_goal_p50_mib")
STATES = {
    "thrash": "thrashed (goal at the live heap in half of the cycles)",
    "partly": "thrashed at times (in 15 % of the cycles, or effective GOGC below 12)",
    "tight": "had little room (effective GOGC below 30)",
    "healthy": "was healthy, or had no limit",
}
FEWEST_CYCLES = 5
FEWEST_SAMPLES = 5
ENOUGH_SAMPLES = 20
ROUNDED_MIB = 0.5
"""gctrace prints whole MiB, rounded down: what it leaves out, on average."""
SMALL_MIB = 8
"""Half a MiB is 6 % of this: gctrace does not show the live heap of a smaller one."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One file of metrics and what the gctrace of its time span shows.

    Attributes:
        run: the row of the manifest.
        layout: how the metrics were read.
        given_limits: whether GOGC and the memory limit were given where the metrics lack them.
        samples: the number of scrapes.
        found: the figures from metrics, named as in `FIGURES`; absent if unknown.
        truth: the figures from gctrace, and the allocation from the counter each second.
        thrashing: whether an episode of thrashing was found.
        state: what a memory limit did: `thrash`, `partly`, `tight` or `healthy`.
    """

    run: dict[str, Any]
    layout: str
    given_limits: bool
    samples: int
    found: dict[str, float]
    truth: dict[str, float]
    thrashing: bool
    state: str
    source: gca.Run

    @property
    def name(self) -> str:
        """Returns the folder of the recording."""
        return str(self.run["dir"])

    def error(self, figure: str) -> float | None:
        """Returns found / true - 1; None where either is unknown."""
        found, true = self.found.get(figure), self.truth.get(figure)
        return None if found is None or not true else found / true - 1


def compared(folder: Path, *, given_limits: bool = True) -> Iterator[Compared]:
    """Yields each file of each recording that a folder's manifest.json lists."""
    for run in json.loads((folder / "manifest.json").read_text())["runs"]:
        for name, layout in LAYOUTS.items():
            path = folder / run["dir"] / name
            if path.exists() and (
                one := _compared(path, layout, run, given_limits=given_limits)
            ):
                yield one


def _compared(
    path: Path, layout: str, run: dict[str, Any], *, given_limits: bool
) -> Compared | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            read = _read(path, run, given_limits=given_limits)
        except gca.GctraceError:
            return None
    own = read.intervals.filter(~pl.col("since_start"))
    if own.is_empty() or own["begin_at"][0] is None:
        return None
    begin, end = own["begin_at"][0].timestamp(), own["end_at"][-1].timestamp()
    if path.name.startswith("query_range"):
        begin, end = _scraped_at(path, begin), _scraped_at(path, end)
        if begin < run["window_unix_s"][0]:
            # Its first value was scraped before the recording began.
            return None
    cycles = _cycles(path.parent, run).filter(
        pl.col("ended_unix_s").is_between(begin, end, closed="right")
    )
    if len(cycles) < FEWEST_CYCLES:
        return None
    figures = read.summary().to_dict()
    found = {name: figures[name] for name in FIGURES if figures.get(name) is not None}
    marking = own.select(
        (pl.col("gc_cpu_s").sum() - pl.col("pause_cpu_s").sum())
        / pl.col("available_cpu_s").sum()
    ).item()
    if own["pause_cpu_s"].count() and marking:
        found["mark_share"] = marking
    return Compared(
        run, layout, given_limits, len(own) + 1, found,
        _truth(cycles, begin, end) | _allocated(path.parent, begin, end),
        "limit-thrash" in set(read.episodes()["kind"]),
        _state(cycles, run), read,
    )  # fmt: skip


def _scraped_at(path: Path, step_s: float) -> float:
    """Returns when the sample was scraped that a range query has at a step."""
    raw = path.with_name(path.name.replace("query_range", "raw"))
    times = (_samples(raw)["logged_at"].dt.epoch("us") / 1e6).sort()
    interval = float(times.diff().median())  # type: ignore[arg-type]
    earlier = times.filter(times <= step_s)
    last = float(earlier[-1]) if len(earlier) else float(times[0])
    # The query may have one sample more at either end.
    return last + math.floor((step_s - last) / interval) * interval


def _read(path: Path, run: dict[str, Any], *, given_limits: bool) -> gca.Run:
    env = run["env"]
    given = {"gogc": env.get("GOGC", "100"), "memory_limit": env.get("GOMEMLIMIT")}
    return gca.read(path, **(given if given_limits else {}))


@lru_cache(maxsize=256)
def _samples(path: Path) -> pl.DataFrame:
    """Returns the dumps of a file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gca.read(path).memstats


@lru_cache(maxsize=256)
def _corrected(folder: Path) -> pl.DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gca.read(folder / "run.log.gz").analysis.corrected


def _finest(folder: Path) -> Path:
    """Returns the file with the most samples."""
    return next(path for name in LAYOUTS if (path := folder / name).exists())


def _cycles(folder: Path, run: dict[str, Any]) -> pl.DataFrame:
    """Returns the cycles of a recording with the time at which they ended.

    gctrace counts from the start of the program; the time of the last cycle's end, which metrics
    have, shows when that was, within a millisecond.
    """
    cycles = _corrected(folder)
    ends = _samples(_finest(folder)).select(
        gc_num=pl.col("num_gc").cast(pl.Int64), at=pl.col("last_gc_unix_ns") / 1e9
    )
    known = cycles.select(pl.col("gc_num").cast(pl.Int64), "end_s").join(ends, on="gc_num")
    start = known.select((pl.col("at") - pl.col("end_s")).median()).item()
    return cycles.with_columns(
        ended_unix_s=pl.col("end_s") + (run["started_unix_s"] if start is None else start)
    )


def _truth(cycles: pl.DataFrame, begin: float, end: float) -> dict[str, float]:
    pauses_ms = float((cycles["stw_sweep_term_ms"] + cycles["stw_mark_term_ms"]).sum())
    longest_ms, live_mib, goal_mib, procs = cycles.select(
        pl.max("stw_mark_term_ms"),
        pl.median("heap_live_mib"),
        pl.median("heap_goal_mib"),
        pl.last("procs"),
    ).row(0)
    marking = cycles.select(
        pl.sum_horizontal("assist_cpu_ms", "background_cpu_ms").sum()
    ).item()
    available_ms = 1000 * (end - begin) * procs
    return {
        "gc_per_s": len(cycles) / (end - begin),
        "stw_total_ms": pauses_ms,
        "longest_mark_term_ms": longest_ms or 0.0,
        "live_heap_p50_mib": live_mib + ROUNDED_MIB,
        "heap_goal_p50_mib": goal_mib + ROUNDED_MIB,
        "mark_share": marking / available_ms,
        "gc_cpu_share": (marking + pauses_ms * procs) / available_ms,
    }


def _allocated(folder: Path, begin: float, end: float) -> dict[str, float]:
    """Returns TotalAlloc's growth in a span, from the counter as it was read each second."""
    rows = (
        _samples(_finest(folder))
        .select(at=pl.col("logged_at").dt.epoch("us") / 1e6, value="total_alloc_bytes")
        .drop_nulls()
    )
    times, values = rows["at"].to_numpy(), rows["value"].to_numpy()
    # The first and the last sample of the jobs are up to a second apart.
    if len(rows) < 2 or begin < times[0] - 1.1 or end > times[-1] + 1.1:
        return {}
    per_s = [(values[n] - values[n - 1]) / (times[n] - times[n - 1]) for n in (1, -1)]
    before = max(times[0] - begin, 0) * per_s[0]
    after = max(end - times[-1], 0) * per_s[1]
    first, last = np.interp([begin, end], times, values)
    return {"alloc_total_mib": float(last - first + before + after) / 2**20}


def _state(cycles: pl.DataFrame, run: dict[str, Any]) -> str:
    """Returns what the limit did, from the goals that the runtime printed."""
    if "GOMEMLIMIT" not in run["env"]:
        return "healthy"
    live, goal = cycles["heap_live_mib"][:-1], cycles["heap_goal_mib"][1:]
    starved = (goal <= live).mean()
    effective = (100 * (goal - live) / live.clip(1)).median()
    return state_of(float(starved or 0), float(effective or 0))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Forecast:
    """One setting predicted from the metrics of a run with another setting."""

    base: Compared
    target: Compared
    errors: dict[str, float]


def forecasts(found: Iterable[Compared]) -> Iterator[Forecast]:
    """Yields what each run without a limit predicts of those next to it with another GOGC."""
    groups: dict[tuple[str, str, str], list[Compared]] = defaultdict(list)
    for one in found:
        if one.run["setting"].startswith("gogc"):
            groups[one.run["wave"], one.run["name"], one.layout].append(one)
    for group in groups.values():
        for base, target in permutations(group, 2):
            row = base.source.whatif(gogc=target.run["env"]["GOGC"]).row(0, named=True)
            if row["refused"]:
                continue
            yield Forecast(base, target, _errors(row, target))


def _errors(row: dict[str, Any], target: Compared) -> dict[str, float]:
    truth = {
        "gc_per_s": target.truth["gc_per_s"],
        # gctrace prints the goal in whole MiB, metrics in bytes.
        "heap_goal_mib": target.found["heap_goal_p50_mib"],
        "gc_cpu_share": target.found.get("gc_cpu_share"),
    }
    return {name: row[name] / true - 1 for name, true in truth.items() if true and row[name]}


def tables(folders: Iterable[Path]) -> Iterator[str]:
    """Yields the lines of all tables."""
    folders = list(folders)
    found = [one for folder in folders for one in compared(folder)]
    without_limits = [one for folder in folders for one in compared(folder, given_limits=False)]
    names = {one.run["name"] for one in found}
    runs = {(one.run["wave"], one.name): one.run for one in found}.values()
    versions = sorted({run["go_version"].split(".")[1] for run in runs}, key=int)
    spans = [run["window_unix_s"][1] - run["window_unix_s"][0] for run in runs]
    yield (
        f"{len(names)} programs, {len(runs)} recordings of {min(spans) / 60:.0f} to "
        f"{max(spans) / 60:.0f} minutes, Go 1.{', 1.'.join(versions)}. Errors: median / worst."
    )
    yield ""
    yield from _figures(found, without_limits)
    yield ""
    yield from _thrashing(found, without_limits)
    yield ""
    yield from _predictions(found)


def _figures(found: list[Compared], without_limits: list[Compared]) -> Iterator[str]:
    layouts = [layout for layout in LAYOUTS.values() if any(o.layout == layout for o in found)]
    yield f"| figure | {' | '.join(layouts)} |"
    yield f"|---|{'---:|' * len(layouts)}"
    unknown = [one for one in without_limits if not one.source.memstats["gogc_pct"].count()]
    rows = [(title, name, found) for name, title in FIGURES.items()]
    rows.insert(4, ("live heap, GOGC unknown", "live_heap_p50_mib", unknown))
    for title, name, chosen in rows:
        cells = []
        for layout in layouts:
            errors = [
                abs(error)
                for one in chosen
                if one.layout == layout
                and (error := one.error(name)) is not None
                # Whole MiB say little about a small heap, and two scrapes about a median.
                and not (
                    name in OF_HEAP
                    and (one.truth[name] < SMALL_MIB or one.samples < FEWEST_SAMPLES)
                )
            ]
            cells.append(both(errors, max(errors)) if errors else "–")
        yield f"| {title} | {' | '.join(cells)} |"


def _thrashing(found: list[Compared], without_limits: list[Compared]) -> Iterator[str]:
    chosen = ("1 s", "15 s", "expvar, 15 s")
    yield "| under a memory limit the program … | recordings | called thrashing | limit not given |"
    yield "|---|---:|---:|---:|"
    for state, title in STATES.items():
        cells = [
            [one for one in group if one.layout in chosen and one.state == state]
            for group in (found, without_limits)
        ]
        called = [sum(one.thrashing for one in cell) for cell in cells]
        yield f"| {title} | {len(cells[0])} | {called[0]} | {called[1]} |"


def _predictions(found: list[Compared]) -> Iterator[str]:
    made = list(forecasts(found))
    yield "| predicted from | settings | cycles/s | heap goal | GC CPU |"
    yield "|---|---:|---:|---:|---:|"
    parts = {
        f"{ENOUGH_SAMPLES} samples or more": [
            each for each in made if each.base.samples >= ENOUGH_SAMPLES
        ],
        "fewer": [each for each in made if each.base.samples < ENOUGH_SAMPLES],
    }
    for title, each in parts.items():
        cells = []
        for name in ("gc_per_s", "heap_goal_mib", "gc_cpu_share"):
            errors = [abs(one.errors[name]) for one in each if name in one.errors]
            cells.append(both(errors, quantile(errors, 0.9)) if errors else "–")
        yield f"| {title} | {len(each)} | {' | '.join(cells)} |"


def both(errors: list[float], other: float) -> str:
    """Returns the median and another error in percent."""
    return f"{100 * quantile(errors, 0.5):.1f} / {100 * other:.1f} %"


def quantile(values: Iterable[float], at: float) -> float:
    """Returns a quantile, interpolated."""
    ordered = list(values)
    return float(np.quantile(ordered, at)) if ordered else math.nan
