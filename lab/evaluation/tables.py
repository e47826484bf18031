"""The tables about predictions: errors, intervals, verdicts, and what was promised and measured."""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from lab.evaluation import accuracy, predictions
from lab.evaluation.accuracy import quantile
from lab.evaluation.predictions import guide, interval_of, is_gogc100
from lab.own import ROOT
from lab.services.recorder import say
from tests.helpers import archives

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from lab.evaluation.predictions import Pair, Recorded

ABOUT = """Checks predictions against recordings of real Go programs, leaving one program out.

    lab/evaluate predictions                 the recordings in tests/corpus
    lab/evaluate predictions FOLDER...       recordings of `lab/record programs`
    lab/evaluate predictions --from-all      predict from every setting, not only from GOGC=100
    lab/evaluate predictions --metrics       with one MemStats scrape for each log that has one
    lab/evaluate predictions --pairs etcd    every prediction for one program
    lab/evaluate predictions --fit           print constants and interval factors fitted on all
    lab/evaluate predictions --write         put the tables into docs/predictions.md

Each run of a program is predicted from its GOGC=100 run, with constants and interval factors
fitted on the other programs (the factors on predictions from every setting). The tables show the
error of the predictions (median and 90th percentile of |predicted / measured - 1|), how many
results lie inside the 80 % intervals, the median width of the intervals (high / low), and the same
for the formula of the GC guide.
"""
METRICS_ABOUT = """Checks what metrics alone show and predict against gctrace.

    lab/evaluate metrics                     the recordings in tests/corpus
    lab/evaluate metrics FOLDER...           recordings of `lab/record metrics`
    lab/evaluate metrics --write             put the tables into docs/prometheus.md
"""
USUAL = tuple(
    archives.FOLDER / name
    for name in ("services", "real", "benchmarks", "versions", "procs", "advice")
)
SCRAPED = archives.FOLDER / "scraped"
PAGE = ROOT / "docs" / "predictions.md"
METRICS_PAGE = ROOT / "docs" / "prometheus.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
SHOWN = {
    "gc_per_s": "cycles/s",
    "gc_cpu_with_idle_share": "GC CPU with idle",
    "heap_peak_mib": "heap peak",
}
STATES = ("thrash", "partly", "tight", "healthy")
SECTIONS = {
    "Real programs": ("services", "real", "benchmarks"),
    "Real programs on other Go versions": ("versions",),
    "Our own loads": ("advice",),
}
"""The recordings of each section, by the name of their folder."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of predictions."""
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER")
    parser.add_argument("--from-all", action="store_true", help="predict from every setting")
    parser.add_argument(
        "--metrics",
        action="store_true",
        help="read the programs' own metrics as well as the logs",
    )
    parser.add_argument("--crowded", action="store_true", help="count crowded runs as well")
    parser.add_argument("--pairs", metavar="PROGRAM", help="print every prediction for it")
    parser.add_argument("--fit", action="store_true", help="print the fitted constants")
    parser.add_argument("--write", action="store_true", help="write the tables to their page")


def run(args: argparse.Namespace) -> None:
    """Reads the recordings, predicts, and prints the tables."""
    warnings.simplefilter("ignore")
    archives.unpack_all()
    folders = args.folders or [
        folder for folder in USUAL if (folder / "manifest.json").exists()
    ]
    say(f"reading {', '.join(folder.name for folder in folders)} …")
    runs = [
        run
        for folder in folders
        for run in predictions.recordings(folder, metrics=args.metrics)
    ]
    every_pair, factors = predictions.left_out(runs)
    if args.fit:
        fit(runs, every_pair)
        return
    if not args.crowded:
        every_pair = [
            pair for pair in every_pair if not pair.base.crowded and not pair.target.crowded
        ]
    pairs = [pair for pair in every_pair if args.from_all or is_gogc100(pair.base)]
    if args.pairs:
        for pair in pairs:
            if pair.base.program == args.pairs:
                print("\n".join(every(pair, factors)))
        return
    limited = [
        pair
        for pair in every_pair
        if pair.base.baseline.load and pair.base.baseline.load.limited
    ]
    publish("\n".join(tables(runs, pairs, limited, factors)), PAGE, write=args.write)


def add_metrics_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of metrics."""
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER")
    parser.add_argument("--write", action="store_true", help="write the tables to their page")


def run_metrics(args: argparse.Namespace) -> None:
    """Prints the tables of what metrics alone show."""
    warnings.simplefilter("ignore")
    archives.unpack_all()
    text = "\n".join(accuracy.tables(args.folders or [SCRAPED]))
    publish(text, METRICS_PAGE, write=args.write)


def publish(text: str, page: Path, *, write: bool) -> None:
    """Prints the tables, and puts them into their page."""
    print(text)
    if write:
        old = page.read_text()
        head, tail = old.split(BEGIN)[0], old.split(END)[1]
        page.write_text(f"{head}{BEGIN}\n\n{text}\n\n{END}{tail}")


def fit(runs: list[Recorded], found: list[Pair]) -> None:
    """Prints the constants and the factors that all programs together give."""
    constants = predictions.fitted(runs, without="")
    for each in fields(constants):
        print(f"    {each.name}: {getattr(constants, each.name)}")
    for name, factor in predictions.conformal(found, without="").items():
        print(f'    "{name}": {factor:.2f},')


def tables(
    runs: list[Recorded],
    found: list[Pair],
    limited: list[Pair],
    factors: dict[str, dict[str, float]],
) -> Iterator[str]:
    """Yields the lines of all tables; `limited` are predicted from logs under a limit."""
    for title, sources in SECTIONS.items():
        pairs = [pair for pair in found if pair.base.source in sources]
        if not pairs:
            continue
        number = len({pair.base.family for pair in pairs})
        yield f"### {title} ({number} programs)"
        yield ""
        yield from errors(pairs, factors)
        yield ""
        yield from what_goroutines_lose(pairs)
        yield from from_limits(
            [pair for pair in limited if pair.base.source in sources], factors
        )
        yield from repeats([run for run in runs if run.source in sources and not run.crowded])
        yield from verdicts(pairs)
        yield ""
    if any(run.promise for run in runs):
        yield "### Recommended settings that were then run"
        yield ""
        yield from promises(runs)
        yield ""
    if any(run.processors for run in runs):
        yield "### Other numbers of processors"
        yield ""
        yield from processors(runs)
        yield ""


def errors(found: list[Pair], factors: dict[str, dict[str, float]]) -> Iterator[str]:
    """Yields the errors of all programs, of each program, and of the guide's formula."""
    steady = [pair for pair in found if pair.target.state in ("tight", "healthy")]
    yield f"| program | pairs | {' | '.join(SHOWN.values())} |"
    yield f"|---|---:|{'---:|' * len(SHOWN)}"
    by_program: dict[str, list[Pair]] = defaultdict(list)
    for pair in steady:
        by_program[pair.base.program].append(pair)
    rows = [("all", steady), *sorted(by_program.items())]
    for name, pairs in rows:
        cells = [cell(pairs, figure, factors) for figure in SHOWN]
        label = f"**{name}**" if name == "all" else name
        yield f"| {label} | {len(pairs)} | {' | '.join(cells)} |"
        if name == "all":
            cells = [guide_cell(pairs, figure) for figure in SHOWN]
            yield f"| formula of the GC guide | {len(pairs)} | {' | '.join(cells)} |"


def what_goroutines_lose(found: list[Pair]) -> Iterator[str]:
    """Yields the errors of the assists' share of GC CPU, and of the run time of batch programs."""
    steady = [pair for pair in found if pair.target.state in ("tight", "healthy")]
    name = "assist_share_of_gc_cpu"
    points = [abs(pair.predicted(name) - pair.target.measured[name]) for pair in steady]
    times = [
        abs(pair.outcome.row["run_time_ratio"] / run_time_ratio(pair) - 1)
        for pair in steady
        if pair.outcome.row["run_time_ratio"] is not None
    ]
    said = f"Mark assists' share of GC CPU ({len(points)} pairs): {both(points)[:-1]}points"
    if times:
        said += f"; run time of CPU-bound programs ({len(times)} pairs): {both(times)}"
    yield f"{said}."
    yield ""


def run_time_ratio(pair: Pair) -> float:
    """Returns how long the same work took under the other setting, relative to the base.

    Where the work may differ, it is the time of the same allocation.
    """
    if pair.base.work_s and pair.target.work_s:
        return pair.target.work_s / pair.base.work_s
    base, target = pair.base.baseline.load, pair.target.baseline.load
    assert base is not None
    assert target is not None
    return base.gap_mib * base.gc_per_s / (target.gap_mib * target.gc_per_s)


def from_limits(found: list[Pair], factors: dict[str, dict[str, float]]) -> Iterator[str]:
    """Yields the errors of predictions from logs whose goals a memory limit set."""
    steady = [pair for pair in found if pair.target.state in ("tight", "healthy")]
    if steady:
        cells = [f"{title} {cell(steady, name, factors)}" for name, title in SHOWN.items()]
        yield (
            f"Predicted from logs whose goals a memory limit set ({len(steady)} pairs): "
            f"{', '.join(cells)}."
        )
        yield ""


def cell(pairs: list[Pair], figure: str, factors: dict[str, dict[str, float]]) -> str:
    """Returns the errors of one figure, the share inside the intervals, and their width."""
    ends = [interval_of(pair, figure, factors[pair.base.family]) for pair in pairs]
    inside_ = [
        low <= pair.target.measured[figure] <= high
        for pair, (low, high) in zip(pairs, ends, strict=True)
    ]
    width = quantile([high / max(low, 1e-9) for low, high in ends], 0.5)
    found = [relative(pair.predicted(figure), pair.target.measured[figure]) for pair in pairs]
    share = 100 * sum(inside_) / len(inside_)
    return f"{both(found)} ({share:.0f} % inside, ×{width:.2f})"


def guide_cell(pairs: list[Pair], figure: str) -> str:
    """Returns the errors of the guide's formula for one figure."""
    return both([relative(guide(pair)[figure], pair.target.measured[figure]) for pair in pairs])


def relative(predicted: float, measured: float) -> float:
    """Returns the relative error."""
    return abs(predicted / measured - 1) if measured else 0.0


def both(values: list[float]) -> str:
    """Returns median and 90th percentile in percent."""
    return f"{100 * quantile(values, 0.5):.0f} / {100 * quantile(values, 0.9):.0f} %"


def repeats(runs: list[Recorded]) -> Iterator[str]:
    """Yields how much runs of the same setting differ: no prediction can be better."""
    by_setting: dict[object, list[Recorded]] = defaultdict(list)
    for run in runs:
        if run.state in ("tight", "healthy") and run.cycles >= 5:
            by_setting[run.source, run.program, run.setting].append(run)
    same = [
        (one, other)
        for group in by_setting.values()
        for one in group
        for other in group
        if one is not other
    ]
    if same:
        cells = [
            f"{title} "
            + both([relative(one.measured[name], other.measured[name]) for one, other in same])
            for name, title in SHOWN.items()
        ]
        yield f"Runs of the same setting differ by ({len(same) // 2} pairs): {', '.join(cells)}."
        yield ""


def verdicts(found: list[Pair]) -> Iterator[str]:
    """Yields what was predicted for the runs under a limit, by what they did."""
    counted = Counter(
        (pair.target.state, pair.outcome.row["thrash"])
        for pair in found
        if pair.target.setting.limit
    )
    yield "| under a memory limit the program … | certain | risk | no |"
    yield "|---|---:|---:|---:|"
    words = {
        "thrash": "thrashed (limiter active, or goal at the live heap in half of the cycles)",
        "partly": "thrashed at times (in 15 % of the cycles, or effective GOGC below 12)",
        "tight": "had little room (effective GOGC below 30)",
        "healthy": "was healthy",
    }
    for state in STATES:
        cells = [str(counted[state, verdict]) for verdict in ("certain", "risk", "no")]
        yield f"| {words[state]} | {' | '.join(cells)} |"


def promises(runs: list[Recorded]) -> Iterator[str]:
    """Yields what recommended settings were to save, and what they saved."""
    yield (
        "| program | recommended | GC CPU before | promised | measured | heap peak promised | "
        "measured |"
    )
    yield "|---|---|---:|---:|---:|---:|---:|"
    for run in runs:
        promise = run.promise
        if promise is None:
            continue
        base = next(
            each
            for each in runs
            if f"{each.program}/{each.label}" == promise["from"] and each.source == run.source
        )
        gogc = "off" if promise["gogc"] is None else f"{promise['gogc']:g}"
        limit = promise["memory_limit_mib"]
        text = f"GOGC={gogc}" + (f" GOMEMLIMIT={limit:.0f}MiB" if limit else "")
        cpu, peak = "gc_cpu_with_idle_share", "heap_peak_mib"
        before, after = (each.measured[cpu] for each in (base, run))
        low, high = (promise[f"{cpu}{end}"] for end in ("_low", "_high"))
        lowest, highest = (promise[f"{peak}{end}"] for end in ("_low", "_high"))
        kept = "" if low <= after <= high else " ✗"
        fits = "" if lowest <= run.measured[peak] <= highest else " ✗"
        yield (
            f"| {run.program} | {text} | {100 * before:.2g} % | {100 * promise[cpu]:.2g} % "
            f"({100 * low:.2g}–{100 * high:.2g}) | {100 * after:.2g} %{kept} | "
            f"{promise[peak]:.0f} MiB ({lowest:.0f}–{highest:.0f}) | "
            f"{run.measured[peak]:.0f} MiB{fits} |"
        )


def processors(runs: list[Recorded]) -> Iterator[str]:
    """Yields the figures under other numbers of processors, for each program and GOGC."""
    yield "| program | setting | processors | cycles/s | GC CPU, cores | stopped | heap peak |"
    yield "|---|---|---|---:|---:|---:|---:|"
    for run in runs:
        if run.processors:
            m = run.measured
            yield (
                f"| {run.program} | GOGC={run.setting.gogc:g} | {run.processors} | "
                f"{m['gc_per_s']:.3g} | {m['gc_cpu_cores']:.2g} | {100 * m['stw_share']:.2g} % | "
                f"{m['heap_peak_mib']:.0f} MiB |"
            )


def every(pair: Pair, factors: dict[str, dict[str, float]]) -> Iterator[str]:
    """Yields a prediction with its intervals, the measured values and the errors."""
    verdict = f"thrash {pair.outcome.row['thrash']}, it was {pair.target.state}"
    yield f"{pair.base.label} -> {pair.target.label} {pair.target.setting} {verdict}"
    for figure in SHOWN:
        low, high = interval_of(pair, figure, factors[pair.base.family])
        value, real = pair.predicted(figure), pair.target.measured[figure]
        yield (
            f"  {figure:<24}{value:8.3g} ({low:.3g} to {high:.3g}), measured {real:.3g}: "
            f"{100 * (value / real - 1):+.0f} %"
        )
