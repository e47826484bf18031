"""Finds the profiles in folders and zip archives, which stand for all of them."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from gctrace_analyzer.errors import GctraceError
from gctrace_analyzer.ingest import sniff
from gctrace_analyzer.ingest.sources import Source, zip_members

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gctrace_analyzer.ingest.sources import Input


_MOST_FILES = 1000
"""A folder with more files is none of profiles."""


def profiles_of(path: Path) -> tuple[list[Input], str]:
    """Returns the profiles in a folder or archive, and a note if it has other files too.

    Empty unless most of its files are profiles: the reader of single files refuses or reads it.
    """
    files: Sequence[Input]
    files = _files(path) if path.is_dir() else zip_members(path)
    profiles = [file for file in files if _is_profile(file)]
    others = len(files) - len(profiles)
    if others > len(profiles):
        return [], ""
    if not others:
        return profiles, ""
    were = "1 other file was" if others == 1 else f"{others:,} other files were"
    return profiles, f"{path}: its profiles were read; {were} not. Name logs on their own."


def _files(folder: Path) -> list[Path]:
    files = sorted(path for path in folder.iterdir() if path.is_file())
    own = [path for path in files if not path.name.startswith(".")]
    return own if len(own) <= _MOST_FILES else []


def _is_profile(origin: Input) -> bool:
    try:
        with Source(origin) as source:
            raw, text = source.head(sniff.SNIFF_BYTES)
    except GctraceError:
        return False
    finally:
        if isinstance(origin, io.BytesIO):
            origin.seek(0)
    return sniff.sniff(raw, text) == "pprof"
