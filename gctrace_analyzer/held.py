"""The tables a run holds, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

    from gctrace_analyzer.ingest.read import Log
    from gctrace_analyzer.ingest.sources import SourceFacts


class Held:
    """What was read. `table` names them all."""

    _log: Log

    def table(self, name: str) -> pl.DataFrame:
        """A table by name."""
        return self._log.tables[name]

    @property
    def cycles(self) -> pl.DataFrame:
        """One row per GC cycle, as printed."""
        return self.table("cycles")

    @property
    def processes(self) -> pl.DataFrame:
        """One row per program start."""
        return self.table("processes")

    @property
    def scavenges(self) -> pl.DataFrame:
        """What the scavenger printed."""
        return self.table("scavenges")

    @property
    def pacer(self) -> pl.DataFrame:
        """What GODEBUG=gcpacertrace=1 printed."""
        return self.table("pacer")

    @property
    def scans(self) -> pl.DataFrame:
        """What GODEBUG=gctrace=2 printed of scanning (Go 1.25 and later)."""
        return self.table("scans")

    @property
    def rejected(self) -> pl.DataFrame:
        """Lines that look like the runtime's and could not be read, with the reason."""
        return self.table("rejected")

    @property
    def memstats(self) -> pl.DataFrame:
        """Dumps of runtime.MemStats."""
        return self.table("memstats")

    @property
    def oom_kills(self) -> pl.DataFrame:
        """Processes that were killed for memory, one row per kill."""
        return self.table("oom_kills")

    @property
    def oom_invocations(self) -> pl.DataFrame:
        """Runs of the OOM killer that killed nothing."""
        return self.table("oom_invocations")

    @property
    def oom_tasks(self) -> pl.DataFrame:
        """The kernel's tables of tasks at its kills."""
        return self.table("oom_tasks")

    @property
    def unit_events(self) -> pl.DataFrame:
        """What systemd said of units."""
        return self.table("unit_events")

    @property
    def container_states(self) -> pl.DataFrame:
        """What Docker and Kubernetes say of containers."""
        return self.table("container_states")

    @property
    def runtime_fatal(self) -> pl.DataFrame:
        """The Go runtime's own out of memory."""
        return self.table("runtime_fatal")

    @property
    def sources(self) -> tuple[SourceFacts, ...]:
        """What is known of each input."""
        return self._log.sources

    @property
    def runtime_lines(self) -> dict[str, int]:
        """The runtime's lines that are no cycles, counted by shape."""
        return self._log.runtime_lines
