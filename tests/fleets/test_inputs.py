"""Which files a fleet reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from gctrace_analyzer.cli import main
from gctrace_analyzer.fleets import inputs

pytest.importorskip("distributed")


def test_wrong_inputs_are_reported_before_a_worker_is_started(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fleet", str(tmp_path / "*.log")]) == 3
    assert "no file found" in capsys.readouterr().err
    assert main(["fleet"]) == 2
    assert "Expected an input" in capsys.readouterr().err
    assert main(["fleet", "a.log", "-o", "a.parquet", "-o", "b.parquet"]) == 2
    assert "one folder" in capsys.readouterr().err
    assert main(["fleet", "ftpx://h/a.log"]) == 2
    assert "s3://" in capsys.readouterr().err


def test_inputs_can_be_listed_in_a_file(tmp_path: Path) -> None:
    listed = tmp_path / "paths.txt"
    listed.write_text("# of today\na.log\n\n  b.log\n")
    assert inputs.listed_in(str(listed)) == ["a.log", "b.log"]


def test_a_file_that_is_named_in_two_ways_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.log").touch()
    (tmp_path / "logs" / "link.log").symlink_to(tmp_path / "logs" / "a.log")
    monkeypatch.chdir(tmp_path)
    found, unmatched = inputs.find(["logs/a.log", str(tmp_path / "logs"), "./logs/*.log"])
    assert ([item.name for item in found], unmatched) == (["logs/a.log"], [])


def test_what_a_run_writes_is_no_input_of_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = tmp_path / "logs"
    (logs / "fleet.parquet").mkdir(parents=True)
    (logs / "reports").mkdir()
    for name in ("a.log", "fleet.parquet/rows.parquet", "reports/a.log.html", "reports.log"):
        (logs / name).touch()
    own = ["logs/fleet.parquet/", str(logs / "reports")]
    monkeypatch.chdir(tmp_path)
    for text in ("logs", str(logs), "logs/**"):
        found, unmatched = inputs.find([text], own=own)
        names = [Path(item.name).name for item in found]
        assert (names, unmatched) == (["a.log", "reports.log"], [])
    # A file that the user names is read, whatever it is.
    found, _ = inputs.find(["logs/reports/a.log.html"], own=own)
    assert [item.name for item in found] == ["logs/reports/a.log.html"]


def test_urls_are_named_without_listing_a_store() -> None:
    words = ["logs", "https://me:pw@logs.example/a.log?X-Amz-Signature=00ff", "s3://b/*.log"]
    first, second = inputs.named(words)
    assert (first.url, first.name) == (words[1], "https://logs.example/a.log")
    assert second.name == "s3://b/*.log"


@pytest.mark.parametrize("what", ["*.log", ""])
def test_a_link_to_a_file_that_is_gone_is_an_item(what: str, tmp_path: Path) -> None:
    (tmp_path / "api.log").write_text("gc 1\n")
    (tmp_path / "gone.log").symlink_to(tmp_path / "nothing")
    items, _ = inputs.find([str(tmp_path / what)])
    assert [Path(item.name).name for item in items] == ["api.log", "gone.log"]
    assert items[1].size is None
