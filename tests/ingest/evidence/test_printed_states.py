"""Container states as Go programs print them: recorded with k8s.io/api v0.34 and text/template."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from gctrace_analyzer.ingest.evidence import pods
from gctrace_analyzer.ingest.evidence.message import Message
from gctrace_analyzer.testing import read_text
from tests.helpers.logs import records

ID = "3f2a9c1b7d5e4f6081a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708"
OF_MAP = (
    f"map[terminated:map[containerID:containerd://{ID} exitCode:137 "
    "finishedAt:2026-05-01T12:07:42Z reason:OOMKilled startedAt:2026-05-01T12:00:00Z]]"
)
PANIC = (
    f"map[terminated:map[containerID:containerd://{ID} exitCode:2 finishedAt:2026-05-01T12:07:42Z "
    "message:panic: runtime error: index out of range [5] with length 3, goroutine 1 [running]: "
    "reason:Error startedAt:2026-05-01T12:00:00Z]]"
)
OF_TYPE = (
    "&ContainerStateTerminated{ExitCode:137,Signal:0,Reason:OOMKilled,Message:,"
    "StartedAt:2026-05-01 12:00:00 +0000 UTC,FinishedAt:2026-05-01 12:07:42 +0000 UTC,"
    f"ContainerID:containerd://{ID},}}"
)
OF_FIELDS = (
    "{ExitCode:137 Signal:0 Reason:OOMKilled Message: StartedAt:2026-05-01 12:00:00 +0000 UTC "
    f"FinishedAt:2026-05-01 12:07:42 +0000 UTC ContainerID:containerd://{ID}}}"
)
RUNNING = "&ContainerStateRunning{StartedAt:2026-05-01 12:07:42 +0000 UTC,}"
IMAGE = "registry.example/shop/api:1.4.2 registry.example/shop/api@sha256:aa"
STATUSES = {
    "go-template": (
        f"[map[containerID:containerd://{ID} image:a imageID:b lastState:{OF_MAP} name:api ready:true "
        "restartCount:3 started:true state:map[running:map[startedAt:2026-05-01T12:07:42Z]]] "
        f"map[containerID:containerd://{ID} image:a imageID:b lastState:{PANIC} name:worker "
        "ready:false restartCount:7 state:map[waiting:map[message:back-off 5m0s restarting failed "
        "container=worker pod=api-0_shop(aa) reason:CrashLoopBackOff]]]]"
    ),
    "String": (
        f"&ContainerStatus{{Name:api,State:ContainerState{{Waiting:nil,Running:{RUNNING},"
        "Terminated:nil,},LastTerminationState:ContainerState{Waiting:nil,Running:nil,"
        f"Terminated:{OF_TYPE},}},Ready:true,RestartCount:3,Image:a,ImageID:b,"
        f"ContainerID:containerd://{ID},Started:*true,}}"
    ),
    "%v": f"statuses [{{api {{nil {RUNNING} nil}} {{nil nil {OF_TYPE}}} true 3 {IMAGE} containerd://{ID}}}]",
}
WRAPPED = 'E0501 12:07:43.120311    1201 pod_workers.go:1301] "state changed" state={}'


def states(text: str) -> list[dict[str, Any]]:
    return read_text(text).container_states.to_dicts()


@pytest.mark.parametrize(
    "text",
    [
        OF_MAP,
        OF_MAP.removeprefix("map[terminated:").removesuffix("]"),
        OF_TYPE,
        f"&ContainerState{{Waiting:nil,Running:nil,Terminated:{OF_TYPE},}}",
        OF_FIELDS,
    ],
)
@pytest.mark.parametrize("form", ["{}", WRAPPED, "2026-05-01T12:07:43Z stderr F last={}"])
def test_a_state_is_read_in_every_form_in_which_go_prints_it(text: str, form: str) -> None:
    (row,) = states(form.format(text) + "\n")
    assert (row["exit_code"], row["signal"], row["reason"]) == (137, "KILL", "OOMKilled")
    assert row["oom_killed"] is True
    assert row["status"] == "terminated"
    assert row["started_at"] == datetime(2026, 5, 1, 12, tzinfo=UTC)
    assert row["finished_at"] == datetime(2026, 5, 1, 12, 7, 42, tzinfo=UTC)


def test_a_list_that_begins_the_input_is_not_taken_for_json() -> None:
    (row,) = states(STATUSES["%v"].removeprefix("statuses ") + "\n")
    assert (row["container"], row["exit_code"], row["restart_count"]) == ("api", 137, 3)


@pytest.mark.parametrize("form", STATUSES)
def test_the_last_state_of_a_status_has_name_and_restarts_of_its_container(form: str) -> None:
    row, *others = states(STATUSES[form])
    assert (row["container"], row["restart_count"], row["oom_killed"]) == ("api", 3, True)
    assert (row["last_status"], row["last_reason"]) == ("terminated", "OOMKilled")
    assert row["status"] is None
    assert row["container_id"] == ID
    assert [each["container"] for each in others] == (
        ["worker"] if form == "go-template" else []
    )
    for each in others:
        assert (each["restart_count"], each["exit_code"], each["last_reason"]) == (
            7,
            2,
            "Error",
        )
        assert each["oom_killed"] is False


def test_a_container_that_has_ended_has_the_name_before_its_state() -> None:
    text = f"map[image:a lastState:map[] name:job ready:false restartCount:4 started:false state:{OF_MAP}]"
    (row,) = states(text)
    assert (row["container"], row["restart_count"], row["status"]) == ("job", 4, "terminated")
    (row,) = states(
        f"ContainerStatus{{Name:job,State:ContainerState{{Waiting:nil,Running:nil,Terminated:{OF_TYPE},}},"
        "LastTerminationState:ContainerState{Waiting:nil,Running:nil,Terminated:nil,},Ready:false,"
    )
    assert (row["container"], row["status"], row["last_status"]) == ("job", "terminated", None)


def test_a_message_with_brackets_is_no_end_of_a_state() -> None:
    (row,) = states(PANIC)
    assert (row["exit_code"], row["reason"], row["oom_killed"]) == (2, "Error", False)
    message = OF_TYPE.replace("Message:,", "Message:panic: {a, b} [5],")
    (row,) = states(message)
    assert row["finished_at"] == datetime(2026, 5, 1, 12, 7, 42, tzinfo=UTC)


def test_a_death_that_is_printed_again_and_again_is_one() -> None:
    lines = [WRAPPED.format(OF_TYPE)] * 3 + [WRAPPED.format(OF_TYPE.replace("07:42", "09:01"))]
    assert [row["line_no"] for row in states("\n".join(lines) + "\n")] == [1, 4]


def test_states_between_cycles_are_read_with_the_pod_of_their_prefix() -> None:
    cri = "2026-05-01T12:07:{:02}.5Z stderr F {}"
    log = [cri.format(n, line) for n, line in enumerate([*records(20), OF_FIELDS])]
    run = read_text("\n".join(log) + "\n")
    (row,) = run.container_states.to_dicts()
    assert (row["line_no"], row["oom_killed"]) == (21, True)
    assert row["logged_at"] == datetime(2026, 5, 1, 12, 7, 20, 500000, tzinfo=UTC)
    assert len(run.cycles) == 20
    bare = read_text("\n".join([*records(20), OF_MAP]) + "\n")
    assert bare.container_states["exit_code"].to_list() == [137]


def test_times_that_are_unknown_are_null() -> None:
    zero = OF_TYPE.replace("2026-05-01 12:00:00", "0001-01-01 00:00:00")
    (row,) = states(zero)
    assert (row["started_at"], row["exit_code"]) == (None, 137)
    (row,) = states(OF_MAP.replace("startedAt:2026-05-01T12:00:00Z", "startedAt:<nil>"))
    assert row["started_at"] is None
    (row,) = states(OF_TYPE.replace("12:00:00 +0000 UTC", "14:00:00 +0200 CEST"))
    assert row["started_at"] == datetime(2026, 5, 1, 12, tzinfo=UTC)


def test_one_status_as_json_is_a_container() -> None:
    status = {
        "name": "api",
        "restartCount": 3,
        "state": {"running": {"startedAt": "2026-05-01T12:07:42Z"}},
        "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
    }
    for document in (status, [status]):
        (row,) = states(json.dumps(document))
        assert (row["container"], row["restart_count"], row["status"]) == ("api", 3, "running")
        assert (row["last_reason"], row["oom_killed"]) == ("OOMKilled", True)


def test_a_last_state_as_json_is_a_container() -> None:
    """As `kubectl get pod -o jsonpath='{.status.containerStatuses[0].lastState}'` prints it."""
    ended = {
        "containerID": f"containerd://{ID}",
        "exitCode": 137,
        "finishedAt": "2026-05-01T12:07:42Z",
        "reason": "OOMKilled",
        "startedAt": "2026-05-01T12:00:00Z",
    }
    (row,) = states(json.dumps({"terminated": ended}))
    assert (row["exit_code"], row["oom_killed"], row["status"]) == (137, True, "terminated")
    assert row["finished_at"] == datetime(2026, 5, 1, 12, 7, 42, tzinfo=UTC)


def test_states_after_other_messages_are_read() -> None:
    messages = [
        Message(1, "started"),
        Message(2, OF_MAP),
        Message(3, "exitCode: soon"),
        Message(4, PANIC),
    ]
    rows = pods.read(messages)["container_states"]
    assert [(row["line_no"], row["exit_code"]) for row in rows] == [(2, 137), (4, 2)]
