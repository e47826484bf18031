"""Checks as JUnit XML, one test case each, for CI systems."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree

from gctrace_analyzer.present.format import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gctrace_analyzer.analysis.checks import Check


def dumps(checks: Sequence[Check]) -> bytes:
    """Returns the checks as JUnit XML; a check with an unknown result becomes an error.

    A check of a fleet becomes a test case for each process.
    """
    cases = [part for check in checks for part in check.parts or (check,)]
    suite = ElementTree.Element(
        "testsuite",
        name="gctrace-analyze",
        tests=str(len(cases)),
        failures=str(sum(check.held is True for check in cases)),
        errors=str(sum(check.held is None for check in cases)),
    )
    for check in cases:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=printable(check.of) or "gctrace-analyze",
            name=printable(check.text),
        )
        if check.held is not False:
            kind = "failure" if check.held else "error"
            ElementTree.SubElement(case, kind, message=printable(check.reason))
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    written: bytes = ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True)
    return written + b"\n"
