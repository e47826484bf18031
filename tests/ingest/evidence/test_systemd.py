"""Events of systemd units, time spans and kills by systemd-oomd."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gctrace_analyzer as gca
from gctrace_analyzer.ingest.evidence.message import Message
from gctrace_analyzer.ingest.evidence.systemd import consumed, span_s
from gctrace_analyzer.ingest.evidence.systemd import read as read_systemd
from gctrace_analyzer.testing import read_text
from tests.helpers.logs import read_lines, records

if TYPE_CHECKING:
    from pathlib import Path

NAMES = st.from_regex(r"[a-z][a-z0-9]{0,9}(-[a-z0-9]{1,4})?", fullmatch=True)


@given(NAMES, st.integers(0, 255), st.sampled_from(["exited", "killed", "dumped"]))
def test_a_systemd_exit_reads_as_printed(name: str, status: int, code: str) -> None:
    text = f"{name}.service: Main process exited, code={code}, status={status}/KILL"
    (event,) = read_systemd([Message(1, text)])["unit_events"]
    assert (event["unit"], event["code"], event["status"]) == (f"{name}.service", code, status)


@given(st.integers(0, 400), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59_999))
def test_a_systemd_time_span_reads_as_printed(d: int, h: int, m: int, ms: int) -> None:
    text = f"{d}d {h}h {m}min {ms / 1000:.3f}s"
    seconds = d * 86400 + h * 3600 + m * 60 + ms / 1000
    assert span_s(text) == pytest.approx(seconds)
    assert consumed(f"{text} CPU time") == {"cpu_s": span_s(text)}


@pytest.mark.parametrize(
    ("line", "event"),
    [
        (
            "app.scope: The kernel OOM killer killed some processes in this unit.",
            "oom_killed_process",
        ),
        (
            "app.scope: systemd-oomd killed some process(es) in this unit.",
            "oomd_killed_processes",
        ),
        (
            "dbus-:1.2-org.x@0.service: Main process exited, code=exited, status=1/FAILURE",
            "main_exited",
        ),
    ],
)
def test_units_are_named_in_every_wording_of_systemd(
    line: str, event: str, tmp_path: Path
) -> None:
    run = read_lines(tmp_path, f"2026-02-03T10:00:00Z h systemd[1]: {line}")
    (row,) = run.unit_events.to_dicts()
    assert (row["event"], row["unit"]) == (event, line.split(": ")[0])


def test_kills_by_systemd_oomd_have_their_reason() -> None:
    texts = [
        "Killed /system.slice/api.service due to memory pressure for /system.slice being "
        "72.50% > 60.00% for > 20s with reclaim activity",
        "Killed /system.slice/api.service due to memory used (900) / total (1000) and swap used",
    ]
    pressure, used = read_systemd([Message(n, t) for n, t in enumerate(texts, 1)])["oom_kills"]
    assert (pressure["unit"], pressure["pressure_pct"]) == ("api.service", 72.5)
    assert pressure["pressure_window_s"] == 20
    assert (used["reason"], used["usage_bytes"]) == ("memory_used", 900)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0.0), ("1min 2.5s", 62.5), ("2 hours", 7200), ("350ms", 0.35), ("soon", None)],
)
def test_time_spans_in_words_are_read(text: str, seconds: float | None) -> None:
    assert span_s(text) == seconds


def test_what_a_unit_consumed_has_wall_time_and_peaks() -> None:
    text = (
        "2min 3.5s CPU time over 1h 2min wall clock time, 1.5G memory peak, "
        "20.5M memory swap peak."
    )
    assert consumed(text) == {
        "cpu_s": 123.5,
        "wall_s": 3720.0,
        "memory_peak_bytes": 3 << 29,
        "memory_swap_peak_bytes": round(20.5 * (1 << 20)),
    }
    assert consumed("a lot") is None
    assert consumed("much CPU time.") is None


def test_journald_has_exact_figures_of_a_unit() -> None:
    native = {"CPU_USAGE_NSEC": "1234567890", "MEMORY_PEAK": "1048576"}
    message = Message(1, "a.service: Consumed 1.2s CPU time.", native=json.dumps(native))
    (row,) = read_systemd([message])["unit_events"]
    assert (row["cpu_s"], row["memory_peak_bytes"]) == (1.235, 1 << 20)
    assert "memory_swap_peak_bytes" not in row


def test_the_two_lines_of_a_failure_in_systemd_219_are_one_event() -> None:
    texts = ["Unit a.service entered failed state.", "a.service failed.", "b.service failed."]
    rows = read_systemd([Message(n, t) for n, t in enumerate(texts, 1)])["unit_events"]
    assert [(row["unit"], row["event"]) for row in rows] == [
        ("a.service", "failed"),
        ("b.service", "failed"),
    ]


def test_a_kill_by_systemd_oomd_without_figures_has_its_unit() -> None:
    texts = [
        "Killed /system.slice/api.service due to memory used",
        "The meeting was moved due to memory problems",
    ]
    (row,) = read_systemd([Message(n, t) for n, t in enumerate(texts, 1)])["oom_kills"]
    assert (row["unit"], row["reason"]) == ("api.service", "memory_used")
    assert "usage_bytes" not in row


def test_a_kill_by_the_memory_controller_of_talos_has_its_pod(tmp_path: Path) -> None:
    uid = "77f06c5c-4593-43e9-b970-987f6ecb825b"
    path = tmp_path / "dmesg.log"
    path.write_text(
        "user: warning: [2026-01-12T20:27:31.913975631Z]: [talos] OOM controller triggered "
        '{"component": "controller-runtime", "controller": "runtime.OOMController"}\n'
        "user: warning: [2026-01-12T20:27:31.913975631Z]: [talos] Sending SIGKILL to cgroup "
        '{"component": "controller-runtime", "controller": "runtime.OOMController", '
        f'"cgroup": "/sys/fs/cgroup/kubepods/burstable/pod{uid}"}}\n'
    )
    run = gca.read(path)
    (row,) = run.oom_kills.to_dicts()
    assert (row["killer"], row["reason"], row["pod_uid"]) == ("Talos", "memory_pressure", uid)
    # Its default ranking gives groups with a memory limit 0: a higher limit is no way out.
    report = " ".join(str(run.summary()).split())
    assert "Its trigger for memory pressure was met" in report
    assert "{" not in report
    assert "raise" not in report
    assert "`triggerExpression` of OOMConfig" in report
    assert row["cgroup"] == f"/kubepods/burstable/pod{uid}"
    assert row["logged_at"].isoformat() == "2026-01-12T20:27:31.913975+00:00"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        # As in systemd's time-util.h: a year has 365.25 days, and a month a twelfth of that.
        ("1y", 31_557_600), ("2 years", 63_115_200), ("1month", 2_629_800), ("3 months", 7_889_400),
        ("1w", 604_800), ("2 weeks", 1_209_600), ("1d", 86_400), ("1 day", 86_400), ("1h", 3600),
        ("1 hour", 3600), ("1min", 60), ("1m", 60), ("2 minutes", 120), ("1s", 1), ("3sec", 3),
        ("4 seconds", 4), ("5ms", 0.005), ("5 milliseconds", 0.005), ("7us", 7e-6), ("7µs", 7e-6),
        ("7 microseconds", 7e-6), ("1y 2month 3w 4d 5h 6min 7.5s", 38_995_567.5), (" 0 ", 0),
        ("1000000000000000000000s", None), ("5apples", None), ("", None),
    ],
)  # fmt: skip
def test_every_unit_of_a_time_span_is_that_of_systemd(text: str, seconds: float | None) -> None:
    assert span_s(text) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("350ms CPU time.", {"cpu_s": 0.35}),
        ("1.5s of CPU time", {"cpu_s": 1.5}),
        ("2s CPU time, 512K memory peak", {"cpu_s": 2.0, "memory_peak_bytes": 512 << 10}),
        ("2s CPU time, 700B memory peak, 0B memory swap peak.",
         {"cpu_s": 2.0, "memory_peak_bytes": 700, "memory_swap_peak_bytes": 0}),
        ("2s CPU time, 1.25T memory peak", {"cpu_s": 2.0, "memory_peak_bytes": 5 << 38}),
        ("2s CPU time over 3s wall clock time.", {"cpu_s": 2.0, "wall_s": 3.0}),
    ],
)  # fmt: skip
def test_what_a_unit_consumed_is_read_in_every_unit(text: str, row: dict[str, float]) -> None:
    assert consumed(text) == row


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("a.service: Main process exited, code=killed, status=9/KILL",
         {"event": "main_exited", "code": "killed", "status": 9, "signal": "KILL"}),
        ("a.service: Main process exited, code=exited, status=2/INVALIDARGUMENT",
         {"event": "main_exited", "code": "exited", "status": 2, "signal": None}),
        ("a.service: A process of this unit has been killed by the OOM killer.",
         {"event": "oom_killed_process"}),
        ("a.service: Failed with result 'oom-kill'.", {"event": "failed", "result": "oom-kill"}),
        ("a.service: systemd-oomd killed 3 process(es) in this unit.",
         {"event": "oomd_killed_processes", "n": 3}),
        ("a.service: Scheduled restart job, restart counter is at 7.",
         {"event": "restart_scheduled", "n": 7}),
        ("a.service: Service RestartSec=100ms expired, scheduling restart.",
         {"event": "restart_scheduled", "n": None}),
        ("a.service holdoff time over, scheduling restart.", {"event": "restart_scheduled", "n": None}),
        ("a.service: Consumed 1min 2s CPU time.", {"event": "consumed", "cpu_s": 62.0}),
    ],
)  # fmt: skip
def test_every_message_about_a_unit_is_an_event(text: str, facts: dict[str, object]) -> None:
    (row,) = read_systemd([Message(7, text, host="web-1")])["unit_events"]
    assert row == {"line_no": 7, "logged_at": None, "printed_at": None, "monotonic_s": None, "host": "web-1",
                   "unit": "a.service", "container_id": None, **facts}  # fmt: skip


def test_failures_of_two_hosts_and_later_ones_are_events_of_their_own() -> None:
    texts = [("Unit a.service entered failed state.", "h1"), ("a.service failed.", "h2"),
             ("a.service failed.", "h2"), ("Unit a.service entered failed state.", "h1")]  # fmt: skip
    rows = read_systemd([Message(n, t, host=h) for n, (t, h) in enumerate(texts, 1)])[
        "unit_events"
    ]
    assert [(row["line_no"], row["host"]) for row in rows] == [(1, "h1"), (2, "h2"), (4, "h1")]


def test_pressure_and_memory_of_the_host_have_their_figures() -> None:
    texts = [
        "Killed /user.slice/a.scope due to memory pressure for /user.slice being 85.5% > 50% with x",
        "Killed /user.slice/a.scope due to swap used (950) / total (1000) and memory",
    ]
    pressure, used = read_systemd([Message(n, t) for n, t in enumerate(texts, 1)])["oom_kills"]
    assert (pressure["pressure_cgroup"], pressure["pressure_pct"]) == ("/user.slice", 85.5)
    assert (pressure["pressure_limit_pct"], pressure["pressure_window_s"]) == (50, None)
    assert (pressure["killer"], pressure["unit"]) == ("systemd-oomd", "a.scope")
    assert (used["swap_usage_bytes"], used["swap_limit_bytes"]) == (950, 1000)
    assert (used["scope"], used["line_no"]) == ("global", 2)


PRESSURE = (
    "Killed /user.slice/app.slice/tmux.service due to memory pressure for /user.slice being "
    "56.11% > 50.00% for > 20s with reclaim activity"
)


@pytest.mark.parametrize("wrapped_at", [None, " due to", " being"])
def test_pressure_is_explained_as_pressure_also_if_a_terminal_wrapped_it(
    wrapped_at: str | None,
) -> None:
    text = PRESSURE if wrapped_at is None else PRESSURE.replace(wrapped_at, f"\n {wrapped_at}")
    run = read_text(f"Jul 05 17:33:19 web1 systemd-oomd[1599]: {text}\n")
    (death,) = run.post_mortems()
    assert (death.victim, death.killer) == ("tmux.service", "systemd-oomd")
    assert death.cause == "by systemd-oomd for memory pressure"
    assert "waited for memory 56.11 % of the time, above the limit of 50 %" in death.reading[0]


@pytest.mark.parametrize("words", ["Killed {} due", "Marked {} for killing due"])
def test_the_unit_is_named_and_how_full_memory_and_swap_were(words: str) -> None:
    path = "/user.slice/user-1004.slice/user@1004.service/tmux.scope"
    run = read_text(
        f"Mar 19 10:20:31 lab5 systemd-oomd[655]: {words.format(path)} to memory used (9) / total "
        "(10) and swap used (19) / total (20) being more than 90.00%\n"
        "Mar 19 10:20:31 lab5 systemd[1]: user@1004.service: systemd-oomd killed 1 process(es) in "
        "this unit.\n"
    )
    (death,) = run.post_mortems()
    assert death.victim == "tmux.scope"
    assert "90 % of the host's memory" in death.reading[0]
    assert "95 % of the host's swap" in death.reading[0]
    assert "above the limit of 90 % of systemd-oomd" in death.reading[0]


def test_the_status_of_a_unit_names_the_kill() -> None:
    run = read_text(
        "× app.service - My Go app\n     Loaded: loaded (/etc/systemd/system/app.service)\n"
        "     Active: failed (Result: oom-kill) since Wed 2025-03-19 10:20:31 CET; 2min ago\n"
    )
    (death,) = run.post_mortems()
    assert (death.victim, death.proven) == ("app.service", True)


@pytest.mark.parametrize(("zone", "is_utc"), [("CET", False), ("UTC", True)])
def test_a_status_and_the_journal_below_it_are_one_kill(zone: str, is_utc: bool) -> None:
    status = (
        "● app.service - My Go app\n"
        f"     Active: failed (Result: oom-kill) since Wed 2025-03-19 10:20:31 {zone}; 2min ago\n"
        "   Mem peak: 10.0M\n"
    )
    at = "Mar 19 10:20:31 h systemd[1]: app.service: "
    journal = (
        f"{at}A process of this unit has been killed by the OOM killer.\n"
        f"{at}Failed with result 'oom-kill'.\n"
    )
    (alone,) = read_text(status).post_mortems()
    assert (alone.logged_at is not None) is is_utc
    assert alone.printed_at == (None if is_utc else "2025-03-19 10:20:31")
    both = read_text(status + journal)
    (death,) = both.post_mortems()
    assert death.printed_at == "Mar 19 10:20:31"
    assert both.unit_events["memory_peak_bytes"].drop_nulls().to_list() == [10 << 20]


def test_systemd_itself_ends_a_unit_that_does_not_stop_in_time() -> None:
    run = read_text(
        "Sep 09 22:11:30 a systemd[1]: r.service: Main process exited, code=killed, status=9/KILL\n"
        "Sep 09 22:11:30 a systemd[1]: r.service: Failed with result 'timeout'.\n"
    )
    (death,) = run.post_mortems()
    assert not death.proven
    assert "it did not start or stop within its time" in " ".join(str(run.summary()).split())


def test_a_kill_whose_reason_a_pager_cut_is_read() -> None:
    run = read_text("juil. 05 17:33:19 web1 systemd-oomd[1]: Killed /a/b.scope\n")
    (death,) = run.post_mortems()
    assert (death.victim, death.cause) == ("b.scope", "by systemd-oomd")


@pytest.mark.parametrize(
    ("result", "cause"),
    [("signal", "by SIGKILL"), ("timeout", "within its time"), ("oom-kill", "memory ran out")],
)
def test_a_unit_whose_cycles_are_there_got_sigkill_from_somebody(
    result: str, cause: str
) -> None:
    at = "Nov 21 07:36:{:02} app-03 "
    lines = [f"{at.format(5)}api[771]: {line}" for line in records(9)]
    ends = [
        f"{at.format(8)}systemd[1]: api.service: Main process exited, code=killed, status=9/KILL",
        f"{at.format(8)}systemd[1]: api.service: Failed with result '{result}'.",
    ]
    (death,) = read_text("\n".join([*lines, *ends, ""])).post_mortems()
    assert (death.process, death.victim) == (0, "api.service")
    assert death.proven == (result == "oom-kill")
    assert cause in death.cause
    # The end of another unit says nothing here.
    others = [line.replace("api.service", "web.service") for line in ends]
    deaths = read_text("\n".join([*lines, *others, ""])).post_mortems()
    assert len(deaths) == (result == "oom-kill")


def test_an_attempt_of_systemd_oomd_is_probably_why_a_main_process_got_sigkill() -> None:
    """The attempt names a process, and no line says that it is one of the unit."""
    exited = "systemd[34]: bloat.service: Main process exited, code=killed, status=9/KILL"
    attempt = "systemd-oomd[70]: oomd attempting to kill 113 with KILL"
    (death,) = read_text(f"{attempt}\n{exited}\n").post_mortems()
    assert (death.victim, death.killer, death.proven) == ("bloat.service", None, False)
    assert "systemd-oomd began to kill processes, most likely this one" in death.reading[0]
    (death,) = read_text(f"{exited}\n{attempt}\n").post_mortems()
    assert "systemd-oomd" not in " ".join(death.reading)


@pytest.mark.parametrize("rest", ["", " for", " for killing", " due"])
def test_a_kill_by_systemd_oomd_is_read_wherever_its_line_was_cut(rest: str) -> None:
    line = "Apr 16 21:08:50 laptop systemd-oomd[93234]: Killed /user.slice/app.slice/app-x.slice/tmux"
    (row,) = read_text(f"{line}{rest}\n").oom_kills.to_dicts()
    assert (row["killer"], row["cgroup"]) == (
        "systemd-oomd",
        "/user.slice/app.slice/app-x.slice/tmux",
    )


def test_words_about_systemd_oomd_lead_to_its_journal() -> None:
    with pytest.raises(gca.NoDataError) as raised:
        read_text(
            "What happened:\n\n    01:59:22  systemd-oomd killed 181 process(es) in this unit\n"
        )
    assert "journalctl -u systemd-oomd" in str(raised.value)
    assert "kubectl" not in str(raised.value)


def test_the_pressure_in_a_line_of_its_own_is_that_of_a_kill_that_is_cut() -> None:
    """As systemd 249 prints it, and a pager cuts it."""
    group = "/a.slice/work.slice"
    text = (
        f"Sep 10 14:59:49 h systemd-oomd[34]: Memory pressure for {group} is 64.15% > 1.00% for > 30s "
        "with reclaim activity\n"
        "Sep 10 14:59:49 h systemd-oomd[34]: oomd attempting to kill 63 with KILL\n"
        f"Sep 10 14:59:49 h systemd-oomd[34]: Killed {group}/api.service due to memory pressure for "
        f"{group} be>\n"
    )
    kill = read_text(text).oom_kills.row(0, named=True)
    assert (kill["unit"], kill["reason"], kill["pressure_cgroup"]) == (
        "api.service", "memory_pressure", group
    )  # fmt: skip
    assert (kill["pressure_pct"], kill["pressure_limit_pct"], kill["pressure_window_s"]) == (
        64.15, 1.0, 30.0
    )  # fmt: skip


def test_systemctl_status_shows_the_limit_of_a_unit() -> None:
    text = (
        "● api.service - API\n     Active: active (running) since Wed 2026-08-19 15:38:43 UTC\n"
        "     Memory: 516.0M (max: 1.0G swap max: 0B available: 508.0M peak: 1.0G)\n"
    )
    state = read_text(text).container_states.row(0, named=True)
    names = ("name", "memory_now_bytes", "memory_used_bytes", "memory_limit_bytes")
    assert [state[name] for name in names] == ["api.service", 516 << 20, 1 << 30, 1 << 30]
