"""Pages of metrics that a loop appends to a file, with the output of `date` between them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from gctrace_analyzer.testing import read_text

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
    assert run.intervals["gc_per_s"].to_list() == pytest.approx([1 / 15] * 3)


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
