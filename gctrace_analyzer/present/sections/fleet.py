"""The summary of a fleet as rows of text, for the terminal and for Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.analysis.fleet.service_problems import COUNTS, KINDS
from gctrace_analyzer.analysis.metrics.typical import ENABLE
from gctrace_analyzer.analysis.rules.finding import percent
from gctrace_analyzer.present.document import (
    Figures,
    Folded,
    Gap,
    Heading,
    KeyFigure,
    Paragraphs,
    Statement,
    Title,
)
from gctrace_analyzer.present.fleet_sizes import cores, size_unit
from gctrace_analyzer.present.fleet_tables import measured, rankings
from gctrace_analyzer.present.format import count, in_words, live_heap, mib, printable, share
from gctrace_analyzer.present.sections.headline import WORDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gctrace_analyzer.analysis.fleet.answers import Answers
    from gctrace_analyzer.analysis.fleet.changes import Changes
    from gctrace_analyzer.present.document import Block, Document

MOST_ROWS = 10

_NAMES = 3
"""Names in a sentence."""


def document(answers: Answers, most: int = MOST_ROWS) -> Document:
    """Returns the summary: what was read, headline figures, changes, ranked tables, notes.

    Tables on anything except problems and changes go beyond one screen.
    """
    first, *others = facts(answers)
    tables = rankings(answers, most)
    urgent = [ranked for ranked in tables if ranked.says_first]
    rest = [ranked.table() for ranked in tables if not ranked.says_first]
    changes: list[Block] = (
        [] if answers.changes is None else [Gap(), Heading(since(answers.changes))]
    )
    return [
        Title("Go garbage collection of a fleet"),
        Paragraphs([first], "bold"),
        *(Paragraphs([text.strip()], indent=2) for text in others),
        Gap(),
        verdict(answers),
        Gap(),
        Figures([KeyFigure(*figure) for figure in state(answers)], wide=True),
        *changes,
        *(ranked.table() for ranked in urgent),
        Folded("More tables", lambda: [*rest, *_of(notes(answers))], _of(to_do(answers))),
    ]


def _of(notes: Sequence[str]) -> list[Block]:
    return [Gap(), Paragraphs(notes, "dim", indent=2)] if notes else []


def facts(answers: Answers) -> list[str]:
    """Returns how much was read, and what could not be used."""
    t = answers.totals
    read = [
        *([count(t.files, "file")] if t.files else []),
        count(t.processes, "process", "processes")
        + (f" of {count(t.services, 'service')}" if t.services and not t.unnamed else ""),
        *([count(t.cycles, "cycle")] if t.cycles or not t.single else []),
    ]
    less = {
        "could not be read": t.unread,
        "read only in part": t.damaged,
        "without GC cycles": t.without_program,
        f"single {'dump' if t.single == 1 else 'dumps'}, with totals only": t.single,
        ("process" if t.short == 1 else "processes")
        + " with too few cycles to judge alone": t.short,
        "killed for memory": t.killed,
    }
    parts = [f"{number:,} {what}" for what, number in less.items() if number]
    return [" · ".join(read), *(["  " + " · ".join(parts)] if parts else [])]


def verdict(answers: Answers) -> Statement:
    """Returns how many processes have which problem, why, and what to do first."""
    t, problems = answers.totals, answers.problems
    if problems.is_empty() and t.processes == t.single > 0:
        return Statement("none", WORDS["none"], *_OF_SINGLE)
    if problems.is_empty():
        level = "ok" if t.processes else "none"
        calm = "No process is thrashing, close to its memory limit or killed for memory."
        action = "Optional: new settings for some processes, below." if t.advised else ""
        return Statement(
            level, WORDS[level], calm if t.processes else "No GC cycles were found.", action
        )
    suffering = " ".join(_suffering(problems))
    first, *then = map(_first_step, problems.head(3).to_dicts())
    action = f"Start with {first}." + (f" Then {'; '.join(then)}." if then else "")
    is_bad = (problems[COUNTS[0]] + problems[COUNTS[1]]).sum() > 0
    level = "bad" if is_bad else "warn"
    return Statement(level, WORDS[level], printable(suffering), printable(action))


_OF_SINGLE = (
    "Single dumps are not judged: they show totals since the start of a process, not whether it "
    "is thrashing or what GC costs now.",
    "To judge a process, record several dumps with their times in its file, or run it with "
    "GODEBUG=gctrace=1 and keep its standard error.",
)


def _first_step(row: Mapping[str, Any]) -> str:
    """Returns what to do first for a service, and in which of its processes."""
    affected, processes = row["affected"], row["processes"]
    where = f", in {affected:,} of {processes:,} processes" if affected < processes else ""
    only = f", only in {row['only_in']}" if row["only_in"] else where
    to_do = row["to_do"]
    if to_do[1:2].islower():  # A sentence, not a setting such as GOGC=100.
        to_do = to_do[0].lower() + to_do[1:]
    return f"{row['service']}: {to_do}{only}"


_SUFFER = (
    ("was killed for memory", "were killed for memory"),
    ("is thrashing", "are thrashing"),
    ("is close to its memory limit", "are close to their memory limits"),
    ("thrashed earlier", "thrashed earlier"),
    ("has another problem", "have other problems"),
)
"""Words for one and for several affected processes, in the order of `COUNTS`."""


def _suffering(problems: pl.DataFrame) -> Iterator[str]:
    """Yields how many processes have each problem, and why they thrash."""
    is_first = True
    for column, (one, several) in zip(COUNTS, _SUFFER, strict=True):
        own = problems.filter(pl.col(column) > 0)
        if number := int(own[column].sum()):
            of = own["service"][0] if len(own) == 1 else f"{len(own):,} services"
            what = one if number == 1 else several
            if column == "thrashing":
                what += _why(own)
            elif column == COUNTS[-1]:
                what = what.replace("another", "a").replace("other ", "") if is_first else what
                what += f": {_counted(own['other_problems'].explode())}"
            is_first = False
            yield f"{count(number, 'process', 'processes')} of {of} {what}."


def _why(thrashing: pl.DataFrame) -> str:
    """Returns the cost of thrashing, and its cause if all processes have the same."""
    largest = thrashing["gc_cpu_share"].max()
    limit = ": GOMEMLIMIT is too low for the live heap"
    cause = limit if thrashing["needed_limit_mib"].is_not_null().all() else ""
    if not isinstance(largest, float):
        return cause
    most = "up to " if thrashing["thrashing"].sum() > 1 else ""
    return (
        f"{cause or ':'}{', and' if cause else ''} GC takes {most}{percent(largest)} of the CPU"
    )


def state(answers: Answers) -> list[tuple[str, str, str]]:
    """Returns the headline figures: cores spent on GC, thrashing, possible savings."""
    t = answers.totals
    figures = []
    if t.gc_cores is not None:
        of = f"of {cores(t.cores)}" + (f" ({share(t.gc_cores / t.cores)})" if t.cores else "")
        with_idle = ""
        if t.gc_with_idle_cores is not None:
            with_idle = f"; {cores(t.gc_with_idle_cores)} with idle marking"
        figures.append(("GC CPU", f"{cores(t.gc_cores)} cores", of + with_idle))
    near = len(answers.thrash) - t.thrashing
    if t.processes == t.single > 0:
        return figures
    figures.append(("Thrashing", f"{t.thrashing:,} now", f"{near:,} earlier or nearly"))
    if t.growing:
        heaps = answers.processes.filter("growing").sort("live_heap_max_mib", descending=True)
        name, least, most = heaps.select("name", "live_heap_p50_mib", "live_heap_max_mib").row(
            0
        )
        which = "" if t.growing == 1 else "the largest: "
        grown = (
            f"{which}{printable(name)}, live heap up to {mib(most)} (median {live_heap(least)})"
        )
        figures.append(("Growing", count(t.growing, "process", "processes"), grown))
    if t.advised:
        ends = (t.saved_cores_low, t.saved_cores_high)
        others = bool(t.thrashing) and not answers.thrash["advice_changes"].any()
        of_whom = "other process" if others else "process"
        whose = count(t.advised, of_whom, f"{of_whom}es")
        by = f"of GC CPU with idle marking, by new settings for {whose}"
        figures.append(_change(t.saved_cores, ends, "cores", cores, by))
        heap = (t.saved_heap_mib_low, t.saved_heap_mib_high)
        unit, written = size_unit(t.saved_heap_mib, *heap)
        same = "of heap for the same processes"
        figures.append(_change(t.saved_heap_mib, heap, unit, written, same))
    elif t.processes:
        figures.append(_without_settings(answers))
    return figures


def _without_settings(answers: Answers) -> tuple[str, str, str]:
    """Returns what to do for processes without another recommended setting."""
    t = answers.totals
    unknown = t.processes - t.to_fix - t.unchanged
    parts = (
        "to fix first" * bool(t.to_fix),
        f"{count(t.unchanged, 'process needs', 'processes need')} no change"
        * bool(t.unchanged),
        f"no recommendation for {unknown:,}" * bool(unknown),
    )
    value = count(t.to_fix, "process", "processes") if t.to_fix else "none"
    return ("Advice", value, "; ".join(filter(None, parts)))


def _change(
    saved: float,
    ends: tuple[float, float],
    unit: str,
    written: Callable[[float | None], str],
    what: str,
) -> tuple[str, str, str]:
    low, high = ends
    if low < 0 < high:
        both = f"{what}: costs up to {written(-low)}, saves up to {written(high)} {unit}"
        return ("Saves", "unclear", both)
    near, far = sorted(map(abs, ends))
    note = f"{what} ({written(near)} to {written(far)})"
    return ("Saves" if saved >= 0 else "Costs", f"{written(abs(saved))} {unit}", note)


def notes(answers: Answers) -> list[str]:
    """Returns sentences on how figures were computed, and how to improve them."""
    t = answers.totals
    sentences = []
    if t.gc_cores is not None:
        sentences.append(
            "GC cores: CPU seconds spent on GC per second, without idle marking, summed over all "
            + ("files as if their processes ran at the same time." if t.files else "processes.")
        )
    if answers.history is not None:
        runs = ", ".join(map(printable, answers.history.runs))
        sentences.append(
            f"Services over all runs: one bar for each of {runs}, from 0 to the service's largest "
            "value; blank where the service is missing."
        )
    if t.advised:
        sentences.append(
            "Savings: the recommended against the present setting, with idle marking, for the "
            "last process of each file; 80 % intervals."
        )
    return [*sentences, *to_do(answers)]


def to_do(answers: Answers) -> list[str]:
    """Returns sentences on how to get better figures."""
    t = answers.totals
    sentences = [*_legend(answers)]
    if t.unmeasured:
        whose = count(t.unmeasured, "process shows", "processes show")
        order = "its" if t.unmeasured == 1 else "their"
        unmeasured = answers.processes.filter(pl.col("gc_cpu_share").is_null())
        scraped = unmeasured.join(answers.memory, on=("file", "process"), how="semi")
        exported = f" One line of Go in place of the default collector exports it: {ENABLE}."
        sentences.append(
            f"{whose} no GC CPU, and {order} order follows cycles/s × live heap."
            f"{exported * (len(scraped) > 0)}"
        )
    if t.unnamed and t.files:
        unnamed = answers.processes.filter(~pl.col("named"))
        example = f", such as {printable(unnamed['name'][0])}" if len(unnamed) else ""
        sentences.append(
            f"{count(t.unnamed, 'process has', 'processes have')} the name of the file as the "
            f"service{example}, because nothing else names it; `--id "
            "'{service}/{pod}.log'` (in Python, `id=`) reads the service from such paths."
        )
    elif answers.processes["by_folder"].any():
        sentences.append(
            "Services have the names of their folders. A pattern for paths names them otherwise: "
            "`--id '{service}.log'` (in Python, `id=`) makes each file a service."
        )
    return sentences


def _legend(answers: Answers) -> Iterator[str]:
    """Yields what the columns mean, and how the tables are sorted, of those that are shown."""
    services = measured(answers)
    about = {
        "gc_cpu_share": "GC CPU is a share of the CPU of a service",
        "assist_share_of_gc_cpu": "assists are mark assists as a share of its GC CPU",
        "stw_p99_ms": "pauses p99 are those of its worst process",
        # A server gives means over time.
        "live_heap_p50_mib": "live heaps are medians over the cycles"
        * (answers.totals.files > 0),
    }
    of_several = pl.col("needed_limit_mib").is_not_null() & (pl.col("processes") > 1)
    orders = (
        "the limit to set for a service has room for the largest live heap of all its processes"
        * bool(answers.problems.select(of_several.any()).item()),
        f"services to fix are sorted by their worst problem ({', '.join(KINDS)}, others), then by "
        "GC cores" * bool(len(answers.problems)),
        "services by GC CPU are sorted by GC cores" * (services["gc_cores"].count() > 0),
    )
    shares = ", ".join(text for name, text in about.items() if text and services[name].count())
    parts = (shares, "; ".join(filter(None, orders)))
    if text := ". ".join(f"{part[0].upper()}{part[1:]}" for part in parts if part):
        yield f"{text}."
    if len(answers.single):
        yield (
            "GC CPU, cycles and the longest pause of a single dump are of the time since the start "
            "of its process."
        )


def since(changes: Changes) -> str:
    """Returns in one sentence what changed since the earlier run."""
    most = pl.coalesce("gc_cores_after", "gc_cores_before")
    services = changes.services.sort(most, descending=True, nulls_last=True)
    several = (
        (changes.thrashing.filter(state="new"), "newly thrashing"),
        (changes.thrashing.filter(state="solved"), "no longer thrashing"),
        (services.filter(presence="new"), "new"),
        (services.filter(presence="gone"), "gone"),
    )
    parts = [
        f"{count(len(rows), 'service')} {what} ({_names(rows['service'])})"
        for rows, what in several
        if len(rows)
    ]
    if len(changes.figures):
        changed = count(changes.figures["service"].n_unique(), "service")
        parts.append(f"{changed} changed by more than 10 %")
    cores_then = changes.gc_cores_before
    then = "" if cores_then is None else f" (GC CPU then: {cores(cores_then)} cores)"
    return f"Since {printable(changes.since)}{then}: {'; '.join(parts) or 'no change'}."


def _counted(values: pl.Series) -> str:
    """Returns the most frequent names and, if they differ, the number of each."""
    counts = values.value_counts(sort=True, name="number").sort(
        "number", values.name, descending=[True, False]
    )
    if len(counts) == 1:
        return in_words(counts[values.name][0])
    parts = [f"{number:,} with {in_words(name)}" for name, number in counts.head(_NAMES).rows()]
    rest = int(counts["number"][_NAMES:].sum())
    other = f"{rest:,} with {'another' if rest == 1 else 'others'}"
    return ", ".join([*parts, *([other] if rest else [])])


def _names(values: pl.Series) -> str:
    """Returns the first of some names, and the number of others."""
    names = [printable(name) for name in values.unique(maintain_order=True)]
    others = [f"{len(names) - _NAMES:,} more"] if len(names) > _NAMES else []
    return ", ".join([*names[:_NAMES], *others])
