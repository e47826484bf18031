"""The HTML report in a real browser."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.present.html import report
from tests.conftest import SAMPLES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

INPUTS = sorted(
    path for path in SAMPLES.iterdir() if path.is_file() and path.suffix not in (".toml", ".md")
)
TIMED = ".chart[id^=timeline-]"
CHART_IS_DRAWN = """id => {
  const marks = document.getElementById(id).querySelectorAll(
    '.scatterlayer .trace path, .scatterlayer .trace .point');
  return [...marks].some(mark => mark.getBoundingClientRect().width > 0);
}"""


def the_browser() -> str | None:
    """Chromium as Debian names it, or as others do."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        path = the_browser() or playwright.chromium.executable_path
        if not os.access(path, os.X_OK):
            pytest.skip("no Chromium here: `scripts/test --all` installs it")
        # Containers run tests as root and give Chromium no sandbox of its own.
        launched = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield launched
        launched.close()


@contextmanager
def opened(
    browser: Any, path: Path, address: str = "", **settings: Any
) -> Iterator[tuple[Any, list[str]]]:
    """The page of a report, and what it complained of or asked of the network."""
    context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **settings})
    page, wrong = context.new_page(), []
    page.on("console", lambda said: wrong.append(f"{said.type}: {said.text}"))
    page.on("pageerror", lambda error: wrong.append(str(error)))

    def dismissed(dialog: Any) -> None:
        wrong.append("a dialog")
        dialog.dismiss()

    page.on("dialog", dismissed)
    page.on(
        "request",
        lambda request: (
            None
            if request.url.startswith(("file:", "data:", "blob:"))
            else wrong.append(request.url)
        ),
    )
    page.goto(path.as_uri() + address)
    yield page, wrong
    context.close()


def saved(run: gca.Run, folder: Path) -> Path:
    path = folder / "report.html"
    path.write_text(report.dumps(run.report()))
    return path


def drawn_whole(page: Any) -> list[str]:
    """Scrolls through the page, so that all charts are drawn; their names."""
    names: list[str] = page.eval_on_selector_all(".chart", "all => all.map(each => each.id)")
    for name in names:
        page.locator(f"[id='{name}']").scroll_into_view_if_needed()
        page.wait_for_selector(f"[id='{name}'] .plot-container", timeout=10_000)
    return names


def ranges(page: Any) -> list[list[str]]:
    """What each chart of the timeline shows."""
    found: list[list[str]] = page.eval_on_selector_all(
        TIMED, "all => all.map(each => [...each.layout.xaxis.range].map(String))"
    )
    return found


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


def test_a_finding_and_the_buttons_move_all_charts_of_the_timeline(
    browser: Any, tmp_path: Path
) -> None:
    path = saved(gca.read(SAMPLES / "thrash-go1.19.log"), tmp_path)
    with opened(browser, path) as (page, wrong):
        page.wait_for_selector(f"{TIMED} .plot-container")
        drawn_whole(page)
        whole = ranges(page)
        link = page.locator(".finding a[href^='#t=']").first
        link.click()
        page.wait_for_function(
            "was => String(document.querySelector('.chart').layout.xaxis.range[0]) !== was",
            arg=whole[0][0],
        )
        there = ranges(page)
        assert len({tuple(each) for each in there}) == 1
        assert there != whole
        assert "#t=" in page.url
        page.locator("[data-move=all]").press("Enter")
        page.wait_for_function(
            "was => String(document.querySelector('.chart').layout.xaxis.range[0]) === was",
            arg=whole[0][0],
        )
        assert "#t=" not in page.url
        assert wrong == []


def test_an_address_with_a_stretch_of_time_opens_there(browser: Any, tmp_path: Path) -> None:
    path = saved(gca.read(SAMPLES / "spike-go1.26.log"), tmp_path)
    with opened(browser, path, "#t=0.5-1.5") as (page, wrong):
        drawn_whole(page)
        assert {tuple(map(float, each)) for each in ranges(page)} == {(0.5, 1.5)}
        assert wrong == []


def test_hovering_shows_the_cycle_and_its_line(browser: Any, tmp_path: Path) -> None:
    path = saved(gca.read(SAMPLES / "steady-go1.26.log"), tmp_path)
    with opened(browser, path) as (page, wrong):
        page.wait_for_selector(f"{TIMED} .plot-container")
        drawn_whole(page)
        plot = page.locator(TIMED).first.locator(".nsewdrag").first
        plot.scroll_into_view_if_needed()
        box = plot.bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=4)
        page.wait_for_function("document.querySelector('.hoverlayer')?.textContent")
        hovered = " ".join(page.locator(".hoverlayer").all_text_contents())
        assert "steady-go1.26.log:" in hovered
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
        page.wait_for_selector(f"{TIMED} .plot-container")
        dark = page.evaluate(look)
        page.locator("#theme").click()
        assert brightness(page.evaluate(look)) > brightness(dark)
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
        for name in names:
            page.wait_for_function(CHART_IS_DRAWN, arg=name, timeout=10_000)
        assert page.locator("td.worse").count() == 2
        assert "GOGC 100 → 200" in page.locator(".verdict").inner_text()
        assert wrong == []


def test_a_comparison_passes_the_accessibility_rules(browser: Any, tmp_path: Path) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    sides = {name: str(SAMPLES / f"{name}.log") for name in ("steady-go1.26", "thrash-go1.19")}
    path = tmp_path / "comparison.html"
    for text in (gca.compare(*sides.values()).to_html(), gca.sweep(sides).to_html()):
        path.write_text(text)
        with opened(browser, path, bypass_csp=True) as (page, _):
            drawn_whole(page)
            violations = axe.Axe().run(page).response["violations"]
        grave = [each for each in violations if each["impact"] in ("serious", "critical")]
        assert [(each["id"], each["nodes"][0]["html"][:200]) for each in grave] == []
