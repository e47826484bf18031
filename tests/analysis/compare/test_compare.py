"""Comparisons: repeated runs do not differ, and changed settings do."""

from __future__ import annotations

import html
import json
import math
import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer import schema
from gctrace_analyzer.analysis.compare.change import CONTENDED, FEW_CYCLES, OTHER_PROCS
from gctrace_analyzer.analysis.compare.compare import (
    PRIOR_RUNS,
    Paired,
    _above_shorter_peaks,
    _estimates,
    compare,
)
from gctrace_analyzer.analysis.compare.metrics import (
    METRICS,
    NAMED,
    PER_RUN,
    QUANTILES,
)
from gctrace_analyzer.analysis.pauses import LatePauses
from gctrace_analyzer.cli import main
from gctrace_analyzer.comparison import Comparison, side_of
from gctrace_analyzer.present.sections import comparison
from gctrace_analyzer.testing import read_text
from tests.conftest import CORPUS, SAMPLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ADVICE = CORPUS / "advice"
LOADS = ("svc-a", "svc-b", "svc-big", "svc-c", "svc-noptr", "svc-small", "burst", "batch-c")
STEADY = "samples/steady-go1.26.log"
DOUBLED = "samples/steady-gogc200-go1.26.log"


def log(load: str, setting: str) -> str:
    return str(ADVICE / load / setting / "run.log")


def repeats() -> Iterator[list[gca.Run]]:
    """The runs of one program under one setting."""
    for load, setting in (
        ("noise-a", "gogc50"),
        ("noise-a", "gogc100"),
        ("noise-a", "gogc400"),
        ("noise-b", "off-limit62"),
        ("noise-batch", "gogc100"),
    ):
        yield [gca.read(log(load, f"{setting}-r{number}")) for number in range(5)]


def significant(pairs: Sequence[Comparison]) -> list[bool]:
    return [
        not low <= 0 <= high
        for found in pairs
        for low, high in found.frame.select("delta_low", "delta_high").drop_nulls().iter_rows()
    ]


def test_repeated_runs_differ_in_at_most_one_of_twenty_figures() -> None:
    for runs in repeats():
        sides = [side_of(f"run {number}", [run]) for number, run in enumerate(runs)]
        found = significant([Comparison(pair) for pair in combinations(sides, 2)])
        assert len(found) >= 140
        assert sum(found) < len(found) / 20


def test_repeats_of_the_same_program_are_the_same() -> None:
    for runs in repeats():
        found = significant([gca.compare(runs[:2], runs[2:]), gca.compare(runs[3:], runs[:3])])
        assert sum(found) < len(found) / 20


@pytest.mark.parametrize("load", LOADS)
def test_another_gogc_is_a_significant_difference(load: str) -> None:
    found = gca.compare(log(load, "gogc100"), log(load, "gogc200"))
    rows = found.rows()
    assert rows["gc_per_s"]["verdict"] == "better"
    assert rows["heap_peak_mib"]["verdict"] == "worse"
    assert found.comparable
    assert "GOGC 100 → 200" in " ".join(str(found).split())
    back = gca.compare(log(load, "gogc200"), log(load, "gogc100")).rows()
    assert back["gc_per_s"]["verdict"] == "worse"
    assert back["heap_peak_mib"]["verdict"] == "better"


def test_figures_are_those_of_the_report() -> None:
    paths = log("svc-a", "gogc100"), log("svc-b", "off-limit89"), "samples/restart-go1.26.log"
    runs = [gca.read(path) for path in paths if Path(path).exists()]
    for before, after in combinations(runs, 2):
        frame = gca.compare(before, after).frame
        for side, run in (("before", before), ("after", after)):
            summary = run.summary().to_dict()
            phases = {row["phase"]: row for row in run.pauses().iter_rows(named=True)}
            for metric, value in frame.select("metric", side).iter_rows():
                if metric in summary:
                    assert value == summary[metric], metric
                    continue
                phase = "sweep termination" if "sweep" in metric else "mark termination"
                assert value == phases[phase][metric[-6:]], metric


def test_columns_are_those_of_the_schema() -> None:
    found = gca.compare(STEADY, DOUBLED)
    assert found.frame.schema == schema.polars_schema("comparison")
    assert found.frame["metric"].to_list() == [metric.name for metric in METRICS]
    several = gca.compare({"100": STEADY, "200": DOUBLED, "again": STEADY})
    assert several.frame.schema == schema.polars_schema("comparison")
    assert several.frame["side"].unique(maintain_order=True).to_list() == ["200", "again"]
    assert several["gc_per_s", "200"] == found["gc_per_s"]
    assert several["gc_per_s"].delta == 0


def test_an_interval_contains_its_change_and_agrees_with_its_verdict() -> None:
    for setting in ("gogc50", "gogc200", "gogc400"):
        frame = gca.compare(log("svc-a", "gogc100"), log("svc-a", setting)).frame
        judged = frame.drop_nulls("delta_low")
        assert judged.select(
            (pl.col("after") - pl.col("before") - pl.col("delta")).abs().max().lt(1e-9)
        ).item()
        assert judged.select(pl.col("delta").is_between("delta_low", "delta_high").all()).item()
        across = pl.col("delta_low").le(0) & pl.col("delta_high").ge(0)
        assert judged.select((across == (pl.col("verdict") == "~")).all()).item()


def test_more_runs_give_narrower_intervals() -> None:
    def width(before: list[str], after: list[str]) -> float:
        row = gca.compare(before, after).rows()["gc_cpu_share"]
        return float(row["delta_high"] - row["delta_low"])

    low, high = (
        [log("noise-a", f"{setting}-r{number}") for number in range(4)]
        for setting in ("gogc50", "gogc100")
    )
    assert width(low, high) < width(low[:2], high[:2]) < width(low[:1], high[:1])


def test_predicted_and_measured_values_are_shown_together() -> None:
    before, after = log("svc-a", "gogc100"), log("svc-a", "gogc200")
    found = gca.compare(before, after)
    row = found.rows()["gc_cpu_share"]
    predicted = gca.read(before).whatif(gogc=200).row(0, named=True)
    assert row["expected"] == predicted["gc_cpu_share"]
    assert row["expected_low"] <= row["measured"] <= row["expected_high"]
    late = gca.read(after).between("0.5s").summary()
    assert row["measured"] == pytest.approx(late.gc_cpu_share)
    lines = [" ".join(line.split()) for line in str(found).splitlines()]
    assert any(re.fullmatch(r"GC CPU .* (held|undecided)", line) for line in lines)


def test_no_expectation_where_nothing_was_set() -> None:
    found = gca.compare(log("noise-a", "gogc100-r0"), log("noise-a", "gogc100-r1"))
    assert found.frame["expected"].is_null().all()
    assert found.no_expectation is None


def test_a_limit_is_predicted_for_as_it_is_given_or_as_the_goals_show_it() -> None:
    limited = log("noise-b", "off-limit62-r0")
    found = gca.compare(log("svc-a", "gogc100"), limited)
    assert found.frame["expected"].drop_nulls().len()
    given = gca.read(limited, gogc="off", memory_limit="62MiB")
    expected = gca.compare(gca.read(log("svc-a", "gogc100"), memory_limit="off"), given)
    assert expected.frame["expected"].drop_nulls().len()
    assert "GOMEMLIMIT off → 62 MiB" in " ".join(str(expected).split())


def test_a_range_of_gc_cpu_is_named_because_one_value_of_it_is_compared() -> None:
    text = " ".join(str(gca.compare(STEADY, DOUBLED)).split())
    assert (
        "GC CPU is compared by one value of each run. The reports have a range: "
        "steady-go1.26.log 3.5–3.7 %, steady-gogc200-go1.26.log 1.4–1.5 %." in text
    )
    assert "1.4–1.5 %" in str(gca.read(DOUBLED).summary())
    single = log("svc-b", "gogc100")
    assert "one value" not in str(gca.compare(single, single))


def test_what_runs_of_a_side_have_in_common_is_said_once() -> None:
    tight, roomy = (
        [f"samples/limits/{size}-mib-{number}.log.gz" for number in (1, 2, 3)]
        for size in (88, 240)
    )
    text = " ".join(str(gca.compare({"tight": tight, "roomy": roomy})).split())
    assert text.count("tight: GOMEMLIMIT is too low for the live heap") == 1
    assert "of the CPU. Likewise in 2 other runs." in text
    several = gca.compare({"roomy": roomy, "tight": tight, "same": tight})
    assert str(several).count("Likewise in 2 other runs") == 2


def test_the_range_of_gc_cpu_is_over_all_runs_of_a_side() -> None:
    """A run with a single value was left out, so that the compared one was not in the range."""
    costly = log("svc-b", "gogc50")
    single = gca.read(costly).analysis.summary
    assert single.gc_cpu_range is None
    assert single.gc_cpu_share is not None
    text = " ".join(str(gca.compare(STEADY, [DOUBLED, costly])).split())
    (most,) = re.findall(r"a range: .* after 1\.4–(\S+) %", text)
    assert float(most) == pytest.approx(100 * single.gc_cpu_share, rel=0.01)


def test_a_few_rounds_that_other_work_disturbed_show_no_difference_of_times() -> None:
    before, after = (side_of("", [gca.read(path)]).measured for path in (STEADY, DOUBLED))
    for rounds, is_disturbed in ((2, True), (2, False), (5, True)):
        paired = Paired([*zip(before, after, strict=True)] * rounds, 0.05, is_disturbed)
        found = compare(before * rounds, after * rounds, paired=paired)
        is_judged = (rounds, is_disturbed) != (2, True)
        for metric in ("gc_cpu_share", "stw_p50_ms", "stw_share"):
            assert (found[metric].verdict is not None) == is_judged
            assert (found[metric].no_verdict_because == CONTENDED) != is_judged
        # Other work changes neither cycles nor sizes.
        assert found["heap_peak_mib"].verdict == "worse"
        assert found["gc_per_s"].verdict == "better"


def test_a_different_load_is_reported_first_with_its_effect() -> None:
    found = gca.compare(log("svc-a", "gogc100"), log("svc-big", "gogc100"))
    assert not found.comparable
    assert found.differences[0].what == "load"
    text = " ".join(str(found).split())
    assert text.index("The allocation rate differs") < text.index("GC CPU ")
    row = found.rows()["gc_per_s"]
    rates = found.rows()["alloc_mib_per_s"]
    assert row["before"] + row["by_load"] == pytest.approx(
        row["before"] * rates["after"] / rates["before"]
    )


def test_more_allocation_is_no_verdict_as_a_load_and_better_as_a_result() -> None:
    less, more = (
        side_of(name, [gca.read(log(name, "gogc100"))]).measured
        for name in ("svc-a", "svc-big")
    )
    for given, runs, verdict in ((True, 1, None), (False, 1, None), (False, 2, "better")):
        change = compare(less * runs, more * runs, load_is_given=given)["alloc_mib_per_s"]
        assert change.is_significant
        assert change.verdict == verdict


def test_a_different_go_is_reported_first() -> None:
    found = gca.compare("samples/steady-go1.9.log", STEADY)
    assert [each.what for each in found.differences if each.kind == "incomparable"] == [
        "go_version"
    ]
    assert "The Go version differs" in " ".join(str(found).split())


def test_a_different_gomaxprocs_is_reported_first(tmp_path: Path) -> None:
    path = tmp_path / "more.log"
    path.write_text(Path(STEADY).read_text().replace(" 2 P\n", " 4 P\n"))
    found = gca.compare(STEADY, path)
    assert "GOMAXPROCS differs (2 → 4)" in " ".join(str(found).split())
    assert not found.comparable
    for name in ("gc_cpu_share", "gc_cpu_with_idle_share", "assist_share_of_cpu"):
        assert (found[name].verdict, found[name].is_tested) == (None, False)
        assert found[name].no_verdict_because == OTHER_PROCS
    assert found["assist_share_of_gc_cpu"].verdict


def test_few_cycles_are_shown_without_a_verdict(tmp_path: Path) -> None:
    lines = Path(STEADY).read_text().splitlines()
    path = tmp_path / "short.log"
    path.write_text("\n".join([line for line in lines if line.startswith("gc ")][:3]) + "\n")
    found = gca.compare(STEADY, path)
    assert found.frame["verdict"].is_null().all()
    assert found["gc_per_s"].no_verdict_because == FEW_CYCLES
    assert found.frame["delta_low"].is_null().all()
    assert found.rows()["gc_per_s"]["after"] is not None
    assert "are compared from 5 on" in " ".join(str(found).split())
    assert found.check("gc_cpu_share>+10%")[0].held is not False


@pytest.mark.parametrize("in_rounds", [False, True])
def test_runs_of_a_few_cycles_have_no_verdict_but_that_of_their_number(
    in_rounds: bool,
) -> None:
    """The same work seems to need less memory with fewer cycles: the log ends with the last."""
    sides = []
    for gogc, cycles in ((100, 4), (400, 1)):
        lines = [
            f"gc {n} @{n * 0.05:.3f}s 4%: 0.02+1.0+0.02 ms clock, 0.04+0.1/1.0/0+0.04 ms cpu, "
            f"{4 * n}->{4 * n + 2}->{2 * n} MB, {2 * n * (1 + gogc // 100)} MB goal, 2 P\n"
            for n in range(1, cycles + 1)
        ]
        run = read_text("".join(lines))
        sides.append(list(side_of(f"{gogc}", [run] * 5).measured))
    before, after = sides
    pairs = [*zip(before, after, strict=True)]
    paired = Paired(pairs, 0.05) if in_rounds else None
    found = compare(before, after, paired=paired, metrics=(*METRICS, *PER_RUN))
    judged = {name for name, change in found.items() if change.verdict or change.is_tested}
    assert judged == {"cycles_per_run"}
    for name in ("heap_peak_mib", "alloc_mib_per_run"):
        assert found[name].no_verdict_because == FEW_CYCLES


def test_a_run_without_a_cycle_is_refused() -> None:
    with pytest.raises(gca.NoDataError, match="no GC cycle to compare"):
        gca.compare(STEADY, "samples/gomemlimit-paper.txt")


def test_a_gain_is_named_with_the_cost_that_was_not_judged() -> None:
    found = gca.compare(log("noise-a", "gogc100-r0"), log("noise-a", "gogc50-r0"))
    pair = found.pairs[0]
    changes = {name: replace(change, verdict=None) for name, change in pair.changes.items()}
    changes["heap_peak_mib"] = replace(pair.changes["heap_peak_mib"], verdict="better")
    said = comparison.verdict([replace(pair, changes=changes)])
    assert re.search(r"less heap, but GC CPU \S+ % → \S+ % \(not judged\)", said)
    # Back: the other way round, the gain is named with the loss.
    for name in ("gc_cpu_share", "stw_p99_ms"):
        old = changes[name]
        changes[name] = replace(
            old, before=old.after, after=old.before, delta=-(old.delta or 0.0)
        )
    changes["heap_peak_mib"] = replace(changes["heap_peak_mib"], verdict="worse")
    said = comparison.verdict([replace(pair, changes=changes)])
    assert re.search(r"heap, but .*GC CPU \S+ % → \S+ % \(not judged\)", said)


def test_a_gain_with_a_loss_is_named_with_a_further_cost_that_was_not_judged() -> None:
    found = gca.compare(log("noise-a", "gogc50-r0"), log("noise-a", "gogc100-r0"))
    pair = found.pairs[0]
    changes = dict(pair.changes)
    for name, verdict, times in (
        ("gc_cpu_share", "better", 0.5),
        ("heap_peak_mib", "worse", 3.0),
        ("stw_p99_ms", None, 4.0),
    ):
        before = changes[name].before or 1.0
        changes[name] = replace(
            changes[name], after=times * before, delta=(times - 1) * before, verdict=verdict
        )
    said = comparison.verdict([replace(pair, changes=changes)])
    assert re.search(r"less GC CPU.* for 3 times the heap peak, but p99 .*\(not judged\)", said)
    # What was judged, or may be chance, is no further cost of a change with a known one.
    p99 = changes["stw_p99_ms"]
    within = {"after": 1.5 * (p99.before or 0), "delta": 0.5 * (p99.before or 0)}
    for other in ({"verdict": "~"}, {"no_verdict_because": CONTENDED}, within):
        changes["stw_p99_ms"] = replace(p99, **other)
        assert "p99" not in comparison.verdict([replace(pair, changes=changes)])


def test_the_p99_of_few_pauses_is_no_price_of_a_gain() -> None:
    change = SAMPLES / "change"
    said = gca.compare(change / "before-1.log.gz", change / "after-1.log.gz").verdict
    assert said.startswith("54 % less GC CPU")
    assert "p99" not in said


def test_the_cause_of_a_worse_side_is_that_of_its_own_report() -> None:
    """Frequent cycles are the worst finding; a tight limit, which is only a warning, causes them."""
    found = gca.compare(
        "tests/data/runs/no-limit.log.gz", "tests/data/runs/inferred-limit.log.gz"
    )
    said = " ".join(str(found).split())
    assert "inferred-limit.log.gz: GOMEMLIMIT leaves the live heap only as much room" in said
    assert "GC cycles follow each other closely" not in said
    assert "Changed GOMEMLIMIT without effect → 22–43 MiB (inferred)" in said


def test_a_single_dump_needs_a_second_one_to_be_compared() -> None:
    with pytest.raises(gca.NoDataError, match="two dumps or more, and their times"):
        gca.compare(STEADY, "samples/gomemlimit-paper.txt")


def test_each_of_several_sides_is_compared_with_the_first() -> None:
    logs = {
        name: [log("noise-a", f"{name}-r{number}") for number in range(3)]
        for name in ("gogc100", "gogc50", "gogc400")
    }
    several = gca.compare(logs)
    for side in ("gogc50", "gogc400"):
        alone = gca.compare(logs["gogc100"], logs[side])
        assert several.rows(side)["gc_cpu_share"]["delta"] == alone["gc_cpu_share"].delta
    assert several["gc_cpu_share", "gogc400"].verdict == "better"
    assert several["heap_peak_mib", "gogc400"].verdict == "worse"
    assert several["heap_peak_mib", "gogc50"].verdict == "better"
    text = str(several)
    assert max(map(len, text.splitlines())) <= 80
    assert "gogc400 has the least GC CPU" in text
    assert "gogc50 has the smallest heap peak" in text
    assert len([line for line in text.splitlines() if line.startswith("  gogc")]) == 6
    (check, _) = several.check("gc_cpu_share>+10%")
    assert check.text == "gogc50: gc_cpu_share>+10%"
    assert check.held


def test_every_line_fits_a_terminal() -> None:
    for before, after in (("gogc100", "gogc200"), ("gogc50", "off-limit64")):
        found = gca.compare(log("svc-a", before), log("svc-a", after))
        assert max(map(len, str(found).splitlines())) <= 80
    far = gca.compare(log("svc-a", "gogc100"), "samples/leak-into-limit-go1.24.log")
    assert max(map(len, str(far).splitlines())) <= 80


def test_the_names_of_two_sides_are_kept_and_files_are_before_and_after() -> None:
    old, new = (f"samples/{name}-go1.26.log" for name in ("steady", "steady-gogc200"))
    named = str(gca.compare({"old": old, "new": new}))
    assert {"old", "new"} <= set(named.split())
    assert not {"before", "after"} & set(named.partition("Note")[0].split())
    assert 'the "old" run' in named
    assert {"before", "after"} <= set(str(gca.compare(old, new)).split())


def test_a_frame_of_cycles_is_a_side_and_a_notebook_shows_it() -> None:
    run = gca.read(STEADY)
    found = gca.compare(gca.from_frame(run.to_pandas()), run)
    assert "before     a frame of cycles" in str(found)
    assert repr(found) == "<Comparison of before and after: 13 not significant>"
    assert "<table" in found._repr_html_()
    assert f"<b>{comparison.verdict(found.pairs)}</b>" in html.unescape(found._repr_html_())
    several = gca.compare({"one": run, "<b>two": DOUBLED, "three": run})
    assert "&lt;b&gt;two" in several._repr_html_()
    assert repr(several).startswith("<Comparison of one, <b>two and three: ")
    assert found.to_pandas()["metric"].tolist() == found.frame["metric"].to_list()


def test_quantiles_are_of_metrics_that_exist() -> None:
    names = {metric.name for metric in METRICS}
    assert set(QUANTILES) <= names


class TestCommand:
    def test_json_is_the_library_s(self, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
        assert main(["compare", STEADY, DOUBLED, "-f", "json"]) == 0
        printed = json.loads(capsysbinary.readouterr().out)
        found = gca.compare(STEADY, DOUBLED)
        assert printed == json.loads(found.to_json())
        assert printed["metrics"][0]["before"] == pytest.approx(
            gca.read(STEADY).summary().gc_cpu_share
        )

    def test_several_runs_a_side(self, capsys: pytest.CaptureFixture[str]) -> None:
        sides = [
            f"{name}=" + ",".join(log("noise-a", f"{gogc}-r{number}") for number in (0, 1, 2))
            for name, gogc in (("before", "gogc100"), ("after", "gogc50"))
        ]
        assert main(["compare", *sides]) == 0
        out = capsys.readouterr().out
        assert "3 runs" in out
        assert "GOGC 100 → 50" in out

    def test_a_pattern_is_a_side(self, capsys: pytest.CaptureFixture[str]) -> None:
        several = [
            f"{name}={ADVICE}/noise-a/gogc{name}-r*/run.log" for name in ("50", "100", "400")
        ]
        assert main(["compare", *several]) == 0
        out = " ".join(capsys.readouterr().out.split())
        assert out.count("5 runs") == 3
        assert "~: not significant" in out

    def test_settings_of_each_side(self, capsys: pytest.CaptureFixture[str]) -> None:
        logs = log("svc-a", "gogc100"), log("svc-a", "off-limit85")
        words = ["compare", *logs, "--gogc", "100,off", "--memory-limit", "off,85MiB"]
        assert main(words) == 0
        out = capsys.readouterr().out
        assert "GOGC 100 → off, GOMEMLIMIT off → 85 MiB" in out
        assert "Prediction" in out

    def test_every_suffix_is_written(self, tmp_path: Path) -> None:
        kinds = ("txt", "md", "json", "csv", "parquet", "html")
        paths = [tmp_path / f"comparison.{kind}" for kind in kinds]
        words = [word for path in paths for word in ("-o", str(path))]
        assert main(["compare", STEADY, DOUBLED, *words]) == 0
        found = gca.compare(STEADY, DOUBLED)
        assert paths[1].read_text() == found.to_markdown()
        assert pl.read_parquet(paths[4]).equals(found.frame)
        assert pl.read_csv(paths[3])["metric"].to_list() == found.frame["metric"].to_list()

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            ([STEADY], "Expected two sides or more"),
            ([f"a={STEADY}", f"a={DOUBLED}"], "a side with another name"),
            ([STEADY, "x="], "NAME=LOG"),
            ([STEADY, DOUBLED, "--gogc", "1,2,3"], "one value, or 2"),
            ([STEADY, DOUBLED, "-o", "x.png"], "a file name ending in"),
            ([STEADY, DOUBLED, "--fail-on", "p99>+3%"], "a figure of the summary: "),
            ([STEADY, DOUBLED, "--fail-on", "stw_p99_ms:bad"], "a verdict: better"),
        ],
    )
    def test_wrong_usage(
        self, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["compare", *words]) == 2
        assert said in " ".join(capsys.readouterr().err.split())

    def test_a_misspelt_verb_gets_a_suggestion(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["compere", STEADY]) == 2
        assert "Did you mean compare?" in capsys.readouterr().err


def test_the_verdict_is_one_sentence() -> None:
    found = gca.compare(
        [log("noise-a", f"gogc50-r{number}") for number in range(4)],
        [log("noise-a", f"gogc100-r{number}") for number in range(4)],
    )
    said = found.to_dict()["verdict"]
    assert re.fullmatch(r"\d+ % less GC CPU.* for \d+ % more heap; .+\.", said)
    same = gca.compare(log("noise-a", "gogc50-r0"), log("noise-a", "gogc50-r1"))
    assert same.to_dict()["verdict"].startswith("No significant change")
    assert str(same).count("No significant change") == 1


@pytest.mark.parametrize("begin_s", [0.0, 101.0])
def test_a_longer_run_has_more_time_to_reach_its_peak(begin_s: float) -> None:
    points = pl.DataFrame({
        "start_s": [begin_s + n for n in range(6)],
        "begin_s": [begin_s + n for n in range(6)],
        "heap_peak_mib": [10.0, 40.0, 20.0, 30.0, 160.0, 20.0],
    })  # fmt: skip
    run = SimpleNamespace(spans=points)
    scaled = NAMED["heap_peak_mib"].scaled
    # The peaks of two parts of three seconds are 40 and 160 MiB.
    expected = (scaled(160) - scaled(40)) / 2
    assert _above_shorter_peaks(run, 3.0) == pytest.approx(expected)  # type: ignore[arg-type]
    assert _above_shorter_peaks(run, 6.0) == 0  # type: ignore[arg-type]


def test_the_estimates_of_repeated_runs_by_hand() -> None:
    metric = NAMED["gc_per_s"]

    def run(value: float | None, spread: float, *, by_limit: bool = False) -> SimpleNamespace:
        return SimpleNamespace(
            values={metric.name: value},
            spread={metric.name: spread},
            by_limit=by_limit,
            late=LatePauses(0, 0),
        )

    sides = [
        [run(10.0, 0.03), run(11.0, 0.05), run(13.0, 0.04, by_limit=True), run(None, 0.0)],
        [run(20.0, 0.02)],
    ]
    (was, now), dof = _estimates(metric, sides)  # type: ignore[arg-type]
    assert was is not None
    assert now is not None
    y = [math.log(value + metric.floor) for value in (10.0, 11.0, 13.0)]
    mean = sum(y) / 3
    # Within the runs, and between runs: 0.04, under a memory limit 0.17.
    variances = [0.04**2 + 0.03**2, 0.04**2 + 0.05**2, 0.17**2 + 0.04**2]
    apart = sum((a - mean) ** 2 / b for a, b in zip(y, variances, strict=True))
    scale = (PRIOR_RUNS + apart) / (PRIOR_RUNS + 2)
    assert dof == PRIOR_RUNS + 2
    assert (was.runs, now.runs) == (3, 1)
    assert was.scaled == pytest.approx(mean)
    assert was.value == pytest.approx(math.exp(mean) - metric.floor)
    assert was.variance == pytest.approx(scale * sum(variances) / 9)
    assert now.variance == pytest.approx(scale * (0.04**2 + 0.02**2))
    (nothing, _), _ = _estimates(metric, [[run(None, 0.0)], [run(20.0, 0.02)]])  # type: ignore[list-item]
    assert nothing is None


def test_a_change_shows_what_matters_in_few_digits() -> None:
    names = ("samples/steady-go1.26.log", "samples/steady-gogc200-go1.26.log")
    found = gca.compare(*names)["heap_peak_mib"]
    assert repr(found).startswith("<Change of heap_peak_mib: 55.0 → 73.0, +32.7 % (")
    assert repr(found).endswith(" %), worse>")


def test_idle_marking_alone_makes_nothing_worse(tmp_path: Path) -> None:
    # One stall makes most of GC CPU after; with idle marking, each cycle costs as much as it.
    before = """
gc 1 @0.004s 8%: 0.99+7.1+0.21 ms clock, 1.9+0.35/0.65/0+0.43 ms cpu, 3->7->6 MB, 4 MB goal
gc 2 @0.026s 11%: 0.14+9.8+0.035 ms clock, 0.29+0.72/5.5/0.29+0.070 ms cpu, 11->13->11 MB, 13 MB goal
gc 3 @0.052s 8%: 0.11+15+0.060 ms clock, 0.22+0/3.3/0.13+0.12 ms cpu, 20->20->18 MB, 23 MB goal
gc 4 @0.250s 2%: 0.036+10+0.074 ms clock, 0.072+0.065/0.030/4.2+0.14 ms cpu, 32->32->22 MB, 37 MB goal
gc 5 @0.309s 2%: 0.10+19+0.007 ms clock, 0.20+3.5/2.8/0.089+0.015 ms cpu, 38->48->32 MB, 45 MB goal
gc 6 @0.352s 3%: 0.11+13+0.049 ms clock, 0.23+1.0/2.1/5.2+0.098 ms cpu, 55->60->28 MB, 64 MB goal
gc 7 @0.416s 2%: 0.042+159+0.007 ms clock, 0.084+0.063/0.81/13+0.015 ms cpu, 47->47->22 MB, 56 MB goal
gc 8 @0.800s 2%: 4.0+24+0.055 ms clock, 8.1+2.8/8.1/0+0.11 ms cpu, 38->45->29 MB, 45 MB goal
gc 9 @0.849s 2%: 0.18+33+0.063 ms clock, 0.36+1.2/2.4/5.7+0.12 ms cpu, 50->53->26 MB, 58 MB goal
gc 10 @0.928s 2%: 0.11+18+0.69 ms clock, 0.22+0.95/3.0/1.1+1.3 ms cpu, 44->48->26 MB, 52 MB goal
gc 11 @0.993s 2%: 0.39+33+0.091 ms clock, 0.79+2.0/6.3/0.12+0.18 ms cpu, 45->50->28 MB, 52 MB goal
gc 12 @1.079s 2%: 0.14+23+0.21 ms clock, 0.28+0.57/8.6/0.14+0.42 ms cpu, 48->53->27 MB, 57 MB goal
gc 13 @1.146s 2%: 0.13+19+0.068 ms clock, 0.26+1.4/4.9/1.6+0.13 ms cpu, 46->51->27 MB, 54 MB goal
"""
    after = """
gc 1 @0.004s 5%: 0.078+5.3+0.006 ms clock, 0.15+0.45/0.51/0+0.013 ms cpu, 3->7->6 MB, 4 MB goal
gc 2 @0.014s 16%: 0.10+216+111 ms clock, 0.20+0.31/1.5/0.12+223 ms cpu, 11->17->15 MB, 14 MB goal
gc 3 @0.383s 14%: 2.7+34+0.025 ms clock, 5.4+0.007/4.6/29+0.050 ms cpu, 26->29->25 MB, 30 MB goal
gc 4 @0.473s 12%: 0.85+35+0.055 ms clock, 1.7+0.98/9.8/19+0.11 ms cpu, 43->47->27 MB, 50 MB goal
gc 5 @0.530s 12%: 0.13+20+0.029 ms clock, 0.26+1.3/8.0/8.3+0.059 ms cpu, 46->50->26 MB, 55 MB goal
"""
    paths = [tmp_path / "before.log", tmp_path / "after.log"]
    for path, log in zip(paths, (before, after), strict=True):
        path.write_text(
            log.lstrip().replace(" goal\n", " goal, 0 MB stacks, 0 MB globals, 2 P\n")
        )
    changes = gca.compare(*map(str, paths)).pairs[0].changes
    assert changes["gc_cpu_share"].verdict == "~"
    assert changes["gc_cpu_with_idle_share"].verdict not in ("better", "worse")


def test_shorter_runs_of_a_bound_program_may_do_the_same_work(tmp_path: Path) -> None:
    """Of one run a side nobody knows: a rate is no result."""
    paths = []
    for name, cycles, mib in (("before", 120, 8), ("after", 40, 12)):
        lines = []
        for n in range(1, cycles + 1):
            # Marking takes most of the time, and the program allocates as fast meanwhile.
            begin_s = n * 0.010
            lines.append(
                f"gc {n} @{begin_s:.3f}s 40%: 0.01+9.0+0.01 ms clock, 0.04+4.0/9.0/0+0.04 ms cpu, "
                f"{10 + mib // 4}->{10 + mib}->10 MB, 20 MB goal, 0 MB stacks, 0 MB globals, 4 P"
            )
        paths.append(tmp_path / f"{name}.log")
        paths[-1].write_text("\n".join(lines) + "\n")
    found = gca.compare(*map(str, paths))
    assert not found.load_is_given
    rate = found.pairs[0].changes["alloc_mib_per_s"]
    assert rate.is_significant
    assert rate.verdict is None
    shown = " ".join(str(found).split())
    assert "If each run" not in shown
    assert [one.what for one in found.pairs[0].differences] == ["throughput"]
