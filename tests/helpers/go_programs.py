"""Go programs of the lab, built for a test."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

needs_go = pytest.mark.skipif(
    shutil.which("go") is None, reason="there is no go command here (https://go.dev/dl)"
)


def built(name: str, folder: Path) -> Path:
    """The program `lab/go/NAME`, built in a folder."""
    target = folder / name
    subprocess.run(
        ["go", "build", "-o", str(target), "."], cwd=ROOT / "lab" / "go" / name, check=True
    )
    return target
