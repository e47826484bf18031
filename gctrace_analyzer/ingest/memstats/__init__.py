"""Reads dumps of runtime.MemStats: CSV, JSON, printed text, heap profiles and metrics."""
