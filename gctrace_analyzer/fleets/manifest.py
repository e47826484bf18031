"""The manifest of an output: its valid Parquet files and its options; `output` saves it.

It is a JSON file next to the folder, so that the folder holds nothing but Parquet.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict

from gctrace_analyzer import __version__
from gctrace_analyzer.errors import BadSettingError

SUFFIX = ".manifest.json"
"""The suffix that is appended to the name of the output."""

FORMAT = 1
"""The version of this format; an output in another version is not resumed."""


class Part(TypedDict):
    """A Parquet file of the output; `kind` says which rows it has (see `output.py`)."""

    name: str
    kind: str
    rows: int
    files: int


class Manifest(TypedDict):
    """The content of a manifest.

    `asked` has the options that the rows depend on, `files` the number of files of the run,
    `complete` whether all of them were read, and `span` the time range that a server was asked for.
    """

    asked: dict[str, object]
    files: int | None
    complete: bool
    parts: list[Part]
    span: NotRequired[tuple[float, float]]


def options_of(options: Mapping[str, Any]) -> dict[str, object]:
    """Returns everything that the rows depend on: options, manifest format, package version."""
    return {"format": FORMAT, "made_by": __version__, **options}


def dump(manifest: Manifest) -> str:
    """Returns the text of a manifest, which also names the program that made it."""
    made_by = {"made_by": f"gctrace-analyzer {__version__}"}
    return json.dumps({**made_by, **manifest}, indent=1) + "\n"


def load(text: str, output: str) -> Manifest:
    """Returns the content of the manifest of an output.

    Raises:
        BadSettingError: it is not a manifest.
    """
    try:
        manifest: Manifest = json.loads(text)
        if {"asked", "parts"} <= set(manifest):
            return manifest
    except (ValueError, TypeError):
        pass
    raise BadSettingError(
        "output", output, f"an output of fleet, but {output}{SUFFIX} is not a manifest"
    )
