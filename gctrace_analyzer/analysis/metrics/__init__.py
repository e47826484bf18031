"""Figures from dumps of MemStats and scrapes of metrics: intervals and results from them."""
