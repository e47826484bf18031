"""The services of a fleet that have a problem: the problem, and what to set or do first."""

from __future__ import annotations

import polars as pl

from gctrace_analyzer.analysis.fleet.services import setting_text
from gctrace_analyzer.analysis.rules.registry import RULES
from gctrace_analyzer.units import duration_text

KINDS = ("killed for memory", "thrashing", "close to its limit", "thrashed earlier")
"""The problems caused by memory, the worst first; other problems are named after their finding."""

NO_ADVICE = "read it in full"

COUNTS = ("killed", "thrashing", "near", "thrashed", "other")
"""Columns with the number of processes for each of these problems, and for all others."""


def problems(processes: pl.DataFrame) -> pl.DataFrame:
    """Returns one row per service with a problem, in the order in which to look at them.

    `problem`, `to_do` and the place come from the worst process. `affected` counts the `processes`
    with this problem, and `COUNTS` those with each kind. `gc_cpu_share` is the maximum and
    `gc_cores` the sum over the affected ones. `other_problems` has the worst finding of each
    process counted as `other`. `only_in` names the process if only one has the problem.

    Args:
        processes: the last processes, also killed ones without GC cycles, with `to_do` and the
            columns of `states.with_state`.
    """
    finding = pl.col("findings").list.first()
    names = {id_: rule.name for id_, rule in RULES.items()}
    kind = pl.col("rank").replace_strict(dict(enumerate(KINDS)), default=None)
    problem = kind.fill_null(finding.replace_strict(names, default="unknown"))
    is_bad = pl.col("severity") == "bad"
    is_worst = pl.col("problem") == pl.col("problem").first()
    return (
        processes.with_columns(
            rank=rank(), processes=pl.col("process").is_not_null().sum().over("service")
        )
        .drop_nulls("rank")
        .with_columns(problem=problem)
        .sort(
            "rank",
            is_bad,
            "probable_cores",
            "file",
            descending=[False, True, True, False],
            nulls_last=True,
        )
        .group_by("service", maintain_order=True)
        .agg(
            pl.first(
                "rank", "severity", "problem", "name", "file", "process", "to_do", "action"
            ),
            pl.col("gc_cpu_share").filter(is_worst).max(),
            pl.col("needed_limit_mib").filter(is_worst).max(),
            pl.col("gc_cores").filter(is_worst).sum(),
            pl.col("probable_cores").sum(),
            affected=is_worst.sum(),
            processes=pl.max_horizontal(pl.first("processes"), is_worst.sum()),
            other_problems=pl.col("problem").filter(pl.col("rank") == len(KINDS)),
            **{name: (pl.col("rank") == at).sum() for at, name in enumerate(COUNTS)}
            # The problem that a killed process had before is counted too.
            | {"thrashing": (pl.col("state") == "thrashes").sum()},
        )
        .sort(
            "rank", is_bad, "probable_cores", "service", descending=[False, True, True, False]
        )
        .drop("rank", "severity", "probable_cores")
        .with_columns(only_in=pl.when(pl.col("processes") > 1, affected=1).then("name"))
    )


def rank() -> pl.Expr:
    """Returns the index in `COUNTS` of a process's worst problem; null if it has none."""
    state = pl.col("state")
    conditions = (
        pl.col("oom_kills") > 0,
        state == "thrashes",
        state == "near",
        state == "thrashed",
        pl.col("severity").is_in(("bad", "warn")),
    )
    return pl.coalesce(pl.when(holds).then(at) for at, holds in enumerate(conditions))


def is_ok() -> pl.Expr:
    """Returns whether the report of a process has no problem, and notes no growing live heap.

    A log may be too short to distinguish growth from a start-up.
    """
    notes_growth = pl.col("findings").list.contains("GC021")
    return rank().is_null() & ~notes_growth.fill_null(value=False)


def to_do(setting: pl.Expr, growing: pl.Expr) -> pl.Expr:
    """Returns the setting as text, or else what the report of a problem says first.

    Args:
        setting: the one of the process, or of its service.
        growing: whether the live heap of the process, or of one of the service, grows.
    """
    # A service with gctrace is known to be written in Go.
    is_go = pl.col("process").is_not_null().any().over("service")
    if_go = r"^If .*? is written in Go, set"
    action = pl.when(is_go).then(pl.col("action").str.replace(if_go, "Set")).otherwise("action")
    first_words = action.str.replace_all(r" \([^)]*\)", "").str.extract(
        r"^(.*?)(?:[.:;] |\.?$)"
    )
    # Figures of a server alone give no setting. What a process's own report asks for comes first.
    is_setting = pl.col("action").str.contains(r"GO(GC|MEMLIMIT)=").fill_null(value=True)
    words = pl.when(~is_ok()).then(first_words.fill_null(NO_ADVICE)).otherwise(pl.lit(""))
    hours = pl.col("advice_lasts_h")
    lasts = hours.map_elements(lambda h: f" (lasts {duration_text(3600 * h)})", pl.String)
    is_advised = pl.col("advice_changes") & is_setting
    text = pl.when(is_advised | pl.col("needed_limit_mib").is_not_null()).then(
        setting_text(setting) + pl.when(is_advised).then(lasts).fill_null("")
    )
    raised = pl.when(growing).then(pl.format("{}, and find what grows", text))
    return pl.coalesce(raised, text, words)
