"""Explanations of deaths, from facts."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from gctrace_analyzer import schema
from gctrace_analyzer.analysis.postmortem.explanation import (
    _COMPARE_TOTAL,
    Explanation,
    explain_death,
)
from gctrace_analyzer.analysis.settings.known import Known, Settings
from gctrace_analyzer.testing import read_text
from tests.helpers.deaths import evidence

FACTS: dict[str, Any] = {
    "proven": True, "scope": "memcg", "kind": "OOM kill", "killer": "kernel", "limit_mib": 512.0,
    "limit_is": "the limit of api", "live_mib": 100, "resident_mib": 500.0,
    "next_goal_mib": 200, "gap_s": 1.0, "usual_interval_s": 1.0, "off_heap_mib": 20.0,
    "alloc_mib_per_s": 50.0, "live_before_mib": 95,
}  # fmt: skip
TABLES = {"oom_tasks": pl.DataFrame(schema=schema.polars_schema("oom_tasks"))}


def explained(memory_limit_mib: float | None = None, **facts: Any) -> Explanation:
    settings = Settings()
    if memory_limit_mib is not None:
        settings = Settings(memory_limit_mib=Known(memory_limit_mib, "test"))
    return explain_death(evidence(**{**FACTS, **facts}), TABLES, settings)


def test_a_kill_far_above_the_live_heap_could_have_been_prevented() -> None:
    found = explained()
    assert found.preventable == "yes"
    assert found.reading[0] == "It reached the limit of api: 512 MiB."
    assert found.advice[0].startswith("Set GOMEMLIMIT=460MiB")


def test_growth_makes_a_memory_limit_a_delay_only() -> None:
    found = explained(live_before_mib=50)
    assert found.preventable == "for a while"
    assert "The live heap grew from 50 to 100 MiB" in found.reading[-1]


def test_a_memory_limit_that_was_too_high_should_be_lower() -> None:
    found = explained(memory_limit_mib=500.0)
    assert found.preventable == "partly"
    assert [text[:21] for text in found.advice] == ["Set GOMEMLIMIT=460MiB"]


@pytest.mark.parametrize("live_before_mib", [95, 40])
def test_a_kill_in_spite_of_a_memory_limit_with_room_is_said_to_be_one(
    live_before_mib: int,
) -> None:
    found = explained(memory_limit_mib=400.0, live_before_mib=live_before_mib)
    assert found.preventable == "cannot tell"
    assert found.reading[1] == (
        "GOMEMLIMIT was 400 MiB, 78 % of the limit. Either memory that Go does not count took "
        "more than the other 112 MiB, or the heap grew past GOMEMLIMIT, which the runtime allows "
        "once GC takes half of the CPU."
    )
    grew = ["Find out why the live heap grows"] if live_before_mib == 40 else []
    assert [text.split(":")[0] for text in found.advice[:-1]] == grew
    assert found.advice[-1].startswith("Next time, compare what Go counts")
    # The verdict has the last sentence: what is certain comes before what may be.
    assert found.reading[-1].startswith("The live heap grew" if grew else "GOMEMLIMIT was")


def test_a_limit_that_set_the_heap_goals_is_not_advised_again() -> None:
    """Its value is unknown, but the goals show that it was below the container's limit."""
    found = explained(limited=True, goal_mib=110)
    assert found.preventable == "cannot tell"
    assert found.reading[1].startswith(
        "GOMEMLIMIT, whose value is unknown, set the heap goal to 110 MiB, 21 % of the limit. "
        "Either memory that Go does not count took more than the other 402 MiB"
    )
    assert not any(text.startswith("Set GOMEMLIMIT") for text in found.advice)
    above = explained(limited=True, goal_mib=500)
    assert above.advice[0].startswith("Set GOMEMLIMIT=460MiB")


def test_what_batches_fill_again_is_no_growth() -> None:
    facts = {"live_before_mib": 20, "live_mib": 100}
    assert explained(**facts, live_had_mib=98.0).preventable == "yes"
    assert explained(**facts, live_had_mib=50.0).preventable == "for a while"


def test_memory_far_beyond_the_heap_goal_is_not_the_go_heap() -> None:
    """A program allocates fast, but its cycles come as often as ever: the rest is another's."""
    facts = {
        "off_heap_mib": 390.0, "alloc_mib_per_s": 223.0, "gap_s": 0.15, "usual_interval_s": 0.2,
        "next_goal_mib": 112, "heap_end_mib": 114, "heap_peak_mib": 133, "live_mib": 56,
        "live_before_mib": 54,
    }  # fmt: skip
    found = explained(**facts)
    assert found.preventable == "cannot tell"
    assert found.reading[-1] == (
        "The next cycle was due at a heap of 112 MiB, and the heap had at most 133 MiB in the "
        "last minute: most of the other 390 MiB is not the Go heap, and GOMEMLIMIT does not "
        "affect it."
    )
    assert found.advice[0].startswith("Find out what uses this memory")
    # A heap that was larger stays resident for a while, and one allocation may be of any size.
    assert explained(**{**facts, "heap_peak_mib": 480}).preventable == "yes"
    assert explained(**{**facts, "gap_s": 0.5}).preventable == "yes"
    assert explained(**{**facts, "next_goal_mib": None}).preventable == "yes"


def test_without_a_limit_the_resident_memory_is_the_ceiling() -> None:
    found = explained(limit_mib=None, scope="global")
    assert found.reading[0].startswith("The host ran out of memory")
    assert found.advice == (
        "Set a memory limit for the service, and GOMEMLIMIT to 90 % of it.",
    )


@pytest.mark.parametrize(
    ("facts", "advice"),
    [
        ({"live_mib": None}, "GODEBUG=gctrace=1"),
        ({"limit_mib": None, "resident_mib": None}, "Specify the container's memory limit"),
    ],
)
def test_missing_facts_are_asked_for(facts: dict[str, Any], advice: str) -> None:
    found = explained(**facts)
    assert found.preventable == "cannot tell"
    assert any(advice in each for each in found.advice)


def test_memory_outside_the_heap_cannot_be_limited() -> None:
    found = explained(off_heap_mib=400.0)
    assert found.preventable == "cannot tell"
    assert "GOMEMLIMIT does not affect it" in found.reading[-1]
    assert explained(off_heap_mib=400.0, gap_s=10.0).preventable == "yes"
    assert explained(off_heap_mib=400.0, gap_s=None).preventable == "yes"


def test_a_long_time_without_a_cycle_and_a_goal_above_the_limit_are_named() -> None:
    reading = " ".join(explained(gap_s=90.0, next_goal_mib=900).reading)
    assert "no GC cycle in the last 1m 30s" in reading
    assert "the next cycle was due at 900 MiB" in reading


def test_gos_own_out_of_memory_is_not_the_oom_killer() -> None:
    refused: dict[str, Any] = {
        "kind": "Out of memory in the Go runtime", "scope": None, "limit_mib": None,
    }  # fmt: skip
    assert (
        "refused memory to the Go runtime: an address-space limit (`ulimit -v`)"
        in (explained(**refused).reading[0])
    )
    # Nothing that is a container's helps, and the program is written in Go.
    grown = {"live_before_mib": 1, "live_mib": 668, "resident_mib": None}
    facts = {**FACTS, **refused, **grown}
    death = {"requested_bytes": 314572800, "in_use_bytes": 830111744}
    found = explain_death(evidence(**{**facts, **death}), TABLES, Settings())
    assert found.reading == (
        "The operating system refused 300 MiB to the Go runtime, which had 792 MiB in use: an "
        "address-space limit (`ulimit -v`) or no free memory at all. It was not the OOM killer.",
        "The live heap grew from 1 to 668 MiB within the last minute.",
    )
    assert len(found.advice) == 1
    unseen = explain_death(evidence(**{**facts, **death, "live_mib": None}), TABLES, Settings())
    assert unseen.advice[0].startswith("Run the program with GODEBUG=gctrace=1")
    assert found.advice[0] == unseen.advice[1]
    assert found.advice[0].startswith("Check the address-space limit of the process")


REFUSED: dict[str, Any] = {
    "kind": "Out of memory in the Go runtime", "scope": None, "limit_mib": None,
    "resident_mib": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("requested_mib", "in_use_mib", "is_of_32_bits"),
    [(1, 1534, False), (1, 1535, True), (96, 4000, True), (97, 4000, False)],
)
def test_sizes_up_to_four_gib_may_be_the_end_of_32_bits(
    requested_mib: int, in_use_mib: int, is_of_32_bits: bool
) -> None:
    death = {"requested_bytes": requested_mib << 20, "in_use_bytes": in_use_mib << 20}
    for known in ({}, UNSEEN):
        found = explain_death(
            evidence(**{**FACTS, **known, **REFUSED, **death}), TABLES, Settings()
        )
        assert ("the end of a 32-bit address space" in found.reading[0]) == is_of_32_bits
        assert any("GOARCH=386" in each for each in found.advice) == is_of_32_bits


def test_an_address_that_the_runtime_cannot_use_is_no_lack_of_memory() -> None:
    death = {"requested_bytes": 256 << 20, "in_use_bytes": 3 << 20, "is_unusable": True}
    found = explain_death(evidence(**{**FACTS, **REFUSED, **death}), TABLES, Settings())
    assert found.reading[0].startswith(
        "The Go runtime, which had 3.0 MiB in use, asked for 256 MiB, and the operating system "
        "gave it an address that it cannot use"
    )


def test_a_go_version_without_memory_limits_gets_no_limit() -> None:
    for known in ({}, UNSEEN):
        facts = {**FACTS, **known, "limit_mib": 512.0, "is_before_limits": True}
        found = explain_death(evidence(**facts), TABLES, Settings())
        assert found.advice[0].startswith("Upgrade to Go 1.19 or later, which has GOMEMLIMIT")
        assert not any(each.startswith("Set GOMEMLIMIT") for each in found.advice)
        assert found.preventable != "yes"


def test_a_limit_that_no_go_program_fits_into_needs_no_setting() -> None:
    facts = {**FACTS, **UNSEEN, "limit_mib": 0.5, "limit_is": "its limit"}
    found = explain_death(evidence(**facts), TABLES, Settings())
    assert found.reading[0] == "It reached its limit: 0.5 MiB."
    assert found.advice[0] == "Raise the limit: no Go program fits into 0.5 MiB."


def test_growth_within_less_than_a_minute_says_in_what_time() -> None:
    grown = {"live_before_mib": 82, "live_had_mib": 90, "live_mib": 125}
    for span_s, text in ((0.29, "290 ms"), (40.0, "40 s"), (58.0, "minute")):
        reading = explained(**grown, live_span_s=span_s).reading
        assert f"The live heap grew from 82 to 125 MiB within the last {text}." in reading


def test_the_limit_of_a_cgroup_may_be_unnamed() -> None:
    """A kernel log that was cut says that a control group was full, and not at what size."""
    found = explained(limit_mib=None, resident_mib=179.0, next_goal_mib=241)
    assert found.reading[:2] == (
        "It reached the memory limit of its cgroup, container or job; the input does not show "
        "how high it is.",
        "The heap goal could not fit: the next cycle was due at 241 MiB, above 179 MiB.",
    )
    assert found.advice[0].startswith(
        "Set GOMEMLIMIT to 90 % of the limit of its cgroup, which `"
    )


UNSEEN: dict[str, Any] = {
    "live_mib": None,
    "limit_mib": None,
    "limit_is": None,
    "process": None,
}


def dumps(*alloc_mib: int) -> dict[str, pl.DataFrame]:
    """Tables with one dump of each program."""
    rows = [
        {"source": "a.log", "ident": f"api-{n}", "process": n, "alloc_bytes": size * 2**20}
        for n, size in enumerate(alloc_mib)
    ]
    frame = pl.DataFrame(rows, schema=schema.polars_schema("memstats"))
    return {**TABLES, "memstats": frame}


@pytest.mark.parametrize(
    ("sizes", "process", "said"),
    [
        ((480,), None, "shows 480 MiB of heap allocated: the heap was 96 % of the resident"),
        ((100,), None, "the heap was 20 % of the resident memory; it may have grown since"),
        ((100, 480), 1, "shows 480 MiB of heap allocated: the heap was 96 %"),
        ((450, 480), None, "each with 450 MiB of heap allocated or more: 90 % of what was"),
        ((10, 480), None, "with 10 to 480 MiB of heap allocated, and does not say which"),
        ((), None, "How much of its memory was the Go heap is unknown"),
    ],
)
def test_dumps_show_the_heap_of_a_kill_without_cycles(
    sizes: tuple[int, ...], process: int | None, said: str
) -> None:
    facts = {**FACTS, **UNSEEN, "process": process, "scope": "global", "comm": "api"}
    found = explain_death(evidence(**facts), dumps(*sizes), Settings())
    assert said in found.reading[-1]
    assert found.advice[0].startswith(
        "Run the program with" if sizes else "If api is written in Go, run it with"
    )


def test_a_kill_without_cycles_in_a_known_limit_has_a_setting_to_begin_with() -> None:
    facts = {
        **FACTS, **UNSEEN, "limit_mib": 512.0, "limit_is": "its limit", "comm": "api"
    }  # fmt: skip
    found = explain_death(evidence(**facts), TABLES, Settings())
    assert found.advice[0].startswith("If api is written in Go, set GOMEMLIMIT=460MiB (90 % of")
    is_go = explain_death(evidence(**facts), dumps(100), Settings())
    assert is_go.advice[0].startswith("Set GOMEMLIMIT=460MiB (90 % of the limit)")
    unknown = explain_death(evidence(**{**FACTS, **UNSEEN}), TABLES, Settings())
    assert "the input does not show how high it is" in unknown.reading[0]
    assert "the memory limit as well" in unknown.advice[-1]


SIDES: list[tuple[str, bool, dict[str, Any]]] = [
    ("takes 90 % of 100 MiB", False, {"live_mib": 90, "limit_mib": 100.0}),
    ("The live heap alone, 91 MiB, takes 91 % of 100 MiB", True, {"live_mib": 91, "limit_mib": 100.0}),
    ("no GC cycle", False, {"gap_s": 2.0}),
    ("no GC cycle in the last 2.1 s, although there usually is one every 1.0 s", True, {"gap_s": 2.1}),
    ("no GC cycle", False, {"gap_s": None}),
    ("no GC cycle", False, {"gap_s": 9.0, "usual_interval_s": None}),
    ("no GC cycle", False, {"gap_s": 9.0, "usual_interval_s": 0.0}),
    ("is not in the Go heap", False, {"off_heap_mib": 30.0, "limit_mib": 100.0, "live_mib": 9}),
    ("31 MiB of the resident memory is not in the Go heap", True, {"off_heap_mib": 31.0, "limit_mib": 100.0, "live_mib": 9}),
    ("is not in the Go heap", False, {"off_heap_mib": None}),
    ("was due at", False, {"next_goal_mib": 512}),
    ("was due at 513 MiB, above 512 MiB", True, {"next_goal_mib": 513}),
    ("was due at", False, {"next_goal_mib": None}),
    ("grew from", False, {"live_before_mib": 40, "live_mib": 60}),
    ("grew from 40 to 61 MiB", True, {"live_before_mib": 40, "live_mib": 61}),
    ("grew from", False, {"live_before_mib": 16, "live_mib": 32}),
    ("grew from 16 to 33 MiB", True, {"live_before_mib": 16, "live_mib": 33}),
    ("grew from", False, {"live_before_mib": None, "live_mib": 61}),
    ("grew from", False, {"live_before_mib": 0, "live_mib": 61}),
    # What the heap can have grown by: 10 MiB/s in 9 s and the second that timestamps hide.
    ("the heap can have grown by 100 MiB", True, {"alloc_mib_per_s": 10.0, "gap_s": 9.0, "off_heap_mib": 301.0}),
    ("the heap can have grown", False, {"alloc_mib_per_s": 10.0, "gap_s": 9.0, "off_heap_mib": 300.0}),
    ("the heap can have grown", False, {"alloc_mib_per_s": None, "gap_s": 9.0, "off_heap_mib": 301.0}),
    ("At 0 MiB/s the heap can have grown by 0 MiB", True, {"alloc_mib_per_s": 0.0, "off_heap_mib": 301.0}),
    ("the heap can have grown", False, {"alloc_mib_per_s": 1.0, "off_heap_mib": 153.6, "limit_mib": 512.0}),
    ("the heap can have grown", True, {"alloc_mib_per_s": 1.0, "off_heap_mib": 153.7, "limit_mib": 512.0}),
    ("It reached the limit of api: 512 MiB.", True, {"not_before_at": 1, "resident_mib": None}),
    ("At the last scrape before, 384 MiB were resident, 75 % of the limit of api (512 MiB).", True, {"not_before_at": 1, "resident_mib": 384.0}),
    ("It reached", False, {"limit_is": None}),
    ("It reached", False, {"limit_mib": None, "scope": None}),
    ("It reached the memory limit of its cgroup", True, {"limit_mib": None}),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "there", "facts"), SIDES)
def test_a_sentence_is_there_on_one_side_of_its_limit(
    sentence: str, there: bool, facts: dict[str, Any]
) -> None:
    assert (sentence in " ".join(explained(**facts).reading)) == there


def test_a_live_heap_near_the_limit_cannot_be_helped() -> None:
    found = explained(live_mib=91, limit_mib=100.0)
    assert found.preventable == "no"
    assert found.advice[0].startswith("Give the program more memory")
    # Without a limit, what was resident is the ceiling.
    assert explained(live_mib=91, limit_mib=None, resident_mib=100.0).preventable == "no"


@pytest.mark.parametrize(
    ("number", "loop"), [(None, ""), (1, ""), (2, " Its container was restarted 2 times.")]
)
def test_a_container_that_is_restarted_again_and_again_is_named(
    number: int | None, loop: str
) -> None:
    found = explain_death(evidence(**FACTS, restart_count=number), TABLES, Settings())
    assert found.reading[0] == f"It reached the limit of api: 512 MiB.{loop}"


@pytest.mark.parametrize(
    ("pid", "rank"),
    [
        (1, " It was the largest of 3 tasks listed."),
        (2, " 1 of 3 tasks listed were larger."),
        (3, " 2 of 3 tasks listed were larger."),
        (4, ""),
        (None, ""),
    ],
)
def test_the_rank_among_the_listed_tasks(pid: int | None, rank: str) -> None:
    rows = [
        {"source": "log", "kill_line_no": 7, "pid": each, "rss_bytes": size}
        for each, size in ((3, None), (1, 30), (2, 20))
    ]
    elsewhere = {"source": "log", "kill_line_no": 8, "pid": 4, "rss_bytes": 99}
    tasks = pl.DataFrame([*rows, elsewhere], schema=schema.polars_schema("oom_tasks"))
    death = {"pid": pid, "line_no": 7, "source": "log"}
    facts = {**FACTS, "scope": "global", "limit_mib": None}
    found = explain_death(evidence(**facts, **death), {"oom_tasks": tasks}, Settings())
    assert found.reading[0] == (
        f"The host ran out of memory; the program was within its limits.{rank}"
    )


@pytest.mark.parametrize(
    ("given", "limit", "preventable", "advice"),
    [
        (None, 500.0, "yes", "Set GOMEMLIMIT=450MiB, so that GC runs before memory reaches the limit of 500 MiB; the live heap of 100 MiB fits."),
        (None, None, "partly", "Set a memory limit for the service, and GOMEMLIMIT to 90 % of it."),
        (475.0, 500.0, "cannot tell", _COMPARE_TOTAL),
        (480.0, 500.0, "partly", "Set GOMEMLIMIT=450MiB: it is 96 % of the limit now, which leaves no room for memory that Go does not count."),
        (480.0, None, "partly", "Set a memory limit for the service, and GOMEMLIMIT to 90 % of it."),
    ],
)  # fmt: skip
def test_the_memory_limit_that_is_advised(
    given: float | None, limit: float | None, preventable: str, advice: str
) -> None:
    found = explained(memory_limit_mib=given, limit_mib=limit, scope=None)
    assert found.preventable == preventable
    assert found.advice == (advice,)


def test_a_growing_heap_needs_more_than_a_limit() -> None:
    found = explained(live_before_mib=40, live_mib=100)
    assert found.advice[-1].startswith("That only buys time")
    limited = explained(memory_limit_mib=500.0, live_before_mib=40, live_mib=100)
    assert limited.preventable == "partly"
    assert limited.advice[-1].startswith("That only buys time")


@pytest.mark.parametrize(
    ("facts", "missing"),
    [
        ({"limit_mib": None, "resident_mib": None}, "its limit and its resident size are"),
        ({"limit_mib": None, "resident_mib": 0.0}, "its limit and its resident size are"),
    ],
)
def test_what_is_missing_is_named(facts: dict[str, Any], missing: str) -> None:
    assert explained(**facts).reading[-1] == (
        f"What the heap did is unknown, because {missing} not in the input."
    )


def test_exit_code_137_proves_nothing() -> None:
    found = explained(proven=False)
    assert found.preventable == "cannot tell"
    assert found.reading[0].startswith("Exit code 137 means SIGKILL")
    assert found.advice == (
        "Next time, save the output of `journalctl -k` or `dmesg` on the host.",
    )


def test_pages_of_files_are_no_go_heap() -> None:
    (death,) = read_text(
        "[ 1201.114502] Killed process 2047 (app) total-vm:6291456kB, anon-rss:0kB, "
        "file-rss:5242880kB, shmem-rss:0kB\n"
    ).post_mortems()
    assert death.resident_mib == 5120
    assert "pages of files" in death.reading[-1]
    assert death.preventable == "no"


@pytest.mark.parametrize("name", ["git", "python3", "cc1plus", "postgres"])
def test_a_program_that_is_not_go_gets_its_own_advice(name: str) -> None:
    (death,) = read_text(
        f"[ 1201.114502] Memory cgroup out of memory: Killed process 2047 ({name}) "
        "total-vm:6291456kB, anon-rss:520000kB, file-rss:0kB, shmem-rss:0kB\n"
    ).post_mortems()
    assert f"{name} is not a Go program" in " ".join(death.reading)
    assert "GODEBUG" not in " ".join(death.advice)
