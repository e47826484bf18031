"""Damages the logs of the corpus, feeds them to every part of the package, and shrinks failures.

A failure is an exception that is not one of `gctrace_analyzer.errors`, or an input that takes
longer than a second per megabyte.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import random
import re
import signal
import time
import traceback
import warnings
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, get_args

from both_readers import difference
from environment import ROOT

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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gctrace_analyzer.run import Run

CORPUS = ROOT / "tests" / "corpus"
BROKEN = CORPUS / "broken"
SAMPLE = ROOT / "samples" / "steady-go1.26.log"

PIECE_BYTES = 6000
"""Most inputs are some lines of a file, at most of this length: small inputs are read faster, so
that more of them are tried, and the limits of every reader show in a few lines."""

WHOLE_FILES = 0.02
"""The share of inputs that begin as a whole file of moderate size, not as some lines."""

LARGE = 0.001
"""The share of inputs that are repeated up to `LARGE_BYTES`, to find what is not linear."""

LARGE_BYTES = 1 << 20

SECONDS = 3.0
"""The processor time that a surface may take in addition to a second per megabyte."""

HANGS_S = 60
"""After this much processor time, an input counts as one that never ends."""

TOKENS = (
    b"NaN", b"-NaN", b"Infinity", b"inf", b"1e309", b"-1e309", b"1e-400", b"1e18", b"-1", b"0",
    b"-0.0", b"00", b"1.5.5", b"4.2e-", b".", b"-", b"+", b"", b" ", b"e", b"0x", b"1_000",
    b"18446744073709551615", b"9223372036854775807", b"9223372036854775808",
    b"-9223372036854775809", b"99999999999999999999999999", b"9" * 400, b"1" * 5000,
    b"4294967296", b"17592186044415", b"18446744073709", b"0.000000000001", b"null", b"true",
    b"[]", b"{}", b'""', b'"', b"\\", b"\\ud800", b"\x00", b"\xff", b"\x1b[31m", b"\r",
    "\u0661\u0662".encode(), "\u00b2".encode(), "\u2028".encode(), b"off", b"%", b"%s", b"{0}",
)  # fmt: skip
_NUMBER = re.compile(rb"\d+(?:\.\d+)?")
_WORD = re.compile(rb"[A-Za-z_][\w-]*|\"[^\"]{0,40}\"")
_NOT_LOGS = {".md", ".toml", ".py", ".bin"}
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


reader.ThreadPoolExecutor = _ThisThread  # type: ignore[assignment, attr-defined]


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong: where, and the message; equal places are the same failure."""

    place: str
    message: str = field(compare=False)


def corpus() -> list[Path]:
    """Returns every input among the tests and samples, in a fixed order.

    Those that once broke are left out: each would change all inputs that follow from a seed.
    """
    files = [*CORPUS.rglob("*"), *(ROOT / "samples").rglob("*")]
    return sorted(
        path
        for path in files
        if path.is_file()
        and path.parent != BROKEN
        and path.suffix not in _NOT_LOGS
        and not path.name.endswith(("manifest.json", "expect.json", "index.json"))
    )


def content(path: Path) -> bytes:
    """Returns the unpacked content of a file; the packed content if it is damaged."""
    data = path.read_bytes()
    unpackers: dict[str, Callable[[bytes], bytes]] = {
        ".gz": gzip.decompress, ".xz": lzma.decompress, ".bz2": bz2.decompress
    }  # fmt: skip
    with suppress(OSError, EOFError, ValueError, lzma.LZMAError):
        return unpackers.get(path.suffix, bytes)(data)
    return data


class Mutator:
    """Makes damaged inputs; the same seed gives the same inputs."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._kept: dict[Path, bytes] = {}
        self._changes = (
            self._number, self._number, self._number, self._digit, self._digits, self._word,
            self._byte, self._cut, self._delete, self._drop, self._swap, self._repeat,
            self._copy, self._join, self._splice, self._lengthen,
        )  # fmt: skip

    def made(self, seed: str) -> bytes:
        """Returns the input of a seed."""
        rng = random.Random(seed)
        data = self._piece(rng)
        if rng.random() < 0.1:
            data += self._piece(rng)
        for _ in range(rng.choice((1, 1, 2, 3, 5, 8, 20))):
            data = rng.choice(self._changes)(rng, data)
        if data and rng.random() < LARGE:
            data *= LARGE_BYTES // len(data)
        if rng.random() < 0.02:
            data = self._cut(rng, gzip.compress(data))
        return data

    def _piece(self, rng: random.Random) -> bytes:
        path = rng.choice(self._paths)
        if path not in self._kept:
            self._kept[path] = content(path)
        data = self._kept[path]
        if rng.random() < WHOLE_FILES or not data:
            return data[: 10 * PIECE_BYTES]
        # Half of the pieces are the beginning of a file: there is the header, if it has one.
        begin = 0 if rng.random() < 0.5 else rng.randrange(len(data))
        begin = data.rfind(b"\n", 0, begin) + 1
        piece = data[begin : begin + PIECE_BYTES]
        return b"\n".join(piece.split(b"\n")[: rng.randrange(1, 41)])

    def _replaced(
        self, rng: random.Random, data: bytes, what: re.Pattern[bytes], by: bytes
    ) -> bytes:
        at = rng.randrange(len(data) + 1)
        found = what.search(data, at) or what.search(data)
        return data if found is None else data[: found.start()] + by + data[found.end() :]

    def _number(self, rng: random.Random, data: bytes) -> bytes:
        return self._replaced(rng, data, _NUMBER, rng.choice(TOKENS))

    def _word(self, rng: random.Random, data: bytes) -> bytes:
        return self._replaced(rng, data, _WORD, rng.choice(TOKENS))

    def _digit(self, rng: random.Random, data: bytes) -> bytes:
        return self._replaced(
            rng, data, re.compile(rb"\d"), rng.choice(b"0123456789.-").to_bytes()
        )

    def _digits(self, rng: random.Random, data: bytes) -> bytes:
        digits = b"%d" % rng.randrange(10 ** rng.choice((1, 3, 7, 12, 16, 19, 22)))
        return self._replaced(rng, data, _NUMBER, digits)

    def _byte(self, rng: random.Random, data: bytes) -> bytes:
        at = rng.randrange(len(data) + 1)
        return data[:at] + rng.randbytes(1) + data[at + rng.randrange(2) :]

    def _cut(self, rng: random.Random, data: bytes) -> bytes:
        at = rng.randrange(len(data) + 1)
        return data[:at] if rng.random() < 0.7 else data[at:]

    def _delete(self, rng: random.Random, data: bytes) -> bytes:
        at = rng.randrange(len(data) + 1)
        return data[:at] + data[at + rng.choice((1, 5, 30)) :]

    def _lines(self, rng: random.Random, data: bytes) -> tuple[list[bytes], int]:
        lines = data.split(b"\n")
        return lines, rng.randrange(len(lines))

    def _drop(self, rng: random.Random, data: bytes) -> bytes:
        lines, at = self._lines(rng, data)
        del lines[at : at + rng.choice((1, 1, 5, 20))]
        return b"\n".join(lines)

    def _swap(self, rng: random.Random, data: bytes) -> bytes:
        lines, at = self._lines(rng, data)
        other = rng.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
        return b"\n".join(lines)

    def _repeat(self, rng: random.Random, data: bytes) -> bytes:
        lines, at = self._lines(rng, data)
        lines[at:at] = [lines[at]] * rng.choice((1, 2, 5, 30))
        return b"\n".join(lines)

    def _copy(self, rng: random.Random, data: bytes) -> bytes:
        at, to = rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)
        return data[:to] + data[at : at + rng.choice((3, 20, 200))] + data[to:]

    def _join(self, rng: random.Random, data: bytes) -> bytes:
        lines, at = self._lines(rng, data)
        lines[at : at + 2] = [rng.choice((b"", b" ")).join(lines[at : at + 2])]
        return b"\n".join(lines)

    def _splice(self, rng: random.Random, data: bytes) -> bytes:
        lines, at = self._lines(rng, data)
        others, of = self._lines(rng, self._piece(rng))
        lines[at : at + rng.choice((0, 1, 10))] = others[of : of + rng.choice((1, 3, 20))]
        return b"\n".join(lines)

    def _lengthen(self, rng: random.Random, data: bytes) -> bytes:
        if rng.random() < 0.8:
            return data
        lines, at = self._lines(rng, data)
        begin = rng.randrange(len(lines[at]) + 1)
        part = lines[at][begin : begin + rng.choice((1, 8, 60))]
        lines[at] += part * min(rng.choice((100, 2000)), 40_000 // max(len(part), 1))
        return b"\n".join(lines)


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
    options = ViewOptions(kind, io.StringIO(), Colors("never"), "log", 5.0, 60.0, True, None)  # noqa: FBT003
    view = create_view(options, seen)

    def added() -> None:
        view.added()
        view.tick()

    seen.follow(_Pieces(data), added)
    view.end()
    seen.run().summary()


SURFACES = ("read", "both", *OF_A_RUN, "watch")
"""`both` reads once with and once without the compiled core, and compares."""

SUMMARISED = ("read", "summary")


def surfaces_of(number: int) -> tuple[str, ...]:
    """Returns the surfaces that the input of this number is tried on: few on expensive ones.

    Summary and findings take twice as long as reading, and the comparison as long again.
    """
    if number % 500 == 0:
        return SURFACES
    if number % 100 == 25:
        return ("read", "both", "summary", "watch")
    if number % 50 == 0:
        return ("read", "both", "summary", "json", "text", "advice")
    return (("read",), ("read", "both"), ("read",), SUMMARISED)[number % 4]


def try_input(data: bytes, surfaces: Sequence[str] = SURFACES) -> None:
    """Reads an input and makes everything of it that `surfaces` names.

    Errors of `gctrace_analyzer.errors` are expected; the first other exception is raised.

    Raises:
        SlowError: one of the surfaces takes too long.
        OtherCoreError: the input reads differently without the compiled core.
    """
    chosen = hashlib.sha256(data).digest()[0]
    facts = _FACTS if chosen % 2 else {}
    timed = partial(_timed, SECONDS + len(data) / 1e6)
    with warnings.catch_warnings():
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


@dataclass(frozen=True, slots=True)
class Batch:
    """The result of some inputs: the failures by number, and the slowest reading.

    `slowest` has the processor seconds per megabyte beyond `SMALL_BYTES`, the size and the
    number of the inputs that took longest to read and summarise.
    """

    failures: list[tuple[int, Failure]]
    slowest: list[tuple[float, int, int]]


SMALL_BYTES = 100_000
"""The time of smaller inputs is the same whatever they contain, so they count as this long."""

SLOWEST = 5


@cache
def _mutator() -> Mutator:
    return Mutator(corpus())


def tried(seed: int, first: int, count: int) -> Batch:
    """Returns what happened to some inputs of a seed."""
    failures: list[tuple[int, Failure]] = []
    times: list[tuple[float, int, int]] = []
    for number in range(first, first + count):
        data = _mutator().made(f"{seed}/{number}")
        surfaces = surfaces_of(number)
        begin = time.process_time()
        problem = failure(data, surfaces)
        took = time.process_time() - begin
        if surfaces == SUMMARISED:
            times.append((took / max(len(data), SMALL_BYTES) * 1e6, len(data), number))
        if problem is not None:
            failures.append((number, problem))
    return Batch(failures, sorted(times, reverse=True)[:SLOWEST])


@contextmanager
def ends_within(seconds: int) -> Iterator[None]:
    """Raises an error in the block if it takes more processor time, or waits for very long."""

    def interrupt(*_: object) -> None:
        message = f"not done after {seconds} s"
        raise TimeoutError(message)

    if not hasattr(signal, "SIGALRM"):
        yield
        return
    kinds = (signal.SIGALRM, signal.SIGPROF)
    before = [signal.signal(kind, interrupt) for kind in kinds]
    signal.alarm(20 * seconds)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        for kind, handler in zip(kinds, before, strict=True):
            signal.signal(kind, handler)


def _place(err: BaseException) -> str:
    """Returns the type of an exception and the innermost function of the package."""
    frames = traceback.extract_tb(err.__traceback__)
    inside = [each for each in frames if "gctrace_analyzer" in Path(each.filename).parts]
    if not inside:
        return type(err).__name__
    last = inside[-1]
    return f"{type(err).__name__} in {Path(last.filename).stem}.{last.name}"


def shrunk(data: bytes, fails: Callable[[bytes], bool], seconds: float = 60.0) -> bytes:
    """Returns a small part of an input that still fails: fewer lines, then fewer bytes."""
    end = time.monotonic() + seconds
    for separator in (b"\n", b""):
        parts = data.split(separator) if separator else [bytes((byte,)) for byte in data]
        size = max(len(parts) // 2, 1)
        while size and time.monotonic() < end:
            at = 0
            while at < len(parts) and time.monotonic() < end:
                fewer = parts[:at] + parts[at + size :]
                if fails(separator.join(fewer)):
                    parts = fewer
                else:
                    at += size
            size //= 2
        data = separator.join(parts)
    return data


def stored(data: bytes, found: Failure) -> Path:
    """Writes an input that fails to the corpus, where a test reads it from then on."""
    name = re.sub(r"\W+", "-", found.place.replace(" in ", "-")).strip("-").lower()
    path = BROKEN / f"{name}-{hashlib.sha256(data).hexdigest()[:6]}.log"
    BROKEN.mkdir(exist_ok=True)
    path.write_bytes(data)
    return path
