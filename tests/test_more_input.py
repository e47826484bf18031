"""More input never yields less: no line takes a figure away that the others show."""

from __future__ import annotations

import io
import random
from typing import TYPE_CHECKING, Any

import pytest

import gctrace_analyzer as gca
from tests.conftest import CORPUS

if TYPE_CHECKING:
    from pathlib import Path

LINES = 4
"""Lines that are left out of each excerpt, one at a time."""

MAY_BE_NULL = {"warnings", "estimated", "window", "log_check_points"}
OF_DEATHS = ("logged_at", "pid", "victim", "limit_mib", "resident_mib", "scope", "killer")

# Excerpts with a line that contradicts what the others show, and how.
CONTRADICTED = {
    "nomad12735-spurious-oom-killed": "the task was asked to stop",
    "go18896-fragmentation-two-runs": "the line shows that there are two processes",
    "go12228-go15-windows-startup-goal-below-start": "sizes in MiB hide what the cycle allocates",
    "gorun-gogc25-comment-spanish": "sizes in MiB hide what the cycle allocates",
}

EXCERPTS = sorted(path for name in ("cases", "wild") for path in (CORPUS / name).glob("*.log"))


def figures(text: str) -> dict[str, Any]:
    """Returns the summary, and the facts about the only death or dump; empty if refused."""
    try:
        run = gca.read(io.StringIO(text), year=2026, tz="UTC")
    except gca.GctraceError:
        return {}
    known = {k: v for k, v in run.summary().to_dict().items() if k not in MAY_BE_NULL}
    if len(memory := run.memory()) == 1:
        known |= {f"memory {k}": v for k, v in memory[0].to_dict().items() if k != "advice"}
    if len(deaths := run.post_mortems()) == 1:
        known |= {f"death {name}": getattr(deaths[0], name) for name in OF_DEATHS}
    return known


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", EXCERPTS, ids=lambda path: path.stem)
def test_no_line_takes_a_figure_away(path: Path) -> None:
    lines = path.read_text(errors="replace").splitlines(keepends=True)
    whole = figures("".join(lines))
    chosen = random.Random(path.stem).sample(range(len(lines)), min(LINES, len(lines)))
    lost = {
        (at + 1, name): value
        for at in chosen
        for name, value in figures("".join(lines[:at] + lines[at + 1 :])).items()
        if value is not None and name in whole and whole[name] is None
    }
    assert not lost or path.stem in CONTRADICTED
