"""Runs public excerpts whose right answers are known, and checks what is said about them."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
import sys
import tempfile
import warnings
from collections import Counter
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import gctrace_analyzer as gca
from gctrace_analyzer.cli.main import main
from tests.helpers import archives

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from gctrace_analyzer.run import Run

ABOUT = """Runs the excerpts of tests/corpus/cases and written, and checks what is said of them.

An excerpt is right if all its checks hold that are not minor. tests/corpus/cases.md says what a
check is.
"""
COLLECTIONS = ("cases", "written")
"""Collections of tests/corpus: public excerpts, and inputs written from what programs print."""

# A shorter line of the input may stand in a report by chance.
_QUOTED_CHARACTERS = 16


class Missed(NamedTuple):
    """A check that does not hold.

    Attributes:
        check: the check.
        was: what there was instead.
        minor: whether the excerpt may be right all the same.
    """

    check: dict[str, Any]
    was: str
    minor: bool


def cases() -> list[dict[str, Any]]:
    """Returns all excerpts with their checks."""
    archives.unpack_all()
    listed: list[dict[str, Any]] = []
    for collection in COLLECTIONS:
        index = json.loads((archives.FOLDER / collection / "index.json").read_text())
        listed += [{**case, "collection": collection} for case in index["cases"]]
    return listed


def path_of(name: str) -> Path:
    paths = [archives.FOLDER / collection / f"{name}.log" for collection in COLLECTIONS]
    return next(path for path in paths if path.exists())


def missed(case: dict[str, Any]) -> list[Missed]:
    """Returns the checks of an excerpt that do not hold."""
    return [
        Missed(check, was, bool(check.get("minor")))
        for check in case["checks"]
        if (was := _wrong(case["name"], check)) is not None
    ]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the names of excerpts."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these excerpts")
    parser.add_argument("--minor", action="store_true", help="show minor checks too")


def run(given: argparse.Namespace) -> None:
    """Checks every excerpt and prints what does not hold."""
    warnings.simplefilter("ignore")
    listed = [case for case in cases() if not given.names or case["name"] in given.names]
    right: Counter[str] = Counter()
    for case in listed:
        lost = missed(case)
        right[_group(case)] += all(miss.minor for miss in lost)
        for miss in lost:
            if given.minor or not miss.minor:
                word = "minor" if miss.minor else "wrong"
                print(f"{case['name']}: {word}: {json.dumps(miss.check)[:300]}\n    {miss.was}")
    print()
    for group, count in Counter(map(_group, listed)).items():
        print(f"{group}: {right[group]} of {count} are right ({right[group] / count:.0%})")


def _group(case: dict[str, Any]) -> str:
    """Returns where an excerpt is from, and of a written one the kind of fault it is about."""
    if case["collection"] == "cases":
        return "public"
    return f"written, kind {case['name'].partition('-')[0].removeprefix('k')}"


def _wrong(name: str, check: dict[str, Any]) -> str | None:
    """Returns what there is instead of what a check wants; None if it holds."""
    args = tuple(check.get("args", ()))
    if "any" in check:
        inner = [_wrong(name, {**part, "args": list(args)}) for part in check["any"]]
        return None if None in inner else "; ".join(filter(None, inner))
    if "exit" in check:
        code = said(name, check.get("cmd"), args).code
        wanted = check["exit"] if isinstance(check["exit"], list) else [check["exit"]]
        return None if code in wanted else f"exit {code}"
    if "must" in check or "must_not" in check:
        return _wrong_text(name, check, args)
    try:
        return _wrong_value(read(name, args), check)
    except gca.GctraceError as error:
        empty = "rows" in check and check["rows"] == 0
        return None if empty or check.get("absent") else f"refused: {str(error)[:120]}"


def _wrong_text(name: str, check: dict[str, Any], args: tuple[str, ...]) -> str | None:
    if "explain" in check:
        line = path_of(name).read_text().splitlines()[check["explain"] - 1]
        text = _command(("explain", line)).text
    else:
        text = said(name, check.get("cmd"), args).text
    pattern = check.get("must") or check["must_not"]
    match = re.search(pattern, text, re.IGNORECASE)
    if "must" in check:
        return None if match else text[:160]
    return match and text[max(match.start() - 60, 0) : match.end() + 60]


def _wrong_value(log: Run, check: dict[str, Any]) -> str | None:
    if "summary" in check:
        value = log.summary().to_dict().get(check["summary"])
        allowed = value is None and check.get("null")
        return None if allowed or _is(value, check["value"], check) else f"{value}"
    if "finding" in check:
        rows = [row for row in log.findings().to_dicts() if _matches(row, check["finding"])]
        return None if bool(rows) != bool(check.get("absent")) else f"{[r['id'] for r in rows]}"
    if "whatif" in check:
        rows = log.whatif(**check["whatif"]).to_dicts()
        return _below([row for row in rows if not row["now"]], check["each"])
    frame = log.table(check["table"])
    rows = frame.to_dicts()
    if "each" in check:
        return _below(rows, check["each"])
    if "rows" in check:
        count = sum(_matches(row, check.get("where", {})) for row in rows)
        return None if _is(count, check["rows"], {}) else f"{count} rows"
    return _wrong_row(rows, check)


def _wrong_row(rows: list[dict[str, Any]], check: dict[str, Any]) -> str | None:
    wanted = check["row"]
    if isinstance(wanted, int):
        chosen = rows[wanted : wanted + 1]
    else:
        chosen = [row for row in rows if _matches(row, wanted)][:1]
    if not chosen:
        return "no such row"
    row = chosen[0]
    different = {k: row.get(k) for k, v in check["is"].items() if not _is(row.get(k), v, check)}
    return f"{different}" if different else None


def _below(rows: Iterable[dict[str, Any]], least: dict[str, float]) -> str | None:
    low = [
        f"{key}={row[key]}"
        for row in rows
        for key, value in least.items()
        if row.get(key) is not None and row[key] < value
    ]
    return "; ".join(low) or None


def _matches(row: dict[str, Any], wanted: dict[str, Any]) -> bool:
    return all(
        row.get(key) in value if isinstance(value, list) else _is(row.get(key), value, {})
        for key, value in wanted.items()
    )


def _is(value: Any, wanted: Any, check: dict[str, Any]) -> bool:
    if isinstance(value, datetime) and isinstance(wanted, str):
        value = value.strftime("%Y-%m-%dT%H:%M:%S.%f")
    if isinstance(wanted, list):
        return value is not None and wanted[0] <= value <= wanted[1]
    if isinstance(wanted, str):
        return isinstance(value, str) and value.startswith(wanted)
    if isinstance(wanted, (int, float)) and not isinstance(wanted, bool):
        if not isinstance(value, (int, float)):
            return False
        slack = max(check.get("abs", 0), abs(wanted) * check.get("rel", 1e-9))
        return bool(abs(value - wanted) <= slack)
    return value is wanted


class _Said(NamedTuple):
    code: int
    text: str


@cache
def read(name: str, args: tuple[str, ...]) -> Run:
    options = {
        option.removeprefix("--").replace("-", "_"): int(value) if option == "--year" else value
        for option, value in zip(args[::2], args[1::2], strict=True)
    }
    return gca.read(path_of(name), **options)  # type: ignore[arg-type]  # by name


@cache
def said(name: str, verb: str | None, args: tuple[str, ...]) -> _Said:
    path = path_of(name)
    # Its name says what it is, and must not answer for the report.
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "x.log"
        shutil.copyfile(path, copy)
        said = _command((*([verb] if verb else []), str(copy), *args))
    # The folder's name is random, and may end like a duration: `…le3s`.
    text = said.text.replace(folder, "")
    return _Said(said.code, _without_quotations(text, path.read_text(errors="replace")))


def _command(words: tuple[str, ...]) -> _Said:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            code = main(list(words))
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        sys.stdout.flush()
    return _Said(code, re.sub(r"\s+", " ", out.getvalue()))


def _without_quotations(text: str, source: str) -> str:
    """Takes out lines of the input, and the quoted starts of such lines."""
    lines = {re.sub(r"\s+", " ", line).strip() for line in source.splitlines()}
    for line in sorted(lines, key=len, reverse=True):
        if len(line) >= _QUOTED_CHARACTERS:
            text = text.replace(line, "…")
    for quoted in re.findall(r"'([^']{16,})'|\"([^\"]{16,})\"|“([^”]{16,})”", text):
        start = next(filter(None, quoted)).rstrip("….").strip()
        if any(start in line for line in lines):
            text = text.replace(start, "…")
    return text
