"""Random kernel reports of OOM kills, with a truth that is known because they are written here.

The lines are those of mm/oom_kill.c, mm/memcontrol.c and lib/show_mem.c of Linux 4.4, 4.19, 5.4,
6.1 and 6.8, as dmesg, journald and syslog print them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

BOOT = datetime(2026, 3, 14, 6, 0, tzinfo=UTC)
BOOT_S = 100_000.0
"""Seconds from one boot to the next."""

PAGE_KIB = 4
GO = ("ledger", "billing-api", "etcd", "kube-apiserver")
NOT_GO = ("java", "postgres", "python3", "node", "redis-server", "mysqld", "php-fpm")


@dataclass(frozen=True)
class Task:
    """A row of the kernel's table; sizes in KiB."""

    pid: int
    name: str
    anon: int
    file: int
    shmem: int
    adj: int = 0

    @property
    def rss(self) -> int:
        return self.anon + self.file + self.shmem


@dataclass(frozen=True)
class Group:
    """A memory cgroup at its limit; sizes in KiB.

    Attributes:
        path: of the group that has the limit.
        of_task: path of the group of the victim, which is this one or below it.
    """

    path: str
    of_task: str
    limit: int
    usage: int
    failcnt: int
    swap: int
    anon: int
    file: int
    shmem: int
    kernel: int


@dataclass(frozen=True)
class Kill:
    """A kill with its report.

    Attributes:
        after_s: since the first boot.
        kernel: its release, of which the wording depends.
        group: None if the host or its cpuset is out of memory.
        cpuset: whether only nodes of a cpuset are out of memory.
        tasks: those of the group, or of the host.
        listed: the number of rows that a log still has; None for all.
        together: others that die with it, by `memory.oom.group`.
        boot: the number of reboots before it.
    """

    after_s: float
    kernel: str
    victim: Task
    parent: Task | None
    group: Group | None
    cpuset: bool
    ram_kib: int
    tasks: tuple[Task, ...]
    listed: int | None
    together: tuple[Task, ...] = ()
    is_reaped: bool = False
    boot: int = 0

    @property
    def clock_s(self) -> float:
        """What the kernel's clock shows, which begins again with each boot."""
        return self.after_s - BOOT_S * self.boot

    @property
    def at(self) -> datetime:
        return BOOT + timedelta(seconds=self.after_s)

    @property
    def rows(self) -> tuple[Task, ...]:
        return self.tasks if self.listed is None else self.tasks[: self.listed]

    @property
    def scope(self) -> str:
        return "memcg" if self.group else "cpuset" if self.cpuset else "global"


def _paths(random: Random, name: str) -> tuple[str, str]:
    """Returns the path of the group with the limit, and that of the victim."""
    container = f"{random.getrandbits(256):064x}"
    pod = f"{random.getrandbits(32):08x}-1b2c-4d5e-8f90-{random.getrandbits(48):012x}"
    v1 = f"/kubepods/burstable/pod{pod}"
    v2 = f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{pod.replace('-', '_')}.slice"
    return random.choice(
        [
            (f"/system.slice/{name}.service",) * 2,
            (f"/docker/{container}",) * 2,
            (f"/system.slice/docker-{container}.scope",) * 2,
            (v1, f"{v1}/{container}"),
            (f"{v1}/{container}",) * 2,
            (f"{v2}/cri-containerd-{container}.scope",) * 2,
            (v2, f"{v2}/cri-containerd-{container}.scope"),
        ]
    )


def kill(random: Random, name: str, pid: int, after_s: float, ram: int) -> Kill:
    """Returns a kill that the kernel could choose: of the largest task that it looks at."""
    in_group = random.random() < 0.6
    used = int(ram * random.choice([0.003, 0.03, 0.2, 0.5]) * random.uniform(0.7, 1.3))
    used = used if in_group else int(ram * random.uniform(0.75, 0.93))
    main_share = random.uniform(0.55, 0.95)
    others = random.choice([0, 0, 1, 2] if in_group else [1, 3, 6])
    parts = [main_share] + [
        random.uniform(0, (1 - main_share) / max(others, 1)) for _ in range(others)
    ]

    def task(number: int, share: float) -> Task:
        rss = int(used * share) // PAGE_KIB
        file = int(rss * random.uniform(0, 0.06))
        # Other processes may have most of the files in memory mapped, all of them the same.
        shmem = random.choice([0, 0, rss // 20, rss // 2 if number else 0])
        adj = random.choice([0, 0, 0, 999, -998]) if in_group or number else 0
        anon = rss - file - shmem
        sizes = (anon * PAGE_KIB, file * PAGE_KIB, shmem * PAGE_KIB)
        if not number:
            return Task(pid, name, *sizes, max(adj, 0))
        own = pid + random.choice([-1, 1]) * (17 * number + random.randrange(9))
        return Task(own, random.choice([name, *NOT_GO, "sshd", "pause"]), *sizes, adj)

    tasks = tuple(task(number, share) for number, share in enumerate(parts))
    victim = tasks[0]
    kernel = random.choice(["4.4", "4.19", "5.4", "6.1", "6.8"])
    parent = None
    if kernel == "4.4" and not in_group and random.random() < 0.3:
        parent = Task(victim.pid - 9, "supervisor", 4096, 1024, 0)
    group = None
    if in_group:
        path, of_task = _paths(random, name)
        anon = sum(each.anon for each in tasks)
        # Pages that several have mapped are in the group once.
        mapped = [each.shmem for each in tasks]
        shmem = random.choice([sum(mapped), max(mapped)])
        cached = random.choice([0, 128, used // 8]) + shmem
        # In Linux 4.4 and 4.19 (cgroup v1), as in v2, the usage includes memory of the kernel.
        kernel_memory = random.choice([900, used // 90, used // 9])
        limit = (anon + cached + kernel_memory) // 1024 * 1024 + 1024
        usage = limit - random.choice([0, 0, 4, 132])
        swap = random.choice([0, 0, 0, used // 7])
        group = Group(
            path,
            of_task,
            limit,
            usage,
            random.choice([0, 1, 812, 105_332]),
            swap,
            anon,
            cached,
            shmem,
            kernel_memory,
        )
    together: tuple[Task, ...] = ()
    if group and others and kernel in ("5.4", "6.1", "6.8") and random.random() < 0.25:
        together = tasks[1:]
    rows = random.choice([None, None, None, 0, max(len(tasks) - 1, 0)])
    # Older kernels do not print which it was.
    in_cpuset = not in_group and kernel not in ("4.4", "4.19") and random.random() < 0.25
    table = list(tasks)
    random.shuffle(table)
    return Kill(
        after_s, kernel, victim, parent, group, in_cpuset, ram, tuple(table), rows, together,
        random.random() < 0.5,
    )  # fmt: skip


def kill_of_go(random: Random) -> Kill:
    """Returns one kill of a program that may have a log of its own."""
    ram = random.choice([512, 2048, 7963]) * 1024
    pid = random.randrange(400, 30_000)
    return kill(random, random.choice(GO), pid, random.uniform(6000, 9000), ram)


def lines(it: Kill) -> Iterator[str]:
    """Yields the report of a kill as the kernel prints it."""
    is_old = it.kernel in ("4.4", "4.19")
    mask = {"4.4": "0x24200ca", "4.19": "0x6200ca(GFP_HIGHUSER_MOVABLE), nodemask=(null)"}
    gfp = mask.get(
        it.kernel,
        "0xcc0(GFP_KERNEL)" if it.group else "0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP)",
    )
    yield f"{it.victim.name} invoked oom-killer: gfp_mask={gfp}, order=0, oom_score_adj={it.victim.adj}"
    cpuset = "/batch" if it.cpuset else "/"
    if is_old:
        yield f"{it.victim.name} cpuset={cpuset} mems_allowed=0"
    release = {"4.4": "4.4.0-210-generic", "4.19": "4.19.0-27-amd64", "5.4": "5.4.0-72-generic"}
    yield f"CPU: 1 PID: {it.victim.pid} Comm: {it.victim.name} Not tainted {release.get(it.kernel, f'{it.kernel}.0-18-amd64')} #1"
    yield "Hardware name: QEMU Standard PC (Q35 + ICH9, 2009), BIOS 1.16.2"
    yield "Call Trace:"
    yield " dump_stack+0x6d/0x8b"
    yield from (_group_lines if it.group else _host_lines)(it)
    yield from _table(it)
    group = it.group
    victim = it.victim
    if not is_old:
        constraint = "MEMCG" if group else "CPUSET" if it.cpuset else "NONE"
        where = (
            f"oom_memcg={group.path},task_memcg={group.of_task}"
            if group
            else ("" if it.cpuset else "global_oom,") + "task_memcg=/user.slice"
        )
        yield (
            f"oom-kill:constraint=CONSTRAINT_{constraint},nodemask=(null),cpuset={cpuset},mems_allowed=0,"
            f"{where},task={victim.name},pid={victim.pid},uid=998"
        )
    what = "Memory cgroup out of memory" if group else "Out of memory"
    sizes = _sizes(victim)
    if is_old:
        chosen = it.parent or victim
        yield f"{what}: Kill process {chosen.pid} ({chosen.name}) score {min(999, 300 + victim.rss % 600)} or sacrifice child"
        yield f"Killed process {victim.pid} ({victim.name}) {sizes}"
    else:
        yield f"{what}: Killed process {victim.pid} ({victim.name}) {sizes}, UID:998 pgtables:{victim.rss // 400}kB oom_score_adj:{victim.adj}"
    if it.together and group:
        yield f"Tasks in {group.path} are going to be killed due to memory.oom.group set"
        for each in (victim, *it.together):
            yield f"{what}: Killed process {each.pid} ({each.name}) {_sizes(each)}, UID:998 pgtables:{each.rss // 400}kB oom_score_adj:{each.adj}"
    if it.is_reaped:
        yield f"oom_reaper: reaped process {victim.pid} ({victim.name}), now anon-rss:0kB, file-rss:{victim.file}kB, shmem-rss:{victim.shmem}kB"


def _sizes(task: Task) -> str:
    return f"total-vm:{task.rss * 3 + 1048576}kB, anon-rss:{task.anon}kB, file-rss:{task.file}kB, shmem-rss:{task.shmem}kB"


def _group_lines(it: Kill) -> Iterator[str]:
    group = it.group
    assert group
    unlimited = 9007199254740988
    if it.kernel in ("4.4", "4.19"):
        yield f"Task in {group.of_task} killed as a result of limit of {group.path}"
        yield f"memory: usage {group.usage}kB, limit {group.limit}kB, failcnt {group.failcnt}"
        yield f"memory+swap: usage {group.usage + group.swap}kB, limit {unlimited}kB, failcnt 0"
        yield f"kmem: usage {group.kernel}kB, limit {unlimited}kB, failcnt 0"
        stats = (
            f"cache:{group.file}KB rss:{group.anon}KB rss_huge:0KB "
            + f"shmem:{group.shmem}KB " * (it.kernel == "4.19")
            + f"mapped_file:0KB dirty:0KB writeback:0KB inactive_anon:0KB active_anon:{group.anon}KB "
            "inactive_file:0KB active_file:0KB unevictable:0KB"
        )
        # Each group has only what is charged to itself, not to the groups in it.
        own = stats if group.path == group.of_task else re.sub(r":\d+KB", ":0KB", stats)
        yield f"Memory cgroup stats for {group.path}: {own}"
        if group.path != group.of_task:
            yield f"Memory cgroup stats for {group.of_task}: {stats}"
        return
    yield f"memory: usage {group.usage}kB, limit {group.limit}kB, failcnt {group.failcnt}"
    if it.kernel == "5.4":
        yield f"memory+swap: usage {group.usage + group.swap}kB, limit {unlimited}kB, failcnt 0"
        yield f"kmem: usage {group.kernel}kB, limit {unlimited}kB, failcnt 0"
    else:
        yield f"swap: usage {group.swap}kB, limit {unlimited if group.swap else 0}kB, failcnt 0"
    yield f"Memory cgroup stats for {group.path}:"
    yield f"anon {group.anon * 1024}"
    yield f"file {group.file * 1024}"
    if it.kernel in ("6.1", "6.8"):
        yield f"kernel {group.kernel * 1024}"
    yield "sock 0"
    yield f"shmem {group.shmem * 1024}"
    yield "file_mapped 0"
    yield "file_dirty 0"


def _host_lines(it: Kill) -> Iterator[str]:
    free = it.ram_kib // 90
    yield "Mem-Info:"
    anon = sum(each.anon for each in it.tasks) // PAGE_KIB
    yield f"active_anon:{anon} inactive_anon:0 isolated_anon:0"
    yield f" free:{free // PAGE_KIB} free_pcp:0 free_cma:0"
    yield f"Node 0 DMA32 free:{free}kB min:{free // 2}kB low:{free}kB high:{free}kB present:{it.ram_kib}kB managed:{it.ram_kib}kB"
    yield "0 pages in swap cache"
    yield "Free swap  = 0kB"
    yield "Total swap = 0kB"
    yield f"{it.ram_kib // PAGE_KIB} pages RAM"
    yield "0 pages HighMem/MovableOnly"
    yield f"{it.ram_kib // PAGE_KIB // 40} pages reserved"


def _table(it: Kill) -> Iterator[str]:
    if it.kernel != "4.4":
        yield "Tasks state (memory values in pages):"
    head = {
        "4.4": "[ pid ]   uid  tgid total_vm      rss nr_ptes nr_pmds swapents oom_score_adj name",
        "6.8": "[  pid  ]   uid  tgid total_vm      rss rss_anon rss_file rss_shmem pgtables_bytes swapents oom_score_adj name",
    }
    yield head.get(
        it.kernel,
        "[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name",
    )
    for each in it.rows:
        pages = [size // PAGE_KIB for size in (each.rss, each.anon, each.file, each.shmem)]
        vm = pages[0] * 3 + 262144
        if it.kernel == "4.4":
            yield f"[{each.pid:5d}]   998 {each.pid:5d} {vm:8d} {pages[0]:8d} {pages[0] // 500:7d} {4:7d} {0:8d} {each.adj:13d} {each.name}"
            continue
        parts = f" {pages[1]:8d} {pages[2]:8d} {pages[3]:9d}" if it.kernel == "6.8" else ""
        yield f"[{each.pid:7d}]   998 {each.pid:5d} {vm:8d} {pages[0]:8d}{parts} {each.rss * 2:14d} {0:8d} {each.adj:13d} {each.name}"


def _journal(at: datetime, line: str, who: str, pid: int | None) -> str:
    row = {
        "__REALTIME_TIMESTAMP": str(int(at.timestamp() * 1e6)),
        "_HOSTNAME": "web1",
        "SYSLOG_IDENTIFIER": who,
        "_TRANSPORT": "stdout" if pid else "kernel",
        "MESSAGE": line,
    }
    return json.dumps(row | ({"_PID": str(pid)} if pid else {}))


def _clock_s(at: datetime) -> float:
    return (at - BOOT).total_seconds() % BOOT_S


def _of(who: str, pid: int | None) -> str:
    return f"{who}[{pid}]" if pid else who


Prefix = Callable[[datetime, str, str, "int | None"], str]
PREFIXES: dict[str, Prefix] = {
    "dmesg": lambda at, line, *_: f"[{_clock_s(at):12.6f}] {line}",
    "dmesg -T": lambda at, line, *_: f"[{at:%a %b %e %H:%M:%S %Y}] {line}",
    "short": lambda at, line, who, pid: f"{at:%b %d %H:%M:%S} web1 {_of(who, pid)}: {line}",
    "short-iso": lambda at, line, who, pid: f"{at:%Y-%m-%dT%H:%M:%S+0000} web1 {_of(who, pid)}: {line}",
    "syslog": lambda at, line, who, pid: (
        f"{at:%b %d %H:%M:%S} web1 {_of(who, pid)}: "
        + ("" if pid else f"[{_clock_s(at):12.6f}] ")
        + line
    ),
    "rfc5424": lambda at, line, who, pid: f"<6>1 {at:%Y-%m-%dT%H:%M:%S.%f}Z web1 {who} {pid or '-'} - - {line}",
    "journal": _journal,
}  # fmt: skip
SHOWS_YEAR = ("dmesg -T", "short-iso", "rfc5424", "journal")
WITH_PROGRAMS = ("short", "short-iso", "syslog", "rfc5424", "journal")


def kills(random: Random) -> list[Kill]:
    """Returns one or several kills, often of the same program."""
    name = random.choice([*GO, *NOT_GO[:4]])
    pid, after_s = random.randrange(400, 32000), random.uniform(2000, 8000)
    ram = random.choice([512, 2048, 7963, 32_101]) * 1024
    found = []
    for _ in range(random.choice([1, 1, 1, 2, 3, 6])):
        boot = int(after_s // BOOT_S)
        written = kill(random, name, pid, round(after_s, 6), ram)
        found.append(replace(written, boot=boot))
        pid = random.choice([pid + random.randrange(50, 900), random.randrange(400, 32000)])
        after_s += random.choice([2.0, 40.0, 700.0, 5000.0]) * random.uniform(0.7, 1.3)
        if random.random() < 0.15:
            # The next boot was up for less time before its kill, so that the clock falls.
            after_s = BOOT_S * (boot + 1) + random.uniform(0.2, 0.8) * written.clock_s
        name = random.choice([name, name, name, random.choice([*GO, *NOT_GO])])
    return found


def text(found: Sequence[Kill], prefix: str) -> str:
    """Returns the reports of kills in a log of this format."""
    write = PREFIXES[prefix]
    return "".join(
        f"{write(it.at + timedelta(microseconds=7 * number), line, 'kernel', None)}\n"
        for it in found
        for number, line in enumerate(lines(it))
    )


def cycles(random: Random, had: int, since_s: float) -> Iterator[tuple[float, str]]:
    """Yields times and lines of cycles with GOGC=100, whose heap fits into this many MiB."""
    ends = had * random.choice([0.05, 0.3, 0.5]), had * random.choice([0.2, 0.45, 0.6, 0.9])
    # After two minutes without a cycle, the runtime would force one.
    count = max(random.choice([2, 6, 30, 120]), int(since_s / 55) + 1)
    live = 2
    for number in range(1, count + 1):
        goal = max(4, 2 * live)
        start = int(goal * random.uniform(0.85, 0.97))
        end = start + random.choice([0, 0, start // 40])
        live = max(1, min(int(ends[0] + (ends[1] - ends[0]) * number / count), end))
        if end > 0.95 * had:
            break
        at_s = since_s * (number - random.uniform(0, 0.9)) / (count + 1)
        mark_ms = min(end / 9 + 1, 90 * since_s / (count + 1))
        yield (
            at_s,
            f"gc {number} @{at_s:.3f}s 1%: 0.031+{mark_ms:.1f}+0.012 ms clock, "
            f"0.062+0.5/{mark_ms / 2:.1f}/2.1+0.024 ms cpu, {start}->{end}->{live} MB, "
            f"{goal} MB goal, 0 MB stacks, 0 MB globals, 2 P",
        )


def with_program(random: Random, it: Kill, prefix: str) -> str:
    """Returns the log of a host with the lines of the victim and of its kill."""
    return _with_programs(random, it, prefix, [(it.victim.name, it.victim.pid, 0.0)])


def with_neighbour(random: Random, it: Kill, prefix: str) -> tuple[str, int]:
    """Returns the log of a host with the lines of the victim and of another program, and its pid.

    The other program may go on after the kill.
    """
    name = random.choice([name for name in GO if name != it.victim.name])
    pid, goes_on_s = it.victim.pid + random.choice([1, 37]), random.choice([0.0, 120.0])
    own = (it.victim.name, it.victim.pid, 0.0)
    return _with_programs(random, it, prefix, [own, (name, pid, goes_on_s)]), pid


def _with_programs(
    random: Random, it: Kill, prefix: str, programs: Sequence[tuple[str, int, float]]
) -> str:
    """Returns the log of a host; the programs have a name, a pid, and seconds after the kill."""
    write = PREFIXES[prefix]
    written: list[tuple[datetime, str, str, int | None]] = [
        (it.at + timedelta(microseconds=7 * number), line, "kernel", None)
        for number, line in enumerate(lines(it))
    ]
    for name, pid, goes_on_s in programs:
        since_s = min(random.choice([40.0, 900.0, 5000.0]), it.after_s - 1)
        begin = it.at + timedelta(seconds=goes_on_s - since_s)
        had = it.victim.anon // 1024 if pid == it.victim.pid else random.choice([30, 400])
        written += [
            (begin + timedelta(seconds=at_s), line, name, pid)
            for at_s, line in cycles(random, had, since_s)
        ]
    ordered = sorted(written, key=lambda line: line[0])
    return "".join(f"{write(*line)}\n" for line in ordered)
