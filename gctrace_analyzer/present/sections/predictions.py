"""What-if tables and recommendations as documents, with their starting point."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.advise.phrases import order
from gctrace_analyzer.advise.prediction.model import Setting
from gctrace_analyzer.advise.subject import BURSTS
from gctrace_analyzer.advise.whatif import above_live_heap, is_measured, saved_by_less
from gctrace_analyzer.present.document import Gap, Paragraphs, Sentence, Sentences
from gctrace_analyzer.present.format import mib_per_s
from gctrace_analyzer.present.sections import advice, headline
from gctrace_analyzer.present.sections.report import title
from gctrace_analyzer.present.sections.without_cycles import HOLDS
from gctrace_analyzer.units import digits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import polars as pl

    from gctrace_analyzer.advise.prediction.outcome import Predictor
    from gctrace_analyzer.present.document import Block, Document
    from gctrace_analyzer.present.report import Report

_LOADS = {
    "fixed-rate": "fixed rate (allocation does not depend on GC)",
    "cpu-bound": "as fast as the CPU allows",
    "between": "between fixed rate and as fast as the CPU allows",
}


def whatif(report: Report, rows: pl.DataFrame, evidence: Sequence[Report] = ()) -> Document:
    """Returns the predictions of `rows` (`schema.WHATIF`), with their notes."""
    notes = [*_notes_on_predictions(report, rows)]
    if not rows["heap_peak_mib"].count() + rows["gc_per_s"].count():
        # Without a single figure, the reason says all.
        steps = [f"▸ {text}" for label, text in notes if label == "▸"]
        texts = [text for label, text in notes if label != "▸"]
        return [title(report), Gap(), Paragraphs(texts), Paragraphs(steps, hanging=2)]
    table = advice.predictions(rows, report.advice.baseline)
    blocks: list[Block] = [title(report), table, _labelled(notes)]
    if report.advice.baseline.load and _has_predictions(rows):
        blocks += [*_basis(report, rows, evidence)]
    if signs := advice.legend(table, report):
        blocks.append(Paragraphs([signs], "dim", indent=2))
    return blocks


def recommend(report: Report, rows: pl.DataFrame, evidence: Sequence[Report] = ()) -> Document:
    """Returns the recommendations of `rows` (`schema.RECOMMENDATIONS`), or why there are none."""
    baseline = report.advice.baseline
    rows = advice.after_death(rows, report)
    is_first = headline.is_of_death(report) or not rows["why"][0]
    first: list[Block] = [Gap(), headline.verdict(report), Gap()] if is_first else []
    if not report.advice.is_available:
        said, _, remedy = advice.refusal(report).partition(_IF_IT_WAS)
        steps = [] if first else _steps(report, rows, said, remedy)
        refusal = [*(first or [Gap()]), Paragraphs([said]), *steps]
        return [title(report), *refusal, _labelled(_notes(report))]
    table = advice.advice(rows, baseline)
    blocks: list[Block] = [title(report), *first, table]
    blocks += [
        _labelled(advice.reasons(rows, baseline)),
        _labelled(_notes(report)),
        _labelled(("Ballast", text) for text in advice.ballast_notes(baseline, rows)),
        *_basis(report, rows, evidence),
    ]
    if signs := advice.legend(table, report):
        blocks.append(Paragraphs([signs], "dim", indent=2))
    return blocks


def _labelled(sentences: Iterable[tuple[str, str]]) -> Sentences:
    return Sentences([Sentence(label, text, "bold") for label, text in sentences])


_IF_IT_WAS = " If it was that, "
"""Beginning of what to do where only a fact is missing (`refusal.state_gogc`)."""


_STATE_CONTAINER = (
    "For a GOMEMLIMIT, add the memory limit of its container (`--container-limit 512MiB`)."
)


def _steps(report: Report, rows: pl.DataFrame, said: str, remedy: str) -> Iterator[Block]:
    """Yields what to do where nothing but perhaps a memory limit can be recommended."""
    first = rows.row(0, named=True)
    if remedy:
        action = f"{_IF_IT_WAS.lstrip()}{remedy}"
    elif first["now"]:
        # The profile shows what holds the heap, which no setting follows from.
        action = headline.verdict(report).action.removesuffix(HOLDS).rstrip()
        base, of_dumps = report.advice.baseline, report.analysis.cycles.is_empty()
        is_sized = base.least_limit_mib is not None and base.has_limit and not base.endless
        if is_sized and of_dumps and base.room_mib is None and not base.now.limit:
            action = f"{_STATE_CONTAINER}\n{action}"
    else:
        action = order(first, report.advice)
    if action and action[1:] not in said:
        yield Paragraphs([f"▸ {step}" for step in action.split("\n")], hanging=2)


def _has_predictions(rows: pl.DataFrame) -> bool:
    """Returns whether a setting is predicted, other than the present one beside others."""
    tried = rows.filter(~rows["now"])
    return bool((tried if len(tried) else rows)["refused"].null_count())


def _notes_on_predictions(report: Report, rows: pl.DataFrame) -> Iterator[tuple[str, str]]:
    baseline = report.advice.baseline
    for text in dict.fromkeys(rows["refused"].drop_nulls()):
        peaks = rows.filter(rows["refused"] == text)["heap_peak_mib"].count()
        none = "Only the peak is predicted" if peaks else "No prediction"
        own = text.replace("`--gogc ", "`--gogc-now ")
        yield "Note", f"{none}: {own}."
    shown = headline.verdict(report)
    if not report.advice.is_available and shown.level == "none" and shown.action:
        yield "▸", shown.action
    yield from _notes(report)
    for text in baseline.warnings if _has_predictions(rows) else ():
        yield "Note", text
    # The sign in front of a setting says that it thrashes, or may.
    settings = [Setting.of(row) for row in rows.iter_rows(named=True) if row["thrash"] != "no"]
    notes = [
        (baseline.near_live_heap(setting) or "").partition(": ")[0] for setting in settings
    ]
    for near in dict.fromkeys(filter(None, notes)):
        several = f" and {notes.count(near) - 1} more" if notes.count(near) > 1 else ""
        yield (
            "Note",
            f"{advice.as_text(settings[notes.index(near)], baseline)}{several}: {near}",
        )
    for text in (*advice.beyond_container(rows, baseline), *above_live_heap(rows, baseline)):
        yield "Note", text
    if not baseline.refused:
        for text in advice.ballast_notes(baseline, rows):
            yield "Ballast", text
    for text in dict.fromkeys(advice.lasting(rows)):
        yield "Lasts", text
    yield from _saved(rows)
    predicted = rows.filter(rows["gc_per_s"].is_not_null()).to_dicts()
    for row in [row for row in predicted if not is_measured(row)][:1]:
        yield advice.confidence(row, baseline)


def _saved(rows: pl.DataFrame) -> Iterator[tuple[str, str]]:
    """Yields the saving from less allocation under each setting."""
    for setting, cores in saved_by_less(rows):
        low, middle, high = (digits(end, 2) for end in cores)
        yield (
            "Saves",
            f"{middle} cores of GC ({low} to {high}): {advice.as_text(setting)}. The live heap is "
            "assumed to stay as it is.",
        )


def _notes(report: Report) -> Iterator[tuple[str, str]]:
    """Yields labelled sentences on options that do not fit the input."""
    if (ignored := report.analysis.ignored_version) is not None:
        yield "Note", ignored


def _basis(report: Report, rows: pl.DataFrame, evidence: Sequence[Report]) -> Iterator[Block]:
    """Yields the measurements that the predictions start from."""
    baseline = report.advice.baseline
    if baseline.load is None:
        return
    # Without a prediction of GC CPU, the load does not matter.
    load = "" if baseline.refused else f"load: {_load(baseline)}; "
    text = (
        f"Predicted from {advice.as_text(baseline.now, baseline)}, "
        f"{baseline.load.cycles:,} steady cycles{_also(evidence)}; {load}80 % intervals"
        f"{advice.horizon_text(rows)}."
    )
    yield Paragraphs([text], "dim", indent=2)


def _load(baseline: Predictor) -> str:
    """Returns the kind of load.

    That the CPU limits it is not proven: a program that sleeps allocates more slowly during marking
    as well.
    """
    load, text = baseline.load, _LOADS[baseline.load_model]
    if baseline.load_model == "fixed-rate" and BURSTS in baseline.warnings:
        return f"not known. The prediction assumes a {text}"
    if baseline.load_model == "fixed-rate" and load and not load.shows_rate_in_mark:
        return (
            "not known, as the log does not show whether marking slows the program down. The "
            f"prediction assumes a {text}"
        )
    if baseline.is_slowed and load:
        return (
            "fixed rate assumed, although the program allocates "
            f"{mib_per_s(load.alloc_in)} while GC is marking and {mib_per_s(load.alloc_off)} "
            "otherwise"
        )
    if baseline.load_model != "cpu-bound" or load is None:
        return text
    if load.has_spare_cpu:
        return (
            "not known, as marking ran on idle CPUs. The prediction is for a program that "
            f"allocates {text}"
        )
    return f"probably {text}"


def _also(evidence: Sequence[Report]) -> str:
    """Returns the settings of the other runs; for unusable runs, with the reason."""
    parts = []
    for report in evidence:
        baseline = report.advice.baseline
        if baseline.load is None or baseline.no_evidence:
            name = report.analysis.log.sources[0].name
            parts.append(f" ({name} is not used: {baseline.no_evidence})")
        else:
            cycles = f"{baseline.load.cycles:,} steady cycles"
            parts.append(f" and from {advice.as_text(baseline.now, baseline)}, {cycles}")
    return "".join(parts)
