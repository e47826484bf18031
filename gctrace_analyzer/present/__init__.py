"""Turns figures into text, JSON and Markdown."""
