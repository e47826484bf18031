"""Ends a program with SIGKILL at a given call by which it writes; run as a program of its own.

For every number on standard input, a copy of this process runs the work, and kills itself at
the call of that number: before the call if the number is even, after it if it is odd. The
answer on standard output is how many such moments there were; a negative number if it was
killed. The package is loaded once; the libraries' threads are started in the copies only.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.cli.main import main as command_line
from gctrace_analyzer.fleets.output import Output
from tests.helpers.fleet import row

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

CALLS = {
    "open", "fdopen", "write", "writelines", "flush", "fsync", "close", "__exit__", "link",
    "replace", "rename", "unlink", "mkdir",
}  # fmt: skip
UNNAMED = getattr(os, "O_TMPFILE", -1)
FILES = 5
"""How many rows a fleet's output gets, one after the other."""


def report(path: str, log: str) -> None:
    """Writes a report as the command line does."""
    command_line([log, "-o", path])


def fleet(path: str, _: str) -> None:
    """Writes the rows that are not there yet, and completes the output."""
    output = Output(path, {})
    for number in range(FILES):
        if (name := f"{number}.log") not in output.done:
            output.add([row(name, cycles=number)], FILES)
    output.finish(FILES)


WORK: dict[str, Callable[[str, str], None]] = {"report": report, "fleet": fleet}


def killed_at(moment: int, work: Callable[[], None]) -> int:
    """Runs the work in a copy of this process; returns how many moments it had.

    The result is negative if it was killed at the given one.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        seen = 0

        def count(_: FrameType, event: str, called: Any) -> None:
            nonlocal seen
            if event in ("c_call", "c_return") and called.__name__ in CALLS:
                if seen == moment:
                    os.kill(os.getpid(), signal.SIGKILL)
                seen += 1

        def begin(event: str, arguments: tuple[Any, ...]) -> None:
            # Before the first file is opened for writing, nothing can be half.
            if event == "open" and not seen:
                path, _, flags = arguments
                if flags & UNNAMED == UNNAMED or str(path).endswith(".partial"):
                    sys.setprofile(count)

        sys.addaudithook(begin)
        try:
            work()
        finally:
            sys.setprofile(None)
            os.write(writing, b"%d" % seen)
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        seen_there = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return -1
    return int(seen_there)


def main() -> None:
    """Answers the numbers on standard input until its end."""
    warnings.simplefilter("ignore")
    kind, path, log = sys.argv[1:]
    folder = Path(path).parent
    assert folder.is_dir()
    for line in sys.stdin:
        sys.stdout.write(f"{killed_at(int(line), lambda: WORK[kind](path, log))}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
