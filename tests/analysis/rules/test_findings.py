"""Findings in logs with known problems."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import gctrace_analyzer as gca
from tests.conftest import CORPUS, ROOT
from tests.helpers.corpus import RUNS, live, run_of

if TYPE_CHECKING:
    from pathlib import Path


def known() -> list[tuple[Path, dict[str, Any]]]:
    found = []
    for kind, place in (("gctrace", "{}/run.log"), ("wild", "{}.log")):
        truths = json.loads((CORPUS / kind / "findings.json").read_text())
        found += [(CORPUS / kind / place.format(name), truth) for name, truth in truths.items()]
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("path", "truth"),
    known(),
    ids=lambda each: getattr(each, "parent", each) and str(each)[-40:],
)
def test_a_log_has_the_findings_it_must_have_and_no_others(
    path: Path, truth: dict[str, Any]
) -> None:
    try:
        found = set(gca.read(path).findings()["id"])
    except gca.GctraceError:
        found = set()
    assert set(truth["must"]) <= found
    assert not set(truth["must_not"]) & found


@pytest.mark.parametrize("name", RUNS)
def test_every_thrashing_run_is_found_and_no_other(name: str) -> None:
    """`certain` appears only where the limiter was active."""
    path = CORPUS / "gctrace" / name / "run.log"
    if not path.exists() or not RUNS[name]:
        pytest.skip("no log of a single program")
    thrash = gca.read(path).episodes().filter(kind="limit-thrash")
    on = bool(RUNS[name].get("limiter_active"))
    assert bool(len(thrash)) >= on
    if len(thrash):
        assert RUNS[name].get("gomemlimit_bytes")
        assert on or "certain" not in set(thrash["limiter"])


def ids(run: gca.Run) -> set[str]:
    return set(run.findings()["id"])


def test_a_healthy_log_needs_no_action(tmp_path: Path) -> None:
    run = run_of(tmp_path, 100)
    assert ids(run) == {"GC044"}
    assert "GC is not a problem here" in str(run.summary())
    assert "Leave the settings as they are" in str(run.summary())


def test_a_small_constant_gogc_is_not_thrashing(tmp_path: Path) -> None:
    run = run_of(
        tmp_path,
        100,
        every=0.02,
        start=104,
        end=105,
        live=100,
        goal=105,
        mark=14,
        background=7,
        percent=18,
    )
    assert "GC016" not in ids(run)
    assert "GC001" in ids(run)


def test_a_limit_slightly_above_the_live_heap_is_thrashing(tmp_path: Path) -> None:
    """No goal is below the live heap, but GC is running all the time."""
    run = run_of(
        tmp_path,
        300,
        every=0.02,
        mark=15,
        assist=8,
        background=7,
        start=105,
        end=106,
        live=lambda n: 100 + n % 5,
        goal=107,
    )
    (row,) = run.episodes().filter(kind="limit-thrash").to_dicts()
    assert row["goal_at_or_below_live_share"] == 0
    findings = run.findings()
    causes = dict(findings.select("id", "because_of").iter_rows())
    assert causes["GC016"] is None
    assert causes["GC001"] == "GC016"
    assert findings["id"][0] == "GC016"


def test_a_leak_is_reported_with_the_time_to_the_limit(tmp_path: Path) -> None:
    values: dict[str, Any] = {
        "live": lambda n: 100 + n,
        "goal": lambda n: 2 * (99 + n),
        "start": lambda n: 190 + 2 * n,
        "end": lambda n: 195 + 2 * n,
    }
    run = run_of(tmp_path, 60, every=60, **values)
    (row,) = run.findings().filter(id="GC021").to_dicts()
    assert json.loads(row["figures"])["growth_mib_per_h"] == pytest.approx(60, rel=0.05)
    given = gca.read(tmp_path / "log", container_limit="1GiB")
    assert (
        "the live heap alone reaches 1,024 MiB in"
        in given.findings().filter(id="GC021")["evidence"][0]
    )


def test_a_cpu_limit_and_a_declared_gogc_are_checked(tmp_path: Path) -> None:
    run_of(tmp_path, 100)
    run = gca.read(tmp_path / "log", cpu_limit=0.5, gogc=50)
    assert {"GC013", "GC027"} <= ids(run)
    assert not {"GC013", "GC027"} & ids(gca.read(tmp_path / "log", cpu_limit=2, gogc=100))


def test_the_gogc_of_a_container_is_checked(tmp_path: Path) -> None:
    run_of(tmp_path, 100)
    containers = tmp_path / "inspect.json"
    containers.write_text('[{"Id": "a", "State": {}, "Config": {"Env": ["GOGC=50"]}}]')
    assert "GC027" in ids(gca.read(tmp_path / "log", containers))


def test_gogc_is_known_above_a_limit_that_sets_most_goals() -> None:
    log = ROOT / "samples" / "refill" / "service.log.gz"
    run = gca.read(log, gogc=100, memory_limit="104MiB")
    before = run.table("metrics").filter(pl.col("start_s").is_between(0.5, 5))
    assert set(before["goal_set_by"].cast(pl.String)) == {"gogc"}
    setters = run.table("metrics")["goal_set_by"].cast(pl.String).to_list()
    assert setters.count("memory-limit") > 0.8 * len(setters)
    assert "GC027" not in run.findings()["id"].to_list()
    assert "GC027" in gca.read(log, gogc=200).findings()["id"].to_list()


def test_levels_of_gogc_are_listed(tmp_path: Path) -> None:
    run = run_of(
        tmp_path, 120, goal=lambda n: live(n - 1) + live(n - 1) // (1 if n <= 60 else 2)
    )
    (row,) = run.findings().filter(id="GC026").to_dicts()
    assert "GOGC=100, then GOGC=50 from 12 s" in row["evidence"]


def test_an_idle_program_has_an_idle_episode(tmp_path: Path) -> None:
    assert {"GC025"} <= ids(run_of(tmp_path, 30, every=120.2))
    episode = run_of(tmp_path, 30, every=120.2).episodes()
    assert episode["kind"].to_list() == ["idle"]


def test_episodes_have_the_figures_of_their_kind() -> None:
    episodes = gca.read(ROOT / "samples" / "thrash-go1.19.log").episodes()
    row = episodes.filter(kind="limit-thrash").row(0, named=True)
    assert (row["severity"], row["limiter"]) == ("bad", "certain")
    assert row["limiter_fill_max"] == pytest.approx(1)
    assert episodes["start_s"].is_sorted()
    assert isinstance(episodes, pl.DataFrame)
