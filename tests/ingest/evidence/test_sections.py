"""Documents and log lines in one input: what someone pasted, or the output of some commands."""

from __future__ import annotations

import io
import itertools
import json
import random
import textwrap

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.errors import NoDataError
from gctrace_analyzer.ingest.evidence import sections
from gctrace_analyzer.schema import LOG_TABLES, TableName
from gctrace_analyzer.units import MIB
from tests.conftest import CORPUS, SAMPLES
from tests.helpers.corpus import log_of
from tests.helpers.logs import KILL

INPUTS = CORPUS / "inputs"

RUNNING = """Containers:
  api:
    State:          Running
      Started:      Fri, 27 Nov 2026 10:15:00 +0000
    Ready:          True
    Restart Count:  0
    Limits:
      cpu:     500m
      memory:  256Mi
"""


@pytest.mark.parametrize("after", [False, True])
def test_a_description_is_read_before_and_after_a_log(*, after: bool) -> None:
    texts = [RUNNING, log_of(600)]
    run = gca.read(io.StringIO("".join(texts[::-1] if after else texts)))
    assert run.settings.value("container_limit_mib") == 256
    assert run.settings.value("cpu_limit") == 0.5


DESCRIBED = """\
Name:             api-7d9f
Namespace:        shop
Containers:
  api:
    Container ID:  containerd://5f0c
    State:          Running
      Started:      Tue, 03 Feb 2026 10:00:02 +0000
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
      Started:      Tue, 03 Feb 2026 09:00:00 +0000
      Finished:     Tue, 03 Feb 2026 10:00:00 +0000
    Restart Count:  4
    Limits:
      memory:  512Mi
Conditions:
  Type    Status
  Ready   True
"""

POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: api-7d9f
status:
  containerStatuses:
  - name: api
    restartCount: 4
    lastState:
      terminated:
        exitCode: 137
        reason: OOMKilled
        finishedAt: "2026-02-03T10:00:00Z"
"""

PROFILE = """\
heap profile: 1: 5 [2: 10] @ heap/1048576
1: 5 [2: 10] @ 0x462075 0x461c77
#\t0x462074\tmain.work+0x294\t/src/main.go:12

# runtime.MemStats
# Alloc = 8758852
# TotalAlloc = 1848041491
# Sys = 14328104
# HeapAlloc = 8758852
# HeapSys = 10863247
# HeapIdle = 2044559
# HeapInuse = 8818688
# NextGC = 16668603
# NumGC = 412
"""

EXPVAR = """\
{
"cmdline": ["./api"],
"memstats": {"Alloc": 100528888, "TotalAlloc": 25294914672, "Sys": 378910968,
"HeapAlloc": 100528888, "HeapSys": 331874304, "HeapIdle": 151117824, "HeapInuse": 180756480,
"NextGC": 190323504, "PauseTotalNs": 75400404, "NumGC": 328}
}
"""

PIECES = {
    "log": (SAMPLES / "steady-go1.26.log").read_text(),
    "kill": f"Feb 03 10:00:01 node kernel: {KILL.format(pid=7, comm='api', kb=5000)}\n",
    "inspect": (INPUTS / "container_state" / "inspect-full.json").read_text(),
    "describe": DESCRIBED,
    "yaml": POD,
    "profile": PROFILE,
    "expvar": EXPVAR,
    "metrics": (INPUTS / "memstats" / "prometheus-exposition.txt").read_text(),
}
PIECES = {name: f"{text.rstrip()}\n" for name, text in PIECES.items()}
ROWS: tuple[TableName, ...] = ("cycles", "memstats", "oom_kills", "container_states")


def read(text: str) -> gca.Run:
    return gca.read(io.StringIO(text))


def rows(run: gca.Run) -> dict[str, list[int]]:
    """Returns the lines of what was read, by table."""
    return {name: sorted(run.table(name)["line_no"]) for name in ROWS}


def expected(*names: str, between: int = 0) -> dict[str, list[int]]:
    """Returns the lines of pieces that follow each other, with some lines before each."""
    found: dict[str, list[int]] = {name: [] for name in ROWS}
    begin = 0
    for name in names:
        begin += between
        for table, lines in rows(read(PIECES[name])).items():
            found[table] += [begin + line for line in lines]
        begin += PIECES[name].count("\n")
    return found


@pytest.mark.parametrize("names", [*itertools.permutations(PIECES, 2)], ids="-".join)
def test_two_pieces_in_one_input_are_both_read(names: tuple[str, str]) -> None:
    assert rows(read("".join(PIECES[name] for name in names))) == expected(*names)


@pytest.mark.parametrize("seed", range(8))
def test_pieces_after_prompts_are_read_in_any_order(seed: int) -> None:
    names = random.Random(seed).sample(list(PIECES), len(PIECES))
    text = "".join(f"\n$ show {name}\n{PIECES[name]}" for name in names)
    assert rows(read(text)) == expected(*names, between=2)


@pytest.mark.parametrize("name", PIECES)
def test_a_document_in_prose_is_read(name: str) -> None:
    text = f"It was killed again last night, see below.\n```\n{PIECES[name]}```\nAny ideas?\n"
    assert rows(read(text)) == expected(name, between=2)


@pytest.mark.parametrize("name", sorted({*PIECES} - {"log", "kill"}))
@pytest.mark.parametrize("prefix", ["    ", "> ", "> > "])
def test_a_document_that_is_quoted_or_indented_is_read(name: str, prefix: str) -> None:
    quoted = textwrap.indent(PIECES[name], prefix, lambda line: bool(line.strip()))
    text = f"The output:\n{quoted}\nAny ideas?\n"
    if prefix != "    ":
        # Mail programs and Markdown quote empty lines too.
        text = text.replace("\n\n", f"\n{prefix.rstrip()}\n", quoted.count("\n\n"))
    assert rows(read(text)) == expected(name, between=1)


def test_a_part_of_json_between_other_lines_is_read() -> None:
    whole = '"State": {"Status": "exited", "OOMKilled": true,\n"ExitCode": 137},\n"Id": "ab"\n'
    run = read(f"docker says:\n{whole}\n{PIECES['log']}")
    assert run.table("container_states")["oom_killed"].drop_nulls().to_list() == [True]
    assert len(run.cycles) == len(read(PIECES["log"]).cycles)


def test_an_input_of_several_formats_says_so() -> None:
    text = str(read(PIECES["describe"] + PIECES["log"]).summary())
    assert "several formats: " in text
    assert "1 container state" in text


def test_text_that_is_no_document_stays_a_log() -> None:
    # Braces around what is no JSON, and JSON that says nothing about memory
    odd = 'OOMKilled\n{\n  gc is fine\n}\n{\n  "level": "info"\n}\nState:   Running\n'
    run = read(odd + PIECES["log"])
    alone = read(PIECES["log"])
    assert run.cycles.drop("line_no", "source").equals(alone.cycles.drop("line_no", "source"))
    assert [len(run.analysis.tables[name]) for name in LOG_TABLES] == [
        len(alone.analysis.tables[name]) for name in LOG_TABLES
    ]


def test_a_kind_that_is_given_is_not_looked_for() -> None:
    text = PIECES["describe"] + PIECES["log"]
    assert len(gca.read(io.StringIO(text), kind="log").cycles)
    # Its words are read, but not what `kubectl describe` shows around them.
    states = gca.read(io.StringIO(text), kind="log").table("container_states")
    assert states["memory_limit_bytes"].to_list() == [512 * MIB]
    assert states["started_at"].null_count() == len(states)


def test_many_braces_take_no_time() -> None:
    text = "OOMKilled\n" + "{\n" * 100_000
    assert not sections.sections_of(text)


def test_dumps_of_several_formats_are_in_the_order_of_their_lines() -> None:
    run = read(PIECES["profile"] + PIECES["expvar"] + PIECES["profile"])
    assert run.table("memstats")["num_gc"].to_list() == [412, 328, 412]
    assert run.table("memstats")["line_no"].is_sorted()
    assert run.table("memstats").schema["num_gc"] == pl.Int64


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"dir": "retune", "args": ["-for", "3s"]}, False),
        ({"dir": "retune", "message": "served"}, True),
        ({"event": {"original": "served"}}, True),
        ({"shown": "Killed process 12 (api)"}, True),
        ({"shown": "10 \u2192 20"}, True),
    ],
)
def test_what_has_no_message_is_known_before_it_is_parsed(
    record: dict[str, object], expected: bool
) -> None:
    assert sections.have_messages([(1, json.dumps(record))]) is expected


def test_hundreds_of_fragments_are_read_with_the_log_between_them() -> None:
    log = (SAMPLES / "steady-go1.26.log").read_text().splitlines()
    fragment = ' "dir": "retune",\n "args": ["-for", "3s"]\n'
    runs = (line.replace(" @", f" @{run}") for run in range(6) for line in log)
    text = "".join(f"{fragment}{line}\n" for line in runs)
    for last in ("", ' "message": "started"\n'):
        assert len(gca.read(io.StringIO(text + last)).cycles) == 6 * 33


def test_a_part_of_a_state_in_text_is_read_by_its_exit_code() -> None:
    text = (
        "watching pods shows:\n"
        '                "lastState": {\n                    "terminated": {\n'
        '                        "exitCode": 137,\n'
        '                        "finishedAt": "2017-10-10T17:41:58Z",\n'
        '                        "reason": "Error"\n                    }\n                },\n'
        "not very helpful\n"
    )
    (state,) = read(text).container_states.to_dicts()
    assert (state["exit_code"], state["oom_killed"]) == (137, False)


def test_json_in_a_mail_whose_lines_end_with_the_mark_of_the_next_is_read() -> None:
    value = {"Id": "a" * 64, "State": {"Status": "exited", "OOMKilled": False, "ExitCode": 137}}
    lines = ["As asked:", *json.dumps([value], indent=4).split("\n")]
    text = "".join(f"> {line}> \n" for line in lines)
    (state,) = gca.read(io.BytesIO(text.encode())).container_states.to_dicts()
    assert (state["exit_code"], state["oom_killed"]) == (137, False)


@pytest.mark.parametrize(
    ("text", "name", "code", "limit"),
    [
        (
            "$ podman inspect crawler --format '{{.State.OOMKilled}} {{.State.ExitCode}} "
            "{{.HostConfig.Memory}}'\ntrue 137 536870912",
            "crawler",
            137,
            512,
        ),
        (
            '$ docker inspect -f "OOMKilled={{.State.OOMKilled}}\\t{{.State.ExitCode}}" api\n'
            "OOMKilled=true  137",
            "api",
            137,
            None,
        ),
        ("docker inspect --format={{.State.OOMKilled}} api\n\ntrue", "api", None, None),
        ("docker inspect api | jq '.[0].State.OOMKilled'\ntrue", "api", None, None),
        (
            "> kubectl -n a get pod api-0 -o json \\\n| jq '.status.containerStatuses[0].lastState"
            '.terminated.reason\'  \n"OOMKilled"\nand the limit:\n'
            "> kubectl get pod api-0 -o json | jq '.spec.containers[0].resources'\n"
            '{\n  "limits": {\n    "memory": "30Mi"\n  }\n}',
            "api-0",
            None,
            30,
        ),
        (
            "$ kubectl get pod/api-0 -o jsonpath='{.status.containerStatuses[*].lastState."
            'terminated.reason}{"\\n"}{.status.containerStatuses[0].lastState.terminated.exitCode}'
            "'\nOOMKilled 137",
            "api-0",
            137,
            None,
        ),
    ],
)
def test_what_a_command_was_asked_for_and_answers_is_the_state_of_a_container(
    text: str, name: str, code: int | None, limit: int | None
) -> None:
    run = read(f"It died:\n{text}\n$ docker logs api\nqueue is full\n")
    (death,) = run.post_mortems()
    assert (death.proven, death.victim) == (True, name)
    assert death.limit_mib == limit
    assert code is None or f"exit code {code}" in death.kind


@pytest.mark.parametrize(
    "command",
    [
        "docker inspect api --format='{{.State.OOMKilled}}'",
        "docker inspect -f '{{json .State}}' api",
        "docker inspect -f '{{.State.OOMKilled}} {{.State.ExitCode}}' api",
        "kubectl get pod api -o jsonpath='{.status.phase}'",
        "docker inspect \\\n  --format='{{.State.OOMKilled}}' api",
    ],
)
@pytest.mark.parametrize("end", ["", "\n", "\n\n \n"])
def test_a_command_without_an_answer_has_no_fields(command: str, end: str) -> None:
    state = '"Status": "exited",\n"OOMKilled": true,\n"ExitCode": 137,\n'
    (row,) = read(f"{state}\nOr with:\n{command}{end}").container_states.to_dicts()
    assert (row["oom_killed"], row["exit_code"], row["name"]) == (True, 137, None)


def test_an_answer_of_no_oom_kill_is_no_kill() -> None:
    text = "$ docker inspect -f '{{.State.OOMKilled}} {{.State.ExitCode}}' api\nfalse 0\n"
    assert not read(f"{text}{KILL}").container_states["oom_killed"].any()


def test_a_field_that_is_asked_for_beside_the_whole_is_no_error() -> None:
    asked = "$ docker inspect -f '{{.State}} {{.State.OOMKilled}}' api\n{exited} true\n"
    with pytest.raises(NoDataError):
        gca.read(io.StringIO(asked)).report()
