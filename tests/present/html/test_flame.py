"""The flame graph of the page: without a script, with one, by mouse and by keys."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.present.html import report_page
from tests.helpers.browser import browser, opened
from tests.helpers.profiles import PROFILES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["browser"]


def page_of(*names: str, light: bool = False) -> str:
    return report_page.dumps(
        gca.read(*(PROFILES / name for name in names)).report(), light=light
    )


@pytest.fixture
def flame(browser: Any, tmp_path: Path) -> Iterator[Any]:
    path = tmp_path / "report.html"
    path.write_text(page_of("requests/run.log", "requests/allocs.pb.gz"))
    with opened(browser, path) as (page, wrong):
        yield page.locator("#flame-allocated")
        assert wrong == []


def frame(flame: Any, name: str) -> Any:
    return flame.locator(f'.frame[title^="{name}: "]').first


def width(flame: Any, name: str) -> float:
    box = frame(flame, name).bounding_box()
    whole = flame.locator(".frames").bounding_box()
    return float(box["width"] / whole["width"])


def test_a_frame_is_as_wide_as_its_share_and_names_its_cost(flame: Any) -> None:
    title = frame(flame, "main.decode").get_attribute("title")
    says = re.fullmatch(r"main\.decode: (\S+) %, \S+ MiB/s, \S+ cores of GC", title)
    assert says
    assert width(flame, "main.decode") == pytest.approx(float(says[1]) / 100, abs=0.01)


def test_a_click_zooms_and_escape_shows_all(flame: Any) -> None:
    frame(flame, "main.render").locator("> span").click()
    assert width(flame, "main.render") == pytest.approx(1, abs=0.01)
    assert frame(flame, "main.decode").is_hidden()
    assert flame.locator("output").inner_text().startswith("main.render: ")
    flame.page.keyboard.press("Escape")
    assert width(flame, "main.render") < 0.5
    assert frame(flame, "main.decode").is_visible()


def test_keys_go_to_callers_called_and_neighbours(flame: Any) -> None:
    frame(flame, "main.main.func1").focus()
    said = []
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight", "ArrowUp", "Enter"):
        flame.page.keyboard.press(key)
        said.append(flame.page.evaluate("document.activeElement.title.split(': ')[0]"))
    assert said == [
        "main.(*handler).serve",
        "main.(*handler).handle",
        "main.decode",
        "main.(*session).touch",
        "main.(*handler).handle",
        "main.(*handler).handle",
    ]
    assert width(flame, "main.(*handler).handle") == pytest.approx(1, abs=0.01)
    flame.get_by_role("button", name="Show all").click()
    assert width(flame, "main.(*handler).handle") < 0.99


def test_search_marks_frames_and_adds_up_their_share_once(flame: Any) -> None:
    flame.get_by_role("searchbox").fill("main.tree")
    says = re.fullmatch(r"(\d+) frames, (\S+) %", flame.locator("output").inner_text())
    assert says
    # It calls itself: its part counts once.
    assert int(says[1]) > 5
    assert float(says[2]) < 4
    assert flame.locator(".hit").count() == int(says[1])
    flame.page.keyboard.press("Enter")
    assert flame.page.evaluate("document.activeElement.title").startswith("main.tree: ")


def test_without_a_script_the_frames_are_there_and_nothing_to_press() -> None:
    page = page_of("requests/run.log", "requests/allocs.pb.gz", light=True)
    assert 'title="main.decode: ' in page
    assert "Show all" not in page


def test_names_of_a_profile_are_escaped() -> None:
    page = page_of("goimports/run.log", "goimports/allocs.pb.gz")
    assert "slices.SortFunc[" in page or "go.shape" in page
    assert not re.search(r'title="[^"]*<', page)


def test_growth_has_a_graph_of_its_own_and_comes_first() -> None:
    page = page_of(
        "leaks/cache/run.log", "leaks/cache/heap-early.pb.gz", "leaks/cache/heap-late.pb.gz"
    )
    ids = re.findall(r'id="(flame-\w+)"', page)
    assert ids == ["flame-growth", "flame-allocated", "flame-live"]


def test_a_report_without_profiles_has_no_flame_graph() -> None:
    assert 'class="chart flame"' not in page_of("requests/run.log")
