"""Tests that compare the compiled core with Python."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING
from unittest import mock

import pytest

from gctrace_analyzer import core

if TYPE_CHECKING:
    from collections.abc import Iterator

_IS_REQUIRED = "GCTRACE_TEST_ALL" in os.environ or os.environ.get(core.VARIABLE) == "require"

# Where the core is required, these tests run without it too, and fail.
needs_core = pytest.mark.skipif(
    core.compiled() is None and not _IS_REQUIRED,
    reason="the compiled core is not installed (no Rust, or it is switched off)",
)


@contextmanager
def pure_python() -> Iterator[None]:
    """Reads without the compiled core, in all threads, until the end of the block."""
    with mock.patch.dict(os.environ, {core.VARIABLE: "off"}):
        yield
