"""What is printed, byte for byte: one file per sample and format."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from gctrace_analyzer.cli import main
from tests.conftest import SAMPLES

if TYPE_CHECKING:
    from collections.abc import Callable

LOGS = sorted(path.stem for path in SAMPLES.glob("*.log"))
TELLING = ("leak-into-limit-go1.24", "together-go1.22", "go1.4")
EXPLAINED = {
    "cycle": "samples/steady-go1.26.log:4",
    "torn": "samples/together-go1.22.log:92",
    "pacer": "samples/pacertrace-go1.16.log:8",
    "scavenger": "samples/scavtrace-go1.26.log:5",
    "go1.4": "samples/go1.4.log:7",
}


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("log", LOGS)
def test_the_report(
    log: str, golden: Callable[[str, str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    text = printed(capsys, f"samples/{log}.log")
    assert max(map(len, text.splitlines())) <= 80
    golden(f"{log}.txt", text)


@pytest.mark.parametrize("log", TELLING)
def test_the_whole_report(
    log: str, golden: Callable[[str, str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    text = printed(capsys, f"samples/{log}.log", "--all")
    assert max(map(len, text.splitlines())) <= 80
    golden(f"{log}-all.txt", text)


@pytest.mark.parametrize("kind", ["md", "json"])
@pytest.mark.parametrize("log", TELLING)
def test_other_formats(
    log: str,
    kind: str,
    golden: Callable[[str, str], None],
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    assert main([f"samples/{log}.log", "--format", kind]) == 0
    golden(f"{log}.{kind}", capsysbinary.readouterr().out.decode())


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_tables(
    kind: str, golden: Callable[[str, str], None], capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    for table in ("cycles", "processes", "pauses"):
        assert main(["samples/restart-go1.26.log", "--format", kind, "--table", table]) == 0
        golden(f"restart-{table}.{kind}", capsysbinary.readouterr().out.decode())


@pytest.mark.parametrize("name", EXPLAINED)
def test_explain(
    name: str, golden: Callable[[str, str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    text = printed(capsys, "explain", EXPLAINED[name])
    assert max(map(len, text.splitlines()[1:])) <= 80
    golden(f"explain-{name}.txt", text)


COMPARED = ("steady-go1.26", "steady-gogc200-go1.26", "ballast-go1.26", "steady-go1.9")


@pytest.mark.parametrize("after", COMPARED[1:])
def test_the_comparison(
    after: str, golden: Callable[[str, str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    text = printed(capsys, "compare", f"samples/{COMPARED[0]}.log", f"samples/{after}.log")
    assert max(map(len, text.splitlines())) <= 80
    golden(f"compare-{after}.txt", text)


@pytest.mark.parametrize("kind", ["md", "json", "csv"])
def test_other_formats_of_the_comparison(
    kind: str, golden: Callable[[str, str], None], capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    logs = [f"samples/{name}.log" for name in COMPARED[:2]]
    assert main(["compare", *logs, "--format", kind]) == 0
    golden(f"compare.{kind}", capsysbinary.readouterr().out.decode())


@pytest.mark.parametrize("kind", ["text", "md"])
def test_several_settings(
    kind: str, golden: Callable[[str, str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    logs = [f"samples/{name}.log" for name in COMPARED]
    text = printed(capsys, "compare", *logs, "--format", kind)
    assert kind == "md" or max(map(len, text.splitlines())) <= 80
    golden(f"compare-several.{'txt' if kind == 'text' else kind}", text)


@pytest.mark.parametrize(
    "words",
    [("--help",), ("explain", "--help"), ("compare", "--help")],
    ids=["main", "explain", "compare"],
)
def test_help(
    words: tuple[str, ...],
    golden: Callable[[str, str], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    with suppress(SystemExit):
        main(list(words))
    golden(f"help-{words[0].strip('-')}.txt", capsys.readouterr().out)
