"""The HTML report in a real browser."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.present.html import report_page
from tests.conftest import ROOT, SAMPLES
from tests.helpers.browser import browser, opened

if TYPE_CHECKING:
    from pathlib import Path

    from gctrace_analyzer.present.plots.palette import Theme

__all__ = ["browser"]

INPUTS = sorted(
    path for path in SAMPLES.iterdir() if path.is_file() and path.suffix not in (".toml", ".md")
)
TIMED = ".chart.timed"
CHART_IS_DRAWN = """id => {
  const marks = document.getElementById(id).querySelectorAll('svg.plotted .line, svg.plotted .points');
  return [...marks].some(mark => mark.getBBox().width > 0 || mark.getTotalLength() >= 0);
}"""
SHOWN = "document.querySelector('.timed svg.plotted').getAttribute('viewBox')"
WHOLE = "0 0 1000 100"
METRICS = ROOT / "tests/corpus/metrics/own/thrash-limit80/query-raw.json.gz"


def saved(run: gca.Run, folder: Path, **how: Any) -> Path:
    path = folder / "report.html"
    path.write_text(report_page.dumps(run.report(), **how))
    return path


def drawn_whole(page: Any) -> list[str]:
    """The names of all charts, after the script has run."""
    page.wait_for_selector(":root.live")
    names: list[str] = page.eval_on_selector_all(".chart", "all => all.map(each => each.id)")
    return names


def ranges(page: Any) -> list[str]:
    """What each time chart shows: the left end and the width of its visible part."""
    found: list[str] = page.eval_on_selector_all(
        f"{TIMED} svg.plotted",
        "all => all.map(each => each.getAttribute('viewBox').split(' ').filter((_, at) => at % 2 === 0).join(' '))",
    )
    return found


def middle(page: Any, chart: str = f"{TIMED} .area") -> tuple[dict[str, float], float]:
    """The box of the first such chart, and the middle of its height."""
    area = page.locator(chart).first
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    return box, box["y"] + box["height"] / 2


def dragged(page: Any, begin: float, end: float) -> None:
    """Drags over the first time chart, between two shares of its width."""
    box, y = middle(page)
    page.mouse.move(box["x"] + begin * box["width"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + end * box["width"], y, steps=5)
    page.mouse.up()


@pytest.mark.parametrize("sample", INPUTS, ids=lambda path: path.name)
def test_every_sample_opens_clean_with_its_charts(
    browser: Any, tmp_path: Path, sample: Path
) -> None:
    run = gca.read(sample)
    with opened(browser, saved(run, tmp_path)) as (page, wrong):
        names = drawn_whole(page)
        assert page.locator("h1").inner_text() == run.report().name
        assert bool(names) == (len(run.cycles) > 0 or len(run.memstats) > 2)
        for name in names:
            page.wait_for_function(CHART_IS_DRAWN, arg=name, timeout=10_000)
        assert wrong == []


def test_a_finding_and_the_buttons_move_all_time_charts(browser: Any, tmp_path: Path) -> None:
    path = saved(gca.read(SAMPLES / "leak-into-limit-go1.24.log"), tmp_path)
    with opened(browser, path) as (page, wrong):
        drawn_whole(page)
        whole = ranges(page)
        assert len(whole) == 7
        page.locator(".finding a[href^='#t=']").first.click()
        page.wait_for_function(f"() => {SHOWN} !== '{WHOLE}'")
        there = ranges(page)
        assert len(set(there)) == 1
        assert there != whole
        assert "#t=" in page.url
        page.locator("[data-move=all]").press("Enter")
        assert ranges(page) == whole
        page.wait_for_function("location.hash === ''")
        assert wrong == []


def test_dragging_zooms_charts_tables_and_figures_and_a_double_click_resets(
    browser: Any, tmp_path: Path
) -> None:
    run = gca.read(SAMPLES / "leak-into-limit-go1.24.log")
    with opened(browser, saved(run, tmp_path)) as (page, wrong):
        drawn_whole(page)
        whole = page.inner_text("#range")
        assert "73 cycles" in whole
        assert "GC CPU 35.2\u00a0%" in whole
        dragged(page, 0.5, 0.75)
        assert len(set(ranges(page))) == 1
        assert abs(float(ranges(page)[0].split()[1]) - 250) < 2
        part = page.inner_text("#range")
        assert "Whole run" not in part
        cycles = int(part.split(" cycles")[0].rpartition(" ")[2])
        assert 0 < cycles < 73
        assert f"{cycles} of 73 cycles in the chosen range" in page.inner_text("#found")
        begin, end = (float(word) for word in page.url.partition("#t=")[2].split("-"))
        inside = run.cycles.filter(run.cycles["start_s"].is_between(begin, end))
        assert cycles == len(inside)
        box, y = middle(page)
        page.mouse.dblclick(box["x"] + 50, y)
        assert page.inner_text("#range") == whole
        page.wait_for_function("location.hash === ''")
        assert wrong == []


def test_escape_and_back_show_the_whole_run_and_other_links_keep_the_range(
    browser: Any, tmp_path: Path
) -> None:
    path = saved(gca.read(SAMPLES / "leak-into-limit-go1.24.log"), tmp_path)
    with opened(browser, path) as (page, wrong):
        drawn_whole(page)
        for leave in (lambda: page.keyboard.press("Escape"), page.go_back):
            dragged(page, 0.5, 0.75)
            dragged(page, 0.2, 0.9)
            assert ranges(page)[0] != "0 1000"
            leave()
            page.wait_for_function(f"() => {SHOWN} === '{WHOLE}'")
            page.wait_for_function("location.hash === ''")
        dragged(page, 0.5, 0.75)
        page.locator(".contents a[href='#cycles']").click()
        assert ranges(page)[0] != "0 1000"
        assert wrong == []


def test_in_a_range_captions_follow_and_the_rest_says_that_it_is_of_the_whole(
    browser: Any, tmp_path: Path
) -> None:
    run = gca.read(SAMPLES / "leak-into-limit-go1.24.log")
    with opened(browser, saved(run, tmp_path)) as (page, wrong):
        drawn_whole(page)
        caption = page.locator("#timeline-heap .statement")
        whole = caption.inner_text()
        says = "getComputedStyle(document.querySelector('#distributions').parentElement, '::before')"
        assert page.evaluate(f"{says}.content") == "none"
        dragged(page, 0.5, 0.75)
        begin, end = (float(word) for word in page.url.partition("#t=")[2].split("-"))
        live = run.cycles.filter(run.cycles["start_s"].is_between(begin, end))[
            "heap_live_mib"
        ].to_list()
        assert f"live heap (marked) {min(live)} to {max(live)}\u00a0MiB" in caption.inner_text()
        assert "whole run" in page.evaluate(f"{says}.content")
        page.keyboard.press("Escape")
        assert caption.inner_text() == whole
        assert wrong == []


def test_headings_are_words_and_the_names_of_bands_are_above_the_data(
    browser: Any, tmp_path: Path
) -> None:
    run = gca.read(SAMPLES / "refill" / "service.log.gz", memory_limit="104MiB")
    with opened(browser, saved(run, tmp_path)) as (page, wrong):
        drawn_whole(page)
        assert page.title() == "service: Go garbage collection"
        assert page.inner_text("h1") == "service"
        assert page.inner_text("#GC016") == "Limit thrash GC016"
        area = page.locator("#timeline-heap .area").bounding_box()
        for tag in page.locator("#timeline-heap .tag.band").all():
            box = tag.bounding_box()
            assert box["y"] + box["height"] <= area["y"] + 1
        tags = page.locator("#timeline-heap .tag.band").all_inner_texts()
        assert set(tags) == {"Limit thrash", "Assist storm"}
        assert wrong == []


def test_a_crosshair_is_shared_by_all_time_charts(browser: Any, tmp_path: Path) -> None:
    path = saved(gca.read(SAMPLES / "steady-go1.26.log"), tmp_path)
    with opened(browser, path) as (page, wrong):
        drawn_whole(page)
        box, y = middle(page)
        page.mouse.move(box["x"] + box["width"] / 2, y, steps=4)
        lines = page.eval_on_selector_all(
            f"{TIMED} .cross", "all => all.map(each => [each.hidden, each.style.left])"
        )
        assert len({str(each) for each in lines}) == 1
        assert lines[0][0] is False
        hovered = page.locator(".tip:not([hidden])").inner_text()
        assert "steady-go1.26.log:" in hovered
        assert "MiB" in hovered
        assert "ms" in page.locator("#timeline-pauses .now").first.inner_text()
        assert wrong == []


def test_a_tooltip_has_both_ends_of_an_interval_and_only_what_is_there(
    browser: Any, tmp_path: Path
) -> None:
    log = SAMPLES / "refill" / "service.log.gz"
    run = gca.read(log, memory_limit="104MiB", container_limit="256MiB")
    with opened(browser, saved(run, tmp_path)) as (page, wrong):
        drawn_whole(page)
        chart = "#trade_off-trade_off"
        box, y = middle(page, f"{chart} .area")
        page.mouse.move(box["x"] + 0.3 * box["width"], y, steps=2)
        said = page.inner_text(f"{chart} .tip").replace("\u00a0", " ")
        assert "interval: 9 % (6.5 % to 12.4 %)" in said
        assert "now" not in said
        assert "try" not in said
        assert wrong == []


def test_an_address_with_a_range_opens_there(browser: Any, tmp_path: Path) -> None:
    path = saved(gca.read(SAMPLES / "spike-go1.26.log"), tmp_path)
    with opened(browser, path, "#t=0.5-1.5") as (page, wrong):
        drawn_whole(page)
        assert page.inner_text("#range").startswith("0.5\u00a0s – 1.5\u00a0s")
        assert page.url.endswith("#t=0.5-1.5")
        assert wrong == []


def test_the_table_is_searched_sorted_and_turned_over(browser: Any, tmp_path: Path) -> None:
    run = gca.read(SAMPLES / "leak-into-limit-go1.24.log")
    with opened(browser, saved(run, tmp_path)) as (page, wrong):
        drawn_whole(page)
        first = "#records tbody tr:first-child"
        page.locator("#records th button", has_text="cycle").first.click()
        assert page.locator(first).inner_text().startswith("gc 73")
        page.locator("#records th button", has_text="cycle").first.click()
        assert page.locator(first).inner_text().startswith("gc 1")
        page.locator("#next").click()
        assert page.locator(first).inner_text().startswith("gc 26")
        page.fill("#search", "gc 440")
        assert page.inner_text("#found").startswith("0 of 73")
        page.fill("#search", "gc 44")
        assert page.locator("#records tbody tr").count() == 1
        page.locator(f"{first} a").click()
        page.wait_for_function(f"() => {SHOWN} !== '{WHOLE}'")
        assert wrong == []


def test_a_keyboard_reaches_everything_in_few_steps(browser: Any, tmp_path: Path) -> None:
    path = saved(gca.read(SAMPLES / "thrash-go1.19.log"), tmp_path)
    with opened(browser, path) as (page, wrong):
        drawn_whole(page)
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        assert page.url.endswith("#main")
        stops = page.eval_on_selector_all(
            ".chart",
            "all => all.map(each => each.querySelectorAll('a, button, [tabindex]').length)",
        )
        assert set(stops) == {0}
        said = page.eval_on_selector_all(
            ".chart .plot[role=img]", "all => all.map(each => each.getAttribute('aria-label'))"
        )
        assert len(said) == len(stops)
        assert all(len(each.split()) >= 3 for each in said)
        charts = len(ranges(page))
        page.locator("[data-move=in]").press("Enter")
        assert ranges(page) == ["250 500"] * charts
        page.keyboard.press("Escape")
        assert ranges(page) == ["0 1000"] * charts
        page.locator("[role=tab]").first.focus()
        page.keyboard.press("ArrowRight")
        assert (
            page.locator("[role=tab][aria-selected=true]").inner_text() == "Time between cycles"
        )
        assert page.locator("#frequency-distribution").is_visible()
        assert not page.locator("#pauses-spread").is_visible()
        assert wrong == []


def test_print_shows_everything_in_light_colors(browser: Any, tmp_path: Path) -> None:
    path = saved(gca.read(SAMPLES / "leak-into-limit-go1.24.log"), tmp_path)
    with opened(browser, path, color_scheme="dark") as (page, wrong):
        names = drawn_whole(page)
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        for name in names:
            assert page.locator(f"[id='{name}']").is_visible()
        look = "getComputedStyle(document.body).backgroundColor"
        assert brightness(page.evaluate(look)) == 3 * 255
        line = "getComputedStyle(document.querySelector('svg.plotted .line.blue')).stroke"
        assert page.evaluate(line) == "rgb(26, 79, 214)"
        assert not page.locator("[data-move=all]").is_visible()
        assert page.locator(".skip").is_hidden()
        after = "getComputedStyle(document.querySelector('h2')).breakAfter"
        assert page.evaluate(after) == "avoid"
        assert page.pdf(format="A4", print_background=True).startswith(b"%PDF")
        assert wrong == []


@pytest.mark.parametrize("is_sideways", [False, True])
def test_on_a_phone_a_swipe_up_scrolls_and_one_sideways_zooms(
    browser: Any, tmp_path: Path, *, is_sideways: bool
) -> None:
    path = saved(gca.read(SAMPLES / "spike-go1.26.log"), tmp_path)
    phone: dict[str, Any] = {
        "viewport": {"width": 390, "height": 844},
        "has_touch": True,
        "is_mobile": True,
    }
    with opened(browser, path, **phone) as (page, wrong):
        drawn_whole(page)
        box, y = middle(page)
        before = page.evaluate("scrollY")
        session = page.context.new_cdp_session(page)
        x = box["x"] + box["width"] / 2
        points = [
            {"x": x + 10 * step, "y": y} if is_sideways else {"x": x, "y": y - 25 * step}
            for step in range(12)
        ]
        kinds = ["touchStart", *["touchMove"] * 11]
        for kind, point in zip(kinds, points, strict=True):
            session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [point]})
        session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        if is_sideways:
            page.wait_for_function(f"() => {SHOWN} !== '{WHOLE}'")
            assert page.evaluate("scrollY") < before + 100
            begin, width = map(float, ranges(page)[0].split())
            assert 480 < begin < 600
            assert 200 < width < 500
        else:
            page.wait_for_function("before => scrollY > before + 200", arg=before)
            assert ranges(page)[0] == "0 1000"
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert wrong == []


BEYOND = """all => all.filter(each => each.scrollWidth > each.clientWidth + 1)
  .map(each => each.getAttribute('aria-label'))"""
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}}


def test_on_a_phone_settings_with_a_limit_cut_off_no_column(
    browser: Any, tmp_path: Path
) -> None:
    run = gca.read(SAMPLES / "leak-go1.26.log", container_limit="300MiB")
    with opened(browser, saved(run, tmp_path), **PHONE) as (page, wrong):
        settings = page.locator(".scroll", has_text="heap peak MiB").first
        assert "GOMEMLIMIT=" in settings.inner_text()
        longest = "advised GOGC=100 GOMEMLIMIT=123456MiB"
        settings.locator("tbody th").first.evaluate(f"each => each.textContent = '{longest}'")
        assert settings.evaluate("each => each.scrollWidth <= each.clientWidth")
        assert wrong == []


def test_on_a_phone_no_table_is_wider_than_the_screen(browser: Any, tmp_path: Path) -> None:
    run = gca.read(SAMPLES / "together-go1.22.log", SAMPLES / "restart-go1.26.log")
    with opened(browser, saved(run, tmp_path), **PHONE) as (page, wrong):
        drawn_whole(page)
        page.eval_on_selector_all(
            "details", "all => all.forEach(each => { each.open = true; })"
        )
        assert page.eval_on_selector_all(".scroll", BEYOND) == []
        row = page.locator("#records tbody tr").first
        # A block of values with their names, in place of a row below a head.
        labels = row.locator("td").evaluate_all("all => all.map(each => each.dataset.label)")
        heads = page.locator("#records thead th").all_inner_texts()
        assert [each.split(" ▼")[0] for each in heads[1:]] == labels
        assert row.evaluate("each => getComputedStyle(each).display") == "grid"
        assert page.locator("#records tbody tr").count() == 10
        page.locator("#records thead button", has_text="marking").click()
        shown = page.locator("#records td[data-label='marking, ms']").evaluate_all(
            "all => all.map(each => Number(each.lastChild.textContent))"
        )
        assert shown == sorted(shown, reverse=True)
        assert wrong == []


def test_a_phone_has_several_ticks_that_do_not_touch(browser: Any, tmp_path: Path) -> None:
    run = gca.read(ROOT / "tests/corpus/wild/go19393-22gb-late-cycles.log")
    with opened(browser, saved(run, tmp_path), **PHONE) as (page, wrong):
        drawn_whole(page)
        boxes = page.locator("#timeline-heap .xs span").evaluate_all(
            "all => all.map(each => each.getBoundingClientRect()).map(({left, right}) => [left, right])"
        )
        assert len(boxes) >= 3
        assert all(one[1] < other[0] for one, other in pairwise(boxes))
        assert wrong == []


def test_a_short_log_has_steps_and_points_with_stems(browser: Any, tmp_path: Path) -> None:
    run = gca.read(ROOT / "tests/corpus/wild/go19393-22gb-late-cycles.log")
    with opened(browser, saved(run, tmp_path)) as (page, wrong):
        drawn_whole(page)
        assert page.locator("#timeline-pauses path.stems").count() == 2
        share = page.locator("#timeline-gc_cpu path.line").last.get_attribute("d") or ""
        assert share.count("H") >= 5
        # Between two cycles the value is that of the later one, which it covers.
        box, y = middle(page, "#timeline-gc_cpu .area")
        page.mouse.move(box["x"] + 0.4 * box["width"], y)
        said = page.inner_text("#timeline-gc_cpu .tip")
        assert said.splitlines()[0].endswith("gc 286 · go19393-22gb-late-cycles.log:3")
        assert said.splitlines()[-1] == "GC CPU: 13\u00a0%"
        # One page of cycles needs no buttons to turn pages.
        assert page.locator("#next").is_hidden()
        assert "page" not in page.inner_text("#found")
        assert wrong == []


def test_the_figures_of_the_whole_run_are_the_key_figures(browser: Any, tmp_path: Path) -> None:
    run = gca.read(METRICS)
    with opened(browser, saved(run, tmp_path)) as (page, wrong):
        drawn_whole(page)
        assert "live heap up to 69.7\u00a0MiB" in page.inner_text("#range")
        assert "max 69.7\u00a0MiB" in page.inner_text(".cards")
        assert wrong == []


def test_charts_of_one_process_say_that_their_figures_are_of_all(
    browser: Any, tmp_path: Path
) -> None:
    run = gca.read(SAMPLES / "together-go1.22.log", SAMPLES / "restart-go1.26.log")
    with opened(browser, saved(run, tmp_path)) as (page, wrong):
        drawn_whole(page)
        assert "All 4 processes: longest" in page.inner_text("#timeline-pauses figcaption")
        gogc = page.text_content("#goal-gogc figcaption") or ""
        assert "All 4 processes: effective GOGC" in gogc
        assert wrong == []


def test_processes_that_run_side_by_side_have_a_switch(browser: Any, tmp_path: Path) -> None:
    run = gca.read(SAMPLES / "together-go1.22.log")
    with opened(browser, saved(run, tmp_path)) as (page, wrong):
        drawn_whole(page)
        shown = f"{TIMED}:not([hidden])"
        count = page.locator(shown).count()
        assert "Process 0: " in page.inner_text("#range")
        assert "28 cycles" in page.inner_text("#range")
        assert "not drawn" not in page.inner_text("main")
        page.select_option("#process", index=1)
        assert "Process 1: " in page.inner_text("#range")
        assert "27 cycles" in page.inner_text("#range")
        assert page.locator(shown).count() == count
        box, y = middle(page, f"{shown} .area")
        page.mouse.move(box["x"] + 0.5 * box["width"], y)
        page.mouse.down()
        page.mouse.move(box["x"] + 0.8 * box["width"], y, steps=5)
        page.mouse.up()
        begin, end = (float(word) for word in page.url.partition("#t=")[2].split("-"))
        own = run.process(1).cycles.filter(pl.col("start_s").is_between(begin, end))
        assert f"{len(own)} of 55 cycles in the chosen range" in page.inner_text("#found")
        assert f"{len(own)} cycles" in page.inner_text("#range")
        page.select_option("#process", index=0)
        assert "28 cycles" in page.inner_text("#range")
        page.wait_for_function("location.hash === ''")
        assert wrong == []


def test_a_light_page_needs_no_script(browser: Any, tmp_path: Path) -> None:
    run = gca.read(SAMPLES / "leak-into-limit-go1.24.log")
    path = saved(run, tmp_path, light=True, command="gctrace-analyze run.log --light")
    assert path.stat().st_size < 1_000_000
    assert "<script" not in path.read_text()
    with opened(browser, path, java_script_enabled=False) as (page, wrong):
        assert page.locator(".chart .plot").count() > 8
        assert page.locator("#records tbody tr, #cycles ~ .scroll tbody tr").count() == 25
        assert page.locator("a[href^='#t=']").count() == 0
        assert "gctrace-analyze run.log --light" in page.inner_text("main")
        assert page.locator("[data-move], #search").count() == 0
        assert wrong == []


def test_metrics_alone_have_charts_over_wall_clock_time(browser: Any, tmp_path: Path) -> None:
    run = gca.read(METRICS)
    assert run.cycles.is_empty()
    with opened(browser, saved(run, tmp_path)) as (page, wrong):
        names = drawn_whole(page)
        shown = ("heap", "pauses", "gc_cpu", "frequency", "allocation")
        assert [f"timeline-{name}" for name in shown] == names[:5]
        assert "GOMEMLIMIT" in page.inner_text("#timeline-heap")
        assert "resident memory" in page.inner_text("#timeline-heap")
        assert page.locator("#timeline-heap .xs span").first.inner_text() == "20:11:20"
        dragged(page, 0.2, 0.4)
        assert len(set(ranges(page))) == 1
        assert "intervals in the chosen range" in page.inner_text("#found")
        assert wrong == []


def test_a_kill_and_its_limit_are_drawn(browser: Any, tmp_path: Path) -> None:
    with opened(browser, saved(gca.read(SAMPLES / "oom-journal.jsonl"), tmp_path)) as (
        page,
        wrong,
    ):
        drawn_whole(page)
        heap = page.inner_text("#timeline-heap")
        assert "OOM kill" in heap
        assert "container limit 512\u00a0MiB" in heap
        assert "resident at the kill" in heap
        moments = page.locator(f"{TIMED} .moment[d]").count()
        assert moments == page.locator(TIMED).count()
        assert wrong == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_pass_the_accessibility_rules(
    browser: Any, tmp_path: Path, scheme: str
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    path = saved(gca.read(SAMPLES / "thrash-go1.19.log"), tmp_path)
    with opened(browser, path, color_scheme=scheme, bypass_csp=True) as (page, _):
        drawn_whole(page)
        ground, ink = page.evaluate(
            "[getComputedStyle(document.body).backgroundColor, "
            "getComputedStyle(document.body).color]"
        )
        found = axe.Axe().run(page).response["violations"]
        grave = [each for each in found if each["impact"] in ("serious", "critical")]
    assert (brightness(ground) < brightness(ink)) == (scheme == "dark")
    assert [(each["id"], each["nodes"][0]["html"][:200]) for each in grave] == []


def brightness(color: str) -> int:
    return sum(int(part) for part in color[color.index("(") + 1 : -1].split(",")[:3])


def test_the_theme_button_turns_dark_to_light(browser: Any, tmp_path: Path) -> None:
    path = saved(gca.read(SAMPLES / "steady-go1.26.log"), tmp_path)
    look = "getComputedStyle(document.body).backgroundColor"
    with opened(browser, path, color_scheme="dark") as (page, wrong):
        drawn_whole(page)
        dark = page.evaluate(look)
        page.locator("#theme").click()
        assert brightness(page.evaluate(look)) > brightness(dark)
        assert wrong == []


@pytest.mark.parametrize(("theme", "system"), [("dark", "light"), ("light", "dark")])
def test_a_page_opens_in_its_theme_whatever_the_system_prefers(
    browser: Any, tmp_path: Path, theme: Theme, system: str
) -> None:
    path = tmp_path / "report.html"
    run = gca.read(SAMPLES / "steady-go1.26.log")
    path.write_text(report_page.dumps(run.report(), theme=theme))
    look = "getComputedStyle(document.body).backgroundColor"
    with opened(browser, path, color_scheme=system) as (page, wrong):
        drawn_whole(page)
        first = brightness(page.evaluate(look))
        page.locator("#theme").click()
        assert (first > brightness(page.evaluate(look))) == (theme == "light")
        assert wrong == []


@pytest.mark.parametrize(
    "sample", ["spike-go1.26.log", "oom-journal.jsonl", "gomemlimit-paper.txt"]
)
def test_a_phone_shows_it_without_scrolling_sideways(
    browser: Any, tmp_path: Path, sample: str
) -> None:
    path = saved(gca.read(SAMPLES / sample), tmp_path)
    with opened(browser, path, viewport={"width": 390, "height": 844}) as (page, wrong):
        drawn_whole(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert wrong == []


def test_a_light_page_fits_a_phone(browser: Any, tmp_path: Path) -> None:
    path = saved(gca.read(SAMPLES / "refill" / "service.log.gz"), tmp_path, light=True)
    with opened(
        browser, path, viewport={"width": 390, "height": 844}, java_script_enabled=False
    ) as (page, _):
        ticks = page.eval_on_selector_all(
            ".xs span", "all => all.map(each => each.getBoundingClientRect().right)"
        )
        assert max(ticks) <= 390


def test_every_point_has_a_length_because_pdf_draws_no_square_without(tmp_path: Path) -> None:
    page = saved(gca.read(SAMPLES / "steady-go1.26.log"), tmp_path).read_text()
    assert "h.01" in page
    assert not re.search(r"M[\d.]+ [\d.]+h0", page)


def test_hostile_text_stays_text(browser: Any, tmp_path: Path) -> None:
    attack = "</script><script>window.ran=1</script><img src=x onerror=window.ran=1>"
    log = tmp_path / "<img src=x onerror='window.ran=1'>.log"
    lines = (SAMPLES / "steady-go1.26.log").read_text().splitlines()
    lines.append(f"gc 99 @3.142s 0%: 0.1+1+{attack}")
    kill = (
        "2026-03-01T10:00:00Z host kernel: Memory cgroup out of memory: Killed process 77 "
        f"({attack[:60]}) total-vm:9kB, anon-rss:8kB, file-rss:0kB, shmem-rss:0kB, UID:0 "
        "pgtables:1kB oom_score_adj:0"
    )
    log.write_text("\n".join([*lines, kill]) + "\n")
    run = gca.read(log)
    assert len(run.rejected)
    assert attack[:20] in str(run.rejected.rows()) + str(run.oom_kills.rows())
    with opened(browser, saved(run, tmp_path)) as (page, wrong):
        drawn_whole(page)
        assert page.evaluate("window.ran") is None
        assert page.locator("img").count() == 0
        assert "onerror" in page.inner_text("body")
        assert wrong == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_comparison_opens_clean_with_its_charts(
    browser: Any, tmp_path: Path, scheme: str
) -> None:
    logs = ("steady-go1.26", "steady-gogc200-go1.26")
    found = gca.compare(*(str(SAMPLES / f"{name}.log") for name in logs))
    path = tmp_path / "comparison.html"
    path.write_text(found.to_html())
    with opened(browser, path, color_scheme=scheme) as (page, wrong):
        names = drawn_whole(page)
        assert len(names) == 4
        # Not that of mark terminations, which chance may change tenfold.
        assert page.locator(".lane").count() == 13
        assert page.locator(".lane.worse").count() == 1
        words = page.locator(".lanes").get_attribute("aria-label")
        assert "GC CPU -60\u00a0% (" in words
        for name in names:
            page.wait_for_function(CHART_IS_DRAWN, arg=name, timeout=10_000)
        assert page.locator("td.worse").count() == 1
        assert "GOGC 100 → 200" in page.locator(".verdict").inner_text()
        assert wrong == []


def test_the_time_charts_of_a_comparison_zoom_together(browser: Any, tmp_path: Path) -> None:
    logs = ("steady-go1.26", "steady-gogc200-go1.26")
    found = gca.compare(*(str(SAMPLES / f"{name}.log") for name in logs))
    path = tmp_path / "comparison.html"
    path.write_text(found.to_html())
    with opened(browser, path) as (page, wrong):
        drawn_whole(page)
        views = f"[...document.querySelectorAll('{TIMED} svg.plotted')].map((each) => each.viewBox.baseVal.width)"
        assert len(page.evaluate(views)) == 2
        assert page.evaluate(views) == [1000, 1000]
        page.locator(TIMED).first.scroll_into_view_if_needed()
        box = page.locator(f"{TIMED} .area").first.bounding_box()
        page.mouse.move(box["x"] + 0.25 * box["width"], box["y"] + 50)
        page.mouse.down()
        page.mouse.move(box["x"] + 0.75 * box["width"], box["y"] + 50)
        page.mouse.up()
        assert all(abs(width - 500) < 5 for width in page.evaluate(views))
        assert page.inner_text("#range").startswith("0.")
        assert "#t=" in page.url
        page.get_by_role("button", name="Reset").click()
        assert page.evaluate(views) == [1000, 1000]
        assert wrong == []


def test_a_range_says_how_many_cycles_a_point_stands_for(browser: Any, tmp_path: Path) -> None:
    path = saved(
        gca.read(ROOT / "tests/corpus/metrics/own/thrash-limit80/run.log.gz"), tmp_path
    )
    with opened(browser, path) as (page, wrong):
        drawn_whole(page)
        assert "a point is the mean or the highest of 2" in page.inner_text("#range")
        assert wrong == []
    path = saved(gca.read(SAMPLES / "steady-go1.26.log"), tmp_path)
    with opened(browser, path) as (page, wrong):
        drawn_whole(page)
        assert "a point is" not in page.inner_text("#range")


def test_a_comparison_passes_the_accessibility_rules(browser: Any, tmp_path: Path) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    sides = {name: str(SAMPLES / f"{name}.log") for name in ("steady-go1.26", "thrash-go1.19")}
    path = tmp_path / "comparison.html"
    for text in (gca.compare(*sides.values()).to_html(), gca.compare(sides).to_html()):
        path.write_text(text)
        with opened(browser, path, bypass_csp=True) as (page, _):
            drawn_whole(page)
            violations = axe.Axe().run(page).response["violations"]
        grave = [each for each in violations if each["impact"] in ("serious", "critical")]
        assert [(each["id"], each["nodes"][0]["html"][:200]) for each in grave] == []


@pytest.mark.parametrize("width", [390, 1440])
def test_several_sides_are_shown_with_their_whole_names(
    browser: Any, tmp_path: Path, width: int
) -> None:
    long = "a-setting-with-a-name-that-is-too-long-for-the-table-of-a-terminal"
    logs = {"100": "steady-go1.26", "200": "steady-gogc200-go1.26", long: "spike-go1.26"}
    path = tmp_path / "sweep.html"
    folder = tmp_path / "a-folder-with-a-name-that-is-too-long-for-the-screen-of-a-telephone"
    folder.symlink_to(SAMPLES, target_is_directory=True)
    found = gca.compare({name: str(folder / f"{log}.log") for name, log in logs.items()})
    path.write_text(found.to_html())
    size = {"width": width, "height": 900}
    with opened(browser, path, viewport=size) as (page, wrong):
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.locator(".lanes").count() == 5
        names = page.locator(".lanes").first.locator(".name").all_inner_texts()
        assert names == ["200", long]
        assert page.locator(f"th:text-is('{long}')").count() == 2
        assert wrong == []


def test_close_up_a_long_run_shows_single_cycles(browser: Any, tmp_path: Path) -> None:
    run = gca.read(ROOT / "tests/corpus/metrics/etcd/thrash-limit32/run.log.gz")
    path = saved(run, tmp_path)
    within = run.cycles.filter(run.cycles["start_s"].is_between(30.0, 30.4))
    with opened(browser, path, "#t=30.000-30.400") as (page, wrong):
        drawn_whole(page)
        chart = page.locator("#timeline-pauses")
        single = chart.locator("path.single").first.get_attribute("d")
        # One cycle on each side continues lines to the edges.
        assert single.count("M") == len(within) + 2
        assert (
            chart.locator("[data-series='0']").first.evaluate("each => each.style.display")
            == "none"
        )
        assert "a point is" not in page.inner_text("#range")
        page.get_by_role("button", name="Reset").click()
        assert page.locator("path.single").count() == 0
        assert (
            chart.locator("[data-series='0']").first.evaluate("each => each.style.display")
            == ""
        )
        assert "a point is the mean" in page.inner_text("#range")
        assert wrong == []


def test_cycles_of_a_program_that_is_not_drawn_have_their_own_time(
    browser: Any, tmp_path: Path
) -> None:
    path = saved(gca.read(SAMPLES / "together-go1.22.log"), tmp_path)
    with opened(browser, path) as (page, wrong):
        drawn_whole(page)
        times = page.locator("#records tbody td:nth-child(3)").all_inner_texts()
        assert len(times) == 25
        assert "–" not in times
        assert page.locator("#records tbody a").count() < 25
        assert wrong == []


def test_a_long_name_of_a_file_leaves_room_for_the_line(browser: Any, tmp_path: Path) -> None:
    log = tmp_path / "a-service-with-a-very-long-name-in-production-7d9f8c6b5-x2x4z.log"
    log.write_text((SAMPLES / "steady-go1.26.log").read_text())
    second = tmp_path / "another-service-with-a-very-long-name-in-production.log"
    second.write_text((SAMPLES / "spike-go1.26.log").read_text())
    for inputs in ([log], [log, second]):
        path = saved(gca.read(*inputs), tmp_path)
        with opened(browser, path, viewport={"width": 1440, "height": 900}) as (page, wrong):
            drawn_whole(page)
            box = page.locator("#records").evaluate(
                "each => [each.scrollWidth, each.clientWidth]"
            )
            assert box[0] <= box[1]
            assert wrong == []
