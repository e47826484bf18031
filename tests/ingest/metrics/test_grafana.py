"""CSV files that Grafana exports, in each of its forms."""

from __future__ import annotations

import polars as pl
import pytest

from gctrace_analyzer.ingest.metrics import grafana
from gctrace_analyzer.ingest.metrics.samples import Samples
from gctrace_analyzer.testing import read_text

COUNT, NEXT = "go_gc_duration_seconds_count", "go_memstats_next_gc_bytes"
WIDE = (
    f'"Time","{COUNT}{{instance=""a"",job=""x""}}","{NEXT}{{instance=""a"",job=""x""}}"\n'
    '"2026-02-03 10:00:00","5","4 MiB"\n"2026-02-03 10:00:15","6","5 MiB"\n'
)
LONG = (
    "Time,__name__,instance,job,Value\n"
    f"1770112800000,{COUNT},a,x,5\n1770112800000,{NEXT},a,x,4194304\n"
    f"1770112815000,{COUNT},a,x,6\n1770112815000,{NEXT},a,x,5242880\n"
)
ROWS = (
    "Series;Time;Value\n"
    f'{COUNT}{{instance="a",job="x"}};2026-02-03T10:00:00+00:00;5\n'
    f'{NEXT}{{instance="a",job="x"}};2026-02-03T10:00:00+00:00;4194304\n'
    f'{COUNT}{{instance="a",job="x"}};2026-02-03T10:00:15+00:00;6\n'
    f'{NEXT}{{instance="a",job="x"}};2026-02-03T10:00:15+00:00;5242880\n'
)
JOINED = (
    "Time,__name__,instance,job,Value #A,Value #B\n"
    f"1770112800000,{COUNT},a,x,5,\n1770112800000,{NEXT},a,x,,4194304\n"
    f"1770112815000,{COUNT},a,x,6,\n1770112815000,{NEXT},a,x,,5242880\n"
)


@pytest.mark.parametrize(
    "text", [WIDE, LONG, ROWS, JOINED], ids=["wide", "long", "rows", "joined"]
)
@pytest.mark.parametrize("first", ["", "sep=SEP\n", "\ufeff", "\ufeffsep=SEP\n"])
def test_every_form_gives_the_same_rows(text: str, first: str) -> None:
    given = first.replace("SEP", ";" if text is ROWS else ",") + text
    assert grafana.is_table(given)
    run = read_text(given)
    assert run.memstats.select("num_gc", "next_gc_bytes").rows() == [(5, 4 << 20), (6, 5 << 20)]
    assert run.memstats["elapsed_s"].to_list() == [0, 15]
    lines = [at + ("sep" in first) for at in ((2, 3) if text is WIDE else (2, 4))]
    assert run.memstats["line_no"].to_list() == lines
    (process,) = run.processes.to_dicts()
    assert (process["host"], process["ident"]) == ("a", "x")
    assert run.rejected.is_empty()
    if text is WIDE:
        assert run.memstats["logged_at"].null_count() == 2, "the zone of the browser is unknown"
    else:
        assert str(run.memstats["logged_at"][0]) == "2026-02-03 10:00:00+00:00"


@pytest.mark.parametrize(
    ("head", "is_table"),
    [
        (f"Time,{COUNT}\n", True),
        (f"timestamp\t{COUNT}\n", True),
        (f"when,{COUNT}\n", False),
        ("Time,requests\n", False),
        (f"Time,Value,Metric\n1,2,{COUNT}\n", True),
        ("Time,Value,Metric\n1,2,requests\n", False),
        (f"Time,Value,Labels\n1,2,{COUNT}\n", False),
        (f"Time,requests\n1,{COUNT}\n", False),
    ],
)
def test_a_table_has_a_time_and_a_metric_of_go(head: str, is_table: bool) -> None:
    assert grafana.is_table(head) is is_table


def test_rows_with_other_cells_are_rejected_with_their_line() -> None:
    lines = LONG.splitlines(keepends=True)
    run = read_text("".join([*lines[:2], "1770112800000,x\n", "\n", *lines[2:]]))
    assert run.memstats["num_gc"].to_list() == [5, 6]
    assert run.rejected.select("line_no", "reason", "text").rows() == [
        (3, "2 cells in a table of 5 columns", "1770112800000,x")
    ]
    after_sep = read_text("sep=,\n" + "".join([*lines[:2], "1,2\n", *lines[2:]]))
    assert after_sep.rejected["line_no"].to_list() == [4]


def test_values_without_a_number_are_missing_or_damaged() -> None:
    text = WIDE.replace('"6","5 MiB"', '"","5 apples"')
    run = read_text(text)
    assert run.memstats.select("num_gc", "next_gc_bytes").rows() == [(5, 4 << 20)]
    assert run.rejected["line_no"].to_list() == [3]


@pytest.mark.parametrize(
    ("text", "value"),
    [("5", 5), ("5 KiB", 5 << 10), ("5 kB", 5000), ("1.5 GB", 1.5e9), ("3 TiB", 3 << 40), ("250 µs", 250e-6),
     ("7 ns", 7e-9), ("2 mins", 120), ("1.5 hour", 5400), ("2 days", 172_800), ("1 week", 604_800), ("1.2 K", 1200),
     ("3 Mil", 3e6), ("3 Bil", 3e9), ("45%", 45), ("-5 s", -5), ("1e3 ms", 1), (" 5 s ", 5), ("5 parsec", None)],
)  # fmt: skip
def test_formatted_values_have_their_unit(text: str, value: float | None) -> None:
    # With a text that is no number, so that units are looked at.
    found = grafana.numbers(pl.Series([text, "x"])).to_list()
    assert found == [None if value is None else pytest.approx(value), None]


def test_a_table_that_is_no_csv_is_rejected() -> None:
    """A field of more than 128 KiB, as a quote mark without its partner leaves."""
    text = WIDE + '"2026-02-03 10:00:30,"' + "x" * 140_000
    samples = Samples()
    ((line_no, reason, _),) = grafana.read(text, samples)
    assert (line_no, reason) == (1, "not a CSV file: field larger than field limit (131072)")
    assert samples.frames == []


def test_a_table_without_times_gives_nothing() -> None:
    samples = Samples()
    assert grafana.read(f"when,{COUNT}\n1,2\n", samples) == []
    assert grafana.read(f"Time,{COUNT}\n", samples) == []
    assert samples.frames == []
