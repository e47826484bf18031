"""Asks a server which Go processes it knows, and for their samples."""

from __future__ import annotations

import re
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Unpack, cast
from urllib.parse import urlsplit

from gctrace_analyzer import units
from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest.sources import Input, is_server
from gctrace_analyzer.prometheus import address, discovery, fetch, selector
from gctrace_analyzer.prometheus.access import QuestionOptions, ServerOptions, without_server
from gctrace_analyzer.prometheus.credentials import credentials
from gctrace_analyzer.prometheus.fetch import FetchProgress, Span
from gctrace_analyzer.prometheus.recording import Recording
from gctrace_analyzer.prometheus.server import Server

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence

    from gctrace_analyzer.prometheus.access import Which
    from gctrace_analyzer.prometheus.discovery import Target
    from gctrace_analyzer.prometheus.selector import Matcher

SINCE = "1h"
_TIME = re.compile(r"\s*\d{4}-\d\d")
MOST_TARGETS = 100
"""Most processes that one call reads."""


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


def with_answers(
    origins: Sequence[Input], server: ServerOptions, stack: ExitStack
) -> tuple[list[Input], float | None]:
    """Returns the inputs with servers replaced by files of their answers, and a container's limit.

    Raises:
        BadSettingError: there is no server among the inputs.
        GctraceError: as `read`.
    """
    if not any(map(is_server, origins)):
        raise without_server(server)
    which = cast(
        "QuestionOptions",
        {name: server[name] for name in server.keys() & QuestionOptions.__annotations__},  # type: ignore[literal-required]  # a name of it
    )
    files: list[Input] = []
    limit_mib = None
    for origin in origins:
        if not is_server(origin):
            files.append(origin)
            continue
        asked = question(str(origin), **which)
        answers = stack.enter_context(
            recorded(asked, server.get("match"), server.get("save"), server.get("fetching"))
        )
        files.append(answers.file())
        limit_mib = answers.container_limit_mib
    return files, limit_mib


@contextmanager
def recorded(
    asked: Question,
    match: str | None,
    save: str | os.PathLike[str] | None = None,
    fetching: Callable[[FetchProgress], None] | None = None,
) -> Iterator[Recording]:
    """Fetches the samples of Go processes from a server; yields its answers.

    Args:
        asked: what `question` returns.
        match: the selector, for the error message.
        save: a file for the server's answers.
        fetching: called as samples arrive.

    Raises:
        BadSettingError: too many processes fit.
        UnreadableInputError: the server does not answer, denies access or is something else.
    """
    if len(asked.targets) > MOST_TARGETS:
        raise BadSettingError(
            "match",
            match or "all",
            f"a selector for at most {MOST_TARGETS} processes; {len(asked.targets):,} fit",
        )
    with answered(asked, fetching) as answers:
        if save is not None:
            answers.save(Path(save))
        yield answers


@contextmanager
def answered(
    asked: Question, fetching: Callable[[FetchProgress], None] | None = None
) -> Iterator[Recording]:
    """Yields the samples of all processes of a question, and those of their containers."""
    server, targets, span = asked.server, asked.targets, asked.span
    with Recording(asked.name) as answers:
        for answer in fetch.fetched(server, asked.matchers, targets, span, fetching):
            answers.add(answer)
        for answer in fetch.of_containers(server, targets, span):
            answers.add(answer)
            if len(targets) == 1 and answers.container_limit_bytes is None:
                answers.container_limit_bytes = fetch.memory_limit_bytes(answer, targets[0])
        yield answers


def question(url: str, **how: Unpack[QuestionOptions]) -> Question:
    """Finds the API, the time range and the processes.

    Raises:
        NoDataError: no Go process matches.
        BadSettingError: an argument is not valid.
        UnreadableInputError: the server does not answer, denies access or is something else.
    """
    matchers = selector.parse(how.get("match"))
    where = address.parse(url)
    for name, value in (("user", where.user), ("password", where.password)):
        if how.get(name) is None and value is not None:
            how[name] = value  # type: ignore[literal-required]
    server = Server(
        where.url,
        credentials(how),
        ca_file=how.get("ca_file"),
        limits=how.get("limits"),
    )
    _span(how, 2e9)  # An invalid argument is reported before the server is asked.
    span = _span(how, server.find_api())
    targets_ = discovery.targets(server, matchers, span.begin, span.end)
    chosen = discovery.chosen(server.url, targets_, how.get("instance"))
    asked = Question(server, matchers, span, chosen)
    if len(chosen) == 1:
        return asked.only(chosen[0])
    if how.get("instance") is None:
        return asked
    label = "instance" if all(target.labels.get("instance") for target in chosen) else "pod"
    these = selector.one_of(label, [target.labels.get(label, "") for target in chosen])
    return replace(asked, matchers=[*matchers, these])


def time_range(text: str, argument: str) -> tuple[str | float, str | None]:
    """Returns `since` and `until` of a range such as `3h..2h`.

    Both ends are times, or durations before now; without an end, it is now.

    Raises:
        BadSettingError: the text is not a time range.

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
    begin = _moment(how.get("since") or SINCE, end, "since")
    step = how.get("step")
    step_s = None if step is None else units.duration_s(step, argument="step")
    if step_s is not None and step_s <= 0:
        raise BadSettingError("step", str(step), "a duration above 0 such as 30s")
    # Whole seconds, so that a range selector covers exactly the time between two ends.
    begin, end = float(int(begin)), float(int(min(end, now)) if until is None else int(end))
    if end - begin < 1:
        raise BadSettingError("since", str(how.get("since") or SINCE), "a time before the end")
    return Span(begin, end, step_s)


def _moment(value: str | float | datetime, end: float, argument: str) -> float:
    """Returns a time in seconds since 1970: the given one, or that duration before `end`."""
    if isinstance(value, str) and _TIME.match(value):
        with suppress(ValueError):
            value = datetime.fromisoformat(value.strip())
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    if not isinstance(value, str) or re.fullmatch(r"\s*[\d.]+\s*[A-Za-z][\w.\s]*", value):
        return end - units.duration_s(value, argument=argument)
    raise BadSettingError(
        argument, value, "a duration such as 6h or 7d, or a time such as 2026-11-21T09:00:00Z"
    )
