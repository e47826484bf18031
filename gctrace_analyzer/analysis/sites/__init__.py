"""Profiles as sites of allocation: per function or line, alone and joined with the log."""
