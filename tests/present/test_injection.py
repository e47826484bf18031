"""Text from a log is shown as text: no markup, mention, link or command of what shows it."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.checks import Check
from gctrace_analyzer.cli import main
from gctrace_analyzer.cli.screen import without_commands
from gctrace_analyzer.present import junit, markdown
from gctrace_analyzer.present.document import Code, Heading, Paragraphs, Table
from gctrace_analyzer.testing import read_text
from tests.conftest import CORPUS

HOSTILE = (
    "@octocat", "@org/team", "#1", "org/repo#12", "!7", "https://evil.example/x", "www.evil.example",
    "![x](https://evil.example/x.png)", "[a](javascript:alert(1))", "<img/src=x/onerror=alert(1)>",
    "<!--", "-->", "</details>", "`code`", "```", "**bold**", "__b__", "~~s~~", "a|b", "&lt;script&gt;",
    "$x$", "::error::x", "::set-output/name=x::y", "##[add-mask]x", ":tada:", "/close", "\\`x\\`",
    "a\x1b[31mb", "x\u202ey", "\x07",
)  # fmt: skip
GC = (
    "gc {n} @{s}s 1%: 0.02+1.0+0.02 ms clock, 0.04+0.1/0.2/0+0.04 ms cpu, 3->4->1 MB, 4 MB goal, "
    "0 MB stacks, 0 MB globals, 2 P\n"
)
LINKS = re.compile(r"@\w|#\w|!\d|\w://|www\.|:[a-z][\w+-]*:", re.IGNORECASE)
"""What GitHub and GitLab make a link of without any markup."""


def bare(text: str) -> str:
    """Returns Markdown with a dot for each character that a backslash makes plain."""
    return re.sub(r"`[^`]*`", "", re.sub(r"\\[!-/:-@\[-`{-~]", "·", text))


def assert_plain(text: str) -> None:
    left = bare(text)
    assert not re.search(r"[<>\[\]*_`|$]|&#?\w|~\S|\S~", left), left
    assert not LINKS.search(left), left
    assert all(char.isprintable() or char in "\t\u2060" for char in text), text


@pytest.mark.parametrize("text", HOSTILE)
def test_text_of_a_log_is_plain_in_markdown(text: str) -> None:
    for shown in (text, f"a {text} b", f"{text}{text}"):
        assert_plain(markdown.escaped(shown))


@given(st.lists(st.sampled_from([*HOSTILE, " ", "\n", "a", "1", "."])).map("".join) | st.text())
@example("1. x")
@example("\n# x")
def test_any_text_is_a_plain_paragraph(text: str) -> None:
    shown = markdown.paragraph(text)
    assert_plain(shown)
    assert not re.match(r"\s|[-+=#/:>]|\d+[.)](?!\\)", shown), shown


@given(st.text())
def test_a_code_block_ends_only_at_its_end(text: str) -> None:
    shown = markdown.dumps([Code(f"{text}\n```\n# not a heading")])
    fence = re.match("`+", shown)
    assert fence
    assert shown.strip("\n").endswith(f"\n{fence[0]}")
    assert fence[0] not in shown.strip("\n")[len(fence[0]) : -len(fence[0])]


def test_names_are_escaped_in_every_block() -> None:
    name = "x|@octocat<b>"
    table = Table((name, "b"), "lr", [(name, "1")])
    shown = markdown.dumps((Heading(name), Paragraphs([name]), table))
    assert shown.count("x\\|@\u2060octocat\\<b\\>") == 4


def hostile_log(name: str, allocated: int) -> str:
    cycles = "".join(GC.format(n=n, s=n / 10) for n in range(1, 30))
    return f"Benchmark{name}-2 \t{cycles}  10\t 5000 ns/op\t {allocated} B/op\t 3 allocs/op\n"


@pytest.mark.parametrize("text", [text for text in HOSTILE if not text.isspace()])
def test_the_name_of_a_benchmark_is_text_everywhere(text: str) -> None:
    name = f"X/{text}"
    comparison = gca.compare(*(read_text(hostile_log(name, size)) for size in (1000, 2000)))
    assert comparison.frame["benchmark"].drop_nulls()[0].startswith("X/")
    for line in comparison.to_markdown().splitlines():
        if "X/" in line:
            cells = re.sub(r"^\||(?<!\\)\||\|$|\*\*", "", line)
            assert_plain(cells)
    page = comparison.to_html()
    assert "<img/src" not in page
    checks = comparison.check("bytes_per_op>+5%")
    (case,) = ElementTree.fromstring(junit.dumps(checks)).iter("testcase")
    assert case.find("failure") is not None


def test_no_line_is_a_command_of_github_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "::error::x\n  ::set-output name=a::b\na ##[add-mask]b\nname::x"
    assert without_commands(text) == text
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    for line in without_commands(text).splitlines():
        assert not line.lstrip().startswith("::")
        assert "##[" not in line


def test_only_the_reason_of_a_failure_is_a_command(
    tmp_path: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    logs = []
    for side, size in (("base", 1000), ("head", 2000)):
        path = tmp_path / f"{side}.log"  # type: ignore[operator]
        path.write_text(hostile_log("X/::stop-commands::a##[error]", size))
        logs.append(str(path))
    assert main(["compare", *logs, "--fail-on", "bytes_per_op>+5%"]) == 1
    out, err = capsys.readouterr()
    commands = [
        line
        for line in (out + err).splitlines()
        if line.lstrip().startswith("::") or ("##[" in line and not line.startswith("::error "))
    ]
    assert [line.partition("::X")[0] for line in commands] == ["::error title=gctrace-analyze"]


def test_checks_with_control_characters_are_valid_xml() -> None:
    data = junit.dumps([Check("a\x1b\x00b", held=True, reason="\x07")])
    assert ElementTree.fromstring(data).find(".//failure") is not None


def test_a_real_log_has_the_same_words_in_markdown() -> None:
    log = CORPUS / "go-test" / "toml-go1.26-verbose-count3.log"
    shown = gca.compare(gca.read(log), gca.read(log)).to_markdown()
    assert "| Decode/array |" in shown
