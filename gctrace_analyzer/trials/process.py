"""A measured program that ends with the block in which it runs."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from gctrace_analyzer.errors import ProgramError
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.trials import guard

_GRACE_S = 5.0
"""Seconds that a program may take to end after SIGTERM."""

_GUARD = (sys.executable, "-I", "-S", str(Path(guard.__file__)))
_GO_VERBS = ("run", "test")


@frozen
class Usage:
    """Resources that a program used until it ended.

    Attributes:
        wall_s: how long it ran.
        cpu_s: its CPU time and that of its children.
        max_rss_mib: its largest resident memory; None if that is unknown.
        exit_code: its exit code; negative: the signal that ended it.
        all_cpu_s: the CPU time including that of the go command that built it.
    """

    wall_s: float
    cpu_s: float
    max_rss_mib: float | None
    exit_code: int
    all_cpu_s: float


@frozen
class Command:
    """A program with its arguments, its own variables and its files.

    Attributes:
        words: the program and its arguments.
        environment: the variables to add to the environment.
        out: the file for its standard output.
        err: the file for its standard error.
        stdin: the file that it reads.
    """

    words: Sequence[str]
    environment: Mapping[str, str]
    out: Path
    err: Path
    stdin: str = os.devnull

    @property
    def is_go(self) -> bool:
        """Whether the go command builds and starts the program."""
        return (
            len(self.words) > 1
            and Path(self.words[0]).name == "go"
            and self.words[1] in _GO_VERBS
        )


def is_benchmark(words: Sequence[str]) -> bool:
    """Returns whether a command runs test benchmarks, whose names belong between gctrace lines.

    >>> is_benchmark(["./parse.test", "-test.bench=."]), is_benchmark(["go", "test", "-bench", "X"])
    (True, True)
    """
    is_test = "test" in words[1:2]
    return any("-test.bench" in word or (is_test and "-bench" in word) for word in words)


class Measured:
    """A running program; the block ends it and everything it started.

    Raises:
        ProgramError: it cannot be started.
    """

    def __init__(self, command: Command) -> None:
        self._command = command
        self._reports = command.err.with_suffix(".exec") if command.is_go else None
        self._data = b""
        self._records: list[guard.Record] = []
        self._guard = subprocess.Popen(
            _GUARD,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        task = {
            "command": self._words(),
            "env": self._variables(),
            "stdin": command.stdin,
            "out": str(command.out),
            "err": str(command.err),
        }
        assert self._guard.stdin is not None
        with suppress(BrokenPipeError):
            self._guard.stdin.write(json.dumps(task).encode() + b"\n")
        first = self._next(None) or {"failed": "1 the process that measures it ended"}
        if "failed" in first:
            self.close()
            number, _, problem = first["failed"].partition(" ")
            raise ProgramError.not_started(command.words[0], int(number), problem)
        self._pid: int = first["pid"]

    def __enter__(self) -> Measured:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The process id; None before the go command has started the program."""
        if self._reports is None:
            return self._pid
        started = [record["pid"] for record in self._executed() if "pid" in record]
        return started[-1] if started else None

    def wait(self, seconds: float | None = None) -> Usage | None:
        """Returns the usage if the program ends in this time; None if it still runs."""
        record = self._next(seconds)
        return None if record is None else self._usage(record)

    def terminate(self, number: int = signal.SIGTERM) -> Usage | None:
        """Asks the program to end by a signal, and kills it if it does not."""
        if (pid := self.pid) is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        return self.wait(_GRACE_S) or self.kill()

    def kill(self) -> Usage | None:
        """Kills the program at once."""
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        return self.wait(_GRACE_S)

    def close(self) -> None:
        """Ends everything that still runs, and waits until nothing is left."""
        assert self._guard.stdin is not None
        assert self._guard.stdout is not None
        try:
            self._guard.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                self._guard.wait(2 * _GRACE_S)
        finally:
            # Without the guard, the program ends too (see `guard`).
            self._guard.kill()
            self._guard.wait()
            self._guard.stdout.close()
            if self._reports is not None:
                self._reports.unlink(missing_ok=True)

    def _words(self) -> list[str]:
        words = list(self._command.words)
        if self._reports is None:
            return words
        program = " ".join(f"'{word}'" for word in _GUARD)
        # A cached test result would not be a measurement.
        fresh = ["-count=1"] if words[1] == "test" else []
        return [*words[:2], "-exec", program, *fresh, *words[2:]]

    def _variables(self) -> dict[str, str]:
        if self._reports is None:
            return {**os.environ, **self._command.environment}
        # The settings are for the program, not for the compiler.
        task = {
            "report": str(self._reports.absolute()),
            "env": dict(self._command.environment),
        }
        if self._command.out != self._command.err:
            task["err"] = str(self._command.err.absolute())
        return {**os.environ, guard.EXEC: json.dumps(task)}

    def _next(self, seconds: float | None) -> guard.Record | None:
        """Returns the guard's next record; None if there is none in this time, or no more."""
        assert self._guard.stdout is not None
        until = None if seconds is None else time.monotonic() + seconds
        while b"\n" not in self._data:
            left = None if until is None else max(until - time.monotonic(), 0.0)
            if not select.select([self._guard.stdout], [], [], left)[0]:
                return None
            if not (piece := os.read(self._guard.stdout.fileno(), 1 << 16)):
                return None
            self._data += piece
        line, _, self._data = self._data.partition(b"\n")
        record: guard.Record = json.loads(line)
        return record

    def _executed(self) -> list[guard.Record]:
        """Returns the records of programs started by the go command."""
        try:
            assert self._reports is not None
            return [json.loads(line) for line in self._reports.read_text().splitlines()]
        except FileNotFoundError:
            return []

    def _usage(self, whole: guard.Record) -> Usage:
        parts = [whole]
        if self._reports is not None:
            parts = [record for record in self._executed() if "wall_s" in record]
        rss = [part["max_rss_mib"] for part in parts if part["max_rss_mib"] is not None]
        return Usage(
            sum(part["wall_s"] for part in parts),
            sum(part["cpu_s"] for part in parts),
            max(rss, default=None),
            whole["code"],
            whole["cpu_s"],
        )
