"""Kills are matched to the process that was killed."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer import schema
from gctrace_analyzer.analysis.postmortem.death import Death
from gctrace_analyzer.analysis.postmortem.match import (
    Match,
    listed_tasks,
    match_all,
    match_process,
    task_name,
)
from gctrace_analyzer.schema import IDENTITY
from tests.helpers.facts import log_of
from tests.helpers.logs import KILL, journal, logfile, records

if TYPE_CHECKING:
    from pathlib import Path


AT = datetime(2026, 2, 3, 10, 1, tzinfo=UTC)


def matched(kill: dict[str, Any], *processes: dict[str, Any]) -> Match | None:
    names = ("process", "started_at", "ended_at", "source", *IDENTITY)
    rows = [dict.fromkeys(names) | {"process": n} | row for n, row in enumerate(processes)]
    types = {
        name: dtype
        for name, dtype in schema.polars_schema("processes").items()
        if name in names
    }
    return match_process(Death(**kill), pl.DataFrame(rows, schema=types))


@pytest.mark.parametrize(
    ("ident", "log_pid", "pid", "comm", "match_by", "confidence"),
    [
        ("api", 7, 7, "api", ("pid", "comm"), "high"),
        ("api", 7, 9, "api", ("comm",), "medium"),
        ("a-name-longer-than-15", 7, 9, "a-name-longer-t", ("comm",), "medium"),
        ("app", 7, 9, "other", ("time",), "low"),
        # Two names are two programs.
        ("api", 7, 9, "other", (), None),
        # dockerd's own pid is no match.
        ("0f1e2d3c4b5a", 1034, 1034, "other", ("time",), "low"),
    ],
)
def test_a_kill_is_matched_by_what_both_records_have_in_common(
    ident: str,
    log_pid: int,
    pid: int,
    comm: str,
    match_by: tuple[str, ...],
    confidence: str | None,
    tmp_path: Path,
) -> None:
    lines = journal(log_pid, ident, KILL.format(pid=pid, comm=comm, kb=500_000), records(5))
    (found,) = gca.read(logfile(tmp_path / "log", lines)).post_mortems()
    assert (found.match_by, found.confidence) == (match_by, confidence)
    assert found.last_gc_num == (5 if match_by else None)


def test_a_kill_is_matched_by_its_container_id(tmp_path: Path) -> None:
    identifier = "0f1e2d3c4b5a" + "6" * 52
    context = (
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,"
        f"oom_memcg=/docker/{identifier},task_memcg=/docker/{identifier},task=app,pid=9,uid=0"
    )
    lines = journal(
        1034, identifier[:12], KILL.format(pid=9, comm="app", kb=500_000), records(5)
    )
    lines.insert(-1, f"2026-02-03T10:00:06Z h kernel: {context}")
    (found,) = gca.read(logfile(tmp_path / "log", lines)).post_mortems()
    assert found.match_by == ("container",)


def test_a_kill_on_another_host_is_not_matched_by_pid(tmp_path: Path) -> None:
    lines = journal(7, "api", KILL.format(pid=7, comm="api", kb=500_000), records(5))
    lines[-1] = lines[-1].replace(" h kernel", " other kernel")
    (found,) = gca.read(logfile(tmp_path / "log", lines)).post_mortems()
    assert found.match_by in ((), ("time",))


def test_a_process_that_started_after_the_kill_is_not_the_killed_one() -> None:
    kill = {"comm": "api", "logged_at": AT}
    old = {"ident": "api", "started_at": AT - timedelta(hours=1)}
    new = {"ident": "api", "started_at": AT + timedelta(seconds=5)}
    found = matched(kill, old, new)
    assert found is not None
    assert found.process == 0


def test_a_kill_is_matched_by_unit_and_by_pod() -> None:
    unit = matched({"unit": "api.service"}, {"unit": "web.service"}, {"ident": "api"})
    assert unit == Match(1, ("unit",), "high")
    pod = matched(
        {"pod": "api-0", "container": "api"},
        {"pod": "api-0", "container": "proxy"},
        {"pod": "api-0", "container": "api"},
    )
    assert pod is not None
    assert (pod.process, pod.match_by[0]) == (1, "pod")


def test_a_container_is_matched_by_the_beginning_of_its_id() -> None:
    found = matched(
        {"container_id": "a" * 64}, {"container_id": "b" * 12}, {"container_id": "a" * 12}
    )
    assert found == Match(1, ("container",), "high")


def test_the_only_process_is_a_match_of_low_confidence() -> None:
    assert matched({"pid": 5}, {"log_pid": 7}) == Match(0, ("only program",), "low")
    assert matched({"pid": 5}, {"log_pid": 7}, {"log_pid": 8}) is None


@pytest.mark.parametrize(
    ("seconds", "found"),
    [(-1.1, False), (-1.0, True), (-0.4, True), (0.0, True), (60.0, True), (60.1, False)],
)
def test_only_a_process_that_ended_within_a_minute_before_is_a_match_by_time(
    seconds: float, found: bool
) -> None:
    """Lines are written with a delay, so it may seem to end a second after the kill."""
    ended = AT - timedelta(seconds=seconds)
    match = matched({"logged_at": AT, "pid": 1}, {"ended_at": ended}, {"ended_at": None})
    assert (match is not None) == found
    if match is not None:
        assert (match.process, match.match_by, match.confidence) == (0, ("time",), "low")
    both = matched({"logged_at": AT, "pid": 1}, {"ended_at": ended}, {"ended_at": ended})
    assert both is None


def test_in_a_crash_loop_the_last_process_of_that_name_was_killed() -> None:
    kill = {"logged_at": AT, "comm": "api", "pid": 1}
    rows = [
        {"ident": "api", "started_at": AT - timedelta(seconds=each)}
        for each in (300, 200, 100, -1, -2)
    ]
    match = matched(kill, *rows)
    assert match is not None
    # The fourth seems to start a second after the kill, the fifth started later.
    assert match.process == 3


@pytest.mark.parametrize(
    ("after_s", "row", "match_by"),
    [
        (1.9, {"source": "ledger.log"}, ("start time",)),
        (2.1, {"source": "ledger.log"}, None),
        (1.9, {"ident": "web"}, None),
        (1.9, {"ident": "api"}, ("comm",)),
    ],
)
def test_a_process_that_started_with_the_killed_one_is_it(
    after_s: float, row: dict[str, Any], match_by: tuple[str, ...] | None
) -> None:
    """It may end long before the kill, if the log lacks its end."""
    began = AT - timedelta(hours=3)
    kill = {"comm": "api", "logged_at": AT, "started_at": began}
    start = began + timedelta(seconds=after_s)
    found = matched(kill, row | {"started_at": start, "ended_at": start + timedelta(minutes=1)})
    assert (found and found.match_by) == match_by


def test_a_process_that_was_scraped_after_the_kill_is_not_the_killed_one() -> None:
    """A kill between two scrapes is dated by the second one."""
    kill = {"comm": "api", "logged_at": AT, "not_before_at": AT - timedelta(seconds=30)}
    for seconds, alive in ((-1, False), (0, True), (1, True)):
        row = {"ident": "api", "ended_at": AT + timedelta(seconds=seconds)}
        found = matched(kill, row, {"ident": "other", "ended_at": AT - timedelta(hours=1)})
        assert (found is None or found.match_by != ("comm",)) is alive
    assert matched(kill, {"ident": "api", "ended_at": None}) is not None


@pytest.mark.parametrize(
    ("kill", "row", "match_by"),
    [
        ({"pid": 70_007}, {"log_pid": 70_007}, ("pid",)),
        ({"pid": 7}, {"log_pid": 8}, None),
        ({"pid": None}, {"log_pid": None}, None),
        ({"unit": "api.service"}, {"ident": "api"}, ("unit",)),
        ({"unit": "api.service"}, {"ident": "api", "unit": "web.service"}, None),
        ({"unit": "api"}, {"ident": ""}, None),
        ({"container_id": "abc123abc123"}, {"container_id": "abc123"}, ("container",)),
        ({"container_id": "abc123"}, {"container_id": "abc123abc123"}, ("container",)),
        ({"container_id": "abc123"}, {"container_id": "abd123"}, None),
        ({"container_id": "abc123"}, {"ident": "abc"}, None),
        ({"container_id": "a" * 64}, {"ident": "a" * 12, "log_pid": 1}, ("container",)),
        ({"container_id": "a" * 64}, {"ident": "a" * 11}, None),
        ({"container_id": "a" * 64}, {"ident": "a" * 64}, ("container",)),
        ({"pod": "p"}, {"pod": "p", "container": "c"}, ("pod",)),
        ({"pod": "p", "container": "d"}, {"pod": "p", "container": "c"}, None),
        ({"pod": None}, {"pod": None}, None),
        ({"comm": "api"}, {"container": "api"}, ("comm",)),
        ({"comm": None}, {"ident": None}, None),
        ({"comm": "api", "host": "a"}, {"ident": "api", "host": "b"}, None),
        ({"comm": "api", "host": "a"}, {"ident": "api", "host": None}, ("comm",)),
        ({"comm": "api", "host": None}, {"ident": "api", "host": "b"}, ("comm",)),
        ({"pid": 7, "unit": "u.service", "comm": "u"}, {"log_pid": 7, "ident": "u"}, ("pid", "unit", "comm")),
    ],
)  # fmt: skip
def test_what_a_kill_and_a_process_have_in_common(
    kill: dict[str, Any], row: dict[str, Any], match_by: tuple[str, ...] | None
) -> None:
    # Two other processes that ended long before: neither is matched by time or by being alone.
    others = [{"ended_at": AT - timedelta(hours=1)}] * 2
    found = matched({"logged_at": AT, **kill}, *others, row)
    assert (found.match_by if found else None) == match_by
    if found:
        assert found.process == 2
        assert found.confidence == ("medium" if match_by == ("comm",) else "high")


def test_the_most_certain_then_the_most_then_the_last_match_counts() -> None:
    kill = {"pid": 7, "comm": "api", "unit": "u.service"}
    by_pid, by_comm = {"log_pid": 7}, {"ident": "api"}
    both = {"log_pid": 7, "ident": "api"}
    for rows, process in (
        ((by_comm, by_pid, by_comm), 1),
        ((both, by_pid, by_comm), 0),
        ((by_pid, both, by_pid), 1),
        ((by_pid, by_pid, by_comm), 1),
    ):
        found = matched(kill, *rows)
        assert found is not None
        assert found.process == process


def test_a_process_starts_at_most_a_second_after_its_kill() -> None:
    for seconds, found in ((0.9, True), (1.0, True), (1.1, False)):
        row = {"ident": "api", "started_at": AT + timedelta(seconds=seconds)}
        others = [{"ended_at": AT - timedelta(hours=1)}] * 2
        match = matched({"comm": "api", "logged_at": AT}, row, *others)
        assert (match is not None) is found


def test_one_process_is_not_the_victim_of_two_kills() -> None:
    names = ("process", "started_at", "ended_at", "source", *IDENTITY)
    types = {k: v for k, v in schema.polars_schema("processes").items() if k in names}
    one = pl.DataFrame([{**dict.fromkeys(names), "process": 0}], schema=types)
    low = Match(0, ("only program",), "low")
    api, again, web = Death(pid=1, comm="api"), Death(pid=1, comm="api"), Death(pid=2)
    assert match_all([api], one) == [low]
    assert match_all([api, again], one) == [low, low]
    assert match_all([api, web], one) == [None, None]
    # What is certain stays.
    named = one.with_columns(ident=pl.lit("api"))
    assert match_all([api, web], named) == [Match(0, ("comm",), "medium"), None]
    assert match_all([], one) == []


def test_the_kernel_cuts_names_to_fifteen_bytes() -> None:
    assert task_name("a" * 15) == "a" * 15
    assert task_name("a" * 16) == "a" * 15
    assert task_name("a" * 14 + "é") == "a" * 14


def test_the_tasks_of_a_kill_are_those_listed_with_it() -> None:
    rows = [{"source": s, "kill_line_no": n, "pid": p}
            for s, n, p in (("a", 7, 1), ("a", 8, 2), ("b", 7, 3), ("a", None, 4))]  # fmt: skip
    tasks = pl.DataFrame(rows, schema=schema.polars_schema("oom_tasks"))
    assert listed_tasks(tasks, "a", 7)["pid"].to_list() == [1]
    assert listed_tasks(tasks, "a", None).is_empty()


def kills(*named: str) -> list[str]:
    """Returns kills of these programs by the kernel, hours apart, without a year."""
    return [
        f"Mar 01 {hour:02}:10:00 h kernel: {KILL.format(pid=hour, comm=comm, kb=500_000)}"
        for hour, comm in enumerate(named, 9)
    ]


@pytest.mark.parametrize(
    ("log", "named", "processes"),
    [
        ("leakd.log", ["leakd", "orders"], [0, None]),
        ("orders.stderr.log", ["leakd", "orders"], [None, 0]),
        # PostgreSQL wrote no GC cycles.
        ("run.log", ["postgres", "leakd"], [None, 0]),
        ("run.log", ["leakd", "orders"], [None, None]),
        ("leakd.log", ["orders"], [0]),
        ("run.log", ["orders"], [0]),
        # It died only once, and nothing shows when.
        ("run.log", ["orders", "orders"], [None, None]),
    ],
)
def test_a_log_belongs_to_the_kill_of_its_name(
    log: str, named: list[str], processes: list[int | None], tmp_path: Path
) -> None:
    run = gca.read(
        logfile(tmp_path / log, records(5)), logfile(tmp_path / "kern.log", kills(*named))
    )
    assert [death.process for death in run.post_mortems()] == processes
    if processes == [None, None]:
        assert all("does not show which" in death.reading[-1] for death in run.post_mortems())
        assert any("Save the log with times" in text for text in run.post_mortems()[0].advice)


def test_the_only_log_may_be_that_of_a_program_with_another_name(tmp_path: Path) -> None:
    """A file has the name of a service, the kernel that of its program."""
    kern = logfile(tmp_path / "kern.log", kills("checkout"))
    log = logfile(tmp_path / "orders.log", records(5))
    (death,) = gca.read(log, kern).post_mortems()
    assert (death.process, death.confidence) == (0, "low")
    assert any("but their file has another name" in text for text in death.reading)
    other = logfile(tmp_path / "billing.log", log_of(30).splitlines())
    assert gca.read(log, other, kern).post_mortems()[0].process is None


def test_of_kills_of_one_name_the_one_at_the_end_of_the_log_is_its_own(tmp_path: Path) -> None:
    lines = [f"2026-03-01T10:09:5{n}Z {line}" for n, line in enumerate(records(5))]
    log = logfile(tmp_path / "orders.log", lines)
    kern = logfile(tmp_path / "kern.log", kills("orders", "orders", "orders"))
    run = gca.read(log, kern, year=2026, tz="UTC")
    assert [death.process for death in run.post_mortems()] == [None, 0, None]


def test_the_limit_of_a_kill_that_may_be_of_another_program_is_not_used(tmp_path: Path) -> None:
    usage = "Mar 01 09:10:00 h kernel: memory: usage 524288kB, limit 524288kB, failcnt 9"
    log, several = logfile(tmp_path / "run.log", records(5)), kills("leakd", "orders")
    for texts, limit in (([usage, several[0]], 512), ([usage, *several], None)):
        run = gca.read(log, logfile(tmp_path / "kern.log", texts))
        assert run.settings.value("container_limit_mib") == limit


DESCRIBED = "samples/describe-pod.txt"


@pytest.mark.parametrize(
    ("log", "limit_mib"), [("leakd.log", None), ("run.log", 512), ("orders.log", 512)]
)
def test_settings_of_another_program_are_not_used(
    log: str, limit_mib: int | None, tmp_path: Path
) -> None:
    run = gca.read(logfile(tmp_path / log, records(9)), DESCRIBED)
    assert run.settings.value("container_limit_mib") == limit_mib
    notes = [note for note in run.summary().warnings if "settings of orders" in note]
    assert len(notes) == (limit_mib is None)
    # The kill has its own settings, whatever the log is of.
    assert run.post_mortems()[0].limit_mib == 512


@pytest.mark.parametrize(("begin_s", "is_end"), [(0, False), (235, True), (900, False)])
def test_a_log_that_ends_long_before_the_kill_says_nothing_about_it(
    begin_s: int, is_end: bool, tmp_path: Path
) -> None:
    lines = [
        re.sub(r"@(\d+)", lambda at: f"@{begin_s + int(at[1])}", line) for line in records(9)
    ]
    (death,) = gca.read(logfile(tmp_path / "run.log", lines), DESCRIBED).post_mortems()
    assert (death.live_mib is not None) == is_end
    headline = str(gca.read(logfile(tmp_path / "run.log", lines), DESCRIBED).summary())
    if is_end:
        assert "if the GC cycles in the input are its own" in " ".join(headline.split())
    elif begin_s:
        assert "of a longer run than the one that was killed" in death.reading[-1]
    else:
        assert "its GC cycles in the input end 3m 59s before" in death.reading[-1]


def test_a_child_that_is_not_go_is_not_the_program_of_its_unit() -> None:
    unit = {"unit": "gitea.service"}
    assert matched({"comm": "git", "pid": 9, **unit}, {"ident": "gitea", **unit}) is None
    assert matched({"comm": "gitea", "pid": 9, **unit}, {"ident": "gitea", **unit}) is not None


def test_the_rest_of_a_log_that_ends_early_is_asked_for(tmp_path: Path) -> None:
    lines = [f"2026-03-01T09:00:0{n}Z {line}" for n, line in enumerate(records(5))]
    log, kern = logfile(tmp_path / "orders.log", lines), kills("orders")
    run = gca.read(log, logfile(tmp_path / "kern.log", kern), year=2026, tz="UTC")
    (death,) = run.post_mortems()
    assert any("Add the rest of its log" in text for text in death.advice)


def test_a_container_is_matched_by_its_name() -> None:
    names = ({"container": "api-1"}, {"container": "web-1"})
    assert matched({"name": "web-1"}, *names) == Match(1, ("container",), "high")
    # Two pods may have one of that name.
    assert matched({"name": "web-1"}, {"container": "web-1", "pod": "a"}, *names[:1]) is None


def test_what_wrote_cycles_after_a_kill_was_not_killed() -> None:
    """The time of a kill in another input, in whole seconds, hides up to one of them."""
    row = {"ident": "api", "source": "a.log"}
    for source, fraction, least_s in (("a.log", 0, 1), ("b.log", 0, 2), ("b.log", 1, 1)):
        at = AT + timedelta(microseconds=fraction)
        kill = {"logged_at": at, "comm": "api", "source": source}
        ends = (at + timedelta(seconds=seconds) for seconds in (0, least_s - 0.1, least_s, 99))
        found = [matched(kill, row | {"ended_at": end}) is not None for end in ends]
        assert found == [True, True, False, False]


@pytest.mark.parametrize(
    ("sources", "process"),
    [
        (("cache-0.log", "cache-1.log"), None),
        (("a/cache.log", "b/cache.log"), None),
        # Restarts, also in the parts of a rotated log.
        (("cache.log", "cache.log"), 1),
        (("cache.log.1", "cache.log"), 1),
        (("cache-previous.log", "cache.log"), 0),
        # The kill names this one.
        (("cache-0.log", "other.log"), 0),
    ],
)
def test_of_several_logs_of_the_killed_name_none_is_chosen(
    sources: tuple[str, ...], process: int | None
) -> None:
    for kill in ({"comm": "cache", "pid": 7}, {"comm": "cache", "logged_at": AT}):
        found = matched(kill, *({"source": source} for source in sources))
        assert (found and found.process) == process


def test_of_several_logs_of_the_killed_name_that_of_its_pod_is_its_own() -> None:
    rows = [{"source": f"cache-{n}.log"} for n in (0, 1, 10)]
    found = matched({"comm": "cache", "pod": "cache-1"}, *rows)
    assert found == Match(1, ("file name",), "medium")


@pytest.mark.parametrize(("seconds", "process"), [((2, 900), 0), ((900, 2), 1), ((2, 3), None)])
def test_of_several_logs_of_the_killed_name_the_one_that_ends_with_it_is_its_own(
    seconds: tuple[int, int], process: int | None
) -> None:
    rows = [
        {"source": f"cache-{n}.log", "ended_at": AT - timedelta(seconds=each)}
        for n, each in enumerate(seconds)
    ]
    found = matched({"comm": "cache", "logged_at": AT}, *rows)
    assert (found and found.process) == process


def test_the_cycles_after_a_kill_are_named_as_the_reason_why_nothing_is_known(
    tmp_path: Path,
) -> None:
    lines = [f"2026-03-01T09:10:1{n}Z {line}" for n, line in enumerate(records(5))]
    log, kern = logfile(tmp_path / "orders.log", lines), kills("orders")
    (death,) = gca.read(log, logfile(tmp_path / "k", kern), year=2026, tz="UTC").post_mortems()
    assert death.process is None
    assert "the GC cycles in the input go on for 14 s after it" in death.reading[-1]


def test_a_file_that_is_named_after_the_end_of_a_pod_is_of_that_pod() -> None:
    """The other one has a part that looks like a word."""
    pods = "orders-6d8f7c9b5-x2x7p", "orders-6d8f7c9b5-q9wzn"
    rows = [{"source": f"{pod[-5:]}.log"} for pod in pods]
    for process, pod in enumerate(pods):
        found = matched({"pod": pod, "container": "orders"}, *rows)
        assert found == Match(process, ("file name",), "medium")
