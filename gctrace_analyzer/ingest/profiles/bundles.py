"""Finds profiles in folders and archives, and the parts of a log in archives.

They replace the folder or archive.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

from gctrace_analyzer.errors import GctraceError
from gctrace_analyzer.ingest import sniff
from gctrace_analyzer.ingest.sources import Source, files_in

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gctrace_analyzer.ingest.sources import Input


_MOST_FILES = 1000
"""A folder with more files is not a folder of profiles."""


_ROTATED = re.compile(r"[.-](\d{8}-\d{6}|\d{8,}|\d{1,3})(?:\.(?:gz|bz2|xz|zst))?$")
_DATE_DIGITS = 8
"""Longer numbers at the end of a name are a date, which rises; short ones count back. Others are
process ids."""


def contents_of(path: Path) -> tuple[list[Input], str]:
    """Returns the relevant files of a folder or archive, and a note if it has others.

    Empty if it holds neither profiles nor, as an archive, logs: the reader of single files refuses
    it.
    """
    files: Sequence[Input]
    files = _files(path) if path.is_dir() else files_in(path)
    profiles = [file for file in files if _kind(file) == "pprof"]
    if len(profiles) >= len(files) - len(profiles):
        chosen, what = profiles, "profiles"
    elif path.is_dir():
        return [], ""
    else:
        chosen, what = sorted(filter(_kind, files), key=age), "logs"
    others = len(files) - len(chosen)
    if not others or not chosen:
        return chosen, ""
    were = "1 other file was" if others == 1 else f"{others:,} other files were"
    return chosen, f"{path}: its {what} were read; {were} not. Name other inputs on their own."


def age(file: Input) -> tuple[str, int, int]:
    """Returns a key that orders the parts of rotated logs from the oldest to the newest.

    >>> names = ["run.log", "run.log.1", "run.log.2.gz", "run.log.20261120-090010"]
    >>> [name for *_, name in sorted((*age(name), name) for name in names)]
    ['run.log.2.gz', 'run.log.1', 'run.log.20261120-090010', 'run.log']
    """
    name = str(getattr(file, "name", file))
    rotated = _ROTATED.search(name)
    if not rotated:
        return name, 1, 0
    number = int(rotated[1].replace("-", ""))
    return name[: rotated.start()], 0, number if len(rotated[1]) >= _DATE_DIGITS else -number


def _files(folder: Path) -> list[Path]:
    files = sorted(path for path in folder.iterdir() if path.is_file())
    own = [path for path in files if not path.name.startswith(".")]
    return own if len(own) <= _MOST_FILES else []


def _kind(origin: Input) -> str:
    """Returns the apparent kind of a file; empty if it is not read."""
    try:
        with Source(origin) as source:
            raw, text = source.head(sniff.SNIFF_BYTES)
    except GctraceError:
        return ""
    finally:
        if isinstance(origin, io.BytesIO):
            origin.seek(0)
    return sniff.sniff(raw, text)
