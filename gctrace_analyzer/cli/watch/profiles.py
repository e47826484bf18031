"""Heap profiles of the watched program, from the address that the user gave.

One is fetched at the first severe finding, then one every minute, and one before the program is
asked to end. The first and the last are kept next to the log: growth between them is the leak.
"""

from __future__ import annotations

import time
import zlib
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from gctrace_analyzer.cli.screen import say
from gctrace_analyzer.errors import BadSettingError, UnwritableOutputError
from gctrace_analyzer.files import write_atomically
from gctrace_analyzer.prometheus.address import without_query

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gctrace_analyzer.live import Live

EVERY_S = 60.0
"""Seconds between two profiles."""

LOOK_S, LOOK_FACTOR = 2.0, 20
"""How often to look for the first severe finding: every 2 s, or after 20 times the duration of the
search."""

GROWTH = "live-heap-growth"
"""The finding that needs two heap profiles, whatever its severity."""

CONNECT_S, SILENT_S, WHOLE_S = 2.0, 5.0, 5.0
"""Timeouts in seconds. A request delays Ctrl-C by at most this. Go writes a heap profile in
milliseconds."""

MOST_BYTES = 64 << 20
"""Heap profiles have some kB; a large program's has a few MB."""

_INDEX = "/debug/pprof"
_ADDRESS = "the address of net/http/pprof, such as http://localhost:6060"


class Address(NamedTuple):
    """The URL of the heap profile, and the user and password that were part of it."""

    url: str
    fields: dict[str, str]
    user: str | None
    password: str | None


def address(text: str) -> Address:
    """Returns the address of the heap profile that a user means.

    Raises:
        BadSettingError: not an address over HTTP.

    >>> address("localhost:6060").url
    'http://localhost:6060/debug/pprof/heap'
    >>> address("https://api.example/debug/pprof/").url
    'https://api.example/debug/pprof/heap'
    >>> address("http://localhost:6060/internal/heap?gc=1")[:2]
    ('http://localhost:6060/internal/heap', {'gc': '1'})
    """
    # Without a scheme, localhost would be parsed as one.
    whole = text if "://" in text else f"http://{text}"
    try:
        parts = urlsplit(whole)
        path = parts.path.rstrip("/")
        if not path or path.endswith(_INDEX):
            path = f"{path.removesuffix(_INDEX)}{_INDEX}/heap"
        url, user, password = without_query(parts, path)
        is_server = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_server = False
    if not is_server or any(character.isspace() for character in text):
        # The value may have a password in it.
        shown = "an invalid address" if "@" in text else text
        raise BadSettingError("pprof", shown, _ADDRESS)
    return Address(url, dict(parse_qsl(parts.query)), user, password)


def is_heap_profile(data: bytes) -> bool:
    """Returns whether an answer is a heap profile of Go, compressed or not, or its text form."""
    if data.startswith(b"heap profile:"):
        return True
    try:
        is_packed = data.startswith(b"\x1f\x8b")
        raw = zlib.decompressobj(31).decompress(data, MOST_BYTES) if is_packed else data
    except zlib.error:
        return False
    # The name of a sample type that heap profiles have, but CPU profiles and pages do not.
    return b"inuse_space" in raw and not raw.lstrip().startswith((b"<", b"{"))


class HeapProfiles:
    """Fetches heap profiles while a program runs, and keeps the first and the last.

    Every problem is reported once, and watching continues.

    Args:
        address: where they are fetched from.
        log: the log that they are kept next to; it need not exist.
        live: the log so far, to search for a severe finding.
        window_s: how far back findings are looked for.
    """

    def __init__(self, address: Address, log: Path, live: Live, window_s: float) -> None:
        self._address, self._live, self._window_s = address, live, window_s
        self._say: Callable[[str], None] = say
        self._names = [
            log.with_name(f"{log.name.removesuffix('.log')}.heap-{which}.pb.gz")
            for which in ("first", "last")
        ]
        self._problems: set[str] = set()
        self._ended, self._lock = Event(), Lock()
        self.kept: list[Path] = []
        """The files with the first and the last profile."""

    def start(self, say: Callable[[str], None]) -> None:
        """Begins to look for a severe finding, in a thread of its own; `say` prints a line."""
        self._say = say
        Thread(target=self._run, daemon=True).start()

    def end(self) -> None:
        """Stops fetching, and says if nothing was fetched."""
        if not (self._ended.is_set() or self.kept or self._problems):
            self._say("no heap profile was fetched: nothing severe was found until the end")
        self._ended.set()

    def fetch(self, occasion: str) -> None:
        """Fetches a profile and keeps it; `occasion` says why, such as `before Ctrl-C`."""
        with self._lock:
            if self._ended.is_set():
                return
            try:
                data = self._fetched()
                path = self._names[min(len(self.kept), 1)]
                write_atomically(path, lambda file: file.write(data))
            except _NoProfileError as err:
                self._say_once(f"--pprof: {self._address.url} {err}")
            except UnwritableOutputError as err:
                self._say_once(f"--pprof: {err}")
            else:
                if path not in self.kept:
                    self.kept.append(path)
                    self._say(f"heap profile {path} ({occasion})")

    def _run(self) -> None:
        pause_s = LOOK_S
        while not self._ended.wait(pause_s):
            begin = time.monotonic()
            if self.kept:
                self.fetch("every minute")
                pause_s = EVERY_S
            elif name := self._severe():
                self.fetch(name)
                pause_s = EVERY_S
            else:
                pause_s = max(LOOK_S, LOOK_FACTOR * (time.monotonic() - begin))

    def _severe(self) -> str | None:
        """Returns the name of the first severe finding, or of the finding on a growing heap."""
        view = self._live.latest(self._window_s)
        if view is None:
            return None
        findings = view.run.findings()
        is_severe = (findings["severity"] == "bad") | (findings["name"] == GROWTH)
        severe = findings.filter(is_severe)["name"]
        return str(severe[0]) if len(severe) else None

    def _fetched(self) -> bytes:
        """Returns a heap profile.

        Raises:
            _NoProfileError: the server does not answer, or answers something else.
        """
        # The HTTP library is loaded only for users who fetch profiles.
        from gctrace_analyzer.prometheus.connection import FAILURES, Connection, Limits
        from gctrace_analyzer.prometheus.credentials import Credentials, credentials

        user, password = self._address.user, self._address.password
        proof = (
            Credentials()
            if user is None
            else credentials({"user": user, "password": password or ""})
        )
        limits = Limits(CONNECT_S, SILENT_S, WHOLE_S, MOST_BYTES)
        try:
            answer = Connection(proof, None, limits).send(
                self._address.url, self._address.fields, post=False
            )
        except FAILURES as err:
            raise _NoProfileError(_problem(err)) from err
        if answer.status != 200:
            problem = f"answers {answer.status}. Does the program import net/http/pprof?"
            raise _NoProfileError(problem)
        if not is_heap_profile(answer.body):
            problem = f"is not a heap profile of Go ({answer.content_type})."
            raise _NoProfileError(problem)
        return answer.body

    def _say_once(self, problem: str) -> None:
        if problem not in self._problems:
            self._problems.add(problem)
            self._say(problem)


class _NoProfileError(Exception):
    """There is no profile; the text of the error follows the address."""


def _problem(err: Exception) -> str:
    """Returns what a failed request means."""
    from urllib3.exceptions import (
        ConnectTimeoutError,
        NameResolutionError,
        NewConnectionError,
        ReadTimeoutError,
    )

    from gctrace_analyzer.prometheus.connection import ElsewhereError, TooLargeError

    match err:
        case NameResolutionError():
            return "has no such host."
        case NewConnectionError():
            return "refuses connections. Does the program listen there yet?"
        case ConnectTimeoutError() | ReadTimeoutError():
            return f"does not answer within {SILENT_S:.0f} s."
        case ElsewhereError():
            return "redirects to another server, which is not asked."
        case TooLargeError():
            return f"sends more than {MOST_BYTES >> 20} MiB."
        case _:
            return "sends no whole answer."
