"""Public excerpts, and inputs written from what programs print: what is said is right."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lab.evaluation import cases
from tests.helpers.excerpts import NOT_YET


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", cases.cases(), ids=lambda case: case["name"])
def test_what_is_said_about_an_excerpt_is_right(case: dict[str, Any]) -> None:
    wrong = [miss for miss in cases.missed(case) if not miss.minor]
    if case["name"] in NOT_YET:
        assert wrong, "it is right: take it out of NOT_YET"
        return
    assert not wrong, "\n".join(f"{json.dumps(miss.check)}: {miss.was}" for miss in wrong)
