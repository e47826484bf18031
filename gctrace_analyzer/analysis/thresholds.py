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

    assist_burden: float = 0.03
    """Share of all CPU: from here on assists are worth a warning, not only a note."""

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

    active_warn: float = 0.5
    """Of the time: a cycle is always near (golang/go#14812)."""

    active_bad: float = 0.9
    """There is hardly a time without one."""

    frequent_warn_ms: float = 100.0
    """Ten cycles a second are what people complain of (golang/go#23044: 15)."""

    frequent_bad_ms: float = 20.0
    """Fifty a second, if it is felt in CPU."""

    mark_pressure: float = 0.40
    """Of the processors while marking: 0.25 is the workers' part, 0.31 to 0.35 usual."""

    mark_min_ms: float = 1.0
    """Shorter marking is all rounding."""

    assist_spike: float = 0.5
    """Of the processors, in one cycle."""

    pinned_new: float = 0.72
    """45/64 is the earliest trigger from Go 1.19 on."""

    pinned_old: float = 0.62
    """0.6 was the earliest trigger in Go 1.14 to 1.17."""

    stw_single_ms: float = 5.0
    """One such pause is felt, however short the others are."""

    explains: float = 0.3
    """A rank correlation below this explains nothing."""

    least_span_s: float = 0.4
    """Shorter is a start-up, whatever it costs."""

    few: int = 5
    """Fewer cycles make no statement about a distribution."""

    many_procs: int = 8
    """From here on a quota smaller than GOMAXPROCS is common, and idle marking is much."""

    worth_mib: float = 64.0
    """A heap below this is small, a constant part above it worth a word."""

    mark_mib_per_cpu_s: float = 100.0
    """Measured: 1,800 MiB per CPU second of pointer trees."""

    alloc_mib_per_s_per_proc: float = 500.0
    """Few programs do useful work at this rate."""

    overshoot: float = 1.10
    """The pacer re-targets at 1.1 times the goal (maxOvershoot)."""

    level_cycles: int = 10
    """A level of GOGC, or a goal set by the limit, shows in so many cycles."""

    limit_gogc_warn: float = 50.0
    """Under the limit: half of what GOGC=100 leaves."""

    limit_gogc_bad: float = 25.0
    """Under the limit: four times the collections of GOGC=100."""

    growth_of_span: float = 0.10
    """Of the median live heap, gained within the log."""

    growth_min_mib: float = 4.0
    """Less is the rounding of two sizes and chance."""

    check_points_old: float = 2.0
    """Reconstructed against printed percentage, Go 1.22 and before."""

    check_points_new: float = 4.0
    """From Go 1.23 on the runtime counts the stopping part of pauses otherwise."""

    short_log_s: float = 10.0
    """A start-up and little more."""

    thrash_min_cycles: int = 3
    """One or two goals below the live heap are a jump of the live heap, not a state."""

    thrash_gap_cycles: int = 8
    """Goals just above the live heap in between belong to the same state."""

    thrash_gogc: float = 8.0
    """Runs whose limit lay 3 to 8 % above the live heap had medians of 5.6 and 7.8."""

    thrash_active_share: float = 0.65
    """Of the time: those runs' collector ran 0.7 of it and more, a tight limit's 0.5."""

    thrash_window_s: float = 2.0
    """The limiter's bucket takes one second of all processors to fill."""

    storm_assist_share: float = 0.5
    """Of GC CPU: the program marks more than the workers do."""

    storm_min_cycles: int = 5
    """Fewer are a spike."""

    storm_min_s: float = 1.0
    """Shorter is not felt."""

    burst_times: float = 3.0
    """Three times as often as usual."""

    burst_min_cycles: int = 5
    """Fewer are chance."""

    burst_min_per_s: float = 5.0
    """Rarer cycles are no burst, whatever is usual."""

    surge_times: float = 4.0
    """Four times the usual rate: the pacer's estimate of it is no guide any more."""

    forced_min_cycles: int = 4
    """Fewer are a start-up or a test."""

    forced_share: float = 0.2
    """Of the cycles; Go 1.9 to 1.19 print the mark too often, so a tenth is not enough."""

    outlier_times: float = 20.0
    """Times the median: beyond what scheduling alone does."""

    periodic_s: tuple[float, float] = (119.9, 121.0)
    """forcegcperiod is two minutes, and the monitor looks only now and then."""

    gogc_spread: float = 0.05
    """Relative spread of effective GOGC: 0.014 at most where GOGC set the goal, 0.116 at
    least where the memory limit did, in measured runs."""

    gogc_step_cycles: int = 15
    """Cycles at one GOGC in effect, above all others: that is GOGC, the rest is the limit's."""

    log_check_points: float = 1.0
    """Reconstructed against printed GC CPU percentage; 160 sound logs stay within 0.3."""

    fleet_min_replicas: int = 5
    """Fewer replicas of a service have no usual value to be far from."""

    fleet_outlier_z: float = 3.5
    """Modified z-score (Iglewicz and Hoaglin, 1993): median and MAD bear a few bad replicas."""

    fleet_mad_floor: float = 0.05
    """Of the median: replicas as like as that differ by chance and printing only."""

    fleet_limit_share: float = 0.8
    """Live heap over limit: closer, and cycles follow each other (SAFE_LIMIT, 1.25 times)."""

    hours_to_limit: float = 24.0
    """A live heap that meets its limit within a day is tomorrow's incident."""


DEFAULT = Thresholds()
