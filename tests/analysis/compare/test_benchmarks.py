"""Logs of `go test -bench` compared benchmark by benchmark."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.cli import main
from gctrace_analyzer.testing import read_text
from tests.conftest import CORPUS

if TYPE_CHECKING:
    from pathlib import Path

LOGS = CORPUS / "go-test"
VERBOSE = LOGS / "toml-go1.26-verbose-count3.log"


def doubled(tmp_path: Path) -> gca.Run:
    """Returns the run with twice the B/op in one of its benchmarks."""
    path = tmp_path / "head.log"
    result = r"(Decode/array-2 .* ns/op\s+)(\d+)"
    text = re.sub(result, lambda match: f"{match[1]}{2 * int(match[2])}", VERBOSE.read_text())
    path.write_text(text)
    return gca.read(path)


def test_notes_and_the_legend_are_about_what_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Runs of benchmarks are not those of logs, and the other figures are printed by --all."""
    words = ["compare", str(LOGS / "toml-go1.26.log"), str(VERBOSE)]
    assert main(words) == 0
    brief = capsys.readouterr().out
    assert "runs of each benchmark" in brief
    assert not re.search("One run|processes in|Change: relative", brief)
    assert main([*words, "--all"]) == 0
    assert "Change: relative to the value before" in capsys.readouterr().out


def test_each_benchmark_has_a_group_of_rows() -> None:
    comparison = gca.compare(gca.read(LOGS / "toml-go1.26.log"), gca.read(VERBOSE))
    rows = comparison.frame
    assert rows["benchmark"].unique().sort().to_list() == [
        None,
        "Decode/array",
        "Decode/spec",
        "Escapes",
    ]
    own = rows.filter(pl.col("benchmark") == "Decode/array", pl.col("metric") == "bytes_per_op")
    row = own.row(0, named=True)
    assert row["before"] == pytest.approx(row["after"], rel=1e-3)
    assert row["verdict"] == "~"
    assert (row["before_runs"], row["after_runs"]) == (1, 3)
    assert "Only in before: " in str(comparison)


def test_the_figures_are_those_of_the_cycles_in_the_run(tmp_path: Path) -> None:
    run = gca.read(VERBOSE)
    rows = gca.compare(run, run).frame.filter(pl.col("benchmark") == "Decode/spec")
    values = dict(rows.select("metric", "before").iter_rows())
    spans = [
        run.cycles.filter(pl.col("line_no").is_between(row["first_line"], row["line_no"]))
        for row in run.benchmarks.filter(pl.col("benchmark") == "Decode/spec").iter_rows(
            named=True
        )
    ]
    assert len(spans) == 3
    rates = [(len(own) - 1) / (own["start_s"].max() - own["start_s"].min()) for own in spans]  # type: ignore[operator]
    assert min(rates) <= values["gc_per_s"] <= max(rates)
    assert values["heap_peak_mib"] <= max(own["heap_end_mib"].max() for own in spans)  # type: ignore[type-var]


def test_twice_the_allocation_of_one_benchmark_is_worse(tmp_path: Path) -> None:
    head = doubled(tmp_path)
    comparison = gca.compare(gca.read(VERBOSE), head)
    assert "1 of 3 benchmarks costs more: Decode/array +100 % B/op." in str(comparison)
    one, two = comparison.check("bytes_per_op>+5%", "allocs_per_op>+5%")[:3:2]
    assert [check.held for check in comparison.check("bytes_per_op>+5%")] == [
        False,
        True,
        False,
    ]
    assert one.text == "Escapes: bytes_per_op>+5%"
    assert two.held is False
    back = gca.compare(head, gca.read(VERBOSE))
    assert "1 of 3 benchmarks costs less: Decode/array -50 % B/op." in str(back)


def test_no_change_is_no_regression() -> None:
    comparison = gca.compare(gca.read(VERBOSE), gca.read(VERBOSE))
    assert "No significant change of allocation per operation in 3 benchmarks." in str(
        comparison
    )
    assert not any(check.held for check in comparison.check("verdict:worse"))


def test_figures_per_second_have_no_verdict(tmp_path: Path) -> None:
    rows = gca.compare(gca.read(VERBOSE), gca.read(VERBOSE)).frame
    assert rows.filter(pl.col("metric") == "gc_per_s")["verdict"].is_null().all()
    assert rows.filter(pl.col("benchmark").is_null())["verdict"].is_null().all()


def test_times_need_five_runs_of_each_side() -> None:
    three = gca.compare(gca.read(VERBOSE), gca.read(VERBOSE)).frame
    times = pl.col("benchmark").is_not_null() & (pl.col("metric") == "ns_per_op")
    assert three.filter(times)["verdict"].is_null().all()
    assert three.filter(times)["no_verdict_because"].str.contains("fewer than five runs").all()
    six = [gca.read(VERBOSE), gca.read(VERBOSE)]
    assert (gca.compare(six, six).frame.filter(times)["verdict"] == "~").all()


def bench_log(factors: tuple[float, float], allocation: int = 8) -> str:
    """Returns five runs of two benchmarks that take `factors` times as long as usual."""
    line = (
        "gc {n} @{s:.4f}s 1%: 0.02+{ms:.4f}+0.02 ms clock, 0.04+0.1/{ms:.4f}/0+0.04 ms cpu, "
        "3->4->1 MB, 4 MB goal, 0 MB stacks, 0 MB globals, 2 P\n"
    )
    text, at, number = "", 0.0, 0
    for name, factor in zip(("BenchmarkX-2", "BenchmarkY-2"), factors, strict=True):
        for _ in range(5):
            text += f"{name} \t"
            for _ in range(40):
                number, at = number + 1, at + 0.1
                text += line.format(n=number, s=at, ms=5.0)
            size = allocation if name == "BenchmarkX-2" else 8
            text += f"  10\t {500 * factor:.1f} ns/op\t {size} B/op\t 1 allocs/op\n"
    return text


def per_op(
    before: str, after: str, metric: str = "gc_cpu_ns_per_op"
) -> list[tuple[str | None, str | None]]:
    rows = gca.compare(read_text(before), read_text(after)).frame
    own = rows.filter(pl.col("metric") == metric)
    return own.select("verdict", "no_verdict_because").rows()


def test_all_benchmarks_slower_by_one_factor_are_of_a_slower_machine() -> None:
    usual, slow = bench_log((1, 1)), bench_log((2.0, 2.1), allocation=16)
    for both in ((usual, slow), (slow, usual)):
        for metric in ("gc_cpu_ns_per_op", "ns_per_op"):
            assert [verdict for verdict, _ in per_op(*both, metric)] == [None, None]
            assert all("machine was slower" in str(why) for _, why in per_op(*both, metric))
    comparison = gca.compare(read_text(usual), read_text(slow))
    text = " ".join(str(comparison).split())
    assert "1 of 2 benchmarks costs more: X +100 % B/op." in text
    assert "All benchmarks take 2 to 2.1 times as long per operation" in text
    assert "All benchmarks take 2 to 2.1 times as long per operation" in comparison.to_html()


def test_one_slower_benchmark_of_two_is_no_slower_machine() -> None:
    found = per_op(bench_log((1, 1)), bench_log((2.0, 1.0)))
    assert [verdict for verdict, _ in found] == ["worse", "~"]


def test_an_unknown_figure_of_some_benchmarks_is_no_failure() -> None:
    line = (
        "gc {n} @{s}s 1%: 0.02+1.0+0.02 ms clock, 0.04+0.1/0.2/0+0.04 ms cpu, 3->4->1 MB, 4 MB "
        "goal, 0 MB stacks, 0 MB globals, 2 P\n"
    )
    busy = "".join(line.format(n=n, s=n / 10) for n in range(1, 40))
    text = f"BenchmarkX-2 \t{busy}  10\t 5 ns/op\t 8 B/op\t 1 allocs/op\nBenchmarkY-2 \t 10\t 5 ns/op\n"
    comparison = gca.compare(read_text(text), read_text(text))
    held = [check.held for check in comparison.check("heap_peak_mib>+50%")]
    assert held == [False, False]
    assert [check.held for check in comparison.check("stw_p99_ms:worse")] == [None, None]


def test_a_log_without_benchmarks_has_no_figures_per_operation(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = str(CORPUS.parent.parent / "samples" / "steady-go1.26.log")
    assert main(["compare", log, log, "--fail-on", "bytes_per_op>+5%"]) == 3
    assert "bytes_per_op is unknown for these logs" in capsys.readouterr().err


def test_benchmarks_are_measured_with_their_names_between_the_cycles(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(VERBOSE.read_text())
    program = tmp_path / "x.test"
    program.write_text(
        "#!/bin/sh\ngrep -v '^gc ' "
        + str(log)
        + " | head -7\ngrep '^gc ' "
        + str(log)
        + " >&2\n"
        "printf '   10\\t 500 ns/op\\t 16 B/op\\t 1 allocs/op\\n'\n"
    )
    program.chmod(0o755)
    command = [str(program), "-test.bench", "."]
    comparison = gca.measure(
        sides={"base": command, "head": command}, runs=3, logs=tmp_path / "runs"
    )
    assert not list((tmp_path / "runs").glob("*.out"))
    names = comparison.frame["benchmark"].drop_nulls().unique()
    assert "Escapes" in names.to_list()
    page = comparison.to_html()
    assert "<td>Escapes" in page or "Escapes</t" in page


def results(factor: float, runs: int = 6) -> str:
    """Returns the output of `go test -bench` without gctrace."""
    return "".join(
        f"BenchmarkX-2 \t 100\t {500 * factor + run:.1f} ns/op\t 64 B/op\t {round(4 * factor)} "
        "allocs/op\nBenchmarkZero-2 \t 100\t 5 ns/op\t 0 B/op\t 0 allocs/op\n"
        for run in range(runs)
    )


def test_each_benchmark_has_its_old_and_its_new_value(tmp_path: Path) -> None:
    text = str(gca.compare(gca.read(VERBOSE), doubled(tmp_path)))
    assert re.search(r"B/op +before +after +change", text)
    assert re.search(r"Decode/array +92,995 +185,98\d +\+100 %.* worse", text)
    assert re.search(r"time/op +before +after", text)


def test_results_without_gctrace_are_compared() -> None:
    comparison = gca.compare(read_text(results(1)), read_text(results(0.5)))
    text = " ".join(str(comparison).split())
    assert "1 of 2 benchmarks costs less: X -50 % allocs/op (-50 % time/op)." in text
    assert re.search(r"X 502 ns 252 ns -50 % .* better", text)
    assert "Zero 0 0 0 % – ~" in text
    assert "GODEBUG=gctrace=1" in text
    assert "0 cycles" not in text


def test_benchmarks_that_allocate_nothing_were_run_with_benchmem_on_both_sides() -> None:
    nothing = "BenchmarkZero-2 \t 100\t 5 ns/op\t 0 B/op\t 0 allocs/op\n"
    both = gca.compare(read_text(nothing), read_text(nothing))
    assert "-benchmem" not in str(both)
    one = gca.compare(read_text(nothing), read_text("BenchmarkZero-2 \t 100\t 5 ns/op\n"))
    assert "of both sides with -benchmem" in " ".join(str(one).split())


def test_runs_of_benchmarks_have_no_load_that_explains_their_frequency(tmp_path: Path) -> None:
    assert "Explained by the load" not in str(gca.compare(gca.read(VERBOSE), doubled(tmp_path)))


def test_several_results_without_gctrace_are_compared_with_the_first() -> None:
    sides = {
        name: read_text(results(factor)) for name, factor in (("a", 1), ("b", 1), ("c", 2))
    }
    text = " ".join(str(gca.compare(sides)).split())
    assert "b against a: No significant change of allocation per operation" in text
    assert "1 of 2 benchmarks costs more: X +100 % allocs/op (+100 % time/op)." in text


def test_results_without_gctrace_need_a_benchmark_of_both_sides() -> None:
    other = read_text(results(1).replace("Benchmark", "BenchmarkOther"))
    with pytest.raises(gca.NoDataError, match="no benchmark that both sides have"):
        gca.compare(read_text(results(1)), other)


def test_a_page_without_gctrace_has_no_empty_table() -> None:
    page = gca.compare(read_text(results(1)), read_text(results(0.5))).to_html()
    bodies = re.findall(r"<tbody>(.*?)</tbody>", page, re.DOTALL)
    assert bodies
    assert all(body.strip() for body in bodies)
    assert "hold for all benchmarks together" in page


def test_the_headline_names_what_takes_longer_next_to_what_costs_less() -> None:
    def both(bytes_per_op: int, factor: float) -> str:
        return "".join(
            f"BenchmarkJoin-2 \t 100\t {500 + run} ns/op\t {bytes_per_op} B/op\t 9 allocs/op\n"
            f"BenchmarkRep-2 \t 100\t {factor * (500 + run)} ns/op\t 64 B/op\t 1 allocs/op\n"
            for run in range(6)
        )

    text = str(gca.compare(read_text(both(53_480, 1)), read_text(both(3_072, 1.5))))
    head = (
        "1 of 2 benchmarks costs less: Join -94 % B/op; 1 of 2 takes longer: Rep +50 % time/op."
    )
    assert head in " ".join(text.split())
    text = str(gca.compare(read_text(both(64, 1.5)), read_text(both(64, 1))))
    assert "1 of 2 benchmarks takes less time: Rep -33 % time/op." in " ".join(text.split())
