"""Passes log messages to the readers of everything except gctrace."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gctrace_analyzer.ingest import json_values
from gctrace_analyzer.ingest.evidence import (
    cgroups,
    configured,
    docker,
    kubernetes,
    oom,
    oom_lines,
    platforms,
    pods,
    systemd,
    words,
)
from gctrace_analyzer.ingest.gctrace import bench_lines, fatal
from gctrace_analyzer.ingest.gctrace.lines import Blocks
from gctrace_analyzer.ingest.memstats import log_messages
from gctrace_analyzer.ingest.metrics import runtime_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import polars as pl

    from gctrace_analyzer.ingest.evidence.message import Message, Row, Rows

_BYTES = r"\"MESSAGE\" ?: ?\["
_BLOB = re.compile(r"^\[[\d.]+[BKMG] blob data\]$")
_CUT = re.compile(r"^\{.*\"(?:Heap)?Alloc\"\s*:")
HINT = "|".join(
    [
        oom_lines.HINT,
        systemd.HINT,
        docker.HINT,
        platforms.HINT,
        pods.HINT,
        log_messages.HINT,
        runtime_lines.HINT,
        fatal.HINT,
        cgroups.HINT,
        configured.HINT,
        "blob data",
        _BYTES,
    ]
)
"""Every line that one of the readers understands contains a match of this."""


def read(
    messages: Sequence[Message],
    described: Sequence[Row] = (),
    runs_on: Callable[[int], bool] = lambda _: False,
    cycles: Sequence[pl.DataFrame] = (),
    text: str = "",
) -> Rows:
    """Returns the rows that the messages contain, by table.

    Args:
        messages: the messages.
        described: the containers that documents in the same input describe. The reason why one was
            stopped is added to its row.
        runs_on: whether the process whose records precede a line has more of them after it.
        cycles: the GC cycles between the messages.
        text: the beginning of the input, whose blocks of code may be of several programs.
    """
    every = messages
    messages = [message for message in messages if not words.COMMAND.search(message.text)]
    events = [message for message in messages if not words.NOT_LOGGED.search(message.text)]
    rows: Rows = {}
    # A command may have stopped it.
    stops = platforms.stops_of(
        message for message in every if not words.NOT_LOGGED.search(message.text)
    )
    for several in (
        oom.read(events),
        systemd.read(events),
        platforms.read(events, stops),
        pods.read(events),
    ):
        for table, more in several.items():
            rows.setdefault(table, []).extend(more)
    rows["memstats"] = [*log_messages.read(messages), *runtime_lines.read(messages)]
    states = rows.setdefault("container_states", [])
    pods.name_child(states, events)
    states += docker.read(events)
    docker.mark_limits([*states, *described])
    docker.mark_waits(states, every)
    states += cgroups.joined(cgroups.read_files(every), rows)
    if not described:
        states += pods.read_words(events, {row["line_no"] for row in states})
    kills, ends = rows["oom_kills"], rows["unit_events"]
    shown = kubernetes.shown_by_top(messages, [*described, *states])
    # A setting in the input may belong to the only container, but to none of several.
    states += shown if len(shown) == 1 else []
    blocks = Blocks(text)
    configured.name_described(described, blocks)
    stated = [*configured.add(every, states, described, kills, ends, cycles, blocks)]
    states += shown if len(shown) > 1 else []
    rows["runtime_fatal"] = fatal.read(events)
    crashes = () if rows["runtime_fatal"] else fatal.crashes(events)
    if not described and not any(rows.get(table) for table in _OF_DEATHS):
        states += platforms.unexplained(events, runs_on) or stops.named
    stops = stops.with_events(states)
    platforms.mark_stopped(states, stops)
    of_one_pod = len({row.get("pod") for row in described}) == 1
    platforms.mark_stopped(described, stops, everywhere=of_one_pod)
    rows["benchmarks"] = bench_lines.read(messages)
    notes = [*log_messages.of_last_times(messages), *crashes, *stated]
    if not rows["benchmarks"] and bench_lines.is_cut(messages):
        notes.append(f"{words.OF_CUT}: it forces a GC cycle before each run of a benchmark.")
    rows["notes"] = [{"note": note} for note in notes]
    rows["rejected"] = list(_unreadable(messages))
    return rows


_OF_DEATHS = ("oom_kills", "unit_events", "container_states", "runtime_fatal")


def _unreadable(messages: Sequence[Message]) -> Iterator[Row]:
    """Yields a rejection for each message that is incomplete."""
    for message in messages:
        reason = None
        if _BLOB.match(message.text):
            reason = "journalctl omitted a message that is not text; use journalctl -o json"
        elif _CUT.match(message.text) and not _is_json(message.text):
            reason = json_values.CUT
        if reason:
            yield {"line_no": message.line_no, "reason": reason, "text": message.text[:500]}


def _is_json(text: str) -> bool:
    try:
        json_values.loads(text)
    except ValueError:
        return False
    return True
