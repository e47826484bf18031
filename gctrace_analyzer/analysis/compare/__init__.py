"""Comparing runs: metrics, confidence intervals, and whether a comparison is fair."""
