"""Deaths for memory: what the program did in its last minute, and whether Go could help it.

A kernel's or systemd-oomd's kill is proof; so is a state that says `OOMKilled`, a unit's
result `oom-kill` or the runtime's own `out of memory`. Exit code 137 alone is SIGKILL by
anybody, and said to be not proven.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.analysis import oom_link
from gctrace_analyzer.analysis.cycles import with_metrics

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from gctrace_analyzer.analysis.settings import Settings

MIB = 1 << 20
Row = dict[str, Any]

LAST_S = 60.0
"""The last minute: long enough for a trend, short enough to be about the death."""

MOST_OF_LIMIT = 0.9
"""A live heap that leaves less than a tenth of the limit to all else does not fit in it."""

OFF_HEAP_SHARE = 0.3
"""More of the limit than this outside the Go heap is a cause of its own."""

TIGHT_LIMIT = 0.95
"""A GOMEMLIMIT above this part of the container's leaves nothing to what Go does not count."""

QUIET_TIMES = 2.0
"""No cycle for twice the usual interval: memory was taken between two collections."""


@dataclass(frozen=True, slots=True)
class PostMortem:
    """One death and what is known of it; sizes in MiB, null where nothing tells them."""

    kind: str
    proven: bool
    logged_at: datetime | None
    monotonic_s: float | None
    killer: str | None
    victim: str | None
    pid: int | None
    scope: str | None
    limit_mib: float | None
    limit_is: str | None
    process: int | None
    match_by: tuple[str, ...]
    confidence: str | None
    last_gc_num: int | None
    gap_s: float | None
    usual_interval_s: float | None
    live_before_mib: int | None
    live_mib: int | None
    heap_end_mib: int | None
    goal_mib: int | None
    gc_cpu_share: float | None
    alloc_mib_per_s: float | None
    resident_mib: float | None
    go_heap_mib: float | None
    go_other_mib: float | None
    off_heap_mib: float | None
    reading: tuple[str, ...]
    advice: tuple[str, ...]
    preventable: str
    source: str | None
    line_no: int | None

    def to_dict(self) -> dict[str, Any]:
        """The facts by name, ready for JSON."""
        lists = {name: list(getattr(self, name)) for name in ("match_by", "reading", "advice")}
        return {**asdict(self), **lists}


def post_mortems(tables: Mapping[str, pl.DataFrame], settings: Settings) -> list[PostMortem]:
    """Every death in the tables of a log, in their order."""
    deaths = [*_kills(tables), *_states(tables), *_units(tables), *_fatal(tables)]
    metrics = with_metrics(tables["cycles"]) if deaths else tables["cycles"]
    return [_examined(death, tables, metrics, settings) for death in deaths]


def _kills(tables: Mapping[str, pl.DataFrame]) -> Iterator[Row]:
    for row in tables["oom_kills"].iter_rows(named=True):
        yield {**row, "kind": "OOM kill", "proven": True}


def _states(tables: Mapping[str, pl.DataFrame]) -> Iterator[Row]:
    """Containers that ended so, unless a kill of the same container is there already."""
    kills = tables["oom_kills"]
    told: set[str] = set()
    for row in tables["container_states"].iter_rows(named=True):
        if not row["oom_killed"] and row["exit_code"] != 137:
            continue
        identifier = row["container_id"] or row["name"] or row["container"] or ""
        seen = bool(identifier) and identifier in told
        kill = kills["container_id"].drop_nulls()
        if seen or any(
            k.startswith(identifier) or identifier.startswith(k) for k in kill if identifier
        ):
            continue
        told.add(identifier)
        yield {
            "kind": "container OOMKilled" if row["oom_killed"] else "exit code 137",
            "proven": bool(row["oom_killed"]),
            "logged_at": row["finished_at"] or row["logged_at"],
            "comm": None, "container": row["container"], "pod": row["pod"],
            "name": row["name"] or row["container"], "container_id": row["container_id"],
            "limit_bytes": row["memory_limit_bytes"], "scope": "memcg" if row["oom_killed"] else None,
            "source": row["source"], "line_no": row["line_no"],
        }  # fmt: skip


def _units(tables: Mapping[str, pl.DataFrame]) -> Iterator[Row]:
    """Units that systemd calls killed for memory, where no record of the kill is there."""
    known = set(tables["oom_kills"]["unit"].drop_nulls())
    for row in tables["unit_events"].iter_rows(named=True):
        killed = row["event"] == "oom_killed_process" or row["result"] == "oom-kill"
        if killed and row["unit"] not in known and not row["unit"].endswith(".slice"):
            known.add(row["unit"])
            yield {
                **row,
                "kind": "unit killed for memory",
                "proven": True,
                "comm": None,
                "name": row["unit"],
            }


def _fatal(tables: Mapping[str, pl.DataFrame]) -> Iterator[Row]:
    for row in tables["runtime_fatal"].iter_rows(named=True):
        yield {
            **row, "kind": "Go's own out of memory", "proven": True, "killer": "the Go runtime",
            "comm": row["ident"], "pid": row["log_pid"],
        }  # fmt: skip


def _examined(
    death: Row, tables: Mapping[str, pl.DataFrame], metrics: pl.DataFrame, settings: Settings
) -> PostMortem:
    link = oom_link.link(death, tables["processes"])
    facts: Row = {
        "kind": death["kind"],
        "proven": death["proven"],
        "logged_at": death.get("logged_at"),
        "monotonic_s": death.get("monotonic_s"),
        "killer": death.get("killer"),
        "victim": death.get("comm") or death.get("name"),
        "pid": death.get("pid"),
        "scope": death.get("scope"),
        "process": link.process if link else None,
        "match_by": link.match_by if link else (),
        "confidence": link.confidence if link else None,
        "source": str(death["source"]) if death.get("source") else None,
        "line_no": death.get("line_no"),
        **_limit(death, settings),
        **(_last_cycles(death, metrics.filter(process=link.process)) if link else _NOTHING),
    }
    facts |= _divided(death, facts, tables["memstats"])
    reading, advice, preventable = _read(facts, death, tables, settings)
    return PostMortem(
        **facts, reading=tuple(reading), advice=tuple(advice), preventable=preventable
    )


def _limit(death: Row, settings: Settings) -> Row:
    if death.get("scope") == "global":
        return {"limit_mib": None, "limit_is": "the host's memory"}
    if limit := death.get("limit_bytes"):
        group = death.get("oom_memcg") or death.get("unit") or death.get("name")
        return {
            "limit_mib": limit / MIB,
            "limit_is": f"the limit of {group}" if group else "its limit",
        }
    if (limit := settings.value("container_limit_mib")) is not None:
        return {"limit_mib": limit, "limit_is": "the container's limit"}
    return {"limit_mib": None, "limit_is": None}


_NOTHING: Row = dict.fromkeys(
    (
        "last_gc_num", "gap_s", "usual_interval_s", "live_before_mib", "live_mib", "heap_end_mib",
        "goal_mib", "gc_cpu_share", "alloc_mib_per_s",
    )
)  # fmt: skip


def _last_cycles(death: Row, cycles: pl.DataFrame) -> Row:
    """What the program's last minute was like."""
    at = death.get("logged_at")
    if at is not None and cycles["logged_at"].count():
        cycles = cycles.filter(pl.col("logged_at").is_null() | (pl.col("logged_at") <= at))
    if cycles.is_empty():
        return dict(_NOTHING)
    last = cycles.row(-1, named=True)
    begin = None if last["start_s"] is None else last["start_s"] - LAST_S
    minute = cycles if begin is None else cycles.filter(pl.col("start_s") >= begin)
    first = minute.row(0, named=True)
    span = (last["start_s"] or 0) - (first["start_s"] or 0)
    capacity = span * 1000 * (last["procs"] or 0)
    allocated = minute["alloc_mib"].head(len(minute) - 1).sum() if len(minute) > 1 else None
    return {
        "last_gc_num": last["gc_num"],
        "gap_s": _gap_s(death, last),
        "usual_interval_s": minute["interval_s"].median(),
        "live_before_mib": first["heap_live_mib"],
        "live_mib": last["heap_live_mib"],
        "heap_end_mib": last["heap_end_mib"],
        "goal_mib": last["heap_goal_mib"],
        "gc_cpu_share": minute["gc_cpu_ms"].tail(len(minute) - 1).sum() / capacity
        if capacity
        else None,
        "alloc_mib_per_s": allocated / span if allocated and span else None,
    }


def _gap_s(death: Row, last: Row) -> float | None:
    """From the last cycle's line to the death, on whichever clock both have."""
    if death.get("logged_at") and (line := last["logged_at"] or last["wall_time"]):
        return float((death["logged_at"] - line).total_seconds())
    if death.get("monotonic_s") is not None and last["monotonic_s"] is not None:
        return round(death["monotonic_s"] - last["monotonic_s"], 6)
    return None


def _divided(death: Row, facts: Row, memstats: pl.DataFrame) -> Row:
    """Resident memory at death as Go heap, what else Go holds, and the rest.

    The heap is that of the last cycle's end, so what was allocated since then is in the rest.
    """
    resident = death.get("anon_rss_bytes")
    shared = death.get("shmem_rss_bytes") or 0
    resident_mib = None if resident is None else (resident + shared) / MIB
    heap = facts["heap_end_mib"]
    other = None
    given = memstats.drop_nulls(["sys_bytes", "heap_sys_bytes"]) if len(memstats) else memstats
    if len(given):
        other = (given["sys_bytes"][-1] - given["heap_sys_bytes"][-1]) / MIB
    rest = None
    if resident_mib is not None and heap is not None:
        rest = resident_mib - heap - (other or 0)
    return {
        "resident_mib": resident_mib,
        "go_heap_mib": None if heap is None else float(heap),
        "go_other_mib": other,
        "off_heap_mib": rest,
    }


def _read(
    facts: Row, death: Row, tables: Mapping[str, pl.DataFrame], settings: Settings
) -> tuple[list[str], list[str], str]:
    """What the facts mean, what to do, and whether Go could have prevented it."""
    if not facts["proven"]:
        text = "Exit code 137 is SIGKILL by anybody. Not proven to be for memory: the kernel's log of that minute would tell."
        return (
            [text],
            ["Keep `journalctl -k` or `dmesg` of the host for the next time."],
            "cannot tell",
        )
    reading = list(_about_limit(facts, death, tables))
    advice: list[str] = []
    limit, live, goal = facts["limit_mib"], facts["live_mib"], facts["goal_mib"]
    if facts["kind"] == "Go's own out of memory":
        reading.append(
            "The system refused the runtime memory: an address-space limit (ulimit -v) or no memory at all; not the OOM killer."
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
            f"No cycle in the last {gap:.3g} s, usually one every {usual:.3g} s: memory was taken between two collections."
        )
    rest = facts["off_heap_mib"]
    if rest is not None and rest > OFF_HEAP_SHARE * ceiling:
        reading.append(
            f"{rest:,.0f} MiB of the resident memory is not the Go heap of the last cycle: allocated since, or off-heap (cgo, mmap, stacks)."
        )
    if goal is not None and goal > ceiling:
        reading.append(
            f"The goal could not fit: the next cycle was due at {goal:,} MiB, past {ceiling:,.0f} MiB."
        )
    if live > MOST_OF_LIMIT * ceiling:
        reading.append(
            f"The live heap itself, {live:,} MiB, fills {100 * live / ceiling:.0f} % of {ceiling:,.0f} MiB."
        )
        advice.append(
            "No GOGC or GOMEMLIMIT makes live memory fit: give it more, or keep less (heap profile: go tool pprof)."
        )
        return reading, advice, "no"
    advice += _limit_advice(limit, live, settings)
    growing = _growing(facts)
    if growing:
        reading.append(growing)
    gomemlimit = settings.value("memory_limit_mib")
    if gomemlimit is None:
        return reading, advice, "for a while" if growing else "yes" if limit else "partly"
    return reading, advice, "partly"


def _growing(facts: Row) -> str | None:
    first, live = facts["live_before_mib"], facts["live_mib"]
    if first and live and live > 1.5 * first and live - first > 16:
        return f"The live heap grew from {first:,} to {live:,} MiB in that time; a limit buys time, no cure."
    return None


def _about_limit(facts: Row, death: Row, tables: Mapping[str, pl.DataFrame]) -> Iterator[str]:
    if facts["scope"] == "global":
        tasks = tables["oom_tasks"].sort("rss_bytes", descending=True, nulls_last=True)
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
        yield f"GOMEMLIMIT={int(MOST_OF_LIMIT * limit)}MiB makes the runtime collect before the limit of {limit:,.0f} MiB; the live heap of {live:,} MiB fits."
    elif set_to > TIGHT_LIMIT * limit:
        share = 100 * set_to / limit
        yield f"GOMEMLIMIT is {share:.0f} % of the limit: what Go does not count has no room. Set {int(MOST_OF_LIMIT * limit)}MiB."


def _keep(facts: Row) -> str:
    if facts["live_mib"] is None:
        return "Run it with GODEBUG=gctrace=1 and give its log along with this one."
    return "Name the limit: --container-limit, or the output of docker inspect or kubectl describe pod."
