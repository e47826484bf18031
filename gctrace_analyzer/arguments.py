"""The keyword arguments of `read`, and which of them other functions take."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from gctrace_analyzer.prometheus.access import ServerOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime, tzinfo

    from gctrace_analyzer.ingest.sniff import Kind
    from gctrace_analyzer.ingest.sources import SourceFacts


class ProgramFacts(TypedDict, total=False):
    """Facts about the program that its log may not show; `read` and `from_frame` take them."""

    gogc: str | float | None
    memory_limit: str | float | None
    container_limit: str | float | None
    cpu_limit: float | None
    go_version: str | None
    ballast: str | float | None
    off_heap: str | float | None


class InputOptions(ProgramFacts, total=False):
    """How inputs are read, and facts about the program; `read` and `fleet` take them."""

    strict: bool
    kind: Kind | None
    columns: Sequence[str] | None
    year: int | None
    tz: str | tzinfo | None
    start: str | datetime | None
    unpack_limit: str | float | None


class ReadKwargs(InputOptions, ServerOptions, total=False):
    """The keyword arguments of `read`."""

    thresholds: Mapping[str, float] | None
    slo: Mapping[str, str | float] | None
    progress: Callable[[SourceFacts], None] | None
