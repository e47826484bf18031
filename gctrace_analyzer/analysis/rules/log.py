"""Rules about the log itself, the Go that wrote it, and what stands beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.analysis.rules.finding import Facts, Finding, examples

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gctrace_analyzer.analysis.postmortem.memory import Memory
    from gctrace_analyzer.analysis.postmortem.report import PostMortem

_BEFORE_16 = ("gc10", "gc11", "gc12x", "gc13", "gc14", "gc15")
HELD_MIB = 64.0


def log(f: Facts) -> Iterator[Finding]:
    """GC041, GC042."""
    s, t = f.summary, f.thresholds
    check, limit = s.log_check_points, t.check_points_new if f.new_pacer else t.check_points_old
    if f.missing_cycles or (check is not None and abs(check) > limit):
        parts = []
        if f.missing_cycles:
            parts.append(
                f"{f.missing_cycles:,} of {f.missing_cycles + s.cycles:,} cycles have no line"
            )
        if check is not None and abs(check) > limit:
            parts.append(f"its own percentage is off by {abs(check):.1f} points")
        figures = {"missing_cycles": f.missing_cycles, "log_check_points": check}
        yield Finding("GC041", "info", "; ".join(parts), figures)
    span = s.span_s
    if s.cycles < t.short_log_cycles or (span is not None and span < t.short_log_s):
        time = "" if span is None else f" in {span:.3g} s"
        yield Finding(
            "GC042", "info", f"{s.cycles:,} cycles{time}", {"cycles": s.cycles, "span_s": span}
        )


def old_go(f: Facts, found: Sequence[Finding]) -> Iterator[Finding]:
    """GC043, where upgrading would help with what was found."""
    shapes = {str(shape) for shape in f.cycles["format"].unique()}
    helped = [each.id for each in found if each.id in ("GC005", "GC009", "GC010")]
    if shapes & set(_BEFORE_16):
        yield Finding(
            "GC043",
            "warn",
            "lines of Go 1.5 or before",
            {"formats": sorted(shapes)},
            examples=examples(f.cycles),
        )
    elif not f.new_pacer and helped:
        yield Finding(
            "GC043", "info", f"Go 1.17 or before, and {', '.join(helped)}", {"findings": helped}
        )


def beside(memories: Iterable[Memory], deaths: Iterable[PostMortem]) -> Iterator[Finding]:
    """GC036 to GC040, from dumps and records of deaths."""
    for each in memories:
        used = (each.held_mib or 0) - (each.idle_unreleased_mib or 0)
        loose = each.fragmentation_mib
        if loose is not None and used and loose > max(HELD_MIB, 0.3 * used):
            text = f"{loose:,.0f} of {used:,.0f} MiB in use hold no objects"
            yield Finding("GC036", "info", text, {"fragmentation_mib": loose})
        idle, whole = each.idle_unreleased_mib, each.sys_mib or each.heap_sys_mib
        if idle is not None and whole and idle > max(HELD_MIB, 0.25 * whole):
            text = f"{idle:,.0f} of {whole:,.0f} MiB are idle and not given back"
            yield Finding("GC037", "warn", text, {"idle_unreleased_mib": idle})
    for death in deaths:
        where = (f"{death.source}:{death.line_no}",) if death.source else ()
        if not death.proven:
            yield Finding(
                "GC040",
                "warn",
                "exit code 137 without a record of a kill",
                process=death.process,
                examples=where,
            )
            continue
        text = f"{death.kind}{f': {death.victim}' if death.victim else ''}"
        yield Finding(
            "GC039", "bad", text, {"gap_s": death.gap_s}, process=death.process, examples=where
        )
        off, resident = death.off_heap_mib, death.resident_mib
        if off is not None and resident and off > 0.2 * resident:
            text = f"{off:,.0f} of {resident:,.0f} MiB resident are not the last cycle's heap"
            yield Finding("GC038", "info", text, {"off_heap_mib": off}, process=death.process)
