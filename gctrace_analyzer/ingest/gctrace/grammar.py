"""The line formats ("shapes") that Go 1.0 to 1.27 print, each defined once.

A shape is a template: literal text, `{field:kind}`, and `«…»` for an optional part
(`«…|flag»` sets a flag if it is present). The regular expression derives from the template, and
so do the formats that the compiled core reads, and the skeletons (the line without digits and dots)
by which `torn` finds the rest of a record.

Sources: the print statements of each release: src/pkg/runtime/mgc0.c (Go 1.0–1.4),
runtime/mgc.go, mgcpacer.go, mgcsweep.go, mgcscavenge.go, mheap.go, mgcmark*.go (since).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product

from gctrace_analyzer.frozen import frozen

KINDS = {
    "int": r"\d+",
    "sint": r"-?\d+",
    "dec": r"\d+(?:\.\d+)?",
    # The runtime's print of a float64: +2.500000e-001 up to Go 1.25, 0.25 from 1.26.
    "float": r"[+-]?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|Inf|NaN)",
    "size": r"\d+|0x[0-9a-f]+",
    "word": r"L|\d+B",
}
INTEGER_KINDS = ("int", "sint")
FLOAT_KINDS = ("dec", "float")

_PIECE = re.compile(r"\{(?P<field>\w+):(?P<kind>\w+)\}|(?P<open>«)|\|(?P<flag>\w+)»|»")


def version_key(version: str) -> tuple[int, ...]:
    """Returns a key that sorts Go versions.

    >>> version_key("1.9") < version_key("1.10")
    True
    """
    return tuple(int(number) for number in version.split("."))


@frozen
class Field:
    """A number or word of a line: its name, and the kind of its text (`KINDS`)."""

    name: str
    kind: str


@frozen
class Optional:
    """An optional part of a line; `flag` names the column that is true if it is present."""

    parts: tuple[str | Field, ...]
    flag: str | None


Part = str | Field | Optional


@dataclass(frozen=True, eq=False)
class Shape:
    """One line format, printed by Go `go_min` to `go_max` (None: up to the newest release).

    Each shape exists once and is compared by identity; caches of patterns use shapes as keys.
    """

    id: str
    table: str
    go_min: str
    go_max: str | None
    template: str

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The literals, fields and optional parts of the template, in order."""
        return _parsed(self.template)

    def is_before(self, version: str) -> bool:
        """Returns whether only Go releases before `version` print this shape.

        >>> SHAPES["gc15"].is_before("1.6"), SHAPES["gc16"].is_before("1.6")
        (True, False)
        """
        return self.go_max is not None and version_key(self.go_max) < version_key(version)

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """All fields in order, including optional ones."""
        return tuple(
            piece
            for part in self.parts
            for piece in (part.parts if isinstance(part, Optional) else (part,))
            if isinstance(piece, Field)
        )

    @cached_property
    def required(self) -> tuple[Field, ...]:
        """The fields outside optional parts."""
        return tuple(part for part in self.parts if isinstance(part, Field))

    @cached_property
    def flags(self) -> tuple[str, ...]:
        """The names of the flags that the optional parts set."""
        return tuple(p.flag for p in self.parts if isinstance(p, Optional) and p.flag)

    @cached_property
    def pattern(self) -> str:
        """A regular expression with a named group per field and flag, valid in re and Rust."""
        return "".join(_pattern(part) for part in self.parts)

    @cached_property
    def variants(self) -> tuple[Variant, ...]:
        """The shape with every combination of its optional parts."""
        optionals = [part for part in self.parts if isinstance(part, Optional)]
        return tuple(
            Variant(self, tuple(zip(optionals, chosen, strict=True)))
            for chosen in product((False, True), repeat=len(optionals))
        )


@dataclass(frozen=True)
class Variant:
    """A shape with a fixed choice of optional parts: a sequence of literals and fields."""

    shape: Shape
    choices: tuple[tuple[Optional, bool], ...]

    @cached_property
    def parts(self) -> tuple[str | Field, ...]:
        """Literals and fields in order; adjacent literals are joined."""
        chosen = iter(self.choices)
        flat: list[str | Field] = []
        for part in self.shape.parts:
            pieces: tuple[str | Field, ...]
            if isinstance(part, Optional):
                pieces = part.parts if next(chosen)[1] else ()
            else:
                pieces = (part,)
            for piece in pieces:
                if isinstance(piece, str) and flat and isinstance(flat[-1], str):
                    flat[-1] += piece
                else:
                    flat.append(piece)
        return tuple(flat)

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The fields present, in order."""
        return tuple(part for part in self.parts if isinstance(part, Field))

    @cached_property
    def flags(self) -> dict[str, bool]:
        """Each flag of the shape and whether it is set."""
        return {optional.flag: present for optional, present in self.choices if optional.flag}

    @cached_property
    def skeleton(self) -> str:
        """The line without digits and dots, which is the same for every line of the variant."""
        return "".join(part for part in self.parts if isinstance(part, str))


def _parsed(template: str) -> tuple[Part, ...]:
    parts: list[Part] = []
    inner: list[str | Field] | None = None
    at = 0
    for match in _PIECE.finditer(template):
        target: list[Part] | list[str | Field] = parts if inner is None else inner
        if match.start() > at:
            target.append(template[at : match.start()])
        at = match.end()
        if match["field"]:
            target.append(Field(match["field"], match["kind"]))
        elif match["open"]:
            inner = []
        else:
            parts.append(Optional(tuple(inner or ()), match["flag"]))
            inner = None
    if at < len(template):
        parts.append(template[at:])
    return tuple(parts)


def _pattern(part: Part) -> str:
    if isinstance(part, str):
        return re.escape(part).replace(r"\ ", " ").replace(r"\#", "#")
    if isinstance(part, Field):
        return f"(?P<{part.name}>{KINDS[part.kind]})"
    inside = "".join(_pattern(piece) for piece in part.parts)
    return f"(?P<{part.flag}>{inside})?" if part.flag else f"(?:{inside})?"


_HEAD = "gc «#»{gc_num:int} @{start_s:dec}s {gc_cpu_since_start_pct:sint}%"
_PAUSE_1, _PAUSE_2 = "{stw_sweep_term_ms:dec}", "{stw_mark_term_ms:dec}"
_CPU_1, _CPU_2 = "{stw_sweep_term_cpu_ms:dec}", "{stw_mark_term_cpu_ms:dec}"
_WORKERS = "{assist_cpu_ms:dec}/{background_cpu_ms:dec}/{idle_cpu_ms:dec}"
_TIMES = (
    f"{_PAUSE_1}+{{concurrent_mark_ms:dec}}+{_PAUSE_2} ms clock, "
    f"{_CPU_1}+{_WORKERS}+{_CPU_2} ms cpu, "
)
_HEAP = "{heap_start_mib:int}->{heap_end_mib:int}->{heap_live_mib:int} MB, "
_GOAL = "{heap_goal_mib:int} MB goal, "
_SCANNABLE = "{stacks_mib:int} MB stacks, {globals_mib:int} MB globals, "
_END = "{procs:int} P« (forced)|forced»"

_OLD_HEAD = "gc{gc_num:int}({gc_threads:int}): "
_OLD_MS = f"{_OLD_HEAD}{{phase_1_ms:int}}+{{phase_2_ms:int}}+{{phase_3_ms:int}} ms"
_OLD_US = f"{_OLD_HEAD}{{phase_1_us:int}}+{{phase_2_us:int}}+{{phase_3_us:int}}+{{phase_4_us:int}} us, "
_OLD_HEAP = "{heap_start_mib:int} -> {heap_end_mib:int} MB"
_OBJECTS = "{objects:int} ({mallocs:int}-{frees:int}) objects"
_OBJECTS_FREED = "{objects_before:int} -> {objects:int} ({mallocs:int}-{frees:int}) objects"
_SWEEPS = "{spans:int}/{background_swept:int}/{pause_swept:int} sweeps"
_STEAL = (
    "{handoff:int}({handoff_count:int}) handoff, {steal:int}({steal_count:int}) steal, "
    "{procyield:int}/{osyield:int}/{sleep:int} yields"
)
_RELEASED = "{released_now_mib:size} MB released"
_IN_USE = (
    "inuse: {inuse_mib:int}, idle: {idle_mib:int}, sys: {sys_mib:int}, "
    "released: {released_total_mib:int}, consumed: {consumed_mib:int} (MB)"
)

GCTRACE = (
    # The newest format comes first, because most logs have it.
    Shape("gc18", "cycles", "1.18", None, f"{_HEAD}: {_TIMES}{_HEAP}{_GOAL}{_SCANNABLE}{_END}"),
    Shape("gc26", "cycles", "1.26", None, f"{_HEAD} (checking for goroutine leaks): {_TIMES}{_HEAP}{_GOAL}{_SCANNABLE}{_END}"),
    Shape("gc16", "cycles", "1.6", "1.17", f"{_HEAD}: {_TIMES}{_HEAP}{_GOAL}{_END}"),
    Shape("gc15", "cycles", "1.5", "1.5",
          f"{_HEAD}: {_PAUSE_1}+{{scan_ms:dec}}+{{install_barrier_ms:dec}}+{{mark_ms:dec}}+{_PAUSE_2} ms clock, "
          f"{_CPU_1}+{{scan_cpu_ms:dec}}+{{install_barrier_cpu_ms:dec}}+{_WORKERS}+{_CPU_2} ms cpu, {_HEAP}«{_GOAL}»{_END}"),
    Shape("gc14", "cycles", "1.4", "1.4", f"{_OLD_US}{_OLD_HEAP}, {_OBJECTS}, {{goroutines:int}} goroutines, {_SWEEPS}, {_STEAL}"),
    Shape("gc13", "cycles", "1.3", "1.3", f"{_OLD_US}{_OLD_HEAP}, {_OBJECTS}, {_SWEEPS}, {_STEAL}"),
    # Printed by the development tree between 1.2 and 1.3, and by gccgo.
    Shape("gc12x", "cycles", "1.2", "1.3", f"{_OLD_MS}, {_OLD_HEAP}, {_OBJECTS}, {_SWEEPS}, {_STEAL}"),
    Shape("gc11", "cycles", "1.1", "1.2", f"{_OLD_MS}, {_OLD_HEAP} {_OBJECTS_FREED}, {_STEAL}"),
    Shape("gc10", "cycles", "1.0", "1.0", f"{_OLD_MS} {_OLD_HEAP} {_OBJECTS_FREED} {{handoff:int}} handoff"),
)  # fmt: skip

COMPANIONS = (
    # Printed before the periodic two-minute cycle, which itself is not marked as forced.
    Shape("forcegc", "markers", "1.5", None, "GC forced"),
    Shape("scvg_forced13", "markers", "1.0", "1.4", "scvg{scavenge_num:int}: GC forced"),
    # Go 1.13 prints no number; the oldest releases print the size in hexadecimal.
    Shape("scvg_rel", "scavenges", "1.0", "1.12", f"scvg{{scavenge_num:sint}}: {_RELEASED}"),
    Shape("scvg", "scavenges", "1.0", "1.12", f"scvg{{scavenge_num:sint}}: {_IN_USE}"),
    Shape("scvg_rel13", "scavenges", "1.13", "1.13", f"«forced |forced»scvg: {_RELEASED}"),
    Shape("scvg13", "scavenges", "1.13", "1.13", f"«forced |forced»scvg: {_IN_USE}"),
    Shape("scav14", "scavenges", "1.14", "1.20",
          "scav «{generation:int} »{released_now_kib:int} KiB work, {released_total_kib:int} KiB total, "
          "{heap_in_use_pct:int}% util« (forced)|forced»« [controller reset]|controller_reset»"),
    Shape("scav21", "scavenges", "1.21", None,
          "scav {released_now_kib:int} KiB work (bg), {released_eager_kib:int} KiB work (eager), {released_total_kib:int} KiB now, "
          "{heap_in_use_pct:int}% util« (forced)|forced»« [controller reset]|controller_reset»"),
    Shape("pacer_new", "pacer", "1.18", None,
          "pacer: {mark_cpu_pct:sint}% CPU ({mark_cpu_expected_pct:int} exp.) for "
          "{heap_scan_bytes:sint}+{stack_scan_bytes:sint}+{globals_scan_bytes:sint} B work ({expected_scan_bytes:sint} B exp.) "
          "in {trigger_bytes:int} B -> {heap_end_bytes:int} B (∆goal {goal_distance_bytes:sint}, cons/mark {cons_mark:float})"
          "«[controller reset]|controller_reset»"),
    Shape("pacer_assist", "pacer", "1.5", None,
          "pacer: assist ratio={assist_ratio:float} (scan {scan_work_mib:int} MB in {heap_from_mib:int}->{heap_to_mib:int} MB) "
          "workers={dedicated_workers:sint}+{fractional_workers:float}"),
    Shape("pacer_sweep15", "pacer", "1.5", "1.8",
          "pacer: sweep done at heap size {heap_mib:int}MB; allocated {sweep_alloc_mib:int}MB of spans; "
          "swept {swept_pages:int} pages at {pages_per_byte:float} pages/byte"),
    Shape("pacer_sweep", "pacer", "1.9", None,
          "pacer: sweep done at heap size {heap_mib:int}MB; allocated {sweep_alloc_mib:int}MB during sweep; "
          "swept {swept_pages:int} pages at {pages_per_byte:float} pages/byte"),
    Shape("pacer_old", "pacer", "1.5", "1.17",
          "pacer: H_m_prev={live_before_bytes:int} h_t={h_t:float} H_T={trigger_bytes:int} h_a={h_a:float} H_a={heap_end_bytes:int} "
          "h_g={h_g:float} H_g={goal_bytes:int} u_a={utilization:float} u_g={utilization_goal:float} W_a={work:sint} "
          "goalΔ={goal_delta:float} actualΔ={actual_delta:float} u_a/u_g={utilization_ratio:float}"),
    Shape("scan_class", "scans", "1.25", None,
          "scan: class {span_class:word} «{sparse:int}+{span_sparse:int}+{span_dense:int}=»{objects:int} objs"
          "«, {sparse_spans:int}+{dense_spans:int}={spans:int} spans»"),
    Shape("scan_total", "scans", "1.25", None,
          "scan: total «{sparse:int}+{span_sparse:int}+{span_dense:int}=»{objects:int} objs"
          "«, {sparse_spans:int}+{dense_spans:int}={spans:int} spans»"),
)  # fmt: skip

SHAPES = {shape.id: shape for shape in (*GCTRACE, *COMPANIONS)}

MODERN = tuple(shape for shape in GCTRACE if shape.template.startswith("gc «#»"))
"""The formats of Go 1.5 and later: `gc N @Ts P%: …`."""

OLD = tuple(shape for shape in GCTRACE if shape.is_before("1.5"))
"""The formats of Go 1.4 and earlier: `gcN(threads): …`."""


@cache
def variants_of(shapes: tuple[Shape, ...]) -> tuple[Variant, ...]:
    """Returns the variants of the shapes, grouped by shape."""
    return tuple(variant for shape in shapes for variant in shape.variants)


@cache
def any_of(shapes: tuple[Shape, ...]) -> str:
    """Returns a regular expression, without groups, for a whole record of any of the shapes."""
    return "|".join(re.sub(r"\?P<\w+>", "?:", shape.pattern) for shape in shapes)
