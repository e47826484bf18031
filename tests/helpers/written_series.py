"""Random excerpts of MemStats series that real programs recorded, in the formats people have.

A recording has a dump each 0.2 s and the cycles of its gctrace, which an excerpt does not show: they
are what a report on it must not contradict.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tests.helpers import written_dumps
from tests.helpers.written_dumps import MIB, RING, Dump

if TYPE_CHECKING:
    from random import Random

BEGIN = datetime(2026, 3, 14, 6, 0, 0, 250_000, tzinfo=UTC)
NAME, PID = "ledger", 4711
PAGE = 4096


@dataclass(frozen=True)
class Cycle:
    """A cycle of the recording: its end since the start, sizes in MiB, and its pauses together."""

    num: int
    end_s: float
    goal: float
    live: float
    pause_ms: float
    peak: float


@dataclass(frozen=True)
class Recording:
    """A run of a program: its dumps by Go's names, its cycles, and its settings over time."""

    go: str
    procs: int
    gogc: frozenset[float]
    limits: frozenset[float]
    dumps: tuple[Dump, ...]
    cycles: tuple[Cycle, ...]


@dataclass(frozen=True)
class Excerpt:
    """What an input has: some dumps without some fields, in a format, perhaps with a kill.

    Attributes:
        files: text by name.
        dumps: those in the input, with all fields.
        dropped: the fields that the input lacks.
        unit: the bytes of the last digit of its sizes.
        tick_s: the resolution of its times; None without times.
        killed_s: when the kernel killed the program, after its start; None if it did not.
        limit_mib: the memory limit that it reached.
    """

    recording: Recording
    form: str
    files: Mapping[str, str]
    dumps: tuple[Dump, ...]
    dropped: frozenset[str]
    unit: float
    tick_s: float | None
    killed_s: float | None = None
    limit_mib: float | None = None


def recording(data: Mapping[str, Any], slower: float) -> Recording:
    """Returns a packed recording as if it had taken this many times longer."""
    columns = data["cycles"]
    of_dumps = [
        dict(zip(data["rows"], row, strict=True))
        for row in zip(*data["rows"].values(), strict=True)
    ]
    cycles = []
    ends = _ends(of_dumps, columns["end_s"])
    for at, end_s in enumerate(ends):
        numbers = {name: columns[name][at] for name in columns}
        peak = max(numbers["end_mib"], numbers["start_mib"], numbers["goal_mib"])
        pause_ms = max(numbers["pause_us"], 1) / 1000
        cycles.append(
            Cycle(
                at + 1, slower * end_s, numbers["goal_mib"], numbers["live_mib"], pause_ms, peak
            )
        )
    settings = [(data["gogc"], data["limit_mib"])]
    for phase in data["phases"]:
        gogc, limit = settings[-1]
        settings.append((phase.get("SetGC", gogc), phase.get("SetLimit", limit)))
    dumps = [_dump(row, cycles, slower, data["procs"]) for row in of_dumps]
    off = float("inf")
    return Recording(
        data["go"],
        data["procs"],
        frozenset(off if gogc == "off" else float(gogc or 100) for gogc, _ in settings),
        frozenset(float(limit or off) for _, limit in settings),
        tuple(dumps),
        tuple(cycles),
    )


def _ends(dumps: Sequence[Dump], printed: Sequence[float]) -> list[float]:
    """Returns the ends of cycles, between the dumps that name them: gctrace has whole ms."""
    ends, last = [], 0.0
    for number, end_s in enumerate(printed, 1):
        before = max((row["T"] for row in dumps if row["NumGC"] < number), default=0.0)
        after = min((row["T"] for row in dumps if row["NumGC"] >= number), default=end_s + 1)
        last = max(min(max(end_s, before), after), last + 1e-6)
        ends.append(min(last, after))
    return ends


def _dump(row: Dump, cycles: Sequence[Cycle], slower: float, procs: int) -> Dump:
    number = row["NumGC"]
    own, at_s = cycles[:number], slower * row["T"]
    ring, ends = [0] * RING, [0] * RING
    for cycle in own[-RING:]:
        ring[(cycle.num - 1) % RING] = round(cycle.pause_ms * 1e6)
        ends[(cycle.num - 1) % RING] = round((BEGIN.timestamp() + cycle.end_s) * 1e9)
    last_s = own[-1].end_s if own else 0.0
    fraction = row["GCCPUFraction"] / slower
    found = {
        "Time": BEGIN + timedelta(seconds=at_s),
        "Alloc": row["HeapAlloc"], "HeapAlloc": row["HeapAlloc"], "TotalAlloc": row["TotalAlloc"],
        "Sys": row["Sys"], "HeapSys": row["HeapSys"], "HeapIdle": row["HeapIdle"],
        "HeapInuse": row["HeapInuse"], "HeapReleased": row["HeapReleased"],
        "StackInuse": row["StackInuse"], "StackSys": row["StackSys"],
        "NextGC": row["NextGC"], "NumGC": number, "NumForcedGC": row["NumForcedGC"],
        "LastGC": ends[(number - 1) % RING] if own else 0,
        "PauseTotalNs": sum(round(cycle.pause_ms * 1e6) for cycle in own),
        "PauseNs": ring, "PauseEnd": ends, "GCCPUFraction": fraction,
        "live_bytes": max(row["Live"], 0), "gc_cpu_s": fraction * procs * last_s, "procs": procs,
        "at_s": at_s, "last_s": last_s, "cpu_s": row["Cpu"], "rss_bytes": int(row["Rss"] * MIB),
    }  # fmt: skip
    return {name: int(value) if isinstance(value, float) and value > 2 and name[0].isupper() else value
            for name, value in found.items()}  # fmt: skip


OWN = frozenset(("live_bytes", "gc_cpu_s", "procs", "at_s", "last_s", "cpu_s", "rss_bytes"))
DROPPED = (
    "GCCPUFraction", "PauseNs", "PauseEnd", "PauseTotalNs", "NumGC", "NextGC", "HeapReleased",
    "HeapIdle", "HeapInuse", "HeapSys", "Sys", "StackInuse", "StackSys", "TotalAlloc", "LastGC",
    "NumForcedGC", "HeapAlloc", "Alloc",
)  # fmt: skip


def _fields(dump: Dump, dropped: frozenset[str]) -> Dump:
    return {name: value for name, value in dump.items() if name not in {*OWN, *dropped}}


Written = tuple[dict[str, str], frozenset[str], float, float | None]
"""Files, the fields that the format lacks, the unit of sizes, and the resolution of times."""


def _json_lines(dumps: Sequence[Dump], dropped: frozenset[str]) -> Written:
    lines = [
        json.dumps(_fields(dump, dropped) | {"Time": f"{dump['Time']:%Y-%m-%dT%H:%M:%S.%fZ}"})
        for dump in dumps
    ]
    return {"mem.jsonl": "\n".join(lines) + "\n"}, frozenset(), 1, 1e-6


def _columns(dumps: Sequence[Dump], dropped: frozenset[str]) -> list[str]:
    return [name for name in _fields(dumps[0], dropped) if name not in _LISTS]


_LISTS = ("PauseNs", "PauseEnd", "Time")


def _csv(dumps: Sequence[Dump], dropped: frozenset[str]) -> Written:
    names = _columns(dumps, dropped)
    rows = [",".join(("time", *names))] + [
        ",".join(
            (f"{dump['Time']:%Y-%m-%dT%H:%M:%S.%fZ}", *(repr(dump[name]) for name in names))
        )
        for dump in dumps
    ]
    return {"mem.csv": "\n".join(rows) + "\n"}, frozenset(_LISTS[:2]), 1, 1e-6


def _elapsed(dumps: Sequence[Dump], dropped: frozenset[str]) -> Written:
    names = _columns(dumps, dropped)
    rows = [",".join(("elapsed_s", *names))] + [
        ",".join((f"{dump['at_s']:.3f}", *(repr(dump[name]) for name in names)))
        for dump in dumps
    ]
    return {"mem.csv": "\n".join(rows) + "\n"}, frozenset(_LISTS[:2]), 1, 1e-3


def _logged(dumps: Sequence[Dump], dropped: frozenset[str]) -> Written:
    names = [name for name in _columns(dumps, dropped) if name != "LastGC"]
    lines = []
    for dump in dumps:
        cells = (_in_mib(name, dump[name]) for name in names)
        lines.append(f"{dump['Time']:%Y/%m/%d %H:%M:%S} mem: {' '.join(cells)}")
    lacks = frozenset((*_LISTS[:2], "LastGC"))
    return {"app.log": "\n".join(lines) + "\n"}, lacks, MIB, 1.0


def _in_mib(name: str, value: float) -> str:
    if name == "PauseTotalNs":
        return f"pauseTotal={value / 1e6:.6f}ms"
    if name == "GCCPUFraction":
        return f"gcCPU={value:.6f}"
    if name in ("NumGC", "NumForcedGC"):
        return f"{name[0].lower()}{name[1:]}={value}"
    return f"{name[0].lower()}{name[1:]}={int(value) // MIB}MiB"


def _printed(dumps: Sequence[Dump], dropped: frozenset[str]) -> Written:
    """As in the best-known example on the web: `Alloc = 12 MiB`, without times."""
    lines = []
    for dump in dumps:
        cells = [
            f"{name} = {dump[name] // MIB} MiB" for name in _PRINTED[:-1] if name not in dropped
        ]
        cells += [f"NumGC = {dump['NumGC']}"] * ("NumGC" not in dropped)
        lines.append("\t".join(cells))
    lacks = frozenset(dumps[0]) - {*_PRINTED, *OWN}
    return {"mem.txt": "\n".join(lines) + "\n"}, lacks, MIB, None


_PRINTED = ("Alloc", "TotalAlloc", "Sys", "NumGC")


def _expvar(dumps: Sequence[Dump], dropped: frozenset[str]) -> Written:
    files = {}
    for at, dump in enumerate(dumps):
        own = {name: value for name, value in _fields(dump, dropped).items() if name != "Time"}
        files[f"vars-{at:02}.json"] = json.dumps({"cmdline": [f"/srv/{NAME}"], "memstats": own})
    return files, frozenset(), 1, None


def _scrapes(dumps: Sequence[Dump], dropped: frozenset[str], *, with_times: bool) -> Written:
    """Names of client_golang, with those of `MetricsAll` only if live_bytes is not dropped."""
    texts = [_scrape(dump, dropped, with_times=with_times) for dump in dumps]
    lacks = frozenset(("PauseNs", "PauseEnd", "NumForcedGC"))
    return {"metrics.prom": "\n".join(texts) + "\n"}, lacks, 1, 1e-3 if with_times else None


def _scrape(dump: Dump, dropped: frozenset[str], *, with_times: bool) -> str:
    rows: list[tuple[str, float]] = [
        (written_dumps.PROMETHEUS[name], value)
        for name, value in dump.items()
        if name in written_dumps.PROMETHEUS and name not in dropped
    ]
    if not {"PauseNs", "NumGC", "PauseTotalNs"} & dropped:
        ring = sorted(filter(None, dump["PauseNs"]))
        rows += [
            (
                f'go_gc_duration_seconds{{quantile="{quantile:g}"}}',
                ring[min(int(quantile * len(ring)), len(ring) - 1)] / 1e9 if ring else 0.0,
            )
            for quantile in (0, 0.25, 0.5, 0.75, 1)
        ]
        rows.append(("go_gc_duration_seconds_sum", dump["PauseTotalNs"] / 1e9))
        rows.append(("go_gc_duration_seconds_count", dump["NumGC"]))
    if "LastGC" not in dropped:
        rows.append(("go_memstats_last_gc_time_seconds", dump["LastGC"] / 1e9))
    if "Time" not in dropped:
        rows.append(("process_start_time_seconds", BEGIN.timestamp()))
        rows.append(("process_cpu_seconds_total", round(dump["cpu_s"], 2)))
        rows.append(("process_resident_memory_bytes", dump["rss_bytes"]))
    if "GCCPUFraction" not in dropped:
        all_s = dump["procs"] * dump["last_s"]
        rows.append(("go_cpu_classes_gc_total_cpu_seconds_total", dump["gc_cpu_s"]))
        rows.append(("go_cpu_classes_gc_mark_idle_cpu_seconds_total", 0))
        rows.append(("go_cpu_classes_total_cpu_seconds_total", all_s))
        rows.append(("go_sched_gomaxprocs_threads", dump["procs"]))
        if dump["live_bytes"]:  # Go 1.21 and later, after a cycle.
            rows.append(("go_gc_heap_live_bytes", dump["live_bytes"]))
    at = f" {int(dump['Time'].timestamp() * 1000)}" if with_times else ""
    return "".join(f"{name} {value!r}{at}\n" for name, value in rows)


FORMS: dict[str, Callable[[Sequence[Dump], frozenset[str]], Written]] = {
    "json": _json_lines, "csv": _csv, "elapsed": _elapsed, "logged": _logged, "printed": _printed,
    "expvar": _expvar,
    "scrapes": lambda dumps, dropped: _scrapes(dumps, dropped, with_times=True),
    "scrapes without times": lambda dumps, dropped: _scrapes(dumps, dropped, with_times=False),
}  # fmt: skip


def written(random: Random, data: Mapping[str, Any]) -> Excerpt:
    """Returns a random excerpt of a packed recording."""
    real = recording(data, random.choice([1, 1, 5, 60]))
    count = min(random.choice([1, 1, 2, 3, 4, 6, 10, 20, 60]), len(real.dumps) - 1)
    first = random.choice([0, 1, 1, random.randrange(1, len(real.dumps))])
    rest = range(min(first, len(real.dumps) - count), len(real.dumps))
    if random.random() < 0.4:
        step = max(len(rest) // count, 1)
        places = [*rest[::step]][:count]
    else:
        places = sorted(random.sample(rest, count))
    dumps = tuple(real.dumps[place] for place in places)
    dropped = frozenset(random.sample(DROPPED, random.choice([0, 0, 1, 3, 8])))
    form = random.choice([*FORMS])
    if form.startswith("scrapes") and random.random() < 0.5:
        # As of client_golang without runtime/metrics, or without the process collector.
        dropped |= {random.choice(["GCCPUFraction", "Time"])}
    files, lacks, unit, tick_s = FORMS[form](dumps, dropped)
    dropped |= lacks
    killed_s = limit_mib = None
    if random.random() < 0.25:
        last = dumps[-1]
        killed_s = last["at_s"] + random.choice([0.05, 1, 20])
        limit_mib = int(last["rss_bytes"] / MIB * random.choice([1.02, 1.2, 2])) + 8
        files |= {"kern.log": _kill(killed_s, limit_mib)}
    return Excerpt(real, form, files, dumps, dropped, unit, tick_s, killed_s, limit_mib)


def _kill(after_s: float, limit_mib: int) -> str:
    kib, group = limit_mib * 1024, f"/system.slice/{NAME}.service"
    at = f"{BEGIN + timedelta(seconds=after_s):%Y-%m-%dT%H:%M:%S.%f+00:00} host kernel: "
    lines = (
        f"{NAME} invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
        f"memory: usage {kib}kB, limit {kib}kB, failcnt 212",
        "swap: usage 0kB, limit 0kB, failcnt 0",
        f"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg="
        f"{group},task_memcg={group},task={NAME},pid={PID},uid=0",
        f"Memory cgroup out of memory: Killed process {PID} ({NAME}) total-vm:{2 * kib + 700000}kB, "
        f"anon-rss:{kib - 4096}kB, file-rss:1024kB, shmem-rss:0kB, UID:0 pgtables:900kB "
        "oom_score_adj:0",
    )
    return "".join(f"{at}{line}\n" for line in lines)
