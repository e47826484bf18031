"""Changes of the code that tests should notice: where they are, which tests run them, and trials.

cosmic-ray makes the changes. Which tests run a line is recorded once per version of the package,
with the coverage contexts of every test. A trial forks this process, which has loaded the
libraries but not the package, and reads the changed module in place of the original; nothing is
written.

Tests run with the compiled core where it is installed, as in `scripts/test`. What survives is tried
again without it: some lines run only with it, others only without, and both are in use.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache, partial
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import TYPE_CHECKING, Any

from environment import ROOT

os.environ["POLARS_MAX_THREADS"] = "1"

# Loaded once, before any trial: a trial that must load them takes a second longer.
import coverage
import hypothesis  # noqa: F401
import polars as pl  # noqa: F401  # it may be imported before a fork, but not used
import pytest
import rich.console  # noqa: F401
from cosmic_ray.ast import ast_nodes, get_ast_from_path
from cosmic_ray.commands.init import _operators
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from types import CodeType

PLACE = ROOT / "build" / "mutation"
COPY = PLACE / "checkout"
"""The tests run in a copy, so that the checkout can be worked on meanwhile."""

PACKAGES = ("ingest", "analysis", "advise")
RECORDED = [
    *(f"tests/{name}" for name in PACKAGES),
    *(f"gctrace_analyzer/{name}" for name in PACKAGES),
    "tests/present/test_golden.py",
    "tests/test_corpus.py",
]
"""The tests that are recorded: all that run in this process and look at values."""

ENOUGH_S = 8.0
"""A change is tried on the fastest tests that run it, as many as take this long."""

SLOW_S = 0.7
"""Slower tests come after all others."""

FIRST_TESTS = 12

FEW_TESTS = 5
"""If fewer tests run a line, those of the other lines of its module are tried too: what is done
when a module is imported, or is cached, happens once, in the first test that needs it."""

CPU_S = 25
TRIAL_S = 240
MEMORY = 12 << 30
"""A change may make a loop endless, or a list, or a test that waits."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change: the module, the operator of cosmic-ray, and which of its occurrences."""

    module: str
    operator: str
    occurrence: int
    line: int
    column: int

    def made(self) -> str:
        """Returns the changed code of the module."""
        code = (COPY / self.module).read_text()
        changed = mutate_code(code, get_operator(self.operator)(), self.occurrence)
        assert changed is not None
        return str(changed)


def copy_checkout() -> None:
    """Brings the copy up to date; what is equal keeps its compiled code."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    names = [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]
    names += [str(path.relative_to(ROOT)) for path in _compiled_core(ROOT)]  # git ignores it
    for name in names:
        source, copy = ROOT / name, COPY / name
        if not copy.exists() or copy.read_bytes() != source.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy)
    kept = {COPY / name for name in names}
    for path in [*COPY.rglob("*.py"), *_compiled_core(COPY)]:
        if path not in kept:
            path.unlink()


def _compiled_core(checkout: Path) -> list[Path]:
    return sorted(checkout.glob("gctrace_analyzer/_core.*"))


# Changes ------------------------------------------------------------------------------------


def changes(modules: Sequence[str], seed: int) -> list[Change]:
    """Returns one change for every place and kind of operator, in the order of the code.

    cosmic-ray replaces each `+` by eleven other operators; whoever notices one notices most of
    them, so that one is drawn at random.
    """
    rng = random.Random(seed)
    found: list[Change] = []
    for module in modules:
        places: dict[tuple[int, int, str], list[Change]] = {}
        for change in _all_changes(module):
            kind = change.operator.split("_")[0]
            places.setdefault((change.line, change.column, kind), []).append(change)
        skipped = unnoticeable(module)
        code = (COPY / module).read_text().splitlines()
        drawn = [
            rng.choice(places[place])
            for place in sorted(places)
            if not any(begin <= place[:2] < end for begin, end in skipped)
        ]
        found += [each for each in drawn if not _is_chosen_number(each, code)]
    return found


def _all_changes(module: str) -> Iterator[Change]:
    nodes = list(ast_nodes(get_ast_from_path(COPY / module)))
    for name, _, operator in _operators({}):
        positions = (place for node in nodes for place in operator.mutation_positions(node))
        for occurrence, ((line, column), _end) in enumerate(positions):
            yield Change(module, name, occurrence, line, column)


Position = tuple[int, int]


def unnoticeable(module: str) -> list[tuple[Position, Position]]:
    """Returns the ranges of code whose changes no test can notice, whatever it looks at.

    These are annotations, which are never evaluated; blocks of `if TYPE_CHECKING`; the arguments
    of `@dataclass` and the removal of caches, which change no value; `strict` of `zip`; the type
    given to `cast`; `usedforsecurity` of hashes; and the arguments of warnings that say whose
    line is shown.
    """
    tree = ast.parse((COPY / module).read_text())
    nodes = [each for node in ast.walk(tree) for each in _unnoticeable(node)]
    return [
        # The change of a decorator is placed at its "@".
        (
            (node.lineno, 0 if decorates else node.col_offset),
            (node.end_lineno or 0, (node.end_col_offset or 0) + 1),
        )
        for node, decorates in nodes
    ]


def _is_chosen_number(change: Change, code: Sequence[str]) -> bool:
    """Whether a change moves a number that somebody chose, such as a threshold, a little.

    Nothing says why a limit is 20 and not 21, except a test that repeats the number.
    """
    if not change.operator.endswith("NumberReplacer"):
        return False
    line = code[change.line - 1]
    number = re.match(r"[\d._]+", line[change.column :])
    return (
        bool(re.match(r"[A-Z_0-9, ]+ = |    [a-z_0-9]+: [\w\[\], .]+ = ", line))
        and number is not None
        and float(number[0].strip(".").replace("_", "") or 0) >= 10
    )


def _unnoticeable(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, bool]]:
    for name in ("annotation", "returns"):
        if each := getattr(node, name, None):
            yield each, False
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            yield node, False
        case ast.Call(func=ast.Name(id="cast"), args=[kind, _]):
            yield kind, False
        case ast.keyword(arg=str(name)) if name in _OPTIONS:
            yield node.value, False
        case ast.ClassDef() | ast.FunctionDef():
            for decorator in node.decorator_list:
                if ast.unparse(decorator).split("(")[0] in _DECORATORS:
                    yield decorator, True


_OPTIONS = {
    "strict",
    "stacklevel",
    "slots",
    "frozen",
    "kw_only",
    "compare",
    "repr",
    "check",
    "usedforsecurity",
}
_DECORATORS = {"dataclass", "cache", "lru_cache", "cached_property", "override", "overload"}


# Which tests run a line ---------------------------------------------------------------------


class Recorded:
    """Which tests run each line, and how long they take."""

    def __init__(self, places: Sequence[str] = ()) -> None:
        """Records the tests in `places`; without any, those in `RECORDED`."""
        self.path = PLACE / "lines.sqlite"
        self.state = PLACE / "tests.json"
        known = json.loads(self.state.read_text()) if self.state.exists() else {}
        package = _digest(
            [*sorted(COPY.glob("gctrace_analyzer/**/*.py")), *_compiled_core(COPY)]
        )
        if known.get("package") != package:
            known = {"package": package, "files": {}, "seconds": {}}
            self.path.unlink(missing_ok=True)
        self._record(known, places or RECORDED)
        # A file that is gone would count as a failing test.
        self.seconds: dict[str, float] = {
            test: seconds
            for test, seconds in known["seconds"].items()
            if (COPY / test.split("::")[0]).exists()
        }
        self._lines = coverage.CoverageData(str(self.path))
        self._lines.read()

    def _record(self, known: dict[str, Any], places: Sequence[str]) -> None:
        files = {
            str(path.relative_to(COPY)): _digest([path])
            for place in places
            for path in sorted((COPY / place).rglob("*.py")) or [COPY / place]
            if path.name.startswith("test_") or place.startswith("gctrace")
        }
        new = [name for name, digest in files.items() if known["files"].get(name) != digest]
        if not new:
            return
        print(f"recording what {len(new)} files of tests run (once) …", file=sys.stderr)
        seconds = PLACE / "seconds.json"
        code, output = in_a_fork(partial(_run_recorded, new, self.path, seconds))
        if code:
            sys.exit(f"{output}\nThe tests fail without any change.")
        stale = tuple(f"{name}::" for name in new)
        kept = {t: s for t, s in known["seconds"].items() if not t.startswith(stale)}
        known["seconds"] = kept | json.loads(seconds.read_text())
        known["files"] |= files
        self.state.write_text(json.dumps(known))

    @cache  # noqa: B019  # one object for the life of the program
    def lines(self, module: str) -> dict[int, list[str]]:
        """Returns the tests that run each line of a module; "" stands for importing it."""
        return self._lines.contexts_by_lineno(str(COPY / module))

    def tests_of(self, change: Change) -> list[str]:
        """Returns the tests that run a change: the mirroring ones first, then the fastest."""
        by_line = self.lines(change.module)
        here = range(*statement(change.module, change.line))
        running = {test for line in here for test in by_line.get(line, ())}
        found = self._sorted(running, change)
        if running and ("" in running or len(found) < FEW_TESTS):
            every = {test for tests in by_line.values() for test in tests}
            mirroring = {test for test in self.seconds if _mirrors(test, change.module)}
            found += self._sorted((every | mirroring) - running, change)
        return found

    def _sorted(self, tests: set[str], change: Change) -> list[str]:
        known = [test for test in tests if test in self.seconds]
        seconds = self.seconds
        return sorted(
            known,
            key=lambda t: (seconds[t] > SLOW_S, not _mirrors(t, change.module), seconds[t]),
        )

    def chosen(self, change: Change) -> list[str]:
        """Returns the tests on which a change is tried."""
        chosen: list[str] = []
        files: set[str] = set()
        total = 0.0
        for test in self.tests_of(change):
            file = test.split("::")[0]
            total += self.seconds[test] + (0.005 if file in files else 0.1)
            if total > ENOUGH_S and chosen:
                break
            chosen.append(test)
            files.add(file)
        return chosen


def _digest(paths: Sequence[Path]) -> str:
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()


def _mirrors(test: str, module: str) -> bool:
    """Whether a test is in the module itself, as an example, or in the file named after it."""
    inner = Path(module).relative_to("gctrace_analyzer")
    mirror = Path("tests", inner.with_name(f"test_{inner.name}"))
    own = str(mirror) if (COPY / mirror).exists() else str(mirror.parent)
    return test.startswith((own, module))


@cache
def _statements(module: str) -> list[tuple[int, int]]:
    """Returns the first line of every statement and the line after it, of its head if it has a
    body."""
    found = []
    for node in ast.walk(ast.parse((COPY / module).read_text())):
        if isinstance(node, ast.stmt):
            decorators = getattr(node, "decorator_list", [])
            first = min(each.lineno for each in [node, *decorators])
            body = getattr(node, "body", None) or getattr(node, "cases", None)
            if body:
                head = body[0].pattern if isinstance(node, ast.Match) else body[0]
                end = max(head.lineno, node.lineno + 1)
            else:
                end = (node.end_lineno or node.lineno) + 1
            found.append((first, end))
    return found


def statement(module: str, line: int) -> tuple[int, int]:
    """Returns the lines of the smallest statement around a line: the first, and one past it."""
    around = [each for each in _statements(module) if each[0] <= line < each[1]]
    return min(around, key=lambda each: each[1] - each[0], default=(line, line + 1))


# Running tests ------------------------------------------------------------------------------


class _Chosen:
    """Runs the chosen tests only, those of a file in the order of the choice."""

    def __init__(self, tests: Sequence[str]) -> None:
        self.order = {test: number for number, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        chosen = [item for item in items if item.nodeid in self.order]
        first: dict[str, int] = {}
        for item in chosen:
            file, number = item.nodeid.split("::")[0], self.order[item.nodeid]
            first[file] = min(first.get(file, number), number)
        # Fixtures of a module are made once if its tests follow each other.
        items[:] = sorted(
            chosen,
            key=lambda item: (first[item.nodeid.split("::")[0]], self.order[item.nodeid]),
        )


class _Timed:
    """Gives each test a coverage context of its own and notes the processor time it takes."""

    def __init__(self, recording: coverage.Coverage) -> None:
        self.recording, self.seconds = recording, dict[str, float]()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self.recording.switch_context(item.nodeid)
        begin = time.process_time()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = round(time.process_time() - begin, 4)
            self.recording.switch_context("")


# Assertions are not rewritten: nobody reads why a test failed.
_PYTEST = ["-q", "-p", "no:cacheprovider", "--assert=plain", "--tb=no"]


def _run_recorded(files: Sequence[str], lines: Path, seconds: Path) -> int:
    recording = coverage.Coverage(
        data_file=str(lines), source=["gctrace_analyzer"], config_file=False
    )
    if lines.exists():
        recording.load()
    timed = _Timed(recording)
    recording.start()
    code = pytest.main([*_PYTEST, *files], plugins=[timed])
    recording.stop()
    recording.save()
    seconds.write_text(json.dumps(timed.seconds))
    # Files of the package may have no examples.
    return 0 if code == pytest.ExitCode.NO_TESTS_COLLECTED else int(code)


def noticed(change: Change, tests: Sequence[str]) -> bool:
    """Whether any of the tests fails with a change; one that does not end counts as failing."""
    settings = ["", "off"] if _compiled_core(COPY) else ["off"]
    work = [partial(_run_changed, change, tests, core) for core in settings]
    return any(in_a_fork(each, TRIAL_S)[0] for each in work)


def _run_changed(change: Change, tests: Sequence[str], core: str) -> int:
    os.environ["GCTRACE_ANALYZER_CORE"] = core
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    if change.operator:
        path, code = str(COPY / change.module), change.made()
        original = SourceFileLoader.get_code

        def get_code(self: SourceFileLoader, name: str) -> CodeType | None:
            if self.path == path:
                return compile(code, path, "exec", dont_inherit=True)
            return original(self, name)

        SourceFileLoader.get_code = get_code  # type: ignore[assignment, method-assign]
    # Loading the files of all tests takes as long as the first tests, which notice most changes.
    for some in (tests[:FIRST_TESTS], tests[FIRST_TESTS:]):
        files = list(dict.fromkeys(test.split("::")[0] for test in some))
        if files and (failed := pytest.main(["-x", *_PYTEST, *files], plugins=[_Chosen(some)])):
            return int(failed)
    return 0


def in_a_fork(work: Callable[[], int], patience: int = 3600) -> tuple[int, str]:
    """Runs a function in a copy of this process; returns its exit code and what it printed.

    The code is negative if a signal ended it.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _child(work, reading, writing)
    os.close(writing)
    before = signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
    signal.alarm(patience)
    try:
        with os.fdopen(reading, "rb") as pipe:
            output = pipe.read().decode(errors="replace")
        _, status = os.waitpid(child, 0)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return os.waitstatus_to_exitcode(status), output


def _child(work: Callable[[], int], reading: int, writing: int) -> None:
    code = 70
    try:
        os.close(reading)
        os.chdir(COPY)
        sys.path.insert(0, str(COPY))
        with open(os.devnull, "rb") as nothing:  # noqa: PTH123
            os.dup2(nothing.fileno(), 0)
        for descriptor in (1, 2):
            os.dup2(writing, descriptor)
        with (
            io.TextIOWrapper(os.fdopen(os.dup(writing), "wb"), write_through=True) as text,
            redirect_stdout(text),
            redirect_stderr(text),
        ):
            code = work()
    finally:
        os._exit(code)
