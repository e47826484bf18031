"""Reads recordings, predicts each run of a program from its others, and fits the constants.

No program is predicted with constants that were fitted on it: versions of one program count as
one (`family`).
"""

from __future__ import annotations

import json
import math
import re
import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

import gctrace_analyzer as gca
from gctrace_analyzer.advise.observed import baseline_of, on_cpus
from gctrace_analyzer.advise.prediction.load import load_of
from gctrace_analyzer.advise.prediction.model import CONSTANTS, Constants, Model, Setting
from gctrace_analyzer.advise.prediction.widths import (
    FACTORS,
    QUANTITIES,
    apart,
    deviation,
    interval,
    value_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from gctrace_analyzer.advise.prediction.load import Load
    from gctrace_analyzer.advise.prediction.outcome import Outcome
    from gctrace_analyzer.advise.predictor import Baseline

FEWEST_TARGET_CYCLES = 3
FEWEST_LIMITS = 3
"""Runs under a limit that the three constants of the memory outside the heap are fitted on."""

NOT_FITTED = ("versions", "procs")
"""Recordings of programs on other Go versions and processors: only looked at, never fitted on."""

BATCHES = ("badger", "staticcheck")


@dataclass(frozen=True, eq=False)
class Recorded:
    """One run of a program under one setting.

    Attributes:
        source: the folder of the recordings: its runs had the same machine and load.
        group: `real` programs, or our `own` loads.
        family: the program without its version and its load.
        measured: its figures, named as in `schema.WHATIF`.
        state: what a memory limit did: `thrash`, `partly`, `tight` or `healthy`.
        crowded: whether other work competed for the CPUs.
        processors: GOMAXPROCS and the CPU quota, if they were set.
        promise: what was promised of the setting, if it was a recommendation.
        work_s: how long the program ran, if every run of it did the same work and ended by itself.
    """

    source: str
    group: str
    program: str
    family: str
    label: str
    setting: Setting
    baseline: Baseline
    measured: dict[str, float]
    cycles: int
    state: str
    crowded: bool
    processors: str = ""
    promise: dict[str, Any] | None = None
    work_s: float | None = None


@dataclass(frozen=True, eq=False)
class Pair:
    """A run predicted from another run of the same program."""

    base: Recorded
    target: Recorded
    outcome: Outcome

    def predicted(self, name: str) -> float:
        """Returns the predicted figure."""
        assert self.outcome.center is not None
        return value_of(name, self.outcome.center)

    def error(self, name: str) -> float:
        """Returns the logarithm of measured / predicted."""
        return math.log(max(self.target.measured[name], 1e-9) / self.predicted(name))


def recordings(folder: Path, *, metrics: bool = False) -> list[Recorded]:
    """Returns the runs that a folder's manifest.json lists.

    Args:
        folder: the folder.
        metrics: whether to read the program's own metrics as well as the log, where it served any.
    """
    runs = json.loads((folder / "manifest.json").read_text())["runs"]
    found = (_recorded(folder, run, metrics=metrics) for run in runs)
    return [each for each in found if each is not None]


def _recorded(folder: Path, run: dict[str, Any], *, metrics: bool) -> Recorded | None:
    program, label = run["dir"].split("/")
    log = next((folder / run["dir"]).glob("run.log*"))
    setting = _setting(run)
    try:
        whole = gca.read(
            log,
            *((folder / run["dir"]).glob("metrics*") if metrics else ()),
            gogc="off" if setting.gogc is None else setting.gogc,
            memory_limit=setting.limit,
            ballast=setting.ballast or None,
            go_version=run["go_version"].removeprefix("go").partition(" ")[0] or None,
        )
        batch = run.get("kind") == "batch" or program in BATCHES or "load_window_s" not in run
        if not batch:
            begin, end = run["load_window_s"]
            whole = whole.between(max(begin + 1, 0.5), end - 0.3)
    except gca.GctraceError:
        return None
    baseline = baseline_of(whole.analysis)
    # A program that sets GOMAXPROCS to more than there are has shares of the CPUs that there are.
    cycles = on_cpus(whole.cycles, whole.analysis.enriched)
    load = load_of(cycles, baseline.load.cpus if baseline.load else None)
    if load is None:
        return None
    return Recorded(
        folder.name,
        "real" if "machine_cpu_s" in run else "own",
        program,
        re.sub(r"-(go1|proxy|\d).*|26$|2$", "", program),
        label,
        setting,
        baseline,
        load.figures,
        load.cycles,
        _state(whole.cycles, setting, run),
        bool(run.get("crowded")),
        _processors(run),
        run.get("promise"),
        run["elapsed_s"] if _is_fixed_work(run) else None,
    )


def _is_fixed_work(run: dict[str, Any]) -> bool:
    # A benchmark with a duration does more where it is faster.
    return (
        run.get("kind") == "batch"
        and bool(run.get("finished"))
        and "-benchtime" not in run["command"]
    )


def _processors(run: dict[str, Any]) -> str:
    quota = f", quota {run['cpu_quota']:g} CPU" if run.get("cpu_quota") else ""
    return f"GOMAXPROCS={run['procs']}{quota}" if run.get("procs") else ""


def _setting(run: dict[str, Any]) -> Setting:
    env, args = run["env"], run.get("args", [])
    gogc, limit = env.get("GOGC", "100"), env.get("GOMEMLIMIT")
    return Setting(
        None if gogc == "off" else float(gogc),
        float(limit.removesuffix("MiB")) if limit else None,
        float(args[args.index("-ballast") + 1]) if "-ballast" in args else 0.0,
    )


def _state(cycles: Any, setting: Setting, run: dict[str, Any]) -> str:
    """Returns what the limit did, from the goals that the runtime printed and its limiter."""
    if not setting.limit:
        return "healthy"
    live, goal = cycles["heap_live_mib"][:-1], cycles["heap_goal_mib"][1:]
    roots = cycles["stacks_mib"].fill_null(0) + cycles["globals_mib"].fill_null(0)
    effective = (100 * (goal - live) / (live + roots[:-1]).clip(1)).median()
    starved = (goal <= live).mean()
    if run.get("limiter_last_enabled_cycle"):
        return "thrash"
    return state_of(starved, effective)


def state_of(starved: float, effective: float) -> str:
    """Returns what a memory limit did.

    Args:
        starved: the share of cycles whose goal is at the live heap or below.
        effective: the median effective GOGC.
    """
    if starved >= 0.5:
        return "thrash"
    if starved >= 0.15 or effective < 12:
        return "partly"
    return "tight" if effective < 30 else "healthy"


def pairs(
    runs: Iterable[Recorded],
    *,
    from_gogc100: bool,
    constants: Constants | None = None,
    factors: dict[str, float] | None = None,
) -> Iterator[Pair]:
    """Yields each run predicted from the runs of its program that allow it.

    Args:
        runs: the runs.
        from_gogc100: whether to predict only from the runs with GOGC=100 and no limit.
        constants: the constants of the model.
        factors: the factors on the widths of the intervals.
    """  # fmt: skip
    by_program: dict[tuple[str, str], list[Recorded]] = defaultdict(list)
    for run in runs:
        by_program[run.source, run.program].append(run)
    for group in by_program.values():
        for base in group:
            if base.state != "healthy" or base.baseline.refused:
                continue
            if from_gogc100 and not is_gogc100(base):
                continue
            baseline = with_constants(base.baseline, constants or CONSTANTS, factors or FACTORS)
            for target in group:
                if target is base or target.cycles < FEWEST_TARGET_CYCLES:
                    continue
                if target.processors != base.processors or target.promise:
                    continue
                found = baseline.at(target.setting)
                if found.center is not None and not found.row["refused"]:
                    yield Pair(base, target, found)


def is_gogc100(base: Recorded) -> bool:
    """Returns whether a run had the default GOGC, and no limit."""
    return base.setting == Setting(100.0) and "gogc100" in base.label


def left_out(runs: list[Recorded]) -> tuple[list[Pair], dict[str, dict[str, float]]]:
    """Returns all pairs, and the factors on the widths of the intervals for each family.

    Each family is predicted with constants and factors that were fitted without it. The factors
    are fitted on predictions from every setting: those from GOGC=100 alone are too few.
    """
    families = sorted({run.family for run in runs if run.baseline.load is not None})
    every = [
        pair
        for family in families
        for pair in pairs(
            [run for run in runs if run.family == family],
            from_gogc100=False,
            constants=fitted(runs, family),
        )
    ]
    return every, {family: conformal(every, family) for family in families}


def with_constants(
    baseline: Baseline, constants: Constants, factors: dict[str, float]
) -> Baseline:
    """Returns a baseline that predicts with other constants."""
    assert baseline.model is not None
    return replace(baseline, model=baseline.model.changed(constants=constants), factors=factors)


def fitted(runs: list[Recorded], without: str) -> Constants:
    """Returns the constants fitted on all programs but one family."""
    by_program: dict[tuple[str, str, str], list[Load]] = defaultdict(list)
    seen: list[tuple[float, ...]] = []
    for run in runs:
        load, model = run.baseline.load, run.baseline.model
        if load is None or model is None or run.family == without or not _is_usable(run):
            continue
        by_program[run.group, run.family, f"{run.source}/{run.program}"].append(load)
        if model.non_heap.source == "the log's own limit":
            measured = (run.setting.limit or 0) - load.goal_p50 / 0.97
            seen.append((_weight(run.group), 1.0, load.stacks, load.goal_p50, measured))
    slopes: dict[str, list[tuple[float, float]]] = defaultdict(list)
    kinds = Counter((group, family) for group, family, _ in by_program)
    for (group, family, _), loads in by_program.items():
        for name, slope in _slopes(loads):
            slopes[name].append((slope, _weight(group) / kinds[group, family]))
    means: dict[str, Any] = {name: _mean(name, pairs) for name, pairs in slopes.items()}
    return replace(CONSTANTS, **means, **_non_heap(seen))


def _non_heap(seen: list[tuple[float, ...]]) -> dict[str, Any]:
    """Returns the constants of the memory outside the heap, where limits show it."""
    # With a program's own metrics it is measured, and there is nothing to fit it on.
    if len(seen) < FEWEST_LIMITS:
        return {}
    table = np.array(seen)
    scale = np.sqrt(table[:, 0] / np.maximum(table[:, 4], 5))
    fixed, per_stack, per_goal = np.linalg.lstsq(
        table[:, 1:4] * scale[:, None], table[:, 4] * scale, rcond=None
    )[0]
    return {
        "non_heap_mib": max(float(fixed), 4.0),
        "non_heap_per_stack": max(float(per_stack), 0.5),
        "non_heap_per_goal": min(max(float(per_goal), 0.02), 0.10),
    }


LEAST = {"live_exponent": 0.0, "refill_mib": 0.0}
"""Lower ends of the constants that cannot be negative."""


def _mean(name: str, found: list[tuple[float, float]]) -> float:
    total = sum(weight for _, weight in found)
    mean = sum(value * weight for value, weight in found) / total
    return min(max(mean, LEAST.get(name, -0.2)), 1.0)


def _weight(group: str) -> float:
    """A real program counts as much as three of our own loads."""
    return 3.0 if group == "real" else 1.0


def _is_usable(run: Recorded) -> bool:
    usable = not run.baseline.refused and run.state in ("healthy", "tight")
    if run.source in NOT_FITTED or run.promise:
        return False
    enough = run.baseline.load is not None and run.baseline.load.cycles >= 6
    return usable and enough and not run.setting.ballast and not run.crowded


def _slopes(loads: list[Load]) -> Iterator[tuple[str, float]]:
    """Yields how a program's figures change with the MiB allocated per cycle."""
    gaps = np.log([load.gap_mib for load in loads])
    if len(loads) < 3 or np.ptp(gaps) < 1:
        return

    def slope(values: list[float], over: Any = gaps) -> float:
        return float(np.polyfit(over, values, 1)[0])

    marked = [load.marked_live + load.roots + CONSTANTS.mark_fixed_mib for load in loads]
    per_mib = [math.log(load.work_ms / size) for load, size in zip(loads, marked, strict=True)]
    steadiness = statistics.fmean(Model(load, Setting()).steadiness for load in loads)
    yield f"work_exponent_{'steady' if steadiness >= 0.5 else 'usual'}", slope(per_mib)
    if statistics.fmean(load.variation for load in loads) > CONSTANTS.variations[1]:
        yield "live_exponent", slope([math.log(max(load.true_live, 0.5)) for load in loads])
    if statistics.fmean(load.cpu_bound for load in loads) < 0.3:
        rates = [load.gc_per_s for load in loads]
        yield "refill_mib", slope([load.alloc for load in loads], rates)


def conformal(found: list[Pair], without: str) -> dict[str, float]:
    """Returns by quantity the factor on the deviation that covers 80 % of the other real programs.

    Each program counts alike. Our own loads do not count: intervals that cover 80 % of both
    cover 95 % of them and 75 % of real programs.
    """
    factors = {}
    chosen = [
        pair for pair in found
        if pair.base.group == "real" and pair.base.family != without
        and pair.base.source not in NOT_FITTED and pair.target.state in ("healthy", "tight")
        and not pair.base.crowded and not pair.target.crowded
    ]  # fmt: skip
    number = Counter(pair.base.family for pair in chosen)
    for name in QUANTITIES:
        scored = []
        for pair in chosen:
            center, load = pair.outcome.center, pair.base.baseline.load
            assert center is not None
            assert load is not None
            error = pair.error(name)
            beyond = apart(name, center, pair.outcome.others)[int(error > 0)]
            score = math.sqrt(max(error**2 - beyond**2, 0.0)) / deviation(name, load, center)
            scored.append((score, 1 / number[pair.base.family]))
        scored.sort()
        passed = 0.0
        for score, weight in scored:
            passed += weight
            if passed >= 0.8 * len(number):
                factors[name] = score
                break
    return factors


def interval_of(pair: Pair, name: str, factors: dict[str, float]) -> tuple[float, float]:
    """Returns the ends of a pair's interval with these factors."""
    assert pair.outcome.center is not None
    assert pair.base.baseline.load is not None
    low, _, high = interval(
        name, pair.base.baseline.load, pair.outcome.center, pair.outcome.others, factors
    )
    return low, high


def guide(pair: Pair) -> dict[str, float]:
    """Returns what the GC guide's formula gives: cycles ∝ 1 / (goal - live), at a fixed cost."""
    load, setting = pair.base.baseline.load, pair.target.setting
    assert load is not None
    goal = math.inf if setting.gogc is None else load.marked_live * (1 + setting.gogc / 100)
    goal = min(goal, setting.limit or math.inf)
    times = (load.goal - load.marked_live) / max(
        goal - load.marked_live, 0.02 * load.marked_live
    )
    base = pair.base.measured
    return {
        "gc_per_s": base["gc_per_s"] * times,
        "gc_cpu_with_idle_share": min(base["gc_cpu_with_idle_share"] * times, 1.0),
        "heap_peak_mib": goal,
    }
