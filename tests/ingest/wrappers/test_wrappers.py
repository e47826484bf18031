"""Every log prefix gives time, identity and message, whatever the message is."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.ingest.wrappers import strip
from tests.helpers import reference
from tests.helpers.logs import AT, RECORDS, logfile, records

if TYPE_CHECKING:
    from datetime import datetime

SECOND = AT.replace(microsecond=0)

WHO: dict[str, Any] = {"host": "web-1", "ident": "api", "log_pid": 4242}
TEXT: dict[str, tuple[str, datetime | None, dict[str, Any]]] = {
    "short": ("Feb 03 10:00:00 web-1 api[4242]: {}", SECOND, WHO),
    "short-precise": ("Feb 03 10:00:00.005000 web-1 api[4242]: {}", AT, WHO),
    "short-iso": ("2026-02-03T11:00:00+0100 web-1 api[4242]: {}", SECOND, WHO),
    "short-iso-precise": ("2026-02-03T10:00:00.005000+00:00 web-1 api[4242]: {}", AT, WHO),
    "short-full": ("Tue 2026-02-03 05:00:00 EST web-1 api[4242]: {}", SECOND, WHO),
    "with-unit": (
        "Tue 2026-02-03 10:00:00 UTC web-1 api.service[4242]: {}", SECOND,
        {"host": "web-1", "unit": "api.service", "ident": None, "log_pid": 4242},
    ),
    "short-unix": ("1770112800.005000 web-1 api[4242]: {}", AT, WHO),
    "short-monotonic": ("[ 1203.005000] web-1 api[4242]: {}", None, WHO),
    "rfc3164": ("<11>Feb  3 10:00:00 web-1 api[4242]: {}", SECOND, WHO),
    "rfc3164 without host": ("Feb  3 10:00:00 api[4242]: {}", SECOND, {"ident": "api", "log_pid": 4242}),
    "rfc5424": (
        '<11>1 2026-02-03T10:00:00.005Z web-1 api 4242 ID47 [x@1 a="q\\"]"] \ufeff{}', AT, WHO,
    ),
    "a drain of Heroku": (
        "243 <190>1 2026-02-03T10:00:00.005+00:00 host app web.1 - {}", AT, {"host": "host", "ident": "app"},
    ),
    "cri": ("2026-02-03T11:00:00.005000123+01:00 stderr F {}", AT, {"stream": "stderr"}),
    "kubectl --timestamps": ("2026-02-03T10:00:00.005000123Z {}", AT, {}),
    "kubectl --prefix": ("[pod/api-7d9f-abcde/api] {}", None, {"pod": "api-7d9f-abcde", "container": "api"}),
    "compose": ("api-1  | {}", None, {"container": "api-1"}),
    "compose v1 with time": ("shop_api_1 | 2026-02-03T10:00:00.005000123Z {}", AT, {"container": "shop_api_1"}),
    "stern": ("api-7d9f5c6b8-abcde api {}", None, {"pod": "api-7d9f5c6b8-abcde", "container": "api"}),
    "stern with a container called gc": (
        "api-7d9f5c6b8-abcde gc {}", None, {"pod": "api-7d9f5c6b8-abcde", "container": "gc"},
    ),
    "stern of a stateful set": ("api-0 api {}", None, {"pod": "api-0", "container": "api"}),
    "stern -t of a stateful set": (
        "api-0 api 2026-02-03T10:00:00.005Z {}", AT, {"pod": "api-0", "container": "api"},
    ),
    "stern -A of a namespace with dashes": (
        "kube-system api-x7k2p api {}", None, {"namespace": "kube-system", "pod": "api-x7k2p", "container": "api"},
    ),
    "pod name": ("api-7d9f5c6b8-abcde {}", None, {"pod": "api-7d9f5c6b8-abcde", "container": None}),
    "pod name after a time": ("2026-02-03T10:00:00.005Z api-0 {}", AT, {"pod": "api-0", "container": None}),
    "pod name before a time": ("api-0 2026-02-03T10:00:00.005Z {}", AT, {"pod": "api-0", "container": None}),
    "kubetail": ("[api-7d9f5c6b8-abcde] {}", None, {"pod": "api-7d9f5c6b8-abcde", "container": None}),
    "kubetail with containers": ("[api-0 api] {}", None, {"pod": "api-0", "container": "api"}),
    "kail": ("shop/api-0[api]: {}", None, {"namespace": "shop", "pod": "api-0", "container": "api"}),
    "docker service logs": (
        "api.1.abcdefghij@node-1    | {}", None, {"container": "api.1.abcdefghij", "host": "node-1"},
    ),
    "foreman": ("10:00:00 web.1 | {}", None, {"container": "web.1"}),
    "pm2": ("0|api  | {}", None, {"container": "0|api"}),
    "pm2 with times": ("0|api  | 2026-02-03 10:00:00: {}", SECOND, {"container": "0|api"}),
    "pssh": ("web-1: {}", None, {"host": "web-1"}),
    "pssh with addresses": ("10.0.0.1: {}", None, {"host": "10.0.0.1"}),
    "grep": ("logs/api-0.log:{}", None, {"ident": "logs/api-0.log"}),
    "grep of a rotated file": ("api.log.1:2026-02-03T10:00:00.005Z {}", AT, {"ident": "api.log"}),
    "zgrep -n": ("api.log-20260203.gz:12:{}", None, {"ident": "api.log"}),
    "stern -A": (
        "shop api-7d9f5c6b8-abcde api {}", None,
        {"namespace": "shop", "pod": "api-7d9f5c6b8-abcde", "container": "api"},
    ),
    "CSV export": ('"2026-02-03T10:00:00.005Z","web-1","api","{}"', AT, {}),
    "CSV of Kibana": ('"Feb 3, 2026 @ 10:00:00.005","{}"', AT, {}),
    "CSV of CloudWatch Insights": ('2026-02-03 10:00:00.005,"{}",app/web/123', AT, {}),
    "table of CloudWatch Insights": ("| 2026-02-03 10:00:00.005 | {} |", AT, {}),
    "heroku": ("2026-02-03T10:00:00.005000+00:00 app[web.1]: {}", AT, {"container": "web.1", "stream": "app"}),
    "aws logs tail": ("2026-02-03T10:00:00.005000+00:00 ecs/api/0f1e2d3c {}", AT, {"stream": "ecs/api/0f1e2d3c"}),
    "logcli": (
        '2026-02-03T10:00:00Z {{container="api", pod="api-0", namespace="shop"}} {}', SECOND,
        {"container": "api", "pod": "api-0", "namespace": "shop"},
    ),
    "fluentd": ("2026-02-03 11:00:00 +0100 docker.api: {}", SECOND, {"ident": "docker.api"}),
    "Fluent Bit": ('[7] kube.api: [1770112800.005000000, {{"stream"=>"stderr", "log"=>"{}"}}]', AT, {"ident": "kube.api"}),
    "Fluent Bit 2": ('[7] kube.api: [[1770112800.005000000, {{}}], {{"log"=>"{}"}}]', AT, {"ident": "kube.api"}),
    "gh run view --log": ("build\tRun tests\t2026-02-03T10:00:00.0050000Z {}", AT, {}),
    "GitLab CI": ("2026-02-03T10:00:00.005000Z 01O {}", AT, {}),
    "Papertrail": (
        "70000\t2026-02-03T10:00:00Z\t2026-02-03T10:00:01Z\t54\tweb-1\t10.0.0.1\tUser\tInfo\tapi\t{}", SECOND,
        {"host": "web-1", "ident": "api"},
    ),
    "aws logs --output text": ("EVENTS\t1770112800005\t{}\t1770112800100", AT, {}),
    "seconds": ("1770112800.005 {}", AT, {}),
    "seconds in brackets": ("[1770112800.005] {}", AT, {}),
    "a time of nginx": ("[03/Feb/2026:11:00:00 +0100] {}", SECOND, {}),
    "TAI64N": ("@400000006981c72a004c4b40 {}", AT, {}),
    "milliseconds": ("[1770112800005] {}", AT, {}),
    "Grafana's text": ("1770112800005\t2026-02-03T10:00:00.005Z\t{}", AT, {}),
    "python logging": ("2026-02-03 10:00:00,005 {}", AT, {}),
    "go log": ("2026/02/03 10:00:00.005000 {}", AT, {}),
    "glog": ("I0203 10:00:00.005000   4242 server.go:42] {}", AT, {"log_pid": 4242}),
    "glog after a timestamp": (
        "2026-02-03T10:00:00.005Z E0203 10:00:00.004000    4242 server.go:42] {}", AT,
        {"host": None, "ident": None, "log_pid": 4242},
    ),
    "a time after a level": ("2026-02-03T10:00:00.005Z INFO 10:00:00 {}", AT, {"host": None, "ident": None}),
    "logfmt": ('time="2026-02-03T10:00:00.005Z" level=info msg="{}"', AT, {}),
    "logfmt, seconds since 1970": ('level=info ts=1770112800.005 caller=a.go:1 msg="{}"', AT, {}),
    "logfmt, whole seconds": ("ts=1770112800 {}", SECOND, {}),
    "logfmt, milliseconds": ('ts=1770112800005 level=info msg="{}"', AT, {}),
    "logfmt, microseconds": ('t="1770112800005000" msg="{}"', AT, {}),
    "logfmt, nanoseconds": ('timestamp=1770112800005000123 msg="{}"', AT, {}),
    "logfmt with a pod": (
        'ts=2026-02-03T10:00:00.005Z pod=api-0 namespace="shop" msg="{}"', AT, {"pod": "api-0", "namespace": "shop"},
    ),
    "logfmt with a host behind the message": ('ts=1770112800.005 msg="{}" host=web-1', AT, {"host": "web-1"}),
    "logfmt without a time": ('level=info pod=api-0 msg="{}"', None, {"pod": "api-0"}),
    "quoted": ("> {}", None, {}),
    "comment": ("// {}", None, {}),
    "journald in CRI": (
        "2026-02-03T10:00:00.005Z stderr F Feb 03 09:59:59 web-1 api[4242]: {}", AT, {"stream": "stderr", **WHO},
    ),
    "docker in journald": (
        "Feb 03 10:00:00 web-1 0f1e2d3c4b5a[1034]: {}", SECOND,
        {"host": "web-1", "ident": "0f1e2d3c4b5a", "log_pid": 1034},
    ),
}  # fmt: skip


def test_what_few_records_have_before_them_is_not_a_pod(tmp_path: Path) -> None:
    """A program writes without line ends, so that the runtime's lines follow its own text."""
    for prefix in ("step-3 ", "[step-3] ", "step3: ", "a step-3 ", "a.log:"):
        lines = [f"10:00:00 {record}" for record in records(6)]
        lines[3] = prefix + records(4)[3]
        run = gca.read(logfile(tmp_path / "log", lines))
        assert run.cycles["gc_num"].to_list() == [1, 2, 3, 4, 5, 6]
        assert run.processes.select("pod", "host", "ident").rows() == [(None, None, None)]


@pytest.mark.parametrize(
    "prefix",
    ["error: ", "[main] ", "stderr: ", "main.go:42: ", "10:00:00: ", "[ERROR] ", "I: "],
)
def test_a_word_before_records_is_no_identity(prefix: str, tmp_path: Path) -> None:
    run = gca.read(logfile(tmp_path / "log", [prefix + record for record in RECORDS]))
    assert run.cycles["gc_num"].to_list() == [1, 2]
    identity = run.processes.select("host", "ident", "container", "pod", "namespace")
    assert identity.rows() == [(None,) * 5]


@pytest.mark.parametrize(
    "prefix",
    ["{0} api ", "prod {0} api ", "[{0}] ", "[{0} api] ", "prod/{0}[api]: ", "{0}.1.abcdefghij@n1 | ",
     "{0} | ", "{0}: ", "level=info pod={0} msg=", "ts=2026-02-03T10:00:00Z host={0} msg=", "logs/{0}.log:", "2026-02-03T10:00:00Z {0} "],
)  # fmt: skip
def test_two_pods_in_one_log_are_two_processes(prefix: str, tmp_path: Path) -> None:
    """Their cycles have the same numbers and times, so that only the prefix separates them."""
    one, other = records(40), [each.replace("4->4->4", "8->8->8") for each in records(40)]
    lines = [
        prefix.format(f"worker-{n}") + record
        for pair in zip(one, other, strict=True)
        for n, record in enumerate(pair)
    ]
    run = gca.read(logfile(tmp_path / "log", lines))
    sizes = run.cycles.group_by("process", maintain_order=True).agg(
        pl.len(), pl.col("heap_live_mib").unique()
    )
    assert sizes.select("len", "heap_live_mib").rows() == [(40, [4]), (40, [8])]


def test_what_few_lines_of_the_scavenger_have_before_them_is_not_a_pod() -> None:
    lines = ["step-3 GC forced", *["GC forced"] * 5, "scvg-1: GC forced"]
    found = strip.strip_prefixes(lines_of(*lines)).lines
    assert found["text"].to_list() == lines


def assert_read(run: gca.Run, at: datetime | None, who: dict[str, Any]) -> None:
    assert run.cycles["gc_num"].to_list() == [1, 2]
    assert len(run.processes) == 1
    assert len(run.rejected) == 0
    assert run.cycles["logged_at"][0] == at
    row = run.processes.row(0, named=True)
    assert {name: row[name] for name in who} == who
    assert (row["started_at"] is None) == (at is None)


@pytest.mark.parametrize("name", TEXT)
def test_a_line_of_text_with_any_prefix_is_read(name: str, tmp_path: Path) -> None:
    pattern, at, who = TEXT[name]
    path = logfile(tmp_path / "log", [pattern.format(record) for record in RECORDS])
    assert_read(gca.read(path, year=2026, tz="UTC"), at, who)


JSON: dict[str, tuple[dict[str, Any], datetime | None, dict[str, Any]]] = {
    "docker": ({"log": "{}\n", "stream": "stderr", "time": "2026-02-03T10:00:00.005000123Z"}, AT, {"stream": "stderr"}),
    "Azure": (
        {"TimeGenerated": "2026-02-03T10:00:00.005Z", "LogMessage": "{}", "PodName": "api-0", "ContainerName": "api"},
        AT, {"pod": "api-0", "container": "api"},
    ),
    "journald": (
        {"MESSAGE": "{}", "__REALTIME_TIMESTAMP": "1770112800005000", "__MONOTONIC_TIMESTAMP": "5000000",
         "_HOSTNAME": "web-1", "SYSLOG_IDENTIFIER": "api", "_PID": "4242", "_SYSTEMD_UNIT": "api.service"},
        AT, {**WHO, "unit": "api.service"},
    ),
    "zap": ({"level": "info", "ts": 1770112800.005, "caller": "a.go:1", "msg": "{}"}, AT, {}),
    "zerolog": ({"level": "info", "time": 1770112800005, "message": "{}"}, AT, {}),
    "slog": ({"time": "2026-02-03T11:00:00.005+01:00", "level": "INFO", "msg": "{}"}, AT, {}),
    "stern": (
        {"message": "{}", "nodeName": "n1", "namespace": "shop", "podName": "api-0", "containerName": "api"},
        None, {"host": "n1", "namespace": "shop", "pod": "api-0", "container": "api"},
    ),
    "fluentd": (
        {"log": "{}\n", "stream": "stderr", "time": "2026-02-03T10:00:00.005Z",
         "kubernetes": {"pod_name": "api-0", "container_name": "api", "namespace_name": "shop", "host": "n1"}},
        AT, {"pod": "api-0", "container": "api", "namespace": "shop", "host": "n1"},
    ),
    "Fluent Bit": ({"date": 1770112800.005, "log": "{}", "stream": "stderr"}, AT, {"stream": "stderr"}),
    "GELF": ({"version": "1.1", "host": "web-1", "short_message": "{}", "timestamp": 1770112800.005}, AT, {"host": "web-1"}),
    "go test -json": ({"Time": "2026-02-03T10:00:00.005Z", "Action": "output", "Output": "{}\n"}, AT, {}),
    "VictoriaLogs": ({"_time": "2026-02-03T10:00:00.005Z", "_stream": "{app=\"x\"}", "_msg": "{}"}, AT, {}),
    "Filebeat": (
        {"@timestamp": "2026-02-03T10:00:00.005Z", "message": "{}", "host": {"name": "web-1"},
         "kubernetes": {"pod": {"name": "api-0"}, "container": {"name": "api"}, "namespace": "shop"}},
        AT, {"pod": "api-0", "container": "api", "namespace": "shop", "host": "web-1"},
    ),
    "Splunk": (
        {"preview": False, "result": {"_raw": "{}", "_time": "2026-02-03 10:00:00.005 UTC", "host": "web-1"}},
        AT, {"host": "web-1"},
    ),
    "Datadog": (
        {"id": "AB", "type": "log", "attributes": {"timestamp": "2026-02-03T10:00:00.005Z", "message": "{}", "service": "api"}},
        AT, {"ident": "api"},
    ),
    "an object of the program's own": (
        {"time": "2026-02-03T10:00:00.005Z", "msg": "{}", "data": {"message": "unrelated"}}, AT, {},
    ),
    "gcp": (
        {"textPayload": "{}", "timestamp": "2026-02-03T10:00:00.005Z", "severity": "ERROR",
         "resource": {"type": "k8s_container", "labels": {"pod_name": "api-0", "container_name": "api"}}},
        AT, {"pod": "api-0", "container": "api"},
    ),
    "gcp with a payload": (
        {"jsonPayload": {"message": "{}", "level": "INFO"}, "timestamp": "2026-02-03T10:00:00.005Z",
         "resource": {"labels": {"pod_name": "api-0", "container_name": "api"}}},
        AT, {"pod": "api-0", "container": "api"},
    ),
    "gcp with a payload of journald": (
        {"jsonPayload": {"msg": "{}", "_HOSTNAME": "web-1", "_PID": "4242"}, "timestamp": "2026-02-03T10:00:00.005Z"},
        AT, {"host": "web-1", "log_pid": 4242},
    ),
    "logcli": (
        {"labels": {"pod": "api-0", "container": "api", "namespace": "shop", "node_name": "n1"}, "line": "{}",
         "timestamp": "2026-02-03T10:00:00.005Z"},
        AT, {"pod": "api-0", "container": "api", "namespace": "shop", "host": "n1"},
    ),
    "ECS with dots": (
        {"@timestamp": "2026-02-03T10:00:00.005Z", "message": "{}", "kubernetes.pod.name": "api-0",
         "kubernetes.namespace": "shop", "host.name": "web-1", "service.name": "api"},
        AT, {"pod": "api-0", "namespace": "shop", "host": "web-1", "ident": "api"},
    ),
    "ECS without Kubernetes": (
        {"@timestamp": "2026-02-03T10:00:00.005Z", "message": "{}", "host": {"name": "web-1"},
         "service": {"name": "api"}, "container": {"id": "0f1e", "name": "c"}, "event": {"original": "{}"}},
        AT, {"host": "web-1", "ident": "api", "container": "c", "container_id": "0f1e"},
    ),
    "OpenTelemetry": (
        {"timestamp": "2026-02-03T10:00:00.005Z", "body": "{}", "attributes": {"k8s.container.name": "api"},
         "resource": {"k8s.pod.name": "api-0", "host.name": "web-1"}},
        AT, {"pod": "api-0", "host": "web-1", "container": "api"},
    ),
    "Splunk HEC": ({"time": 1770112800.005, "host": "web-1", "event": "{}"}, AT, {"host": "web-1"}),
    "Splunk HEC of Docker": (
        {"time": "1770112800.005", "host": "web-1", "event": {"line": "{}", "source": "stderr", "tag": "0f1e"}},
        AT, {"host": "web-1"},
    ),
    "structlog": ({"event": "{}", "level": "info", "timestamp": "2026-02-03T10:00:00.005Z"}, AT, {}),
    "Datadog's search": (
        {"id": "AB", "content": {"timestamp": "2026-02-03T10:00:00.005Z", "host": "web-1", "message": "{}"}},
        AT, {"host": "web-1"},
    ),
    "Grafana": (
        {"line": "{}", "timestamp": "1770112800005000000", "date": "2026-02-03T10:00:00.005Z", "fields": {"pod": "api-0"}},
        AT, {"pod": "api-0"},
    ),
    "Docker with a tag": (
        {"log": "{}\n", "stream": "stderr", "attrs": {"tag": "api-0"}, "time": "2026-02-03T10:00:00.005Z"},
        AT, {"ident": "api-0"},
    ),
    "two originals": (
        {"@timestamp": "2026-02-03T10:00:00.005Z", "host": "web-1", "log": {"original": "2026/02/03 10:00:00 {}"},
         "event": {"original": "2026/02/03 10:00:00 {}"}},
        AT, {"host": "web-1"},
    ),
    "one line under two unknown names": (
        {"time": "2026-02-03T10:00:00.005Z", "pod": "api-0", "raw": "E0203 {}", "copy": {"of": "E0203 {}"}},
        AT, {"pod": "api-0"},
    ),
}  # fmt: skip


def filled(entry: dict[str, Any], record: str) -> dict[str, Any]:
    def of(value: Any) -> Any:
        if isinstance(value, dict):
            return filled(value, record)
        return value.replace("{}", record) if isinstance(value, str) else value

    return {name: of(value) for name, value in entry.items()}


def test_results_of_log_searches_are_read(tmp_path: Path) -> None:
    pod = {"pod": {"name": "api-0"}, "container": {"name": "api"}}
    source = {
        "@timestamp": "2026-02-03T10:00:00.005Z",
        "kubernetes": pod,
        "host": {"name": "web-1"},
    }
    hits = [{"_index": "logs", "_source": {**source, "message": record}} for record in RECORDS]
    cells = [
        [
            {"field": "@timestamp", "value": "2026-02-03 10:00:00.005"},
            {"field": "@message", "value": record},
        ]
        for record in RECORDS
    ]
    who = {"pod": "api-0", "container": "api", "host": "web-1"}
    for lines, its in (
        ([json.dumps({"took": 3, "hits": {"hits": hits}})], who),
        ([json.dumps(hit) for hit in hits], who),
        ([json.dumps({"results": cells, "status": "Complete"}, indent=1)], {}),
    ):
        assert_read(gca.read(logfile(tmp_path / "log", lines)), AT, its)


@pytest.mark.parametrize("name", JSON)
@pytest.mark.parametrize("escaped", [False, True], ids=["plain", "escaped"])
def test_a_line_of_json_is_read(name: str, *, escaped: bool, tmp_path: Path) -> None:
    entry, at, who = JSON[name]
    lines = [json.dumps(filled(entry, record)) for record in RECORDS]
    if escaped:
        lines = [line.replace(">", "\\u003e") for line in lines]
    assert_read(gca.read(logfile(tmp_path / "log", lines)), at, who)


@pytest.mark.parametrize(
    "arrow",
    ["-&gt;", "-&amp;gt;", "-\\u003e", "-\\>", "\u2192", "\u2013>", "\u2014>", "\u2013&gt;"],
)
@pytest.mark.parametrize("wrapped", [False, True])
def test_other_arrows_are_read_and_count_as_repaired(arrow: str, *, wrapped: bool) -> None:
    line = f"{RECORDS[0]}\n".replace("->", arrow)
    if wrapped:
        line = "# " + line.replace(" ms cpu, ", " ms cpu,\n#     ")
    run = gca.read(io.BytesIO(line.encode()))
    expected = gca.read(io.BytesIO(f"{RECORDS[0]}\n".encode()))
    but = ["repaired", "line_no"]
    assert run.cycles.drop(but).equals(expected.cycles.drop(but))
    assert run.cycles["repaired"].all()
    assert run.rejected.is_empty()


@pytest.mark.parametrize(
    "tags",
    [
        ("", "<b>", "</b>", ""),
        ("", '<span style="color:red">', "</span>", " <br>"),
        ("<td>", "", "", "</td>"),
        ("<p><code class='log'>", "<b>", "</b>", "</code></p>"),
    ],
)
def test_tags_around_and_in_a_record_are_left_out(tags: tuple[str, str, str, str]) -> None:
    """A log that was copied from a page."""
    before, opening, closing, after = tags
    heap = re.compile(r"\d+->\d+->\d+ MB")
    lines = [heap.sub(rf"{opening}\g<0>{closing}", line) for line in RECORDS]
    text = "".join(f"{before}{line}{after}\n" for line in lines)
    run = gca.read(io.StringIO(text))
    expected = gca.read(io.StringIO("".join(f"{line}\n" for line in RECORDS)))
    names = [name for name in run.cycles.columns if name not in ("repaired", "line_no")]
    assert run.cycles.select(names).equals(expected.cycles.select(names))
    assert run.rejected.is_empty()
    found = [cycle.gc_num for cycle, _ in reference.cycles(text)]
    assert found == run.cycles["gc_num"].to_list()


def test_a_record_before_a_prefix_is_no_name_of_a_job() -> None:
    """Of GitHub Actions, whose lines begin with the names of a job and a step."""
    prefix = "build\tRun tests\t2026-11-20T10:15:35.8434560Z "
    run = gca.read(io.StringIO("".join(prefix + record for record in RECORDS[:2]) + "\n"))
    assert len(run.cycles) == 2


@pytest.mark.parametrize("form", ["pretty", "array", "sse", "seq", "bytes"])
def test_every_json_layout_of_journald_is_read(form: str, tmp_path: Path) -> None:
    entry, at, who = JSON["journald"]
    records = [filled(entry, record) for record in RECORDS]
    if form == "bytes":
        records[1]["MESSAGE"] = list(RECORDS[1].encode())
    lines = {
        "pretty": [json.dumps(record, indent="\t") for record in records],
        "array": [json.dumps(records, indent=1)],
        "sse": [f"data: {json.dumps(record)}\n" for record in records],
        "seq": [f"\x1e{json.dumps(record)}" for record in records],
        "bytes": [json.dumps(record) for record in records],
    }[form]
    assert_read(gca.read(logfile(tmp_path / "log", lines)), at, who)


def test_the_multi_line_formats_of_journald_are_read(tmp_path: Path) -> None:
    verbose, export = [], b""
    for record in RECORDS:
        verbose += [
            "Tue 2026-02-03 05:00:00.005000 EST [s=0a;i=1;b=0f;m=1;t=2;x=3]",
            "    _HOSTNAME=web-1",
            "    SYSLOG_IDENTIFIER=api",
            "    _PID=4242",
            "    _SYSTEMD_UNIT=api.service",
            f"    MESSAGE={record}",
        ]
        data = record.encode()
        export += (
            b"__CURSOR=s=1\n__REALTIME_TIMESTAMP=1770112800005000\n_HOSTNAME=web-1\n"
            b"SYSLOG_IDENTIFIER=api\n_PID=4242\n_SYSTEMD_UNIT=api.service\nMESSAGE\n"
            + len(data).to_bytes(8, "little")
            + data
            + b"\n\n"
        )
    who = {**WHO, "unit": "api.service"}
    assert_read(gca.read(logfile(tmp_path / "verbose", verbose)), AT, who)
    (tmp_path / "export").write_bytes(export)
    assert_read(gca.read(tmp_path / "export"), AT, who)


def test_exports_of_log_services_are_read(tmp_path: Path) -> None:
    labels = {"pod": "api-0", "container": "api", "namespace": "shop"}
    ns = ["1770112800005000000", "1770112800020000000"]
    loki = {
        "status": "success",
        "data": {
            "resultType": "streams",
            "result": [
                {
                    "stream": labels,
                    "values": [list(pair) for pair in zip(ns, RECORDS, strict=True)][::-1],
                },
            ],
        },
    }
    push = {"streams": loki["data"]["result"]}  # type: ignore[index]  # of mixed types
    for answer in (loki, push):
        path = logfile(tmp_path / "loki", [json.dumps(answer)])
        assert_read(gca.read(path), AT, labels)
    events = {
        "events": [
            {
                "timestamp": 1770112800005 + 15 * n,
                "message": record,
                "logStreamName": "ecs/api/1",
                "ingestionTime": 1,
            }
            for n, record in enumerate(RECORDS)
        ]
    }
    path = logfile(tmp_path / "cloudwatch", [json.dumps(events, indent=2)])
    assert_read(gca.read(path), AT, {"stream": "ecs/api/1"})
    subscription = {
        "messageType": "DATA_MESSAGE",
        "logGroup": "/ecs/api",
        "logStream": "ecs/api/1",
        "logEvents": [
            {"id": "1", "timestamp": each["timestamp"], "message": each["message"]}
            for each in events["events"]
        ],
    }
    one, other = ({**subscription, "logEvents": [each]} for each in subscription["logEvents"])
    for lines in (
        [json.dumps(subscription)],
        [json.dumps(one), json.dumps(other)],
        [json.dumps(one) + json.dumps(other)],
    ):
        path = logfile(tmp_path / "subscription", lines)
        assert_read(gca.read(path), AT, {"stream": "ecs/api/1"})
    entries = [filled(JSON["gcp"][0], record) for record in RECORDS]
    entries[1]["timestamp"] = "2026-02-03T10:00:00.020Z"
    path = logfile(tmp_path / "gcp", [json.dumps(entries[::-1], indent=2)])
    assert_read(gca.read(path), AT, {"pod": "api-0", "container": "api"})


def test_records_of_open_telemetry_and_azure_are_read(tmp_path: Path) -> None:
    def attribute(key: str, value: str) -> dict[str, Any]:
        return {"key": key, "value": {"stringValue": value}}

    resource = [attribute("k8s.pod.name", "api-0"), attribute("service.name", "api")]
    ns = ("1770112800005000000", "1770112800020000000")
    logged = [
        {"timeUnixNano": at, "body": {"stringValue": record}}
        for at, record in zip(ns, RECORDS, strict=True)
    ]
    # A receiver that has no time of its own fills in when it observed the line.
    logged[1] |= {"timeUnixNano": "0", "observedTimeUnixNano": ns[1]}

    def otlp(records: list[dict[str, Any]]) -> str:
        scopes = [{"scope": {}, "logRecords": records}]
        return json.dumps(
            {"resourceLogs": [{"resource": {"attributes": resource}, "scopeLogs": scopes}]}
        )

    who = {"pod": "api-0", "ident": "api"}
    for lines in ([otlp(logged)], [otlp([each]) for each in logged]):
        assert_read(gca.read(logfile(tmp_path / "otlp", lines)), AT, who)
    columns = [{"name": "TimeGenerated"}, {"name": "PodName"}, {"name": "LogMessage"}]
    rows = [["2026-02-03T10:00:00.005Z", "api-0", record] for record in RECORDS]
    tables = {"tables": [{"name": "PrimaryResult", "columns": columns, "rows": rows}]}
    assert_read(
        gca.read(logfile(tmp_path / "azure", [json.dumps(tables)])), AT, {"pod": "api-0"}
    )


def test_what_ansible_prints_twice_is_read_once(tmp_path: Path) -> None:
    result = {"rc": 0, "stderr": "\n".join(RECORDS), "stderr_lines": RECORDS}
    assert_read(gca.read(logfile(tmp_path / "log", [json.dumps(result, indent=1)])), None, {})


def test_lines_of_json_without_line_ends_are_no_pieces(tmp_path: Path) -> None:
    """Docker's pieces lack the end of the line; collectors remove it from every line."""
    lines = [
        json.dumps({"date": 1770112800.005 + number, "log": record})
        for number, record in enumerate(records(30))
    ]
    cycles = gca.read(logfile(tmp_path / "log", lines)).cycles
    assert cycles["line_no"].to_list() == list(range(1, 31))
    assert cycles["logged_at"].n_unique() == 30


CSV = {
    "Datadog": ("Date,Host,Service,Message", '2026-02-03T10:00:00.005Z,web-1,api,"{}"', {"host": "web-1", "ident": "api"}),
    "Splunk": ('"_raw","_time",host', '"{}","2026-02-03T10:00:00.005+0000",web-1', {"host": "web-1"}),
    "Azure": (
        '"TimeGenerated [UTC]",ContainerID,LogEntry', '"2/3/2026, 10:00:00.005 AM",0f1e2d3c,"{}"',
        {"container_id": "0f1e2d3c"},
    ),
    "Grafana": ("Line,Time,tsNs,labels", '"{}",2026-02-03 11:00:00.005,1770112800005000000,"{{}}"', {}),
    "Graylog": ("timestamp,source,message", '2026-02-03T10:00:00.005Z,web-1,"{}"', {"host": "web-1"}),
    "Kibana": (
        '"@timestamp","kubernetes.pod.name",message', '"Feb 3, 2026 @ 10:00:00.005",api-0,"{}"', {"pod": "api-0"},
    ),
    "with semicolons": ("time;message", '2026-02-03T10:00:00.005Z;"{}"', {}),
    "with tabs": ("message\ttimestamp", "{}\t1770112800005", {}),
}  # fmt: skip


@pytest.mark.parametrize("name", CSV)
def test_the_columns_of_an_export_are_read_in_any_order(name: str, tmp_path: Path) -> None:
    header, row, who = CSV[name]
    path = logfile(tmp_path / "log", [header, *(row.format(record) for record in RECORDS)])
    run = gca.read(path, tz="UTC")
    assert_read(run, AT, who)
    assert run.cycles["line_no"].to_list() == [2, 3]
    assert run.sources[0].wrappers == {"CSV export": 2}


def test_rows_of_several_lines_and_damaged_rows_keep_their_line_numbers(tmp_path: Path) -> None:
    header, rows = "timestamp,pod,message", records(5)
    at = "2026-02-03T10:00:00.005Z,api-0,"
    whole = [header, f'{at}"panic: x\n\ngoroutine 1"', *(f'{at}"{record}"' for record in rows)]
    run = gca.read(logfile(tmp_path / "whole", whole))
    assert run.cycles["line_no"].to_list() == [5, 6, 7, 8, 9]
    assert run.processes["pod"].to_list() == ["api-0"]
    # Without its quote mark, the rest of the file would be one field.
    damaged = [header, f'{at}"torn', *(f"{at}{record}" for record in rows)]
    run = gca.read(logfile(tmp_path / "damaged", damaged))
    assert run.cycles["line_no"].to_list() == [3, 4, 5, 6, 7]


def test_pods_of_an_export_are_processes_of_their_own(tmp_path: Path) -> None:
    rows = [
        f'2026-02-03T10:00:{number:02d}Z,api-{pod},"{record}"'
        for number, record in enumerate(records(20))
        for pod in (0, 1)
    ]
    run = gca.read(logfile(tmp_path / "log", ["Date,Pod,Message", *rows]))
    assert run.processes["pod"].to_list() == ["api-0", "api-1"]
    assert run.processes["cycles"].to_list() == [20, 20]


def test_pieces_of_a_line_are_joined(tmp_path: Path) -> None:
    first, second = RECORDS
    cri = [
        f"2026-02-03T10:00:00.005Z stderr P {first[:40]}",
        "2026-02-03T10:00:00.006Z stdout F unrelated",
        f"2026-02-03T10:00:00.006Z stderr F {first[40:]}",
        f"2026-02-03T10:00:00.020Z stderr F {second}",
    ]
    assert_read(gca.read(logfile(tmp_path / "cri", cri)), AT, {"stream": "stderr"})
    time = "2026-02-03T10:00:00.005Z"
    docker = [
        {"log": first[:40], "stream": "stderr", "time": time},
        {"log": first[40:] + "\n", "stream": "stderr", "time": time},
        {"log": second + "\n", "stream": "stderr", "time": time},
    ]
    path = logfile(tmp_path / "docker", [json.dumps(entry) for entry in docker])
    assert_read(gca.read(path), AT, {"stream": "stderr"})


def test_logs_in_reverse_order_are_reversed(tmp_path: Path) -> None:
    many = records(30)
    lines = [f"2026-02-03T10:00:{n:02}Z web-1 api[1]: {line}" for n, line in enumerate(many)]
    run = gca.read(logfile(tmp_path / "log", lines[::-1]))
    assert run.cycles["gc_num"].to_list() == list(range(1, 31))
    assert len(run.processes) == 1
    bare = gca.read(logfile(tmp_path / "bare", many[::-1]))
    assert bare.cycles["gc_num"].to_list() == list(range(1, 31))


def test_two_services_in_one_journal_are_two_processes(tmp_path: Path) -> None:
    lines = []
    for n, record in enumerate(RECORDS):
        for unit, pid in (("api", 11), ("web", 12)):
            lines.append(f"2026-02-03T10:00:0{n}Z host {unit}[{pid}]: {record}")
    run = gca.read(logfile(tmp_path / "log", lines))
    assert run.processes["ident"].to_list() == ["api", "web"]
    assert run.processes["cycles"].to_list() == [2, 2]


def test_a_year_and_a_zone_are_never_guessed(tmp_path: Path) -> None:
    lines = [f"Feb 03 10:00:00 web-1 api[4242]: {record}" for record in RECORDS]
    path = logfile(tmp_path / "log", lines)
    for options in ({}, {"year": 2026}, {"tz": "UTC"}):
        run = gca.read(path, **options)
        assert run.cycles["logged_at"].null_count() == 2
        assert any("; set `" in note for note in run.summary().warnings)


def test_new_year_and_daylight_saving_time_are_respected(tmp_path: Path) -> None:
    lines = [
        f"Dec 31 23:59:59 h api[1]: {RECORDS[0]}",
        f"Jan  1 00:00:01 h api[1]: {RECORDS[1]}",
    ]
    run = gca.read(logfile(tmp_path / "log", lines), year=2025, tz="UTC")
    assert [at.year for at in run.cycles["logged_at"]] == [2025, 2026]
    # 2026-10-25 02:59 CEST is followed by 02:00 CET.
    stamps = ["02:30:00", "02:59:59", "02:00:01", "02:30:00"]
    lines = [f"2026-10-25 {at} {record}" for at, record in zip(stamps, records(4), strict=True)]
    run = gca.read(logfile(tmp_path / "dst", lines), tz="Europe/Berlin")
    assert [f"{at:%H:%M:%S}" for at in run.cycles["logged_at"]] == [
        "00:30:00",
        "00:59:59",
        "01:00:01",
        "01:30:00",
    ]


@pytest.mark.parametrize("escaped", [False, True])
def test_a_cycle_beside_the_message_of_a_json_entry_is_read(
    tmp_path: Path, escaped: bool
) -> None:
    """A program logs what its child printed, and Go's encoder escapes `>` by default."""
    rows = [
        json.dumps({"time": "2026-02-03T10:00:00.005Z", "msg": "child stderr", "line": each})
        for each in records(5)
    ]
    if escaped:
        rows = [each.replace(">", "\\u003e") for each in rows]
    run = gca.read(logfile(tmp_path / "log", rows))
    assert run.cycles["gc_num"].to_list() == [1, 2, 3, 4, 5]
    assert run.cycles["logged_at"][0] == AT
    assert not run.cycles["repaired"].any()
    # The message itself comes first, whatever else has a cycle in it.
    both = json.dumps({"msg": records(1)[0], "line": records(2)[1]})
    assert gca.read(logfile(tmp_path / "both", [both])).cycles["gc_num"].to_list() == [1]


def test_all_cycles_of_an_entry_without_a_message_are_read(tmp_path: Path) -> None:
    entry = {"time": "2026-02-03T10:00:00.005Z", "pod": "api-0", "lines": records(3)}
    for more in ({}, {"msg": "child stderr"}):
        run = gca.read(logfile(tmp_path / "log", [json.dumps({**entry, **more})] * 2))
        assert run.cycles["gc_num"].to_list() == [1, 2, 3, 1, 2, 3]


EXPORTS = Path(__file__).parents[2] / "corpus" / "exports"


@pytest.mark.parametrize(
    "name", sorted(path.name for path in EXPORTS.iterdir() if path.suffix not in (".md",))
)
def test_an_export_reads_like_the_log_itself(name: str) -> None:
    if name == "pod.yaml":
        assert gca.read(EXPORTS / name).container_states["oom_killed"].to_list() == [True]
        return
    own = ["line_no", "source", "logged_at", "wall_time"]
    plain, run = (gca.read(EXPORTS / each) for each in ("service.log", name))
    assert run.cycles.drop(own).equals(plain.cycles.drop(own))
    assert run.rejected.is_empty()
    timed = [] if name == "service.log" else run.cycles["logged_at"].to_list()
    assert timed == sorted(timed)
    assert None not in timed


def lines_of(*texts: str) -> pl.DataFrame:
    return pl.DataFrame({"text": texts}).with_row_index("line_no", offset=1)


def test_nested_prefixes_are_counted_and_their_metadata_fills_the_gaps() -> None:
    text = "2026-02-03T10:00:00.005Z stderr F Feb 03 09:59:59 web-1 api[4242]: started"
    stripped = strip.strip_prefixes(lines_of(text, "plain"))
    assert (stripped.depth, stripped.wrappers) == (2, {"CRI": 1, "syslog": 1})
    row, plain = stripped.lines.to_dicts()
    assert (row["text"], row["path"]) == ("started", " > CRI > syslog")
    assert (row["host"], row["ident"], row["log_pid"], row["stream"]) == (
        "web-1",
        "api",
        4242,
        "stderr",
    )
    # The outer clock is the better one, as it has a zone and a year.
    assert (row["local_time"], row["zone"], row["yearless"]) == (
        AT.replace(tzinfo=None),
        "UTC",
        False,
    )
    assert (plain["text"], plain["path"], plain["host"]) == ("plain", None, None)


def test_the_time_of_an_inner_prefix_counts_if_the_outer_one_has_no_zone() -> None:
    text = "2026-02-03 10:00:00 2026-02-03T09:00:00.005Z web-1 api[1]: started"
    (row,) = strip.strip_prefixes(lines_of(text)).lines.to_dicts()
    assert (row["local_time"].hour, row["zone"]) == (9, "UTC")
    outer_only = "2026-02-03 10:00:00 api[1]: started"
    (row,) = strip.strip_prefixes(lines_of(outer_only)).lines.to_dicts()
    assert (row["local_time"].hour, row["zone"], row["ident"]) == (10, None, "api")


def test_prefixes_are_removed_up_to_four_deep() -> None:
    prefixes = (
        "> ",
        "2026-02-03T10:00:00Z stderr F ",
        "api-1  | ",
        "Feb 03 10:00:00 h api[1]: ",
    )
    inner = "2026/02/03 10:00:00 end"
    (row,) = strip.strip_prefixes(lines_of("".join(prefixes) + inner)).lines.to_dicts()
    assert row["text"] == inner
    assert (row["container"], row["ident"], row["stream"]) == ("api-1", "api", "stderr")
    levels = strip.by_depth(lines_of("".join(prefixes) + inner), 2)["text"].to_list()
    assert levels == ["".join(prefixes[n:]) + inner for n in range(3)]


def test_lines_without_prefixes_stay_as_they_are() -> None:
    lines = lines_of("started", "gc worker")
    stripped = strip.strip_prefixes(lines)
    assert not stripped.is_wrapped
    assert stripped.lines.equals(lines)
    assert (stripped.depth, stripped.wrappers) == (0, {})


def test_pieces_of_several_streams_are_joined_in_their_own() -> None:
    lines = [
        "2026-02-03T10:00:00Z stderr P err-1 ",
        "2026-02-03T10:00:00Z stdout P out-1 ",
        "2026-02-03T10:00:01Z stderr P err-2 ",
        "2026-02-03T10:00:02Z stderr F err-3",
        "2026-02-03T10:00:03Z stdout F out-2",
        "2026-02-03T10:00:04Z stderr F alone",
    ]
    found = strip.strip_prefixes(lines_of(*lines)).lines
    assert found.select("line_no", "text", "stream").rows() == [
        (1, "err-1 err-2 err-3", "stderr"), (2, "out-1 out-2", "stdout"), (6, "alone", "stderr")
    ]  # fmt: skip
    assert found["local_time"].dt.second().to_list() == [0, 0, 4]


LABELS: dict[str, dict[str, str]] = {
    'node="n1", pod="p", container="c", namespace="s", stream="stderr", unit="u"': {
        "host": "n1", "pod": "p", "container": "c", "namespace": "s", "stream": "stderr", "unit": "u"},
    'hostname="h",pod_name="p",container_name="c",systemd_unit="u"': {
        "host": "h", "pod": "p", "container": "c", "unit": "u"},
    'my_pod="x", app="y"': {},
}  # fmt: skip


@pytest.mark.parametrize("labels", LABELS)
def test_labels_of_loki_are_the_identity(labels: str) -> None:
    text = f"2026-02-03T10:00:00Z {{{labels}}} started"
    (row,) = strip.strip_prefixes(lines_of(text)).lines.to_dicts()
    assert row["text"] == "started"
    names = ("host", "pod", "container", "namespace", "stream", "unit")
    assert {name: row[name] for name in names if row[name] is not None} == LABELS[labels]


def test_a_unit_in_place_of_an_identifier_is_the_unit() -> None:
    lines = [
        "Feb 03 10:00:00 h api.service[7]: x",
        "Feb 03 10:00:00 h api[7]: x",
        "Feb 03 10:00:00 h a.scope: x",
    ]
    found = strip.strip_prefixes(lines_of(*lines)).lines
    assert found.select("ident", "unit").rows() == [
        (None, "api.service"),
        ("api", None),
        (None, "a.scope"),
    ]


def test_json_lines_that_polars_cannot_decode_are_read_like_the_others() -> None:
    good = {"log": f"{RECORDS[0]}\n", "stream": "stderr", "time": "2026-02-03T10:00:00.005Z"}
    nested = {
        "MESSAGE": list(RECORDS[1].encode()),
        "_PID": "7",
        "__REALTIME_TIMESTAMP": "1770112800005000",
    }
    lines = [json.dumps(good), json.dumps(nested), '{"log": "cut', '{"log": 5, "time": 1770112800005}',
             '{"other": {"a": 1}}', "{not json}"]  # fmt: skip
    stripped = strip.strip_prefixes(lines_of(*lines))
    rows = {row["line_no"]: row for row in stripped.lines.to_dicts()}
    assert (rows[1]["text"], rows[1]["stream"]) == (RECORDS[0], "stderr")
    assert (rows[2]["text"], rows[2]["log_pid"]) == (RECORDS[1], 7)
    assert rows[1]["local_time"] == rows[2]["local_time"] == AT.replace(tzinfo=None)
    assert [rows[n]["text"] for n in (3, 5, 6)] == [lines[2], lines[4], lines[5]]
    assert stripped.wrappers["journalctl -o json"] == 1


def test_the_message_of_an_entry_is_the_first_that_is_there() -> None:
    entries = [{"msg": "a", "message": "b"}, {"log": "c\n", "msg": "d"}, {"Message": "e", "line": "f"},
               {"message": "two\nlines"}, {"msg": ""}]  # fmt: skip
    found = strip.strip_prefixes(lines_of(*map(json.dumps, entries))).lines
    assert found["text"].to_list() == ["b", "c", "e", "two lines", ""]


def test_identity_is_found_under_every_common_name() -> None:
    entries: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"hostname": "h", "app": "a", "pid": 7}, {"host": "h", "ident": "a", "log_pid": 7}),
        ({"_HOSTNAME": "h", "SYSLOG_IDENTIFIER": "a", "SYSLOG_PID": "8"}, {"host": "h", "ident": "a", "log_pid": 8}),
        ({"kubernetes": {"pod_name": "p", "namespace_name": "s", "docker_id": "d", "host": "n"}},
         {"pod": "p", "namespace": "s", "container_id": "d", "host": "n"}),
        ({"podName": "p", "containerName": "c", "nodeName": "n"}, {"pod": "p", "container": "c", "host": "n"}),
        ({"resource": {"labels": {"pod_name": "p", "namespace_name": "s"}}}, {"pod": "p", "namespace": "s"}),
    ]  # fmt: skip
    for entry, who in entries:
        (row,) = strip.strip_prefixes(
            lines_of(json.dumps({**entry, "message": "x"}))
        ).lines.to_dicts()
        assert {name: row[name] for name in who} == who


@pytest.mark.parametrize("message", [[300, 1], ["x"], [None], [[1]], [-1]])
def test_an_array_that_is_not_of_bytes_is_no_message(message: list[Any]) -> None:
    entry = {"MESSAGE": message, "__REALTIME_TIMESTAMP": "1770112800005000"}
    lines = [json.dumps(entry), json.dumps({**entry, "MESSAGE": list(RECORDS[0].encode())})]
    found = strip.strip_prefixes(lines_of(*lines)).lines
    assert found["text"].to_list() == [lines[0], RECORDS[0]]


def test_records_on_one_line_stay_in_their_order() -> None:
    """Line ends were lost, so that several cycles have the same line."""
    lines = records(60)
    log = ["".join(lines[at : at + 20]) for at in range(0, 60, 20)]
    run = gca.read(io.BytesIO(("\n".join([*log, f"x {records(61)[-1]}"]) + "\n").encode()))
    assert run.cycles["gc_num"].to_list() == [*range(1, 62)]
    assert run.cycles["line_no"].to_list() == [1] * 20 + [2] * 20 + [3] * 20 + [4]


def test_pieces_that_docker_writes_are_one_line() -> None:
    entries = [
        {"log": "one "},
        {"log": "two "},
        {"log": "three\n"},
        {"log": "alone\n"},
        {"log": "cut"},
    ]
    found = strip.strip_prefixes(lines_of(*map(json.dumps, entries))).lines
    assert found.select("line_no", "text").rows() == [
        (1, "one two three"),
        (4, "alone"),
        (5, "cut"),
    ]


def test_the_clock_of_dev_kmsg_is_in_microseconds() -> None:
    (row,) = strip.strip_prefixes(lines_of("6,1234,5678901,-;started")).lines.to_dicts()
    assert (row["text"], row["monotonic_s"]) == ("started", 5.678901)
    (row,) = strip.strip_prefixes(lines_of("[    5.678901] h api[1]: started")).lines.to_dicts()
    assert (row["text"], row["monotonic_s"]) == ("started", 5.678901)


@pytest.mark.parametrize("size", [60, 200, 1000])
@pytest.mark.parametrize("lead", ["", "\n\n"])
def test_an_export_reads_alike_in_pieces_of_any_size(
    size: int, lead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pieces after the first have no header, and may begin within a row of several lines."""
    rows = [
        f'2026-02-03T10:00:{n:02}Z,api-0,"{record}"' for n, record in enumerate(records(20))
    ]
    rows[7:7] = ['2026-02-03T10:00:06Z,api-0,"panic: x', "", 'goroutine 1, running"']
    text = lead + "\n".join(["Date,Pod,Message", *rows, ""])
    whole = gca.read(io.BytesIO(text.encode()))
    monkeypatch.setattr("gctrace_analyzer.ingest.sources.CHUNK_BYTES", size)
    run = gca.read(io.BytesIO(text.encode()))
    begin = 2 + len(lead)
    lines = [begin + n + 3 * (n >= 7) for n in range(20)]
    assert run.cycles["line_no"].to_list() == whole.cycles["line_no"].to_list() == lines
    assert whole.cycles["logged_at"].dt.second().to_list() == list(range(20))
    assert whole.processes["pod"].to_list() == ["api-0"]
    assert run.cycles["gc_num"].to_list() == list(range(1, 21))
    if size == 1000:
        assert run.processes.equals(whole.processes)
