"""Reads the metrics of Go processes from a server: the public function `read_prometheus`."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict
from urllib.parse import urlsplit

from gctrace_analyzer import units
from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.prometheus import address, discovery, samples, selector
from gctrace_analyzer.prometheus.credentials import credentials
from gctrace_analyzer.prometheus.recording import Recording
from gctrace_analyzer.prometheus.samples import Span
from gctrace_analyzer.prometheus.server import Server

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping
    from typing import Unpack

    from gctrace_analyzer.api import ProgramFacts
    from gctrace_analyzer.prometheus.connection import Limits
    from gctrace_analyzer.prometheus.discovery import Target
    from gctrace_analyzer.prometheus.samples import Progress
    from gctrace_analyzer.prometheus.selector import Matcher
    from gctrace_analyzer.run import Run

SINCE = "1h"
_TIME = re.compile(r"\s*\d{4}-\d\d")
MOST_TARGETS = 100
"""How many processes are read at most in one call."""


class Access(TypedDict, total=False):
    """How a server is reached, and with which credentials."""

    token: str | None
    token_file: str | Path | None
    user: str | None
    password: str | None
    password_file: str | Path | None
    headers: Mapping[str, str] | None
    ca_file: str | Path | None
    limits: Limits | None


class Which(TypedDict, total=False):
    """Which processes and which time are meant."""

    match: str | None
    since: str | float | datetime
    until: str | float | datetime | None
    step: str | float | None
    instance: str | None


class ReadKwargs(Which, Access, total=False):
    """What `read_prometheus` takes besides facts about the program."""


@frozen
class Question:
    """A server, a time range, and the Go processes in it."""

    server: Server
    matchers: list[Matcher]
    span: Span
    targets: list[Target]

    @property
    def name(self) -> str:
        """A title for reports, without secrets."""
        host = urlsplit(self.server.url).netloc
        if len(self.targets) == 1:
            return f"{self.targets[0].name} ({host})"
        return f"{host} {selector.selector('', self.matchers)}" if self.matchers else host

    def only(self, target: Target) -> Question:
        """Returns the same question about one process."""
        return replace(self, matchers=target.matchers, targets=[target])


def read_prometheus(
    url: str,
    *,
    save: str | os.PathLike[str] | None = None,
    progress: Callable[[Progress], None] | None = None,
    match: str | None = None,
    since: str | float | datetime = SINCE,
    until: str | float | datetime | None = None,
    step: str | float | None = None,
    instance: str | None = None,
    token: str | None = None,
    token_file: str | Path | None = None,
    user: str | None = None,
    password: str | None = None,
    password_file: str | Path | None = None,
    headers: Mapping[str, str] | None = None,
    ca_file: str | Path | None = None,
    limits: Limits | None = None,
    **facts: Unpack[ProgramFacts],
) -> Run:
    """Reads the metrics of Go processes from a Prometheus server.

    Without credentials among the arguments, they are taken from the environment:
    `PROMETHEUS_TOKEN`, or `PROMETHEUS_USER` and `PROMETHEUS_PASSWORD`.

    Args:
        url: the address of Prometheus, or of a store with the same API: Mimir, Thanos,
            VictoriaMetrics, with their path prefix.
        save: a file for what the server answered; `read` reads it later.
        progress: called as samples arrive.
        match: label matchers that select the processes, such as `{job="api"}`.
        since: where the time range begins: a duration before its end, or a time.
        until: where it ends: a time, or a duration before now; by default now.
        step: the distance between points. By default all samples are fetched as they were
            scraped, which is better; long ranges may need a step.
        instance: only the process with this address, host or pod.
        token: a bearer token.
        token_file: a file with a bearer token.
        user: the user for basic authentication.
        password: its password.
        password_file: a file with its password.
        headers: further headers, such as `{"X-Scope-OrgID": "team-a"}`.
        ca_file: certificates to trust instead of those of the system, in PEM format.
        limits: how long an answer may take and how large it may be.
        facts: facts about the program, as `read` takes them.

    Raises:
        NoDataError: no Go process fits.
        BadSettingError: an argument is not valid, or too many processes fit.
        UnreadableInputError: the server does not answer, denies access or is something else.
    """
    asked = question(
        url,
        match=match,
        since=since,
        until=until,
        step=step,
        instance=instance,
        token=token,
        token_file=token_file,
        user=user,
        password=password,
        password_file=password_file,
        headers=headers,
        ca_file=ca_file,
        limits=limits,
    )
    if len(asked.targets) > MOST_TARGETS:
        raise BadSettingError(
            argument="match",
            value=match or "all",
            expected=f"a selector for at most {MOST_TARGETS} processes; {len(asked.targets):,} fit",
        )
    with Recording(asked.name) as answers:
        record(answers, asked, progress)
        if save is not None:
            answers.save(Path(save))
        return run_of(answers, **facts)


def question(url: str, **how: Unpack[ReadKwargs]) -> Question:
    """Finds the API, the time range and the processes; the arguments of `read_prometheus`."""
    matchers = selector.parse(how.get("match"))
    where = address.parse(url)
    for name, value in (("user", where.user), ("password", where.password)):
        if how.get(name) is None and value is not None:
            how[name] = value  # type: ignore[literal-required]
    server = Server(
        where.url,
        credentials(
            token=how.get("token"),
            token_file=how.get("token_file"),
            user=how.get("user"),
            password=how.get("password"),
            password_file=how.get("password_file"),
            headers=how.get("headers"),
        ),
        ca_file=how.get("ca_file"),
        limits=how.get("limits"),
    )
    _span(how, 2e9)  # An invalid argument is reported before the server is asked.
    span = _span(how, server.find_api())
    found = discovery.targets(server, matchers, span.begin, span.end)
    chosen = discovery.chosen(server.url, found, how.get("instance"))
    asked = Question(server, matchers, span, chosen)
    if len(chosen) == 1:
        return asked.only(chosen[0])
    if how.get("instance") is None:
        return asked
    label = "instance" if all(each.labels.get("instance") for each in chosen) else "pod"
    these = selector.one_of(label, [each.labels.get(label, "") for each in chosen])
    return replace(asked, matchers=[*matchers, these])


def record(
    answers: Recording, asked: Question, progress: Callable[[Progress], None] | None = None
) -> None:
    """Records the samples of all processes of a question, and those of their containers."""
    server, found, span = asked.server, asked.targets, asked.span
    for answer in samples.fetched(server, asked.matchers, found, span, progress):
        answers.add(answer)
    for answer in samples.of_containers(server, found, span):
        answers.add(answer)
        if len(found) == 1 and answers.container_limit_bytes is None:
            answers.container_limit_bytes = samples.memory_limit_bytes(answer, found[0])


def run_of(answers: Recording, **facts: Unpack[ProgramFacts]) -> Run:
    """Reads recorded answers like a file."""
    from gctrace_analyzer.api import read

    limit = answers.container_limit_bytes
    if limit is not None and facts.get("container_limit") is None:
        facts["container_limit"] = limit / units.MIB
    return read(answers.file(), **facts)


def time_range(text: str, argument: str) -> tuple[str | float, str | None]:
    """Returns `since` and `until` of a range such as `3h..2h`.

    Both ends are times, or durations before now; without an end, it is now.

    Raises:
        BadSettingError: not a time range.

    >>> time_range("3h..2h", "before")
    (3600.0, '2h')
    """
    begin, dots, end = (part.strip() for part in text.partition(".."))
    expected = "a time range such as 3h..2h or 2026-11-21T09:00Z..2026-11-21T10:00Z"
    if not dots or not begin:
        raise BadSettingError(argument, text, expected)
    if not end or _TIME.match(begin):
        return begin, end or None
    if _TIME.match(end):
        raise BadSettingError(argument, text, f"{expected}: both ends in the same form")
    length = units.duration_s(begin, argument=argument) - units.duration_s(
        end, argument=argument
    )
    if length <= 0:
        raise BadSettingError(argument, text, f"{expected}: the earlier end first")
    return length, end


def _span(how: Which, now: float) -> Span:
    until = how.get("until")
    end = now if until is None else _moment(until, now, "until")
    begin = _moment(how.get("since", SINCE), end, "since")
    step = how.get("step")
    step_s = None if step is None else units.duration_s(step, argument="step")
    if step_s is not None and step_s <= 0:
        raise BadSettingError(
            argument="step", value=str(step), expected="a duration above 0 such as 30s"
        )
    # Whole seconds, so that a range selector covers exactly the time between two ends.
    begin, end = float(int(begin)), float(int(min(end, now)) if until is None else int(end))
    if end - begin < 1:
        raise BadSettingError(
            argument="since",
            value=str(how.get("since", SINCE)),
            expected="a time before the end",
        )
    return Span(begin, end, step_s)


def _moment(value: str | float | datetime, end: float, argument: str) -> float:
    """Returns a time in seconds since 1970: the one given, or so long before `end`."""
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    if not isinstance(value, str):
        return end - units.duration_s(value, argument=argument)
    if _TIME.match(value):
        try:
            found = datetime.fromisoformat(value.strip())
        except ValueError:
            pass
        else:
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    elif re.fullmatch(r"\s*[\d.]+\s*[A-Za-z][\w.\s]*", value):
        return end - units.duration_s(value, argument=argument)
    raise BadSettingError(
        argument, value, "a duration such as 6h or 7d, or a time such as 2026-11-21T09:00:00Z"
    )
