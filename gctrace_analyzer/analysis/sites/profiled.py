"""What the profiles of an input say, joined with the figures of its log."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from gctrace_analyzer.analysis.sites import gc_functions, sums
from gctrace_analyzer.analysis.sites.table import Costs, in_order, sites

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars as pl

    from gctrace_analyzer.analysis.sites.sums import Sums
    from gctrace_analyzer.analysis.summary import Summary
    from gctrace_analyzer.ingest.profiles.profile import Profile


class Profiled:
    """The profiles of a run; nothing is computed until it is asked for, and nothing twice."""

    def __init__(self, profiles: Sequence[Profile], figures: Callable[[], Summary]) -> None:
        self.profiles = profiles
        self._figures = figures
        self._sums: dict[str, Sums] = {}

    def sums_of(self, profile: Profile) -> Sums:
        """Returns the sums of one of the profiles."""
        if profile.name not in self._sums:
            self._sums[profile.name] = sums.sums(profile)
        return self._sums[profile.name]

    @cached_property
    def costs(self) -> Costs:
        """What all sites together cost, by the log."""
        return Costs.of(self._figures())

    @cached_property
    def sites(self) -> pl.DataFrame:
        """The sites per function (`schema.SITES`)."""
        return sites(self.profiles, self.costs, self.sums_of)

    @cached_property
    def lines(self) -> pl.DataFrame:
        """The sites per line (`schema.SITES`)."""
        return sites(self.profiles, self.costs, self.sums_of, lines=True)

    @cached_property
    def gc_functions(self) -> pl.DataFrame:
        """What GC takes in CPU profiles (`schema.GC_FUNCTIONS`)."""
        return gc_functions.gc_functions(self.profiles)

    @property
    def heap(self) -> Profile | None:
        """The last heap profile, which has what was allocated up to its time."""
        heaps = in_order(self.profiles, "heap")
        return heaps[-1] if heaps else None

    @cached_property
    def stacks(self) -> pl.DataFrame | None:
        """The stacks of the last heap profile, for a flame graph (`sums.distinct_stacks`)."""
        return None if self.heap is None else sums.distinct_stacks(self.heap)
