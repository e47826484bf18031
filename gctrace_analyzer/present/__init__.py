"""Turns figures into text, JSON, Markdown, HTML and plots."""
