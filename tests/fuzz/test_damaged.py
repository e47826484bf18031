"""No damaged input raises anything but the documented errors, and none takes long."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import strategies as st

from tests.fuzz import surfaces, targets
from tests.fuzz.inputs import BROKEN

if TYPE_CHECKING:
    from pathlib import Path

PARTS = 6
"""Several tests share the inputs, so that they run on several processors."""


@pytest.mark.parametrize("number", range(PARTS))
def test_damaged_inputs_raise_only_documented_errors(number: int) -> None:
    targets.tried("damaged", 100 + number, examples=180 // PARTS)


@pytest.mark.parametrize("path", sorted(BROKEN.iterdir()), ids=lambda path: path.name)
def test_an_input_that_once_broke_is_read(path: Path) -> None:
    assert surfaces.failure(path.read_bytes()) is None


def test_an_unexpected_error_is_found_and_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    def summary(_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(surfaces, "OF_A_RUN", {"summary": summary})
    lines = surfaces.SAMPLE.read_bytes().splitlines(keepends=True)[:8]
    # Shrinking whole logs tries hundreds of them.
    logs = st.lists(st.sampled_from(lines), max_size=8).map(b"".join)
    read = st.just(("read", "summary"))
    with pytest.raises(targets.BrokenInputError, match="ZeroDivisionError") as broken:
        targets.hold(targets.damaged_input, 0, 20, shrink=True, data=logs, surfaces=read)
    assert len(broken.value.data.splitlines()) == 1
