"""Long files that are read in stretches."""

from __future__ import annotations

import gzip
import math
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from gctrace_analyzer import schema
from gctrace_analyzer.fleets import stretches, worker
from tests.helpers.fleet import item, rows_of, sample
from tests.helpers.logs import prolonged

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gctrace_analyzer.schema import Row

# Determined for each stretch separately: what is wrong, and what to set.
OF_STRETCHES = {
    "stretches", "warnings", "findings", "severity", "headline", "action", "grows", "needed_limit_mib", "episodes",
    "worst_episodes", "thrash_s", "limiter", "thrashes_at_end", "goal_set_by", "gogc_inferred", "log_check_points",
    *(name for name in schema.names("fleet") if name.startswith(("advice_", "saved_"))),
}  # fmt: skip


def results_of(path: Path, stretch: int) -> list[stretches.StretchResult]:
    """The results of a file that is read in ranges of bytes, each by its own task."""
    how = worker.WorkerOptions(stretch=stretch)
    many = worker.batches([item(path)], how, files=16, size=1 << 24)
    assert len(many) > 1
    found = [each for batch in reversed(many) for each in worker.batch_rows(batch)]
    return [each for each in found if not isinstance(each, dict)]


def in_parts(path: Path, stretch: int) -> list[Row]:
    """The rows of such a file."""
    return stretches.rows_of_file(results_of(path, stretch), item(path), {})


def same(one: Row, other: Row, *, but: set[str] | None = None) -> None:
    for name, value in one.items():
        if name == "modified" or name in (but or ()):
            continue
        if isinstance(value, float) and other[name] is not None:
            # A stretch does not show how much of its pauses the runtime counts: the start decides.
            near = 0.01 if "gc_cpu" in name else 1e-6
            assert math.isclose(value, other[name], rel_tol=near, abs_tol=1e-9), name
        else:
            assert value == other[name], name


@pytest.fixture(scope="module")
def long_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("long") / "long.log"
    path.write_text("".join(prolonged(sample(), 400_000)))
    return path


def test_a_file_read_in_stretches_has_the_same_figures(long_log: Path) -> None:
    (whole,) = rows_of(long_log)
    (cut,) = in_parts(long_log, 60_000)
    assert cut["stretches"] == 7
    same(whole, cut, but=OF_STRETCHES)


def test_the_verdict_on_a_file_is_that_of_its_worst_stretch(long_log: Path) -> None:
    *others, first = results_of(long_log, 60_000)
    (part,) = first.parts
    worst = {"severity": "bad", "headline": "It grew.", "grows": True}
    bad = replace(first, parts=(replace(part, row=part.row | worst),))
    (row,) = stretches.rows_of_file([bad, *others], item(long_log), {})
    assert {name: row[name] for name in worst} == worst


@pytest.mark.parametrize(
    "name", ["restart-go1.26", "together-go1.22", "go1.4", "gctrace2-go1.27", "leak-go1.26"]
)
def test_processes_are_joined_across_seams(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(sample(name))
    whole, cut = rows_of(path), in_parts(path, 3000 if path.stat().st_size > 6000 else 900)
    assert len(whole) == len(cut)
    for one, other in zip(whole, cut, strict=True):
        same(one, other, but=OF_STRETCHES)


def test_ranges_of_bytes_and_a_compressed_stream_give_the_same_rows(
    long_log: Path, tmp_path: Path
) -> None:
    packed = tmp_path / "long.log.gz"
    packed.write_bytes(gzip.compress(long_log.read_bytes()))
    (streamed,) = rows_of(packed, stretch=60_000)
    (cut,) = in_parts(long_log, 60_000)
    same(streamed, cut, but={"file", "file_bytes"})


@pytest.mark.parametrize("seam", range(40, 160, 17))
def test_a_record_torn_at_a_seam_is_read_once(seam: int, tmp_path: Path) -> None:
    lines = sample().splitlines(keepends=True)
    records = [line for line in lines if line.startswith("gc ")]
    torn = records[20][:34] + "a line of the program\n" + records[20][34:]
    text = "".join([*records[:20], torn, *records[21:]])
    path = tmp_path / "a.log"
    path.write_text(text)
    (whole,) = rows_of(path)
    assert whole["repaired_cycles"] == 1
    (cut,) = in_parts(path, text.index(torn) + seam - 40)
    same(whole, cut, but=OF_STRETCHES)


def test_every_line_belongs_to_one_stretch(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"".join(b"%d\n" % (n**3) for n in range(300)) + b"no line end")
    size = path.stat().st_size
    for step in (1, 2, 7, 100, size - 1, size, size + 5):
        with path.open("rb") as file:
            own = sum(
                stretches.stretch_of_range(file, at, min(at + step, size)).own
                for at in range(0, size, step)
            )
        assert own == 301


def dated(lines: list[str]) -> Iterator[str]:
    """The lines with times of syslog, around New Year."""
    begin = datetime(2025, 12, 31, 23, 59, 40, tzinfo=UTC)
    for line in lines:
        if at := re.search(r"@([0-9.]+)s", line):
            yield f"{begin + timedelta(seconds=float(at[1])):%b %d %H:%M:%S} h api[7]: {line}"


def test_a_given_year_or_start_is_that_of_the_first_line_only(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    lines = "".join(prolonged(sample(), 150_000)).splitlines(keepends=True)
    logs: list[tuple[list[str], dict[str, Any]]] = [
        ([*dated(lines)], {"year": 2025, "tz": "UTC"}),
        (lines * 2, {"start": "2025-12-31T23:00:00Z"}),
    ]
    for text, option in logs:
        path.write_text("".join(text))
        whole = rows_of(path, read=option)
        cut = rows_of(path, read=option, stretch=60_000)
        assert whole[0]["ended_at"] is not None
        assert [row["ended_at"] for row in cut] == [row["ended_at"] for row in whole]


def test_a_long_compressed_file_is_read_by_one_task(tmp_path: Path) -> None:
    path = tmp_path / "a.log"  # compressed, without saying so in its name
    path.write_bytes(gzip.compress("".join(prolonged(sample(), 90_000)).encode(), 0))
    how = worker.WorkerOptions(stretch=40_000)
    first, *others = worker.batches([item(path)], how, files=16, size=1 << 24)
    assert [len(worker.batch_rows(batch)) for batch in others] == [0] * len(others)
    (found,) = worker.batch_rows(first)
    assert isinstance(found, dict)
    assert found["cycles"] > 100
