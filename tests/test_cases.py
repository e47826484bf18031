"""Excerpts that people posted in public: what is said about them is right."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lab.evaluation import cases

MENDED = ("k1-", "k5-", "k19-")
"""Kinds of written inputs that are right."""

CASES = [
    case
    for case in cases.cases()
    if case["collection"] == "cases" or case["name"].startswith(MENDED)
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_what_is_said_about_a_public_excerpt_is_right(case: dict[str, Any]) -> None:
    wrong = [miss for miss in cases.missed(case) if not miss.minor]
    assert not wrong, "\n".join(f"{json.dumps(miss.check)}: {miss.was}" for miss in wrong)
