"""Compares predictions, metrics and findings with what was recorded."""
