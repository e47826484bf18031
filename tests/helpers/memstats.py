"""MemStats dumps of any size, and the columns that they become."""

from __future__ import annotations

from hypothesis import strategies as st

BYTES = st.integers(0, 1 << 48)
MEMSTATS = {
    "HeapAlloc": "heap_alloc_bytes",
    "HeapSys": "heap_sys_bytes",
    "NextGC": "next_gc_bytes",
    "NumGC": "num_gc",
}
DUMPS = st.fixed_dictionaries(dict.fromkeys(MEMSTATS, BYTES))


def row_of(dump: dict[str, int]) -> dict[str, int]:
    """Returns the row that a dump becomes."""
    return {MEMSTATS[name]: value for name, value in dump.items()}
