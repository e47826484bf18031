"""The options of `read` for a server: what to ask for, and how to reach the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.prometheus.credentials import CredentialOptions

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping
    from datetime import datetime
    from pathlib import Path

    from gctrace_analyzer.prometheus.connection import Limits
    from gctrace_analyzer.prometheus.fetch import FetchProgress


class Access(CredentialOptions, total=False):
    """How to reach a server, and with which credentials.

    Attributes:
        ca_file: certificates to trust instead of those of the system, in PEM format.
        limits: how long an answer may take and how large it may be.
    """

    ca_file: str | Path | None
    limits: Limits | None


class Which(TypedDict, total=False):
    """The processes and the time range to read.

    Attributes:
        match: label matchers that select the processes, such as `{job="api"}`.
        since: the start of the time range: a duration before its end, or a time.
        until: the end of the time range: a time, or a duration before now; by default now.
        step: the time between points. By default all scraped samples are fetched, which is better;
            long ranges may need a step.
        instance: only the process with this address, host or pod.
    """

    match: str | None
    since: str | float | datetime | None
    until: str | float | datetime | None
    step: str | float | None
    instance: str | None


class QuestionOptions(Which, Access, total=False):
    """What to ask a server, and how to reach it."""


class ServerOptions(QuestionOptions, total=False):
    """The options of `read` for a server.

    Attributes:
        save: a file for the server's answers, which `read` can read later.
        fetching: called as samples arrive.
    """

    save: str | os.PathLike[str] | None
    fetching: Callable[[FetchProgress], None] | None


def without_server(options: Mapping[str, object]) -> BadSettingError:
    """Returns the error for server options without a server."""
    name, value = next(iter(options.items()))
    expected = "a server, such as prometheus+http://host:9090: files have no such choice"
    return BadSettingError(name, str(value), expected)
