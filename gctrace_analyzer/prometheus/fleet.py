"""Many processes of a server, compared by it: the public function `prometheus_fleet`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.prometheus.read import question
from gctrace_analyzer.prometheus.services import figures

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    import polars as pl

    from gctrace_analyzer.prometheus.read import ReadKwargs


def prometheus_fleet(
    url: str,
    *,
    progress: Callable[[int, int], None] | None = None,
    **how: Unpack[ReadKwargs],
) -> pl.DataFrame:
    """Lets a Prometheus server compare Go processes; returns one row each, the worst first.

    Some twenty instant queries are sent for any number of processes; no samples are fetched.

    Args:
        url: the address of the server, as for `read_prometheus`.
        progress: called with the number of queries so far, and of all.
        how: `match`, `since` (6 hours by default), `until` and credentials, as for
            `read_prometheus`.

    Raises:
        GctraceError: as `read_prometheus`.
    """
    how.setdefault("since", "6h")
    return figures(question(url, **how), progress)
