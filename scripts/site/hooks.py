"""Adds the files of the repository to the site, at the paths they have in the repository."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.plugins import event_priority
from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

ROOT = Path(__file__).resolve().parent.parent.parent
SHOWN = (
    "*.md",
    "CITATION.cff",
    "LICENSE",
    "docs/**/*.*",
    "docs/examples/**/*",
    "notebooks/*.ipynb",
    "samples/README.md",
    "lab/README.md",
)
"""Pages, and the files that pages link to."""


# Before the plugins, which turn the notebooks among the files into pages.
@event_priority(100)
def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Adds the files that `SHOWN` matches."""
    paths = {path for pattern in SHOWN for path in ROOT.glob(pattern) if path.is_file()}
    for path in sorted(paths):
        name = path.relative_to(ROOT).as_posix()
        files.append(
            File(
                name,
                src_dir=str(ROOT),
                dest_dir=config.site_dir,
                use_directory_urls=config.use_directory_urls,
            )
        )
    return files
