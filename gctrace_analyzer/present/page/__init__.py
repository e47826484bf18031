"""The HTML report: one file that opens without a network."""
