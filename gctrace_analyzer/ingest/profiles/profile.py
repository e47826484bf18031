"""The content of a profile, in whichever form it was written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.errors import NoDataError
from gctrace_analyzer.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    import polars as pl

COLUMNS = {
    "alloc_objects": "alloc_objects",
    "alloc_space": "alloc_bytes",
    "inuse_objects": "inuse_objects",
    "inuse_space": "inuse_bytes",
    "samples": "samples",
    "cpu": "cpu_ns",
    "goroutine": "goroutines",
}
"""The columns for the sample types that are read; the types are those of runtime/pprof."""

_KINDS = {"alloc_bytes": "heap", "cpu_ns": "cpu", "goroutines": "goroutine"}

UNKNOWN = "unknown"
"""The name of functions without a name, such as those of C libraries."""

_GO = r"\.go$"
_LANGUAGES = {
    "Java": r"\.(?:java|kt|scala|groovy|clj)$|^(?:java|javax|jdk|sun|kotlin|scala)[./]",
    "Python": r"\.pyx?$|^<module>$",
    "Rust": r"\.rs$|::h[0-9a-f]{16}$|^(?:core|alloc|std)::",
    "JavaScript": r"\.[cm]?[jt]sx?$",
    "Ruby": r"\.rb$",
    ".NET": r"\.cs$|^System\.",
    "C or C++": r"\.(?:c|cc|cpp|h|hpp)$|^operator new|^(?:__libc_)?malloc$|^std::",
}
"""Patterns in names of functions or files that show the language of a program."""

_OTHERS = {
    "contentions": "a block or mutex profile",
    "threadcreate": "a profile of created threads",
}
"""Profiles of Go that say nothing about memory, CPU or goroutines."""

STACKS_AT_ONCE = 1 << 16
"""Stacks whose frames are in memory at the same time (about 50 MiB)."""


@frozen
class Profile:
    """A profile of one process at one time.

    Attributes:
        name: the input.
        kind: `heap` (also what Go calls allocs), `cpu` or `goroutine`.
        stacks: one row per distinct stack: its values by the names of `COLUMNS`, and `places`, a
            list of rows of `places`, from the function that allocates to its callers.
        places: `function`, `file` and `line`. Inlined functions have places of their own.
        period: the sampling rate of the runtime, in bytes (heap) or nanoseconds (cpu).
        taken_at: when it was written, or when its sampling began.
        duration_s: the time that its values cover; None: since the start of the process.
    """

    name: str
    kind: str
    stacks: pl.DataFrame
    places: pl.DataFrame
    period: int | None = None
    taken_at: datetime | None = None
    duration_s: float | None = None

    @property
    def values(self) -> list[str]:
        """The names of the columns of `stacks` with values."""
        return [name for name in self.stacks.columns if name != "places"]

    def frames(self) -> Iterator[pl.DataFrame]:
        """Yields the frames of a few stacks at a time, in bounded memory.

        One row per frame, from the innermost outwards: `stack` (the row of `stacks`), `place` (the
        row of `places`), and the values of the stack.
        """
        whole = self.stacks.rename({"places": "place"}).with_row_index("stack")
        for stacks in whole.iter_slices(STACKS_AT_ONCE):
            yield stacks.explode("place").drop_nulls("place")


def kind_of(name: str, types: Sequence[str], places: pl.DataFrame) -> str:
    """Returns the kind of a profile with these types of values.

    Raises:
        NoDataError: it belongs to another language, has no function names, or is of another kind.
    """
    names = [places[column] for column in ("file", "function")]
    is_go = any((names[0].str.contains(_GO).any(), names[1].str.starts_with("runtime.").any()))
    if not is_go and (names[1] == UNKNOWN).all():
        hint = "Add them: go tool pprof -proto BINARY PROFILE > out.pb.gz"
        raise NoDataError(name, "a profile without the names of functions", hint)
    if not is_go:
        languages = (
            language
            for language, pattern in _LANGUAGES.items()
            if any(of.str.contains(pattern).any() for of in names)
        )
        language = next(languages, None)
        problem = (
            "a profile, but not of a Go program"
            if language is None
            else f"a profile of a program in {language}, not in Go"
        )
        hint = "Take one of the Go program: curl -o allocs.pb.gz http://HOST/debug/pprof/allocs"
        raise NoDataError(name, problem, hint)
    columns = [COLUMNS.get(one) for one in types]
    if kind := next((kind for column, kind in _KINDS.items() if column in columns), None):
        return kind
    of = f"a profile of {' and '.join(types) or 'nothing'}"
    other = next((_OTHERS[one] for one in types if one in _OTHERS), of)
    hint = "Read are heap, allocs, CPU and goroutine profiles of Go programs."
    raise NoDataError(name, other, hint)
