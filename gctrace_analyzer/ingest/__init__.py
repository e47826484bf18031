"""Turns inputs into tables."""
