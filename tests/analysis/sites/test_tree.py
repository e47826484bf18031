"""The tree of calls in a profile, for flame graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.sites.tree import tree, trees
from tests.helpers.profiles import OWN, PROFILES, REAL, printed

if TYPE_CHECKING:
    from gctrace_analyzer.analysis.sites.profiled import Profiled

SCHEMA: dict[str, pl.DataType] = {"calls": pl.List(pl.UInt32()), "bytes": pl.Int64()}


def tree_of(*rows: tuple[str, int]) -> pl.DataFrame:
    """The tree of stacks, each as names from the outermost with a size."""
    names = [*dict.fromkeys(name for functions, _ in rows for name in functions.split())]
    calls = [([*map(names.index, functions.split())], size) for functions, size in rows]
    return tree(pl.DataFrame(calls, SCHEMA, orient="row"), pl.Series(names))


def profiled(*names: str) -> Profiled:
    found = gca.read(*(PROFILES / name for name in names)).report().analysis.profiled
    assert found is not None
    return found


def test_what_a_function_calls_is_below_it_with_the_largest_first() -> None:
    shown = tree_of(("a b", 10), ("a c", 60), ("a", 20), ("d", 10))
    assert shown.select("node", "parent", "depth", "function", "bytes").rows() == [
        (0, None, 0, "a", 90),
        (1, None, 0, "d", 10),
        (2, 0, 1, "c", 60),
        (3, 0, 1, "b", 10),
    ]
    assert shown["share"].to_list() == pytest.approx([0.9, 0.1, 0.6, 0.1])


def test_the_same_function_called_by_two_is_two_frames_and_recursion_goes_down() -> None:
    shown = tree_of(("a x", 30), ("b x", 30), ("a a a", 40))
    names = shown.select("depth", "function").rows()
    assert names == [(0, "a"), (0, "b"), (1, "a"), (1, "x"), (1, "x"), (2, "a")]


def test_the_start_of_every_goroutine_and_narrow_frames_are_left_out() -> None:
    shown = tree_of(("runtime.main main.main", 999), ("tiny", 1))
    assert shown["function"].to_list() == ["main.main"]
    assert shown["share"].to_list() == pytest.approx([0.999])


def test_stacks_without_bytes_make_no_tree() -> None:
    assert tree_of(("a", 0), ("b", -5)).is_empty()


@pytest.mark.parametrize("program", [*OWN, *REAL])
def test_frames_of_a_function_that_calls_no_other_are_those_of_pprof(program: str) -> None:
    whole = dict(trees(profiled(f"{program}/allocs.pb.gz")))["allocated"]
    rows = printed(PROFILES / program / "pprof" / "alloc_space-cum.txt")
    once = whole.filter(pl.len().over("function") == 1)
    # A frame is at most what the function and its callees have: other stacks may be too narrow.
    for function, size in once.select("function", "bytes").iter_rows():
        assert size <= rows[function.replace("()", "")].cum
    top = whole.filter(depth=0)["bytes"].sum()
    assert top > 0.97 * sum(row.flat for row in rows.values())


def test_growth_is_between_two_profiles_and_comes_first() -> None:
    one = profiled("leaks/timer/heap-late.pb.gz")
    both = profiled("leaks/timer/heap-early.pb.gz", "leaks/timer/heap-late.pb.gz")
    assert [name for name, _ in trees(one)] == ["allocated", "live"]
    shown = dict(trees(both))
    assert next(iter(shown)) == "growth"
    widest = shown["growth"].filter(pl.col("function") == "main.(*limiter).allow")
    assert widest["share"].item() > 0.9
