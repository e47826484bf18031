"""What is asked of a server, and how it is reached: the options of `read` for a server."""

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
    """How a server is reached, and with which credentials.

    Attributes:
        ca_file: certificates to trust instead of those of the system, in PEM format.
        limits: how long an answer may take and how large it may be.
    """

    ca_file: str | Path | None
    limits: Limits | None


class Which(TypedDict, total=False):
    """Which processes and which time are meant.

    Attributes:
        match: label matchers that select the processes, such as `{job="api"}`.
        since: where the time range begins: a duration before its end, or a time.
        until: where it ends: a time, or a duration before now; by default now.
        step: the distance between points. By default all samples are fetched as they were
            scraped, which is better; long ranges may need a step.
        instance: only the process with this address, host or pod.
    """

    match: str | None
    since: str | float | datetime | None
    until: str | float | datetime | None
    step: str | float | None
    instance: str | None


class QuestionOptions(Which, Access, total=False):
    """What is asked of a server, and how it is reached."""


class ServerOptions(QuestionOptions, total=False):
    """The options of `read` for a server.

    Attributes:
        save: a file for what the server answered; `read` reads it later.
        fetching: called as samples arrive.
    """

    save: str | os.PathLike[str] | None
    fetching: Callable[[FetchProgress], None] | None


def without_server(options: Mapping[str, object]) -> BadSettingError:
    """Returns the error that options for a server were given, and no server."""
    name, value = next(iter(options.items()))
    expected = "a server, such as prometheus+http://host:9090: files have no such choice"
    return BadSettingError(name, str(value), expected)
