"""Reads a log with gctrace-analyzer; prints cycles, bytes of the tables, peak memory in KiB."""

import json
import resource
import sys

import gctrace_analyzer as gca

run = gca.read(sys.argv[1])
tables = ("cycles", "processes", "scavenges", "rejected")
size = sum(run.table(table).estimated_size() for table in tables)
print(json.dumps([len(run.cycles), size, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))
