"""Every number that decides something, with its reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The limits that judgements rest on; each default says where it comes from."""

    gc_cpu_warn: float = 0.10
    """Share of CPU: a program that spends a tenth of it on collecting notices."""

    gc_cpu_bad: float = 0.25
    """The pacer's own budget while marking (gcBackgroundUtilization), spent all the time."""

    assist_warn: float = 0.20
    """Share of GC CPU: from Go 1.18 on assists are for mispredictions only (mgcpacer.go)."""

    assist_warn_old: float = 0.30
    """Up to Go 1.17 the pacer planned for assists: 5 points of the 30 % goal utilization."""

    assist_felt: float = 0.01
    """Share of all CPU: less is no burden, however large a part of little GC CPU it is."""

    stw_warn_ms: float = 1.0
    """Sub-millisecond pauses are what the collector has aimed at since Go 1.8."""

    stw_bad_ms: float = 10.0
    """Ten milliseconds are felt in any request's latency."""

    warm_up_s: float = 0.5
    """The pacer needs a few cycles to find its trigger; medians were stable after this."""

    growth_min_span_s: float = 60.0
    """A slope from less is a start-up, not a trend per hour."""

    growth_warn_per_h: float = 0.10
    """Of the live heap: ten per cent an hour fill a doubled heap within a working day."""

    short_log_cycles: int = 20
    """Fewer cycles do not make a percentile, let alone advice."""

    gogc_min_live_mib: float = 20.0
    """Below this the MiB floors alone move effective GOGC by more than 10 points."""

    thrash_min_live_mib: float = 8.0
    """Below this the MiB floor can put the goal at the live heap without a limit."""

    gogc_spread: float = 0.05
    """Relative spread of effective GOGC: 0.014 at most where GOGC set the goal, 0.116 at
    least where the memory limit did, in measured runs."""

    log_check_points: float = 1.0
    """Reconstructed against printed GC CPU percentage; 160 sound logs stay within 0.3."""


DEFAULT = Thresholds()
