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
from tests.helpers.logs import read_lines

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
    (row,) = gca.read(path).oom_kills.to_dicts()
    assert (row["killer"], row["reason"], row["pod_uid"]) == ("Talos", "memory_pressure", uid)
    assert row["cgroup"] == f"/kubepods/burstable/pod{uid}"
    assert row["logged_at"].isoformat() == "2026-01-12T20:27:31.913975+00:00"
