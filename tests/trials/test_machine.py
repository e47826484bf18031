"""What else happened on the machine during a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gctrace_analyzer.trials import machine

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("own", "folder", "stat"),
    [
        (
            "0::/a.slice/b.service",
            "a.slice/b.service",
            "usage_usec 9\nthrottled_usec 1500000\n",
        ),
        ("0::/a.slice/b.service", "a.slice", "throttled_usec 1500000\n"),
        ("4:memory:/x\n3:cpu,cpuacct:/x", "cpu,cpuacct/x", "throttled_time 1500000000\n"),
        # In a container, its own cgroup is mounted, and the path is that of the host.
        ("0::/docker/1f", "", "throttled_usec 1500000\n"),
    ],
)
def test_throttling_is_that_of_its_own_cgroup_and_those_above(
    own: str, folder: str, stat: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proc, mounted = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "self" / "cgroup").write_text(f"{own}\n")
    (mounted / folder).mkdir(parents=True)
    (mounted / folder / "cpu.stat").write_text(stat)
    monkeypatch.setattr(machine, "_PROC", proc)
    monkeypatch.setattr(machine, "_MOUNTED", mounted)
    now = machine.MachineTime.now()
    assert now.throttled_s == 1.5
    assert now.throttled_since(now) == 0
    (mounted / folder / "cpu.stat").unlink()
    assert machine.MachineTime.now().throttled_s is None
