"""One request over HTTP: timeouts, bounded answers, proxies, certificates, redirects."""

from __future__ import annotations

import ssl
import time
import zlib
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urljoin
from urllib.request import (
    HTTPHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    UnknownHandler,
)

from gctrace_analyzer import __version__
from gctrace_analyzer.errors import MissingInputError, UnreadableInputError
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.prometheus.address import is_same_server

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from http.client import HTTPResponse
    from pathlib import Path

    from gctrace_analyzer.prometheus.credentials import Credentials

CONNECT_S = 10.0
"""How long a server may take to accept a connection."""

SILENT_S = 150.0
"""How long a server may send nothing. Prometheus ends a query after 120 s by default
(`--query.timeout`), and sends nothing before."""

WHOLE_S = 600.0
"""How long a whole answer may take."""

MOST_BYTES = 256 << 20
"""The largest answer, unpacked. A million samples have 29 MB."""

_BLOCK_BYTES = 1 << 16
_MOST_REDIRECTS = 3
_REDIRECTS = (301, 302, 303, 307, 308)
_MOST_ERROR_BYTES = 1 << 16
"""How much is read of an answer that is no result."""


class TransportError(Exception):
    """A request that got no whole answer; `problems` says what that means."""


class TooLargeError(TransportError):
    """An answer with more than `MOST_BYTES`."""


class TooSlowError(TransportError):
    """An answer that took too long."""


class ElsewhereError(TransportError):
    """A redirect to another server; the argument is its URL."""


@frozen
class Limits:
    """How long a request may take and how large its answer may be."""

    connect_s: float = CONNECT_S
    silent_s: float = SILENT_S
    whole_s: float = WHOLE_S
    most_bytes: int = MOST_BYTES


@frozen
class Response:
    """An answer, whatever its status; the body of one that is no result may be cut."""

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
        self._opener = _opener(_context(ca_file), limits)

    def send(self, url: str, fields: Mapping[str, str], *, post: bool = True) -> Response:
        """Sends form fields and returns the answer, whatever its status.

        Redirects are followed on the same server only, because the credentials go with them.

        Raises:
            TransportError: the connection failed or the answer is not whole.
            OSError: as `urllib.request` raises them.
            HTTPException: the answer is not HTTP.
        """
        for _ in range(_MOST_REDIRECTS + 1):
            response, location = self._send_once(url, fields, post=post)
            if location is None:
                return response
            target = urljoin(url, location)
            if not target.startswith(("http://", "https://")) or not is_same_server(
                url, target
            ):
                raise ElsewhereError(target)
            url = target.partition("?")[0]
        raise ElsewhereError(url)

    def _send_once(
        self, url: str, fields: Mapping[str, str], *, post: bool
    ) -> tuple[Response, str | None]:
        form = urlencode(fields)
        request = Request(
            url if post else f"{url}?{form}",
            data=form.encode() if post else None,
            headers={
                **self._credentials.headers,
                "Accept": "application/json",
                "Accept-Encoding": "gzip",
                "User-Agent": f"gctrace-analyzer/{__version__}",
            },
        )
        deadline = time.monotonic() + self._limits.whole_s
        with self._opener.open(request, timeout=self._limits.connect_s) as response:
            is_result = response.status < 300
            most = self._limits.most_bytes if is_result else _MOST_ERROR_BYTES
            body = _body(response, most, deadline, whole=is_result)
            headers = response.headers
            found = Response(
                url,
                response.status,
                headers.get_content_type(),
                headers.get("Retry-After"),
                body,
            )
            moved = response.status in _REDIRECTS
            return found, headers.get("Location") if moved else None


def _body(response: HTTPResponse, most: int, deadline: float, *, whole: bool) -> bytes:
    """Returns the unpacked body; an error if it is longer than `most` and needed whole."""
    packed = response.headers.get("Content-Encoding", "").lower() == "gzip"
    blocks: list[bytes] = []
    size = 0
    pieces = _unpacked(response, deadline) if packed else _received(response, deadline)
    for block in pieces:
        blocks.append(block)
        size += len(block)
        if size > most:
            if whole:
                raise TooLargeError
            break
    return b"".join(blocks)[:most]


def _received(response: HTTPResponse, deadline: float) -> Iterator[bytes]:
    while block := response.read1(_BLOCK_BYTES):
        yield block
        if time.monotonic() > deadline:
            raise TooSlowError
    # `read1` does not report that the connection was closed before the announced length.
    if response.length:
        raise TransportError("cut")  # noqa: EM101 (a word for `problems`)


def _unpacked(response: HTTPResponse, deadline: float) -> Iterator[bytes]:
    gzip = zlib.decompressobj(wbits=31)
    for block in _received(response, deadline):
        rest = block
        while rest:
            # Unpacked in small steps, because a few bytes can unpack to gigabytes.
            yield gzip.decompress(rest, 16 * _BLOCK_BYTES)
            rest = gzip.unconsumed_tail
    yield gzip.flush()
    if not gzip.eof:
        raise TransportError("cut")  # noqa: EM101


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


def _opener(context: ssl.SSLContext, limits: Limits) -> OpenerDirector:
    """Returns an opener that raises no error for a status and follows no redirect."""
    opener = OpenerDirector()
    opener.addheaders = []
    for handler in (
        ProxyHandler(),
        _Http(limits.silent_s),
        _Https(context, limits.silent_s),
        UnknownHandler(),
    ):
        opener.add_handler(handler)
    return opener


class _Http(HTTPHandler):
    def __init__(self, silent_s: float) -> None:
        super().__init__()
        self._silent_s = silent_s

    def http_open(self, req: Request) -> HTTPResponse:
        kind: Any = partial(_PatientConnection, silent_s=self._silent_s)
        return self.do_open(kind, req)


class _Https(HTTPSHandler):
    def __init__(self, context: ssl.SSLContext, silent_s: float) -> None:
        super().__init__(context=context)
        self._tls, self._silent_s = context, silent_s

    def https_open(self, req: Request) -> HTTPResponse:
        kind: Any = partial(_PatientTlsConnection, silent_s=self._silent_s, context=self._tls)
        return self.do_open(kind, req)


class _PatientConnection(HTTPConnection):
    """Waits longer for an answer than for a connection."""

    def __init__(self, *args: Any, silent_s: float, **named: Any) -> None:
        super().__init__(*args, **named)
        self._silent_s = silent_s

    def connect(self) -> None:
        super().connect()
        self.sock.settimeout(self._silent_s)


class _PatientTlsConnection(_PatientConnection, HTTPSConnection):
    """As `_PatientConnection`, with TLS: `HTTPSConnection` comes next for its methods."""


FAILURES = (TransportError, HTTPException, OSError, zlib.error)
"""What `Connection.send` may raise."""
