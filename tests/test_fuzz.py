"""No damaged input raises anything but the documented errors, and none takes long."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

import fuzzing

if TYPE_CHECKING:
    from pathlib import Path

INPUTS = 2000
BATCHES = 20
"""Several tests share the inputs, so that they run on several processors."""


@pytest.fixture(scope="module")
def mutator() -> fuzzing.Mutator:
    return fuzzing.Mutator(fuzzing.corpus())


@pytest.mark.parametrize("batch", range(BATCHES))
def test_damaged_inputs_raise_only_documented_errors(
    batch: int, mutator: fuzzing.Mutator
) -> None:
    for number in range(batch, INPUTS, BATCHES):
        problem = fuzzing.failure(mutator.made(f"0/{number}"), fuzzing.surfaces_of(number))
        assert problem is None, f"scripts/fuzz --first {number} --count 1: {problem}"


@pytest.mark.parametrize("path", sorted(fuzzing.BROKEN.iterdir()), ids=lambda path: path.name)
def test_an_input_that_once_broke_is_read(path: Path) -> None:
    assert fuzzing.failure(path.read_bytes()) is None


def test_an_unexpected_error_is_found_and_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    def summary(_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setitem(fuzzing.OF_A_RUN, "summary", summary)
    line = b"gc 1 @0.001s 16%: 0.52+0.10+0.003 ms clock, 1.0+0.051/0.086/0+0.006 ms cpu, 3->4->2 MB, 4 MB goal, 2 P"
    data = b"\n".join([b"noise"] * 20 + [line] + [b"more noise"] * 20)
    problem = fuzzing.failure(data)
    assert problem is not None
    assert problem.place.startswith("ZeroDivisionError")
    small = fuzzing.shrunk(data, lambda each: fuzzing.failure(each, ("summary",)) == problem)
    assert len(small) <= len(line)
    assert b"noise" not in small
