"""What an error answer means, and what to do about it."""

from __future__ import annotations

import html
import re
import socket
import ssl
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from urllib3.exceptions import HTTPError
from urllib3.exceptions import TimeoutError as NoAnswerError

from gctrace_analyzer.errors import BadSettingError, UnreadableInputError
from gctrace_analyzer.files import without_secrets
from gctrace_analyzer.prometheus.connection import ElsewhereError, TooLargeError, TooSlowError
from gctrace_analyzer.units import duration_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from gctrace_analyzer.prometheus.connection import Limits, Response

TOO_MUCH = (413, 422, 503, 504)
"""Statuses of a query that asks for too much at once: too many samples (422, from Prometheus and
most stores), too large (413), and timeouts (503, 504)."""

_MOST_TEXT = 300


class RefusedError(UnreadableInputError):
    """A query that the server refused.

    Attributes:
        status: the HTTP status.
        text: the server's message.
    """

    def __init__(
        self, path: str, problem: str, hint: str, *, status: int, text: str = "", **others: Any
    ) -> None:
        super().__init__(path, problem, hint, **others)
        self.status, self.text = status, text

    @property
    def is_too_much(self) -> bool:
        """Whether a smaller query may succeed."""
        return self.status in TOO_MUCH


class NotTheApiError(UnreadableInputError):
    """An answer from something that is not the Prometheus API."""


def unreachable(url: str, err: BaseException, limits: Limits) -> UnreadableInputError:
    """Returns the error for a request without a complete answer."""
    if isinstance(err, ElsewhereError):
        return _elsewhere(url, str(err))
    if isinstance(err, TooLargeError):
        size = limits.most_bytes >> 20
        return RefusedError(
            url,
            f"the answer has more than {size:,} MiB, so it was not read to its end",
            "Ask for fewer processes or a shorter time.",
            status=413,
        )
    # The library's own errors have the system's as their cause, or among their arguments.
    inner = (err.__cause__, *err.args) if isinstance(err, HTTPError) else ()
    reason = next((cause for cause in inner if isinstance(cause, OSError)), err)
    problem, hint, argument = _connection_problem(url, reason, limits)
    return UnreadableInputError(url, problem, hint, argument=argument)


def _connection_problem(
    url: str, reason: object, limits: Limits
) -> tuple[str, str, str | None]:
    """Returns the problem, the hint and the argument that would help."""
    host = urlsplit(url).hostname or url
    if isinstance(reason, ssl.SSLCertVerificationError):
        return (
            f"its TLS certificate is not trusted: {reason.verify_message}",
            "If it was issued by your own authority, give that authority's certificate:",
            "ca_file",
        )
    if isinstance(reason, ssl.SSLError):
        if reason.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"):
            plain = urlunsplit(("http", *urlsplit(url)[1:]))
            return "the server does not speak TLS on this port", f"Try {plain}", None
        why = (reason.reason or "unknown reason").lower().replace("_", " ")
        return f"the TLS connection failed: {why}", "Is this the right port?", None
    if isinstance(reason, socket.gaierror):
        hint = "Check the spelling, and whether this machine has a network or needs a proxy."
        return f"no host is called {host}", hint, None
    if isinstance(reason, ConnectionRefusedError):
        hint = "Is Prometheus running there? Its default port is 9090."
        return "nothing accepts connections on this port", hint, None
    if isinstance(reason, TooSlowError):
        return (
            f"the answer did not end within {duration_text(limits.whole_s)}",
            "Ask for fewer processes or a shorter time.",
            None,
        )
    if isinstance(reason, (TimeoutError, NoAnswerError)):
        return (
            "the server stopped answering",
            f"It had {duration_text(limits.connect_s)} to accept the connection and "
            f"{duration_text(limits.silent_s)} to send something.",
            None,
        )
    if isinstance(reason, OSError) and reason.errno is not None:
        problem = (reason.strerror or str(reason)).lower()
        return problem, "Check the address, and whether this machine can reach it.", None
    hint = "Is this the port of a Prometheus server? Try again if it has worked before."
    return "the connection ended before the answer was complete", hint, None


def _elsewhere(url: str, target: str) -> UnreadableInputError:
    return NotTheApiError(
        url,
        f"the server redirects to {without_secrets(target)}",
        "It was not followed, because that is another server. If Prometheus has moved, use its "
        "new address; if that is a login page, give credentials:",
        argument="token_file",
        argument_value="FILE",
    )


def refused(url: str, response: Response, said: tuple[str, str] | None) -> UnreadableInputError:
    """Returns the exception for an error answer.

    Args:
        url: the base address.
        response: the answer.
        said: the type and text of the error, if the answer has the form of the API.
    """
    status = response.status
    if status in (401, 403):
        return _denied(url, response, said)
    if said is None:
        return _not_the_api(url, response)
    kind, text = said
    if status == 400 and re.search(r"bad_data|parse error|invalid parameter", f"{kind} {text}"):
        hint = "The server says this about a query that has your selector in it."
    else:
        hint = _HINTS.get(status, "Look at the log of the server.")
    return RefusedError(
        url,
        f"the server refused a query ({status}): {text.rstrip('.')}",
        hint,
        status=status,
        text=text,
    )


_HINTS = {
    422: "Ask for fewer processes or a shorter time, or raise --query.max-samples of the server.",
    429: "It limits how often it may be asked. Try again later.",
    500: "Look at the log of the server.",
    503: "The query ran into the server's timeout (--query.timeout). Ask for less at once.",
    504: "The query ran into a timeout. Ask for less at once.",
}


def _denied(url: str, response: Response, said: tuple[str, str] | None) -> UnreadableInputError:
    text = said[1] if said else _plain(response)
    says = f": {text}" if text else ""
    if "org id" in text.lower():
        hint = "This store keeps several tenants apart. Name yours:"
        argument, example = "headers", "'X-Scope-OrgID: TENANT'"
    elif response.status == 401:
        hint = "Give a token or a user with a password, in files or the environment:"
        argument, example = "token_file", "FILE"
    else:
        hint = "These credentials do not allow queries. Others:"
        argument, example = "token_file", "FILE"
    problem = f"access denied ({response.status}){says}"
    return RefusedError(
        url,
        problem,
        hint,
        status=response.status,
        text=text,
        argument=argument,
        argument_value=example,
    )


def _not_the_api(url: str, response: Response) -> UnreadableInputError:
    text = _plain(response)
    if "HTTP request to an HTTPS server" in text:
        tls = urlunsplit(("https", *urlsplit(url)[1:]))
        return NotTheApiError(url, "the server expects TLS on this port", f"Try {tls}")
    hint = _other_server(url, response, text)
    if response.status >= 500 or response.status == 429:
        says = f" with {text!r}" if text else ""
        hint = _HINTS.get(response.status, "Is Prometheus, or the proxy before it, healthy?")
        return RefusedError(
            url,
            f"the server answers {response.status}{says}",
            hint,
            status=response.status,
            text=text,
        )
    if response.status in (404, 405, 410):
        return NotTheApiError(url, f"no Prometheus API here ({response.status})", hint)
    what = "a web page" if _is_page(response) else "something"
    title = f" ({text!r})" if text else ""
    problem = f"the answer is {what}{title} and not a result of the Prometheus API"
    return NotTheApiError(url, problem, hint)


def _other_server(url: str, response: Response, text: str) -> str:
    """Returns what to do, by the apparent kind of server."""
    lower = text.lower()
    if "grafana" in lower:
        return (
            "This is Grafana. Use the address of its Prometheus, or that of the data source "
            "with a token of Grafana: …/api/datasources/proxy/uid/UID"
        )
    if re.search(r"log ?in|sign ?in|sso|oauth|auth", lower):
        return "This looks like a login page: the proxy before Prometheus needs credentials."
    if urlsplit(url).path.endswith("/metrics") or response.body.startswith(b"# HELP"):
        return (
            "This looks like a program's own metrics page. Save it every few seconds and read "
            "the files, or use the address of the Prometheus that scrapes it."
        )
    return (
        "Prometheus has its API under /api/v1; Mimir, Thanos and others often have a prefix "
        "before it, such as /prometheus. Put that prefix into the address. A Go program itself has "
        "its figures elsewhere: gctrace-analyze ADDRESS/metrics, or ADDRESS/debug/vars."
    )


def _is_page(response: Response) -> bool:
    return response.content_type == "text/html" or response.body.lstrip()[:1] == b"<"


def _plain(response: Response) -> str:
    """Returns the title of a web page, or the beginning of a text."""
    text = response.body[: 1 << 14].decode("utf-8", "replace")
    if _is_page(response):
        title = re.search(r"<(title|h1)[^<>]*+>([^<]*+)<", text, re.IGNORECASE)
        text = html.unescape(title[2]) if title else ""
    words = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return words if len(words) <= _MOST_TEXT else words[:_MOST_TEXT] + "…"


def cleaned(
    error: UnreadableInputError, without_secrets: Callable[[str], str]
) -> UnreadableInputError:
    """Returns the error without the secrets that the server may have repeated."""
    facts: dict[str, Any] = {
        name: without_secrets(value) if isinstance(value, str) else value
        for name, value in vars(error).items()
        if name != "__notes__"
    }
    return type(error)(**facts)


def bad_selector(value: str, text: str) -> BadSettingError:
    """Returns the error for a selector that the server does not understand."""
    return BadSettingError(
        "match", value, f'label matchers in PromQL such as {{job="api"}} (server: {text})'
    )
