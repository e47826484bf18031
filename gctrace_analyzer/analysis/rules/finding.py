"""What it was: the rules that hold, the first cause first, what follows from it under it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.analysis.rules.registry import RULES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gctrace_analyzer.analysis.settings import Settings
    from gctrace_analyzer.analysis.summary import Summary
    from gctrace_analyzer.analysis.thresholds import Thresholds

Severity = Literal["ok", "info", "warn", "bad"]
_RANK = {"bad": 0, "warn": 1, "info": 2, "ok": 3}
MOST_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Facts:
    """What the rules look at: one program's cycles, figures and episodes.

    `cycles` are those of `episodes.judge`; `new_pacer` is Go 1.18 and later.
    """

    process: int
    cycles: pl.DataFrame
    summary: Summary
    episodes: pl.DataFrame
    thresholds: Thresholds
    settings: Settings
    missing_cycles: int = 0

    @property
    def new_pacer(self) -> bool:
        """Whether the lines are of Go 1.18 or later."""
        return bool(self.cycles["stacks_mib"].count())

    @property
    def steady(self) -> pl.DataFrame:
        """The cycles after the start-up."""
        late = self.cycles.filter(pl.col("start_s") >= self.thresholds.warm_up_s)
        return late if len(late) >= 3 else self.cycles


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that holds. `evidence` has the numbers in words, `figures` by name."""

    id: str
    severity: Severity
    evidence: str
    figures: Mapping[str, Any] = field(default_factory=dict)
    process: int | None = None
    start_s: float | None = None
    end_s: float | None = None
    examples: tuple[str, ...] = ()
    because_of: str | None = None
    advice: str | None = None

    @property
    def name(self) -> str:
        """The rule's name."""
        return RULES[self.id].name

    def row(self) -> dict[str, Any]:
        """As a row of `schema.FINDINGS`."""
        rule = RULES[self.id]
        lines = f" ({', '.join(self.examples)})" if self.examples else ""
        return {
            "id": self.id, "name": rule.name, "severity": self.severity,
            "process": self.process,
            "start_s": self.start_s, "end_s": self.end_s, "evidence": self.evidence + lines,
            "figures": json.dumps(dict(self.figures)), "because_of": self.because_of,
            "advice": self.advice or rule.advice, "source": rule.source,
        }  # fmt: skip


def worse(value: float, bad: float) -> Severity:
    """`bad` beyond the limit of that name, else `warn`."""
    return "bad" if value > bad else "warn"


def total(values: pl.Series) -> float:
    """The sum as a number."""
    return float(values.sum() or 0)


def largest(values: pl.Series) -> float:
    """The largest as a number; 0 of none."""
    return float(values.max() or 0)  # type: ignore[arg-type]  # a numeric column


def middle(values: pl.Series) -> float:
    """The median as a number; 0 of none."""
    return float(values.median() or 0)  # type: ignore[arg-type]  # a numeric column


def examples(cycles: pl.DataFrame, by: str | None = None) -> tuple[str, ...]:
    """Where to look: two or three cycles, the most extreme in `by` first."""
    chosen = cycles if by is None else cycles.sort(by, descending=True, nulls_last=True)
    rows = chosen.head(MOST_EXAMPLES).select("source", "line_no").iter_rows()
    return tuple(f"{PurePath(str(source)).name}:{line}" for source, line in rows)


def folded(found: Iterable[Finding]) -> list[Finding]:
    """Causes first, by what they cost; each finding that another explains says so."""
    every = list(found)
    here = {each.id for each in every if each.severity in ("warn", "bad")}
    result = []
    for each in every:
        causes = [cause for cause in RULES[each.id].because_of if cause in here]
        result.append(each if not causes else _under(each, causes[0]))
    return sorted(result, key=lambda f: (_RANK[f.severity], f.because_of is not None, _cost(f)))


def _under(finding: Finding, cause: str) -> Finding:
    from dataclasses import replace

    return replace(finding, because_of=cause)


_BY_COST = (
    "GC016", "GC039", "GC017", "GC021", "GC001", "GC015", "GC024", "GC013", "GC010", "GC009",
    "GC005", "GC002", "GC003",
)  # fmt: skip


def _cost(finding: Finding) -> int:
    return _BY_COST.index(finding.id) if finding.id in _BY_COST else len(_BY_COST)


def frame(found: Sequence[Finding]) -> pl.DataFrame:
    """The findings as a table (`schema.FINDINGS`)."""
    return pl.DataFrame(
        [each.row() for each in found], schema=schema.polars_schema("findings"), orient="row"
    )
