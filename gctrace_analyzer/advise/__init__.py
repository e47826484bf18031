"""Advice: the pacer's formulas, predictions for other settings, and recommendations."""
