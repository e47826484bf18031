"""Reads Go metrics in every layout: Prometheus, VictoriaMetrics, Grafana, expvar, Influx, OTLP.

Each layout becomes samples of series or rows of dumps (`series_json`, `exposition`, `grafana`,
`go_json`, `influx`, `otlp`, `go_metrics`); `samples` turns samples into one row per
scrape, and `processes` finds the processes. `names` maps the name of every metric to a column of
`schema.MEMSTATS`.
"""
