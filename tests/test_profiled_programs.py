"""Programs whose allocation is known: what their profiles and logs say of it."""

from __future__ import annotations

import json
import math
import re
import statistics
from typing import TYPE_CHECKING

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.errors import GctraceError
from tests.helpers.profiles import MANIFEST, OWN, PROFILES, REAL, Printed, printed, truth

if TYPE_CHECKING:
    from pathlib import Path

RATE_BYTES = 512 << 10
REMOVED = [
    (row["name"], function, side)
    for row in MANIFEST["own"]
    for function, side in row["removed"].items()
]


@pytest.mark.parametrize("program", OWN)
def test_a_profile_samples_what_the_program_counted(program: str) -> None:
    """What is sampled of an allocation is Poisson: one standard error is sqrt(bytes * rate)."""
    rows = printed(PROFILES / program / "pprof" / "alloc_space-cum.txt")
    for function, counted in truth(program).items():
        assert abs(rows[function].cum - counted) < 4 * math.sqrt(counted * RATE_BYTES)


def _gc_cpu_s(log: Path) -> float:
    """GC CPU time of a run, with idle marking: what would not be spent without GC."""
    summary = gca.read(log, gogc=100).summary()
    assert summary.gc_cpu_with_idle_cores is not None
    wall_s: float = json.loads(log.with_suffix(".json").read_text())["wall_s"]
    return summary.gc_cpu_with_idle_cores * wall_s


@pytest.mark.parametrize(("program", "function", "side"), REMOVED)
def test_gc_cpu_follows_allocation(program: str, function: str, side: str) -> None:
    runs = PROFILES / program / "runs"
    before, after = (
        statistics.median(_gc_cpu_s(runs / f"{name}-{number}.log") for number in range(1, 6))
        for name in ("all", side)
    )
    allocated = truth(program)
    predicted = allocated[function] / sum(allocated.values())
    assert predicted == pytest.approx(1 - after / before, rel=0.25)
    # The same by the profile; what is inlined into the function is its own.
    sites = _sites(program)
    site = sites.row(by_predicate=pl.col("function") == function, named=True)
    all_cores, all_bytes = float(sites["gc_cpu_cores"].sum()), float(sites["alloc_bytes"].sum())
    cores = all_cores * (int(site["cum_alloc_bytes"]) / all_bytes)
    wall_s = json.loads((runs / "all-1.json").read_text())["wall_s"]
    assert cores * wall_s == pytest.approx(before - after, rel=0.25)


def _sites(program: str, *, lines: bool = False) -> pl.DataFrame:
    folder = PROFILES / program
    return gca.read(folder / "run.log", folder / "allocs.pb.gz").sites(lines=lines)


@pytest.mark.parametrize("program", [*OWN, *REAL])
@pytest.mark.parametrize(
    ("report", "column"),
    [
        ("alloc_space", "alloc_bytes"),
        ("alloc_objects", "alloc_objects"),
        ("inuse_space", "inuse_bytes"),
    ],
)
def test_sites_are_those_of_pprof_to_the_byte(program: str, report: str, column: str) -> None:
    rows = printed(PROFILES / program / "pprof" / f"{report}.txt")
    values = _sites(program).select("function", column, f"cum_{column}")
    sites = {_as_pprof(name): Printed(*of_site) for name, *of_site in values.iter_rows()}
    assert rows or report == "inuse_space"
    assert {name: sites.get(name) for name in rows} == rows
    # Those that pprof leaves out have nothing.
    assert not any(sum(sites[name]) for name in sites.keys() - rows.keys())


@pytest.mark.parametrize("program", [*OWN, *REAL])
def test_sites_by_line_are_those_of_pprof_to_the_byte(program: str) -> None:
    rows = printed(PROFILES / program / "pprof" / "alloc_space-lines.txt")
    columns = ("function", "file", "line", "alloc_bytes", "cum_alloc_bytes")
    sites = {
        _as_pprof(f"{function} {file}:{line}"): Printed(*of_site)
        for function, file, line, *of_site in _sites(program, lines=True)
        .select(columns)
        .iter_rows()
    }
    assert {name: sites.get(name) for name in rows} == rows


def _as_pprof(name: str) -> str:
    """pprof takes empty parameter lists out of type arguments: `interface { Pos() token.Pos }`."""
    return name.replace("()", "")


@pytest.mark.parametrize("leak", MANIFEST["leaks"], ids=lambda leak: leak["name"])
def test_growth_between_two_heap_profiles_names_the_leak(leak: dict[str, str]) -> None:
    folder = PROFILES / "leaks" / leak["name"]
    names = ("run.log", "heap-early.pb.gz", "heap-late.pb.gz", "goroutine.pb.gz")
    sites = gca.read(*(folder / name for name in names)).sites()
    grown = sites.drop_nulls("attributed_growth_bytes").sort("attributed_growth_bytes")
    assert grown["function"][-1] == leak["function"]
    # It is most of what grew.
    growth = grown["attributed_growth_bytes"]
    assert growth[-1] > 0.8 * int(growth.filter(growth > 0).sum())


def test_two_profiles_without_a_log_have_growth_and_no_costs() -> None:
    folder = PROFILES / "leaks" / "timer"
    sites = gca.read(folder / "heap-early.pb.gz", folder / "heap-late.pb.gz").sites()
    assert sites["attributed_growth_bytes"].count()
    assert not sites["alloc_mib_per_s"].count()
    assert not sites["gc_cpu_cores"].count()


def test_a_leak_of_goroutines_is_in_their_profile() -> None:
    folder = PROFILES / "leaks" / "goroutine"
    sites = gca.read(folder / "run.log", folder / "goroutine.pb.gz").sites()
    assert sites.sort("goroutines")["function"][-1] == "main.check.func1"
    assert sites["goroutines"].max() > 5000  # type: ignore[operator]  # it has rows


REFUSED = {
    "Go mutex": "a block or mutex profile",
    "Go block": "a block or mutex profile",
    "Go threadcreate": "a profile of created threads",
    "Go heap without samples": "a profile without samples",
    "truncated": "a truncated profile",
    "empty": "empty|0 lines",
    "Java": "a profile of a program in Java, not in Go",
    "C++": r"a profile of a program in C or C\+\+, not in Go",
    "Java Flight Recorder": "a recording of Java's Flight Recorder",
    "perf": "a recording of perf",
    "Go goroutine, stacks in full": "stacks of goroutines",
}


@pytest.mark.parametrize("other", MANIFEST["others"], ids=lambda other: other["name"])
def test_other_files_are_read_or_refused_as_what_they_are(other: dict[str, str]) -> None:
    path, kind = PROFILES / "others" / other["name"], other["is"]
    if kind in REFUSED:
        with pytest.raises(GctraceError, match=REFUSED[kind]):
            gca.read(path)
    elif kind == "Go CPU":
        assert "background marking" in gca.read(path).gc_functions()["part"]
    else:
        column = "goroutines" if kind == "Go goroutine" else "alloc_bytes"
        sites = gca.read(path).sites()
        assert sites[column].sum() > 0
        assert sites["profile"].n_unique() == (2 if kind == "Go heap, twice" else 1)


def test_background_marking_in_a_cpu_profile_is_that_of_pprof() -> None:
    folder = PROFILES / "others"
    parts = gca.read(folder / "cpu.pb.gz").gc_functions()
    marking = parts.row(by_predicate=pl.col("part") == "background marking", named=True)
    report = (folder / "pprof-heap" / "cpu.txt").read_text()
    row = re.search(r"(\d+)ms +([\d.]+)%  runtime\.gcBgMarkWorker\n", report)
    assert row is not None
    assert marking["cpu_s"] == pytest.approx(int(row[1]) / 1000)
    assert f"{100 * marking['cpu_share']:.2f}" == row[2]


def test_the_text_form_has_the_values_of_the_other() -> None:
    """They were fetched one after the other; pprof reads the text without inlined functions."""
    folder = PROFILES / "others"
    for name in ("heap.txt", "allocs.txt"):
        rows = printed(folder / "pprof-heap" / f"{name}.alloc_space.txt")
        sites = gca.read(folder / name).sites()
        whole = sites.filter(pl.col("function") == "runtime.main")["cum_alloc_bytes"].item()
        assert whole == pytest.approx(rows["runtime.main"].cum, abs=100)
        tree = sites.filter(pl.col("function") == "main.tree")["alloc_bytes"].item()
        assert tree == pytest.approx(rows["main.tree"].flat, abs=100)
