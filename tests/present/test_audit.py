"""What reports say about gctrace logs agrees with the lines, and with itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from gctrace_analyzer.testing import read_text
from tests.conftest import CORPUS
from tests.helpers.audit_gctrace import audit

if TYPE_CHECKING:
    from pathlib import Path

_EVERY = 6
"""Of so many logs, one is read: more take too long for every run of the tests."""

LOGS = [
    path
    for name in ("gctrace", "settings", "cases", "wild", "retuned")
    for path in sorted((CORPUS / name).rglob("*.log"))
    if path.stat().st_size < 30_000 and b"gc 1 @" in path.read_bytes()
][::_EVERY]


def _parts(log: str) -> dict[str, str]:
    """Returns the log, and others that its program could have printed a part of."""
    lines = log.splitlines(keepends=True)
    begins = [at for at, line in enumerate(lines) if line.startswith("gc ")]
    if len(begins) < 6:
        return {"whole": log}
    thinned = [line for at, line in enumerate(lines) if at not in begins[1::2]]
    return {
        "whole": log,
        "first 3": "".join(lines[: begins[2] + 1]),
        "one": lines[begins[len(begins) // 2]],
        "last 5": "".join(lines[begins[-5] :]),
        "every second line": "".join(thinned),
        "every second of the last 12": "".join(lines[at] for at in begins[-12::2]),
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.relative_to(CORPUS).as_posix())
def test_a_report_says_nothing_that_its_log_contradicts(path: Path) -> None:
    wrong = {}
    for name, text in _parts(path.read_text(errors="replace")).items():
        run = read_text(text)
        wrong[name] = audit(text, json.loads(run.to_json()), run.to_markdown())
    assert not any(wrong.values()), wrong
