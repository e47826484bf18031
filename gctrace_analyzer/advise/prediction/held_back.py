"""Programs that mark assists slow down: how fast they would allocate without assists.

If goroutines do much of the marking and the heap ends at its goal, a cycle allocates as much as the
goal has room for. With more room it allocates more, at most what the program allocates while
workers alone mark the heap. Measured on benchmarks of the Go project and seven programs of our own:
without this correction, the predicted heap peak under GOGC=400 was half the real one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from gctrace_analyzer.advise.prediction.load import Load, passed
from gctrace_analyzer.analysis.timeline.limiter import BACKGROUND_SHARE

FULL_ROOM, MUCH_ASSIST = (0.75, 0.9), (0.25, 0.4)
"""Share of the room from trigger to goal that is allocated during marking, and share of marking
done in assists. At the first value of each pair, assists do not limit the program. At the second,
the heap ends at its goal only because goroutines have to mark."""

FREE_RATE = 0.8
"""Allocation rate during marking relative to the rate between cycles, per CPU left to the program.
Measured: 0.65 to 1.0 on eight programs whose assists ended with a higher GOGC."""


@dataclass(frozen=True)  # without slots, so that properties are calculated once
class Assists:
    """How much mark assists slowed a program down."""

    load: Load

    @cached_property
    def hold_back(self) -> float:
        """1 if assists slow allocation so that the heap ends at the goal, 0 if they do not."""
        load = self.load
        share = load.assist_ms / load.work_ms
        return passed(load.room_used, FULL_ROOM) * passed(share, MUCH_ASSIST)

    @cached_property
    def free_in_mark_times(self) -> float:
        """Factor by which allocation during marking would grow if nothing slowed it down."""
        hold_back = self.hold_back
        if not hold_back:
            return 1.0
        free = self.in_mark_of(self.mark_ms_without)
        times: float = max(free / max(self.load.in_mark, 0.05), 1.0) ** hold_back
        return times

    @property
    def workers(self) -> float:
        """CPUs of background and idle workers, which mark without assists."""
        return max(self.load.background_ms + self.load.idle_ms, 1e-3) / self.load.mark_ms

    @property
    def mark_ms_without(self) -> float:
        """Duration of marking if only workers marked, in ms."""
        return self.load.work_ms / max(self.workers, BACKGROUND_SHARE * self.load.cpus)

    def in_mark_of(self, mark_ms: float) -> float:
        """Returns the MiB that are allocated while marking runs for `mark_ms`."""
        lost_ms = self._lost_to_marking_ms(self.load.work_ms)
        return self._free_mib_per_ms * max(mark_ms - lost_ms, 0.0)

    def mark_ms_of(self, in_mark: float, work_ms: float) -> float:
        """Returns the duration of marking in ms if `in_mark` MiB are allocated meanwhile."""
        return in_mark / max(self._free_mib_per_ms, 1e-9) + self._lost_to_marking_ms(work_ms)

    @property
    def _free_mib_per_ms(self) -> float:
        return FREE_RATE * max(self.load.alloc_off, self.load.alloc_in) / 1000

    def _lost_to_marking_ms(self, work_ms: float) -> float:
        """Returns the time during which a program that needs all CPUs cannot allocate."""
        return self.load.cpu_bound * work_ms / self.load.cpus
