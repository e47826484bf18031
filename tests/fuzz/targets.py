"""What hypothesis tries; `scripts/fuzz` tries more of it than the tests do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.fuzz import splitting
from tests.fuzz.inputs import damaged, pieces
from tests.fuzz.surfaces import MIXES, failure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class BrokenInputError(AssertionError):
    """An input that breaks something.

    Attributes:
        data: the input; the last one that hypothesis raises is the smallest.
        place: the exception, and the function that raised it.
    """

    def __init__(self, data: bytes, place: str, message: str) -> None:
        super().__init__(f"{place}: {message}")
        self.data = data
        self.place = place


def damaged_input(data: bytes, surfaces: Sequence[str]) -> None:
    """No damaged input raises anything but the documented errors, and none takes long."""
    if problem := failure(data, surfaces):
        raise BrokenInputError(data, problem.place, problem.message)


def split_log(data: bytes) -> None:
    """A log that arrives in two parts, or is read in two stretches, gives the same cycles."""
    if splitting.is_log(data) and (places := splitting.differences(data)):
        raise BrokenInputError(data, "split", f"{places}")


TARGETS: dict[str, tuple[Callable[..., None], dict[str, st.SearchStrategy[object]]]] = {
    "damaged": (damaged_input, {"data": damaged(), "surfaces": st.sampled_from(MIXES)}),
    "splits": (split_log, {"data": pieces(most_bytes=1500)}),
}
"""A function, and what it is given."""


def tried(target: str, number: int, examples: int) -> None:
    """Tries inputs of a target, the same ones for the same number.

    Raises:
        BrokenInputError: with the smallest input that breaks something.
    """
    check, strategies = TARGETS[target]
    hold(check, number, examples, **strategies)


def hold(
    check: Callable[..., None], number: int, examples: int, **inputs: st.SearchStrategy[object]
) -> None:
    """Calls a check with inputs, the same ones for the same number; shrinks what fails."""

    def checked(**values: object) -> None:
        check(**values)

    chosen = settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    seed(number)(chosen(given(**inputs)(checked)))()
