"""Imports optional libraries; if one is missing, the error names the `pip install` command."""

from __future__ import annotations

import importlib
from typing import Any

from gctrace_analyzer.errors import MissingExtraError

EXTRA_OF = {
    "pandas": "pandas",
    "pyarrow": "pandas",
    "matplotlib": "plot",
    **dict.fromkeys(("dask", "distributed", "s3fs", "aiohttp"), "fleet"),
    "gcsfs": "gcs",
    "adlfs": "azure",
}
"""The extra of pyproject.toml that installs each library."""


def load(library: str) -> Any:
    """Imports a library and returns its module.

    Raises:
        MissingExtraError: it is not installed; the message has the `pip install` command.
    """
    try:
        return importlib.import_module(library)
    except ModuleNotFoundError as err:
        package = library.partition(".")[0]
        if err.name != package or package not in EXTRA_OF:
            raise
        raise MissingExtraError(package, EXTRA_OF[package]) from err
