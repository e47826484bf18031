"""Loads the libraries that come with an extra, or names the `pip install` that brings them."""

from __future__ import annotations

import importlib
from typing import Any

from gctrace_analyzer.errors import MissingExtraError

EXTRA_OF = {
    "pandas": "pandas",
    "pyarrow": "pandas",
    "matplotlib": "plot",
    **dict.fromkeys(("dask", "distributed", "fsspec", "s3fs", "aiohttp"), "fleet"),
    "gcsfs": "gcs",
    "adlfs": "azure",
}
"""Which extra of pyproject.toml brings each library."""


def load(library: str) -> Any:
    """The module named `library`.

    Raises:
        MissingExtraError: it is not installed; the message has the `pip install` line.
    """
    try:
        return importlib.import_module(library)
    except ModuleNotFoundError as err:
        whole = library.partition(".")[0]
        if err.name != whole or whole not in EXTRA_OF:
            raise
        raise MissingExtraError(whole, EXTRA_OF[whole]) from err
