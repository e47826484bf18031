"""Random ends of Go programs by their own runtime, after gctrace or without, with a known truth.

The messages are those of runtime/malloc.go, mheap.go, mem_linux.go, mem_windows.go, stack.go,
panic.go and map.go of Go 1.8 to 1.26.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.helpers.written_kills import cycles

if TYPE_CHECKING:
    from random import Random

ENDS = ("mmap", "block", "windows", "map", "stack", "panic", "quit", "killed", "done")
FOR_MEMORY = ("mmap", "block", "windows")
NAMES = ("ledger", "billing-api", "gateway")


@dataclass(frozen=True)
class Program:
    """A program and its end.

    Attributes:
        end: `mmap`, `block` and `windows` are refusals of memory by the system; `map`, `stack`,
            `panic` and `quit` other ends by the runtime; `killed` if its parent reports SIGKILL,
            `done` if nothing is printed.
        had: MiB that its heap fits into.
        ran_s: seconds that it ran.
        requested: bytes that it asked for, in the message.
        in_use: bytes in use by the message.
        traced: whether its cycles are in the log.
    """

    name: str
    end: str
    had: int
    ran_s: float
    requested: int
    in_use: int
    traced: bool


_STACK = """\
goroutine 1 [running]:
main.load({{0xc000180000, 0x{:x}}})
\t/src/{}/main.go:41 +0x85
main.main()
\t/src/{}/main.go:12 +0x1d
"""
_RUNTIME = """\
runtime stack:
runtime.throw({{0x5b1f2e?, 0x4000000?}})
\t/usr/local/go/src/runtime/panic.go:1101 +0x48
{}
runtime.mallocgc(0x3938700, 0x0, 0x0)
\t/usr/local/go/src/runtime/malloc.go:1184 +0x2a5
runtime.systemstack(0x700000800000)
\t/usr/local/go/src/runtime/asm_amd64.s:514 +0x4a
"""
_HEAP_BEGIN = 0xC000000000


def _runtime(it: Program) -> str:
    """Returns the traceback of the runtime's own stack."""
    called = "runtime.newstack()\n\t/usr/local/go/src/runtime/stack.go:1109 +0x4c5"
    if it.end == "mmap":
        at = _HEAP_BEGIN + it.in_use
        called = (
            f"runtime.sysMapOS(0x{at:x}, 0x{it.requested:x})\n"
            "\t/usr/local/go/src/runtime/mem_linux.go:167 +0x11b"
        )
    elif it.end == "block":
        called = (
            "runtime.(*mcache).allocLarge(0x0?, 0x3938700, 0x1)\n"
            "\t/usr/local/go/src/runtime/mcache.go:236 +0x176"
        )
    elif it.end == "windows":
        called = (
            f"runtime.sysUsedOS(0xc00a000000, 0x{it.requested:x})\n"
            "\t/usr/local/go/src/runtime/mem_windows.go:83 +0x1bb"
        )
    return _RUNTIME.format(called)


def crash(it: Program) -> str:
    """Returns what the runtime prints at the end of a program."""
    stack = "\n" + _STACK.format(it.requested, it.name, it.name)
    first = {
        "mmap": f"fatal error: runtime: out of memory\n\n{_runtime(it)}",
        "block": f"runtime: out of memory: cannot allocate {it.requested}-byte block "
        f"({it.in_use} in use)\nfatal error: out of memory\n\n{_runtime(it)}",
        "windows": f"runtime: VirtualAlloc of {it.requested} bytes failed with errno=1455\n"
        f"fatal error: out of memory\n\n{_runtime(it)}",
        "map": "fatal error: concurrent map writes\n",
        "stack": "runtime: goroutine stack exceeds 1000000000-byte limit\n"
        "runtime: sp=0xc0200e0378 stack=[0xc0200e0000, 0xc0400e0000]\n"
        f"fatal error: stack overflow\n\n{_runtime(it)}",
        "panic": "panic: runtime error: index out of range [5] with length 3\n",
        "quit": "SIGQUIT: quit\nPC=0x46d8c1 m=0 sigcode=0\n",
    }
    if it.end == "killed":
        return "signal: killed\n"
    return f"{first[it.end]}{stack}exit status 2\n" if it.end in first else ""


def programs(random: Random) -> list[Program]:
    count = random.choice([1, 1, 1, 2, 3])
    return [
        Program(
            name,
            random.choice(ENDS),
            random.choice([40, 300, 1500]),
            round(random.uniform(20, 3000)),
            random.choice([4 << 20, 64 << 20, 1 << 30]),
            random.randrange(50, 2000) * (2 << 20),
            random.random() < 0.7,
        )
        for name in random.sample(NAMES, count)
    ]


def written(random: Random) -> tuple[list[Program], str, str]:
    """Returns the programs, the prefix of their lines, and their log, one after another."""
    found = programs(random)
    form = random.choice(["none", "compose", "journal"])
    text, at_s = "", 0.0
    for number, it in enumerate(found):
        own = (
            "".join(f"{line}\n" for _, line in cycles(random, it.had, it.ran_s))
            if it.traced
            else ""
        )
        at_s += it.ran_s
        begin = {
            "none": "",
            "compose": f"{it.name}-1  | ",
            "journal": f"2026-03-14T{9 + number:02d}:21:07+0000 web1 {it.name}[{4711 + number}]: ",
        }[form]
        text += "".join(f"{begin}{line}\n" for line in (own + crash(it)).splitlines())
    return found, form, text
