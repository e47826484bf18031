"""Reads how the Go runtime ends a program to which the system gives no memory.

Each program says so once: in one line, or in two that follow each other, with a traceback after
them (runtime/mem_*.go, malloc.go, panic.go of Go 1.0 to 1.26).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gctrace_analyzer.ingest import numbers
from gctrace_analyzer.ingest.evidence.configured import go_versions
from gctrace_analyzer.ingest.evidence.message import (
    AT_START,
    IMPOSSIBLE_SIZE,
    LOCKED_MEMORY,
    UNUSABLE_ADDRESS,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gctrace_analyzer.ingest.evidence.message import Message, Row

_HEADING = r"^(?:# )?[a-z0-9-]+\.[a-z]+/[^ :(]+$"
"""What the go command prints above the errors of the compiler for a package."""

HINT = (
    r"runtime: out of memory|fatal error: |runtime: VirtualAlloc|not in usable range|"
    r"runtime: address space conflict|runtime: cannot map pages|"
    r"runtime\.(?:sysMap|largeAlloc|mallocgc|throw|schedinit|mallocinit|doInit1?)\(|/asm_\w+\.s:|"
    rf"panic: |goroutine \d+ \[running|runtime: mmap: |{_HEADING}|"
    r"[A-Za-z]:[/\\][^\n]{0,99}[/\\]src[/\\]runtime[/\\]|\bcmd/(?:compile|link)/"
)

_OUT_OF_MEMORY = re.compile(
    # Whatever precedes it is a prefix of a log.
    r"(?<![\w.])(?:"
    r"(?:(?P<fatal>fatal error: )(?:runtime: |\w{1,20}: )?|runtime: )"
    r"(?:out of memory(?: \(stackalloc\)| allocating [A-Za-z ]{1,40})?|cannot allocate memory"
    r"|cannot map pages in arena address space|cannot reserve arena virtual address space"
    r"|failed to (?:reserve|allocate) [a-z ]{0,40}(?:memory|bitmap)[a-z ]{0,40})"
    r"(?:: cannot allocate (?P<requested>-?\d{1,30})-byte block "
    r"\((?P<in_use>\d{1,30}) in use\)(?: fatal error: out of memory)?)?"
    # Windows: no memory, and no room in the paging file
    r"|runtime: mmap: (?P<locked>too much locked memory).{0,30}"
    r"|runtime: VirtualAlloc of (?P<asked>\d{1,30}) bytes failed with errno=(?P<errno>8|1455)"
    r")(?:[\s\"'`]*$|\s{1,9}(?:←|<-|#|//))"  # the end, or the remark of who pasted it
)
_UNUSABLE = re.compile(
    # Windows: the address is reserved by somebody else (ERROR_INVALID_ADDRESS).
    r"not in usable range|runtime: address space conflict|runtime: VirtualAlloc of .{1,40}errno=487"
)
"""The system gave the runtime memory at an address that it cannot use, in a 32-bit program."""

_ARGUMENTS = re.compile(
    r"runtime\.(?:sysMap\(0x(?P<at>[0-9a-f]{1,16})\??, |largeAlloc\(|mallocgc\()"
    r"0x(?P<size>[0-9a-f]{1,16})[,)]"
)
"""The size is an argument of these functions in a traceback, where its register was not reused."""

_ARENA, _MOST_ARENA_BYTES = 0xC000000000, 1 << 38
_OLD_ARENAS = (0xC042000000, 0xC208000000, 0xC420000000, 0xC820000000)
"""Where the heap of a 64-bit program begins, from Go 1.11 on and before (arenaHint, malloc.go)."""

_PAGE_BYTES = 4096
_AT_START = re.compile(r"runtime\.(?:schedinit|mallocinit|doInit1?)\(|sysMap\(0xc000000000,")
"""Functions that run before main, and the address of the first memory of a heap."""

_OF_OLD_GO = re.compile(r"runtime\.throw\(0x")
"""How Go prints a string that is an argument up to 1.16: from 1.17 on in braces."""

_PLATFORM = re.compile(
    # `go version`, people's words, and the names of archives of Go
    r"\b[Gg]o ?1\.\d{1,2}[^\s/-]{0,9}[ .(-]"
    r"(?P<goos>linux|windows|darwin)[-/](?P<goarch>386|arm(?!64)|[a-z][a-z0-9]{2,8})"
)
_WINDOWS = re.compile(r"^\s*[A-Za-z]:[/\\].{0,99}[/\\]src[/\\]runtime[/\\]\w+\.go:\d")
"""A path of the runtime in a traceback."""
_TOOLCHAIN = re.compile(r"^(?:\s.{0,300}/)?cmd/(?P<tool>compile|link)/")
"""A function of the Go toolchain in a traceback, or its file."""

_ASSEMBLY = re.compile(r"/asm_(?P<goarch>[a-z0-9]+)\.s:\d")
_CRASH = re.compile(r"^(?:panic|fatal error): .")
_RUNNING = re.compile(r"^goroutine \d{1,18} \[running")
_CRASH_LINES, _CRASH_CHARS = 20, 80
"""Lines from a panic to the goroutine that it ended, and characters of it that are shown."""

_SAME_DEATH_LINES = 3
_TRACEBACK_LINES = 200
_SAME_DEATH_S = 10.0
_MOST_BYTES = numbers.ADDRESSABLE_BYTES


def read(messages: Sequence[Message]) -> list[Row]:
    """Returns one row per program that ended."""
    rows: list[Row] = []
    ended: Message | None = None
    before: Message | None = None
    unusable_line = headed_line = -_SAME_DEATH_LINES
    for message in messages:
        if re.match(_HEADING, message.text):
            headed_line = message.line_no
        if _UNUSABLE.search(message.text):
            unusable_line = message.line_no
        match = _OUT_OF_MEMORY.search(message.text)
        if not match:
            if rows and message.line_no - rows[-1]["line_no"] <= _TRACEBACK_LINES:
                _add_traceback(rows[-1], message.text)
            continue
        if match["fatal"] and before and before is not ended and _is_same(before, message):
            ended = before = message
            continue
        rows.append(_row(message, match))
        if message.line_no - unusable_line < _SAME_DEATH_LINES:
            rows[-1]["kind"] = UNUSABLE_ADDRESS
        if message.line_no - headed_line < _SAME_DEATH_LINES:
            rows[-1]["ident"] = "compile"
        before = message
        ended = message if match["fatal"] else ended
    stated = (_PLATFORM.search(message.text) for message in messages if rows)
    platforms = {match.groups() for match in stated if match}
    if len(platforms) == 1:
        rows = [dict(zip(("goos", "goarch"), *platforms, strict=True)) | row for row in rows]
    versions = set().union(*(go_versions(message.text) for message in messages if rows))
    named = {"go_version": versions.pop()} if len(versions) == 1 else {}
    return [row | named for row in rows]


def crashes(messages: Sequence[Message]) -> Iterator[str]:
    """Yields a sentence about the panics and fatal errors that ended a program."""
    panics: list[Message] = []
    last: Message | None = None
    for message in messages:
        if _CRASH.match(message.text):
            # A panic during a panic is of the same crash.
            if last is None or message.line_no - last.line_no > _CRASH_LINES:
                last = message
        elif last and _RUNNING.match(message.text):
            if message.line_no - last.line_no <= _CRASH_LINES:
                panics.append(last)
            last = None
    if panics:
        times = f" {len(panics):,} times, first" if len(panics) > 1 else ""
        said = panics[0].text[:_CRASH_CHARS].rstrip()
        yield f"The program crashed{times} with `{said}`."


def _is_same(before: Message, message: Message) -> bool:
    """Returns whether a program said that it ended right after it said why."""
    near = 0 <= message.line_no - before.line_no <= _SAME_DEATH_LINES
    about = (before.identity(), message.identity())
    names = ("host", "ident", "log_pid", "unit", "container", "container_id", "pod")
    same = all(about[0][name] == about[1][name] for name in names)
    if before.logged_at and message.logged_at:
        near &= abs((message.logged_at - before.logged_at).total_seconds()) <= _SAME_DEATH_S
    return near and same


def _row(message: Message, match: re.Match[str]) -> Row:
    printed = match["requested"] or match["asked"]
    requested = numbers.whole(printed)
    impossible = printed is not None and not (
        requested is not None and 0 <= requested <= _MOST_BYTES
    )
    kind = LOCKED_MEMORY if match["locked"] else "out of memory"
    return message.identity() | {
        "kind": IMPOSSIBLE_SIZE if impossible else kind,
        "requested_bytes": None if impossible else requested or None,
        "in_use_bytes": numbers.whole(match["in_use"]),
        "errno": numbers.whole(match["errno"]),
    }


def _add_traceback(row: Row, text: str) -> None:
    call = _ARGUMENTS.search(text)
    if call and row["requested_bytes"] is None:
        size = int(call["size"], 16)
        if row["kind"] != IMPOSSIBLE_SIZE and size <= _MOST_BYTES and size % _PAGE_BYTES == 0:
            row["requested_bytes"] = size
    if row["kind"] == "out of memory" and _AT_START.search(text):
        row["kind"] = AT_START
    if _OF_OLD_GO.search(text):
        row["go_version"] = "<1.17"
    if call and call["at"]:
        # The function had a fourth argument up to Go 1.10.
        bases = _OLD_ARENAS if text.count(", ") == 3 else (_ARENA,)
        below = [int(call["at"], 16) - base for base in bases]
        if sizes := [size for size in below if 0 < size < _MOST_ARENA_BYTES]:
            row |= {"in_use_bytes": min(sizes), "goarch": row.get("goarch") or "64-bit"}
    if assembly := _ASSEMBLY.search(text):
        row["goarch"] = assembly["goarch"]
    if _WINDOWS.match(text):
        row["goos"] = "windows"
    if tool := _TOOLCHAIN.match(text):
        row["ident"] = row.get("ident") or tool["tool"]
