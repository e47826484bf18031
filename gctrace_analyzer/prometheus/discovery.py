"""Which Go processes a server knows."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, TypeAlias

from gctrace_analyzer.errors import NoDataError, nearest
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.prometheus import problems
from gctrace_analyzer.prometheus.fetched_metrics import FINDING
from gctrace_analyzer.prometheus.problems import RefusedError
from gctrace_analyzer.prometheus.selector import Matcher, equals, one_of, selector

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gctrace_analyzer.prometheus.series import Series
    from gctrace_analyzer.prometheus.server import Server

_MOST_NAMED = 8
_NOT_TARGET = ("__name__", "version", "quantile", "le")

Identity: TypeAlias = tuple[tuple[str, str], ...]


@frozen
class Target:
    """A Go process by its labels, over all of its restarts.

    Attributes:
        labels: its labels without those of single metrics.
        jobs: the jobs that scrape it; two jobs may scrape one process.
        go_versions: the Go versions it was built with, of all restarts.
        samples: how many samples each of its series has, at most.
    """

    labels: Mapping[str, str]
    jobs: tuple[str, ...]
    go_versions: tuple[str, ...]
    samples: int

    @property
    def name(self) -> str:
        """The name that people use: the instance, else the pod, else all of its labels."""
        for label in ("instance", "pod"):
            if self.labels.get(label):
                return self.labels[label]
        return ", ".join(map(str, equals(self.labels))) or "the process"

    @property
    def identity(self) -> Identity:
        """The labels that all of its series share."""
        return identity(self.labels)

    @property
    def matchers(self) -> list[Matcher]:
        """Matchers for exactly this process."""
        others = {name: value for name, value in self.labels.items() if name != "job"}
        return [*equals(others), *([one_of("job", self.jobs)] if self.jobs else [])]


def targets(
    server: Server, matchers: Sequence[Matcher], begin: float, end: float
) -> list[Target]:
    """Returns the Go processes that have samples in a time range, in the order of their names.

    Raises:
        NoDataError: there are none; the message names the labels that exist.
        BadSettingError: the server does not understand the matchers.
        UnreadableInputError: the server does not answer.
    """
    for name in FINDING:
        series = _counted(server, selector(name, matchers), begin, end)
        if series:
            return _grouped(series)
    raise _nothing(server, matchers, begin, end)


def _counted(server: Server, chosen: str, begin: float, end: float) -> list[Series]:
    """Returns series, each with the number of its samples."""
    try:
        return server.instant(_over_time(chosen, begin, end), end)
    except RefusedError as err:
        if err.status == 400:
            raise problems.bad_selector(chosen, err.text) from err
        if not err.is_too_much:
            raise
        # The processes that run at the end; their number of samples is unknown.
        return [series._replace(value=0.0) for series in server.instant(chosen, end)]


def _grouped(several: Iterable[Series]) -> list[Target]:
    groups: dict[Identity, list[tuple[dict[str, str], int]]] = {}
    for labels, value in several:
        groups.setdefault(identity(labels), []).append((labels, int(value or 0)))
    return sorted(
        (_target(group) for group in groups.values()),
        key=lambda it: (it.jobs, it.name, sorted(it.labels.items())),
    )


def identity(labels: Mapping[str, str]) -> Identity:
    """Returns the labels that all series of one process share.

    Two jobs that scrape one address scrape one process. Without an address, as from a push
    gateway, only the job distinguishes processes.
    """
    job = "job" if labels.get("instance") else ""
    return tuple(sorted((n, v) for n, v in labels.items() if n not in (*_NOT_TARGET, job)))


def _target(group: list[tuple[dict[str, str], int]]) -> Target:
    labels = {name: value for name, value in group[0][0].items() if name not in _NOT_TARGET}
    jobs = sorted({labels["job"] for labels, _ in group if labels.get("job")})
    versions = sorted({labels["version"] for labels, _ in group if labels.get("version")})
    per_job: dict[str, int] = {}
    for those, samples in group:
        job = those.get("job", "")
        per_job[job] = per_job.get(job, 0) + samples
    return Target(labels, tuple(jobs), tuple(versions), sum(per_job.values()))


def chosen(url: str, targets_: Sequence[Target], instance: str | None) -> list[Target]:
    """Returns the processes of an instance: its address, its host, or its pod.

    Raises:
        NoDataError: no process has this name.
    """
    if instance is None:
        return list(targets_)
    names = [(own.labels.get("instance", ""), own.labels.get("pod")) for own in targets_]
    for known_as in (names, [(host_of(address),) for address, _ in names]):
        named = zip(targets_, known_as, strict=True)
        if fitting := [target for target, own in named if instance in own]:
            return fitting
    known = [target.name for target in targets_]
    near = nearest(instance, known)
    hint = f"Did you mean {near}?" if near else f"Known: {_listed(known)}."
    raise NoDataError(url, f"no Go process with the instance {instance}", hint)


def host_of(instance: str) -> str:
    """Returns the host of an address.

    >>> host_of("10.0.0.7:8080"), host_of("[::1]:8080"), host_of("api-0")
    ('10.0.0.7', '::1', 'api-0')
    """
    host, colon, port = instance.rpartition(":")
    plain = host if colon and port.isdigit() else instance
    return plain.strip("[]")


def is_ip(text: str) -> bool:
    """Returns whether a host is given as an IP address."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _nothing(
    server: Server, matchers: Sequence[Matcher], begin: float, end: float
) -> NoDataError:
    """Returns the error for an empty result, with the values of labels that do exist."""
    for matcher in matchers:
        others = [other for other in matchers if other is not matcher]
        if values := _values(server, matcher.label, others, begin, end):
            return _no_such_value(server.url, matcher, values)
    if matchers and (jobs := _values(server, "job", [], begin, end)):
        which = selector("", matchers)
        hint = f"Jobs with Go processes: {_listed(jobs)}."
        return NoDataError(server.url, f"no Go process fits {which}", hint)
    return NoDataError(
        server.url,
        "no Go process has sent metrics in this time",
        f"Neither {' nor '.join(FINDING)} has a sample. Is the right time range asked for, and "
        "does this server scrape Go programs?",
    )


def _no_such_value(url: str, matcher: Matcher, values: list[str]) -> NoDataError:
    near = nearest(matcher.value.strip("\"'`"), values)
    suggestion = f"Did you mean {near}? " if near else ""
    return NoDataError(
        url,
        f"no Go process fits {{{matcher}}} in this time",
        f"{suggestion}Values of {matcher.label}: {_listed(values)}.",
    )


def _values(
    server: Server, label: str, matchers: Sequence[Matcher], begin: float, end: float
) -> list[str]:
    """Returns the values of a label among the Go processes of a time range."""
    for name in FINDING:
        counted = _over_time(selector(name, matchers), begin, end)
        try:
            answers = server.instant(f"count by ({label}) ({counted})", end)
        except RefusedError:
            continue
        values = {value for series in answers for value in series.labels.values()}
        if values:
            return sorted(values)
    return []


def _over_time(chosen: str, begin: float, end: float) -> str:
    return f"count_over_time({chosen}[{max(1, round(end - begin))}s])"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    shown = [name if len(name) <= 60 else name[:59] + "…" for name in names[:_MOST_NAMED]]
    return ", ".join(shown) + (f" and {more:,} more" if more > 0 else "")
