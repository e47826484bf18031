"""What servers do that no real one does on demand: refusals, other pages, stalls, endless answers."""

from __future__ import annotations

import gzip
import json
import pickle
import time
import traceback
import warnings
from email.utils import formatdate
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.cli import main
from gctrace_analyzer.errors import GctraceWarning
from gctrace_analyzer.prometheus import queries
from gctrace_analyzer.prometheus.connection import Limits
from gctrace_analyzer.prometheus.credentials import credentials
from gctrace_analyzer.prometheus.problems import NotTheApiError, RefusedError
from gctrace_analyzer.prometheus.server import Server
from tests.helpers.prometheus import Answer, fake, now, refusal, result

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.helpers.prometheus import Request

SECRET = "s3cr3t-t0ken-value"
WITH_PASSWORD = "//monitor:hunter22@"
SMALL = Limits(most_bytes=1 << 20)
IMPATIENT = Limits(silent_s=0.5)
HURRIED = Limits(whole_s=1.0)


def server(url: str, **named: Any) -> Server:
    return Server(url, sleep=lambda _: None, **named)


def test_an_overloaded_server_is_asked_again_after_the_pause_it_wants() -> None:
    pauses: list[float] = []
    answers = [
        refusal(429, "too_many_requests", "slow down", **{"Retry-After": "7"}),
        Answer(b"<html>bad gateway</html>", 502),
        now(),
    ]
    with fake(lambda _: answers.pop(0)) as other:
        found = Server(other.url, sleep=pauses.append).find_api()
    assert (found, pauses) == (1.8e9, [7.0, 2.0])


def test_a_query_that_timed_out_is_not_sent_again() -> None:
    timeout = refusal(503, "timeout", "query timed out in expression evaluation")
    with fake(lambda _: timeout) as other, pytest.raises(RefusedError, match="timed out"):
        server(other.url).find_api()
    assert len(other.requests) == 1


def test_a_broken_connection_is_made_again() -> None:
    answers = [now(), Answer(b'{"status":', length=1000), now()]
    with fake(lambda _: answers.pop(0)) as other:
        found = server(other.url)
        assert [found.find_api(), found.find_api()] == [1.8e9, 1.8e9]


def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with fake(lambda _: now()) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", "")
        server("http://prometheus.example:9090").find_api()
    assert proxy.requests[0].path == "http://prometheus.example:9090/api/v1/query"


def test_a_retry_after_may_be_a_date() -> None:
    pauses: list[float] = []
    at = formatdate(time.time() + 30, usegmt=True)
    answers = [refusal(429, "", "later", **{"Retry-After": at}), now()]
    with fake(lambda _: answers.pop(0)) as other:
        Server(other.url, sleep=pauses.append).find_api()
    assert 25 < pauses[0] <= 30


def test_a_server_that_wants_an_hour_is_not_waited_for() -> None:
    with (
        fake(lambda _: refusal(429, "", "later", **{"Retry-After": "3600"})) as other,
        pytest.raises(RefusedError, match=r"wait 1h 00m \(429\)"),
    ):
        server(other.url).find_api()
    assert len(other.requests) == 1


def test_a_server_that_stays_overloaded_is_given_up() -> None:
    with (
        fake(lambda _: refusal(429, "", "too many requests")) as other,
        pytest.raises(RefusedError, match="limits how often"),
    ):
        server(other.url).find_api()
    assert len(other.requests) == 5


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            Answer(b"404 page not found\n", 404),
            "no Prometheus API here .404.*\n.*prefix(.*\n)*.*/debug/vars",
        ),
        (
            Answer(
                b"<html><head><title>Sign in</title></head>", 200, {"Content-Type": "text/html"}
            ),
            "web page .'Sign in'.*\n.*login page",
        ),
        (
            Answer(b"<html><head><title>Grafana</title></head>", 404),
            "no Prometheus API here.*\n.*data source",
        ),
        (Answer(b"# HELP go_gc_duration_seconds A summary\n", 200), "own metrics page"),
        (Answer(b'{"hello": "world"}', 200), "not a result of the Prometheus API"),
        (Answer(b"[" * 100_000, 200), "not a result of the Prometheus API"),
        (Answer(b'{"status": "success", "data": {"result": 7}}', 200), "not a result"),
        (
            Answer(b"Client sent an HTTP request to an HTTPS server.\n", 400),
            "expects TLS.*\n.*Try https://127",
        ),
    ],
)
def test_something_else_than_prometheus_is_named(answer: Answer, words: str) -> None:
    with fake(lambda _: answer) as other, pytest.raises(NotTheApiError, match=words):
        server(other.url).find_api()


def test_the_api_is_found_under_the_prefix_of_a_store() -> None:
    def answer(request: Request) -> Answer:
        under = request.path.startswith("/prometheus/api/v1/")
        return now() if under else Answer(b"404 page not found", 404)

    with fake(answer) as other:
        found = server(other.url)
        with pytest.warns(GctraceWarning, match=r"is under /prometheus: http"):
            found.find_api()
    assert found.url == f"{other.url}/prometheus"


def test_a_redirect_to_another_server_gets_no_credentials() -> None:
    with fake(lambda _: now()) as elsewhere:
        there = f"{elsewhere.url}/login?next=secret"
        with (
            fake(lambda _: Answer(b"", 302, {"Location": there})) as other,
            pytest.raises(
                NotTheApiError, match=r"redirects to http.*\n.*another server"
            ) as caught,
        ):
            server(other.url, credentials=credentials({"token": SECRET})).find_api()
        assert not elsewhere.requests
    assert "next=secret" not in str(caught.value)


def test_a_redirect_on_the_same_server_is_followed_with_the_same_query() -> None:
    def answer(request: Request) -> Answer:
        if request.path.startswith("/old"):
            return Answer(b"", 301, {"Location": request.path.replace("/old", "/new")})
        return now()

    with fake(answer) as other:
        server(f"{other.url}/old", credentials=credentials({"token": SECRET})).find_api()
    assert [each.method for each in other.requests] == ["POST", "POST"]
    assert other.requests[1].query == "time()"
    assert other.requests[1].headers["Authorization"] == f"Bearer {SECRET}"


def test_a_circle_of_redirects_ends() -> None:
    with (
        fake(lambda request: Answer(b"", 302, {"Location": request.path})) as other,
        pytest.raises(NotTheApiError, match="redirects"),
    ):
        server(other.url).find_api()


def test_a_proxy_that_allows_only_get_is_asked_with_get() -> None:
    with fake(lambda r: now() if r.method == "GET" else Answer(b"no", 405)) as other:
        found = server(other.url)
        found.find_api()
        found.find_api()
    assert [each.method for each in other.requests] == ["POST", "GET", "GET"]


def endless(file: Any) -> None:
    while True:
        file.write(b" " * 65536)


def dripping(file: Any) -> None:
    for _ in range(100):
        file.write(b" ")
        file.flush()
        time.sleep(0.1)


BOMB = gzip.compress(b" " * (64 << 20))


PACKED = {"Content-Encoding": "gzip"}


@pytest.mark.parametrize(
    ("answer", "limits", "words"),
    [
        (Answer(write=lambda _: time.sleep(3)), IMPATIENT, "stopped answering"),
        (Answer(write=dripping), HURRIED, "did not end within"),
        (Answer(write=endless), SMALL, "more than 1 MiB"),
        (Answer(BOMB, headers=PACKED), SMALL, "more than 1 MiB"),
        (Answer(b'{"status":', length=1000), SMALL, "ended before the answer was complete"),
        (
            Answer(gzip.compress(b'{"status": "success"}')[:-9], headers=PACKED),
            SMALL,
            "not a result of the Prometheus API",
        ),
        (
            Answer(b"not gzip", headers=PACKED),
            SMALL,
            "ended before the answer was complete",
        ),
    ],
    ids=["stalls", "drips", "never ends", "bomb", "cut", "gzip cut", "no gzip"],
)
def test_an_answer_that_does_not_end_well_is_an_error(
    answer: Answer, limits: Limits, words: str
) -> None:
    with fake(lambda _: answer) as other, pytest.raises(gca.UnreadableInputError, match=words):
        server(other.url, limits=limits).find_api()


def test_a_server_that_hangs_up_is_an_error() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:
        import threading

        threading.Thread(target=lambda: listener.accept()[0].close(), daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(gca.UnreadableInputError, match=r"ended before|reset|pipe"):
            server(url).find_api()


def test_nothing_listens() -> None:
    with fake(lambda _: now()) as other:
        pass
    with pytest.raises(gca.UnreadableInputError, match="default port is 9090"):
        server(other.url).find_api()


def test_an_unknown_host_and_no_network_are_named() -> None:
    with pytest.raises(
        gca.UnreadableInputError, match=r"no host is called prometheus\.invalid"
    ):
        server("http://prometheus.invalid:9090").find_api()


def test_a_server_without_tls_is_named() -> None:
    with (
        fake(lambda _: now()) as other,
        pytest.raises(gca.UnreadableInputError, match=r"does not speak TLS.*\n.*Try http://"),
    ):
        server(other.url.replace("http:", "https:")).find_api()


def test_credentials_are_in_no_error_and_no_repr() -> None:
    def answer(request: Request) -> Answer:
        return refusal(401, "unauthorized", f"invalid: {request.headers['Authorization']}")

    with fake(answer) as other:
        found = server(other.url, credentials=credentials({"token": SECRET}))
        with pytest.raises(RefusedError, match="access denied") as caught:
            found.find_api()
    assert other.requests[0].headers["Authorization"] == f"Bearer {SECRET}"
    error = caught.value
    shown = [str(error), repr(error), repr(found), repr(credentials({"token": SECRET}))]
    shown += ["".join(traceback.format_exception(error)), repr(pickle.dumps(error))]
    assert not [text for text in shown if SECRET in text]
    assert "***" in str(error)


def test_a_password_in_the_address_is_used_and_never_shown() -> None:
    with (
        fake(lambda _: refusal(403, "", "bW9uaXRvcjpodW50ZXIyMg== is not allowed")) as other,
        pytest.raises(RefusedError, match="access denied") as caught,
    ):
        gca.read_prometheus(other.url.replace("//", WITH_PASSWORD))
    assert other.requests[0].headers["Authorization"] == "Basic bW9uaXRvcjpodW50ZXIyMg=="
    text = "".join(traceback.format_exception(caught.value))
    assert "hunter22" not in text
    assert "bW9uaX" not in text


def test_a_store_with_tenants_asks_for_the_tenant() -> None:
    with (
        fake(lambda _: Answer(b"no org id\n", 401)) as other,
        pytest.raises(RefusedError, match=r"X-Scope-OrgID: TENANT"),
    ):
        server(other.url).find_api()


def test_warnings_of_a_server_are_passed_on_once() -> None:
    def answer(_: Request) -> Answer:
        body = b'{"status":"success","warnings":["store eu is down"],"data":{"result":[]}}'
        return Answer(body)

    with fake(answer) as other, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = server(other.url)
        found.instant("up", 1.8e9)
        found.instant("up", 1.8e9)
    assert [str(each.message) for each in caught] == [f"{other.url}: store eu is down"]


def info(**labels: str) -> dict[str, Any]:
    return {"metric": labels, "value": [1.8e9, "240"]}


def matrix(*times: float, **labels: str) -> Answer:
    values = [[at, "1"] for at in times]
    return result({"metric": labels, "values": values}, kind="matrix")


def store(samples: Any) -> Callable[[Request], Answer]:
    """Answers of a store with one process; `samples` decides about range selectors."""

    def answer(request: Request) -> Answer:
        if request.query == "time()":
            return now()
        if request.query.startswith("count_over_time(go_info"):
            return result(info(instance="a:1", job="api", version="go1.26.8"))
        found: Answer = samples(request) if "[" in request.query else result()
        return found

    return answer


def asked(url: str, **named: Any) -> Any:
    from gctrace_analyzer.prometheus.question import question

    return question(url, **named)


def recorded(url: str, **named: Any) -> list[dict[str, Any]]:
    """The answers that are saved for the only process of a store."""
    from gctrace_analyzer.prometheus.question import answered

    with answered(asked(url, **named)) as answers:
        lines = gzip.decompress(answers.file().read()).splitlines()
    return [json.loads(line) for line in lines]


def test_too_many_samples_are_fetched_in_smaller_pieces() -> None:
    def samples(request: Request) -> Answer:
        seconds = int(request.query.rpartition("[")[2].partition("s]")[0])
        if seconds > 1000:
            return refusal(422, "execution", "query processing would load too many samples")
        end = float(request.fields["time"])
        # Prometheus 2 includes both ends.
        return matrix(end - seconds, end, __name__="go_info", instance="a:1", job="api")

    with fake(store(samples)) as other:
        answers = recorded(other.url, since="1h")
    times = [at for each in answers for at, _ in each["data"]["result"][0]["values"]]
    assert times == [1.8e9 - 3600 + 900 * index for index in range(5)]


def test_a_store_that_wants_names_gets_one_query_for_each() -> None:
    def samples(request: Request) -> Answer:
        if "__name__" in request.query:
            return refusal(400, "bad_data", "the metric name is required")
        name = request.query.partition("{")[0]
        return matrix(1.8e9, __name__=name, instance="a:1") if "alloc" in name else result()

    def answer(request: Request) -> Answer:
        return samples(request) if "__name__" in request.query else store(samples)(request)

    with fake(answer) as other:
        answers = recorded(other.url, since="1h")
    assert len(answers) == 2
    queries = [each.query for each in other.requests]
    assert 'go_memstats_next_gc_bytes{instance="a:1",job="api"}[3600s]' in queries


def test_a_query_that_stays_too_large_is_an_error() -> None:
    refused = refusal(422, "execution", "too many samples")
    with (
        fake(store(lambda _: refused)) as other,
        pytest.raises(RefusedError, match=r"refused a query \(422\)"),
    ):
        recorded(other.url, since="1h")


def test_a_step_stays_below_the_points_that_prometheus_allows() -> None:
    with fake(
        lambda r: matrix(1.8e9, job="api") if "start" in r.fields else store(None)(r)
    ) as other:
        recorded(other.url, since="30d", step="15s")
    ranges = [each.fields for each in other.requests if "start" in each.fields]
    points = [(float(f["end"]) - float(f["start"])) / 15 + 1 for f in ranges]
    assert max(points) <= 11_000
    assert sum(points) == 30 * 86400 / 15 + 1
    assert len({(f["start"], f["end"]) for f in ranges}) == len(ranges)


def test_the_report_of_a_process_asks_no_more_than_read() -> None:
    def samples(_: Request) -> Answer:
        labels = {"__name__": "go_memstats_next_gc_bytes", "instance": "a:1", "job": "api"}
        return matrix(*(1.8e9 - 15 * number for number in range(9, -1, -1)), **labels)

    asked_by = []
    for ask in (
        lambda url: gca.read(f"prometheus+{url}", since="1h"),
        lambda url: main(["prometheus", url, "--since", "1h", "-f", "json"]),
    ):
        with fake(store(samples)) as other:
            ask(other.url)
            asked_by.append([request.query for request in other.requests])
    assert asked_by[0] == asked_by[1]


def test_far_too_many_samples_are_refused_before_they_are_fetched() -> None:
    def answer(request: Request) -> Answer:
        if request.query.startswith("count_over_time(go_info"):
            return result({**info(instance="a:1"), "value": [1.8e9, "20000000"]})
        return store(None)(request)

    with fake(answer) as other, pytest.raises(gca.BadSettingError, match="at most 50,000,000"):
        recorded(other.url, since="365d")


def test_limits_of_containers_are_fetched_also_under_renamed_labels() -> None:
    def answer(request: Request) -> Answer:
        query = request.query
        if query.startswith("count_over_time(go_info"):
            return result(
                info(instance="10.0.0.7:80", job="api", namespace="shop", pod="api-0")
            )
        if "kube_pod_container_resource_limits" in query and "exported_pod" in query:
            labels = {"exported_namespace": "shop", "exported_pod": "api-0", "pod": "ksm-1"}
            return matrix(1.8e9, __name__="kube_pod_container_resource_limits", **labels)
        return store(lambda _: result(kind="matrix"))(request)

    with fake(answer) as other:
        answers = recorded(other.url)
    labels = answers[-1]["data"]["result"][0]["metric"]
    assert (labels["namespace"], labels["pod"]) == ("shop", "api-0")


@pytest.mark.parametrize(
    ("match", "words"),
    [
        ('{job="apu"}', r"Did you mean api\? Values of job: api, web\."),
        ("{team='x'}", "Jobs with Go processes: api, web"),
        (None, "no Go process has sent metrics"),
    ],
)
def test_an_empty_result_names_what_is_there(match: str | None, words: str) -> None:
    def answer(request: Request) -> Answer:
        if request.query == "time()":
            return now()
        if match and request.query == "count by (job) (count_over_time(go_info[3600s]))":
            return result(info(job="api"), info(job="web"))
        return result()

    with fake(answer) as other, pytest.raises(gca.NoDataError, match=words):
        asked(other.url, match=match)


def test_a_selector_that_the_server_refuses_is_a_wrong_argument() -> None:
    def answer(request: Request) -> Answer:
        if request.query == "time()":
            return now()
        return refusal(400, "bad_data", "1:12: parse error: unexpected end")

    with fake(answer) as other, pytest.raises(gca.BadSettingError, match="for match"):
        asked(other.url, match='{job=~"["}')


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ({"match": "job=api"}, 'Did you mean {job="api"}'),
        ({"match": '{job="api"'}, "label matchers"),
        ({"since": "yesterday"}, "a duration such as 6h"),
        ({"since": "2026-13-01"}, "a duration such as 6h"),
        ({"since": "0s"}, "a time before the end"),
        ({"step": "0s"}, "a duration above 0"),
        ({"headers": {"X\r\nY": "v"}}, "a header such as"),
        ({"token": "a", "user": "b"}, "either a token"),
    ],
)
def test_invalid_arguments_are_reported_before_the_server_is_asked(
    named: dict[str, Any], words: str
) -> None:
    with fake(lambda _: now()) as other:
        with pytest.raises(gca.BadSettingError, match=words):
            gca.read_prometheus(other.url, **named)
        assert not other.requests


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://a b", "http://h:99999"])
def test_an_address_that_is_none_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(gca.BadSettingError, match="the URL of a server"):
        gca.read_prometheus(url)


def kubernetes(request: Request) -> Answer:
    """A store with two pods, of which the first was killed for memory."""
    query = request.query
    if query == "time()":
        return now()
    pods = [
        {"namespace": "shop", "pod": f"api-{index}", "container": "api"} for index in (0, 1)
    ]
    of_go = [
        {**pod, "instance": f"10.0.0.{7 + i}:80", "job": "api"} for i, pod in enumerate(pods)
    ]
    if query.startswith("count_over_time(go_info"):
        return result(*[info(**labels) for labels in of_go])
    if query.startswith(
        "max by (namespace, pod, container) (kube_pod_container_resource_limits"
    ):
        return result(*[{"metric": pod, "value": [1.8e9, str(512 << 20)]} for pod in pods])
    if "OOMKilled" in query and "restarts_total" in query:
        return result({"metric": pods[0], "value": [1.8e9, "1"]})
    if query.startswith("max_over_time(process_resident_memory_bytes"):
        return result(*[{"metric": pod, "value": [1.8e9, str(500 << 20)]} for pod in of_go])
    return result()


def test_limits_and_kills_of_containers_are_in_the_table() -> None:
    with fake(kubernetes) as other:
        rows = gca.fleet(f"prometheus+{other.url}", worst=0).collect()
    columns = ("pod", "container_limit_mib", "oom_kills", "severity")
    assert rows.sort("pod").select(columns).rows() == [
        ("api-0", 512.0, 1, "bad"),
        ("api-1", 512.0, 0, "warn"),
    ]
    assert rows.sort("pod")["headline"][1] == "98 % of the container's memory was used."
    assert rows["findings"].to_list() == [["GC039"], ["GC015"]]
    assert rows["gc_per_s"].null_count() == len(rows)


def test_the_limit_of_a_container_is_used_for_advice() -> None:
    pod: dict[str, str] = {"namespace": "shop", "pod": "api-0", "container": "api"}

    def answer(request: Request) -> Answer:
        query = request.query
        if query.startswith("count_over_time(go_info"):
            return result(info(instance="10.0.0.7:80", job="api", **pod))
        if "kube_pod_container_resource_limits" in query and "exported" not in query:
            name = "kube_pod_container_resource_limits"
            values = [[1.8e9, str(512 << 20)]]
            limits = [{"resource": "memory"}, {"resource": "memory", "container": "proxy"}]
            labels = [{**pod, **each, "__name__": name} for each in limits]
            return result(
                *[{"metric": each, "values": values} for each in labels], kind="matrix"
            )
        if "[" not in query:
            return store(None)(request)
        names = {"go_gc_duration_seconds_count": 4, "go_memstats_next_gc_bytes": 1 << 26}
        names |= {"go_memstats_alloc_bytes_total": 1 << 24, "go_memstats_sys_bytes": 1 << 27}
        series = []
        for name, step in names.items():
            values = [[1.8e9 - 60 + 15 * i, str(step * (i + 1))] for i in range(4)]
            labels = [{**pod, "instance": "10.0.0.7:80", "job": "api", "__name__": name}]
            series += [{"metric": each, "values": values} for each in labels]
        return result(*series, kind="matrix")

    with fake(answer) as other:
        run = gca.read_prometheus(other.url)
        given = gca.read_prometheus(other.url, container_limit="1GiB")
    assert run.settings.value("container_limit_mib") == 512
    assert given.settings.value("container_limit_mib") == 1024


def test_a_store_with_many_processes_is_asked_in_bounded_pieces() -> None:
    many = 5_000

    def answer(request: Request) -> Answer:
        if request.query == "time()":
            return now()
        if request.query.startswith("count_over_time(go_info"):
            labels = [
                {"instance": f"10.0.{i >> 8}.{i & 255}:80", "job": "api"} for i in range(many)
            ]
            return result(*[info(**each) for each in labels])
        if request.query.startswith("rate(go_gc_duration_seconds_count"):
            inner = request.query.partition('instance=~"')[2].partition('"')[0]
            found = [each.replace("\\\\", "") for each in inner.split("|")]
            return result(*[info(instance=each, job="api") for each in found])
        return result()

    with fake(answer) as other:
        rows = gca.fleet(f"prometheus+{other.url}", worst=0).collect()
    assert len(rows) == many
    assert rows["gc_per_s"].null_count() == 0
    assert max(len(each.query) for each in other.requests) < 100_000


def test_an_interrupted_comparison_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "BATCH", 2)
    broken = True

    def answer(request: Request) -> Answer:
        query = request.query
        if query == "time()":
            return now()
        if query.startswith("count_over_time(go_info"):
            return result(*[info(instance=f"h{i}:80", job="api") for i in range(5)])
        if broken and "h4" in query:
            return Answer(b"<title>log in</title>", 401)
        return result()

    with fake(answer) as other:
        words = ["fleet", other.url.replace("http", "prometheus+http"), "--worst", "0"]
        words += ["-o", str(tmp_path / "all.parquet")]
        assert main(words) == 3
        assert len(pl.read_parquet(tmp_path / "all.parquet")) == 4
        broken = False
        other.requests.clear()
        assert main(words) == 0
    about = [each.query for each in other.requests if "gc_duration_seconds_sum" in each.query]
    assert len(about) == 1
    assert "h4:80" in about[0]
    rows = pl.read_parquet(tmp_path / "all.parquet")
    assert sorted(rows["file"]) == [f"h{i}:80" for i in range(5)]


def test_secrets_come_from_files_and_files_are_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token, headers, empty = (tmp_path / name for name in ("token", "headers", "empty"))
    token.write_text(f"{SECRET}\n")
    headers.write_text("X-Scope-OrgID: team-a\n\nX-Other: 1\n")
    empty.write_text("")
    with fake(kubernetes) as other:
        words = ["fleet", other.url.replace("http", "prometheus+http"), "--worst", "0"]
        assert main([*words, "--token-file", str(token), "--header", f"@{headers}"]) == 0
        sent = {name.lower(): text for name, text in other.requests[-1].headers.items()}
        assert main([*words, "--token-file", str(empty)]) == 3
        assert main([*words, "--token-file", str(tmp_path / "none")]) == 3
        assert main([*words, "--ca-file", str(token)]) == 3
        assert main([*words, "--header", "no colon"]) == 2
    assert sent["authorization"] == f"Bearer {SECRET}"
    assert sent["x-scope-orgid"] == "team-a"
    shown = capsys.readouterr()
    assert SECRET not in shown.out + shown.err
    for text in ("empty", "no such file", "not a certificate", "--header"):
        assert text in shown.err
