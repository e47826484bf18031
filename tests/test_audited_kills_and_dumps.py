"""Reports of written kills, dumps and scrapes say nothing that these inputs contradict."""

from __future__ import annotations

import json
from random import Random

import pytest

from gctrace_analyzer.errors import NoDataError
from gctrace_analyzer.testing import read_text
from tests.helpers import audit_dumps, audit_kills, written_dumps, written_kills

SEEDS = range(9)
"""More find nothing in every run: thousands were read when this was written."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", SEEDS)
def test_kills_of_the_kernel(seed: int) -> None:
    random = Random(seed)
    found, prefix = written_kills.kills(random), random.choice([*written_kills.PREFIXES])
    run = read_text(written_kills.text(found, prefix))
    assert not audit_kills.audit(found, prefix, json.loads(run.to_json()), run.to_markdown())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_kill_of_a_program_with_gctrace(seed: int) -> None:
    random = Random(seed)
    killed = written_kills.kill_of_go(random)
    prefix = random.choice(written_kills.WITH_PROGRAMS)
    run = read_text(written_kills.with_program(random, killed, prefix))
    report = json.loads(run.to_json())
    assert not audit_kills.audit([killed], prefix, report, run.to_markdown(), has_cycles=True)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", [*SEEDS, 16, 67])
def test_a_kill_of_one_of_two_programs(seed: int) -> None:
    random = Random(seed)
    killed = written_kills.kill_of_go(random)
    prefix = random.choice(written_kills.WITH_PROGRAMS)
    text, other = written_kills.with_neighbour(random, killed, prefix)
    run = read_text(text)
    report = json.loads(run.to_json())
    assert not audit_kills.audit([killed], prefix, report, run.to_markdown(), has_cycles=True)
    pids = {row["process"]: row["log_pid"] for row in report["processes"]}
    assert set(pids.values()) <= {killed.victim.pid, other}
    assert len(set(pids.values())) == len(pids)
    (death,) = report["post_mortems"]
    assert pids.get(death["process"]) == (
        killed.victim.pid if killed.victim.pid in pids.values() else None
    )
    for process, pid in pids.items():
        if pid == other:
            assert run.analysis.settings_of(process).container_limit_mib is None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", [*SEEDS, 1156])
def test_dumps_and_scrapes(seed: int) -> None:
    _, found, dropped, text = written_dumps.written(Random(seed))
    try:
        run = read_text(text)
    except NoDataError:
        return
    assert not audit_dumps.audit(found, dropped, run.to_markdown())
