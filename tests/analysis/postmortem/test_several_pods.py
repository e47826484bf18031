"""Of several pods and containers, each kill stays with its own: log, command and settings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.advise.subject import advised_process
from gctrace_analyzer.advise.verdict import verdict
from gctrace_analyzer.testing import read_text
from tests.helpers.facts import log_of

if TYPE_CHECKING:
    from pathlib import Path

POD = """\
Name:             {pod}
Namespace:        {namespace}
Containers:
{containers}
"""
CONTAINER = """\
  {name}:
    Container ID:   containerd://3f1c0a77cc1b9a22
    State:          Running
      Started:      Thu, 26 Nov 2026 09:00:{started} +0000
{last}    Restart Count:  {restarts}
    Limits:
      memory:  {limit}
    Environment:
      GODEBUG:  gctrace=1
"""
LAST = """\
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
      Started:      Thu, 26 Nov 2026 09:00:{begin} +0000
      Finished:     Thu, 26 Nov 2026 09:00:{end} +0000
"""


def running(name: str, limit: str = "768Mi") -> str:
    return CONTAINER.format(name=name, started="27", last="", restarts=0, limit=limit)


def killed(name: str, limit: str = "768Mi", *, begin: str = "27", end: str = "37") -> str:
    last = LAST.format(begin=begin, end=end)
    return CONTAINER.format(name=name, started="38", last=last, restarts=1, limit=limit)


def pod(name: str, *containers: str, namespace: str = "shop") -> str:
    return POD.format(pod=name, namespace=namespace, containers="".join(containers))


ORDERS, BILLING = "orders-api-7d9f8c6b5-x2kqp", "billing-5c7f6d9b8-qq2lm"
OTHER = "orders-api-7d9f8c6b5-m8zt4"


def read(tmp_path: Path, **files: str) -> gca.Run:
    paths = []
    for name, text in files.items():
        paths.append(tmp_path / f"{name.replace('_', '-')}.log")
        paths[-1].write_text(text)
    return gca.read(*paths)


@pytest.mark.parametrize(
    "second",
    [
        pod(BILLING, killed("billing", "320Mi", end="35")),
        pod(OTHER, killed("orders-api", "320Mi", end="36")),
        pod(ORDERS, killed("orders-api", "320Mi"), namespace="test"),
    ],
    ids=["another service", "another pod", "another namespace"],
)
@pytest.mark.parametrize("in_one_file", [True, False])
def test_the_kills_of_two_pods_are_two(second: str, in_one_file: bool, tmp_path: Path) -> None:
    first = pod(ORDERS, killed("orders-api"))
    texts = {"a": f"{first}\n\n{second}"} if in_one_file else {"a": first, "b": second}
    deaths = read(tmp_path, **texts).post_mortems()
    assert sorted(death.limit_mib or 0 for death in deaths) == [320, 768]


def test_the_kills_of_two_containers_of_a_pod_are_two() -> None:
    run = read_text(pod(ORDERS, killed("orders-api"), killed("envoy", "128Mi")))
    assert {death.victim for death in run.post_mortems()} == {"orders-api", "envoy"}
    found = verdict(run.analysis, run.advice)
    assert found is not None
    assert found.sentence.startswith("envoy and orders-api were killed")
    assert found.action.startswith("orders-api: Set GOMEMLIMIT=691MiB")


def test_one_state_in_two_files_is_one_kill(tmp_path: Path) -> None:
    text = pod(ORDERS, killed("orders-api"))
    assert len(read(tmp_path, a=text, b=text).post_mortems()) == 1


@pytest.mark.parametrize("order", [1, -1])
def test_the_command_names_the_pod_that_was_killed(order: int) -> None:
    pods = [pod(OTHER, running("orders-api")), pod(ORDERS, killed("orders-api"))]
    (death,) = read_text("\n\n".join(pods[::order])).post_mortems()
    command = f"`kubectl logs --previous -n shop {ORDERS} -c orders-api`"
    assert command in " ".join(death.advice)


def test_the_setting_after_a_kill_is_that_of_the_killed_process(tmp_path: Path) -> None:
    """The other pod has more cycles."""
    run = read(
        tmp_path,
        describe="\n\n".join(
            [pod(OTHER, running("orders-api")), pod(ORDERS, killed("orders-api"))]
        ),
        **{OTHER: log_of(600), ORDERS: log_of(32, every=0.3)},
    )
    (death,) = run.post_mortems()
    assert run.analysis.longest_process != death.process
    assert advised_process(run.analysis) == death.process


def test_without_the_log_of_the_killed_pod_no_setting_of_another_is_advised(
    tmp_path: Path,
) -> None:
    both = "\n\n".join([pod(OTHER, running("orders-api")), pod(ORDERS, killed("orders-api"))])
    run = read(tmp_path, describe=both, a=log_of(600), b=log_of(600, every=0.3))
    (death,) = run.post_mortems()
    assert death.process is None
    found = verdict(run.analysis, run.advice)
    assert found is not None
    assert found.action == death.advice[0]


SIDECAR = killed("envoy", "128Mi").replace("    Environment:\n      GODEBUG:  gctrace=1\n", "")


@pytest.mark.parametrize("name", ["orders_api", "app"])
@pytest.mark.parametrize("is_set", [True, False], ids=["gctrace in the pod", "in the image"])
def test_the_kill_of_a_sidecar_is_not_that_of_the_program(
    name: str, is_set: bool, tmp_path: Path
) -> None:
    text = pod(ORDERS, running("orders-api"), SIDECAR)
    run = read(
        tmp_path,
        describe=text if is_set else text.replace("GODEBUG:  gctrace=1", "A:  b"),
        **{name: log_of(60)},
    )
    (death,) = run.post_mortems()
    assert (death.victim, death.process, death.limit_mib) == ("envoy", None, 128)
    assert "it is not written in Go" in " ".join(death.reading)
    assert "--previous" not in " ".join(death.advice)
    assert run.analysis.settings.value("container_limit_mib") == 768
    found = verdict(run.analysis, run.advice)
    assert found is not None
    assert found.action.startswith("Limit the memory of envoy")


@pytest.mark.parametrize(("log", "is_its"), [("api", False), ("api_worker", True)])
def test_a_log_is_of_the_container_whose_name_it_carries_most_fully(
    log: str, is_its: bool, tmp_path: Path
) -> None:
    text = pod(ORDERS, running("api"), killed("api-worker", "128Mi"))
    (death,) = read(tmp_path, describe=text, **{log: log_of(95, every=0.1)}).post_mortems()
    assert death.victim == "api-worker"
    assert (death.process is not None) is is_its


def test_a_log_with_the_name_of_another_pod_is_of_that(tmp_path: Path) -> None:
    both = "\n\n".join([pod(OTHER, running("orders-api")), pod(ORDERS, killed("orders-api"))])
    (death,) = read(tmp_path, describe=both, **{OTHER: log_of(60)}).post_mortems()
    assert death.process is None


@pytest.mark.parametrize(
    ("name", "cycles", "is_new"),
    [("orders_api", 30, True), ("orders_api", 90, False), ("previous", 30, False)],
    ids=["ends early", "reaches the kill", "is the previous one"],
)
def test_the_log_of_the_restarted_container_is_not_of_the_killed_one(
    name: str, cycles: int, is_new: bool, tmp_path: Path
) -> None:
    """By hand: cycles 100 ms apart, of a container that was killed after 10 s."""
    log = log_of(cycles, every=0.1)
    run = read(tmp_path, describe=pod(ORDERS, killed("orders-api")), **{name: log})
    (death,) = run.post_mortems()
    assert (death.process is None) is is_new
    text = " ".join((*death.reading, *death.advice))
    assert ("are, or may be, those of the container that was started after" in text) is is_new
    assert (f"`kubectl logs --previous -n shop {ORDERS} -c orders-api`" in text) is is_new
    # Another cycle was due 70 times before the kill.
    assert (death.live_mib is None) is (cycles == 30)


def test_a_log_that_is_longer_than_the_killed_container_ran_is_of_the_restarted_one(
    tmp_path: Path,
) -> None:
    run = read(tmp_path, a=pod(ORDERS, killed("orders-api")), orders_api=log_of(120, every=0.1))
    (death,) = run.post_mortems()
    assert death.process is None
    assert death.reading[-1].endswith(
        "are probably those of the container that was started after the kill, because they go on "
        "for longer than the killed one ran."
    )
    # Those of an earlier one, or of another program, may be as long.


def test_a_container_that_does_not_run_again_has_no_other_log(tmp_path: Path) -> None:
    text = pod(ORDERS, killed("orders-api")).replace("Running", "Waiting")
    (death,) = read(tmp_path, a=text, orders_api=log_of(30, every=0.1)).post_mortems()
    assert death.process == 0


def test_two_pods_of_one_service_have_a_card_and_a_reason_each(tmp_path: Path) -> None:
    both = "\n\n".join(
        pod(name, killed("orders-api", limit))
        for name, limit in ((OTHER, "768Mi"), (ORDERS, "110Mi"))
    )
    logs = {OTHER: log_of(95, every=0.1), ORDERS: log_of(90, every=0.107)}
    run = read(tmp_path, describe=both, **logs)
    assert {death.process for death in run.post_mortems()} == {0, 1}
    found = verdict(run.analysis, run.advice)
    assert found is not None
    explained = next(each for each in run.post_mortems() if each.process == found.process)
    assert f". {explained.pod} reached its limit: " in found.sentence
    assert found.action.startswith(f"{explained.pod}: ")
    text = str(run.summary())
    for name in (OTHER, ORDERS):
        assert f", pod {name}" in text
    assert len(re.findall(r"^  Program +process", text, re.MULTILINE)) == 2


def test_two_pods_without_a_log_have_a_card_each() -> None:
    both = "\n\n".join(pod(name, killed("orders-api")) for name in (OTHER, ORDERS))
    text = str(read_text(both).summary())
    assert "2 times" not in text.partition("\n\n")[2].partition("\n\n")[2]
    assert text.count("Container OOMKilled") == 2


def test_the_setting_after_a_sigkill_that_proves_nothing_is_that_of_the_killed_process() -> (
    None
):
    """The process that was started after it has more cycles."""
    text = f"{log_of(60)}signal: killed\n{log_of(300, every=0.25)}"
    run = read_text(text)
    (death,) = run.post_mortems()
    assert (death.process, death.proven) == (0, False)
    assert advised_process(run.analysis) == 0 != run.analysis.longest_process
    assert "Recommended settings" not in str(run.summary())


def test_settings_for_another_program_than_the_killed_one_name_it(tmp_path: Path) -> None:
    kern = (
        "[ 1201.1] Out of memory: Killed process 2047 (postgres) total-vm:629kB, anon-rss:520kB"
    )
    run = read(tmp_path, orders=log_of(300), kern=f"{kern}, file-rss:0kB, shmem-rss:0kB\n")
    assert "Recommended settings, orders.log" in str(run.summary())
    assert "Recommended settings, " not in str(read(tmp_path, orders=log_of(300)).summary())


def test_a_time_in_whole_seconds_does_not_show_what_is_shorter(tmp_path: Path) -> None:
    """By hand: the last of 95 cycles, 100 ms apart, ends 0.6 s before the kill."""
    run = read(tmp_path, a=pod(ORDERS, killed("orders-api")), orders_api=log_of(95, every=0.1))
    text = " ".join(str(run.summary()).split())
    assert ", within 1 s of its last cycle" in text


def test_of_many_inputs_those_with_more_than_cycles_are_named(tmp_path: Path) -> None:
    logs = {f"log_{n}": log_of(60 + n, every=0.1 + n / 100) for n in range(4)}
    run = read(tmp_path, **logs, z=pod(ORDERS, killed("orders-api")))
    assert "z.log" in str(run.summary())


def test_a_gomemlimit_above_the_limit_of_the_container_is_not_raised(tmp_path: Path) -> None:
    text = pod(ORDERS, killed("orders-api")).replace(
        "GODEBUG:  gctrace=1", "GODEBUG:  gctrace=1\n      GOMEMLIMIT:  2GiB"
    )
    (death,) = read(tmp_path, describe=text).post_mortems()
    assert death.advice[0].startswith(
        "Set GOMEMLIMIT=691MiB (90 % of the limit), not 2,048 MiB, if the live heap and "
    )


@pytest.mark.parametrize(
    ("file", "is_own"),
    [("paste.txt", True), ("issue-excerpt.log", True), ("billing.log", False)],
)
def test_a_file_that_is_named_after_how_it_came_names_no_program(
    file: str, is_own: bool, tmp_path: Path
) -> None:
    (tmp_path / file).write_text(log_of(30))
    (tmp_path / "describe.txt").write_text(
        pod("api-7d9f8b6c5-x2x7k", killed("api", begin="05"))
    )
    (death,) = gca.read(tmp_path / file, tmp_path / "describe.txt").post_mortems()
    assert ("by their names" in " ".join(death.reading)) is not is_own
