"""Sizes, durations, ranges and percentages as people write them."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gctrace_analyzer as gca
from gctrace_analyzer import units
from gctrace_analyzer.present.format import duration, mib

UNITS = {"KiB": 1 / 1024, "MiB": 1, "GiB": 1024, "TiB": 1024 * 1024}

SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600, "d": 86_400}

TIME = st.tuples(st.integers(0, 10_000), st.sampled_from(list(SECONDS)))


@given(st.integers(0, 10**6), st.sampled_from(list(UNITS)))
def test_a_size_that_is_written_is_read_back(number: int, unit: str) -> None:
    assert units.size_mib(f"{number}{unit}") == pytest.approx(number * UNITS[unit])
    assert units.size_mib(f" {number} {unit.lower()} ") == units.size_mib(f"{number}{unit}")


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("2G", 2e9),
        ("2GB", 2e9),
        ("500M", 5e8),
        ("2g", 2 << 30),
        ("2Gi", 2 << 30),
        ("64m", 64 << 20),
    ],
)
def test_sizes_are_read_as_kubernetes_and_docker_read_them(text: str, size: float) -> None:
    assert units.size_mib(text) * units.MIB == pytest.approx(size)


def test_a_size_in_bytes_is_suggested_as_one() -> None:
    with pytest.raises(gca.BadSettingError) as caught:
        units.size_mib("2147483648")
    assert caught.value.suggestion == "2147483648B"


@given(st.floats(0, 1e9))
def test_a_size_that_is_a_number_is_in_mib(size: float) -> None:
    assert units.size_mib(size) == size


@given(st.integers(1, 10**6))
def test_a_size_without_a_unit_is_refused_without_a_guess(number: int) -> None:
    for read in (units.size_mib, units.memory_limit_mib):
        with pytest.raises(gca.BadSettingError) as caught:
            read(str(number))
        assert caught.value.suggestion is None


@given(st.integers(1, 10**6), st.sampled_from(["K", "M", "G", "k", "m", "Mi", "gib", "MB"]))
def test_a_limit_that_go_refuses_is_refused_with_one_that_go_accepts(
    number: int, unit: str
) -> None:
    with pytest.raises(gca.BadSettingError) as caught:
        units.memory_limit_mib(f"{number}{unit}")
    assert caught.value.suggestion == f"{number}{unit[0].upper()}iB"
    assert units.memory_limit_mib(caught.value.suggestion)


@given(st.integers(1, 10**6), st.sampled_from(list(UNITS)))
def test_limits_are_read_as_go_reads_them(number: int, unit: str) -> None:
    text = f"{number}{unit}"
    assert units.memory_limit_mib(text) == units.gomemlimit_mib(text)
    assert units.gomemlimit_mib(str(number)) == pytest.approx(number / units.MIB)


@given(st.lists(TIME, min_size=1, max_size=3))
def test_a_duration_is_the_sum_of_its_parts(parts: list[tuple[int, str]]) -> None:
    text = "".join(f"{number}{unit}" for number, unit in parts)
    expected = sum(number * SECONDS[unit] for number, unit in parts)
    assert units.duration_s(text) == pytest.approx(expected)


@given(st.floats(0, 1e12))
def test_a_duration_that_is_a_number_is_in_seconds(seconds: float) -> None:
    assert units.duration_s(seconds) == seconds


@given(TIME, TIME)
def test_a_range_has_two_ends_in_order(one: tuple[int, str], other: tuple[int, str]) -> None:
    low, high = sorted((one, other), key=lambda each: each[0] * SECONDS[each[1]])
    begin, end = ("".join(map(str, each)) for each in (low, high))
    found = units.span_s(f"{begin}..{end}")
    assert found == (units.duration_s(begin), units.duration_s(end))
    assert units.span_s(f"{begin}..") == (found[0], math.inf)
    assert units.span_s(f"..{end}") == (0.0, found[1])
    if found[0] < found[1]:
        with pytest.raises(gca.BadSettingError) as caught:
            units.span_s(f"{end}..{begin}")
        assert caught.value.suggestion == f"{begin}..{end}"


@given(st.text() | st.floats())
def test_whatever_is_written_is_a_number_or_a_bad_setting(value: Any) -> None:
    for read in (
        units.size_mib,
        units.memory_limit_mib,
        units.duration_s,
        units.gogc_percent,
    ):
        found = None
        with suppress(gca.BadSettingError):
            found = read(value)
        assert found is None or (math.isfinite(found) and found >= 0)


@pytest.mark.parametrize("text", ["12 apples", "", "MiB", "-5MiB"])
def test_invalid_sizes_are_refused(text: str) -> None:
    with pytest.raises(gca.BadSettingError, match="a size"):
        units.size_mib(text)


@pytest.mark.parametrize("argument", ["memory_limit", "container_limit", "ballast", "off_heap"])
def test_a_number_of_bytes_is_refused_where_mib_are_meant(argument: str) -> None:
    limits: dict[str, Any] = {argument: 1 << 30}
    with pytest.raises(gca.BadSettingError, match="a number without a unit is in MiB") as found:
        gca.read("samples/steady-go1.26.log", **limits)
    assert (found.value.argument, found.value.suggestion) == (argument, "1024MiB")
    assert units.size_mib((1 << 30) - 1) == (1 << 30) - 1


@pytest.mark.parametrize("value", ["1.5GiB", "1073741824", "900M", "1gib", "0MiB", 0])
def test_limits_that_cannot_be_set_are_refused(value: str | float) -> None:
    with pytest.raises(gca.BadSettingError):
        units.memory_limit_mib(value)


@pytest.mark.parametrize("text", ["", "soon", "5 parsecs", "1m30x", "-5s"])
def test_invalid_durations_are_refused(text: str) -> None:
    with pytest.raises(gca.BadSettingError, match="a duration such as"):
        units.duration_s(text)


def test_the_last_unit_of_a_duration_may_be_left_out() -> None:
    assert units.duration_s("1m30") == 90


@given(st.floats(0.001, 1e7))
def test_a_duration_that_is_printed_can_be_typed(seconds: float) -> None:
    printed = duration(seconds)
    assert units.duration_s(printed) == pytest.approx(seconds, rel=0.06)
    assert re.fullmatch(r"\d+(\.\d+)? m?s|\d+[dhm] \d\d[hms]", printed)


@given(st.floats(1, 1e6))
def test_a_size_that_is_printed_can_be_typed(size: float) -> None:
    assert units.size_mib(mib(size).replace(",", "")) == pytest.approx(size, rel=0.06)


def test_time_ranges_may_be_open_but_not_reversed() -> None:
    assert units.span_s("1m..") == (60, math.inf)
    for text in ("60s", "120s..60s"):
        with pytest.raises(gca.BadSettingError):
            units.span_s(text)


def test_a_time_of_day_is_no_duration() -> None:
    with pytest.raises(gca.BadSettingError, match="Expected a duration"):
        units.duration_s(datetime(2026, 1, 1, tzinfo=UTC))  # type: ignore[arg-type]
