"""Credentials for a server: read from arguments, files and the environment, and never shown."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TypedDict

from gctrace_analyzer.errors import BadSettingError, MissingInputError, UnreadableInputError
from gctrace_analyzer.frozen import frozen

TOKEN, USER, PASSWORD = "PROMETHEUS_TOKEN", "PROMETHEUS_USER", "PROMETHEUS_PASSWORD"
"""Environment variables for values that no argument gives."""

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[^\r\n\x00\u0100-\U0010ffff]*")
"""A line of Latin-1, which is what HTTP sends."""

_FEWEST_CHARS = 4
"""A shorter value would also replace parts of ordinary words."""


class CredentialOptions(TypedDict, total=False):
    """Credentials as arguments.

    Without them, they are taken from the environment: `PROMETHEUS_TOKEN`, or
    `PROMETHEUS_USER` and `PROMETHEUS_PASSWORD`.

    Attributes:
        token: a bearer token.
        token_file: a file with a bearer token.
        user: the user for basic authentication.
        password: its password.
        password_file: a file with its password.
        headers: further headers, such as `{"X-Scope-OrgID": "team-a"}`.
    """

    token: str | None
    token_file: str | Path | None
    user: str | None
    password: str | None
    password_file: str | Path | None
    headers: Mapping[str, str] | None


@frozen
class Credentials:
    """Headers that authenticate the request. No value appears in a repr or a message."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def without_secrets(self, text: str) -> str:
        """Returns a server's text, which may repeat a secret, without secrets."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text


def credentials(given: CredentialOptions) -> Credentials:
    """Returns the credentials that arguments, files and the environment give.

    Arguments take precedence. The environment is used only if they give neither a token nor a user.

    Raises:
        BadSettingError: a header is not valid, or arguments exclude each other.
        UnreadableInputError: a file cannot be read.
    """
    token, user, password = given.get("token"), given.get("user"), given.get("password")
    if (token_file := given.get("token_file")) is not None:
        token = _first_line(token_file)
    if (password_file := given.get("password_file")) is not None:
        password = _first_line(password_file)
    if token is None and user is None:
        token, user = os.environ.get(TOKEN) or None, os.environ.get(USER) or None
        if token:
            user = None
    if user is not None and password is None:
        password = os.environ.get(PASSWORD, "")
    if token and user is not None:
        raise BadSettingError("token", "***", "either a token, or a user with a password")
    sent = {name: _valid(name, value) for name, value in (given.get("headers") or {}).items()}
    secrets = list(sent.values())
    if token:
        sent["Authorization"] = _valid("Authorization", f"Bearer {token}")
        secrets.append(token)
    elif user is not None:
        pair = b64encode(f"{user}:{password}".encode()).decode()
        sent["Authorization"] = f"Basic {pair}"
        secrets += [pair, password or ""]
    # The second word of `Authorization: Bearer abc` is a secret without the first one.
    secrets += [word for value in sent.values() for word in value.split()[1:]]
    long = {secret for secret in secrets if len(secret) >= _FEWEST_CHARS}
    return Credentials(sent, tuple(sorted(long, key=len, reverse=True)))


def parse_headers(texts: list[str]) -> dict[str, str]:
    """Returns headers given as `Name: value`, or as `@FILE` with one of these per line.

    Raises:
        BadSettingError: a text has neither form; the message does not repeat it.
        UnreadableInputError: a file cannot be read.
    """
    lines: list[str] = []
    for text in texts:
        lines += _text(text[1:]).splitlines() if text.startswith("@") else [text]
    headers = {}
    for line in filter(str.strip, lines):
        name, colon, value = line.partition(":")
        name = name.strip() if colon else ""
        headers[name] = _valid(name, value.strip())
    return headers


def _valid(name: str, value: str) -> str:
    if not (_NAME.fullmatch(name) and _VALUE.fullmatch(value)):
        raise BadSettingError("headers", "***", "a header such as 'X-Scope-OrgID: team-a'")
    return value


def _first_line(path: str | Path) -> str:
    text = _text(path).strip()
    if not text:
        raise UnreadableInputError(
            str(path), "empty", "It should have a secret in its first line."
        )
    return text.splitlines()[0].strip()


def _text(path: str | Path) -> str:
    try:
        return Path(path).read_text()
    except FileNotFoundError as err:
        problem, hint = "no such file", f"Looked for it in {Path.cwd()}."
        raise MissingInputError(str(path), problem, hint) from err
    except (OSError, UnicodeDecodeError) as err:
        problem = (getattr(err, "strerror", None) or "not a text file").lower()
        raise UnreadableInputError(str(path), problem, "May this user read it?") from None
