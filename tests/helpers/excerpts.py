"""Which excerpts of the corpus are not answered rightly yet."""

from __future__ import annotations

NOT_YET = {
    # Refused: columns of ps that awk has chosen.
    "k19-containerd-shims-ps-through-awk-and-column-j",
    # Pauses in ms without a unit, and their mean alone.
    "k1-stats-api-handler-b", "k1-beego-gc-summary-c",
    # Refused: names of one program alone, Couchbase's query service (its gc.num is the heap goal).
    "k1-couchbase-query-vitals-f",
    # Refused: three kills since the host started, of which nothing is known but their number.
    "k14-node-vmstat-oom-kill-f",
    # Refused: the page of Gogs in Chinese; its English names are read.
    "k19-gogs-chinese-gc-metadata-f",
    # Refused, or a table of a database that is not read: SQL of CockroachDB, annotated CSV of InfluxDB.
    "k1-cockroach-node-metrics-sql-g", "k1-influx-query-annotated-csv-g",
    # Metrics between other things: quantiles in names.
    "k1-flat-json-quantile-names-g",
    # The pause per cycle of a benchmark, and GC's share in a profile of perf.
    "k1-go-test-bench-stw-metrics-g", "k1-perf-report-gc-g",
    # Two pods: the pauses of both together, not of each.
    "k1-stern-two-pods-g",
    # The kill is in a field next to the message.
    "k14-woodpecker-received-oom-kill-g",
    # Memory of C that only its own allocator counts: malloc_stats of glibc.
    "k19-glibc-malloc-stats-g",
    # Refused: a core dump by viewcore.
    "k19-viewcore-breakdown-g",
    # Refused, as all StatsD is.
    "k19-ddtrace-dogstatsd-mem-stats-healthy-l",
}  # fmt: skip
"""What is not right yet; whoever mends one takes it out."""
