"""Runs Go programs with gctrace: sets GODEBUG, and offers the pytest fixture `gctrace`."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from gctrace_analyzer.api import read
from gctrace_analyzer.errors import BadSettingError, ProgramError
from gctrace_analyzer.present.format import duration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gctrace_analyzer.run import Run

    Word: TypeAlias = str | os.PathLike[str]

_LAST_BYTES = 4096
_BUILD_TIMEOUT_S = 600.0


class Gctrace:
    """Builds and runs Go programs; their logs stay in `folder`."""

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
        """Runs a program until it exits and reads its gctrace.

        Args:
            command: the program and its arguments.
            gogc: GOGC for the program; by default as in the environment.
            memory_limit: GOMEMLIMIT for the program; by default as in the environment.
            env: additional variables; `gctrace=1` is added to GODEBUG.
            cwd: the directory it runs in.
            timeout_s: after this many seconds the program is killed and the run fails.

        Raises:
            BadSettingError: the command is `go run`, whose own GC cycles would be traced too.
            ProgramError: the program did not start, failed, or took too long.
            NoDataError: it wrote no gctrace.
        """
        words = [os.fspath(word) for word in _words(command)]
        if Path(words[0]).name == "go":
            raise BadSettingError(
                "command",
                " ".join(words),
                "the program itself: build it first with gctrace.build(package), "
                "because the go command would be traced too",
            )
        settings = {"GOGC": gogc, "GOMEMLIMIT": memory_limit}
        variables = {**os.environ, **(env or {})}
        variables |= {name: str(value) for name, value in settings.items() if value is not None}
        variables["GODEBUG"] = with_gctrace(variables.get("GODEBUG", ""))
        self._runs += 1
        log = self.folder / f"gctrace-{self._runs}.log"
        _run(words, log, env=variables, cwd=cwd, timeout_s=timeout_s)
        return read(log, gogc=gogc, memory_limit=memory_limit)

    def build(self, package: str = ".", *, cwd: Word | None = None) -> Path:
        """Builds a Go package and returns the path of the program.

        Args:
            package: the package as `go build` takes it: `.`, `./cmd/server`.
            cwd: the directory to build in.

        Raises:
            ProgramError: the package does not build, or the go command is not installed.
        """
        self._builds += 1
        target = self.folder / f"program-{self._builds}"
        words = ["go", "build", "-o", str(target), package]
        _run(words, self.folder / "build.log", cwd=cwd, timeout_s=_BUILD_TIMEOUT_S)
        return target


def with_gctrace(godebug: str) -> str:
    """Returns GODEBUG with gctrace on; unchanged if it is on already.

    >>> with_gctrace("madvdontneed=1"), with_gctrace("gctrace=2,x=1"), with_gctrace("")
    ('madvdontneed=1,gctrace=1', 'gctrace=2,x=1', 'gctrace=1')
    >>> with_gctrace("gctrace=0")  # the last one counts
    'gctrace=0,gctrace=1'
    """
    current = ""
    for setting in godebug.split(","):
        name, _, value = setting.partition("=")
        if name.strip() == "gctrace":
            current = value.strip()
    if current.isdigit() and int(current) > 0:
        return godebug
    return ",".join([*([godebug] if godebug else []), "gctrace=1"])


def _words(command: Word | Sequence[Word]) -> list[Word]:
    return [command] if isinstance(command, (str, os.PathLike)) else list(command)


def _run(
    words: list[str],
    log: Path,
    *,
    timeout_s: float,
    env: Mapping[str, str] | None = None,
    cwd: Word | None = None,
) -> None:
    """Runs a command until it exits, with its standard error in `log`.

    Raises:
        ProgramError: it did not start, failed, or took too long.
    """
    name = Path(words[0]).name
    try:
        with log.open("wb") as file:
            done = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=file,
                timeout=timeout_s,
                check=False,
                env=env,
                cwd=cwd,
            )
    except subprocess.TimeoutExpired as err:
        problem = f"did not finish within {duration(timeout_s)}"
        raise ProgramError(name, problem, output=last_output(log)) from err
    except OSError as err:
        hint = "Is it built, and in PATH?"
        raise ProgramError(name, f"did not start: {err.strerror}", hint=hint) from err
    if done.returncode:
        raise ProgramError(name, f"exit code {done.returncode}", output=last_output(log))


def last_output(log: Path) -> str:
    """Returns the end of a program's standard error, without gctrace lines."""
    with log.open("rb") as file:
        file.seek(max(log.stat().st_size - _LAST_BYTES, 0))
        text = file.read().decode(errors="replace")
    return "\n".join(line for line in text.splitlines() if not line.startswith("gc "))
