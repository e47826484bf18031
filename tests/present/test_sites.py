"""What a report says with profiles: the function behind GC, growth and goroutines."""

from __future__ import annotations

import pytest

import gctrace_analyzer as gca
from tests.helpers.profiles import MANIFEST, PROFILES

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
    assert flat(row) == "main.decode (main.go:85) 36.5 % 46.8 0.026 0.5 MiB"
    assert "cycles follow allocation" in text


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
