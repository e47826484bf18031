"""Several settings of one program compared."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

import gctrace_analyzer as gca
from gctrace_analyzer.cli import main
from gctrace_analyzer.testing import read_text
from tests.conftest import CORPUS, SAMPLES

if TYPE_CHECKING:
    import pytest


def log(load: str, setting: str) -> str:
    return str(CORPUS / "advice" / load / setting / "run.log")


def test_a_comparison_of_settings_notes_what_else_differs() -> None:
    found = gca.compare(
        {
            "a": [log("svc-a", "gogc100")],
            "b": [log("svc-a", "gogc200")],
            "big": [log("svc-big", "gogc100")],
        }
    )
    kinds = {each.what for each in found.differences}
    assert "live_heap" in kinds
    (sentence,) = [each.sentence for each in found.differences if each.what == "live_heap"]
    assert sentence.startswith("big: The live heap of the program itself changed")


def test_findings_of_both_sides_can_be_conditions() -> None:
    found = gca.compare(log("svc-a", "gogc100"), log("svc-a", "gogc200"))
    names = {each.name for side in (found.before, found.after) for each in side.findings()}
    (check,) = found.check("finding:bad")
    assert check.held is any(each.severity == "bad" for each in found.after.findings())
    assert names


RETUNED = str(CORPUS / "retuned/gogc-50-400-100-swinging.log")


def test_a_run_that_changes_its_gogc_has_no_single_setting() -> None:
    """Its figures mix several settings, so they cannot confirm the prediction for one."""
    found = gca.compare(log("svc-a", "gogc50"), RETUNED)
    sentences = {each.what: each.sentence for each in found.differences}
    assert "GOGC changed while the program ran (50, then " in sentences["changed_gogc"]
    assert sentences["gogc"].startswith("GOGC 50 → 50, then ")
    assert found.frame["expected"].null_count() == len(found.frame)
    assert found.no_expectation is not None
    assert str(found).index("mix several settings") < str(found).index("GC CPU with idle")


def test_two_runs_that_change_gogc_alike_have_the_same_setting() -> None:
    found = gca.compare(RETUNED, RETUNED)
    kinds = [each.what for each in found.differences]
    assert kinds.count("changed_gogc") == 2
    assert "gogc" not in kinds
    assert found.no_expectation is None


def test_runs_of_one_side_under_different_settings_are_noted() -> None:
    mixed = [log("svc-a", "gogc100"), log("svc-a", "gogc200")]
    found = gca.compare(log("svc-a", "gogc50"), mixed)
    (sentence,) = [each.sentence for each in found.differences if each.what == "changed_gogc"]
    assert "its runs or processes have different GOGC (100 and 200)" in sentence
    together = gca.compare(log("svc-a", "gogc50"), gca.read(*mixed))
    assert sentence in [each.sentence for each in together.differences]
    same = gca.compare(log("svc-a", "gogc50"), mixed[:1])
    assert "changed_gogc" not in {each.what for each in same.differences}


def test_settings_with_long_names_are_told_apart_by_letters() -> None:
    names = ("steady-go1.26", "steady-gogc200-go1.26", "ballast-go1.26", "steady-go1.9")
    found = gca.compare({f"{name}.log": f"{SAMPLES}/{name}.log" for name in names})
    lines = str(found).splitlines()
    assert re.findall(r"^[A-Z]:", str(found), re.MULTILINE) == ["A:", "B:", "C:", "D:"]
    rows = [line for line in lines if re.match(r"  [A-D] ", line)]
    assert [row[2] for row in rows] == [*"ABCDABCD"]
    assert "| B steady-gogc200-go1.26.log |" in found.to_markdown()
    short = gca.compare({name[:7]: f"{SAMPLES}/{name}.log" for name in names[1:]})
    assert not re.search(r"^  [A-D] ", str(short), re.MULTILINE)


def test_a_side_that_keeps_its_rate_while_marking_makes_the_rate_a_load() -> None:
    """A few cycles of the other side may seem CPU-bound; a load that differs is then still said."""
    service, batch = log("svc-a", "gogc100"), log("batch-c", "gogc100")
    same = gca.compare(batch, batch)
    assert same.load_is_given is False
    # What limits the program is a guess, and both sides do the same.
    assert "; same allocation rate." in str(same)
    found = gca.compare(service, batch)
    assert found.load_is_given
    assert "load" in {each.what for each in found.differences}


HELD_UP = """
gc 125 @10.192s 16%: 0.18+99+0.19 ms clock, 6.0+0.39/104/0+6.2 ms cpu, 9->13->8 MB, 14 MB goal, 40 P
gc 126 @10.293s 16%: 0.088+98+0.26 ms clock, 2.8+0.83/398/0.90+8.3 ms cpu, 10->13->4 MB, 16 MB goal, 40 P
gc 127 @10.392s 16%: 0.020+0.92+0.14 ms clock, 0.64+0.70/4.4/0.12+4.5 ms cpu, 7->8->5 MB, 9 MB goal, 40 P
gc 128 @10.398s 16%: 93+0.91+0.22 ms clock, 2984+0.49/4.7/0.17+7.2 ms cpu, 8->9->3 MB, 10 MB goal, 40 P
gc 129 @10.494s 16%: 0.049+97+0.13 ms clock, 1.5+0.36/100/0.51+4.4 ms cpu, 6->7->4 MB, 7 MB goal, 40 P
gc 130 @10.649s 16%: 0.016+0.56+0.15 ms clock, 0.52+0.22/3.0/1.5+4.8 ms cpu, 7->7->3 MB, 8 MB goal, 40 P
gc 131 @10.776s 16%: 0.021+0.61+0.11 ms clock, 0.68+0.20/3.3/0.89+3.7 ms cpu, 6->6->2 MB, 7 MB goal, 40 P
gc 132 @10.794s 16%: 0.017+0.46+0.097 ms clock, 0.56+0.15/2.4/0.60+3.1 ms cpu, 5->5->2 MB, 6 MB goal, 40 P
gc 133 @10.900s 16%: 0.019+0.65+0.10 ms clock, 0.62+0.22/2.4/0.67+3.4 ms cpu, 5->5->2 MB, 6 MB goal, 40 P
gc 134 @10.969s 15%: 0.018+0.55+0.13 ms clock, 0.58+0.14/2.6/1.0+4.3 ms cpu, 5->5->2 MB, 6 MB goal, 40 P
gc 135 @11.030s 15%: 0.040+0.68+0.11 ms clock, 1.2+0.10/3.0/1.3+3.6 ms cpu, 5->5->3 MB, 6 MB goal, 40 P
"""


def test_threads_that_are_held_up_do_not_show_a_program_limited_by_the_cpu() -> None:
    """Four of eleven cycles wait 0.1 s for a CPU, and little is allocated in that time."""
    found = gca.compare(read_text(HELD_UP), read_text(HELD_UP))
    load = found.before.baseline.load
    assert load is not None
    assert load.is_surely_bound
    assert found.load_is_given


def test_a_prediction_is_not_compared_with_what_was_measured_under_another_load() -> None:
    found = gca.compare(log("svc-a", "gogc100"), log("svc-big", "gogc200"))
    kinds = {each.what for each in found.differences}
    assert {"load", "gogc"} <= kinds
    assert found.frame["expected"].null_count() == len(found.frame)
    for said in (" ".join(str(found).split()), found.to_html()):
        assert "was not compared with a prediction: predictions are for the same load" in said


def test_a_promise_that_a_few_cycles_cannot_confirm_is_not_left_out_silently() -> None:
    before, after = (gca.read(log("svc-a", gogc)) for gogc in ("gogc100", "gogc200"))
    few = gca.read(after.cycles.filter(pl.col("gc_num") <= 9))
    promise = before.whatif(["200"]).frame
    found = gca.compare(before, few, promise=promise)
    assert found.frame["expected"].null_count() == len(found.frame)
    text = " ".join(str(found).split())
    assert "was not compared with a prediction: after has under 10 cycles" in text


def test_a_measurement_has_the_same_notes_in_text_and_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert main(["compare", "samples/measured/gofmt"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert main(["compare", "samples/measured/gofmt", "-o", str(page)]) == 0
    for note in ("GOGC=100: the live heap changes by", "Other work disturbed 34 of 34 runs"):
        assert note in text
        assert note in page.read_text()


def test_a_given_gogc_that_the_log_contradicts_is_noted() -> None:
    """With 100 for both sides, GOGC seemed to be the same."""
    before, after = (gca.read(log("svc-a", each), gogc=100) for each in ("gogc100", "gogc200"))
    found = gca.compare(before, after)
    (sentence,) = [each.sentence for each in found.differences if each.what == "other_gogc"]
    assert "GOGC=100 was given, but the heap goals follow a GOGC of about 20" in sentence
    assert str(found).index("was given, but") < str(found).index("GC CPU with idle")


def test_a_log_that_is_on_both_sides_is_named_also_under_another_name(tmp_path: Path) -> None:
    log = Path("samples/steady-go1.26.log")
    copy = tmp_path / "copy.log"
    copy.write_bytes(log.read_bytes())
    for other in (log, copy):
        found = gca.compare(log, other)
        assert [each.what for each in found.differences] == ["same_log"]
        assert f"{log} is on both sides" in " ".join(str(found).split())
    different = gca.compare(log, "samples/steady-gogc200-go1.26.log")
    assert "same_log" not in {each.what for each in different.differences}
