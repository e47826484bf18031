"""Rules about CPU, frequency, assists and pauses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.rules.finding import (
    Facts,
    Finding,
    examples,
    largest,
    middle,
    total,
    worse,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.analysis.rules.finding import Severity

_OLDEST = ("gc10", "gc11", "gc12x", "gc13", "gc14")
_MIB_PER_S = 1.048576


def gc_cpu(f: Facts) -> Iterator[Finding]:
    """GC001, GC002, GC003."""
    s, t = f.summary, f.thresholds
    if s.cycles < t.few or (s.span_s or 0) < t.least_span_s:
        return  # a start-up
    if (cpu := s.gc_cpu_share) is not None and cpu > t.gc_cpu_warn:
        worst = examples(f.cycles, "gc_cpu_share")
        text = f"GC CPU {100 * cpu:.1f} % of {_procs(f)}"
        severity = worse(cpu, t.gc_cpu_bad)
        yield Finding("GC001", severity, text, {"gc_cpu_share": cpu}, examples=worst)
    if (active := s.gc_active_share) is not None and active > t.active_warn and _long_enough(f):
        text = f"a cycle was running {100 * active:.0f} % of the time"
        severity = worse(active, t.active_bad)
        yield Finding("GC002", severity, text, {"gc_active_share": active})
    every = s.gc_interval_p50_ms
    if every is not None and every < t.frequent_warn_ms and s.cycles > s.forced_cycles:
        felt = (s.gc_cpu_share or 0) > t.gc_cpu_warn
        severity = worse(-every, -t.frequent_bad_ms) if felt else "info"
        text = f"a cycle every {every:.3g} ms (median)"
        yield Finding("GC003", severity, text, {"gc_interval_p50_ms": every})


def assists(f: Facts) -> Iterator[Finding]:
    """GC005 to GC007."""
    s, t = f.summary, f.thresholds
    marking = pl.col("concurrent_mark_ms") * pl.col("procs")
    pressure = (pl.col("assist_cpu_ms") + pl.col("background_cpu_ms")) / marking
    # A short marking is all rounding.
    judged = f.cycles.filter(pl.col("concurrent_mark_ms") >= t.mark_min_ms).with_columns(
        pressure=pressure, spike=pl.col("assist_cpu_ms") / marking
    )
    limit = t.assist_warn if f.new_pacer else t.assist_warn_old
    share = s.assist_share_of_gc_cpu
    felt = (s.assist_share_of_cpu or 0) >= t.assist_felt
    hard = judged["pressure"].median() if len(judged) else None
    pressed = isinstance(hard, float) and hard >= t.mark_pressure
    assisted = share is not None and share > limit
    pressing = False
    if share is not None and assisted and (felt or pressed):
        pressing = True
        text = f"mark assists are {100 * share:.0f} % of GC CPU"
        text += (
            f"; marking takes {100 * hard:.0f} % of the processors"
            if isinstance(hard, float)
            else ""
        )
        figures = {"assist_share_of_gc_cpu": share, "mark_pressure": hard}
        burden = (s.assist_share_of_cpu or 0) >= t.assist_burden
        severity: Severity = "warn" if burden else "info"
        yield Finding(
            "GC005", severity, text, figures, examples=examples(f.cycles, "assist_share")
        )
    spikes = judged.filter(pl.col("spike") > t.assist_spike)
    if len(spikes):
        text = (
            f"in {len(spikes):,} cycles assists took over {100 * t.assist_spike:.0f} % of "
            f"the processors"
        )
        yield Finding(
            "GC006", "info", text, {"cycles": len(spikes)}, examples=examples(spikes, "spike")
        )
    early = t.pinned_new if f.new_pacer else t.pinned_old
    trigger = f.steady["trigger_share"].median()
    if pressing and isinstance(trigger, float) and trigger <= early:
        text = f"cycles start {100 * trigger:.0f} % of the way to the goal"
        yield Finding("GC007", "info", text, {"trigger_share_p50": trigger})


def pauses(f: Facts) -> Iterator[Finding]:
    """GC009 to GC012."""
    t = f.thresholds
    found = False
    for rule, name, words in (
        ("GC009", "stw_sweep_term_ms", "sweep termination"),
        ("GC010", "stw_mark_term_ms", "mark termination"),
    ):
        values = f.cycles[name].drop_nulls()
        if values.is_empty():
            continue
        high, longest = values.quantile(0.9, "linear"), largest(values)
        often = (high or 0) > t.stw_warn_ms
        if often or longest > t.stw_single_ms:
            found = True
            severity = worse(longest, t.stw_bad_ms)
            text = f"{words}: {middle(values):.2g} ms (median), {longest:.3g} ms at most"
            figures = {"p50_ms": values.median(), "p90_ms": high, "max_ms": longest}
            yield Finding(rule, severity, text, figures, examples=examples(f.cycles, name))
    outliers = f.episodes.filter(kind="pause-outlier")
    if len(outliers):
        longest = largest(outliers["stw_max_ms"])
        text = (
            f"{len(outliers):,} stretches of pauses far off the others, up to "
            f"{longest:.3g} ms{_unexplained(f)}"
        )
        grave = longest > t.stw_single_ms or found
        where = tuple(f"gc {number}" for number in outliers["first_gc"].head(3))
        yield Finding(
            "GC011", "warn" if grave else "info", text, {"stw_max_ms": longest}, examples=where
        )
    long = f.cycles.filter(pl.col("stw_sweep_term_ms") >= 0.05)
    stopped = (
        long["stw_sweep_term_cpu_ms"] / long["stw_sweep_term_ms"] / long["procs"]
    ).median()
    if isinstance(stopped, float) and len(long) >= t.few and stopped < 0.95:
        text = (
            f"pauses stop {100 * stopped:.0f} % of GOMAXPROCS processors: there are fewer CPUs"
        )
        yield Finding("GC012", "info", text, {"stopped_share": stopped})


def _unexplained(f: Facts) -> str:
    """Whether anything in the log goes along with the length of pauses."""
    if len(f.cycles) < f.thresholds.short_log_cycles:
        return ""
    total = f.cycles["stw_total_ms"]
    table = pl.DataFrame(
        {"pause": total, **{n: f.cycles[n] for n in ("heap_live_mib", "stacks_mib", "procs")}}
    )
    for name in ("heap_live_mib", "stacks_mib", "procs"):
        r = table.select(pl.corr("pause", name, method="spearman")).item()
        if r is not None and abs(r) > f.thresholds.explains:
            return ""
    return (
        "; neither heap, stacks nor processors go along with them: look at the host "
        "(quota, page migration, huge pages)"
    )


def quota(f: Facts) -> Iterator[Finding]:
    """GC013: a CPU quota smaller than GOMAXPROCS."""
    t = f.thresholds
    procs = f.cycles["procs"].max()
    if not isinstance(procs, int):
        return
    if (cpus := f.settings.value("cpu_limit")) is not None:
        if procs >= 2 * cpus:
            text = f"GOMAXPROCS is {procs}, the quota {cpus:g} CPUs"
            yield Finding("GC013", "warn", text, {"procs": procs, "cpu_limit": cpus})
        return
    long = f.cycles.filter(pl.col("stw_mark_term_ms") >= t.stw_bad_ms)
    live = f.summary.live_heap_p50_mib
    small = live is not None and live < t.worth_mib
    if procs >= t.many_procs and small and len(long) and f.cycles["assist_cpu_ms"].count():
        text = (
            f"{procs} processors, {live:,.0f} MiB live, and mark terminations of up to "
            f"{largest(long['stw_mark_term_ms']):.3g} ms"
        )
        figures = {"procs": procs, "stw_mark_term_max_ms": long["stw_mark_term_ms"].max()}
        yield Finding(
            "GC013", "warn", text, figures, examples=examples(long, "stw_mark_term_ms")
        )


def marking(f: Facts) -> Iterator[Finding]:
    """GC031 to GC033, GC035."""
    t = f.thresholds
    parts = [total(f.cycles[f"{name}_cpu_ms"]) for name in ("assist", "background", "idle")]
    work = sum(parts)
    procs = int(largest(f.cycles["procs"]))
    if work and parts[2] / work > 0.5 and procs >= t.many_procs:
        text = f"{100 * parts[2] / work:.0f} % of all marking ran on idle processors"
        yield Finding("GC031", "info", text, {"idle_share_of_marking": parts[2] / work})
    spent = pl.col("assist_cpu_ms") + pl.col("background_cpu_ms") + pl.col("idle_cpu_ms")
    roots = pl.col("stacks_mib").fill_null(0) + pl.col("globals_mib").fill_null(0)
    slow = f.cycles.filter((pl.col("concurrent_mark_ms") >= 100) & (spent > 0)).with_columns(
        rate=(pl.col("heap_live_mib") + roots + 1) / spent * 1000
    )
    slow = slow.filter(pl.col("rate") < t.mark_mib_per_cpu_s)
    if len(slow):
        least = -largest(-slow["rate"])
        text = (
            f"{len(slow):,} cycles marked less than {t.mark_mib_per_cpu_s:.0f} MiB per CPU "
            f"second, down to {least:.3g}"
        )
        yield Finding(
            "GC032",
            "warn",
            text,
            {"mib_per_cpu_s": least},
            examples=examples(slow, "concurrent_mark_ms"),
        )
    during = total(f.steady["heap_end_mib"] - f.steady["heap_start_mib"])
    marked_s = total(f.steady["concurrent_mark_ms"]) / 1000
    allocated, span = total(f.steady["alloc_mib"]), total(f.steady["interval_s"])
    if marked_s and span > marked_s and allocated and (f.summary.gc_cpu_share or 0) > 0.05:
        ratio = (during / marked_s) / max((allocated - during) / (span - marked_s), 1e-9)
        if ratio < 0.5:
            text = (
                f"while marking the program allocates at {100 * ratio:.0f} % of its rate "
                f"between cycles"
            )
            yield Finding("GC033", "info", text, {"alloc_rate_ratio": ratio})
    rate = f.summary.alloc_mib_per_s
    if rate is not None and procs and rate / procs > t.alloc_mib_per_s_per_proc:
        text = f"{rate:,.0f} MiB/s on {procs} processors"
        yield Finding("GC035", "info", text, {"alloc_mib_per_s": rate})


def forced(f: Facts) -> Iterator[Finding]:
    """GC024, GC025."""
    s, t = f.summary, f.thresholds
    if s.forced_cycles >= t.forced_min_cycles and s.forced_cycles > t.forced_share * s.cycles:
        text = f"{s.forced_cycles:,} of {s.cycles:,} cycles were asked for"
        lines = examples(f.cycles.filter(pl.col("forced")))
        yield Finding("GC024", "warn", text, {"forced_cycles": s.forced_cycles}, examples=lines)
    intervals = f.cycles["interval_s"].drop_nulls()
    low, high = t.periodic_s
    if len(intervals) >= 2 and intervals.is_between(low, high).mean() > 0.8:  # type: ignore[operator]
        yield Finding(
            "GC025", "info", "a cycle every two minutes, and no other", {"cycles": s.cycles}
        )


def _procs(f: Facts) -> str:
    procs = f.cycles["procs"].drop_nulls().unique()
    return f"{procs[0]} procs" if len(procs) == 1 else "all CPU"


def _long_enough(f: Facts) -> bool:
    return f.summary.cycles >= f.thresholds.short_log_cycles
