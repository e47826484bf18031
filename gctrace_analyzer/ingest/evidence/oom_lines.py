"""The lines that the kernel's OOM killer prints.

Formats: mm/oom_kill.c and mm/memcontrol.c of Linux 2.6 to 6.x.

Lines may be 1 MiB long, so every pattern takes linear time: the text between two words has a
maximum length (64 for the name of a process), or cannot contain the character that ends it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gctrace_analyzer.ingest import numbers
from gctrace_analyzer.ingest.evidence.message import size_bytes

if TYPE_CHECKING:
    from gctrace_analyzer.ingest.evidence.message import Row

HINT = (
    r"oom[-_]|ut of memory|ut Of Memory|[Kk]ill(?:ed)? process |memory: usage|swap: usage|"
    r"\] +\d+ +\d+ +\d+ +\d+|\[ *pid *\]|killed as a result|total-vm:|-rss:|"
    r"oom_score|task_memcg=|sacrifice child|OOM|"
    r"up_out_of_memory|alloc_pages_slowp|try_charge|group_charge|charge_memcg|"
    r"pages (?:of )?RAM|(?:Free|Total) swap|free:\d|Manual OOM|"
    r"cgroup stats for /|(?:anon|file|shmem|kernel) \d|kmem: usage|"
    r"PID: \d+ Comm|"
    r"Pid: \d+, comm|No available memory|oom_kill_process called"
)

PAGE = 4096

KILL = re.compile(
    r"(?:(?P<message>Out of [Mm]emory(?: \(oom_kill_allocating_task\))?"
    r"|Memory cgroup out of memory|No available memory[^:]{0,100}): )?"
    r"[Kk]illed process (?P<pid>\d+)(?:, UID (?P<uid1>\d+),)? "
    r"\((?P<comm>.{0,64}?)\)(?=`|[ ,.]*(?:UID[ :]?\d|total-vm:|anon-rss:|$))[.,]?(?: UID "
    r"(?P<uid2>\d+),?)?"
)
PREKILL = re.compile(
    r"(?P<message>(?:out of|no available) memory[^:]{0,100}+): kill process (?P<pid>\d+) "
    r"\((?P<comm>.{0,64}?)\) score (?P<score>\d+)",
    re.IGNORECASE,
)
INVOKED = re.compile(
    r"^(?:.*?(?:\] |kernel: ))?(?P<invoker_comm>.{1,16}?) invoked oom-killer: "
    r"gfp_mask=(?P<gfp_mask>0x[0-9a-f]+(?:\([^)]{0,300}\))?).{0,200}?order=(?P<order>-?\d+)"
)
CONTEXT = re.compile(
    r"oom-kill:constraint=(?P<constraint>CONSTRAINT_\w+),nodemask=(?:\(null\)|(?P<nodemask>[^=]*))"
    # Only with CONFIG_CPUSETS.
    r"(?:,cpuset=(?P<cpuset>[^=]*),mems_allowed=(?P<mems_allowed>[\d,-]*))?(?:,oom_memcg=(?P<oom_memcg>[^=]*)"
    r"|(?P<global>,global_oom))?,task_memcg=(?P<task_memcg>[^=]*),task=(?P<comm>.{0,64}),"
    r"pid=(?P<pid>\d+),uid=(?P<uid>\d+)"
)
TASK_IN = re.compile(
    r"Task in (?P<task_memcg>(?:(?!Task in ).)+?) killed as a result of limit of "
    r"(?P<oom_memcg>.*\S)\s*$"
)
TRACE = re.compile(
    r"(?<!\? )\b(?:oom_kill_process|(?P<memcg>mem_cgroup_(?:out_of_memory|oom_synchronize|"
    r"try_charge|charge)|(?:__mem_cgroup_|mem_cgroup_do_|)try_charge(?:_memcg)?|"
    r"__mem_cgroup_charge|charge_memcg)|"
    r"(?P<global>__alloc_pages_(?:slowpath|may_oom)))(?:\.\w{1,20}){0,3}"
    r"(?:\+0x| from )"
)
"""Kernel functions in its call trace. Those that charge a memory cgroup show that its limit was
reached; `__alloc_pages_…` shows that the host had no free page. "? " marks possible leftovers."""
STATS = re.compile(
    r"(?:Memory cgroup stats for (?=/\S{0,1000}:)|constraint=CONSTRAINT_MEMCG, oom_memcg=)"
    r"(?P<oom_memcg>/[^\s:]{0,1000})"
)
"""The group whose limit was reached comes first, then the groups below it."""
COUNTED = re.compile(
    r"(?:^|[\s:]|#012)(?P<name>anon|rss|file|cache|shmem|kernel|dirty|file_dirty)"
    r"(?: (?P<bytes>\d{1,20})(?=\s*$|#012)|:(?P<kb>\d{1,20})KB)",
    re.MULTILINE,
)
"""The memory of a group, below that line (`memory.stat`; rsyslog prints #012 for a new line) or on
it, up to Linux 5.1, where each group below the first has its own line."""
IN_GROUP = {"rss": "anon", "cache": "file", "file_dirty": "dirty"}
"""Other names of the same memory in control groups, most of them from version 1."""
USAGE = re.compile(
    r"(?P<what>memory\+swap|memory|swap|kmem): usage (?P<usage_kb>\d+)kB, "
    r"limit (?P<limit_kb>\d+)kB, failcnt (?P<failcnt>\d+)"
)
OF_HOST = re.compile(
    r"(?:^|[\]:] )\s?(?:(?P<pages>\d{1,15}) pages (?:of )?RAM|"
    r"(?P<name>Free|Total) swap {1,2}= ?(?P<kb>\d{1,15})kB)"
)
"""The memory of the host, as the kernel prints it if no control group was at its limit."""
FREE = re.compile(
    r"(?<![\w:])free:(?P<pages>\d{1,15}) (?:free_|slab_)|"
    r"\b(?P<zone>DMA32|Normal) free:(?P<kb>\d{1,15})kB (?:boost:\d{1,15}kB )?min:\d{1,15}kB "
    r"low:\d{1,15}kB high:(?P<high>\d{1,15})kB"
)
"""Free memory in the same list: of the host, and of its zones with the watermark above which the
kernel finds a page (mm/page_alloc.c: __alloc_pages_may_oom)."""
MANUAL = re.compile(r"\bManual OOM execution")
"""Somebody started the OOM killer (drivers/tty/sysrq.c); newer kernels also print order=-1."""
CPU = re.compile(
    r"(?:CPU: \d+ (?:UID: \d+ )?PID|Pid): (?P<invoker_pid>\d+),? [Cc]omm: .{0,64}?(?:Not tainted |"
    r"Tainted: [^\d]{1,64}+(?<= ))(?P<kernel_release>\d+\.\d+\S*)"
)
REAPED = re.compile(
    r"oom_reaper: reaped process (?P<pid>\d+) \((?P<comm>.{0,64}?)\), "
    r"now anon-rss:(?P<reaped_anon_rss_kb>\d+)kB, file-rss:(?P<reaped_file_rss_kb>\d+)kB, "
    r"shmem-rss:(?P<reaped_shmem_rss_kb>\d+)kB"
)
HEADER = re.compile(r"\[ *pid *\] +uid +(?P<rest>.{0,200}name)\s*$")
TASK = re.compile(r"\[ *(?P<pid>\d+)\] +(?P<rest>\d+ +\d+ +\d+.*)$")
NO_KILL = re.compile(
    r"no killable processes|(?:OOM victim (?P<pid>\d+) \((?P<comm>.{0,64}?)\) )?is already "
    r"exiting\. Skip killing|deadlocked on memory|panic_on_oom"
)
_SIZE = re.compile(
    r"(?P<key>total-vm|(?:anon|file|shmem)-rss|pgtables|oom_score_adj|UID):? "
    # The kernel prints kB; other reporters of the kill may have written MB or GB.
    r"?(?P<value>-?\d+(?:\.\d{1,3})?)(?:(?P<value_unit>[kMG])B)?(?![\d.]*[A-Za-z])"
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
GROUP = re.compile(r"going to be killed due to memory\.oom\.group")
WRAPPED = re.compile(
    r"^\s*(?:(?:[Kk]ill(?:ed)? )?process \d|\(.{0,64}\) (?:score |total-vm:)|score \d|"
    r"(?:total-vm|(?:anon-|file-|shmem-)?rss|UID|pgtables|oom_score_adj):|"
    r"(?:oom-kill:|global_oom,|(?:nodemask|cpuset|mems_allowed|oom_memcg|task_memcg|task)=))"
)
"""Beginning of the rest of a line about a kill that was wrapped, as in a mail."""

CUT = re.compile(r"\b(?:Memory cgroup o|O)ut of memory(?: \([^()]{1,64}\))?:\s*$")
"""Beginning of a kill, up to the words that may also begin one."""

WRAPS = re.compile(r"ut of memory|[Kk]ill(?:ed)? process|oom-kill:")
"""Beginning of lines long enough to be wrapped."""
REPORTS = {
    "kubelet": re.compile(
        r"(?:System|Cgroup) OOM encountered, victim process: (?P<comm>.{0,64}), pid: (?P<pid>\d+)"
    ),
    "oomkill": re.compile(r"OOM kill of PID (?P<pid>\d+) \(\"(?P<comm>.{0,64}?)\"\)"),
    "Datadog": re.compile(
        r"oom_kill_process called on (?P<comm>.{0,64}?) \(pid: (?P<pid>\d+)\)"
    ),
}
"""The kernel's kills without sizes, as others print them; oomkill is a tool of bcc and bpftrace."""
KUBELET_ALONE = re.compile(
    r"System OOM encountered(?!,)|"
    r"Created an OOM event in contain(?:er \\{0,2}\"(?P<group>/[^\"\\]{1,300}))?"
)
"""The kubelet's message about a kill in the kernel's log, without the victim."""
NOTHING_KILLABLE = ("no killable processes", "deadlocked on memory")
CONSTRAINED = {"CONSTRAINT_CPUSET": "cpuset", "CONSTRAINT_MEMORY_POLICY": "mempolicy"}
OLD_TABLE = ["uid", "tgid", "total_vm", "rss", "cpu", "oom_adj", "oom_score_adj", "name"]
_TABLES = (
    "uid tgid total_vm rss nr_ptes swapents oom_score_adj name",
    "uid tgid total_vm rss nr_ptes nr_pmds swapents oom_score_adj name",
    "uid tgid total_vm rss rss_anon rss_file rss_shmem pgtables_bytes swapents oom_score_adj name",
)
"""The headers of task tables, as the kernel prints them after the pid."""

TABLES_BY_WIDTH = {len(header.split()): header.split() for header in _TABLES}

IN_PAGES = {"total_vm", "rss", "rss_anon", "rss_file", "rss_shmem", "swapents"}


def scope(message: str | None) -> str | None:
    """Returns which memory ran out, by the wording of the kill."""
    text = (message or "").lower()
    if "cgroup" in text:
        return "memcg"
    if "no available memory" in text:
        return "cpuset" if "cpuset" in text else "mempolicy"
    return "global" if "out of memory" in text else None


def sizes(text: str) -> Row:
    """Returns the sizes on a line in bytes; the kernel's kB is 1024 bytes."""
    row: Row = {}
    for match in _SIZE.finditer(text):
        row[_KEYS[match["key"]]] = size_bytes(match.groupdict(), "value")
    return row


def width(cells: list[str]) -> int:
    """Returns the number of columns in a row without a header: numbers, then a name."""
    numbers = next(
        (i for i, cell in enumerate(cells) if not re.fullmatch(r"-?\d+", cell)), len(cells)
    )
    return numbers + 1


def task(match: re.Match[str], columns: list[str] | None) -> Row | None:
    """Returns a row of the task table.

    Without a header (`columns`), the columns follow from their number.
    """
    cells, header = match["rest"].split(), columns
    columns = columns or TABLES_BY_WIDTH.get(width(cells), OLD_TABLE)
    if len(cells) < len(columns):
        return None
    name = match["rest"].split(None, len(columns) - 1)[-1].strip()
    given = dict(zip(columns, [*cells[: len(columns) - 1], name], strict=True))
    row: Row = {"pid": numbers.whole(match["pid"]), "comm": given.pop("name")}
    for column, value in given.items():
        suffix = "_pages" if column in IN_PAGES else ""
        if (number := numbers.whole(value)) is not None:
            row[column + suffix] = number
    size = row.get("nr_ptes", 0)
    if not header and size and size % PAGE == 0:
        # Since Linux 4.19, this column has bytes. Hardly any process has 4,096 page tables.
        row["pgtables_bytes"] = row.pop("nr_ptes")
    elif "nr_ptes" in row:
        row["pgtables_bytes"] = (row.pop("nr_ptes") + row.pop("nr_pmds", 0)) * PAGE
    return row
