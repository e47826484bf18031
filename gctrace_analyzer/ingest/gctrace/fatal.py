"""Reads how the Go runtime ends a program that gets no memory from the system.

Each program reports it once, in one or two lines with a traceback after them (runtime/mem_*.go,
malloc.go, panic.go of Go 1.0 to 1.26).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gctrace_analyzer.ingest import numbers
from gctrace_analyzer.ingest.evidence.configured import go_versions
from gctrace_analyzer.ingest.evidence.message import (
    ARENA_FULL,
    AT_START,
    IMPOSSIBLE_SIZE,
    LARGEST_STEP_MIB,
    LOCKED_MEMORY,
    METADATA,
    UNUSABLE_ADDRESS,
)
from gctrace_analyzer.ingest.evidence.words import OF_CRASH

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gctrace_analyzer.ingest.evidence.message import Message, Row

_HEADING = r"^(?:# )?[a-z0-9-]+\.[a-z]+/[^ :(]+$"
"""Heading of the go command above compiler errors of a package."""

HINT = (
    r"runtime: out of memory|fatal error: |runtime: VirtualAlloc|not in usable range|"
    r"runtime: address space conflict|runtime: cannot map pages|"
    r"runtime\.(?:sysMap|sysUsed|largeAlloc|mallocgc|throw|schedinit|mallocinit|doInit1?)"
    r"(?:OS)?\(|\(\*m(?:heap|cache)\)\.(?:alloc|map)|mHeap_|runtime/(?:mem_|panic\.go:)|"
    r"/asm_\w+\.s:|wasm_exec|"
    rf"panic: |goroutine \d+ \[running|runtime stack:|runtime: mmap: |{_HEADING}|"
    r"[A-Za-z]:[/\\][^\n]{0,99}[/\\]src[/\\]runtime[/\\]|\bcmd/(?:compile|link)/|\.exe(?: |$)"
)

_OUT_OF_MEMORY = re.compile(
    # Text before it is a log prefix.
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
    r")(?:[\s\"'`]*$|\s{1,9}(?:←|<-|#|//))"  # The end, or a remark of the person who pasted it
)
_UNUSABLE = re.compile(
    # Windows: the address is reserved by somebody else (ERROR_INVALID_ADDRESS).
    r"not in usable range|runtime: address space conflict|runtime: VirtualAlloc of .{1,40}errno=487"
)
"""The system gave the runtime memory at an address that a 32-bit program cannot use."""

_REFUSED = r"runtime\.sys(?:Map|Used)(?:OS)?\("
_WORD = "0x([0-9a-f]{1,16})"
_SIZE = re.compile(rf"(?:{_REFUSED}0x\w+\??, |runtime\.(?:largeAlloc|mallocgc)\(){_WORD}[,)]")
_PAGES = re.compile(
    rf"runtime\.(?:\(\*mheap\)\.|mHeap_)[aA]lloc(?:Span(?:Locked)?|_m|Manual|Large)?\("
    rf"0x\w+\??, {_WORD}[,)]"
)
"""Functions in a traceback with the size as an argument. From Go 1.17 on, `?` follows an argument
whose register may have been reused."""

_AT = re.compile(rf"{_REFUSED}{_WORD}, ")
_ARENA_USED = re.compile(
    rf"runtime\.(?:\(\*mheap\)\.m|mHeap_M)ap(?:Bits|Spans)\(0x\w+\??, {_WORD}"
)
"""The end of the heap: the address of the refused memory; up to Go 1.10, metadata came first."""

_MOST_ARENA_BYTES = 1 << 38
_ARENAS = (
    # By the names of 1.5, or the line of panic.go with `throw`.
    (re.compile(r"runtime\.mHeap_|panic\.go:5[0-5]\d\b"), (0xC820000000, 0xC082000000)),
    (re.compile(r"runtime\.sysMap\((?:\w+, ){3}"), (0xC420000000, 0xC042000000)),
    (re.compile(""), (0xC000000000, 0x4000000000)),
)
"""Where the heap of a 64-bit program begins: in Go 1.5 and 1.6, up to 1.10, and later. arm64 has
its own address; before 1.11 there were tables below it, smaller ones on Windows (mallocinit,
malloc.go)."""

_PAGE_BYTES, _HEAP_PAGE_BYTES = 4096, 8192
_OF_METADATA = re.compile(r"allocating |cannot allocate memory|failed to (?:reserve|allocate)")
"""Errors about tables of the runtime itself, which do not hold objects."""

_AT_START = re.compile(
    r"runtime\.(?:schedinit|mallocinit|doInit1?)\(|\(\*pageAlloc\)\.(?:sysInit|init)\(|"
    r"(?:sysMap(?:OS)?\(|\(\*pageAlloc\)\.grow\(0x\w+\??, )0x(?:c000000000|4000000000)\??,"
)
"""Functions that run before main, and the address of the first memory of a heap, which differs on
arm64 (mallocinit, malloc.go)."""

_FIRST = re.compile(
    r"heap arena map|reserve arena virtual address space|reserve page summary memory"
)
"""Tables that the runtime gets once, before the first object (malloc.go, mpagealloc_*.go)."""

_RESERVED = re.compile(
    r"runtime\.(?:sysMapOS\(|sysMap\((?:0x\w+\??, ){2}0x\w+\??\)|sysUsedOS\()"
)
"""Calls that map memory reserved by `sysReserve`, from Go 1.11 on: mem_linux.go uses MAP_FIXED,
which adds no address space. `sysMap` had four arguments before."""

_OF_OLD_GO = re.compile(r"runtime\.throw\(0x")
"""A string argument as Go up to 1.16 prints it; from 1.17 on it is in braces."""

_OF_FIXED_ARENA = re.compile(
    r"runtime\.throw\(0x.{0,80}\n.{0,200}panic\.go:(?:5\d\d|605|61[69])\b"
)
"""The line of panic.go with `throw` up to Go 1.10, whose heap has one range of addresses."""

_LAST_FIXED, _MOST_FIXED_BYTES = 10, {"windows": 1 << 35}
_NEARLY_FULL = 0.95
"""Share of that range, which is 512 GiB elsewhere (_MHeapMap_TotalBits, malloc.go). It has stacks
as well, which the heap's memory does not count. The system is not asked for more (sysAlloc)."""

_WASM = re.compile(r"wasm_exec|/asm_wasm\.s|wasm://|\b(?:js|wasip1)/wasm\b")

_PLATFORM = re.compile(
    # `go version`, people's words, and the names of archives of Go
    r"\b[Gg]o ?1\.\d{1,2}[^\s/-]{0,9}[ .(-]"
    r"(?P<goos>linux|windows|darwin|(?:free|open|net)bsd|dragonfly)[-/](?P<goarch>386|arm(?!64)|[a-z][a-z0-9]{2,8})"
)
_WINDOWS = re.compile(r"(?m)(?:^|\s)[A-Za-z]:[/\\].{0,99}[/\\]src[/\\]runtime[/\\]\w+\.go:\d")
_OF_SYSTEM = re.compile(r"runtime/mem_(?P<goos>linux|windows|darwin|bsd|aix)\.go:\d")
"""Paths of the runtime in a traceback."""
_WINDOWS_PROGRAM = re.compile(
    r"^(?:PS )?(?:[A-Za-z]:\\[^>]{0,99}> ?)?[\w.\\/:-]{1,99}\.exe(?: |$)"
)
"""A command, with or without the prompt of a shell of Windows."""
_TOOLCHAIN = re.compile(r"(?m)^(?:\s.{0,300}/)?cmd/(?P<tool>compile|link)/")
"""A function of the Go toolchain in a traceback, or its file."""

_ASSEMBLY = re.compile(r"/asm_(?P<goarch>[a-z0-9]+)\.s:\d")
_CRASH = re.compile(r"^(?:panic|fatal error): .")
_RUNNING = re.compile(r"^(?:goroutine \d{1,18} \[running|runtime stack:)")
_CRASH_LINES, _CRASH_CHARS = 20, 80
"""Lines from a panic to the goroutine that it ended, and characters of them that are shown."""

_THROW = re.compile(r"^\s*runtime\.throw\(")
_REFUSAL = re.compile(rf"^\s*(?:{_REFUSED}|runtime\.(?:\(\*mcache\)\.allocLarge|largeAlloc)\()")
"""Two calls, the lower one first: memory was refused, whatever the error line says. For large
objects, only "out of memory" is thrown (mcache.go, malloc.go)."""
_THROW_LINES = 2

_SAME_DEATH_LINES = 3
_TRACEBACK_LINES = 200
_SAME_DEATH_S = 10.0
_MOST_OF_HOST_BYTES = 1 << 46
"""64 TiB. No machine has more memory."""

_NEAR_BASE_BYTES = 1 << 36
"""64 GiB. A value within this distance above a heap's beginning, and not a multiple of 1 GiB, is an
address in that heap, not a size."""


def read(messages: Sequence[Message]) -> list[Row]:
    """Returns one row per program that ended."""
    rows: list[Row] = []
    tracebacks: list[list[str]] = []
    headless = set(_headless(messages))
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
                tracebacks[-1].append(message.text)
            elif message.line_no in headless:
                rows.append(message.identity() | {"kind": "out of memory"})
                tracebacks.append([message.text])
            continue
        if match["fatal"] and before and before is not ended and _is_same(before, message):
            ended = before = message
            continue
        rows.append(_row(message, match))
        tracebacks.append([])
        if message.line_no - unusable_line < _SAME_DEATH_LINES:
            rows[-1]["kind"] = UNUSABLE_ADDRESS
        if message.line_no - headed_line < _SAME_DEATH_LINES:
            rows[-1]["ident"] = "compile"
        before = message
        ended = message if match["fatal"] else ended
    rows = [
        row | _traced(row, "\n".join(lines))
        for number, (row, lines) in enumerate(zip(rows, tracebacks, strict=True))
        # Another thread may report the same before the first one has ended the program.
        if not number or tracebacks[number - 1] or not _is_repeated(rows[number - 1], row)
    ]
    return _with_versions(rows, messages)


def _with_versions(rows: list[Row], messages: Sequence[Message]) -> list[Row]:
    """Returns the rows with the platform and the Go version that the input states."""
    stated = (_PLATFORM.search(message.text) for message in messages if rows)
    platforms = {match.groups() for match in stated if match}
    if len(platforms) == 1:
        rows = [dict(zip(("goos", "goarch"), *platforms, strict=True)) | row for row in rows]
    elif any(_WINDOWS_PROGRAM.match(message.text) for message in messages if rows):
        rows = [{"goos": "windows"} | row for row in rows]
    versions = set().union(*(go_versions(message.text) for message in messages if rows))
    named = {"go_version": versions.pop()} if len(versions) == 1 else {}
    return [_in_arena(row | named) for row in rows]


def _in_arena(row: Row) -> Row:
    """Returns a row that says so if the heap has all addresses that Go up to 1.10 gives it."""
    asked, used = row.get("requested_bytes"), row.get("in_use_bytes")
    version = re.match(r"(<?)1\.(\d{1,3})", row.get("go_version") or "<1.17")
    is_refused = row["kind"] == "out of memory" and row.get("is_reserved") is False
    if not (is_refused and asked and used and version):
        return row
    is_old = int(version[2]) - len(version[1]) <= _LAST_FIXED
    most = _MOST_FIXED_BYTES.get(row.get("goos") or "", 1 << 39)
    full = used + asked * is_old > _NEARLY_FULL * most and used <= most
    return row | {"kind": ARENA_FULL} if full and (is_old or version[1]) else row


def _headless(messages: Sequence[Message]) -> Iterator[int]:
    """Yields the lines of `runtime.throw` for refused memory that have no error above them."""
    crashed_line = -_CRASH_LINES
    thrown_line = -_THROW_LINES
    for message in messages:
        if _CRASH.match(message.text):
            crashed_line = message.line_no
        elif _THROW.match(message.text):
            thrown_line = message.line_no
        elif (
            _REFUSAL.match(message.text)
            and message.line_no - thrown_line <= _THROW_LINES
            and thrown_line - crashed_line > _CRASH_LINES
        ):
            yield thrown_line


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
        yield f"{OF_CRASH}{times} with `{said}`."


def _is_same(before: Message, message: Message) -> bool:
    """Returns whether a program reported its end right after the reason."""
    near = 0 <= message.line_no - before.line_no <= _SAME_DEATH_LINES
    about = (before.identity(), message.identity())
    names = ("host", "ident", "log_pid", "unit", "container", "container_id", "pod")
    same = all(about[0][name] == about[1][name] for name in names)
    if before.logged_at and message.logged_at:
        near &= abs((message.logged_at - before.logged_at).total_seconds()) <= _SAME_DEATH_S
    return near and same


def _is_repeated(before: Row, row: Row) -> bool:
    """Returns whether two errors in a row, without a time, have the same sizes."""
    if row.get("in_use_bytes") is None or row["logged_at"] or row["printed_at"]:
        return False
    is_near = row["line_no"] - before["line_no"] <= _SAME_DEATH_LINES
    return is_near and before | {"line_no": row["line_no"]} == row


def _row(message: Message, match: re.Match[str]) -> Row:
    printed = match["requested"] or match["asked"]
    requested = numbers.whole(printed)
    impossible = printed is not None and not (
        requested is not None and 0 <= requested <= _MOST_OF_HOST_BYTES
    )
    kind = LOCKED_MEMORY if match["locked"] else "out of memory"
    kind = METADATA if _OF_METADATA.search(match[0]) else kind
    kind = AT_START if _FIRST.search(match[0]) else kind
    return message.identity() | {
        "kind": IMPOSSIBLE_SIZE if impossible else kind,
        "requested_bytes": None if impossible else requested or None,
        "in_use_bytes": numbers.whole(match["in_use"]),
        # The heap first needs addresses, which the system refused here.
        "is_reserved": False if match["requested"] else None,
        "errno": numbers.whole(match["errno"]),
    }


def _traced(row: Row, text: str) -> Row:
    """Returns what a traceback adds to a row."""
    known: Row = {}
    if row["kind"] != IMPOSSIBLE_SIZE and row.get("requested_bytes") is None:
        known["requested_bytes"] = _requested(text)
    known |= _kind(row | known, text)
    if _OF_OLD_GO.search(text):
        known["go_version"] = "<1.11" if _OF_FIXED_ARENA.search(text) else "<1.17"
    # Returned memory lies below the end of the heap.
    end = _ARENA_USED.search(text) or _AT.search(text)
    if end and "runtime.sysUsed" not in text:
        bases = next(bases for pattern, bases in _ARENAS if pattern.search(text))
        below = [int(end[1], 16) - base for base in bases]
        if sizes := [size for size in below if 0 < size < _MOST_ARENA_BYTES]:
            known |= {"in_use_bytes": min(sizes), "goarch": "64-bit"}
    if _RESERVED.search(text):
        known["is_reserved"] = True
    known |= _platform(text)
    if tool := _TOOLCHAIN.search(text):
        known["ident"] = row.get("ident") or tool["tool"]
    return known


def _platform(text: str) -> Row:
    """Returns the operating system and architecture that a traceback shows."""
    known: Row = {}
    if assembly := _ASSEMBLY.search(text):
        known["goarch"] = assembly["goarch"]
    if system := _OF_SYSTEM.search(text):
        known["goos"] = system["goos"]
    elif _WASM.search(text):
        known |= {"goos": "js", "goarch": "wasm"}
    elif _WINDOWS.search(text):
        known["goos"] = "windows"
    return known


def _kind(row: Row, text: str) -> Row:
    """Returns another kind of a refusal if its size or the traceback shows one."""
    if (asked := row.get("requested_bytes")) and _is_address(asked):
        return {"kind": IMPOSSIBLE_SIZE}
    is_first = row.get("in_use_bytes") == 0 or _AT_START.search(text)
    if row["kind"] in ("out of memory", METADATA) and is_first:
        return {"kind": AT_START}
    return {}


def _is_address(size: int) -> bool:
    """Returns whether a size has the value of an address in the heap of a 64-bit program."""
    above = (size - base for _, bases in _ARENAS for base in bases)
    return size % (1 << 30) != 0 and any(0 < each < _NEAR_BASE_BYTES for each in above)


def _requested(text: str) -> int | None:
    """Returns the refused size, or that of the allocation if the heap grows by no more."""
    step = LARGEST_STEP_MIB << 20
    sizes = (int(size, 16) for size in _SIZE.findall(text))
    pages = (int(number, 16) * _HEAP_PAGE_BYTES for number in _PAGES.findall(text))
    large = [size for size in pages if step < size <= _MOST_OF_HOST_BYTES]
    for size in sizes:
        if 0 < size <= _MOST_OF_HOST_BYTES and size % _PAGE_BYTES == 0:
            # The heap grows by whole arenas.
            return next((own for own in large if size - step < own < size), size)
    return next(iter(large), None)
