"""Known settings: given, or from containers, kills and dumps."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer import schema
from gctrace_analyzer.analysis.settings.known import (
    Known,
    Settings,
    given_settings,
    known,
    nearest_limit,
)
from gctrace_analyzer.analysis.settings.of_containers import container_of
from gctrace_analyzer.analysis.settings.releases import go_version
from gctrace_analyzer.testing import read_text
from gctrace_analyzer.units import MIB
from tests.conftest import SAMPLES
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
    assert run.settings.to_dict()["gogc"] == {
        "value": 50,
        "source": "state of the container, api",
    }


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


def states(*changed: dict[str, Any]) -> pl.DataFrame:
    types = schema.polars_schema("container_states")
    return pl.DataFrame([{**dict.fromkeys(types), **row} for row in changed], schema=types)


def tables(**given: pl.DataFrame) -> dict[str, pl.DataFrame]:
    names = ("cycles", "processes", "container_states", "oom_kills", "oom_tasks", "memstats")
    return {name: schema.empty(name) for name in names} | given


def processes(**columns: Any) -> pl.DataFrame:
    types = schema.polars_schema("processes")
    return pl.DataFrame([{**dict.fromkeys(types), "process": 0, **columns}], schema=types)


@pytest.mark.parametrize(
    ("rows", "own", "chosen"),
    [
        # The program's name comes first, then a kill, then what is known.
        (
            [{"name": "api"}, {"name": "web", "oom_killed": True, "gogc": "50"}],
            {"ident": "api"},
            0,
        ),
        ([{"container": "api"}, {"name": "web", "oom_killed": True}], {"container": "api"}, 0),
        ([{"name": "x", "gogc": "50"}, {"name": "p-0", "oom_killed": True}], {"pod": "p-0"}, 1),
        ([{"gogc": "50", "cpu_limit": 1.0}, {"oom_killed": True}], {}, 1),
        ([{"gogc": "50"}, {"gogc": "50", "cpu_limit": 1.0}], {}, 1),
        ([{"memory_limit_bytes": MIB, "gomemlimit_bytes": MIB}, {"gogc": "50"}], {}, 0),
        ([{"gogc": "50"}, {"gogc": "60"}], {}, 0),
    ],
)
def test_the_container_that_probably_runs_the_program(
    rows: list[dict[str, Any]], own: dict[str, Any], chosen: int
) -> None:
    numbered = [{"cpu_limit": None, **row} for row in rows]
    found = container_of(states(*numbered), processes(**own))
    assert found == states(*numbered).row(chosen, named=True)
    assert container_of(states(), processes(**own)) is None


@pytest.mark.parametrize(
    ("began_s", "ended_s", "ident", "is_own"),
    [
        # It began with the container that was killed, or when that was started again.
        (1.5, 100, None, True),
        (3602.5, 5000, None, True),
        # The name of its file is that of another program, and no time says otherwise.
        (300, 3590, None, False),
        # Its own name says more than the times.
        (1.5, 100, "orders", False),
    ],
)
def test_a_start_that_agrees_counts_more_than_the_name_of_a_file(
    began_s: float, ended_s: float, ident: str | None, *, is_own: bool
) -> None:
    start = datetime(2026, 11, 9, 8, tzinfo=UTC)
    own = processes(
        source="ledger.prom",
        ident=ident,
        started_at=start + timedelta(seconds=began_s),
        ended_at=start + timedelta(seconds=ended_s),
    )
    row = {
        "container": "metricsd", "memory_limit_bytes": MIB, "oom_killed": True,
        "started_at": start, "finished_at": start + timedelta(hours=1), "restart_count": 1,
        "status": "running",
    }  # fmt: skip
    assert (container_of(states(row), own) is not None) is is_own


@pytest.mark.parametrize(("early_s", "is_own"), [(30, True), (90, False)])
def test_a_log_that_ends_long_before_a_kill_need_not_be_of_that_container(
    early_s: float, *, is_own: bool
) -> None:
    end = datetime(2026, 11, 9, 9, tzinfo=UTC)
    times = {"started_at": end - timedelta(minutes=30), "source": "app.log"}
    own = processes(**times, ended_at=end - timedelta(seconds=early_s))
    row = {
        "container": "api",
        "memory_limit_bytes": MIB,
        "oom_killed": True,
        "finished_at": end,
    }
    assert (container_of(states(row), own) is not None) is is_own


@pytest.mark.parametrize(
    ("row", "source"),
    [
        ({"status": "running", "name": "api"}, "state of the container, api"),
        ({"event": "oom", "container": "c"}, "state of the container, c"),
        ({"status": "running"}, "state of the container"),
        ({"name": "api", "container": "c"}, "Kubernetes metrics, api"),
    ],
)
def test_settings_of_a_container_by_hand(row: dict[str, Any], source: str) -> None:
    full = {**row, "gomemlimit_bytes": 3 * MIB, "memory_limit_bytes": 4 * MIB,
            "cpu_limit": 1.5, "gogc": "50"}  # fmt: skip
    found = known(Settings(), tables(container_states=states(full)))
    assert found.to_dict() == {
        "gogc": {"value": 50, "source": source},
        "memory_limit_mib": {"value": 3, "source": source},
        "container_limit_mib": {"value": 4, "source": source},
        "cpu_limit": {"value": 1.5, "source": source},
    }
    given = Settings(cpu_limit=Known(4.0, "given"))
    assert known(given, tables(container_states=states(full))).value("cpu_limit") == 4


def test_settings_of_metrics_are_the_latest_known() -> None:
    types = schema.polars_schema("memstats")

    def of(**columns: list[Any]) -> dict[str, Any]:
        rows = [
            dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
        ]
        frame = pl.DataFrame([{**dict.fromkeys(types), **row} for row in rows], schema=types)
        return known(Settings(), tables(memstats=frame)).to_dict()

    metrics = {"source": "metrics"}
    assert of(gogc_pct=[200, 200, None])["gogc"] == {"value": 200.0, **metrics}
    changed = of(gogc_pct=[50, 50, -1, 200, None])["gogc"]
    assert changed == {"value": 200.0, "source": "metrics, after 50, off"}
    often = of(gogc_pct=[50, 60, 70, 80, 90], process=[0] * 5)["gogc"]
    assert often["source"] == "metrics, after others, 60, 70, 80"
    other = of(gogc_pct=[50, 200], process=[0, 1])["gogc"]
    assert other == {"value": 200.0, **metrics}
    assert of(gogc_pct=[0])["gogc"] == {"value": 0.0, **metrics}
    assert of(gogc_pct=[-1])["gogc"] == {"value": "off", **metrics}
    assert of(gomemlimit_bytes=[MIB, 2 * MIB])["memory_limit_mib"] == {"value": 2, **metrics}
    assert of(go_version=["1.20", "1.22"])["go_version"] == {"value": "1.22", **metrics}
    assert of(go_version=["devel"]) == {}
    # What is resident beyond what is mapped at the same time: of the second half, the median, or
    # the last, as it may grow.
    sizes = {"rss_bytes": [190 * MIB, 100 * MIB, 90 * MIB], "sys_bytes": [70 * MIB] * 3}
    released = {"heap_released_bytes": [2 * MIB, 10 * MIB, None]}
    assert of(**sizes, **released) == {}, "(40 + 20) / 2"
    sizes["rss_bytes"] = [190 * MIB, 100 * MIB, 120 * MIB]
    found = of(**sizes, **released)
    assert found["off_heap_mib"]["value"] == 50
    sizes["rss_bytes"] = [190 * MIB, 120 * MIB, 110 * MIB]
    found = of(**sizes, **released)
    assert found["off_heap_mib"]["value"] == (60 + 40) / 2


def test_the_neighbours_of_a_kill_use_a_twentieth_of_the_limit() -> None:
    types = schema.polars_schema("oom_kills")
    kill = {"scope": "memcg", "limit_bytes": 100 * MIB, "pid": 7, "comm": "api", "source": "log",
            "line_no": 9}  # fmt: skip
    tasks = [
        {"source": "log", "kill_line_no": 9, "pid": pid, "rss_bytes": rss, "comm": comm}
        for pid, rss, comm in (
            (7, 90 * MIB, "api"), (1, 5 * MIB, "log"), (2, 5 * MIB - 1, "sh"), (3, 6 * MIB, "log"),
            (4, None, "x"),
        )
    ]  # fmt: skip

    def found(**changed: Any) -> dict[str, Any]:
        row = pl.DataFrame([{**dict.fromkeys(types), **kill, **changed}], schema=types)
        listed = pl.DataFrame(tasks, schema=schema.polars_schema("oom_tasks"))
        every = tables(oom_kills=row, oom_tasks=listed, processes=processes(ident="api"))
        return known(Settings(), every).to_dict()

    where = "OOM kill, log:9"
    assert found() == {
        "container_limit_mib": {"value": 100, "source": where},
        "beside_mib": {"value": 11, "source": f"log; {where}"},
    }
    assert list(found(pid=None)) == ["container_limit_mib"]
    assert found(scope="global") == found(limit_bytes=None) == {}
    assert found(comm="app", host="h", logged_at=None) != {}
    assert found(comm="other", host="h", logged_at=None) == {}


@pytest.mark.parametrize(
    ("limits", "live", "nearest"),
    [
        ((100.0, 200.0), 50.0, (100.0, "GOMEMLIMIT", 50.0)),
        ((200.0, 100.0), 50.0, (100.0, "container", 50.0)),
        ((100.0, 200.0), 100.0, (200.0, "container", 100.0)),
        ((100.0, None), 100.0, None),
        ((None, None), 1.0, None),
    ],
)
def test_the_nearest_limit_is_above_the_live_heap(
    limits: tuple[float | None, float | None],
    live: float,
    nearest: tuple[float, str, float] | None,
) -> None:
    names = ("memory_limit_mib", "container_limit_mib")
    values = {name: Known(mib, "test") for name, mib in zip(names, limits, strict=True)}
    found = nearest_limit(Settings(**values), live)
    assert (found and (found.mib, found.name, found.room_mib)) == nearest


def test_the_room_of_a_container_is_what_others_leave() -> None:
    limit, others = Known(100.0, "test"), Known(30.0, "test")
    assert Settings().room_mib is None
    assert Settings(container_limit_mib=limit).room_mib == 100
    assert Settings(container_limit_mib=limit, beside_mib=others).room_mib == 70
    assert Settings(beside_mib=others).room_mib is None
    assert Settings(container_limit_mib=Known(0.0, "test")).room_mib is None


@pytest.mark.parametrize("cpus", ["0", "nan", "inf", "-2", "x", None])
def test_cpus_are_a_positive_number(cpus: Any) -> None:
    if cpus is None:
        assert given_settings(cpu_limit=None).cpu_limit is None
        return
    with pytest.raises(gca.BadSettingError, match=r"CPUs, such as 1\.5"):
        given_settings(cpu_limit=cpus)
    assert given_settings(cpu_limit=0.1).value("cpu_limit") == 0.1


def rested(number: int = 5, at_s: float = 204.1, begin_mib: int = 70, end: str = "2 P") -> str:
    """Returns four cycles, a second apart, and one after a rest; the heap goal is 80 MiB."""
    line = (
        "gc {} @{:.3f}s 1%: 0.02+10+0.01 ms clock, 0.04+1.0/9.0/8.0+0.02 ms cpu, {}->75->12 MB, "
        "80 MB goal, 0 MB stacks, 0 MB globals, {}"
    )
    usual = [line.format(n, n, 70, "2 P") for n in range(1, 5)]
    return "\n".join([*usual, line.format(number, at_s, begin_mib, end)])


def test_a_longer_rest_than_the_runtime_allows_shows_that_gogc_is_off(tmp_path: Path) -> None:
    path = logfile(tmp_path / "run.log", [rested()])
    assert gca.read(path).report().analysis.settings.to_dict() == {
        "gogc": {"value": "off", "source": f"no cycle for 3m 20s, {path}:5"}
    }
    given = gca.read(path, gogc=100).report().analysis.settings
    assert given.to_dict() == {"gogc": {"value": 100.0, "source": "given"}}


@pytest.mark.parametrize(
    "log",
    [
        pytest.param(rested(at_s=4.01 + 184), id="the monitor of an idle program looks late"),
        pytest.param(rested(number=6), id="a line is missing"),
        pytest.param(rested(begin_mib=44), id="a periodic cycle after a process was stopped"),
        pytest.param(rested(end="2 P (forced)"), id="the program forced it"),
    ],
)
def test_other_rests_do_not(tmp_path: Path, log: str) -> None:
    analysis = gca.read(logfile(tmp_path / "run.log", [log])).report().analysis
    assert analysis.settings.value("gogc") is None


@pytest.mark.parametrize(
    ("log", "version", "lines"),
    [
        ("steady-go1.26", "1.5", "Go 1.18 or later"),
        ("steady-go1.26", "1.17.13", "Go 1.18 or later"),
        ("steady-go1.26", "1.18", None),
        ("steady-go1.9", "1.22", "Go 1.6 to 1.17"),
        ("steady-go1.9", "1.9.7", None),
        ("go1.4", "1.3", "Go 1.4"),
    ],
)
def test_a_go_version_that_never_printed_these_lines_is_ignored(
    log: str, version: str, lines: str | None
) -> None:
    run = gca.read(SAMPLES / f"{log}.log", go_version=version)
    notes = [each for each in run.summary().warnings if "was given" in each]
    stated = gca.read(SAMPLES / f"{log}.log").settings.value("go_version")
    assert run.settings.value("go_version") == (version if lines is None else stated)
    assert len(notes) == (lines is not None)
    if lines is not None:
        expected = (
            f"The log has the lines of {lines}, so Go {version}, which was given, is ignored."
        )
        assert notes == [expected]
        # Advice is that for the version that the lines show.
        assert run.recommend().equals(gca.read(SAMPLES / f"{log}.log").recommend())


def test_a_go_version_that_one_of_the_programs_may_have_is_kept() -> None:
    logs = (SAMPLES / f"steady-go{version}.log" for version in ("1.9", "1.26"))
    assert gca.read(*logs, go_version="1.9").settings.value("go_version") == "1.9"


@pytest.mark.parametrize(
    ("rss", "total", "is_known"),
    [("1.4 GiB", "1.1 GiB", False), ("1434 MiB", "1126 MiB", True)],
)
def test_memory_outside_the_heap_is_known_only_from_exact_sizes(
    rss: str, total: str, is_known: bool
) -> None:
    line = f"runtime stats: {rss} RSS, 139 goroutines, 952 MiB/44 MiB/{total} GO alloc/idle/total, "
    line += "103 MiB/126 MiB CGO alloc/total, 40.20cgo/sec, 0.28/0.17 %(u/s)time, 0.00 %gc (0x)"
    assert (
        gca.read(io.BytesIO(f"{line}\n".encode())).settings.off_heap_mib is not None
    ) is is_known


@pytest.mark.parametrize(
    ("first", "version"),
    [
        ("2026/11/28 17:55:02 starting api on go1.20.14 GOMAXPROCS=2", "1.20.14"),
        ("go1.20 gctrace:", "1.20"),
        ("built with toolchain /usr/local/go1.20.14/bin", None),
        ("it is fast on go1.20 and slow on go1.21", None),
    ],
)
def test_the_go_version_that_a_log_names_is_its_own(first: str, version: str | None) -> None:
    run = read_text("\n".join((first, *records(30), "")))
    assert run.settings.value("go_version") == version
    shown = run.report().facts[1]
    assert shown == (f"go{version}" if version else "go1.18+")
