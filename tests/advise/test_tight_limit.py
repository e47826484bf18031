"""The memory limit that is advised where the present one is too low."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.advise.prediction.model import Setting
from gctrace_analyzer.analysis.fleet.answers import answers
from gctrace_analyzer.analysis.postmortem.facts import container_for
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.cli import main
from gctrace_analyzer.testing import read_text
from tests.conftest import SAMPLES
from tests.helpers.corpus import log_of
from tests.helpers.logs import logfile

if TYPE_CHECKING:
    from pathlib import Path

LIMITS = SAMPLES / "limits"


@pytest.mark.parametrize("mib", [64, 72, 80, 88, 100, 120])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_no_limit_that_is_advised_is_itself_too_tight(mib: int, number: int) -> None:
    """One program: with 120 MiB, `limit-tight` matches; with 140 (measured) and 160, it does not."""
    report = gca.read(LIMITS / f"{mib}-mib-{number}.log.gz").report()
    limit = report.advice.higher_limit_mib
    assert limit is not None
    assert limit >= 150
    predicted = report.advice.baseline.at(Setting(100.0, limit)).row
    assert predicted["effective_gogc"] >= DEFAULT.limit_gogc_warn
    changes = report.advice.recommendations.filter(~report.advice.recommendations["now"])
    assert (changes["memory_limit_mib"].drop_nulls() >= 140).all()
    assert report.verdict is not None
    if report.verdict.finding == "GC016":
        assert f"GOMEMLIMIT={limit:.0f}MiB" in report.verdict.action


@pytest.mark.parametrize("number", [1, 2, 3])
def test_the_roomy_limits_of_the_same_program_are_not_reported_as_tight(number: int) -> None:
    findings = gca.read(LIMITS / f"160-mib-{number}.log.gz").findings()
    assert "GC015" not in findings["id"].to_list()


def test_a_larger_container_has_no_less_advice_than_a_smaller_one(
    tmp_path: Path,
) -> None:
    """Of a program with one burst, the limit bounds the predicted peak, and GOGC stays."""

    def live(n: int) -> int:
        return 68 if n == 150 else 29

    text = log_of(
        300, every=0.05, live=live, background=8, goal=lambda n: 2 * live(n - 1),
        start=lambda n: int(1.9 * live(n - 1)),
        end=lambda n: 132 if n in (150, 151) else int(1.95 * live(n - 1)),
    )  # fmt: skip
    log = logfile(tmp_path / "run.log", text.splitlines())
    for container in (105, 128, 160):
        run = gca.read(log, container_limit=f"{container}MiB")
        best = run.recommend().row(0, named=True)
        assert best["memory_limit_mib"] == int(0.9 * container)
        assert best["gogc"] == 100
        assert best["memory_peak_mib"] <= container
        assert best["confidence"] != "high"
        assert "MiB above its goal" in best["warnings"]


def test_a_program_that_thrashes_throughout_has_one_limit_in_all_outputs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = str(SAMPLES / "thrash-go1.19.log")
    report = gca.read(log).report()
    limit = report.advice.higher_limit_mib
    assert main(["recommend", log, "--format", "env"]) == 0
    assert capsys.readouterr().out == f"GOMEMLIMIT={limit:.0f}MiB\n"
    assert report.verdict is not None
    assert f"GOMEMLIMIT={limit:.0f}MiB, if the container has room" in report.verdict.action


def test_under_a_limit_that_may_thrash_the_expected_peak_is_below_the_limit() -> None:
    run = gca.read(SAMPLES / "leak-go1.26.log")
    for row in run.whatif(memory_limit=["265MiB", "277MiB"]).head(2).to_dicts():
        assert row["thrash"] == "risk"
        assert row["heap_peak_mib"] < row["memory_limit_mib"] < row["heap_peak_mib_high"]


def test_the_memory_that_a_log_prints_next_to_its_cycles_bounds_the_limit_that_it_needs() -> (
    None
):
    line = (
        "gc {} @{}s 6%: 0.9+9+0.5 ms clock, 11+0.1/6/0+5 ms cpu, 412->413->412 MB, 412 MB goal, "
        "0 MB stacks, 0 MB globals, 12 P\n"
    )
    sizes = (
        '2026/07/26 13:05:47 metrics {"heap_alloc_mib":422,"heap_sys_mib":506,"heap_idle_mib":82,'
        '"heap_inuse_mib":423,"heap_released_mib":82,"stack_inuse_mib":1,"mspan_inuse_mib":0,'
        '"mcache_inuse_mib":0,"buck_hash_sys_mib":0,"gc_sys_mib":2,"other_sys_mib":2,'
        '"next_gc_mib":411,"num_gc":33235,"rss_mib":414,"cgroup_memory_mib":429,'
        '"cgroup_memory_max_mib":512}\n'
    )
    cycles = [line.format(33233 + at, 8921 + at / 4) for at in range(5)]
    report = read_text("".join([*cycles[:4], sizes, cycles[4]])).report()
    assert report.advice.baseline.non_heap_mib < 10
    assert report.verdict is not None
    assert "Raise the container's memory limit to at least 580 MiB" in report.verdict.action


def leak_into_limit() -> str:
    """A heap that doubles under a limit of about 100 MiB, which it passes halfway."""
    return log_of(
        140, every=0.04, live=lambda n: 60 + n, background=10,
        goal=lambda n: max(100, 59 + n), start=lambda n: max(97, 60 + n),
        end=lambda n: max(99, 62 + n),
    )  # fmt: skip


@pytest.mark.parametrize("container", ["256MiB", "4GiB"])
def test_a_limit_that_a_leak_reached_is_raised_only_within_the_container(
    container: str,
) -> None:
    log = io.BytesIO(leak_into_limit().encode())
    report = gca.read(log, container_limit=container).report()
    assert report.verdict is not None
    assert report.advice.baseline.refused is not None
    fits = container == "4GiB"
    raised = "raise GOMEMLIMIT to about" if fits else "raise the container's memory limit to"
    assert raised in report.verdict.action
    assert ("in a container of about" in report.advice.baseline.refused) is not fits


def test_the_lowest_and_the_roomy_limit_are_the_same_wherever_they_are_named() -> None:
    """`at least` is the lowest that does not thrash; what leaves room is `about` or `better`."""
    path = SAMPLES / "thrash-go1.19.log"

    def read(*inputs: Path, container: str | None = None) -> gca.Run:
        return gca.read(inputs, gogc=100, memory_limit="130MiB", container_limit=container)

    def action(report: gca.Report) -> str:
        assert report.verdict is not None
        return str(report.verdict.action)

    alone, contained = read(path).report(), read(path, container="140MiB").report()
    least, roomy = alone.advice.needed_limit_mib or 0.0, alone.advice.higher_limit_mib or 0.0
    assert f"Set GOMEMLIMIT={roomy:.0f}MiB" in action(alone)
    refused = read(SAMPLES / "leak-into-limit-go1.24.log").report()
    about = f"Raise GOMEMLIMIT to about {refused.advice.higher_limit_mib:.0f} MiB"
    assert about in action(refused)
    assert f"1.5 × the {least:.0f} MiB" in action(alone)
    both = (
        f"GOMEMLIMIT to at least {least:.0f} MiB, better {container_for(roomy)} and {roomy:.0f}"
    )
    assert both in action(contained)
    why = contained.advice.recommendations["why"][0]
    assert f"A GOMEMLIMIT of about {roomy:.0f} MiB" in why
    assert f"in a container of about {container_for(roomy)} MiB" in why
    rows = gca.fleet([path], gogc=100, memory_limit="130MiB").collect()
    assert answers(rows).problems["to_do"].to_list() == [f"GOMEMLIMIT={roomy:.0f}MiB"]
