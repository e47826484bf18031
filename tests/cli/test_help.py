"""The help in layers: an overview, all options of a command, tables and their columns."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer import schema
from gctrace_analyzer.analysis.rules.registry import find_rule
from gctrace_analyzer.cli import main
from gctrace_analyzer.cli.main import VERBS
from gctrace_analyzer.ingest.sniff import KINDS
from gctrace_analyzer.present import fleet_tables
from gctrace_analyzer.present.document import Folded, Table
from gctrace_analyzer.present.explain import explain_name
from gctrace_analyzer.present.fleet_tables import Column
from gctrace_analyzer.present.glossary import explain_word, words
from gctrace_analyzer.present.sections import headline
from gctrace_analyzer.present.sections.advice import SIGNS
from gctrace_analyzer.present.sections.changes import LABELS
from gctrace_analyzer.present.sections.report import document
from tests.conftest import SAMPLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

COMMANDS = ["report", *(verb for verb in VERBS if verb != "help")]


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What a command prints that ends well."""

    def show(*words: str) -> str:
        try:
            code = main(list(words))
        except SystemExit as ended:
            code = int(ended.code or 0)
        assert code == 0
        return capsys.readouterr().out

    return show


def test_the_overview_fits_a_screen_and_names_every_command(shown: Callable[..., str]) -> None:
    text = shown("help")
    assert text == shown("--help") == shown("-h")
    assert len(text.splitlines()) <= 40
    assert max(map(len, text.splitlines())) <= 80
    assert all(f"\n  {verb} " in text for verb in VERBS)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_has_examples_and_fits_a_terminal(
    command: str, shown: Callable[..., str]
) -> None:
    text = shown("help", command)
    assert text == shown(*([] if command == "report" else [command]), "--color", "auto", "-h")
    assert "\nexamples:\n  gctrace-analyze" in text
    assert "\nexit codes: " in text
    assert max(map(len, text.splitlines())) <= 80
    assert text.isascii()


@pytest.mark.parametrize("command", ["report", "recommend", "whatif", "compare", "fleet"])
def test_the_options_for_a_server_are_explained_once_and_named_last(
    command: str, shown: Callable[..., str]
) -> None:
    explained = shown("help", "prometheus").partition("\nthe server:")[2].partition("\n\n")[0]
    text = shown("help", command)
    assert text.index("how to read the inputs:") < text.index("a Prometheus server as input:")
    of_server = text.partition("a Prometheus server as input:")[2].partition("\n\n")[0]
    assert of_server.endswith(": see gctrace-analyze help prometheus")
    options = re.findall(r"\n  (--[\w-]+)", explained)
    assert set(options) == set(re.findall(r"--[a-z-]+", of_server))
    assert not re.search(r"(?m)^  --token-file", text)


def test_the_help_of_the_report_names_every_input_format(shown: Callable[..., str]) -> None:
    assert ", ".join(KINDS) in " ".join(shown("help", "report").split())


def test_every_table_has_a_line_and_every_column_a_meaning(shown: Callable[..., str]) -> None:
    assert set(schema.ABOUT) == set(schema.TABLES)
    tables = shown("help", "tables")
    assert all(f"\n  {name} " in tables for name in schema.TABLES)
    for name, columns in schema.TABLES.items():
        text = shown("help", "tables", name)
        assert all(f"\n  {column.name} " in text for column in columns)
        assert max(map(len, text.splitlines())) <= 80
    assert shown("help", "cycles") == shown("help", "tables", "cycles")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["help", "cylces"], "Did you mean cycles?"),
        (["help", "tables", "pause"], "Did you mean pauses?"),
        (["explain", "limit-trash"], "Did you mean limit-thrash?"),
        (["explain", "mark", "asist"], "Did you mean mark assist?"),
        (["explain", "gc_cpu_shar"], "Did you mean gc_cpu_share?"),
        (["recommend", "x.log", "--gogc", "50,100"], "whatif FILE --gogc 50,100"),
        (["x.log", "--memory-limit", "1GiB..2GiB"], "whatif FILE --memory-limit 1GiB..2GiB"),
        (["recommend", "x.log", "--gogc-now", "100"], "Did you mean --gogc?"),
        (["x.log", "--windw", "5s"], "unknown option --windw."),
        (["x.log", "--from", "5s"], "unknown option --from. Did you mean --between A..B?"),
        (["recommend", "x.log", "--target", "3%"], "Did you mean --gc-cpu-target?"),
    ],
)
def test_a_mistake_says_what_to_type(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(words)
    except SystemExit as ended:
        code = int(ended.code or 0)
    assert code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("command", ["whatif", "measure"])
def test_what_is_tried_is_not_what_the_program_ran_with(
    command: str, shown: Callable[..., str]
) -> None:
    text = shown("help", command)
    assert "are the settings to try, not those it ran with" in text
    assert "--gogc-now PERCENT" in text


@pytest.mark.parametrize(
    ("word", "first", "table"),
    [
        ("oom", "out-of-memory", "oom_kills"),
        ("kill", "out-of-memory", "oom_kills"),
        ("limit", "limit-thrash", "--memory-limit"),
        ("leak", "live-heap-growth", ""),
        ("pause", "long-gc-pauses", "cycle_pauses"),
        ("assist", "assist-pressure", ""),
        ("137", "OOMKilled", ""),
        ("stop the world", "stop the world", ""),
        ("true_live_heap", "true_live_heap_mib", ""),
    ],
)
def test_a_word_leads_to_findings_tables_and_options(
    word: str, first: str, table: str, shown: Callable[..., str]
) -> None:
    text = shown("help", word)
    assert f"  {first} " in text
    assert table in text
    assert "room" not in text.partition("\n\n")[0] or word != "oom"
    assert max(map(len, text.splitlines())) <= 80
    assert max(map(len, shown("help", word, "--width", "60").splitlines())) <= 60


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "kernel: Memory cgroup out of memory: Killed process 7 (api) total-vm:2048kB, "
            "anon-rss:1024kB, file-rss:0kB, shmem-rss:0kB, UID:1 oom_score_adj:968",
            ("1 MiB", "anon-rss", "-1000 (never) to 1000 (first)", "api was killed because"),
        ),
        ("api invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0", ("2^order pages",)),
        ("memory: usage 524288kB, limit 524288kB, failcnt 123", ("512 MiB", "limit was hit")),
        ("api.service: Failed with result 'oom-kill'.", ("oom-kill", "api.service")),
        ("fatal error: runtime: out of memory", ("out of memory",)),
    ],
)
def test_a_line_about_a_kill_is_explained_field_by_field(
    line: str, words: tuple[str, ...], shown: Callable[..., str]
) -> None:
    text = " ".join(shown("explain", line).split())
    assert all(word in text for word in words)


@pytest.mark.parametrize(
    ("word", "title"),
    [
        ("Mark assist", "mark assist"),
        ("GC burst", "GC burst"),
        ("gc-burst", "GC burst"),
        ("true live heap", "live heap mean"),
        ("137", "OOMKilled"),
        ("GC CPU+idle", "idle marking"),
        ("effective_gogc_p50", "effective_gogc_p50"),
        ("GOGC", "GOGC"),
        ("mmu", "MMU"),
        ("RSS", "resident memory"),
        ("80 % interval", "80 % interval"),
        ("sweep", "sweep"),
        ("leak", "leak"),
        ("start-up", "start-up"),
        ("warn", "severity"),
        ("batch job", "batch job"),
        ("2 procs", "procs"),
        ("go1.18+", "Go version"),
        ("off-heap", "memory outside the heap"),
        ("write barrier", "write barrier"),
        ("bursts", "live heap"),
    ],
)
def test_the_words_of_a_report_are_explained(
    word: str, title: str, shown: Callable[..., str]
) -> None:
    first, *rest = shown("explain", word).splitlines()
    assert first == title
    assert rest
    assert "{" not in "".join(rest)


def test_every_figure_of_a_report_and_every_episode_is_explained() -> None:
    run = gca.read(SAMPLES / "leak-into-limit-go1.24.log")
    labels = [figure.label for figure in headline.state(run.report())]
    assert len(labels) == 7
    (kinds,) = (column.meaning for column in schema.EPISODES if column.name == "kind")
    assert all(explain_word(name) or explain_name(name) for name in (*labels, *kinds.split()))


PLAIN = {
    "Also", "Processes", "Setting", "at", "figure", "affects", "files", "followed by", "for example", "from",
    "problem", "processes", "replicas",
    "services", "state", "setting (most often)", "time", "to", "total", "max", "value",
    "< 0.1 ms", "0.1–1 ms", "1–10 ms", "> 10 ms",
}  # fmt: skip
"""Heads of columns that mean what they mean everywhere."""


def _heads(blocks: Iterable[object]) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, Folded):
            yield from _heads(block.blocks())
        elif isinstance(block, Table):
            yield from block.head


def test_the_heads_of_all_tables_and_the_words_of_legends_are_explained() -> None:
    heads = set()
    runs = [gca.read(path) for path in SAMPLES.glob("*.log")]
    for run in runs:
        heads |= {*_heads(document(run.report()))}
    steady = str(SAMPLES / "steady-go1.26.log")
    others = [str(SAMPLES / f"{name}-go1.26.log") for name in ("steady-gogc200", "ballast")]
    for comparison in (
        gca.compare(steady, others[0]),
        gca.compare({"1": steady, "2": others[0], "3": others[1]}),
    ):
        heads |= {*_heads(comparison.document())} - {"1", "2", "3", "before", "after"}
    columns = [value for value in vars(fleet_tables).values() if isinstance(value, Column)]
    heads |= {column.head for column in columns}
    heads |= {*LABELS.values(), *SIGNS.values(), *fleet_tables.STATES.values()}
    heads |= {"GC cores", "mutator", "bursts", "Explained by the load", "held", "undecided"}
    unknown = {
        head
        for head in heads - PLAIN
        if head and not (explain_word(head) or explain_name(head))
    }
    assert not unknown, sorted(unknown)


def test_each_word_has_a_few_sentences_and_names_what_exists() -> None:
    assert {
        len(re.findall(r"[.:;](?: |$)", text)) in range(3, 9) for text in words().values()
    } == {True}
    named = re.findall(r"`explain ([\w-]+)`", " ".join(words().values()))
    assert named
    assert all(map(find_rule, named))


def test_what_is_there_of_a_line_that_is_cut_short_is_explained(
    shown: Callable[..., str],
) -> None:
    text = " ".join(shown("explain", "x gc 2 @0.080s 0%: 0.049+0.35").split())
    assert "This line is cut short" in text
    assert "0.049 ms stop-the-world pause 1, sweep termination" in text
    assert "0.35 ms concurrent marking" in text
    assert "background" not in text


def test_workers_that_waited_for_a_cpu_are_no_share_of_it(shown: Callable[..., str]) -> None:
    line = "gc 2 @0.080s 9%: 0.04+9.4+0.01 ms clock, 0.08+{}/15/0+0.02 ms cpu, 9->9->4 MB, 9 MB goal, 0 MB stacks, 0 MB globals, 2 P"
    assert "waited for a CPU" in " ".join(shown("explain", line.format(18)).split())
    assert "80 % of the CPU without idle" in " ".join(shown("explain", line.format(0)).split())


def test_help_answers_about_an_option_with_or_without_dashes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    answers = []
    for asked in (["help", "--container-limit"], ["help", "container-limit"]):
        assert main(asked) == 0
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1]
    assert "--container-limit  memory limit of the container" in answers[0]


@pytest.mark.parametrize("option", ["--gc-cpu-target", "--worst", "--since", "--gogc-now"])
def test_help_answers_about_an_option_of_any_command(
    option: str, shown: Callable[..., str]
) -> None:
    assert re.search(rf"\n  {option} +\w", shown("help", option))
