"""The tasks of workers: what is raised while Polars calls them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from gctrace_analyzer.fleets import worker
from gctrace_analyzer.fleets.inputs import Item
from gctrace_analyzer.fleets.worker import Batch, StoreUnreachableError, WorkerOptions

if TYPE_CHECKING:
    from collections.abc import Callable

BATCH = Batch((Item("a.log", "a.log", 1),), WorkerOptions())


def fails_with(err: BaseException) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise err

    return fail


@pytest.mark.parametrize("err", [KeyboardInterrupt(), SystemExit(3)])
def test_what_ends_a_program_ends_a_task(
    monkeypatch: pytest.MonkeyPatch, err: BaseException
) -> None:
    monkeypatch.setattr(worker, "_rows", fails_with(err))
    with pytest.raises(type(err)) as raised:
        worker.batch_rows(BATCH)
    assert raised.value is err


def test_a_store_that_does_not_answer_fails_the_task_with_an_error_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker, "_rows", fails_with(TimeoutError("no answer")))
    with pytest.raises(StoreUnreachableError, match=r"^a\.log: "):
        worker.batch_rows(BATCH)


def test_a_panic_of_polars_is_a_row_and_the_next_task_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    panic = pl.exceptions.PanicException("index out of bounds")
    with monkeypatch.context() as patch:
        patch.setattr(worker, "_rows", fails_with(panic))
        (row,) = worker.batch_rows(BATCH)
    assert isinstance(row, dict)
    assert (row["error_kind"], row["file"]) == ("bug", "a.log")
    (row,) = worker.batch_rows(BATCH)
    assert isinstance(row, dict)
    assert row["error_kind"] == "missing"
