"""Tests that compare the compiled core with Python."""

from __future__ import annotations

import os

import pytest

from gctrace_analyzer import core

_IS_REQUIRED = "GCTRACE_TEST_ALL" in os.environ or os.environ.get(core.VARIABLE) == "require"

# Where the core is required, these tests run without it too, and fail.
needs_core = pytest.mark.skipif(
    core.compiled() is None and not _IS_REQUIRED,
    reason="the compiled core is not installed (no Rust, or it is switched off)",
)
