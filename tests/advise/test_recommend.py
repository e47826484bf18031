"""Recommendations: limits, ballasts, memory that Go does not count, and growing heaps."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.advise.candidates import RULES
from gctrace_analyzer.advise.objective import AIMS
from gctrace_analyzer.advise.tight_limit import buys_time
from gctrace_analyzer.present.sections import advice
from gctrace_analyzer.testing import read_text
from tests.conftest import CORPUS, SAMPLES
from tests.helpers.corpus import log_of
from tests.helpers.logs import prolonged

if TYPE_CHECKING:
    from pathlib import Path

    from gctrace_analyzer.advise.objective import Aim

BUSY = CORPUS / "advice" / "svc-big" / "gogc100" / "run.log"
OLD = SAMPLES / "assists-go1.16.log"
LEAK = SAMPLES / "leak" / "service.log.gz"
KILL = CORPUS / "inputs" / "journalctl" / "leakd-short.log"


def limits(run: gca.Run, aim: Aim = "cpu") -> list[float]:
    rows = run.recommend(aim=aim)
    return sorted({*rows["memory_limit_mib"].drop_nulls()})


def test_every_rule_says_where_it_comes_from() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert all(rule.source for rule in RULES)


def test_no_limit_is_recommended_without_a_container_limit() -> None:
    run = gca.read(BUSY, gogc=100)
    assert limits(run) == []
    assert "container's memory limit is unknown" in run.recommend(aim="cpu")["risk"][0]


ENDED = "    State:  Terminated\n      Exit Code:  137\n    Restart Count:  0\n"
POD = f"Name:  batch-1\nContainers:\n  batch:\n{ENDED}"
PROBE = """Events:
  Type     Reason   Age  From     Message
  ----     ------   ---- ----     -------
  Normal   Killing  6m   kubelet  Container batch failed liveness probe, will be restarted
"""


@pytest.mark.parametrize(
    ("messages", "lacks"),
    [("", False), (POD, True), (POD + PROBE, False), ("api-1 exited with code 137\n", True)],
)
def test_after_a_kill_no_setting_needs_more_memory_until_the_limit_is_known(
    messages: str, *, lacks: bool
) -> None:
    def run(container_limit: str | None = None) -> gca.Run:
        texts = (BUSY.read_text(), messages)
        inputs = [io.StringIO(text) for text in texts if text]
        return gca.read(*inputs, container_limit=container_limit)

    rows = run().recommend()
    now = rows.filter("now")["heap_peak_mib"].item()
    assert rows.filter(pl.col("heap_peak_mib") > now).is_empty() is lacks
    unknown = "the container's memory limit is unknown: specify it (`--container-limit`)"
    assert (unknown in (rows["risk"][0] or "")) or not lacks
    known = run(container_limit="2GiB").recommend()
    assert known.filter(pl.col("heap_peak_mib") > now).height


@pytest.mark.parametrize("container_limit", [None, "2GiB"])
def test_a_heap_that_grows_to_the_end_gets_no_higher_gogc(container_limit: str | None) -> None:
    """Its peak is that of the last cycle, whatever the setting; growth comes first."""
    sizes: dict[str, Any] = {
        "start": lambda n: 18 * n,
        "end": lambda n: 20 * n,
        "live": lambda n: 20 * n,
    }
    text = log_of(40, mark=40, background=70, **sizes, goal=lambda n: 24 * (n - 1) + 4)
    run = gca.read(io.StringIO(text), container_limit=container_limit)
    assert run.recommend().filter(pl.col("gogc") > run.advice.baseline.now.gogc).is_empty()
    verdict = run.report().verdict
    assert verdict is not None
    assert verdict.sentence.startswith("The live heap grew from ")
    assert "GOGC is low" in verdict.sentence
    assert "compare two heap profiles" in verdict.action
    assert "MiB instead of" not in verdict.action


def test_memory_that_go_does_not_count_is_subtracted_from_the_limit() -> None:
    plain = gca.read(BUSY, gogc=100, container_limit="1GiB")
    less = gca.read(BUSY, gogc=100, container_limit="1GiB", off_heap="200MiB")
    assert limits(plain) == [921.0]
    assert limits(less) == [721.0]
    now, was = (run.whatif().filter("now")["memory_peak_mib"].item() for run in (less, plain))
    assert now == pytest.approx(was + 200)


def test_resident_memory_that_go_does_not_count_is_off_heap(tmp_path: Path) -> None:
    dump = tmp_path / "metrics.txt"
    dump.write_text(
        "# TYPE go_memstats_sys_bytes gauge\n"
        f"go_memstats_sys_bytes {400 << 20}\n"
        f"go_memstats_heap_released_bytes {100 << 20}\n"
        f"process_resident_memory_bytes {500 << 20}\n"
    )
    known = gca.read(BUSY, dump).settings.to_dict()["off_heap_mib"]
    assert known["value"] == 200
    assert "resident" in known["source"]
    text = dump.read_text().replace(str(500 << 20), str(320 << 20))
    dump.write_text(text)
    assert "off_heap_mib" not in gca.read(BUSY, dump).settings.to_dict()


def journal(path: Path, others: str = "", resident_mib: int = 400) -> gca.Run:
    """Returns the run of a busy program and its OOM kill, as journalctl prints them."""
    own = [
        f"Mar 29 00:59:5{number // 10 % 9} web-1 leakd[4242]: {line}\n"
        for number, line in enumerate(BUSY.read_text().splitlines())
        if line.startswith("gc ")
    ]
    kill = KILL.read_text().splitlines(keepends=True)[11:]
    at = next(number for number, line in enumerate(kill) if "leakd\n" in line and "[ " in line)
    text = "".join([*own, *kill[: at + 1], others, *kill[at + 1 :]])
    # As much as the heap of this program explains
    path.write_text(re.sub(r"anon-rss:\d+kB", f"anon-rss:{resident_mib << 10}kB", text))
    return gca.read(path, year=2026, gogc=100)


def test_the_limit_of_a_container_is_known_from_a_kill(tmp_path: Path) -> None:
    run = journal(tmp_path / "journal.log")
    known = run.settings.to_dict()["container_limit_mib"]
    assert known["value"] == 512
    assert "OOM kill" in known["source"]
    assert _only_limit(run) == 257


def test_after_a_kill_by_memory_outside_the_heap_the_limit_is_that_of_the_post_mortem(
    tmp_path: Path,
) -> None:
    run = journal(tmp_path / "journal.log", resident_mib=510)
    (death,) = run.post_mortems()
    assert death.go_heap_mib == 283
    assert death.go_heap_most_mib == pytest.approx(389.5, abs=0.1)
    assert run.advice.baseline.refused
    assert _only_limit(run) == 257


@pytest.mark.parametrize(
    ("live_mib", "resident_mib", "limit"),
    [(80, 225, 147), (80, 250, 147), (90, 140, 127), (105, 215, 197), (105, 255, 230)],
)
def test_a_kill_leads_to_one_limit_in_headline_table_and_post_mortem(
    live_mib: int, resident_mib: int, limit: int
) -> None:
    sizes = {
        "live": lambda _: live_mib,
        "start": lambda _: 2 * live_mib - 2,
        "end": lambda _: 2 * live_mib,
        "goal": lambda _: 2 * live_mib + 1,
    }
    kill = (
        f"memory.max {256 << 20}\noom_kill 1\nMemory cgroup out of memory: Killed process 7 (api) "
        f"total-vm:1048576kB, anon-rss:{resident_mib << 10}kB, file-rss:0kB, shmem-rss:0kB\n"
    )
    text = f"{log_of(60, every=0.5, **sizes)}{kill}"
    run = gca.read(io.StringIO(text), gogc=100, memory_limit="off")
    assert _only_limit(run) == limit


def _only_limit(run: gca.Run) -> int:
    """Returns the limit (MiB) of the recommendation, which headline and post-mortem repeat."""
    (limit,), verdict = limits(run), run.report().verdict
    (death,) = run.post_mortems()
    assert verdict is not None
    for text in (verdict.action, " ".join(death.advice)):
        assert re.findall(r"GOMEMLIMIT=(\d+)MiB", text)[0] == f"{limit:.0f}"
    return int(limit)


def test_no_limit_is_recommended_where_memory_is_shared(tmp_path: Path) -> None:
    other = (
        "Mar 29 00:59:59 web-1 kernel: [   5151]   997  5151   467108    20480    20000     "
        "1536         0  1335296        0             0 postgres\n"
    )
    run = journal(tmp_path / "journal.log", other)
    assert run.settings.value("beside_mib") == 80
    assert limits(run) == []
    risk = run.recommend()["risk"][0]
    assert "other processes under the same limit use 80 MiB (postgres" in risk


def test_no_limit_is_recommended_near_the_live_heap() -> None:
    run = gca.read(BUSY, gogc=100, container_limit="190MiB")
    assert limits(run) == []
    first = run.recommend().row(0, named=True)
    assert "fits the container" in first["why"]
    assert "and the container has room for" in first["risk"]


def test_no_limit_is_recommended_for_go_1_18() -> None:
    run = gca.read(BUSY, gogc=100, container_limit="1GiB", go_version="1.18.10")
    assert limits(run) == []
    assert "upgrade" in run.whatif(memory_limit="900MiB")["refused"][0]
    assert "requires Go 1.19" in run.recommend(aim="cpu")["risk"][0]


def test_a_ballast_is_recommended_for_go_without_memory_limits() -> None:
    rows = gca.read(OLD).recommend()
    ballasts = rows.filter(pl.col("ballast_mib") > 0)
    assert 1 not in ballasts["rank"]  # listed, never advised
    assert ballasts.height == 1
    assert "has the same heap goal while the live heap is" in ballasts["why"][0]
    assert "(VSZ), not RSS" in ballasts["risk"][0]
    assert not gca.read(BUSY).recommend().filter(pl.col("ballast_mib") > 0).height


def test_a_ballast_is_address_space_until_it_is_written_to() -> None:
    run = gca.read(BUSY, gogc=100)
    none, some = run.whatif(ballast=[0, "256MiB"]).iter_rows(named=True)
    assert some["gc_per_s"] < none["gc_per_s"]
    assert some["heap_peak_mib"] > none["heap_peak_mib"] + 256
    assert some["memory_peak_mib"] == pytest.approx(
        some["heap_peak_mib"] + none["memory_peak_mib"] - none["heap_peak_mib"] - 256, rel=0.2
    )
    notes = list(advice.ballast_notes(run.advice.baseline, run.whatif(ballast="256MiB")))
    assert "GOGC=" in notes[0]


def test_a_ballast_can_be_replaced_from_go_1_19_on() -> None:
    log = CORPUS / "advice" / "svc-a" / "gogc100-ballast64" / "run.log"
    run = gca.read(log, gogc=100, ballast="64MiB")
    rows = run.recommend().filter(pl.col("why").str.starts_with("the present heap goal"))
    without = run.whatif(gogc=rows["gogc"][0], ballast=0).row(0, named=True)
    assert without["gc_per_s"] == pytest.approx(run.advice.baseline.load.gc_per_s, rel=0.15)  # type: ignore[union-attr]


def test_go_1_16_is_predicted() -> None:
    run = gca.read(OLD)
    assert run.advice.baseline.refused is None
    own = run.whatif().filter("now").row(0, named=True)
    assert own["gc_per_s"] == pytest.approx(run.advice.baseline.load.gc_per_s, rel=0.1)  # type: ignore[union-attr]


def grown(until_s: float) -> gca.Run:
    return gca.read(LEAK, gogc=100, memory_limit="120MiB").between(0, until_s)


def test_a_growing_heap_is_predicted_for_the_whole_log() -> None:
    run = grown(85)
    assert any(
        re.search("live heap grew from .*; predicted cycles/s and GC CPU are for", each)
        for each in run.advice.baseline.warnings
    )
    assert run.advice.baseline.growth_is_known


def test_the_prediction_at_a_horizon_came_true() -> None:
    """The log of a leak up to 85 s, compared with the rest of the log."""
    rows = grown(85).whatif(horizon=30).row(0, named=True)
    later = gca.read(LEAK).between(112, 118).cycles
    live = later["heap_live_mib"].mean()
    assert rows["horizon_s"] == 30
    assert rows["live_heap_mib"] == pytest.approx(live, rel=0.03)
    assert rows["gc_per_s_low"] <= len(later) / 6 <= rows["gc_per_s_high"]
    assert rows["thrash"] == "risk"


def test_the_predicted_time_until_the_limit_came_true() -> None:
    """GOGC in effect fell below 12 between 110 and 122 s."""
    run = grown(85)
    low, middle, high = (
        85 + 3600 * run.whatif().filter("now")[f"lasts_h{end}"][0]
        for end in ("_low", "", "_high")
    )
    assert low < middle < high
    assert 105 < middle < 125
    more = run.whatif(memory_limit=["120MiB", "200MiB", None])
    assert more["lasts_h"][1] > more["lasts_h"][0]
    assert more["lasts_h"][2] is None
    held = gca.read(LEAK, gogc=100, memory_limit="120MiB", container_limit="1GiB").between(
        0, 85
    )
    first = held.recommend(aim="cpu").row(0, named=True)
    assert "MiB/h this setting lasts" in first["risk"]
    assert "the live heap grows, and no setting cures a leak" in first["risk"]


def test_a_limit_that_is_reached_soon_is_raised() -> None:
    run = gca.read(LEAK, gogc=100, memory_limit="120MiB", container_limit="512MiB")
    first, now = run.recommend().head(2).iter_rows(named=True)
    assert (first["gogc"], first["memory_limit_mib"]) == (100, 460)
    assert now["now"]
    assert now["lasts_h"] == 0
    assert first["lasts_h_low"] > 0.1
    alone = gca.read(LEAK, gogc=100, memory_limit="120MiB")
    assert alone.recommend()["memory_limit_mib"][0] == 200
    assert buys_time(alone.report().advice.baseline) == "GOMEMLIMIT=200MiB buys time"


@pytest.mark.parametrize("container", ["128MiB", "160MiB"])
def test_a_setting_that_a_leak_exceeds_at_once_is_not_recommended(container: str) -> None:
    """115 MiB is exceeded already, and 144 MiB in 46 s."""
    run = gca.read(LEAK, gogc=100, memory_limit="120MiB", container_limit=container)
    first = run.recommend().row(0, named=True)
    assert first["now"]
    assert first["confidence"] == "none"
    assert "find out what grows; a container of about 223 MiB" in first["why"]
    assert "this setting has no room left" in first["risk"]
    found = run.report().verdict
    assert found is not None
    assert found.action.startswith("Find out why the live heap grows")
    assert found.action.endswith(
        "a container of about 223 MiB with GOMEMLIMIT=200MiB buys time."
    )


def test_a_short_log_has_no_prediction_at_a_horizon() -> None:
    run = gca.read(SAMPLES / "leak-go1.26.log")
    assert "too short" in run.whatif(horizon="1h")["refused"][0]
    assert run.whatif().filter("now")["lasts_h"][0] is None


def test_a_horizon_changes_nothing_if_the_heap_does_not_grow(tmp_path: Path) -> None:
    path = tmp_path / "long.log"
    path.write_text("".join(prolonged(BUSY.read_text(), 200_000)))
    run = gca.read(path, gogc=100)
    now, later = run.whatif(), run.whatif(horizon="1h")
    assert later["refused"][0] is None
    assert now.drop("horizon_s").equals(later.drop("horizon_s"))
    assert "too short" in gca.read(BUSY).whatif(horizon="1h")["refused"][0]


SERVICE = CORPUS / "advice" / "svc-a"


def test_gogc_is_inferred_from_the_goals_if_the_limit_is_far_away() -> None:
    run = gca.read(SERVICE / "gogc50" / "run.log", memory_limit="1GiB")
    assert run.advice.baseline.now.gogc == 50
    measured = gca.read(SERVICE / "gogc200" / "run.log").advice.baseline.load
    predicted = run.whatif(gogc=200).row(0, named=True)
    assert measured is not None
    assert predicted["gc_per_s"] == pytest.approx(measured.gc_per_s, rel=0.2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"gogc": 400, "memory_limit": "10GiB"}, "far from the heap goals"),
        ({"gogc": "off", "memory_limit": "10GiB"}, "GOGC=off was given"),
        ({"gogc": 50, "memory_limit": "10GiB"}, "the effective GOGC is"),
        ({"memory_limit": "10MiB"}, "the heap goals are at"),
        ({"ballast": "1GiB"}, "a ballast of 1,024 MiB was given"),
    ],
    ids=str,
)
def test_settings_that_contradict_the_log_are_refused(
    options: dict[str, Any], words: str
) -> None:
    run = gca.read(SERVICE / "gogc100" / "run.log", **options)
    assert words in str(run.advice.baseline.refused)
    assert run.recommend()["why"][0].startswith("no recommendation: ")


def test_a_setting_that_does_not_fit_the_container_gets_a_limit() -> None:
    run = gca.read(SERVICE / "gogc100" / "run.log", container_limit="80MiB")
    first, now = run.recommend().head(2).iter_rows(named=True)
    assert (now["now"], now["fits"]) == (True, False)
    assert (first["memory_limit_mib"], first["fits"]) == (72, True)
    assert first["thrash"] != "certain"
    assert "thrashes as soon as the live heap grows" in first["risk"]


def test_a_limit_near_the_live_heap_warns_of_thrashing() -> None:
    log = SERVICE / "gogc100-limit80" / "run.log"
    for aim in ("balanced", "cpu", "memory"):
        run = gca.read(log, gogc=100, memory_limit="80MiB")
        least = run.advice.baseline.least_limit_mib
        assert least is not None
        for row in run.recommend(aim=aim).filter(~pl.col("now")).iter_rows(named=True):
            assert row["memory_limit_mib"] >= least or "thrash" in row["risk"]


def test_gogc_is_only_raised_together_with_a_limit() -> None:
    rows = gca.read(SERVICE / "gogc100" / "run.log", container_limit="1GiB").recommend(
        aim="cpu"
    )
    assert set(rows.filter(~pl.col("now"))["memory_limit_mib"]) == {921.0}


def test_a_limit_above_that_of_the_container_is_lowered() -> None:
    run = gca.read(
        SERVICE / "gogc100" / "run.log", gogc=100, memory_limit="1GiB", container_limit="256MiB"
    )
    first = run.recommend().row(0, named=True)
    assert first["memory_limit_mib"] == 230
    assert "exceeds 90 % of the container's" in first["why"]


def test_reasons_fit_the_numbers() -> None:
    log = CORPUS / "advice" / "svc-a" / "gogc400" / "run.log"
    rows = gca.read(log, gogc=400).recommend(aim="memory")
    first, now = rows.head(2).iter_rows(named=True)
    assert first["gc_per_s"] > now["gc_per_s"]
    assert first["why"].startswith("a smaller heap for more CPU")
    run = gca.read(SERVICE / "gogc100" / "run.log")
    within = run.recommend(gc_cpu_target="2%").row(0, named=True)
    assert "within the target of 2 %" in within["why"]
    assert within["gc_cpu_share"] <= 0.02
    assert "as close as possible to" in run.recommend(gc_cpu_target=0.0001)["why"][0]
    assert run.recommend(gc_cpu_target="30%")["why"][0] == "no change: GC CPU is below 30 %"


@pytest.mark.parametrize("log", [BUSY, OLD, SAMPLES / "ballast-go1.26.log"], ids=str)
def test_values_are_within_their_intervals(log: Path) -> None:
    rows = gca.read(log).whatif(gogc=[1, 10, 25, 100, 800, 10_000], ballast=[0, "1GiB"])
    for name in ("gc_per_s", "gc_cpu_share", "stw_share", "heap_peak_mib", "live_heap_mib"):
        inside = pl.col(name).is_between(pl.col(f"{name}_low"), pl.col(f"{name}_high"))
        assert rows.select(inside.all()).item(), name
        if name.endswith("_share"):
            assert (rows[f"{name}_high"] <= 1).all()


def test_a_limit_above_a_growing_heap_is_no_risk_under_any_gogc() -> None:
    """While it grows, GOGC sets goals far below the limit, and below the last live heap."""
    run = gca.read(SAMPLES / "leak-go1.26.log", container_limit="512MiB")
    settings = [
        run.whatif(gogc=gogc, memory_limit="460MiB") for gogc in (25, 50, 100, 200, 400)
    ]
    assert [each["thrash"][0] for each in settings] == ["no"] * 5
    advised = run.recommend().row(0, named=True)
    assert (advised["gogc"], advised["memory_limit_mib"]) == (100, 460)


def test_verdict_and_table_set_the_same_limit_after_a_kill(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    killed = "Memory limit of 512 MiB exceeded with 530 MiB used."
    log.write_text((SAMPLES / "leak-go1.26.log").read_text() + killed)
    run = gca.read(log)
    shown = " ".join(str(run.summary()).split())
    assert "▸ Try GOMEMLIMIT=460MiB, so that GC runs before memory reaches the limit" in shown
    assert run.recommend()["memory_limit_mib"][0] == 460


def test_a_peak_has_one_number_in_table_reason_and_findings() -> None:
    """gctrace prints whole MiB, so peaks end in a half, which was rounded up and down."""
    run = gca.read(SAMPLES / "leak-go1.26.log", container_limit="300MiB")
    assert run.recommend().filter(pl.col("now"))["heap_peak_mib"][0] == 329.5
    shown = " ".join(str(run.summary()).split())
    assert "present peak, 352 MiB with memory outside the heap, exceeds" in shown
    assert "The heap reached 329 MiB" in shown
    assert "330" not in shown


@pytest.mark.parametrize("aim", ["cpu", "memory", "balanced"])
def test_no_predicted_peak_is_below_a_live_heap_that_the_log_has(aim: Aim) -> None:
    """The start-up held 375 MiB, which every setting has to hold as well."""
    lines = BUSY.read_text().splitlines(keepends=True)
    start = next(index for index, line in enumerate(lines) if line.startswith("gc 2 "))
    lines[start] = re.sub(
        r"\d+->\d+->\d+ MB, \d+ MB goal", "390->410->395 MB, 800 MB goal", lines[start]
    )
    for room in (None, "400MiB", "1GiB"):
        run = gca.read(io.StringIO("".join(lines)), gogc=100, container_limit=room)
        rows = run.recommend(aim=aim).filter(~pl.col("now"))
        assert (rows["heap_peak_mib_low"].drop_nulls() >= 375).all()
        assert (rows["memory_limit_mib"].drop_nulls() > 395).all()
    tried = run.whatif(memory_limit=["300MiB", "1GiB"]).filter(~pl.col("now"))
    assert tried["thrash"].to_list() == ["certain", "no"]


@pytest.mark.parametrize("room_mib", [120, 150])
def test_a_limit_that_the_container_has_no_room_for_is_raised_together_with_it(
    room_mib: int,
) -> None:
    report = gca.read(
        SAMPLES / "refill" / "service.log.gz", container_limit=f"{room_mib}MiB"
    ).report()
    raising = (
        "raise the container's memory limit to at least 157 MiB and GOMEMLIMIT to at least "
        "141 MiB, better 236 and 212 MiB"
    )
    (why,) = report.advice.recommendations.filter("now")["why"]
    assert why.endswith(f": {raising}, or reduce the live heap")
    assert report.verdict is not None
    assert report.verdict.action.startswith(
        f"R{raising[1:]} (1.5 × the 141 MiB that the live heap "
    )


def test_the_least_limit_that_fits_is_one_for_recommend_what_if_and_the_container() -> None:
    log = SAMPLES / "refill" / "service.log.gz"

    def read(room_mib: int | None = None) -> gca.Run:
        room = f"{room_mib}MiB" if room_mib else None
        return gca.read(log, gogc=100, memory_limit="104MiB", container_limit=room)

    why = read(150).recommend()["why"][0]
    room, least = (int(text) for text in re.findall(r"at least (\d+) MiB", why))
    tried = read(room).recommend()
    assert (tried["now"][0], tried["memory_limit_mib"][0]) == (False, least)
    assert read(room - 1).recommend()["now"][0]
    limits = [least - 14, least - 1, least, least + 50]
    marks = read().whatif(memory_limit=limits).filter(~pl.col("now"))["thrash"]
    assert marks.to_list() == ["risk", "risk", "no", "no"]


def test_a_limit_that_is_called_tight_is_among_the_settings_that_are_weighed() -> None:
    report = gca.read(CORPUS / "retuned" / "limit-left-by-live-heap.log").report()
    rows = report.advice.recommendations
    now = rows.filter("now")["memory_limit_mib"].item()
    assert (rows["memory_limit_mib"] > now).any()
    assert "no other setting fits" not in rows["why"][0]


def test_thrashing_under_a_limit_that_was_removed_does_not_ask_for_another() -> None:
    report = gca.read(CORPUS / "settings" / "change-limit-removed.log").report()
    assert report.advice.recommendations["now"][0]
    assert report.verdict is not None
    assert report.verdict.action == "Leave the settings as they are now."


def test_a_gogc_that_is_known_as_a_range_is_shown_as_one_and_stays() -> None:
    """The program ran with GOGC=200 and a limit of 32 MiB."""
    run = gca.read(CORPUS / "settings" / "etcd-gogc-200-limit.log", container_limit="32MiB")
    rows, predictor = run.report().advice.recommendations, run.report().advice.baseline
    names = [advice.name_of(row, predictor) for row in rows.to_dicts()]
    assert names[:2] == ["GOMEMLIMIT=28MiB", "GOGC=142–204 GOMEMLIMIT=23–44MiB"]


def test_a_gogc_that_may_be_the_present_one_is_no_alternative() -> None:
    run = gca.read(CORPUS / "settings" / "live-5-gogc-75.log")
    known, predictor = run.regimes().row(0, named=True), run.report().advice.baseline
    others = run.recommend(aim="memory").filter(~pl.col("now"))["gogc"]
    assert predictor.now.gogc == 75
    assert not others.is_between(known["gogc_pct_low"], known["gogc_pct_high"]).any()


@pytest.mark.parametrize("log", ["live-3-gogc-150.log", "node-exporter-limit.log"])
def test_an_alternative_saves_more_than_a_few_mib(log: str) -> None:
    """Heaps of 4 to 9 MiB."""
    rows = gca.read(CORPUS / "settings" / log).report().advice.recommendations
    best, peak = rows["heap_peak_mib"][0], rows["heap_peak_mib"]
    assert not ((peak < best) & (peak > best - 8)).any()


def test_under_a_cpu_quota_advice_and_report_have_one_gc_cpu() -> None:
    """The quota is used up in bursts, so marking may take more than its part of it."""
    run = gca.read(SAMPLES / "steady-go1.26.log", cpu_limit=0.5)
    now = run.recommend().filter(pl.col("now")).row(0, named=True)
    figures = run.summary()
    assert now["gc_cpu_share"] == pytest.approx(figures.gc_cpu_share, rel=0.1)
    assert now["gc_cpu_with_idle_share"] == pytest.approx(
        figures.gc_cpu_with_idle_share, rel=0.1
    )


def test_a_target_of_gc_cpu_is_not_dropped_where_pauses_are_the_problem() -> None:
    text = re.sub(
        r": [\d.]+\+(\S+ ms clock, )[\d.]+\+",
        r": 20+\g<1>40+",
        log_of(200, percent=16, background=24),
    )
    run = read_text(text)
    assert "find out first why pauses" in run.recommend()["why"][0]
    assert "the target of 3 %" in run.recommend(gc_cpu_target="3%")["why"][0]


def test_a_ballast_that_saves_no_cpu_is_no_alternative() -> None:
    """GC takes 0.029 % of the CPU."""
    run = gca.read(CORPUS / "wild" / "blog-12s-mark-tiny-heap.log")
    assert len(run.report().advice.recommendations) == 1


def test_what_a_bound_of_the_aim_excludes_is_not_said_to_be_impossible() -> None:
    """`whatif` shows a smaller heap and less GC CPU under settings that cost too much."""
    text = log_of(200, live=400, start=740, end=760, goal=800, mark=9, background=90, every=0.2)
    run = gca.read(io.StringIO(text), gogc=100)
    assert run.whatif(gogc=50)["heap_peak_mib"][0] < 0.85 * 760
    (why,) = run.recommend(aim="memory").filter("now")["why"]
    assert re.match(
        r"no change: GOGC=50 .*would save at least 13 % of the heap, but would ", why
    )
    assert re.search(r"take GC CPU from \d+ % to \d+ %$", why)
    limited = gca.read(CORPUS / "real" / "etcd" / "off-limit29" / "run.log.gz")
    for aim in AIMS:
        for why in limited.recommend(aim=aim)["why"]:
            assert "no other setting" not in why


def test_a_limit_for_a_log_that_may_be_of_go_1_18_names_the_release_that_has_it() -> None:
    text = log_of(100)
    advised = gca.read(io.StringIO(text), container_limit="1GiB").recommend().row(0, named=True)
    assert advised["memory_limit_mib"]
    assert "GOMEMLIMIT needs Go 1.19 or later" in advised["risk"]
    known = gca.read(io.StringIO(text), container_limit="1GiB", go_version="1.19").recommend()
    assert "needs Go" not in (known["risk"][0] or "")


def test_stacks_at_the_peak_are_part_of_its_memory() -> None:
    text = log_of(60, every=1, live=lambda n: 20 + n, goal=lambda n: 40 + 2 * n,
                  start=lambda n: 36 + 2 * n, end=lambda n: 39 + 2 * n)  # fmt: skip
    lines = [
        line.replace("0 MB stacks", f"{number} MB stacks")
        for number, line in enumerate(text.splitlines())
    ]
    run = gca.read(io.StringIO("\n".join(lines)), container_limit="2GiB")
    now = run.recommend().filter("now").row(0, named=True)
    assert now["memory_peak_mib"] - now["heap_peak_mib"] > 59


def test_goals_that_show_only_the_highest_gogc_predict_nothing() -> None:
    """GOGC=200 with Go 1.14: the heap minimum and one large block look alike."""
    lines = (
        f"gc {n} @{n / 8:.3f}s 5%: 0.05+17+0.007 ms clock, 0.11+0.41/11/4.2+0.015 ms cpu, "
        f"8->8->{2 + (n % 9 == 0)} MB, 9 MB goal, 2 P"
        for n in range(1, 81)
    )
    text = "\n".join(lines)
    (refused,) = read_text(text).recommend()["refused"].unique()
    assert refused == "the heap goals only show GOGC≤250; specify the GOGC of the program"
    assert gca.read(io.BytesIO(text.encode()), gogc=200).recommend()["gc_per_s"][0]
