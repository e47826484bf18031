"""Metrics of several processes in one export: distinct by name, each with its settings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.settings.known import Known
from gctrace_analyzer.present.sections.report import document
from gctrace_analyzer.present.text import plain

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20
BEGIN = 1_795_450_000
PODS = {"shop-7d9f-abc": (100, 1), "cart-1": (100, 3), "shop-7d9f-def": (200, 2)}
"""GOGC and cycles per five seconds of each pod."""


def export(folder: Path, *, scrapes: int = 40) -> Path:
    """Writes a VictoriaMetrics export of three pods of one job, the last with another GOGC."""
    path = folder / "export.jsonl"
    with path.open("w") as file:
        for pod, (gogc, rate) in PODS.items():
            cycles = [100 + 3 * rate * number for number in range(scrapes)]
            goal = 50 * MIB * (1 + gogc / 100)
            series = {
                "go_gc_duration_seconds_count": cycles,
                "go_memstats_alloc_bytes_total": [each * 40 * MIB for each in cycles],
                "go_memstats_next_gc_bytes": [goal] * scrapes,
                "go_memstats_heap_alloc_bytes": [60 * MIB] * scrapes,
                "go_gc_gogc_percent": [gogc] * scrapes,
                "go_gc_gomemlimit_bytes": [gogc * 10 * MIB] * scrapes,
            }
            for name, values in series.items():
                labels = {"__name__": name, "job": "pods", "instance": f"{pod}:80", "pod": pod}
                times = [1000 * (BEGIN + 15 * number) for number in range(scrapes)]
                line = {"metric": labels, "values": values, "timestamps": times}
                file.write(json.dumps(line) + "\n")
    return path


def test_settings_are_those_of_the_process_that_advice_is_about(tmp_path: Path) -> None:
    run = gca.read(export(tmp_path))
    others = "metrics; other processes have"
    assert run.settings.gogc == Known(100.0, f"{others} 200")
    assert run.settings.memory_limit_mib == Known(1000.0, f"{others} 2,000 MiB")
    best = run.recommend().row(0, named=True)
    assert best["gogc"] == 100
    assert "of 3, which has the most cycles" in best["warnings"]


def test_the_settings_of_one_process_are_its_own(tmp_path: Path) -> None:
    run = gca.read(export(tmp_path))
    number = run.processes.filter(pod="shop-7d9f-def")["process"][0]
    assert run.process(number).settings.gogc == Known(200.0, "metrics")
    # Advice may be about another process than the one with the most cycles.
    own = run.analysis.settings_of(number)
    assert (own.gogc, own.memory_limit_mib) == (
        Known(200.0, "metrics"),
        Known(2000.0, "metrics"),
    )


def test_tables_name_the_pods_and_not_their_common_job(tmp_path: Path) -> None:
    lines = plain(document(gca.read(export(tmp_path)).report())).splitlines()
    for title in ("Processes", "Memory (metrics)"):
        begin = next(place for place, line in enumerate(lines) if line.startswith(title))
        rows = lines[begin + 1 : begin + 4]
        assert sorted(pod for pod in PODS for row in rows if pod in row) == sorted(PODS)


def test_enough_samples_are_not_called_too_few(tmp_path: Path) -> None:
    def notes(scrapes: int) -> str:
        return str(gca.read(export(tmp_path, scrapes=scrapes)).recommend()["warnings"][0])

    assert "only 20 samples: 21 or more halve the errors" in notes(20)
    assert "or more halve the errors" not in notes(21)
