"""The page of a fleet in a real browser: sorting, filtering, and links to reports."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from gctrace_analyzer.analysis.fleet.answers import answers
from gctrace_analyzer.cli import main
from gctrace_analyzer.fleets.output import Output, existing
from gctrace_analyzer.present.html import fleet_page
from tests.conftest import SAMPLES
from tests.helpers.browser import browser, opened
from tests.helpers.fleet import rows_of

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["browser"]

LOGS = sorted(SAMPLES.glob("*.log"))
TITLE = "Processes, the worst first (the last of each file)"
PROCESSES = f"section:has(h2:text-is('{TITLE}'))"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of all samples, made by the command, with reports of the worst four."""
    folder = tmp_path_factory.mktemp("fleet")
    earlier = Output(str(folder / "old.parquet"), {})
    for log in LOGS[::2]:
        earlier.add(rows_of(log), 1)
    earlier.finish(len(LOGS[::2]))
    path = folder / "site" / "fleet.html"
    path.parent.mkdir()
    words = [
        str(SAMPLES / "*.log"),
        "-o",
        str(folder / "fleet.parquet"),
        "-o",
        str(path),
    ]
    old = ["--compare-with", str(folder / "old.parquet")]
    reports = ["--reports", str(folder / "my reports"), "--reports-top", "4"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gctrace_analyzer.fleets.fleet.find_spec", lambda name: None)
        assert main(["fleet", *words, *old, *reports]) == 0
    return path


def column(page: Any, number: int) -> list[str]:
    """The shown cells of a column of the processes."""
    cells = page.locator(f"{PROCESSES} tbody tr:not([hidden]) > :nth-child({number})")
    texts: list[str] = cells.all_inner_texts()
    return texts


def numbers(cells: list[str]) -> list[float]:
    return [float(re.sub(r"[^\d.]", "", each)) for each in cells if each != "–"]


def test_the_tables_are_sorted_by_their_values(browser: Any, page: Path) -> None:
    with opened(browser, page) as (shown, wrong):
        shown.wait_for_selector(":root.live")
        assert len(column(shown, 1)) == 10
        shown.click(f"{PROCESSES} button:text-is('Show all {len(LOGS)}')")
        head = f"{PROCESSES} th button:text-is('GC CPU')"
        for order, is_down in (("descending", True), ("ascending", False)):
            shown.click(head)
            assert (
                shown.locator(f"{PROCESSES} th[aria-sort]").get_attribute("aria-sort") == order
            )
            found = column(shown, 4)
            known = numbers(found)
            assert known == sorted(known, reverse=is_down)
            assert len(known) > 12
            assert found[len(known) :] == ["–"] * (len(LOGS) - len(known))
        shown.click(f"{PROCESSES} th button:text-is('Process')")
        steady = [each for each in column(shown, 1) if "steady-go1" in each]
        assert [each.rpartition("steady-")[2] for each in steady] == [
            "go1.9",
            "go1.14",
            "go1.26",
        ]
        assert wrong == []


def test_a_filter_finds_rows_that_were_not_shown(browser: Any, page: Path) -> None:
    with opened(browser, page) as (shown, wrong):
        shown.wait_for_selector(":root.live")
        assert not any("spike" in each for each in column(shown, 1))
        shown.fill(f"{PROCESSES} input", "SPIKE")
        (only,) = column(shown, 1)
        assert only == "spike-go1.26"
        assert "1 of 1 that match" in shown.locator(f"{PROCESSES} output").inner_text()
        shown.fill(f"{PROCESSES} input", "")
        assert len(column(shown, 1)) == 10
        assert wrong == []


def test_the_rows_of_the_worst_processes_open_their_reports(browser: Any, page: Path) -> None:
    with opened(browser, page) as (shown, wrong):
        links = shown.locator(f"{PROCESSES} tbody a")
        assert links.count() == 4
        assert "thrash-go1.19" in links.first.inner_text()
        for index in range(4):
            assert links.nth(index).get_attribute("href").startswith("../my%20reports/")
        links.first.click()
        assert "too low" in shown.locator("section.verdict").inner_text()
        assert shown.locator("script").count() == 0
        shown.go_back()
        shown.locator("section:has(h2:text-is('Thrashing or close')) a").last.click()
        assert "leak-into-limit" in shown.locator("h1").inner_text()
        assert wrong == []


def test_without_scripts_all_rows_are_there(browser: Any, page: Path) -> None:
    with opened(browser, page, java_script_enabled=False) as (shown, _):
        assert len(column(shown, 1)) == len(LOGS)
        assert shown.locator("input").count() == 0


def test_the_page_says_what_changed(browser: Any, page: Path) -> None:
    with opened(browser, page) as (shown, _):
        changes = shown.locator("section:has(#changes)").inner_text()
        assert f"{len(LOGS) - len(LOGS[::2])} services new" in changes


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_and_passes_the_accessibility_rules(
    browser: Any, page: Path, scheme: str, width: int
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    size = {"width": width, "height": 900}
    with opened(browser, page, bypass_csp=True, color_scheme=scheme, viewport=size) as (
        shown,
        _,
    ):
        shown.wait_for_selector(":root.live")
        assert shown.evaluate("document.documentElement.scrollWidth") == width
        violations = axe.Axe().run(shown).response["violations"]
    grave = [each for each in violations if each["impact"] in ("serious", "critical")]
    assert [(each["id"], each["nodes"][0]["html"][:200]) for each in grave] == []


def test_a_page_has_no_rows_without_values_and_no_columns_without_any(page: Path) -> None:
    rows = existing(str(page.parent.parent / "fleet.parquet")).collect()
    html = fleet_page.dumps(answers(rows))
    assert "GOMEMLIMIT too close" in html
    heads = html.partition("GOMEMLIMIT too close to the live heap</h2>")[2].partition(
        "</thead>"
    )[0]
    assert re.findall(r"<th [^>]*>([^<]*)", heads) == [
        "Process",
        "live heap, max",
        "limit",
        "eff. GOGC",
    ]
    assert 'href="../' not in html


def test_bars_say_what_they_stand_for(browser: Any, page: Path) -> None:
    with opened(browser, page) as (shown, wrong):
        bars = shown.locator(".bars .bar")
        assert bars.count() > 1
        first = bars.first
        name, cores, share = first.locator("span").all_inner_texts()
        said = first.get_attribute("title") or ""
        assert said.startswith(f"{name}: {cores} cores spent on GC, {share} of its CPU")
        assert "99\u00a0% of pauses at most" in said
        assert wrong == []


def test_on_a_phone_the_tables_of_the_fleet_fit(browser: Any, page: Path) -> None:
    with opened(browser, page, viewport={"width": 390, "height": 844}) as (shown, wrong):
        wide = shown.locator(".scroll:has(table.wide)")
        assert wide.count() >= 2
        assert wide.evaluate_all(
            "all => all.every(each => each.scrollWidth <= each.clientWidth + 1)"
        )
        shown.locator(f"{PROCESSES} thead button", has_text="GC CPU").click()
        assert numbers(column(shown, 4)) == sorted(numbers(column(shown, 4)), reverse=True)
        assert shown.evaluate("document.documentElement.scrollWidth") <= 390
        assert wrong == []


def test_the_worst_processes_come_before_what_changed(browser: Any, page: Path) -> None:
    with opened(browser, page) as (shown, wrong):
        heads = shown.locator("h2").all_inner_texts()
        assert next(n for n, head in enumerate(heads) if head in TITLE) < heads.index(
            "What changed"
        )
        assert shown.locator(".verdict a[href='#changes']").count() == 1
        assert wrong == []
