"""Reads a log as a quick script does: a regular expression per line, then a frame."""

import json
import re
import resource
import sys
from pathlib import Path

import polars as pl

RECORD = re.compile(
    r"gc (\d+) @([\d.]+)s (\d+)%: ([\d.]+)\+([\d.]+)\+([\d.]+) ms clock, "
    r"([\d.]+)\+([\d.]+)/([\d.]+)/([\d.]+)\+([\d.]+) ms cpu, (\d+)->(\d+)->(\d+) MB, "
    r"(\d+) MB goal, (?:(\d+) MB stacks, (\d+) MB globals, )?(\d+) P( \(forced\))?"
)

rows = []
with Path(sys.argv[1]).open(errors="replace") as log:
    for number, line in enumerate(log, 1):
        match = RECORD.search(line)
        if match:
            f = match.groups()
            times = map(float, (f[1], *f[3:11]))
            counts = map(int, (f[0], f[2], *f[11:15], f[15] or 0, f[16] or 0, f[17]))
            rows.append((*times, *counts, f[18] is not None, number))
frame = pl.DataFrame(rows, orient="row")
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([len(frame), frame.estimated_size(), peak]))
