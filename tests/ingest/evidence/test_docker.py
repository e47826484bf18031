"""Containers as `docker inspect` and `docker events` print them."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gctrace_analyzer.analysis.postmortem.remedies import FIND_SENDER
from gctrace_analyzer.ingest.evidence import docker
from gctrace_analyzer.ingest.evidence.message import Message
from gctrace_analyzer.testing import read_text
from tests.helpers.logs import records

INSTANTS = st.datetimes(datetime(2001, 9, 9, 2), datetime(2038, 1, 1))

NAMES = st.from_regex(r"[a-z][a-z0-9]{0,9}(-[a-z0-9]{1,4})?", fullmatch=True)


@given(NAMES, st.integers(4 << 20, 1 << 44), st.integers(1, 10**6), INSTANTS)
def test_docker_inspect_reads_as_written(
    name: str, limit: int, gogc: int, start: datetime
) -> None:
    row = docker.inspected(
        {
            "Id": "f" * 64,
            "Name": f"/{name}",
            "State": {
                "Status": "exited",
                "ExitCode": 137,
                "StartedAt": f"{start.isoformat()}Z",
            },
            "HostConfig": {"Memory": limit},
            "Config": {"Env": [f"GOGC={gogc}", "PATH=/bin"]},
        }
    )
    assert (row["name"], row["memory_limit_bytes"], row["gogc"]) == (name, limit, str(gogc))
    assert (row["signal"], row["started_at"]) == ("KILL", start.replace(tzinfo=UTC))


def test_an_event_of_an_old_docker_has_no_type() -> None:
    event = '{"status":"oom","id":"36eb96d6c1348958","from":"shop","time":1449497871}'
    (row,) = read_text(event).container_states.to_dicts()
    assert (row["oom_killed"], row["container_id"]) == (True, "36eb96d6c1348958")


def test_a_docker_event_has_its_signal_and_time() -> None:
    event = {
        "Type": "container",
        "Action": "die",
        "Actor": {"ID": "a" * 64, "Attributes": {"exitCode": "137", "name": "api"}},
        "timeNano": 1770112800005000000,
    }
    (row,) = docker.events(event)
    assert (row["event"], row["signal"], row["name"]) == ("die", "KILL", "api")
    assert f"{row['logged_at']:%Y-%m-%d %H:%M:%S.%f}" == "2026-02-03 10:00:00.005000"
    (seconds,) = docker.events({**event, "timeNano": None, "time": 1770112800})
    assert f"{seconds['logged_at']:%H:%M:%S}" == "10:00:00"


def test_a_cpu_quota_is_a_limit() -> None:
    host = {"CpuQuota": 150_000, "CpuPeriod": 100_000}
    assert docker.inspected({"State": {}, "HostConfig": host})["cpu_limit"] == 1.5
    nano = {"NanoCpus": 2_000_000_000}
    assert docker.inspected({"State": {}, "HostConfig": nano})["cpu_limit"] == 2.0


def test_settings_of_the_environment_are_those_that_go_accepts() -> None:
    given = {"GOGC": "50", "GOMEMLIMIT": "400MiB", "GOMAXPROCS": "3"}
    assert docker.go_settings(given) == {
        "gogc": "50",
        "gomemlimit_bytes": 400 << 20,
        "gomaxprocs": 3,
    }
    assert docker.go_settings({"GOMEMLIMIT": "a lot"}) == {"gomemlimit_bytes": None}
    assert docker.go_settings({"GOMEMLIMIT": "off", "GOMAXPROCS": "all"}) == {}


def test_an_event_without_a_time_has_none() -> None:
    event = {"Type": "container", "status": "start", "id": "a" * 64}
    assert docker.events(event)[0]["logged_at"] is None


def test_events_have_the_name_of_their_signal() -> None:
    texts = [
        '{"broken":',
        '{"another": "object"}',
        "no event",
        f"container kill {'a' * 64} (name=api, signal=15)",
        f"container kill {'a' * 64} (name=api, signal=SIGUSR1)",
        f"container oom {'a' * 64} (name=api)",
        f"container die {'a' * 64} (execDuration=12, exitCode=143, name=api)",
        json.dumps({"Type": "container", "Action": "oom", "id": "b" * 64, "time": 1770112800}),
    ]
    rows = docker.read(Message(n, text) for n, text in enumerate(texts, 1))
    assert [row.get("signal") for row in rows] == ["TERM", "SIGUSR1", None, "TERM", None]
    assert [row["line_no"] for row in rows] == [4, 5, 6, 7, 8]
    assert [bool(row.get("oom_killed")) for row in rows] == [False, False, True, False, True]
    assert rows[3]["duration_s"] == 12


@pytest.mark.parametrize(
    ("kind", "action", "expected"),
    [
        ("container", "die", True),
        ("container", "oom", True),
        ("container", "exec_start", False),
        ("network", "destroy", False),
    ],
)
def test_only_the_life_of_a_container_is_an_event(
    kind: str, action: str, *, expected: bool
) -> None:
    assert docker.is_event({"Type": kind, "Action": action}) is expected
    # Docker before 1.22 calls it status.
    assert docker.is_event({"Type": kind, "status": action}) is expected


INSPECTED = {
    "Id": "a" * 64, "Name": "/api", "RestartCount": 2,
    "State": {"Status": "exited", "OOMKilled": True, "ExitCode": 137, "Error": "killed",
              "StartedAt": "2026-02-03T10:00:00.5Z", "FinishedAt": "2026-02-03T10:05:00Z"},
    "HostConfig": {"Memory": 512 << 20, "MemorySwap": 768 << 20, "CpuQuota": 50_000},
    "Config": {"Env": ["GOGC=off", "GOMEMLIMIT=1GiB", "GOMAXPROCS=4", "A=b=c", "ODD", 5]},
}  # fmt: skip


def test_an_inspected_container_has_all_of_its_facts() -> None:
    row = docker.inspected(INSPECTED)
    assert row == {
        "container_id": "a" * 64, "name": "api", "status": "exited", "oom_killed": True,
        "exit_code": 137, "error": "killed", "signal": "KILL", "restart_count": 2, "restarts_in_s": None,
        "started_at": datetime(2026, 2, 3, 10, 0, 0, 500_000, tzinfo=UTC),
        "finished_at": datetime(2026, 2, 3, 10, 5, tzinfo=UTC), "cpu_limit": 0.5,
        "swap_limit_bytes": 256 << 20,
        "memory_limit_bytes": 512 << 20, "gogc": "off", "gomemlimit_bytes": 1 << 30, "gomaxprocs": 4,
    }  # fmt: skip
    # `docker inspect -f '{{json .State}}'`
    state = docker.inspected(INSPECTED["State"])  # type: ignore[arg-type]
    assert (state["status"], state["exit_code"], state["name"]) == ("exited", 137, None)
    assert state["memory_limit_bytes"] is state["cpu_limit"] is None


@pytest.mark.parametrize(
    ("host", "limit"),
    [({}, None), ({"CpuQuota": 0}, None), ({"CpuQuota": -1}, None), ({"NanoCpus": 0}, None),
     ({"CpuQuota": 20_000, "CpuPeriod": 10_000}, 2), ({"CpuQuota": 50_000, "CpuPeriod": 0}, 0.5),
     ({"NanoCpus": 1, "CpuQuota": 100_000}, 1e-9)],
)  # fmt: skip
def test_a_quota_of_zero_or_less_is_no_limit(host: dict[str, int], limit: float | None) -> None:
    assert docker.inspected({"State": {}, "HostConfig": host})["cpu_limit"] == limit


@pytest.mark.parametrize(
    ("code", "signal"),
    [
        (137, "KILL"),
        (143, "TERM"),
        (134, "ABRT"),
        (139, "SEGV"),
        (130, "INT"),
        (0, None),
        (1, None),
    ],
)
def test_an_exit_code_implies_a_signal(code: int, signal: str | None) -> None:
    """128 and the number of the signal."""
    assert docker.with_signal({"exit_code": code})["signal"] == signal
    assert docker.with_signal({"exit_code": None}) == {"exit_code": None}


@pytest.mark.parametrize(
    "text",
    [
        '{"Type": "container", "Action": "exec_start", "id": "aa"}',
        '{"Type": "network", "Action": "connect", "Actor": {"ID": "aa"}}',
        '{"msg": "OOMKilled"}',
        '{"State": 5}',
        '{"State": "running"}',
        '{"OOMKilled": cut',
        "5",
    ],
)
def test_other_objects_are_no_states_of_containers(text: str) -> None:
    assert docker.read([Message(1, text)]) == []


@pytest.mark.parametrize("among", [0, 200], ids=["alone", "among records"])
@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('3f2a1b4c5d6e   api:1.2   "/api"   2 hours ago   Exited (137) 3 minutes ago   shop-api-1', "shop-api-1"),
        ('3f2a1b4c5d6e   api:1.2   "/api"   2 hours ago   Exited (137) 3 minutes ago   80/tcp   api  ', "api"),
        ('3fd9c1   api:1.2   "/api"   2 hours ago   Exited (137) 3 minutes ago   api', "api"),
        ('shop-api-1   api:1.2   "/api"   api   2 hours ago   Exited (137) 3 minutes ago', "shop-api-1"),
        ("api-1 exited with code 137", "api-1"),
        ("api-1 exited with code 137 (restarting)", "api-1"),
    ],
)  # fmt: skip
def test_a_container_that_exited_with_137_may_have_been_killed_for_memory(
    text: str, name: str, among: int
) -> None:
    run = read_text("".join(f"{line}\n" for line in records(among)) + f"{text}\n")
    (state,) = run.container_states.to_dicts()
    assert (state["name"], state["exit_code"], state["signal"]) == (name, 137, "KILL")
    (death,) = run.post_mortems()
    assert (death.proven, death.victim) == (False, name)
    assert death.advice == (FIND_SENDER,)


@pytest.mark.parametrize(
    "text",
    [
        "api-1 exited with code 0",
        "api  Exited (0) 3 minutes ago",
    ],
)
def test_other_ends_of_containers_are_no_deaths(text: str) -> None:
    lines = "".join(f"{line}\n" for line in records(3))
    assert not read_text(f"{lines}{text}\n").post_mortems()


@pytest.mark.parametrize(
    ("more", "subject"),
    [
        ("", "A process in the container"),
        (
            "2026-11-21T07:36:05.5Z container die 0123456789abcdef (exitCode=137, name=api)\n",
            "The container",
        ),
        (
            # It went on for five minutes, until it was stopped.
            "2026-11-21T07:41:00Z container kill 0123456789abcdef (name=api, signal=9)\n"
            "2026-11-21T07:41:00.2Z container die 0123456789abcdef (exitCode=137, name=api)\n",
            "A process in the container",
        ),
    ],
)
def test_an_oom_event_without_an_end_is_the_kill_of_a_process_in_it(
    more: str, subject: str
) -> None:
    event = "2026-11-21T07:36:05.1Z container oom 0123456789abcdef (name=api)\n"
    death = read_text(event + more).post_mortems()[0]
    assert (death.subject, death.victim, death.proven) == (subject, "api", True)


def test_of_a_service_that_compose_started_again_the_first_process_was_killed() -> None:
    worker, api = ([f"{name}-1  | {line}" for line in records(9)] for name in ("worker", "api"))
    lines = [*worker, *api, "worker-1 exited with code 137", *worker, ""]
    (death,) = read_text("\n".join(lines)).post_mortems()
    assert (death.process, death.victim, death.match_by) == (0, "worker-1", ("container",))


def test_events_of_an_old_docker_are_those_of_a_container() -> None:
    at = "2015-09-03T16:20:42.000000000-07:00 2424f0...a892: (from ubuntu) "
    text = f"docker run -m 100M ubuntu\n{at}oom\n{at}die\n"
    (death,) = read_text(text).post_mortems()
    assert (death.victim, death.limit_mib) == ("container 2424f0...a89", 100)


def test_the_flag_alone_does_not_show_that_a_container_ended() -> None:
    (death,) = read_text('"OomKillDisable": false,\n"OOMKilled": true,\n').post_mortems()
    assert death.subject == "A process in the container"
    (ended,) = read_text('"OOMKilled": true,\n"ExitCode": 137,\n').post_mortems()
    assert ended.subject == "The container"


@pytest.mark.parametrize(
    ("option", "waits"),
    [("--oom-kill-disable=true ", True), ("--oom-kill-disable ", True), ("", False)],
)
def test_an_oom_event_of_a_container_whose_oom_killer_is_off_is_no_kill(
    option: str, waits: bool
) -> None:
    events = "".join(
        f"2015-09-03T16:20:42.000000000-07:00 2424...a892: (from ubuntu) {event}\n"
        for event in ("oom", "die")
    )
    command = f"docker run {option}-m 100M ubuntu app"
    # A sentence about the option is no command.
    for line, is_command in ((f"$ {command}", True), (f"You could try {command}", False)):
        run = read_text(f"{line}\n{events}")
        shown = " ".join(str(run.summary()).split())
        assert ("with its OOM killer off" in shown) is (waits and is_command)
        assert ("killed because memory ran out" in shown) is not (waits and is_command)


def test_a_limit_below_what_the_victim_had_is_of_another_time() -> None:
    kill = (
        "kernel: Memory cgroup out of memory: Killed process 4711 (orders) total-vm:{0}kB, "
        "anon-rss:{0}kB, file-rss:0kB\nsystemd[1]: orders.service: Failed with result "
        "'oom-kill'.\n# MemoryLimit=96M in orders.service\n"
    )
    for kib, is_limit in ((90 << 10, True), (128 << 10, False)):
        shown = " ".join(str(read_text(kill.format(kib)).summary()).split())
        assert ("96 MiB" in shown) is is_limit
