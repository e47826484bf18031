"""Queries to a Prometheus server, one at a time; waits when the server asks for it."""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING, Any, cast

from urllib3.exceptions import InvalidHeader
from urllib3.util import Retry

from gctrace_analyzer.errors import GctraceWarning, UnreadableInputError
from gctrace_analyzer.ingest import json_values
from gctrace_analyzer.prometheus import problems
from gctrace_analyzer.prometheus.address import PREFIXES
from gctrace_analyzer.prometheus.connection import FAILURES, Connection, Limits, Response
from gctrace_analyzer.prometheus.credentials import Credentials
from gctrace_analyzer.prometheus.problems import NotTheApiError, RefusedError
from gctrace_analyzer.prometheus.series import Answer, Series
from gctrace_analyzer.units import duration_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


ATTEMPTS = 5
"""Most attempts for a query if the server is overloaded or its proxy cannot reach it."""

MOST_WAIT_S = 300.0
"""Seconds. If the server asks for a longer pause, the query fails."""

_FIRST_WAIT_S = 1.0
_RETRIED = (429, 502, 503, 504)
_CONNECTIONS = 3
"""Most connections for one query."""
_MOST_GET_CHARS = 6000
"""Characters. Proxies refuse longer URLs."""


class Server:
    """A server with the API of Prometheus.

    Args:
        url: its base address, without secrets (`address.parse`).
        credentials: the credentials for the server.
        ca_file: certificates to trust instead of those of the system.
        limits: the limits on the duration and size of an answer.
        sleep: waits; replaced in tests.
    """

    def __init__(
        self,
        url: str,
        credentials: Credentials | None = None,
        *,
        ca_file: str | Path | None = None,
        limits: Limits | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.url = url
        self.received_bytes = 0
        self._limits = limits or Limits()
        self._credentials = credentials or Credentials()
        self._connection = Connection(self._credentials, ca_file, self._limits)
        self._sleep = sleep
        self._post = True
        self._warned: set[str] = set()

    def __repr__(self) -> str:
        return f"<Server {self.url}>"

    def find_api(self) -> float:
        """Finds the API, also under the usual prefixes; returns the server's time.

        Raises:
            UnreadableInputError: the server does not answer, or not with the API.
        """
        try:
            return self._now()
        except NotTheApiError as err:
            given = self.url
            for prefix in PREFIXES:
                self.url = given + prefix
                try:
                    now = self._now()
                except UnreadableInputError:
                    continue
                warnings.warn(
                    f"{given}: the Prometheus API is under {prefix}: {self.url}",
                    GctraceWarning,
                    stacklevel=2,
                )
                return now
            self.url = given
            raise err from None

    def _now(self) -> float:
        result: Any = self._ask("query", {"query": "time()"})["data"]["result"]
        try:
            # A scalar is a pair of time and value; VictoriaMetrics answers with a vector.
            pair = result[0]["value"] if isinstance(result[0], dict) else result
            return float(pair[1])
        except (IndexError, KeyError, TypeError, ValueError):
            raise NotTheApiError(
                self.url,
                "the answer to time() is not a time",
                "Is this the API of Prometheus, or of something that only looks like it?",
            ) from None

    def instant(self, query: str, at: float) -> list[Series]:
        """Returns the result of an instant query.

        Raises:
            UnreadableInputError: the server does not answer.
            RefusedError: the server refuses the query.
        """
        return [Series.of(series) for series in self.document(query, at)["data"]["result"]]

    def document(self, query: str, at: float) -> Answer:
        """Returns the whole answer to an instant query."""
        return self._ask("query", {"query": query, "time": f"{at:.3f}"})

    def range(self, query: str, begin: float, end: float, step: float) -> Answer:
        """Returns the whole answer to a range query."""
        ends = {"start": f"{begin:.3f}", "end": f"{end:.3f}"}
        return self._ask("query_range", {"query": query, **ends, "step": f"{step:g}"})

    def _ask(self, path: str, fields: Mapping[str, str]) -> Answer:
        """Returns an answer with data, as a document of the API."""
        for attempt in range(1, ATTEMPTS + 1):
            response = self._reached(path, fields)
            document = _document(response)
            if attempt == ATTEMPTS or not _may_recover(response, document):
                break
            self._wait(response, attempt)
        if response.status < 300 and document and document.get("status") == "success":
            self._warn(document)
            if _has_result(document):
                return cast("Answer", document)
        said = _said(document)
        raise problems.cleaned(
            problems.refused(self.url, response, said), self._credentials.without_secrets
        )

    def _reached(self, path: str, fields: Mapping[str, str]) -> Response:
        """Sends a query; again if a connection that has worked before breaks."""
        for attempt in range(1, _CONNECTIONS):
            try:
                return self._send(path, fields)
            except RefusedError:
                raise
            except UnreadableInputError:
                if not self.received_bytes:
                    raise
                self._sleep(_FIRST_WAIT_S * 2**attempt)
        return self._send(path, fields)

    def _send(self, path: str, fields: Mapping[str, str]) -> Response:
        url = f"{self.url}/api/v1/{path}"
        try:
            response = self._connection.send(url, fields, post=self._post)
            is_short = sum(map(len, fields.values())) < _MOST_GET_CHARS
            if response.status in (403, 405) and self._post and is_short:
                # Read-only proxies allow only GET.
                again = self._connection.send(url, fields, post=False)
                self._post = again.status >= 300
                response = again if again.status < 300 else response
        except FAILURES as err:
            raise problems.unreachable(self.url, err, self._limits) from err
        self.received_bytes += len(response.body)
        return response

    def _wait(self, response: Response, attempt: int) -> None:
        asked = _seconds(response.retry_after)
        pause = _FIRST_WAIT_S * 2 ** (attempt - 1) if asked is None else asked
        if pause > MOST_WAIT_S:
            raise RefusedError(
                self.url,
                f"the server asks to wait {duration_text(pause)} ({response.status})",
                "Try again after that.",
                status=response.status,
            )
        self._sleep(pause)

    def _warn(self, document: Mapping[str, Any]) -> None:
        """Passes on each warning of the server once, such as a partial answer."""
        said = [*_texts(document.get("warnings")), *_texts(document.get("infos"))]
        if document.get("isPartial") is True:
            said.append("the answer is partial: a part of the store did not answer")
        for text in said:
            clean = self._credentials.without_secrets(text)
            if clean not in self._warned:
                self._warned.add(clean)
                warnings.warn(f"{self.url}: {clean}", GctraceWarning, stacklevel=2)


def _may_recover(response: Response, document: Mapping[str, Any] | None) -> bool:
    """Returns whether the same query may succeed later.

    A timeout reported by the API itself would happen again: the query asks for too much.
    """
    is_error = response.status in _RETRIED and _said(document) is None
    return response.status == 429 or is_error


def _texts(value: object) -> list[str]:
    # Prometheus 3 adds infos on the names of counters, which are of no interest here.
    several = value if isinstance(value, list) else []
    return [str(text) for text in several if not str(text).startswith("PromQL info: ")]


def _document(response: Response) -> Mapping[str, Any] | None:
    try:
        document = json_values.loads(response.body.decode(errors="replace"))
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _has_result(document: Mapping[str, Any]) -> bool:
    data = document.get("data")
    if not isinstance(data, dict) or not isinstance(data.get("result"), list):
        return False
    if data.get("resultType") in ("scalar", "string"):
        return len(data["result"]) == 2
    return all(isinstance(series, dict) for series in data["result"])


def _said(document: Mapping[str, Any] | None) -> tuple[str, str] | None:
    """Returns the type and text of an error in the form of the API."""
    if document is None:
        return None
    text = document.get("error") or document.get("message")
    return (str(document.get("errorType", "")), str(text)) if text else None


def _seconds(text: str | None) -> float | None:
    """Returns the seconds that a `Retry-After` header asks for; None if unclear."""
    try:
        return None if text is None else Retry().parse_retry_after(text)
    except InvalidHeader:
        return None
