"""MemStats from JSON: expvar, documents and log lines."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from gctrace_analyzer.ingest.memstats.json import from_record
from gctrace_analyzer.testing import read_text
from tests.helpers.memstats import DUMPS, MEMSTATS, row_of


@settings(max_examples=30)
@given(DUMPS, st.booleans())
def test_memstats_read_from_json_as_written(dump: dict[str, int], nested: bool) -> None:
    document = json.dumps({"memstats": dump} if nested else dump, indent=1)
    table = read_text(document).memstats
    assert table.select(MEMSTATS.values()).to_dicts() == [row_of(dump)]
    assert from_record(dump) == row_of(dump)
