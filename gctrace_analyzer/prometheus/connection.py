"""One request over HTTP: timeouts, bounded answers, proxies, certificates, redirects."""

from __future__ import annotations

import ssl
import time
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3
from urllib3.exceptions import HTTPError

from gctrace_analyzer import __version__
from gctrace_analyzer.errors import MissingInputError, UnreadableInputError
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.prometheus.address import is_same_server

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gctrace_analyzer.prometheus.credentials import Credentials

_BLOCK_BYTES = 1 << 16
_MOST_REDIRECTS = 3
_MOST_ERROR_BYTES = 1 << 16
"""Most bytes read from an error answer."""


class TransportError(Exception):
    """A request without a complete answer; `problems` explains it."""


class TooLargeError(TransportError):
    """An answer with more than `Limits.most_bytes`."""


class TooSlowError(TransportError):
    """An answer that took too long."""


class ElsewhereError(TransportError):
    """A redirect to another server; the argument is its URL."""


FAILURES = (TransportError, HTTPError, OSError)
"""What `Connection.send` may raise."""


@frozen
class Limits:
    """How long a request may take and how large its answer may be."""

    connect_s: float = 10.0
    """Seconds that a server may take to accept a connection."""
    silent_s: float = 150.0
    """Seconds that a server may send nothing. By default Prometheus ends a query after 120 s
    (`--query.timeout`), and sends nothing before."""
    whole_s: float = 600.0
    """Seconds that a whole answer may take."""
    most_bytes: int = 256 << 20
    """The largest unpacked answer in bytes. A million samples have 29 MB."""


@frozen
class Response:
    """An answer with any status; the body of an error answer may be truncated."""

    url: str
    status: int
    content_type: str
    retry_after: str | None
    body: bytes


class Connection:
    """Sends requests to one server, one at a time."""

    def __init__(
        self, credentials: Credentials, ca_file: str | Path | None, limits: Limits
    ) -> None:
        self._credentials = credentials
        self._limits = limits
        self._context = _context(ca_file)
        self._timeout = urllib3.Timeout(connect=limits.connect_s, read=limits.silent_s)
        self._pools: dict[str | None, urllib3.PoolManager] = {}

    def send(self, url: str, fields: Mapping[str, str], *, post: bool = True) -> Response:
        """Sends form fields and returns the answer, whatever its status.

        Redirects are followed on the same server only, because the credentials go with them.

        Raises:
            TransportError: the answer is too large, takes too long, or is elsewhere.
            HTTPError: the connection failed or the answer is incomplete.
        """
        for _ in range(_MOST_REDIRECTS + 1):
            response, location = self._send_once(url, fields, post=post)
            if location is None:
                return response
            target = urljoin(url, location)
            is_url = target.startswith(("http://", "https://"))
            if not is_url or not is_same_server(url, target):
                raise ElsewhereError(target)
            url = target.partition("?")[0]
        raise ElsewhereError(url)

    def _send_once(
        self, url: str, fields: Mapping[str, str], *, post: bool
    ) -> tuple[Response, str | None]:
        headers = {
            **self._credentials.headers,
            "Accept": "application/json",
            "Accept-Encoding": "gzip",
            "User-Agent": f"gctrace-analyzer/{__version__}",
        }
        deadline = time.monotonic() + self._limits.whole_s
        form = urlencode(fields)
        if post:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        response = self._pool(url).request(
            "POST" if post else "GET",
            url if post else f"{url}?{form}",
            body=form if post else None,
            headers=headers,
            timeout=self._timeout,
            retries=False,
            redirect=False,
            preload_content=False,
        )
        try:
            body = self._body(response, deadline)
        finally:
            response.release_conn()
        answer = Response(
            url,
            response.status,
            response.headers.get("Content-Type", "text/plain").partition(";")[0].strip(),
            response.headers.get("Retry-After"),
            body,
        )
        location = response.get_redirect_location()
        return answer, location or None

    def _body(self, response: urllib3.BaseHTTPResponse, deadline: float) -> bytes:
        """Returns the unpacked body; an error if a required one is longer than allowed."""
        is_result = response.status < 300
        most = self._limits.most_bytes if is_result else _MOST_ERROR_BYTES
        blocks: list[bytes] = []
        size = 0
        for block in response.stream(_BLOCK_BYTES, decode_content=True):
            blocks.append(block)
            size += len(block)
            if size > most:
                response.close()
                if is_result:
                    raise TooLargeError
                break
            if time.monotonic() > deadline:
                response.close()
                raise TooSlowError
        return b"".join(blocks)[:most]

    def _pool(self, url: str) -> urllib3.PoolManager:
        """Returns the connection pool for a server, through the proxy in the environment."""
        parts = urlsplit(url)
        proxy = getproxies().get(parts.scheme)
        if proxy and proxy_bypass(parts.netloc):
            proxy = None
        if proxy not in self._pools:
            self._pools[proxy] = (
                urllib3.PoolManager(ssl_context=self._context)
                if proxy is None
                else urllib3.ProxyManager(proxy, ssl_context=self._context)
            )
        return self._pools[proxy]


def _context(ca_file: str | Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
    except FileNotFoundError as err:
        hint = "It should have the certificate of the authority in PEM format."
        raise MissingInputError(str(ca_file), "no such file", hint) from err
    except (ssl.SSLError, OSError) as err:
        problem = "not a certificate in PEM format"
        hint = "It should begin with -----BEGIN CERTIFICATE-----."
        raise UnreadableInputError(str(ca_file), problem, hint) from err
