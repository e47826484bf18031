"""The content of a report: one analysis with its advice, and the line that introduces it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from gctrace_analyzer.advise.subject import process_of_verdict
from gctrace_analyzer.advise.verdict import Verdict, verdict
from gctrace_analyzer.present import format
from gctrace_analyzer.units import DAY_S, cpus_text

if TYPE_CHECKING:
    from gctrace_analyzer.advise.advice import Advice
    from gctrace_analyzer.analysis.analysis import Analysis
    from gctrace_analyzer.analysis.rules.finding import Severity


_SUFFIX = re.compile(
    # A number is a rotation suffix only after another suffix: `run.log.1.gz`, not `go1.24.log`.
    r"\.(log|txt|out|err|jsonl?|csv|gz|zst|xz|bz2|zip)"
    r"(\.(log|txt|out|err|jsonl?|csv|gz|zst|xz|bz2|zip|\d{1,9})){0,4}(?= and \d{1,9} more$|$)"
)


@dataclass(frozen=True, repr=False)
class Report:
    """An analysis and its advice, ready to be shown in any output format."""

    analysis: Analysis
    advice: Advice

    def __repr__(self) -> str:
        """Returns the subject, and how to show the report."""
        return f"<Report on {self.title}; the run's to_markdown() and to_html() show it>"

    @property
    def title(self) -> str:
        """The names of the inputs."""
        # Profiles come after the log, whatever their order.
        sources = sorted(self.analysis.log.sources, key=lambda source: source.kind == "pprof")
        if not sources:
            return "a frame of cycles"
        names = [format.printable(source.name) for source in sources]
        return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"

    @property
    def name(self) -> str:
        """The name of the service, or else that of the first input without suffix."""
        rows = self.analysis.tables["processes"]
        for column in ("container", "ident", "pod", "unit"):
            if column in rows.columns and rows[column].drop_nulls().n_unique() == 1:
                return format.printable(str(rows[column].drop_nulls()[0]))
        return _SUFFIX.sub("", self.title.rpartition("/")[2]) or self.title

    @property
    def is_scraped(self) -> bool:
        """Whether memory sizes come from metrics, not from MemStats dumps."""
        return any(source.is_scraped for source in self.analysis.log.sources)

    @cached_property
    def verdict(self) -> Verdict | None:
        """Whether GC is the problem, and what to do; None if the input shows neither."""
        return verdict(self.analysis, self.advice)

    @cached_property
    def levels(self) -> dict[str, Severity]:
        """Whether each headline figure is ok, a warning or bad.

        GC CPU is not ok if it is above what is warned at after the start-up: settings are for that.
        """
        own = self.analysis.levels
        is_hidden = (
            own.get("gc_cpu") == "ok" and self.advice.baseline.differs_since_s is not None
        )
        return {**own, "gc_cpu": "info"} if is_hidden else own

    @property
    def subject(self) -> int | None:
        """The process of the verdict, or else the one with the most cycles."""
        process = process_of_verdict(self.analysis)
        return self.analysis.longest_process if process is None else process

    def moment(self, process: int | None, seconds: float, *, in_ms: bool = False) -> str:
        """Formats a time since the start of a process: by the clock if the input has one."""
        begin = None if process is None else self.analysis.started_at.get(process)
        if begin is None:
            return format.duration(seconds)
        at = begin + timedelta(seconds=seconds)
        long = (self.analysis.summary.span_s or 0) > DAY_S
        if in_ms:
            return f"{at:%H:%M:%S.%f}"[:-3]
        return f"{at:%m-%d %H:%M:%S}" if long else f"{at:%H:%M:%S}"

    @property
    def _counted(self) -> str:
        """The number of cycles, as in the first line of a report."""
        summary = self.analysis.summary
        cycles = format.count(summary.cycles, "cycle")
        if self.analysis.by_dumps:
            return "cycles not counted" if summary.gc_per_s is None else cycles
        if summary.cycles:
            repaired, missing = self.analysis.repaired, summary.missing_cycles
            flawed = [f"{format.count(repaired, 'line')} repaired"] if repaired else []
            flawed += [f"{missing:,} missing"] if missing else []
            return ", ".join([cycles, *flawed])
        has_dumps = len(self.analysis.tables["memstats"])
        return "no gctrace" if has_dumps else "no GC cycles"

    @property
    def facts(self) -> list[str]:
        """The parts of the first line: input, Go version, processors, time span, cycles."""
        part = self.analysis.log.selection
        return [
            self.title,
            *([f"only {part.text}"] if part else []),
            *self.program,
            *self.other_cpus,
            *self._time(),
            *self._begin(),
            self._counted,
        ]

    @property
    def program(self) -> list[str]:
        """The Go version and the number of processors, as far as known."""
        procs = "–".join(map(str, self.analysis.procs))
        is_one = len(self.analysis.tables["processes"]) == 1
        stated = self.analysis.settings.value("go_version") if is_one else None
        go = f"go{stated}" if stated else self.analysis.go_versions
        return [
            *([go] if go else []),
            *([f"{procs} procs" if procs != "1" else "1 proc"] if procs else []),
        ]

    @property
    def other_cpus(self) -> list[str]:
        """The number of CPUs if it is not GOMAXPROCS."""
        cpus, procs = self.analysis.summary.cpus, self.analysis.procs
        if cpus is None or len(procs) != 1 or round(cpus, 2) == procs[0]:
            return []
        return [cpus_text(cpus)]

    def _time(self) -> list[str]:
        """Returns the length of the log, and the number of processes if there are several.

        Without a common clock, only the sum of their times is known.
        """
        several = len(self.analysis.tables["processes"])
        covered, sum_s = self.analysis.covered_s, self.analysis.summary.span_s
        if several < 2:
            return [] if covered is None else [format.duration(covered)]
        if covered is not None:
            return [format.duration(covered), f"{several:,} processes"]
        if sum_s is None:
            return []
        return [f"{format.duration(sum_s)} in total of {several:,} processes"]

    def _begin(self) -> list[str]:
        begins, dumps = self.analysis.started_at.values(), self.analysis.tables["memstats"]
        is_start = self.analysis.by_dumps and dumps["started_at"].count()
        # The log of a running process begins later.
        is_start |= (
            bool((self.analysis.cycles["gc_num"] > 1).all()) and not self.analysis.by_dumps
        )
        word = "from" if self._time() and not is_start else "started"
        return [f"{word} {min(begins):%Y-%m-%d %H:%M:%S} UTC"] if begins else []
