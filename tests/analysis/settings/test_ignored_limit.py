"""A GOMEMLIMIT that a Go version before 1.19 ignores."""

from __future__ import annotations

import pytest

from gctrace_analyzer.testing import read_text
from tests.helpers.facts import log_of

_LIMIT = "$ GOMEMLIMIT=400MiB ./api\n"
_UP_TO_117 = log_of(60, every=0.1).replace(", 0 MB stacks, 0 MB globals", "")


@pytest.mark.parametrize(
    ("text", "is_ignored"),
    [
        (f"{_LIMIT}{_UP_TO_117}", True),
        (f"go version go1.18.5 linux/amd64\n{_LIMIT}{log_of(60, every=0.1)}", True),
        (f"go version go1.19.1 linux/amd64\n{_LIMIT}{log_of(60, every=0.1)}", False),
        (f"{_LIMIT}{log_of(60, every=0.1)}", False),
    ],
    ids=["by its lines", "1.18", "1.19", "unknown"],
)
def test_a_limit_before_go_1_19_is_none(text: str, is_ignored: bool) -> None:
    run = read_text(text)
    known = run.settings.memory_limit_mib
    assert known is not None
    assert (known.value is None) is is_ignored
    ignored = "400 MiB has no effect before Go 1.19"
    assert (ignored in known.source) is is_ignored
    shown = run.to_markdown()
    assert (f": {ignored})" in shown) is is_ignored
    assert ("GOGC=100 GOMEMLIMIT=400MiB" in shown) is not is_ignored
