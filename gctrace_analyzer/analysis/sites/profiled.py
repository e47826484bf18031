"""The profiles of an input, joined with the figures of its log."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.rules.finding import percent
from gctrace_analyzer.analysis.sites import gc_functions, sums
from gctrace_analyzer.analysis.sites.functions import place, short_name
from gctrace_analyzer.analysis.sites.table import (
    Costs,
    changes,
    in_order,
    is_one_process,
    sites,
)
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.units import MIB, digits, share_of, size_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from gctrace_analyzer.analysis.postmortem.post_mortems import PostMortem
    from gctrace_analyzer.analysis.rules.finding import Finding
    from gctrace_analyzer.analysis.sites.sums import Sums
    from gctrace_analyzer.analysis.summary import Summary
    from gctrace_analyzer.analysis.thresholds import Thresholds
    from gctrace_analyzer.ingest.profiles.profile import Profile


_WHERE_ALLOCATED = re.compile(
    r"allocate less \(`go tool pprof -sample_index=alloc_space` shows where\)(?P<end>:?)",
    re.IGNORECASE,
)
_PROFILE = "Profile the allocations: `go tool pprof -sample_index=alloc_space`."
_COMPARE = re.compile(
    r"(?P<before>, |)compare two "
    r"(?:goroutine profiles \(`/debug/pprof/goroutine`\), and then two )?"
    r"heap profiles(?: \(`go tool pprof -base`\)|, `go tool pprof -base`)"
)
_HEAP = "(heap profile: `go tool pprof`)"

_MOST_NAMED = 3
_LEAST_KEPT = 0.01
"""Least share of the allocation that must remain: a program without any has no cycles."""

_MALG = "runtime.malg"
"""The function that allocates the descriptors of goroutines."""


class Profiled:
    """The profiles of a run; each result is computed once, when it is first used."""

    def __init__(
        self,
        profiles: Sequence[Profile],
        figures: Callable[[], Summary],
        thresholds: Thresholds = DEFAULT,
    ) -> None:
        self.profiles, self.thresholds = profiles, thresholds
        self._figures = figures
        self._sums: dict[str, Sums] = {}

    def sums_of(self, profile: Profile) -> Sums:
        """Returns the sums of one of the profiles."""
        if profile.name not in self._sums:
            self._sums[profile.name] = sums.sums(profile)
        return self._sums[profile.name]

    @cached_property
    def costs(self) -> Costs:
        """The cost of all sites together, according to the log."""
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
        """The CPU time of GC in CPU profiles (`schema.GC_FUNCTIONS`)."""
        return gc_functions.gc_functions(self.profiles)

    @property
    def heap(self) -> Profile | None:
        """The last heap profile, with all allocation up to its time."""
        heaps = in_order(self.profiles, "heap")
        return heaps[-1] if heaps else None

    @property
    def of_last_heap(self) -> pl.DataFrame:
        """The sites of the last heap profile."""
        heap = self.heap
        return self.sites.clear() if heap is None else self.sites.filter(profile=heap.name)

    @property
    def top(self) -> pl.DataFrame:
        """The sites to which something is attributed, the largest allocation first."""
        return self.of_last_heap.filter(pl.col("attributed_alloc_bytes") > 0)

    def changes(self, after: Profiled) -> pl.DataFrame | None:
        """Returns how allocation changed from another run (`table.changes`), if known."""
        if self.heap is None or after.heap is None:
            return None
        return changes(
            self.top.with_columns(rate=pl.lit(self.heap.period or 1)),
            after.top.with_columns(rate=pl.lit(after.heap.period or 1)),
        )

    @property
    def has_growth(self) -> bool:
        """Whether some process has two or more heap profiles."""
        return is_one_process(in_order(self.profiles, "heap"))

    @property
    def goroutines(self) -> pl.DataFrame:
        """The functions of the program with goroutines, most goroutines first."""
        last = in_order(self.profiles, "goroutine")[-1:]
        own = self.sites.filter(pl.col("profile").is_in([profile.name for profile in last]))
        return own.filter(~pl.col("standard"))

    @property
    def allocation(self) -> str:
        """Returns the functions that allocate most, with their share of GC; empty if unknown."""
        sites = self.top
        if sites.is_empty():
            return ""
        first = sites.row(0, named=True)
        least = self.thresholds.site_share
        if first["attributed_share"] >= least or len(sites) == 1:
            cores = first["gc_cpu_cores"]
            of_gc = "" if cores is None else f", about {digits(cores, 2)} cores of GC with idle"
            of = (
                "of it" if self.costs.alloc_mib_per_s is not None else "of what the profile has"
            )
            return f"{place(first)} allocates {percent(first['attributed_share'])} {of}{of_gc}"
        named = sites.head(_MOST_NAMED).iter_rows(named=True)
        parts = [f"{place(site)} {percent(site['attributed_share'])}" for site in named]
        return f"most is allocated by {', '.join(parts)}"

    def holding(self, column: str) -> pl.DataFrame:
        """Returns the functions with a positive value in a column, the largest first."""
        held = self.of_last_heap.filter(pl.col(column) > 0)
        return held.sort(column, descending=True, maintain_order=True)

    @property
    def growth(self) -> str:
        """Returns the function that holds most of the growth or live heap; empty if unknown."""
        if goroutines := self._goroutines:
            return goroutines
        column = "attributed_growth_bytes" if self.has_growth else "attributed_inuse_bytes"
        sites = self.holding(column)
        if sites.is_empty():
            return ""
        first, total = sites.row(0, named=True), int(sites[column].sum())
        size, share = size_text(first[column] / MIB), percent(first[column] / total)
        of = (
            "growth between the heap profiles"
            if self.has_growth
            else "live heap in the profile"
        )
        if first["function"] == _MALG:
            holder = f"the descriptors of goroutines ({_MALG}), which do not end, hold"
        else:
            holder = f"{place(first)} holds"
        return f"{holder} {share} of the {of} ({size})"

    @property
    def _goroutines(self) -> str:
        """Returns where most goroutines are, if their number suggests a leak."""
        if not self.has_many_goroutines:
            return ""
        first = self.goroutines.row(0, named=True)
        total = int(self.goroutines["goroutines"].sum())
        return f"{first['goroutines']:,} of {total:,} goroutines are in {place(first)}"

    def answered(self, advice: str) -> str:
        """Returns advice with the answer of the profiles in place of the way to find it."""
        if "pprof" not in advice:
            return advice
        if allocates := self.allocation:
            advice = _WHERE_ALLOCATED.sub(
                lambda match: f"{match[0][:13]}: {allocates}{';' if match['end'] else ''}",
                advice,
            )
            advice = advice.replace(_PROFILE, f"Allocate less: {allocates}.")
        if grows := self.growth:
            advice = _COMPARE.sub(
                lambda match: f"{': ' if match['before'] else ''}{grows}", advice
            )
            advice = advice.replace(_HEAP, f"({grows})")
        return advice

    @property
    def has_many_goroutines(self) -> bool:
        """Whether the number of goroutines in one function suggests a leak."""
        most = self.goroutines["goroutines"].head(1)
        return bool(len(most) and most[0] >= self.thresholds.many_goroutines)

    def answering(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Returns findings with advice that includes the results of the profiles."""
        return tuple(
            replace(finding, advice=self.answered(finding.advice)) for finding in findings
        )

    def explaining(self, deaths: Iterable[PostMortem]) -> Iterator[PostMortem]:
        """Yields post-mortems with advice that includes the results of the profiles."""
        for death in deaths:
            yield replace(death, advice=tuple(self.answered(text) for text in death.advice))

    def kept_share(self, less: Mapping[str, str | float]) -> float:
        """Returns the share of the allocation that remains if functions allocate less.

        Args:
            less: the part to save ("50%" or 0.5), by the function's name or its end.

        Raises:
            BadSettingError: there is no heap profile or no such function, or a value is not a
                share.
        """
        if self.heap is None:
            expected = "a heap or allocs profile in the input"
            raise BadSettingError("less", ", ".join(less), expected)
        names = {short_name(name): name for name in self.heap.places["function"].unique()}
        names |= {name: name for name in names.values()}
        shares = {}
        for function, text in less.items():
            if function not in names:
                own = [short_name(name) for name in self.top["function"]]
                raise BadSettingError.unknown("less", function, own)
            example = f"{function}=50%"
            shares[names[function]] = share_of(
                text, argument="less", example=example, whole=True
            )
        return max(sums.kept_share(self.heap, shares), _LEAST_KEPT)
