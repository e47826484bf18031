"""Recordings of metrics, and what the gctrace of the same run shows for their time."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import polars as pl

import gctrace_analyzer as gca
from tests.conftest import ROOT
from tests.helpers.intervals import between_dumps

if TYPE_CHECKING:
    from pathlib import Path

CORPUS = ROOT / "tests/corpus/metrics"
LAYOUTS = (
    "scrapes.om", "query-raw.json", "query_range-1s.json", "query_range-15s.json",
    "promtool-dump.txt", "expvar.jsonl", "memstats.csv", "runtime-metrics.jsonl", "otlp.jsonl",
)  # fmt: skip
RECORDINGS = sorted(
    f"{path.parent.relative_to(CORPUS)}/{path.name}"
    for layout in LAYOUTS
    for path in CORPUS.glob(f"*/*/{layout}.gz")
)


@dataclass(frozen=True)
class Recording:
    """One file of metrics, read with the settings of the run."""

    run: gca.Run
    manifest: dict[str, Any]
    folder: Path

    def processes(self) -> list[int]:
        """Returns the processes that have intervals."""
        return sorted(between_dumps(self.run)["process"].unique())

    def figures(self, process: int) -> dict[str, Any]:
        """Returns the summary of a process."""
        every = {row["process"]: own for row, own in self.run.analysis.per_process}
        return every[process].to_dict()

    def truth(self, process: int) -> dict[str, float]:
        """Returns the figures of the cycles that ended within the intervals of a process."""
        own = between_dumps(self.run).filter(process=process)
        begin, end = own["begin_at"][0].timestamp(), own["end_at"][-1].timestamp()
        starts = self.manifest["start_unix"]
        starts = starts if isinstance(starts, list) else [starts]
        number = max(n for n, start in enumerate(starts) if start <= begin + 2)
        every = gctrace(self.folder)
        every = every.filter(process=sorted(every["process"].unique())[number])
        cycles = every.with_columns(at=pl.col("end_s") + starts[number]).filter(
            pl.col("at").is_between(begin, end, closed="right")
        )
        pauses = cycles["stw_sweep_term_ms"] + cycles["stw_mark_term_ms"]
        cpu = pl.sum_horizontal("assist_cpu_ms", "background_cpu_ms").sum() / 1000
        return {
            "cycles": float(len(cycles)),
            "gc_per_s": len(cycles) / (end - begin),
            "stw_total_ms": float(pauses.sum()),
            # gctrace prints whole MiB, rounded down.
            "live_mib": float(cycles["heap_live_mib"].median() or 0) + 0.5,  # type: ignore[arg-type]
            "goal_mib": float(cycles["heap_goal_mib"].median() or 0) + 0.5,  # type: ignore[arg-type]
            "mark_share": cycles.select(
                cpu / (pl.col("elapsed_s") * pl.col("procs")).sum()
            ).item(),
        }


@lru_cache(maxsize=32)
def gctrace(folder: Path) -> pl.DataFrame:
    """Returns the cycles of a recording, with corrected durations."""
    return gca.read(folder / "run.log.gz").analysis.corrected


@lru_cache(maxsize=64)
def recording(name: str) -> Recording:
    """Returns a recording, read with its GOGC and GOMEMLIMIT."""
    path = CORPUS / name
    manifest = json.loads((path.parent / "manifest.json").read_text())
    limit = manifest["GOMEMLIMIT"]
    run = gca.read(path, gogc=manifest["GOGC"], memory_limit=None if limit == "off" else limit)
    return Recording(run, manifest, path.parent)
