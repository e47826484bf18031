"""Reads a log with one regular expression over the whole text, and nothing else.

No script in Python with a regular expression is faster: one call finds all records, and Polars
makes numbers of the columns of text. It needs several times the memory of the log, and has
neither line numbers nor any account of what it could not read. Prints the cycles, the bytes of the
frame, the peak memory in KiB, and the seconds and CPU seconds of reading without imports.
"""

import json
import re
import resource
import sys
import time
from pathlib import Path

import polars as pl

RECORD = re.compile(
    rb"^gc (\d+) @([\d.]+)s (\d+)%: ([\d.]+)\+([\d.]+)\+([\d.]+) ms clock, "
    rb"([\d.]+)\+([\d.]+)/([\d.]+)/([\d.]+)\+([\d.]+) ms cpu, (\d+)->(\d+)->(\d+) MB, "
    rb"(\d+) MB goal, (?:(\d+) MB stacks, (\d+) MB globals, )?(\d+) P( \(forced\))?$",
    re.MULTILINE,
)
FLOATS = {1, *range(3, 11)}
FORCED = 18

begin, cpu_before = time.perf_counter(), time.process_time()
columns = zip(*RECORD.findall(Path(sys.argv[1]).read_bytes()), strict=True)
texts = {str(n): pl.Series(column, dtype=pl.Binary) for n, column in enumerate(columns)}
frame = pl.DataFrame(texts).select(
    pl.col(str(n)).cast(pl.String).cast(pl.Float64 if n in FLOATS else pl.Int64, strict=False)
    if n != FORCED
    else pl.col(str(n)) != b""
    for n in range(FORCED + 1)
)
alone = [time.perf_counter() - begin, time.process_time() - cpu_before]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([len(frame), frame.estimated_size(), peak, *alone]))
