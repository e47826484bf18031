"""Sites: sums per function and line, their share of the log's allocation and GC CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.sites.functions import is_standard, short_name
from tests.conftest import ROOT
from tests.helpers.written_profiles import MAIN, RUNTIME, profile, service

if TYPE_CHECKING:
    from pathlib import Path

    from gctrace_analyzer.run import Run
    from gctrace_analyzer.schema import Row
    from tests.helpers.written_profiles import Stack

LOG = ROOT / "samples/steady-go1.26.log"
MIB = 1 << 20


@pytest.fixture
def run(tmp_path: Path) -> Run:
    path = tmp_path / "allocs.pb.gz"
    path.write_bytes(service())
    return gca.read(LOG, path)


def site(run: Run, function: str) -> Row:
    return run.sites().filter(function=function).row(0, named=True)


def test_what_the_library_allocates_is_attributed_to_the_program(run: Run) -> None:
    library, decode = site(run, "encoding/json.Unmarshal"), site(run, "main.decode")
    assert (library["alloc_bytes"], library["attributed_alloc_bytes"]) == (600 * MIB, 0)
    assert (decode["alloc_bytes"], decode["attributed_alloc_bytes"]) == (0, 600 * MIB)
    assert (decode["cum_alloc_bytes"], decode["attributed_share"]) == (600 * MIB, 0.6)
    assert (library["standard"], decode["standard"]) == (True, False)
    assert (decode["file"], decode["line"]) == ("/src/json.go", 88)


def test_inlined_functions_have_their_own_rows(run: Run) -> None:
    grow, encode = site(run, "main.grow"), site(run, "main.encode")
    assert (grow["alloc_bytes"], grow["share"]) == (300 * MIB, 0.3)
    assert (encode["alloc_bytes"], encode["cum_alloc_bytes"]) == (0, 300 * MIB)


def test_a_function_names_each_line_that_its_size_is_of() -> None:
    from gctrace_analyzer.analysis.sites.functions import place
    from gctrace_analyzer.analysis.sites.sums import sums
    from gctrace_analyzer.ingest.profiles import proto

    lines = {44: 17_500, 32: 3_100, 47: 50}
    stacks = [
        ([[("main.main", "main.go", line)]], [1, size, 0, 0]) for line, size in lines.items()
    ]
    rows = sums(proto.read([profile(stacks)], "heap.pb")).by_function
    assert rows["attributed_alloc_bytes"].to_list() == [20_650]
    assert place(rows.row(0, named=True)) == "main.main (main.go:44, …)"


def test_a_recursive_function_counts_once() -> None:
    stack = [MAIN, MAIN, RUNTIME]
    from gctrace_analyzer.analysis.sites.sums import sums
    from gctrace_analyzer.ingest.profiles import proto

    both = sums(proto.read([profile([(stack, [1, 10, 0, 0])])], "heap.pb"))
    for frame in (both.by_function, both.by_line):
        rows = frame.filter(function="main.main")
        assert rows["cum_alloc_bytes"].to_list() == [10]
        assert rows["attributed_alloc_bytes"].to_list() == [10]


def test_rates_are_shares_of_those_of_the_log(run: Run) -> None:
    summary, decode = run.summary(), site(run, "main.decode")
    assert summary.alloc_mib_per_s
    assert summary.gc_cpu_with_idle_cores
    assert decode["alloc_mib_per_s"] == pytest.approx(0.6 * summary.alloc_mib_per_s)
    unforced = 1 - summary.forced_cycles / summary.cycles
    cores = 0.6 * summary.gc_cpu_with_idle_cores * unforced
    assert decode["gc_cpu_cores"] == pytest.approx(cores)
    assert run.sites()["attributed_share"].sum() == pytest.approx(1)


def test_lines_add_up_to_functions(run: Run) -> None:
    lines = run.sites(lines=True)
    assert lines["attributed_alloc_bytes"].sum() == 1000 * MIB
    assert len(lines) == len(run.sites())


def test_growth_is_between_the_first_and_the_last_profile(tmp_path: Path) -> None:
    one, two = tmp_path / "heap-1.pb.gz", tmp_path / "heap-2.pb.gz"
    one.write_bytes(service())
    two.write_bytes(service(decode=900, live=250))
    run = gca.read(one, two)
    rows = run.sites().filter(profile=str(two), function="main.decode")
    assert rows["attributed_growth_bytes"].to_list() == [200 * MIB]
    assert run.sites().filter(profile=str(one))["growth_bytes"].null_count() > 0
    # Of two processes, neither has grown into the other.
    assert gca.read(two, one).sites()["growth_bytes"].null_count() == len(run.sites())


def test_a_cpu_profile_shows_what_gc_takes(tmp_path: Path) -> None:
    mark = [("runtime.gcBgMarkWorker", "/go/src/runtime/mgc.go", 1)]
    scan = [("runtime.scanobject", "/go/src/runtime/mgcmark.go", 1)]
    assist = [("runtime.gcAssistAlloc", "/go/src/runtime/mgcmark.go", 2)]
    malloc = [("runtime.mallocgc", "/go/src/runtime/malloc.go", 1)]
    second = 10**9
    path = tmp_path / "cpu.pb.gz"
    samples: list[tuple[Stack, list[int]]] = [
        ([scan, mark], [300, 3 * second]),
        ([scan, assist, malloc, MAIN], [100, second]),
        ([malloc, MAIN], [100, second]),
        ([MAIN], [500, 5 * second]),
    ]
    path.write_bytes(profile(samples, ["samples", "cpu"], duration_s=5))
    rows = gca.read(path).gc_functions()
    shares = dict(rows.select("part", "cpu_share").rows())
    assert shares["all GC"] == pytest.approx(0.4)
    assert shares["background marking"] == pytest.approx(0.3)
    assert shares["mark assists"] == pytest.approx(0.1)
    assert shares["scanning objects"] == pytest.approx(0.4)
    assert shares["allocation, with its mark assists"] == pytest.approx(0.2)
    assert rows.filter(part="all GC")["cores"].to_list() == [pytest.approx(0.8)]


def test_names_of_packages_may_have_points_and_type_arguments_slashes() -> None:
    import polars as pl

    names = {
        "gopkg.in/yaml%2ev3.(*parser).node": False,
        "main.Map[go.shape.struct { net/http.X }]": False,
        "net/http.(*conn).serve": True,
        "vendor/golang.org/x/net/http2.f": True,
        "slices.Grow[main.T]": True,
        "cmd/compile/internal/ssa.f": False,
        "aeshashbody": True,
    }
    assert is_standard(pl.Series(list(names))).to_list() == list(names.values())
    assert short_name("github.com/a/b.F[go.shape.[]uint8]") == "a/b.F[...]"
