"""gctrace of some seconds and metrics of a longer time, read together."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

import gctrace_analyzer as gca
from tests.helpers.metrics import CORPUS

if TYPE_CHECKING:
    from pathlib import Path

OWN = CORPUS / "own"
SCRAPES = "query-raw.json.gz"


def beginning(path: Path, setting: str, lines: int) -> Path:
    """The first lines of a recording."""
    with gzip.open(OWN / setting / "run.log.gz", "rt") as log:
        path.write_text("".join(next(log) for _ in range(lines)))
    return path


def test_the_load_is_from_metrics_and_the_cost_from_gctrace(tmp_path: Path) -> None:
    part = beginning(tmp_path / "part.log", "gogc100", 35)
    scrapes = gca.read(OWN / "gogc100" / SCRAPES)
    # Without the classes of CPU time, as of the default collector.
    names = ["gc_cpu_s", "gc_cpu_idle_s", "gc_cpu_assist_s", "available_cpu_s"]
    page = tmp_path / "default.csv"
    scrapes.memstats.drop(*names, "gc_cpu_fraction").write_csv(page)
    run = gca.read(part, page)
    now = run.recommend().row(0, named=True)
    truth = scrapes.summary()
    assert now["gc_per_s"] == pytest.approx(truth.gc_per_s, rel=0.01)
    assert now["gc_cpu_share"] == pytest.approx(truth.gc_cpu_share, rel=0.6)
    assert gca.read(page).recommend()["gc_cpu_share"][0] is None
    assert "the cost of a cycle from 14 s of gctrace" in str(run.recommend()["warnings"][0])
    other = gca.read(OWN / "gogc200" / "run.log.gz").summary()
    row = run.whatif(gogc=200).row(0, named=True)
    assert row["gc_per_s_low"] < other.gc_per_s < row["gc_per_s_high"]


def test_sources_of_the_same_time_check_each_other() -> None:
    run = gca.read(OWN / "gogc100" / "run.log.gz", OWN / "gogc100" / SCRAPES)
    assert run.analysis.overlap is not None
    assert run.analysis.overlap.ratio("cycles") == 1
    assert run.analysis.overlap.ratio("pause_total_ms") == pytest.approx(1, rel=0.05)
    assert any("both cover 55 s" in each for each in run.summary().warnings)
    assert not run.analysis.has_longer_metrics


@pytest.mark.parametrize(("counted_ms", "is_own"), [(1.4, True), (2.6, False), (9.0, False)])
def test_a_dump_with_other_pauses_is_of_another_process(
    counted_ms: float, is_own: bool, tmp_path: Path
) -> None:
    """Ten cycles with 0.1 ms of pauses each; rounding and a late dump explain 1.5 ms at most."""
    log, dump = tmp_path / "run.log", tmp_path / "dump.json"
    log.write_text(
        "".join(
            f"gc {n} @{n / 10}s 2%: 0.07+1+0.03 ms clock, 0.14+0.1/1/0+0.06 ms cpu, "
            "4->5->3 MB, 5 MB goal, 0 MB stacks, 0 MB globals, 2 P\n"
            for n in range(1, 21)
        )
    )
    sizes = '"Alloc": 4000000, "Sys": 9000000, "HeapSys": 7000000, "TotalAlloc": 9000000'
    pauses = f'"NumGC": 10, "PauseTotalNs": {counted_ms * 1e6:.0f}, "GCCPUFraction": 0.3'
    dump.write_text(f"{{{sizes}, {pauses}}}")
    run = gca.read(log, dump)
    notes = [note for note in run.analysis.log.notes if "not of the process of the log" in note]
    assert run.memstats["process"].to_list() == [0 if is_own else None]
    assert bool(notes) is not is_own
    alone = gca.read(log).summary().gc_cpu_share
    assert is_own or run.summary().gc_cpu_share == alone
    # Beside dumps in the log itself, only these are of its program.
    with log.open("a") as more:
        more.write("Alloc = 4000000 TotalAlloc = 9000000 Sys = 9000000 NumGC = 20\n")
    both = gca.read(log, dump).memstats
    assert dict(zip(both["source"].cast(str), both["process"], strict=True)) == {
        str(log): 0, str(dump): None,
    }  # fmt: skip


def test_metrics_of_another_program_are_not_used(tmp_path: Path) -> None:
    part = beginning(tmp_path / "part.log", "gogc100", 35)
    run = gca.read(part, OWN / "gogc200" / SCRAPES)
    assert not run.analysis.has_longer_metrics
    assert any("not of the process of the log" in each for each in run.analysis.log.notes)
