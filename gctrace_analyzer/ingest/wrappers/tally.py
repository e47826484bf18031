"""Counts the lines with a log prefix, and chooses a sample of lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import polars as pl

SAMPLE_LINES, LAST_LINES = 64, 4
SAMPLE_CHARS = 512


class Tally:
    """The number of lines with each log prefix.

    A line may represent others that are missing, because the same text surrounds their records.

    Args:
        weights: for each such line, the number of lines it represents, including itself.
        all_lines: `line_no` of all these lines, and `probe`, the line that represents each.
    """

    def __init__(
        self, weights: Mapping[int, int] | None = None, all_lines: pl.DataFrame | None = None
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._lines: dict[str, set[int]] = {}
        self._weights = weights or {}
        self._all_lines = all_lines

    def add(self, name: str, lines: pl.DataFrame) -> None:
        """Counts lines with a prefix."""
        self.counts[name] += self.size(lines)
        if self._weights:
            self._lines.setdefault(name, set()).update(self._standing_for_others(lines))

    def names(self, line_no: int) -> set[str]:
        """Returns the prefixes of a line that represents others."""
        return {name for name, lines in self._lines.items() if line_no in lines}

    def size(self, lines: pl.DataFrame) -> int:
        """Returns the number of lines, including those that they represent."""
        if not self._weights:
            return len(lines)
        probes = self._standing_for_others(lines)
        return len(lines) + sum(self._weights[number] - 1 for number in probes)

    def _standing_for_others(self, lines: pl.DataFrame) -> list[int]:
        known = pl.Series(self._weights.keys(), dtype=pl.Int64).implode()
        is_known = lines["line_no"].cast(pl.Int64).is_in(known)
        return lines["line_no"].filter(is_known).to_list()

    def sample(self, lines: pl.DataFrame) -> list[str]:
        """Returns evenly spaced lines and the last ones; long lines are truncated."""
        texts, rows = lines["text"], pl.int_range(len(lines), eager=True).alias("row")
        if self._all_lines is not None:
            own = lines.select(pl.col("line_no").cast(pl.Int64)).with_columns(rows)
            of_probes = self._all_lines.join(own.rename({"line_no": "probe"}), on="probe")
            alone = own.filter(
                ~pl.col("line_no").is_in(
                    pl.Series(self._weights.keys(), dtype=pl.Int64).implode()
                )
            )
            both = pl.concat([alone, of_probes[["line_no", "row"]]])
            rows = both.sort("line_no")["row"]
        step = max(1, len(rows) // SAMPLE_LINES)
        chosen = texts[rows.gather_every(step).append(rows.tail(LAST_LINES))].to_list()
        return [text[:SAMPLE_CHARS] for text in chosen if text]
