"""Turns tables into numbers."""
