"""What the tests share: where the logs are, and golden files."""

from __future__ import annotations

import difflib
import gc
import os
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from tests.helpers import archives

if TYPE_CHECKING:
    from collections.abc import Callable

pytest_plugins = ["gctrace_analyzer.testing"]

# A slow machine is no reason for a test to fail. Every run tries other examples.
hypothesis.settings.register_profile("untimed", deadline=None, max_examples=50)
hypothesis.settings.load_profile("untimed")

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "tests"
CORPUS = archives.FOLDER
SAMPLES = ROOT / "samples"
GOLDEN = HERE / "golden"

# Tests are named after files of the corpus, so they must be there before tests are collected.
archives.unpack_all()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite the golden files with the current output",
    )
    parser.addoption(
        "--kills",
        type=int,
        default=1,
        help="how often whole commands are killed at random moments (default: 1)",
    )


# These tests wait for other programs (terminals, workers, browsers, servers) or measure time.
# On a machine that is busy with other work, a wait may be too short: they are tried up to three times,
# and the summary says so.
TIMED = (
    "cli/test_output.py", "cli/test_screen.py", "cli/watch/", "fleets/test_cluster.py",
    "fleets/test_faults.py", "ingest/test_linear_time.py", "present/html/", "prometheus/",
    "test_faults.py", "test_real_program.py", "trials/",
)  # fmt: skip


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.pluginmanager.has_plugin("rerunfailures"):
        return
    again = pytest.mark.flaky(reruns=2)
    for item in items:
        path = item.path
        if path.is_relative_to(HERE) and path.relative_to(HERE).as_posix().startswith(TIMED):
            item.add_marker(again)


class Failures:
    """Prints the end of each failure at once: a long run may be ended before its summary."""

    LINES = 12

    def __init__(self, config: pytest.Config) -> None:
        self._terminal = config.pluginmanager.get_plugin("terminalreporter")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome not in ("failed", "rerun") or self._terminal is None:
            return
        self._terminal.ensure_newline()
        self._terminal.write_line(
            f"{report.outcome}: {report.nodeid} ({report.duration:.1f} s)"
        )
        for line in report.longreprtext.splitlines()[-self.LINES :]:
            self._terminal.write_line(f"    {line}")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Failures(config), "failures-at-once")


def pytest_collection_finish() -> None:
    # Thousands of tests and all modules are never garbage: checking them took a tenth of the time.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, *gc.get_threshold()[1:])


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
