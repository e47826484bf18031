"""Random MemStats dumps and scrapes of programs whose memory and cycles are simulated."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from random import Random

MIB = 1 << 20
RING = 256
BEGIN = datetime(2026, 3, 14, 6, 0, tzinfo=UTC)
Dump = dict[str, Any]
"""The fields of `runtime.MemStats`, with `Time`, and what only metrics have (`gc_cpu_s` …)."""


@dataclass(frozen=True)
class Program:
    """A program that allocates at a steady rate.

    Attributes:
        mib_per_s: what it allocates.
        live_mib: its live heap after a second, and how much that grows in a second.
        pause_us: the shortest and the longest sum of the pauses of a cycle.
        procs: GOMAXPROCS.
        mark_s_per_mib: CPU time to mark.
    """

    mib_per_s: float
    live_mib: tuple[float, float]
    pause_us: tuple[float, float]
    procs: int
    mark_s_per_mib: float


def program(random: Random) -> Program:
    least_us = random.choice([30, 120, 900])
    live_mib = random.choice([1, 9, 70, 900]) * random.uniform(0.7, 1.3)
    return Program(
        # At most 20 cycles a second.
        min(random.choice([0.3, 12, 300]) * random.uniform(0.7, 1.3), 20 * live_mib),
        (live_mib, random.choice([0, 0, 0.2])),
        (least_us, least_us * random.choice([1.5, 4, 40])),
        random.choice([1, 2, 8]),
        random.uniform(0.0004, 0.002),
    )


def dumps(random: Random, it: Program, at_s: Sequence[float]) -> list[Dump]:
    """Returns the dumps at these times since the start of the program."""
    found: list[Dump] = []
    now, number, live, gc_cpu_s = 0.0, 0, 0.0, 0.0
    pauses: list[tuple[int, int]] = []
    goal, kept = 4.0, 0
    for at in at_s:
        # After two minutes without a cycle, the runtime starts one.
        while (later := now + min((goal - live) / it.mib_per_s, 120.0)) <= at:
            now, number = later, number + 1
            live = it.live_mib[0] + it.live_mib[1] * now
            goal = max(4.0, 2 * live)
            pause_ns = int(1000 * random.uniform(*it.pause_us))
            pauses.append((pause_ns, int((BEGIN.timestamp() + now) * 1e9)))
            gc_cpu_s += live * it.mark_s_per_mib + it.procs * pause_ns / 1e9
        found.append(_dump(it, at, now, number, live, goal, gc_cpu_s, pauses, kept))
        kept = found[-1]["HeapSys"]
    return found


def _dump(
    it: Program,
    at: float,
    last: float,
    number: int,
    live: float,
    goal: float,
    gc_cpu_s: float,
    pauses: Sequence[tuple[int, int]],
    kept: int,
) -> Dump:
    alloc = int((live + it.mib_per_s * (at - last)) * MIB)
    total = int((live + it.mib_per_s * at) * MIB)
    ring, ends = [0] * RING, [0] * RING
    for number_of, (pause_ns, end_ns) in enumerate(pauses):
        ring[number_of % RING], ends[number_of % RING] = pause_ns, end_ns
    in_use = int(1.04 * alloc) + MIB
    # The runtime keeps addresses, and memory for its own use.
    idle = max(in_use // 5 + MIB, kept - in_use)
    held = in_use + idle
    parts = {
        "Stack": MIB,
        "MSpan": held // 90,
        "MCache": 9600,
        "BuckHash": 1 << 20,
        "GC": held // 30 + MIB,
        "Other": 900_000,
    }
    return {
        "Time": BEGIN + timedelta(seconds=at),
        "Alloc": alloc, "TotalAlloc": total, "Sys": in_use + idle + sum(parts.values()),
        "Lookups": 0, "Mallocs": total // 64, "Frees": (total - alloc) // 64,
        "HeapAlloc": alloc, "HeapSys": in_use + idle, "HeapIdle": idle, "HeapInuse": in_use,
        "HeapReleased": idle // 3, "HeapObjects": total // 64 - (total - alloc) // 64,
        "StackInuse": MIB, "StackSys": MIB, "MSpanInuse": parts["MSpan"], "MSpanSys": parts["MSpan"],
        "MCacheInuse": 9600, "MCacheSys": 9600, "BuckHashSys": parts["BuckHash"],
        "GCSys": parts["GC"], "OtherSys": 900_000, "NextGC": int(goal * MIB),
        "LastGC": pauses[-1][1] if pauses else 0, "PauseTotalNs": sum(ns for ns, _ in pauses),
        "PauseNs": ring, "PauseEnd": ends, "NumGC": number, "NumForcedGC": 0,
        "GCCPUFraction": gc_cpu_s / (last or 1) / it.procs, "EnableGC": True, "DebugGC": False,
        "live_bytes": int(live * MIB), "gc_cpu_s": gc_cpu_s, "procs": it.procs, "at_s": at,
        "cpu_s": gc_cpu_s + 0.3 * last, "last_s": last,
    }  # fmt: skip


OWN = ("live_bytes", "gc_cpu_s", "procs", "at_s", "cpu_s", "last_s")
DROPPED = (
    "GCCPUFraction", "PauseNs", "PauseEnd", "PauseTotalNs", "NumGC", "NextGC", "HeapReleased",
    "HeapIdle", "HeapInuse", "HeapSys", "Sys", "StackInuse", "TotalAlloc", "Mallocs", "LastGC",
    "NumForcedGC", "HeapObjects", "Lookups", "GCSys", "OtherSys", "HeapAlloc", "Alloc",
)  # fmt: skip


def _fields(dump: Dump, dropped: frozenset[str]) -> Dump:
    return {name: value for name, value in dump.items() if name not in {*OWN, *dropped}}


def _json(dump: Dump, dropped: frozenset[str]) -> str:
    return json.dumps(
        _fields(dump, dropped) | {"Time": f"{dump['Time']:%Y-%m-%dT%H:%M:%S.%fZ}"}
    )


def _expvar(dump: Dump, dropped: frozenset[str]) -> str:
    own = _fields(dump, dropped)
    del own["Time"]
    return json.dumps({"cmdline": ["/srv/ledger"], "memstats": own}, indent=1)


def _pprof(dump: Dump, dropped: frozenset[str]) -> str:
    own = _fields(dump, dropped)
    listed = (
        "Alloc",
        "TotalAlloc",
        "Sys",
        "Lookups",
        "Mallocs",
        "Frees",
        "HeapAlloc",
        "HeapSys",
        "HeapIdle",
        "HeapInuse",
        "HeapReleased",
        "HeapObjects",
    )
    lines = [f"# {name} = {own[name]}" for name in listed if name in own]
    lines += [
        f"# {name} = {own[f'{name}Inuse']} / {own[f'{name}Sys']}"
        for name in ("Stack", "MSpan", "MCache")
        if f"{name}Inuse" in own
    ]
    names = ("BuckHashSys", "GCSys", "OtherSys", "NextGC", "LastGC")
    lines += [f"# {name} = {own[name]}" for name in names if name in own]
    for name in ("PauseNs", "PauseEnd"):
        if name in own:
            lines.append(f"# {name} = [{' '.join(map(str, own[name]))}]")
    lines += [
        f"# {name} = {own[name]}"
        for name in ("NumGC", "NumForcedGC", "GCCPUFraction", "DebugGC")
        if name in own
    ]
    return (
        "heap profile: 0: 0 [0: 0] @ heap/1048576\n\n# runtime.MemStats\n"
        + "\n".join(lines).replace("= True", "= true").replace("= False", "= false")
        + "\n"
    )


PROMETHEUS = {
    "Alloc": "go_memstats_alloc_bytes", "TotalAlloc": "go_memstats_alloc_bytes_total",
    "Sys": "go_memstats_sys_bytes", "Mallocs": "go_memstats_mallocs_total",
    "Frees": "go_memstats_frees_total", "HeapAlloc": "go_memstats_heap_alloc_bytes",
    "HeapSys": "go_memstats_heap_sys_bytes", "HeapIdle": "go_memstats_heap_idle_bytes",
    "HeapInuse": "go_memstats_heap_inuse_bytes", "HeapReleased": "go_memstats_heap_released_bytes",
    "HeapObjects": "go_memstats_heap_objects", "StackInuse": "go_memstats_stack_inuse_bytes",
    "StackSys": "go_memstats_stack_sys_bytes", "MSpanInuse": "go_memstats_mspan_inuse_bytes",
    "MSpanSys": "go_memstats_mspan_sys_bytes", "MCacheInuse": "go_memstats_mcache_inuse_bytes",
    "MCacheSys": "go_memstats_mcache_sys_bytes", "BuckHashSys": "go_memstats_buck_hash_sys_bytes",
    "GCSys": "go_memstats_gc_sys_bytes", "OtherSys": "go_memstats_other_sys_bytes",
    "NextGC": "go_memstats_next_gc_bytes",
}  # fmt: skip


def _scrape(dump: Dump, dropped: frozenset[str], *, with_times: bool = True) -> str:
    """Names of client_golang with all of runtime/metrics, as of `MetricsAll`."""
    rows: list[tuple[str, str, float]] = [
        ("gauge", PROMETHEUS[name], value)
        for name, value in dump.items()
        if name in PROMETHEUS and name not in dropped
    ]
    ring = sorted(dump["PauseNs"][: min(dump["NumGC"], RING)])
    if not {"PauseNs", "NumGC", "PauseTotalNs"} & dropped:
        for quantile in (0, 0.25, 0.5, 0.75, 1):
            # As in readGCStats_m of runtime/debug.
            value = ring[min(int(quantile * len(ring)), len(ring) - 1)] / 1e9 if ring else 0.0
            rows.append(
                ("summary", f'go_gc_duration_seconds{{quantile="{quantile:g}"}}', value)
            )
        rows.append(("", "go_gc_duration_seconds_sum", dump["PauseTotalNs"] / 1e9))
        rows.append(("", "go_gc_duration_seconds_count", dump["NumGC"]))
    if "GCCPUFraction" not in dropped:
        # Written at the end of a cycle.
        all_s = dump["procs"] * dump["last_s"]
        rows += [
            ("counter", "go_cpu_classes_gc_total_cpu_seconds_total", dump["gc_cpu_s"]),
            ("counter", "go_cpu_classes_gc_mark_idle_cpu_seconds_total", 0),
            ("counter", "go_cpu_classes_total_cpu_seconds_total", all_s),
            ("counter", "go_cpu_classes_idle_cpu_seconds_total", all_s - dump["cpu_s"]),
        ]
    if "LastGC" not in dropped:
        rows.append(("gauge", "process_start_time_seconds", BEGIN.timestamp()))
        rows.append(("gauge", "go_memstats_last_gc_time_seconds", dump["LastGC"] / 1e9))
    if "Lookups" not in dropped:
        rows.append(("gauge", "go_sched_gomaxprocs_threads", dump["procs"]))
        rows.append(("gauge", "go_gc_heap_live_bytes", dump["live_bytes"]))
        rows.append(("counter", "process_cpu_seconds_total", dump["cpu_s"]))
    at = f" {int(dump['Time'].timestamp() * 1000)}" if with_times else ""
    text = ""
    for kind, name, value in rows:
        base = name.partition("{")[0]
        if kind and (kind != "summary" or 'quantile="0"' in name):
            text += f"# TYPE {base} {kind}\n"
        text += f"{name} {value!r}{at}\n"
    return text


def _csv(found: Sequence[Dump], dropped: frozenset[str]) -> str:
    names = [
        name
        for name in found[0]
        if name not in {*OWN, *dropped, "PauseNs", "PauseEnd", "EnableGC", "DebugGC", "Time"}
    ]
    rows = [",".join(("time", *names))]
    rows += [
        ",".join(
            (f"{dump['Time']:%Y-%m-%dT%H:%M:%S.%fZ}", *(repr(dump[name]) for name in names))
        )
        for dump in found
    ]
    return "\n".join(rows) + "\n"


def _each(
    write: Callable[[Dump, frozenset[str]], str],
) -> Callable[[Sequence[Dump], frozenset[str]], str]:
    return lambda found, dropped: "\n".join(write(dump, dropped) for dump in found) + "\n"


FORMATS: dict[str, Callable[[Sequence[Dump], frozenset[str]], str]] = {
    "json": _each(_json), "expvar": _each(_expvar), "pprof": _each(_pprof), "csv": _csv,
    "scrape": _each(_scrape),
    "scrape without time": _each(lambda dump, dropped: _scrape(dump, dropped, with_times=False)),
}  # fmt: skip

TIMELESS = ("expvar", "pprof", "scrape without time")


def written(random: Random) -> tuple[str, list[Dump], frozenset[str], str]:
    """Returns a format, dumps of one program, the fields that are left out, and their text."""
    name = random.choice([*FORMATS])
    count = random.choice([1, 1, 2, 3, 6, 12])
    if name in TIMELESS:
        # Several come from a loop; a profile is a file of its own.
        first_s, every_s = random.uniform(2, 600), random.choice([1, 15, 60])
        at_s = [first_s + every_s * number for number in range(1 if name == "pprof" else count)]
    else:
        at_s = sorted(random.uniform(2, 900) * random.choice([0.05, 1]) for _ in range(count))
    found = dumps(random, program(random), at_s)
    dropped = frozenset(random.sample(DROPPED, random.choice([0, 0, 1, 3, 8])))
    return name, found, dropped, FORMATS[name](found, dropped)
