"""GC CPU is the runtime's: compared with GCCPUFraction of logs whose truth is known."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.durations import correct_durations
from gctrace_analyzer.analysis.settings.known import Known, Settings
from gctrace_analyzer.present.sections import headline
from gctrace_analyzer.testing import read_text
from tests.conftest import CORPUS

if TYPE_CHECKING:
    from pathlib import Path

TRUTHS = sorted(
    path
    for pattern in ("gctrace/go*/truth*.json", "advice/*/*/truth.json")
    for path in CORPUS.glob(pattern)
)


def shares_of(spans: pl.DataFrame, capacity_s: pl.Expr) -> tuple[float, float, float]:
    """The least, most probable and highest share of GC CPU of these spans."""
    names = ("gc_cpu_low_s", "gc_cpu_s", "gc_cpu_high_s")
    low, value, high = spans.select(
        pl.col(name).sum() / capacity_s.sum() for name in names
    ).row(0)
    return low, value, high


def truth_of(path: Path) -> tuple[dict[str, Any], tuple[int, int], pl.DataFrame]:
    """The truth of a process, its Go version, and its spans up to the cycle of the truth."""
    truth = json.loads(path.read_text())
    version = truth.get("go_version") or "go1.26"
    major, minor = version.removeprefix("go").split(".")[:2]
    run = gca.read(path.parent / "run.log")
    number = int(path.stem.partition(".")[2] or 1) - 1
    process = run.processes["process"][number]
    spans = run.analysis.spans.filter(pl.col("gc_num") <= truth["NumGC"], process=process)
    return truth, (int(major), int(minor)), spans


@pytest.mark.parametrize("path", TRUTHS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_gc_cpu_is_what_the_runtime_says(path: Path) -> None:
    truth, version, spans = truth_of(path)
    low, value, high = shares_of(spans, pl.col("elapsed_s") * pl.col("procs"))
    expected = truth["GCCPUFraction"]
    assert low <= value <= high
    printed = spans["gc_cpu_since_start_pct"][-1]
    if version < (1, 23) or printed >= 17:
        assert value == pytest.approx(expected, rel=0.03)
    # Durations are known to within half of their last printed digit.
    noise = 0.01 * expected
    if path.parent.name != "go1.26-retune":  # a cycle's GC CPU is 3 % below its printed parts
        assert low - noise <= expected <= high + noise


LINE = (
    "gc {n} @{n}.000s {share}%: 100+100+0.1 ms clock, 400+0/100/0+0.4 ms cpu, "
    "50->60->40 MB, 80 MB goal, 0 MB stacks, 0 MB globals, 4 P\n"
)


def log_of(share: int, first: int = 1) -> str:
    return "".join(LINE.format(n=n, share=share) for n in range(first, first + 40))


def share_of(share: int, go: str | None = None, first: int = 1) -> tuple[float, float, float]:
    """The least, most probable and highest share of GC CPU of such a log."""
    spans = read_text(log_of(share, first)).analysis.spans
    if go is not None:
        corrected = correct_durations(
            read_text(log_of(share, first)).cycles, Settings(go_version=Known(go, "given"))
        )
        parts = ("counted_pauses_low", "counted_pauses", "counted_pauses_high")
        low, value, high = (corrected[name][0] for name in parts)
        return low, value, high
    return shares_of(spans, pl.col("capacity_s"))


def test_the_printed_share_bounds_what_counts_of_the_pauses() -> None:
    """Marking takes 2.5 % of the CPU, and both pauses 10 % more if all of them counts."""
    low, value, high = share_of(4)
    # 4 % of all time up to the last line, and 5 % of that up to the first.
    assert low == pytest.approx(0.040, abs=0.001)
    assert high == pytest.approx(0.050, abs=0.001)
    assert value == pytest.approx((low + high) / 2)
    low, _, high = share_of(12)
    assert low == pytest.approx(0.12, abs=0.001)
    assert high == pytest.approx(0.125, abs=0.001)


def test_a_version_that_counts_all_of_the_pauses_is_believed() -> None:
    assert share_of(4, go="1.22.5") == (1.0, 1.0, 1.0)
    low, value, high = share_of(4, go="1.23")
    assert low < value < high < 0.3


def test_a_log_that_contradicts_itself_bounds_nothing() -> None:
    low, value, high = share_of(40)
    assert value == high == pytest.approx(0.125, abs=0.001)
    assert low == pytest.approx(0.025, abs=0.001)


def test_before_the_log_the_share_is_known_to_a_point() -> None:
    low, _, high = share_of(4, first=100)
    assert low == pytest.approx(0.025, abs=0.001)
    assert high > share_of(4)[2] + 0.01


@pytest.mark.parametrize(
    "dumps", ["memstats.csv.gz", "expvar.jsonl.gz", "scrapes.om.gz", "runtime-metrics.jsonl.gz"]
)
def test_a_dump_beside_the_log_shows_gc_cpu_exactly(dumps: str) -> None:
    """The last dump has a GCCPUFraction of 4.267 % after cycle 133; the log prints 4 %."""
    folder = CORPUS / "metrics" / "own" / "gogc100"
    run = gca.read(folder / "run.log.gz", folder / dumps)
    spans = run.analysis.spans.filter(pl.col("gc_num") <= 133)
    low, value, high = shares_of(spans, pl.col("elapsed_s") * pl.col("procs"))
    assert value == pytest.approx(0.042672, rel=0.01)
    assert high - low < 0.0002
    alone = gca.read(folder / "run.log.gz").summary()
    assert (alone.gc_cpu_share_high or 0) - (alone.gc_cpu_share_low or 0) > 0.003


def test_a_time_is_what_the_lines_add_up_to_and_not_a_whole_percentage_of_a_rounded_time() -> (
    None
):
    run = read_text("""
gc 1 @0.001s 3%: 0.006+0.33+0.018 ms clock, 0.098+0.049/0.56/0.17+0.29 ms cpu, 4->6->5 MB, 5 MB goal, 16 P
gc 2 @0.006s 1%: 0.006+0.62+0.021 ms clock, 0.10+0.061/0.80/0.16+0.33 ms cpu, 9->10->7 MB, 10 MB goal, 16 P
""")
    verdict = run.report().verdict
    assert verdict is not None
    assert "GC took 2.3 ms of CPU time in 6.7 ms" in verdict.sentence
    assert not any("range" in warning for warning in run.summary().warnings)


ONE = (
    "gc 1 @0.000s 2%: 0.009+0.23+0.004 ms clock, 0.018+0.015/0.04/0.003+0.009 ms cpu, 4->4->1 MB, "
    "4 MB goal, {}2 P"
)


@pytest.mark.parametrize(
    ("roots", "time", "assists"),
    [
        ("", "0.084 ms", "18.5 %"),
        # Since Go 1.23, the time to stop the world does not count in full.
        ("0 MB stacks, 0 MB globals, ", "0.056–0.084 ms", "18–28 %"),
    ],
)
def test_the_time_of_a_single_cycle_and_its_assists_have_one_total(
    roots: str, time: str, assists: str
) -> None:
    run = read_text(ONE.format(roots))
    figures = {figure.label: figure.value for figure in headline.state(run.report())}
    assert (figures["GC CPU"], figures["Mark assist"]) == (time, assists)
    assert "gc_cpu_s" not in run.summary().to_dict()
