"""The settings that a program was started with: its environment variables.

They hold until the heap goals contradict them, because the program may call
`debug.SetGCPercent` or `debug.SetMemoryLimit`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gctrace_analyzer.analysis.settings.known import Known, as_set
from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.units import gogc_percent, gomemlimit_mib

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gctrace_analyzer.analysis.settings.known import Settings

_PROC = Path("/proc")


def started_in(settings: Settings, variables: Mapping[str, str], source: str) -> Settings:
    """Returns the settings, with missing GOGC and GOMEMLIMIT from the environment.

    Args:
        settings: the settings from the user, which take precedence.
        variables: the environment that the program was started in.
        source: whose environment it is.
    """
    gogc = as_set(variables.get("GOGC"), gogc_percent)
    limit = as_set(variables.get("GOMEMLIMIT"), gomemlimit_mib) or None
    return replace(
        settings,
        gogc=settings.gogc or (None if gogc is None else Known(gogc, source)),
        memory_limit_mib=settings.memory_limit_mib
        or (None if limit is None else Known(limit, source)),
    )


def of_process(pid: int) -> dict[str, str]:
    """Returns the environment in which a running process of this machine was started.

    Raises:
        BadSettingError: there is no such process, it is another user's, or this is not Linux.
    """
    try:
        content = (_PROC / str(pid) / "environ").read_bytes()
    except OSError as error:
        raise BadSettingError(
            "pid",
            str(pid),
            f"one of your running processes on this machine: {error.filename}: "
            f"{error.strerror}",
        ) from error
    pairs = (entry.partition("=") for entry in content.decode(errors="replace").split("\0"))
    return {name: value for name, _, value in pairs}
