"""The entry point: the first word selects the command, exceptions become exit codes."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import shlex
import sys
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from gctrace_analyzer.cli import exit_codes
from gctrace_analyzer.cli.options import PROGRAM, Parser, as_option, is_piped
from gctrace_analyzer.cli.screen import discard_output, say, wrapped
from gctrace_analyzer.errors import BadSettingError, GctraceError, nearest

if TYPE_CHECKING:
    import argparse

    from gctrace_analyzer.cli.deliver import Result

VERBS = {
    "recommend": ("FILE...", "which GOGC and GOMEMLIMIT to set"),
    "whatif": ("FILE...", "predict other settings"),
    "compare": ("BEFORE AFTER", "is it significantly better?"),
    "measure": ("-- ./bench", "run it under several settings, and compare"),
    "watch": ("-- ./server", "live, while the program runs"),
    "explain": ("LINE", "a line of gctrace, or a finding such as GC016"),
    "fleet": ("'logs/**/*.log'", "the logs of thousands of processes"),
    "prometheus": ("URL", "metrics instead of gctrace"),
    "completion": ("SHELL", "completion for bash, zsh or fish"),
    "help": ("COMMAND", "all options of a command; help tables: columns"),
}
"""Words that are commands in first place, with example arguments and what they show. A file of the
same name is given as `./compare`."""

_OTHER = dict.fromkeys(
    ("report", "analyze", "post-mortem", "postmortem", "oom"), "gctrace-analyze FILE"
) | {"diff": "compare", "version": "--version"}
"""Words that users type for a command with a different name."""

_WITH_PROCESSES = ("watch", "measure", "fleet", "prometheus")
"""The commands that start other processes, or threads that answer for a server."""


class Command(Protocol):
    """The functions that the module of each command has."""

    def command_parser(self) -> argparse.ArgumentParser:
        """Returns the parser of its arguments."""

    def run(self, args: argparse.Namespace) -> Result:
        """Does the work; `deliver` prints and writes the result."""


_NEW_OBJECTS, _NEW_OBJECTS_OF_A_REPORT = 20_000, 100_000
"""Number of new objects before Python searches them for unreachable ones."""

_FREED_SOON = (
    "_RJEM_MALLOC_CONF",
    "oversize_threshold:1048576,dirty_decay_ms:50,muzzy_decay_ms:0",
)
"""A setting of the allocator of Polars: it returns freed memory after 50 ms, not half a second, and
whole columns at once. Half a second is a quarter of the time for a report on a million cycles."""

_FREED_AT_ONCE = "thp:always,oversize_threshold:1048576,dirty_decay_ms:0,muzzy_decay_ms:0"
"""The same for large files: no freed memory is kept, at the price of a third of the CPU time. With
huge pages, the kernel gives it back with fewer faults."""

_LARGE_BYTES = 64 << 20
"""Size of the files, about 450,000 cycles, from which on memory matters more than a second."""

_OF_GLIBC = {-3: 1 << 18, -1: 1 << 18, -8: 1}
"""The same for the allocator of Python: M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, M_ARENA_MAX of
malloc.h. Otherwise glibc keeps blocks up to the size of the largest one freed before."""


def _free_soon() -> None:
    """Makes the allocators return freed memory, which is a tenth of the memory for a long log."""
    name, soon = _FREED_SOON
    # `Path.is_file` fails for a long line that is to be explained.
    files = (Path(word) for word in sys.argv[1:] if os.path.isfile(word))  # noqa: PTH113
    is_large = sum(file.stat().st_size for file in files) > _LARGE_BYTES
    os.environ.setdefault(name, _FREED_AT_ONCE if is_large else soon)
    # Other C libraries, and Windows, lack this function. Polars imports ctypes anyway.
    with contextlib.suppress(AttributeError, OSError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, value in _OF_GLIBC.items():
            mallopt(parameter, value)


def entry() -> int:
    """Runs the command in a process that ends with it, and returns its exit code."""
    lasts = sys.argv[1:2] and sys.argv[1] in _WITH_PROCESSES
    # Nearly all objects belong to modules, which are never garbage. With Python's own 700 (2,000 in
    # newer versions), and again at exit, checking them took a tenth of the time of a short report.
    objects = _NEW_OBJECTS if lasts else _NEW_OBJECTS_OF_A_REPORT
    gc.set_threshold(objects, *gc.get_threshold()[1:])
    if not lasts:
        _free_soon()
    try:
        code = main()
    finally:
        gc.freeze()
    if lasts:
        return code
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        # Everything is written and closed. Freeing all objects one by one would take a twentieth of
        # the time of a short report.
        os._exit(code)


def main(argv: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    words = sys.argv[1:] if argv is None else argv
    try:
        code = _run(words)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of the output has closed it, as `head` does.
        discard_output()
        return exit_codes.DONE
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED
    except Exception as err:
        if is_debugging(words):
            import traceback

            traceback.print_exc()
        else:
            say(wrapped(f"gctrace-analyze: {_visible(_message(err, words))}"))
        return exit_codes.of_error(err)
    return code


def is_debugging(words: list[str]) -> bool:
    """Returns whether `--debug` is among the options, which end at `--`."""
    options = words[: words.index("--")] if "--" in words else words
    return "--debug" in options


def _visible(message: str) -> str:
    """Returns a message without control characters, which file names and lines may have."""
    from gctrace_analyzer.present.format import printable

    return "\n".join(map(printable, message.split("\n")))


def _message(err: Exception, words: list[str]) -> str:
    if isinstance(err, BadSettingError):
        asks = f"\n  Try {_prog(words)} --help." if not err.value else ""
        return err.message(as_option) + _hint(err, words) + asks
    if isinstance(err, GctraceError):
        message = err.message(as_option)
        for word in words:  # A file that is given already cannot be the missing one.
            message = message.replace(f" Did you mean {word}?", "")
        return message
    if exit_codes.is_about_standard_output(err):
        discard_output()
        return f"standard output: {getattr(err, 'strerror', None) or err}"
    return (
        f"a bug in gctrace-analyzer: {type(err).__name__}: {err}\n"
        "  Please report it with the traceback that --debug prints."
    )


def _prog(words: list[str]) -> str:
    """Returns the command, and the word after it if that is a command."""
    return " ".join([PROGRAM, *(word for word in words[:1] if word in VERBS)])


def _hint(err: BadSettingError, words: list[str]) -> str:
    """Returns where several values may stand, for a program that ran with only one."""
    several = "," in err.value or ".." in err.value
    is_tried = words[0] in ("whatif", "measure", "compare")
    if is_tried or not several or err.argument not in ("gogc", "memory_limit"):
        return ""
    setting = as_option(err.argument, shlex.quote(err.value))
    return (
        f"\n  Here it is what the program ran with. To try values:\n"
        f"    gctrace-analyze whatif FILE {setting}"
    )


def _run(words: list[str]) -> int:
    if words in (["-h"], ["--help"]):
        return run_command("help", [])
    if not words and not is_piped():
        with contextlib.redirect_stdout(sys.stderr):
            run_command("help", [])
        return exit_codes.USAGE
    asked = words[-1] if words[:1] == ["help"] and words[-1] != "--help" else ""
    if asked.startswith("--") and _commands_with(asked):
        words = ["help", asked.removeprefix("--")]
    first = words[0] if words else ""
    if first in VERBS:
        return run_command(first, words[1:])
    if first and not first.startswith("-") and not Path(first).exists():
        near = _OTHER.get(first) or nearest(first, VERBS)
        if near and "." not in first and "/" not in first:
            say(f"gctrace-analyze: {first}: no such command or file. Did you mean {near}?")
            return exit_codes.USAGE
    if (command := _late_command(words)) is not None:
        others = " ".join(shlex.quote(word) for word in words if word != command)
        say(f"gctrace-analyze: the command comes first: gctrace-analyze {command} {others}")
        return exit_codes.USAGE
    return run_command("report", words)


def _late_command(words: list[str]) -> str | None:
    """Returns a command typed after a file, if it is neither a file nor the value of an option."""
    return next(
        (
            word
            for before, word in pairwise(words)
            if word in VERBS and not before.startswith("-") and not Path(word).exists()
        ),
        None,
    )


def parsers() -> dict[str, argparse.ArgumentParser]:
    """Returns the parser of each command."""
    names = ("report", *VERBS)
    return {name: import_module(module_of(name)).command_parser() for name in names}


def _commands_with(option: str) -> list[str]:
    found = parsers().items()
    return [name for name, parser in found if option in parser._option_string_actions]


def run_command(name: str, words: list[str]) -> int:
    """Runs one of `VERBS`, or `report`, the command that users call without a name."""
    # Imported only now, so that no command waits for the modules of others.
    from gctrace_analyzer.cli.deliver import deliver, validate

    command: Command = import_module(module_of(name))
    parser = command.command_parser()
    if isinstance(parser, Parser):
        parser.commands_with = _commands_with
    args = parser.parse_args(words)
    args.words = words if name == "report" else [name, *words]
    validate(args)
    return deliver(command.run(args), args)


def module_of(name: str) -> str:
    """Returns the module of a command."""
    home = "help.completion" if name == "completion" else name
    return f"gctrace_analyzer.cli.{home}"
