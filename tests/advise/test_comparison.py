"""Several settings of one program compared."""

from __future__ import annotations

import gctrace_analyzer as gca
from tests.conftest import CORPUS


def log(load: str, setting: str) -> str:
    return str(CORPUS / "advice" / load / setting / "run.log")


def test_a_comparison_of_settings_notes_what_else_differs() -> None:
    found = gca.sweep(
        {
            "a": [log("svc-a", "gogc100")],
            "b": [log("svc-a", "gogc200")],
            "big": [log("svc-big", "gogc100")],
        }
    )
    kinds = {each.what for each in found.differences}
    assert "live_heap" in kinds
    (sentence,) = [each.sentence for each in found.differences if each.what == "live_heap"]
    assert "The true live heap differs, from" in sentence


def test_findings_of_both_sides_can_be_conditions() -> None:
    found = gca.compare(log("svc-a", "gogc100"), log("svc-a", "gogc200"))
    names = {each.name for side in (found.before, found.after) for each in side.findings()}
    (check,) = found.check("finding:bad")
    assert check.held is any(each.severity == "bad" for each in found.after.findings())
    assert names
