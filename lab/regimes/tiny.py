"""Records the states of a tiny service: its gctrace, and its metrics every second."""

from __future__ import annotations

import re
import time
import urllib.request
from typing import TYPE_CHECKING

from lab.regimes.cases import Case, own
from lab.regimes.recorder import METRICS, Recording, record

if TYPE_CHECKING:
    from collections.abc import Callable

EVERY_S = 1.0
PAGES = {"metrics": "scrapes.om", "all": "runtime-metrics.om"}
OLDER = "scrapes-older.om"
"""The default page without GOGC and the memory limit, as before client_golang 1.20."""

SETTINGS = re.compile(r"go_gc_go(gc|memlimit)_|go_sched_gomaxprocs")
KEPT = re.compile(r"go_(?!.*_by_size|godebug|cgo)|process_")
"""The histograms of sizes and the counters of GODEBUG make up most of the page."""
WORDS = "-live 4 -pause 20ms"
LONG = "25s exit"
FORCED = "1s collect=1,10s collect=12,24s collect=12,25s exit"


def state(name: str, env: str, plan: str, words: str, note: str = "") -> Case:
    cycles = 4000
    return own(f"tiny/{name}", env, plan, words, tag="metrics", cycles=cycles, note=note)


def states() -> list[Case]:
    """The states; the limits are for a program whose other memory is about 7 MiB."""
    return [
        state("gogc-50", "GOGC=50", LONG, WORDS),
        state("gogc-100", "GOGC=100", LONG, WORDS),
        state("gogc-400", "GOGC=400", LONG, "-live 3 -pause 10ms"),
        state("gogc-1600", "GOGC=1600", LONG, "-live 1 -pause 4ms"),
        state("off-no-limit", "GOGC=off", FORCED, WORDS, note="only forced cycles"),
        state("limit-ample", "GOGC=100 GOMEMLIMIT=100MiB", LONG, WORDS),
        state("limit-ample-off", "GOGC=off GOMEMLIMIT=48MiB", LONG, "-live 4 -pause 10ms"),
        state("limit-just-reached", "GOGC=100 GOMEMLIMIT=18MiB", LONG, WORDS),
        state("limit-tight", "GOGC=100 GOMEMLIMIT=15MiB", LONG, WORDS),
        state("limit-at-live", "GOGC=off GOMEMLIMIT=13MiB", LONG, WORDS),
        state("limit-below-live", "GOGC=off GOMEMLIMIT=9MiB", LONG, WORDS),
        state("gogc-changed", "GOGC=100", "12s gogc=400,25s exit", WORDS),
        state("limit-changed", "GOGC=100 GOMEMLIMIT=100MiB", "12s limit=15,25s exit", WORDS),
    ]  # fmt: skip


def scraped(case: Case) -> Recording:
    """Records a state with its metrics."""
    scrapes = Scrapes()
    recording = record(case, scrapes.watch)
    folder = case.log.removesuffix("run.log")
    recording.files.update((folder + name, data) for name, data in scrapes.files().items())
    recording.row["metrics"] = [*PAGES.values(), OLDER]
    return recording


class Scrapes:
    """The pages of a program, as OpenMetrics with timestamps."""

    def __init__(self) -> None:
        self._families: dict[str, dict[str, list[str]]] = {page: {} for page in PAGES}
        self._due = time.monotonic() + EVERY_S / 2

    def watch(self) -> None:
        """Reads the pages if it is time."""
        if time.monotonic() < self._due:
            return
        self._due += EVERY_S
        for page, families in self._families.items():
            url = f"http://{METRICS}/{page}"
            try:
                text = urllib.request.urlopen(url, timeout=2).read().decode()
            except OSError:
                return
            _add(families, text, time.time())

    def files(self) -> dict[str, bytes]:
        """Returns the files of a recording."""
        written = {name: _text(self._families[page]) for page, name in PAGES.items()}
        written[OLDER] = _text(self._families["metrics"], lambda name: not SETTINGS.match(name))
        return {name: text.encode() for name, text in written.items()}


def _add(families: dict[str, list[str]], text: str, at: float) -> None:
    """Adds the samples of a page to their metrics, each under its type."""
    family: list[str] = []
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            family = families.setdefault(line, [])
        elif KEPT.match(line):
            family.append(f"{line} {at:.3f}")


def _text(
    families: dict[str, list[str]], wanted: Callable[[str], object] = lambda _: True
) -> str:
    lines = [
        line
        for title, samples in families.items()
        if samples and wanted(title.split()[2])
        for line in (title, *samples)
    ]
    return "\n".join((*lines, "# EOF", ""))
