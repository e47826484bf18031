"""Programs that a test starts."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@contextmanager
def started(words: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A program that has ended after the block; it is killed if the block fails.

    A plain `Popen` would wait for ever for a program that a failed test leaves running.

    Args:
        words: the command.
        options: as of `subprocess.Popen`.
    """
    with subprocess.Popen(words, **options) as program:
        try:
            yield program
        except BaseException:
            if options.get("start_new_session"):
                with suppress(ProcessLookupError):
                    os.killpg(program.pid, signal.SIGKILL)
            program.kill()
            raise
