"""The garbage collector in a CPU profile, as a second opinion on the log."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer import schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gctrace_analyzer.ingest.profiles.profile import Profile

ALL_GC, MARKING, ASSISTS, SWEEPING = "all GC", "background marking", "mark assists", "sweeping"

_PARTS = {
    MARKING: ("gcBgMarkWorker",),
    ASSISTS: ("gcAssistAlloc", "gcAssistAlloc1"),
    SWEEPING: ("bgsweep", "deductSweepCredit", "sweepone", "(*sweepLocked).sweep",
               "(*mspan).sweep"),
    "scavenging": ("bgscavenge",),
    "starting and ending cycles": ("gcStart", "gcMarkDone", "gcMarkTermination"),
    "write barriers": ("wbBufFlush", "gcWriteBarrier"),
}  # fmt: skip
"""The parts of GC, and the functions of the runtime that do them (runtime/mgc*.go)."""

_GROUPS = {
    ALL_GC: tuple(chain.from_iterable(_PARTS.values())),
    **_PARTS,
    "scanning objects": ("scanobject", "scanblock", "scanSpan", "scanstack", "markroot",
                         "gcDrain"),
    "allocation, with its mark assists": ("mallocgc", "newobject", "makeslice", "growslice"),
}  # fmt: skip
"""Scanning is part of several groups, and allocation includes more than GC."""


def gc_functions(profiles: Sequence[Profile]) -> pl.DataFrame:
    """Returns the CPU time of GC functions in CPU profiles (`schema.GC_FUNCTIONS`)."""
    frames = [_of(profile) for profile in profiles if profile.kind == "cpu"]
    if not frames:
        return schema.empty("gc_functions")
    return schema.conform("gc_functions", pl.concat(frames))


def _of(profile: Profile) -> pl.DataFrame:
    total = int(profile.stacks["cpu_ns"].sum())
    names = profile.places["function"].str.strip_prefix("runtime.")
    sums = dict.fromkeys(_GROUPS, 0)
    for frames in profile.frames():
        for part, functions in _GROUPS.items():
            places = names.is_in(functions).arg_true()
            stacks = frames.filter(pl.col("place").is_in(places.implode())).unique("stack")
            sums[part] += int(stacks["cpu_ns"].sum())
    rows = [
        (profile.name, part, ", ".join(names.filter(names.is_in(functions)).unique().sort()))
        for part, functions in _GROUPS.items()
    ]
    cpu_s = pl.Series("cpu_s", sums.values(), pl.Int64) / 1e9
    length = profile.duration_s
    return pl.DataFrame(rows, ["profile", "part", "functions"], orient="row").with_columns(
        cpu_s,
        cpu_share=cpu_s / (total / 1e9) if total else pl.lit(None, pl.Float64),
        cores=cpu_s / length if length else pl.lit(None, pl.Float64),
    )
