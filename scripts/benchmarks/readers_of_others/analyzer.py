"""Reads a log with gctrace-analyzer; prints what `readers/lean.py` prints."""

import json
import resource
import sys
import time

import gctrace_analyzer as gca

# The package imports libraries when they are needed first.
gca.read("samples/steady-go1.26.log")
begin, cpu_before = time.perf_counter(), time.process_time()
run = gca.read(sys.argv[1])
cycles = len(run.cycles)
alone = [time.perf_counter() - begin, time.process_time() - cpu_before]
tables = ("cycles", "processes", "scavenges", "rejected")
size = sum(run.table(table).estimated_size() for table in tables)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([cycles, size, peak, *alone]))
