"""Messages are passed to the reader that understands them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.ingest.evidence import dispatch
from gctrace_analyzer.ingest.evidence.message import Message
from tests.helpers.logs import read_lines

if TYPE_CHECKING:
    from pathlib import Path


def test_every_wording_of_gos_out_of_memory_is_found(tmp_path: Path) -> None:
    for text in ("fatal error: out of memory", "fatal error: runtime: cannot allocate memory"):
        assert len(read_lines(tmp_path, text).runtime_fatal) == 1


def test_a_message_that_journalctl_omitted_is_rejected() -> None:
    texts = ["[1.2K blob data]", '{"HeapAlloc": 5, "HeapSys"', '{"HeapAlloc": 5}']
    rows = dispatch.read([Message(n, text) for n, text in enumerate(texts, 1)])["rejected"]
    assert [row["line_no"] for row in rows] == [1, 2]
    assert "use journalctl -o json" in rows[0]["reason"]
    assert rows[1]["reason"] == "JSON that ends inside a value"


def test_the_two_lines_of_gos_out_of_memory_are_one_death() -> None:
    texts = [
        "runtime: out of memory: cannot allocate 4194304-byte block (66977792 in use)",
        "fatal error: out of memory",
        "application: out of memory",
    ]
    (row,) = dispatch.read([Message(n, t) for n, t in enumerate(texts, 1)])["runtime_fatal"]
    assert (row["requested_bytes"], row["in_use_bytes"]) == (4194304, 66977792)
