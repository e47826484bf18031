"""The README and the pages about tasks do what they say: their commands and Python are run."""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from gctrace_analyzer.cli import main
from tests.conftest import ROOT

PROGRAM = "gctrace-analyze"
PAGES = [
    ROOT / "README.md",
    *(
        ROOT / "docs" / f"{name}.md"
        for name in ("fleet", "inputs", "measure", "profiles", "python")
    ),
    *sorted((ROOT / "docs" / "tasks").glob("*.md")),
]
TEXTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "samples/README.md"])
BLOCK = re.compile(r"^```(console|pycon)\n(.*?)^```\n", re.M | re.S)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)\)")


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_block_prints_what_it_shows(
    page: Path, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    # With as many threads as users have.
    monkeypatch.delenv("POLARS_MAX_THREADS", raising=False)
    names: dict[str, object] = {}

    def shown(block: re.Match[str]) -> str:
        run = console if block[1] == "console" else lambda text: python(text, names)
        return f"```{block[1]}\n{run(block[2])}```\n"

    text = page.read_text()
    now = BLOCK.sub(shown, text)
    if request.config.getoption("--update-golden"):
        page.write_text(now)
    assert now == page.read_text()


def console(block: str) -> str:
    """The commands of a block, each with what it prints.

    A command that reads files runs in this process; what follows it, and others, in a shell.
    """
    printed = []
    for line in block.splitlines():
        if line.startswith("$ "):
            command, _, rest = line[2:].partition(" | ")
            words, text = shlex.split(command), None
            if words[0] == PROGRAM and words[1] not in ("fleet", "watch") and "2>" not in words:
                with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())) as out:
                    main(words[1:])
                out.seek(0)
                command, text = rest or "cat", out.read()
            else:
                command = line[2:]
            done = subprocess.run(
                ["bash", "-c", command],
                input=text,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            printed.append(f"{line}\n{done.stdout}")
    return "".join(printed)


def python(block: str, names: dict[str, object]) -> str:
    """The statements of a block, each with what it prints."""
    printed = []
    pl.Config.set_tbl_width_chars(80)
    try:
        for example in doctest.DocTestParser().get_examples(block):
            first, *more = example.source.splitlines()
            printed.append(
                "\n".join([f">>> {first}", *(f"... {line}" for line in more)]) + "\n"
            )
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(example.source, "README.md", "single"), names)
            printed.append(out.getvalue())
    finally:
        pl.Config.restore_defaults()
    return "".join(printed)


@pytest.mark.parametrize("page", TEXTS, ids=named)
def test_what_is_linked_is_there(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), target
