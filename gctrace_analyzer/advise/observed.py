"""What a log shows of its program: the baseline of predictions, or why there is none."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.advise import subject
from gctrace_analyzer.advise.prediction.load import load_of, with_hidden_roots
from gctrace_analyzer.advise.prediction.model import (
    CONSTANTS,
    THRASH_GOGC,
    Constants,
    Model,
    Setting,
)
from gctrace_analyzer.advise.prediction.outcome import whole_mib
from gctrace_analyzer.advise.predictor import Baseline, Highest
from gctrace_analyzer.advise.refusal import (
    FEW_CYCLES,
    IMPOSSIBLE,
    MISSING,
    NOT_DESCRIBED,
    THRASHING,
    in_blocks,
    refusal,
    too_late,
    unknown_gogc,
    why_no_load,
)
from gctrace_analyzer.advise.tight_limit import in_container
from gctrace_analyzer.analysis.cycles import has_fewer_cpus
from gctrace_analyzer.analysis.pauses import count_idle_threads
from gctrace_analyzer.analysis.postmortem.facts import MOST_OF_LIMIT
from gctrace_analyzer.analysis.settings.naming import gogc_name, limit_text
from gctrace_analyzer.analysis.settings.releases import go_version, may_limit
from gctrace_analyzer.analysis.settings.search import DEFAULT_GOGC
from gctrace_analyzer.analysis.settings.setters import Eased, limit_eased, limit_sets_most_goals
from gctrace_analyzer.analysis.thresholds import DEFAULT, roomy_limit
from gctrace_analyzer.analysis.timeline.levels import Moved, moved
from gctrace_analyzer.ingest.gctrace.columns import CPU_TIMES
from gctrace_analyzer.ingest.rows import median, of_process, since, unforced, where, without
from gctrace_analyzer.units import MIB, duration_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.advise.prediction.load import Load
    from gctrace_analyzer.analysis.analysis import Analysis
    from gctrace_analyzer.analysis.settings.known import Settings
    from gctrace_analyzer.analysis.settings.regimes import Regime
    from gctrace_analyzer.analysis.trend import LiveGrowth

OWN_GAP = 0.25
"""Largest |ln| of the ratio between the log and a replay of its own setting."""

DRIFT = 0.15
"""Relative change of the live heap, first to last quarter of the log, that is mentioned."""

OF_LEVEL = ("the live heap was ", "the live heap without ", "the live heap grew ")
"""Start of the warnings that name which of several live heaps predictions are for."""

DRIFT_MIB = 2.5
"""Smaller changes are within the rounding of the printed sizes."""


def baseline_of(analysis: Analysis, constants: Constants = CONSTANTS) -> Baseline:
    """Returns the baseline of the process that the advice is for."""
    process = subject.advised_process(analysis)
    settings = analysis.settings if process is None else analysis.settings_of(process)
    if process is None or analysis.cycles.is_empty():
        has_dumps = len(analysis.tables["memstats"])
        why = "the input does not show what GC costs now" if has_dumps else "no GC cycles"
        return without_load(analysis, settings, why)
    non_heap = _non_heap_mib(analysis.tables["memstats"])
    cycles, own = of_process(analysis.cycles, process), of_process(analysis.enriched, process)
    highest = Highest.of(cycles)
    regimes = analysis.regimes_of(process)
    regime, changed = regimes[-1], len(regimes) > 1
    # Under the earlier setting, the same load had other goals and another number of cycles.
    is_last = pl.col("gc_num") > regime.first_gc if changed else pl.lit(value=True)
    if (eased := limit_eased(own)) is not None:
        is_last &= pl.col("start_s") > eased.until_s
    move = moved(own.filter(is_last)) if changed or eased else analysis.moved(process)
    if move is not None and move.cycles > FEW_CYCLES:
        # The first cycle of a smaller heap still had the goal of the larger one.
        is_last &= pl.col("start_s") > move.at_s
        highest = Highest.of(cycles.filter(is_last))
    if changed or eased or move:
        cycles, own = cycles.filter(is_last), own.filter(is_last)
    # Computing it again would take as long as a quarter of the load.
    known = own[["effective_gogc", "counted_pauses"]]
    cycles = pl.concat([without(cycles, *known.columns), known], how="horizontal")
    cpus = None if own.is_empty() else own[-1]["cpus"][0]
    cycles = on_cpus(cycles, own)
    # Count the same part of the pauses as the report does.
    pauses = pl.col("stw_sweep_term_cpu_ms", "stw_mark_term_cpu_ms")
    cycles = cycles.with_columns(pauses * pl.col("counted_pauses"))
    steady = unforced(since(cycles, DEFAULT.warm_up_s))
    calm, thrashed = longest_calm_part(cycles, analysis.episodes)
    load = load_of(calm, cpus)
    if load is None or (changed and load.cycles < DEFAULT.min_cycles):
        why = too_late(len(own)) if changed else why_no_load(cycles, steady)
        return Baseline(non_heap, now=given_setting(settings), settings=settings, refused=why)
    if not load.is_possible:
        now = given_setting(settings)
        return Baseline(non_heap, now=now, settings=settings, refused=IMPOSSIBLE)
    by_limit = limit_sets_most_goals(own)
    load = replace(load, limited=by_limit)
    rows = analysis.tables["processes"]
    now, inferred = present_setting(regime, settings), settings.gogc is None
    if now.gogc and not by_limit and load.new_pacer:
        load = with_hidden_roots(load, calm, now.gogc)
    oldest, newest = of_process(rows, process)["go_version_min", "go_version_max"].row(0)
    version = go_version(settings.value("go_version") or newest)
    too_old = "Go 1.9 and earlier have" if (version or _MODELED) < _MODELED else ""
    if not too_old and settings.value("go_version") is None and count_idle_threads(own):
        too_old = f"Go 1.9 or earlier printed this log ({_COUNTS_THREADS}), and has"
    whole = load_of(cycles, cpus) if thrashed else None
    refused = subject.unexplained_kill(analysis, process) or refusal(
        load, now, whole, inferred=inferred, too_old=too_old, by_limit=by_limit,
        too_coarse="gc_cpu" in analysis.too_coarse,
    )  # fmt: skip
    growth = analysis.live_growth(process)
    # Without GOGC and limit there is no goal to replay: the goals must come from somewhere.
    modelled = now if now.gogc or now.limit else replace(now, gogc=load.effective_gogc)
    model = Model(
        load, modelled, non_heap=non_heap, constants=constants,
        go_1_21=version is None or version >= (1, 21),
        growth_mib=growth.mib_per_h * load.span_s / 3600 if growth else 0.0,
        limit_is_known=regime.memory_limit_source != "inferred",
    )  # fmt: skip
    summary = analysis.summary_of(process)
    missing = MISSING if summary.is_mostly_missing else None
    is_dear = (summary.gc_cpu_share or 0.0) > DEFAULT.gc_cpu_warn
    differs = is_dear != (load.gc_cpu_share >= DEFAULT.gc_cpu_warn)
    refused = (
        refused or missing or unknown_gogc(regime) or in_blocks(steady) or _misfit(load, model)
    )
    warnings = (
        *_change_warning(regime if changed else None, eased),
        *_move_warning(move),
        *_setting_warning(regime, settings),
        *_warnings(
            load,
            model,
            growth,
            refused=bool(refused),
            is_part=changed or thrashed or move is not None,
        ),
        *_version_warning(settings.value("go_version") or oldest),
        *_burst_warning(steady, settings),
        *subject.changing_load(own),
        *subject.which_process(analysis, process),
    )
    baseline = Baseline(
        non_heap,
        warnings,
        _span_s(steady),
        model,
        load=load,
        now=now,
        refused=refused,
        settings=settings,
        whole=whole,
        growth=growth,
        heaviest=model.changed(load=whole) if whole and whole.is_possible else None,
        other_cause=subject.other_cause(analysis, process),
        may_lack_memory=subject.may_lack_memory(analysis, process),
        most_limit_mib=subject.most_limit_mib(analysis, process),
        set_at_kill_mib=subject.set_at_kill_mib(analysis, process),
        is_doubtful_kill=subject.is_doubtful_kill(analysis, process),
        costly_cycle=subject.costly_cycle(own),
        lacks_room=not (changed or eased) and subject.needs_action(analysis, process, "GC015"),
        gc_slows=subject.needs_action(analysis, process, "GC002", "GC005"),
        differs_since_s=load.begin_s if differs else None,
        regime=regime,
        highest=highest,
        may_ignore_limit=not may_limit(settings.value("go_version") or oldest),
    )
    return _about_thrashing(baseline)


def without_load(
    analysis: Analysis, settings: Settings, why: str, most: float | None = None
) -> Baseline:
    """Returns the baseline of an input that at most shows how large the heap was, and not why.

    `most` is the largest live heap in MiB. If it is unknown, it is at most what was allocated.
    """
    sizes, dumps = analysis.memory, analysis.tables["memstats"]
    if most is None and len(sizes) == 1:
        most = sizes[0].alloc_max_mib
    highest = None if most is None else Highest(most, most)
    return Baseline(
        _non_heap_mib(dumps),
        now=given_setting(settings),
        refused=why,
        settings=settings,
        highest=highest,
    )


def on_cpus(cycles: pl.DataFrame, enriched: pl.DataFrame) -> pl.DataFrame:
    """Returns cycles with CPU times limited to the CPUs, if there are fewer than GOMAXPROCS."""
    if not has_fewer_cpus(enriched):
        return cycles
    return cycles.with_columns(enriched[list(CPU_TIMES)])


def _span_s(steady: pl.DataFrame) -> float:
    return float(steady["start_s"][-1] - steady["start_s"][0]) if len(steady) else 0.0


_IN_USE = (
    *(("heap_inuse_bytes",), ("stack_sys_bytes", "stack_inuse_bytes")),
    *(("mspan_sys_bytes", "mspan_inuse_bytes"), ("mcache_sys_bytes", "mcache_inuse_bytes")),
    *(("buck_hash_sys_bytes",), ("gc_sys_bytes",), ("other_sys_bytes",)),
)
"""The parts of `sys_bytes` without idle heap; some dumps have only what is in use of a part."""


def _non_heap_mib(memstats: pl.DataFrame) -> float | None:
    """Returns all memory except heap objects, as GOMEMLIMIT counts it (memoryLimitHeapGoal)."""
    if memstats.is_empty():
        return None
    objects = pl.coalesce("heap_alloc_bytes", "alloc_bytes")
    parts = sum(pl.coalesce(names) for names in _IN_USE)
    rest = pl.coalesce(pl.col("sys_bytes") - pl.col("heap_idle_bytes"), parts)
    known = memstats.select(rest - objects).to_series().drop_nulls()
    return None if known.is_empty() else median(known) / MIB


def _change_warning(regime: Regime | None, eased: Eased | None) -> Iterator[str]:
    if eased is not None:
        until = duration_text(eased.until_s)
        yield f"until {until}, the memory limit left hardly any room: predicted from what follows"
    elif regime is not None:
        since = "then" if regime.start_s is None else duration_text(regime.start_s)
        yield (
            f"the settings were changed while the program ran: predicted from the cycles since "
            f"{since}; a program that calls `debug.SetGCPercent`, `debug.SetMemoryLimit` or "
            "`runtime.GOMAXPROCS` overrides the environment variable, so change it there"
        )


def _move_warning(move: Moved | None) -> Iterator[str]:
    """Yields the two levels of the live heap, and which one predictions are for."""
    if move is not None:
        holds = (
            "; if the larger heap can return, a GOMEMLIMIT has to hold it as well"
            if move.after_mib < move.before_mib
            else ""
        )
        which = (
            f"predicted from the cycles since then{holds}"
            if move.cycles > FEW_CYCLES
            else f"only {move.cycles} cycles, so the predictions cover both levels"
        )
        yield f"{move.text}: {which}"


def _setting_warning(regime: Regime, settings: Settings) -> Iterator[str]:
    """Yields a warning if the heap goals do not show which setting predictions start from."""
    if regime.set_by == "either" and settings.gogc is None and regime.gogc_pct is not None:
        yield (
            f"the heap goals look like {gogc_name(regime)} or like {limit_text(regime)}: "
            "specify which it is"
        )


def _warnings(
    load: Load, model: Model, growth: LiveGrowth | None, *, refused: bool, is_part: bool
) -> Iterator[str]:
    """What makes the predictions less certain than their intervals."""
    drift = load.true_live_last - load.true_live_first
    if growth is not None and growth.is_steady:
        grew = f"{growth.text[0].lower()}{growth.text[1:]}"
        yield f"{grew}; predicted cycles/s and GC CPU are for {load.true_live:,.0f} MiB"
    elif abs(drift) > max(DRIFT * load.true_live, DRIFT_MIB):
        first, last = (max(size, 0.0) for size in (load.true_live_first, load.true_live_last))
        yield (
            "the live heap without allocation during marking went from "
            f"{first:,.0f} MiB in the first quarter of {'these' if is_part else 'the'} cycles to "
            f"{last:,.0f} in the last (medians); predicted cycles/s and GC CPU are for "
            f"{load.true_live:,.0f} MiB"
        )
    if refused:
        return
    off = model.own.gap / load.gap_mib
    if abs(math.log(off)) > OWN_GAP:
        yield (
            f"for the present setting, the model predicts {1 / off:.2g} times the cycles of "
            f"{'this part of ' * is_part}the log: predictions for very different settings are rough"
        )


def _misfit(load: Load, model: Model) -> str | None:
    """Returns the refusal if the model does not reproduce the log that it starts from."""
    times = load.gap_mib / model.own.gap
    if abs(math.log(times)) <= math.log(_MISFIT):
        return None
    return (
        f"for the present setting, the model predicts {times:.2g} times the cycles of the log"
        f"{NOT_DESCRIBED}"
    )


_MISFIT = 3.0
"""Ratio to the cycles of the log. Programs that did not thrash stayed within 2.3."""


def _version_warning(oldest: str | None) -> Iterator[str]:
    if (go_version(oldest) or _MODELED) < _MODELED:
        yield "Go before 1.10 may have printed this log, but is not modeled: specify the Go version"


_MODELED = (1, 10)
"""The first Go release whose pacer is modeled."""

_COUNTS_THREADS = "pauses count varying numbers of processors"


def _burst_warning(steady: pl.DataFrame, settings: Settings) -> Iterator[str]:
    """Yields a warning if the heap exceeded a goal by more than the container has room for."""
    beyond = (steady["heap_end_mib"] - steady["heap_goal_mib"]).max()
    room = settings.room_mib
    if room is not None and isinstance(beyond, int) and beyond > (1 - MOST_OF_LIMIT) * room:
        yield f"in one cycle the heap ended {beyond:,} MiB above its goal: leave room for that"


def thrashing(*, least: float, largest: float, container: str = "") -> str:
    """Returns the refusal for a thrashing program, with the limit in MiB that it needs.

    Args:
        least: the lowest limit that does not thrash.
        largest: the largest live heap.
        container: the container that it needs, if its own is too small.
    """
    return (
        f"{THRASHING}. A GOMEMLIMIT of about {roomy_limit(least):,.0f} MiB{container} leaves GC "
        f"room (estimated): its live heap, bursts aside, is up to {whole_mib(largest):,} MiB"
    )


def _about_thrashing(baseline: Baseline) -> Baseline:
    """Adds to the refusal or the warnings what a thrashing log still shows."""
    load = baseline.load
    assert load is not None
    most, least = baseline.live_max_mib or 0.0, baseline.least_limit_mib
    if baseline.refused == THRASHING:
        assert least is not None
        why = thrashing(least=least, largest=most, container=in_container(baseline, least))
        return replace(baseline, refused=why)
    if baseline.whole is None or baseline.refused:
        return baseline
    time_range = (
        f"predicted from {load.begin_s:.1f} s to {load.begin_s + load.span_s:.1f} s, the "
        "longest time range without limit thrashing; the present setting is as measured in the "
        f"whole log, and heap peaks are for its live heap of up to {whole_mib(most):,} MiB"
    )
    return replace(baseline, warnings=(*baseline.warnings, time_range))


def longest_calm_part(
    cycles: pl.DataFrame, episodes: pl.DataFrame
) -> tuple[pl.DataFrame, bool]:
    """Returns the longest part without limit thrashing, and whether there was any thrashing.

    Returns all cycles if none thrashed, or if too few were calm. A program that thrashes allocates
    less than it otherwise would, so its thrashing cycles do not predict other settings.

    Args:
        cycles: the cycles of one process (`schema.CYCLES`), in order, with `effective_gogc`.
        episodes: the episodes of the run (`schema.EPISODES`).
    """
    if cycles.is_empty():
        return cycles, False
    thrash = where(episodes, episodes["kind"] == "limit-thrash")
    thrash = of_process(thrash, cycles["process"][0])
    if thrash.is_empty():
        return cycles, False
    spans = thrash.select("start_s", "end_s").rows()
    start = pl.col("start_s")
    inside = pl.any_horizontal(start.is_between(begin, end) for begin, end in spans)
    marked = cycles.with_columns(inside=inside.fill_null(value=False)).with_columns(
        part=pl.col("inside").rle_id()
    )
    in_episodes = marked["inside"].sum()
    if not in_episodes or (marked["inside"][0] and in_episodes < DEFAULT.min_cycles):
        # The program thrashed under the earlier setting.
        return cycles, False
    steady = start.filter(start >= DEFAULT.warm_up_s)
    longest = (
        marked.filter(~pl.col("inside"))
        .group_by("part")
        .agg(pl.len(), steady.max() - steady.min(), span_s=start.max() - start.min())
        .filter(pl.col("len") >= FEW_CYCLES, pl.col("start_s") >= DEFAULT.min_span_s)
        .sort("span_s", "part", descending=[True, False])
    )
    if longest.is_empty():
        return cycles, True
    chosen = marked.filter(part=longest["part"][0]).select(cycles.columns)
    # While memory above the limit is still being returned, the goal rises and leaves little room.
    has_room = (pl.col("effective_gogc") >= THRASH_GOGC).fill_null(value=False)
    later = chosen.filter(has_room.cum_max())
    return (later if len(later) >= FEW_CYCLES else chosen), True


def given_setting(settings: Settings) -> Setting:
    """Returns the setting as given or detected; GOGC is None if unknown."""
    gogc = settings.value("gogc")
    return Setting(
        float(gogc) if isinstance(gogc, int | float) else None,
        settings.value("memory_limit_mib"),
        float(settings.value("ballast_mib") or 0.0),
    )


def present_setting(regime: Regime, settings: Settings) -> Setting:
    """Returns the setting of a regime; a GOGC hidden by a limit is the default, if possible."""
    gogc, limit = regime.gogc_pct, regime.memory_limit_mib
    if gogc is None:
        gogc = DEFAULT_GOGC if (regime.gogc_pct_low or 0.0) <= DEFAULT_GOGC else math.inf
    return Setting(
        None if math.isinf(gogc) else max(gogc, 1.0),
        None if limit is None or math.isinf(limit) else limit,
        float(settings.value("ballast_mib") or 0.0),
    )
