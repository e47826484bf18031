"""What stops the work, and what to do next.

A damaged line is data, not an error: it becomes a row of `rejected`. The classes here are
for what makes a result impossible. Each keeps its facts as attributes and as `args`, so it
survives pickling, and ends with the next step.
"""

from __future__ import annotations

__all__ = [
    "BadSettingError",
    "DamagedInputError",
    "EmptyInputError",
    "FleetStoppedError",
    "GctraceError",
    "GctraceWarning",
    "InvalidJsonError",
    "MissingColumnsError",
    "MissingExtraError",
    "NoRecordsError",
    "NothingDrawnError",
    "ProgramError",
    "ProgramFailedError",
    "TooShortError",
    "UnknownColumnsError",
    "UnreadableInputError",
    "UnwritableOutputError",
]


class GctraceError(Exception):
    """Base of every error this package raises on purpose."""


class GctraceWarning(UserWarning):
    """Something in the input makes a figure less certain than it looks."""


class UnreadableInputError(GctraceError):
    """An input that cannot be opened, or whose compressed data yields nothing."""

    def __init__(self, path: str, problem: str, hint: str) -> None:
        super().__init__(path, problem, hint)
        self.path, self.problem, self.hint = path, problem, hint

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}.\n  {self.hint}"


class ProgramError(GctraceError):
    """A program that cannot be started; `code` is the exit code of a shell then."""

    def __init__(self, program: str, problem: str, hint: str, code: int) -> None:
        super().__init__(program, problem, hint, code)
        self.program, self.problem, self.hint, self.code = program, problem, hint, code

    def __str__(self) -> str:
        return f"{self.program}: {self.problem}.\n  {self.hint}"


class EmptyInputError(GctraceError):
    """An input of 0 bytes."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return (
            f"{self.path}: empty (0 bytes).\n"
            "  The Go runtime writes gctrace to standard error: was it redirected here (2>)?"
        )


class NoRecordsError(GctraceError):
    """An input in which nothing was recognised."""

    def __init__(self, path: str, lines: int, first: str) -> None:
        super().__init__(path, lines, first)
        self.path, self.lines, self.first = path, lines, first

    def __str__(self) -> str:
        lines = "1 line" if self.lines == 1 else f"{self.lines:,} lines"
        return (
            f"{self.path}: {lines}, none of them gctrace output.\n"
            f"  First line: {self.first!r}\n"
            "  Start the program with GODEBUG=gctrace=1 and keep its standard error:\n"
            "    GODEBUG=gctrace=1 ./server 2> run.log"
        )


class ProgramFailedError(GctraceError):
    """A program under test that did not start, failed, or took too long."""

    def __init__(self, command: str, why: str, said: str) -> None:
        super().__init__(command, why, said)
        self.command, self.why, self.said = command, why, said

    def __str__(self) -> str:
        ending = "\n".join(f"    {line}" for line in self.said.splitlines()[-10:])
        return f"{self.command}: {self.why}." + (
            f"\n  It last said:\n{ending}" if ending else ""
        )


class TooShortError(GctraceError):
    """A run without a single cycle, which nothing can be compared with."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return (
            f"{self.name}: no GC cycle to compare.\n"
            "  Run it longer, under load: 5 cycles tell something, 20 and more a lot."
        )


class DamagedInputError(GctraceError):
    """A line that could not be read, where `strict` was asked for."""

    def __init__(self, path: str, line_no: int, reason: str, text: str) -> None:
        super().__init__(path, line_no, reason, text)
        self.path, self.line_no, self.reason, self.text = path, line_no, reason, text

    def __str__(self) -> str:
        return (
            f"{self.path}:{self.line_no}: {self.reason}.\n"
            f"  Line: {self.text!r}\n"
            "  Without strict it is counted under `rejected` and reading goes on."
        )


class BadSettingError(GctraceError):
    """A size, duration, range or setting that cannot be understood."""

    def __init__(self, what: str, value: str, expected: str) -> None:
        super().__init__(what, value, expected)
        self.what, self.value, self.expected = what, value, expected

    def __str__(self) -> str:
        return f"{self.what}: cannot read {self.value!r}.\n  Expected {self.expected}."


class UnwritableOutputError(GctraceError):
    """A result that could not be written; `kept`: what was there before is there still."""

    def __init__(self, path: str, problem: str, *, kept: bool = False) -> None:
        super().__init__(path, problem)
        self.path, self.problem, self.kept = path, problem, kept

    def __str__(self) -> str:
        left = "What was there before is kept" if self.kept else "Nothing was left there"
        return f"{self.path}: cannot be written: {self.problem}.\n  {left}."


class FleetStoppedError(GctraceError):
    """A run over many files that ended before its end; what was done is kept."""

    def __init__(self, problem: str, hint: str, done: int, files: int, output: str) -> None:
        super().__init__(problem, hint, done, files, output)
        self.problem, self.hint, self.output = problem, hint, output
        self.done, self.files = done, files

    def __str__(self) -> str:
        return (
            f"{self.problem}.\n  {self.hint}\n"
            f"  {self.done:,} of {self.files:,} files are in {self.output}; "
            "the same command goes on from there."
        )


class MissingColumnsError(GctraceError):
    """A frame that lacks columns the calculation needs."""

    def __init__(self, missing: tuple[str, ...], found: tuple[str, ...]) -> None:
        super().__init__(missing, found)
        self.missing, self.found = missing, found

    def __str__(self) -> str:
        return (
            f"The frame lacks {', '.join(self.missing)}.\n"
            f"  It has: {', '.join(self.found) or 'no columns'}.\n"
            "  Column names and units are those of gctrace_analyzer.cycles()."
        )


class MissingExtraError(GctraceError):
    """A library that comes with an extra is not installed."""

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(library, extra)
        self.library, self.extra = library, extra

    def __str__(self) -> str:
        return (
            f"{self.library} is not installed.\n  pip install 'gctrace-analyzer[{self.extra}]'"
        )


class NothingDrawnError(GctraceError):
    """A plot that this input has nothing for."""

    def __init__(self, plot: str, why: str) -> None:
        super().__init__(plot, why)
        self.plot, self.why = plot, why

    def __str__(self) -> str:
        because = f" {self.why}" if self.why else ""
        return (
            f"plot {self.plot}: this input has nothing to draw.{because}\n"
            "  --plot names another; --help lists them."
        )


class InvalidJsonError(UnreadableInputError):
    """A JSON document that breaks off or is none."""

    def __init__(self, name: str, line: int, column: int, problem: str, near: str) -> None:
        super().__init__(
            name,
            f"invalid JSON at line {line}, column {column}: {problem}",
            f"There it reads: …{near}\n  If it was cut, fetch it again; "
            "if it is a log, say so: --kind log",
        )
        self.line, self.column = line, column
        self.args = (name, line, column, problem, near)


class UnknownColumnsError(UnreadableInputError):
    """A table whose columns are no MemStats."""

    def __init__(
        self, name: str, line: int, found: list[str], expected: str, *, headerless: bool = False
    ) -> None:
        shown = ", ".join(found[:12]) + (", …" if len(found) > 12 else "")
        problem = (
            f"line {line}: a table without a header, whose {len(found)} columns could be "
            f"anything "
            f"({shown})"
            if headerless
            else f"line {line}: a table whose columns are no MemStats: {shown}"
        )
        hint = f"Expected: {expected}.\n  Name the columns: --columns HeapAlloc,HeapSys,…"
        super().__init__(name, problem, hint)
        self.found = found
        self.args = (name, line, found, expected)
