"""Reports on excerpts of real MemStats series say nothing that the whole recordings contradict."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING

import pytest

import gctrace_analyzer as gca
from tests.conftest import CORPUS
from tests.helpers import audit_series, written_series

if TYPE_CHECKING:
    from pathlib import Path

SEEDS = range(60)
"""Outside the tests, thousands of excerpts were read when this was written."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", SEEDS)
def test_excerpts(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    recording = random.choice(sorted((CORPUS / "series").glob("*.json")))
    excerpt = written_series.written(random, json.loads(recording.read_text()))
    for name, text in excerpt.files.items():
        (tmp_path / name).write_text(text)
    try:
        run = gca.read(*map(tmp_path.joinpath, excerpt.files))
    except gca.GctraceError:
        # A single field is no dump.
        assert len(excerpt.dropped) > 8
        return
    # Expvar without its times does not show that all files are of one process.
    if run.table("memstats")["process"].n_unique() == 1:
        assert not audit_series.audit(excerpt, json.loads(run.to_json()), run.to_markdown())
