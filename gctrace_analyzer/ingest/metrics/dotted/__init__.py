"""Reads metrics whose names are words with dots: Graphite, StatsD, Datadog, go-metrics.

`names` finds the metric at the end of such a name, `lines` reads text and `documents` JSON.
"""
