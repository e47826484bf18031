"""Cycles of the go command, and of what it starts: compile, link, a test or the program itself."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from gctrace_analyzer import core
from gctrace_analyzer.ingest.evidence import words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import polars as pl

_LOGGED = r"(?:\W{1,3} ?|[^\n#]{0,80}[\dZ:|\]] {1,3})?"
"""The prefix of a line: a quotation mark, or that of a log."""

_GO_COMMAND = re.compile(
    # After a prompt, or anywhere if it turns gctrace on.
    r"(?:^|[$#>%/✗✘➜❯»λ] *|\benv +|\b(?=GODEBUG=\S{0,99}?gctrace=[1-9]))"
    r"((?:[A-Z][A-Z0-9_]*=\S+ +)*go (?:run|build|test|vet|install)\b"
    # Prose of another script may go on after the name of a command.
    r"(?! +[^\x00-\x7f])[^\n`]{0,120})|"
    # The heading of a package in the go command's output.
    rf"^{_LOGGED}"
    r"# (command-line-arguments|testmain|[\w.~-]{1,99}(?:/[\w.~-]{1,99}){1,9}|"
    # Packages of the standard library have no slash, like other headings. Brackets: go vet.
    rf"[a-z]\w{{1,40}}(?=[ \r]*\n{_LOGGED}gc 1 @)|\[[\w./~-]{{1,200}}\])\s*$",
    re.MULTILINE,
)

_CERTAIN = re.compile(
    r"(?:[\w-]+(?:\.[\w-]+)+|internal)/|(?:runtime|reflect|net|os)\b|command-line|testmain|.*\.test$"
)
"""A heading that is certainly of a package: others may be of a document, or a command of root."""

_TRACED_PROGRAM = re.compile(
    r"\bGODEBUG=\S{0,99}?gctrace=[1-9]\S{0,99} {1,9}(?:[A-Z][A-Z0-9_]{0,40}=\S{1,99} {1,9}){0,5}"
    r"(?!go |[A-Z][A-Z0-9_]{0,40}=)\S"
)

_TURNED_ON = re.compile(
    r"^\W{0,9}(?:\$env:|export +|set +)GODEBUG *= *\"?[^\n]{0,99}?gctrace=[1-9]", re.MULTILINE
)
"""A command that turns gctrace on for the ones after it."""

_OF_TEST = re.compile(r"=== RUN|\bgoos: |\bPASS\s*$", re.MULTILINE)

_STARTED = re.compile(r"\bgc #?1 @")

_CYCLE = re.compile(r"\bgc #?\d+ @")

_NEXT_COMMAND = re.compile(r"&&|\|\||;|\s#")
"""What ends a command: another one, or a comment."""

_MOST_COMMANDS = 3

OF_TOOLCHAIN = "Cycles may be those of "
"""Beginning of the sentence of `of_toolchain`: whose cycles these are comes before other notes."""

_OF_TOOLCHAIN_TOO = "Some cycles may be those of "
"""The same, where another command ran a program."""

GO_COMMANDS = (
    "go run", "go build", "go test", "go vet", "go install", "# command-line", "# testmain",
    "# github.com/", "# runtime", "# internal/", "# reflect", "# net", "# os", ".test",
)  # fmt: skip
"""Text that identifies lines of the go command; `.test` ends the name of a test program."""


def notes_on(text: str) -> list[str]:
    """Returns sentences on what the commands in a log mean for its cycles."""
    return [note for note in (of_toolchain(text), of_stopped_world(text)) if note]


def of_toolchain(text: str) -> str | None:
    """Returns a sentence if a log shows that the go command ran, whose processes print cycles too.

    >>> of_toolchain("$ GOGC=25 GODEBUG=gctrace=1 go run .")[:47]
    'Cycles may be those of `GOGC=25 GODEBUG=gctrace'
    >>> of_toolchain('$env:GODEBUG="gctrace=1"; go run a.go')[:37]
    'Cycles may be those of `go run a.go`:'
    """
    if not core.contains_any(text.encode(), [word.encode() for word in GO_COMMANDS]):
        return None
    turned_on = _TURNED_ON.search(text)
    named = [
        match
        for match in _GO_COMMAND.finditer(text)
        if turned_on is None
        or match.start() >= turned_on.start()
        or "gctrace=" in (match[1] or "")
    ]
    if not any(match[1] or _CERTAIN.match(match[2]) for match in named):
        return None
    named = [*_with_cycles(text, named)] or named
    is_test = _OF_TEST.search(text) is not None
    lines = (_NEXT_COMMAND.split(match[1]) for match in named if match[1])
    # An assignment may be a command of its own, as in PowerShell.
    own = [next(part.strip() for part in parts if "go " in part) for parts in lines]
    # One compile or link follows a heading; what starts after the last one is the program.
    has_program = len(_STARTED.findall(text, named[-1].end())) > 1
    commands = [*dict.fromkeys(own)] or ["go run" if has_program and not is_test else "go"]
    if _TRACED_PROGRAM.search(text):
        # Other commands printed no cycles.
        commands = [command for command in commands if "gctrace=" in command]
    if not commands:
        return None
    quoted = " and ".join(f"`{command}`" for command in commands[:_MOST_COMMANDS])
    whose = f"{OF_TOOLCHAIN}{quoted}"
    if named[-1][2] and own and not has_program:
        whose = f"{OF_TOOLCHAIN}compile or link, started by {quoted}"
        if _runs_earlier(text, named):
            whose = f"{_OF_TOOLCHAIN_TOO}compile or link, started by `{own[-1]}`"
    is_test = is_test or any("go test" in command for command in commands)
    return (
        f"{whose}: go, compile and link print gctrace too. Build the "
        f"program first (`go {'test -c' if is_test else 'build'}`), and run it alone."
    )


def of_stopped_world(text: str) -> str | None:
    r"""Returns a sentence if a command above cycles sets GODEBUG=gcstoptheworld.

    Source: `gcStart` in runtime/mgc.go, which runs no user goroutine until such a cycle ends.

    >>> of_stopped_world("$ GODEBUG=gcstoptheworld=1,gctrace=1 ./a\ngc 1 @0.1s")[:40]
    'GODEBUG=gcstoptheworld=1 (line 1) stops '
    """
    command = _STOPS.search(text) if "gcstoptheworld=" in text else None
    if command is None or not _CYCLE.search(text, command.end()):
        return None
    return (
        f"{STOPPED_WORLD}{command[1]} (line {text.count(chr(10), 0, command.start()) + 1}) stops "
        "the program while GC marks, too: the pauses of this run are as long as its cycles, not as "
        "short as shown."
    )


STOPPED_WORLD = "GODEBUG=gcstoptheworld="
"""Beginning of the sentence of `of_stopped_world`."""

_STOPS = re.compile(r"GODEBUG[\"'= ]{1,4}(?:\w+=\w*,)*gcstoptheworld=([12])")


def _with_cycles(text: str, named: Sequence[re.Match[str]]) -> Iterator[re.Match[str]]:
    """Yields the commands and headings that have cycles below them.

    Those of a command that does not turn gctrace on come before the next command.
    """
    ends = [*(match.start() for match in named if match[1]), len(text)]
    for match in named:
        is_limited = match[1] and "gctrace=" not in match[1]
        end = next(end for end in ends if end > match.start()) if is_limited else len(text)
        if _CYCLE.search(text, match.end(), end):
            yield match


def _runs_earlier(text: str, named: Sequence[re.Match[str]]) -> bool:
    """Returns whether a command before the last one ran a program that has cycles."""
    command = ""
    last = max(number for number, match in enumerate(named) if match[1])
    for match, following in pairwise(named[: last + 1]):
        command = match[1] or command
        between = text[match.end() : following.start()]
        starts = _CYCLE.search(between) if match[1] else len(_STARTED.findall(between)) > 1
        if starts and re.search(r"go (?:run|test)", command):
            return True
    return False


def is_toolchain_alone(notes: Sequence[str]) -> bool:
    """Returns whether the go command only built, so that no cycle belongs to a program."""
    is_of_go = any(note.startswith(OF_TOOLCHAIN) for note in notes)
    return is_of_go and not started_by_go(notes)


def started_by_go(notes: Iterable[str]) -> bool:
    """Returns whether the go command started a program that has cycles in the log."""
    noted = "\n".join(notes)
    is_started = re.search(rf"(?m)^{OF_TOOLCHAIN}`.*go (?:run|test)", noted)
    return is_started is not None and words.BEGUN_UNREAD not in noted


def of_programs(processes: pl.DataFrame, notes: Iterable[str]) -> pl.DataFrame:
    """Returns the rows of the processes, without those of a go command that starts its program.

    Args:
        processes: `schema.PROCESSES`.
        notes: the notes on reading the log.
    """
    if len(processes) < 2 or not started_by_go(notes):
        return processes
    # The program starts last; later cycles of the go command and of excerpts have other numbers.
    first = (processes["first_gc"] == 1).fill_null(value=False).arg_true()
    last = int(first[-1]) if len(first) else 0
    if last and processes["cycles"][last] == 1:
        # A line that explains the format follows the last lines of the program.
        cut = ((processes["first_gc"] > 1) & (processes["cycles"] > 1)).fill_null(value=False)
        if cut[:last].any():
            last = int(cut[:last].arg_true()[-1])
    return processes[last:].sort("cycles", descending=True, maintain_order=True).head(1)


def runs_benchmarks(notes: Iterable[str]) -> bool:
    """Returns whether the notes on reading a log show that `go test` ran benchmarks."""
    return any(
        words.OF_CUT in note or (note.startswith(OF_TOOLCHAIN) and "-bench" in note)
        for note in notes
    )
