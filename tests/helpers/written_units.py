"""Random ends of systemd units, as its manager and systemd-oomd log them, with a known truth.

The messages are those of src/core/unit.c, service.c and src/oom/oomd-manager.c of systemd 239 to
256.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from tests.helpers.written_kills import PREFIXES, cycles

if TYPE_CHECKING:
    from random import Random

START = datetime(2026, 3, 14, 8, 0, tzinfo=UTC)
GO = ("ledger", "billing-api", "gateway", "searcher")
NOT_GO = ("postgresql", "redis-server", "nginx", "mysql")
ENDS = ("oom", "child", "pressure", "swap", "kill", "panic", "done", "running")


@dataclass(frozen=True)
class Unit:
    """A unit and its last end.

    Attributes:
        end: `oom` if the kernel killed its main process, `child` if another process of it,
            `pressure` or `swap` if systemd-oomd killed it, `kill` if somebody sent SIGKILL, `panic`
            if it ended with exit code 2, `done` if with 0, `running` if it did not end.
        limit: MemoryMax in MiB; None if there is none.
        peak: memory in MiB, as the manager prints it with the CPU time; None if it does not.
        after_s: seconds from the start of the log to its end.
        ran_s: seconds that it ran before.
        release: of systemd.
    """

    name: str
    pid: int
    end: str
    limit: int | None
    peak: int | None
    after_s: float
    ran_s: float
    restarts: int
    release: int

    @property
    def unit(self) -> str:
        return f"{self.name}.service"

    @property
    def at(self) -> datetime:
        return START + timedelta(seconds=self.after_s)

    @property
    def began(self) -> datetime:
        return self.at - timedelta(seconds=self.ran_s)

    @property
    def is_for_memory(self) -> bool:
        return self.end in ("oom", "child", "pressure", "swap")


def units(random: Random) -> list[Unit]:
    ends = random.choice([("oom",), ("oom", "running"), ENDS])
    names = list(
        dict.fromkeys(random.choices([*GO, *GO, *NOT_GO], k=random.choice([1, 1, 2, 3])))
    )
    release = random.choice([239, 245, 249, 252, 256])
    found = []
    for name in names:
        limit = random.choice([None, 64, 256, 512, 1000, 2048])
        end = random.choice(ends)
        if end in ("pressure", "swap") and release < 248:
            end = "oom"
        used = limit or 700
        peak = used if end == "oom" and limit else int(used * random.uniform(0.2, 0.8))
        found.append(
            Unit(
                name,
                random.randrange(400, 30_000),
                end,
                limit,
                peak if release >= 254 else None,
                round(random.uniform(4000, 40_000)),
                round(random.uniform(5, 3900)),
                random.choice([0, 0, 1, 7]),
                release,
            )
        )
    return found


Line = tuple[datetime, str, str, int | None]
"""A time, a message, and the name and pid of the program that logs it."""


def messages(it: Unit) -> Iterator[Line]:  # noqa: C901  # one for each kind of end
    """Yields what the manager of a unit logs from its start to its end."""

    def said(ms: float, text: str) -> Line:
        return it.at + timedelta(milliseconds=ms), f"{it.unit}: {text}", "systemd", 1

    described = (
        f"{it.unit} - The {it.name} service" if it.release >= 252 else f"The {it.name} service"
    )
    yield it.began, f"Started {described}.", "systemd", 1
    if it.end == "running":
        return
    if it.end in ("pressure", "swap"):
        why = (
            "memory pressure for /system.slice being 62.11% > 60.00% for > 20s with reclaim activity"
            if it.end == "pressure"
            else "memory used (7710195712) / total (8132591616) and swap used (1932735283) / "
            "total (2147479552) being more than 90.00%"
        )
        yield it.at, f"Killed /system.slice/{it.unit} due to {why}", "systemd-oomd", 612
        yield said(20, "systemd-oomd killed 7 process(es) in this unit.")
    if it.end in ("oom", "child") and it.release >= 243:
        yield said(0, "A process of this unit has been killed by the OOM killer.")
    if it.end == "child" and it.release < 243:
        return
    code = {
        "kill": "code=killed, status=9/KILL",
        "oom": "code=killed, status=9/KILL",
        "pressure": "code=killed, status=9/KILL",
        "swap": "code=killed, status=9/KILL",
        "panic": "code=exited, status=2/INVALIDARGUMENT",
    }
    if it.end in code:
        yield said(30, f"Main process exited, {code[it.end]}")
    result = {"kill": "signal", "panic": "exit-code", "done": ""}.get(it.end, "oom-kill")
    if it.end == "oom" and it.release < 243:
        result = "signal"
    if it.end == "done":
        yield said(31, "Succeeded." if it.release < 246 else "Deactivated successfully.")
    else:
        yield said(31, f"Failed with result '{result}'.")
    if it.peak is not None:
        yield said(
            32,
            f"Consumed 3min 12.501s CPU time, {it.peak:.1f}M memory peak, 0B memory swap peak.",
        )
    if it.end != "done" and it.restarts:
        yield said(5100, f"Scheduled restart job, restart counter is at {it.restarts}.")
        yield it.at + timedelta(seconds=5.2), f"Started {described}.", "systemd", 1


def journal(found: Sequence[Unit], prefix: str, own: Sequence[Line] = ()) -> str:
    """Returns the messages about all units, in the order of their times, after a log of one."""
    lines = [*own, *(line for it in found for line in messages(it))]
    write = PREFIXES[prefix]
    ordered = sorted(lines, key=lambda line: line[0])
    return "".join(f"{write(at, text, name, pid)}\n" for at, text, name, pid in ordered)


def trace(random: Random, it: Unit) -> list[Line]:
    """Returns gctrace of a unit."""
    had = it.peak or it.limit or 700
    return [
        (it.began + timedelta(seconds=at_s), line, it.name, it.pid)
        for at_s, line in cycles(random, had, it.ran_s)
    ]


def show(found: Sequence[Unit]) -> str:
    """Returns what `systemctl show` prints of several units."""
    parts = []
    for it in found:
        result = {
            "kill": "signal",
            "panic": "exit-code",
            "done": "success",
            "running": "success",
        }
        if it.release < 243:
            result |= {"oom": "signal", "child": "success"}
        status = {"done": (1, 0), "running": (0, 0), "panic": (1, 2), "child": (1, 0)}
        code, number = status.get(it.end, (2, 9))
        limit = "infinity" if it.limit is None else it.limit << 20
        memory = (
            f"MemoryCurrent={100 << 20}\n"
            if it.end == "running"
            else "MemoryCurrent=[not set]\n"
        )
        parts.append(
            f"Type=simple\nRestart=no\nResult={result.get(it.end, 'oom-kill')}\nNRestarts={it.restarts}\n"
            f"ExecMainPID={it.pid}\nExecMainCode={code}\nExecMainStatus={number}\n{memory}"
            f"MemoryHigh=infinity\nMemoryMax={limit}\nMemorySwapMax=infinity\nId={it.unit}\n"
            f"ActiveState={'active' if it.end == 'running' else 'inactive' if it.end == 'done' else 'failed'}\n"
        )
    return "\n".join(parts)


FORMS: tuple[str, ...] = ("short", "short-iso", "syslog", "rfc5424", "journal")


def written(random: Random) -> tuple[str, list[Unit], str, Unit | None]:
    """Returns the form, the truth, its log, and the unit whose cycles are in it, if any."""
    found = units(random)
    form = random.choice([*FORMS, "show", "show and journal"])
    traced = next((it for it in found if it.name in GO), None)
    traced = traced if form != "show" and random.random() < 0.5 else None
    own = trace(random, traced) if traced else ()
    if form == "show":
        return form, found, show(found), None
    text = journal(found, "short-iso" if "show" in form else form, own)
    return form, found, (show(found) + "\n" if "show" in form else "") + text, traced


WRITERS: dict[str, Callable[..., str]] = {"journal": journal, "show": show}
