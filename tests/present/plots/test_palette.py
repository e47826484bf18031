"""The palette: readable on both grounds, and distinct for colour-blind readers."""

from __future__ import annotations

from itertools import chain, combinations

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.present.plots.accessor import PLOTS, described
from gctrace_analyzer.present.plots.palette import (
    DARK,
    LIGHT,
    PAGE,
    SERIES,
    SEVERITIES,
    terminal_styles,
)
from gctrace_analyzer.present.sections.report import document
from gctrace_analyzer.present.text import lines
from tests.conftest import ROOT, SAMPLES

Color = pytest.importorskip("coloraide.everything", reason="coloraide is missing").ColorAll

LEAST_CONTRAST = 3.0
"""WCAG 2.2, 1.4.11: graphical objects."""

TEXT_CONTRAST = 4.5
"""WCAG 2.2, 1.4.3: text."""

LEAST_DIFFERENCE = 9.5
"""CIEDE2000; about 2 can be distinguished side by side, lines across a chart need more."""

INPUTS = (
    SAMPLES / "leak-into-limit-go1.24.log",
    SAMPLES / "forced-go1.26.log",
    SAMPLES / "oom-journal.jsonl",
    SAMPLES / "buffers-go1.16.csv",
    ROOT / "tests/corpus/metrics/own/thrash-limit80/query-raw.json.gz",
)
VISIONS = (None, "deutan", "protan")
THEMES = {"light": LIGHT, "dark": DARK}


def seen(color: str, vision: str | None) -> object:
    """The colour as it is seen, by Machado, Oliveira and Fernandes (2009)."""
    if vision is None:
        return Color(color)
    return Color(color).filter(vision, method="machado").convert("srgb").clip()


@pytest.mark.parametrize("theme", THEMES)
def test_every_color_contrasts_with_its_ground(theme: str) -> None:
    low = {
        name: round(Color(color).contrast(PAGE[theme]["ground"], method="wcag21"), 2)
        for name, color in THEMES[theme].items()
    }
    assert {name: ratio for name, ratio in low.items() if ratio < LEAST_CONTRAST} == {}


@pytest.mark.parametrize("theme", THEMES)
def test_text_contrasts_with_the_page_and_with_the_terminal(theme: str) -> None:
    grounds = (PAGE[theme]["ground"], "#000000" if theme == "dark" else "#ffffff")
    low = {
        (name, ground): round(ratio, 2)
        for name in ("ink", "dim", "bad", "warn", "ok", "link", "blue")
        for ground in grounds
        if (ratio := Color(PAGE[theme][name]).contrast(ground, method="wcag21")) < TEXT_CONTRAST
    }
    assert low == {}


def test_a_theme_has_a_colour_for_every_style_of_printed_lines() -> None:
    reports = [gca.read(path).report() for path in INPUTS]
    sides = [str(SAMPLES / f"{name}.log") for name in ("steady-go1.26", "thrash-go1.19")]
    printed = chain(
        *(lines(document(report)) for report in reports),
        lines(gca.compare(*sides).document()),
        lines(gca.compare(dict(zip("ab", sides, strict=True))).document()),
    )
    styles = {style for line in printed for _, style in line}
    assert styles >= {"bold red", "yellow", "dim", "green"}
    assert styles <= {"", "bold", *terminal_styles("dark")}
    assert terminal_styles("dark").keys() == terminal_styles("light").keys()


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("vision", VISIONS)
def test_series_differ_from_each_other_and_from_bands(theme: str, vision: str | None) -> None:
    colors = {name: seen(color, vision) for name, color in THEMES[theme].items()}
    pairs = [
        *combinations(SERIES, 2),
        *((one, two) for one in SERIES for two in SEVERITIES[:2]),
    ]
    close = {
        pair: round(distance, 1)
        for pair in pairs
        if (distance := colors[pair[0]].delta_e(colors[pair[1]], method="2000"))  # type: ignore[attr-defined]
        < LEAST_DIFFERENCE
    }
    assert close == {}


def test_series_of_a_panel_differ_in_color_and_in_dash() -> None:
    for name in INPUTS:
        report = gca.read(name).report()
        for plot in PLOTS:
            for panel in described(report, plot).panels:
                lines = [mark.look.dash for mark in panel.marks if mark.kind != "points"]
                assert len(set(lines)) == len(lines), (plot, panel.name)
                colors = [mark.look.color for mark in panel.marks]
                assert len(set(colors)) == len(colors), (plot, panel.name)
                assert not set(colors) & set(SEVERITIES)
