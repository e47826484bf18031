"""Compares runs of one setting, which must not differ, and doublings of GOGC, which must."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import combinations, permutations
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import gctrace_analyzer as gca
from tests.helpers import archives

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

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
        return not self.verdict.startswith(("No ", "There is too little"))

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
    print(f"\n{'':24}{'pairs':>6}{'change':>8}{'share':>8}")
    for kind in ("equal", "doubled"):
        for group in sorted({_group(*row) for row in rows if row[1] == kind}):
            chosen = [pair for *where, pair in rows if _group(*where, pair) == group]
            changed = sum(pair.is_change for pair in chosen)
            print(f"{group:24}{len(chosen):6}{changed:8}{changed / len(chosen):8.0%}")


def _group(folder: str, kind: str, pair: Pair) -> str:
    return f"{kind} {folder} {pair.crowded if folder == 'real' and kind == 'equal' else ''}"
