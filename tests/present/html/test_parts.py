"""Templates that were compiled before are used only where nothing has changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gctrace_analyzer.present.html import parts

if TYPE_CHECKING:
    import pytest


def test_a_compiled_template_is_of_this_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that an older version compiled from the same source may print values otherwise."""
    compiled = parts._Compiled()
    before = compiled.get_source_checksum("{{ value }}")
    assert compiled.get_source_checksum("{{ value }}") == before
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "another version")
    assert compiled.get_source_checksum("{{ value }}") != before
