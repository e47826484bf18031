"""A command at a terminal of its own."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import termios
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

PATIENCE_S = 60
"""How long a test waits for what must come."""


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.01)


class Terminal:
    """A command at a terminal of 80 columns, and what it has written there.

    It is gone at the end of the `with` block, also after a failure.

    Args:
        words: the command.
        env: variables for it, in addition to those of this process.
    """

    def __init__(self, words: list[str], **env: str) -> None:
        self.seen = b""
        self._fd, other = pty.openpty()
        termios.tcsetwinsize(other, (40, 80))
        self.before = termios.tcgetattr(other)
        # A shell in between, as its job has the terminal, and must have it again.
        script = '"$@"; echo "code $?"; read line; echo "back $line"'
        self._shell = subprocess.Popen(
            ["/bin/bash", "-c", script, "shell", *words],
            stdin=other,
            stdout=other,
            stderr=other,
            env={**os.environ, "TERM": "xterm-256color", **env},
            preexec_fn=self._own_terminal,
        )
        self._other = other

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._shell.pid, signal.SIGKILL)
        # The other processes there get SIGHUP as their terminal is gone.
        self._shell.wait()
        os.close(self._fd)
        os.close(self._other)

    @staticmethod
    def _own_terminal() -> None:
        # What is ignored here (nohup) is not ignored at a new terminal.
        for number in (
            signal.SIGHUP, signal.SIGINT, signal.SIGQUIT,
            signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU,
        ):  # fmt: skip
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        termios.tcsetwinsize(0, (40, 80))
        import fcntl

        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def type(self, keys: bytes) -> None:
        os.write(self._fd, keys)

    def read(self) -> None:
        """Adds what the command has written to `seen`."""
        if select.select([self._fd], [], [], 0.01)[0]:
            self.seen += os.read(self._fd, 1 << 16)

    def wait_for(self, what: bytes) -> None:
        def there() -> bool:
            self.read()
            return what in self.seen

        until(there)

    def resize(self, lines: int, columns: int) -> None:
        """Changes the size; the kernel sends SIGWINCH to the job."""
        termios.tcsetwinsize(self._other, (lines, columns))

    def end(self) -> None:
        self.after = termios.tcgetattr(self._other)
        assert self._shell.wait(PATIENCE_S) == 0
