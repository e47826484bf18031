"""What `recommend` and `whatif` print, compared with the report of the same input."""

from __future__ import annotations

import io

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.cli import main
from gctrace_analyzer.present.document import Figures, KeyFigure
from gctrace_analyzer.present.format import as_wide_as
from gctrace_analyzer.present.sections import headline
from gctrace_analyzer.present.sections.advice import refusal
from gctrace_analyzer.present.sections.report import document
from gctrace_analyzer.present.text import plain
from gctrace_analyzer.testing import read_text
from tests.conftest import SAMPLES
from tests.helpers.corpus import log_of

THRASHES = SAMPLES / "thrash-go1.19.log"


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_after_a_kill_a_recommendation_starts_like_the_report() -> None:
    run = gca.read(SAMPLES / "oom-journal.jsonl")
    shown, said = one_line(str(run.recommend())), headline.verdict(run.report())
    assert said.sentence in shown
    assert all(f"▸ {step}" in shown for step in said.steps)


def test_page_and_command_word_a_refusal_the_same() -> None:
    run = gca.read(THRASHES)
    assert (text := refusal(run.report())).startswith("Only GOMEMLIMIT is recommended: ")
    assert text in run.to_html().replace("\xa0", " ")
    assert text in one_line(str(run.recommend()))


def test_whatif_of_a_thrashing_program_shows_now_and_the_advised_limit(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["whatif", str(THRASHES)]) == 0
    _, _, _, now, other, *_ = capsys.readouterr().out.splitlines()
    assert "GOMEMLIMIT=59–111MiB (now)" in now
    assert "GOMEMLIMIT=249MiB" in other


def test_whatif_says_that_all_settings_fit_the_container() -> None:
    run = gca.read(SAMPLES / "steady-go1.26.log", container_limit="2GiB")
    fit = "All of these fit the 2,048 MiB"
    assert fit in one_line(str(run.whatif(gogc=[50, 200])))
    run = gca.read(SAMPLES / "steady-go1.26.log", container_limit="80MiB")
    assert fit[:12] not in one_line(str(run.whatif(gogc=[50, 800])))


def test_after_a_kill_for_memory_no_setting_is_said_to_fit() -> None:
    kill = (
        "Memory cgroup out of memory: Killed process 4242 (app) total-vm:1302540kB, "
        "anon-rss:141824kB, file-rss:12kB, shmem-rss:0kB\n"
    )
    for end, said in (("", True), (kill, False)):
        table = gca.read(io.StringIO(log_of(60) + end), container_limit="512MiB").whatif(
            gogc=[25, 50]
        )
        assert table.frame["fits"].all()
        assert ("All of these fit" in one_line(str(table))) is said


@pytest.mark.parametrize("value", ["9.0 %", "0.29–0.40 %", "between 0.29 and 0.40 %"])
def test_a_row_keeps_its_trend_before_the_end_of_its_note(value: str) -> None:
    note = "under 0.01 of 2 CPUs; 0.57 % with idle marking; of these cycles"
    rows = (KeyFigure("GC CPU", value, note, range(10), "ok", keeps_trend=True),)
    (row,) = plain((Figures(rows),)).splitlines()
    assert "▁▂▃▃▄▅▆▆▇█  under 0.01 of 2 CPUs" in row
    assert row.endswith(" ok")
    assert len(row) == 80
    with as_wide_as(120):
        assert note[:40] in plain((Figures(rows),))


def test_several_processes_together_have_no_trend() -> None:
    one = log_of(60)
    for text, has_trend in ((one, True), (one + one, False)):
        report = read_text(text).report()
        shown = headline.with_trends(report, headline.state(report))
        assert any(figure.trend for figure in shown) == has_trend


def test_a_growing_heap_is_not_called_no_problem() -> None:
    found = headline.verdict(gca.read(SAMPLES / "leak-go1.26.log").report())
    assert found.sentence.startswith("The live heap grew from 6 to 238 MiB")
    assert "no problem" not in found.sentence
    assert found.word == "Live heap grew"


@pytest.mark.parametrize(("limit_mib", "is_advised"), [(180, True), (200, False)])
def test_a_table_recommends_no_other_limit_than_the_post_mortem(
    limit_mib: int, is_advised: bool
) -> None:
    log = "\n".join(
        f"gc {n} @{n}.000s 0%: 0.05+5+0.05 ms clock, 0.1+0/5/0+0.1 ms cpu, "
        f"{n + 40}->{n + 41}->{n + 20} MB, {2 * n + 40} MB goal, 0 MB stacks, 0 MB globals, 2 P"
        for n in range(1, 60)
    )
    kill = (
        f"[  999.1] memory: usage {limit_mib << 10}kB, limit {limit_mib << 10}kB, failcnt 42\n"
        "[  999.2] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,"
        "oom_memcg=/kubepods/pod1,task_memcg=/kubepods/pod1/c1,task=api,pid=7,uid=0\n"
        "[  999.3] Memory cgroup out of memory: Killed process 7 (api) total-vm:900000kB, "
        f"anon-rss:{(limit_mib - 5) << 10}kB, file-rss:0kB, shmem-rss:0kB, UID:0\n"
    )
    run = read_text(f"{log}\n{kill}")
    said, shown = headline.verdict(run.report()).action, str(run.recommend())
    assert ("GOMEMLIMIT=162MiB" in said) == is_advised
    assert (f"GOMEMLIMIT={9 * limit_mib // 10}MiB" in shown) == is_advised
    assert ("▸ try" in shown) == is_advised


def test_a_start_up_is_left_out_only_where_the_log_has_one() -> None:
    lines = (SAMPLES / "steady-go1.26.log").read_text().splitlines(keepends=True)
    late = [line for line in lines if "gc " in line and " @0." not in line]
    for part, has_start in ((lines, True), (late, False)):
        text = plain(document(read_text("".join(part)).report()))
        assert "+idle: with marking on idle CPUs" in text
        assert ("without start-up" in text) is has_start


def test_a_goal_far_above_the_live_heap_and_its_gogc_is_explained() -> None:
    run = gca.read(SAMPLES / "assists-go1.16.log")
    why = "because what the program allocates while GC marks counts as live"
    for rows in (run.recommend(), run.whatif(gogc=[50, 150, 300])):
        said = one_line(str(rows))
        assert said.count(why) == 1
        assert "GOGC=150: the predicted heap goal is" in said
    assert why not in one_line(str(run.whatif(gogc=[50, 75])))
    assert why not in one_line(str(gca.read(SAMPLES / "steady-go1.26.log").whatif(gogc=400)))


def test_an_unknown_gogc_is_not_replaced_silently() -> None:
    log = SAMPLES / "limits" / "240-mib-1.log.gz"
    why = "GOGC is unknown, and GOGC=off replaces it: specify it (`--gogc`) to keep it"
    said = one_line(str(gca.read(log).recommend()))
    assert "GOGC=off GOMEMLIMIT" in said
    assert why in said
    assert why not in one_line(str(gca.read(log, gogc="off").recommend()))
    assert why not in one_line(str(gca.read(log, gogc=100).recommend()))


def test_the_present_peak_has_the_live_heap_of_the_start_up_like_the_predicted_ones() -> None:
    line = (
        "gc {} @{:.3f}s 1%: 0.02+1.0+0.01 ms clock, 0.08+0.1/0.5/0.1+0.04 ms cpu, {} MB goal, "
        "0 MB stacks, 0 MB globals, 4 P\n"
    )
    start = line.format(1, 0.1, "6->12->12 MB, 6") + line.format(2, 0.3, "22->24->3 MB, 24")
    later = "".join(line.format(3 + n, 0.6 + n / 10, "6->6->3 MB, 6") for n in range(160))
    log = io.StringIO(start + later)
    rows = gca.read(log, container_limit="1GiB").recommend()
    assert rows["why"][0].startswith("a guard that changes nothing now")
    advised, now = rows["heap_peak_mib"].head(2)
    assert advised == now > 8.0
