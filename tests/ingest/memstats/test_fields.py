"""The names of MemStats fields, with and without units."""

from __future__ import annotations

import pytest

from gctrace_analyzer.errors import NoDataError
from gctrace_analyzer.ingest.memstats import fields
from gctrace_analyzer.testing import read_text

UNITS = {
    "bytes": 1,
    "KiB": 1 << 10,
    "kb": 1 << 10,
    "MiB": 1 << 20,
    "MB": 1 << 20,
    "GiB": 1 << 30,
    "gb": 1 << 30,
}


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    "form",
    ["HeapAlloc {}", "heap_alloc_{}", "HeapAlloc ({})", "heap.alloc[{}]", '"HeapAlloc{}"'],
)
def test_a_name_may_end_with_a_unit(form: str, unit: str) -> None:
    assert fields.scaled(form.format(unit)) == ("heap_alloc_bytes", UNITS[unit])


@pytest.mark.parametrize(
    ("name", "column"),
    [("NumGC", "num_gc"), ("num-gc", "num_gc"), ("PauseTotalNs", "pause_total_ns"), ("pause_total", "pause_total_ns"),
     ("LastGC", "last_gc_unix_ns"), ("NumGoroutine", "goroutines"), ("RSS", "rss_bytes"),
     ("GOGC", "gogc_pct"), ("GOMEMLIMIT", "gomemlimit_bytes"), ("NumGC MiB", None), ("requests", None)],
)  # fmt: skip
def test_a_name_is_known_in_every_spelling(name: str, column: str | None) -> None:
    assert fields.scaled(name) == (column, 1)
    assert fields.is_field(name) == (column in fields.OF_GO)


@pytest.mark.parametrize(
    ("ring", "cycles", "pause"),
    [([7, 8, 9], 1, 7), ([7, 8, 9], 3, 9), ([*range(256)], 256, 255), ([*range(256)], 257, 0),
     ([*range(256)], 1, 0), ([5], 0, None), ([5], None, None), ([], 3, None), ("x", 3, None), (None, 3, None)],
)  # fmt: skip
def test_the_last_pause_is_at_the_number_of_cycles(
    ring: object, cycles: int | None, pause: int | None
) -> None:
    """The runtime has it at (NumGC + 255) % 256."""
    assert fields.last_pause(ring, cycles) == pause


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("max_rss", "rss_peak_bytes"),
        ("PoolSize", "pool_bytes"),
        ("GOMEMLIMIT", "gomemlimit_bytes"),
    ],
)
def test_names_that_are_not_of_memstats_may_end_with_a_unit_too(
    name: str, column: str, unit: str
) -> None:
    assert fields.scaled(f"{name}_{unit}") == (column, UNITS[unit])


@pytest.mark.parametrize(
    "text",
    [
        "| Part | MiB |\n| --- | ---: |\n| HeapAlloc | 138.5 |\n| HeapIdle | 12.1 |\n",
        "HeapInuse minus HeapAlloc = 16 MiB\nHeapIdle minus HeapReleased = 12 MiB\n",
        "HeapAlloc: 138.5\tHeapSys: 181.5\tNumGC: 3.5\n",
    ],
)
def test_numbers_whose_unit_or_meaning_is_elsewhere_are_no_sizes(text: str) -> None:
    with pytest.raises(NoDataError, match="in a form that is read"):
        read_text(text)


@pytest.mark.parametrize(
    ("text", "noted"),
    [
        ("We insert 25MB batches, totalling 1GB of data.\n", False),
        ("The TotalAlloc below is over 1 GB.\n", False),
        ("The heap: 1.5 GB\n", True),
    ],
)
def test_only_sizes_of_a_dump_are_said_to_be_binary(text: str, noted: bool) -> None:
    assert bool([*fields.of_units(text)]) is noted
