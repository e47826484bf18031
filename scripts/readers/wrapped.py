"""Reads a wrapped log with one regular expression per line, and json where lines are JSON.

What a careful script does: remove the log prefix, read its timestamp, read the record.
"""

import json
import re
import resource
import sys
from datetime import datetime
from pathlib import Path

import polars as pl

RECORD = re.compile(
    r"gc (\d+) @([\d.]+)s (\d+)%: ([\d.]+)\+([\d.]+)\+([\d.]+) ms clock, "
    r"([\d.]+)\+([\d.]+)/([\d.]+)/([\d.]+)\+([\d.]+) ms cpu, (\d+)->(\d+)->(\d+) MB, "
    r"(\d+) MB goal, (\d+) MB stacks, (\d+) MB globals, (\d+) P"
)
KINDS = [int, float, int, *[float] * 8, *[int] * 7]
JOURNAL = re.compile(r"^(\S+) (\S+) ([^\[:]+)\[(\d+)\]: (.*)$")
CRI = re.compile(r"^(\S+) (stdout|stderr) ([PF]) (.*)$")


def journal(line: str) -> tuple[str, str] | None:
    found = JOURNAL.match(line)
    return found and (found[1], found[5])


def cri(line: str) -> tuple[str, str] | None:
    found = CRI.match(line)
    return found and (found[1], found[4])


def docker(line: str) -> tuple[str, str] | None:
    entry = json.loads(line)
    return entry["time"], entry["log"]


peel = {"journal": journal, "cri": cri, "docker": docker}[sys.argv[1]]
rows = []
with Path(sys.argv[2]).open(encoding="utf-8", errors="replace") as log:
    for line in log:
        peeled = peel(line.rstrip("\n"))
        if not peeled:
            continue
        found = RECORD.match(peeled[1])
        if found:
            at = datetime.fromisoformat(peeled[0][:26].rstrip("Z"))
            rows.append(
                [at, *(kind(text) for kind, text in zip(KINDS, found.groups(), strict=True))]
            )
frame = pl.DataFrame(rows, orient="row")
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([len(frame), round(frame.estimated_size()), peak]))
