"""`python -m gctrace_analyzer` is `gctrace-analyze`."""

import sys

from gctrace_analyzer.cli import main

sys.exit(main())
