"""The gate for numbers: one value that is impossible costs that value, not its row or file."""

from __future__ import annotations

import polars as pl
import pytest

from gctrace_analyzer.ingest import numbers
from gctrace_analyzer.testing import read_text
from tests.helpers.lines import LINES
from tests.helpers.logs import KILL, RECORDS

IMPOSSIBLE = (
    "9" * 30,
    "9" * 5000,
    "1.5.5",
    "4.2e-",
    "NaN",
    "1e309",
    "",
    "1_000",
    "\u0661",
    "x",
)


@pytest.mark.parametrize("text", IMPOSSIBLE)
def test_what_is_no_possible_number_is_none(text: str) -> None:
    assert numbers.whole(text) is None
    assert numbers.real(text) is None


def test_values_of_other_types_are_none() -> None:
    values: tuple[object, ...] = (None, True, [1], {}, float("inf"), float("nan"), 10**400)
    assert {numbers.whole(value) for value in values} == {None}
    assert {numbers.real(value) for value in values} == {None}


def test_a_size_that_overflows_leaves_the_rest_of_a_kill() -> None:
    line = KILL.format(pid=7, comm="api", kb="9" * 25)
    kill = read_text(f"kernel: {line}\n").oom_kills.row(0, named=True)
    assert (kill["pid"], kill["total_vm_bytes"]) == (7, 900000 * 1024)
    assert kill["anon_rss_bytes"] is None


@pytest.mark.parametrize(
    ("old", "new", "column"),
    [
        ("2 P", "0 P", "procs"),
        ("2 P", "99999999999 P", "procs"),
        ("->4->", "->1199511627776->", "heap_end_mib"),
        ("+0.006 ms cpu", f"+{'9' * 20} ms cpu", "stw_mark_term_cpu_ms"),
    ],
)
def test_an_impossible_value_of_a_cycle_is_null_and_reported(
    old: str, new: str, column: str
) -> None:
    run = read_text(RECORDS[0].replace(old, new) + "\n" + RECORDS[1] + "\n")
    assert run.cycles[column].to_list()[0] is None
    assert run.cycles[column].to_list()[1] is not None
    assert any("impossible value" in text for text in run.summary().warnings)


def test_a_cycle_number_beyond_32_bits_is_rejected_with_its_line() -> None:
    run = read_text(RECORDS[0] + "\n" + LINES["gc18"].replace("gc 1 ", "gc 4294967296 ") + "\n")
    assert len(run.cycles) == 1
    assert run.rejected.select("line_no", "reason").row(0) == (
        2,
        "a number is larger than any that the runtime prints",
    )


TOO_LARGE = numbers.LARGEST + 1


def test_the_largest_possible_numbers_fit_64_bits_also_as_a_difference() -> None:
    assert numbers.LARGEST - -numbers.LARGEST < 2**63 + 1
    assert numbers.LARGEST == 2**62
    for number in (numbers.LARGEST, -numbers.LARGEST):
        assert numbers.whole(number) == numbers.whole(str(number)) == number
        assert numbers.real(float(number)) == number
    for number in (TOO_LARGE, -TOO_LARGE):
        assert numbers.whole(number) is None
        assert numbers.real(number * 2) is None


def test_a_factor_scales_and_counts_for_the_limit() -> None:
    assert numbers.whole("3", 1024) == 3072
    assert numbers.real("1.5", 4) == 6
    assert numbers.real("2.5") == 2.5
    assert numbers.real(-7) == -7
    assert numbers.whole(1 << 61, 4) is None
    assert numbers.real(float(1 << 61), 4) is None
    assert numbers.real(-float(1 << 61), 4) is None


@pytest.mark.parametrize(
    ("column", "least", "most"),
    [
        ("gogc_pct", -1, 2**64 - 1),
        ("gomemlimit_bytes", 0, 2**63 - 1),
        ("heap_live_bytes", 0, numbers.LARGEST),
        ("a_count", 0, numbers.LARGEST),
    ],
)
def test_a_metric_has_the_range_of_its_column(column: str, least: int, most: int) -> None:
    for value in (least, 1, 2.5, most):
        assert numbers.exported(value, column) == value
    beyond = 2**65 if most > numbers.LARGEST else most * 2
    for wrong in (least - 1, beyond, float("inf"), float("nan"), True, None, "1"):
        assert numbers.exported(wrong, column) is None
    frame = pl.DataFrame(
        {"value": [least, 1, float(most), least - 1, float(beyond)]}, strict=False
    )
    gated = frame.select(
        numbers.exported_column(pl.col("value").cast(pl.Float64), pl.lit(column))
    ).to_series()
    assert gated.is_null().to_list() == [False, False, False, True, True]


def test_a_start_is_between_1970_and_2200() -> None:
    seconds = pl.DataFrame({"s": [-1.0, 0.0, 1.79e9, 7.25e9, 7.26e9]})
    gated = seconds.select(
        numbers.exported_column(pl.col("s"), pl.lit("started_s"))
    ).to_series()
    assert gated.is_null().to_list() == [True, False, False, False, True]
    assert (numbers.EARLIEST.year, numbers.LATEST.year) == (1970, 2200)


def test_a_column_keeps_what_is_possible() -> None:
    texts = pl.Series("x", ["5", "-5", str(TOO_LARGE), "x", None, "1.5"])
    assert numbers.whole_column(texts).to_list() == [5, -5, None, None, None, None]
    assert numbers.real_column(texts).to_list()[:2] == [5.0, -5.0]
    assert numbers.real_column(texts).to_list()[3:] == [None, None, 1.5]
    assert numbers.real_column(pl.Series([1e19, float("inf")])).to_list() == [None, None]


def test_a_value_of_json_fits_its_column_or_is_null() -> None:
    given = [(3, pl.Int64()), (3.0, pl.Int64()), (3.5, pl.Int64()), ("3", pl.Int64())]
    assert [numbers.fitting(*each) for each in given] == [3, 3, None, None]
    floats = [(3, pl.Float64()), ("3", pl.Float64()), (2.5, pl.Float64())]
    assert [numbers.fitting(*each) for each in floats] == [3, None, 2.5]
    others = [("a", pl.String()), (1, pl.String()), (True, pl.Boolean()), (1, pl.Boolean())]
    assert [numbers.fitting(*each) for each in others] == ["a", None, True, None]


@pytest.mark.parametrize(
    ("values", "possible"),
    [([1, 2], True), ([0], True), ([numbers.LARGEST], True), ([numbers.LARGEST + 1], False), ([-1, 5], False),
     ([], False), ([1, None], False), ([1, True], False), ([1, "2"], False), ([0.5, float("nan")], False),
     ([float("inf")], False), ([1, 10**400], False)],
)  # fmt: skip
def test_values_that_are_taken_together_are_all_possible(
    values: list[object], possible: bool
) -> None:
    assert numbers.are_all_exported(values) is possible


@pytest.mark.parametrize(
    ("texts", "values"),
    [(["1", "2"], [1.0, 2.0]), (["nan", "2"], [None, 2.0]), (["inf", "2"], [None, 2.0]), (["1e300", "-1e300"], [None] * 2),
     ([None, "x"], [None, None]), ([], []), (["-4611686018427387904", "4611686018427387904"], [-(2.0**62), 2.0**62])],
)  # fmt: skip
def test_a_column_of_texts_has_only_possible_numbers(
    texts: list[str | None], values: list[float | None]
) -> None:
    found = numbers.real_column(pl.Series("a", texts, dtype=pl.String))
    assert (found.to_list(), found.name) == (values, "a")
