"""The HTML reports on the worst processes of a fleet, next to its summary."""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from dataclasses import replace
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from gctrace_analyzer.errors import GctraceWarning, UnwritableOutputError
from gctrace_analyzer.files import write_atomically
from gctrace_analyzer.fleets import inputs
from gctrace_analyzer.fleets.inputs import Item

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import polars as pl

    from gctrace_analyzer.present.plots.palette import Theme
    from gctrace_analyzer.run import Run

    Key = tuple[str, int]
    """A process: its file and its number."""


def write_reports(
    processes: pl.DataFrame,
    folder: Path,
    *,
    top: int,
    items: Sequence[Item] = (),
    read_options: Mapping[str, Any] | None = None,
    theme: Theme = "auto",
    failed: Callable[[str, str], None] = lambda _file, _problem: None,
) -> dict[Key, Path]:
    """Writes a report without scripts for each of the first processes.

    Args:
        processes: `Answers.processes`; the reports are made in this order.
        folder: the folder for the reports; it is made if it does not exist.
        top: the most reports to write.
        items: the inputs of the run, because signed URLs are needed for reading.
        read_options: options of `read`, the same as for the fleet.
        theme: the colours of the reports.
        failed: called with a file that cannot be read any more, and why.

    Returns:
        The report of each process.

    Raises:
        UnwritableOutputError: the folder or a report cannot be written.
    """
    from gctrace_analyzer.api import read

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        raise UnwritableOutputError(
            str(folder), err.strerror or str(err), kept=folder.exists()
        ) from err
    known = {item.name: item for item in items}

    def _item(name: str) -> Item:
        return known.get(name, Item(name, name, None))

    first = processes.head(top)
    keys: list[Key] = list(first.select("file", "process").iter_rows())
    called = [_called(*names) for names in first.select("service", "name").iter_rows()]
    pages: dict[Key, Path] = {}
    names, parts_of = _names(keys, called), first["parts"].to_list()
    for (file, number), name, title, parts in zip(keys, names, called, parts_of, strict=True):
        item = replace(_item(file), parts=tuple(map(_item, parts or ())))
        try:
            with (
                warnings.catch_warnings(action="ignore", category=GctraceWarning),
                inputs.all_opened(item, {}) as logs,
            ):
                page = _page(read(*logs, **(read_options or {})), number, title, theme)
        except Exception as err:  # Any error of a store; one lost file must not end the run.
            failed(file, inputs.problem_of(err, item.url))
            continue
        pages[file, number] = folder / name
        data = page.encode("utf-8", "replace")
        write_atomically(pages[file, number], methodcaller("write", data))
    return pages


def links(reports: Mapping[Key, Path], page: Path | None) -> dict[Key, str]:
    """Returns the addresses of reports, relative to the page that links to them.

    Args:
        reports: what `write_reports` returned.
        page: the page; None for printed text, which links from the current folder.
    """
    start = Path.cwd() if page is None else page.resolve().parent
    return {
        key: quote(Path(os.path.relpath(path.resolve(), start)).as_posix())
        for key, path in reports.items()
    }


def _page(run: Run, number: int, title: str, theme: Theme) -> str:
    from gctrace_analyzer.present.html.report_page import dumps

    own = run if len(run.processes) < 2 else run.process(number)
    return dumps(own.report(), light=True, theme=theme, title=title)


def _called(service: str, name: str) -> str:
    """Returns the names of a service and its process, without repetition.

    >>> _called("api", "api-6d4cf56db6-x2k9v"), _called("db/app", "db-0")
    ('api-6d4cf56db6-x2k9v', 'db/app/db-0')
    """
    return name if service in name else f"{service}/{name}"


def _names(keys: Sequence[Key], called: Sequence[str]) -> list[str]:
    """Returns a file name for each report, made longer where two are equal.

    >>> _names([("logs/a b.log.gz", 0), ("logs/web.log", 2)], ["a b", "eu/web"])
    ['a-b.html', 'eu-web-process-2.html']
    """
    plain = [_plain(name, number) for name, (_, number) in zip(called, keys, strict=True)]
    return [
        f"{name}.html" if plain.count(name) == 1 else f"{name}-{_digest(file)}.html"
        for name, (file, _) in zip(plain, keys, strict=True)
    ]


def _plain(name: str, number: int) -> str:
    safe = re.sub(r"[^\w.+-]+", "-", name).strip("-.")[:120] or "report"
    return f"{safe}-process-{number}" if number else safe


def _digest(file: str) -> str:
    return hashlib.sha256(file.encode()).hexdigest()[:8]
