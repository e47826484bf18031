"""Profiles with their logs, of programs whose allocation and leaks are known."""
