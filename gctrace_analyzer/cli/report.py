"""The report: `gctrace-analyze run.log`, the command without a name."""

from __future__ import annotations

import shlex
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast, get_args

from gctrace_analyzer.cli.deliver import (
    LONGEST_COMMAND,
    PICTURES,
    ROWS,
    Result,
    check_conditions,
    left_out,
    next_steps,
    outputs,
    refuse_ignored,
    retyped,
    row_writers,
    text_writer,
)
from gctrace_analyzer.cli.options import (
    CSV_SAFE,
    OneOf,
    Parser,
    add_options,
    read_options,
    whole_number,
    with_options,
)
from gctrace_analyzer.cli.reading import (
    add_server_as_input,
    fetching,
    reading,
    reading_inputs,
    say_damage,
    server_options,
)
from gctrace_analyzer.errors import BadSettingError, UnreadableInputError
from gctrace_analyzer.files import without_secrets
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest.sources import is_server
from gctrace_analyzer.present.document import Gap, Paragraphs
from gctrace_analyzer.schema import PlotName, TableName

if TYPE_CHECKING:
    import argparse

    from gctrace_analyzer.cli.deliver import Sink, Writer
    from gctrace_analyzer.present.document import Document
    from gctrace_analyzer.present.plots.palette import Theme
    from gctrace_analyzer.prometheus.question import Question
    from gctrace_analyzer.run import Run

FORMATS = ("text", "json", "jsonl", "csv", "md", "html", "parquet", "png", "svg")
PLOTS: tuple[str, ...] = get_args(PlotName)
TABLES: tuple[str, ...] = get_args(TableName)
_OF_ONE = ("table", "between", "process", "fail_on", "junit")
"""Options that only make sense for one process."""
_PREDICT = "recommend", "whatif"
_COMPARE = ("compare A.log B.log",)

_DESCRIPTION = """\
Shows what the Go garbage collector did to your program: findings, what caused
them, and which GOGC and GOMEMLIMIT to set.

  GODEBUG=gctrace=1 ./server 2> run.log
  gctrace-analyze run.log

Reads gctrace output from every Go version, also between other log lines, in
the log formats of journald, Docker and Kubernetes, and compressed; formats are
detected automatically. Several files are read as one log: give the parts of a
rotated log from the oldest to the newest, and MemStats dumps and OOM kill
messages in any order."""

_EPILOG = """\
examples:
  gctrace-analyze run.log.1.gz run.log          rotated parts of one log
  kubectl logs api-7d9f | gctrace-analyze       standard input
  gctrace-analyze run.log allocs.pb.gz          with a profile: which functions
  gctrace-analyze run.log -o report.html -o cycles.parquet
  gctrace-analyze run.log -o pauses.png --plot pauses
  gctrace-analyze run.log --format csv --table pauses
  gctrace-analyze run.log --between 60s..120s --process 0
  gctrace-analyze run.log --fail-on 'stw_p99_ms>2' --fail-on finding:bad

exit codes: 0 analysed, 1 a --fail-on condition is true, 2 wrong usage,
3 no usable input, 70 internal error, 130 interrupted"""


def run(args: argparse.Namespace) -> Result:
    """Reads the inputs and analyses the selected part."""
    validate(args)
    if len(args.inputs) == 1 and is_server(args.inputs[0]):
        from gctrace_analyzer.prometheus.question import question

        options = server_options(args)
        options.pop("save", None)
        with reading():
            asked = question(args.inputs[0], **options)
        if len(asked.targets) > 1:
            return _several(args, asked)
        return result(_read_process(args, asked), args)
    return result(read_inputs(args), args)


def _read_process(args: argparse.Namespace, asked: Question) -> Run:
    """Returns the data of a server about one process."""
    from gctrace_analyzer.api import read
    from gctrace_analyzer.prometheus.question import recorded

    options = read_options(args)
    with (
        reading() as progress,
        fetching() as fetched,
        recorded(asked, args.match, args.save, fetched) as answers,
    ):
        options["container_limit"] = options["container_limit"] or answers.container_limit_mib
        run = read(answers.file(), progress=progress, **judging_options(args), **options)
    return run.with_notes(with_options)


def _several(args: argparse.Namespace, asked: Question) -> Result:
    """Ranks all processes of a selector; saves their samples if asked to."""
    given = [name for name in _OF_ONE if getattr(args, name, None) not in (None, [])]
    if given:
        names = ", ".join(target.name for target in asked.targets[:5])
        more = ", …" if len(asked.targets) > 5 else ""
        raise BadSettingError(
            given[0],
            str(getattr(args, given[0])),
            f"one process, but {len(asked.targets)} fit: {names}{more}",
            remedy="instance",
        )
    from gctrace_analyzer.cli import fleet

    args.formats = fleet.FORMATS
    outputs(args)
    from gctrace_analyzer.prometheus.question import SINCE, recorded

    if args.save is not None:
        with reading(), fetching() as fetched, recorded(asked, args.match, args.save, fetched):
            pass
    ranked = fleet.of_server(args, since=args.since or SINCE)
    hint = f"For the report of one process: --instance {asked.targets[0].name}"
    return replace(ranked, closing=lambda: [Gap(), Paragraphs([hint])])


def validate(args: argparse.Namespace) -> None:
    """Refuses options that cannot work before anything is read.

    Raises:
        BadSettingError: no format takes the table or plot, or a condition is not valid.
    """
    refuse_ignored("table", args, ROWS)
    refuse_ignored("plot", args, PICTURES)
    check_conditions(args)


@frozen
class Page:
    """Options for HTML pages: the command they name, whether they are small, their colours."""

    command: str = ""
    light: bool = False
    theme: Theme = "auto"


_PLAIN = Page()


def result(whole: Run, args: argparse.Namespace) -> Result:
    """Returns the report on a run, or on the part of it that is selected."""
    page = Page(_command(args.words), light=args.light, theme=args.theme)
    run = _selected(whole, args)
    view = of_run(
        run,
        page,
        table=args.table or "cycles",
        plot=args.plot or PLOTS[0],
        safe=args.csv_safe,
    )
    return replace(
        view,
        is_empty=whole.is_empty,
        closing=lambda: _next(run, args),
        everything=args.everything,
    )


def _next(run: Run, args: argparse.Namespace) -> Document:
    """Returns the next steps. A heap profile is suggested, and never fetched unasked."""
    has_cycles = run.analysis.summary.cycles > 0
    has_runs = has_cycles and run.processes["source"].n_unique() > 1
    verbs = [*_PREDICT * (has_cycles and run.advice.is_available), *_COMPARE * has_runs]
    steps = [retyped(args, "report.html")]
    if verbs:
        first, *others = (verb.split()[0] for verb in verbs)
        inputs = [source.name for source in run.sources]
        options = left_out(args, "report.html")
        # A report fits one screen, so one command stands for the others.
        one = shlex.join(["gctrace-analyze", first, *inputs])
        one += f" · also {', '.join([*others, *options])}"
        are_typed = {*inputs} <= {*args.words} and len(one) <= LONGEST_COMMAND
        steps = [one if are_typed else f"add {' or '.join(options)} · run {', '.join(verbs)}"]
    named = {facts.name: facts.profiles_at for facts in run.sources if facts.profiles_at}
    if named:
        name, url = next(iter(named.items()))
        steps.append(
            f"The log names net/http/pprof. curl -o heap.pb.gz {url}/heap fetches a "
            f"profile; gctrace-analyze {shlex.quote(name)} heap.pb.gz shows which functions "
            "allocate."
        )
    return next_steps(*steps)


def of_run(
    view: Run,
    page: Page = _PLAIN,
    *,
    table: str = "cycles",
    plot: str = PLOTS[0],
    safe: bool = False,
) -> Result:
    """Returns the report on a run in every format.

    Args:
        view: what the report shows.
        page: the options for HTML pages.
        table: the table for csv, jsonl and parquet.
        plot: the plot for png and svg.
        safe: whether to prevent texts in CSV from being formulas.
    """
    from gctrace_analyzer.present.sections.report import document

    def write_page(file: IO[bytes], target: Sink) -> None:
        from gctrace_analyzer.present.html import report_page

        text = report_page.dumps(
            view.report(),
            light=page.light,
            command=page.command or None,
            other_process="`--process N` draws process N; see the table of processes.",
            made_at=datetime.now(UTC),
            theme=page.theme,
            on_drawing=partial(target.say, "drawing"),
        )
        file.write(text.encode("utf-8", "replace"))

    writers: dict[str, Writer] = {
        "json": text_writer(view.to_json),
        "html": write_page,
        **{kind: partial(_write_plot, view, kind, plot, page.theme) for kind in PICTURES},
        **row_writers(lambda: view.table(cast("TableName", table)), safe=safe),
    }
    return Result(document=lambda: document(view.report()), writers=writers, check=view.check)


def _write_plot(
    view: Run, kind: str, name: str, theme: Theme, file: IO[bytes], target: Sink
) -> None:
    from gctrace_analyzer.present.plots.accessor import described, with_data
    from gctrace_analyzer.present.plots.matplotlib_backend import image

    figure = with_data(described(view.report(), name))
    target.say("drawing")
    file.write(image(figure, kind, theme))


def _command(words: list[str]) -> str:
    """Returns the command to show in a report, without headers, passwords and queries of URLs.

    >>> _command(["prometheus", "https://me:secret@host/api?token=1", "--header", "X: y"])
    "gctrace-analyze prometheus https://host/api --header '…'"
    """
    shown, hide = [], False
    for word in words:
        option, equals, _ = word.partition("=")
        if hide:
            shown.append("…")
        elif option == "--header" and equals:
            shown.append("--header=…")
        else:
            shown.append(without_secrets(word))
        hide = word == "--header"
    return shlex.join(["gctrace-analyze", *shown])


def command_parser() -> argparse.ArgumentParser:
    """Returns the parser of this command."""
    parser = Parser("", _DESCRIPTION, _EPILOG, "[options] FILE...")
    parser.add_files()
    add_report(parser)
    parser.add_judging()
    parser.add_facts(one_program=True)
    strict = ("--strict", "", "exit with code 3 if a line cannot be read")
    add_options(parser.add_reading(), strict)
    add_server_as_input(parser)
    parser.add_general()
    return parser


def add_report(parser: Parser) -> None:
    """Adds the options for the content and form of a report."""
    output = parser.add_output(FORMATS)
    add_options(
        output,
        CSV_SAFE,
        ("--table", "TABLE", "table to write as csv, jsonl or parquet, such as pauses, windows or "
         "findings (default: cycles); gctrace-analyze help tables lists them",
         OneOf("table", TABLES)),
        ("--plot", "PLOT",
         f"plot to write as png or svg: {', '.join(PLOTS)} (default: timeline)",
         OneOf("plot", PLOTS)),
        ("--all", "", "print everything, not only what fits on one screen: phases, pauses, the "
         "worst cycles, every finding and note"),
        ("--light", "", "a small HTML report without scripts, for tickets and mail"),
    )  # fmt: skip
    add_options(
        parser.add_argument_group("selection"),
        ("--between", "A..B", "only cycles that start in this range, counted from the start of the "
         "program: 60s..120s, 5m.., ..1h"),
        ("--process", "N", "only this process, counted from 0 in the order of the input",
         whole_number("process", 0)),
    )  # fmt: skip
    parser.add_checks("'stw_p99_ms>2', 'gc_cpu_share>10%%', finding:bad or finding:GC016")


def read_inputs(args: argparse.Namespace) -> Run:
    """Returns the run in the inputs; reports which could be read only in part."""
    from gctrace_analyzer.api import read

    with reading_inputs(args) as options:
        run = read(*args.inputs, **judging_options(args), **options)
    say_damage(run)
    return run.with_notes(with_options)


def _selected(whole: Run, args: argparse.Namespace) -> Run:
    """Returns the part of the run that `--process` and `--between` select."""
    view = whole
    if args.process is not None:
        view = view.process(args.process)
    if args.between is not None:
        from gctrace_analyzer.units import span_s

        view = view.between(*span_s(args.between, argument="between"))
    return view


def judging_options(args: argparse.Namespace) -> dict[str, Any]:
    """Returns `thresholds` and `slo` as `read` takes them, from the options and the file.

    Raises:
        UnreadableInputError: the file is missing or not TOML.
        BadSettingError: a service level is not of the form NAME=LIMIT.
    """
    values = _table(args.thresholds)
    promised = dict(values.pop("slo", {}))
    for text in args.slo:
        name, is_pair, limit = text.partition("=")
        if not is_pair:
            expected = "NAME=LIMIT, such as pause=2ms"
            raise BadSettingError("slo", text, expected)
        promised[name.strip()] = limit.strip()
    return {"thresholds": values, "slo": promised}


def _table(path: Path | None) -> dict[str, Any]:
    """Returns the table of a thresholds file, or of the project file in the present folder."""
    source = path or Path("pyproject.toml")
    try:
        text = source.read_text()
        import tomllib

        document = tomllib.loads(text)
    except FileNotFoundError:
        if path is None:
            return {}
        hint = "Give an existing TOML file to --thresholds."
        raise UnreadableInputError(str(path), "there is no such file", hint) from None
    except (OSError, ValueError) as error:
        if path is None:
            return {}
        hint = "See `gctrace-analyze help report` and docs/gates.md."
        raise UnreadableInputError(str(path), f"not a TOML file: {error}", hint) from None
    own: dict[str, object] = document.get("tool", {}).get("gctrace-analyzer", {})
    return dict(own or ({} if path is None else document))
