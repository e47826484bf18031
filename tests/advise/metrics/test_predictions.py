"""Predictions from metrics of one run, compared with another run of the same program."""

from __future__ import annotations

import pytest

import gctrace_analyzer as gca
from tests.helpers.metrics import CORPUS, recording

GC_CPU = ("gc_cpu_share", "gc_cpu_with_idle_share", "gc_cpu_cores")


@pytest.mark.parametrize(
    ("base", "target", "gogc", "limit"),
    [
        ("own/gogc100/query-raw.json.gz", "own/gogc200/query-raw.json.gz", 200, None),
        ("own/gogc200/query-raw.json.gz", "own/gogc100/query-raw.json.gz", 100, None),
        ("own/gogc100/expvar.jsonl.gz", "own/gogc200/query-raw.json.gz", 200, None),
        ("caddy/gogc100/scrapes.om.gz", "caddy/off-limit40/scrapes.om.gz", None, "40MiB"),
    ],
)
def test_frequency_and_heap_goal_of_another_setting(
    base: str, target: str, gogc: int | None, limit: str | None
) -> None:
    row, now = recording(base).run.whatif(gogc=gogc, memory_limit=limit).to_dicts()
    assert (row["now"], now["now"]) == (False, True)
    truth = recording(target).run.summary()
    assert row["refused"] is None
    assert row["gc_per_s"] == pytest.approx(truth.gc_per_s, rel=0.3)
    assert row["heap_goal_mib"] == pytest.approx(truth.heap_goal_p50_mib, rel=0.1)
    assert row["gc_per_s_low"] < row["gc_per_s"] < row["gc_per_s_high"]


def test_the_present_setting_is_measured() -> None:
    run = recording("own/gogc100/query-raw.json.gz").run
    row = run.whatif().filter("now").row(0, named=True)
    summary = run.summary()
    for name in ("gc_per_s", "gc_cpu_share", "stw_share"):
        assert row[name] == row[f"{name}_low"] == row[f"{name}_high"] == getattr(summary, name)


def test_gc_cpu_stays_unknown_without_the_metric() -> None:
    run = recording("caddy/gogc100/query-raw.json.gz").run
    rows = run.whatif(gogc=[50, 100, 400])
    assert all(rows[name].null_count() == 3 for name in GC_CPU)
    assert rows["heap_peak_mib"].null_count() == rows["gc_per_s"].null_count() == 0
    assert all("GC CPU is unknown" in text for text in rows["warnings"])


def test_a_program_that_thrashes_gets_the_least_limit_it_needs() -> None:
    run = recording("own/thrash-limit80/query-raw.json.gz").run
    (row,) = run.recommend().to_dicts()
    assert row["why"].startswith("no recommendation: the program was thrashing")
    assert "A GOMEMLIMIT of about 149 MiB leaves GC room (estimated)" in row["why"]


def test_a_limit_for_a_container_names_the_live_heap_as_the_least_limit_does() -> None:
    run = gca.read("samples/metrics/limit80.json.gz", container_limit="512MiB")
    text = " ".join(str(run.recommend()).split())
    assert run.summary().live_heap_max_mib == pytest.approx(69.7, abs=0.05)
    assert "its live heap, bursts aside, is up to 70 MiB" in text
    assert "90 % of the container's 512 MiB; the live heap takes at most 70 MiB" in text


def test_a_limit_below_the_live_heap_is_predicted_to_thrash() -> None:
    run = recording("own/gogc100/query-raw.json.gz").run
    rows = run.whatif(memory_limit=["80MiB", "90MiB", "1GiB"])
    assert rows["thrash"].to_list() == ["certain", "risk", "no", "no"]
    assert rows["gc_per_s"].is_null().to_list() == [True, False, False, False]


def test_a_frequent_collector_gets_a_higher_gogc() -> None:
    run = recording("caddy/gogc100/query-raw.json.gz").run
    first, present = run.recommend().head(2).to_dicts()
    assert first["gogc"] > 100
    assert present["now"]
    assert first["gc_per_s"] < 10 < present["gc_per_s"]
    assert (
        first["risk"]
        == "the container's memory limit is unknown: specify it (`--container-limit`)"
    )


def test_a_calm_program_needs_no_change() -> None:
    run = recording("own/gogc100/query-raw.json.gz").run
    first = run.recommend().row(0, named=True)
    assert first["now"]
    assert first["why"] == "no change: GC CPU is below 10 %"


@pytest.mark.parametrize("aim", ["cpu", "latency"])
def test_fewer_cycles_on_request(aim: str) -> None:
    run = recording("own/gogc100/query-raw.json.gz").run
    first = run.recommend(aim=aim).row(0, named=True)  # type: ignore[arg-type]
    assert first["gogc"] == 200


def test_a_smaller_heap_on_request() -> None:
    run = recording("own/gogc200/query-raw.json.gz").run
    first, present = run.recommend(aim="memory").head(2).to_dicts()
    assert first["heap_peak_mib"] < 0.9 * present["heap_peak_mib"]
    assert first["gc_cpu_share"] <= 0.05


def test_too_few_cycles_are_refused() -> None:
    run = recording("own/gogc100/otlp.jsonl.gz").run
    (row,) = run.whatif(gogc=200).to_dicts()
    assert row["refused"] == "no cycle; at least 5 are needed, 20 are better"


def test_a_container_with_room_gets_a_limit_that_costs_nothing() -> None:
    run = gca.read(CORPUS / "own/gogc100/query-raw.json.gz", container_limit="1GiB")
    first = run.recommend().row(0, named=True)
    assert (first["gogc"], first["memory_limit_mib"]) == (100, 921)
    assert first["fits"]
    assert first["why"].startswith("a guard that changes nothing now")


def test_a_container_that_is_too_small_gets_a_limit_that_fits() -> None:
    run = gca.read(CORPUS / "own/gogc100/query-raw.json.gz", container_limit="190MiB")
    first = run.recommend().row(0, named=True)
    assert (first["gogc"], first["memory_limit_mib"]) == (100, 171)
    assert "does not fit into 90 %" in first["why"]
    run = gca.read(CORPUS / "own/gogc100/query-raw.json.gz", container_limit="100MiB")
    first = run.recommend().row(0, named=True)
    # As of a log: a limit that thrashes as soon as the heap grows is better than none.
    assert first["why"].startswith(
        "the highest limit that fits: 90 % of the container's 100 MiB"
    )
    assert "less than 25 % above the live heap" in first["risk"]


def test_a_limit_near_the_live_heap_is_a_risk() -> None:
    path = CORPUS / "caddy/off-limit40/scrapes.om.gz"
    run = gca.read(path, gogc="off", memory_limit="40MiB", container_limit="128MiB")
    assert run.whatif(memory_limit="24MiB")["thrash"][0] != "no"


def test_a_target_for_gc_cpu() -> None:
    run = recording("own/gogc100/query-raw.json.gz").run
    first = run.recommend(gc_cpu_target="2%").row(0, named=True)
    assert first["gc_cpu_share"] <= 0.02
    unknown = recording("caddy/gogc100/query-raw.json.gz").run
    first = unknown.recommend(gc_cpu_target="2%").row(0, named=True)
    assert first["why"].startswith("no change: GC CPU is unknown")
