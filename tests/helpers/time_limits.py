"""Ends a test that would never end."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


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
