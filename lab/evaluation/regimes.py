"""Compares the settings that a log shows with those that its program ran under.

Everything works on a truth and a table with the columns of `run.regimes()`, whoever made it.
"""

from __future__ import annotations

import csv
import json
import math
import re
import warnings
from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

import polars as pl

import gctrace_analyzer as gca
from lab.own import ROOT
from tests.helpers import archives

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

ABOUT = """Compares the settings that logs show with those that their programs ran under.

The logs are those of tests/corpus and samples/ whose settings are known, with at least 12 cycles.
A regime is one stretch of a program under one setting:

GOGC    within 8 %, or inside an interval that the printed sizes leave; where a limit set every
        goal also "at least" a value that is not above it, or unknown
claim   a limit is claimed where none ever set a goal, or another than that which was not reached
limit   of those in force: within the larger of 12 % and 8 MiB, and inside its interval

With --pieces, pieces of 3 to 30 cycles of the same logs are read too, most of them around a change:
a limit that is claimed must be one that was set, and inside its interval.
"""
FEWEST_CYCLES = 12
"""Cycles of a log, and of a regime in it, that is judged."""

SETTLING_CYCLES = 2
"""After a change: their goals may be of either setting."""

GOGC_WITHIN = 0.08
LIMIT_WITHIN = 0.12
LIMIT_WITHIN_MIB = 8.0
IN_FORCE_SHARE = 0.5
"""Share of the goals that a limit must have set to be in force."""

NEVER_SHARE = 0.02
"""Share of the goals up to which a limit was never reached."""

ROOM = 0.97
"""What a goal may be below GOGC's by rounding before the limit counts as what set it."""


@dataclass(frozen=True, slots=True)
class Truth:
    """What a program ran under from a cycle on; off is infinite."""

    first_gc: int
    gogc: float
    limit_mib: float


@dataclass(frozen=True, slots=True)
class Log:
    """A log with its true settings; the first regime begins with the first cycle."""

    name: str
    path: Path
    truths: tuple[Truth, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one true regime was seen; None where there is nothing to judge.

    Attributes:
        log: its name.
        truth: the settings.
        cycles: of the regime.
        in_force: share of its goals that the limit set.
        gogc: whether GOGC is right.
        false_limit: whether a limit is claimed although none set a goal.
        limit: whether a limit in force has the right value, and `inside` its interval.
        error: of the value of the limit, relative.
        said: what was said instead.
    """

    log: str
    truth: Truth
    cycles: int
    in_force: float
    gogc: bool | None
    false_limit: bool | None
    limit: bool | None
    inside: bool | None
    error: float | None
    said: str


# The logs.


def logs() -> Iterator[Log]:
    """Yields every log of tests/corpus and samples/ whose settings are known."""
    archives.unpack_all()
    corpus = archives.FOLDER
    for name in ("gctrace", "real", "advice", "states", "services", "versions", "procs"):
        yield from runs(corpus / name)
    for name in ("phases", "benchmarks", "scraped"):
        yield from runs(corpus / name)
    yield from _retuned(corpus)
    yield from recorded(corpus / "settings")
    for table in sorted((ROOT / "samples").glob("*/runs.csv")):
        yield from _study(table)


def runs(folder: Path) -> Iterator[Log]:
    """Yields the logs of a manifest with one setting for each run."""
    for run in json.loads((folder / "manifest.json").read_text())["runs"]:
        path = next(iter(sorted((folder / run["dir"]).glob("run.log*"))), None)
        if path:
            env = run.get("env", {})
            truth = Truth(1, number(env.get("GOGC")), mib(env.get("GOMEMLIMIT")))
            truths = _thirds(path, run) if run.get("scenario") == "retune" else (truth,)
            yield Log(f"{folder.name}/{run['dir']}", path, truths)


def _thirds(path: Path, run: dict[str, Any]) -> tuple[Truth, ...]:
    """Returns the settings of a program that changes GOGC after each third of its time."""
    words = run["args"]
    third_s = float(words[words.index("-dur") + 1].removesuffix("s")) / 3
    starts = gca.read(path).cycles["start_s"]
    first = [int((starts < number * third_s).sum()) + 1 for number in range(3)]
    return tuple(
        Truth(cycle, gogc, math.inf) for cycle, gogc in zip(first, (100, 400, 50), strict=True)
    )


def recorded(folder: Path) -> Iterator[Log]:
    """Yields what `lab/record settings` made."""
    for row in json.loads((folder / "manifest.json").read_text())["logs"]:
        truths = (
            Truth(
                regime["first_gc"],
                number(regime["gogc"]),
                number(regime["memory_limit_mib"]),
            )
            for regime in row["regimes"]
        )
        yield Log(f"{folder.name}/{row['log']}", folder / row["log"], tuple(truths))


def _retuned(corpus: Path) -> Iterator[Log]:
    """Yields the logs of a program with a plan, which its note has."""
    rows = re.findall(r"\| `(\S+\.log)` \| `(\S+)` \|", (corpus / "retuned.md").read_text())
    for name, plan in rows:
        path = corpus / "retuned" / name
        starts = gca.read(path).cycles["start_s"].to_numpy()
        at_s, gogc, limit_mib = 0.0, 100.0, math.inf
        truths = []
        for step in plan.split(","):
            seconds, *values = (float(value) for value in step.split(":"))
            gogc = values[0] or gogc
            limit_mib = (values[1:2] or [0])[0] or limit_mib
            truths.append(Truth(int((starts < at_s).sum()) + 1, gogc, limit_mib))
            at_s += seconds
        yield Log(f"retuned/{name}", path, tuple(truths))


def _study(table: Path) -> Iterator[Log]:
    for row in csv.DictReader(table.read_text().splitlines()):
        if row["gogc"]:
            truth = Truth(1, number(row["gogc"]), number(row["memory_limit_mib"] or "off"))
            name = f"{table.parent.name}/{row['log']}"
            yield Log(f"samples/{name}", table.parent / row["log"], (truth,))


def number(value: object) -> float:
    """Returns a setting; off is infinite, and GOGC is 100 where it is not set."""
    return 100.0 if value in (None, "") else math.inf if value == "off" else float(str(value))


def mib(value: object) -> float:
    """Returns a limit as GOMEMLIMIT has it, in MiB."""
    units = {"KiB": 1 / 1024, "MiB": 1, "GiB": 1024}
    text = str(value or "off")
    unit = text[-3:]
    return float(text[:-3]) * units[unit] if unit in units else number(text)


# How a regime is judged.


def judged(log: Log, cycles: pl.DataFrame, regimes: pl.DataFrame) -> Iterator[Verdict]:
    """Yields how each true regime of a log was seen.

    Args:
        log: the truth.
        cycles: of the log's longest process.
        regimes: rows with the columns of `run.regimes()`.
    """
    last = int(cycles["gc_num"].max() or 0)  # type: ignore[arg-type]  # an integer
    ends = [truth.first_gc - 1 for truth in log.truths[1:]] + [last]
    for truth, last_gc in zip(log.truths, ends, strict=True):
        settled = truth.first_gc + (SETTLING_CYCLES if truth.first_gc > 1 else 0)
        own = cycles.filter(pl.col("gc_num").is_between(settled, last_gc))
        if own.height >= FEWEST_CYCLES:
            share = set_by_limit(own, truth)
            row = overlapping(regimes, settled, last_gc)
            yield _verdict(log.name, truth, own.height, share, row)


def set_by_limit(cycles: pl.DataFrame, truth: Truth) -> float:
    """Returns the share of the goals that are below what GOGC alone would set."""
    if math.isinf(truth.limit_mib):
        return 0.0
    if math.isinf(truth.gogc):
        return 1.0
    before = cycles.select(
        pl.col("heap_live_mib", "stacks_mib", "globals_mib").shift().fill_null(0),
        goal="heap_goal_mib",
    ).slice(1)
    roots = pl.sum_horizontal("heap_live_mib", "stacks_mib", "globals_mib")
    by_gogc = pl.max_horizontal(
        truth.gogc / 100 * 4, pl.col("heap_live_mib") + roots * truth.gogc / 100
    )
    lower = before.select(((pl.col("goal") + 1) <= ROOM * by_gogc).mean())
    return float(lower.item() or 0.0)


def overlapping(regimes: pl.DataFrame, first_gc: int, last_gc: int) -> dict[str, Any]:
    """Returns the row that covers most of a stretch; an empty one if none does."""
    shared = pl.min_horizontal("last_gc", pl.lit(last_gc)) - pl.max_horizontal(
        "first_gc", pl.lit(first_gc)
    )
    rows = regimes.with_columns(shared=shared).filter(pl.col("shared") >= 0)
    return rows.sort("shared", descending=True).row(0, named=True) if rows.height else {}


def _verdict(
    name: str, truth: Truth, cycles: int, share: float, row: dict[str, Any]
) -> Verdict:
    get = row.get
    in_force = share >= IN_FORCE_SHARE
    never = share <= NEVER_SHARE
    claimed = get("set_by") == "memory-limit" or (
        get("memory_limit_source") == "inferred" and finite(get("memory_limit_mib"))
    )
    low, value, high = (get(f"memory_limit_mib{end}") for end in ("_low", "", "_high"))
    most = max(LIMIT_WITHIN * truth.limit_mib, LIMIT_WITHIN_MIB)
    within = value is not None and abs(value - truth.limit_mib) <= most
    inside = (low or 0) <= truth.limit_mib <= (math.inf if high is None else high)
    none = math.isinf(truth.limit_mib)
    # Where a GOGC explains the goals as well, only the interval speaks of the limit.
    either = get("set_by") == "either" and low is not None
    return Verdict(
        log=name,
        truth=truth,
        cycles=cycles,
        in_force=share,
        gogc=gogc_right(truth, cycles, share, row),
        false_limit=claimed and (none or not (inside or within)) if never else None,
        limit=(within or (either and inside)) if in_force else None,
        inside=(inside and (finite(value) or either)) if in_force else None,
        error=value / truth.limit_mib - 1 if in_force and value is not None else None,
        said=in_words(row),
    )


def gogc_right(truth: Truth, cycles: int, in_force: float, row: dict[str, Any]) -> bool:
    """Whether GOGC is right, or rightly left open."""
    low, value, high = (row.get(f"gogc_pct{end}") for end in ("_low", "", "_high"))
    if value is not None and (
        value == truth.gogc or abs(value - truth.gogc) <= GOGC_WITHIN * truth.gogc < math.inf
    ):
        return True
    # An interval without an end says nothing, unless a limit hides GOGC.
    bounded = low is not None and high is not None and math.isfinite(high)
    contained = (low or 0) <= truth.gogc <= (math.inf if high is None else high)
    hidden = cycles * (1 - in_force) < FEWEST_CYCLES and in_force > 0
    if (bounded and contained) or (hidden and row.get("set_by") == "either"):
        return True
    open_rightly = (
        hidden or math.isinf(truth.gogc) or (in_force > NEVER_SHARE and low is not None)
    )
    return bool(row) and value is None and contained and open_rightly


def finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def in_words(row: dict[str, Any]) -> str:
    """Returns a row of `run.regimes()` as a few words."""
    if not row:
        return "nothing"

    def one(name: str) -> str:
        low, value, high = (row.get(f"{name}{end}") for end in ("_low", "", "_high"))
        ends = "" if low is None and high is None else f" [{shown(low)}, {shown(high)}]"
        return f"{shown(value)}{ends}"

    return (
        f"{row.get('set_by')}: GOGC {one('gogc_pct')}, limit {one('memory_limit_mib')},"
        f" cycles {row['first_gc']}–{row['last_gc']}"
    )


def shown(value: float | None) -> str:
    return "?" if value is None else "off" if math.isinf(value) else f"{value:.4g}"


# The table.


def verdicts(
    chosen: Sequence[Log], regimes_of: Callable[[Any], pl.DataFrame]
) -> Iterator[Verdict]:
    """Yields how the regimes of the logs were seen."""
    for log in chosen:
        try:
            run = gca.read(log.path)
        except gca.GctraceError:
            continue
        longest = run.processes.sort("cycles")["process"][-1] if run.processes.height else 0
        cycles = run.cycles.filter(
            (pl.col("process") == longest) & pl.col("heap_goal_mib").is_not_null()
        )
        if cycles.height < FEWEST_CYCLES or cycles["heap_live_mib"].null_count():
            continue
        rows = regimes_of(run).filter(pl.col("process") == longest)
        yield from judged(log, cycles, rows)


def table(every: Sequence[Verdict]) -> Iterator[str]:
    """Yields the lines of the table."""
    yield (
        "| logs of | regimes | GOGC right | limit claimed, none set a goal | limits in force"
        " | within | inside |"
    )
    yield "|---|---:|---:|---:|---:|---:|---:|"
    groups = Counter(verdict.log.partition("/")[0] for verdict in every)
    for group in (*sorted(groups), "all"):
        own = [each for each in every if group in ("all", each.log.partition("/")[0])]
        limits = [each for each in own if each.limit is not None]
        cells = (
            group,
            len(own),
            share([each.gogc for each in own]),
            sum(bool(each.false_limit) for each in own),
            len(limits),
            share([each.limit for each in limits]),
            share([each.inside for each in limits]),
        )
        yield f"| {' | '.join(map(str, cells))} |"


def share(values: Sequence[bool | None]) -> str:
    return f"{sum(map(bool, values)) / len(values):.1%}" if values else "–"


def misses(every: Sequence[Verdict]) -> Iterator[str]:
    """Yields a line for each regime that was not seen as it was."""
    for each in every:
        wrong = [
            word
            for word, is_wrong in (
                ("GOGC", each.gogc is False),
                ("claim", each.false_limit is True),
                ("limit", each.limit is False),
                ("interval", each.inside is False),
            )
            if is_wrong
        ]
        if wrong:
            truth = f"GOGC {shown(each.truth.gogc)}, limit {shown(each.truth.limit_mib)}"
            yield (
                f"{'+'.join(wrong):20} {each.log} from cycle {each.truth.first_gc}: {truth}"
                f" (in force {each.in_force:.0%}); said {each.said}"
            )


_LENGTHS = (3, 4, 5, 6, 8, 10, 12, 15, 20, 30)


def pieces(chosen: Sequence[Log], number: int) -> Iterator[bool]:
    """Yields of each limit that a short piece of a log claims whether it was set."""
    random = Random(1)
    changed = [log for log in chosen if len(log.truths) > 1]
    for _ in range(number):
        log = random.choice(random.choice((chosen, changed)))
        text = gca.read(log.path)
        cycles = text.cycles
        lines, numbers = cycles["line_no"], cycles["gc_num"]
        if len(text.processes) != 1 or not lines.count():
            continue
        length, at = random.choice(_LENGTHS), random.randrange(len(cycles))
        if len(log.truths) > 1 and random.random() < _AROUND_CHANGE:
            change = random.choice(log.truths[1:])
            at = int((numbers < change.first_gc).sum()) - random.randint(1, length - 1)
        chosen_cycles = cycles.slice(max(at, 0), length)
        for row in gca.read(chosen_cycles).regimes().iter_rows(named=True):
            if row["set_by"] == "memory-limit" or row["memory_limit_source"] == "inferred":
                yield _was_set(log, chosen_cycles, row)


_AROUND_CHANGE = 0.6
"""Share of the pieces of logs with a change that have it inside."""


def _was_set(log: Log, cycles: pl.DataFrame, row: dict[str, Any]) -> bool:
    """Returns whether the limit of most cycles of a regime is inside its interval."""
    own = cycles.filter(pl.col("gc_num").is_between(row["first_gc"], row["last_gc"]))["gc_num"]
    ends = [*(truth.first_gc - 1 for truth in log.truths[1:]), own.max()]
    counts = [
        int(own.is_between(truth.first_gc, end).sum())
        for truth, end in zip(log.truths, ends, strict=True)
    ]
    limit = log.truths[counts.index(max(counts))].limit_mib
    low, high = row["memory_limit_mib_low"], row["memory_limit_mib_high"]
    return math.isfinite(limit) and (low or 0) <= limit <= (math.inf if high is None else high)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of settings."""
    parser.add_argument("--misses", action="store_true", help="list what is not seen as it was")
    parser.add_argument("--only", default="", help="logs whose name contains this")
    parser.add_argument("--pieces", type=int, default=0, help="number of short pieces to read")


def run(given: argparse.Namespace) -> None:
    """Reads every log and prints the table."""
    warnings.simplefilter("ignore")
    chosen = [log for log in logs() if given.only in log.name]
    every = list(verdicts(chosen, lambda read: read.regimes()))
    print(*table(every), sep="\n")
    errors = sorted(abs(each.error) for each in every if each.error is not None)
    if errors:
        middle, most = errors[len(errors) // 2], errors[int(0.9 * len(errors))]
        print(f"\nvalue of the limit: median error {middle:.1%}, nine of ten below {most:.1%}")
    if given.pieces:
        claimed = list(pieces(chosen, given.pieces))
        print(f"limits that short pieces claim: {len(claimed)}, right {share(claimed)}")
    if given.misses:
        print("", *misses(every), sep="\n")
