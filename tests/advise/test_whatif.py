"""What-if rows: they agree with each other, with what was measured, and with other logs."""

from __future__ import annotations

import io
import pickle
import re
from typing import TYPE_CHECKING

import polars as pl
import pytest

import gctrace_analyzer as gca
from tests.conftest import CORPUS, SAMPLES
from tests.helpers.corpus import run_of
from tests.helpers.facts import log_of

if TYPE_CHECKING:
    from pathlib import Path

REAL = sorted((CORPUS / "real").glob("*/*/run.log.gz"))
SERVICE = CORPUS / "advice" / "svc-a"
GOGC = [10, 25, 50, 75, 95, 100, 105, 150, 200, 400, 800]


def name_of(path: Path) -> str:
    return "-".join(path.parts[-3:-1])


@pytest.mark.parametrize("log", REAL, ids=name_of)
def test_less_gogc_never_needs_more_memory(log: Path) -> None:
    run = gca.read(log)
    if run.advice.baseline.refused:
        pytest.skip("no predictions")
    rows = run.whatif(gogc=GOGC).head(len(GOGC))
    assert rows["heap_peak_mib"].is_sorted()
    assert (rows["heap_peak_mib_low"] <= rows["heap_peak_mib"]).all()
    assert (rows["heap_peak_mib"] <= rows["heap_peak_mib_high"]).all()


def test_the_present_setting_shows_what_was_measured() -> None:
    run = gca.read(SERVICE / "gogc100" / "run.log", gogc=100)
    now = run.whatif().row(1, named=True)
    late = run.between(0.5).summary()
    assert now["gc_per_s"] == pytest.approx(late.gc_per_s, rel=0.02)
    assert now["heap_peak_mib"] == pytest.approx(late.heap_peak_mib, abs=1)
    assert now["gc_per_s_low"] == now["gc_per_s"] == now["gc_per_s_high"]
    near = run.whatif(gogc=[99, 101]).head(2)
    assert near["gc_per_s"].to_list() == pytest.approx([now["gc_per_s"]] * 2, rel=0.03)


def test_a_limit_below_the_largest_live_heap_always_carries_a_warning() -> None:
    run = gca.read(SAMPLES / "refill" / "service.log.gz", gogc=100, memory_limit="104MiB")
    largest = run.cycles["heap_live_mib"].max()
    assert isinstance(largest, int)
    rows = run.whatif(gogc="off", memory_limit=[largest - 20, largest, largest + 5])
    assert "no" not in rows["thrash"].to_list()
    assert rows["warnings"].str.contains("(?:below|above) the largest live heap").all()


def test_a_burst_during_one_marking_is_no_live_heap(tmp_path: Path) -> None:
    """What it allocates is garbage in the next cycle, and another GOGC makes it no larger."""
    sizes = {700: (9, 105, 99, 10), 701: (192, 199, 11, 200), 702: (20, 21, 5, 22)}
    names = ("start", "end", "live", "goal")
    values = {
        name: lambda n, at=at: sizes.get(n, (9, 10, 5, 10))[at] for at, name in enumerate(names)
    }
    run = run_of(tmp_path, 1000, 0.004, mark=1, assist=1, background=0.1, **values)
    present, more = run.whatif(gogc=[100, 200], memory_limit="off").rows(named=True)
    assert present["heap_peak_mib"] == pytest.approx(199, abs=1)
    assert more["heap_peak_mib"] < present["heap_peak_mib"] + 60
    assert more["heap_peak_mib_low"] < 60
    assert (run.advice.baseline.live_max_mib or 0) < 15


def test_thrash_share_is_a_share_of_the_time() -> None:
    run = gca.read(SERVICE / "gogc100" / "run.log", gogc=100)
    rows = run.whatif(gogc="off", memory_limit=["20MiB", "70MiB", "100MiB", "1GiB"])
    shares = rows["thrash_share"].to_list()
    assert shares[0] == 1
    assert shares[-1] == 0
    assert all(0 <= share <= 1 for share in shares)
    assert rows["thrash"][0] == "certain"
    assert rows["thrash"][3] == "no"


def test_cores_are_the_share_of_all_cpus() -> None:
    row = (
        gca.read(SERVICE / "gogc100" / "run.log", gogc=100).whatif(gogc=200).row(0, named=True)
    )
    assert row["gc_cpu_cores"] == pytest.approx(2 * row["gc_cpu_with_idle_share"])


def test_more_procs_than_cpus_count_as_the_cpus_there_are() -> None:
    """128 processors on a machine with two: a pause stops only two."""
    log = CORPUS / "real" / "badger" / "gogc50" / "run.log.gz"
    load = gca.read(log, gogc=50).advice.baseline.load
    assert load is not None
    assert (load.procs, load.cpus) == (128, 2)
    assert 0.01 < load.gc_cpu_with_idle_share < 0.2
    limited = gca.read(log, gogc=50, cpu_limit=1).advice.baseline.load
    assert limited is not None
    assert limited.cpus == 1


def test_a_second_log_makes_predictions_near_it_better() -> None:
    now = gca.read(SERVICE / "gogc100" / "run.log", gogc=100)
    other = gca.read(SERVICE / "gogc400" / "run.log", gogc=400)
    alone, both = (now.whatif(gogc=400, evidence=each) for each in ([], [other]))
    measured = other.whatif().filter("now").row(0, named=True)
    for name in ("gc_per_s", "heap_peak_mib"):
        errors = [abs(rows[name][0] / measured[name] - 1) for rows in (alone, both)]
        assert errors[1] < errors[0], name
    assert now.whatif(gogc=400, evidence=other).equals(both)
    own = (rows.filter("now") for rows in (now.whatif(evidence=[other]), now.whatif()))
    assert next(own).equals(next(own))
    assert now.recommend(aim="cpu", evidence=[other])["gain_gc_cpu_share"].null_count() == 1


def test_a_log_whose_goals_do_not_show_gogc_is_no_evidence() -> None:
    now = gca.read(SERVICE / "gogc100" / "run.log", gogc=100)
    unclear = gca.read(CORPUS / "services/coredns/off-x1.2/run.log.gz")
    assert "was thrashing" in str(unclear.advice.baseline.no_evidence)
    assert now.whatif(gogc=200, evidence=[unclear]).equals(now.whatif(gogc=200))


def test_few_cycles_say_nothing_about_a_setting_with_many() -> None:
    run = gca.read(SERVICE / "gogc400" / "run.log", gogc=400)
    rows = run.whatif(gogc=[50, 200])
    assert "too few to predict" in rows["refused"][0]
    assert rows["gc_per_s"][0] is None
    assert rows["heap_peak_mib"][0] > 0
    assert rows["refused"][1] is None


def test_gains_have_intervals_around_them() -> None:
    rows = gca.read(CORPUS / "advice" / "svc-big" / "gogc100" / "run.log", gogc=100).recommend(
        aim="cpu"
    )
    others = rows.filter(~pl.col("now"))
    low, middle, high = (others[f"gain_gc_cpu_share{end}"] for end in ("_low", "", "_high"))
    assert (low < middle).all()
    assert (middle < high).all()
    assert middle[0] > 0


def test_a_range_is_a_few_values_in_equal_ratios() -> None:
    run = gca.read("samples/steady-go1.26.log")
    assert run.whatif(gogc="100..400")["gogc"].to_list() == [100, 140, 200, 280, 400]
    assert run.whatif(gogc=["50", "100..125"])["gogc"].to_list() == [50, 100, 110, 120, 125]
    limits = run.whatif(memory_limit="1GiB..2GiB")["memory_limit_mib"].to_list()
    assert limits == [1024, 1200, 1400, 1700, 2048, None]


@pytest.mark.parametrize("text", ["400..100", "0..100", "100..", "100..off", "100..x"])
def test_other_ranges_are_refused(text: str) -> None:
    with pytest.raises(gca.BadSettingError, match="gogc"):
        gca.read("samples/steady-go1.26.log").whatif(gogc=text)


def test_predictions_print_as_tables_and_work_as_frames() -> None:
    run = gca.read("samples/steady-go1.26.log")
    for rows in (run.whatif(gogc="100..400"), run.recommend(aim="cpu")):
        shown = str(rows)
        assert shown == repr(rows)
        assert max(map(len, shown.splitlines())) <= 80
        assert "peak MiB" in shown
        assert "80 % intervals" in shown
        assert "<table" in rows._repr_html_()
        assert isinstance(rows, pl.DataFrame)
        assert type(rows.frame) is pl.DataFrame
        assert rows.frame.equals(rows)
        assert str(rows.frame).startswith("shape: ")
        assert str(rows.head(1)).startswith("shape: (1, ")
        assert [row["gogc"] for row in rows.to_dicts()] == rows["gogc"].to_list()
        assert (
            list(rows.to_pandas().columns) == rows.columns == list(rows.to_arrow().column_names)
        )
        assert pickle.loads(pickle.dumps(rows)).equals(rows.frame)


def test_a_prediction_that_is_refused_prints_why() -> None:
    run = gca.read("samples/thrash-go1.19.log")
    assert "Only the peak is predicted: the program was thrashing" in str(run.whatif(gogc=200))
    assert "Only GOMEMLIMIT is recommended: the program was thrashing" in str(run.recommend())


def test_the_present_setting_is_shown_beside_what_is_tried() -> None:
    run = gca.read("samples/steady-go1.26.log")
    tried = run.whatif(gogc=200)
    assert tried.select("gogc", "now").rows() == [(200, False), (100, True)]
    # The table has it where it belongs in the order.
    assert str(tried).splitlines()[3].split()[:2] == ["GOGC=100", "(now)"]
    both = run.whatif(gogc=[100, 200])
    assert both.select("gogc", "now").rows() == [(100, True), (200, False)]
    assert str(both).count("(now)") == 1


def test_without_a_setting_python_tries_what_the_command_tries() -> None:
    rows = gca.read("samples/steady-go1.26.log").whatif()
    assert rows["gogc"].to_list() == [50, 100, 200, 400]
    thrashing = gca.read("samples/thrash-go1.19.log").whatif()
    assert thrashing["now"].to_list() == [True, False]
    assert thrashing["memory_limit_mib"].to_list() == pytest.approx([74.66, 249], abs=0.1)


def test_predictions_of_one_log_have_one_confidence() -> None:
    log = "samples/steady-go1.26.log"
    several = (gca.read(log), gca.read(log, container_limit="2GiB"))
    texts = [str(run.recommend()) for run in several]
    lines = [next(line for line in text.splitlines() if "Confidence" in line) for text in texts]
    assert [line.split()[1].strip(",:") for line in lines] == ["low", "low"]
    assert ['so "try", not "advised"' in line for line in lines] == [False, True]
    assert "test it with gctrace-analyze measure" in " ".join(texts[0].split())
    assert "try     GOGC=100 GOMEMLIMIT" in texts[1]


def test_a_container_limit_in_other_units_is_shown_in_bytes() -> None:
    run = gca.read("samples/steady-go1.26.log", container_limit="2G")
    assert "1,907 MiB (2,000,000,000 bytes)" in " ".join(str(run.recommend()).split())


def test_a_setting_that_does_not_fit_says_why() -> None:
    run = gca.read(SAMPLES / "steady-go1.26.log", container_limit="64MiB")
    rows = run.whatif(gogc=[100, 200])
    first = rows.sort("memory_peak_mib").row(0, named=True)
    text = " ".join(str(rows).split())
    assert first["fits"] is False
    # The heap has the digits of the table, where 55.5 MiB are 55.
    assert first["heap_peak_mib"] == 55.5
    outside = first["memory_peak_mib"] - first["heap_peak_mib"]
    assert f"55 MiB of heap and {outside:,.0f} MiB outside it (assumed)" in text
    assert "are more than the 64 MiB" in text


def test_every_confidence_has_its_reason() -> None:
    log = "samples/change/before-1.log.gz"
    wide = " ".join(str(gca.read(log, container_limit="1GiB").recommend()).split())
    assert "although the program allocates" in wide
    why = "19 s of steady cycles, but the kind of load is uncertain"
    assert f"Confidence medium: {why}" in wide


def test_a_confidence_without_a_known_reason_has_no_colon() -> None:
    shown = str(gca.read("samples/metrics/gogc100.json.gz").recommend())
    assert re.search(r"Confidence  high$", shown, re.MULTILINE)


def test_a_setting_whose_interval_exceeds_the_container_may_not_fit() -> None:
    log = io.StringIO(log_of(200, every=0.05, mark=9))
    tried = gca.read(log, gogc=100, container_limit="325MiB").whatif(gogc=200)
    (row,) = tried.frame.filter(pl.col("gogc") == 200).to_dicts()
    assert row["fits"]
    assert row["heap_peak_mib_high"] + row["memory_peak_mib"] - row["heap_peak_mib"] > 325
    assert "GOGC=200 may not fit: up to 304 MiB of heap and 28 MiB" in " ".join(
        str(tried).split()
    )


def test_the_aim_latency_says_what_a_setting_does_to_it() -> None:
    best = gca.read(SAMPLES / "steady-go1.26.log").recommend(aim="latency")
    assert best["why"][0].startswith(
        "pauses and mark assists take 0.46 % of the CPU instead of"
    )
