"""Handles signals while a command runs."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def handling(handler: Callable[[int, object], None], names: Sequence[str]) -> Iterator[None]:
    """Handles these signals while the block runs, except those ignored already (nohup)."""
    before = {}
    for name in names:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
