"""Files with one dump each: of one process, or of several."""

from __future__ import annotations

import gzip
import json
from itertools import permutations
from typing import TYPE_CHECKING, Any

import pytest

import gctrace_analyzer as gca
from tests.helpers.metrics import CORPUS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RUNS = ("own/gogc100", "own/gogc200", "own/thrash-limit80", "caddy/gogc100")
NS = 1_000_000_000


def recorded(run: str) -> list[dict[str, Any]]:
    """Returns the dumps of a run, one a second, without their times."""
    with gzip.open(CORPUS / run / "expvar.jsonl.gz", "rt") as file:
        values = [json.loads(line) for line in file]
    return [{k: v for k, v in value.items() if k != "time"} for value in values]


def bare(dumps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns dumps as `json.Marshal` of a MemStats writes them, without a command line."""
    return [dump["memstats"] for dump in dumps]


def files(folder: Path, dumps: list[dict[str, Any]], name: str = "vars-{}.json") -> list[Path]:
    """Writes each dump to a file, as `curl /debug/vars` does."""
    paths = [folder / name.format(n) for n in range(1, len(dumps) + 1)]
    for path, dump in zip(paths, dumps, strict=True):
        path.write_text(json.dumps(dump, indent=0) + "\n")
    return paths


def process(
    cycles: int, every_s: float, start_s: float = 1.7e9, **others: Any
) -> dict[str, Any]:
    """Returns a dump of a process after some cycles at equal distances."""
    ends = [0] * 256
    for number in range(max(1, cycles - 255), cycles + 1):
        ends[(number + 255) % 256] = int((start_s + number * every_s) * NS)
    stats = {
        "Alloc": 30 << 20, "TotalAlloc": cycles << 20, "Sys": 80 << 20, "Mallocs": cycles * 900,
        "Frees": cycles * 800, "HeapAlloc": 30 << 20, "HeapSys": 64 << 20, "HeapIdle": 20 << 20,
        "HeapInuse": 44 << 20, "NextGC": 60 << 20, "LastGC": int((start_s + cycles * every_s) * NS),
        "PauseTotalNs": cycles * 50_000, "PauseNs": [50_000] * 256, "PauseEnd": ends,
        "NumGC": cycles, "NumForcedGC": 0, "GCCPUFraction": 0.02,
    }  # fmt: skip
    return {"cmdline": ["/app/server"], "memstats": stats, **others}


def series_of(run: gca.Run) -> int:
    return len(run.processes)


@pytest.mark.parametrize("written", [list, bare], ids=["expvar", "MemStats"])
def test_dumps_with_common_cycles_are_of_one_process_in_any_order(
    tmp_path: Path, written: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
) -> None:
    whole = recorded("own/gogc100")[::5]
    paths = files(tmp_path, written(whole))
    run = gca.read(*sorted(paths))
    assert sorted(paths)[1].name == "vars-10.json"
    assert series_of(run) == 1
    first, last = (dump["memstats"]["NumGC"] for dump in (whole[0], whole[-1]))
    assert run.summary().cycles == last - first
    assert run.memstats["num_gc"].to_list() == [dump["memstats"]["NumGC"] for dump in whole]
    (memory,) = run.memory()
    assert (memory.dumps, memory.source) == (12, f"{paths[0]} and 11 more")
    assert not any("files" in note for note in run.summary().warnings)


def test_the_figures_are_those_of_the_same_dumps_in_one_file(tmp_path: Path) -> None:
    dumps = recorded("own/gogc100")[::5]
    one = tmp_path / "all.jsonl"
    one.write_text("".join(json.dumps(dump) + "\n" for dump in dumps))
    together = gca.read(one).summary()
    apart = gca.read(*files(tmp_path, dumps)).summary()
    for name in (
        "cycles",
        "gc_cpu_share",
        "stw_p99_ms",
        "alloc_mib_per_s",
        "live_heap_p50_mib",
    ):
        assert getattr(apart, name) == pytest.approx(getattr(together, name)), name


def test_times_next_to_the_figures_are_read(tmp_path: Path) -> None:
    dumps = [
        {"time": 1_700_000_000.5 + 5 * n, **d} for n, d in enumerate(recorded(RUNS[0])[::5])
    ]
    run = gca.read(*files(tmp_path, dumps))
    assert run.summary().span_s == pytest.approx(55)
    assert run.memstats["logged_at"][0].timestamp() == 1_700_000_000.5


def test_names_and_counters_join_dumps_without_common_cycles(tmp_path: Path) -> None:
    """830 cycles a minute: of two dumps, the second no longer has the cycles of the first."""
    dumps = recorded("caddy/gogc100")[::25]
    for written, by in (
        (dumps, "the same command line, and counters"),
        (bare(dumps), "counters"),
    ):
        run = gca.read(*files(tmp_path, written))
        assert series_of(run) == 1
        (note,) = [each for each in run.summary().warnings if "files" in each]
        assert note.startswith(
            "3 files (vars-1.json to vars-3.json) were read as dumps of one process: they have "
            f"{by} that rise from name to name."
        )


def test_two_dumps_without_common_cycles_are_not_joined_but_named(tmp_path: Path) -> None:
    dumps = recorded("caddy/gogc100")[::40]
    for written in (dumps, bare(dumps)):
        run = gca.read(*files(tmp_path, written))
        assert series_of(run) == 2
        (note,) = [each for each in run.summary().warnings if "files" in each]
        assert "may be dumps of one process, but nothing proves it" in note


@pytest.mark.parametrize("runs", list(permutations(RUNS, 2)), ids="-".join)
def test_dumps_of_different_runs_are_never_joined(
    runs: tuple[str, str], tmp_path: Path
) -> None:
    dumps = [dump for run in runs for dump in recorded(run)[-2:]]
    for dump in dumps:
        dump["cmdline"] = ["/app/server"]
    for written in (dumps, bare(dumps)):
        assert series_of(gca.read(*files(tmp_path, written))) == 2


def test_replicas_that_were_asked_one_after_another_are_never_joined(tmp_path: Path) -> None:
    """Each has more cycles than the one before it."""
    by_age = [process(1000 * n, 0.1, 1.7e9 - 100 * n + 5 * n) for n in range(1, 6)]
    same_age = [process(2000 + 20 * n, 0.1, 1.7e9 + 0.01 * n) for n in range(1, 6)]
    for dumps in (by_age, bare(by_age), same_age, bare(same_age)):
        assert series_of(gca.read(*files(tmp_path, dumps))) == 5


@pytest.mark.parametrize(
    ("changed", "joined"),
    [
        ({}, True),
        ({"cmdline": ["/app/server", "-shard", "2"]}, False),
        ({"cmdline": None}, False),
        ({"fewer": "Mallocs"}, False),
        ({"fewer": "PauseTotalNs"}, False),
    ],
)
def test_command_line_and_counters_must_agree(
    changed: dict[str, Any], joined: bool, tmp_path: Path
) -> None:
    dumps = [process(1000 * n, 0.1) for n in range(1, 5)]
    fewer = changed.pop("fewer", None)
    dumps[2] |= changed
    if fewer:
        dumps[2]["memstats"][fewer] = 1
    assert (series_of(gca.read(*files(tmp_path, dumps))) == 1) == joined


def test_cycles_between_two_dumps_must_be_as_frequent_as_in_them(tmp_path: Path) -> None:
    """Ten cycles a second in each dump, and two or a hundred between them."""
    for cycles, every_s in ((2000, 0.5), (40_000, 0.01)):
        begin = 1.7e9 + 1000 * 0.1 + cycles * every_s
        later = [
            process(1000 + cycles + 1000 * n, 0.1, begin - (cycles + 1000) * 0.1)
            for n in range(3)
        ]
        run = gca.read(*files(tmp_path, [process(1000, 0.1), *later]))
        assert series_of(run) > 1


def test_the_order_of_the_names_must_be_that_of_the_cycles(tmp_path: Path) -> None:
    dumps = [process(1000 * n, 0.1) for n in (1, 3, 2, 4)]
    assert series_of(gca.read(*files(tmp_path, dumps))) == 4


def test_names_that_differ_by_more_than_numbers_are_of_different_processes(
    tmp_path: Path,
) -> None:
    for name, dump in zip(
        ("a", "b", "c"), (process(1000 * n, 0.1) for n in (1, 2, 3)), strict=True
    ):
        (tmp_path / f"{name}.json").write_text(json.dumps(dump))
    assert series_of(gca.read(*sorted(tmp_path.glob("*.json")))) == 3
