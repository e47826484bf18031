"""A peeled line as the readers of rare payloads see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime

Row = dict[str, Any]
Rows = dict[str, list[Row]]
"""Rows by table; columns a row lacks are null."""


class Message(NamedTuple):
    """A message and what its carrier said; `native` is JSON of journald's own fields."""

    line_no: int
    text: str
    logged_at: datetime | None = None
    monotonic_s: float | None = None
    host: str | None = None
    ident: str | None = None
    log_pid: int | None = None
    unit: str | None = None
    container: str | None = None
    container_id: str | None = None
    pod: str | None = None
    namespace: str | None = None
    stream: str | None = None
    native: str | None = None

    def when(self) -> Row:
        """Where and when: what every row has."""
        return {
            "line_no": self.line_no,
            "logged_at": self.logged_at,
            "monotonic_s": self.monotonic_s,
            "host": self.host,
        }

    def whose(self) -> Row:
        """`when`, and whose line it is."""
        names = (
            "ident",
            "log_pid",
            "unit",
            "container",
            "container_id",
            "pod",
            "namespace",
            "stream",
        )
        return self.when() | {name: getattr(self, name) for name in names}
