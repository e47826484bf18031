"""The rules: one function each, registered with its texts (see `registry`)."""

# It imports every rule.
from gctrace_analyzer.analysis.rules import diagnose

__all__ = ["diagnose"]
