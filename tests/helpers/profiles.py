"""The profiles of the corpus, and what `go tool pprof` printed about them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.conftest import CORPUS

if TYPE_CHECKING:
    from pathlib import Path

PROFILES = CORPUS / "profiles"
MANIFEST: dict[str, Any] = json.loads((PROFILES / "manifest.json").read_text())
OWN = [row["name"] for row in MANIFEST["own"]]
REAL = [row["name"] for row in MANIFEST["real"]]

_ROW = re.compile(
    r" *(?P<flat>-?\d+)B? +\S+% +\S+% +(?P<cum>-?\d+)B? +\S+% +(?P<name>.*?)(?P<note> \(.*inline\))?"
)


class Printed(NamedTuple):
    """What pprof prints about a function or a line, in bytes or objects."""

    flat: int
    cum: int


def printed(report: Path) -> dict[str, Printed]:
    """The rows of a report by function, or by function and place in one with lines."""
    rows = [
        match for line in report.read_text().splitlines() if (match := _ROW.fullmatch(line))
    ]
    return {row["name"]: Printed(int(row["flat"]), int(row["cum"])) for row in rows}


def truth(program: str) -> dict[str, int]:
    """The bytes that each function of one of our programs allocated."""
    counted: dict[str, int] = json.loads((PROFILES / program / "truth.json").read_text())[
        "allocated_bytes"
    ]
    return counted
