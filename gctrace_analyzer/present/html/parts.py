"""What a whole page and a notebook's cell share: the verdict, small trends, the templates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined

from gctrace_analyzer.present.sections import evidence, findings, overview

if TYPE_CHECKING:
    from gctrace_analyzer.present.report import Report

WORDS = {
    "bad": "Act on it",
    "warn": "Worth a look",
    "ok": "Healthy",
    "none": "Nothing to judge",
}


def environment() -> Environment:
    """The templates of this folder."""
    # Escapes every value: what a log says stays text.
    return Environment(
        loader=PackageLoader("gctrace_analyzer.present.html", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def verdict(report: Report) -> tuple[str, str]:
    """How grave it is, and the first thing to know."""
    if report.analysis.post_mortems:
        title, _ = next(evidence.deaths(report))
        return "bad", title
    told = findings.told(report)
    if told:
        first = told[0]
        return first.severity, f"{first.name}: {first.evidence}"
    good = findings.healthy(report)
    if good:
        return "ok", good
    return "none", "nothing here tells how the collector fares"


def spark(report: Report, figure: overview.Figure) -> str:
    """The figure's trend as the points of a line, in a box of 100 × 24."""
    trend = (
        report.analysis.trend[figure.trend].to_list()
        if figure.trend and len(report.analysis.trend)
        else []
    )
    values = [value for value in trend if value is not None]
    top = max(values, default=0.0)
    if len(values) < 2 or top <= 0:
        return ""
    step = 100 / (len(trend) - 1)
    return " ".join(
        f"{step * index:.1f},{22 - 20 * value / top:.1f}"
        for index, value in enumerate(trend)
        if value is not None
    )
