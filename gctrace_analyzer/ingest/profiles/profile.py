"""What a profile holds, whichever form it was written in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.errors import NoDataError
from gctrace_analyzer.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
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
"""The columns of the sample types that are read; the types are those of runtime/pprof."""

_KINDS = {"alloc_bytes": "heap", "cpu_ns": "cpu", "goroutines": "goroutine"}

UNKNOWN = "unknown"
"""The name of functions without a name, such as those of C libraries."""

_LANGUAGES = {
    (".java", ".kt", ".scala", ".groovy", ".clj"): "Java",
    (".py", ".pyx"): "Python",
    (".rs",): "Rust",
    (".js", ".ts", ".mjs", ".cjs"): "JavaScript",
    (".c", ".cc", ".cpp", ".h", ".hpp"): "C or C++",
    (".rb",): "Ruby",
    (".cs",): ".NET",
}

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
        places: `function`, `file` and `line`. Functions that were inlined have their own.
        period: the sampling rate of the runtime, in bytes (heap) or nanoseconds (cpu).
        taken_at: when it was written, or when its sampling began.
        duration_s: the time that its values are of; None: since the start of the process.
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
        """Yields the frames of some stacks after the other, in bounded memory.

        One row per frame, from the innermost outwards: `stack` (the row of `stacks`), `place` (the
        row of `places`), and the values of the stack.
        """
        whole = self.stacks.rename({"places": "place"}).with_row_index("stack")
        for stacks in whole.iter_slices(STACKS_AT_ONCE):
            yield stacks.explode("place").drop_nulls("place")


def kind_of(columns: Iterable[str]) -> str | None:
    """Returns the kind of a profile with these columns; None if nothing is read from it."""
    return next((kind for column, kind in _KINDS.items() if column in columns), None)


def check_language(name: str, places: pl.DataFrame) -> None:
    """Refuses a profile whose functions are not those of a Go program.

    Raises:
        NoDataError: it has no names, or they are of another language.
    """
    files, names = places["file"], places["function"]
    if files.str.ends_with(".go").any() or names.str.starts_with("runtime.").any():
        return
    if (names == UNKNOWN).all():
        problem = "a profile without the names of functions"
        raise NoDataError(
            name, problem, "Add them: go tool pprof -proto BINARY PROFILE > out.pb.gz"
        )
    for suffixes, language in _LANGUAGES.items():
        if any(files.str.ends_with(suffix).any() for suffix in suffixes):
            raise _foreign(name, f"a profile of a program in {language}, not in Go")
    raise _foreign(name, "a profile, but not of a Go program")


def _foreign(name: str, problem: str) -> NoDataError:
    hint = "Take one from the Go program: curl -o allocs.pb.gz http://HOST/debug/pprof/allocs"
    return NoDataError(name, problem, hint)
