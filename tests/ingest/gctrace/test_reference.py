"""The real reader finds the same cycles as a second, deliberately simple one."""

from __future__ import annotations

import io
import warnings
from collections import Counter
from typing import TYPE_CHECKING

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.errors import GctraceError
from tests.fuzz.inputs import content, corpus, damaged, of_every_kind
from tests.fuzz.targets import hold
from tests.helpers import reference

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

PARTS = 4
FUZZED = 60
"""Damaged logs that both readers read."""

REASONS = {
    "cri.log": "the runtime wrote a line in two pieces, which CRI marks as P and F",
    "plain-ansi-crlf.log": "colour codes are between the characters of the records",
    "ansi-bytes-short-all.log": "colour codes are between the characters of the records",
    "gcloud.yaml": "YAML folds long lines",
}
"""Why the reference reader cannot find cycles that the real one finds."""


def counted(cycles: Iterable[reference.Cycle]) -> Counter[tuple[object, ...]]:
    """The cycles without their lines: a record that was torn begins on another line.

    Of a line that is repeated, the real reader counts one.
    """
    return Counter({each[1:] for each in cycles})


def read(data: bytes) -> gca.Run | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gca.GctraceWarning)
        try:
            return gca.read(io.BytesIO(data))
        except GctraceError:
            return None


def cycles_of(run: gca.Run, *, repaired: bool) -> Counter[tuple[object, ...]]:
    rows = run.cycles if repaired else run.cycles.filter(repaired=False)
    found = [reference.Cycle(*row) for row in rows.select(reference.Cycle._fields).iter_rows()]
    return counted(each for each in found if each.is_comparable)


def differences(data: bytes, run: gca.Run) -> tuple[list[object], list[object]]:
    """Cycles that only the reference has, and those that only the real reader has.

    Records that the real reader repaired may be missing from the reference, which does not know
    either what contradicts the rest of a record or other cycles.
    """
    known = set(run.cycles.filter(repaired=True)["line_no"])
    known |= {
        row[0]
        for row in run.cycles.select(reference.Cycle._fields).iter_rows()
        if not reference.Cycle(*row).is_comparable
    }
    found = list(reference.cycles(data.decode("utf-8", "replace")))
    certain = counted(
        each for each, is_possible in found if is_possible and each.line_no not in known
    )
    missing = certain - cycles_of(run, repaired=True)
    extra = cycles_of(run, repaired=False) - counted(each for each, _ in found)
    return list(missing), list(extra)


def logs() -> list[Path]:
    return [path for path in corpus() if "metrics" not in path.parts and path.suffix != ".zst"]


@pytest.mark.parametrize("part", range(PARTS))
def test_both_readers_find_the_same_cycles_in_logs_of_every_kind(part: int) -> None:
    total = 0
    for path in of_every_kind(logs(), first=2)[part::PARTS]:
        data = content(path)
        run = read(path.read_bytes())
        if run is None:
            assert not list(reference.cycles(data.decode("utf-8", "replace"))), path
            continue
        missing, extra = differences(data, run)
        assert not missing, path
        assert not extra or path.name in REASONS, path
        total += len(run.cycles)
    assert total > 1000


@pytest.mark.parametrize("part", range(PARTS))
def test_both_readers_find_the_same_cycles_in_damaged_logs(part: int) -> None:
    plain = [path for path in logs() if path.name.endswith((".log", ".log.gz"))]
    paths = [path for path in plain if "inputs" not in path.parts]
    total = 0

    def finds_the_same(data: bytes) -> None:
        nonlocal total
        if len(data) > 50_000 or data[:2] == b"\x1f\x8b" or b"\x1b" in data or b"\0" in data:
            return
        run = read(data)
        if run is not None and run.sources[0].kind == "log":
            assert differences(data, run) == ([], [])
            total += len(run.cycles)

    hold(finds_the_same, part, FUZZED // PARTS, data=damaged(paths))
    # Which inputs are chosen depends on the constants in all modules that are imported.
    assert total > 30
