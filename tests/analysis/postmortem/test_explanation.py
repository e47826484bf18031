"""Explanations of deaths, from facts."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer import schema
from gctrace_analyzer.analysis.postmortem.explanation import Explanation, explain_death
from gctrace_analyzer.analysis.postmortem.heap_at_death import heap_at_death
from gctrace_analyzer.analysis.postmortem.remedies import (
    COMPARE_TOTAL,
    FIND_SENDER,
    MORE_MEMORY,
)
from gctrace_analyzer.analysis.settings.known import Known, Settings
from gctrace_analyzer.analysis.trend import LiveGrowth
from gctrace_analyzer.testing import read_text
from tests.conftest import SAMPLES
from tests.helpers.deaths import evidence
from tests.helpers.logs import KILL, journal, logfile, records

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gctrace_analyzer.analysis.postmortem.facts import Evidence

# The heap was 470 of 500 MiB at the end of the last cycle; 240 MiB of it were live.
FACTS: dict[str, Any] = {
    "proven": True, "scope": "memcg", "kind": "OOM kill", "killer": "kernel", "limit_mib": 512.0,
    "limit_is": "the limit of api", "live_mib": 240, "heap_end_mib": 470, "resident_mib": 500.0,
    "next_goal_mib": 480, "gap_s": 1.0, "usual_interval_s": 1.0, "alloc_mib_per_s": 50.0,
    "live_before_mib": 235,
}  # fmt: skip
# Over two minutes, and as fast at the end as before.
LASTING = LiveGrowth(
    mib_per_h=3600, low=3000, high=4200, begin_s=0, end_s=120, first_mib=120, last_mib=240,
    recent_mib=40, first_s=0, last_s=120,
)  # fmt: skip
UNKNOWN_END = " Whether it would have grown further is unknown."
TABLES = {
    name: pl.DataFrame(schema=schema.polars_schema(name))
    for name in ("oom_tasks", "container_states", "processes", "cycles")
}


def explain(
    facts: Evidence,
    tables: Mapping[str, pl.DataFrame] = TABLES,
    settings: Settings | None = None,
) -> Explanation:
    return explain_death(facts, heap_at_death(facts), tables, settings or Settings())


def explained(memory_limit_mib: float | None = None, **facts: Any) -> Explanation:
    settings = Settings()
    if memory_limit_mib is not None:
        settings = Settings(memory_limit_mib=Known(memory_limit_mib, "test"))
    return explain(evidence(**{**FACTS, **facts}), settings=settings)


GROUP = "/kubepods/pod0a1b2c3d-1234-5678-9abc-0123456789ab"
CGROUP = (
    "[{at}.1] memory: usage 1048576kB, limit 1048576kB, failcnt 2\n"
    "{tasks}"
    "[{at}.2] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,"
    "oom_memcg={of},task_memcg={group}/api,task={comm},pid=7,uid=0\n"
    "[{at}.3] Memory cgroup out of memory: Killed process 7 ({comm}) total-vm:1263412kB, "
    "anon-rss:{anon}kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1200kB oom_score_adj:995\n"
)
LISTED = (
    "[{at}.11] [  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name\n"
    "[{at}.12] [      7]     0     7   315853   200000  1228800        0           995 api\n"
    "[{at}.12] [      8]     0     8   315853    51200  1228800        0           995 envoy\n"
)


def in_cgroup(of: str = GROUP, tasks: str = "", comm: str = "api", anon: int = 990000) -> str:
    listed = tasks.format(at=99)
    return CGROUP.format(at=99, of=of, group=GROUP, tasks=listed, comm=comm, anon=anon)


@pytest.mark.parametrize(
    ("of", "tasks", "setting"),
    [
        (f"{GROUP}/api", "", "set GOMEMLIMIT=921MiB (90 % of the limit)"),
        (
            GROUP,
            "",
            "set GOMEMLIMIT to 90 % of the limit minus what other processes under it need",
        ),
        (
            GROUP,
            LISTED,
            "set GOMEMLIMIT=721MiB (90 % of the limit less the 200 MiB of other processes",
        ),
    ],
)
def test_the_limit_of_a_group_above_is_shared(of: str, tasks: str, setting: str) -> None:
    anon = 800_000 if tasks else 990_000
    (found,) = read_text(in_cgroup(of, tasks, anon=anon)).post_mortems()
    assert ("which it shares with others" in found.reading[0]) == (of == GROUP)
    assert setting in found.advice[0]


def test_the_peak_that_systemd_prints_after_a_kill_is_its_own() -> None:
    unit = "May 15 23:09:{} h systemd[1]: api.service: {}\n"
    events = (
        "Main process exited, code=killed, status=9/KILL",
        "Failed with result 'oom-kill'.",
        "Consumed 3min 12.345s CPU time, 5.8G memory peak.",
    )
    text = "".join(unit.format(n, event) for n, event in enumerate(events, 30))
    (found,) = read_text(text).post_mortems()
    assert found.reading[0] == "It used 5.8 GiB at most."


def test_runc_is_not_the_program_that_it_starts() -> None:
    (found,) = read_text(in_cgroup(f"{GROUP}/api", comm="runc:[2:INIT]")).post_mortems()
    assert any("This was runc" in text for text in found.reading)
    (advice,) = found.advice
    assert advice.startswith("Raise the memory limit of the container")
    (small,) = read_text(
        in_cgroup(f"{GROUP}/api", comm="runc:[2:INIT]", anon=9000)
    ).post_mortems()
    assert small.advice[0].startswith("Find out what has the other")


def test_a_limit_of_virtual_memory_is_not_one_of_size() -> None:
    text = "=>> PBS: job killed: vmem 8634933248 exceeded limit 8589934592"
    (found,) = read_text(text).post_mortems()
    assert (found.kind, found.subject) == ("Job killed for memory", "The job")
    assert found.cause == "because it reached its limit of virtual memory"
    assert not any("GOMEMLIMIT=" in action for action in found.advice)


def test_a_limit_that_prevents_the_kill_but_makes_gc_frequent_says_so() -> None:
    """90 % of 512 MiB is 460: the live heap of 240 has room there, one of 300 has little."""
    assert not any("little room" in action for action in explained().advice)
    found = explained(live_mib=300, live_before_mib=295)
    (first, *_) = found.advice
    assert first.startswith("Set GOMEMLIMIT=460MiB")
    assert "raise the limit of 512 MiB to about 626 MiB, and the setting to about 563 " in first


@pytest.mark.parametrize("resident_mib", [None, 123.0])
@pytest.mark.parametrize("growth", [LASTING, None])
def test_no_memory_limit_is_advised_under_which_the_live_heap_thrashes(
    resident_mib: float | None, growth: LiveGrowth | None
) -> None:
    """90 % of 128 MiB is 115: 105 MiB of live heap and other memory of Go hardly fit."""
    sizes = {"live_mib": 105, "heap_end_mib": 105, "next_goal_mib": 211, "limit_mib": 128.0}
    found = explained(**sizes, live_before_mib=104, growth=growth, resident_mib=resident_mib)
    assert found.preventable == ("no" if growth else "partly")
    assert not any(text.startswith("Set GOMEMLIMIT") for text in found.advice)
    assert "set GOMEMLIMIT=198MiB" in found.advice[-1]


def test_a_kill_far_above_the_live_heap_could_have_been_prevented() -> None:
    found = explained()
    assert found.preventable == "yes"
    assert found.reading == (
        "It reached the limit of api: 512 MiB.",
        "At its last cycle, 1.0 s before, the Go heap was 470 MiB, which is 94 % of the 500 MiB "
        "resident; 240 MiB of it were live, and the heap goal allowed about 480 MiB.",
    )
    assert found.advice == (
        "Set GOMEMLIMIT=460MiB, so that GC runs before memory reaches the limit of 512 MiB; the "
        "live heap of 240 MiB fits.",
    )


def test_growth_that_goes_on_makes_a_memory_limit_a_delay_only() -> None:
    found = explained(growth=LASTING)
    assert found.preventable == "for a while"
    assert "The live heap grew from 120 to 240 MiB in 2m 00s." in found.reading
    assert found.advice[-1].startswith("A limit only buys time. Find out why")


@pytest.mark.parametrize(
    "growth", [None, replace(LASTING, end_s=40.0), replace(LASTING, recent_mib=0.0)]
)
def test_growth_that_may_have_ended_does_not_decide_what_a_limit_does(
    growth: LiveGrowth | None,
) -> None:
    """A start-up looks the same."""
    found = explained(live_before_mib=120, growth=growth)
    assert found.preventable == "for a while", "if it grows further"
    assert any(UNKNOWN_END in text for text in found.reading)
    assert found.advice[-1].startswith(
        "If the live heap grows further, a limit only buys time:"
    )


def test_a_live_heap_that_fell_after_it_grew_is_not_said_to_grow() -> None:
    found = explained(live_before_mib=120, live_most_mib=300)
    assert found.reading == explained(live_before_mib=235).reading


def test_a_limit_leaves_room_for_the_largest_live_heap_not_for_the_last_one() -> None:
    """The live heap may be as large again."""
    assert not any("little room" in text for text in explained(live_most_mib=240).advice)
    assert any("little room" in text for text in explained(live_most_mib=300).advice)
    found = explained(live_most_mib=420).advice
    assert any("Raise the limit" in text and "420 MiB are live" in text for text in found)


def test_growth_makes_settings_a_delay_at_most_where_the_sum_is_not_known() -> None:
    """A third of the memory may be anything."""
    unknown: dict[str, Any] = {
        "heap_end_mib": 300,
        "next_goal_mib": 700,
        "alloc_mib_per_s": None,
    }
    of_host: dict[str, Any] = {"limit_mib": None, "killer": "earlyoom", "scope": "global"}
    for facts in (unknown, unknown | of_host):
        assert explained(**facts).preventable == "partly"
        assert explained(**facts, live_before_mib=120).preventable == "for a while"


def test_memory_pressure_is_no_limit() -> None:
    found = explained(limit_mib=None, resident_mib=None, scope=None, pressure_pct=64.0, pressure_limit_pct=50.0, killer="systemd-oomd", reason="memory_pressure")  # fmt: skip
    assert [text[:36] for text in found.advice] == ["Find out what needs memory in that g"]


def test_why_the_heap_grew_is_asked_after_a_kill_that_proves_nothing() -> None:
    assert len(explained(proven=False).advice) == 1
    for facts, which in (({"growth": LASTING}, "why"), ({"live_before_mib": 120}, "whether")):
        found = explained(proven=False, **facts)
        assert found.advice[1].startswith(f"Find out {which} the live heap grows")


def test_a_memory_limit_that_was_too_high_should_be_lower() -> None:
    found = explained(memory_limit_mib=500.0)
    assert found.preventable == "partly"
    assert [text[:21] for text in found.advice] == ["Set GOMEMLIMIT=460MiB"]


OUTSIDE: dict[str, Any] = {
    "live_mib": 125, "live_before_mib": 120, "heap_end_mib": 164, "next_goal_mib": 252,
    "resident_mib": 510.8, "gap_s": 0.54, "monotonic_s": 1.0, "alloc_most_mib_per_s": 280.0,
}  # fmt: skip


def test_the_sum_comes_before_what_would_have_helped() -> None:
    """By hand: 125 + 0.54 * 280 = 276 MiB of heap at most, so 235 of 511 MiB were no heap."""
    found = explained(**OUTSIDE)
    assert found.reading[1:] == (
        "164 to 276 MiB of the 511 MiB resident can have been heap objects. At the end of the last "
        "cycle, the heap was 164 MiB. After the last cycle, it can have grown by 280 MiB/s for "
        "540 ms.",
        "At least 235 of the 511 MiB resident were other memory, unless a last allocation was that "
        "large: fragmentation or free spans of the Go heap, stacks, or memory outside Go.",
    )
    assert found.preventable == "unknown"
    # First what helps now
    assert found.advice[0].startswith(
        "To buy time, raise the limit of 512 MiB to about 649 MiB: "
    )
    assert found.advice[1].startswith("Find out what uses the rest of the memory")
    assert not any("GOMEMLIMIT=" in text for text in found.advice)


def test_a_limit_that_leaves_room_for_the_rest_is_advised_with_it() -> None:
    found = explained(**OUTSIDE | {"live_mib": 50, "heap_end_mib": 300, "next_goal_mib": 320})
    # At most 512 - 300 = 212 MiB of the limit are no heap, and 0.95 * 512 - 212 = 274.4 are left.
    assert found.preventable == "yes"
    assert found.advice[0] == (
        "Set GOMEMLIMIT=274MiB: it leaves 238 of the 512 MiB for memory that it does not "
        "count, which must not grow."
    )
    assert found.advice[1].startswith("Find out what uses the rest of the memory")


def test_what_is_outside_may_leave_no_room_for_the_live_heap() -> None:
    facts = OUTSIDE | {"live_mib": 250, "heap_end_mib": 260, "next_goal_mib": 500,
                       "alloc_most_mib_per_s": 1.0}  # fmt: skip
    found = explained(**facts, heap_most_mib=260)
    assert found.preventable == "no"
    assert found.advice[1].startswith("Or give the program more memory: 250 MiB are live heap")
    # A heap that was larger before may have left free spans, which a limit makes Go return.
    for most_mib in (None, 400):
        may_be_free = explained(**facts, heap_most_mib=most_mib)
        assert may_be_free.preventable == "unknown"


@pytest.mark.parametrize(
    "changes",
    [
        {"gap_s": None, "next_goal_mib": None},
        {"next_goal_mib": None, "alloc_mib_per_s": None},
        {"overshoot": None, "alloc_mib_per_s": 900.0},
    ],
)
def test_a_heap_without_bounds_may_have_had_the_rest(changes: dict[str, Any]) -> None:
    sizes = {"live_mib": 100, "live_before_mib": 99, "heap_end_mib": 150}
    found = explained(**sizes | {"next_goal_mib": 200} | changes)
    assert found.reading[-1].startswith("At least 1")
    assert found.preventable == "partly"


def test_memory_in_a_ballast_is_not_resident() -> None:
    found = explained(live_mib=450, live_before_mib=450, heap_end_mib=460, resident_mib=300.0)
    assert "is larger than the 300 MiB resident" in " ".join(found.reading)


def test_what_others_under_the_limit_use_is_not_of_the_program() -> None:
    """By hand: 300 of 512 MiB were resident; at most 460 - (212 + 30) = 218 are left for Go."""
    sizes = {"live_mib": 200, "live_before_mib": 200, "heap_end_mib": 270, "next_goal_mib": 280}
    found = explained(**sizes, resident_mib=300.0)
    assert found.reading[1].startswith(
        "The process had 300 of these MiB: the other 212 belonged to other processes in the group"
    )
    assert found.advice[0].startswith(
        "To buy time, raise the limit of 512 MiB to about 686 MiB: "
    )
    assert found.advice[-1].startswith("Find out what else uses memory under this limit")
    assert not any("GOMEMLIMIT=" in text for text in found.advice)


@pytest.mark.parametrize("growth", [None, LASTING])
def test_a_kill_in_spite_of_a_memory_limit_with_room_follows_from_the_sum(
    growth: LiveGrowth | None,
) -> None:
    grew = "Find out why the live heap grows" if growth else ""
    more = explained(memory_limit_mib=400.0, growth=growth)
    assert more.preventable == "unknown"
    assert more.reading[-1] == (
        "GOMEMLIMIT was 400 MiB, 78 % of the limit of 512 MiB, and Go had more: GOMEMLIMIT is a soft "
        "limit."
    )
    # That Go had more does not have to be found out.
    assert [text.split(":")[0] for text in more.advice] == [
        grew or "Give the program more memory, or keep less in memory (heap profile"
    ]
    less = explained(memory_limit_mib=400.0, **OUTSIDE)
    assert less.reading[-1] == (
        "GOMEMLIMIT was 400 MiB, 78 % of the limit of 512 MiB, and Go had less: the rest is memory "
        "that Go does not count."
    )
    assert less.advice[0].startswith("Find out what uses the rest of the memory")
    either = explained(memory_limit_mib=200.0, **OUTSIDE)
    assert either.reading[-1] == (
        "GOMEMLIMIT was 200 MiB, 39 % of the limit of 512 MiB. Either memory that Go does not count took "
        "more than the other 312 MiB, or the heap grew past GOMEMLIMIT, which is a soft limit."
    )


def test_a_limit_that_set_the_heap_goals_is_not_advised_again() -> None:
    """Its value is unknown, but the goals show that it was below the container's limit."""
    found = explained(limited=True, goal_mib=300)
    assert found.preventable == "unknown"
    assert found.reading[-1].startswith(
        "GOMEMLIMIT, whose value is unknown, set the heap goal to 300 MiB, 59 % of the limit"
    )
    assert not any(text.startswith("Set GOMEMLIMIT") for text in found.advice)
    inferred = explained(limited=True, goal_mib=300, by_goals_mib=(190.4, 230.0))
    assert inferred.reading[-1] == (
        "By the heap goals, GOMEMLIMIT was 190–230 MiB, at most 45 % of the limit of 512 MiB, and Go "
        "had more: GOMEMLIMIT is a soft limit."
    )
    # What the goals show does not have to be found out.
    assert not any("Next time, compare" in text for text in inferred.advice)
    above = explained(limited=True, goal_mib=500)
    assert above.advice[0].startswith("Set GOMEMLIMIT=460MiB")


def test_a_dump_is_the_least_that_the_heap_had_at_a_kill() -> None:
    """No dump shows the cycles after it, so the rest of the limit may be heap or not."""
    facts = FACTS | {
        "resident_mib": None, "live_mib": 149, "heap_end_mib": 209, "next_goal_mib": 299,
        "gap_s": None, "dump_age_s": math.inf,
    }  # fmt: skip
    said = explained(**facts)
    assert said.reading[-1] == (
        "At least 209 MiB of the 512 MiB of the limit was Go heap. The input does not show whether "
        "the other 303 MiB were allocated since the last dump or are outside it."
    )
    assert "the live heap of at most 149 MiB at the last dump fits" in said.advice[0]
    known = explained(**facts | {"dump_age_s": 1.0})
    assert "At the last dump, the heap was 209 MiB." in " ".join(known.reading)


def test_a_heap_that_grew_past_its_limit_gets_time_from_a_higher_one() -> None:
    grew = {"live_mib": 172, "live_before_mib": 72, "heap_end_mib": 172, "next_goal_mib": 172}
    said = explained(100.0, **FACTS | grew | {"limit_mib": 200.0, "resident_mib": 198.0})
    assert "Go had more: GOMEMLIMIT is a soft limit" in " ".join(said.reading)
    assert any(step.startswith("To buy time, raise the limit of 200") for step in said.advice)


def test_what_batches_fill_again_is_no_growth() -> None:
    facts = {"live_before_mib": 20, "live_mib": 100}
    assert not any("grew" in text for text in explained(**facts, live_had_mib=98.0).reading)
    assert any("grew" in text for text in explained(**facts, live_had_mib=50.0).reading)


def test_without_a_limit_the_resident_memory_is_the_ceiling() -> None:
    found = explained(limit_mib=None, scope="global", constraint="CONSTRAINT_NONE")
    assert found.reading[0].startswith("The host ran out of memory")
    assert found.advice == (
        "Set a memory limit for the service, and GOMEMLIMIT to 90 % of it.",
    )


@pytest.mark.parametrize(
    ("facts", "advice"),
    [
        ({"live_mib": None}, "GODEBUG=gctrace=1"),
        ({"limit_mib": None, "resident_mib": None}, "Add the memory limit as well"),
    ],
)
def test_missing_facts_are_asked_for(facts: dict[str, Any], advice: str) -> None:
    found = explained(**facts)
    assert found.preventable == "unknown"
    assert any(advice in each for each in found.advice)


@pytest.mark.parametrize(
    ("names", "shows"),
    [
        ({"pod_uid": "d1f2"}, "`kubectl describe pod` shows"),
        ({"kind": "Container OOMKilled (exit code 137)"}, "its platform shows"),
        ({"container_id": "0f" * 32}, "its platform shows"),
    ],
)
def test_where_a_limit_stands_depends_on_what_ran_the_program(
    names: dict[str, Any], shows: str
) -> None:
    advice = " ".join(explained(limit_mib=None, resident_mib=None, **names).advice)
    assert f"Add the memory limit as well, which {shows}" in advice


def test_a_goal_above_the_limit_is_named() -> None:
    reading = " ".join(explained(gap_s=90.0, next_goal_mib=900).reading)
    assert "the next cycle was due at about 900 MiB" in reading
    assert "memory grew between two" not in reading


def test_gos_own_out_of_memory_is_not_the_oom_killer() -> None:
    refused: dict[str, Any] = {
        "kind": "Out of memory in the Go runtime", "scope": None, "limit_mib": None,
    }  # fmt: skip
    assert (
        "the operating system refused it: most often a limit of the process (`ulimit -v`"
        in (explained(**refused).reading[0])
    )
    # Nothing that is a container's helps, and the program is written in Go.
    grown = {"live_before_mib": 1, "live_mib": 668, "resident_mib": None}
    facts = {**FACTS, **refused, **grown}
    death = {"requested_bytes": 314572800, "in_use_bytes": 830111744}
    found = explain(evidence(**{**facts, **death}))
    assert found.reading == (
        "The Go runtime, whose heap had obtained 792 MiB, needed 300 MiB for one allocation, and the "
        "operating system refused it: most often a limit of the process (`ulimit -v`, `ulimit -d`), the overcommit "
        "limit of the host, or too many mappings (vm.max_map_count). It was not the OOM killer.",
        f"The live heap grew from 1 to 668 MiB within the last minute.{UNKNOWN_END}",
    )
    assert len(found.advice) == 2
    assert found.advice[0].startswith("Find what allocates that")
    # The heap grows by 64 MiB or less, which may be for many allocations.
    few = explain(evidence(**{**facts, **death, "requested_bytes": 64 << 20}))
    assert "one allocation" not in few.reading[0]
    assert few.advice == found.advice[1:]
    unseen = explain(evidence(**{**facts, **death, "live_mib": None}))
    assert unseen.advice[-1].startswith("Run the program with GODEBUG=gctrace=1")
    assert found.advice == unseen.advice[:-1]
    assert found.advice[1].startswith("Check the limits of the process")


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
        found = explain(evidence(**{**FACTS, **known, **REFUSED, **death}))
        assert (
            "the address space of a 32-bit program is used up" in found.reading[0]
        ) == is_of_32_bits
        assert any("GOARCH=386" in each for each in found.advice) == is_of_32_bits


def test_an_address_that_the_runtime_cannot_use_is_no_lack_of_memory() -> None:
    death = {
        "requested_bytes": 256 << 20,
        "in_use_bytes": 3 << 20,
        "refusal": "unusable address",
    }
    found = explain(evidence(**{**FACTS, **REFUSED, **death}))
    assert found.reading[0].startswith(
        "The Go runtime, whose heap had obtained 3 MiB, asked for 256 MiB, and the operating system "
        "gave it an address that it cannot use"
    )


def test_a_go_version_without_memory_limits_gets_no_limit() -> None:
    for known in ({}, UNSEEN):
        facts = {**FACTS, **known, "limit_mib": 512.0, "is_before_limits": True}
        found = explain(evidence(**facts))
        upgrade = "pgrade to Go 1.19 or later, which has GOMEMLIMIT"
        if_go = "If it is written in Go, u" if known else "U"
        assert found.advice[0].startswith(if_go + upgrade)
        assert not any(each.startswith("Set GOMEMLIMIT") for each in found.advice)
        assert found.preventable != "yes"


def test_a_memory_limit_that_is_set_is_named_before_it_is_to_be_changed() -> None:
    found = explained(memory_limit_mib=450.0, limit_mib=None)
    assert (
        "Set GOMEMLIMIT (now 450 MiB) to 90 % of the memory limit of its cgroup if that is lower"
        in found.advice[0]
    )


def test_a_limit_that_already_makes_gc_run_is_not_to_be_set() -> None:
    # The live heap grew through the memory limit: a limit of another size changes nothing.
    own: dict[str, Any] = {
        "limit_mib": None,
        "scope": "memcg",
        "limited": True,
        "live_mib": 450,
    }
    assert not any("GOMEMLIMIT" in each for each in explained(**own, live_before_mib=90).advice)
    assert explained(**own, live_before_mib=440).advice[0].startswith("Give the program more")
    # Most of the memory was not live: the host lacked memory for another reason.
    small = explained(**{**own, "scope": "host", "live_mib": 84, "live_before_mib": 80})
    assert small.advice[0].startswith("Find out which program has the most memory")
    assert small.preventable == "unknown"


@pytest.mark.parametrize(
    ("resident_mib", "action"),
    [(0.9, "Find out what has the other 127 of"), (120.0, "Find out")],
)
def test_pages_of_files_of_a_small_process_are_not_why_memory_ran_out(
    resident_mib: float, action: str
) -> None:
    facts = {**FACTS, **UNSEEN, "limit_mib": 128.0, "resident_mib": resident_mib}
    found = explain(
        evidence(**facts, comm="dd", anon_rss_bytes=84 << 10, file_rss_bytes=832 << 10)
    )
    assert found.advice[0].startswith(action)
    assert ("pages of files" in " ".join(found.reading)) == (resident_mib == 120.0)


@pytest.mark.parametrize("unit", ["systemd-resolved.service", "systemd-journald.service"])
def test_a_unit_of_systemd_is_no_go_program(unit: str) -> None:
    pressure: dict[str, Any] = {"pressure_pct": 84.0, "pressure_limit_pct": 80.0, "scope": None}
    unknown: dict[str, Any] = {"resident_mib": None, "killer": "systemd-oomd"}
    found = explain(evidence(**{**FACTS, **UNSEEN, **pressure, **unknown, "unit": unit}))
    assert "is the well-known one, it is not written in Go" in found.reading[-1]
    assert len(found.advice) == 1


@pytest.mark.parametrize("had_mib", [None, 300.0])
def test_the_reason_of_systemd_oomd_is_in_its_log_if_the_input_does_not_have_it(
    had_mib: float | None,
) -> None:
    """It acts on pressure or full swap: no limit was reached."""
    facts = {
        **FACTS,
        **UNSEEN,
        "scope": None,
        "resident_mib": had_mib,
        "killer": "systemd-oomd",
    }
    found = " ".join(explain(evidence(**facts)).advice)
    assert "journalctl -u systemd-oomd" in found
    assert "memory limit" not in found


def test_a_limit_that_no_go_program_fits_into_needs_no_setting() -> None:
    facts = {**FACTS, **UNSEEN, "limit_mib": 0.5, "limit_is": "its limit"}
    found = explain(evidence(**facts))
    assert found.reading[0] == "It reached its limit: 0.5 MiB."
    assert found.advice[0] == "Raise the limit: no Go program fits into 0.5 MiB."


def test_growth_within_less_than_a_minute_says_in_what_time() -> None:
    grown = {"live_before_mib": 82, "live_had_mib": 90, "live_mib": 125}
    for span_s, text in ((0.29, "290 ms"), (40.0, "40 s"), (58.0, "minute")):
        reading = explained(**grown, live_span_s=span_s).reading
        assert (
            f"The live heap grew from 82 to 125 MiB within the last {text}.{UNKNOWN_END}"
            in reading
        )


def test_the_limit_of_a_cgroup_may_be_unnamed() -> None:
    """A kernel log that was cut says that a control group was full, and not at what size."""
    found = explained(limit_mib=None, resident_mib=179.0, next_goal_mib=241, live_mib=90)
    assert found.reading[:2] == (
        "It reached the memory limit of its cgroup or of one above it.",
        "The heap goal could not fit: the next cycle was due at about 241 MiB, above 179 MiB.",
    )
    assert found.advice[0].startswith(
        "Set GOMEMLIMIT to 90 % of the memory limit of its cgroup"
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
        ((450, 480), None, "with 450 to 480 MiB of heap allocated, and does not say which"),
        ((10, 480), None, "with 10 to 480 MiB of heap allocated, and does not say which"),
        ((), None, "The host probably ran out of memory"),
    ],
)
def test_dumps_show_the_heap_of_a_kill_without_cycles(
    sizes: tuple[int, ...], process: int | None, said: str
) -> None:
    facts = {**FACTS, **UNSEEN, "process": process, "scope": "global", "comm": "api"}
    found = explain(evidence(**facts), dumps(*sizes))
    assert said in found.reading[-1]
    assert "set GOMEMLIMIT=450MiB (90 % of what it had), if its live heap is" in found.advice[0]
    assert found.advice[0].startswith("If api is written in Go") == (not sizes)
    assert found.advice[1].startswith(
        "Run the program with" if sizes else "If api is written in Go, run it with"
    )


@pytest.mark.parametrize(
    ("name", "is_go"),
    [("etcd", True), ("containerd-shim", True), ("k3s-agent", True), ("api", False)],
)
def test_programs_that_are_known_to_be_go_need_no_if(name: str, is_go: bool) -> None:
    found = explain(evidence(**FACTS | UNSEEN | {"limit_mib": 512.0, "comm": name}))
    assert found.advice[0].startswith("Set GOMEMLIMIT=460MiB") == is_go


@pytest.mark.parametrize(
    ("facts", "settings", "said"),
    [
        ({"scope": "memcg", "resident_mib": None}, {}, "To buy time, raise its memory limit."),
        ({"scope": None, "resident_mib": None}, {},
         "raise its memory limit if it has one, and otherwise free memory"),
        ({"scope": "global", "comm": "api", "resident_mib": None}, {},
         "Find out which program has the most memory"),
        ({"scope": "global", "comm": "api"}, {},
         "If api is written in Go, set GOMEMLIMIT=450MiB (90 % of what it had), if its live heap"),
        ({"limit_mib": 512.0}, {"memory_limit_mib": Known(400.0, "given")},
         "To buy time, raise the limit of 512 MiB if the host has room for more, and leave GO"),
    ],
)  # fmt: skip
def test_something_buys_time_where_the_cause_is_unknown(
    facts: dict[str, Any], settings: dict[str, Known], said: str
) -> None:
    found = explain(evidence(**FACTS | UNSEEN | facts), {**TABLES}, Settings(**settings))
    assert said in found.advice[0]


def test_a_neighbour_with_more_memory_is_moved_first() -> None:
    for unseen in (UNSEEN, {"limit_mib": None, "host_share": 0.1}):
        facts = FACTS | unseen | {"scope": "global", "largest": ("postgres", 900.0)}
        assert explain(evidence(**facts)).advice[0] == (
            "To buy time, move postgres (900 MiB) to another host, or limit its memory."
        )


@pytest.mark.parametrize(
    ("kb", "at_s", "is_moved"),
    [(3_000_000, 12, True), (3_000_000, 10, False), (9_000, 12, False)],
)
def test_a_program_that_was_killed_before_or_is_small_is_not_moved(
    kb: int, at_s: int, *, is_moved: bool
) -> None:
    kill = "[{}.1] Out of memory: Killed process {} ({}) total-vm:9999999kB, anon-rss:{}kB\n"
    other = kill.format(at_s, 8, "postgres", kb)
    lines = sorted([kill.format(11, 7, "journalctl", 4000), other])
    deaths = read_text("".join(lines)).post_mortems()
    (own,) = [death for death in deaths if death.victim == "journalctl"]
    assert ("move postgres" in " ".join(own.advice)) is is_moved


def test_the_largest_neighbour_is_one_of_the_tasks_listed() -> None:
    tasks = "[ 1201.114502] [  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name\n"
    row = "[ 1201.114502] [{0:7d}]     0 {0:5d}   900000 {1:8d}  1228800        0             0 {2}\n"
    for pages, in_all, advised in (
        (130_000, 700_000, True),
        (880_000, 1_300_000, False),
        # Neither had it: kernel memory or files in memory did.
        (130_000, 4_000_000, False),
    ):
        (death,) = read_text(
            "[ 1201.114502] api invoked oom-killer: gfp_mask=0xcc0, order=0, oom_score_adj=0\n"
            f"[ 1201.114502] {in_all} pages RAM\n"
            f"{tasks}{row.format(2047, pages, 'api')}{row.format(31, 250_000, 'postgres')}"
            "[ 1201.114502] Out of memory: Killed process 2047 (api) total-vm:9kB, "
            f"anon-rss:{4 * pages}kB, file-rss:0kB, shmem-rss:0kB\n"
        ).post_mortems()
        assert ("move postgres (977 MiB) to another host" in death.advice[0]) is advised
        unlisted = "Find out what has most of the 15.3 GiB: the" in death.advice[0]
        assert unlisted is (in_all == 4_000_000)


@pytest.mark.parametrize(("swapped", "size"), [(519_670, "2,030 MiB"), (9, None)])
def test_what_was_swapped_out_is_not_resident(swapped: int, size: str | None) -> None:
    """From a report to the kernel's list: 519,670 pages of 4 KiB are 2,030 MiB."""
    (death,) = read_text(
        "[337533.314333] [  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents "
        "oom_score_adj name\n"
        f"[337533.314407] [  23793]     0 23793   655928   126942  5226496   {swapped}"
        "             0 leaker\n"
        "[337533.314412] Memory cgroup out of memory: Killed process 23793 (leaker) "
        "total-vm:2623712kB, anon-rss:506500kB, file-rss:1268kB, shmem-rss:0kB\n"
    ).post_mortems()
    said = f"Another {size} of the process were swapped out."
    assert (said in death.reading[0]) is (size is not None)


def test_a_kill_without_cycles_in_a_known_limit_has_a_setting_to_begin_with() -> None:
    facts = {
        **FACTS, **UNSEEN, "limit_mib": 512.0, "limit_is": "its limit", "comm": "api"
    }  # fmt: skip
    found = explain(evidence(**facts))
    assert found.advice[0].startswith("If api is written in Go, set GOMEMLIMIT=460MiB (90 % of")
    is_go = explain(evidence(**facts), dumps(100))
    assert is_go.advice[0].startswith("Set GOMEMLIMIT=460MiB (90 % of the limit)")
    unknown = explain(evidence(**{**FACTS, **UNSEEN}))
    assert "the memory limit as well" in unknown.advice[-1]


SIDES: list[tuple[str, bool, dict[str, Any]]] = [
    ("takes 90 % of 100 MiB", False, {"live_mib": 90, "limit_mib": 100.0, "resident_mib": 100.0}),
    ("The live heap alone, 91 MiB, takes 91 % of 100 MiB", True, {"live_mib": 91, "limit_mib": 100.0, "resident_mib": 100.0}),
    ("was due at", False, {"next_goal_mib": 512}),
    ("was due at about 513 MiB, above 512 MiB", True, {"next_goal_mib": 513}),
    ("was due at", False, {"next_goal_mib": None}),
    ("grew from", False, {"live_before_mib": 40, "live_mib": 60}),
    ("grew from 40 to 61 MiB", True, {"live_before_mib": 40, "live_mib": 61}),
    ("grew from", False, {"live_before_mib": 16, "live_mib": 32}),
    ("grew from 16 to 33 MiB", True, {"live_before_mib": 16, "live_mib": 33}),
    ("grew from", False, {"live_before_mib": None, "live_mib": 61}),
    ("grew from", False, {"live_before_mib": 0, "live_mib": 61}),
    ("It reached the limit of api: 512 MiB.", True, {"not_before_at": 1, "resident_mib": None}),
    ("At the last scrape before the kill, 384 MiB were resident, 75 % of the limit of api (512 MiB).", True, {"not_before_at": 1, "resident_mib": 384.0}),
    ("It reached", False, {"limit_is": None}),
    ("It reached", False, {"limit_mib": None, "scope": None}),
    ("It reached the memory limit of its cgroup or of one above it.", True, {"limit_mib": None}),
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
    "source",
    [
        {"resident_mib": 245.0},  # the kernel, with the limit
        {"resident_mib": 245.0, "limit_mib": None},  # the journal, without it
        {"resident_mib": None, "gap_s": 0.6},  # the container, without a size
    ],
)
def test_the_first_step_after_a_kill_does_not_depend_on_who_recorded_it(
    source: dict[str, Any],
) -> None:
    sizes = {"live_mib": 225, "heap_end_mib": 225, "next_goal_mib": 453, "gap_s": None}
    sizes |= {"heap_most_mib": 225}
    kill = {"limit_mib": 256.0, **sizes, "alloc_mib_per_s": 22.0, "monotonic_s": 1.0} | source
    grew = explained(**kill | {"growth": LASTING}).advice
    assert grew[0].startswith("Find out why the live heap grows: compare two heap profiles")
    more = (
        "To buy time, raise the limit of 256 MiB to about 470 MiB, and set GOMEMLIMIT=423MiB: "
        "225 MiB are live heap, so no GOGC or GOMEMLIMIT leaves GC enough room under 256 MiB."
    )
    other = "Or give the program more memory: 225 MiB are live heap"
    assert grew[1].startswith(more if kill["limit_mib"] else other)
    unsized = explained(**kill | {"growth": LASTING, "resident_mib": None, "limit_mib": None})
    assert unsized.advice[0] == grew[0]
    still = explained(**kill | {"live_before_mib": 224}).advice
    assert [text[:60] for text in still] == [MORE_MEMORY[:60]]


@pytest.mark.parametrize(
    ("number", "loop"), [(None, ""), (1, ""), (2, " Its container was restarted 2 times.")]
)
def test_a_container_that_is_restarted_again_and_again_is_named(
    number: int | None, loop: str
) -> None:
    found = explain(evidence(**FACTS, restart_count=number))
    assert found.reading[0] == f"It reached the limit of api: 512 MiB.{loop}"
    unknown = FACTS | {"limit_mib": None, "restart_count": number}
    assert explain(evidence(**unknown)).reading[0].endswith(f"or of one above it.{loop}")


@pytest.mark.parametrize(
    ("pid", "also"), [(1, ""), (5, ", api 10 MiB"), (6, ""), (9, ""), (None, "")]
)
def test_who_held_the_memory_is_said_by_program(pid: int | None, also: str) -> None:
    listed = ((1, "db", 20), (2, "db", 20), (3, "web", 35), (4, "log", 15), (5, "api", 10))
    rows = [
        {"source": "log", "kill_line_no": 7, "pid": n, "comm": comm, "rss_bytes": size << 20}
        for n, comm, size in listed
    ]
    rows.append({"source": "log", "kill_line_no": 7, "pid": 6, "comm": "x"})
    elsewhere = {"source": "log", "kill_line_no": 8, "pid": 9, "rss_bytes": 99}
    tasks = pl.DataFrame([*rows, elsewhere], schema=schema.polars_schema("oom_tasks"))
    death = {"pid": pid, "line_no": 7, "source": "log", "scope": "global"}
    found = explain(
        evidence(**FACTS | death | {"limit_mib": None}), {**TABLES, "oom_tasks": tasks}
    )
    assert found.reading[1] == (
        "The 6 tasks listed had 100 MiB resident (shared pages counted in each): db "
        f"40 MiB (2 tasks), web 35 MiB, log 15 MiB{also}."
    )


@pytest.mark.parametrize(
    ("given", "limit", "preventable", "advice"),
    [
        (None, 500.0, "yes", "Set GOMEMLIMIT=450MiB, so that GC runs before memory reaches the limit of 500 MiB; the live heap of 240 MiB fits."),
        (None, None, "partly", "Set a memory limit for the service, and GOMEMLIMIT to 90 % of it."),
        (475.0, 500.0, "unknown", COMPARE_TOTAL),
        (480.0, 500.0, "partly", "Set GOMEMLIMIT=450MiB: it is 480 MiB now, which leaves no room for memory that Go does not count below the limit of 500 MiB."),
        (480.0, None, "partly", "Set a memory limit for the service, and GOMEMLIMIT (now 480 MiB) to 90 % of it."),
    ],
)  # fmt: skip
def test_the_memory_limit_that_is_advised(
    given: float | None, limit: float | None, preventable: str, advice: str
) -> None:
    found = explained(memory_limit_mib=given, limit_mib=limit, scope=None)
    assert found.preventable == preventable
    assert found.advice == (advice,)


def test_a_growing_heap_needs_more_than_a_limit() -> None:
    limited = explained(memory_limit_mib=500.0, growth=LASTING, live_mib=100)
    assert limited.preventable == "for a while"
    assert limited.advice[-1].startswith("A limit only buys time")


@pytest.mark.parametrize("resident_mib", [None, 0.0])
def test_what_is_missing_is_named(resident_mib: float | None) -> None:
    found = explained(limit_mib=None, resident_mib=resident_mib, live_mib=100)
    assert found.advice[-1].startswith("Add the memory limit as well")


def test_exit_code_137_proves_nothing() -> None:
    found = explained(proven=False, exit_code=137)
    assert found.preventable == "unknown"
    assert found.reading[0].startswith("Exit code 137 most likely means SIGKILL")
    assert explained(proven=False).reading[0].startswith("Any process may have sent SIGKILL")
    assert found.advice == (FIND_SENDER,)


def test_pages_of_files_are_no_go_heap() -> None:
    (death,) = read_text(
        "[ 1201.114502] Killed process 2047 (app) total-vm:6291456kB, anon-rss:0kB, "
        "file-rss:5242880kB, shmem-rss:0kB\n"
    ).post_mortems()
    assert death.resident_mib == 5120
    assert "pages of files" in death.reading[-1]
    assert death.preventable == "no"


def test_the_code_of_a_small_victim_is_not_what_filled_a_limit() -> None:
    (death,) = read_text(
        "[ 1201.114502] Memory cgroup out of memory: Killed process 7 (node_exporter) "
        "total-vm:900000kB, anon-rss:3400kB, file-rss:9400kB, shmem-rss:0kB\n"
    ).post_mortems()
    text = " ".join((*death.reading, *death.advice))
    assert "pmap" not in text
    assert "GOMEMLIMIT=" not in text


def test_shared_memory_is_no_go_heap() -> None:
    (death,) = read_text(
        "[ 1201.114502] Memory cgroup out of memory: Killed process 77 (cache) "
        "total-vm:4194304kB, anon-rss:120000kB, file-rss:1000kB, shmem-rss:1900000kB\n"
    ).post_mortems()
    assert "shared memory (tmpfs, /dev/shm), not Go heap" in death.reading[-1]
    assert death.preventable == "no"


@pytest.mark.parametrize("name", ["git", "python3", "cc1plus", "postgres"])
def test_a_program_that_is_not_go_gets_its_own_advice(name: str) -> None:
    (death,) = read_text(
        f"[ 1201.114502] Memory cgroup out of memory: Killed process 2047 ({name}) "
        "total-vm:6291456kB, anon-rss:520000kB, file-rss:0kB, shmem-rss:0kB\n"
    ).post_mortems()
    assert f"this {name} is the well-known one" in " ".join(death.reading)
    assert "GODEBUG" not in " ".join(death.advice)


POD = """\
Name:             {pod}
Namespace:        shop
Containers:
  api:
    State:          Terminated
      Reason:       OOMKilled
      Exit Code:    137
    Restart Count:  2
    Limits:
      memory:  512Mi
    Environment:
      GODEBUG:  {godebug}
"""


def test_a_trace_that_is_on_already_is_not_asked_for_again() -> None:
    (on,) = read_text(
        POD.format(pod="api-0", godebug="madvdontneed=1,gctrace=1")
    ).post_mortems()
    asked = " ".join(on.advice)
    assert "`kubectl logs --previous -n shop api-0 -c api`" in asked
    assert "Run the program" not in asked
    (off,) = read_text(POD.format(pod="api-0", godebug="gctrace=0")).post_mortems()
    assert "with GODEBUG=gctrace=1, keep its standard error" in " ".join(off.advice)


def test_a_container_of_docker_has_its_log_too() -> None:
    state = {
        "Id": "a" * 64, "Name": "/api", "State": {"OOMKilled": True, "ExitCode": 137},
        "HostConfig": {"Memory": 1 << 29}, "Config": {"Env": ["GODEBUG=gctrace=1"]},
    }  # fmt: skip
    (death,) = read_text(json.dumps(state)).post_mortems()
    assert "`docker logs api`" in " ".join(death.advice)


def test_the_log_of_a_container_of_kubernetes_is_its_own_without_a_pod_too() -> None:
    """A part of `kubectl describe`, as it is pasted, has no name of a pod."""
    state = POD.format(pod="", godebug="gctrace=1").split("shop\n")[1]
    (death,) = read_text(state).post_mortems()
    assert "`kubectl logs --previous POD -c api`" in " ".join(death.advice)


def test_memory_outside_of_go_that_is_most_of_all_needs_no_limit() -> None:
    """By hand: 1.1 * 200 MiB at most were heap, and 280 of the 500 MiB at least were not."""
    sizes = {"live_mib": 50, "live_before_mib": 50, "heap_end_mib": 90, "next_goal_mib": 200}
    found = explained(**sizes, gap_s=None)
    assert found.preventable == "unknown"
    assert [text[:41] for text in found.advice] == ["Find out what uses the rest of the memory"]


def test_a_program_with_little_of_the_hosts_memory_is_not_why_it_was_short() -> None:
    of_host: dict[str, Any] = {"limit_mib": None, "scope": "global", "killer": "earlyoom"}
    firsts = {0.03: "Find out which program has", 0.8: "Set a memory limit for the service"}
    for share, first in firsts.items():
        found = explained(**of_host, host_share=share)
        assert (found.preventable == "unknown") is (share < 0.5)
        assert found.advice[0].startswith(first)
        said = f"The program had {100 * share:.0f} % of the host's memory."
        for swap, is_all in ((0, True), (1 << 30, False)):
            also = {"available_bytes": 1, "swap_limit_bytes": swap}
            found = explained(**of_host, **also, host_share=share)
            assert (said in found.reading[0]) is is_all


EARLYOOM = """\
Nov 26 10:34:17 dev earlyoom[612]: mem avail:  1190 of 15927 MiB ( 7.47%), swap free:    0 of    0 MiB ( 0.00%)
Nov 26 10:34:17 dev earlyoom[612]: low memory! at or below SIGTERM limits: mem 10.00%, swap 10.00%
Nov 26 10:34:17 dev earlyoom[612]: sending SIGTERM to process 14534 uid 1000 "orders": badness 803, VmRSS 507 MiB
"""


def test_the_share_of_a_program_is_of_the_memory_that_its_killer_counts() -> None:
    """By hand: 507 of 15,927 MiB."""
    (death,) = read_text(EARLYOOM).post_mortems()
    assert death.reading[0].endswith("The program had 3.2 % of the 15,927 MiB.")


def test_the_limit_of_a_container_refuses_no_memory_to_the_runtime(tmp_path: Path) -> None:
    lines = [*records(9), "fatal error: runtime: out of memory", "", "runtime stack:"]
    log = logfile(tmp_path / "log", lines)
    (death,) = gca.read(log, container_limit="512MiB").post_mortems()
    assert (death.limit_mib, death.preventable) == (None, "unknown")
    assert "limit: 512 MiB" not in " ".join(death.reading)


def test_a_child_that_is_not_go_ran_in_the_unit_of_the_program(tmp_path: Path) -> None:
    group = "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg={0},task_memcg={0},task=ffmpeg,pid=9,uid=0"  # fmt: skip
    for unit, place in (("api.service", "unit"), ("other.service", None)):
        at = "2026-02-03T10:00:06Z h kernel: "
        lines = journal(7, "api", KILL.format(pid=9, comm="ffmpeg", kb=500_000), records(5))
        lines.insert(-1, at + group.format(f"/system.slice/{unit}"))
        (death,) = gca.read(logfile(tmp_path / "log", lines)).post_mortems()
        assert death.process is None
        text = " ".join((*death.reading, *death.advice))
        assert ("It ran in the unit of the Go program." in text) is (place is not None)
        assert ("which work of the Go program needs ffmpeg" in text) is (place is not None)
        assert ("Limit the memory of ffmpeg" in text) is (place is None)


def test_a_kill_whose_record_is_cut_is_most_likely_one_for_memory() -> None:
    ran = "[   13.957383] app invoked oom-killer: gfp_mask=0x14200ca(GFP_HIGHUSER_MOVABLE), order=0"
    (death,) = read_text(f"$ docker run -m 512m app\nKilled\n$ dmesg\n{ran}\n").post_mortems()
    assert not death.proven
    assert death.cause == "by SIGKILL, and the kernel's OOM killer ran"
    assert death.reading[0].startswith("Memory most likely ran out")


def test_of_a_child_only_the_end_of_its_container_is_known() -> None:
    state = (
        "State: Terminated\n  Reason: OOMKilled\n  Exit Code: 0\n"
        "  Started: Tue, 29 Apr 2025 13:43:32 +0800\n  Finished: Tue, 29 Apr 2025 14:10:51 +0800\n"
    )
    verdict = read_text(state).report().verdict
    assert verdict is not None
    assert "in the 27m 19s before its end at 2025-04-29 06:10:51 UTC" in verdict.sentence


def test_a_limit_above_what_was_used_was_not_reached() -> None:
    for killer, used_mib, said in (
        (None, 512, "It reached the limit of api: 512 MiB, with 512 MiB in use."),
        (None, 500, "It used 500 MiB of the limit of api, 512 MiB."),
        ("kernel", 500, "It reached the limit of api: 512 MiB, with 500 MiB in use."),
    ):
        assert explained(killer=killer, used_bytes=used_mib << 20).reading[0] == said


def test_the_growth_before_a_kill_is_that_of_the_finding() -> None:
    analysis = gca.read(SAMPLES / "leak-into-limit-go1.24.log").report().analysis
    (grows,) = (each for each in analysis.findings if each.id == "GC021")
    growth = analysis.live_growth(0)
    assert growth is not None
    assert grows.evidence.startswith(growth.text)
