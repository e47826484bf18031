"""What the facts of a death mean, what to do, and whether Go could have prevented it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.analysis.postmortem import match

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gctrace_analyzer.analysis.settings import Settings

Row = dict[str, Any]

MOST_OF_LIMIT = 0.9
"""A live heap that leaves less than a tenth of the limit to all else does not fit in it."""

OFF_HEAP_SHARE = 0.3
"""More of the limit than this outside the Go heap is a cause of its own."""

TIGHT_LIMIT = 0.95
"""A GOMEMLIMIT above this part of the container's leaves nothing to what Go does not count."""

QUIET_TIMES = 2.0
"""No cycle for twice the usual interval: memory was taken between two collections."""


def read(  # noqa: C901  the order of the questions is the order of the answers
    facts: Row, death: Row, tables: Mapping[str, pl.DataFrame], settings: Settings
) -> tuple[list[str], list[str], str]:
    """What the facts mean, what to do, and whether Go could have prevented it."""
    if not facts["proven"]:
        text = (
            "Exit code 137 is SIGKILL by anybody. Not proven to be for memory: the "
            "kernel's log of that minute would tell."
        )
        return (
            [text],
            ["Keep `journalctl -k` or `dmesg` of the host for the next time."],
            "cannot tell",
        )
    reading = list(_about_limit(facts, death, tables))
    advice: list[str] = []
    limit, live, goal = facts["limit_mib"], facts["live_mib"], facts["next_goal_mib"]
    if facts["kind"] == "Go's own out of memory":
        reading.append(
            "The system refused the runtime memory: an address-space limit (ulimit -v) or "
            "no memory at all; not the OOM killer."
        )
    ceiling = limit if limit is not None else facts["resident_mib"]
    if live is None or ceiling is None:
        missing = (
            "no cycles of the program" if live is None else "no limit and no resident size"
        )
        reading.append(f"What the heap did is not known here: {missing}.")
        return reading, [_keep(facts)], "cannot tell"
    gap, usual = facts["gap_s"], facts["usual_interval_s"]
    if gap is not None and usual and gap > QUIET_TIMES * usual:
        reading.append(
            f"No cycle in the last {gap:.3g} s, usually one every {usual:.3g} s: memory "
            f"was taken between two collections."
        )
    rest = facts["off_heap_mib"]
    if rest is not None and rest > OFF_HEAP_SHARE * ceiling:
        reading.append(
            f"{rest:,.0f} MiB of the resident memory is not the Go heap of the last cycle: "
            f"allocated since, or off-heap (cgo, mmap, stacks)."
        )
    if goal is not None and goal > ceiling:
        reading.append(
            f"The goal could not fit: the next cycle was due at {goal:,} MiB, past "
            f"{ceiling:,.0f} MiB."
        )
    if live > MOST_OF_LIMIT * ceiling:
        reading.append(
            f"The live heap itself, {live:,} MiB, fills {100 * live / ceiling:.0f} % of "
            f"{ceiling:,.0f} MiB."
        )
        advice.append(
            "No GOGC or GOMEMLIMIT makes live memory fit: give it more, or keep less (heap "
            "profile: go tool pprof)."
        )
        return reading, advice, "no"
    if (allocated := _beyond_the_heap(facts, ceiling)) is not None:
        reading.append(
            f"At {facts['alloc_mib_per_s'] or 0:,.0f} MiB/s the heap can have grown by "
            f"{allocated:,.0f} MiB since then: most of the rest is not Go's heap, and no "
            "GOMEMLIMIT touches it."
        )
        advice.append(
            "Find out who holds it: cgo, mmap, thread stacks (pmap -x, /proc/PID/smaps)."
        )
        return reading, advice, "cannot tell"
    advice += _limit_advice(limit, live, settings)
    growing = _growing(facts)
    if growing:
        reading.append(growing)
    gomemlimit = settings.value("memory_limit_mib")
    if gomemlimit is None:
        return reading, advice, "for a while" if growing else "yes" if limit else "partly"
    return reading, advice, "partly"


def _beyond_the_heap(facts: Row, ceiling: float) -> float | None:
    """What the heap can have grown by since the last cycle, if that explains little."""
    rest, gap, rate = facts["off_heap_mib"], facts["gap_s"], facts["alloc_mib_per_s"]
    if rest is None or gap is None or rate is None or rest <= OFF_HEAP_SHARE * ceiling:
        return None
    # A stamp may be cut to its second.
    grown = rate * (gap + 1)
    return grown if rest > 3 * grown else None


def _growing(facts: Row) -> str | None:
    first, live = facts["live_before_mib"], facts["live_mib"]
    if first and live and live > 1.5 * first and live - first > 16:
        return (
            f"The live heap grew from {first:,} to {live:,} MiB in that time; a limit buys "
            f"time, no cure."
        )
    return None


def _about_limit(facts: Row, death: Row, tables: Mapping[str, pl.DataFrame]) -> Iterator[str]:
    if facts["scope"] == "global":
        tasks = match.tasks_at(death, tables["oom_tasks"]).sort(
            "rss_bytes", descending=True, nulls_last=True
        )
        rank = tasks.with_row_index("rank", offset=1).filter(pl.col("pid") == death.get("pid"))
        place = ""
        if len(rank):
            number = int(rank["rank"][0])
            place = (
                f" It was the largest of {len(tasks)} tasks listed."
                if number == 1
                else f" {number - 1} of {len(tasks)} tasks listed were larger."
            )
        yield f"The host ran out of memory, not the program's own limit.{place}"
    elif facts["limit_mib"] is not None and facts["limit_is"]:
        yield f"It hit {facts['limit_is']}: {facts['limit_mib']:,.0f} MiB."


def _limit_advice(limit: float | None, live: int, settings: Settings) -> Iterator[str]:
    set_to = settings.value("memory_limit_mib")
    if limit is None:
        yield "Set a memory limit for the service, and GOMEMLIMIT to nine tenths of it."
    elif set_to is None:
        yield (
            f"GOMEMLIMIT={int(MOST_OF_LIMIT * limit)}MiB makes the runtime collect before "
            f"the limit of {limit:,.0f} MiB; the live heap of {live:,} MiB fits."
        )
    elif set_to > TIGHT_LIMIT * limit:
        share = 100 * set_to / limit
        yield (
            f"GOMEMLIMIT is {share:.0f} % of the limit: what Go does not count has no "
            f"room. Set {int(MOST_OF_LIMIT * limit)}MiB."
        )


def _keep(facts: Row) -> str:
    if facts["live_mib"] is None:
        return "Run it with GODEBUG=gctrace=1 and give its log along with this one."
    return (
        "Name the limit: --container-limit, or the output of docker inspect or kubectl "
        "describe pod."
    )
