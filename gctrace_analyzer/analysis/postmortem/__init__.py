"""Explaining why a process died: matching kills to processes, memory and CPU accounting."""
