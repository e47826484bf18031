"""Profiles beside logs, of programs whose allocation and leaks are known."""
