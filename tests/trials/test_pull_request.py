"""The workflow for pull requests: its own commands, run on a repository with a change."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import gctrace_analyzer as gca
from tests.helpers.go_programs import needs_go
from tests.helpers.workflow import commands, workflow

EXAMPLES = Path(__file__).parent.parent.parent / "docs" / "examples"
WORKFLOW = EXAMPLES / "pull-request.yml"
GITLAB = EXAMPLES / "pull-request.gitlab.yml"
JOIN = """package join

func Join(parts []string) string {
	out := make([]byte, 0, %s)
	for _, part := range parts {
		out = append(out, part...)
	}
	return string(out)
}
"""
BENCHMARKS = """package join

import "testing"

var sink string

func BenchmarkJoin(b *testing.B) {
	parts := make([]string, 64)
	for i := range parts {
		parts[i] = "0123456789abcdef"
	}
	b.Run("long", func(b *testing.B) {
		for i := 0; i < b.N; i++ {
			sink = Join(parts)
		}
	})
	b.Run("short", func(b *testing.B) {
		for i := 0; i < b.N; i++ {
			sink = Join(parts[:2])
		}
	})
}
"""


def git(folder: Path, *words: str) -> None:
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", *author, *words], cwd=folder, check=True, capture_output=True)


def checkout(folder: Path, base: str, head: str) -> None:
    """Makes what actions/checkout leaves: a commit whose first parent is the base."""
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "go.mod").write_text("module example.org/join\n\ngo 1.21\n")
    (folder / "join_test.go").write_text(BENCHMARKS)
    for room in (base, head):
        (folder / "join.go").write_text(JOIN % room)
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "--allow-empty", "-m", "change")


def run(script: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    path = (
        f"{folder}/bin{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    )
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def measured(folder: Path) -> dict[str, subprocess.CompletedProcess[str]]:
    """Runs the commands of the first job, faster than in production."""
    variables = workflow(WORKFLOW)["env"] | {"BENCHTIME": "2000x", "ROUNDS": "5"}
    variables["GITHUB_STEP_SUMMARY"] = str(folder / "summary.md")
    steps = commands(WORKFLOW, "measure")
    assert list(steps) == ["Install", "Build", "Measure", "Summary"]
    return {name: run(steps[name], folder, **variables) for name in list(steps)[1:]}


def commented(folder: Path, *, before: str) -> str:
    """Runs the commands of the second job with a server that has these comments already."""
    (folder / "bin").mkdir(exist_ok=True)
    gh = folder / "bin" / "gh"
    gh.write_text(
        '#!/bin/sh\necho "$@" >> calls\n'
        f"case \"$*\" in *--paginate*) printf '{before}' ;; *) cp comment.md posted.md ;; esac\n"
    )
    gh.chmod(0o755)
    (folder / "measured").mkdir(exist_ok=True)
    (folder / "gc").rename(folder / "measured" / "gc")
    steps = commands(WORKFLOW, "comment")
    names = {"COMMENTS": "repos/o/r/issues/7/comments", "COMMENT": "repos/o/r/issues/comments"}
    for name in ("Compare", "Comment"):
        done = run(steps[name], folder, PAGE="https://example.org/run", **names)
        assert done.returncode == 0, done.stderr
    return (folder / "posted.md").read_text()


@needs_go
def test_a_change_that_allocates_twice_as_much_fails_and_is_commented(tmp_path: Path) -> None:
    checkout(tmp_path / "head", "16*len(parts)", "64*len(parts)")
    steps = measured(tmp_path)
    assert [step.returncode for step in steps.values()] == [0, 1, 0], steps["Build"].stderr
    assert "fail-on is true: Join/long: bytes_per_op>+5%" in steps["Measure"].stderr
    summary = (tmp_path / "summary.md").read_text()
    assert "**2 of 2 benchmarks cost more: Join/" in summary
    assert "<failure " in (tmp_path / "gc.xml").read_text()
    assert "Join/short" in (tmp_path / "gc.html").read_text()

    comment = commented(tmp_path, before="")
    assert comment.startswith("<!-- gctrace-analyzer -->\n## Go benchmarks, measured")
    assert "**2 of 2 benchmarks cost more: Join/" in comment
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls[1].startswith("api repos/o/r/issues/7/comments --field body=@comment.md")


@needs_go
def test_a_change_of_nothing_passes_and_renews_the_comment(tmp_path: Path) -> None:
    checkout(tmp_path / "head", "16*len(parts)", "len(parts)*16")
    steps = measured(tmp_path)
    assert [step.returncode for step in steps.values()] == [0, 0, 0], steps["Measure"].stderr
    comment = commented(tmp_path, before="42\\n")
    assert "**No significant change of allocation per operation in 2 benchmarks." in comment
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls[1].startswith("api --method PATCH repos/o/r/issues/comments/42 ")


def test_only_the_job_that_comments_may_write_and_it_runs_nothing_of_the_change() -> None:
    document = workflow(WORKFLOW)
    assert "on: pull_request\n" in WORKFLOW.read_text()
    assert document["permissions"] == {"contents": "read"}
    measure, comment = document["jobs"]["measure"], document["jobs"]["comment"]
    assert "permissions" not in measure
    assert comment["permissions"] == {"pull-requests": "write"}
    assert not any("checkout" in step.get("uses", "") for step in comment["steps"])
    assert "head.repo.full_name == github.repository" in comment["if"]
    assert measure["steps"][0]["with"]["persist-credentials"] is False
    with_token = [
        step["name"] for step in comment["steps"] if "GH_TOKEN" in step.get("env", {})
    ]
    assert with_token == ["Comment"]
    # Whatever others choose, such as the name of a branch, is a variable and not text of a script.
    scripts = [
        script for job in document["jobs"] for script in commands(WORKFLOW, job).values()
    ]
    assert not any("${{" in script for script in scripts)


def test_gitlab_measures_as_github_does() -> None:
    class Loader(yaml.SafeLoader):
        pass

    document: dict[str, Any] = yaml.load(GITLAB.read_text(), Loader)  # a safe loader
    script = document["gc:measure"]["script"][0]
    measure = commands(WORKFLOW, "measure")["Measure"]
    wanted = [line.strip() for line in measure.splitlines() if "--side" not in line]
    assert wanted == [
        line.strip()
        for line in script.splitlines()
        if "--side" not in line and "git worktree" not in line and "go test -c" not in line
    ]
    assert document["gc:note"]["variables"] == {"GIT_STRATEGY": "none"}


@needs_go
def test_the_script_of_gitlab_runs(tmp_path: Path) -> None:
    checkout(tmp_path / "head", "16*len(parts)", "64*len(parts)")
    job = yaml.safe_load(GITLAB.read_text())["gc:measure"]
    base = subprocess.run(
        ["git", "rev-parse", "HEAD^1"], cwd=tmp_path / "head", capture_output=True, text=True
    )
    variables = job["variables"] | {"BENCHTIME": "1000x", "ROUNDS": "4"}
    variables["CI_MERGE_REQUEST_DIFF_BASE_SHA"] = base.stdout.strip()
    done = run(job["script"][0], tmp_path / "head", **variables)
    assert done.returncode == 1, done.stderr
    assert "2 of 2 benchmarks cost more" in (tmp_path / "head" / "gc.md").read_text()


def test_a_manifest_names_no_file_outside_its_folder(tmp_path: Path) -> None:
    secret = tmp_path / "secret.log"
    secret.write_text("token\n")
    folder = tmp_path / "gc"
    folder.mkdir()
    side = {"label": "a", "words": ["x"], "gogc": None, "memory_limit_mib": None}
    plan: dict[str, Any] = {"serve_for_s": None, "ready": None, "load": [], "metrics": []}
    document = {
        "sides": [side, side | {"label": "b"}],
        "plan": plan | {"stdin": "/dev/null", "timeout_s": 1},
        "facts": {},
        "fixed": True,
        "most": 1,
        "promises": {},
        "runs": [{"side": "a", "round": 1, "log": "../secret.log"}],
    }
    (folder / "manifest.json").write_text(json.dumps(document))
    with pytest.raises(
        gca.UnreadableInputError, match=r"'\.\./secret\.log' is not in the folder"
    ):
        gca.measure(logs=folder)
