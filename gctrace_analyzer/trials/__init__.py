"""Runs a command under several settings, or several commands, and measures each run."""
