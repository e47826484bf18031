"""Explains one line that the Go runtime printed, field by field."""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from gctrace_analyzer import schema
from gctrace_analyzer.analysis.cycles import goal_mib
from gctrace_analyzer.analysis.rules.registry import RULES, Rule, find_rule
from gctrace_analyzer.analysis.settings.goal_ranges import HEAP_MINIMUM_MIB
from gctrace_analyzer.analysis.summary import Summary
from gctrace_analyzer.analysis.thresholds import DEFAULT, filled
from gctrace_analyzer.ingest.believable import NO_GOAL_MIB
from gctrace_analyzer.ingest.evidence.cgroups import short_name
from gctrace_analyzer.ingest.gctrace.grammar import SHAPES, Shape, variants_of, version_key
from gctrace_analyzer.present.document import (
    Gap,
    Heading,
    Paragraphs,
    Sentence,
    Sentences,
    Title,
)
from gctrace_analyzer.present.format import mib, printable, sentences, share
from gctrace_analyzer.present.glossary import words
from gctrace_analyzer.present.sections import headline
from gctrace_analyzer.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gctrace_analyzer.present.document import Block, Document
    from gctrace_analyzer.present.report import Report

_NUMBER = re.compile(r"\d[\d.]*")

_FILES = {
    **dict.fromkeys(("gc16", "gc18", "gc26"), "runtime/mgc.go, gcMarkTermination"),
    "gc15": "runtime/mgc.go, gc",
}
_MEMORY = "runtime/mgcscavenge.go and mheap.go"
_TABLE_FILES = {
    "scavenges": _MEMORY,
    "pacer": "runtime/mgcpacer.go and mgcsweep.go",
    "scans": "runtime/mgcmark_greenteagc.go, dumpScanStats",
    "markers": "runtime/proc.go, forcegchelper",
}

# Fields that are not columns of their table.
_OTHERS = {
    "gc_threads": ("", "threads that took part in the collection (not GOMAXPROCS)"),
    "phase_1_ms": ("ms", "stop-the-world: marking"),
    "phase_2_ms": ("ms", "stop-the-world: sweeping"),
    "phase_3_ms": ("ms", "stop-the-world: stopping the world, and everything else"),
    "phase_1_us": ("µs", "stop-the-world: stopping the world"),
    "phase_2_us": ("µs", "stop-the-world: finishing the last sweep, starting the helpers"),
    "phase_3_us": ("µs", "stop-the-world: marking on this thread"),
    "phase_4_us": ("µs", "stop-the-world: waiting for the helpers"),
    "scan_ms": ("ms", "concurrent: scan of roots"),
    "released_now_mib": ("MiB", "returned to the system in this step"),
    "released_total_mib": ("MiB", "returned to the system and not used again"),
    "install_barrier_ms": ("ms", "concurrent: installing the write barrier"),
    "mark_ms": ("ms", "concurrent marking, wall time"),
    "scan_cpu_ms": ("ms", "CPU of the scan"),
    "install_barrier_cpu_ms": ("ms", "CPU of installing the write barrier"),
    "objects_before": ("", "objects before the collection"),
    "objects": ("", "objects after the collection (Go 1.3 and 1.4: with unswept garbage)"),
    "mallocs": ("", "objects allocated since the start"),
    "frees": ("", "objects freed since the start"),
    "spans": ("", "memory spans"),
    "background_swept": ("", "spans swept in the background since the last line"),
    "pause_swept": ("", "spans swept within the pause"),
    "handoff": ("", "work handed to another marking thread"),
    "handoff_count": ("", "objects in that work"),
    "steal": ("", "work stolen from another marking thread"),
    "steal_count": ("", "objects in that work"),
    "procyield": ("", "how often marking threads busy-waited"),
    "osyield": ("", "how often marking threads yielded to the OS"),
    "sleep": ("", "how often marking threads slept"),
    "h_t": ("", "growth over the live heap at which the cycle was triggered"),
    "h_a": ("", "growth over the live heap at mark termination"),
    "h_g": ("", "growth over the live heap up to the heap goal"),
    "work": ("B", "scan work done in the cycle"),
    "goal_delta": ("", "growth from the trigger to the heap goal: h_g - h_t"),
    "actual_delta": ("", "growth from the trigger to mark termination: h_a - h_t"),
    "utilization_ratio": ("", "CPU share of marking / the share that the pacer aimed at"),
}

_FIGURES = [
    *(
        ("summary", name, f"{value.__doc__}".partition("\n")[0].rstrip("."))
        for name, value in vars(Summary).items()
        if isinstance(value, property)
    ),
    *(
        (table, column.name, column.described)
        for table, columns in {"summary": schema.SUMMARY, **schema.TABLES}.items()
        for column in columns
    ),
]
"""Each column of a table, and each property of a summary: the table, its name and its meaning."""


def explain_name(text: str) -> Document | None:
    """Explains a finding or a figure; None if `text` is not one of them."""
    if (rule := find_rule(text)) is not None:
        return _finding(rule)
    tables: defaultdict[str, list[str]] = defaultdict(list)
    for table, name, meaning in _FIGURES:
        if name == text.lower():
            tables[meaning].append(table)
    meanings = [f"{', '.join(names)}: {meaning}" for meaning, names in tables.items()]
    return [Heading(text.lower()), Paragraphs(meanings, indent=2)] if meanings else None


def names() -> list[str]:
    """Returns everything with a name and an explanation: findings, report words, figures."""
    figures = (name for _, name, _ in _FIGURES)
    return [*(rule.name for rule in RULES.values()), *words(), *figures, *RULES]


def _finding(rule: Rule[Any]) -> Document:
    """Returns the description of a finding."""
    parts = [
        Sentence("meaning", rule.meaning),
        Sentence("what to do", rule.advice),
        *(
            Sentence("" if index else "reported if", sentence)
            for index, sentence in enumerate(sentences(filled(rule.condition)))
        ),
        Sentence("needs", f"{filled(rule.needs)}."),
        Sentence("disproved by", f"{rule.contradicted_by}."),
    ]
    if rule.explained_by:
        causes = " or ".join(f"{RULES[id_].name} ({id_})" for id_ in rule.explained_by)
        parts.append(Sentence("caused by", f"{causes}, if reported as well"))
    parts.append(Sentence("source", rule.source))
    return [Heading(f"{rule.id} {rule.name}"), Sentences(parts, width=14)]


def explain(text: str, note: str | None = None) -> Document | None:
    """Explains the runtime's line in `text`; None if there is none.

    Args:
        text: text with the line.
        note: a remark about the line itself.
    """
    for shape in SHAPES.values():
        if match := re.search(shape.pattern, text):
            return [*_explained(shape, match, note)]
    return _cut_short(text)


def _cut_short(text: str) -> Document | None:
    """Explains the beginning of a truncated cycle line; None for other lines."""
    begin = re.search(r"(?:gc#? ?\d+[ (]|scvg|scav |pacer: ).*", text.rstrip())
    if begin is None:
        return None
    form = _NUMBER.sub("#", begin[0])
    for variant in variants_of(tuple(SHAPES.values())):
        template = (part if isinstance(part, str) else "#" for part in variant.parts)
        if "".join(template).startswith(form):
            numbers = _NUMBER.findall(begin[0])
            names = (field.name for field in variant.fields)
            known = defaultdict(str, zip(names, numbers, strict=False))
            note = "This line is cut short; its last number may lack digits."
            return [*_heading(variant.shape, begin[0], note), *_fields(variant.shape, known)]
    return None


_LONGEST = 40
"""Characters of a value. The meaning of a longer one would not fit next to it."""

_DEATHS = ("oom_kills", "oom_invocations", "unit_events", "container_states", "runtime_fatal")


def explain_death(text: str, report: Report, line_no: int = 1) -> Document | None:
    """Explains a line about a kill or another end of a program; None for other lines.

    Args:
        text: the line.
        report: the report on an input with this line.
        line_no: the number of the line in the input.
    """
    for table in _DEATHS:
        rows = report.analysis.log.tables[table].filter(line_no=line_no)
        if len(rows):
            return [*_death(text, table, rows.row(0, named=True), report)]
    return None


def _death(text: str, table: str, row: Mapping[str, Any], report: Report) -> Iterator[Block]:
    yield Title(f"A line about {schema.ABOUT[table]}", text)
    yield Paragraphs([f"{table}: {schema.ABOUT[table]}"], "dim")
    yield Gap()
    if statement := _what_happened(report, row):
        yield from (Paragraphs([statement], "bold"), Gap())
    known = [
        column
        for column in schema.TABLES[table]
        if row[column.name] is not None and column.name not in ("source", "line_no")
    ]
    for column in known:
        value = row[column.name]
        shown = mib(value / MIB) if column.unit == "B" else f"{value} {column.unit}".strip()
        if isinstance(value, datetime):
            shown = f"{value:%Y-%m-%d %H:%M:%S} UTC"
        elif len(shown) > _LONGEST:
            # The line above has it whole.
            is_group = shown.startswith("/")
            shown = short_name(shown).partition(" in ")[0] if is_group else f"{shown[:27]}…"
        yield Sentences([Sentence(f"{shown}  ", column.meaning, "bold")], width=30)
        yield Sentences([Sentence("", f"{column.name} · {column.source}")], 30, style="dim")


def _what_happened(report: Report, row: Mapping[str, Any]) -> str:
    """Returns what happened at the line, as the verdict covers only one of several deaths."""
    deaths = report.analysis.post_mortems
    if len(deaths) <= 1:
        return headline.verdict(report).sentence
    own = next((death for death in deaths if death.line_no == row["line_no"]), None)
    if own is None:
        return ""
    return printable(" ".join((f"{own.kind}: {own.victim or own.subject}.", *own.reading)))


def _explained(shape: Shape, match: re.Match[str], note: str | None) -> Iterator[Block]:
    yield from _heading(shape, match[0], note)
    if shape.table == "cycles":
        number = _numbers(match)
        unusual = " ".join(_unusual(number)) if "start_s" in number else ""
        yield Paragraphs([unusual or "Nothing unusual in this cycle."], "bold")
        yield Sentences([Sentence(*figure) for figure in _derived(number)], width=14)
        yield Gap()
        yield Heading("Field by field")
    yield from _fields(shape, match.groupdict())


def _heading(shape: Shape, line: str, note: str | None) -> Iterator[Block]:
    yield Title("A line of the Go runtime", line)
    file = _FILES.get(shape.id) or _TABLE_FILES.get(shape.table, "runtime/mgc0.c, gc")
    yield Paragraphs([f"{_versions(shape)} ({shape.id}) · {file}"], "dim")
    if note:
        yield Paragraphs([note], "yellow")
    yield Gap()


def _versions(shape: Shape) -> str:
    if shape.go_max is None:
        return f"Go {shape.go_min} and later"
    return f"Go {' to '.join(dict.fromkeys((shape.go_min, shape.go_max)))}"


def _fields(shape: Shape, match: Mapping[str, str]) -> Iterator[Block]:
    """Yields the meaning of each number and flag of a line, and its source in the runtime."""
    columns = {column.name: column for column in schema.TABLES.get(shape.table, ())}
    for name in (*(field.name for field in shape.fields), *shape.flags):
        if not match[name]:
            continue
        column, value, source = columns.get(name), match[name].strip(), name
        if column is None:
            unit, meaning = _OTHERS.get(name, ("", name.replace("_", " ")))
        else:
            unit, meaning = column.unit, column.meaning.partition("; null:")[0]
            source = f"{name} · {_of_release(column.source, shape.go_min)}"
        shown = f"{f'{value} {unit}'.strip():>12}  "
        yield Sentences([Sentence(shown, meaning, "bold")], width=14)
        yield Sentences([Sentence("", source)], width=14, style="dim")


_OLDER = re.compile(r"; (?:up to )?Go (?:1\.\d+–)?(1\.\d+)(?! and later)[^;]*")
"""A clause about the releases up to a version."""


def _of_release(source: str, go_min: str) -> str:
    """Returns the source of a column without clauses that only concern releases before `go_min`.

    >>> _of_release("work.tEnd; Go 1.4 and earlier: the whole collection", "1.18")
    'work.tEnd'
    """
    return _OLDER.sub(lambda old: old[0] * (version_key(old[1]) >= version_key(go_min)), source)


def _numbers(match: re.Match[str]) -> dict[str, float]:
    return {
        name: float(value)
        for name, value in match.groupdict().items()
        if value and re.fullmatch(r"[-+]?\d+(\.\d+)?", value)
    }


def _unusual(number: Mapping[str, float]) -> Iterator[str]:
    """Yields what a cycle costs the program, if more than usual."""
    t = DEFAULT
    if _frees_little(number):
        live, goal = number["heap_live_mib"], number["heap_goal_mib"]
        yield (
            f"The cycle freed little: {live:.0f} MiB are live at a goal of {goal:.0f}. The live "
            "heap grows, or a memory limit leaves it no room."
        )
    if (longest := max(number[name] for name in _PAUSES)) >= t.stw_warn_ms:
        # The line does not show how much of it was spent waiting for goroutines to stop.
        yield f"Long pause: {longest:g} ms, with the wait until all goroutines had stopped."
    part = _parts(number).get("mark assists", 0.0)
    # If GC CPU is low, even a large part of it costs little.
    if part >= t.assist_warn and _assisting(number) >= t.assist_min_cpu_share:
        yield f"Mark assists were {share(part)} of its GC CPU: they slow goroutines that allocate."
    if (percent := number.get("gc_cpu_since_start_pct", 0.0)) >= 100 * t.gc_cpu_warn:
        yield f"GC has taken {percent:.0f} % of the CPU since the program started."


_LITTLE = 0.1
"""Share of the heap goal. If a cycle leaves less of it free, the next one follows soon."""


def _frees_little(number: Mapping[str, float]) -> bool:
    """Returns whether most of the heap was live, after the start-up, in which heaps grow."""
    goal = number.get("heap_goal_mib", NO_GOAL_MIB)
    is_usual = number["start_s"] < DEFAULT.warm_up_s or goal in (HEAP_MINIMUM_MIB, NO_GOAL_MIB)
    return not is_usual and number["heap_live_mib"] > (1 - _LITTLE) * goal


_MARKING = ("assist", "background", "idle")
_PAUSES = ("stw_sweep_term_ms", "stw_mark_term_ms")


def _parts(number: Mapping[str, float]) -> dict[str, float]:
    """Returns the share of each part in the GC CPU of the line, without idle marking."""
    paused = sum(number.get(f"{name[:-2]}cpu_ms", 0.0) for name in _PAUSES)
    assist, background = number["assist_cpu_ms"], number["background_cpu_ms"]
    parts = {"mark assists": assist, "background workers": background, "pauses": paused}
    all_ms = sum(parts.values())
    return {name: part / all_ms for name, part in parts.items()} if all_ms else {}


def _assisting(number: Mapping[str, float]) -> float:
    """Returns the share of all CPU that assists took during marking; all of it if unknown."""
    marking_ms = _mark_ms(number) * number["procs"]
    return number["assist_cpu_ms"] / marking_ms if marking_ms else 1.0


def _mark_ms(number: Mapping[str, float]) -> float:
    return number.get("concurrent_mark_ms") or sum(
        number.get(name, 0.0) for name in ("scan_ms", "install_barrier_ms", "mark_ms")
    )


def _derived(number: dict[str, float]) -> Iterator[tuple[str, str]]:
    """Yields the figures that people would derive from the line."""
    if "start_s" not in number:
        phases = [value for name, value in number.items() if name.startswith("phase_")]
        unit = "µs" if "phase_1_us" in number else "ms"
        yield "Pause", f"{sum(phases):g} {unit}: the world was stopped for the whole collection"
        return
    pauses = number["stw_sweep_term_ms"] + number["stw_mark_term_ms"]
    yield "Pauses", f"{pauses:.3g} ms in two parts (the runtime truncates what it prints)"
    mark = _mark_ms(number)
    end_s = number["start_s"] + (pauses + mark) / 1000
    yield "Ended", f"about {end_s:.3f} s after the start of the process"
    yield from _cpu(number, mark)
    yield from _heap(number)


def _cpu(number: dict[str, float], mark_ms: float) -> Iterator[tuple[str, str]]:
    assist, background, idle = (number[f"{who}_cpu_ms"] for who in _MARKING)
    if parts := _parts(number):
        shares = ", ".join(f"{name} {share(part)}" for name, part in parts.items())
        yield "GC CPU", f"of this cycle: {shares}"
    if idle:
        marked = share(idle / (assist + background + idle))
        yield "Idle CPUs", f"did {marked} of the marking, which GC CPU does not include"
    if mark_ms:
        busy = (assist + background) / (mark_ms * number["procs"])
        aim = "25 %" if "stacks_mib" in number else "25 % (Go 1.10 to 1.17: 30 %)"
        took = f"{100 * busy:.0f} % of the CPU without idle marking; the pacer aims at {aim}"
        # The runtime measures workers by the clock, even while they wait for a CPU.
        waited = (
            "its goroutines waited for a CPU (quota, other programs): its CPU time is too high"
        )
        yield "While marking", waited if busy > 1 else took


def _heap(number: dict[str, float]) -> Iterator[tuple[str, str]]:
    start, end, live = (number[f"heap_{when}_mib"] for when in ("start", "end", "live"))
    yield "Allocated", f"{end - start:.0f} MiB while marking"
    if end:
        survived = f"{100 * live / end:.0f} % of the heap survived"
        yield "Garbage", f"{end - live:.0f} MiB found, {survived}"
    goal = number.get("heap_goal_mib")
    if goal and goal < NO_GOAL_MIB and end > goal:
        yield "Overshoot", f"the heap ended {end - goal:.0f} MiB above its goal"
    if _frees_little(number):
        return  # GOGC=100 without a limit would have left more.
    roots = number.get("stacks_mib", 0) + number.get("globals_mib", 0)
    next_goal = max(goal_mib(live, roots, gogc=100), HEAP_MINIMUM_MIB)
    yield "Next goal", f"about {next_goal:.0f} MiB at GOGC=100 without a memory limit"
