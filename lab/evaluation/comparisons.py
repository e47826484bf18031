"""Compares runs of one setting, which must not differ, and doublings of GOGC, which must."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from itertools import combinations, permutations
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.compare.metrics import METRICS
from tests.helpers import archives

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from gctrace_analyzer.analysis.compare.metrics import Metric
    from gctrace_analyzer.comparison import Comparison

ABOUT = """Compares recorded runs, one a side, as `gctrace-analyze compare` does.

Equal pairs are two runs of one program under one setting and load: a headline of a change is
wrong. Doublings are a program under a GOGC and under twice that: the headline must name a change.
"""
COLLECTIONS = ("real", "services", "advice", "benchmarks")
_ALIKE = ("args", "load", "cpu_quota", "ballast_mib")
"""What the runs of a pair have in common, besides the program."""


class Recorded(NamedTuple):
    """A run that a manifest lists.

    Attributes:
        program: the collection and the program.
        label: the name of the run.
        log: its log.
        env: its settings.
        alike: the rest of its circumstances.
        crowded: whether other work took the CPUs meanwhile.
    """

    program: str
    label: str
    log: Path
    env: dict[str, str]
    alike: str
    crowded: bool


class Pair(NamedTuple):
    """Two runs of a program, compared."""

    before: Recorded
    after: Recorded
    comparison: Comparison

    @property
    def verdict(self) -> str:
        """The headline."""
        return str(self.comparison.to_dict()["verdict"])

    @property
    def is_change(self) -> bool:
        """Whether the headline names a change."""
        return not self.verdict.startswith(
            ("No ", "There is too little", "The allocation rate")
        )

    @property
    def crowded(self) -> str:
        """Which sides other work slowed."""
        sides = sorted(("quiet", "crowded")[run.crowded] for run in (self.before, self.after))
        return "/".join(sides)


def runs(folder: Path) -> list[Recorded]:
    """Returns the runs of a folder's manifest.json."""
    return [
        Recorded(
            f"{folder.name}/{run['dir'].split('/')[0]}",
            run["dir"].split("/")[1],
            next((folder / run["dir"]).glob("run.log*")),
            run["env"],
            json.dumps([run.get(name) for name in _ALIKE]),
            bool(run.get("crowded")),
        )
        for run in json.loads((folder / "manifest.json").read_text())["runs"]
    ]


def equal_pairs(recorded: Sequence[Recorded]) -> Iterator[tuple[Recorded, Recorded]]:
    """Yields every two runs of one program under one setting."""
    groups = defaultdict(list)
    for run in recorded:
        groups[run.program, run.alike, json.dumps(run.env, sort_keys=True)].append(run)
    for group in groups.values():
        yield from combinations(sorted(group, key=lambda run: run.label), 2)


def doublings(recorded: Sequence[Recorded]) -> Iterator[tuple[Recorded, Recorded]]:
    """Yields the runs of each program under a GOGC and under twice that, without a limit."""
    chosen = [run for run in recorded if set(run.env) == {"GOGC"} and run.env["GOGC"] != "off"]
    for before, after in permutations(sorted(chosen, key=lambda run: run.label), 2):
        is_alike = (before.program, before.alike) == (after.program, after.alike)
        if is_alike and float(after.env["GOGC"]) == 2 * float(before.env["GOGC"]):
            yield before, after


def compared(pairs: Iterator[tuple[Recorded, Recorded]]) -> Iterator[Pair]:
    """Yields the pairs compared, without those that cannot be read."""
    for before, after in pairs:
        try:
            yield Pair(before, after, gca.compare(before.log, after.log))
        except gca.GctraceError as error:
            print(f"{before.program} {before.label} {after.label}: {error}")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds folders of recordings."""
    parser.add_argument(
        "folders", nargs="*", type=Path, metavar="FOLDER", help="more recordings"
    )
    parser.add_argument("--all", action="store_true", help="show the headline of every pair")
    parser.add_argument(
        "--fit", action="store_true", help="show how much equal runs differ, metric by metric"
    )


def run(given: argparse.Namespace) -> None:
    """Prints the share of headlines of a change, and the wrong ones."""
    archives.unpack_all()
    rows = []
    for folder in (*(archives.FOLDER / name for name in COLLECTIONS), *given.folders):
        recorded = runs(folder)
        for kind, pairs in (("equal", equal_pairs), ("doubled", doublings)):
            for pair in compared(pairs(recorded)):
                rows.append((folder.name, kind, pair))
                if given.all or pair.is_change == (kind == "equal"):
                    labels = f"{pair.before.label} {pair.after.label}"
                    print(f"{kind}: {pair.before.program} {labels} ({pair.crowded})")
                    print(f"    {pair.verdict}")
    if given.fit:
        fit([pair for _, kind, pair in rows if kind == "equal"])
    print(f"\n{'':24}{'pairs':>6}{'change':>8}{'share':>8}")
    for kind in ("equal", "doubled"):
        for group in sorted({_group(*row) for row in rows if row[1] == kind}):
            chosen = [
                pair for *where, pair in rows if _group(where[0], where[1], pair) == group
            ]
            changed = sum(pair.is_change for pair in chosen)
            print(f"{group:24}{len(chosen):6}{changed:8}{changed / len(chosen):8.0%}")


T_CALIBRATED = 2.447
"""Student's t of 95 % for the degrees of freedom of a calibrated variance."""


class Apart(NamedTuple):
    """How far the figures of two equal runs are apart, on the metric's scale.

    Attributes:
        difference: between them.
        within: the variance of that difference that each run shows by itself.
    """

    difference: float
    within: float


def fit(rows: Sequence[Pair]) -> None:
    """Prints how much runs of one setting differ beyond what each of them shows by itself.

    Nine of ten programs differ less. `outside` are the pairs whose 95 % interval, with the value
    that the other programs give, does not contain 0.
    """
    print(f"\n{'':26}{'quiet':>7}{'outside':>10}{'loose':>7}{'outside':>10}")
    for metric in METRICS:
        line = f"{metric.name:26}"
        for loose in (False, True):
            by_program = _apart(rows, metric, loose=loose)
            outside = [
                abs(apart.difference) > T_CALIBRATED * math.sqrt(2 * noise**2 + apart.within)
                for program, several in by_program.items()
                for noise in [_noise([v for k, v in by_program.items() if k != program])]
                for apart in several
            ]
            count = f"{sum(outside)} of {len(outside)}"
            line += f"{_noise([*by_program.values()]):7.3f}{count:>10}"
        print(line)


def _apart(rows: Sequence[Pair], metric: Metric, *, loose: bool) -> dict[str, list[Apart]]:
    by_program = defaultdict(list)
    for pair in rows:
        one, other = (side.measured[0] for side in pair.comparison.sides)
        known = [(run.values[metric.name], run.spread[metric.name]) for run in (one, other)]
        is_contended = one.late.are_common or other.late.are_common
        is_loose = is_contended or one.by_limit or other.by_limit
        if is_loose != loose or (is_contended and metric.is_time):
            continue
        scaled = [metric.scaled(value) for value, _ in known if value is not None]
        within = [spread**2 for _, spread in known if spread is not None]
        if len(scaled) == len(within) == 2 and one.long_enough and other.long_enough:
            by_program[pair.before.program].append(Apart(scaled[1] - scaled[0], sum(within)))
    return by_program


def _noise(programs: Sequence[Sequence[Apart]]) -> float:
    """Returns the standard deviation between runs that nine of ten programs stay below."""
    of_programs = [
        math.sqrt(max(fmean(a.difference**2 - a.within for a in several), 0.0) / 2)
        for several in programs
    ]
    return float(pl.Series(of_programs, dtype=pl.Float64).quantile(0.9, "linear") or 0.0)


def _group(folder: str, kind: str, pair: Pair) -> str:
    return f"{kind} {folder} {pair.crowded if folder == 'real' and kind == 'equal' else ''}"
