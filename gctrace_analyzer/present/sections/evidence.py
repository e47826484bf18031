"""Inputs, deaths, memory and systemd units, as rows of text for all output formats."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.advise.killed import often, prevention, resident_is, steps, told_apart
from gctrace_analyzer.analysis.postmortem.circumstances import in_tenths
from gctrace_analyzer.analysis.postmortem.death import DEEDS, KINDS, REFUSED
from gctrace_analyzer.analysis.postmortem.explanation import LAST_S
from gctrace_analyzer.analysis.postmortem.memory_of_dumps import HEAP_ALLOCATED
from gctrace_analyzer.analysis.postmortem.pairing import gap_s
from gctrace_analyzer.analysis.settings.printed import NAMES, written
from gctrace_analyzer.present.document import KeyFigure, Table
from gctrace_analyzer.present.format import (
    NONE,
    count,
    duration,
    mib,
    mib_per_s,
    milliseconds,
    place,
    printable,
    rounded,
    share,
)
from gctrace_analyzer.present.sections.memory_parts import memory_sentences
from gctrace_analyzer.present.sections.since_start import costs_not_shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gctrace_analyzer.analysis.postmortem.memory_of_dumps import Memory
    from gctrace_analyzer.analysis.postmortem.post_mortems import PostMortem
    from gctrace_analyzer.ingest.sources import SourceFacts
    from gctrace_analyzer.present.report import Report

MOST_DEATHS = 5
MOST_REJECTED = 5
_OF_A_PLAIN_LOG = {"cycles", "rejected", "scavenges", "pacer", "scans", "markers"}

_NOUNS = {
    "cycles": ("GC cycle", None),
    "memstats": ("MemStats dump", None),
    "oom_kills": ("OOM kill", None),
    "oom_invocations": ("report of the OOM killer", "reports of the OOM killer"),
    "oom_tasks": ("task listed", "tasks listed"),
    "unit_events": ("unit event", None),
    "container_states": ("container state", None),
    "runtime_fatal": ("fatal error", None),
    "benchmarks": ("run of a benchmark", "runs of benchmarks"),
    "scavenges": ("scavenger line", None),
    "pacer": ("pacer line", None),
    "stacks": ("stack", None),
    "notes": ("statement", None),
    "rejected": ("line skipped", "lines skipped"),
}
_KINDS = {
    "log": "text",
    "json": "JSON",
    "journal-export": "journalctl -o export",
    "journal-verbose": "journalctl -o verbose",
    "memstats-csv": "CSV",
    "pprof": "profile",
    "metrics": "metrics",
    "yaml": "YAML",
    "csv-export": "CSV",
    "describe": "kubectl describe",
    "mixed": "several formats",
}


def inputs(report: Report) -> list[tuple[str, str]]:
    """Returns the format and contents of each input, unless it is one plain gctrace log."""
    # Inputs other than pure gctrace say more about the program.
    sources = sorted(
        report.analysis.log.sources, key=lambda source: set(source.found) <= _OF_A_PLAIN_LOG
    )
    plain = len(sources) == 1 and not sources[0].wrappers and sources[0].kind == "log"
    if plain and not set(sources[0].found) - _OF_A_PLAIN_LOG:
        return []
    tables = report.analysis.log.tables
    return [
        (_name(source), f"{format_of(source)}: {_contents(source, tables)}")
        for source in sources
    ]


def format_of(source: SourceFacts) -> str:
    """Returns the common name of an input's format."""
    known = sorted(source.wrappers.items(), key=lambda item: -item[1])
    names = list(dict.fromkeys(name for name, _ in known))
    kind = _KINDS.get(source.kind, source.kind)
    what = names[0] if names and source.kind != "mixed" else kind
    return f"{what}, {source.compression}" if source.compression else what


def _name(source: SourceFacts) -> str:
    name = printable(PurePath(source.name).name)
    return name if len(name) <= 24 else "…" + name[-23:]


def _contents(source: SourceFacts, tables: Mapping[str, pl.DataFrame]) -> str:
    of_source = pl.col("source").cast(pl.String) == source.name
    kills = tables["oom_kills"].filter(of_source).select("reason", "killer").iter_rows()
    others = Counter(filter(None, (KINDS.get(reason, KINDS.get(by)) for reason, by in kills)))
    found = source.found | {"oom_kills": source.found.get("oom_kills", 0) - others.total()}
    parts = [
        count(number, *_noun(table, source))
        + (_used(source, tables["memstats"]) if table == "memstats" else "")
        for table, number in found.items()
        if number > 0 and table in _NOUNS
    ]
    for kind, number in others.items():
        # A program may get a signal several times.
        signal = f" ({kind})" * ("SIG" in kind)
        parts.append(count(number, "program" if signal else kind.lower()) + signal)
    return ", ".join(parts) or "nothing"


def _used(source: SourceFacts, memstats: pl.DataFrame) -> str:
    """Returns how many of the dumps are used if several jobs scrape the same process."""
    used = len(memstats.filter(pl.col("source") == source.name))
    of_all = f" ({used:,} used, because several jobs scrape it)"
    return of_all if used < source.found["memstats"] else ""


def _noun(table: str, source: SourceFacts) -> tuple[str, str | None]:
    is_scrape = table == "memstats" and source.is_scraped
    return ("scrape", None) if is_scrape else _NOUNS[table]


def self_check(report: Report) -> str | None:
    """Returns how well the log agrees with itself, and what was read; None without cycles."""
    summary = report.analysis.summary
    if not summary.cycles or report.analysis.by_dumps:
        return None
    check = summary.log_check_points
    agrees, repaired = "", f"{report.analysis.repaired:,} repaired"
    if report.analysis.repaired:
        repaired += " (torn apart by other output, or changed on the way)"
    if check is not None:
        points = (
            f"differ by up to {abs(check):.1f} points from" if abs(check) >= 1 else "add up to"
        )
        # From Go 1.18 on, with or without pauses (`log_check_points`).
        agrees = f"The CPU times of the lines {points} the percentage that they print; "
    lines = sum(source.lines for source in report.analysis.log.sources)
    read = f"{count(lines, 'line')} read, " if lines else ""
    return (
        f"{agrees}{read}{repaired}, "
        f"{len(report.analysis.rejected):,} rejected. The runtime truncates durations; figures "
        "use the middle of the range that each can stand for, and the longest pause as printed."
    )


def rejected(report: Report) -> Table | None:
    """Returns the reasons why lines were skipped, with the number of lines."""
    if report.analysis.rejected.is_empty():
        return None
    head = (
        f"Skipped: {count(len(report.analysis.rejected), 'line')} that could not be parsed",
        "lines",
    )
    rows = [(reason, f"{number:,}") for reason, number in report.analysis.rejected_reasons]
    return Table(head, "lr", rows)


def rejected_examples(report: Report) -> list[tuple[str, str]]:
    """Returns the first skipped lines: position, and text without control characters."""
    rows = report.analysis.rejected.head(MOST_REJECTED).iter_rows(named=True)
    return [(place(row["source"], row["line_no"]), printable(row["text"])) for row in rows]


def damage(report: Report) -> list[str]:
    """Returns the damage to whole inputs."""
    sentences = [
        f"{printable(source.name)}: {source.damage}; everything before it was used."
        for source in report.analysis.log.sources
        if source.damage
    ]
    cut = set(
        report.analysis.rejected.filter(reason="cut short")
        .select("source", "line_no")
        .iter_rows()
    )
    sentences += [
        f"{printable(source.name)} seems to be truncated: it ends in the middle of a line."
        for source in report.analysis.log.sources
        if not source.ends_in_newline and (source.name, source.lines) in cut
    ]
    sentences += _pause_of_cut_lines(report)
    lines = sum(report.analysis.log.runtime_lines.values())
    if lines and not report.analysis.summary.cycles:
        sentences.append(f"{count(lines, 'other line')} from the Go runtime.")
    return sentences


def _pause_of_cut_lines(report: Report) -> Iterator[str]:
    """Yields the longest pause in lines that are cut after it, if no other pause is longer."""
    others = report.analysis.summary.stw_max_ms
    before, after = (
        pl.col("text").str.extract(rf"{pause} ms clock, ").cast(pl.Float64)
        for pause in (r" ([0-9.]+)\+[0-9.]+\+[0-9.]+", r"\+[0-9.]+\+([0-9.]+)")
    )
    cut = report.analysis.rejected.filter(reason="cut short").select(
        "line_no", ms=pl.max_horizontal(before, after)
    )
    longest = cut.drop_nulls().sort("ms").tail(1)
    than_others = "" if others is None else ": no pause in the figures is as long"
    for line_no, ms in longest.filter(pl.col("ms") > (others or 0.0)).rows():
        yield (
            f"Line {line_no:,}, which is cut short, has a pause of {milliseconds(ms)}{than_others}."
        )


def deaths(report: Report) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yields each death as a title with labelled sentences."""
    groups: dict[object, list[PostMortem]] = {}
    for index, death in enumerate(report.analysis.post_mortems):
        # Kills that differ only in place and time share a card.
        alike = (death.kind, death.victim, death.pod, death.killer, death.reading, death.advice)
        groups.setdefault(index if death.process is not None else alike, []).append(death)
    cards = list(groups.values())
    for several in cards[:MOST_DEATHS]:
        story = list(_story(several[0], report))
        if len(several) > 1:
            story = [*_ends_of(several), *(row for row in story if row[0] not in _OF_ONE)]
        yield _title(several), story
    if left := sum(map(len, cards[MOST_DEATHS:])):
        yield f"… and {left:,} more (table post_mortems)", []
    tables = report.analysis.tables
    # If the kernel's own record of a kill is missing, this may be the run that was killed.
    from gctrace_analyzer.present.sections.without_cycles import otherwise_ended, without_victim

    if cards:
        yield from ((text, []) for text in otherwise_ended(tables["container_states"], least=1))
    of_kernel = tables["oom_kills"].filter(
        pl.col("killer") == "kernel", pl.col("reported_by").is_null()
    )
    if len(ran := tables["oom_invocations"]) and (len(of_kernel) or cards):
        sentence, advice = without_victim(ran)
        unknown = "; its victim is not in the input" if advice else " and killed nothing"
        yield (
            f"OOM killer ran{unknown}",
            [("Run", sentence), *[("Action", advice)] * bool(advice)],
        )


_OF_ONE = ("Where", "Message", "Memory")


def _ends_of(deaths: list[PostMortem]) -> Iterator[tuple[str, str]]:
    """Yields the range of deaths that differ only in place, time and size."""
    ends = (place(death.source, death.line_no, whole=True) for death in (deaths[0], deaths[-1]))
    yield "Where", " to ".join(ends)
    times = sorted(death.logged_at for death in deaths if death.logged_at)
    if times:
        yield "When", f"{times[0]:%Y-%m-%d %H:%M:%S} to {times[-1]:%Y-%m-%d %H:%M:%S} UTC"
    elif deaths[0].printed_at and deaths[-1].printed_at:
        first, *_, last = sorted(deaths, key=lambda death: gap_s(deaths[0], death) or 0.0)  # type: ignore[arg-type]  # times as in Death
        yield "When", printable(f"{first.printed_at} to {last.printed_at}")
    sizes = [death.resident_mib for death in deaths if death.resident_mib is not None]
    if sizes:
        yield "Memory", f"{_range(min(sizes), max(sizes))} resident{resident_is(deaths)}"


def _range(low: float, high: float) -> str:
    ends = mib(low), mib(high)
    return ends[1] if ends[0] == ends[1] else " to ".join(ends)


def _title(deaths: list[PostMortem]) -> str:
    death = deaths[0]
    victim = f": {printable(death.who)}" if death.who else ""
    if len(deaths) > 1:
        return f"{death.kind}{victim}{_by(death)},{often(deaths)}"
    pid = f" (pid {death.pid})" if death.pid else ""
    printed_at = f" at {printable(death.printed_at)}" if death.printed_at else ""
    at = f" at {death.logged_at:%Y-%m-%d %H:%M:%S} UTC" if death.logged_at else printed_at
    if death.not_before_at and death.logged_at:
        same_day = death.not_before_at.date() == death.logged_at.date()
        day = "" if same_day else "%Y-%m-%d "
        at = (
            f" between {death.not_before_at:%Y-%m-%d %H:%M:%S} and "
            f"{death.logged_at:{day}%H:%M:%S} UTC"
        )
    return f"{death.kind}{victim}{pid}{at}{_by(death)}"


def _by(death: PostMortem) -> str:
    if not death.killer or death.kind == REFUSED:
        return ""
    return " by the kernel" if death.killer == "kernel" else f" by {death.killer}"


def _matched(death: PostMortem) -> str:
    """Returns the evidence that the process is the one that died."""
    if death.confidence == "low" and death.match_by[0].startswith("only "):
        return "no other program in the input fits"
    return f"matched by {', '.join(death.match_by)}"


def _story(death: PostMortem, report: Report) -> Iterator[tuple[str, str]]:
    pod = "" if death.pod in (None, death.victim) else f", pod {printable(death.pod)}"
    yield "Where", f"{place(death.source, death.line_no, whole=True)}{pod}"
    if death.error and not death.error.startswith("{"):
        yield "Message", printable(death.error)
    if death.ran_s is not None:
        yield "Ran for", duration(death.ran_s)
    if death.process is not None:
        gap = "" if death.gap_s is None else f", {_after(death, death.gap_s)} its last cycle"
        last = "" if death.last_gc_num is None else f", gc {death.last_gc_num}"
        yield (
            "Program",
            f"process {death.process}{last}{gap} ({_matched(death)}; {death.confidence} "
            "confidence)",
        )
    if death.live_mib is not None:
        own = None if death.process is None else report.analysis.summary_of(death.process)
        # The rates of a run as short as its end are the ones shown above.
        is_end = own is None or own.span_s is None or own.span_s > LAST_S
        of_dumps = own is not None and own.is_of_dumps
        facts = (
            (death.live_mib, f"live heap {'at most ' * of_dumps}{{}}", mib),
            (death.next_goal_mib, "next cycle due at a heap of about {}", mib),
            (death.gc_cpu_share if is_end else None, "GC CPU {}", share),
            (death.alloc_mib_per_s or None if is_end else None, "{} allocated", mib_per_s),
        )
        known = (text.format(of(fact)) for fact, text, of in facts if fact is not None)
        yield "At last dump" if of_dumps else "At the end", ", ".join(known)
    if death.resident_mib is not None:
        yield "Memory", ", ".join(_memory_parts(death, death.resident_mib))
    for index, text in enumerate(death.reading):
        yield "" if index else "Meaning", printable(text)
    if verdict := prevention(death, report.analysis, report.advice):
        yield "Verdict", verdict
    for index, text in enumerate(steps(death, report.analysis, report.advice)):
        yield "" if index else "Action", text


def _after(death: PostMortem, gap_s: float) -> str:
    """Returns the time from a program's last cycle to its death; whole seconds may hide it."""
    is_whole = death.logged_at and not death.logged_at.microsecond and not death.monotonic_s
    return "within 1 s of" if is_whole and abs(gap_s) < 1 else f"{duration(gap_s)} after"


def _memory_parts(death: PostMortem, resident_mib: float) -> Iterator[str]:
    at = " at the last scrape" if death.not_before_at else ""
    yield f"{mib(resident_mib)} resident{at}{death.resident_is}"
    heap, most = death.go_heap_mib, death.go_heap_most_mib
    if heap is not None and most is not None:
        size = f"{heap:,.0f} to {mib(most)}" if most > heap else mib(heap)
        yield f"{size} heap objects"
    if death.go_other_mib:
        yield f"{mib(death.go_other_mib)} other Go memory"
    outside, most = death.off_heap_mib, death.off_heap_most_mib
    if outside is not None and most is not None and most > outside:
        yield f"{outside:,.0f} to {mib(most)} of the rest"


def memory(report: Report) -> Table | None:
    """Returns how much heap each program obtained and needed, from MemStats."""
    known = [
        memory
        for memory in report.analysis.memory
        if {memory.held_mib, memory.alloc_mib, memory.sys_mib} != {None}
    ]
    if not known:
        return None
    of, each = ("metrics", "scrapes") if report.is_scraped else ("MemStats", "dumps")
    most = ", maxima" if any(memory.dumps > 1 for memory in known) else ""
    names = ("heap kept", "in use", "heap objects", "all from OS", "GCs")
    head = (f"Memory ({of}){most}", each, *names)
    return Table(head, "lrrrrrr", [_memory(memory) for memory in known]).without(NONE)


def _memory(memory: Memory) -> tuple[str, ...]:
    name = printable(memory.of or PurePath(memory.source).name)
    held, in_use = memory.held_max_mib, memory.needed_max_mib
    in_use = None if memory.needed_is == HEAP_ALLOCATED else in_use
    size = partial(rounded, step=memory.resolution_mib)
    # In a truncated dump, one of the two may be missing.
    if held is not None and in_use is not None and held < in_use:
        held = None
    return (
        name if len(name) <= 20 else "…" + name[-19:],
        f"{memory.dumps:,}",
        size(held),
        size(in_use),
        size(memory.alloc_max_mib),
        size(memory.sys_mib),
        "–" if memory.num_gc is None else f"{memory.num_gc:,}",
    )


def memory_notes(report: Report) -> list[str]:
    """Returns sentences on what the figures of the dumps and the scavenger's lines mean."""
    if report.analysis.tables["memstats"].is_empty():
        return [*memory_sentences(report)]
    return [
        *costs_not_shown(report),
        *(text for memory in report.analysis.memory for text in memory.advice),
        *memory_sentences(report),
    ]


def units(report: Report) -> Table | None:
    """Returns the CPU time of systemd units."""
    if not report.analysis.unit_cpu:
        return None
    rows = []
    for unit in report.analysis.unit_cpu:
        gc = "–" if unit.gc_cpu_share is None else share(unit.gc_cpu_share)
        part = gc if unit.complete or unit.gc_cpu_share is None else f"≥ {gc}"
        name = printable(unit.unit)
        rows.append(
            (
                name if len(name) <= 30 else name[:14] + "…" + name[-15:],
                duration(unit.cpu_s),
                "–" if unit.memory_peak_mib is None else in_tenths(unit.memory_peak_mib),
                part,
            )
        )
    head = ("CPU used (systemd)", "CPU", "memory peak", "GC share")
    return Table(head, "lrrr", rows).without(NONE)


def settings(report: Report) -> str | None:
    """Returns GOGC, limits and other known settings by their sources."""
    names = NAMES | {"go_version": "Go", "off_heap_mib": "off-heap memory"}
    of: dict[str, list[str]] = {}
    given = report.analysis.settings.to_dict()
    if given.keys() == {"go_version"}:
        return None  # The first line shows it.
    for name, known in given.items():
        what = names[name]
        if name == "container_limit_mib" and known["source"].startswith("OOM kill"):
            what = "cgroup limit"
        text = f"{what} {written(name, known['value'])}"
        of.setdefault(known["source"], []).append(text)
    return (
        "; ".join(
            ", ".join(parts) + (f" ({source})" if source != "given" else "")
            for source, parts in of.items()
        )
        or None
    )


def figures_of_deaths(report: Report) -> list[KeyFigure]:
    """Returns the headline figures of kills without GC cycles; empty without a proven kill."""
    deaths = [death for death in report.analysis.post_mortems if death.proven]
    if not deaths or report.analysis.has_figures:
        return []
    victims = sorted({death.victim for death in deaths if death.victim})
    named = victims[0] if len(victims) == 1 else count(len(victims), "program")
    is_oom = not any(death.kind == REFUSED or death.kind in DEEDS for death in deaths)
    label = "OOM kills" if is_oom else "Ended for memory"
    number = f"{len(known):,}" if (known := told_apart(deaths)) else "1 or more"
    figures = [KeyFigure(label, number, named if victims else "", level="bad")]
    sizes = [death.resident_mib for death in deaths if death.resident_mib is not None]
    if sizes:
        least = "" if len(sizes) == 1 else f"; the smallest was {mib(min(sizes))}"
        rss = f"RSS{resident_is(deaths)}{least}"
        figures.append(KeyFigure("Resident at the kill", mib(max(sizes)), rss))
    limits = {death.limit_mib for death in deaths}
    of = {death.limit_is for death in deaths}
    limit = limits.pop() if len(limits) == 1 else None
    if of == {"the host's memory"}:
        figures.append(KeyFigure("Memory limit", "none reached", "the host ran out of memory"))
    elif len(limits) == 0:
        note = "add it to the input" if limit is None else next(iter(of)) or ""
        figures.append(
            KeyFigure("Memory limit", "unknown" if limit is None else mib(limit), note)
        )
    heaps = [
        memory.alloc_mib for memory in report.analysis.memory if memory.alloc_mib is not None
    ]
    if heaps:
        figures.append(KeyFigure("Heap allocated", mib(max(heaps)), "last MemStats dump"))
    return figures
