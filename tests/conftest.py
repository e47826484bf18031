"""What the tests share: where the logs are, and golden files."""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

pytest_plugins = ["gctrace_analyzer.testing"]

# A slow machine is no reason for a test to fail.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "tests" / "corpus"
SAMPLES = ROOT / "samples"
GOLDEN = ROOT / "tests" / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite the golden files with the current output",
    )
    parser.addoption(
        "--kills",
        type=int,
        default=2,
        help="how often whole commands are killed at random moments (default: 2)",
    )


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for name in (
        "NO_COLOR", "FORCE_COLOR", "COLORFGBG", "COLUMNS", "LC_ALL", "LC_CTYPE", "LANG",
    ):  # fmt: skip
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a text with the golden file of that name, byte for byte."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        expected = path.read_text() if path.exists() else ""
        if text != expected:
            lines = difflib.unified_diff(
                expected.splitlines(), text.splitlines(), "golden", "now", lineterm=""
            )
            pytest.fail(f"{path.relative_to(ROOT)} differs:\n" + os.linesep.join(lines))

    return compare
