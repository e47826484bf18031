"""The options that commands have in common, and how mistakes in them are reported."""

from __future__ import annotations

import argparse
import os
import re
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from gctrace_analyzer import __version__, core
from gctrace_analyzer.cli.screen import wrapped
from gctrace_analyzer.errors import BadSettingError, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Option: TypeAlias = (
        tuple[str, str, str]
        | tuple[str, str, str, Callable[[str], Any]]
        | tuple[str, str, str, Callable[[str], Any], object]
    )

PROGRAM = "gctrace-analyze"
THEMES = ("auto", "light", "dark")

_NOT_OPTIONS = {
    "command": "PROGRAM",
    "topic": "COMMAND",
    "condition": "--fail-on",
    "finding": "LINE",
    "finding id": "the id of a finding",
    "headers": "--header",
    "serve_for": "--for",
    "sides": "--side",
    "input": "FILE",
    "inputs": "INPUT",
    "line_no": "LINE",
    "origins": "FILE",
    "shell": "SHELL",
    "second side": "the second SIDE",
    "side": "SIDE",
    "settings": "SIDE",
    "stdin": "-",
    "url": "URL",
}
"""Python arguments that users type although they are not options or have other names."""


def as_option(argument: str, value: str | None = None) -> str:
    """Returns an argument of the library as it is written on the command line.

    >>> as_option("memory_limit"), as_option("kind", "log"), as_option("condition")
    ('--memory-limit', '--kind log', '--fail-on')
    """
    option = _NOT_OPTIONS.get(argument, "--" + argument.replace("_", "-"))
    return option if value is None else f"{option} {value}"


def with_options(note: str) -> str:
    """Returns a note of the library with options in place of argument names.

    >>> with_options("Times have no time zone; set `tz` to date them.")
    'Times have no time zone; set --tz to date them.'
    """
    return re.sub("`(year|tz)`", lambda name: as_option(name[1]), note)


_OTHER_NAMES = {
    "--json": "-f json", "--csv": "-f csv", "--html": "-o report.html", "--cpus": "--cpu-limit",
    "--limit": "--container-limit", "--memory": "--memory-limit or --container-limit",
    "--from": "--between A..B", "--to": "--between A..B", "--range": "--between A..B",
    "--window": "--table windows", "--fmt": "--format",
    "--gogc-now": "--gogc", "--memory-limit-now": "--memory-limit", "--target": "--gc-cpu-target",
    "-v": "--version", "-V": "--version",
}  # fmt: skip
"""What users type for an option whose name is not similar."""

_OF_OPTIONS = 0.75
"""Least similarity of an option that may be meant: names are short, and many."""


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Help in which options are written `-f, --format FORMAT`, so that most take one line."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=26)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        name = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {name}"


class Parser(argparse.ArgumentParser):
    """An argument parser with plain error messages and no abbreviated options.

    With `takes_program`, all words after `--` become the attribute `program` of the result. With
    `reads_pipe` and no FILE, standard input is read if it is a pipe or file.

    Args:
        command: the first word of the command; empty for the report.
        description: what the command does.
        epilog: examples and exit codes.
        usage: the possible arguments, one form per line.
    """

    takes_program = reads_pipe = False
    commands_with: Callable[[str], list[str]] = staticmethod(lambda _: [])
    """Returns the commands that have an option."""

    def __init__(self, command: str, description: str, epilog: str, *usage: str) -> None:
        prog = f"{PROGRAM} {command}".rstrip()
        super().__init__(
            prog=prog,
            usage="\n       ".join(f"{prog} {arguments}" for arguments in usage),
            description=description,
            epilog=epilog,
            allow_abbrev=False,
            add_help=False,
            formatter_class=_Formatter,
        )

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Returns the parsed words, with the program that follows `--` apart."""
        words = list(args or ())
        at = words.index("--") if self.takes_program and "--" in words else len(words)
        # Options may stand between files. Both steps of parsing those would look at words after a
        # --.
        parse = super().parse_args if "--" in words[:at] else super().parse_intermixed_args
        parsed = parse(words[:at], namespace)
        if self.takes_program:
            parsed.program = words[at + 1 :]
        if self.reads_pipe and not parsed.inputs:
            if not is_piped():
                self.error("no FILE given")
            parsed.inputs = ["-"]
        if wrong := self._settings(getattr(parsed, "inputs", getattr(parsed, "sides", ()))):
            self.error(wrong)
        return parsed

    def _settings(self, words: Sequence[str]) -> str:
        """Returns the options for environment variables among the arguments, if any."""
        settings = {word: option for word in words if (option := _as_setting(word))}
        if not settings:
            return ""
        option = " ".join(settings.values())
        named = f"no such file: {' '.join(settings)}.\n  Settings are options"
        if self.prog.endswith((" whatif", " measure")):
            return f"{named}. Did you mean {option}?"
        how = f"gctrace-analyze whatif FILE {option}"
        return f"{named}: {option}, if the program ran with it. To try it:\n    {how}"

    def error(self, message: str) -> NoReturn:
        """Prints one message that says what to change, and exits with code 2."""
        plain = self._plain(message)
        end = "" if plain.endswith((".", "?", "--")) or "\n" in plain else "."
        text = wrapped(f"{PROGRAM}: {plain}{end}")
        self.exit(2, f"{text}\n  Try {self.prog.removesuffix(' help')} --help.\n")

    def _plain(self, message: str) -> str:
        """Returns a message of argparse in plain words, with the nearest valid option."""
        if match := re.match(r"unrecognized arguments: (.*)", message, re.DOTALL):
            word = next((word for word in match[1].split() if word.startswith("-")), "")
            if not word or (self.takes_program and not match[1].startswith("-")):
                if settings := self._settings(match[1].split()):
                    return settings
                after = "; the program comes after --" if self.takes_program else ""
                if _UNIT.fullmatch(match[1]):
                    after = ": a number and its unit are one word, such as 2GiB or 30s"
                return f"unexpected argument {match[1]!r}{after}"
            return self._unknown(word.partition("=")[0])
        if match := re.match(r"the following arguments are required: (.*)", message):
            return f"no {match[1]} given"
        if match := re.match(r"argument (\S+): expected one argument", message):
            return f"{match[1].rpartition('/')[2]} needs a value"
        return re.sub(r"^argument \S+: ", "", message)

    @property
    def _title(self) -> str:
        return self.prog.removeprefix(PROGRAM).strip() or "the report"

    def _unknown(self, name: str) -> str:
        """Returns the option meant by an unknown one, or the commands that have it."""
        # Without the dashes, which are alike in all of them.
        valid = {full.lstrip("-"): full for full in self._option_string_actions}
        near = _OTHER_NAMES.get(name) or valid.get(
            nearest(name.lstrip("-"), valid, _OF_OPTIONS) or ""
        )
        if near is None and (others := self.commands_with(name)):
            return f"{name} is an option of {', '.join(others)}, not of {self._title}."
        is_valid = near and near.split()[0] in self._option_string_actions
        return f"unknown option {name}." + (f" Did you mean {near}?" if is_valid else "")

    def add_input(
        self, name: str, metavar: str, text: str, nargs: str | None = None, convert: Any = None
    ) -> argparse._ArgumentGroup:
        """Adds the main argument of the command, which has no option name."""
        group = self.add_argument_group("input")
        group.add_argument(name, metavar=metavar, help=text, nargs=nargs, type=convert)
        return group

    def add_files(self) -> argparse._ArgumentGroup:
        """Adds FILE..., which a pipe may replace."""
        self.reads_pipe = True
        text = "a log; - or a pipe without FILE: standard input"
        return self.add_input("inputs", "FILE", text, nargs="*")

    def add_general(self) -> None:
        """Adds the options every command has."""
        group = self.add_argument_group("general")
        group.add_argument("-h", "--help", action="help", help="show this help and exit")
        add_options(
            group,
            ("--color", "WHEN", "colours: auto (default: on terminals), always, never",
             OneOf("color", ("auto", "always", "never")), "auto"),
            ("--theme", "THEME", "colours for a background: auto (default), light, dark",
             OneOf("theme", THEMES), "auto"),
            ("--width", "COLUMNS", "columns of text, 60 to 120 (default: the terminal's)",
             whole_number("width", 1)),
            ("--debug", "", "show a traceback for errors"),
        )  # fmt: skip
        group.add_argument(
            "--version",
            action="version",
            version=f"gctrace-analyze {__version__} (core: {core.described()})",
            help="show the version and exit",
        )

    def add_output(self, formats: Sequence[str]) -> argparse._ArgumentGroup:
        """Adds the options for what is printed and which files are written.

        Args:
            formats: what the command can write, the default first.
        """
        from gctrace_analyzer.cli.deliver import FILES_ONLY, suffixes_of

        group = self.add_argument_group("output")
        add_format(group, [kind for kind in formats if kind not in FILES_ONLY])
        suffixes = " ".join(suffixes_of(formats))
        add_options(
            group,
            ("-o --output", "FILE", "write to FILE instead of standard output; the suffix sets the "
             f"format: {suffixes} (repeatable)", Path),
        )  # fmt: skip
        self.set_defaults(formats=tuple(formats))
        return group

    def add_facts(
        self,
        *,
        suffix: str = "",
        per_side: str = "",
        one_program: bool = False,
    ) -> None:
        """Adds the options that state facts about the program.

        Args:
            suffix: what to append to the options for GOGC, memory limit and ballast: `-now` makes
                `--gogc-now`.
            per_side: text to add to the help of options that take one value per side.
            one_program: whether the input comes from one program, which may still run.
        """
        about = "Inferred from the inputs by default; give them where the inputs do not say."
        if suffix:
            about += (
                "\n--gogc and --memory-limit are the settings to try, not those it ran with."
            )
        facts = self.add_argument_group("facts about the program", about)

        add_options(
            facts,
            (f"--gogc{suffix}", "PERCENT", f"GOGC that it ran with: 100, 50 or off{per_side}"),
            (f"--memory-limit{suffix}", "SIZE",
             f"GOMEMLIMIT that it ran with: 900MiB or off{per_side}"),
            ("--container-limit", "SIZE", "memory limit of the container: 2GiB, 2Gi or 2g; 2G "
             "is 2,000,000,000 bytes, as in Kubernetes"),
            ("--cpu-limit", "CPUS", "CPU limit of the container: 1.5 or 500m"),
            ("--go-version", "VERSION", f"Go version that built it: 1.22{per_side}"),
            (f"--ballast{suffix}", "SIZE", "size of the heap ballast: 64MiB"),
            ("--off-heap", "SIZE", "memory outside Go (cgo, mmap): 200MiB"),
        )  # fmt: skip
        if one_program:
            add_options(
                facts,
                ("--pid", "PID", "process ID of the program, if it still runs on this machine: "
                 "its GOGC and GOMEMLIMIT are read",
                 whole_number("pid", 1)),
            )  # fmt: skip

    def add_checks(self, examples: str) -> None:
        """Adds the options `--fail-on` and `--junit`."""
        group = self.add_argument_group("checks for CI")
        add_options(
            group,
            ("--fail-on", "CONDITION",
             f"exit with code 1 if CONDITION is true, for example {examples} (repeatable)"),
            ("--junit", "FILE", "write the results of --fail-on to FILE as JUnit XML (.xml)", Path),
        )  # fmt: skip

    def add_judging(self) -> None:
        """Adds the options that define what counts as a problem."""
        group = self.add_argument_group("what counts as a problem")
        add_options(
            group,
            ("--slo", "NAME=LIMIT", "a service level: pause=2ms or gc_cpu=5%%; the report shows "
             "how often it was met, and findings use it as their threshold (repeatable)"),
            ("--thresholds", "FILE", "TOML file with other thresholds for findings, and service "
             "levels in a table slo; by default the table tool.gctrace-analyzer of "
             "./pyproject.toml", Path),
        )  # fmt: skip

    def add_reading(self, *, growing: bool = False) -> argparse._ArgumentGroup:
        """Adds the options for how inputs are read.

        An input that is still `growing` can only be a log, so the options for other inputs are left
        out.
        """
        group = self.add_argument_group("how to read the inputs")
        add_options(
            group,
            ("--year", "YEAR", "year of the first line, if timestamps have none",
             whole_number("year", 1970)),
            ("--tz", "ZONE", "time zone, if timestamps have none: Europe/Berlin"),
            ("--start", "TIME", "when the program started, for logs without timestamps: "
             "2026-11-21T09:00:00Z"),
        )  # fmt: skip
        if growing:
            return group
        add_options(
            group,
            ("--kind", "KIND", "input format, if it is not detected correctly: log, json, "
             "journal-export, journal-verbose, memstats-csv, pprof, metrics, describe, csv-export, "
             "yaml"),
            ("--columns", "NAMES",
             "column names of a MemStats table without a header: HeapSys,HeapAlloc,..."),
            ("--unpack-limit", "SIZE", "largest unpacked size of an input: 64GiB (default: 4GiB, "
             "or 250 times its compressed size if that is more)"),
        )  # fmt: skip
        return group


_UNIT = re.compile(r"(?:[kmgt]i?b?|bytes|[munµ]?s|min|h|%)", re.IGNORECASE)


def _as_setting(word: str) -> str | None:
    """Returns the option for a word such as GOGC=200; None for other words, and for files.

    >>> _as_setting("GOMEMLIMIT=1GiB"), _as_setting("GOGC=a.log")
    ('--memory-limit 1GiB', None)
    """
    match = re.fullmatch(r"(GOGC|GOMEMLIMIT)=(off|\d[\w,.]*)", word)
    if match is None or Path(word).exists() or Path(match[2]).exists():
        return None
    return as_option("gogc" if match[1] == "GOGC" else "memory_limit", match[2])


def is_piped() -> bool:
    """Returns whether standard input is a pipe, a socket or a file."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):
        return False  # closed, or replaced by an object without a file
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISREG(mode)


def add_options(group: argparse._ActionsContainer, *options: Option) -> None:
    """Adds options: the names of each, the name of its value (empty: none), and its help.

    The fourth part converts the value, and the fifth is the default. If an option may be repeated,
    its values are a list.
    """
    for names, metavar, text, *more in options:
        if not metavar:
            dest = "everything" if names == "--all" else None  # `all` is a function.
            group.add_argument(names, action="store_true", help=text, dest=dest)
            continue
        how: Any = dict(zip(("type", "default"), more, strict=False))
        if "(repeatable" in text or metavar.startswith("NAME="):
            how |= {"action": "append", "default": []}
        elif metavar in _JOINED:
            how |= {"action": _Joined}
        group.add_argument(*names.split(), metavar=metavar, help=text, **how)


_JOINED = ("PERCENT", "SIZE", "LIST", "VERSION", "CPUS", "NAMES")
"""Options for settings or facts, whose repeated values must not be lost."""


class _Joined(argparse.Action):
    """Joins the values of an option with commas: --gogc 200 --gogc 400 is --gogc 200,400."""

    def __call__(self, _parser: Any, namespace: Any, values: Any, _option: Any = None) -> None:
        given = (getattr(namespace, self.dest), values)
        setattr(namespace, self.dest, ",".join(dict.fromkeys(filter(None, given))))


class OneOf:
    """A converter that accepts only these values, for `add_argument(type=...)`."""

    def __init__(self, option: str, valid: Sequence[str]) -> None:
        self._option = option
        self.valid = tuple(valid)

    def __call__(self, text: str) -> str:
        """Returns the value, or reports that it is not valid."""
        if text in self.valid:
            return text
        raise _argument_error(BadSettingError.unknown(self._option, text, self.valid))


def whole_number(option: str, at_least: int) -> Callable[[str], int]:
    """Returns a converter that accepts whole numbers of `at_least` or more."""

    def convert(text: str) -> int:
        if re.fullmatch(r"\d+", text) and int(text) >= at_least:
            return int(text)
        expected = f"a whole number, {at_least} or more"
        raise _argument_error(BadSettingError(option, text, expected))

    return convert


def _argument_error(err: BadSettingError) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(err.message(as_option))


CSV_SAFE = (
    "--csv-safe",
    "",
    "in CSV, put ' before texts that a spreadsheet would run as a formula",
)


def add_format(group: argparse._ActionsContainer, formats: Sequence[str]) -> None:
    """Adds `--format`."""
    text = f"print this format: {', '.join(formats)} (default: {formats[0]})"
    add_options(group, ("-f --format", "FORMAT", text, OneOf("format", formats)))


def read_options(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the parsed options as the arguments that `read` and `live` take."""
    from gctrace_analyzer.analysis.settings.known import ProgramFacts
    from gctrace_analyzer.ingest.read import InputOptions

    names = (*ProgramFacts.__annotations__, "pid", *InputOptions.__annotations__)
    options = {name: getattr(args, name) for name in names if name in args}
    if options.get("columns"):
        options["columns"] = options["columns"].split(",")
    return options
