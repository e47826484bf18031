"""Fetches raw samples in pieces of bounded size."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest.metrics.samples import NO_LIMIT
from gctrace_analyzer.prometheus.discovery import Target, host_of, is_ip
from gctrace_analyzer.prometheus.fetched_metrics import CONTAINER, GO, SERIES, any_of
from gctrace_analyzer.prometheus.problems import RefusedError
from gctrace_analyzer.prometheus.selector import Matcher, equals, one_of, selector
from gctrace_analyzer.prometheus.series import Answer, labels_of
from gctrace_analyzer.units import duration_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gctrace_analyzer.prometheus.server import Server

PIECE_SAMPLES = 250_000
"""Target number of samples per piece: 7 MB of JSON, which take some 60 MB of memory while they are
checked."""

MOST_SAMPLES = 50_000_000
"""Most samples that are fetched without a step: 250 MB compressed."""

MOST_POINTS = 10_000
"""Most points of a series in a range query; Prometheus refuses more than 11,000."""

_SHORTEST_S = 60
"""Seconds. Shorter pieces are not tried."""

_ASSUMED_INTERVAL_S = 15.0
_RENAMED = "exported_"


@frozen
class FetchProgress:
    """Progress of a download.

    Attributes:
        done_s: the time that the samples so far cover.
        span_s: the time to cover.
        samples: how many samples have arrived.
        bytes: their size in JSON.
    """

    done_s: float
    span_s: float
    samples: int
    bytes: int


@frozen
class Span:
    """The time range to fetch, in seconds since 1970, and the step of a range query."""

    begin: float
    end: float
    step: float | None = None

    @property
    def seconds(self) -> float:
        """The length of the range."""
        return self.end - self.begin


def fetched(
    server: Server,
    matchers: Sequence[Matcher],
    targets: Sequence[Target],
    span: Span,
    progress: Callable[[FetchProgress], None] | None = None,
) -> Iterator[Answer]:
    """Yields answers with the samples of Go processes, oldest first.

    Args:
        server: the server to ask.
        matchers: the matchers that select the processes.
        targets: the processes, with their number of samples.
        span: the time range.
        progress: called after each piece.

    Raises:
        BadSettingError: there are too many samples to fetch without a step.
        UnreadableInputError: the server does not answer, or refuses even small pieces.
    """
    pieces = _pieces(targets, span)
    by_name = False
    done, samples = 0.0, 0
    while pieces:
        begin, end = pieces.popleft()
        try:
            answers = list(_piece(server, GO, matchers, begin, end, span, by_name=by_name))
        except RefusedError as err:
            if err.status in (400, 422) and not by_name and _needs_names(server, matchers, end):
                by_name = True
                pieces.appendleft((begin, end))
                continue
            if not err.is_too_much or end - begin < 2 * _SHORTEST_S:
                raise
            middle = (begin + end) // 2
            pieces.extendleft([(middle, end), (begin, middle)])
            continue
        done += end - begin
        repeated = None if begin <= span.begin else begin
        samples += sum(_without_repeats(answer, repeated) for answer in answers)
        yield from (answer for answer in answers if answer["data"]["result"])
        if progress:
            progress(FetchProgress(done, span.seconds, samples, server.received_bytes))


def _pieces(targets: Sequence[Target], span: Span) -> deque[tuple[float, float]]:
    """Returns the time range in pieces that are expected to have `PIECE_SAMPLES` each."""
    if span.step is not None:
        per_second = SERIES * max(1, len(targets)) / span.step
        longest = min(MOST_POINTS * span.step, PIECE_SAMPLES / per_second)
        # The points of all pieces are on one grid.
        longest = max(span.step, longest // span.step * span.step)
    else:
        assumed = span.seconds / _ASSUMED_INTERVAL_S
        samples = SERIES * sum(target.samples or assumed for target in targets)
        if samples > MOST_SAMPLES:
            coarse = _step_text(samples / MOST_SAMPLES * _ASSUMED_INTERVAL_S)
            raise BadSettingError(
                "since",
                duration_text(span.seconds),
                f"at most {MOST_SAMPLES:,} samples; these are about {samples:,.0f}",
                f"fewer processes, or step={coarse}",
            )
        longest = max(_SHORTEST_S, PIECE_SAMPLES / max(samples / span.seconds, 1e-9))
    count = max(1, math.ceil(span.seconds / longest))
    size = longest if span.step is not None else math.ceil(span.seconds / count)
    starts = [span.begin + index * size for index in range(count)]
    return deque((at, min(at + size, span.end)) for at in starts if at < span.end)


def _step_text(seconds: float) -> str:
    """Returns a readable step of at least this length.

    >>> _step_text(40), _step_text(200)
    ('1m', '5m')
    """
    minutes = next((m for m in (1, 5, 15, 60) if m * 60 >= seconds), 60)
    return f"{minutes}m"


def _piece(
    server: Server,
    names: tuple[str, ...],
    matchers: Sequence[Matcher],
    begin: float,
    end: float,
    span: Span,
    *,
    by_name: bool,
) -> Iterator[Answer]:
    queries = (
        [selector(name, matchers) for name in names]
        if by_name
        else [selector("", matchers, any_of(names))]
    )
    for query in queries:
        if span.step is None:
            answer = server.document(f"{query}[{max(1, round(end - begin))}s]", end)
        else:
            # The last point of a piece is not the first one of the next.
            last = end if end >= span.end else end - span.step
            answer = server.range(query, begin, last, span.step)
        if answer["data"]["result"] or not by_name:
            yield answer


def _needs_names(server: Server, matchers: Sequence[Matcher], end: float) -> bool:
    """Returns whether the server refuses selectors without the name of a metric."""
    try:
        server.instant(selector("", matchers, any_of(GO[:2])), end)
    except RefusedError:
        return True
    return False


def _without_repeats(answer: Answer, repeated: float | None) -> int:
    """Removes the samples of a time, which the previous piece has too, and counts the rest.

    Prometheus 2 includes the beginning of a range, where the previous piece ended; version 3
    does not.
    """
    count = 0
    for series in answer["data"]["result"]:
        values = series.get("values")
        if not isinstance(values, list):
            continue
        if repeated is not None and values and _time(values[0]) == repeated:
            del values[0]
        count += len(values)
    return count


def _time(sample: object) -> float | None:
    return sample[0] if isinstance(sample, list) and sample else None


def of_containers(server: Server, targets: Sequence[Target], span: Span) -> Iterator[Answer]:
    """Yields answers about the containers of processes: limits, restarts and their reasons.

    They are found by namespace and pod, or by the pod's IP address. Nothing is yielded if the
    processes are not in Kubernetes, or the server has no data about it.
    """
    for namespace, pods in _pods(server, targets, span).items():
        for prefix in ("", _RENAMED):
            matchers = [
                *equals({f"{prefix}namespace": namespace}),
                one_of(f"{prefix}pod", pods),
                Matcher(f"{prefix}container", "!=", '""'),
                Matcher(f"{prefix}container", "!=", '"POD"'),
            ]
            for answer in _optional(server, matchers, span):
                for series in answer["data"]["result"]:
                    series["metric"] = _own_labels(labels_of(series), prefix)
                if answer["data"]["result"]:
                    yield answer


def memory_limit_bytes(answer: Answer, target: Target) -> float | None:
    """Returns the last memory limit of a process's container; None if it has no limit.

    A pod with several containers needs the container's name among the labels of the process.
    """
    limits: dict[str, float] = {}
    for series in answer["data"]["result"]:
        labels = labels_of(series)
        is_limit = labels.get("__name__") == "container_spec_memory_limit_bytes" or (
            labels.get("__name__") == "kube_pod_container_resource_limits"
            and labels.get("resource") == "memory"
        )
        if is_limit and (value := _last(series)) is not None and 0 < value < NO_LIMIT:
            limits.setdefault(labels.get("container", ""), value)
    if name := target.labels.get("container"):
        return limits.get(name)
    return next(iter(limits.values())) if len(limits) == 1 else None


def _last(series: Mapping[str, Any]) -> float | None:
    try:
        return float(series["values"][-1][1])
    except (KeyError, IndexError, TypeError, ValueError):
        return None


def _own_labels(labels: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Returns labels under the names that kube-state-metrics gave them.

    Prometheus renames labels of a target that it also sets itself, unless `honor_labels` is set.
    Its own labels then name the pod of kube-state-metrics, not that of the process.
    """
    renamed = {
        name.removeprefix(prefix): value
        for name, value in labels.items()
        if name.startswith(prefix)
    }
    return {**labels, **renamed}


def _optional(server: Server, matchers: Sequence[Matcher], span: Span) -> Iterator[Answer]:
    """Yields answers; none if a store refuses the question."""
    for begin, end in _days(span):
        for by_name in (False, True):
            try:
                yield from _piece(
                    server, CONTAINER, matchers, begin, end, span, by_name=by_name
                )
                break
            except RefusedError:
                continue


def _days(span: Span) -> Iterator[tuple[float, float]]:
    """Yields days, because containers have few samples."""
    day = 86_400 if span.step is None else MOST_POINTS * span.step
    begin = span.begin
    while begin < span.end:
        yield begin, min(begin + day, span.end)
        begin += day


def _pods(server: Server, targets: Sequence[Target], span: Span) -> dict[str, set[str]]:
    """Returns the pods of processes by namespace."""
    pods: dict[str, set[str]] = {}
    addresses = set()
    for target in targets:
        pod, namespace = target.labels.get("pod"), target.labels.get("namespace")
        if pod and namespace:
            pods.setdefault(namespace, set()).add(pod)
        elif is_ip(host := host_of(target.labels.get("instance", ""))):
            addresses.add(host)
    if addresses:
        for labels in _pods_at(server, addresses, span):
            if labels.get("pod") and labels.get("namespace"):
                pods.setdefault(labels["namespace"], set()).add(labels["pod"])
    return pods


def _pods_at(server: Server, addresses: set[str], span: Span) -> list[Mapping[str, str]]:
    query = selector("kube_pod_info", [one_of("pod_ip", addresses)])
    try:
        return [series.labels for series in server.instant(query, span.end)]
    except RefusedError:
        return []
