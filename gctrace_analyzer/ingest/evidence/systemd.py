"""Reads systemd's messages about units: exits, kills, restarts and consumed CPU time.

The patterns cover the wordings of systemd 219 to 257. Kills by systemd-oomd, and by
the memory controller of Talos Linux, go to the same table as kills by the kernel.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING

from gctrace_analyzer.ingest import json_values, numbers
from gctrace_analyzer.ingest.evidence import cgroups
from gctrace_analyzer.ingest.evidence.message import OOMD_ATTEMPT, columns, size_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gctrace_analyzer.ingest.evidence.message import Message, Row, Rows

HINT = (
    r"OOM killer|[Mm]ain process exited|entered failed|failed\.$|Failed with result|Consumed |"
    r"cheduled restart|holdoff|scheduling restart|systemd-oomd killed|oomd attempting|"
    r"due to (?:memory|swap)|SIGKILL to cgroup|(?:Killed|Marked) /\S|% > [0-9]|"
    r"Result: oom-kill|Main PID: |[ (]peak: \d|\.service - "
)

# A unit is a whole word: without the assertion, a search takes quadratic time on a long line.
_UNIT = r"(?<!\S)(?P<unit>\S+\.(?:service|scope|slice|socket|mount|timer))"
_EVENTS = tuple(
    (event, re.compile(pattern))
    for event, pattern in (
        ("main_exited",
            rf"{_UNIT}: [Mm]ain process exited, code=(?P<code>\w+), "
            rf"status=(?P<status>\d{{1,30}})(?:/(?P<signal>[A-Z]\w*))?"),
        ("oom_killed_process",
            rf"{_UNIT}: (?:A process of this unit has been killed by the OOM killer"
            r"|The kernel OOM killer killed some processes in this unit)"),
        ("failed", rf"{_UNIT}: Failed with result '(?P<result>[^']*)'"),
        # systemd 219 prints two lines for one failure.
        ("failed", rf"^(?:Unit )?{_UNIT} (?P<again>entered failed state|failed)\.\s*$"),
        ("oomd_killed_processes",
            rf"{_UNIT}: systemd-oomd killed (?:(?P<n>\d{{1,30}})|some) process"),
        ("restart_scheduled",
            rf"{_UNIT}:? (?:Scheduled restart job, restart counter is at (?P<n>\d{{1,30}})"
            r"|.{0,100}scheduling restart)"),
        ("consumed", rf"{_UNIT}: Consumed (?P<what>.*)$"),
    )
)  # fmt: skip
_SHOWN_KILL = re.compile(
    r"Active: failed \(Result: oom-kill\)"
    r"(?: since \w{3} (?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?P<utc> UTC)?)?"
)
_SHOWN_MAIN = re.compile(
    r"^\s{0,40}Main PID: \d{1,10} \(code=(?P<code>exited), status=(?P<status>\d{1,3})[/)]"
)
_SHOWN_PEAK = re.compile(
    r"^\s{0,40}Mem(?:ory)?(?: |:.{0,99}? )peak: (?P<size>\d{1,9}(?:\.\d)?)(?P<size_unit>[BKMGT])"
    r"(?:.{0,60}swap(?: peak)?: (?P<swap>\d{1,9}(?:\.\d)?)(?P<swap_unit>[BKMGT]))?"
)
"""Lines of `systemctl status` below that of the unit."""

_OOMD_ENDS = r"(?:Killed|Marked) (?P<cgroup>/\S+) (?:for killing )?due to"
_PRESSURE = re.compile(
    rf"(?:{_OOMD_ENDS} m|M)emory pressure for (?P<pressure_cgroup>\S+) (?:being|is) "
    r"(?P<pressure_pct>\d{1,30}(?:\.\d+)?)% > "
    r"(?P<pressure_limit_pct>\d{1,30}(?:\.\d+)?)%(?: for > (?P<window>[\w. ]+?))?(?: with|$)"
)
_USED = re.compile(
    rf"{_OOMD_ENDS} (?=memory used|swap used)"
    r"(?:memory used(?: \((?P<usage_bytes>\d{1,30})\) / total \((?P<host_bytes>\d{1,30})\))?)?"
    r"(?:(?: and )?swap used(?: \((?P<swap_usage_bytes>\d{1,30})\) / total "
    r"\((?P<swap_limit_bytes>\d{1,30})\))?)?"
    r"(?: being more than (?P<used_limit_pct>\d{1,3}(?:\.\d{1,2})?)%)?"
)
_OOMD_CUT = re.compile(
    r"(?:systemd-oomd.{0,40}?(?:Killed|Marked)|\bMarked) (?P<cgroup>/\S+)(?: for| due|\s*$)"
)
"""A message that a pager cut, or a terminal wrapped, before its reason."""

# Talos 1.12 and later, in machined's log: oom.go logs the group with zap.
_TALOS = re.compile(
    r"^(?:\[talos\] )?Sending SIGKILL to cgroup \{.{0,400}?"
    r"\"cgroup\": ?\"(?:/sys/fs/cgroup)?(?P<cgroup>/[^\"]{1,500})\""
)

_SPAN = re.compile(
    r"(?<!\d)(?P<number>\d{1,30}(?:\.\d{1,30})?) ?"
    r"(?P<unit>months?|minutes?|min|ms|us|µs|milliseconds?|microseconds?"
    r"|years?|weeks?|days?|hours?|seconds?|sec|[ywdhms])(?![a-z])"
)
_SPAN_S = {
    "y": 365.25 * 86400, "month": 30.4375 * 86400, "w": 7 * 86400, "d": 86400, "h": 3600,
    "min": 60, "m": 60, "s": 1, "ms": 1e-3, "us": 1e-6, "µs": 1e-6,
}  # fmt: skip
_LONG = {
    "year": "y", "week": "w", "day": "d", "hour": "h", "minute": "min", "second": "s",
    "sec": "s", "millisecond": "ms", "microsecond": "us",
}  # fmt: skip
_CPU = re.compile(
    r"^(?P<cpu>.*?)(?: of)? CPU time(?: over (?P<wall>[^,]{0,100}?) wall clock time)?(?:,|\.|$)"
)
_PEAK = re.compile(
    r"(?<![\d.])(?P<size>\d{1,30}(?:\.\d{1,30})?)(?P<size_unit>[BKMGTP]?) "
    r"memory (?P<swap>swap )?peak"
)


_NEAR_LINES = 4
"""Lines. systemd-oomd probably killed a main process that gets SIGKILL this soon after its attempt.

Its attempt names a process, which no line connects with the unit."""


def read(messages: Sequence[Message]) -> Rows:
    """Returns the events of units, and kills by systemd-oomd."""
    events: list[Row] = []
    kills: list[Row] = []
    failed: dict[tuple[str | None, str], int] = {}
    cut: tuple[int, str] = (-1, "")
    attempted = -_NEAR_LINES
    for at, message in enumerate(messages):
        text = message.text
        if message.line_no == cut[0] + 1 and kills and (row := _oomd_kill(f"{cut[1]} {text}")):
            kills[-1] |= row
        elif "due to " in text and (row := _oomd_kill(text)):
            kills.append(message.place() | {"killer": "systemd-oomd"} | row)
        elif match := _OOMD_CUT.search(f"{message.ident} {text}"):
            cut = (message.line_no, text.rstrip())
            killed = _cut_kill(match, messages[max(0, at - _NEAR_LINES) : at])
            kills.append(message.place() | killed)
        elif match := _TALOS.search(text):
            facts = {"killer": "Talos", "scope": "global", "reason": "memory_pressure"}
            kills.append(message.place() | facts | cgroups.identity(match["cgroup"]))
        elif "oomd attempting to kill" in text:
            attempted = message.line_no
        elif row := _event(text):
            row |= _of_attempt(row, message.line_no - attempted)
            key = (message.host, row["unit"])
            if row.pop("again", False):
                if failed.get(key) == len(events) - 1 and events:
                    continue
                failed[key] = len(events)
            container = cgroups.container_id(row["unit"])
            events.append(
                message.place() | row | _native(message) | {"container_id": container}
            )
    shown = [row for row in [*_shown(messages)] if not _is_logged(row, events)]
    return {"unit_events": [*events, *shown], "oom_kills": kills}


def _of_attempt(row: Row, lines: int) -> Row:
    """Returns the result of an event this many lines after an attempt of systemd-oomd."""
    is_near = lines < _NEAR_LINES and row.get("signal") == "KILL"
    return {"result": OOMD_ATTEMPT} if is_near else {}


def _is_logged(shown: Row, events: Iterable[Row]) -> bool:
    """Returns whether the journal below a status has its kill too; adds data from the status."""
    of_unit = [row for row in events if row["unit"] == shown["unit"]]
    kills = [row for row in of_unit if row["event"] == "oom_killed_process"]
    ends = [row for row in of_unit if row.get("result") == "oom-kill"]
    if not (last := [*ends, *kills][-1:]):
        return False
    for name in ("memory_peak_bytes", "memory_swap_peak_bytes", "code", "status"):
        if shown.get(name) is not None:
            last[0].setdefault(name, shown[name])
    return True


def _cut_kill(match: re.Match[str], before: Iterable[Message]) -> Row:
    """Returns a kill by systemd-oomd whose reason is cut off; old versions also print it before."""
    killed = cgroups.identity(match["cgroup"])
    # The unit in a truncated path is one around the killed unit.
    is_whole = re.search(r"\.(?:service|scope|slice)$", match["cgroup"])
    killed["unit"] = killed["unit"] if is_whole else None
    seen = [
        row for message in before if (row := _pressure(message.text)) and "cgroup" not in row
    ]
    if "due to memory p" not in match.string:
        return {"killer": "systemd-oomd"} | killed
    return {"killer": "systemd-oomd", "reason": "memory_pressure", **killed, **dict(*seen[-1:])}


def _shown(messages: Iterable[Message]) -> Iterator[Row]:
    """Yields the units that `systemctl status` reports as ended for memory."""
    unit = None
    shown: Row = {}
    for message in messages:
        if match := cgroups.STATUS.search(message.text):
            unit = match["unit"]
        elif unit and (match := _SHOWN_KILL.search(message.text)):
            shown = message.place() | {"event": "failed", "result": "oom-kill", "unit": unit}
            shown["printed_at"] = shown["printed_at"] or match["at"]
            if match["utc"] and shown["logged_at"] is None:
                shown |= {
                    "logged_at": datetime.fromisoformat(f"{match['at']}+00:00"),
                    "printed_at": None,
                }
            yield shown
        elif match := _SHOWN_MAIN.search(message.text):
            shown |= {"code": match["code"], "status": numbers.whole(match["status"])}
        elif match := _SHOWN_PEAK.search(message.text):
            for name, size in (
                ("memory_peak_bytes", "size"),
                ("memory_swap_peak_bytes", "swap"),
            ):
                shown[name] = size_bytes(match.groupdict(), size)


def _event(text: str) -> Row | None:
    for event, pattern in _EVENTS:
        if match := pattern.search(text):
            row = {"event": event, **match.groupdict()}
            if event == "consumed":
                of_unit = consumed(row.pop("what"))
                return of_unit and row | of_unit
            row |= {name: numbers.whole(row[name]) for name in ("n", "status") if name in row}
            return row | ({"signal": None} if row.get("code") == "exited" else {})
    return None


def consumed(text: str) -> Row | None:
    """Returns CPU time, wall time and peaks of a `Consumed …` line; None for other text."""
    if not (match := _CPU.match(text)):
        return None
    row: Row = {"cpu_s": span_s(match["cpu"])}
    if row["cpu_s"] is None:
        return None
    if match["wall"]:
        row["wall_s"] = span_s(match["wall"])
    for peak in _PEAK.finditer(text):
        name = "memory_swap_peak_bytes" if peak["swap"] else "memory_peak_bytes"
        row[name] = size_bytes(peak.groupdict(), "size")
    return row


def span_s(text: str) -> float | None:
    """Returns the seconds of a systemd time span, short or in words; None if it is not one."""
    if text.strip() == "0":
        return 0.0
    parts = list(_SPAN.finditer(text))
    if not parts:
        return None
    total = 0.0
    for part in parts:
        unit = part["unit"]
        unit = unit if unit in _SPAN_S else _LONG.get(unit.rstrip("s"), unit.rstrip("s"))
        if (seconds := numbers.real(part["number"], _SPAN_S[unit])) is None:
            return None
        total += seconds
    return round(total, 6)


def _native(message: Message) -> Row:
    """Returns exact figures from the fields of a journald record."""
    if not message.native:
        return {}
    given = json_values.loads(message.native)
    row: Row = {}
    if (used := numbers.whole(given.get("CPU_USAGE_NSEC"))) is not None:
        # Rounded to milliseconds, the precision that the text of the message has.
        row["cpu_s"] = round(used / 1e9, 3)
    for field, column in (
        ("MEMORY_PEAK", "memory_peak_bytes"),
        ("MEMORY_SWAP_PEAK", "memory_swap_peak_bytes"),
    ):
        if (size := numbers.whole(given.get(field))) is not None:
            row[column] = size
    return row


def _pressure(text: str) -> Row | None:
    """Returns a memory pressure above its limit, its group, and what was ended for it."""
    if not (match := _PRESSURE.search(text)):
        return None
    window = span_s(match["window"]) if match["window"] else None
    row: Row = {"reason": "memory_pressure", "pressure_window_s": window} | columns(match)
    return row | (cgroups.identity(match["cgroup"]) if match["cgroup"] else {})


def _oomd_kill(text: str) -> Row | None:
    if (row := _pressure(text)) is not None:
        return row if "cgroup" in row else None
    if not (match := _USED.search(text)):
        return None
    # Its sizes describe the whole host, not the unit.
    row = {"reason": "memory_used", "scope": "global"}
    return cgroups.identity(match["cgroup"]) | columns(match) | row
