"""Decides whether the record of a death proves that memory ran out.

A container that ended with exit code 137, or a unit whose process got SIGKILL, may have been
killed by anyone. Such a record is a death, but its post-mortem says that it is not proven.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gctrace_analyzer.ingest.evidence.docker import SIGKILL_CODE, got_sigkill

if TYPE_CHECKING:
    from collections.abc import Mapping

NOTICES = ("oom_killed_process", "oomd_killed_processes")
"""The events of a unit that announce OOM kills; they are not ends of a process."""


def is_kill(table: str, row: Mapping[str, Any]) -> bool:
    """Returns whether a record is about a death by SIGKILL or a lack of memory.

    Args:
        table: the table with the record.
        row: the record.
    """
    match table:
        case "container_states":
            killed = got_sigkill(row)
        case "unit_events":
            got_kill = row["signal"] == "KILL" or row["status"] == SIGKILL_CODE
            killed = (row["event"] == "main_exited" and got_kill) or row["result"] == "watchdog"
        case _:  # The other tables contain only deaths.
            killed = True
    return killed or is_proven(table, row)


def is_proven(table: str, row: Mapping[str, Any]) -> bool:
    """Returns whether a record proves that memory ran out.

    Args:
        table: the table with the record.
        row: the record.
    """
    match table:
        case "container_states":
            return bool(row["oom_killed"])
        case "unit_events":
            return row["event"] in NOTICES or row["result"] == "oom-kill"
        case _:  # A kill by the kernel or another OOM killer, or the runtime's own message.
            return True
