"""`gctrace-analyze help`: the commands, all options of a command, and the columns of tables."""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING, get_args

from gctrace_analyzer import schema
from gctrace_analyzer.cli.deliver import Result
from gctrace_analyzer.cli.main import VERBS, parsers, run_command
from gctrace_analyzer.cli.options import Parser, as_option
from gctrace_analyzer.errors import BadSettingError, nearest
from gctrace_analyzer.present.document import Gap, Heading, Paragraphs, Sentence, Sentences

if TYPE_CHECKING:
    from gctrace_analyzer.present.document import Block, Document

_TABLES = "tables"
_TOPICS = ("report", *VERBS, _TABLES, *schema.TABLES)

_OVERVIEW = """\
usage: gctrace-analyze [options] FILE...
       gctrace-analyze COMMAND ...

Shows what the garbage collector costs a Go program, why, and which GOGC and
GOMEMLIMIT to set. Reads gctrace output from every Go version, metrics,
MemStats, OOM kills and profiles; formats are detected automatically.

examples:
  GODEBUG=gctrace=1 ./server 2> run.log    record, then:
  gctrace-analyze run.log                  the report
  kubectl logs api-7d9f | gctrace-analyze recommend --container-limit 2GiB
  gctrace-analyze run.log -o report.html   charts, in one file

commands (gctrace-analyze recommend run.log):
{commands}

more help:
  gctrace-analyze help report              all options of the report
  gctrace-analyze help recommend           all options of a command
  gctrace-analyze help tables              tables and columns: --table, Python

State what the inputs do not show: --gogc, --memory-limit, --container-limit.
In whatif and measure, --gogc and --memory-limit are the settings to try;
there, --gogc-now and --memory-limit-now state what the program ran with.

exit codes: 0 analysed, 1 a --fail-on condition is true, 2 wrong usage,
3 no usable input, 70 internal error, 130 interrupted
"""


_HOW = (
    "A table as CSV: gctrace-analyze run.log --table pauses -f csv",
    "In Python: gctrace_analyzer.read('run.log').table('pauses')",
    "Its columns: gctrace-analyze help tables pauses",
)


def overview() -> str:
    """Returns the overview, on one screen."""
    return _OVERVIEW.format(commands="\n".join(_commands()))


def command_parser() -> argparse.ArgumentParser:
    """Returns the parser of this command."""
    parser = Parser(
        "help",
        "Shows what there is: all options of a command, or the columns of a table.",
        "exit codes: 0 shown, 2 nothing is about this",
        "[COMMAND]",
        "tables [TABLE]",
    )
    text = "a command, report, tables, a table, a figure, or a word such as oom or pause"
    parser.add_input("topics", "COMMAND", text, nargs="*", convert=_topic)
    parser.add_general()
    return parser


def _topic(text: str) -> str:
    if text in _TOPICS or any(_about(text).values()):
        return text
    from gctrace_analyzer.present.glossary import words

    expected = (
        f"a command ({', '.join(VERBS)}), report, tables, the name of a table, "
        "a finding such as GC016, an option such as --gogc, or a word of reports such as pause"
    )
    err = BadSettingError("topic", text, expected, nearest(text, (*_TOPICS, *words())))
    raise argparse.ArgumentTypeError(err.message(as_option))


def run(args: argparse.Namespace) -> Result:
    """Prints the help of a command or table."""
    first, *more = args.topics or ["help"]
    if first == _TABLES:
        return Result(document=lambda: _columns(more[0]) if more else _tables())
    if first == "report" or (first in VERBS and first != "help"):
        run_command(first, ["--help"])
    if first == "help":
        sys.stdout.write(overview())
        return Result()
    if first not in schema.TABLES:
        return Result(document=lambda: _found(first))
    return Result(document=lambda: _columns(first))


def _about(word: str) -> dict[str, dict[str, str]]:
    """Returns the commands, options and tables about a word, each with a sentence, by kind."""
    from gctrace_analyzer.analysis.rules.registry import RULES
    from gctrace_analyzer.present.format import sentences
    from gctrace_analyzer.present.glossary import find_word, words

    meant = find_word(word)
    named = {
        **_options(),
        "Findings: gctrace-analyze explain NAME": {
            rule.name: f"{rule.id}. {rule.meaning}" for rule in RULES.values()
        },
        "Tables: gctrace-analyze help tables NAME": schema.ABOUT,
        "Figures of --fail-on": {figure.name: figure.described for figure in schema.SUMMARY},
    }
    word = re.escape(word.lower().removesuffix("s"))
    stem = re.compile(rf"(?<![a-z]){word}(?:s|ed|er|ing)?(?![a-z])")
    terms = {
        name: sentences(text)[0]
        for name, text in words().items()
        if name == meant or stem.search(name.lower())
    }
    return {"Words: gctrace-analyze explain WORD": terms} | {
        heading: {
            name: about.replace("%%", "%")
            for name, about in sorted(rows.items(), key=lambda row: not stem.search(row[0]))
            if stem.search(f"{name} {about}".lower())
        }
        for heading, rows in named.items()
    }


def _options() -> dict[str, dict[str, str]]:
    """Returns the options of each command that no earlier command has, with their help."""
    own: dict[str, dict[str, str]] = {}
    known: set[str] = set()
    for command, parser in parsers().items():
        actions = {
            action.option_strings[-1]: action
            for action in parser._actions
            if action.option_strings
        }
        title = "the report" if command == "report" else command
        own[f"Options of {title}"] = {
            name: str(action.help) for name, action in actions.items() if name not in known
        }
        known |= set(actions)
    return own


def _found(word: str) -> Document:
    """Returns the results for a word, with the first words of their meaning."""
    blocks: list[Block] = []
    for heading, rows in _about(word).items():
        if rows:
            blocks += [Heading(heading), _described(rows), Gap()]
    return blocks[:-1]


def _commands() -> list[str]:
    rows = {"FILE...": "report: verdict, evidence, what to set"}
    rows |= {f"{name} {example}": about for name, (example, about) in VERBS.items()}
    return [f"  {words:25}  {about}" for words, about in rows.items()]


def _tables() -> Document:
    """Returns all tables, each with a sentence."""
    of_run = [name for name in get_args(schema.TableName) if name not in schema.LOG_TABLES]
    results = [name for name in schema.TABLES if name not in (*schema.LOG_TABLES, *of_run)]
    blocks: list[Block] = []
    for heading, tables in (
        ("Read from the input", schema.LOG_TABLES),
        ("Derived from it", of_run),
        ("Results of other commands", results),
    ):
        blocks += [Heading(heading), _described({name: schema.ABOUT[name] for name in tables})]
        blocks.append(Gap())
    return [*blocks, Paragraphs(_HOW)]


def _columns(table: str) -> Document:
    """Returns the columns of a table, each with its meaning."""
    if table not in schema.TABLES:
        raise BadSettingError.unknown("table", table, schema.TABLES)
    rows = {column.name: column.described for column in schema.TABLES[table]}
    return [Heading(f"{table}: {schema.ABOUT[table]}"), Gap(), _described(rows)]


def _described(rows: dict[str, str]) -> Sentences:
    width = 2 + max(map(len, rows))
    return Sentences([Sentence(*row) for row in rows.items()], width=width)
