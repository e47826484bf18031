"""Series in JSON: batches, pieces without blanks, and damage in each place."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from gctrace_analyzer.ingest.metrics import series_json
from gctrace_analyzer.ingest.metrics.samples import Samples
from gctrace_analyzer.testing import read_text

AT_S = 1_770_112_800
COUNT, HEAP = "go_gc_duration_seconds_count", "go_memstats_heap_alloc_bytes"


def series(name: str, **members: Any) -> dict[str, Any]:
    return {"metric": {"__name__": name, "instance": "a:1"}, **members}


def pairs(values: list[float]) -> list[list[Any]]:
    return [[AT_S + 15 * n, str(value)] for n, value in enumerate(values)]


def answer(*result: dict[str, Any], blanks: bool = True) -> str:
    data = {"status": "success", "data": {"resultType": "matrix", "result": list(result)}}
    return json.dumps(data, separators=None if blanks else (",", ":"))


def export(*result: dict[str, Any], blanks: bool = False) -> str:
    separators = None if blanks else (",", ":")
    return "".join(json.dumps(each, separators=separators) + "\n" for each in result)


COUNTS, SIZES = [1.0, 2.0, 3.0, 5.0], [10.0, 20.0, 30.0, 50.0]
TIMES_MS = [(AT_S + 15 * n) * 1000 for n in range(4)]


def both(form: str) -> str:
    if form.startswith("export"):
        found = (
            series(name, values=each, timestamps=TIMES_MS)
            for name, each in ((COUNT, COUNTS), (HEAP, SIZES))
        )
        return export(*found, blanks=form.endswith("blanks"))
    found = (
        series(name, values=pairs(each)) for name, each in ((COUNT, COUNTS), (HEAP, SIZES))
    )
    return answer(*found, blanks=form.endswith("blanks"))


@pytest.mark.parametrize(
    "form", ["answer", "answer with blanks", "export", "export with blanks"]
)
@pytest.mark.parametrize("most", [1, 5, 1 << 20])
def test_batches_of_any_size_give_the_same_rows(
    form: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(series_json, "_MOST_CHARS", 10 * most)
    rows = read_text(both(form)).memstats
    assert rows["num_gc"].to_list() == COUNTS
    assert rows["heap_alloc_bytes"].to_list() == SIZES
    assert rows["elapsed_s"].to_list() == [0, 15, 30, 45]


@pytest.mark.parametrize("labels", [0, 1, 1 << 16])
def test_labels_that_are_not_kept_are_read_again(
    labels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(series_json, "_MOST_LABELS", labels)
    text = both("answer") + "\n" + both("answer").replace(str(AT_S)[:-2], str(AT_S + 100)[:-2])
    run = read_text(text)
    assert run.memstats["num_gc"].to_list() == COUNTS * 2
    assert len(run.processes) == 2, "the counter falls"


@pytest.mark.parametrize(
    ("damaged", "line_no"),
    [
        (series(HEAP, values=[[AT_S]]), 2),
        (series(HEAP, values=[5, 6]), 2),
        (series(HEAP, values=[[AT_S, "1"], 7]), 2),
        (series(HEAP, values="x", timestamps=TIMES_MS), 2),
        (series(HEAP, values={"a": 1}, timestamps=[1]), 2),
        (series(HEAP, values=[1.0, 2.0], timestamps=[AT_S]), 2),
        (series(HEAP, values=[" 1", 2.0], timestamps=[AT_S]), 2),
        (series(HEAP, value=[AT_S]), 2),
        (series(HEAP, value=5), 2),
    ],
)
@pytest.mark.parametrize("blanks", [False, True])
def test_a_damaged_series_leaves_the_others(
    damaged: dict[str, Any], line_no: int, blanks: bool
) -> None:
    good = [
        series(name, values=COUNTS, timestamps=TIMES_MS)
        for name in (COUNT, "go_memstats_next_gc_bytes")
    ]
    run = read_text(export(good[0], damaged, good[1], blanks=blanks))
    assert run.memstats["num_gc"].to_list() == COUNTS
    assert run.memstats["next_gc_bytes"].to_list() == COUNTS
    # What comes before the damage is kept.
    assert run.memstats["heap_alloc_bytes"].count() <= 1
    assert set(run.rejected["line_no"]) == {line_no}


@pytest.mark.parametrize(
    "form", ["answer", "answer with blanks", "export", "export with blanks"]
)
def test_a_text_that_is_cut_anywhere_keeps_the_samples_before(form: str) -> None:
    text = both(form)
    begin = text.index('"go_memstats')
    for cut in range(begin, len(text) - 4):
        samples = Samples()
        rejected = series_json.read(text[:cut], samples)
        found = pl.concat(samples.frames).filter(series=0)["value"].to_list()
        assert found == COUNTS, text[:cut]
        # A text that ends with the labels of a series looks whole.
        assert len(rejected) == (text[cut - 1] != "}")
        assert all(line_no == text[:cut].count("\n") + 1 for line_no, _, _ in rejected)


def test_labels_alone_are_no_series() -> None:
    """As `/api/v1/series` gives them, or a query that was cut by an editor."""
    text = answer(series(COUNT, values=pairs(COUNTS)), series(HEAP), series(HEAP, histogram=[]))
    run = read_text(text)
    assert run.memstats["num_gc"].to_list() == COUNTS
    assert run.rejected.is_empty()


def test_a_cut_answer_is_shown_by_its_end() -> None:
    counts = [float(each) for each in range(100_000, 100_300)]
    text = answer(series(COUNT, values=pairs(counts)))
    cut = text[: text.index("]]") + 2]
    ((_, _, shown),) = series_json.read(cut, Samples())
    assert shown == cut[-200:]
