"""Predicting other settings from one log: load and path, replay, model, intervals, gain."""
