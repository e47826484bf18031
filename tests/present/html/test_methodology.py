"""How the figures of a report are computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gctrace_analyzer as gca
from gctrace_analyzer.present.format import milliseconds
from gctrace_analyzer.present.html import ranges
from gctrace_analyzer.present.html.captions import statements
from gctrace_analyzer.present.html.methodology import methodology
from gctrace_analyzer.present.html.ranges import phases
from gctrace_analyzer.present.plots.axis import axis_of
from gctrace_analyzer.present.sections.headline import state
from tests.conftest import CORPUS, SAMPLES
from tests.helpers.intervals import between_dumps
from tests.helpers.logs import logfile, records

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_the_self_check_is_a_distance(tmp_path: Path) -> None:
    report = gca.read(logfile(tmp_path / "log", records(60))).report()
    assert (report.analysis.summary.log_check_points or 0) < 0
    assert "within -" not in dict(methodology(report))["Self-check"]


def test_only_figures_of_the_page_are_explained() -> None:
    report = gca.read(SAMPLES / "go1.4.log").report()
    found = dict(methodology(report))
    assert not {"GC CPU", "Live heap", "Allocation"} & set(found)
    assert found["Pauses"].startswith("one for each cycle")


def test_the_curve_of_one_process_has_the_statement_of_that_process() -> None:
    report = gca.read(SAMPLES / "restart-go1.26.log").report()
    rows = report.analysis.mmu.filter(process=1)
    middle = rows.row(len(rows) // 2, named=True)
    said = statements(report, (1,))["mmu-mmu"]
    assert f"worst {milliseconds(middle['window_ms'])} " in said


def test_both_ends_of_a_short_phase_differ() -> None:
    report = gca.read(SAMPLES / "leak" / "service.log.gz").report()
    _, table = phases(report, axis_of(report, bins=100))
    begin, end = (table.head.index(name) for name in ("from", "to"))
    assert all(row[begin] != row[end] for row in table.rows)


def test_a_page_lists_the_longest_of_many_phases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "_MOST_RANGES", 3)
    report = gca.read(SAMPLES / "leak" / "service.log.gz").report()
    title, table = phases(report, axis_of(report, bins=100))
    assert (len(table.rows), title) == (3, "Phases (the 3 longest of 8)")
    begins = [row[table.head.index("from")] for row in table.rows]
    assert begins == sorted(begins)


def test_a_chart_of_intervals_says_that_its_lines_are_means() -> None:
    report = gca.read(CORPUS / "metrics" / "formats" / "grafana-wide.csv").report()
    drawn = between_dumps(report.analysis)["heap_live_mib"].max()
    most = report.analysis.summary.live_heap_max_mib
    assert isinstance(drawn, float)
    assert drawn < 75 < 84 < (most or 0)
    assert "lines show the mean of both ends" in statements(report, (0,))["timeline-heap"]


def test_the_caption_of_a_chart_has_the_median_of_the_card() -> None:
    report = gca.read(SAMPLES / "refill" / "service.log.gz").report()
    said = statements(report, (0,))["timeline-heap"]
    cards = {figure.label: figure.value for figure in state(report)}
    assert f"Live heap {cards['Live heap']} median over time" in said
    assert f"goal {cards['Heap goal']} median over time" in said
    steady = gca.read(SAMPLES / "steady-go1.26.log").report()
    assert "over time" not in statements(steady, (0,))["timeline-heap"]


def test_a_page_has_the_sentences_of_minor_findings_and_one_name_for_each() -> None:
    page = gca.read(SAMPLES / "oom-journal.jsonl").to_html()
    assert "<summary>Also seen: Off heap heavy</summary>" in page
    minor = page.partition("<summary>Also seen: ")[2].partition("</details>")[0]
    assert minor.count("<dd>") == 1
    # The growth is what the post-mortem names: it is no minor finding.
    assert "The live heap grew" not in minor
    assert "explain NAME" not in page
    assert page.count("limit-thrash") == page.count("explain limit-thrash")
