"""The rules: one function each, registered with its texts (see `registry`)."""

from gctrace_analyzer.analysis.rules import (
    allocation,
    assists,
    cpu,
    frequency,
    goal,
    limit,
    live_heap,
    log,
    long_pauses,
    marking,
    memory,
)

__all__ = [
    "allocation",
    "assists",
    "cpu",
    "frequency",
    "goal",
    "limit",
    "live_heap",
    "log",
    "long_pauses",
    "marking",
    "memory",
]
