"""Containers as `docker inspect` and `docker events` print them."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from gctrace_analyzer.ingest.evidence import docker

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


def test_a_docker_event_has_its_signal_and_time() -> None:
    event = {
        "Type": "container",
        "Action": "die",
        "Actor": {"ID": "a" * 64, "Attributes": {"exitCode": "137", "name": "api"}},
        "timeNano": 1770112800005000000,
    }
    row = docker.from_event(event)
    assert (row["event"], row["signal"], row["name"]) == ("die", "KILL", "api")
    assert f"{row['logged_at']:%Y-%m-%d %H:%M:%S.%f}" == "2026-02-03 10:00:00.005000"
    seconds = docker.from_event({**event, "timeNano": None, "time": 1770112800})
    assert f"{seconds['logged_at']:%H:%M:%S}" == "10:00:00"


def test_a_cpu_quota_is_a_limit() -> None:
    host = {"CpuQuota": 150_000, "CpuPeriod": 100_000}
    assert docker.inspected({"State": {}, "HostConfig": host})["cpu_limit"] == 1.5
    nano = {"NanoCpus": 2_000_000_000}
    assert docker.inspected({"State": {}, "HostConfig": nano})["cpu_limit"] == 2.0
