"""Many processes: their names, rows, parts and answers; long files in stretches."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer import schema
from gctrace_analyzer.analysis.fleet import answers
from gctrace_analyzer.cli import main
from gctrace_analyzer.errors import BadSettingError, UnreadableInputError
from gctrace_analyzer.fleets import cuts, identity, inputs, stretches, worker
from gctrace_analyzer.fleets.inputs import Item
from gctrace_analyzer.fleets.output import Parts, existing
from gctrace_analyzer.present import fleet as shown
from gctrace_analyzer.present.html import fleet as page_of
from gctrace_analyzer.testing import prolonged
from tests.conftest import SAMPLES

if TYPE_CHECKING:
    from gctrace_analyzer.fleets.rows import Row

pytest.importorskip("distributed")

# Of one stretch each, whatever the file is cut into: what is wrong with it and what to set.
OF_STRETCHES = {
    "stretches", "warnings", "findings", "severity", "headline", "episodes", "worst_episodes",
    "thrash_s", "limiter", "thrashes_at_end", "goal_set_by", "gogc_inferred", "log_check_points",
    *(name for name in schema.names("fleet") if name.startswith(("advice_", "saved_"))),
}  # fmt: skip


def item(path: Path | str) -> Item:
    return Item(str(path), str(path), Path(path).stat().st_size)


def rows(path: Path | str, **how: Any) -> list[Row]:
    return worker.rows_here(item(path), worker.WorkerOptions(**how))


def in_parts(path: Path, stretch: int) -> list[Row]:
    """The rows of a file cut by ranges of bytes, each read as a task of its own."""
    how = worker.WorkerOptions(stretch=stretch)
    many = worker.batches([item(path)], how, files=16, size=1 << 24)
    assert len(many) > 1
    found = [each for batch in reversed(many) for each in worker.batch_rows(batch)]
    return stretches.joined(
        [each for each in found if not isinstance(each, dict)], item(path), {}
    )


def same(one: Row, other: Row, *, but: set[str] | None = None) -> None:
    for name, value in one.items():
        if name in (but or ()):
            continue
        if isinstance(value, float) and other[name] is not None:
            assert math.isclose(value, other[name], rel_tol=1e-6, abs_tol=1e-9), name
        else:
            assert value == other[name], name


# --- names ---


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("s3://key:secret@bucket/a.log", "s3://bucket/a.log"),
        ("https://h/a.log?X-Amz-Signature=aa&X-Amz-Credential=bb", "https://h/a.log"),
        ("logs/a b?.log", "logs/a b?.log"),
    ],
)
def test_an_address_is_shown_without_its_secrets(url: str, name: str) -> None:
    assert identity.public(url) == name
    assert inputs.problem_of(OSError(f"no answer from {url} at 9"), url).count("secret") == 0


def test_a_pattern_reads_identity_from_the_end_of_a_path() -> None:
    by = identity.pattern("{region}/*/{service}/{pod}.log")
    path = "s3://b/eu/2026/api/api-1.log.gz"
    assert identity.identity(path, by) == {"region": "eu", "service": "api", "pod": "api-1"}
    assert identity.identity("other.txt", by) == {}


@pytest.mark.parametrize("text", ["{servise}.log", "{pod}/{pod}.log", "no names", "{pod"])
def test_a_pattern_that_cannot_be_is_told(text: str) -> None:
    with pytest.raises(BadSettingError, match="--id"):
        identity.pattern(text)


def test_the_service_comes_from_the_wrapping_if_no_pattern_tells_it(tmp_path: Path) -> None:
    text = (SAMPLES / "steady-go1.26.log").read_text().splitlines()
    path = tmp_path / "a.log"
    path.write_text("".join(f"2026-11-21T09:00:00Z web1 api[7]: {line}\n" for line in text))
    (row,) = rows(path)
    assert (row["service"], row["host"], row["log_pid"]) == ("api", "web1", 7)


# --- rows ---


def test_a_row_has_every_column_and_the_figures_of_the_report() -> None:
    path = SAMPLES / "steady-go1.26.log"
    (row,) = rows(path)
    assert list(row) == schema.names("fleet") or set(row) == set(schema.names("fleet"))
    run = gca.read(path)
    summary = run.summary()
    first = run.recommend().row(0, named=True)
    assert row["gc_cpu_share"] == summary.gc_cpu_share
    assert row["findings"] == run.findings()["id"].to_list()
    assert row["advice_heap_peak_mib"] == first["heap_peak_mib"]
    assert row["gc_cpu_s"] == pytest.approx(row["gc_cpu_share"] * row["capacity_cpu_s"])


def test_programs_of_one_file_are_rows_of_their_own() -> None:
    found = rows(SAMPLES / "restart-go1.26.log")
    assert [row["process"] for row in found] == [0, 1]
    assert found[0]["ended_by"] == "restart"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", "empty"),
        (b"hello\n" * 9, "no-records"),
        (b"\x1f\x8b\x08\x00garbage", "damaged"),
        (None, "missing"),
    ],
)
def test_what_cannot_be_read_is_a_row_with_its_error(
    data: bytes | None, kind: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.log"
    if data is not None:
        path.write_bytes(data)
    (row,) = worker.rows_here(Item(str(path), "a.log", None), worker.WorkerOptions())
    assert row["error_kind"] == kind
    assert row["error"]
    assert row["cycles"] is None


def test_a_cut_archive_gives_what_came_before_and_says_so(tmp_path: Path) -> None:
    whole = gzip.compress("".join(prolonged(sample(), 200_000)).encode())
    path = tmp_path / "a.log.gz"
    path.write_bytes(whole[: len(whole) // 2])
    (row,) = rows(path)
    assert row["cycles"] > 100
    assert any("what came before was used" in text for text in row["warnings"])


# --- long files ---


def sample(name: str = "steady-go1.26") -> str:
    return (SAMPLES / f"{name}.log").read_text()


@pytest.fixture(scope="module")
def long_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("long") / "long.log"
    path.write_text("".join(prolonged(sample(), 400_000)))
    return path


def test_a_file_in_stretches_has_the_figures_of_the_whole(long_log: Path) -> None:
    (whole,) = rows(long_log)
    (cut,) = in_parts(long_log, 60_000)
    assert cut["stretches"] == 7
    same(whole, cut, but=OF_STRETCHES)


@pytest.mark.parametrize(
    "name", ["restart-go1.26", "together-go1.22", "go1.4", "gctrace2-go1.27", "leak-go1.26"]
)
def test_programs_are_joined_across_the_seams(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(sample(name))
    whole, cut = rows(path), in_parts(path, 3000 if path.stat().st_size > 6000 else 900)
    assert len(whole) == len(cut)
    for one, other in zip(whole, cut, strict=True):
        same(one, other, but=OF_STRETCHES)


def test_ranges_of_bytes_and_a_compressed_stream_give_the_same_rows(
    long_log: Path, tmp_path: Path
) -> None:
    packed = tmp_path / "long.log.gz"
    packed.write_bytes(gzip.compress(long_log.read_bytes()))
    (streamed,) = rows(packed, stretch=60_000)
    (cut,) = in_parts(long_log, 60_000)
    same(streamed, cut, but={"file", "file_bytes"})


@pytest.mark.parametrize("seam", range(40, 160, 17))
def test_a_record_torn_at_a_seam_is_read_once(seam: int, tmp_path: Path) -> None:
    lines = sample().splitlines(keepends=True)
    records = [line for line in lines if line.startswith("gc ")]
    torn = records[20][:34] + "a line of the program\n" + records[20][34:]
    text = "".join([*records[:20], torn, *records[21:]])
    path = tmp_path / "a.log"
    path.write_text(text)
    (whole,) = rows(path)
    assert whole["repaired_cycles"] == 1
    (cut,) = in_parts(path, text.index(torn) + seam - 40)
    same(whole, cut, but=OF_STRETCHES)


def test_every_line_belongs_to_one_stretch(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"".join(b"%d\n" % (n**3) for n in range(300)) + b"no line end")
    size = path.stat().st_size
    for step in (1, 2, 7, 100, size - 1, size, size + 5):
        with path.open("rb") as file:
            own = sum(
                cuts.range_of(file, at, min(at + step, size)).own for at in range(0, size, step)
            )
        assert own == 301


def test_a_long_file_that_is_no_text_is_read_by_one_task(tmp_path: Path) -> None:
    path = tmp_path / "a.log"  # compressed, and not named so
    path.write_bytes(gzip.compress("".join(prolonged(sample(), 90_000)).encode(), 0))
    how = worker.WorkerOptions(stretch=40_000)
    first, *others = worker.batches([item(path)], how, files=16, size=1 << 24)
    assert [len(worker.batch_rows(batch)) for batch in others] == [0] * len(others)
    (row,) = worker.batch_rows(first)
    assert isinstance(row, dict)
    assert row["cycles"] > 100


# --- parts ---


def a_row(name: str, **values: Any) -> Row:
    return {**dict.fromkeys(schema.names("fleet")), "file": name, **values}


def test_parts_that_no_manifest_lists_do_not_count(tmp_path: Path) -> None:
    where = tmp_path / "out.parquet"
    one = Parts(str(where), {"id": None})
    one.add([a_row("a")], 2)
    kept = (where.parent / "out.parquet.manifest.json").read_text()
    one.add([a_row("b")], 2)
    (where.parent / "out.parquet.manifest.json").write_text(kept)  # as if it had died before
    two = Parts(str(where), {"id": None})
    assert two.done == {"a"}
    two.add([a_row("b")], 2)
    two.finish(2)
    assert two.frame().collect()["file"].to_list() == ["a", "b"]
    assert pl.scan_parquet(where).collect()["file"].sort().to_list() == ["a", "b"]
    assert json.loads((where.parent / "out.parquet.manifest.json").read_text())["complete"]
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []


def test_an_output_made_otherwise_is_not_gone_on_with(tmp_path: Path) -> None:
    where = str(tmp_path / "out.parquet")
    Parts(where, {"id": None}).add([a_row("a")], 1)
    with pytest.raises(BadSettingError, match="--overwrite"):
        Parts(where, {"id": "{pod}.log"})
    assert Parts(where, {"id": "{pod}.log"}, overwrite=True).done == set()


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(BadSettingError, match="something else"):
        Parts(str(tmp_path), {})
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_store_that_failed_is_asked_again_and_a_bad_file_is_not(tmp_path: Path) -> None:
    where = str(tmp_path / "out.parquet")
    first = Parts(where, {})
    first.add([a_row("a", error_kind="unreachable"), a_row("b", error_kind="damaged")], 2)
    assert Parts(where, {}).done == {"b"}
    assert Parts(where, {}, retry=True).done == set()


def test_a_part_that_was_taken_away_is_told(tmp_path: Path) -> None:
    where = tmp_path / "out.parquet"
    Parts(str(where), {}).add([a_row("a")], 1)
    next(where.iterdir()).unlink()
    with pytest.raises(UnreadableInputError, match="the manifest lists it"):
        existing(str(where))


def test_what_is_not_there_cannot_be_asked(tmp_path: Path) -> None:
    with pytest.raises(UnreadableInputError, match="no output of fleet"):
        existing(str(tmp_path / "none.parquet"))


# --- answers ---


def fleet_of(*many: Row) -> pl.DataFrame:
    return pl.DataFrame(many, schema=schema.polars_schema("fleet"))


def replica(number: int, **values: Any) -> Row:
    usual = {
        "service": "api", "process": 0, "cycles": 100, "span_s": 100.0, "gc_cpu_s": 50.0,
        "gc_cpu_with_idle_s": 60.0, "capacity_cpu_s": 400.0, "gc_cpu_share": 0.125,
        "live_heap_p50_mib": 100.0 + number / 100, "live_heap_max_mib": 110.0, "short": False,
        "thrash_s": 0.0, "thrashes_at_end": False, "findings": [], "oom_kills": 0,
        "advice_changes": False, "go_version_min": "1.19", "goal_set_by": "gogc",
    }  # fmt: skip
    return a_row(f"api-{number}.log", **(usual | values))


def test_cores_add_up_over_files_and_not_over_restarts() -> None:
    again = replica(0, process=1)
    told = answers(fleet_of(replica(0), again, replica(1)))
    assert told.totals.gc_cores == pytest.approx(1.0)
    assert told.totals.cores == pytest.approx(8.0)
    assert told.services.row(0, named=True)["files"] == 2


def test_the_replica_that_is_unlike_the_others_is_found() -> None:
    many = [replica(n) for n in range(9)] + [replica(9, live_heap_p50_mib=300.0)]
    (row,) = answers(fleet_of(*many)).outliers.to_dicts()
    assert (row["file"], row["figure"]) == ("api-9.log", "live_heap_p50_mib")
    assert row["usual"] == pytest.approx(100.04, abs=0.01)


def test_near_its_limit_is_a_share_of_it_or_a_matter_of_hours() -> None:
    grows = {"live_heap_growth_mib_per_h": 10.0, "live_heap_growth_mib_per_h_low": 5.0}
    told = answers(
        fleet_of(
            replica(0, memory_limit_mib=120.0),
            replica(1, memory_limit_mib=300.0, **grows),
            replica(2, memory_limit_mib=900.0, **grows),
            replica(3, thrash_s=9.0, thrashes_at_end=True),
        )
    )
    assert told.limits["file"].to_list() == ["api-0.log"]
    assert told.thrash.select("file", "state").rows() == [
        ("api-3.log", "thrashes"), ("api-1.log", "near"),
    ]  # fmt: skip


def test_savings_of_services_add_up_with_their_intervals() -> None:
    saved = {"saved_cores": 1.0, "saved_cores_low": 0.7, "saved_cores_high": 1.4}
    heap = {"saved_heap_mib": -10.0, "saved_heap_mib_low": -20.0, "saved_heap_mib_high": 0.0}
    many = [
        replica(n, service=name, advice_changes=True, **saved, **heap)
        for n, name in enumerate("ab")
    ]
    totals = answers(fleet_of(*many)).totals
    assert totals.saved_cores == pytest.approx(2.0)
    assert totals.saved_cores_low == pytest.approx(2 - math.hypot(0.3, 0.3))
    assert totals.saved_heap_mib_high == pytest.approx(-20 + math.hypot(10, 10))


def test_the_answers_fit_a_terminal_and_are_markdown_and_json() -> None:
    many = [replica(n) for n in range(9)] + [
        replica(9, live_heap_p50_mib=300.0, memory_limit_mib=120.0, thrash_s=3.0,
                thrashes_at_end=True, limiter="likely", advice_changes=True, saved_cores=0.1,
                saved_cores_low=0.0, saved_cores_high=0.2, saved_heap_mib=-4000.0,
                saved_heap_mib_low=-5000.0, saved_heap_mib_high=-3000.0),
        a_row("s3://b/" + "long" * 30 + "|<b>.log", error_kind="denied", error="Access Denied"),
    ]  # fmt: skip
    told = answers(fleet_of(*many))
    text = str(gca.fleet_answers(fleet_of(*many).lazy())).split("\n")
    assert max(map(len, text)) <= 80, max(text, key=len)
    assert "11 files · 10 processes of 1 service · 1,000 cycles" in text[0]
    page = shown.dumps(told)
    assert "| api-9.log | thrashes |" in page
    assert "long\\|\\<b\\>.log: Access Denied" in page
    assert "<b>" not in page_of.dumps(told)
    html = page_of.dumps(told)
    assert "1 process thrashes, first of all api-9.log" in html
    assert "<script" not in html
    document = json.loads(shown.to_json(told))
    assert document["totals"]["thrashing"] == 1
    assert document["services"][0]["stw_p99_ms"] is None


# --- the verb ---


def test_nothing_found_is_said_before_anything_is_started(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fleet", str(tmp_path / "*.log")]) == 3
    assert "no file there" in capsys.readouterr().err
    assert main(["fleet"]) == 2
    assert "at least one" in capsys.readouterr().err
    assert main(["fleet", "a.log", "-o", "a.parquet", "-o", "b.parquet"]) == 2
    assert "one folder" in capsys.readouterr().err
    assert main(["fleet", "ftpx://h/a.log"]) == 2
    assert "s3://" in capsys.readouterr().err


def test_a_list_of_paths_may_be_a_file(tmp_path: Path) -> None:
    listed = tmp_path / "paths.txt"
    listed.write_text("# of today\na.log\n\n  b.log\n")
    assert inputs.listed_in(str(listed)) == ["a.log", "b.log"]
