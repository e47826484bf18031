"""The reports of the worst processes, and what changed since an earlier run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer import schema
from gctrace_analyzer.analysis.fleet.answers import answers
from gctrace_analyzer.cli import main
from gctrace_analyzer.fleets import inputs
from gctrace_analyzer.fleets.output import Output
from gctrace_analyzer.fleets.reports import links, write_reports
from gctrace_analyzer.present.fleet_tables import rankings
from tests.conftest import SAMPLES
from tests.helpers.fleet import rows_of

if TYPE_CHECKING:
    from pathlib import Path


def rows(*logs: Path) -> pl.DataFrame:
    several = [row for log in logs for row in rows_of(log)]
    return pl.DataFrame(several, schema=schema.polars_schema("fleet"))


def test_logs_of_the_same_name_have_reports_of_their_own(tmp_path: Path) -> None:
    logs = [tmp_path / name / "app.log" for name in ("a", "b")]
    for log, sample in zip(logs, ("steady-go1.26", "thrash-go1.19"), strict=True):
        log.parent.mkdir()
        log.write_bytes((SAMPLES / f"{sample}.log").read_bytes())
    processes = answers(rows(*logs)).processes
    found = write_reports(processes, tmp_path / "reports", top=10)
    assert [file for file, _ in found] == [str(logs[1]), str(logs[0])]
    assert len(set(found.values())) == 2
    assert "CPU limiter" in found[str(logs[1]), 0].read_text()
    assert "CPU limiter" not in found[str(logs[0]), 0].read_text()
    assert set(links(found, tmp_path / "fleet.html").values()) == {
        f"reports/{path.name}" for path in found.values()
    }


def test_the_report_of_a_restarted_process_is_that_of_its_last_start(tmp_path: Path) -> None:
    processes = answers(rows(SAMPLES / "restart-go1.26.log")).processes
    ((_, number), path), *_ = write_reports(processes, tmp_path, top=1).items()
    assert number > 0
    assert path.name == f"restart-go1.26-process-{number}.html"
    assert "restart-go1.26.log" in path.read_text()


def test_a_log_that_is_gone_has_no_report(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    log.write_bytes((SAMPLES / "steady-go1.26.log").read_bytes())
    processes = answers(rows(log)).processes
    log.unlink()
    failed: list[tuple[str, str]] = []
    found = write_reports(
        processes, tmp_path / "reports", top=1, failed=lambda *each: failed.append(each)
    )
    assert found == {}
    assert failed == [(str(log), "no such file or folder")]


def test_the_command_compares_two_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    samples = {"before": "steady-go1.26", "after": "thrash-go1.19"}
    for name, sample in samples.items():
        log = tmp_path / name / "app.log"
        log.parent.mkdir()
        log.write_bytes((SAMPLES / f"{sample}.log").read_bytes())
        output = Output(str(tmp_path / f"{name}.parquet"), {})
        output.add(rows_of(log), 1)
        output.finish(1)
    outputs = {name: str(tmp_path / f"{name}.parquet") for name in samples}
    there = ["fleet", "-o", outputs["after"], "--compare-with", outputs["before"]]
    back = ["fleet", "-o", outputs["before"], "--compare-with", outputs["after"]]
    assert main(there) == 0
    text = capsys.readouterr().out
    assert "1 service newly thrashing (app); 1 service changed by more than 10 %" in " ".join(
        text.split()
    )
    assert "GC cores changed most" in text
    assert max(map(len, text.splitlines())) <= 80
    assert main([*there, "-f", "json"]) == 0
    changes = json.loads(capsys.readouterr().out)["changes"]
    assert changes["thrashing"] == [{"service": "app", "state": "new", "before": 0, "after": 1}]
    assert {each["figure"] for each in changes["figures"]} == {
        "gc_cores",
        "gc_cpu_share",
        "live_heap_p50_mib",
    }
    for kind, words in (("md", "| app | new | 0 | 1 |"), ("html", "What changed</h2>")):
        assert main([*there, "-f", kind]) == 0
        assert words in capsys.readouterr().out
    assert main([*back, "-f", "md"]) == 0
    assert "| app | solved | 1 | 0 |" in capsys.readouterr().out


def test_several_earlier_runs_show_how_each_service_went(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("steady-go1.26", "steady-gogc200-go1.26", "thrash-go1.19")
    places = [tmp_path / f"{name}.parquet" for name in names]
    for name, place in zip(names, places, strict=True):
        log = tmp_path / name / "app.log"
        log.parent.mkdir()
        log.write_bytes((SAMPLES / f"{name}.log").read_bytes())
        output = Output(str(place), {})
        output.add(rows_of(log), 1)
        output.finish(1)
    earlier = [word for each in places[:2] for word in ("--compare-with", str(each))]
    words = ["fleet", "-o", str(places[2]), *earlier]
    assert main([*words, "-f", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["changes"]["since"] == str(places[1])
    runs, (service,) = document["history"]["runs"], document["history"]["services"]
    assert runs == [str(places[0]), str(places[1]), "this run"]
    first, second, now = service["gc_cores"]
    assert second < first < now
    assert service["live_heap_p50_mib"][0] == 27.0
    assert main(words) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    row = text.partition("Services over all runs")[2].splitlines()[1].split()
    assert row[0] == "app"
    assert row[1].endswith("█")
    assert len(row[1]) == 3
    assert main([*words, "-f", "html"]) == 0
    page = capsys.readouterr().out
    assert f">{row[1]}</td>" in page
    assert page.index("What changed</h2>") < page.index("Services over all runs</h3>")


def test_an_earlier_run_that_is_none_ends_the_run_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(SAMPLES / "steady-go1.26.log"), "-o", str(tmp_path / "new.parquet")]
    assert main(["fleet", *words, "--compare-with", str(tmp_path / "old.parquet")]) == 3
    assert "not an output of fleet" in capsys.readouterr().err
    assert not (tmp_path / "new.parquet").exists()


def test_the_answers_have_a_short_repr_and_print_like_the_command() -> None:
    before, after = (
        rows(SAMPLES / f"{name}.log") for name in ("steady-go1.26", "thrash-go1.19")
    )
    found = gca.fleet_answers(after, before=before)
    assert repr(found) == "<FleetAnswers: 1 file, 1 process, 1 thrashing>"
    assert "Services by GC CPU" in str(found)
    html = found._repr_html_()
    assert "<td" in html
    assert "Since the earlier run" in html
    assert "<script" not in html


@pytest.mark.usefixtures("read_here")
def test_reports_do_not_list_the_inputs_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder of a store may have a hundred thousand files."""
    log, out = tmp_path / "logs" / "app.log", tmp_path / "rows.parquet"
    log.parent.mkdir()
    log.write_bytes((SAMPLES / "thrash-go1.19.log").read_bytes())
    words = ["fleet", str(log.parent), "-o", str(out)]
    assert main(words) == 0
    listed: list[object] = []
    find = inputs.find

    def counted(*given: Any) -> Any:
        listed.append(given)
        return find(*given)

    monkeypatch.setattr(inputs, "find", counted)
    assert main([*words, "--reports", str(tmp_path / "reports")]) == 0
    capsys.readouterr()
    assert len(listed) == 1
    assert (tmp_path / "reports" / "app.html").exists()


def test_a_kill_without_gc_cycles_is_counted_and_named() -> None:
    found = answers(rows(SAMPLES / "describe-pod.txt", SAMPLES / "steady-go1.26.log"))
    assert (found.totals.killed, found.totals.without_program) == (1, 1)
    assert found.kills["oom_kills"].to_list() == [1]
    assert "Killed for memory" in [table.title for table in rankings(found, 10)]


def test_reports_are_named_after_service_and_pod_and_read_all_parts(tmp_path: Path) -> None:
    pod = "api-6d4cf56db6-x2k9v"
    folder = tmp_path / f"shop_{pod}_8f2d8a34-53d1-4bb5-8f0e-000000000001" / "api"
    folder.mkdir(parents=True)
    text = (SAMPLES / "steady-go1.26.log").read_text().splitlines(keepends=True)
    (folder / "0.log.20261124-090010").write_text("".join(text[:20]))
    (folder / "0.log").write_text("".join(text[20:]))
    (log,), _ = inputs.find([str(tmp_path)])
    frame = pl.DataFrame(rows_of(folder), schema=schema.polars_schema("fleet"))
    ((_, path),) = write_reports(answers(frame).processes, tmp_path / "reports", top=1).items()
    assert path.name == f"{pod}.html"
    page = path.read_text()
    assert f"<h1>{pod}</h1>" in page
    assert all(part.name in page for part in log.parts)
