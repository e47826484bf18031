"""Reads kernel OOM kills: an incident of up to thousands of lines becomes one row.

The line `Killed process` makes a kill; the lines around it (the invoking process, the limit,
the task table, the reaper) add to its row. An incident without a kill is kept as an
invocation of the OOM killer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from gctrace_analyzer.ingest import numbers
from gctrace_analyzer.ingest.evidence import cgroups, kubernetes, oom_lines
from gctrace_analyzer.ingest.evidence.message import columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gctrace_analyzer.ingest.evidence.message import Message, Row, Rows

    _Handler = Callable[[re.Match[str], Row], None]


@dataclass(slots=True)
class _Incident:
    """What is known about one run of the OOM killer."""

    facts: Row
    kills: list[Row] = field(default_factory=list)
    tasks: list[Row] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    announced: Row | None = None
    group: bool = False


class _Reader:
    def __init__(self) -> None:
        self.rows: Rows = {"oom_kills": [], "oom_invocations": [], "oom_tasks": []}
        self.open: dict[str | None, _Incident] = {}
        self.columns: dict[str | None, list[str]] = {}
        self.kernel = False
        self.above: tuple[int, str, Row] = (-9, "", {})
        self.by_pid: dict[int | None, list[Row]] = {}
        self.by_others: list[Row] = []
        self.without_victims: list[Row] = []
        self.listed: dict[object, list[Row]] = {}
        self.event: tuple[int, Row] = (-9, {})
        self.counted: Row | None = None
        self.handlers: tuple[tuple[re.Pattern[str], _Handler], ...] = (
            *((line, partial(self.reported, who)) for who, line in oom_lines.REPORTS.items()),
            (oom_lines.KUBELET_ALONE, self.without_victim),
            (oom_lines.INVOKED, self.invoked),
            (oom_lines.MANUAL, self.started_by_hand),
            (oom_lines.KILL, self.kill),
            (oom_lines.PREKILL, self.announced),
            (oom_lines.CONTEXT, self.context),
            (oom_lines.TASK_IN, self.task_in),
            (oom_lines.TRACE, self.traced),
            (oom_lines.USAGE, self.usage),
            (oom_lines.STATS, self.stats),
            (oom_lines.OF_HOST, self.of_host),
            (oom_lines.FREE, self.free),
            (oom_lines.REAPED, self.reaped),
            (oom_lines.GROUP, self.group),
            (oom_lines.NO_KILL, self.no_kill),
            (oom_lines.HEADER, self.header),
            (oom_lines.CPU, self.cpu),
        )

    def read(self, messages: Iterable[Message]) -> Rows:
        for message in messages:
            self.line(message)
        for incident in list(self.open.values()):
            self.close(incident)
        for row in chain.from_iterable(self.listed.values()):
            size = numbers.whole(row.get("rss_pages"), oom_lines.PAGE)
            self.rows["oom_tasks"].append(row | {"rss_bytes": size})
        # Most kills in other reports are also in the kernel's messages; only the rest are added.
        known = {(kill["pid"], kill["comm"]) for kill in self.rows["oom_kills"]}
        self.rows["oom_kills"] += [
            kill for kill in self.by_others if (kill["pid"], kill["comm"]) not in known
        ]
        if not self.rows["oom_kills"]:
            self.rows["oom_invocations"] += self.without_victims
        # An excerpt may show the run of the OOM killer below its kill.
        of_kills = {_at(kill) for kill in self.rows["oom_kills"] if "invoker_comm" not in kill}
        runs = self.rows["oom_invocations"]
        self.rows["oom_invocations"] = [
            run for run in runs if _at(run) not in of_kills - {None}
        ]
        return self.rows

    def line(self, message: Message) -> None:
        event = kubernetes.event(message.text)
        text = event.message if event else message.text
        about = message.place()
        if event:
            self.event = (message.line_no, event.facts())
        # The message of an event may continue on the next line.
        if message.line_no - self.event[0] in (0, 1) and message.host is None:
            about |= self.event[1]
        line_no, above, place = self.above
        is_next = above and message.line_no == line_no + 1
        # Up to Linux 4.20, "Killed process" is a line of its own.
        is_kernel = message.ident == "kernel" or message.monotonic_s is not None
        is_own = self.handles(text) or (is_kernel and text.startswith("Killed process"))
        is_rest = oom_lines.CUT.search(above) or not is_own
        if is_next and oom_lines.WRAPPED.match(text) and is_rest:
            text, about = above + " " * (above[-1] not in "-,=/") + text.lstrip(), place
        else:
            self.kernel = is_kernel
        self.above = (message.line_no, text if oom_lines.WRAPS.search(text) else "", about)
        if handled := self.handles(text):
            self.counted = None
            handled[0](handled[1], about)
            return
        if self.counted is not None:
            self.count(text, self.counted)
        # Other programs print similar tables, so only those of the kernel are read.
        is_kernel = self.kernel or about["host"] in self.open
        columns = self.columns.get(about["host"])
        if (
            is_kernel
            and (match := oom_lines.TASK.search(text))
            and (row := oom_lines.task(match, columns))
        ):
            self.task(row, about)

    def handles(self, text: str) -> tuple[_Handler, re.Match[str]] | None:
        """Returns the reader of a line, and its match."""
        for pattern, handle in self.handlers:
            if match := pattern.search(text):
                return handle, match
        return None

    def invoked(self, match: re.Match[str], about: Row) -> None:
        self.at("invoked", about, after={"no kill"}).facts.update(columns(match))

    def started_by_hand(self, _: re.Match[str], about: Row) -> None:
        self.at("by hand", about).facts["by_hand"] = True

    def announced(self, match: re.Match[str], about: Row) -> None:
        words = match.string[: match.end("message")].lower()
        scope = {"scope": oom_lines.scope(words)}
        self.at("announced", about).announced = about | columns(match) | scope

    def task_in(self, match: re.Match[str], about: Row) -> None:
        self.at("task in", about).facts.update(columns(match))

    def group(self, _: re.Match[str], about: Row) -> None:
        after = {"killed", "context", "invoked", "announced", "usage"}
        incident = self.at("group", about, after=after)
        incident.group = True
        # The kernel prints this after the first kill, which is the only one in a small cgroup.
        for kill in incident.kills:
            kill["oom_group"] = True

    def no_kill(self, match: re.Match[str], about: Row) -> None:
        incident = self.at("no kill", about, after={"invoked", "context", "usage", "task in"})
        incident.facts |= columns(match)
        # Without a victim, the words are the same whichever memory ran out.
        if match["pid"]:
            incident.facts.setdefault("scope", oom_lines.scope(match.string[: match.start()]))
        if match[0] in oom_lines.NOTHING_KILLABLE:
            incident.facts["nothing_killable"] = True
        if "panic" in match.string:
            incident.facts["panicked"] = True

    def without_victim(self, match: re.Match[str], about: Row) -> None:
        # The group `/` is the whole node.
        of = {"scope": "global"} if match["group"] is None else {"scope": "memcg"}
        self.without_victims.append(about | of | {"oom_memcg": match["group"]})

    def header(self, match: re.Match[str], about: Row) -> None:
        self.columns[about["host"]] = ["uid", *match["rest"].split()]

    def cpu(self, match: re.Match[str], about: Row) -> None:
        incident = self.open.get(about["host"])
        if incident and "invoked" in incident.seen:
            incident.facts |= columns(match)

    def at(self, step: str, about: Row, after: set[str] | None = None) -> _Incident:
        """Returns the open incident, or a new one if the open one is past this step."""
        incident = self.open.get(about["host"])
        past = incident and (
            (incident.seen - (after or set())) & _BEFORE.get(step, set())
            or _is_apart(incident.facts, about)
        )
        if incident is None or past:
            if incident:
                self.close(incident)
            incident = _Incident(dict(about))
            self.open[about["host"]] = incident
            # A log may begin within the table.
            if step != "invoked":
                incident.tasks += self.listed.pop(about["host"], [])
        incident.seen.add(step)
        return incident

    def kill(self, match: re.Match[str], about: Row) -> None:
        before, after = match.string[: match.start()], match.string[match.end() :]
        quoted = '"' in before and not re.search(r'[Mm]essage(?:\\*")?[=:] ?\\*"$', before)
        pid, host = numbers.whole(match["pid"]), about["host"]
        unnamed = self.open.get(None)
        if unnamed and host not in self.open and (unnamed.announced or {}).get("pid") == pid:
            # The head of its first lines was cut off or wrapped.
            self.open[host] = self.open.pop(None)
        incident = self.open.get(about["host"])
        announced = (incident and incident.announced) or {}
        announced_pid = announced.get("pid") == pid
        sized = match["message"] or "total-vm:" in after or "anon-rss:" in after
        if not self.kernel and (quoted or not (sized or announced_pid or match["uid1"])):
            return
        if incident and announced and not announced_pid and _is_of_host(match, incident):
            # The kernel's own words for a kill at the limit of a group name the group.
            self.close(incident)
            incident = None
        if usage := oom_lines.USAGE.search(before):
            self.usage(usage, about)
        if not (incident and incident.group and "killed" in incident.seen):
            incident = self.at("killed", about)
        incident.seen.add("killed")
        uid = match["uid1"] or match["uid2"]
        announced = incident.announced or {}
        row = {
            **{name: value for name, value in incident.facts.items() if name != "line_no"},
            **{name: value for name, value in about.items() if value is not None},
            "killer": "kernel",
            **columns(match),
            **({"uid": numbers.whole(uid)} if uid else {}),
            **oom_lines.sizes(match.string[match.end("comm") :]),
            "score": announced.get("score"),
            "oom_group": incident.group or None,
            "scope": oom_lines.scope(match["message"])
            or announced.get("scope")
            or incident.facts.get("scope"),
        }
        for other in self.by_pid.get(row["pid"], []):
            if _is_same(row, other):
                # Kills of a whole cgroup, and the node problem detector, repeat the line of a kill.
                other |= {name: row[name] for name in row if other.get(name) is None}
                if incident.group:
                    other["oom_group"] = True
                return
        self.by_pid.setdefault(row["pid"], []).append(row)
        incident.kills.append(row)

    def context(self, match: re.Match[str], about: Row) -> None:
        incident = self.at("context", about)
        row = columns(match)
        incident.announced = (incident.announced or about) | {
            name: row[name] for name in ("pid", "comm", "uid")
        }
        del row["pid"], row["comm"]
        incident.facts |= row | {"global_oom": bool(match["global"])}

    def traced(self, match: re.Match[str], about: Row) -> None:
        facts = self.at("traced", about).facts
        if scope := match.lastgroup:
            facts.setdefault("scope", scope)

    def usage(self, match: re.Match[str], about: Row) -> None:
        # Without a limit the kernel prints PAGE_COUNTER_MAX, which is too large to be accepted.
        row, known = columns(match), self.open.get(about["host"])
        if match["what"] == "memory":
            self.at("usage", about).facts.update(row)
        elif match["what"] == "memory+swap" and known and not known.facts.get("failcnt"):
            # Version 1 counts separately how often the limit of both together was reached.
            known.facts["failcnt"] = row["failcnt"]
        elif match["what"] == "kmem" and known:
            known.facts["group_kernel_bytes"] = row["usage_bytes"]
        elif match["what"] == "swap" and known:
            known.facts |= {
                f"swap_{name}": row[name] for name in ("usage_bytes", "limit_bytes")
            }

    def of_host(self, match: re.Match[str], about: Row) -> None:
        if (known := self.open.get(about["host"])) is None or "killed" in known.seen:
            return
        if match["pages"]:
            known.facts["host_pages"] = numbers.whole(match["pages"])
        elif (size := numbers.whole(match["kb"], 1024)) is not None:
            known.facts[f"swap_{match['name'].lower()}_bytes"] = size

    def free(self, match: re.Match[str], about: Row) -> None:
        if (known := self.open.get(about["host"])) is None or "killed" in known.seen:
            return
        if match["pages"]:
            known.facts["free_pages"] = numbers.whole(match["pages"])
            return
        free, high = numbers.whole(match["kb"], 1024), numbers.whole(match["high"], 1024)
        if free is not None:
            name = f"free_of_{match['zone']}"
            above = free if free > (high or 0) else 0
            known.facts[name] = max(above, known.facts.get(name, 0))

    def stats(self, match: re.Match[str], about: Row) -> None:
        incident = self.at("stats", about)
        facts = incident.facts
        # Containers below the limit of a pod may have this line, too, after others (cgroup v1).
        is_cut = incident.seen == {"stats"} and "cache:" in match.string
        if not (is_cut and cgroups.container_id(match["oom_memcg"])):
            facts.setdefault("oom_memcg", match["oom_memcg"])
        # The lines that follow have no time and host of their own.
        self.counted = facts
        self.count(match.string[match.end() :], facts)

    def count(self, text: str, facts: Row) -> None:
        """Adds the group's memory of each kind to the facts of an incident."""
        for match in oom_lines.COUNTED.finditer(text):
            kind = oom_lines.IN_GROUP.get(match["name"], match["name"])
            size = numbers.whole(match["bytes"]) or numbers.whole(match["kb"], 1024) or 0
            name = f"group_{kind}_bytes"
            facts[name] = facts.get(name, 0) + size

    def task(self, row: Row, about: Row) -> None:
        row["line_no"] = about["line_no"]
        # The kernel lists tasks before it kills one.
        if (incident := self.open.get(about["host"])) and "killed" not in incident.seen:
            incident.tasks.append(row)
        else:
            self.listed.setdefault(about["host"], []).append(row)

    def reaped(self, match: re.Match[str], about: Row) -> None:
        row = columns(match) | {"reaped": True}
        if kills := self.by_pid.get(row["pid"]):
            kills[-1] |= {name: row[name] for name in row if name.startswith("reaped")}
            return
        # The reaper only runs after a kill, whose own line may be missing.
        known = {name: row[name] for name in ("pid", "comm", "reaped")}
        self.by_others.append(about | {"killer": "kernel"} | known)

    def reported(self, who: str, match: re.Match[str], about: Row) -> None:
        of_group = "memcg" if match[0].startswith("Cgroup") else "global"
        scope = of_group if who == "kubelet" else None
        known = {"killer": "kernel", "reported_by": who, "scope": scope}
        self.by_others.append(about | known | columns(match))

    def close(self, incident: _Incident) -> None:
        self.open = {host: other for host, other in self.open.items() if other is not incident}
        facts = incident.facts
        if not incident.kills and incident.announced and "no kill" not in incident.seen:
            incident.kills.append(
                {**facts, "killer": "kernel", **incident.announced, "truncated": True}
            )
        for kill in incident.kills:
            _add_derived(kill)
            self.rows["oom_kills"].append(kill)
        if not incident.kills and incident.seen != {"group"} and "killed" not in incident.seen:
            if facts.get("oom_memcg") or "usage_bytes" in facts:
                facts["scope"] = "memcg"
            self.rows["oom_invocations"].append(facts)
        page = _page_size(incident)
        for row in incident.kills or [facts]:
            _add_host(row, page)
        for row in incident.tasks:
            row["rss_bytes"] = numbers.whole(row.get("rss_pages"), page)
            row["kill_line_no"] = incident.kills[0]["line_no"] if incident.kills else None
        self.rows["oom_tasks"] += incident.tasks


_LONGEST_S = 60.0
"""Seconds. The kernel prints one run of the OOM killer within this time, even thousands of tasks on
a serial console."""

_BEFORE = {
    "invoked": {"invoked", "killed", "announced", "context", "usage", "task in", "no kill"},
    "by hand": {"invoked", "killed", "announced", "context", "usage", "task in", "no kill"},
    "context": {"context", "killed", "no kill"},
    "announced": {"announced", "killed", "no kill"},
    "killed": {"killed", "no kill"},
    "task in": {"task in", "killed", "announced", "no kill"},
    "usage": {"usage", "killed", "announced", "no kill"},
    "stats": {"killed", "announced", "no kill"},
    "no kill": {"killed", "announced", "no kill"},
    "group": {"no kill"},
}
"""For each step, the steps that start a new incident if the open one already has them."""


def read(messages: Iterable[Message]) -> Rows:
    """Returns the kernel's OOM kills, invocations without a kill, and task tables."""
    return _Reader().read(messages)


def _at(row: Row) -> tuple[object, ...] | None:
    """Returns host and time of a line; None if the kernel's clock, or no clock, orders it."""
    time = row["logged_at"] or row["printed_at"]
    return None if time is None or row["monotonic_s"] is not None else (row["host"], time)


def _is_of_host(kill: re.Match[str], incident: _Incident) -> bool:
    """Returns whether a kill was not at a group's limit, but the process announced before was."""
    scopes = {(incident.announced or {}).get("scope"), incident.facts.get("scope")}
    is_of_group = "memcg" in scopes or incident.facts.get("constraint") == "CONSTRAINT_MEMCG"
    return is_of_group and oom_lines.scope(kill["message"]) == "global"


def _is_apart(facts: Row, about: Row) -> bool:
    """Returns whether a line has another time than the incident, as in a reversed log."""
    began, now = facts["monotonic_s"], about["monotonic_s"]
    return began is not None and now is not None and abs(now - began) > _LONGEST_S


def _is_same(row: Row, other: Row) -> bool:
    """Returns whether two lines are about one kill; a truncated line has no sizes."""
    sizes = ("total_vm_bytes", "anon_rss_bytes")
    differ = any(
        row[size] != other[size]
        for size in sizes
        if None not in (row.get(size), other.get(size))
    )
    alike = row["comm"] == other["comm"] and other.get("host") in (row.get("host"), None)
    return alike and not differ


def _add_derived(kill: Row) -> None:
    """Adds the columns of a kill that follow from several facts."""
    kill_scope, constraint = kill.get("scope"), kill.get("constraint")
    if kill_scope in (None, "global") and kill.get("oom_memcg"):
        kill_scope = "memcg"
    elif kill_scope is None and kill.get("global_oom"):
        kill_scope = "global"
    if kill_scope in (None, "global") and constraint in oom_lines.CONSTRAINED:
        kill_scope = oom_lines.CONSTRAINED[constraint]
    elif kill_scope is None and constraint == "CONSTRAINT_MEMCG":
        kill_scope = "memcg"
    kill["scope"] = kill_scope
    kill |= cgroups.identity(kill.get("task_memcg"))
    vm, tables = kill.get("total_vm_bytes"), kill.get("pgtables_bytes")
    if vm and tables and tables > vm / 64 and tables // 1024 % oom_lines.PAGE == 0:
        # The first release of Linux 5.4 printed bytes but called them kB.
        kill["pgtables_bytes"] = tables // 1024


def _add_host(row: Row, page: int) -> None:
    """Adds the memory of the host, and how much of its swap was used."""
    pages, total = row.pop("host_pages", None), row.pop("swap_total_bytes", None)
    free = row.pop("swap_free_bytes", None)
    if row.pop("by_hand", None):
        row["order"] = -1
    row["host_free_bytes"] = numbers.whole(row.pop("free_pages", None), page)
    # DMA32 keeps a reserve free for requests that Normal, if the host has it, can satisfy.
    low = row.pop("free_of_DMA32", None)
    row["zone_free_bytes"] = row.pop("free_of_Normal", low)
    if pages is not None:
        row.setdefault("host_bytes", pages * page)
    if total is not None and row.get("scope") == "global":
        row["swap_limit_bytes"] = total
        row["swap_usage_bytes"] = None if free is None else max(total - free, 0)


def _page_size(incident: _Incident) -> int:
    """Returns the page size, from the resident memory of a kill in kB and in pages."""
    for kill in incident.kills:
        for row in incident.tasks:
            parts = [kill.get(f"{name}_rss_bytes") for name in ("anon", "file", "shmem")]
            if row["pid"] == kill["pid"] and row.get("rss_pages") and any(parts):
                size = sum(part or 0 for part in parts) / row["rss_pages"]
                return min(
                    (4096, 16384, 65536),
                    key=lambda page: abs(page / size - 1) if size else page,
                )
    return oom_lines.PAGE
