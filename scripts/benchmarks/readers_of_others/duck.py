"""Reads a log with DuckDB's CSV reader and regular expressions, on all processors."""

import json
import resource
import sys

import duckdb

FIELDS = [
    "n",
    "t",
    "u",
    "c0",
    "c1",
    "c2",
    "u0",
    "a",
    "b",
    "i",
    "u2",
    "h0",
    "h1",
    "h2",
    "goal",
    "s",
    "g",
    "p",
]
KINDS = ["BIGINT", "DOUBLE", "BIGINT", *["DOUBLE"] * 8, *["BIGINT"] * 7]
RECORD = (
    r"^gc (\d+) @([\d.]+)s (\d+)%: ([\d.]+)\+([\d.]+)\+([\d.]+) ms clock, "
    r"([\d.]+)\+([\d.]+)/([\d.]+)/([\d.]+)\+([\d.]+) ms cpu, (\d+)->(\d+)->(\d+) MB, "
    r"(\d+) MB goal, (\d+) MB stacks, (\d+) MB globals, (\d+) P"
)

columns = ", ".join(
    f"m.{name}::{kind} AS {name}" for name, kind in zip(FIELDS, KINDS, strict=True)
)
lines = duckdb.read_csv(
    sys.argv[1],
    header=False,
    sep="\x01",
    quotechar="",
    escapechar="",
    columns={"line": "VARCHAR"},
)
duckdb.sql(
    f"CREATE TABLE cycles AS SELECT {columns} FROM (SELECT "
    f"regexp_extract(line, '{RECORD}', {FIELDS}) AS m FROM lines "
    "WHERE line LIKE 'gc %' AND line LIKE '% P') WHERE m.n <> ''"
)
found = duckdb.sql("SELECT count(*) FROM cycles").fetchall()[0]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([found[0], None, peak]))
