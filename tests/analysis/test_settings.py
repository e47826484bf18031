"""Known settings: given, or from containers, kills and dumps."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.settings import given_settings, go_version
from tests.helpers.logs import KILL, logfile, records

if TYPE_CHECKING:
    from pathlib import Path

NOTHING = (None,) * 7


def test_nothing_given_is_nothing_known() -> None:
    assert given_settings(*NOTHING).to_dict() == {}


@pytest.mark.parametrize(
    ("position", "value", "expected"),
    [
        (3, "many", "CPUs, such as 1.5"),
        (3, -1, "CPUs, such as 1.5"),
        (4, "devel", "a version such as 1.22"),
        (0, "half", "a percentage"),
        (2, "0", "a size above 0"),
    ],
)
def test_an_invalid_setting_is_refused(position: int, value: Any, expected: str) -> None:
    values: list[Any] = list(NOTHING)
    values[position] = value
    with pytest.raises(gca.BadSettingError, match=expected):
        given_settings(*values)


def test_given_settings_are_kept_with_their_source() -> None:
    settings = given_settings("off", "off", "2GiB", 1.5, "go1.22", "64MiB", "32MiB")
    assert settings.value("gogc") == "off"
    assert settings.value("memory_limit_mib") is None
    assert settings.value("container_limit_mib") == 2048
    assert settings.value("cpu_limit") == 1.5
    assert settings.value("go_version") == "1.22"
    assert settings.to_dict()["ballast_mib"] == {"value": 64.0, "source": "given"}


def test_versions_are_compared_as_numbers() -> None:
    assert go_version("1.9") < go_version("1.10")  # type: ignore[operator]  # both are versions
    assert go_version(None) is None


def test_metrics_contain_settings(tmp_path: Path) -> None:
    metrics = {
        "go_gc_gogc_percent": 50,
        "go_gc_gomemlimit_bytes": 512 << 20,
        "go_memstats_sys_bytes": 100 << 20,
        "process_resident_memory_bytes": 300 << 20,
    }
    text = "".join(f"{name} {value}\n" for name, value in metrics.items())
    settings = gca.read(logfile(tmp_path / "metrics.prom", [text])).settings
    assert settings.value("gogc") == 50
    assert settings.value("memory_limit_mib") == 512
    assert settings.value("off_heap_mib") == pytest.approx(200)


def test_a_kill_names_the_limit_and_the_other_processes_under_it(tmp_path: Path) -> None:
    lines = [f"2026-02-03T10:00:{n:02}Z h api[7]: {line}" for n, line in enumerate(records(5))]
    block = [
        "memory: usage 524288kB, limit 524288kB, failcnt 31",
        "Tasks state (memory values in pages):",
        "[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name",
        "[      7]     0     7   200000   100000   900000        0             0 api",
        "[      9]     0     9   200000    30000   900000        0             0 sidecar",
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,"
        "oom_memcg=/a,task_memcg=/a,task=api,pid=7,uid=0",
        KILL.format(pid=7, comm="api", kb=400_000),
    ]
    kernel = [f"2026-02-03T10:00:06Z h kernel: {line}" for line in block]
    settings = gca.read(logfile(tmp_path / "log", [*lines, *kernel])).settings
    assert settings.value("container_limit_mib") == 512
    assert settings.value("beside_mib") == pytest.approx(30000 * 4 / 1024)
    assert "sidecar" in settings.to_dict()["beside_mib"]["source"]


def test_the_container_of_the_same_name_is_the_programs(tmp_path: Path) -> None:
    def state(name: str, limit_mib: int) -> dict[str, Any]:
        return {
            "Id": f"{limit_mib:064x}",
            "Name": f"/{name}",
            "State": {"Status": "running", "OOMKilled": False, "ExitCode": 0},
            "Config": {"Env": ["GOGC=50"]},
            "HostConfig": {"Memory": limit_mib << 20},
        }

    containers = tmp_path / "inspect.json"
    containers.write_text(json.dumps([state("web", 128), state("api", 256)]))
    lines = [f"2026-02-03T10:00:{n:02}Z h api[7]: {line}" for n, line in enumerate(records(5))]
    run = gca.read(logfile(tmp_path / "log", lines), containers)
    assert run.settings.value("container_limit_mib") == 256
    assert run.settings.to_dict()["gogc"] == {"value": 50, "source": "docker or kubectl, api"}


@pytest.mark.parametrize(
    ("variable", "value"),
    [("50", 50), ("-1", "off"), ("off", "off"), ("bogus", None), ("", None)],
)
def test_gogc_of_a_container_is_read_as_go_reads_it(
    variable: str, value: float | str | None, tmp_path: Path
) -> None:
    state = {"Id": "a" * 64, "State": {"Status": "running"}}
    containers = tmp_path / "inspect.json"
    containers.write_text(json.dumps([state | {"Config": {"Env": [f"GOGC={variable}"]}}]))
    run = gca.read(logfile(tmp_path / "log", records(30)), containers)
    assert run.settings.value("gogc") == value
    assert run.report()


def test_limits_of_containers_become_settings(tmp_path: Path) -> None:
    run = gca.read("samples/describe-pod.txt")
    assert run.settings.value("container_limit_mib") == 512
    assert run.settings.value("memory_limit_mib") == 400
    given = gca.read("samples/describe-pod.txt", container_limit="1GiB", gogc="off")
    assert given.settings.value("container_limit_mib") == 1024
    assert given.settings.value("gogc") == "off"
