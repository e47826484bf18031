"""Messages are passed to the reader that understands them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.helpers.logs import read_lines

if TYPE_CHECKING:
    from pathlib import Path


def test_every_wording_of_gos_out_of_memory_is_found(tmp_path: Path) -> None:
    for text in ("fatal error: out of memory", "fatal error: runtime: cannot allocate memory"):
        assert len(read_lines(tmp_path, text).runtime_fatal) == 1
