"""Finds one line of an input, and rejoins it with the lines around it if it was torn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest.gctrace import parse, torn
from gctrace_analyzer.ingest.gctrace.chunk import CONTEXT_LINES
from gctrace_analyzer.ingest.sources import Source
from gctrace_analyzer.ingest.wrappers.strip import by_depth

if TYPE_CHECKING:
    from gctrace_analyzer.ingest.sources import Input


@frozen
class FoundLine:
    """A line of an input.

    Attributes:
        text: the line as it was written.
        joined: the whole record, if the line is part of a torn record.
        problem: why the line cannot be read, if it looks like a record.
        next_no: the number of the next line with a GC cycle, if there is one nearby.
    """

    text: str
    joined: str | None = None
    problem: str | None = None
    next_no: int | None = None


def find_line(origin: Input, line_no: int) -> FoundLine:
    """Returns the line with this number, joined with its other parts if it was torn.

    Raises:
        BadSettingError: the input has fewer lines.
        UnreadableInputError: the input cannot be opened or is not a log.
    """
    near = _lines_around(origin, line_no)
    text = near[line_no]
    first = min(near)
    data = "".join(near[number] + "\n" for number in sorted(near)).encode()
    result = parse.parse(data).shifted(first - 1)
    context = by_depth(result.context, result.depth)
    rejoined = torn.rejoin(result.suspects, context, lambda _: None)
    joined = next((line.text for line in rejoined.joined if line.line_no == line_no), None)
    problem = next((line.reason for line in rejoined.rejected if line.line_no == line_no), None)
    later = (number for number in result.cycles["line_no"] if number > line_no)
    return FoundLine(text, joined, problem, min(later, default=None))


def _lines_around(origin: Input, line_no: int) -> dict[int, str]:
    around = range(max(1, line_no - CONTEXT_LINES), line_no + CONTEXT_LINES + 1)
    near: dict[int, str] = {}
    before = 0
    with Source(origin) as source:
        for data in source.chunks():
            count = data.count(b"\n")
            if before + count >= around.start:
                lines = data.decode(errors="replace").split("\n")
                near |= {
                    n: lines[n - before - 1] for n in around if before < n <= before + count
                }
            before += count
            if before >= around.stop:
                break
    if line_no not in near:
        expected = f"a line of the input, which has {before:,}"
        raise BadSettingError("line_no", str(line_no), expected)
    return near
