"""Pages of metrics that a loop appends to a file, with the output of `date` between them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from gctrace_analyzer.present.sections import headline
from gctrace_analyzer.testing import read_text
from tests.helpers.intervals import between_dumps

FIRST = datetime(2026, 2, 3, 10, tzinfo=UTC)


def page(n: int) -> str:
    return (
        "# TYPE go_memstats_alloc_bytes_total counter\n"
        f"go_memstats_alloc_bytes_total {n * 1e8:g}\n"
        f"go_gc_duration_seconds_count {n}\n"
        "go_memstats_next_gc_bytes 2e+07\n"
        "go_memstats_last_gc_time_seconds 1.7e+09\n"
    )


def pages(form: str, count: int = 4) -> str:
    at = [FIRST + timedelta(seconds=15 * n) for n in range(count)]
    return "".join(f"{each.strftime(form)}\n{page(n)}" for n, each in enumerate(at, start=1))


@pytest.mark.parametrize(
    "form",
    [
        "%a %b %e %H:%M:%S UTC %Y",
        "=== %Y-%m-%dT%H:%M:%SZ ===",
        "# %Y-%m-%d %H:%M:%S+00:00",
        "%s",
        "--- %Y-%m-%dT%H:%M:%S+0000",
    ],
)
def test_the_date_before_a_page_is_its_time(form: str) -> None:
    run = read_text(pages(form))
    times = run.table("memstats")["logged_at"].to_list()
    assert times == [FIRST + timedelta(seconds=15 * n) for n in range(4)]
    assert between_dumps(run)["gc_per_s"].to_list() == pytest.approx([1 / 15] * 3)


def test_dates_without_a_zone_show_the_distances() -> None:
    run = read_text(pages("%Y-%m-%d %H:%M:%S"))
    assert run.table("memstats")["logged_at"].null_count() == 4
    assert run.table("memstats")["elapsed_s"].to_list() == [0, 15, 30, 45]
    assert run.summary().gc_per_s == pytest.approx(1 / 15)


def test_one_date_above_all_pages_is_not_the_time_of_each() -> None:
    text = "Tue Feb  3 10:00:00 UTC 2026\n" + "".join(page(n) for n in range(1, 5))
    found = read_text(text).table("memstats")
    assert len(found) == 4
    assert found["logged_at"].null_count() == 4


def test_answers_of_promtool_query_are_read() -> None:
    """`promtool query range` prints each series above its values, `query instant` on one line."""
    at = [int((FIRST + timedelta(seconds=15 * n)).timestamp()) for n in range(4)]
    labels = '{instance="web1:8080", job="api"}'
    values = {
        "go_memstats_alloc_bytes_total": [n * 1e8 for n in range(4)],
        "go_gc_duration_seconds_count": [float(n) for n in range(4)],
        "go_memstats_next_gc_bytes": [2e7] * 4,
    }
    ranges = "".join(
        f"{name}{labels} =>\n" + "".join(f"{v:g} @[{t}]\n" for v, t in zip(of, at, strict=True))
        for name, of in values.items()
    )
    run = read_text(ranges)
    assert run.summary().gc_per_s == pytest.approx(1 / 15)
    assert run.table("memstats")["host"].unique().to_list() == ["web1:8080"]
    assert run.rejected.is_empty()
    instant = "".join(
        f"{name}{labels} => {of[0]:g} @[{at[0]}.885]\n" for name, of in values.items()
    )
    (row,) = read_text(instant).table("memstats").to_dicts()
    assert row["next_gc_bytes"] == 20_000_000


def test_a_damaged_line_of_promtool_is_rejected() -> None:
    text = (
        "go_memstats_next_gc_bytes =>\n2e+07 @[1770112800]\n2e+07 @[17701\n"
        "go_memstats_alloc_bytes_total =>\n1e+07 @[1770112800]\n"
    )
    run = read_text(text)
    assert len(run.table("memstats")) == 1
    assert run.rejected["line_no"].to_list() == [3]


def test_a_histogram_of_pauses_alone_has_bounds_of_the_longest() -> None:
    bucket = 'go_gc_pauses_seconds_total_bucket{{le="{}"}} {}\n'
    counts = {"1e-05": 1, "0.0001": 9, "0.001": 10, "+Inf": 10}
    page = "".join(bucket.format(*one) for one in counts.items())
    run = read_text(f"{page}go_gc_pauses_seconds_total_sum NaN\n")
    said = headline.verdict(run.report()).sentence
    assert "10 GC pauses" in said
    assert "9 took at most 0.1 ms, the longest 0.1 to 1 ms." in said
    without = page.replace('le="+Inf"} 10', 'le="+Inf"} 11')
    said = headline.verdict(read_text(without).report()).sentence
    assert "10 took at most 1 ms, the longest more than 1 ms." in said


def test_a_page_that_is_indented_below_other_output_is_read() -> None:
    page = "\n".join(
        f"        {line}"
        for line in (
            "# TYPE go_gc_duration_seconds summary",
            "go_gc_duration_seconds_sum 0.5",
            "go_gc_duration_seconds_count 7",
        )
    )
    text = f"[root@master01 monitor]# kubectl exec node-exporter -- curl localhost:9100/metrics\n 0 0# HELP\n{page}\n"
    assert read_text(text).memstats["num_gc"].to_list() == [7]


def test_fluent_bit_prints_a_time_before_each_sample() -> None:
    run = read_text(
        "[2026/02/03 10:00:00] [ info] [output:stdout:stdout.0] worker #0 started\n"
        + "".join(
            f"2026-02-03T10:00:{second}.418829101Z {sample}\n"
            for second in (10, 40)
            for sample in (
                'go_info{version="go1.21.8"} = 1',
                f"go_gc_duration_seconds_count = {second}",
                "go_memstats_next_gc_bytes = 786432000",
            )
        )
    )
    assert run.memstats["num_gc"].to_list() == [10, 40]
    assert run.memstats["logged_at"][0] == FIRST + timedelta(seconds=10, microseconds=418829)
    assert run.summary().gc_per_s == 1


def test_a_histogram_of_pauses_is_a_cost_since_the_start() -> None:
    shown = headline.verdict(
        read_text(
            'go_gc_pauses_seconds_total_bucket{le="0.001"} 5\n'
            'go_gc_pauses_seconds_total_bucket{le="+Inf"} 6\n'
            "go_memory_classes_heap_free_bytes 1.2e+07\n"
            "go_memory_classes_heap_objects_bytes 1.2e+07\n"
        ).report()
    )
    assert "is not in the input" not in shown.sentence


def test_an_arrow_points_at_a_sample_and_is_no_part_of_it() -> None:
    run = read_text(
        'go_gc_duration_seconds{quantile="1"} 0.0013          <---\n'
        "go_gc_duration_seconds_sum 0.261\n"
        "go_gc_duration_seconds_count 860     ← here\n"
        "go_memstats_heap_alloc_bytes 2.08494536e+08\n"
    )
    assert run.memstats.select("num_gc", "pause_max_s").rows() == [(860, 0.0013)]
    assert len(run.rejected) == 0
