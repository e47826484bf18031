"""The names of inputs, and the identity that paths and log prefixes give."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.fleets import identity, inputs
from tests.conftest import SAMPLES
from tests.helpers.fleet import rows_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("s3://key:secret@bucket/a.log", "s3://bucket/a.log"),
        ("https://h/a.log?X-Amz-Signature=aa&X-Amz-Credential=bb", "https://h/a.log"),
        ("logs/a b?.log", "logs/a b?.log"),
    ],
)
def test_a_url_is_shown_without_its_secrets(url: str, name: str) -> None:
    assert identity.public(url) == name
    assert inputs.problem_of(OSError(f"no answer from {url} at 9"), url).count("secret") == 0


def test_a_pattern_reads_identity_from_the_end_of_a_path() -> None:
    by = identity.pattern("{region}/*/{service}/{pod}.log")
    path = "s3://b/eu/2026/api/api-1.log.gz"
    assert identity.identity(path, by) == {"region": "eu", "service": "api", "pod": "api-1"}
    assert identity.identity("other.txt", by) == {}


@pytest.mark.parametrize("text", ["{servise}.log", "{pod}/{pod}.log", "no names", "{pod"])
def test_an_invalid_pattern_is_refused(text: str) -> None:
    with pytest.raises(BadSettingError, match="for id"):
        identity.pattern(text)


def test_without_a_pattern_the_service_comes_from_the_log_prefix(tmp_path: Path) -> None:
    text = (SAMPLES / "steady-go1.26.log").read_text().splitlines()
    path = tmp_path / "a.log"
    path.write_text("".join(f"2026-11-21T09:00:00Z web1 api[7]: {line}\n" for line in text))
    (found,) = rows_of(path)
    assert (found["service"], found["host"], found["log_pid"]) == ("api", "web1", 7)


@pytest.mark.parametrize(
    ("path", "service"),
    [
        ("/var/log/pods/prod_api-6d4cf56db6-x2k9v_8f2d8a34-53d1-4bb5-8f0e-0123456789ab/api/0.log", "api"),
        ("pods/prod_api-0_8f2d8a34-53d1-4bb5-8f0e-0123456789ab/app/1.log.20261120-101112.gz", "api/app"),
        (f"containers/api-6d4cf56db6-x2k9v_prod_api-{'0a' * 32}.log", "api"),
        ("prod/pods/api-6d4cf56db6-x2k9v/logs/run.log.1.gz", "api/run"),
        ("logs/my_own_file-1.log", None),
    ],
)  # fmt: skip
def test_paths_of_a_kubernetes_node_name_the_service(path: str, service: str | None) -> None:
    found = identity.identity(path, None)
    assert identity.service_of(found) == service
    assert found.get("namespace", "prod") == "prod"
