"""Completion scripts, tried in the shells themselves."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from gctrace_analyzer.cli import main
from gctrace_analyzer.cli.help.completion import SHELLS, script
from gctrace_analyzer.cli.main import VERBS

if TYPE_CHECKING:
    from pathlib import Path

ASK_BASH = """\
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
_shtab_gctrace_analyze gctrace-analyze "${COMP_WORDS[COMP_CWORD]}" ""
printf '%s\\n' "${COMPREPLY[@]}"
"""


def offered(tmp_path: Path, shell: str, *words: str) -> list[str]:
    """What a shell offers for the last word of a command line."""
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    path = tmp_path / shell
    path.write_text(script(shell))
    line = ["gctrace-analyze", *words]
    if shell == "bash":
        command = ["bash", "-c", ASK_BASH, "bash", str(path), *line]
    else:
        ask = f"source {path}; complete -C'{' '.join(line)}'"
        command = ["fish", "--no-config", "-c", ask]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path)
    return [found.split("\t")[0] for found in done.stdout.split("\n") if found]


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_a_shell_offers_commands_options_values_and_files(tmp_path: Path, shell: str) -> None:
    (tmp_path / "run.log").touch()
    assert set(offered(tmp_path, shell, "w")) >= {"watch", "whatif"}
    assert offered(tmp_path, shell, "recommend", "--ai") == ["--aim"]
    assert "latency" in offered(tmp_path, shell, "recommend", "--aim", "")
    assert "run.log" in offered(tmp_path, shell, "recommend", "ru")


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_is_in_the_script(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    assert main(["completion", shell]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in VERBS if name != "help")
    if shutil.which(shell):
        checked = subprocess.run([shell, "-n"], input=printed, text=True, check=False)
        assert checked.returncode == 0


def test_another_shell_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["completion", "basj"])
    assert stopped.value.code == 2
    assert "bash" in capsys.readouterr().err
