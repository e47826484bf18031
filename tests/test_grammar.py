"""Each line the runtime prints is taken by its own shape and by no other."""

from __future__ import annotations

import re

import pytest
from hypothesis import given

from gctrace_analyzer.ingest.grammar import SHAPES
from gctrace_analyzer.testing import cycles, format_cycle, format_ms, read_text
from tests.conftest import CORPUS

LINES = {
    "gc10": "gc14(2): 1+1+0 ms 10 -> 5 MB 58439 -> 8912 (573381-564469) objects 184 handoff",
    "gc11": "gc13(2): 48+24+2 ms, 263 -> 124 MB 1891444 -> 938285 (6426929-5488644) objects, 1(8) handoff, 3(11016) steal, 21/2/0 yields",
    "gc12x": "gc9(2): 1+2+3 ms, 4 -> 5 MB, 18 (19-1) objects, 1/2/3 sweeps, 0(0) handoff, 0(0) steal, 0/0/0 yields",
    "gc13": "gc1(1): 4+0+183+0 us, 0 -> 0 MB, 18 (19-1) objects, 0/0/0 sweeps, 0(0) handoff, 0(0) steal, 0/0/0 yields",
    "gc14": "gc6(2): 3+3+1015+1 us, 0 -> 1 MB, 483 (781-298) objects, 20 goroutines, 61/28/0 sweeps, 0(0) handoff, 3(9) steal, 16/10/5 yields",
    "gc15": "gc 59 @5.182s 0%: 0.092+0+0+0+6.8 ms clock, 0.37+0+0+4.1/0.025/5.8+27 ms cpu, 79->79->79 MB, 79 MB goal, 32 P (forced)",
    "gc16": "gc 4 @0.092s 11%: 0.17+12+0.040 ms clock, 0.35+0/12/12+0.080 ms cpu, 29->32->18 MB, 34 MB goal, 2 P",
    "gc18": "gc 1 @0.004s 3%: 0.17+11+0.037 ms clock, 0.34+0.34/0.66/0.069+0.075 ms cpu, 3->11->11 MB, 4 MB goal, 0 MB stacks, 0 MB globals, 2 P (forced)",
    "gc26": "gc 7 @0.104s 3% (checking for goroutine leaks): 0.16+5.1+0.003 ms clock, 0.32+0.60/0.83/8.2+0.007 ms cpu, 45->48->27 MB, 53 MB goal, 0 MB stacks, 0 MB globals, 2 P",
    "forcegc": "GC forced",
    "scvg_forced13": "scvg1: GC forced",
    "scvg_rel": "scvg-1: 44 MB released",
    "scvg": "scvg0: inuse: 426, idle: 0, sys: 427, released: 0, consumed: 427 (MB)",
    "scav14": "scav 2 0 KiB work, 44248 KiB total, 86% util (forced)",
    "scav21": "scav 0 KiB work (bg), 0 KiB work (eager), 3144 KiB now, 97% util [controller reset]",
    "pacer_assist": "pacer: assist ratio=+1.152000e+000 (scan 0 MB in 3->4 MB) workers=0++2.500000e-001",
    "pacer_old": "pacer: H_m_prev=5369696 h_t=+4.918251e-001 H_T=6463218 h_a=+4.576438e-001 H_a=7827104 h_g=+1.000000e+000 H_g=10739392 u_a=+2.749985e-001 u_g=+2.500000e-001 W_a=711224 goalΔ=+5.081749e-001 actualΔ=-3.418128e-002 u_a/u_g=+1.099994e+000",
    "pacer_new": "pacer: 29% CPU (25 exp.) for 1428424+4952+174858 B work (174858 B exp.) in 4042536 B -> 4255528 B (∆goal 61224, cons/mark 0)",
    "pacer_sweep": "pacer: sweep done at heap size 1MB; allocated 0MB during sweep; swept 558 pages at 0.00106 pages/byte",
    "scan_total": "scan: total 711+9929+47161=57801 objs, 1691+1369=3060 spans",
    "scan_class": "scan: class 8B 10 objs",
}  # fmt: skip

LOOK_ALIKES = """\
2026/11/21 04:02:39.301691 gc worker pool resized to 16
gc 12 items collected from registry
go_gc_duration_seconds{quantile="0.5"} 4.1e-05
msg="gc 12 @ node-7" took=3ms
gc 5 @3 workers
GC forced by the operator at 12:00
scan: total 5 files
pacer: 30% CPU used
init pkg @94 ms, 0 ms clock, 25176 bytes
gcc1(2): error
scvg of the day
took 5 ms clock time
"""


def test_every_shape_has_a_line_here() -> None:
    assert set(LINES) == set(SHAPES)


@pytest.mark.parametrize("name", SHAPES)
def test_a_line_is_of_its_own_shape_alone(name: str) -> None:
    whole = [s.id for s in SHAPES.values() if re.fullmatch(s.pattern, LINES[name])]
    assert whole == [name]


@pytest.mark.parametrize("name", [n for n, shape in SHAPES.items() if shape.table == "cycles"])
def test_a_cycle_of_every_shape_is_read(name: str) -> None:
    run = read_text(LINES[name] + "\n")
    assert run.cycles["format"].to_list() == [name]
    assert len(run.rejected) == 0


def test_companions_of_every_shape_are_read() -> None:
    companions = {n: LINES[n] for n, shape in SHAPES.items() if shape.table != "cycles"}
    run = read_text("\n".join(companions.values()) + "\n")
    assert run.runtime_lines == dict.fromkeys(companions, 1)
    assert len(run.rejected) == 0


def test_the_oldest_scavenger_prints_hexadecimal() -> None:
    run = read_text("scvg0: 0x1f MB released\n")
    assert run.scavenges["released_now_kib"].to_list() == [31 * 1024]


def test_application_lines_that_look_alike_give_nothing() -> None:
    run = read_text(LOOK_ALIKES + LINES["gc18"] + "\n")
    assert len(run.cycles) == 1
    assert len(run.rejected) == 0
    assert run.runtime_lines == {}


def test_every_line_of_the_runtime_in_the_corpus_has_a_shape() -> None:
    ours = re.compile(r"^(?:gc \d+ @.* P(?: \(forced\))?|scvg.*|scav .*|pacer: .*|scan: .*)$")
    shapes = [re.compile(shape.pattern) for shape in SHAPES.values()]
    for log in (CORPUS / "gctrace").glob("*/run.log"):
        for line in log.read_text().splitlines():
            if ours.match(line) and not re.search(r" 2026/\d\d/\d\d ", line):
                assert any(shape.fullmatch(line) for shape in shapes), line


@given(cycles())
def test_a_cycle_written_as_its_line_reads_the_same(row: dict[str, object]) -> None:
    read = read_text(format_cycle(row) + "\n").cycles.row(0, named=True)
    assert {name: read[name] for name in row} == row


def test_durations_are_printed_as_the_runtime_does() -> None:
    printed = [format_ms(ns) for ns in (0, 999, 1000, 12_000, 123_000, 1_230_000, 12_300_000)]
    assert printed == ["0", "0", "0.001", "0.012", "0.12", "1.2", "12"]
