"""Reads the kernel's OOM killer: an incident of up to thousands of lines becomes one row.

Formats: mm/oom_kill.c and mm/memcontrol.c of Linux 2.6 to 6.x. A kill is what `Killed
process` says; what stands around it (who asked, whose limit, the victims' table, the reaper)
is folded into its row. An incident without a kill becomes an invocation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gctrace_analyzer.ingest import cgroups, kubernetes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gctrace_analyzer.ingest.message import Message, Row, Rows

HINT = (
    r"oom[-_]|ut of memory|ut Of Memory|[Kk]ill(?:ed)? process |memory: usage|swap: usage|"
    r"\] +\d+ +\d+ +\d+ +\d+|\[ *pid *\]|killed as a result|total-vm:|anon-rss:|OOM|"
    r"PID: \d+ Comm|No available memory"
)

_NO_LIMIT_KB = 9007199254740000
"""PAGE_COUNTER_MAX in kB, whose last digits vary by page size."""

_PAGE = 4096

_KILL = re.compile(
    r"(?:(?P<message>Out of [Mm]emory(?: \(oom_kill_allocating_task\))?|Memory cgroup out of memory"
    r"|No available memory[^:]*): )?[Kk]illed process (?P<pid>\d+)(?:, UID (?P<uid1>\d+),)? "
    r"\((?P<comm>.*?)\)(?=[ ,.]*(?:UID[ :]?\d|total-vm:|anon-rss:|$))[.,]?(?: UID (?P<uid2>\d+),?)?"
)
_PREKILL = re.compile(
    r"(?P<message>out of memory|no available memory[^:]*)[^:]*: kill process (?P<pid>\d+) "
    r"\((?P<comm>.*?)\) score (?P<score>\d+)",
    re.IGNORECASE,
)
_INVOKED = re.compile(
    r"^(?:.*?(?:\] |kernel: ))?(?P<comm>.{1,16}?) invoked oom-killer: "
    r"gfp_mask=(?P<gfp>0x[0-9a-f]+(?:\([^)]*\))?).*?order=(?P<order>-?\d+)"
)
_CONTEXT = re.compile(
    r"oom-kill:constraint=(?P<constraint>CONSTRAINT_\w+),nodemask=(?P<nodemask>.*?),"
    r"cpuset=(?P<cpuset>.*?),mems_allowed=(?P<mems>[\d,-]*)(?:,oom_memcg=(?P<oom_memcg>.*?)"
    r"|(?P<global>,global_oom))?,task_memcg=(?P<task_memcg>.*?),task=(?P<comm>.*),"
    r"pid=(?P<pid>\d+),uid=(?P<uid>\d+)"
)
_TASK_IN = re.compile(r"Task in (?P<task>.+?) killed as a result of limit of (?P<oom>.+?)\s*$")
_USAGE = re.compile(
    r"(?P<what>memory\+swap|memory|swap): usage (?P<usage>\d+)kB, limit (?P<limit>\d+)kB, "
    r"failcnt (?P<failcnt>\d+)"
)
_CPU = re.compile(
    r"CPU: \d+ (?:UID: \d+ )?PID: (?P<pid>\d+) Comm: .*?(?:Not tainted|Tainted: [A-Z ]+?) (?P<release>\S+)"
)
_REAPED = re.compile(
    r"oom_reaper: reaped process (?P<pid>\d+) \(.*?\), now anon-rss:(?P<anon>\d+)kB, "
    r"file-rss:(?P<file>\d+)kB, shmem-rss:(?P<shmem>\d+)kB"
)
_HEADER = re.compile(r"\[ *pid *\] +uid +(?P<rest>.*name)\s*$")
_TASK = re.compile(r"\[ *(?P<pid>\d+)\] +(?P<rest>\d+ +\d+ +\d+.*)$")
_NO_KILL = re.compile(
    r"no killable processes|is already exiting\. Skip killing|deadlocked on memory|panic_on_oom"
)
_SIZE = re.compile(
    r"(?P<key>total-vm|(?:anon|file|shmem)-rss|pgtables|oom_score_adj|UID):? ?(?P<value>-?\d+)(?P<unit>kB)?"
)
_KEYS = {
    "total-vm": "total_vm_bytes",
    "anon-rss": "anon_rss_bytes",
    "file-rss": "file_rss_bytes",
    "shmem-rss": "shmem_rss_bytes",
    "pgtables": "pgtables_bytes",
    "oom_score_adj": "oom_score_adj",
    "UID": "uid",
}
_KUBELET = re.compile(
    r"System OOM encountered, victim process: (?P<comm>.*), pid: (?P<pid>\d+)"
)
_CONSTRAINED = {"CONSTRAINT_CPUSET": "cpuset", "CONSTRAINT_MEMORY_POLICY": "mempolicy"}
_OLD_TABLE = ["uid", "tgid", "total_vm", "rss", "cpu", "oom_adj", "oom_score_adj", "name"]
_TABLES_BY_WIDTH = {
    8: ["uid", "tgid", "total_vm", "rss", "nr_ptes", "swapents", "oom_score_adj", "name"],
    9: [
        "uid",
        "tgid",
        "total_vm",
        "rss",
        "nr_ptes",
        "nr_pmds",
        "swapents",
        "oom_score_adj",
        "name",
    ],
    11: [
        "uid",
        "tgid",
        "total_vm",
        "rss",
        "rss_anon",
        "rss_file",
        "rss_shmem",
        "pgtables_bytes",
        "swapents",
        "oom_score_adj",
        "name",
    ],
}


@dataclass(slots=True)
class _Incident:
    """What is known of one run of the OOM killer."""

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
        self.columns: list[str] | None = None
        self.event: tuple[int, Row] = (-9, {})

    def read(self, messages: Iterable[Message]) -> Rows:
        for message in messages:
            self.line(message)
        for incident in list(self.open.values()):
            self.close(incident)
        return self.rows

    def line(self, message: Message) -> None:
        event = kubernetes.event(message.text)
        text = event.message if event else message.text
        about = message.when()
        if event:
            self.event = (message.line_no, event.facts())
        # The message of an event may go on in the next line.
        if message.line_no - self.event[0] in (0, 1) and message.host is None:
            about |= self.event[1]
        if found := _KUBELET.search(text):
            self.kubelet(found, about)
        elif found := _INVOKED.search(text):
            facts = {
                "invoker_comm": found["comm"],
                "gfp_mask": found["gfp"],
                "order": int(found["order"]),
            }
            self.at("invoked", about, after={"no kill"}).facts.update(facts)
        elif found := _KILL.search(text):
            self.kill(found, text, about)
        elif found := _PREKILL.search(text):
            incident = self.at("announced", about)
            whole = "Memory cgroup" if "cgroup" in text[: found.end("message")].lower() else ""
            incident.announced = about | {
                "pid": int(found["pid"]), "comm": found["comm"], "score": int(found["score"]),
                "scope": _scope(f"{whole} {found['message']}"),
            }  # fmt: skip
        elif found := _CONTEXT.search(text):
            self.context(found, about)
        elif found := _TASK_IN.search(text):
            incident = self.at("task in", about)
            incident.facts |= {"task_memcg": found["task"], "oom_memcg": found["oom"]}
        elif found := _USAGE.search(text):
            self.usage(found, about)
        elif found := _REAPED.search(text):
            self.reaped(found)
        elif "going to be killed due to memory.oom.group" in text:
            self.at(
                "group", about, after={"killed", "context", "invoked", "announced", "usage"}
            ).group = True
        elif _NO_KILL.search(text):
            self.at("no kill", about, after={"invoked", "context", "usage", "task in"})
        else:
            self.detail(text, about, message)

    def detail(self, text: str, about: Row, message: Message) -> None:
        incident = self.open.get(about["host"])
        if found := _HEADER.search(text):
            self.columns = ["uid", *found["rest"].split()]
        elif found := _TASK.search(text):
            self.task(found, incident, message)
        elif incident and (found := _CPU.search(text)) and "invoked" in incident.seen:
            incident.facts |= {
                "invoker_pid": int(found["pid"]),
                "kernel_release": found["release"],
            }
        elif (
            incident
            and incident.kills
            and re.match(r"\s*(?:total-vm|anon-rss|oom_score_adj):", text)
        ):
            # Somebody, or a mail program, has wrapped the line of the kill.
            incident.kills[-1].update(_sizes(text))

    def at(self, step: str, about: Row, after: set[str] | None = None) -> _Incident:
        """The incident this step belongs to: the open one, unless it is past such a step."""
        incident = self.open.get(about["host"])
        past = incident and (incident.seen - (after or set())) & _BEFORE.get(step, set())
        if incident is None or past:
            if incident:
                self.close(incident)
            incident = _Incident(dict(about))
            self.open[about["host"]] = incident
        incident.seen.add(step)
        return incident

    def kill(self, found: re.Match[str], text: str, about: Row) -> None:
        incident = self.open.get(about["host"])
        if not (incident and incident.group and "killed" in incident.seen):
            incident = self.at("killed", about)
        incident.seen.add("killed")
        uid = found["uid1"] or found["uid2"]
        sizes = _sizes(text[found.end("comm") :])
        announced = incident.announced or {}
        scope = _scope(found["message"]) or announced.get("scope")
        row = {
            **{name: value for name, value in incident.facts.items() if name != "line_no"},
            **{name: value for name, value in about.items() if value is not None},
            "killer": "kernel", "pid": int(found["pid"]), "comm": found["comm"],
            **({"uid": int(uid)} if uid else {}), **sizes, "score": announced.get("score"),
            "oom_group": incident.group or None, "scope": scope,
        }  # fmt: skip
        known = (row["pid"], row.get("total_vm_bytes"), row.get("anon_rss_bytes"))
        for other in (*incident.kills, *self.rows["oom_kills"]):
            if known == (
                other["pid"],
                other.get("total_vm_bytes"),
                other.get("anon_rss_bytes"),
            ) and (
                other["comm"] == row["comm"] and other.get("host") in (row.get("host"), None)
            ):
                # A group kill and the node problem detector print a kill again.
                other.update(
                    {name: value for name, value in row.items() if other.get(name) is None}
                )
                if incident.group:
                    other["oom_group"] = True
                return
        incident.kills.append(row)

    def context(self, found: re.Match[str], about: Row) -> None:
        incident = self.at("context", about)
        incident.facts |= {
            "constraint": found["constraint"],
            "mems_allowed": found["mems"],
            "task_memcg": found["task_memcg"],
            "oom_memcg": found["oom_memcg"],
            "global_oom": bool(found["global"]),
        }
        incident.announced = (incident.announced or about) | {
            "pid": int(found["pid"]), "comm": found["comm"], "uid": int(found["uid"]),
        }  # fmt: skip
        incident.facts["uid"] = int(found["uid"])

    def usage(self, found: re.Match[str], about: Row) -> None:
        usage, limit = int(found["usage"]), int(found["limit"])
        size = {"usage": usage * 1024, "limit": None if limit >= _NO_LIMIT_KB else limit * 1024}
        if found["what"] == "memory":
            incident = self.at("usage", about)
            incident.facts |= {f"{name}_bytes": value for name, value in size.items()}
            incident.facts["failcnt"] = int(found["failcnt"])
        elif found["what"] == "swap" and (incident := self.open.get(about["host"])):
            incident.facts |= {f"swap_{name}_bytes": value for name, value in size.items()}

    def task(self, found: re.Match[str], incident: _Incident | None, message: Message) -> None:
        cells = found["rest"].split()
        columns = self.columns or _TABLES_BY_WIDTH.get(_width(cells), _OLD_TABLE)
        if len(cells) < len(columns):
            return
        name = found["rest"].split(None, len(columns) - 1)[-1]
        cells = [*cells[: len(columns) - 1], name.strip()]
        given = dict(zip(columns, cells, strict=True))
        row: Row = {
            "line_no": message.line_no,
            "pid": int(found["pid"]),
            "comm": given.pop("name"),
        }
        for column, value in given.items():
            suffix = "_pages" if column in _IN_PAGES else ""
            if re.fullmatch(r"-?\d+", value):
                row[column + suffix] = int(value)
        if "nr_ptes" in row:
            row["pgtables_bytes"] = (row.pop("nr_ptes") + row.pop("nr_pmds", 0)) * _PAGE
        (incident.tasks if incident else self.rows["oom_tasks"]).append(row)
        if not incident:
            row["rss_bytes"] = row.get("rss_pages", 0) * _PAGE

    def reaped(self, found: re.Match[str]) -> None:
        pid = int(found["pid"])
        kills = [kill for incident in self.open.values() for kill in incident.kills]
        for kill in reversed([*self.rows["oom_kills"], *kills]):
            if kill["pid"] == pid:
                kill["reaped"] = True
                for name in ("anon", "file", "shmem"):
                    kill[f"reaped_{name}_rss_bytes"] = int(found[name]) * 1024
                return

    def kubelet(self, found: re.Match[str], about: Row) -> None:
        self.rows["oom_kills"].append(
            about | {"killer": "kernel", "reported_by": "kubelet", "scope": "global",
                     "pid": int(found["pid"]), "comm": found["comm"]}
        )  # fmt: skip

    def close(self, incident: _Incident) -> None:
        self.open = {host: other for host, other in self.open.items() if other is not incident}
        facts = incident.facts
        if not incident.kills and incident.announced and "no kill" not in incident.seen:
            incident.kills.append(
                {**facts, "killer": "kernel", **incident.announced, "truncated": True}
            )
        for kill in incident.kills:
            _finish(kill)
            self.rows["oom_kills"].append(kill)
        if not incident.kills and incident.seen & {"invoked", "usage", "task in", "no kill"}:
            facts["scope"] = (
                "memcg" if facts.get("oom_memcg") or "usage_bytes" in facts else None
            )
            self.rows["oom_invocations"].append(facts)
        page = _page_size(incident)
        for row in incident.tasks:
            row["rss_bytes"] = row.get("rss_pages", 0) * page
            row["kill_line_no"] = incident.kills[0]["line_no"] if incident.kills else None
        self.rows["oom_tasks"] += incident.tasks


_IN_PAGES = {"total_vm", "rss", "rss_anon", "rss_file", "rss_shmem", "swapents"}
_BEFORE = {
    "invoked": {"invoked", "killed", "announced", "context", "usage", "task in", "no kill"},
    "context": {"context", "killed", "no kill"},
    "announced": {"announced", "killed", "no kill"},
    "killed": {"killed", "no kill"},
    "task in": {"task in", "killed", "announced", "no kill"},
    "usage": {"usage", "killed", "announced", "no kill"},
    "no kill": {"killed", "announced", "no kill"},
    "group": {"no kill"},
}
"""The steps that an incident has behind it when the kernel comes to another one."""


def read(messages: Iterable[Message]) -> Rows:
    """The kernel's kills, invocations without one, and tables of tasks."""
    return _Reader().read(messages)


def _scope(message: str | None) -> str | None:
    text = (message or "").lower()
    if "cgroup" in text:
        return "memcg"
    if "no available memory" in text:
        return "cpuset" if "cpuset" in text else "mempolicy"
    return "global" if "out of memory" in text else None


def _sizes(text: str) -> Row:
    row: Row = {}
    for found in _SIZE.finditer(text):
        row[_KEYS[found["key"]]] = int(found["value"]) * (1024 if found["unit"] else 1)
    return row


def _finish(kill: Row) -> None:
    """What follows from several of a kill's facts."""
    scope, constraint = kill.get("scope"), kill.get("constraint")
    if scope in (None, "global") and kill.get("oom_memcg"):
        scope = "memcg"
    elif scope is None and kill.get("global_oom"):
        scope = "global"
    if scope in (None, "global") and constraint in _CONSTRAINED:
        scope = _CONSTRAINED[constraint]
    elif scope is None and constraint == "CONSTRAINT_MEMCG":
        scope = "memcg"
    kill["scope"] = scope
    path = kill.get("task_memcg")
    kill["cgroup"] = path
    kill["unit"] = cgroups.unit(path)
    kill["container_id"], kill["pod_uid"] = cgroups.container_id(path), cgroups.pod_uid(path)
    vm, tables = kill.get("total_vm_bytes"), kill.get("pgtables_bytes")
    if vm and tables and tables > vm / 64 and tables // 1024 % _PAGE == 0:
        # The first Linux 5.4 printed bytes and called them kB.
        kill["pgtables_bytes"] = tables // 1024


def _width(cells: list[str]) -> int:
    """How many columns a table has whose header is missing: numbers, then a name."""
    numbers = next(
        (i for i, cell in enumerate(cells) if not re.fullmatch(r"-?\d+", cell)), len(cells)
    )
    return numbers + 1


def _page_size(incident: _Incident) -> int:
    """From the kill's resident memory in kB and its row in the table in pages."""
    for kill in incident.kills:
        for row in incident.tasks:
            parts = [kill.get(f"{name}_rss_bytes") for name in ("anon", "file", "shmem")]
            if row["pid"] == kill["pid"] and row.get("rss_pages") and any(parts):
                size = sum(part or 0 for part in parts) / row["rss_pages"]
                return min(
                    (4096, 16384, 65536),
                    key=lambda page: abs(page / size - 1) if size else page,
                )
    return _PAGE
