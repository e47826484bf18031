"""Settings that commands and configuration state in the same input as what happened."""

from __future__ import annotations

import pytest

from gctrace_analyzer.testing import read_text
from gctrace_analyzer.units import MIB
from tests.helpers.corpus import log_of
from tests.helpers.logs import records

CYCLES = "\n".join(records(3))


@pytest.mark.parametrize(
    ("text", "gogc", "limit_mib"),
    [
        ("$ GOGC=200 GOMEMLIMIT=1GiB GODEBUG=gctrace=1 ./app", 200, 1024),
        ("root@api:/# GOGC=off GODEBUG=gctrace=1 ./app", "off", None),
        ("$ GOGC=50 ./app", 50, None),
        ("export GOGC=50", 50, None),
        ("RUN export GOGC=50", 50, None),
        ("ENV GOGC 50", 50, None),
        ("GOMEMLIMIT=400MiB GOGC=50 go1.22.1", 50, 400),
        ("GOGC=50, GOMAXPROCS=8", 50, None),
        ("ENV GOGC=50 GOMEMLIMIT=400MiB", 50, 400),
        ("docker run -e GOGC=50 --env GOMEMLIMIT=400MiB api", 50, 400),
        ("podman container run \\\n  -e GOGC=50 \\\n  --env=GOMEMLIMIT=400MiB api", 50, 400),
        ("kubectl set env deployment/api GOGC=50", 50, None),
        ("Environment=GOGC=50", 50, None),
        ('Environment="GOGC=50" "GOMEMLIMIT=400MiB"', 50, 400),
        ("set GOGC=50", 50, None),
        ('$env:GOGC = "50"', 50, None),
        ("GOGC=50\nGOMEMLIMIT=419430400", 50, 400),
        (
            '  env:\n  - name: GOGC\n    value: "50"\n  - name: GOMEMLIMIT\n    value: 400MiB',
            50,
            400,
        ),
        ('    "name": "GOGC",\n    "value": "50"', 50, None),
        ('{"name": "GOGC", "value": "50"},', 50, None),
        ("environment:\n  - GOGC=50\n  - 'GOMEMLIMIT=400MiB'", 50, 400),
        ('environment:\n  GOGC: 50\n  GOMEMLIMIT: "400MiB"', 50, 400),
        ("GOMEMLIMIT=400MiB GOGC=50 ./api", 50, 400),
        ("PORT=80 GOGC=50 GOMEMLIMIT=400MiB /usr/bin/api -v 2> run.log", 50, 400),
        ("sudo env GOGC=50 GODEBUG=gctrace=1 ./server", 50, None),
        ("# GOGC=50 go run .", 50, None),
        ("ExecStart=/usr/bin/env GOGC=50 /usr/bin/api", 50, None),
        ("systemd-run -E GOMEMLIMIT=400MiB ./api", None, 400),
        ("kubectl run api --env=GOGC=50 --image=api", 50, None),
        ("GOGC=50 vs. GOGC=100: I ran it with GOGC=50 ./api", None, None),
        ("GOGC=50 did not help", None, None),
        ("I have read that GOGC=50 is better", None, None),
        ("GOGC=20 + GOMAXPROCS=16 deliver nearly the best throughput", None, None),
        ("  - name: GOGC\n    valueFrom:\n  - name: PORT\n    value: 80", None, None),
    ],
)
def test_variables_that_are_set_above_the_cycles_are_the_settings_of_the_program(
    text: str, gogc: float | str | None, limit_mib: float | None
) -> None:
    run = read_text(f"{text}\n{CYCLES}\n")
    assert run.settings.value("gogc") == gogc
    assert run.settings.value("memory_limit_mib") == limit_mib
    if gogc:
        assert run.settings.gogc is not None
        assert run.settings.gogc.source.startswith("<stream>:")
    assert "container" not in str(run.summary())


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("go version go1.22.1 linux/amd64", "1.22.1"),
        ("go_version=go1.22.1", "1.22.1"),
        ("starting mode=web go=go1.22.1 procs=2", "1.22.1"),
        ('msg="Build context" build_context="(go=go1.22.1, platform=linux/amd64)"', "1.22.1"),
        ("Go version: 1.22", "1.22"),
        ("started, built with go1.20.", "1.20"),
        ("level=info version=go1.22.1 go1.22.1 linux/amd64", "1.22.1"),
        ("built with go1.20\nbuilt with go1.21", None),
        ("version 1.20 of api", None),
        ("built with go1.17", None),
    ],
)
def test_the_only_go_version_that_fits_the_lines_is_that_of_the_program(
    text: str, version: str | None
) -> None:
    assert read_text(f"{text}\n{CYCLES}\n").settings.value("go_version") == version


@pytest.mark.parametrize("text", ["{limits}\n{cycles}\n", "{cycles}\n\n{limits}\n"])
def test_the_limits_of_a_manifest_are_those_of_the_container(text: str) -> None:
    limits = "resources:\n  limits:\n    cpu: 500m\n    memory: 256Mi"
    settings = read_text(text.format(limits=limits, cycles=CYCLES)).settings
    assert (settings.value("container_limit_mib"), settings.value("cpu_limit")) == (256, 0.5)


@pytest.mark.parametrize(
    ("text", "limit_mib"),
    [
        ('msg="GOMEMLIMIT is updated" GOMEMLIMIT=419430400', 400),
        ("We run it with `GOMEMLIMIT=3GiB` and `GOGC=100` in production:", None),
        ("func main() {\n\tdebug.SetGCPercent(100)\n\tdebug.SetMemoryLimit(3 << 30)", None),
    ],
)
def test_what_a_program_prints_is_its_setting_and_a_sentence_is_none(
    text: str, limit_mib: float | None
) -> None:
    run = read_text(f"{text}\n{log_of(30)}")
    assert run.settings.value("gogc") is None
    assert run.settings.value("memory_limit_mib") == limit_mib


@pytest.mark.parametrize(
    "text",
    [
        'msg {"cgroup_memory_mib":429,"cgroup_memory_max_mib":512}', "memory.max: 536870912",
        "started with memory_max=536870912", '{"level":"info","memory_max_bytes": 536870912}',
    ],
)  # fmt: skip
def test_a_program_prints_the_limit_of_its_control_group(text: str) -> None:
    assert read_text(f"{text}\n{log_of(30)}").settings.value("container_limit_mib") == 512


def test_goals_contradict_that_gogc_is_off() -> None:
    text = "$ GOGC=off GOMEMLIMIT=4GiB GODEBUG=gctrace=1 ./app\n" + log_of(30)
    (found,) = read_text(text).findings().filter(id="GC027")["evidence"]
    assert found == "GOGC=off is stated (<stream>:1), but the heap goals follow GOGC=100."


@pytest.mark.parametrize(
    ("command", "gogc"), [("$ time GOGC=off ./ex3", None), ("$ export GOGC=100", 100)]
)
def test_a_setting_of_the_command_before_is_of_another_run(
    command: str, gogc: float | None
) -> None:
    text = f"{command}\n./ex3 0.14s user\n$ time GODEBUG=gctrace=1 ./ex3\n{log_of(30)}"
    assert read_text(text).settings.value("gogc") == gogc


def test_a_setting_that_the_goals_contradict_is_not_believed() -> None:
    text = "$ GOGC=400 GODEBUG=gctrace=1 ./app\n" + log_of(30)
    regimes = read_text(text).regimes()
    assert regimes.select("gogc_pct", "gogc_source").rows() == [(100.0, "inferred")]


@pytest.mark.parametrize(
    ("text", "states"),
    [
        (
            f"$ GOGC=100 ./a\n$ GOGC=200 ./b\n{CYCLES}\n",
            "`$ GOGC=100 ./a` (line 1) and `$ GOGC=200 ./b` (line 2)",
        ),
        (f"{CYCLES}\nexport GOGC=50\n", "`export GOGC=50` (line 4)"),
        (f"limits:\n  memory: 3Mi\n{CYCLES}\n", "`memory: 3Mi` (line 2)"),
    ],
)
def test_a_setting_that_may_be_of_another_run_is_named_and_not_used(
    text: str, states: str
) -> None:
    run = read_text(text)
    assert run.settings.to_dict() == {}
    assert f"The input states {states}, which may be of another run" in str(
        run.summary().warnings
    )


STATS = (
    "CONTAINER ID   NAME  CPU %  MEM USAGE / LIMIT   MEM %\n5b1d8a2c9e01   api  0.1%  200MiB / "
)
KILLED = "container api was OOMKilled with exit code 137\n"


@pytest.mark.parametrize(
    ("text", "limit_mib"),
    [
        (
            f"    resources:\n      limits:\n        cpu: 500m\n        memory: 256Mi\n{KILLED}",
            256,
        ),
        (f"> limits:\n>   memory: '256Mi'\n> requests:\n>   memory: 64Mi\n{KILLED}", 256),
        (f"Limits: memory: 4Gi\n{KILLED}", 4096),
        (f"  deploy:\n    resources:\n      limits:\n        memory: 512M\n{KILLED}", 512),
        (f"limits:\n  cpus: '0.5'\n  memory: 512m\n{KILLED}", 512),
        (f"limits:\n  memory: 512M\n{KILLED}", 512e6 / MIB),
        ("deploy:\n" + "note\n" * 20 + f"limits:\n  memory: 512M\n{KILLED}", 512e6 / MIB),
        (f"limits: {{cpu: 1, memory: 256Mi}}\n{KILLED}", 256),
        (f"    mem_limit: 384m\n{KILLED}", 384),
        (f"mem_limit: 384m\nmem_limit: 512m\n{KILLED}", None),
        (f"requests:\n  memory: 64Mi\n{KILLED}", None),
        (f"mem_limit: 384m\nmem_limit: 512m\n{STATS}384MiB  52 %\n", 384),
        (f"{STATS}384MiB  52 %\n", 384),
        # The kernel keeps a part of a host's memory.
        (f"{STATS}981.3MiB  52 %\n", None),
    ],
)
def test_a_limit_in_the_configuration_is_that_of_the_container(
    text: str, limit_mib: float | None
) -> None:
    states = read_text(text).container_states
    expected = None if limit_mib is None else limit_mib * MIB
    assert states["memory_limit_bytes"].to_list() == [expected]


@pytest.mark.parametrize(
    "line",
    [
        "$ docker run -d -m 200m shop/api",
        "$ docker container run -d --memory=200m shop/api",
        "$ podman run -it \\\n    -m 200m --memory-swap 200m \\\n    shop/api",
        "[Service]\nMemoryMax=200M",
    ],
)
def test_a_limit_in_a_command_or_unit_is_that_of_the_only_victim(line: str) -> None:
    kill = "kernel: Memory cgroup out of memory: Killed process {} ({}) anon-rss:900kB\n"
    assert (
        read_text(f"{line}\n{kill.format(7, 'api')}").oom_kills["limit_bytes"][0] == 200 * MIB
    )
    two = read_text(f"{line}\n{kill.format(7, 'api')}{kill.format(8, 'web')}").oom_kills
    assert two["limit_bytes"].to_list() == [None, None]


@pytest.mark.parametrize(("limit", "known"), [("2G", 2 << 30), ("96M", None)])
def test_the_limit_of_a_unit_is_that_of_a_kill_that_fits_into_it(
    limit: str, known: int | None
) -> None:
    """A process had more than its limit at no time: the words are of something else."""
    run = read_text(
        "h kernel: Memory cgroup out of memory: Killed process 28 (oracle) "
        "total-vm:2000000kB, anon-rss:1000000kB, file-rss:0kB\n"
        f"# cgroup MemoryLimit={limit} set in oracle.service\n"
    )
    assert run.oom_kills["limit_bytes"].to_list() == [known]


@pytest.mark.parametrize(
    ("blocks", "noted", "limit_mib"),
    [(("25Mi",), False, 25.0), (("25Mi", "125Mi"), True, None), ((), False, None)],
)
def test_limits_of_a_killed_container_that_differ_are_named(
    blocks: tuple[str, ...], noted: bool, limit_mib: float | None
) -> None:
    limits = "".join(f"```\nLimits:\n  memory:  {size}\n```\n" for size in blocks)
    state = "Last State:  Terminated\n  Reason:  OOMKilled\n  Exit Code:  137\n"
    run = read_text(f"```\n{state}```\n{limits}")
    (death,) = run.post_mortems()
    assert death.limit_mib == limit_mib
    shown = " ".join(str(run.summary()).split())
    assert ("`memory: 25Mi` (line 8) and `memory: 125Mi` (line 12)" in shown) is noted
