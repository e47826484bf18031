"""Plots: one description, two libraries, and spikes that survive a million cycles."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gctrace_analyzer as gca
from gctrace_analyzer.cli import main
from gctrace_analyzer.cli.report import PLOTS as OFFERED
from gctrace_analyzer.present.html import ranges
from gctrace_analyzer.present.html.chart import charts_of
from gctrace_analyzer.present.plots import matplotlib_backend, plotly_backend
from gctrace_analyzer.present.plots.accessor import PLOTS, described
from gctrace_analyzer.present.plots.axis import axis_of
from gctrace_analyzer.present.plots.binning import binned, distribution
from gctrace_analyzer.present.plots.events import ROWS, in_a_row
from gctrace_analyzer.present.plots.figure import Event, Figure, Level, Mark, Panel, is_flipped
from gctrace_analyzer.present.plots.kinds.overlay import overlay
from gctrace_analyzer.testing import read_text
from tests.conftest import CORPUS, ROOT, SAMPLES
from tests.helpers.intervals import between_dumps
from tests.helpers.profiles import PROFILES

if TYPE_CHECKING:
    from pathlib import Path


LOGS = sorted(SAMPLES.glob("*.log"))


def names(figure: Figure) -> list[str]:
    return [mark.name for panel in figure.panels if panel.drawn for mark in panel.marks]


@pytest.mark.parametrize("log", LOGS, ids=lambda path: path.stem)
def test_both_libraries_draw_every_plot_of_every_sample(log: Path) -> None:
    report = gca.read(log).report()
    for name in PLOTS:
        figure = described(report, name)
        panels = [panel for panel in figure.panels if panel.drawn]
        if not panels:
            continue
        plotly = plotly_backend.draw(figure)
        drawn = matplotlib_backend.draw(figure)
        shown = [trace.name for trace in plotly.data if trace.name]
        assert shown == names(figure)
        if name == "pause_heatmap":
            continue
        for panel, ax in zip(panels, drawn.axes, strict=True):
            labels = [line.get_label() for line in ax.lines]
            assert {mark.name for mark in panel.marks if mark.y.count()} <= set(labels)


def test_what_the_command_offers_is_what_there_is() -> None:
    assert tuple(PLOTS) == OFFERED
    listed = repr(gca.read(SAMPLES / "steady-go1.26.log").plot)
    assert all(name in listed for name in PLOTS)


def test_every_plot_has_a_method_and_the_name_of_its_log() -> None:
    plot = gca.read(SAMPLES / "steady-go1.26.log").plot
    for name in set(PLOTS) - {"memory", "sites"}:
        assert getattr(plot, name)().layout.title.text.endswith("steady-go1.26.log")


@given(
    st.lists(st.floats(0, 1000, width=32), min_size=1, max_size=400),
    st.integers(2, 40),
)
def test_the_highest_and_the_lowest_survive_binning(values: list[float], bins: int) -> None:
    x = pl.Series(range(len(values)), dtype=pl.Float64)
    points = pl.DataFrame({"x": x, "y": pl.Series(values, dtype=pl.Float64)})
    found = binned(points, bins)
    assert len(found) <= max(bins, 1) or len(values) <= bins
    assert found["high"].max() == max(values)
    assert found["low"].min() == min(values)
    highest = found.sort("high", descending=True).row(0, named=True)
    assert values[int(highest["x"])] == max(values)
    assert found["x"].is_sorted()


def test_the_mean_of_a_bin_is_weighted() -> None:
    points = pl.DataFrame(
        {"x": [0.0, 1.0, 2.0, 3.0], "y": [0.0, 1.0, 0.0, 0.0], "weight": [1.0, 3.0, 1.0, 1.0]}
    )
    assert binned(points, 2)["y"].to_list() == [0.75, 0.0]


@given(st.lists(st.floats(0.001, 1e4), min_size=1, max_size=500), st.integers(4, 60))
def test_a_distribution_ends_at_the_largest_and_at_one(values: list[float], bins: int) -> None:
    x, share = distribution(pl.Series(values), bins)
    assert x.is_sorted()
    assert (x[-1], share[-1]) == (max(values), 1.0)
    assert len(x) <= bins + 2


def test_a_million_cycles_make_a_plot_of_some_thousand_points() -> None:
    many = 200_000
    cycles = gca.read(SAMPLES / "steady-go1.26.log").cycles.head(1)
    frame = cycles.select(pl.all().repeat_by(many).explode())
    pause = pl.when(pl.col("gc_num") == 77_777).then(99.0).otherwise(0.02)
    frame = frame.with_columns(
        gc_num=pl.int_range(1, many + 1),
        start_s=pl.int_range(many) / 10,
        line_no=pl.int_range(1, many + 1),
    ).with_columns(stw_mark_term_ms=pause)
    figure = gca.from_frame(frame).plot.timeline()
    assert max(len(trace.x) for trace in figure.data) <= 1000
    marks = next(trace for trace in figure.data if trace.name == "mark termination")
    assert max(marks.y) == 99
    assert "gc 77777 " in marks.customdata[list(marks.y).index(99)]
    assert any("200,000 cycles" in note.text for note in figure.layout.annotations)


def test_axes_of_yours_are_drawn_on() -> None:
    from matplotlib.figure import Figure as Drawn

    run = gca.read(SAMPLES / "steady-go1.26.log")
    axes = Drawn().subplots(2, 1)
    assert run.plot.live_heap(ax=axes[0]) is axes[0]
    run.plot.timeline(ax=axes[1], panel="heap")
    assert axes[1].lines
    with pytest.raises(gca.BadSettingError, match="timeline has the panels heap, pauses"):
        run.plot.timeline(ax=axes)
    with pytest.raises(gca.BadSettingError, match="panel"):
        run.plot.timeline(panel="nope")
    with pytest.raises(gca.BadSettingError, match="plotly or matplotlib"):
        run.plot.timeline(backend="ggplot")  # type: ignore[call-overload]


def test_a_gap_between_program_starts_breaks_the_line(tmp_path: Path) -> None:
    stamped = "2026-01-05T10:00:{:02d}Z gc {} @{}.0s 0%: 0.1+1+0.1 ms clock, 0.2+0/1/0+0.2 ms cpu, 4->4->2 MB, 5 MB goal, 2 P"
    first = [stamped.format(second, second, second) for second in (1, 2, 3)]
    second = [stamped.format(20 + each, each, each) for each in (1, 2, 3)]
    log = tmp_path / "run.log"
    log.write_text("\n".join(first + second) + "\n")
    run = gca.read(log)
    figure = described(run.report(), "timeline")
    live = next(mark for panel in figure.panels for mark in panel.marks if "live" in mark.name)
    assert live.y.null_count() == 1
    assert [event.name for event in figure.events] == ["restart"]


def test_changes_of_settings_are_moments() -> None:
    run = gca.read(CORPUS / "gctrace" / "go1.26-retune" / "run.log")
    events = described(run.report(), "timeline").events
    assert [event.name for event in events if event.kind == "moment"] == [
        "GOGC=400",
        "GOGC=50, GOMAXPROCS=1",
    ]


def test_runs_lie_over_each_other_and_versions_side_by_side() -> None:
    runs = {
        name: gca.read(SAMPLES / f"steady-{name}.log") for name in ("go1.9", "go1.14", "go1.26")
    }
    side = gca.side_by_side(runs)
    assert {tuple(trace.x) for trace in side.data} == {tuple(runs)}
    titles = str(side.layout)
    assert "Sweep termination, ms" in titles
    assert "Mark termination, ms" in titles
    over = gca.overlay(runs, backend="matplotlib")
    assert len(over.axes) == 4
    assert all(len(axes.lines) == 3 for axes in over.axes)
    pauses = gca.overlay(runs, panel="pauses")
    assert [trace.name for trace in pauses.data] == list(runs)


def test_any_number_of_runs_lie_over_each_other_in_one_column() -> None:
    logs = ["steady-go1.26.log", "spike-go1.26.log", "steady-go1.26.log"]
    runs = [gca.read(SAMPLES / log) for log in logs]
    names = ["steady-go1.26.log", "spike-go1.26.log", "steady-go1.26.log (2)"]
    for column in ("heap_live_mib", "gc_cpu_share", "stw_total_ms", "survival_share"):
        figure = gca.overlay(runs, column)
        assert [trace.name for trace in figure.data] == names
        assert all(max(trace.y) > 0 for trace in figure.data)
    assert len(gca.overlay(runs * 4, "heap_goal_mib", backend="matplotlib").axes[0].lines) == 12
    assert list(gca.side_by_side(runs).data[0].x) == names


def test_runs_of_one_side_look_the_same_and_sides_differ() -> None:
    report = gca.read(SAMPLES / "steady-go1.26.log").report()
    sides = {f"{side} {run}": side for side in "ABCDE" for run in (1, 2)}
    figure = overlay(dict.fromkeys(sides, report), 100, sides)
    for panel in figure.panels:
        looks = {(sides[mark.name], mark.look) for mark in panel.marks}
        assert len(looks) == len({look for _, look in looks}) == 5


def test_a_distribution_of_a_single_value_is_visible() -> None:
    report = read_text(FEW.split("gc 3")[0]).report()
    (curve,) = described(report, "frequency").panels[1].marks
    assert (curve.x.to_list(), curve.y.to_list()) == ([2.0, 2.0], [0.0, 1.0])


def test_the_effective_gogc_is_0_where_the_goal_is_below_the_live_heap() -> None:
    run = gca.read(SAMPLES / "thrash-go1.19.log")
    panel = next(each for each in described(run.report(), "goal").panels if each.name == "gogc")
    drawn = panel.marks[0].y.drop_nulls()
    assert run.summary().effective_gogc_p50 == 0
    assert drawn.median() == 0
    # The last cycle follows one that found an empty heap.
    assert (len(drawn), drawn.max()) == (len(run.cycles) - 2, 0)


def test_a_start_up_does_not_flatten_what_follows() -> None:
    report = gca.read(SAMPLES / "refill" / "service.log.gz").report()
    figure = described(report, "timeline")
    allocation = next(panel for panel in figure.panels if panel.name == "allocation")
    high = max(allocation.marks[0].y.drop_nulls())
    assert high > 1000 > 400 > allocation.span.high
    assert allocation.above == ("the start-up, up to 1,308 MiB/s",)
    assert any("start-up, up to 1,308 MiB/s" in note for note in figure.all_notes)
    # A peak after the start-up is what the reader looks for.
    later = replace(axis_of(report, bins=100), warm_up_s=0.0)
    assert later.ceiling("alloc_mib_per_s") is None


def test_a_plot_without_dumps_counts_no_processes() -> None:
    figure = described(gca.read(SAMPLES / "steady-go1.26.log").report(), "memory")
    assert not figure.drawn
    assert figure.all_notes == ()


def test_a_label_is_left_of_its_position_only_without_room_to_the_right() -> None:
    assert not is_flipped("limit-thrash", 80.0, (0.0, 100.0))
    assert is_flipped("limit-thrash", 95.0, (0.0, 100.0))


def test_the_name_of_the_highest_limit_is_clear_of_the_data() -> None:
    mark = Mark("heap goal", pl.Series([1, 2, 3]), pl.Series([10.0, 95.0, 99.0]))
    span = Panel("heap", "Heap", (mark,), levels=(limit := Level("GOMEMLIMIT", 100.0),)).span
    assert not span.is_near_the_top(limit)


def test_a_notebook_shows_a_run_in_short_and_escaped(tmp_path: Path) -> None:
    log = tmp_path / "<img src=x onerror=alert(1)>.log"
    log.write_bytes((SAMPLES / "thrash-go1.19.log").read_bytes())
    run = gca.read(log)
    shown = run._repr_html_()
    assert shown == run.summary()._repr_html_()
    assert "<b>Limit thrash</b>" in shown
    assert "<svg" in shown
    assert "<img" not in shown
    assert "<script" not in shown
    assert "GC CPU" not in gca.read(SAMPLES / "describe-pod.txt")._repr_html_()


def test_the_command_writes_pictures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = str(SAMPLES / "spike-go1.26.log")
    outputs = [tmp_path / "timeline.png", tmp_path / "same.svg"]
    assert main([log, *(word for path in outputs for word in ("-o", str(path)))]) == 0
    assert outputs[0].read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in outputs[1].read_bytes()[:600]
    assert main([log, "-o", str(tmp_path / "m.png"), "--plot", "memory"]) == 3
    assert "has no data for it" in capsys.readouterr().err
    assert not (tmp_path / "m.png").exists()


def test_a_missing_library_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise ModuleNotFoundError(name=name.partition(".")[0])

    monkeypatch.setattr("gctrace_analyzer.extras.importlib.import_module", absent)
    run = gca.read(SAMPLES / "steady-go1.26.log")
    with pytest.raises(gca.MissingExtraError, match=r"gctrace-analyzer\[plot\]"):
        run.plot.timeline(backend="matplotlib")


def test_a_notebook_keeps_a_picture_beside_the_interactive_plot() -> None:
    figure = gca.read(SAMPLES / "steady-go1.26.log").plot.timeline()
    assert figure._ipython_display_ is None
    forms = figure._repr_mimebundle_()
    assert forms["image/png"].startswith(b"\x89PNG")
    assert forms["text/plain"] == f"<{figure.layout.title.text}>"
    # The copy in another process is a plain figure of Plotly.
    assert pickle.loads(pickle.dumps(figure)).to_dict() == figure.to_dict()


def test_plotly_shows_times_since_the_start_of_a_short_run_in_seconds() -> None:
    figure = gca.read(SAMPLES / "leak-into-limit-go1.24.log").plot.timeline()
    assert figure.layout.xaxis.type == "date"
    assert figure.layout.xaxis.hoverformat == "%-S.%L s"
    live = next(trace for trace in figure.data if trace.name == "live heap (marked)")
    assert live.x[0] == "1970-01-01 00:00:00.012"
    assert "MiB" in live.hovertemplate


@pytest.mark.parametrize("log", ["oom-journal.jsonl", "spike-go1.26.log"])
def test_matplotlib_writes_times_without_superfluous_digits(log: str) -> None:
    drawn = gca.read(SAMPLES / log).plot.timeline(backend="matplotlib")
    drawn.draw_without_rendering()
    labels = [each.get_text() for each in drawn.axes[-1].get_xticklabels()]
    assert len(labels) >= 3
    assert all(
        re.fullmatch(r"\d+:\d\d:\d\d(\.\d{1,3})?|\d+(\.\d{1,3})? s", each) for each in labels
    )
    # The panels fill the width.
    assert min(ax.get_position().x0 for ax in drawn.axes) < 0.08
    assert max(ax.get_position().x1 for ax in drawn.axes) > 0.95


def test_labels_of_events_never_cover_each_other() -> None:
    report = gca.read(SAMPLES / "oom-journal.jsonl").report()
    axis = axis_of(report, bins=100)
    begin, end = axis.ends or (0, 0)
    near = tuple(Event(begin + (end - begin) * share, end, "limit-thrash", "bad") for share in (0.1, 0.12, 0.14, 0.16, 0.5))  # fmt: skip
    taken: list[list[tuple[float, float]]] = [[] for _ in range(ROWS)]
    rows = [in_a_row(each, (begin, end), taken).row for each in near]
    assert rows == [0, 1, 2, None, 0]


def test_no_label_of_an_episode_covers_the_name_of_a_limit() -> None:
    log = SAMPLES / "limits" / "72-mib-1.log.gz"
    report = gca.read(log, memory_limit="72MiB", gogc="off").report()
    events = described(report, "timeline").events
    first = [each for each in events if each.row is not None][:2]
    assert [each.name for each in first] == ["Limit thrash", "Assist storm"]
    assert [each.row for each in first] == [0, 2]


def test_a_heap_that_moves_in_the_top_tenth_is_drawn_without_zero() -> None:
    def panel(*values: float) -> Panel:
        mark = Mark("live heap", pl.Series(range(len(values))), pl.Series(values))
        return Panel("heap", "Heap, MiB", (mark,), levels=(Level("container 900 MiB", 900.0),))

    steady = panel(95.0, 99.0, 100.0)
    assert steady.span.is_cut
    assert 94 < steady.span.low < 95
    assert [each.name for each in steady.span.above] == ["container 900 MiB"]
    assert "does not start at 0" in Figure("x", "x", (steady,)).all_notes[-1]
    moving = panel(80.0, 100.0)
    assert (moving.span.low, moving.span.is_cut) == (0.0, False)


def test_metrics_have_a_timeline_of_their_intervals() -> None:
    run = gca.read(ROOT / "tests/corpus/metrics/own/thrash-limit80/query-raw.json.gz")
    figure = described(run.report(), "timeline")
    drawn = [panel.name for panel in figure.panels if panel.drawn]
    assert drawn == ["heap", "pauses", "gc_cpu", "frequency", "allocation"]
    heap = figure.panels[0]
    assert "resident memory" in [mark.name for mark in heap.marks]
    assert [level.name for level in heap.levels] == ["GOMEMLIMIT 80 MiB"]
    cpu = next(mark for panel in figure.panels for mark in panel.marks if mark.name == "GC CPU")
    assert cpu.y[:-1].equals(between_dumps(run)["gc_cpu_share"], check_names=False)
    assert cpu.x[-1] == between_dumps(run)["end_at"].max()


def test_bands_show_when_a_state_that_comes_and_goes_lasted(tmp_path: Path) -> None:
    long = set(range(20, 600, 20))
    text = "\n".join(
        LINE_OF_A_PAUSE.format(n=n, s=0.2 * n, pause=40.0 if n in long else 0.02)
        for n in range(1, 601)
    )
    path = tmp_path / "a.log"
    path.write_text(text)
    report = gca.read(path).report()
    (episode,) = report.analysis.episodes.filter(kind="pause-outlier").iter_rows(named=True)
    assert episode["end_s"] - episode["start_s"] > 100
    # The length of that range would read like one of a pause, which is shown instead.
    _, table = ranges.episodes(report, axis_of(report, bins=100))
    assert table.rows[0][table.head.index("length")] == "pauses ≤ 40 ms"
    bands = [
        each for each in described(report, "timeline").events if each.name == "Pause outlier"
    ]
    assert len(bands) == 20
    widths: list[Any] = [each.end - each.begin for each in bands]  # type: ignore[operator]
    assert sum(widths) < 2
    # Twenty lines would stripe every panel, and their labels cover the curves.
    assert {each.row for each in bands} == {None}
    figure = described(report, "timeline")
    drawn = {panel.name: len([*figure.events_of(panel.name)]) for panel in figure.panels}
    assert (drawn["pauses"], drawn["heap"]) == (20, 0)
    assert any("Short episodes" in note for note in figure.notes)


LINE_OF_A_PAUSE = (
    "gc {n} @{s:.3f}s 1%: 0.01+1.0+{pause} ms clock, 0.04+0.1/0.5/0+0.1 ms cpu, "
    "8->9->5 MB, 10 MB goal, 0 MB stacks, 0 MB globals, 4 P"
)


FEW = """\
gc 1 @1.000s 1%: 0.1+9.8+0.1 ms clock, 0.2+1.0/9.0/0.0+0.2 ms cpu, 4->4->2 MB, 4 MB goal, 0 MB stacks, 0 MB globals, 2 P
gc 2 @3.000s 1%: 0.1+9.8+0.1 ms clock, 0.2+1.0/19.0/0.0+0.2 ms cpu, 8->8->2 MB, 8 MB goal, 0 MB stacks, 0 MB globals, 2 P
gc 3 @7.000s 1%: 0.1+9.8+0.1 ms clock, 0.2+1.0/9.0/0.0+0.2 ms cpu, 6->6->2 MB, 6 MB goal, 0 MB stacks, 0 MB globals, 2 P
"""


def test_rates_of_few_cycles_are_steps_over_the_time_they_cover() -> None:
    figure = described(read_text(FEW).report(), "timeline")
    marks = {mark.name: mark for panel in figure.panels for mark in panel.marks}
    share, allocation = marks["GC CPU"], marks["allocation"]
    assert share.kind == allocation.kind == "step"
    # From the start of the process, and then from the end of each cycle to that of the next.
    assert share.x.to_list() == pytest.approx([0.0, 1.01, 3.01, 7.01], abs=1e-3)
    assert share.y[3] == share.y[2]
    assert allocation.x.to_list() == pytest.approx([1.0, 3.0, 7.0])
    assert allocation.y.to_list() == pytest.approx([3.0, 1.0, 1.0], abs=0.6)
    assert figure.x_range is not None
    assert figure.x_range[0] == 0.0
    assert all(mark.has_stems for mark in figure.panels[1].marks)


def test_a_missing_cycle_leaves_a_gap_in_the_steps() -> None:
    lines = FEW.splitlines(keepends=True)
    figure = described(read_text(lines[0] + lines[2]).report(), "timeline")
    allocation = figure.panels[-1].marks[0]
    assert allocation.y.count() == 0


def test_an_axis_begins_with_the_first_cycle_if_that_came_late() -> None:
    late = FEW.replace("@1.000s", "@6.000s").replace("@3.000s", "@6.500s")
    figure = described(read_text(late).report(), "timeline")
    assert figure.x_range is not None
    assert figure.x_range[0] == 6.0


def test_the_trade_off_calls_a_setting_of_low_confidence_as_the_table_does() -> None:
    report = gca.read(SAMPLES / "assists-go1.16.log").report()
    names = [mark.name for mark in described(report, "trade_off").panels[0].marks]
    assert sum(name.startswith("try: ") for name in names) == 1
    assert not any(name.startswith("advised: ") for name in names)
    steady = gca.read(SAMPLES / "steady-go1.26.log").report()
    names = [mark.name for mark in described(steady, "trade_off").panels[0].marks]
    assert names[1:] == ["or: GOGC=150", "now: GOGC=100 (no change)"], "as in the table"


def test_a_plot_without_data_says_why() -> None:
    run = read_text(FEW)
    for name, needed in (("memory", "curl .*/debug/vars"), ("sites", "curl .*/pprof/heap")):
        with pytest.raises(
            gca.NoDataError, match=f"plot {name}: this .*has no data for it"
        ) as err:
            run.plot.draw(name)  # type: ignore[arg-type]
        assert re.search(needed, str(err.value))
    with pytest.raises(gca.NoDataError, match="Other plots: timeline"):
        run.plot.trade_off(backend="matplotlib")


@pytest.mark.parametrize("log", ["steady-go1.26.log", "steady-go1.9.log", "spike-go1.26.log"])
def test_a_heat_map_counts_every_pause(log: str) -> None:
    run = gca.read(SAMPLES / log)
    (mark,) = described(run.report(), "pause_heatmap").panels[0].marks
    pauses = run.pauses().filter(pl.col("phase") == "all pauses")
    assert sum(n for row in mark.cells for n in row if n) == pauses["pauses"].item()
    assert (len(mark.cells) + 1, len(mark.cells[0]) + 1) == (len(mark.y), len(mark.x))
    assert mark.y[0] <= run.cycles["stw_mark_term_ms"].max() <= mark.y[-1]
    (trace,) = run.plot.pause_heatmap().data
    assert (trace.type, len(trace.x), len(trace.y)) == ("heatmap", len(mark.x), len(mark.y))
    axes = run.plot.pause_heatmap(backend="matplotlib").axes
    assert [each.get_ylabel() for each in axes] == ["", "pauses"]
    # Many pauses differ most from the ground, and the highest count has a label.
    assert (trace.colorscale[0][1], trace.colorscale[-1][1]) == ("#fde725", "#440154")
    assert axes[0].collections[0].get_cmap().name == "viridis_r"
    assert max(n for row in mark.cells for n in row if n) == mark.counts[-1]


def test_a_plot_that_is_called_by_its_name_says_how() -> None:
    plots: Any = gca.read(SAMPLES / "steady-go1.26.log").plot
    with pytest.raises(TypeError, match=r"Did you mean run\.plot\.pauses\(\)\?"):
        plots("pauses")


def test_the_trade_off_says_from_where_on_the_limit_sets_the_peak() -> None:
    log = SAMPLES / "refill" / "service.log.gz"
    run = gca.read(log, memory_limit="104MiB", container_limit="256MiB")
    said = "From GOGC=150 on, the limit sets the peak: a higher GOGC lowers only GC CPU, if anything."
    assert said in described(run.report(), "trade_off").notes
    free = described(gca.read(SAMPLES / "steady-go1.26.log").report(), "trade_off").notes
    assert "sets the peak" not in " ".join(free)


def test_a_heat_map_of_dumps_has_the_pauses_that_they_remember() -> None:
    run = gca.read(CORPUS / "inputs/memstats/expvar-debug-vars.json")
    (mark,) = described(run.report(), "pause_heatmap").panels[0].marks
    assert sum(n for row in mark.cells for n in row if n) == len(run.cycle_pauses)


def test_sites_are_bars_with_what_they_cost_the_longest_on_top() -> None:
    folder = PROFILES / "leaks" / "timer"
    names = ("run.log", "heap-early.pb.gz", "heap-late.pb.gz")
    run = gca.read(*(folder / name for name in names))
    growth, allocation = described(run.report(), "sites").drawn_panels
    assert growth.names[-1].startswith("main.(*limiter).allow (main.go:")
    assert allocation.names[-1].startswith("main.serve (main.go:")
    (bars,) = allocation.marks
    assert bars.x.to_list() == sorted(bars.x)
    assert bars.where is not None
    assert re.fullmatch(r"9\d\.\d %, [\d.]+ MiB/s, [\d.]+ cores of GC", bars.where[-1])
    drawn = run.plot.sites()
    assert [trace.orientation for trace in drawn.data] == ["h", "h"]
    assert drawn.layout.yaxis2.ticktext == allocation.names
    axes = run.plot.sites(backend="matplotlib").axes
    assert [label.get_text() for label in axes[0].get_yticklabels()] == list(growth.names)


def test_without_a_profile_the_plot_of_sites_says_what_is_missing() -> None:
    figure = described(gca.read(PROFILES / "requests" / "run.log").report(), "sites")
    assert not figure.drawn
    assert "no heap profile" in figure.notes[0]


@pytest.mark.parametrize(("bins", "drawn"), [(100, 40), (12, 14)])
def test_a_time_without_values_is_a_gap_also_between_bins(bins: int, drawn: int) -> None:
    values = [None if 10 <= at < 15 or at == 20 else float(at) for at in range(40)]
    points = pl.DataFrame(
        {"x": range(40), "y": values}, schema={"x": pl.Float64, "y": pl.Float64}
    )
    line = binned(points, bins, gaps=True)
    assert len(line) == drawn
    assert line.filter(pl.col("x").is_between(10, 12))["y"].null_count() == 3
    assert line["x"].is_sorted()
    mark = Mark("live", line["x"], line["y"])
    figure = Figure("f", "f", (Panel("p", "p", (mark,), is_timed=True),), x_range=(0.0, 39.0))
    (chart,) = charts_of(figure, {}, linked=True)
    runs = 3 if bins > 40 else 2
    assert next(path.d for path in chart.paths if path.kind == "line").count("M") == runs


def test_a_value_between_two_gaps_is_seen() -> None:
    mark = Mark("live", pl.Series([0.0, 1, 2, 3, 4]), pl.Series([1.0, None, 2, None, 3]))
    figure = Figure("f", "f", (Panel("p", "p", (mark,), is_timed=True),), x_range=(0.0, 4.0))
    (chart,) = charts_of(figure, {}, linked=True)
    line = next(path.d for path in chart.paths if path.kind == "line")
    assert line.count("h2") == line.count("M") == 3
