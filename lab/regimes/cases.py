"""What is recorded: programs, their settings, and how these change."""

# ruff: noqa: E501  # a recording is one line

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lab.services.programs import Program

LATEST = "1.26.8"


@dataclass(frozen=True, slots=True)
class Case:
    """One recording to make: `lab/go/settings`, or a program of others.

    Attributes:
        name: of the log.
        env: the settings that it starts with.
        plan: how they change (lab/go/settings/plan.go); for our own program it also says the end.
        words: further words of the command.
        go: the version of Go for our own program, and `tag` a tag to build it with.
        cycles: how many are kept.
        seconds: how long it may take.
        program: that of others.
        sets: what the program sets itself at its start where nobody else does.
    """

    name: str
    env: dict[str, str] = field(default_factory=dict)
    plan: str = ""
    words: str = ""
    go: str = LATEST
    tag: str = ""
    cycles: int = 400
    seconds: float = 0
    program: Program | None = None
    sets: dict[str, str] = field(default_factory=dict)
    note: str = ""

    @property
    def log(self) -> str:
        """The path of the log; one with metrics has a folder of its own."""
        return f"{self.name}/run.log" if self.tag == "metrics" else f"{self.name}.log"


def own(
    name: str, env: str = "", plan: str = "120 exit", words: str = "", **options: Any
) -> Case:
    return Case(name, settings(env), plan, words, **options)


def settings(env: str) -> dict[str, str]:
    """Returns the variables of `GOGC=50 GOMEMLIMIT=20MiB`."""
    return dict(word.split("=", 1) for word in env.split())


def ours() -> list[Case]:
    """Our own program: every size of the live heap, every way to set and to change."""
    return [
        # Sizes of the live heap, constant.
        own("live-0.5", "GOGC=100", words="-live 0.5"),
        own("live-0.5-gogc-400", "GOGC=400", words="-live 0.5"),
        own("live-0.5-gogc-25", "GOGC=25", words="-live 0.5"),
        own("live-1-gogc-200", "GOGC=200", words="-live 1"),
        own("live-1-gogc-1600", "GOGC=1600", words="-live 1"),
        own("live-2", words="-live 2"),
        own("live-2-gogc-50", "GOGC=50", words="-live 2"),
        own("live-2-gogc-800", "GOGC=800", words="-live 2"),
        own("live-3-gogc-10", "GOGC=10", words="-live 3", note="looks like a limit"),
        own("live-3-gogc-150", "GOGC=150", words="-live 3"),
        own("live-5", words="-live 5"),
        own("live-5-gogc-75", "GOGC=75", words="-live 5"),
        own("live-8-gogc-25", "GOGC=25", words="-live 8"),
        own("live-8-gogc-150-swing", "GOGC=150", words="-live 8 -shape swing"),
        own("live-20-gogc-10", "GOGC=10", words="-live 20"),
        own("live-20-swing", words="-live 20 -shape swing"),
        own("live-20-gogc-400-grow", "GOGC=400", "60 exit", "-live 20 -shape grow -every 6"),
        own("live-60-gogc-75-swing", "GOGC=75", "80 exit", "-live 60 -shape swing -pause 0"),
        own("live-60-gogc-1600", "GOGC=1600", "20 exit", "-live 60 -pause 0"),
        own("live-150-gogc-50", "GOGC=50", "40 exit", "-live 150 -pause 0"),
        own("live-150-gogc-800", "GOGC=800", "24 exit", "-live 150 -pause 0"),
        own("live-500-gogc-25", "GOGC=25", "60 exit", "-live 500 -pause 0", seconds=150),
        own("live-500-grow", "", "40 exit", "-live 500 -shape grow -every 20 -pause 0", seconds=150),
        # Memory limits from impossible to never reached.
        own("limit-impossible-3", "GOGC=off GOMEMLIMIT=5MiB", "300 exit", "-live 3"),
        own("limit-impossible-20", "GOMEMLIMIT=15MiB", "300 exit", "-live 20"),
        own("limit-impossible-150", "GOMEMLIMIT=100MiB", "40 exit", "-live 150 -pause 0"),
        own("limit-at-live-1", "GOGC=off GOMEMLIMIT=6MiB", "300 exit", "-live 1"),
        own("limit-at-live-8", "GOMEMLIMIT=14MiB", "300 exit", "-live 8"),
        own("limit-tight-5", "GOGC=off GOMEMLIMIT=14MiB", words="-live 5"),
        own("limit-tight-60", "GOGC=off GOMEMLIMIT=90MiB", "60 exit", "-live 60 -pause 0"),
        own("limit-ample-2-off", "GOGC=off GOMEMLIMIT=40MiB", "60 exit", "-live 2"),
        own("limit-ample-20-off", "GOGC=off GOMEMLIMIT=120MiB", "60 exit", "-live 20"),
        own("limit-ample-500-off", "GOGC=off GOMEMLIMIT=900MiB", "20 exit", "-live 500 -pause 0", seconds=150),
        own("limit-with-gogc-swing", "GOGC=100 GOMEMLIMIT=100MiB", "90 exit", "-live 60 -shape swing -pause 0", note="the limit sets the goal only where the live heap is large"),
        own("limit-with-gogc-grow", "GOGC=200 GOMEMLIMIT=60MiB", "90 exit", "-live 40 -shape grow -every 8"),
        own("limit-off-swing", "GOGC=off GOMEMLIMIT=48MiB", "90 exit", "-live 20 -shape swing"),
        own("limit-never-5", "GOMEMLIMIT=1GiB", words="-live 5"),
        own("limit-never-60-gogc-50", "GOGC=50 GOMEMLIMIT=400MiB", "60 exit", "-live 60 -pause 0"),
        own("limit-jumps", "GOGC=off GOMEMLIMIT=100MiB", "80 exit", "-live 20 -jump 30"),
        own("limit-stacks", "GOGC=off GOMEMLIMIT=120MiB", "60 exit", "-live 20 -stacks 400"),
        own("limit-globals", "GOGC=off GOMEMLIMIT=90MiB", "60 exit", "-live 20", tag="globals"),
        # Roots, and allocations that jump over the goal.
        own("stacks-5", words="-live 5 -stacks 300"),
        own("stacks-20-gogc-50", "GOGC=50", words="-live 20 -stacks 800"),
        own("stacks-1-gogc-400", "GOGC=400", words="-live 1 -stacks 100"),
        own("globals-3-gogc-200", "GOGC=200", words="-live 3", tag="globals"),
        own("globals-60", "", "60 exit", "-live 60 -pause 0", tag="globals"),
        own("jumps-8", words="-live 8 -jump 40"),
        own("jumps-20-gogc-50", "GOGC=50", words="-live 20 -jump 100"),
        own("jumps-2-gogc-200", "GOGC=200", words="-live 2 -jump 12"),
        # Changes while it runs.
        own("change-gogc-5", "", "60 gogc=400,100 gogc=50,160 exit", "-live 5"),
        own("change-gogc-1", "GOGC=50", "80 gogc=800,140 exit", "-live 1"),
        own("change-gogc-20-swing", "GOGC=200", "60 gogc=25,140 gogc=100,200 exit", "-live 20 -shape swing"),
        own("change-gogc-150", "", "20 gogc=50,40 exit", "-live 150 -pause 0"),
        own("change-gogc-off", "", "60 gogc=off collect=30,85 gogc=200,150 exit", "-live 8", note="GOGC off without a limit: only forced cycles"),
        own("change-gogc-small", "GOGC=100", "100 gogc=150,200 exit", "-live 3"),
        own("change-procs-5", "", "60 procs=1,120 procs=8,180 exit", "-live 5"),
        own("change-gogc-procs-60", "GOGC=75", "40 gogc=150 procs=1,80 exit", "-live 60 -pause 0"),
        own("change-limit-lowered", "GOMEMLIMIT=200MiB", "50 limit=40,120 exit", "-live 20"),
        own("change-limit-lifted", "GOGC=off GOMEMLIMIT=36MiB", "60 limit=80,120 exit", "-live 20"),
        own("change-limit-removed", "GOMEMLIMIT=30MiB", "80 limit=off,140 exit", "-live 20"),
        own("change-limit-to-gogc-5", "GOGC=off GOMEMLIMIT=16MiB", "80 limit=off gogc=100,160 exit", "-live 5"),
        own("change-gogc-to-limit-3", "", "80 gogc=off limit=12,160 exit", "-live 3"),
        own("change-limit-swing", "GOGC=100 GOMEMLIMIT=64MiB", "60 limit=40,140 exit", "-live 20 -shape swing"),
        own("change-live-60", "", "40 live=60,80 live=5,140 exit", "-live 8", note="the live heap changes, the settings do not"),
        own("change-all", "", "40 gogc=400,70 gogc=off limit=50,120 limit=off gogc=50 procs=1,180 exit", "-live 8"),
        own("change-many", "GOGC=25", "40 gogc=50,70 gogc=100,100 gogc=200,130 gogc=400,150 exit", "-live 5"),
        # A limit that the program sets when it starts, as automemlimit does.
        own("automemlimit-20", "", "0 limit=45,80 exit", "-live 20"),
        own("automemlimit-3", "GOGC=off", "0 limit=14,160 exit", "-live 3"),
        own("automemlimit-ample", "", "0 limit=460,80 exit", "-live 20"),
        own("sets-gogc-at-start", "", "0 gogc=400,80 exit", "-live 8"),
        own("sets-gogc-soon", "", "3 gogc=50,120 exit", "-live 2"),
    ]  # fmt: skip


def releases() -> list[Case]:
    """Our own program on older and newer releases of Go."""
    return [
        own("go1.9-gogc-50", "GOGC=50", words="-live 3", go="1.9.7"),
        own("go1.9-change", "", "60 gogc=300,110 exit", "-live 20", go="1.9.7"),
        own("go1.12-gogc-200", "GOGC=200", words="-live 1", go="1.12.17"),
        own("go1.12-change", "GOGC=400", "40 gogc=75,100 exit", "-live 8 -shape swing", go="1.12.17"),
        own("go1.15-swing", "", words="-live 20 -shape swing", go="1.15.15"),
        own("go1.17-stacks", "GOGC=100", words="-live 5 -stacks 400", go="1.17.13"),
        own("go1.18-stacks", "GOGC=100", words="-live 5 -stacks 400", go="1.18.10"),
        own("go1.18-gogc-25", "GOGC=25", words="-live 60 -pause 0", go="1.18.10"),
        own("go1.19-limit", "GOGC=off GOMEMLIMIT=40MiB", "80 exit", "-live 20", go="1.19.13"),
        own("go1.19-impossible", "GOMEMLIMIT=6MiB", "300 exit", "-live 5", go="1.19.13"),
        own("go1.21-limit-change", "GOMEMLIMIT=60MiB", "60 limit=36,140 exit", "-live 20 -shape swing", go="1.21.13"),
        own("go1.22-gogc-800", "GOGC=800", "60 exit", "-live 5", go="1.22.12"),
        own("go1.23-limit", "GOGC=off GOMEMLIMIT=12MiB", "200 exit", "-live 3", go="1.23.12"),
        own("go1.25-gogc-150", "GOGC=150", words="-live 2", go="1.25.5"),
        own("go1.27-gogc-50", "GOGC=50", words="-live 5", go="1.27.1"),
        own("go1.27-limit", "GOGC=off GOMEMLIMIT=30MiB", "100 exit", "-live 8 -shape swing", go="1.27.1"),
        own("go1.27-change", "", "60 gogc=400,90 gogc=off limit=20,160 exit", "-live 3", go="1.27.1"),
    ]  # fmt: skip


def every() -> list[Case]:
    """Returns every recording."""
    return [*ours(), *releases()]
