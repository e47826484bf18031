"""The columns of every table, each defined once: name, type, unit, meaning, source.

Frames, CSV headers, JSON keys, `explain` and docs/data-dictionary.md are derived from here.
The suffix of a name is its unit: `_ms _s _mib _bytes _pct` (0–100) `_share` (0–1). Null means
that the source does not have the value.
"""

from __future__ import annotations

from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from gctrace_analyzer.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

Row: TypeAlias = "dict[str, Any]"
"""A row of a table: values by column, of the column's type or None."""

Dtype = Literal[
    "Int64", "Float64", "Boolean", "String", "Category", "Datetime", "Strings", "Episodes"
]


@frozen
class Column:
    """One column. Its name ends with its unit; `source` says what prints or computes it."""

    name: str
    dtype: Dtype
    unit: str
    meaning: str
    source: str

    @property
    def described(self) -> str:
        """Its meaning, with the unit unless the name has it."""
        is_named = not self.unit or self.name.endswith(_UNITS)
        return self.meaning if is_named else f"{self.meaning} ({self.unit})"


_UNITS = ("_ms", "_s", "_mib", "_kib", "_bytes", "_pct")
"""Name suffixes that are units."""


_LINE = "the input"


def _with_ends(
    name: str, unit: str, meaning: str, source: str, low: str, high: str = "upper end"
) -> tuple[Column, ...]:
    """Returns a figure with the ends of its interval; `low` and `high` describe them."""
    texts = {"": meaning, "_low": low, "_high": high}
    return tuple(
        Column(f"{name}{end}", "Float64", unit, text, source) for end, text in texts.items()
    )


def _predicted(name: str, unit: str, meaning: str, source: str) -> tuple[Column, ...]:
    """Returns a predicted figure with its 80 % interval."""
    low, high = f"{meaning}, lower end of the 80 % interval", f"{meaning}, upper end"
    return _with_ends(name, unit, meaning, source, low, high)


WHERE = (
    Column("source", "Category", "", "the input that contains the line", _LINE),
    Column("line_no", "Int64", "", "1-based line number in `source`", _LINE),
)
_PROCESS = Column("process", "Int64", "", "0, 1, … for each process in the input", "gaps and resets of cycle numbers and times")  # fmt: skip
_LOGGED_AT = Column("logged_at", "Datetime", "UTC", "the timestamp of the line", "the log prefix, not the runtime")  # fmt: skip
_PRINTED_AT = Column("printed_at", "String", "", "the timestamp, if its year or zone is unknown", "the log prefix")  # fmt: skip

_MONOTONIC = Column("monotonic_s", "Float64", "s", "seconds since the host booted", "printk, journald")  # fmt: skip
IDENTITY_COLUMNS = (
    Column("host", "String", "", "host", "the log prefix"),
    Column("ident", "String", "", "syslog identifier or program name", "the log prefix"),
    Column("log_pid", "Int64", "", "process id in the log prefix", "the log prefix"),
    Column("unit", "String", "", "systemd unit", "the log prefix"),
    Column("container", "String", "", "container", "the log prefix"),
    Column("container_id", "String", "", "container id, full or shortened as in the log", "the log prefix"),
    Column("pod", "String", "", "Kubernetes pod", "the log prefix"),
    Column("namespace", "String", "", "Kubernetes namespace", "the log prefix"),
    Column("stream", "String", "", "stdout or stderr, or the log stream", "the log prefix"),
)  # fmt: skip
IDENTITY = tuple(column.name for column in IDENTITY_COLUMNS)
"""The columns by which a log prefix identifies the process that wrote a line."""

CYCLES = (
    _PROCESS,
    Column("gc_num", "Int64", "", "number of the cycle in its process, from 1", "memstats.numgc"),
    Column("start_s", "Float64", "s", "start of the cycle, since the start of the process",
           "work.tSweepTerm - runtimeInitTime, truncated to ms"),
    _LOGGED_AT,
    Column("wall_time", "Datetime", "UTC", "start of the cycle as wall-clock time",
           "logged_at and start_s of the whole process"),
    Column("forced", "Boolean", "", "the program forced this cycle (runtime.GC, debug.FreeOSMemory)",
           "work.userForced; Go 1.9–1.19 also mark a cycle such a call waited for"),
    Column("leak_check", "Boolean", "", "the cycle also looked for leaked goroutines",
           "Go 1.26 and later"),
    Column("stw_sweep_term_ms", "Float64", "ms", "stop-the-world pause 1, sweep termination",
           "work.tMark - work.tSweepTerm"),
    Column("concurrent_mark_ms", "Float64", "ms", "concurrent marking, wall time",
           "work.tMarkTerm - work.tMark; Go 1.5: scan + install barrier + mark"),
    Column("stw_mark_term_ms", "Float64", "ms", "stop-the-world pause 2, mark termination",
           "work.tEnd - work.tMarkTerm; Go 1.4 and earlier: the whole collection"),
    Column("stw_sweep_term_cpu_ms", "Float64", "ms", "pause 1 × processors stopped",
           "stwprocs × pause, stwprocs = min(GOMAXPROCS, CPUs); up to Go 1.9 also at most 32, and idle threads + 1"),
    Column("assist_cpu_ms", "Float64", "ms", "CPU time of mark assists: goroutines that had to mark in order to allocate",
           "gcController.assistTime"),
    Column("background_cpu_ms", "Float64", "ms", "CPU time of background mark workers",
           "dedicatedMarkTime + fractionalMarkTime; Go 1.5: with scan and install barrier"),
    Column("idle_cpu_ms", "Float64", "ms", "CPU time of marking on otherwise idle processors",
           "gcController.idleMarkTime"),
    Column("stw_mark_term_cpu_ms", "Float64", "ms", "pause 2 × processors stopped",
           "stwprocs × pause, stwprocs = min(GOMAXPROCS, CPUs); up to Go 1.9 also at most 32, and idle threads + 1"),
    Column("heap_start_mib", "Int64", "MiB", "heap size at the start of the cycle", "work.heap0 >> 20"),
    Column("heap_end_mib", "Int64", "MiB", "heap size at mark termination, including allocations during marking",
           "work.heap1 >> 20"),
    Column("heap_live_mib", "Int64", "MiB", "marked live heap: reachable, or allocated during the cycle",
           "work.heap2 >> 20, bytes marked"),
    Column("heap_goal_mib", "Int64", "MiB", "heap goal of this cycle; null: no goal (GOGC=off)",
           "work.heapGoal; from Go 1.19 lastHeapGoal"),
    Column("stacks_mib", "Int64", "MiB", "goroutine stacks that count towards the goal", "from Go 1.18"),
    Column("globals_mib", "Int64", "MiB", "scannable global variables", "globalsScan, from Go 1.18"),
    Column("gc_cpu_since_start_pct", "Int64", "%",
           "share of all CPU that GC has used since the start of the process, without idle marking",
           "memstats.gc_cpu_fraction, truncated"),
    Column("procs", "Int64", "", "GOMAXPROCS at the start of the cycle", "work.maxprocs"),
    Column("format", "Category", "", "format of the line", "gctrace_analyzer.ingest.gctrace.grammar"),
    Column("repaired", "Boolean", "", "the line was torn by another write and rejoined, a tool had changed its characters, or its damaged number was inferred from its neighbours", _LINE),
    *WHERE,
    _MONOTONIC,
)  # fmt: skip

METRICS = (
    Column("stw_total_ms", "Float64", "ms", "both pauses of the cycle, as printed",
           "stw_sweep_term_ms + stw_mark_term_ms"),
    Column("interval_s", "Float64", "s", "time from the start of the previous cycle to the start of this one",
           "start_s of consecutive cycles"),
    Column("gc_cpu_ms", "Float64", "ms", "GC CPU time of the cycle, without idle marking",
           "pauses + assists + background workers"),
    Column("gc_cpu_share", "Float64", "0–1", "GC CPU as a share of all CPU since the end of the previous cycle; null: unknown",
           "gc_cpu_ms / (procs × time from end to end)"),
    Column("alloc_mib", "Float64", "MiB", "memory allocated between the starts of this cycle and the next",
           "(heap_end - heap_start) + (next heap_start - heap_live)"),
    Column("alloc_mib_per_s", "Float64", "MiB/s", "the same as a rate", "alloc_mib / time to the next start"),
    Column("assist_share", "Float64", "0–1", "share of the cycle's GC CPU spent in mark assists",
           "assist_cpu_ms / gc_cpu_ms"),
    Column("effective_gogc", "Float64", "%", "the GOGC that gives this heap goal; null: unknown, or one large allocation raised the goal",
           "100 × (goal - live before) / (live + stacks + globals before)"),
    Column("trigger_share", "Float64", "0–1", "where between live heap and goal the cycle started",
           "(heap_start - live before) / (goal - live before)"),
    Column("overshoot_share", "Float64", "0–1", "how far the heap exceeded its goal, relative",
           "max(0, heap_end / heap_goal - 1)"),
    Column("survival_share", "Float64", "0–1", "share of the heap that was live", "heap_live / heap_end"),
    Column("goal_set_by", "Category", "", "gogc, memory-limit or heap-minimum; null: unknown",
           "gctrace_analyzer.analysis.settings.regimes"),
)  # fmt: skip

PROCESSES = (
    _PROCESS,
    Column("first_gc", "Int64", "", "number of its first cycle in the input", "gc_num"),
    Column("last_gc", "Int64", "", "number of its last cycle in the input", "gc_num"),
    Column("started_at", "Datetime", "UTC", "start of the process", "timestamps and start_s"),
    Column("ended_at", "Datetime", "UTC", "end of its last cycle", "timestamps and start_s"),
    Column("go_version_min", "String", "", "oldest Go version that prints this line format", "line formats"),
    Column("go_version_max", "String", "", "newest such Go version; null: the latest release", "line formats"),
    Column("cycles", "Int64", "", "number of cycles in the input", _LINE),
    Column("missing_cycles", "Int64", "", "cycles between first_gc and last_gc without a line", "gaps in gc_num"),
    Column("ended_by", "String", "", "restart, or end of input", _LINE),
    Column("source", "Category", "", "input of its first cycle", "the name of the input"),
    *IDENTITY_COLUMNS,
)  # fmt: skip

SCAVENGES = (
    _PROCESS,
    Column("after_gc", "Int64", "", "last cycle before the line", "position in the log"),
    _LOGGED_AT,
    Column("format", "Category", "", "format of the line", "gctrace_analyzer.ingest.gctrace.grammar"),
    Column("forced", "Boolean", "", "forced by debug.FreeOSMemory", "runtime/mgcscavenge.go"),
    Column("scavenge_num", "Int64", "", "number of the periodic scavenge; -1: debug.FreeOSMemory", "Go 1.0–1.12"),
    Column("released_now_kib", "Int64", "KiB", "returned to the system in this step; from Go 1.21 on by the background scavenger",
           "`MB released` × 1024, or `KiB work`"),
    Column("released_eager_kib", "Int64", "KiB", "returned while allocating", "Go 1.21 and later"),
    Column("released_total_kib", "Int64", "KiB", "total that is currently returned to the system", "memstats.heap_released"),
    Column("inuse_mib", "Int64", "MiB", "heap spans in use", "scvg line, Go 1.0–1.13"),
    Column("idle_mib", "Int64", "MiB", "heap spans idle", "scvg line, Go 1.0–1.13"),
    Column("sys_mib", "Int64", "MiB", "heap obtained from the system", "scvg line, Go 1.0–1.13"),
    Column("consumed_mib", "Int64", "MiB", "sys minus released", "scvg line, Go 1.0–1.13"),
    Column("heap_in_use_pct", "Int64", "%", "heap in use over heap retained", "scav line, Go 1.14 and later"),
    Column("controller_reset", "Boolean", "", "the scavenger's controller was reset", "scav line"),
    *WHERE,
)  # fmt: skip

PACER = (
    _PROCESS,
    Column("gc_num", "Int64", "", "the cycle the line belongs to", "position in the log"),
    _LOGGED_AT,
    Column("format", "Category", "", "format of the line", "gctrace_analyzer.ingest.gctrace.grammar"),
    Column("assist_ratio", "Float64", "B/B", "bytes to scan per byte allocated, at cycle start", "pacer: assist ratio"),
    Column("scan_work_mib", "Int64", "MiB", "scan work expected, at cycle start", "pacer: assist ratio"),
    Column("heap_from_mib", "Int64", "MiB", "heap at cycle start", "pacer: assist ratio"),
    Column("heap_to_mib", "Int64", "MiB", "heap goal at cycle start", "pacer: assist ratio"),
    Column("dedicated_workers", "Int64", "", "processors given to marking", "pacer: assist ratio"),
    Column("fractional_workers", "Float64", "", "processors that mark part of the time", "pacer: assist ratio"),
    Column("mark_cpu_pct", "Int64", "%", "CPU share of marking in this cycle, with assists", "Go 1.18 and later"),
    Column("mark_cpu_expected_pct", "Int64", "%", "the CPU share that the pacer aimed at", "Go 1.18 and later"),
    Column("heap_scan_bytes", "Int64", "B", "heap scanned", "Go 1.18 and later"),
    Column("stack_scan_bytes", "Int64", "B", "stacks scanned", "Go 1.18 and later"),
    Column("globals_scan_bytes", "Int64", "B", "globals scanned", "Go 1.18 and later"),
    Column("expected_scan_bytes", "Int64", "B", "scan work expected", "Go 1.18 and later"),
    Column("trigger_bytes", "Int64", "B", "heap at which the cycle was triggered", "Go 1.18 and later; before: H_T"),
    Column("heap_end_bytes", "Int64", "B", "heap at mark termination", "Go 1.18 and later; before: H_a"),
    Column("goal_distance_bytes", "Int64", "B", "heap at the end minus the goal", "Go 1.18 and later"),
    Column("cons_mark", "Float64", "", "bytes allocated per byte marked, both per CPU", "Go 1.18 and later"),
    Column("goal_bytes", "Int64", "B", "heap goal", "H_g, Go 1.5–1.17"),
    Column("live_before_bytes", "Int64", "B", "heap marked by the previous cycle", "H_m_prev, Go 1.5–1.17"),
    Column("utilization", "Float64", "0–1", "CPU share of marking in this cycle", "u_a, Go 1.5–1.17"),
    Column("utilization_goal", "Float64", "0–1", "the CPU share that the pacer aimed at", "u_g, Go 1.5–1.17"),
    Column("swept_pages", "Int64", "", "pages swept", "pacer: sweep done"),
    Column("sweep_alloc_mib", "Int64", "MiB", "allocated while sweeping", "pacer: sweep done"),
    Column("controller_reset", "Boolean", "", "the pacer's controller was reset", "Go 1.18 and later"),
    *WHERE,
)  # fmt: skip

SCANS = (
    _PROCESS,
    Column("gc_num", "Int64", "", "the cycle the line belongs to", "position in the log"),
    _LOGGED_AT,
    Column("format", "Category", "", "format of the line", "gctrace_analyzer.ingest.gctrace.grammar"),
    Column("span_class", "String", "", "size class such as 64B, L for large; null: total", "gctrace=2, Go 1.25 and later"),
    Column("objects", "Int64", "", "objects scanned", "dumpScanStats"),
    Column("spans", "Int64", "", "spans scanned as a whole", "dumpScanStats, Green Tea"),
    *WHERE,
)  # fmt: skip

REJECTED = (
    *WHERE,
    Column("reason", "String", "", "why the line could not be parsed", "gctrace_analyzer.ingest"),
    Column("text", "String", "", "the line, cut off after 500 characters", _LINE),
)  # fmt: skip

MEMSTATS = (
    _LOGGED_AT,
    Column("elapsed_s", "Float64", "s", "time since the first dump of its source", "the dump's own time"),
    Column("alloc_bytes", "Int64", "B", "allocated heap objects; the same as heap_alloc_bytes", "runtime.MemStats.Alloc"),
    Column("total_alloc_bytes", "Int64", "B", "allocated since the start, freed or not", "runtime.MemStats.TotalAlloc"),
    Column("sys_bytes", "Int64", "B", "obtained from the system, in total", "runtime.MemStats.Sys"),
    Column("lookups", "Int64", "", "pointer lookups", "runtime.MemStats.Lookups"),
    Column("mallocs", "Int64", "", "objects allocated since the start", "runtime.MemStats.Mallocs"),
    Column("frees", "Int64", "", "objects freed since the start; in the columns of the recycling program: buffers it released", "runtime.MemStats.Frees"),
    Column("heap_alloc_bytes", "Int64", "B", "allocated heap objects, including unreachable ones that are not swept yet", "runtime.MemStats.HeapAlloc"),
    Column("heap_sys_bytes", "Int64", "B", "heap obtained from the system", "runtime.MemStats.HeapSys"),
    Column("heap_idle_bytes", "Int64", "B", "heap in spans without objects", "runtime.MemStats.HeapIdle"),
    Column("heap_inuse_bytes", "Int64", "B", "heap in spans with objects", "runtime.MemStats.HeapInuse"),
    Column("heap_released_bytes", "Int64", "B", "idle heap returned to the system", "runtime.MemStats.HeapReleased"),
    Column("heap_objects", "Int64", "", "objects on the heap", "runtime.MemStats.HeapObjects"),
    Column("stack_inuse_bytes", "Int64", "B", "goroutine stacks", "runtime.MemStats.StackInuse"),
    Column("stack_sys_bytes", "Int64", "B", "stacks, obtained from the system", "runtime.MemStats.StackSys"),
    Column("mspan_inuse_bytes", "Int64", "B", "span structures", "runtime.MemStats.MSpanInuse"),
    Column("mspan_sys_bytes", "Int64", "B", "span structures, obtained from the system", "runtime.MemStats.MSpanSys"),
    Column("mcache_inuse_bytes", "Int64", "B", "cache structures", "runtime.MemStats.MCacheInuse"),
    Column("mcache_sys_bytes", "Int64", "B", "cache structures, obtained from the system", "runtime.MemStats.MCacheSys"),
    Column("buck_hash_sys_bytes", "Int64", "B", "profiling tables", "runtime.MemStats.BuckHashSys"),
    Column("gc_sys_bytes", "Int64", "B", "GC metadata", "runtime.MemStats.GCSys"),
    Column("other_sys_bytes", "Int64", "B", "other runtime memory", "runtime.MemStats.OtherSys"),
    Column("next_gc_bytes", "Int64", "B", "heap goal of the next cycle", "runtime.MemStats.NextGC"),
    Column("last_gc_unix_ns", "Int64", "ns", "end of the last cycle, since 1970", "runtime.MemStats.LastGC"),
    Column("pause_total_ns", "Int64", "ns", "stop-the-world time since the start", "runtime.MemStats.PauseTotalNs"),
    Column("last_pause_ns", "Int64", "ns", "pause of the last cycle", "runtime.MemStats.PauseNs[(NumGC+255)%256]"),
    Column("pause_min_s", "Float64", "s", "shortest pause of the last 256 cycles", "go_gc_duration_seconds quantile 0, PauseNs, debug.GCStats"),
    Column("pause_p50_s", "Float64", "s", "their median", "go_gc_duration_seconds quantile 0.5, PauseNs, debug.GCStats"),
    Column("pause_p90_s", "Float64", "s", "their 90th percentile", "PauseNs"),
    Column("pause_max_s", "Float64", "s", "longest pause of the last 256 cycles", "go_gc_duration_seconds quantile 1, PauseNs, debug.GCStats"),
    Column("pauses", "Int64", "", "number of pauses in these figures, if they were listed; null: the last 256 cycles", "PauseNs, debug.GCStats"),
    Column("pause_longest_s", "Float64", "s", "longest pause in a histogram of all", "process.runtime.go.gc.pause_ns, go-metrics"),
    Column("pause_least_s", "Float64", "s", "least stop-the-world time since the start", "sum of a histogram of runtime/metrics, whose buckets count at their lower bounds"),
    Column("num_gc", "Int64", "", "completed cycles", "runtime.MemStats.NumGC"),
    Column("num_forced_gc", "Int64", "", "cycles forced by the program", "runtime.MemStats.NumForcedGC"),
    Column("gc_cpu_fraction", "Float64", "0–1", "share of CPU used by GC since the start", "runtime.MemStats.GCCPUFraction"),
    Column("pool_bytes", "Int64", "B", "held in the pool of the program", "recycling program"),
    Column("makes", "Int64", "", "newly allocated buffers", "recycling program"),
    Column("rss_bytes", "Int64", "B", "resident memory", "process_resident_memory_bytes"),
    Column("rss_file_bytes", "Int64", "B", "pages of files among it, such as the executable's, which the kernel drops when memory is needed", "RssFile of /proc/PID/status"),
    Column("rss_peak_bytes", "Int64", "B", "largest resident memory since the start", "MaxRSS of a heap profile"),
    Column("cgo_bytes", "Int64", "B", "memory of C code, as its allocator counts it", "CGO total of CockroachDB's log, dgraph_memory_alloc_bytes"),
    Column("gogc_pct", "Int64", "%", "GOGC", "go_gc_gogc_percent"),
    Column("gomemlimit_bytes", "Int64", "B", "GOMEMLIMIT; null: none or unknown", "go_gc_gomemlimit_bytes"),
    Column("gomemlimit_off", "Boolean", "", "whether there is no GOMEMLIMIT; null: unknown", "go_gc_gomemlimit_bytes"),
    Column("resolution_bytes", "Int64", "B", "step in which the input rounds sizes; null: sizes are exact", "as printed"),
    Column("heap_live_bytes", "Int64", "B", "live heap that the last cycle marked", "/gc/heap/live:bytes"),
    Column("heap_free_bytes", "Int64", "B", "idle heap that was not returned to the system", "/memory/classes/heap/free:bytes"),
    Column("goroutines", "Int64", "", "goroutines that exist", "/sched/goroutines:goroutines, go_goroutines"),
    Column("mapped_bytes", "Int64", "B", "memory of Go that was not returned to the system: what GOMEMLIMIT counts", "go.memory.used of OpenTelemetry"),
    Column("stack_scan_bytes", "Int64", "B", "stacks that count towards the heap goal", "/gc/scan/stack:bytes"),
    Column("globals_scan_bytes", "Int64", "B", "scannable global variables", "/gc/scan/globals:bytes"),
    Column("gc_cpu_s", "Float64", "CPU s", "CPU time of GC since the start, with idle marking", "/cpu/classes/gc/total:cpu-seconds"),
    Column("gc_cpu_idle_s", "Float64", "CPU s", "GC CPU on otherwise idle processors", "/cpu/classes/gc/mark/idle:cpu-seconds"),
    Column("gc_cpu_assist_s", "Float64", "CPU s", "GC CPU in mark assists", "/cpu/classes/gc/mark/assist:cpu-seconds"),
    Column("gc_cpu_pause_s", "Float64", "CPU s", "GC CPU in pauses", "/cpu/classes/gc/pause:cpu-seconds"),
    Column("available_cpu_s", "Float64", "CPU s", "CPU time since the start: GOMAXPROCS × time", "/cpu/classes/total:cpu-seconds"),
    Column("idle_cpu_s", "Float64", "CPU s", "CPU time that was unused", "/cpu/classes/idle:cpu-seconds"),
    Column("process_cpu_s", "Float64", "CPU s", "CPU time that the process used", "process_cpu_seconds_total"),
    Column("procs", "Int64", "", "GOMAXPROCS", "/sched/gomaxprocs:threads"),
    Column("limiter_last_gc", "Int64", "", "last cycle in which the GC CPU limiter was active; 0: none", "/gc/limiter/last-enabled:gc-cycle"),
    Column("started_at", "Datetime", "UTC", "start of the process", "process_start_time_seconds"),
    Column("go_version", "String", "", "Go version", "go_info"),
    Column("process", "Int64", "", "number of the process; null: none is known", "labels, start times and counters"),
    *IDENTITY_COLUMNS,
    *WHERE,
)  # fmt: skip

_DUMPS = "two successive dumps"
INTERVALS = (
    _PROCESS,
    Column("begin_s", "Float64", "s", "start of the interval, since the start of the process, or since its first dump if that is unknown", _DUMPS),
    Column("end_s", "Float64", "s", "end of the interval", _DUMPS),
    Column("begin_at", "Datetime", "UTC", "start of the interval", _DUMPS),
    Column("end_at", "Datetime", "UTC", "end of the interval", _DUMPS),
    Column("source_kind", "String", "", "metrics, or MemStats", "the input"),
    Column("gc_cycles", "Int64", "", "cycles that ended in it", "NumGC"),
    Column("forced_cycles", "Int64", "", "cycles that the program forced", "NumForcedGC"),
    Column("gc_per_s", "Float64", "1/s", "cycles per second", "gc_cycles / length"),
    Column("gc_cpu_s", "Float64", "CPU s", "CPU time of GC, without idle marking", "/cpu/classes, or GCCPUFraction × GOMAXPROCS × time"),
    Column("gc_cpu_share", "Float64", "0–1", "the same as a share of all CPU, over whole cycles; null: no cycle ended, or unknown", "/cpu/classes, or GCCPUFraction"),
    Column("assist_cpu_s", "Float64", "CPU s", "CPU time of mark assists", "/cpu/classes"),
    Column("pause_cpu_s", "Float64", "CPU s", "CPU time of pauses, part of gc_cpu_s", "/cpu/classes"),
    Column("idle_cpu_s", "Float64", "CPU s", "CPU time of idle marking", "/cpu/classes"),
    Column("available_cpu_s", "Float64", "CPU s", "GOMAXPROCS × time between the ends of the cycles", "/cpu/classes"),
    Column("cpu_s", "Float64", "CPU s", "CPU time of the process, an upper bound for GC", "process_cpu_seconds_total"),
    Column("stw_total_ms", "Float64", "ms", "pauses", "PauseTotalNs"),
    Column("stw_max_ms", "Float64", "ms", "longest pause of a cycle, its two pauses added; null: unknown", "PauseNs, or go_gc_duration_seconds quantile 1"),
    Column("alloc_mib", "Float64", "MiB", "allocation", "TotalAlloc"),
    Column("alloc_mib_per_s", "Float64", "MiB/s", "allocation rate", "alloc_mib / length"),
    Column("heap_live_mib", "Float64", "MiB", "marked live heap, mean of start and end", "/gc/heap/live, or the heap goal and GOGC, or the heap goal and the allocation per cycle"),
    Column("heap_goal_mib", "Float64", "MiB", "heap goal, mean of start and end", "NextGC"),
    Column("heap_alloc_mib", "Float64", "MiB", "heap objects at the end, including unreachable ones", "HeapAlloc"),
    Column("heap_inuse_mib", "Float64", "MiB", "heap in spans with objects, at the end", "HeapInuse"),
    Column("heap_sys_mib", "Float64", "MiB", "heap obtained from the system, at the end", "HeapSys"),
    Column("heap_released_mib", "Float64", "MiB", "heap returned to the system, at the end", "HeapReleased"),
    Column("stacks_mib", "Float64", "MiB", "goroutine stacks, at the end", "StackInuse"),
    Column("other_mib", "Float64", "MiB", "memory outside the heap that counts towards GOMEMLIMIT, at the end", "Sys - HeapIdle - HeapAlloc"),
    Column("rss_mib", "Float64", "MiB", "resident memory, at the end", "process_resident_memory_bytes"),
    Column("memory_limit_mib", "Float64", "MiB", "GOMEMLIMIT; null: none or unknown", "metrics, or the settings"),
    Column("gogc_pct", "Float64", "%", "GOGC; -1: off; null: unknown", "metrics, or the settings"),
    Column("procs", "Int64", "", "GOMAXPROCS", "/sched/gomaxprocs"),
    Column("limiter_active", "Boolean", "", "whether the GC CPU limiter was active; null: unknown", "/gc/limiter/last-enabled"),
    Column("estimated", "Strings", "", "columns that are derived from an assumption", "gctrace_analyzer.analysis.metrics.intervals"),
    Column("since_start", "Boolean", "", "whether the interval begins at the start of the process, not at a dump", "the counters of one dump"),
    *WHERE,
)  # fmt: skip

CYCLE_PAUSES = (
    _PROCESS,
    Column("gc_num", "Int64", "", "number of the cycle", "MemStats.NumGC"),
    Column("ended_at", "Datetime", "UTC", "end of the cycle", "MemStats.PauseEnd"),
    Column("pause_ms", "Float64", "ms", "its two pauses, added", "MemStats.PauseNs"),
    *WHERE,
)

_K = "mm/oom_kill.c"
_STATS = "Memory cgroup stats (mm/memcontrol.c)"
OOM_KILLS = (
    _LOGGED_AT,
    _PRINTED_AT,
    _MONOTONIC,
    Column("host", "String", "", "host", "the log prefix"),
    Column("killer", "String", "", "what killed it: kernel, macOS, systemd-oomd, earlyoom, nohang, kubelet (evictions), Talos, or a supervisor (PM2, Monit, memmon)", "writer of the line"),
    Column("reported_by", "String", "", "program that reported the kill: kubelet, oomkill (of bcc or bpftrace), Datadog, node-problem-detector, kube-state-metrics; null: the killer itself", "the log prefix"),
    Column("scope", "String", "", "where memory ran out: global (the host), memcg (a container or unit), cpuset or mempolicy", "message, oom_memcg, constraint, in this order"),
    Column("constraint", "String", "", "the constraint as printed by the kernel", _K),
    Column("reason", "String", "", "memory_pressure or memory_used; asked: SIGTERM, and no line shows that it ended; not_ended: SIGTERM did not end it within ten seconds; or the words of a BSD kernel", "systemd-oomd, earlyoom, BSD"),
    Column("pid", "Int64", "", "id of the killed process on the host", _K),
    Column("comm", "String", "", "its name, at most 15 bytes", _K),
    Column("uid", "Int64", "", "its user id", _K),
    Column("unit", "String", "", "systemd unit", "task_memcg, or systemd-oomd"),
    Column("cgroup", "String", "", "its control group", "task_memcg, or systemd-oomd"),
    Column("oom_memcg", "String", "", "the control group whose limit was hit", _K),
    Column("task_memcg", "String", "", "the control group of the process", _K),
    Column("pod_uid", "String", "", "Kubernetes pod", "task_memcg"),
    Column("container_id", "String", "", "container", "task_memcg"),
    Column("total_vm_bytes", "Int64", "B", "address space", "total-vm"),
    Column("anon_rss_bytes", "Int64", "B", "resident anonymous memory: heap, stacks; by earlyoom (and some versions of nohang) all resident memory, by kubelet the working set of the container", "anon-rss, VmRSS, was using"),
    Column("file_rss_bytes", "Int64", "B", "resident file pages", "file-rss"),
    Column("shmem_rss_bytes", "Int64", "B", "resident shared memory", "shmem-rss"),
    Column("pgtables_bytes", "Int64", "B", "page tables", "pgtables"),
    Column("oom_score_adj", "Int64", "", "-1000 (never) to 1000 (first)", _K),
    Column("score", "Int64", "", "badness", "Kill process … score"),
    Column("invoker_comm", "String", "", "process that requested memory", "invoked oom-killer"),
    Column("invoker_pid", "Int64", "", "its thread id", "CPU: … PID:"),
    Column("gfp_mask", "String", "", "kind of the allocation", "invoked oom-killer"),
    Column("order", "Int64", "", "2^order pages were requested; -1: somebody started the OOM killer (SysRq+F)", "invoked oom-killer"),
    Column("mems_allowed", "String", "", "NUMA nodes that its cpuset allows", "oom-kill:"),
    Column("nodemask", "String", "", "NUMA nodes that its memory policy allows", "oom-kill:"),
    Column("kernel_release", "String", "", "kernel", "CPU: … Not tainted"),
    Column("usage_bytes", "Int64", "B", "memory of oom_memcg", "memory: usage"),
    Column("limit_bytes", "Int64", "B", "its limit; null: none", "memory: usage"),
    Column("is_limit_stated", "Boolean", "", "whether the limit is that of a manifest or command, which may be of another program", "limits:, docker run"),
    Column("failcnt", "Int64", "", "how often the limit was hit", "memory: usage"),
    Column("group_anon_bytes", "Int64", "B", "anonymous memory of oom_memcg", _STATS),
    Column("group_file_bytes", "Int64", "B", "page cache of oom_memcg, with shared memory", _STATS),
    Column("group_shmem_bytes", "Int64", "B", "shared memory of oom_memcg (tmpfs)", _STATS),
    Column("group_dirty_bytes", "Int64", "B", "page cache of oom_memcg that is not on disk yet", _STATS),
    Column("group_kernel_bytes", "Int64", "B", "memory of the kernel for oom_memcg", "Memory cgroup stats (Linux 5.18 and later), kmem: usage"),
    Column("swap_usage_bytes", "Int64", "B", "swap of oom_memcg, or of the host", "swap: usage, Free swap"),
    Column("swap_limit_bytes", "Int64", "B", "limit of swap, or its size; null: none", "swap: usage, Total swap"),
    Column("host_free_bytes", "Int64", "B", "free memory of the host", "Mem-Info"),
    Column("zone_free_bytes", "Int64", "B", "free memory of the zone Normal (DMA32 if it is not listed); 0 if below its high watermark", "Mem-Info"),
    Column("oom_group", "Boolean", "", "killed with its whole group", "memory.oom.group"),
    Column("reaped", "Boolean", "", "whether the OOM reaper freed its memory", "oom_reaper"),
    Column("reaped_anon_rss_bytes", "Int64", "B", "still resident after the OOM reaper ran", "oom_reaper"),
    Column("reaped_file_rss_bytes", "Int64", "B", "still resident after the OOM reaper ran", "oom_reaper"),
    Column("reaped_shmem_rss_bytes", "Int64", "B", "still resident after the OOM reaper ran", "oom_reaper"),
    Column("truncated", "Boolean", "", "whether the line of the kill is truncated", _LINE),
    Column("memory_request_bytes", "Int64", "B", "memory request of an evicted container", "request is"),
    Column("node", "String", "", "Kubernetes node", "events"),
    Column("age_s", "Float64", "s", "age of the event when the events were listed", "events"),
    Column("pressure_cgroup", "String", "", "the group under pressure", "systemd-oomd"),
    Column("pressure_pct", "Float64", "%", "memory pressure", "systemd-oomd"),
    Column("pressure_limit_pct", "Float64", "%", "its limit", "systemd-oomd"),
    Column("pressure_window_s", "Float64", "s", "how long the pressure lasted", "systemd-oomd"),
    Column("used_limit_pct", "Float64", "%", "its limit of memory and swap in use", "systemd-oomd"),
    Column("available_bytes", "Int64", "B", "memory of the host that was available", "earlyoom, nohang"),
    Column("host_bytes", "Int64", "B", "memory of the host", "earlyoom, systemd-oomd, pages RAM"),
    Column("available_limit_pct", "Float64", "%", "the killer's threshold for available memory", "earlyoom, nohang"),
    Column("not_before_at", "Datetime", "UTC", "earliest time of the kill (the scrape before); null: it happened at logged_at", "kube-state-metrics"),
    Column("namespace", "String", "", "Kubernetes namespace", "kube-state-metrics, events"),
    Column("pod", "String", "", "pod", "kube-state-metrics, events"),
    Column("container", "String", "", "container's name in its pod", "kube-state-metrics, events"),
    *WHERE,
)  # fmt: skip

_KILL_COLUMNS = {column.name: column for column in OOM_KILLS}
OOM_INVOCATIONS = (
    *(
        _KILL_COLUMNS[name]
        for name in (
            "logged_at", "monotonic_s", "host", "scope", "constraint", "invoker_comm",
            "invoker_pid", "gfp_mask", "order", "oom_memcg", "task_memcg", "usage_bytes",
            "limit_bytes", "failcnt", "group_anon_bytes", "swap_usage_bytes", "swap_limit_bytes",
            "kernel_release", "host_bytes", "pid", "comm",
        )
    ),
    Column("nothing_killable", "Boolean", "", "the kernel found no process that it could kill", "mm/oom_kill.c"),
    Column("panicked", "Boolean", "", "the kernel panicked, which stops or restarts the host", "mm/oom_kill.c"),
    *WHERE,
)  # fmt: skip

OOM_TASKS = (
    Column("kill_line_no", "Int64", "", "line of the kill that follows the table; null: none", _LINE),
    Column("pid", "Int64", "", "process", _K),
    Column("comm", "String", "", "its name", _K),
    Column("uid", "Int64", "", "its user id", _K),
    Column("tgid", "Int64", "", "thread group", _K),
    Column("total_vm_pages", "Int64", "pages", "address space", _K),
    Column("rss_pages", "Int64", "pages", "resident memory", _K),
    Column("rss_anon_pages", "Int64", "pages", "anonymous part", "Linux 6.8 and later"),
    Column("rss_file_pages", "Int64", "pages", "file part", "Linux 6.8 and later"),
    Column("rss_shmem_pages", "Int64", "pages", "shared part", "Linux 6.8 and later"),
    Column("pgtables_bytes", "Int64", "B", "page tables", "Linux 4.16 and later"),
    Column("swapents_pages", "Int64", "pages", "swapped out", _K),
    Column("oom_score_adj", "Int64", "", "-1000 (never) to 1000 (first)", _K),
    Column("rss_bytes", "Int64", "B", "rss_pages × page size (4 KiB unless the kill says otherwise)", _K),
    *WHERE,
)  # fmt: skip

UNIT_EVENTS = (
    _LOGGED_AT,
    _PRINTED_AT,
    _MONOTONIC,
    Column("host", "String", "", "host", "the log prefix"),
    Column("unit", "String", "", "systemd unit", "systemd"),
    Column("event", "String", "", "main_exited oom_killed_process oomd_killed_processes failed restart_scheduled consumed", "systemd"),
    Column("code", "String", "", "exited, killed or dumped", "Main process exited"),
    Column("status", "Int64", "", "exit status or signal number", "Main process exited"),
    Column("signal", "String", "", "signal", "Main process exited"),
    Column("result", "String", "", "oom-kill, signal, exit-code, …; oomd-attempt: systemd-oomd probably killed it", "Failed with result, or an attempt of systemd-oomd"),
    Column("n", "Int64", "", "processes killed, or the restart counter", "systemd"),
    Column("cpu_s", "Float64", "s", "CPU time of the unit", "Consumed, or CPU_USAGE_NSEC"),
    Column("wall_s", "Float64", "s", "wall-clock time of the unit", "Consumed"),
    Column("memory_peak_bytes", "Int64", "B", "peak memory, to one decimal of its unit", "Consumed"),
    Column("memory_swap_peak_bytes", "Int64", "B", "peak swap", "Consumed"),
    Column("container_id", "String", "", "container of a docker or CRI scope", "unit"),
    *WHERE,
)  # fmt: skip

_C = "docker inspect or events, kubectl get or describe"
CONTAINER_STATES = (
    Column("pod", "String", "", "pod", _C),
    Column("pod_uid", "String", "", "its uid", "kubectl get -o json, crictl inspect"),
    Column("namespace", "String", "", "namespace", _C),
    Column("node", "String", "", "node", _C),
    Column("container", "String", "", "container's name in its pod", _C),
    Column("name", "String", "", "container's name", _C),
    Column("container_id", "String", "", "container", _C),
    Column("status", "String", "", "running, exited, waiting, terminated", _C),
    Column("reason", "String", "", "reason of the present state", _C),
    Column("last_status", "String", "", "state before", _C),
    Column("last_reason", "String", "", "its reason", _C),
    Column("oom_killed", "Boolean", "", "reported as OOM-killed (exit code 137 alone does not prove it)", _C),
    Column("exit_code", "Int64", "", "exit code", _C),
    Column("signal", "String", "", "KILL for 137, TERM for 143", "exit_code"),
    Column("error", "String", "", "error text", _C),
    Column("restart_count", "Int64", "", "restarts", _C),
    Column("restarts_in_s", "Float64", "s", "time from the start of its pod, or its creation, to its last end or the listing", _C),
    Column("memory_limit_bytes", "Int64", "B", "memory limit; 0: none, null: unknown", _C),
    Column("is_limit_stated", "Boolean", "", "whether the limit is that of a manifest or command, which may be of another program", "limits:, docker run"),
    Column("is_shared", "Boolean", "", "whether other containers share this limit", "AWS ECS, Kubernetes"),
    Column("memory_request_bytes", "Int64", "B", "memory request", _C),
    Column("memory_used_bytes", "Int64", "B", "memory in use at the kill, or the most that was reported", "Cloud Run, App Engine, Heroku, AWS Lambda, memory.peak"),
    Column("memory_swap_bytes", "Int64", "B", "what is swapped out; part of memory_used_bytes on Heroku only", "Heroku, systemctl"),
    Column("swap_limit_bytes", "Int64", "B", "swap that it may use as well; 0: none, −1: any, null: unknown", "docker inspect, memory.swap.max, systemctl"),
    Column("swap_usage_bytes", "Int64", "B", "the most swap that it used", "memory.swap.peak, systemctl"),
    Column("memory_now_bytes", "Int64", "B", "memory in use when it was looked at, while it ran", "kubectl top, memory.current, systemctl"),
    Column("anon_rss_bytes", "Int64", "B", "anonymous memory when it was full, without page cache", "memory.stat"),
    Column("memory_of_host_bytes", "Int64", "B", "memory of its host, or a limit: either may be printed", "docker stats"),
    Column("failcnt", "Int64", "", "how often the limit was hit", "memory.events, memory.failcnt"),
    Column("kills", "Int64", "", "how many processes in it were OOM-killed", "memory.events, Slurm"),
    Column("stop_requested", "Boolean", "", "whether the input gives another reason than memory for stopping it", "Nomad, Kubernetes, Docker, AWS ECS, …"),
    Column("stopped_by", "String", "", "the other reason", "the same"),
    Column("cpu_limit", "Float64", "CPUs", "CPU limit", _C),
    Column("gomemlimit_bytes", "Int64", "B", "GOMEMLIMIT in its environment", _C),
    Column("gogc", "String", "", "GOGC in its environment", _C),
    Column("gomaxprocs", "Int64", "", "GOMAXPROCS in its environment", _C),
    Column("godebug", "String", "", "GODEBUG in its environment", _C),
    Column("go_version", "String", "", "the Go release that the input names", "the program's own log, go version"),
    Column("started_at", "Datetime", "UTC", "start", _C),
    Column("finished_at", "Datetime", "UTC", "end", _C),
    Column("duration_s", "Float64", "s", "how long it ran", "execDuration"),
    Column("event", "String", "", "oom, die, kill, …; `at limit`: the memory limit was reached, not necessarily with a kill; `oom below`: a kill in this control group or one below it", "docker events, Slurm, PBS"),
    _LOGGED_AT,
    _PRINTED_AT,
    *WHERE,
)  # fmt: skip

RUNTIME_FATAL = (
    _LOGGED_AT,
    _PRINTED_AT,
    Column("kind", "String", "", "`out of memory`; `unusable address`: the system gave memory where a 32-bit program cannot use it; `impossible size`: a size that no allocation can have, or the address of one; `at start`: before main; `metadata`: for tables of the runtime itself; `locked memory`: ulimit -l; `arena full`: the heap has all addresses that Go before 1.11 gives it", "runtime.throw"),
    Column("requested_bytes", "Int64", "B", "size of the allocation that failed", "runtime: out of memory, or the traceback"),
    Column("goarch", "String", "", "architecture of the program; `64-bit`: by its addresses", "asm_GOARCH.s in the traceback, or go version"),
    Column("goos", "String", "", "its operating system", "paths in the traceback, or go version"),
    Column("go_version", "String", "", "the Go release that the input names; `<1.17` or `<1.11`: an older one, by the traceback", "go version"),
    Column("errno", "Int64", "", "error number of Windows", "VirtualAlloc failed with errno"),
    Column("is_reserved", "Boolean", "", "true if its addresses had been reserved (Go 1.11 and later): then no limit of the address space refused it; false if the addresses were refused: then no limit of data or overcommit did", "the error, or sysMap in the traceback"),
    Column("in_use_bytes", "Int64", "B", "the heap's memory from the OS at that time", "runtime: out of memory"),
    *IDENTITY_COLUMNS,
    *WHERE,
)  # fmt: skip

_BENCHMARK = "testing/benchmark.go"

BENCHMARKS = (
    Column("benchmark", "String", "", "its name without Benchmark and GOMAXPROCS; with the package if there are several", _BENCHMARK),
    Column("package", "String", "", "package of the benchmark", "pkg:"),
    Column("iterations", "Int64", "", "operations in the run, which the figures are averages of", _BENCHMARK),
    Column("ns_per_op", "Float64", "ns", "time per operation", "ns/op"),
    Column("bytes_per_op", "Float64", "B", "allocated per operation; null without -benchmem", "B/op"),
    Column("allocs_per_op", "Float64", "", "allocations per operation; null without -benchmem", "allocs/op"),
    Column("first_line", "Int64", "", "first line of its cycles", _BENCHMARK),
    *WHERE,
)  # fmt: skip

WINDOWS = (
    _PROCESS,
    Column("start_s", "Float64", "s", "start of the window, since the start of the process", "windows()"),
    Column("end_s", "Float64", "s", "end of the window", "windows()"),
    Column("begin_at", "Datetime", "UTC", "start of the window on the wall clock, if the log has times", "wall_time"),
    Column("covered_s", "Float64", "s", "part of the window that the input covers; rates and shares refer to this part, and are null if it is below half of the window, unless it is the only window of the process", "windows()"),
    Column("cycles", "Int64", "", "cycles that started in it", "gc_num"),
    Column("gc_per_s", "Float64", "1/s", "cycles started per second", "cycles / covered_s"),
    Column("gc_cpu_share", "Float64", "0–1", "GC CPU as a share of all CPU, without idle marking", "as in the summary"),
    Column("gc_cpu_with_idle_share", "Float64", "0–1", "the same with idle marking", "as in the summary"),
    Column("gc_active_share", "Float64", "0–1", "share of time in which a cycle was running", "pauses + marking over time"),
    Column("assist_share_of_gc_cpu", "Float64", "0–1", "share of GC CPU spent in mark assists", "as in the summary"),
    Column("stw_share", "Float64", "0–1", "share of time in which the world was stopped", "pauses over time"),
    Column("stw_max_ms", "Float64", "ms", "longest pause of a cycle that started in it", "single pauses"),
    Column("alloc_mib_per_s", "Float64", "MiB/s", "allocation rate", "as in the summary"),
    Column("heap_live_mib", "Float64", "MiB", "marked live heap, median of the cycles", "heap_live_mib"),
    Column("heap_goal_mib", "Float64", "MiB", "heap goal, median of the cycles", "heap_goal_mib"),
    Column("heap_peak_mib", "Float64", "MiB", "largest heap at a mark termination", "heap_end_mib"),
)  # fmt: skip

PAUSES = (
    Column("phase", "String", "", "sweep termination, mark termination, or both together", "pauses()"),
    Column("pauses", "Int64", "", "number of pauses", "cycles with that phase"),
    Column("total_ms", "Float64", "ms", "total, corrected for truncation", "pauses()"),
    Column("p50_ms", "Float64", "ms", "median", "single pauses"),
    Column("p90_ms", "Float64", "ms", "90th percentile", "single pauses"),
    Column("p99_ms", "Float64", "ms", "99th percentile", "single pauses"),
    Column("max_ms", "Float64", "ms", "longest, as its line prints it", "single pauses"),
    Column("max_process", "Int64", "", "process of the longest", "cycles"),
    Column("max_gc", "Int64", "", "cycle of the longest", "cycles"),
    Column("max_start_s", "Float64", "s", "start of that cycle", "cycles"),
    *WHERE,
)  # fmt: skip

SEGMENTS = (
    _PROCESS,
    Column("segment", "Int64", "", "0, 1, … in the process", "segments()"),
    Column("kind", "String", "", "start-up, steady, spike (short, with far more allocation), thrash or idle", "segments()"),
    Column("start_s", "Float64", "s", "start of its first cycle", "cycles"),
    Column("end_s", "Float64", "s", "end of its last cycle", "cycles"),
    Column("first_gc", "Int64", "", "its first cycle", "gc_num"),
    Column("last_gc", "Int64", "", "its last cycle", "gc_num"),
    Column("cycles", "Int64", "", "cycles in it", "gc_num"),
    Column("procs", "Int64", "", "GOMAXPROCS", "cycles"),
    Column("gc_per_s", "Float64", "1/s", "cycles per second", "as in the summary"),
    Column("gc_cpu_share", "Float64", "0–1", "GC CPU as a share of all CPU, without idle marking", "as in the summary"),
    Column("assist_share_of_gc_cpu", "Float64", "0–1", "share of GC CPU spent in mark assists", "as in the summary"),
    Column("alloc_mib_per_s", "Float64", "MiB/s", "allocation rate", "as in the summary"),
    Column("live_heap_p50_mib", "Float64", "MiB", "marked live heap, median over the cycles", "heap_live_mib"),
    Column("effective_gogc_p50", "Float64", "%", "effective GOGC, median", "effective_gogc"),
)  # fmt: skip

MMU = (
    _PROCESS,
    Column("window_ms", "Float64", "ms", "length of the window", "mmu()"),
    Column("mmu_share", "Float64", "0–1", "minimum share of such a window in which the world was not stopped", "pauses"),
    Column("mmu_with_assists_share", "Float64", "0–1", "the same without mark assists, which are assumed to be spread evenly over marking", "pauses and assists"),
    Column("start_s", "Float64", "s", "start of the worst window, with assists", "mmu()"),
)  # fmt: skip

REGIMES = (
    _PROCESS,
    Column("first_gc", "Int64", "", "its first cycle", "gc_num"),
    Column("last_gc", "Int64", "", "its last cycle", "gc_num"),
    Column("start_s", "Float64", "s", "start of its first cycle, since the start of the process", "cycles"),
    Column("end_s", "Float64", "s", "start of its last cycle", "cycles"),
    Column("cycles", "Int64", "", "cycles in it", "gc_num"),
    *_with_ends("gogc_pct", "%", "GOGC; infinite (JSON: off): off; null: hidden by a memory limit", "regimes()", "lowest value consistent with the printed goals"),
    *_with_ends("memory_limit_mib", "MiB", "GOMEMLIMIT; infinite (JSON: off): off; null: unknown", "regimes()", "lowest value consistent with the goals"),
    Column("procs", "Int64", "", "GOMAXPROCS", "cycles"),
    Column("set_by", "String", "", "what set most goals: gogc, memory-limit, heap-minimum or either; null: unknown", "regimes()"),
    Column("gogc_source", "String", "", "given, stated by an input, inferred, or assumed: the default, or a value that few goals suggest", "regimes()"),
    Column("memory_limit_source", "String", "", "given, stated, inferred or assumed", "regimes()"),
    Column("unexplained_share", "Float64", "0–1", "share of the goals that the setting does not explain", "regimes()"),
)  # fmt: skip

EPISODES = (
    _PROCESS,
    Column("kind", "String", "", "limit-thrash assist-storm gc-burst forced-loop pause-outlier allocation-surge idle", "episodes()"),
    Column("start_s", "Float64", "s", "start of its first cycle, since the start of the process", "cycles"),
    Column("end_s", "Float64", "s", "end of its last cycle", "cycles"),
    Column("first_gc", "Int64", "", "its first cycle", "gc_num"),
    Column("last_gc", "Int64", "", "its last cycle", "gc_num"),
    Column("severity", "String", "", "info, warn or bad", "episodes()"),
    Column("reason", "String", "", "what happened, as a sentence", "episodes()"),
    Column("active_share", "Float64", "0–1", "share of the episode in which the state was present; it may be interrupted", "episodes()"),
    Column("gc_per_s", "Float64", "1/s", "cycles per second in it", "episodes()"),
    Column("gc_cpu_share", "Float64", "0–1", "GC CPU as a share of all CPU, without idle marking", "limit-thrash"),
    Column("gc_cpu_nonidle_share", "Float64", "0–1", "GC CPU as a share of the CPU that idle marking leaves", "limit-thrash"),
    Column("effective_gogc_p50", "Float64", "%", "effective GOGC, median", "limit-thrash"),
    Column("goal_at_or_below_live_share", "Float64", "0–1", "share of cycles whose goal was at or below the previous live heap", "limit-thrash"),
    Column("limiter", "String", "", "whether the GC CPU limiter was active: unlikely, likely or certain (a log cannot prove that it was not)", "limit-thrash"),
    Column("limiter_fill_max", "Float64", "0–1", "highest fill level of the limiter, a lower bound", "limit-thrash"),
    Column("assist_share_of_gc_cpu", "Float64", "0–1", "share of GC CPU spent in mark assists", "assist-storm"),
    Column("stw_max_ms", "Float64", "ms", "longest pause", "pause-outlier"),
    Column("alloc_mib_per_s", "Float64", "MiB/s", "allocation rate", "allocation-surge"),
    *WHERE,
)  # fmt: skip

FINDINGS = (
    Column("id", "String", "", "identifier of the finding, such as GC016", "gctrace_analyzer.analysis.rules.registry"),
    Column("name", "String", "", "its name", "gctrace_analyzer.analysis.rules.registry"),
    Column("severity", "String", "", "ok, info, warn or bad", "findings()"),
    Column("evidence", "String", "", "the numbers as a sentence, with lines to look at", "findings()"),
    _PROCESS,
    Column("start_s", "Float64", "s", "start of its time range; null: the whole run", "findings()"),
    Column("end_s", "Float64", "s", "end of its time range", "findings()"),
    Column("figures", "String", "", "the numbers by name, as JSON", "findings()"),
    Column("because_of", "String", "", "the finding that causes this one; null: none", "findings()"),
    Column("advice", "String", "", "what to do", "gctrace_analyzer.analysis.rules.registry"),
    Column("source", "String", "", "where the rule comes from", "gctrace_analyzer.analysis.rules.registry"),
)  # fmt: skip

_PREDICTED = (
    ("gc_per_s", "1/s", "cycles per second"),
    ("gc_cpu_share", "0–1", "GC CPU as a share of all CPU, without idle marking"),
    ("gc_cpu_with_idle_share", "0–1", "GC CPU as a share of all CPU, with idle marking"),
    ("gc_cpu_cores", "cores", "GC CPU with idle marking, in CPU seconds per second"),
    ("assist_share_of_gc_cpu", "0–1", "share of GC CPU spent in mark assists"),
    ("heap_peak_mib", "MiB", "largest heap at a mark termination, in a run as long as the log"),
    ("live_heap_mib", "MiB", "marked live heap"),
    ("stw_share", "0–1", "share of time in which the world is stopped"),
    ("run_time_ratio", "", "run time of a CPU-bound program, divided by that of now (null: another load)"),
)  # fmt: skip
_MODEL = "gctrace_analyzer.advise.prediction.model"

WHATIF = (
    Column("now", "Boolean", "", "the present setting", "gctrace_analyzer.advise.policy"),
    Column("gogc", "Float64", "%", "GOGC; null: off, or unknown where nothing is predicted", "the caller"),
    Column("memory_limit_mib", "Float64", "MiB", "GOMEMLIMIT; null: off", "the caller"),
    Column("ballast_mib", "Float64", "MiB", "ballast", "the caller"),
    Column("allocation", "Float64", "", "bytes allocated for the same work, divided by those of now (1: unchanged)", "the caller, and a profile"),
    Column("load", "String", "", "load model: fixed-rate (keeps its allocation rate), cpu-bound (allocates as fast as it can), or between", _MODEL),
    *(column for figure in _PREDICTED for column in _predicted(*figure, _MODEL)),
    Column("thrash", "String", "", "whether it would thrash: no, risk or certain", _MODEL),
    Column("thrash_share", "Float64", "0–1", "share of the time with hardly any headroom between live heap and limit", _MODEL),
    Column("refused", "String", "", "why there is no prediction; null: there is one", _MODEL),
    Column("heap_goal_mib", "Float64", "MiB", "heap goal", _MODEL),
    Column("goal_set_by", "String", "", "gogc or memory-limit", _MODEL),
    Column("effective_gogc", "Float64", "%", "effective GOGC", _MODEL),
    Column("true_live_heap_mib", "Float64", "MiB", "mean live heap, without what is allocated during marking", _MODEL),
    Column("memory_peak_mib", "Float64", "MiB", "peak memory of the process: heap, other memory of Go, and off-heap memory if it is known, without an untouched ballast", _MODEL),
    Column("fits", "Boolean", "", "whether memory_peak_mib fits the container; null: unknown limit", _MODEL),
    Column("warnings", "String", "", "what makes the figures less certain than their intervals; null: nothing", "gctrace_analyzer.advise.predictor"),
    Column("horizon_s", "Float64", "s", "how far ahead the prediction is; 0: now", "the caller"),
    Column("lasts_h", "Float64", "h", "hours until the growing live heap causes thrashing under the limit or fills the container; null: no growth, no bound, or the log is too short", "gctrace_analyzer.advise.horizon"),
    Column("lasts_h_low", "Float64", "h", "if it grows as fast as the upper end of its 95 % interval", "gctrace_analyzer.advise.horizon"),
    Column("lasts_h_high", "Float64", "h", "the same, if the live heap grows at the lower end of its interval", "gctrace_analyzer.advise.horizon"),
)  # fmt: skip

RECOMMENDATIONS = (
    Column("rank", "Int64", "", "1: the advice", "gctrace_analyzer.advise.policy"),
    *WHATIF[:4],
    Column("why", "String", "", "the reason", "gctrace_analyzer.advise.policy"),
    Column("risk", "String", "", "what may go wrong", "gctrace_analyzer.advise.policy"),
    Column("confidence", "String", "", "high, medium, low or none", "gctrace_analyzer.advise.policy"),
    *_with_ends("gain_gc_cpu_share", "0–1", "share of all CPUs that it saves, with idle marking; null: the present setting", "gctrace_analyzer.advise.prediction.gain", "lower end of the 80 % interval"),
    *_with_ends("gain_cores", "cores", "CPU that it saves, with idle marking; null: the present setting", "gctrace_analyzer.advise.prediction.gain", "lower end of the 80 % interval"),
    *_with_ends("gain_run_time_share", "0–1", "share of the run time that a CPU-bound program saves; null: another load", "gctrace_analyzer.advise.prediction.gain", "lower end of the 80 % interval"),
    *WHATIF[4:],
)  # fmt: skip

_COMPARED = "gctrace_analyzer.analysis.compare.compare"

COMPARISON = (
    Column("benchmark", "String", "", "benchmark that was run; null: none", _COMPARED),
    Column("side", "String", "", "the side that is compared with the first one", "given"),
    Column("metric", "String", "", "name of the metric", "gctrace_analyzer.analysis.compare.metrics"),
    Column("unit", "String", "", "its unit", "gctrace_analyzer.analysis.compare.metrics"),
    Column("before", "Float64", "its own", "value before; the geometric mean of several runs", _COMPARED),
    Column("after", "Float64", "its own", "value after", _COMPARED),
    *_with_ends("delta", "its own", "after - before", _COMPARED, "lower end of the 95 % interval; null: not tested"),
    Column("verdict", "String", "", "better, worse or ~ (not significant); null: no_verdict_because says why, or the metric is unknown on one side", _COMPARED),
    Column("no_verdict_because", "String", "", "why verdict is null: other work or a CPU quota probably held up threads, the different load explains the change, …", _COMPARED),
    Column("before_s", "Float64", "s", "observed time before", _COMPARED),
    Column("after_s", "Float64", "s", "observed time after", _COMPARED),
    Column("before_runs", "Int64", "", "runs before", _COMPARED),
    Column("after_runs", "Int64", "", "runs after", _COMPARED),
    Column("by_load", "Float64", "its own", "the change that the different load alone would cause; null: same load, or no estimate", _COMPARED),
    *_with_ends("expected", "its own", "value predicted for the new settings from the earlier runs; null: no prediction", "whatif()", "lower end of its 80 % interval"),
    *_with_ends("measured", "its own", "value after without the first 0.5 s, to compare with the prediction; null: no prediction", _COMPARED, "lower end of its 95 % interval"),
    Column("held", "Boolean", "", "whether the measured value is in the predicted interval; null: the measured interval is wider than that, or there is none", _COMPARED),
)  # fmt: skip

_PATH = "the path of the file, or the log prefix"
_SUMMARY = "summary()"
SUMMARY = (
    Column("cycles", "Int64", "", "GC cycles read", _SUMMARY),
    Column("forced_cycles", "Int64", "", "cycles that the program forced", _SUMMARY),
    Column("missing_cycles", "Int64", "", "cycles without a line", _SUMMARY),
    Column("span_s", "Float64", "s", "time from the start of the process, or of the first cycle if earlier ones are missing, to the end of the last", _SUMMARY),
    Column("gc_per_s", "Float64", "1/s", "cycles per second from the start of the first to that of the last", _SUMMARY),
    Column("gc_interval_p50_ms", "Float64", "ms", "median time from start to start", _SUMMARY),
    Column("gc_cpu_share", "Float64", "0–1", "GC CPU over CPUs × time, without idle marking", _SUMMARY),
    Column("gc_cpu_share_low", "Float64", "0–1", "lower bound of gc_cpu_share: the runtime counts only part of the time to stop the world (Go 1.23)", _SUMMARY),
    Column("gc_cpu_share_high", "Float64", "0–1", "upper bound of gc_cpu_share", _SUMMARY),
    Column("gc_cpu_with_idle_share", "Float64", "0–1", "GC CPU over CPUs × time, with idle marking", _SUMMARY),
    Column("gc_cpu_nonidle_share", "Float64", "0–1", "GC CPU as a share of the CPU that idle marking leaves", _SUMMARY),
    Column("gc_cpu_cores", "Float64", "cores", "CPU seconds of GC per second, without idle marking", _SUMMARY),
    Column("gc_cpu_with_idle_cores", "Float64", "cores", "CPU seconds of GC per second, with idle marking", _SUMMARY),
    Column("cpus", "Float64", "", "CPUs that shares refer to: GOMAXPROCS, or the number of CPUs if that is lower", _SUMMARY),
    Column("gc_active_share", "Float64", "0–1", "share of time in which a cycle was running", _SUMMARY),
    Column("assist_share_of_gc_cpu", "Float64", "0–1", "share of GC CPU spent in mark assists", _SUMMARY),
    Column("assist_share_of_cpu", "Float64", "0–1", "share of all CPU spent in mark assists", _SUMMARY),
    Column("stw_total_ms", "Float64", "ms", "all pauses, corrected for truncation", _SUMMARY),
    Column("stw_share", "Float64", "0–1", "share of time in which the world was stopped", _SUMMARY),
    Column("stw_p50_ms", "Float64", "ms", "median pause, two per cycle", _SUMMARY),
    Column("stw_p99_ms", "Float64", "ms", "99th percentile of the pauses: 1 of 100 is longer", _SUMMARY),
    Column("stw_max_ms", "Float64", "ms", "longest pause; of gctrace as its line prints it", _SUMMARY),
    Column("alloc_total_mib", "Float64", "MiB", "total allocation; estimated from gctrace, where whole spans and whole MiB count", _SUMMARY),
    Column("alloc_mib_per_s", "Float64", "MiB/s", "allocation rate", _SUMMARY),
    Column("live_heap_p50_mib", "Float64", "MiB", "marked live heap, median over the cycles", _SUMMARY),
    Column("true_live_heap_mib", "Float64", "MiB", "mean live heap, without what is allocated during marking", _SUMMARY),
    Column("live_heap_max_mib", "Float64", "MiB", "largest marked live heap", _SUMMARY),
    Column("heap_peak_mib", "Float64", "MiB", "largest heap at a mark termination", _SUMMARY),
    Column("heap_goal_p50_mib", "Float64", "MiB", "heap goal, median over the cycles", _SUMMARY),
    Column("effective_gogc_p50", "Float64", "%", "effective GOGC, median", _SUMMARY),
    *_with_ends("live_heap_growth_mib_per_h", "MiB/h", "robust slope of the live heap", _SUMMARY, "lower end of the 95 % interval of that slope", "upper end of the 95 % interval of that slope"),
    Column("log_check_points", "Float64", "points", "largest difference between reconstructed and printed GC CPU", _SUMMARY),
)  # fmt: skip
"""The figures of a summary, which are also those of `--fail-on`."""

_DUMP = "its counters and sizes"
_RANK_1 = "rank 1 of recommend()"
FLEET = (
    Column("file", "String", "", "the input, without secrets in its address; of a server, the instance", "fleet()"),
    Column("server", "String", "", "server of the row, without secrets; null: the row is from a file", "fleet()"),
    Column("process", "Int64", "", "0, 1, … for each process in the file; null: no process found", "as in cycles"),
    Column("service", "String", "", "service; its replicas are compared with each other", _PATH),
    *(Column(name, "String", "", name, _PATH) for name in ("cluster", "region", "namespace", "pod", "container", "host", "unit")),
    *(column for column in IDENTITY_COLUMNS if column.name in ("ident", "log_pid", "container_id")),
    *(column for column in PROCESSES if column.name in ("started_at", "ended_at", "go_version_min", "go_version_max", "first_gc", "last_gc", "ended_by")),
    Column("procs", "Int64", "", "GOMAXPROCS of its last cycle", "procs"),
    Column("gogc", "String", "", "GOGC as given or found; off if it is off", "settings"),
    Column("memory_limit_mib", "Float64", "MiB", "GOMEMLIMIT as given or found; null: none or unknown", "settings"),
    Column("container_limit_mib", "Float64", "MiB", "memory limit of its container", "settings"),
    Column("gogc_inferred", "Float64", "%", "GOGC that predictions start from: known, or inferred from the goals", "recommend()"),
    *SUMMARY,
    Column("capacity_cpu_s", "Float64", "CPU s", "CPUs × time", "sum over cycles"),
    Column("gc_cpu_s", "Float64", "CPU s", "GC CPU time, without idle marking", "gc_cpu_share × capacity_cpu_s"),
    Column("gc_cpu_with_idle_s", "Float64", "CPU s", "GC CPU time, with idle marking", "gc_cpu_with_idle_share × capacity_cpu_s"),
    Column("goal_set_by", "String", "", "what sets most heap goals: gogc, memory-limit or heap-minimum", "goal_set_by"),
    Column("short", "Boolean", "", "True if it has too few cycles for a verdict", "the limit of GC042"),
    Column("severity", "String", "", "its worst finding: ok, info, warn or bad", "findings()"),
    Column("findings", "Strings", "", "ids of its findings, causes first", "findings()"),
    Column("headline", "String", "", "the verdict of its report: consequence and cause", "report()"),
    Column("action", "String", "", "what to do, as in its report; null: not read in full", "report()"),
    Column("grows", "Boolean", "", "whether its report begins with a live heap that grows", "report()"),
    Column("needed_limit_mib", "Float64", "MiB", "GOMEMLIMIT that leaves its live heap room, 1.5 times the lowest that does not thrash; null: the limit is not the problem, or it is not known how far", "report()"),
    Column("episodes", "Int64", "", "number of episodes", "episodes()"),
    Column("worst_episodes", "Episodes", "", "the three worst: kind, severity, start_s, end_s, reason", "episodes()"),
    Column("thrash_s", "Float64", "s", "time spent in limit thrashing", "episodes()"),
    Column("thrashes_at_end", "Boolean", "", "whether it was thrashing at the end", "episodes()"),
    Column("limiter", "String", "", "whether the GC CPU limiter was active: unlikely, likely or certain; null: no thrashing", "episodes()"),
    Column("oom_kills", "Int64", "", "OOM kills of this process", "post_mortems()"),
    Column("advice_changes", "Boolean", "", "whether the advice differs from the present setting", _RANK_1),
    Column("advice_gogc", "Float64", "%", "advised GOGC; null: off, or no advice", _RANK_1),
    Column("advice_memory_limit_mib", "Float64", "MiB", "advised GOMEMLIMIT; null: none", _RANK_1),
    *(Column(f"advice_{name}", "String", "", meaning, _RANK_1) for name, meaning in (
        ("why", "the reason"), ("risk", "what may go wrong"), ("confidence", "high, medium, low or none"),
        ("thrash", "whether it would thrash: no, risk or certain"), ("refused", "why there is no prediction"))),
    *(column for name, unit, meaning in _PREDICTED if name in ("gc_per_s", "gc_cpu_with_idle_share", "heap_peak_mib")
      for column in _predicted(f"advice_{name}", unit, f"predicted {meaning}", _RANK_1)),
    Column("advice_lasts_h", "Float64", "h", "how long it lasts while the live heap grows; null: another problem comes first", _RANK_1),
    *_predicted("saved_cores", "cores", "GC CPU saved by the advice, with idle marking", "(present - predicted share) × procs"),
    *_predicted("saved_heap_mib", "MiB", "heap peak saved by the advice (negative: the heap gets larger)", "present - predicted peak"),
    Column("go_memory_mib", "Float64", "MiB", "memory that Go holds, mean; of metrics only", "Sys - HeapReleased, or /memory/classes"),
    Column("rss_max_mib", "Float64", "MiB", "resident memory, largest; of metrics only", "process_resident_memory_bytes"),
    Column("since_start_cycles", "Int64", "", "GC cycles since its start; of a single dump only", _DUMP),
    Column("since_start_gc_cpu_share", "Float64", "0–1", "GC CPU share since its start; of a single dump only", _DUMP),
    Column("since_start_stw_max_ms", "Float64", "ms", "longest pause of those that the dump has; of a single dump only", _DUMP),
    Column("needed_mib", "Float64", "MiB", "heap in use, or allocated heap; of a single dump only", _DUMP),
    Column("sys_mib", "Float64", "MiB", "all memory that Go obtained from the system; of a single dump only", _DUMP),
    Column("restarts", "Int64", "", "changes of the start time, as a server counts them", "process_start_time_seconds"),
    Column("repaired_cycles", "Int64", "", "torn lines that were joined", _LINE),
    Column("rejected_lines", "Int64", "", "lines of the file that could not be parsed", _LINE),
    Column("file_bytes", "Int64", "B", "size of the file as stored, with its parts", "fleet()"),
    Column("modified", "Datetime", "UTC", "when the file was last changed; null: in a store", "fleet()"),
    Column("parts", "Strings", "", "what was read with it: older rotated parts, the oldest first, and logs with its kills", "fleet()"),
    Column("stretches", "Int64", "", "number of sections in which a long file was analysed; 1: as a whole", "fleet()"),
    Column("top_site", "String", "", "the function that allocates most, by a profile", "sites()"),
    Column("top_site_share", "Float64", "0–1", "its share of the allocation", "sites()"),
    Column("warnings", "Strings", "", "notes on the figures", _SUMMARY),
    Column("error_kind", "String", "", "missing denied unreachable library empty no-records damaged memory crashed bug; null: no error", "fleet()"),
    Column("error", "String", "", "what went wrong, without secrets", "fleet()"),
)  # fmt: skip

_DEATH = "gctrace_analyzer.analysis.postmortem"

POST_MORTEMS = (
    Column("kind", "String", "", "how the process died: OOM kill, container state, runtime out of memory", _DEATH),
    Column("proven", "Boolean", "", "whether a record proves that it died for lack of memory", _DEATH),
    Column("logged_at", "Datetime", "UTC", "when it died", _DEATH),
    Column("printed_at", "String", "", "the same as printed, if its year or zone is unknown", _DEATH),
    Column("not_before_at", "Datetime", "UTC", "earliest time of death (the scrape before); null: it died at logged_at", _DEATH),
    Column("ran_s", "Float64", "s", "from the start of the container to its death", _DEATH),
    Column("monotonic_s", "Float64", "s", "when it died, on the kernel's monotonic clock", _DEATH),
    Column("killer", "String", "", "who killed it, such as kernel or systemd-oomd", _DEATH),
    Column("cause", "String", "", "why it ended, as a part of a sentence", _DEATH),
    Column("error", "String", "", "what the platform or the container's engine says of it", _DEATH),
    Column("subject", "String", "", "the program, or a process in a container or unit", _DEATH),
    Column("victim", "String", "", "name of the process, unit or container", _DEATH),
    Column("pod", "String", "", "the pod that it ran in", _DEATH),
    Column("pid", "Int64", "", "process id in the record of the kill", _DEATH),
    Column("scope", "String", "", "global, memcg, cpuset or mempolicy", _DEATH),
    Column("limit_mib", "Float64", "MiB", "the memory limit that was exceeded", _DEATH),
    Column("limit_is", "String", "", "what kind of limit that is", _DEATH),
    Column("process", "Int64", "", "the process in the log that died; null: no match", _DEATH),
    Column("match_by", "Strings", "", "the facts by which the process was matched", _DEATH),
    Column("confidence", "String", "", "how certain the match is", _DEATH),
    Column("last_gc_num", "Int64", "", "number of its last cycle", _DEATH),
    Column("gap_s", "Float64", "s", "time from the end of the last cycle to the death", _DEATH),
    Column("usual_interval_s", "Float64", "s", "median time between cycles in the last minute", _DEATH),
    Column("live_before_mib", "Int64", "MiB", "live heap at the start of the last minute, after a start-up", _DEATH),
    Column("live_mib", "Int64", "MiB", "live heap after the last cycle", _DEATH),
    Column("heap_end_mib", "Int64", "MiB", "heap at the end of the last cycle", _DEATH),
    Column("goal_mib", "Int64", "MiB", "heap goal of the last cycle", _DEATH),
    Column("next_goal_mib", "Int64", "MiB", "estimated heap goal of the cycle that never started", _DEATH),
    Column("gc_cpu_share", "Float64", "0–1", "GC CPU share in the last minute", _DEATH),
    Column("alloc_mib_per_s", "Float64", "MiB/s", "allocation rate in the last minute", _DEATH),
    Column("resident_mib", "Float64", "MiB", "resident memory at death", _DEATH),
    Column("resident_is", "String", "", "which pages resident_mib does not count", _DEATH),
    Column("go_heap_mib", "Float64", "MiB", "lower bound of the heap objects, live and garbage, in resident_mib (in limit_mib, if it is unknown)", _DEATH),
    Column("go_heap_most_mib", "Float64", "MiB", "the upper bound, from the heap goal and the allocation rate", _DEATH),
    Column("go_other_mib", "Float64", "MiB", "other memory of the Go runtime in resident_mib, with stacks and globals", _DEATH),
    Column("off_heap_mib", "Float64", "MiB", "lower bound of the rest: fragmentation, free spans, stacks that are not counted above, and memory outside Go", _DEATH),
    Column("off_heap_most_mib", "Float64", "MiB", "upper bound of the rest", _DEATH),
    Column("memory_limit_most_mib", "Float64", "MiB", "highest GOMEMLIMIT that leaves room in limit_mib (else in resident_mib) for what was outside Go, or 90 % of what it had if its heap is unknown; 0 if none does", _DEATH),
    Column("reading", "Strings", "", "what the facts mean, in sentences", _DEATH),
    Column("advice", "Strings", "", "what to do", _DEATH),
    Column("preventable", "String", "", "whether GC settings could have prevented the death; for a while: not if the live heap, which grew, had grown further", _DEATH),
    Column("source", "String", "", "the input that recorded the death", _DEATH),
    Column("line_no", "Int64", "", "line number in `source`", _DEATH),
)  # fmt: skip

_HELD = "gctrace_analyzer.analysis.postmortem.memory_of_dumps"

MEMORY = (
    Column("source", "String", "", "the input with the dumps", _HELD),
    Column("of", "String", "", "the process that wrote the dumps, if they name it", _HELD),
    Column("dumps", "Int64", "", "number of MemStats dumps", _HELD),
    Column("heap_sys_mib", "Float64", "MiB", "heap memory obtained from the system, in the last dump", _HELD),
    Column("heap_sys_max_mib", "Float64", "MiB", "largest heap memory obtained from the system", _HELD),
    Column("held_mib", "Float64", "MiB", "heap memory obtained and not returned, in the last dump", _HELD),
    Column("held_max_mib", "Float64", "MiB", "the same, largest", _HELD),
    Column("needed_first_mib", "Float64", "MiB", "`needed_mib` of the first dump", _HELD),
    Column("needed_mib", "Float64", "MiB", "memory the program uses: its pool if it reports one, else the heap in use, else the heap allocated", _HELD),
    Column("needed_max_mib", "Float64", "MiB", "the same, largest", _HELD),
    Column("needed_is", "String", "", "which of them `needed_mib` is", _HELD),
    Column("released_mib", "Float64", "MiB", "heap memory returned to the system, in the last dump", _HELD),
    Column("idle_unreleased_mib", "Float64", "MiB", "idle heap memory that was not returned", _HELD),
    Column("spare_mib", "Float64", "MiB", "the same, minus what the program will allocate before it reaches the heap goal", _HELD),
    Column("fragmentation_mib", "Float64", "MiB", "memory in heap spans that holds no objects, and that the heap does not fill until its goal", _HELD),
    Column("sys_mib", "Float64", "MiB", "all memory that Go obtained from the system", _HELD),
    Column("off_heap_go_mib", "Float64", "MiB", "memory of the Go runtime outside the heap", _HELD),
    Column("alloc_mib", "Float64", "MiB", "size of heap objects", _HELD),
    Column("alloc_max_mib", "Float64", "MiB", "the same, largest", _HELD),
    Column("rss_mib", "Float64", "MiB", "resident memory of the process", _HELD),
    Column("outside_first_mib", "Float64", "MiB", "the most resident memory beyond what Go holds, in the first half of at least four dumps", _HELD),
    Column("outside_mib", "Float64", "MiB", "the same, in the last dump", _HELD),
    Column("num_gc", "Int64", "", "GC cycles since the start of the process", _HELD),
    Column("gcs_between", "Int64", "", "GC cycles between the first and the last dump", _HELD),
    Column("elapsed_s", "Float64", "s", "time between the first and the last dump", _HELD),
    Column("makes", "Int64", "", "buffers that the pool allocated", _HELD),
    Column("frees", "Int64", "", "buffers that were given back to the pool", _HELD),
    Column("pool_hit_share", "Float64", "0–1", "share of returned buffers that were reused", _HELD),
    Column("resolution_mib", "Float64", "MiB", "unit of the last printed digit", _HELD),
    Column("advice", "Strings", "", "what to do", _HELD),
)  # fmt: skip

_PROFILE = "the profile"
_ALLOCATED = "allocated since the start of the process, or in the time of the profile"
SITES = (
    Column("profile", "String", "", "the input with the profile", _PROFILE),
    Column("function", "String", "", "the function, with its import path", _PROFILE),
    Column("file", "String", "", "the file of that line", _PROFILE),
    Column("line", "Int64", "", "line that allocates most; in a table by line, that line", _PROFILE),
    Column("lines", "String", "", "the line that allocates most, and … if others allocate 5 % or more", _PROFILE),
    Column("standard", "Boolean", "", "whether it belongs to the runtime or the standard library", "import path"),
    Column("alloc_bytes", "Int64", "B", f"{_ALLOCATED}, by the function itself (flat)", "alloc_space"),
    Column("alloc_objects", "Int64", "", "number of the same", "alloc_objects"),
    Column("inuse_bytes", "Int64", "B", "bytes that were live after the last GC cycle", "inuse_space"),
    Column("inuse_objects", "Int64", "", "number of the same", "inuse_objects"),
    *(
        Column(f"cum_{name}", "Int64", unit, f"{meaning} it and the functions it calls", source)
        for name, unit, meaning, source in (
            ("alloc_bytes", "B", "allocated by", "alloc_space"),
            ("alloc_objects", "", "objects allocated by", "alloc_objects"),
            ("inuse_bytes", "B", "live bytes of", "inuse_space"),
            ("inuse_objects", "", "live objects of", "inuse_objects"),
        )
    ),
    Column("attributed_alloc_bytes", "Int64", "B", "allocated by it, or by the runtime and the standard library on its behalf: it is the program's innermost function on the stack", "alloc_space"),
    Column("attributed_inuse_bytes", "Int64", "B", "live bytes of the same", "inuse_space"),
    Column("share", "Float64", "0–1", "share of alloc_bytes of the profile: flat% of `go tool pprof -sample_index=alloc_space`", "alloc_bytes"),
    Column("attributed_share", "Float64", "0–1", "share of the allocation that is attributed to it", "attributed_alloc_bytes"),
    Column("growth_bytes", "Int64", "B", "growth of inuse_bytes from the first to the last heap profile of a process", "two heap profiles"),
    Column("attributed_growth_bytes", "Int64", "B", "growth of attributed_inuse_bytes", "two heap profiles"),
    Column("goroutines", "Int64", "", "goroutines in which it is the program's innermost function", "goroutine profile"),
    Column("alloc_mib_per_s", "Float64", "MiB/s", "its share of the log's allocation rate", "attributed_share × alloc_mib_per_s"),
    Column("gc_cpu_cores", "Float64", "cores", "its share of GC CPU, with idle marking, because all cycles that are not forced are caused by allocation", "attributed_share × gc_cpu_with_idle_cores × (1 - forced share)"),
    Column("cum_gc_cpu_cores", "Float64", "cores", "the same for it and the functions it calls", "cum_alloc_bytes over the allocation, in place of attributed_share"),
)  # fmt: skip

GC_FUNCTIONS = (
    Column("profile", "String", "", "the input with the CPU profile", _PROFILE),
    Column("part", "String", "", "activity: all of GC, then its parts; scanning is also counted in the other parts, and allocation includes work other than GC", "runtime/mgc*.go"),
    Column("functions", "String", "", "runtime functions whose stacks are counted", _PROFILE),
    Column("cpu_s", "Float64", "CPU s", "CPU time of the stacks with one of them", "cpu samples"),
    Column("cpu_share", "Float64", "0–1", "the same as a share of the CPU time in the profile", "cpu samples"),
    Column("cores", "Float64", "cores", "the same per second of the profile", "duration"),
)  # fmt: skip

_TABLES: dict[str, tuple[tuple[Column, ...], str]] = {
    "cycles": (CYCLES, "GC cycles, one row each, from every Go version, with values as printed"),
    "metrics": (METRICS, "cycles with derived columns: GC CPU, allocation, effective GOGC"),
    "processes": (PROCESSES, "processes in the input, one row per program run"),
    "scavenges": (SCAVENGES, "lines of the scavenger: scvg up to Go 1.13, then scav (scavtrace=1)"),
    "pacer": (PACER, "lines of the pacer (gcpacertrace=1)"),
    "scans": (SCANS, "scan statistics of gctrace=2 (Go 1.25 and later)"),
    "memstats": (MEMSTATS, "dumps of runtime.MemStats and scrapes of metrics, one row each; unknown columns keep their names"),
    "cycle_pauses": (CYCLE_PAUSES, "pauses that MemStats dumps remember, one row per GC cycle"),
    "intervals": (INTERVALS, "what happened between two successive dumps or scrapes"),
    "oom_kills": (OOM_KILLS, "OOM kills, one row per kill, with the facts from all its lines"),
    "oom_invocations": (OOM_INVOCATIONS, "invocations of the OOM killer that killed nothing"),
    "oom_tasks": (OOM_TASKS, "tasks that the kernel listed when its OOM killer ran"),
    "unit_events": (UNIT_EVENTS, "exits, kills, restarts and CPU accounting of systemd units"),
    "container_states": (CONTAINER_STATES, "container states from Docker and Kubernetes, and Docker events"),
    "runtime_fatal": (RUNTIME_FATAL, "out-of-memory errors of the Go runtime itself"),
    "benchmarks": (BENCHMARKS, "runs of go test -bench with their figures and the lines of their cycles"),
    "rejected": (REJECTED, "lines that look like runtime output but could not be parsed, with the reason"),
    "windows": (WINDOWS, "figures of consecutive windows of equal length, by default 10 s"),
    "pauses": (PAUSES, "stop-the-world pauses by phase"),
    "segments": (SEGMENTS, "start-up, load phases and idle times"),
    "mmu": (MMU, "minimum mutator utilization by window length"),
    "regimes": (REGIMES, "settings of a process over time, one row per stretch"),
    "episodes": (EPISODES, "time ranges in which something unusual happened"),
    "findings": (FINDINGS, "what is wrong and what to do"),
    "post_mortems": (POST_MORTEMS, "explanations of deaths, one row each"),
    "memory": (MEMORY, "heap memory that each program with MemStats dumps obtained and needed"),
    "sites": (SITES, "where the program allocates, by its profiles, and what that costs"),
    "gc_functions": (GC_FUNCTIONS, "CPU time of GC in a CPU profile"),
    "whatif": (WHATIF, "predictions for other settings (whatif)"),
    "recommendations": (RECOMMENDATIONS, "recommended settings with their predicted effect (recommend)"),
    "comparison": (COMPARISON, "one row per benchmark, side and metric (compare)"),
    "fleet": (FLEET, "one row per process, or per file that could not be read (fleet)"),
}  # fmt: skip
TABLES = {name: columns for name, (columns, _) in _TABLES.items()}
ABOUT = {name: about for name, (_, about) in _TABLES.items()}
"""A one-line description of each table."""


def names(table: str) -> list[str]:
    """Returns the column names of a table, in order."""
    return [*polars_schema(table)]


OF_MESSAGES = (
    "oom_kills", "oom_invocations", "oom_tasks", "unit_events", "container_states", "runtime_fatal",
)  # fmt: skip
"""The tables filled from messages about deaths and limits."""

LOG_TABLES = (
    "cycles", "processes", "scavenges", "pacer", "scans", "memstats", "cycle_pauses",
    *OF_MESSAGES, "benchmarks", "rejected",
)  # fmt: skip
"""The tables that reading fills; all others are derived."""

REPORTS_OF_DEATHS = ("oom_kills", "container_states", "unit_events", "runtime_fatal")
"""The tables among them that report deaths."""


PlotName = Literal[
    "timeline",
    "pauses",
    "pause_heatmap",
    "frequency",
    "assist",
    "live_heap",
    "goal",
    "mmu",
    "trade_off",
    "memory",
    "sites",
]
"""The plots of a run, by name."""

TableName = Literal[
    "cycles",
    "processes",
    "scavenges",
    "pacer",
    "scans",
    "memstats",
    "cycle_pauses",
    "oom_kills",
    "oom_invocations",
    "oom_tasks",
    "unit_events",
    "container_states",
    "runtime_fatal",
    "benchmarks",
    "rejected",
    "metrics",
    "intervals",
    "pauses",
    "windows",
    "regimes",
    "episodes",
    "segments",
    "mmu",
    "findings",
    "recommendations",
    "post_mortems",
    "memory",
    "sites",
    "gc_functions",
]
"""The tables of a run, by name: those that reading fills, then the derived ones."""


@cache
def polars_schema(table: str) -> Mapping[str, pl.DataType]:
    """Returns the Polars types of the columns of a table, in order."""
    import polars as pl

    types: dict[Dtype, pl.DataType] = {
        "Int64": pl.Int64(),
        "Float64": pl.Float64(),
        "Boolean": pl.Boolean(),
        "String": pl.String(),
        "Category": pl.Categorical(),
        "Datetime": pl.Datetime("us", "UTC"),
        "Strings": pl.List(pl.String()),
        "Episodes": pl.List(
            pl.Struct(
                {
                    "kind": pl.String(),
                    "severity": pl.String(),
                    "start_s": pl.Float64(),
                    "end_s": pl.Float64(),
                    "reason": pl.String(),
                }
            )
        ),
    }
    return MappingProxyType({column.name: types[column.dtype] for column in TABLES[table]})


def empty(table: str) -> pl.DataFrame:
    """Returns a table without rows."""
    return _empty(table).clone()


@cache
def _empty(table: str) -> pl.DataFrame:
    # Polars creates an empty column as slowly as a long one, and a small log has hundreds: all of
    # one type are copies of the first.
    import polars as pl

    types = polars_schema(table)
    return pl.DataFrame([_no_values(dtype).alias(name) for name, dtype in types.items()])


@cache
def _no_values(dtype: pl.DataType) -> pl.Series:
    import polars as pl

    return pl.Series(dtype=dtype)


@cache
def _conformed(name: str, dtype: pl.DataType, given: pl.DataType | None) -> pl.Expr:
    import polars as pl

    if given is None:
        return pl.lit(None, dtype).alias(name)
    # A cast copies even columns that already have the right type.
    return pl.col(name) if given == dtype else pl.col(name).cast(dtype)


def conform(table: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Returns the frame with exactly the columns and types of a table; missing ones are null."""
    types = polars_schema(table)
    if not frame.width:
        return empty(table)
    given = frame.schema
    if list(given.items()) == list(types.items()):
        return frame
    if not any(name in given for name in types):
        return empty(table).clear(len(frame))
    columns = (_conformed(name, dtype, given.get(name)) for name, dtype in types.items())
    return frame.select(columns)
