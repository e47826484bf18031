"""What the Go garbage collector did to your service, from GODEBUG=gctrace=1 logs.

>>> import gctrace_analyzer as gca
>>> run = gca.read("samples/steady-go1.26.log")
>>> run.summary().cycles
33
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gctrace_analyzer.errors import (
        BadSettingError,
        DamagedInputError,
        EmptyInputError,
        GctraceError,
        GctraceWarning,
        MissingColumnsError,
        MissingExtraError,
        NoRecordsError,
        UnreadableInputError,
        UnwritableOutputError,
    )
    from gctrace_analyzer.run import Run, add_metrics, cycles, from_frame, read

__version__ = "0.1.0"

__all__ = [
    "BadSettingError",
    "DamagedInputError",
    "EmptyInputError",
    "GctraceError",
    "GctraceWarning",
    "MissingColumnsError",
    "MissingExtraError",
    "NoRecordsError",
    "Run",
    "UnreadableInputError",
    "UnwritableOutputError",
    "add_metrics",
    "cycles",
    "from_frame",
    "read",
]

_RUN = ("Run", "add_metrics", "cycles", "from_frame", "read")


def __getattr__(name: str) -> Any:
    # Loaded when first used: importing the package loads no frame library.
    if name not in __all__:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    home = "gctrace_analyzer.run" if name in _RUN else "gctrace_analyzer.errors"
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
