"""The exceptions: which built-in classes they are, what they say, and that they survive pickle."""

from __future__ import annotations

import copy
import io
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gctrace_analyzer as gca
from gctrace_analyzer import errors
from gctrace_analyzer.cli.options import as_option

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import SearchStrategy

BUILT_IN = {
    "BadSettingError": ValueError,
    "UnreadableInputError": OSError,
    "MissingInputError": FileNotFoundError,
    "NoDataError": ValueError,
    "MissingColumnsError": KeyError,
    "MissingExtraError": ImportError,
    "UnwritableOutputError": OSError,
    "ProgramError": RuntimeError,
    "FleetStoppedError": RuntimeError,
}
TEXT = st.text(max_size=20)
MAYBE = st.none() | TEXT
COUNT = st.integers(0, 10**9)


def build(kind: type[errors.GctraceError], *args: Any, **named: Any) -> SearchStrategy[Any]:
    return st.builds(kind, *args, **named)


ANY_ERROR = st.one_of(
    build(errors.BadSettingError, TEXT, TEXT, TEXT, MAYBE, MAYBE),
    build(
        errors.UnreadableInputError,
        TEXT,
        TEXT,
        TEXT,
        line_no=st.none() | COUNT,
        argument=MAYBE,
        argument_value=MAYBE,
    ),
    build(errors.MissingInputError, TEXT, TEXT, TEXT),
    build(errors.NoDataError, TEXT, TEXT, TEXT, lines=st.none() | COUNT, first=MAYBE),
    build(errors.MissingColumnsError, st.tuples(TEXT), st.tuples(TEXT, TEXT), MAYBE),
    build(errors.MissingExtraError, TEXT, TEXT),
    build(errors.UnwritableOutputError, TEXT, TEXT, kept=st.booleans()),
    build(errors.ProgramError, TEXT, TEXT, hint=TEXT, output=TEXT, code=st.none() | COUNT),
    build(errors.FleetStoppedError, TEXT, TEXT, COUNT, COUNT, TEXT),
)


PUBLIC = [
    name
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, Exception)
]


def test_there_are_at_most_ten_classes_and_all_are_public() -> None:
    classes = [name for name in PUBLIC if name.endswith("Error")]
    assert len(classes) <= 10
    assert set(PUBLIC) <= set(gca.__all__)
    assert {*BUILT_IN, "GctraceError"} == set(classes)


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_error_is_the_built_in_exception_that_users_expect(name: str) -> None:
    kind = getattr(gca, name)
    assert issubclass(kind, gca.GctraceError)
    assert issubclass(kind, BUILT_IN[name])


@given(ANY_ERROR)
def test_errors_survive_pickle_and_copy(error: errors.GctraceError) -> None:
    error.add_note("seen by a worker")
    roundtrips: list[Callable[[Any], Any]] = [
        lambda each: pickle.loads(pickle.dumps(each)),
        copy.copy,
        copy.deepcopy,
    ]
    for roundtrip in roundtrips:
        again = roundtrip(error)
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)


@given(ANY_ERROR)
def test_python_users_read_no_command_line_options(error: errors.GctraceError) -> None:
    facts = " ".join(map(str, vars(error).values()))
    assert "--" in facts or "--" not in str(error)


def test_the_command_line_reads_the_names_of_its_options() -> None:
    error = errors.BadSettingError("memory_limit", "9M", "a size", "9MiB", "overwrite")
    assert str(error) == (
        "invalid value '9M' for memory_limit.\n"
        "  Did you mean 9MiB?\n"
        "  Expected a size. Or pass overwrite."
    )
    assert error.message(as_option) == (
        "invalid value '9M' for --memory-limit.\n"
        "  Did you mean 9MiB?\n"
        "  Expected a size. Or pass --overwrite."
    )


def test_an_unreadable_input_has_the_attributes_of_an_oserror() -> None:
    with pytest.raises(FileNotFoundError) as caught:
        gca.read("nosuch.log")
    assert isinstance(caught.value, gca.MissingInputError)
    assert (caught.value.filename, caught.value.errno) == ("nosuch.log", 2)
    assert caught.value.path == "nosuch.log"


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda: gca.read("samples/steady-go1.26.log", gogc="many"), ValueError),
        (lambda: gca.read("samples"), OSError),
        (lambda: gca.from_frame({}), TypeError),
        (lambda: gca.read("LICENSE"), ValueError),
    ],
)
def test_the_built_in_exceptions_can_be_caught(
    call: Callable[[], Any], kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        call()


LOG = "samples/steady-go1.26.log"
untyped: Any = gca


@pytest.mark.parametrize(
    ("call", "kind", "says"),
    [
        (
            lambda _: gca.read("samples/steady-*.log"),
            OSError,
            r"read\(\*sorted\(glob\.glob\('samp",
        ),
        (lambda _: gca.read("samples"), OSError, r"in Python, fleet\('samples'\)"),
        (lambda _: gca.read(""), ValueError, "the input is missing or empty"),
        (lambda _: gca.read("nosuch-*.log"), OSError, "no file matches this pattern"),
        (lambda run: run.tabel, AttributeError, r"'Run' has no .*Did you mean table\?"),
        (lambda run: run.summary().gc_cpu, AttributeError, r"Did you mean gc_cpu_share\?"),
        (lambda run: run.summary().nosuch, AttributeError, r"Known: .*gc_cpu_share, .*span_s"),
        (lambda run: untyped.compare(run, run).framee, AttributeError, r"Did you mean frame\?"),
        (lambda _: untyped.raed(LOG), AttributeError, r"Did you mean read\?"),
        (lambda _: untyped.explain("GC016"), AttributeError, "`gctrace-analyze explain`"),
        (lambda _: untyped.recommend(LOG), AttributeError, r"read\(path\)\.recommend\(\)"),
        (lambda _: untyped.read(3), ValueError, "'object of type int' for the input"),
        (lambda run: run.plot.heap(), AttributeError, r"no plot 'heap'\. Plots: live_heap, "),
        (lambda run: run.plot("timelin"), TypeError, r"mean run\.plot\.timeline\(\)\?"),
        (
            lambda run: run.recommend(container_limit="2GiB"),
            TypeError,
            r"gca\.read\(path, container_limit='2GiB'\)",
        ),
        (lambda run: run.recommend(gogc=200), TypeError, r"run\.whatif\(gogc=200\)"),
        (lambda run: run.whatif(cpu_limit=2), TypeError, r"gca\.read\(path, cpu_limit=2\)"),
        (lambda run: run.whatif(GOGC=200), TypeError, r"Did you mean gogc\?"),
        *(
            (
                lambda _, make=make: gca.read(make({"at": [1], "message": ["x: gc 1 @0.1s"]})),
                KeyError,
                r"read\(io\.StringIO\('\\n'\.join\(frame\['message'\]\)\)\)",
            )
            for make in (pl.DataFrame, pd.DataFrame)
        ),
        *(
            (
                lambda _, make=make: untyped.read(make(["gc 1 @0.1s", "gc 2 @0.2s"])),
                OSError if make is list else ValueError,
                r"for lines, io\.StringIO\('\\n'\.join\(lines\)\)",
            )
            for make in (pl.Series, pd.Series, list)
        ),
        (
            lambda _: untyped.read(LOG, gomemlimit="1GiB"),
            TypeError,
            "Did you mean memory_limit",
        ),
    ],
)
def test_what_python_users_write_instead_is_answered_with_what_to_write(
    call: Callable[[Any], Any], kind: type[Exception], says: str
) -> None:
    run = gca.read(LOG)
    with pytest.raises(kind, match=says):
        call(run)


@pytest.mark.parametrize(
    ("write", "reader"),
    [
        (lambda cycles, path: cycles.write_csv(path), pl.read_csv),
        (lambda cycles, path: cycles.to_pandas().to_csv(path), pl.read_csv),
        (lambda cycles, path: cycles.write_ndjson(path), pl.read_ndjson),
        (lambda cycles, path: cycles.write_json(path), pl.read_json),
        (lambda cycles, path: cycles.write_parquet(path), pl.read_parquet),
    ],
)
def test_a_file_of_cycles_says_how_to_read_it(
    write: Callable[[pl.DataFrame, Path], Any],
    reader: Callable[[Path], pl.DataFrame],
    tmp_path: Path,
) -> None:
    cycles, path = gca.cycles(LOG), tmp_path / "cycles"
    write(cycles, path)
    with pytest.raises(OSError, match=rf"polars\.{reader.__name__}\("):
        gca.read(path)
    assert len(gca.read(reader(path)).cycles) == len(cycles)


def test_bytes_are_the_content_of_a_log() -> None:
    assert (
        gca.read(Path(LOG).read_bytes())
        .cycles["heap_goal_mib"]
        .equals(gca.read(LOG).cycles["heap_goal_mib"])
    )


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda _: untyped.compare([], LOG), "before"),
        (lambda _: untyped.compare(LOG, ()), "after"),
        (lambda _: untyped.compare({"a": LOG}), "before"),
        (lambda _: untyped.compare({"a": LOG, "b": []}), "before"),
        (lambda _: untyped.compare(LOG), "after"),
        (lambda _: untyped.overlay({"a": LOG}), "runs"),
        (lambda _: untyped.overlay({}), "runs"),
        (lambda run: untyped.overlay([run, LOG]), "runs"),
        (lambda run: untyped.overlay([run], "heap_goal"), "column"),
        (lambda run: untyped.side_by_side(run), "runs"),
        (lambda _: untyped.read(LOG, tz=3), "tz"),
        (lambda _: untyped.read(LOG, kind=3), "kind"),
        (lambda _: untyped.read(LOG, year="2026"), "year"),
        (lambda _: untyped.read(LOG, year=True), "year"),
        (lambda _: untyped.read(LOG, year=26), "year"),
        (lambda _: untyped.read(LOG, start=5), "start"),
        (lambda _: untyped.read(LOG, slo="pause=2ms"), "slo"),
        (lambda _: untyped.read(LOG, thresholds="x.toml"), "thresholds"),
        (lambda run: run.process("0"), "process"),
        (lambda run: run.process(0.0), "process"),
        (lambda run: run.process(False), "process"),
        (lambda run: run.table(3), "table"),
        (lambda run: run.windows(every="abc"), "every"),
        (lambda run: run.windows("0s"), "every"),
        (lambda run: run.between(None, 1), "between"),
        (lambda run: run.between(0, "soon"), "between"),
        (lambda run: run.check(["stw_p99_ms>1"]), "condition"),
        (lambda _: untyped.compare(LOG, LOG).check(["stw_p99_ms>1"]), "condition"),
        (lambda run: run.whatif(evidence=[LOG]), "evidence"),
        (lambda run: run.recommend(evidence=LOG), "evidence"),
        (lambda run: run.recommend(evidence=3), "evidence"),
        (lambda run: run.recommend(aim=3), "aim"),
        (lambda run: run.plot.timeline(ax=1), "ax"),
        (lambda run: run.plot.timeline(ax=[1, 2, 3, 4, 5]), "ax"),
        (lambda run: run.plot.timeline(panel=3), "panel"),
        (lambda run: run.plot.timeline(bins=0), "bins"),
        (lambda run: run.plot.draw("pauses", bins="5"), "bins"),
        (lambda run: untyped.overlay({"a": run}, bins=1), "bins"),
        (lambda _: untyped.read(LOG, gogc=True), "gogc"),
        (lambda _: untyped.read(LOG, memory_limit=True), "memory_limit"),
        (lambda _: untyped.read(LOG, memory_limit=[1]), "memory_limit"),
        (lambda _: untyped.read(LOG, cpu_limit=True), "cpu_limit"),
        (lambda run: run.whatif(gogc=True), "gogc"),
        (lambda run: run.windows(every=True), "every"),
    ],
)
def test_a_value_of_the_wrong_kind_is_a_bad_setting(
    call: Callable[[gca.Run], Any], argument: str
) -> None:
    with pytest.raises(gca.BadSettingError) as caught:
        call(gca.read(LOG))
    assert caught.value.argument == argument


def test_the_tree_in_the_documentation_is_the_tree_in_the_code() -> None:
    from tests.conftest import ROOT

    page = (ROOT / "docs" / "errors.md").read_text()
    tree = [line[4:] for line in (errors.__doc__ or "").splitlines() if line.startswith("    ")]
    assert "\n".join(tree) in page
    for name in PUBLIC:
        assert f"`{name}`" in page


@pytest.mark.parametrize(
    "text",
    [
        "runtime: goroutine stack exceeds 1000000000-byte limit\nfatal error: stack overflow\n",
        "```\n  runtime: failed to create new OS thread (have 4096 already; errno=11)\n```\n",
        "panic: runtime error: index out of range [5] with length 3\n",
        "Dec 25 17:17:45 h dockerd: fatal error: concurrent map writes\n"
        "Dec 25 17:17:45 h dockerd: goroutine 12334 [running]:\n",
        "2026-11-28T10:00:00Z app panic: boom\n\n2026-11-28T10:00:00Z app goroutine 1 [running]:\n",
        "goroutine 1 [running]:\nruntime.throw({0x11116a9, 0x16})\n\tgo/src/runtime/panic.go:1077\n",
    ],
)
def test_a_crash_is_named_and_no_gctrace_is_asked_for(text: str) -> None:
    with pytest.raises(gca.NoDataError, match="a crash of a Go program") as error:
        gca.read(io.StringIO(f"starting\n{text}"))
    assert "GODEBUG" not in str(error.value)
    said = [line for line in text.splitlines() if ": " in line and "throw" not in line]
    assert any(str(error.value).count(line[-10:]) for line in said) is bool(said)
    assert ("First line" in str(error.value)) is not bool(said)


def test_a_panic_that_a_server_recovered_is_no_crash() -> None:
    text = (
        "2026/06/16 11:20:02 http: panic serving 10.0.0.4:51522: runtime error: makeslice: len "
        "out of range\ngoroutine 8812 [running]:\nnet/http.(*conn).serve.func1()\n"
    )
    with pytest.raises(gca.NoDataError, match="net/http recovered") as error:
        gca.read(io.StringIO(text))
    assert "GODEBUG" not in str(error.value)


def test_no_gctrace_is_asked_for_of_what_is_not_go() -> None:
    with pytest.raises(gca.NoDataError, match="no GC setting of Go changes") as error:
        gca.read(
            io.StringIO("FATAL ERROR: Reached heap limit: JavaScript heap out of memory\n")
        )
    assert "GODEBUG" not in str(error.value)


def test_of_many_names_those_alike_come_first_and_the_others_are_sorted() -> None:
    with pytest.raises(errors.BadSettingError) as refused:
        gca.read("samples/steady-go1.26.log").table("pause")  # type: ignore[arg-type]
    first, *others = refused.value.expected.removeprefix("one of ").split(", ")
    # "pacer" is similar, too.
    assert first == "pauses"
    assert others[1:] == sorted(others[1:])
