"""Memory near the container's limit, and a GOMEMLIMIT that fits although nothing is predicted."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.cli import main
from gctrace_analyzer.present.sections.report import document
from gctrace_analyzer.present.text import plain
from gctrace_analyzer.testing import read_text
from tests.conftest import CORPUS, SAMPLES

if TYPE_CHECKING:
    from pathlib import Path

THRASHED = SAMPLES / "thrash-go1.19.log"
KILL = CORPUS / "inputs" / "journalctl" / "leakd-short.log"


def scrape(cycles: int = 48_211, resident_mib: int = 448) -> str:
    sizes = {
        "go_gc_duration_seconds_count": cycles,
        "go_gc_duration_seconds_sum": cycles / 4000,
        "go_gc_gogc_percent": 100,
        "go_memstats_alloc_bytes": 300 << 20,
        "go_memstats_alloc_bytes_total": (cycles * 200) << 20,
        "go_memstats_heap_idle_bytes": 143 << 20,
        "go_memstats_heap_inuse_bytes": 315 << 20,
        "go_memstats_heap_released_bytes": 48 << 20,
        "go_memstats_last_gc_time_seconds": 1.7645e9 + cycles - 48_211,
        "go_memstats_next_gc_bytes": 400 << 20,
        "go_memstats_sys_bytes": 496 << 20,
        "process_resident_memory_bytes": resident_mib << 20,
        "process_start_time_seconds": 1.7644e9,
    }
    lines = (f"# TYPE {name} gauge\n{name} {value}\n" for name, value in sizes.items())
    return f'go_info{{version="go1.24.3"}} 1\n{"".join(lines)}'


def two(tmp_path: Path, **facts: Any) -> gca.Run:
    for number in (0, 1):
        (tmp_path / f"{number}.prom").write_text(scrape(48_211 + 60 * number))
    return gca.read(tmp_path / "0.prom", tmp_path / "1.prom", **facts)


@pytest.mark.parametrize("is_single", [True, False])
def test_how_near_the_container_limit_is_comes_first(
    tmp_path: Path, *, is_single: bool
) -> None:
    def verdict(limit: str) -> Any:
        facts: dict[str, Any] = {"container_limit": limit}
        run = gca.read(io.StringIO(scrape()), **facts) if is_single else two(tmp_path, **facts)
        return run.report().verdict

    near = verdict("460MiB")
    assert near.level == "warn"
    assert "it has 448 MiB of 460 MiB (97 %)" in near.sentence
    assert near.action.startswith(
        "Raise the container's memory limit" if is_single else "Try GOGC=100 GOMEMLIMIT=414MiB"
    )
    far = verdict("480MiB")
    assert far is None or "near the container's limit" not in far.sentence


def test_without_resident_memory_what_go_holds_counts() -> None:
    dump = "Sys = 133888296\nHeapReleased = 10928128\nHeapAlloc = 78126256\n"
    found = gca.read(io.StringIO(dump), container_limit="80MiB").report().verdict
    assert found is not None
    assert "Go alone holds 117 MiB of 80 MiB (147 %)" in found.sentence


@pytest.mark.parametrize("resident_mib", [448, 480])
def test_no_peak_is_below_what_is_resident(tmp_path: Path, resident_mib: int) -> None:
    for number in (0, 1):
        text = scrape(48_211 + 60 * number, resident_mib)
        (tmp_path / f"{number}.prom").write_text(text)
    run = gca.read(tmp_path / "0.prom", tmp_path / "1.prom", container_limit="1GiB")
    rows = run.whatif(gogc=[100, 200]).to_dicts()
    assert all(row["memory_peak_mib"] >= resident_mib for row in rows)
    limited = run.whatif(memory_limit="420MiB").row(0, named=True)
    assert limited["memory_peak_mib"] <= 420 + (run.report().advice.baseline.off_heap_mib)


@pytest.mark.parametrize(
    ("log", "facts", "variables"),
    [
        (THRASHED, {"container_limit": "1GiB"}, "GOMEMLIMIT=921MiB"),
        (None, {"container_limit": "1GiB"}, "GOMEMLIMIT=921MiB"),
        (THRASHED, {"container_limit": "200MiB"}, "GOMEMLIMIT=180MiB"),  # the most that fits
        (THRASHED, {"container_limit": "150MiB"}, ""),  # too small for the live heap
        (THRASHED, {}, "GOMEMLIMIT=249MiB"),  # lowest with room for the live heap
        (None, {}, ""),
        (KILL, {"container_limit": "10GiB"}, ""),  # its post-mortem says what to do
    ],
)
def test_a_limit_that_fits_is_recommended_without_a_prediction(
    log: Path | None, facts: dict[str, Any], variables: str, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    if log is None:
        log = tmp_path / "one.prom"
        log.write_text(scrape())
    run = gca.read(log, **facts)
    rows = run.recommend()
    assert rows["now"].to_list() == ([False, True] if variables else [True])
    # Nothing else is predicted.
    assert rows["heap_peak_mib"].count() == 0
    options = [f"--{name.replace('_', '-')}={value}" for name, value in facts.items()]
    assert main(["recommend", str(log), *options, "-f", "env"]) == (0 if variables else 3)
    assert capsys.readouterr().out.strip() == variables
    assert ("Only GOMEMLIMIT is recommended" in str(rows)) == bool(variables)


def test_one_scrape_shows_rates_since_the_start() -> None:
    shown = " ".join(plain(document(read_text(scrape()).report())).split())
    assert "Pauses 0.012 % of the time since the start" in shown
    assert "Frequency 0.48/s 48,211 cycles in 1d 03h" in shown
    assert "Allocation 96.4 MiB/s on average since the start" in shown


def test_a_setting_that_does_not_fit_the_container_is_the_reason_for_no_change() -> None:
    """Without the container it saves a third of the run time."""
    log = SAMPLES / "assists-go1.16.log"
    assert gca.read(log).recommend().frame["gogc"][0] == 150
    why = gca.read(log, container_limit="400MiB").recommend().frame["why"][0]
    assert why == (
        "no change: GOGC=150 would save at least 5 % of the run time, but would need up to 433 MiB: "
        "90 % of the container's 400 MiB are 360"
    )
