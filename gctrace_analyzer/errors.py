"""The errors this package raises: what went wrong, where, and what to do next.

A damaged line is data, not an error: it becomes a row of the table `rejected`. The classes here are
for problems that make a result impossible. Each keeps its facts as attributes, survives pickling,
and is also the built-in exception that Python users expect: a wrong argument is a `ValueError`, an
unreadable file an `OSError`, a missing library an `ImportError`.

    GctraceError
    ├── BadSettingError        ValueError      an argument has an invalid value
    ├── UnreadableInputError   OSError         an input cannot be opened or understood
    │   └── MissingInputError  FileNotFoundError
    ├── NoDataError            ValueError      an input has nothing to work with
    ├── MissingColumnsError    KeyError        a data frame lacks columns
    ├── MissingExtraError      ImportError     an optional library is not installed
    ├── UnwritableOutputError  OSError         a result cannot be written
    ├── ProgramError           RuntimeError    a program did not start, failed, or timed out
    └── FleetStoppedError      RuntimeError    a fleet run ended early; finished files are kept
"""

from __future__ import annotations

import errno
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence, Sized

    Spelling: TypeAlias = Callable[[str, str | None], str]


def python_argument(name: str, value: str | None = None) -> str:
    """Returns an argument as written in Python: `kind` or `kind='log'`."""
    if name == "origins":  # What users pass has no name.
        return "the input"
    return name if value is None else f"{name}={value!r}"


_SIMILAR = 0.65
"""The least similarity of a word that may be meant."""


def nearest(value: str, valid: Iterable[str], least: float = _SIMILAR) -> str | None:
    """Returns the valid value most similar to a mistyped one; None if none is `least` similar.

    >>> nearest("timline", ["timeline", "pauses"]), nearest("x", ["timeline", "pauses"])
    ('timeline', None)
    """
    return next(iter(by_nearness(value, valid, least)), None)


def by_nearness(value: str, valid: Iterable[str], least: float = 0.0) -> list[str]:
    """Returns valid values, the most similar to a mistyped one first.

    Args:
        value: the mistyped value.
        valid: the valid values.
        least: the least similarity, from 0 (all are returned) to 1 (only equal ones).
    """
    # difflib is imported only when there is an error, because it would slow down every start.
    from difflib import get_close_matches

    names = {name.lower(): name for name in valid}
    return [
        names[near] for near in get_close_matches(value.lower(), names, len(names) or 1, least)
    ]


def list_of(names: Sequence[str], mistyped: str) -> str:
    """Returns names as a list; of many, those similar to a mistyped one first, others sorted."""
    first = [*dict.fromkeys([*by_nearness(mistyped, names, _SIMILAR), *sorted(names)])][:_MOST]
    more = [f"… ({len(names)} in all)"] if len(names) > _MOST else []
    return ", ".join([*first, *more] if len(names) > _MANY else names)


_MANY, _MOST = 12, 60
"""Names that fit into two lines, and into ten."""


class Suggesting:
    """An object that names the nearest attribute when an attribute does not exist."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            """Raises Python's error, with the nearest attribute."""
            if name in (names := dir(type(self))):  # a property that failed: its own error
                return object.__getattribute__(self, name)
            raise no_attribute(repr(type(self).__name__), name, names, "")


def no_attribute(owner: str, name: str, valid: Iterable[str], where: str) -> AttributeError:
    """Returns Python's error for an attribute that does not exist, with the nearest one.

    `where` is the text to write instead, if known.
    """
    near = ""
    if not where and not name.startswith("_"):
        known = [one for one in valid if not one.startswith("_")]
        near = meant(name, known) or f" Known: {list_of(known, name)}."
    return AttributeError(f"{owner} has no attribute {name!r}.{where}{near}")


def meant(name: str, valid: Iterable[str]) -> str:
    """Returns the question whether the nearest valid name is meant; empty if there is none."""
    near = nearest(name, valid)
    return f" Did you mean {near}?" if near else ""


def unexpected(function: str, name: str, valid: Iterable[str], where: str = "") -> TypeError:
    """Returns Python's error for an argument that a function does not have, with the nearest one.

    Args:
        function: its name.
        name: the name of the argument.
        valid: the valid arguments.
        where: the text to write instead, if known.
    """
    near = "" if where else meant(name, valid)
    return TypeError(f"{function}() got an unexpected keyword argument {name!r}.{where}{near}")


class GctraceError(Exception):
    """Base class of every error this package raises on purpose."""

    def __str__(self) -> str:
        return self.message()

    def __reduce__(self) -> tuple[Any, ...]:
        # OSError and ImportError pickle only their own arguments. Attributes and parameters
        # have the same names in every class here, so the attributes are enough to rebuild the
        # error.
        facts = dict(vars(self))
        notes = facts.pop("__notes__", None)
        return partial(type(self), **facts), (), {"__notes__": notes} if notes else None

    def message(self, spelled: Spelling = python_argument) -> str:
        """Returns the message; `spelled` writes the names of arguments.

        The command line passes a `spelled` of its own, so that its users read option names.
        """
        del spelled
        return self._text()

    def _text(self) -> str:
        """Returns the message of an error that names no argument."""
        return ": ".join(map(str, self.args))


class GctraceWarning(UserWarning):
    """Something in the input makes a figure less certain than it looks."""


class BadSettingError(GctraceError, ValueError):
    """An argument has a value that is malformed, unknown or out of range.

    Attributes:
        argument: the argument's name in Python.
        value: the given value; empty if the argument is missing.
        expected: a description of valid values.
        suggestion: the valid value nearest to the given one, if there is one.
        remedy: another argument that would make the value valid, if there is one.
    """

    def __init__(
        self,
        argument: str,
        value: str,
        expected: str,
        suggestion: str | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(argument, value, expected)
        self.argument, self.value, self.expected = argument, value, expected
        self.suggestion, self.remedy = suggestion, remedy

    def message(self, spelled: Spelling = python_argument) -> str:
        """Returns the message."""
        name = spelled(self.argument, None)
        suggestion = f"\n  Did you mean {self.suggestion}?" if self.suggestion else ""
        remedy = f" Or pass {spelled(self.remedy, None)}." if self.remedy else ""
        problem = (
            f"invalid value {self.value!r} for {name}"
            if self.value
            else f"no {name} given"
            if name.isupper()
            else f"{name} is missing or empty"
        )
        return f"{problem}.{suggestion}\n  Expected {self.expected}.{remedy}"

    @classmethod
    def unknown(cls, argument: str, value: object, valid: Iterable[str]) -> BadSettingError:
        """Returns the error for a value that is not one of the valid ones."""
        names, text = list(valid), str(value)
        return cls(argument, text, f"one of {list_of(names, text)}", nearest(text, names))


class UnreadableInputError(GctraceError, OSError):
    """An input that cannot be opened, is damaged, or is not of a known format.

    Attributes:
        path: the input's name; also `filename`.
        problem: what is wrong with it.
        hint: what to do about it.
        line_no: the line where the problem is, if there is one.
        argument: the argument of `read` that would help, if there is one.
        argument_value: an example of a value for this argument.
    """

    def __init__(
        self,
        path: str,
        problem: str,
        hint: str,
        *,
        line_no: int | None = None,
        argument: str | None = None,
        argument_value: str | None = None,
    ) -> None:
        super().__init__(errno.EINVAL, problem, path)
        self.path, self.problem, self.hint = path, problem, hint
        self.line_no, self.argument, self.argument_value = line_no, argument, argument_value

    def message(self, spelled: Spelling = python_argument) -> str:
        """Returns the message."""
        place = self.path if self.line_no is None else f"{self.path}:{self.line_no}"
        option = f" {spelled(self.argument, self.argument_value)}" if self.argument else ""
        return f"{place}: {self.problem}.\n  {self.hint}{option}"


class MissingInputError(UnreadableInputError, FileNotFoundError):
    """An input that does not exist."""

    def __init__(self, path: str, problem: str, hint: str, **others: Any) -> None:
        super().__init__(path, problem, hint, **others)
        self.errno = errno.ENOENT


NO_GCTRACE = (
    "Is it a Go program that ran long enough for a GC cycle, and does GODEBUG reach it (sudo, "
    "env -i and containers clear it)?"
)
"""What to ask about a program that printed no gctrace."""


class NoDataError(GctraceError, ValueError):
    """An input without data: it is empty, no line was recognised, or it has no GC cycle.

    Attributes:
        path: the input's name.
        problem: what the input lacks.
        hint: what to do about it.
        lines: the number of lines, if counted; 0 for an empty input.
        first: its first line, if no line of the input was recognised.
    """

    def __init__(
        self,
        path: str,
        problem: str,
        hint: str,
        *,
        lines: int | None = None,
        first: str | None = None,
    ) -> None:
        super().__init__(path, problem, hint)
        self.path, self.problem, self.hint = path, problem, hint
        self.lines, self.first = lines, first

    def _text(self) -> str:
        first = "" if self.first is None else f"\n  First line: {self.first!r}"
        return f"{self.path}: {self.problem}.{first}\n  {self.hint}"

    @classmethod
    def empty(cls, path: str) -> NoDataError:
        """Returns the error for an input of 0 bytes."""
        hint = (
            "The Go runtime writes gctrace to standard error: was it redirected here (2>)?\n"
            "  If it was, GC never ran: with GOGC=100, the first cycle starts at a heap of about "
            "4 MiB, with GOGC=off only near the memory limit, and without a limit never."
        )
        return cls(path, "empty (0 bytes)", hint, lines=0)

    @classmethod
    def no_gctrace(cls, program: str, ran: str) -> NoDataError:
        """Returns the error for a program that printed no gctrace; `ran` says for how long."""
        return cls(program, f"no GC cycle{ran}", NO_GCTRACE)

    @classmethod
    def no_go_metrics(cls, path: str) -> NoDataError:
        """Returns the error for metrics without memory or cycles of a Go program."""
        hint = (
            "Add go_gc_duration_seconds and go_memstats_alloc_bytes: ask the server for\n"
            '  {__name__=~"go_.*|process_.*", job="api"} with the job of the program.'
        )
        return cls(path, "too few metrics of the memory or the GC cycles of a Go program", hint)

    @classmethod
    def other_benchmarks(cls, path: str) -> NoDataError:
        """Returns the error for benchmarks without gctrace that only one side has."""
        hint = (
            "Without gctrace, benchmarks are compared with those of the same name, and the other "
            "side has none of them."
        )
        return cls(path, "no GC cycle, and no benchmark that both sides have", hint)

    @classmethod
    def no_cycles(cls, path: str, dumps: Sized) -> NoDataError:
        """Returns the error for a run without a GC cycle, which cannot be compared."""
        if len(dumps):
            hint = "For each side, give a file with two dumps or more, and their times."
            return cls(path, "no GC cycle to compare, and one dump shows no rate", hint)
        hint = "Run it longer, under load: 5 cycles are the minimum, 20 or more are better."
        return cls(path, "no GC cycle to compare", hint)


class MissingColumnsError(GctraceError, KeyError):
    """A data frame that lacks columns the calculation needs.

    Attributes:
        missing: the columns it lacks.
        found: the columns it has.
        lines: the column that has lines of a log, if there is one.
    """

    def __init__(
        self, missing: tuple[str, ...], found: tuple[str, ...], lines: str | None = None
    ) -> None:
        super().__init__(missing, found)
        self.missing, self.found, self.lines = missing, found, lines

    def _text(self) -> str:
        hint = "Column names and units are those of gctrace_analyzer.cycles()."
        if self.lines is not None:
            text = rf"io.StringIO('\n'.join(frame[{self.lines!r}]))"
            hint = f"To read the log in {self.lines}: gctrace_analyzer.read({text})"
        return (
            f"The data frame lacks {', '.join(self.missing)}.\n"
            f"  It has: {', '.join(self.found) or 'no columns'}.\n  {hint}"
        )


class MissingExtraError(GctraceError, ImportError):
    """A library that comes with an optional extra is not installed.

    Attributes:
        library: the library; also `name`.
        extra: the extra that installs it.
    """

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(library, extra)
        self.name = library
        self.library, self.extra = library, extra

    def _text(self) -> str:
        return (
            f"{self.library} is not installed.\n  pip install 'gctrace-analyzer[{self.extra}]'"
        )


class UnwritableOutputError(GctraceError, OSError):
    """A result that could not be written.

    Attributes:
        path: the intended file; also `filename`.
        problem: why writing failed.
        kept: whether the previous content is still there.
    """

    def __init__(self, path: str, problem: str, *, kept: bool = False) -> None:
        super().__init__(errno.EIO, problem, path)
        self.path, self.problem, self.kept = path, problem, kept

    def _text(self) -> str:
        left = "The previous content is unchanged" if self.kept else "Nothing was written"
        return f"{self.path}: cannot be written: {self.problem}.\n  {left}."


class ProgramError(GctraceError, RuntimeError):
    """A program that did not start, failed, or took too long.

    Attributes:
        program: its name.
        problem: what happened.
        hint: what to do about it, if it did not start.
        output: the end of its standard error, without the gctrace lines.
        code: the exit code of a shell in this case: 127 if the program was not found, 126 if
            it is not executable.
    """

    def __init__(
        self,
        program: str,
        problem: str,
        *,
        hint: str = "",
        output: str = "",
        code: int | None = None,
    ) -> None:
        super().__init__(program, problem)
        self.program, self.problem = program, problem
        self.hint, self.output, self.code = hint, output, code

    @classmethod
    def not_started(
        cls, program: str, number: int | None, problem: str, *, like_a_shell: bool = False
    ) -> ProgramError:
        """Returns the error for a program that the system did not start: its `errno` and why.

        With `like_a_shell`, it has the exit code that a shell would have.
        """
        hint, code = "May this user run it, and is it a program?", 126
        problem = problem.lower()
        if number == errno.ENOENT:
            hint = "Is it built, and in PATH? A program in this folder is ./NAME."
            problem, code = "no such program", 127
        return cls(program, problem, hint=hint, code=code if like_a_shell else None)

    def _text(self) -> str:
        lines = [f"{self.program}: {self.problem}."]
        if self.hint:
            lines.append(f"  {self.hint}")
        if self.output:
            lines.append("  The last lines of its standard error:")
            lines += [f"    {line}" for line in self.output.splitlines()[-10:]]
        return "\n".join(lines)


class FleetStoppedError(GctraceError, RuntimeError):
    """A fleet run that ended early; the files that were finished are kept.

    Attributes:
        problem: why it ended.
        hint: what to do about it.
        done: the number of files that are in the output.
        files: the total number of files.
        output: where the results are.
    """

    def __init__(self, problem: str, hint: str, done: int, files: int, output: str) -> None:
        super().__init__(problem, hint, done, files, output)
        self.problem, self.hint, self.output = problem, hint, output
        self.done, self.files = done, files

    def _text(self) -> str:
        return (
            f"{self.problem}.\n  {self.hint}\n"
            f"  {self.done:,} of {self.files:,} files are in {self.output}; "
            "run the same command again to resume."
        )
