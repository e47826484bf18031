"""The catalogue of findings: what each means, how it is judged, where that comes from."""

from __future__ import annotations

from dataclasses import dataclass

_GUIDE = "go.dev/doc/gc-guide"
_PACER = "runtime/mgcpacer.go"


@dataclass(frozen=True, slots=True)
class Rule:
    """A finding's name, what it says, its formula, what people did about it, and its source.

    `because_of` are the findings that explain it, where they hold at the same time.
    """

    id: str
    name: str
    says: str
    formula: str
    advice: str
    source: str
    because_of: tuple[str, ...] = ()


_TIGHT = ("GC016", "GC015")
_ALL = (
    Rule("GC001", "high-gc-cpu", "the collector takes much of the CPU",
         "(pauses + assists + background marking) / (GOMAXPROCS × time); warn 10 %, bad 25 %",
         "Allocate less (go tool pprof -sample_index=alloc_space), or let the heap grow: a "
         "higher GOGC.",
         f"the pacer may take 25 % while it marks ({_PACER} gcBackgroundUtilization)",
         (*_TIGHT, "GC024", "GC004", "GC026")),
    Rule("GC002", "gc-always-on", "a cycle is running most of the time",
         "(pauses + marking) / time; warn 50 %, bad 90 %",
         "The heap is too tight for the allocation rate: a higher GOGC or limit, fewer "
         "allocations.",
         "golang/go#14812", (*_TIGHT, "GC024", "GC004", "GC001")),
    Rule("GC003", "too-frequent", "cycles follow each other very closely",
         "median interval; warn below 100 ms, bad below 20 ms with 10 % of the CPU",
         "A higher GOGC, or GOGC with a memory limit, makes cycles rarer at the price of heap.",
         "golang/go#23044", (*_TIGHT, "GC004", "GC024", "GC026")),
    Rule("GC004", "heap-minimum-bound", "the heap minimum sets the goal, not GOGC",
         "goal = 4 MiB × GOGC / 100 in more than half of the cycles",
         "The live heap is tiny: GOGC=400 or more costs a few MiB; a ballast is not needed "
         "from Go 1.19 on.",
         f"{_PACER} heapMinimum; golang/go#22743"),
    Rule("GC005", "assist-pressure", "goroutines have to mark in order to allocate",
         "assists / GC CPU over 20 % (Go 1.17 and before: 30 %), or assists and background "
         "take 40 % "
         "of the processors while marking",
         "Smooth the allocation, or leave the pacer more room: a higher GOGC, a higher limit.",
         "golang/go#40225, #56966; Go 1.10 to 1.17 plan for 5 % of assists", (*_TIGHT, "GC024", "GC001")),
    Rule("GC006", "assist-spike", "in single cycles goroutines did most of the marking",
         "assists / (marking time × GOMAXPROCS) over 50 %",
         "Look at what allocates at these times.", "golang/go#27732", (*_TIGHT, "GC005")),
    Rule("GC007", "trigger-pinned-low", "cycles start as early as the pacer may start them",
         "(heap at start - live) / (goal - live) at most 0.72 (Go 1.18+) or 0.62, with assists",
         "It explains the assists: marking cannot keep up with the allocation.",
         f"{_PACER} minTriggerRatioDistance", ("GC005", *_TIGHT)),
    Rule("GC008", "goal-overshoot", "the heap ends well above its goal",
         "95th percentile of heap at the end / goal over 1.10",
         "Allocation outruns marking: leave that much more headroom below any limit.",
         f"{_PACER} maxOvershoot 1.1", (*_TIGHT, "GC005")),
    Rule("GC009", "long-stw-sweep-termination", "the pause before marking is long",
         "sweep termination over 1 ms in a tenth of the cycles, or 5 ms once; bad over 10 ms",
         "Before Go 1.14: loops without calls cannot be stopped. Else: too few CPUs for "
         "GOMAXPROCS, a CPU quota.",
         "golang/go#17831, #42642, #31222", ("GC013",)),
    Rule("GC010", "long-stw-mark-termination", "the pause after marking is long",
         "mark termination (Go 1.4 and before: the whole collection) over 1 ms in a tenth "
         "of the cycles, "
         "or 5 ms once; bad over 10 ms",
         "Many processors on few CPUs, throttling by a quota; on an old Go: upgrade.",
         "golang/go#42642", ("GC013", "GC043")),
    Rule("GC011", "stw-outliers", "single pauses are nothing like the others",
         "longest pause over 20 × the median and over 1 ms",
         "The host stopped the program: compare the times with other work on it, quotas, "
         "page migration.",
         "nothing in the log explains their spread", ("GC009", "GC010", "GC016")),
    Rule("GC012", "gomaxprocs-over-cpus", "GOMAXPROCS is larger than the CPUs there are",
         "processors stopped (pause CPU / pause) below GOMAXPROCS by more than 5 %",
         "Set GOMAXPROCS to the CPUs, or use Go 1.25, which follows the quota.", "runtime stwprocs"),
    Rule("GC013", "cpu-quota-throttling", "the CPU quota stops the program while the world "
                                          "is stopped",
         "GOMAXPROCS at least twice --cpu-limit; or 8 processors and more, a heap under 64 "
         "MiB and mark "
         "terminations of 10 ms and more",
         "Set GOMAXPROCS to the quota (Go 1.25 does), or raise the quota.",
         "golang/go#59715, #73193; istio/istio#10855"),
    Rule("GC014", "limit-bound", "the memory limit sets the heap goal",
         "effective GOGC spreads by more than 10 % while the goal stays, in 10 cycles and more",
         "Fine while GOGC in effect stays above 50; watch the live heap.", f"{_GUIDE} "
                                                                           f"memory limit", _TIGHT),
    Rule("GC015", "limit-tight", "the memory limit leaves the heap little room",
         "median GOGC in effect under the limit; warn below 50, bad below 25",
         "Raise the limit, or keep less in memory: every MiB less room costs more collections.",
         "golang/go#58106", ("GC016",)),
    Rule("GC016", "limit-thrash", "the live heap does not fit under the memory limit",
         "goal at or below the live heap in 3 cycles and more; or the limit leaves at most "
         "8 % and the "
         "collector runs 65 % of the time for 2 s",
         "Give it more memory, or less to hold; without either, no GOMEMLIMIT and a low "
         "GOGC is the lesser evil.",
         f"{_GUIDE}; golang/go#58106, #59324; measured on runs with a known limiter"),
    Rule("GC017", "cpu-limiter-likely", "the runtime has stopped assists to keep half of "
                                        "the CPU for the program",
         "lower bound of the limiter's bucket: likely from 0.6, certain at 1",
         "The heap will pass its limit now: an OOM kill is near.", "runtime/mgclimit.go", ("GC016",)),
    Rule("GC018", "limit-without-headroom", "GOMEMLIMIT leaves nothing to what Go does not "
                                            "count",
         "GOMEMLIMIT at least 95 % of the container's limit",
         "Set it to 90 % of the container's limit, less if there is cgo or mmap.",
         f"{_GUIDE}; authzed/spicedb#2427"),
    Rule("GC019", "gogc-off-no-limit", "nothing makes the collector run",
         "no heap goal, or only forced cycles, while the heap grows",
         "Set GOMEMLIMIT, or leave GOGC on.", f"{_PACER} gcPercent < 0"),
    Rule("GC020", "gogc-off-idle", "an idle program keeps its garbage",
         "limit-bound, then no cycle for two minutes",
         "With GOGC=off nothing collects an idle program: finalizers and memory wait.", "runtime gcTriggerTime"),
    Rule("GC021", "live-heap-growth", "the live heap grows",
         "robust slope without the first quarter: lower 95 % bound above 0, and over 10 % "
         "of the median in the span",
         "Suspect a leak: compare two heap profiles (go tool pprof -base).", "slope after "
                                                                             "collections"),
    Rule("GC022", "live-heap-step", "the live heap changed its level for good",
         "medians before and after differ by more than half, each steady",
         "A cache filled, a release, a ballast: what happened at that time?", "golang/go#14735", ("GC021",)),
    Rule("GC023", "live-heap-spike", "the live heap doubled and came back",
         "over twice the median of the neighbourhood, back later",
         "It doubles the goal as well: a memory limit caps it.", "golang/go#14735"),
    Rule("GC024", "forced-gc", "the program asks for collections itself",
         "a fifth of the cycles forced, and at least four",
         "Remove runtime.GC() and debug.FreeOSMemory() from the running program.",
         "each is a full collection the pacer did not want"),
    Rule("GC025", "periodic-only", "the program is idle: only the two-minute cycle runs",
         "intervals of 119.9 to 121 s in over 80 % of the cycles", "Nothing to tune.", "runtime forcegcperiod"),
    Rule("GC026", "nonconstant-gogc", "GOGC in effect changes in steps",
         "two levels and more, each of ten cycles",
         "A tuner or debug.SetGCPercent is at work; figures are of all levels together.", "debug.SetGCPercent"),
    Rule("GC027", "gogc-not-as-declared", "GOGC in effect is not the one given",
         "declared and inferred GOGC differ by more than 3 points and 5 %",
         "The variable does not reach the process, or the code sets its own.", "ethereum/go-ethereum#31441"),
    Rule("GC028", "ballast-present", "a constant part of the live heap looks like a ballast",
         "live heap of 64 MiB and more from the first cycles on, moving by less than 10 %",
         "A ballast only moves the goal: from Go 1.19 on a higher GOGC with GOMEMLIMIT "
         "does it without.",
         "blog.twitch.tv go-memory-ballast"),
    Rule("GC029", "large-stacks", "goroutine stacks are a large part of what is marked",
         "stacks over 10 % of the live heap", "Fewer or shallower goroutines; stacks count "
                                              "in the goal from Go 1.18 on.",
         f"{_PACER} commit"),
    Rule("GC030", "large-globals", "global variables are a large part of what is marked",
         "globals over 10 % of the live heap", "They are marked in every cycle and move "
                                               "the goal from Go 1.18 on.",
         "golang/go#19839"),
    Rule("GC031", "idle-mark-heavy", "most marking is done on idle processors",
         "idle marking over half of all marking, 8 processors and more",
         "It is free only if nobody else wants the CPU: neighbours and quotas feel it.", "golang/go#19393"),
    Rule("GC032", "low-mark-throughput", "marking is slow for its heap",
         "(live + stacks + globals) / marking CPU under 100 MiB per CPU second, marking "
         "over 100 ms",
         "Swapping, throttling, or a heap of very many small pointers.", "measured "
                                                                         "reference: 1.8 "
                                                                         "GB per CPU second",
         ("GC016",)),
    Rule("GC033", "mutator-slowed-in-gc", "the program allocates at half its speed while "
                                          "marking",
         "allocation rate in cycles / between cycles under 0.5, GC CPU over 5 %",
         "Every cycle costs latency: make them rarer.", "measured 0.84 to 0.95 in calm runs", (*_TIGHT, "GC001", "GC005")),
    Rule("GC034", "low-reclaim", "cycles find little to free",
         "(end - live) / end under 20 % at GOGC 80 and more in effect",
         "The heap is growing, or a cache is filling.", "survival", ("GC021", "GC022")),
    Rule("GC035", "high-alloc-rate", "the program allocates very fast",
         "over 500 MiB/s per processor", "Profile the allocations: go tool pprof "
                                         "-sample_index=alloc_space.",
         "proposed"),
    Rule("GC036", "fragmentation", "the heap's spans are poorly filled",
         "(HeapInuse - HeapAlloc) / HeapInuse over 30 %, 64 MiB and more",
         "Objects of like size and life: pooling.", "golang/go#18896"),
    Rule("GC037", "unreleased-idle", "idle heap is not given back",
         "HeapIdle - HeapReleased over 25 % of Sys, 64 MiB and more",
         "A memory limit makes the scavenger give it back in time; Go 1.12 to 1.15: "
         "GODEBUG=madvdontneed=1.",
         "golang/go#33376"),
    Rule("GC038", "off-heap-heavy", "much resident memory is not the Go heap",
         "resident at death less the Go heap and other Go memory, over 20 %",
         "cgo, mmap, or allocated since the last cycle: set GOMEMLIMIT lower by that much.", "golang/go#71150"),
    Rule("GC039", "oom-kill", "the program was killed for memory", "a record of the kill "
                                                                   "joined to the program",
         "Read its post-mortem.", "kernel, systemd, container states"),
    Rule("GC040", "oom-not-proven", "exit code 137 alone does not prove an OOM kill", "SIGKILL without a record",
         "Keep the kernel's log of that minute.", "moby/moby#15621"),
    Rule("GC041", "log-incomplete", "lines are missing, so totals are too low",
         "gaps in the cycle numbers, or the log's own percentage off by over 2 points (4 "
         "from Go 1.23)",
         "Take the whole standard error, of one program.", "self-check of the log"),
    Rule("GC042", "short-log", "the log is too short to judge more",
         "under 20 cycles in every program, or under 10 s", "Run it longer, under its "
                                                            "usual load.", "proposed"),
    Rule("GC043", "old-go", "an old Go, and newer ones do better in just this",
         "no stacks in the line (Go 1.17 and before) with long pauses or assists; or a "
         "shape before Go 1.6",
         "Upgrade: 1.5 marks concurrently, 1.8 does not rescan stacks (pauses under 1 ms), "
         "1.14 can stop loops, "
         "1.18 has a new pacer, 1.19 a memory limit.", "release notes"),
    Rule("GC044", "healthy", "nothing needs doing", "no other finding is a warning",
         "Leave it alone.", "the margins are in the figures"),
)  # fmt: skip

RULES = {rule.id: rule for rule in _ALL}
"""Every rule by its id."""
