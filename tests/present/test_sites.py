"""What a report says with profiles: the function behind GC, growth and goroutines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.postmortem import remedies
from gctrace_analyzer.analysis.rules import finding
from gctrace_analyzer.analysis.rules.registry import RULES
from gctrace_analyzer.analysis.trend import COMPARE_HEAPS, find_growth
from tests.conftest import ROOT, SAMPLES
from tests.helpers.profiles import MANIFEST, PROFILES
from tests.helpers.written_profiles import service

if TYPE_CHECKING:
    from pathlib import Path

    from gctrace_analyzer.comparison import Comparison

LEAKS = {row["name"]: row["function"] for row in MANIFEST["leaks"]}


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("leak", LEAKS)
def test_two_heap_profiles_name_the_leaking_function(leak: str) -> None:
    folder = PROFILES / "leaks" / leak
    run = gca.read(folder / "run.log", folder / "heap-early.pb.gz", folder / "heap-late.pb.gz")
    verdict = run.report().verdict
    assert verdict is not None
    assert f"{LEAKS[leak]} (main.go:" in verdict.action
    assert "of the growth between the heap profiles" in verdict.action
    assert "go tool pprof" not in verdict.action


@pytest.mark.parametrize("leak", LEAKS)
def test_one_heap_profile_names_what_holds_most(leak: str) -> None:
    folder = PROFILES / "leaks" / leak
    verdict = gca.read(folder / "run.log", folder / "heap-late.pb.gz").report().verdict
    assert verdict is not None
    assert f"{LEAKS[leak]} (main.go:" in verdict.action
    assert "of the live heap in the profile" in verdict.action


def test_goroutines_that_do_not_end_are_counted() -> None:
    folder = PROFILES / "leaks/goroutine"
    run = gca.read(folder)
    assert run.sites()["goroutines"].max() == 7331
    with_log = gca.read(folder / "run.log", folder / "goroutine.pb.gz")
    verdict = with_log.report().verdict
    assert verdict is not None
    assert "7,331 of 7,333 goroutines are in main.check.func1 (main.go:89)" in verdict.action


def test_the_report_has_the_sites_with_their_costs() -> None:
    folder = PROFILES / "requests"
    text = str(gca.read(folder / "run.log", folder / "allocs.pb.gz").summary())
    assert "Allocation by function" in text
    row = next(line for line in text.splitlines() if "main.decode (main.go:85)" in line)
    assert flat(row) == "main.decode (main.go:85) 36.5 % 47 0.026 0.5 MiB"
    assert "cycles follow allocation" in text


def test_small_rates_have_the_unit_of_their_column() -> None:
    names = ("leak.log", "leak-heap-early.pb.gz", "leak-heap-late.pb.gz")
    lines = str(
        gca.read(*(SAMPLES / "profiles" / name for name in names)).summary()
    ).splitlines()
    row = next(line for line in lines if "runtime.mallocgc" in line)
    assert flat(row) == "runtime.mallocgc (malloc.go:1143) 0.018 % 0.0068 <0.001 0 MiB"


def test_advice_to_allocate_less_says_where() -> None:
    folder = PROFILES / "ledger"
    run = gca.read(folder / "run.log", folder / "allocs.pb.gz")
    advice = run.findings().filter(id="GC005")["advice"][0]
    assert "allocate less: main.(*worker).parse (main.go:63) allocates 41 % of it" in advice
    assert "cores of GC" in advice


def test_a_profile_alone_says_what_is_missing() -> None:
    text = flat(str(gca.read(PROFILES / "requests/allocs.pb.gz").summary()))
    assert "main.decode (main.go:85) allocates 37 % of what the profile has" in text
    assert "GODEBUG=gctrace=1" in text


def test_a_cpu_profile_is_a_second_opinion() -> None:
    text = flat(str(gca.read(PROFILES / "others/cpu.pb.gz").summary()))
    assert "In the CPU profile, GC takes" in text


def compared(tmp_path: Path, **after: int) -> Comparison:
    one, two = tmp_path / "before.pb.gz", tmp_path / "after.pb.gz"
    one.write_bytes(service())
    two.write_bytes(service(**after))
    log = str(ROOT / "samples/steady-go1.26.log")
    return gca.compare([log, str(one)], [log, str(two)])


def test_a_comparison_has_the_functions_whose_allocation_changed(tmp_path: Path) -> None:
    found = compared(tmp_path, decode=100)
    rows = [row.split() for row in str(found).splitlines() if "(json.go:88)" in row]
    before, after, change = map(float, rows[0][-3:])
    rate = found["alloc_mib_per_s"].before
    assert rate is not None
    assert before == pytest.approx(0.6 * rate, rel=0.01)
    assert after == pytest.approx(0.2 * rate, rel=0.01)
    assert change == pytest.approx(after - before, rel=0.02)
    sites = found.to_dict()["sites"]
    assert sites[0]["function"] == "main.decode"
    assert sites[0]["significant"]


def test_changes_within_the_error_of_sampling_are_marked(tmp_path: Path) -> None:
    rows = [
        row for row in str(compared(tmp_path, decode=610)).splitlines() if "(json.go:" in row
    ]
    assert all(row.endswith("~") for row in rows)


POINTERS = [
    *(find_growth(is_lasting=a, is_limited=b) for a in (True, False) for b in (True, False)),
    remedies.MORE_MEMORY,
    f"Record a longer log. If the live heap still grows, {COMPARE_HEAPS}",
    f"Or {finding.ALLOCATE_LESS}.",
    *(rule.advice for rule in RULES.values() if "go tool pprof" in rule.advice),
]


@pytest.mark.parametrize("advice", POINTERS)
def test_no_advice_sends_to_pprof_where_a_profile_is_given(advice: str, tmp_path: Path) -> None:
    path = tmp_path / "heap.pb.gz"
    path.write_bytes(service())
    profiled = gca.read(ROOT / "samples/steady-go1.26.log", path).analysis.profiled
    assert profiled is not None
    answer = profiled.answered(advice)
    assert "main.decode (json.go:88)" in answer
    assert "pprof" not in answer
    assert ": :" not in answer


def test_functions_with_the_same_figures_are_always_in_the_same_order() -> None:
    path = PROFILES / "leaks" / "goroutine" / "heap-early.pb.gz"
    orders = {tuple(gca.read(path).sites()["function"]) for _ in range(8)}
    assert len(orders) == 1
