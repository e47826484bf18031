"""Figures from dumps of MemStats and scrapes of metrics: intervals, and what follows from them."""
