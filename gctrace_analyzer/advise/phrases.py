"""What a recommended setting does, as parts of a sentence, and how firmly it is advised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.advise.objective import run_time_text
from gctrace_analyzer.advise.prediction.model import Setting
from gctrace_analyzer.analysis.rules.finding import percent
from gctrace_analyzer.analysis.settings.naming import gogc_range
from gctrace_analyzer.units import digits, size_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.advise.advice import Advice
    from gctrace_analyzer.advise.prediction.outcome import Predictor
    from gctrace_analyzer.schema import Row


def present_row(advice: Advice) -> Row:
    """Returns the figures of the present setting, which are always among the recommended ones."""
    return advice.recommendations.filter(now=True).row(0, named=True)


def order(first: Row, advice: Advice) -> str:
    """Returns what to set; where the evidence is thin, a test instead of an order."""
    setting = with_effects(first, advice)
    if first["confidence"] == "low":
        return f"Try {setting} with `gctrace-analyze measure`."
    return f"Set {setting}."


def to_set(row: Row, predictor: Predictor) -> str:
    """Returns the variables to set; not GOGC if it stays, and is only known to be in a range."""
    setting = Setting.of(row)
    stays = setting.gogc == predictor.now.gogc and gogc_range(predictor.regime) is not None
    variables = str(setting)
    return variables.partition(" ")[2] if stays and setting.limit else variables


def with_effects(first: Row, advice: Advice) -> str:
    """Returns a setting with what it does, as `GOGC=200 (GC CPU 4 % instead of 19 %, …)`."""
    present = present_row(advice)
    room = ""
    larger = (first["heap_peak_mib"] or 0.0) > (present["heap_peak_mib"] or 0.0)
    if larger and not advice.baseline.settings.value("container_limit_mib"):
        room = " if the container has room for it"
    effects = ", ".join(_effects(first, present, advice.measured_gc_cpu_share))
    if _changes_nothing(first, present):
        # It is for another load, and the reason says for which.
        effects = first["why"]
    return f"{to_set(first, advice.baseline)}{room} ({effects})"


def _changes_nothing(first: Row, present: Row) -> bool:
    """Returns whether GC CPU and heap peak of a setting are printed as those of the present one."""
    names = ("gc_cpu_with_idle_share", "heap_peak_mib")
    pairs = [(first[name], present[name]) for name in names]
    known = all(then is not None and now for then, now in pairs)
    return known and all(abs(then / now - 1) < _SAME for then, now in pairs)


def _effects(first: Row, present: Row, whole: float | None) -> Iterator[str]:
    """Yields what a setting changes; `whole` is the share of GC CPU that was measured."""
    if run_time := run_time_text(first):
        yield run_time
    # As in the table of the recommendation
    share, now = first["gc_cpu_with_idle_share"], present["gc_cpu_with_idle_share"]
    if share is not None and now:
        if whole is None or percent(now) == percent(whole):
            yield f"GC CPU {percent(share)} instead of {percent(now)}"
        else:
            # A second figure for the present would contradict the first: that of the whole log,
            # without idle marking.
            yield _change(share / now)
    elif first["gc_per_s"] is not None and present["gc_per_s"] is not None:
        rates = (digits(row["gc_per_s"], 2) for row in (first, present))
        yield "{} cycles/s instead of {}".format(*rates)
    peak, old = first["heap_peak_mib"], present["heap_peak_mib"]
    if peak is not None and old is not None:
        yield f"heap peak {size_text(peak)} instead of {size_text(old)}"


_SAME = 0.02
"""Relative change of GC CPU. Less is far within every interval."""


def _change(times: float) -> str:
    """Returns by how much GC CPU changes by a factor, as `39 % less GC CPU with idle marking`."""
    change = f"{percent(abs(1 - times))} {'less' if times < 1 else 'more'}"
    return f"{'the same' if abs(1 - times) < _SAME else change} GC CPU with idle marking"
