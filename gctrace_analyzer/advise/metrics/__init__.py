"""Predictions and recommendations from metrics alone."""
