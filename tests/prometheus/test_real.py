"""A real Prometheus that scrapes real Go programs: what was asked, saved and read."""

from __future__ import annotations

import gzip
import json
import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer import schema
from gctrace_analyzer.cli import main
from gctrace_analyzer.prometheus import fetch, queries
from gctrace_analyzer.prometheus.address import parse
from gctrace_analyzer.prometheus.fetched_metrics import GO
from gctrace_analyzer.prometheus.server import Server
from tests.helpers.intervals import between_dumps
from tests.helpers.prometheus import binary, exporter, free_port, running, value, wait_until
from tests.prometheus.conftest import PASSWORD

if TYPE_CHECKING:
    from pathlib import Path

    from gctrace_analyzer.prometheus.series import Answer
    from tests.prometheus.conftest import Monitored

SPAN = "60s"


def saved(path: Path) -> dict[str, dict[float, str]]:
    """The samples of a saved file by series; an answer may have a sample that another has."""
    opened = gzip.open if path.suffix == ".gz" else open
    found: dict[str, dict[float, str]] = {}
    with opened(path, "rt") as lines:
        for line in lines:
            for series in json.loads(line)["data"]["result"]:
                name = json.dumps(series["metric"], sort_keys=True)
                times = [at for at, _ in series["values"]]
                assert not set(times) & set(found.get(name, {})), "a sample came twice"
                found.setdefault(name, {}).update(dict(series["values"]))
    return found


def cycles_in(log: Path) -> int:
    return len(re.findall(r"^gc \d+ @", log.read_text(), re.MULTILINE))


def test_a_process_is_read_as_its_gctrace_shows_it(monitored: Monitored) -> None:
    run = gca.read_prometheus(monitored.url, instance=monitored.api, since=SPAN)
    last = int(run.memstats.select(pl.max("num_gc")).item())
    in_log = cycles_in(monitored.api_log)
    # The program goes on after its last scrape.
    assert in_log - 3 <= last <= in_log
    assert run.memstats["gogc_pct"].drop_nulls().unique().to_list() == [80]
    figures, log = run.summary(), gca.read(monitored.api_log)
    truth = log.summary()
    # The same cycles in the log: a busy machine is not steady.
    first = int(run.memstats.select(pl.min("num_gc")).item())
    starts = log.cycles.filter(pl.col("gc_num").is_between(first, last))["start_s"]
    assert figures.gc_per_s == pytest.approx((last - first) / (starts[-1] - starts[0]), rel=0.1)
    assert figures.live_heap_p50_mib == pytest.approx(truth.live_heap_p50_mib, rel=0.1)
    # Not the GC CPU: gctrace counts a pause as its length times the processors, which on a busy
    # machine is far more than the CPU time of /cpu/classes.


def test_two_jobs_of_one_address_are_one_process(
    monitored: Monitored, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["prometheus", monitored.url, "--match", '{job=~"api.*"}', "--since", SPAN]) == 0
    )
    assert f"{monitored.api} (127.0.0.1" in capsys.readouterr().out


def test_saved_answers_are_read_like_the_server(monitored: Monitored, tmp_path: Path) -> None:
    path = tmp_path / "raw.json.gz"
    run = gca.read_prometheus(monitored.url, instance=monitored.api, since=SPAN, save=path)
    again = gca.read(path)
    columns = [name for name in run.memstats.columns if name != "source"]
    assert again.memstats.select(columns).equals(run.memstats.select(columns))
    assert len(saved(path)) > 30
    plain = tmp_path / "raw.json"
    gca.read_prometheus(monitored.url, instance=monitored.api, since=SPAN, save=plain)
    assert plain.read_bytes().startswith(b'{"status":"success"')


def test_small_pieces_have_the_samples_of_a_large_one(
    monitored: Monitored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    which: dict[str, Any] = {"instance": monitored.api, "since": SPAN, "until": at(monitored)}
    gca.read_prometheus(monitored.url, **which, save=tmp_path / "whole.json")
    monkeypatch.setattr(fetch, "PIECE_SAMPLES", 50)
    monkeypatch.setattr(fetch, "_SHORTEST_S", 2)
    gca.read_prometheus(monitored.url, **which, save=tmp_path / "pieces.json.gz")
    whole = (tmp_path / "whole.json").read_text().count("\n")
    with gzip.open(tmp_path / "pieces.json.gz") as pieces:
        assert len(pieces.readlines()) >= 4 * whole
    assert saved(tmp_path / "pieces.json.gz") == saved(tmp_path / "whole.json")


def at(monitored: Monitored) -> str:
    """The time after which nothing changed, so that several requests have one answer."""
    return datetime.fromtimestamp(int(monitored.end), UTC).isoformat()


def test_a_step_fetches_one_point_for_each(monitored: Monitored, tmp_path: Path) -> None:
    path = tmp_path / "raw.json"
    gca.read_prometheus(
        monitored.url,
        instance=monitored.api,
        since=SPAN,
        until=at(monitored),
        step="2s",
        save=path,
    )
    times = sorted({time for series in saved(path).values() for time in series})
    assert {round(b - a, 3) for a, b in pairwise(times)} == {2.0}


def of_server(monitored: Monitored, **which: Any) -> pl.DataFrame:
    """The rows that the server computes."""
    address = f"prometheus+{monitored.url}"
    return gca.fleet(address, worst=0, since=SPAN, **which).collect()


def test_a_server_is_an_input_of_every_command(
    monitored: Monitored, capsys: pytest.CaptureFixture[str]
) -> None:
    one = [f"prometheus+{monitored.url}", "--instance", monitored.api, "--since", SPAN]
    for words in (one, ["recommend", *one], ["whatif", *one, "--gogc", "50"]):
        assert main(words) == 0, words
    tight = gca.read(f"prometheus+{monitored.url}", instance=monitored.tight, since=SPAN)
    assert "GC016" in tight.findings()["id"]
    assert main(["recommend", "samples/steady-go1.26.log", "--match", "{}"]) == 2
    assert "prometheus+http" in capsys.readouterr().err


def test_several_processes_are_a_ranked_table(
    monitored: Monitored, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "all.json"
    assert main(["prometheus", monitored.url, "--since", SPAN, "-o", str(out)]) == 0
    document = json.loads(out.read_text())
    assert document["totals"]["thrashing"] == 1
    first = document["thrash"][0]
    assert (first["file"], first["state"]) == (monitored.tight, "thrashes")
    memory = {row["file"]: row for row in document["memory"]}[monitored.tight]
    assert (memory["memory_limit_mib"], memory["gogc"]) == (28, "off")
    for suffix in ("html", "md", "csv", "txt"):
        path = tmp_path / f"all.{suffix}"
        assert main(["prometheus", monitored.url, "--since", SPAN, "-o", str(path)]) == 0
        assert path.stat().st_size > 500
    assert main(["prometheus", monitored.url, "--since", SPAN]) == 0
    shown = capsys.readouterr()
    assert re.search(r"Thrashing +1 now", shown.out)
    assert max(map(len, shown.out.splitlines())) <= 80
    assert "--instance" in shown.out


def test_samples_of_several_processes_are_saved(monitored: Monitored, tmp_path: Path) -> None:
    path = tmp_path / "all.json.gz"
    assert main(["prometheus", monitored.url, "--since", SPAN, "--save", str(path)]) == 0
    instances = {json.loads(labels)["instance"] for labels in saved(path)}
    assert instances == {monitored.api, monitored.tight, monitored.restarted}


def test_a_thrashing_process_is_found_in_its_samples(
    monitored: Monitored, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["prometheus", monitored.url, "--instance", monitored.tight, "--since", SPAN]
    assert main([*words, "--fail-on", "finding:GC016"]) == 1
    assert "limit-thrash" in capsys.readouterr().out


def test_the_server_computes_what_the_samples_say(monitored: Monitored) -> None:
    rows = of_server(monitored, until=at(monitored))
    assert rows.columns == schema.names("fleet")
    row = rows.row(by_predicate=pl.col("file") == monitored.api, named=True)
    run = gca.read_prometheus(
        monitored.url, instance=monitored.api, since=SPAN, until=at(monitored)
    )
    dumps = run.memstats.filter(pl.col("num_gc").is_not_null()).sort("logged_at")
    seconds = (dumps["logged_at"][-1] - dumps["logged_at"][0]).total_seconds()
    per_s = (dumps["num_gc"][-1] - dumps["num_gc"][0]) / seconds
    # The time that the server covers is counted in steps of 15 s.
    assert row["gc_per_s"] == pytest.approx(per_s, rel=0.6)
    assert row["gogc"] == "80"
    assert row["go_version_min"].startswith("1.")
    assert row["rss_max_mib"] > row["heap_goal_p50_mib"] / 2 > 5


def test_ctrl_c_leaves_no_file(
    monitored: Monitored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Server.document

    def interrupted(self: Server, query: str, at: float) -> Answer:
        if "__name__" in query:
            raise KeyboardInterrupt
        return asked(self, query, at)

    monkeypatch.setattr(Server, "document", interrupted)
    path = tmp_path / "raw.json.gz"
    words = ["prometheus", monitored.url, "--instance", monitored.api, "--save", str(path)]
    assert main(words) == 130
    assert not list(tmp_path.iterdir())


def test_two_time_ranges_are_compared(
    monitored: Monitored, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    whole = between_dumps(
        gca.read_prometheus(monitored.url, instance=monitored.api, since=SPAN)
    )
    begin, end = whole["begin_at"].min(), whole["end_at"].max()
    assert isinstance(begin, datetime)
    assert isinstance(end, datetime)
    middle = begin + (end - begin) / 2
    ends = [each.isoformat() for each in (begin, middle, middle, end + timedelta(seconds=1))]
    page = tmp_path / "comparison.html"
    ranges = ["--before", f"{ends[0]}..{ends[1]}", "--after", f"{ends[2]}..{ends[3]}"]
    command = ["compare", f"prometheus+{monitored.url}", "--instance", monitored.api, *ranges]
    assert main([*command, "-f", "json", "-o", str(page)]) == 0
    found = json.loads(capsys.readouterr().out)
    rows = {row["metric"]: row for row in found["metrics"]}
    # It is the same program under the same load.
    assert rows["gc_per_s"]["verdict"] == "~"
    half = (end - begin).total_seconds() / 2
    assert rows["gc_per_s"]["before_s"] == pytest.approx(half, abs=1.5)
    assert found["differences"] == [] or found["comparable"]
    assert "<svg" in page.read_text()
    assert main([*command[:-4], "--before", "1h..2h", "--after", "1h.."]) == 2
    assert "the earlier end first" in capsys.readouterr().err


def test_a_restart_is_counted(monitored: Monitored) -> None:
    rows = of_server(monitored, match='{job="restarted"}')
    assert rows["restarts"].to_list() == [1]
    assert rows["file"].to_list() == [monitored.restarted]
    run = gca.read_prometheus(monitored.url, match='{job="restarted"}', since=SPAN)
    assert len(run.processes) == 2
    assert run.processes["ended_by"].to_list() == ["restart", "end of input"]


def test_processes_are_asked_about_in_batches(
    monitored: Monitored, monkeypatch: pytest.MonkeyPatch
) -> None:
    until = at(monitored)
    whole = of_server(monitored, until=until)
    monkeypatch.setattr(queries, "BATCH", 1)
    assert of_server(monitored, until=until).sort("file").equals(whole.sort("file"))


def test_a_fleet_names_the_worst_and_advises(
    monitored: Monitored, capsys: pytest.CaptureFixture[str]
) -> None:
    url = monitored.url.replace("http", "prometheus+http")
    assert main(["fleet", url, "--since", SPAN, "--worst", "1", "-f", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["thrash"][0]["file"] == monitored.tight
    read = [row["file"] for row in document["thrash"] if row["limiter"] is not None]
    assert read == [monitored.tight]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--match", '{job="apo"}'], r"Did you mean api\?"),
        (["--instance", "127.0.0.1:1"], "no Go process with the instance"),
        (["--match", '{job=~"("}'], "invalid value .* for --match"),
        (["--match", "job=api"], 'Did you mean {job="api"}'),
        (["--between", "1s..2s"], "one process, but 3 fit.*\n?.*--instance"),
        (["--save", "/nowhere/raw.json"], "a file in an existing folder"),
        (["--until", "2001-01-01"], "no Go process"),
    ],
)
def test_mistakes_are_explained(
    words: list[str], message: str, monitored: Monitored, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["prometheus", monitored.url, *words]) in (2, 3)
    assert re.search(message, capsys.readouterr().err, re.DOTALL)


def test_tls_a_password_a_prefix_and_few_samples(
    guarded: tuple[str, Path],
    monitored: Monitored,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    url, certificate = guarded
    monkeypatch.setattr(fetch, "_SHORTEST_S", 2)
    password = tmp_path / "password"
    password.write_text(f"{PASSWORD}\n")
    path = tmp_path / "raw.json"
    words = ["prometheus", url, "--instance", monitored.api, "--save", str(path)]
    words += ["--ca-file", str(certificate), "--user", "monitor", "--debug"]
    words += ["--since", SPAN, "--until", at(monitored)]
    assert main([*words, "--password-file", str(password)]) == 0
    shown = capsys.readouterr()
    assert "the Prometheus API is under /prometheus" in shown.err
    whole = tmp_path / "whole.json"
    which: dict[str, Any] = {"since": SPAN, "until": at(monitored), "save": whole}
    gca.read_prometheus(monitored.url, instance=monitored.api, **which)
    # What had not been written to a block yet is in the copied log of the server.
    assert saved(path) == saved(whole)
    assert PASSWORD not in shown.out + shown.err + path.read_text()


def test_tls_and_a_password_go_wrong(
    guarded: tuple[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    url, certificate = guarded
    assert main(["prometheus", url]) == 3
    assert "its TLS certificate is not trusted" in (said := capsys.readouterr().err)
    assert "--ca-file" in said
    assert main(["prometheus", url, "--ca-file", str(certificate)]) == 3
    assert "access denied (401)" in (said := capsys.readouterr().err)
    assert "--token-file" in said
    assert main(["prometheus", url.replace("https", "http")]) == 3
    assert "expects TLS" in capsys.readouterr().err
    address = url.replace("//", f"//monitor:wrong-{PASSWORD}@")
    assert main(["prometheus", address, "--ca-file", str(certificate), "--debug"]) == 3
    assert PASSWORD not in capsys.readouterr().err


def test_credentials_come_from_the_environment(
    guarded: tuple[str, Path], monitored: Monitored, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, certificate = guarded
    monkeypatch.setenv("PROMETHEUS_USER", "monitor")
    monkeypatch.setenv("PROMETHEUS_PASSWORD", PASSWORD)
    address = f"prometheus+{url}/prometheus/"
    which = {"match": '{job="tight"}', "since": SPAN}
    rows = gca.fleet(address, worst=0, ca_file=certificate, **which).collect()  # type: ignore[arg-type]  # they are options of `read`
    assert rows["file"].to_list() == [monitored.tight]


def test_every_metric_that_is_fetched_exists(monitored: Monitored, tmp_path: Path) -> None:
    path = tmp_path / "raw.json"
    gca.read_prometheus(monitored.url, instance=monitored.api, since=SPAN, save=path)
    found = {json.loads(labels)["__name__"] for labels in saved(path)}
    # Go 1.21 and later no longer export the fraction; the others are VictoriaMetrics' names.
    others = {"go_gc_forced_count", "go_gomaxprocs", "go_memlimit_bytes"}
    assert set(GO) - found == {"go_memstats_gc_cpu_fraction", *others}


def test_an_address_may_be_what_a_browser_shows() -> None:
    pasted = "http://h:9090/prometheus/graph?g0.expr=up&g0.tab=0#x"
    assert parse(pasted).url == "http://h:9090/prometheus"


def test_victoria_metrics_answers_alike(monitored: Monitored, tmp_path: Path) -> None:
    server = binary("victoria-metrics", "victoria-metrics")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    program = exporter(tmp_path)
    target = f"127.0.0.1:{free_port()}"
    config = tmp_path / "scrape.yml"
    config.write_text(
        "global: {scrape_interval: 250ms, scrape_timeout: 250ms}\nscrape_configs:\n"
        f'- {{job_name: api, static_configs: [{{targets: ["{target}"]}}]}}\n'
    )
    command = [
        server,
        f"-storageDataPath={tmp_path / 'data'}",
        f"-promscrape.config={config}",
        f"-httpListenAddr=127.0.0.1:{port}",
        "-search.latencyOffset=0s",
    ]
    with (
        running([program, "-listen", target], tmp_path / "api.log"),
        running(command, tmp_path / "victoria.log"),
    ):
        query = "count_over_time(go_info[1m])"
        wait_until(lambda: value(url, query) > 20, "VictoriaMetrics has samples")
        path = tmp_path / "raw.json"
        run = gca.read_prometheus(url, since="1m", save=path)
        rows = gca.fleet(f"prometheus+{url}", worst=0, since="1m").collect()
    assert len(run.memstats) > 20
    assert rows["file"].to_list() == [target]
    assert rows["gc_per_s"][0] > 0
    assert rows["heap_goal_p50_mib"][0] > 20
