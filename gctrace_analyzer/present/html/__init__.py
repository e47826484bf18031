"""The HTML pages: self-contained files that open without a network."""
