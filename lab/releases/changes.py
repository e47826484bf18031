"""What each release of Go changed in the garbage collector, according to its release notes."""

from __future__ import annotations

from typing import NamedTuple


class Release(NamedTuple):
    """A release.

    Attributes:
        version: the patch release that was recorded.
        changed: what changed; empty if the release notes name nothing about the collector.
        source: the runtime source that says more than the release notes.
    """

    version: str
    changed: str = ""
    source: str = ""

    @property
    def minor(self) -> str:
        """The release without its patch: 1.9.7 is 1.9."""
        return ".".join(self.version.split(".")[:2])


RELEASES = (
    Release("1.9.7"),
    Release(
        "1.10.8",
        "Allocation waits less for GC. GC uses less CPU while it runs, but may run for longer. "
        "Marking may take 30 % of the CPU: 25 % in background workers, the rest in mark assists.",
        "gcGoalUtilization and gcBackgroundUtilization in runtime/mgc.go",
    ),
    Release(
        "1.11.13",
        "The heap can be larger than 512 GiB. The notes mention no change to the cost of GC.",
    ),
    Release(
        "1.12.17",
        "Sweeping is faster if much of the heap stays live, so allocations right after a cycle "
        "wait less. Marking has one phase instead of two.",
        "“mark 2” is gone from runtime/mgc.go",
    ),
    Release("1.13.15", "After the heap shrinks, unused memory is returned to the OS sooner."),
    Release(
        "1.14.15",
        "Loops without function calls can be preempted, so they no longer delay a pause. The page "
        "allocator is faster on many processors.",
    ),
    Release("1.15.15"),
    Release(
        "1.16.15",
        "On Linux, memory is returned to the OS at once, not only when it runs short.",
    ),
    Release("1.17.13"),
    Release(
        "1.18.10",
        "A new pacer decides when cycles start. It counts stacks and global variables as GC work, "
        "and no longer plans for mark assists.",
        "gcGoalUtilization in runtime/mgcpacer.go fell from 30 to 25 %",
    ),
    Release(
        "1.19.13",
        "A memory limit (GOMEMLIMIT), which this load does not set, and a limiter that leaves half "
        "of the CPU to the program.",
    ),
    Release(
        "1.20.14",
        "The collector's own data structures take less memory and CPU. Mark assists are less "
        "erratic in some circumstances.",
    ),
    Release(
        "1.21.13",
        "The collector was tuned: tail latency falls by up to 40 %, memory use slightly, and some "
        "programs lose a little throughput.",
    ),
    Release(
        "1.22.12",
        "The type information that GC needs is stored nearer to each object: 1 to 3 % less CPU.",
    ),
    Release("1.23.12", "Timers without references are collected at once."),
    Release("1.24.10"),
    Release(
        "1.25.5",
        "The Green Tea collector is available as an experiment, which is off here.",
    ),
    Release(
        "1.26.8",
        "The Green Tea collector, which marks small objects page by page, is the default: 10 to "
        "40 % less GC work in programs that use GC a lot.",
    ),
    Release("1.27.1"),
)
"""The releases in their order; each patch release is one that the module proxy has."""
