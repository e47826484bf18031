"""Measures how often each finding is right, on logs with known findings."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from typing import TYPE_CHECKING

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.rules.registry import RULES
from tests.helpers import archives

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

ABOUT = """Measures how often each finding is right: right, wrong and missed, precision and recall.

The logs are those in tests/corpus: runs of a known program with known settings, and excerpts
from real logs. Their findings.json lists which findings must and must not be reported.
"""


def logs() -> dict[Path, dict[str, list[str]]]:
    """Returns every log with its true findings."""
    found: dict[Path, dict[str, list[str]]] = {}
    for kind, place in (("gctrace", "{}/run.log"), ("wild", "{}.log")):
        truths = json.loads((archives.FOLDER / kind / "findings.json").read_text())
        found |= {
            archives.FOLDER / kind / place.format(name): truth for name, truth in truths.items()
        }
    return found


def add_options(_: argparse.ArgumentParser) -> None:
    """There are none."""


def run(_: argparse.Namespace) -> None:
    """Reads every log, counts, and prints the table."""
    warnings.simplefilter("ignore")
    archives.unpack_all()
    right, wrong, missed = Counter[str](), Counter[str](), Counter[str]()
    every = logs()
    for path, truth in every.items():
        try:
            found = set(gca.read(path).findings()["id"])
        except gca.GctraceError:
            found = set()
        right.update(found & set(truth["must"]))
        missed.update(set(truth["must"]) - found)
        wrong.update(found & set(truth["must_not"]))
    print(f"{len(every)} logs\n")
    print("| finding | right | wrong | missed | precision | recall |")
    print("|---|---:|---:|---:|---:|---:|")
    for rule in sorted(right | wrong | missed):
        hits, false, lost = right[rule], wrong[rule], missed[rule]
        precision = f"{hits / (hits + false):.2f}" if hits + false else "–"
        recall = f"{hits / (hits + lost):.2f}" if hits + lost else "–"
        print(
            f"| {rule} {RULES[rule].name} | {hits} | {false} | {lost} | {precision} | "
            f"{recall} |"
        )
