"""What is recommended for a recorded program, so that it can be run and compared."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.advise.policy import recommend
from gctrace_analyzer.analysis.settings.known import Known
from lab.evaluation import predictions

if TYPE_CHECKING:
    from pathlib import Path

CONTAINER_TIMES = 2
"""Memory limit of the container that the advice is asked for, times the peak resident memory."""

PROMISED = ("gc_per_s", "gc_cpu_with_idle_share", "heap_peak_mib", "gain_gc_cpu_share")


class Adviser:
    """Recommends settings for the programs of a folder, each from its own GOGC=100 recording.

    The constants and the widths of the intervals are fitted on the folder's other programs.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def _runs(self) -> list[predictions.Recorded]:
        return predictions.recordings(self._folder)

    @cached_property
    def _left_out(self) -> tuple[list[predictions.Pair], dict[str, dict[str, float]]]:
        return predictions.left_out(self._runs)

    def advice(self, row: dict[str, Any]) -> dict[str, Any] | None:
        """Returns what is recommended after a recording; None if it is no change.

        Args:
            row: the recording's row of the manifest.
        """
        program, label = row["dir"].split("/")
        run = next(
            (run for run in self._runs if (run.program, run.label) == (program, label)), None
        )
        if run is None or run.baseline.refused:
            return None
        container_mib = CONTAINER_TIMES * row["rss_peak_mib"]
        settings = replace(
            run.baseline.settings,
            container_limit_mib=Known(container_mib, "twice the resident memory"),
        )
        _, factors = self._left_out
        constants = predictions.fitted(self._runs, run.family)
        baseline = predictions.with_constants(run.baseline, constants, factors[run.family])
        first = recommend(replace(baseline, settings=settings), aim="cpu").row(0, named=True)
        if first["now"]:
            return None
        ends = ("", "_low", "_high")
        return {
            "from": row["dir"],
            "container_limit_mib": container_mib,
            "gogc": first["gogc"],
            "memory_limit_mib": first["memory_limit_mib"],
            "why": first["why"],
            **{f"{name}{end}": first[f"{name}{end}"] for name in PROMISED for end in ends},
        }
