"""Gates as JUnit XML: a test case each, as CI systems show them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gctrace_analyzer.analysis.checks import Check


def dumps(judged: Sequence[Check]) -> bytes:
    """The conditions as JUnit XML; one that cannot be judged is an error, not a success."""
    suite = ElementTree.Element(
        "testsuite",
        name="gctrace-analyze",
        tests=str(len(judged)),
        failures=str(sum(each.held is True for each in judged)),
        errors=str(sum(each.held is None for each in judged)),
    )
    for each in judged:
        case = ElementTree.SubElement(
            suite, "testcase", classname="gctrace-analyze", name=each.text
        )
        if each.held is not False:
            kind = "failure" if each.held else "error"
            ElementTree.SubElement(case, kind, message=each.reason)
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    written: bytes = ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True)
    return written + b"\n"
