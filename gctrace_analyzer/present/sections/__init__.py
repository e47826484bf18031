"""The parts of a report as rows of text, shared by all output formats."""
