"""What is derived from a whole log."""

from __future__ import annotations

import pytest

from gctrace_analyzer.analysis.settings.releases import versions
from gctrace_analyzer.testing import read_text
from tests.helpers.facts import log_of


@pytest.mark.parametrize(
    ("spans", "text"),
    [
        ([], None),
        ([(None, None)], None),
        ([("1.18", None)], "go1.18+"),
        ([("1.18", None)] * 3, "go1.18+"),
        ([("1.5", "1.5")], "go1.5"),
        ([("1.6", "1.17")], "go1.6–1.17"),
        ([("1.18", None), ("1.6", "1.17")], "2 Go line formats"),
        ([("1.12", "1.15"), ("1.6", "1.17")], "go1.6–1.17"),
    ],
)
def test_the_go_versions_all_processes(
    spans: list[tuple[str | None, str | None]], text: str | None
) -> None:
    rows = [{"go_version_min": low, "go_version_max": high} for low, high in spans]
    assert versions(rows) == text


def test_the_most_frequent_reason_for_rejecting_lines_comes_first() -> None:
    good = log_of(9).splitlines()
    huge = [line.replace("175->", f"{10**30}->") for line in good[:3]]
    cut = [good[4][: len(good[4]) // 2]]
    analysis = read_text("\n".join([*good[5:], *cut, *huge]) + "\n").analysis
    counts = analysis.rejected.group_by("reason").len().sort("reason").rows()
    assert len(counts) > 1
    expected = sorted(counts, key=lambda each: (-each[1], each[0]))
    assert analysis.rejected_reasons == expected
    assert expected[0][1] > expected[-1][1]


def test_line_formats_of_different_releases_show_no_version() -> None:
    assert versions([{"go_version_min": "1.21", "go_version_max": "1.17"}]) is None
    assert versions([{"go_version_min": "1.9", "go_version_max": "1.10"}]) == "go1.9–1.10"
