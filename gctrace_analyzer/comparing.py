"""Entry points of comparisons: from what somebody names to sides, each of one or more runs."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.comparison import between, over
from gctrace_analyzer.entry import read
from gctrace_analyzer.errors import BadSettingError, UnreadableInputError
from gctrace_analyzer.run import Run
from gctrace_analyzer.sides import Side

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    from gctrace_analyzer.comparison import Comparison, Sweep
    from gctrace_analyzer.ingest.sources import Input

    Runs: TypeAlias = Input | Run | Sequence[Input | Run]


def compare(before: Runs, after: Runs) -> Comparison:
    """Two sides of a change: what is better, worse, or noise.

    Args:
        before: a run, a path, a pattern such as `before-*.log`, or several of them: each run
            and each path is one run of the same program under the same setting.
        after: the other side, likewise.

    Raises:
        TooShortError: a run has no cycle.
        GctraceError: as `read`.

    >>> found = compare("samples/steady-go1.26.log", "samples/ballast-go1.26.log")
    >>> found.rows()["gc_per_s"]["verdict"]
    'better'
    """
    sides = [Side(_label(side, name), runs_of(side)) for side, name in (
        (before, "before"), (after, "after"),
    )]  # fmt: skip
    return between(*sides)


def sweep(settings: Mapping[str, Runs]) -> Sweep:
    """Several settings of one program, each with one or more runs; the best is marked.

    Args:
        settings: what `compare` takes as a side, by the setting's name.

    Raises:
        BadSettingError: fewer than two settings.
        TooShortError: a run has no cycle.
        GctraceError: as `read`.
    """
    if len(settings) < 2:
        raise BadSettingError(
            what="sweep", value=f"{len(settings)} setting", expected="two or more"
        )
    return over([Side(name, runs_of(side)) for name, side in settings.items()])


def runs_of(side: Runs, **settings: Any) -> list[Run]:
    """A side's runs: those given, and one for each path and each file of a pattern.

    Args:
        side: a run, path, pattern or open file, or several of them.
        settings: as `read` takes them, for what must be read.

    Raises:
        UnreadableInputError: a pattern that no file has.
        GctraceError: as `read`.
    """
    several: list[Any] = list(side) if isinstance(side, (list, tuple)) else [side]
    return [
        each if isinstance(each, Run) else read(each, **settings)
        for one in several
        for each in _expanded(one)
    ]


def _expanded(origin: Input | Run) -> list[Any]:
    if not isinstance(origin, str) or not glob.has_magic(origin) or Path(origin).exists():
        return [origin]
    found = sorted(glob.glob(origin, recursive=True))  # noqa: PTH207 (patterns may be absolute)
    if not found:
        raise UnreadableInputError(
            origin, "no file has such a name", "Quote the pattern, and look where you are."
        )
    return list(found)


def _label(side: Runs, otherwise: str) -> str:
    return Path(side).name if isinstance(side, str) and not glob.has_magic(side) else otherwise
