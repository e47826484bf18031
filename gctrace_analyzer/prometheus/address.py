"""The base address of a Prometheus API, from what users paste, without secrets."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.ingest.sources import SERVER

PREFIXES = ("/prometheus", "/api/prom", "/select/0/prometheus", "/vmselect/0/prometheus")
"""Prefixes of the API in stores other than Prometheus: Mimir and Thanos behind a route prefix,
Cortex, the cluster version of VictoriaMetrics and its vmauth."""

# Suffixes that users copy from a browser's address bar, or from documentation.
_PAGE = re.compile(
    r"/(?:api/v1(?:/.*)?|graph|query|alerts|targets|status|tsdb-status|classic/.*|vmui.*|-/\w+)"
    r"/*$"
)
_SCHEME = re.compile(r"(https?)://", re.IGNORECASE)


class Address(NamedTuple):
    """A base address without secrets, and the user and password that were part of it."""

    url: str
    user: str | None
    password: str | None


def parse(text: str) -> Address:
    """Returns the base address of the API that a user means.

    Raises:
        BadSettingError: not the URL of a server.

    >>> parse("http://me:pw@localhost:9090/graph?g0.expr=up").url
    'http://localhost:9090'
    >>> parse("localhost:9090").url, parse("prometheus+https://metrics.example/prometheus/").url
    ('http://localhost:9090', 'https://metrics.example/prometheus')
    """
    text = text[len(SERVER) :] if text.lower().startswith(SERVER) else text
    match = _SCHEME.match(text)
    if match is None and "://" in text:
        raise _not_a_server(text.partition("://")[0] + "://…")
    scheme = match[1].lower() if match else "http"
    rest = text[match.end() :] if match else text
    try:
        parts = urlsplit(f"{scheme}://{rest}")
        address = without_query(parts, _PAGE.sub("", parts.path).rstrip("/"))
    except ValueError as err:
        raise _not_a_server(value="an invalid address") from err
    if not parts.hostname or re.search(r"[\s\x00-\x1f\x7f]", text):
        raise _not_a_server(value="an invalid address")
    return address


def without_query(parts: SplitResult, path: str) -> Address:
    """Returns the address of a path of the server; its user and password are apart.

    Raises:
        ValueError: the port is not a number.
    """
    host = parts.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    port = f":{parts.port}" if parts.port else ""
    secret = [
        None if part is None else unquote(part) for part in (parts.username, parts.password)
    ]
    return Address(urlunsplit((parts.scheme, shown + port, path, "", "")), *secret)


def _not_a_server(value: str) -> BadSettingError:
    # The value is not repeated, because it may have a password in it.
    return BadSettingError("url", value, "the URL of a server such as http://localhost:9090")


def is_same_server(here: str, there: str) -> bool:
    """Returns whether credentials for one URL may be sent to the other.

    The URLs must have the same host and port, or the same host with TLS instead of plain HTTP.
    """
    one, other = urlsplit(here), urlsplit(there)
    if one.hostname != other.hostname:
        return False
    upgraded = (one.scheme, other.scheme) == ("http", "https")
    return upgraded or (one.scheme, _port(one)) == (other.scheme, _port(other))


def _port(parts: SplitResult) -> int:
    return parts.port or (443 if parts.scheme == "https" else 80)
