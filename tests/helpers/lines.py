"""One line of every shape that the Go runtime prints."""

from __future__ import annotations

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
    "scvg_rel13": "forced scvg: 44 MB released",
    "scvg13": "scvg: inuse: 426, idle: 0, sys: 427, released: 0, consumed: 427 (MB)",
    "scav14": "scav 2 0 KiB work, 44248 KiB total, 86% util (forced)",
    "scav21": "scav 0 KiB work (bg), 0 KiB work (eager), 3144 KiB now, 97% util [controller reset]",
    "pacer_assist": "pacer: assist ratio=+1.152000e+000 (scan 0 MB in 3->4 MB) workers=0++2.500000e-001",
    "pacer_old": "pacer: H_m_prev=5369696 h_t=+4.918251e-001 H_T=6463218 h_a=+4.576438e-001 H_a=7827104 h_g=+1.000000e+000 H_g=10739392 u_a=+2.749985e-001 u_g=+2.500000e-001 W_a=711224 goalΔ=+5.081749e-001 actualΔ=-3.418128e-002 u_a/u_g=+1.099994e+000",
    "pacer_new": "pacer: 29% CPU (25 exp.) for 1428424+4952+174858 B work (174858 B exp.) in 4042536 B -> 4255528 B (∆goal 61224, cons/mark 0)",
    "pacer_sweep15": "pacer: sweep done at heap size 41MB; allocated 2MB of spans; swept 5210 pages at +4.120000e-004 pages/byte",
    "pacer_sweep": "pacer: sweep done at heap size 1MB; allocated 0MB during sweep; swept 558 pages at 0.00106 pages/byte",
    "scan_total": "scan: total 711+9929+47161=57801 objs, 1691+1369=3060 spans",
    "scan_class": "scan: class 8B 10 objs",
}  # fmt: skip
