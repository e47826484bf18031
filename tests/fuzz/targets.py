"""What hypothesis tries; `scripts/fuzz` tries more of it than the tests do."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import HypothesisWarning

from tests.fuzz import splitting
from tests.fuzz.inputs import damaged, pieces, wrapped
from tests.fuzz.surfaces import MIXES, failure
from tests.helpers.both_readers import difference

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class BrokenInputError(AssertionError):
    """An input that breaks something.

    Attributes:
        data: the input.
        place: the exception, and the function that raised it.
    """

    def __init__(self, data: bytes, place: str, message: str) -> None:
        super().__init__(f"{place}: {message}: {data[:200]!r}")
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


def wrapped_log(data: bytes) -> None:
    """A log behind the prefixes of collectors reads the same without the compiled core."""
    if found := difference(data):
        raise BrokenInputError(data, "core", found)


TARGETS: dict[str, tuple[Callable[..., None], dict[str, st.SearchStrategy[object]]]] = {
    "damaged": (damaged_input, {"data": damaged(), "surfaces": st.sampled_from(MIXES)}),
    "splits": (split_log, {"data": pieces(most_bytes=1500)}),
    "wrapped": (wrapped_log, {"data": wrapped()}),
}
"""A function, and what it is given."""


def tried(target: str, number: int, examples: int, *, shrink: bool = False) -> None:
    """Tries inputs of a target, the same ones for the same number.

    Args:
        target: what is tried.
        number: which inputs.
        examples: how many.
        shrink: search for a small input that breaks the same, for up to five minutes.

    Raises:
        BrokenInputError: with the input that breaks something.
    """
    check, strategies = TARGETS[target]
    hold(check, number, examples, shrink=shrink, **strategies)


def hold(
    check: Callable[..., None],
    number: int,
    examples: int,
    *,
    shrink: bool = False,
    **inputs: st.SearchStrategy[object],
) -> None:
    """Calls a check with inputs, the same ones for the same number."""

    def checked(**values: object) -> None:
        check(**values)

    chosen = settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=[Phase.generate, *([Phase.shrink] if shrink else [])],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        verbosity=Verbosity.quiet,
    )
    with warnings.catch_warnings():
        # Of inputs that are long to show.
        warnings.simplefilter("ignore", HypothesisWarning)
        seed(number)(chosen(given(**inputs)(checked)))()
