"""The ranked tables of a fleet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from gctrace_analyzer.analysis.fleet.answers import OUTLYING
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.present.document import Table
from gctrace_analyzer.present.fleet_sizes import cores, size_unit
from gctrace_analyzer.present.format import (
    NONE,
    duration,
    in_words,
    live_heap,
    mib,
    mib_per_s,
    printable,
    rate,
    share,
    sparkline,
)
from gctrace_analyzer.present.format import milliseconds as ms
from gctrace_analyzer.present.sections.changes import percent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gctrace_analyzer.analysis.fleet.answers import Answers
    from gctrace_analyzer.analysis.fleet.changes import Changes, History

    Row = Mapping[str, Any]

NAME_CHARS = 26
_Align = Literal["l", "r"]


@frozen
class Column:
    """A column of a ranked table.

    Attributes:
        head: the title; that of the first column says what a row is.
        text: returns the cell of a row.
        key: the column of the frame to sort by; empty: sort by text.
        align: `l` or `r`.
        most: the characters that a terminal always shows, and no more if other columns need the
            room; 0: all.
        is_wide: True for sentences, which take several lines of a page.
        is_course: True for bars, one for each run.
        is_needed: True for columns that a narrow terminal also shows.
    """

    head: str
    text: Callable[[Row], str]
    key: str = ""
    align: _Align = "r"
    most: int = 0
    is_wide: bool = False
    is_course: bool = False
    is_needed: bool = False

    def value(self, row: Row) -> float | str | None:
        """Returns the value to sort a row by."""
        value = row[self.key] if self.key else self.text(row)
        return value if isinstance(value, (int, float, str)) else None


@frozen
class Ranking:
    """The first rows of a frame, in order, without empty columns.

    `says_first` is the reason for showing the table on one screen: a change since an earlier run,
    or what to do now.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    total: int
    says_first: Literal["change", "now"] | None = None

    def cells(self, row: Row) -> Iterator[tuple[Column, str]]:
        """Yields the whole text of each column of a row."""
        yield from ((column, printable(column.text(row))) for column in self.columns)

    @property
    def left(self) -> int:
        """How many rows are not shown."""
        return self.total - len(self.rows)

    def table(self) -> Table:
        """Returns the rows as text."""
        return Table(
            (self.title, *(column.head for column in self.columns[1:])),
            "".join(column.align for column in self.columns),
            [tuple(text for _, text in self.cells(row)) for row in self.rows],
            f"… and {self.left:,} more" if self.left else "",
            tuple(column.most for column in self.columns),
            # Facts about a row come first, figures last.
            spare=tuple(
                at
                for at in range(len(self.columns) - 1, 1, -1)
                if not (self.columns[at].is_wide or self.columns[at].is_needed)
            ),
        )


def ranking(
    title: str,
    frame: pl.DataFrame,
    columns: Sequence[Column],
    most: int,
    says_first: Literal["change", "now"] | None = None,
) -> Ranking:
    """Returns the first `most` rows of a frame."""
    rows = tuple(frame.head(most).to_dicts())
    first, *others = columns
    known = [
        column for column in others if any(column.text(row) not in ("", NONE) for row in rows)
    ]
    return Ranking(title, (first, *known), rows, len(frame), says_first)


STATES = {"thrashes": "thrashing", "thrashed": "thrashed", "near": "close"}
_WRITTEN: Mapping[str, Callable[[float | None], str]] = {
    "gc_cpu_share": share, "live_heap_p50_mib": live_heap, "alloc_mib_per_s": mib_per_s,
    "stw_p99_ms": ms, "gc_per_s": rate,
}  # fmt: skip


def _setting(row: Mapping[str, Any]) -> str:
    """Returns the setting of a service, and what it saves."""
    cpu = saving(row, "saved_cores", cores)
    changes = [
        *([f"GC CPU: {cpu} cores"] if cpu != NONE else []),
        *([f"heap: {heap}"] if (heap := saved_heap(row)) != NONE else []),
    ]
    return "; ".join([row["advised_setting"], *changes])


def saved_heap(row: Mapping[str, Any]) -> str:
    """Returns in words how much heap a recommendation saves or costs."""
    unit, written = size_unit(*(row[f"saved_heap_mib{end}"] for end in ("", "_low", "_high")))
    text = saving(row, "saved_heap_mib", written)
    return text if text in (NONE, "same") else f"{text} {unit}"


def saving(row: Mapping[str, Any], name: str, written: Callable[[float | None], str]) -> str:
    """Returns in words how much a recommendation saves or costs, with its interval.

    If the interval includes saving and cost, no middle value is shown.

    >>> ends = {"x": 2.0, "x_low": 1.0, "x_high": 3.0}
    >>> saving(ends, "x", cores), saving({n: -v for n, v in ends.items()}, "x", cores)
    ('saves 2.0 (1.0–3.0)', 'costs 2.0 (1.0–3.0)')
    >>> saving({**ends, "x_low": -1.0}, "x", cores)
    'saves ≤3.0, costs ≤1.0'
    """
    middle, *ends = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
    if None in (middle, *ends):
        return NONE
    low, high = sorted(ends)
    if low < 0 < high:
        return f"saves ≤{written(high)}, costs ≤{written(-low)}"
    if middle == 0:
        return "same"
    near, far = sorted((abs(low), abs(high)))
    word = "saves" if middle > 0 else "costs"
    return f"{word} {written(abs(middle))} ({written(near)}–{written(far)})"


def rankings(answers: Answers, most: int) -> list[Ranking]:
    """Returns the tables that have rows, each with at most `most` of them."""
    advised = answers.services.filter(pl.col("advised") > 0).sort(
        "saved_cores", "service", descending=[True, False]
    )
    is_all: Literal["now"] | None = "now" if answers.problems.is_empty() else None
    made = (
        *(() if answers.history is None else (_history(answers.history, most),)),
        *(() if answers.changes is None else _changes(answers.changes, most)),
        ranking("Services to fix", answers.problems, _PROBLEMS, most, "now"),
        ranking("Services by GC CPU", measured(answers), _SERVICES, most, "now"),
        ranking("Single dumps", answers.single, _SINGLE, most, "now"),
        ranking("Killed for memory", answers.kills, _KILLS, most),
        ranking("Recommended settings", advised, _SAVINGS, most, is_all),
        ranking("Thrashing or close", answers.thrash, _THRASH, most),
        ranking("GOMEMLIMIT too close to the live heap", answers.limits, _LIMITS, most),
        ranking("Memory", answers.memory, _MEMORY, most),
        ranking("Different from its replicas", answers.outliers, _OUTLIERS, most),
        ranking("Go version (inferred from line format)", answers.versions, _VERSIONS, most),
        ranking("GOGC and GOMEMLIMIT", answers.settings, _SETTINGS, most),
        ranking("Allocates most, by service", answers.sites, _SITES, most),
        ranking("Files with a problem", answers.errors, _ERRORS, most, "now"),
    )
    return [ranking for ranking in made if ranking.rows]


def measured(answers: Answers) -> pl.DataFrame:
    """Returns the services, without those of which there are only single dumps."""
    figures = pl.any_horizontal(
        pl.col("gc_cores", "gc_per_s", "live_heap_p50_mib").is_not_null()
    )
    is_single = pl.col("service").is_in(answers.single["service"].to_list())
    return answers.services.filter(figures | ~is_single)


def processes(answers: Answers, most: int) -> Ranking:
    """Returns the processes in the order in which to look at them."""
    last = " (the last of each file)" * (len(answers.processes) < answers.totals.processes)
    return ranking(f"Processes, the worst first{last}", answers.processes, _PROCESSES, most)


def _history(history: History, most: int) -> Ranking:
    columns = (
        _SERVICE,
        Column("GC cores", _course("gc_cores"), align="l", is_course=True),
        Column("first", _end("gc_cores", 0, cores), align="r"),
        Column("now", _end("gc_cores", -1, cores), align="r"),
        Column("live heap", _course("live_heap_p50_mib"), align="l", is_course=True),
        Column("first", _end("live_heap_p50_mib", 0, live_heap), align="r"),
        Column("now", _end("live_heap_p50_mib", -1, live_heap), align="r"),
    )
    return ranking("Services over all runs", history.services, columns, most, "change")


def _course(name: str) -> Callable[[Mapping[str, Any]], str]:
    """Returns the values of all runs as bars, from 0 to the maximum of the service."""
    return lambda row: sparkline(row[name])


def _end(
    name: str, at: int, written: Callable[[float | None], str]
) -> Callable[[Mapping[str, Any]], str]:
    """Returns the first or the last known value."""

    def text(row: Mapping[str, Any]) -> str:
        known = [value for value in row[name] if value is not None]
        return written(known[at]) if known else NONE

    return text


def _changes(changes: Changes, most: int) -> Iterator[Ranking]:
    yield ranking("Thrashing: new and solved", changes.thrashing, _THRASHING, most, "change")
    for name, (title, written) in _CHANGED.items():
        several = changes.figures.filter(pl.col("figure") == name)
        relative = pl.when(pl.col("before") > 0).then(pl.col("change") / pl.col("before"))
        changed = several.with_columns(relative=relative)
        yield ranking(title, changed, _changed(written), most, "change")


def _changed(written: Callable[[float | None], str]) -> tuple[Column, ...]:
    return (
        _SERVICE,
        _figure("before", "before", written),
        _figure("now", "after", written),
        _figure("change", "relative", lambda part: NONE if part is None else percent(part)),
    )


def name_of(row: Mapping[str, Any]) -> str:
    """Returns the name of a process, with its number if it is not the first of its file."""
    return f"{row['name']}" + (f" #{row['process']}" if row["process"] else "")


_CHANGED: Mapping[str, tuple[str, Callable[[float | None], str]]] = {
    "gc_cores": ("GC cores changed most", cores),
    "gc_cpu_share": ("GC CPU changed most", share),
    "live_heap_p50_mib": ("Live heap changed most", live_heap),
}


def _figure(
    head: str, key: str, written: Callable[[Any], str], align: _Align = "r", most: int = 0
) -> Column:
    """Returns a column of the frame, as a function writes its values."""
    return Column(head, lambda row: written(row[key]), key, align, most)


def _whole(number: float | None) -> str:
    return NONE if number is None else f"{number:,.0f}"


_SERVICE = _figure("Service", "service", str, "l", NAME_CHARS)
_NAME = Column("Process", name_of, "name", "l", NAME_CHARS)
_GC_CORES = _figure("GC cores", "gc_cores", cores)
_GC_CPU = _figure("GC CPU", "gc_cpu_share", share)
_GOGC = _figure(
    "eff. GOGC", "effective_gogc_p50", lambda gogc: NONE if gogc is None else f"{gogc:.0f}"
)
_LIVE = _figure("live heap", "live_heap_p50_mib", live_heap)
_LIVE_MAX = _figure("live max", "live_heap_max_mib", live_heap)
_LIMIT = _figure("limit", "limit_mib", mib)
_RATE = _figure("cycles/s", "gc_per_s", rate)


_TO_DO_CHARS = 23


def _to_do(row: Row) -> str:
    """Returns what to set or do first, and where if only one of several processes needs it."""
    name = row.get("only_in") or ""
    # The service is already named, and pods differ at their ends.
    end = name if len(name) < _TO_DO_CHARS else f"…{name[-_TO_DO_CHARS + 6 :]}"
    return f"{row['to_do']}; only {end}" if name else str(row["to_do"])


_TO_DO = Column("set or do first", _to_do, "", "l", _TO_DO_CHARS, is_wide=True)


def _p99(row: Mapping[str, Any]) -> str:
    """Returns the 99th percentile of the pauses, or the longest one if no more is known."""
    if row["stw_p99_ms"] is None and row["stw_max_ms"] is not None:
        return f"max {ms(row['stw_max_ms'])}"
    return ms(row["stw_p99_ms"])


_P99 = Column("pauses p99", _p99, "stw_p99_ms")
_COUNTS = (
    _figure("processes", "processes", _whole),
    _figure("services", "services", _whole),
    _GC_CORES,
)

_THRASHING = (
    _SERVICE,
    _figure("thrashing", "state", str, "l"),
    _figure("before", "before", _whole),
    _figure("now", "after", _whole),
)
_SERVICES = (
    _SERVICE,
    _figure("files", "files", lambda number: f"{number:,}" if number else ""),
    _GC_CORES,
    _GC_CPU,
    _RATE,
    _figure("assists", "assist_share_of_gc_cpu", share),
    _LIVE,
    _P99,
)
_PROBLEMS = (
    _figure("Service", "service", str, "l", 17),
    _figure("problem", "problem", lambda name: in_words(name).partition(" in ")[0], "l"),
    Column("affects", "{0[affected]:,} of {0[processes]:,}".format, "affected", is_needed=True),
    _figure("max GC CPU", "gc_cpu_share", share),
    _figure("their GC cores", "gc_cores", cores),
    _TO_DO,
)
_SAVINGS = (
    _SERVICE,
    _figure("apply to", "advised", _whole),
    Column("setting", _setting, "saved_cores", "l", 36, is_wide=True),
)


def _state(row: Mapping[str, Any]) -> str:
    if row["state"]:
        return STATES[row["state"]]
    return "killed for memory" if row["oom_kills"] else ""


def _first_sentence(text: str) -> str:
    first, stop, _ = text.partition(". ")
    return f"{first}{stop.strip()}"


_PROCESSES = (
    _NAME,
    Column("state", _state, align="l"),
    _GC_CORES,
    _GC_CPU,
    _LIVE,
    _P99,
    _TO_DO,
    Column(
        "verdict", lambda row: _first_sentence(row["headline"] or ""), align="l", is_wide=True
    ),
)
_LIMITER = {"certain": "active", "likely": "probably active", "unlikely": "not active"}


def _limiter(row: Row) -> str:
    """Returns whether the runtime's CPU limiter was active, or when the limit is reached."""
    hours = row["hours_to_limit"]
    soon = "" if hours is None else f"limit in {duration(max(hours, 0.0) * 3600)}"
    return _LIMITER.get(row["limiter"] or "", soon)


_THRASH = (
    Column("Process", name_of, "name", "l", 17),
    Column("state", lambda row: STATES[row["state"]], align="l"),
    _GC_CPU,
    _GOGC,
    _LIVE_MAX,
    _LIMIT,
    Column("CPU limiter", _limiter, align="l"),
)
_KILLS = (
    _NAME,
    _figure("kills", "oom_kills", _whole),
    _figure("container", "container_limit_mib", mib),
    _figure("RSS max", "rss_max_mib", mib),
)
_LIMITS = (
    _NAME,
    _figure("live heap, max", "live_heap_max_mib", live_heap),
    Column("limit", lambda row: mib(row["limit_mib"]).replace(NONE, "inferred"), "limit_mib"),
    _figure("share", "live_share_of_limit", share),
    _GOGC,
)
_OUTLIERS = (
    _NAME,
    Column("figure", lambda row: OUTLYING[row["figure"]], align="l"),
    Column("value", lambda row: _WRITTEN[row["figure"]](row["value"]), "value"),
    Column("median", lambda row: _WRITTEN[row["figure"]](row["usual"]), "usual"),
    _figure("replicas", "replicas", _whole),
)
_MEMORY = (
    _NAME,
    _figure("held by Go, mean", "go_memory_mib", mib),
    _figure("RSS max", "rss_max_mib", mib),
    _figure("GOMEMLIMIT", "memory_limit_mib", mib),
    _figure("container", "container_limit_mib", mib),
    _figure("GOGC", "gogc", lambda gogc: gogc or NONE),
    _figure("restarts", "restarts", _whole),
)
_SINGLE = (
    _NAME,
    _figure("GC CPU", "since_start_gc_cpu_share", share),
    _figure("cycles", "since_start_cycles", _whole),
    _figure("longest pause", "since_start_stw_max_ms", ms),
    _figure("heap in use", "needed_mib", mib),
    _figure("from the OS", "sys_mib", mib),
    _figure("resident", "rss_max_mib", mib),
)
_VERSIONS = (_figure("Go version", "go", str, "l"), *_COUNTS)
_SETTINGS = (
    _figure("GOGC", "gogc", "GOGC {}".format, "l"),
    _figure("GOMEMLIMIT", "limit", str, "l"),
    *_COUNTS,
)
_SITES = (
    _SERVICE,
    _figure("function", "top_site", str, "l", NAME_CHARS),
    _figure("of allocation", "top_site_share", share),
    _figure("GC cores", "gc_cpu_cores", cores),
)
_ERRORS = (
    _figure("Reason", "kind", str, "l"),
    _figure("for example", "example", str, "l", 16),
    _figure("files", "files", _whole),
    Column("problem", lambda row: row["error"] or "", "error", "l", 20, is_wide=True),
)
