"""A Go program built and run with its trace switched on."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.api import read
from gctrace_analyzer.errors import BadSettingError, ProgramFailedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gctrace_analyzer.run import Run

Word = str | os.PathLike[str]

_LAST_BYTES = 4096


class Gctrace:
    """Builds and runs Go programs; their logs stay in its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._runs = self._builds = 0

    def __call__(
        self,
        command: Word | Sequence[Word],
        *,
        gogc: str | float | None = None,
        memory_limit: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Word | None = None,
        timeout_s: float = 300,
    ) -> Run:
        """Runs the program to its end and reads what it traced.

        Args:
            command: the program, with its arguments.
            gogc: GOGC to run it with; left out: what the environment says.
            memory_limit: GOMEMLIMIT, likewise.
            env: further variables; a GODEBUG is kept, `gctrace=1` added.
            cwd: where it runs.
            timeout_s: it is killed then, and the run has failed.

        Raises:
            BadSettingError: `go run`, whose own collections would be traced too.
            ProgramFailedError: it did not start, failed, or took too long.
            GctraceError: as `read`: it wrote no trace.
        """
        words = [os.fspath(word) for word in _words(command)]
        if Path(words[0]).name == "go":
            raise BadSettingError(
                what="command", value=" ".join(words),
                expected="the program itself: build it first (gctrace.build(package)), or the "
                "go command's own collections are traced too",
            )  # fmt: skip
        settings = {"GOGC": gogc, "GOMEMLIMIT": memory_limit}
        whole = {**os.environ, **(env or {})}
        whole |= {name: str(value) for name, value in settings.items() if value is not None}
        whole["GODEBUG"] = ",".join(filter(None, (whole.get("GODEBUG"), "gctrace=1")))
        self._runs += 1
        log = self.folder / f"gctrace-{self._runs}.log"
        _finished(words, log, env=whole, cwd=cwd, timeout=timeout_s)
        return read(log, gogc=gogc, memory_limit=memory_limit)

    def build(self, package: str = ".", *, cwd: Word | None = None) -> Path:
        """The program built of a Go package.

        Args:
            package: as `go build` takes it: `.`, `./cmd/server`.
            cwd: where the package is looked for.

        Raises:
            ProgramFailedError: it does not build, or there is no go command.
        """
        self._builds += 1
        target = self.folder / f"program-{self._builds}"
        words = ["go", "build", "-o", str(target), package]
        _finished(words, self.folder / "build.log", env=None, cwd=cwd, timeout=600)
        return target


def _words(command: Word | Sequence[Word]) -> list[Word]:
    if isinstance(command, (str, os.PathLike)):
        return [command]
    return list(command)


def _finished(words: list[str], log: Path, *, timeout: float, **how: Any) -> None:
    """Runs it to its end, its standard error in `log`.

    Raises:
        ProgramFailedError: it did not come to a good end.
    """
    name = Path(words[0]).name
    try:
        with log.open("wb") as file:
            done = subprocess.run(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=file,
                timeout=timeout, check=False, **how,
            )  # fmt: skip
    except subprocess.TimeoutExpired as err:
        raise ProgramFailedError(name, f"not done after {timeout:g} s", _last(log)) from err
    except OSError as err:
        raise ProgramFailedError(name, f"did not start: {err.strerror}", "") from err
    if done.returncode:
        raise ProgramFailedError(name, f"exit code {done.returncode}", _last(log))


def _last(log: Path) -> str:
    """The end of what it said, without its trace."""
    text = log.read_bytes()[-_LAST_BYTES:].decode(errors="replace")
    return "\n".join(line for line in text.splitlines() if not line.startswith("gc "))
