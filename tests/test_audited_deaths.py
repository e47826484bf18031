"""What is said of deaths that are written here, and so have a known truth, does not contradict it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from gctrace_analyzer.errors import NoDataError
from gctrace_analyzer.present.sections.report import document
from gctrace_analyzer.present.text import plain
from gctrace_analyzer.testing import read_text
from lab.evaluation import cases
from tests.helpers import written_deaths as written
from tests.helpers.excerpts import NOT_YET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gctrace_analyzer.analysis.postmortem.post_mortems import PostMortem

REACHED = written.Truth()
TRUTHS = {
    "reached": REACHED,
    "far below": replace(REACHED, used=150),
    "no limit": replace(REACHED, limit=None),
    "no limit, little used": replace(REACHED, limit=None, used=150),
    "doubled": replace(REACHED, limit=1024, used=1024),
    "halved": replace(REACHED, limit=256, used=256),
    "java": replace(REACHED, name="java"),
    "envoy": replace(REACHED, name="envoy"),
    "exit code 1": replace(REACHED, code=1),
    "exit code 2": replace(REACHED, code=2),
    "not proven": replace(REACHED, proven=False),
    "not proven, no limit": replace(REACHED, proven=False, limit=None),
}


def _can_print(tool: str, truth: written.Truth) -> bool:
    """Returns whether a tool shows what is particular about a truth."""
    return not (
        (truth.limit is None and tool in written.ALWAYS_LIMITED)
        or (truth.used < (truth.limit or 512) and tool not in written.SHOWS_USED)
        or (truth.code != REACHED.code and tool not in written.SHOWS_CODE)
        or not (truth.proven or tool in (*written.SHOWS_CODE, "systemctl_show"))
    )


CASES = [
    pytest.param(tool, truth, id=f"{tool}, {name}")
    for tool in written.TOOLS
    for name, truth in TRUTHS.items()
    if _can_print(tool, truth)
]
OF_HOST = "kernel_host"
NO_LIMIT_SHOWN = ("oomkilling", OF_HOST)


@pytest.mark.parametrize(("tool", "truth"), CASES)
def test_nothing_contradicts_a_written_death(tool: str, truth: written.Truth) -> None:
    run = read_text(written.TOOLS[tool](truth))
    (death,) = run.post_mortems()
    text = re.sub(r"\s+", " ", f"{plain(document(run.report()))} {death}")
    assert not [*_contradictions(tool, truth, death, text)]


def _contradictions(
    tool: str, truth: written.Truth, death: PostMortem, text: str
) -> Iterator[str]:
    """Yields what of a report contradicts the truth."""
    reached = "It reached " in text
    settings = [int(size) for size in re.findall(r"GOMEMLIMIT=(\d+)MiB", text)]
    # Their jobs and tasks have limits, too.
    no_limit = truth.limit is None and tool not in ("ecs", "sacct")
    shows_limit = truth.limit is not None and tool not in NO_LIMIT_SHOWN
    is_below = bool(truth.limit and truth.used < truth.limit) and tool in written.SHOWS_USED
    not_go = truth.name in ("java", "envoy") and tool not in ("sacct", "lambda_report")
    asks = "no record of how high" in text or "Add the memory limit" in text
    of_container = tool in (*written.SHOWS_CODE, "nomad")
    contradictions = {
        "what is proven": death.proven != truth.proven,
        "the name": truth.name not in text and tool != "lambda_report",
        "a container is called a program": of_container and f"program {truth.name}" in text,
        "a unit is called a container": (
            tool in written.SHOWS_UNIT and "container" in text.partition("Inputs")[0]
        ),
        "a limit that does not exist was reached": no_limit and reached,
        "a limit that does not exist is to be raised": no_limit
        and "raise its memory limit." in text,
        "a share of no limit": truth.limit is None and "of the limit)" in text,
        "a limit that is shown is asked for": shows_limit and truth.proven and asks,
        "a limit above the peak was reached": (
            is_below and shows_limit and tool != "kernel_group" and reached
        ),
        "a GOMEMLIMIT that would not act": is_below
        and any(size >= truth.used for size in settings),
        "a limit that was not reached is to be raised": (
            is_below and shows_limit and re.search("raise (?:the|its memory) limit", text)
        ),
        "advice for Go": not_go and (settings or "written in Go, set" in text),
        "the main process ended by itself": (
            truth.code != REACHED.code and not death.subject.startswith("A process in")
        ),
        "the advice is not about the largest process": (
            tool == OF_HOST and truth.used < 1172 and "postgres" not in text.split("▸")[1]
        ),
    }
    yield from (what for what, is_said in contradictions.items() if is_said)


def _at_once(prefix: str) -> Callable[[str], str]:
    return lambda text: "".join(f"{prefix}{line}\n" for line in text.splitlines())


AT = "2026-03-14T09:30:00"
PREFIXES: dict[str, Callable[[str], str]] = {
    "kubectl": _at_once(f"{AT}.000001001Z "),
    "journald": _at_once("Mar 14 09:30:00 host1 tool[4242]: "),
    "syslog": _at_once(f"<14>1 {AT}.123456Z host1 tool 4242 - - "),
    "Compose": _at_once("tool-1  | "),
    "colours": lambda text: "".join(f"\x1b[32m{line}\x1b[0m\n" for line in text.splitlines()),
    "blanks": lambda text: text.replace("\n", "  \n"),
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "prompt": lambda text: f"user@laptop:~$ cat x.log\n{text}",
    "fence": lambda text: f"Here is what I see:\n\n```\n{text}```\n",
}
FACTS = ("kind", "proven", "scope", "limit_mib", "resident_mib", "cause", "preventable")


def _facts(text: str) -> list[tuple[Any, ...]]:
    return [
        tuple(getattr(death, name) for name in FACTS)
        for death in read_text(text).post_mortems()
    ]


UNLIKELY = (("systemctl_status", "journald"), ("nomad", "kubectl"))
"""Lines that begin like one of another format behind these prefixes, which nobody prints."""


@pytest.mark.parametrize(
    ("tool", "prefix"),
    [
        (tool, each)
        for tool in written.TOOLS
        for each in PREFIXES
        if (tool, each) not in UNLIKELY
    ],
)
def test_a_prefix_changes_nothing_of_a_death(tool: str, prefix: str) -> None:
    text = written.TOOLS[tool](REACHED)
    text = text if text.endswith("\n") else f"{text}\n"
    assert _facts(PREFIXES[prefix](text)) == _facts(text)


DEATHS = [case["name"] for case in cases.cases() if case["name"].startswith(("k12", "k14"))]
OTHERWISE = {
    # The prefix names another program, or is read together with a time of the line itself.
    "k14-describe-reason-error-137-containerd-h", "k14-describe-last-state-alone-h",
    "k14-golangci-action-137-g", "k14-slurm-seff-out-of-memory-g",
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", DEATHS[::9])
def test_a_prefix_changes_nothing_of_an_excerpt(name: str) -> None:
    text = cases.path_of(name).read_text()
    if name in NOT_YET or name in OTHERWISE:
        return
    try:
        own = _facts(text)
    except NoDataError:
        return
    for prefix in ("kubectl", "blanks", "colours"):
        assert not own or _facts(PREFIXES[prefix](text)) == own, prefix


def test_two_deaths_are_two() -> None:
    for tool in ("kernel_group", "kernel_host", "oomkilling"):
        text = written.TOOLS[tool](REACHED)
        later = text.replace("4711", "4811").replace("09:21:07", "11:42:09")
        both = read_text(f"{text}\n{later}").post_mortems()
        assert len(both) == 2, tool


JETSAM = (
    "2026-03-14 12:01:09.{ms}+0100 0x1a2b     Default     0x0     0      0    kernel: {what}\n"
)
OVER = "memorystatus: ledger [811] exceeded mem limit: ActiveHard 2048 MB (fatal)"
KILLED = (
    "memorystatus: killing_specific_process pid 811 [ledger] (per-process-limit 10) 2098000KB - "
    "memorystatus_available_pages: 12021"
)


def test_a_limit_of_jetsam_and_the_kill_at_it_are_one_death() -> None:
    for lines in ((OVER,), (OVER, KILLED)):
        text = "".join(
            JETSAM.format(ms=114148 + at, what=each) for at, each in enumerate(lines)
        )
        (death,) = read_text(text).post_mortems()
        assert (death.victim, death.pid, death.limit_mib) == ("ledger", 811, 2048)


LISTED = (
    "CONTAINER ID   IMAGE         COMMAND     CREATED       STATUS                       NAMES\n"
    "1f2e3d4c5b6a   ledger:1.4    /ledger     3 hours ago   Exited (137) 4 seconds ago   ledger\n"
)
SUPERVISORD = """\
2026-05-21 06:00:00,101 INFO waiting for ledger to stop
2026-05-21 06:00:10,112 WARN killing 'ledger' (811) with SIGKILL
2026-05-21 06:00:10,201 WARN stopped: ledger (terminated by SIGKILL)
"""


@pytest.mark.parametrize(
    "text", [f"$ docker stop ledger\nledger\n$ docker ps -a\n{LISTED}", SUPERVISORD]
)
def test_a_stop_that_someone_asked_for_is_named(text: str) -> None:
    (death,) = read_text(text).post_mortems()
    assert death.victim == "ledger"
    # Supervisord says what it sent; of a container, only the exit code is known.
    proved = "by SIGKILL" if text == SUPERVISORD else "with exit code 137"
    assert death.cause == f"{proved} after it was asked to stop"


def test_a_restart_is_not_counted_as_a_kill() -> None:
    line = "[UTC Mar 14 09:21:07] error    : 'ledger' {}\n"
    usage = "mem usage of 512.4 MB matches resource limit [mem usage > 512 MB]"
    text = line.format(usage) + line.format("trying to restart")
    shown = plain(document(read_text(text).report()))
    assert "1 restart" in shown
    assert "OOM kill" not in shown


def test_units_of_podman_are_decimal() -> None:
    text = (
        "$ podman stats --no-stream\n"
        "ID            NAME        CPU %       MEM USAGE / LIMIT  MEM %       PIDS\n"
        "1f2e3d4c5b6a  ledger      2.00%       402.7MB / 536.9MB  75.01%      12\n"
    )
    assert "used 384 MiB of 512 MiB" in plain(document(read_text(text).report()))
