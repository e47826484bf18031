"""Reads an input in every way, and says what goes wrong.

A failure is an exception that is not one of `gctrace_analyzer.errors`, an input that takes longer
than a second per megabyte, or one that reads differently without the compiled core.
"""

from __future__ import annotations

import hashlib
import io
import re
import time
import traceback
import warnings
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, get_args
from unittest.mock import patch

import gctrace_analyzer as gca
from gctrace_analyzer.advise.objective import AIMS
from gctrace_analyzer.api import live
from gctrace_analyzer.cli.deliver import write
from gctrace_analyzer.cli.report import of_run
from gctrace_analyzer.cli.screen import Colors
from gctrace_analyzer.cli.watch.views import ViewOptions, create_view
from gctrace_analyzer.errors import GctraceError, GctraceWarning
from gctrace_analyzer.ingest import input as reader
from gctrace_analyzer.schema import TableName
from tests.conftest import SAMPLES
from tests.fuzz.inputs import BROKEN
from tests.helpers.both_readers import difference
from tests.helpers.time_limits import ends_within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gctrace_analyzer.run import Run

SAMPLE = SAMPLES / "steady-go1.26.log"
SECONDS = 3.0
"""Processor time that a surface may take in addition to a second per megabyte."""

DOCUMENT_SECONDS = 0.005
"""What each JSON object of several lines may take in addition."""

HANGS_S = 60
"""Processor time after which an input counts as one that never ends."""

_FACTS: dict[str, Any] = {
    "year": 2026, "tz": "Europe/Berlin", "gogc": 100, "memory_limit": "400MiB",
    "container_limit": "512MiB", "cpu_limit": 2.0, "go_version": "1.22", "off_heap": "10MiB",
}  # fmt: skip


_VIEWS = ("lines", "jsonl", "dashboard")


class _ThisThread:
    """Runs what the reader gives to threads: a new thread would compile every pattern again."""

    def __init__(self, _: int) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, call: Callable[..., Any], *args: Any) -> Future[Any]:
        done = Future[Any]()
        done.set_result(call(*args))
        return done


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong: where, and the message; equal places are the same failure."""

    place: str
    message: str = field(compare=False)


class _Pieces(io.BytesIO):
    """A file whose bytes arrive in small pieces."""

    name = "pieces"

    def read(self, size: int | None = -1) -> bytes:
        most = 1 + len(self.getbuffer()) // 7
        return super().read(min(size, most) if size and size > 0 else most)


def _summary(run: Run) -> None:
    run.summary().to_dict()
    len(run.findings())


def _written(kind: str, run: Run, name: str = "cycles") -> None:
    write(of_run(run, table=name, plot=name), kind, io.BytesIO())


def _advice(run: Run) -> None:
    for aim in AIMS:
        run.recommend(aim=aim)
    run.whatif([50, 100, 400, "off"], ["off", "100MiB", "4GiB"], horizon="12h")
    run.post_mortems()
    run.memory()


def _tables(run: Run) -> None:
    for name in get_args(TableName):
        _written("jsonl", run, name)
        _written("csv", run, name)
    run.check("gc_cpu_share>10%", "finding:bad", "stw_p99_ms>2")


def _compare(run: Run) -> None:
    other = gca.read(SAMPLE)
    for found in (gca.compare(run, other), gca.compare(other, run), gca.compare(run, run)):
        str(found)
        found.to_json()
    gca.compare([run, other], [other, run]).to_html()


OF_A_RUN: dict[str, Callable[[Run], None]] = {
    "summary": _summary,
    "json": partial(_written, "json"),
    "text": partial(_written, "text"),
    "markdown": partial(_written, "md"),
    "advice": _advice,
    "tables": _tables,
    "compare": _compare,
    "html": partial(_written, "html"),
}
"""What is made of a run; the cheapest first."""


def _watch(data: bytes, kind: str) -> None:
    """Reads an input as it arrives, with one of the views."""
    seen = live(year=2026, tz="UTC")
    options = ViewOptions(kind, io.StringIO(), Colors("never"), "log", 5.0, 60.0, True, None)
    view = create_view(options, seen)

    def added() -> None:
        view.added()
        view.tick()

    seen.follow(_Pieces(data), added)
    view.end()
    seen.run().summary()


SURFACES = ("read", "both", *OF_A_RUN, "watch")
"""`both` reads once with and once without the compiled core, and compares."""

MIXES = (
    *[("read",), ("read", "both"), ("read",), ("read", "summary")] * 24,
    ("read", "both", "summary", "json", "text", "advice"),
    ("read", "both", "summary", "watch"),
    SURFACES,
)
"""Surfaces that an input is tried on: most on few, because some cost a hundred times as much."""


def try_input(data: bytes, surfaces: Sequence[str] = SURFACES) -> None:
    """Reads an input and makes everything of it that `surfaces` names.

    Errors of `gctrace_analyzer.errors` are expected; the first other exception is raised.

    Raises:
        SlowError: one of the surfaces takes too long.
        OtherCoreError: the input reads differently without the compiled core.
    """
    chosen = hashlib.sha256(data).digest()[0]
    facts = _FACTS if chosen % 2 else {}
    # Each document among the lines of a file is read alone.
    timed = partial(_timed, SECONDS + len(data) / 1e6 + DOCUMENT_SECONDS * data.count(b"{\n"))
    with warnings.catch_warnings(), patch.object(reader, "ThreadPoolExecutor", _ThisThread):
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", GctraceWarning)
        if "watch" in surfaces:
            with suppress(GctraceError), timed("watch"):
                _watch(data, _VIEWS[chosen % len(_VIEWS)])
        try:
            with timed("read"):
                run = gca.read(io.BytesIO(data), **facts)
        except GctraceError:
            return
        if "both" in surfaces and (found := difference(data)):
            raise OtherCoreError(found)
        for name, made in OF_A_RUN.items():
            if name in surfaces:
                with suppress(GctraceError), timed(name):
                    made(run)


class OtherCoreError(Exception):
    """With the compiled core, something else is read than without it."""


class SlowError(Exception):
    """A surface took longer than it may."""


@contextmanager
def _timed(allowed: float, surface: str) -> Iterator[None]:
    begin = time.process_time()
    yield
    if time.process_time() - begin > allowed:
        message = f"{surface} took {time.process_time() - begin:.1f} s"
        raise SlowError(message)


def failure(data: bytes, surfaces: Sequence[str] = SURFACES) -> Failure | None:
    """Returns what goes wrong with an input; None if nothing does."""
    for attempt in range(3):
        try:
            with ends_within(HANGS_S):
                try_input(data, surfaces)
        except (KeyboardInterrupt, SystemExit):
            raise
        except SlowError as err:
            # Measured again: libraries are loaded, and other programs run at the same time.
            if attempt == 2:
                return Failure("slow", str(err))
        except BaseException as err:  # a panic of Polars is not an Exception
            return Failure(_place(err), f"{type(err).__name__}: {err}"[:300])
        else:
            return None
    raise AssertionError


def _place(err: BaseException) -> str:
    """Returns the type of an exception and the innermost function of the package."""
    frames = traceback.extract_tb(err.__traceback__)
    inside = [each for each in frames if "gctrace_analyzer" in Path(each.filename).parts]
    if not inside:
        return type(err).__name__
    last = inside[-1]
    return f"{type(err).__name__} in {Path(last.filename).stem}.{last.name}"


def stored(data: bytes, place: str) -> Path:
    """Writes an input that fails to the corpus, where a test reads it from then on."""
    name = re.sub(r"\W+", "-", place.replace(" in ", "-")).strip("-").lower()
    path = BROKEN / f"{name}-{hashlib.sha256(data).hexdigest()[:6]}.log"
    BROKEN.mkdir(exist_ok=True)
    path.write_bytes(data)
    return path
