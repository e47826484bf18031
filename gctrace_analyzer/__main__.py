"""Makes `python -m gctrace_analyzer` run the command `gctrace-analyze`."""

import sys

from gctrace_analyzer.cli import entry

sys.exit(entry())
