"""Answers about a fleet: from its rows, and compared with an earlier run."""
