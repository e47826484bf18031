"""Which files a fleet reads."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from gctrace_analyzer.cli import main
from gctrace_analyzer.fleets import inputs
from gctrace_analyzer.fleets.worker import WorkerOptions, rows_here
from tests.conftest import SAMPLES
from tests.helpers.fleet import rows_of, sample

pytest.importorskip("distributed")


def test_wrong_inputs_are_reported_before_a_worker_is_started(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fleet", str(tmp_path / "*.log")]) == 3
    assert "no file found" in capsys.readouterr().err
    assert main(["fleet"]) == 2
    assert "Expected logs" in capsys.readouterr().err
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


POD = "nodes/a/var/log/pods/shop_api-6d4cf56db6-x2k9v_8f2d8a34-53d1-4bb5-8f0e-000000000001/api"


@pytest.mark.parametrize(
    "names",
    [
        ["run.log.2.gz", "run.log.1", "run.log"],
        ["run.log-20261119", "run.log-20261120.gz", "run.log"],
        [f"{POD}/0.log.20261124-090010.gz", f"{POD}/0.log", f"{POD}/1.log"],
    ],
)
def test_the_parts_of_a_log_are_one_input_from_the_oldest_to_the_newest(
    names: list[str], tmp_path: Path
) -> None:
    text = sample().splitlines(keepends=True)
    third = len(text) // 3
    pieces = [
        "".join(text[:third]),
        "".join(text[third : 2 * third]),
        "".join(text[2 * third :]),
    ]
    for name, piece in zip(names, pieces, strict=True):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = piece.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    (one,), _ = inputs.find([str(tmp_path)])
    assert [part.name for part in one.parts] == [str(tmp_path / name) for name in names[:-1]]
    (row,) = rows_here(one, WorkerOptions())
    (whole,) = rows_of(SAMPLES / "steady-go1.26.log")
    for figure in ("cycles", "gc_cpu_share", "live_heap_max_mib", "findings"):
        assert row[figure] == whole[figure]
    assert row["parts"] == [str(tmp_path / name) for name in names[:-1]]
    assert (row["file"], row["file_bytes"]) == (str(tmp_path / names[-1]), one.size)


@pytest.mark.parametrize("names", [["api-0", "api-1"], ["app.log.4242", "app.log.4243"]])
def test_replicas_and_process_ids_are_no_parts_of_a_log(
    names: list[str], tmp_path: Path
) -> None:
    for name in names:
        (tmp_path / name).write_text(sample())
    assert len(inputs.find([str(tmp_path)])[0]) == 2


def test_a_folder_that_cannot_be_listed_is_a_row_with_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    (tmp_path / "run.log").write_text(sample())
    listed = os.scandir

    def scandir(path: str) -> object:
        if str(path) == str(closed):
            raise PermissionError(13, "Permission denied", str(closed))
        return listed(path)

    monkeypatch.setattr("os.scandir", scandir)
    monkeypatch.setattr("os.access", lambda *_: False)
    found, _ = inputs.find([str(tmp_path)])
    assert [item.name for item in found] == [str(closed), str(tmp_path / "run.log")]
    (row,) = rows_here(found[0], WorkerOptions())
    assert row["error_kind"] == "denied"
    assert row["error"] == "permission denied: the folder cannot be listed"
