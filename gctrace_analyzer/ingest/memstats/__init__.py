"""Readers of runtime.MemStats dumps: CSV, JSON, printed text, pprof and metrics pages."""
