"""Opens inputs and returns their bytes in chunks of whole, clean lines.

This is the only module that opens inputs. Compression and encoding are detected by content,
not by name. The lines are UTF-8 with Unix line ends, without NUL bytes (from a log that was
truncated while it was written to) and without terminal escape sequences.
"""

from __future__ import annotations

import codecs
import io
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice, pairwise, repeat
from pathlib import Path
from typing import IO, Self, cast

from gctrace_analyzer import core
from gctrace_analyzer.errors import BadSettingError, NoDataError, UnreadableInputError
from gctrace_analyzer.files import fetched, is_url, not_found, without_secrets
from gctrace_analyzer.ingest.compression import (
    DamagedError,
    archive_kind,
    compression,
    is_tar,
    members,
    unpacked,
    zip_archive,
    zip_pieces,
)
from gctrace_analyzer.ingest.wrappers.quoting import quoting

CHUNK_BYTES = 6 << 20
"""Bytes per chunk: large enough to make the cost per chunk negligible, small enough to keep a few
in memory."""

_TAIL_BYTES = 4096
"""Bytes. How far back from its usual end a block looks for a line end."""

LONG_LINE_BYTES = 1 << 20
"""Longer lines are truncated to limit memory; no record is this long."""

FIRST_LINE_CHARS = 120
UNPACK_BYTES = 4 << 30
UNPACK_RATIO = 250
"""An input that unpacks to more than 4 GiB and more than 250 times its size is refused."""

Input = str | Path | bytes | IO[bytes] | IO[str]
DUMPED = "JSON lines"  # The layout in which a program writes its own dumps.
SERVER = "prometheus+"
"""Prefix of the address of a server that is given in place of a file."""


def is_server(origin: Input) -> bool:
    """Returns whether an input is the address of a server: `prometheus+http://…`."""
    return isinstance(origin, str) and origin.lower().startswith(SERVER)


def is_bundle(origin: Input) -> bool:
    """Returns whether an input is a folder, or a zip or tar archive, with several files."""
    if not isinstance(origin, str | Path) or origin == "-":
        return False
    try:
        path = Path(origin)
        if not path.is_file():
            return path.is_dir()
        with path.open("rb") as file:
            return archive_kind(file) is not None
    except (OSError, ValueError):
        return False


def files_in(path: Path) -> Sequence[Input]:
    """Returns the files of an archive that has several; none if it is damaged or too large."""
    try:
        with path.open("rb") as file:
            return members(file, str(path))
    except (DamagedError, OSError):
        return []


_NOT_LOGS = {
    **{
        magic: (
            what,
            f"In Python, gctrace_analyzer.read(polars.{reader}(...)) reads cycles that "
            "were written to one.",
        )
        for magic, what, reader in (
            (b"PAR1", "a Parquet file", "read_parquet"),
            (b"process,gc_num,", "a CSV table of cycles", "read_csv"),
            (b",process,gc_num,", "a CSV table of cycles", "read_csv"),
            (b'{"process":0,"gc_num":', "a JSON Lines table of cycles", "read_ndjson"),
            (b'[{"process":0,"gc_num":', "a JSON table of cycles", "read_json"),
        )
    },
    **dict.fromkeys(
        b"file,server,process,|rank,now,gogc,|now,gogc,|benchmark,side,metric,|id,name,severity,|"
        b'kind,proven,|{"id":"GC0|{"kind":"OOM kill","proven":'.split(b"|"),
        ("a table of results", "Read the log, or the dumps, that it was made from."),
    ),
    b"LPKSHHRH": (
        "a binary journal",
        "Convert it first: journalctl --file FILE -o json > journal.json",
    ),
    **{
        magic: (what, "Read are Go's profiles: go tool pprof and /debug/pprof write them.")
        for magic, what in {
            b"FLR\0": "a recording of Java's Flight Recorder",
            b"PERFILE2": "a recording of perf",
            b"JAVA PROFILE": "a heap dump of a Java VM",
        }.items()
    },
    **dict.fromkeys(
        b"\x7fELF|MZ\x90\x00|\xcf\xfa\xed\xfe|\xfe\xed\xfa\xcf|\xca\xfe\xba\xbe".split(b"|"),
        ("an executable", "Name the log it wrote, not the program."),
    ),
    **dict.fromkeys(
        (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"%PDF"),
        ("a picture or a PDF", "Paste the text of the log instead."),
    ),
}
_NAMED_MEMBERS = 5
"""Most files of an archive that an error message names."""

_MAGIC_BYTES = 8
"""Bytes that show the type of an input; a pipe may deliver them one by one."""

_ASCII_RECORD = re.compile(rb"gc \d+ @\d")

# CSI sequences (colours, cursor), OSC sequences (titles, links) and two-byte escapes; and colours
# that a terminal showed as text.
_ESCAPES = re.compile(
    rb"\^\[\[[0-9;]{0,20}m|\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[@-Z\\^_])"
)


@dataclass(slots=True)
class SourceFacts:
    """The facts about an input after it was read.

    `kind` is its detected format (`sniff.KINDS`), or `mixed` if it has several; `wrappers` counts
    the lines with each log prefix, and `found` the rows of each table. `profiles_at` is the
    address of net/http/pprof that a log names.
    """

    name: str
    compression: str | None = None
    encoding: str = "utf-8"
    bytes: int = 0
    lines: int = 0
    first: str = ""
    ends_in_newline: bool = True
    damage: str | None = None
    kind: str = "log"
    wrappers: dict[str, int] = field(default_factory=dict)
    found: dict[str, int] = field(default_factory=dict)
    profiles_at: str | None = None

    @property
    def is_scraped(self) -> bool:
        """Whether it has scrapes of metrics; the dumps of a program itself are of MemStats."""
        return self.kind == "metrics" and DUMPED not in self.wrappers


class Source:
    """One input: a path, `-` for standard input, an open file, or bytes.

    Raises:
        UnreadableInputError: missing, a folder, no permission, or not a log.
    """

    def __init__(self, origin: Input, *, unpack_limit: int | None = None) -> None:
        self._file, self._close, name = _open(origin)
        self.facts = SourceFacts(name)
        self._limit = unpack_limit
        self._head: list[bytes] = []
        self._margin: re.Pattern[bytes] | None = None
        self._rest: Iterator[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file, if it was opened here."""
        if self._close:
            self._file.close()

    def head(self, size: int) -> tuple[bytes, str]:
        """Returns the first bytes, unpacked, and the same as clean text.

        Raises:
            NoDataError: 0 bytes.
            UnreadableInputError: nothing like a log, or damaged before its first line.
        """
        blocks = self._all_blocks()
        self._head = list(islice(blocks, 1))
        while self._head and sum(map(len, self._head)) < size and (more := next(blocks, b"")):
            self._head.append(more)
        raw = b"".join(self._head)[:size]
        text = _cleaned(b"".join(_decoded(iter((raw,)), SourceFacts(""))))
        if len(raw) < size and (text[:1] in b"> \t\n" or b"\n>" in text):
            self._margin = quoting(text.decode())
        return raw, self._without_margin(text).decode()

    def _without_margin(self, text: bytes) -> bytes:
        return text if self._margin is None else self._margin.sub(b"", text)

    def blocks(self) -> Iterator[bytes]:
        """Yields the unpacked bytes unchanged, for inputs other than text.

        Raises:
            NoDataError: 0 bytes.
            UnreadableInputError: damaged before its first byte.
        """
        return self._all_blocks()

    def whole(self, most: int) -> bytes:
        """Returns the whole input, for documents.

        Raises:
            UnreadableInputError: more than `most` bytes.
        """
        pieces, size = [], 0
        for block in self._all_blocks():
            size += len(block)
            if size > most:
                raise UnreadableInputError(
                    self.facts.name,
                    f"larger than {most >> 20} MiB, and this kind of input is read whole",
                    "Give only the part of interest, or raise the limit, for example to",
                    argument="unpack_limit",
                    argument_value="64GiB",
                )
            pieces.append(block)
        return b"".join(pieces)

    def text(self, most: int) -> str:
        """Returns the whole input as clean text (`whole`)."""
        data = _cleaned(b"".join(_decoded(iter((self.whole(most),)), self.facts)))
        data, self.facts.ends_in_newline = self._without_margin(data), data.endswith(b"\n")
        self.facts.first = _first_line(data)
        return data.decode()

    def chunks(self) -> Iterator[bytes]:
        """Yields chunks of whole lines in order; `facts` is complete after the last one.

        Raises:
            NoDataError: 0 bytes.
            UnreadableInputError: nothing like a log, or damaged before its first line.
        """
        for lines in self._line_blocks(self._ended(_decoded(self._all_blocks(), self.facts))):
            data = self._without_margin(_cleaned(lines))
            self.facts.first = self.facts.first or _first_line(data)
            yield data

    def _all_blocks(self) -> Iterator[bytes]:
        """Yields the unpacked blocks, beginning with those that `head` has read."""
        if self._rest is None:
            self._rest = self._unpacked()
        taken, self._head = self._head, []
        return chain(taken, self._rest)

    def _blocks(self) -> Iterator[bytes]:
        is_file = self._close and self._file.seekable()
        while block := _whole_lines(self._file) if is_file else self._file.read(CHUNK_BYTES):
            data = block.encode("utf-8", "replace") if isinstance(block, str) else block
            self.facts.bytes += len(data)
            yield data
        if not self.facts.bytes:
            raise NoDataError.empty(self.facts.name)

    def _unpacked(self) -> Iterator[bytes]:
        blocks = self._blocks()
        head = next(blocks)
        while len(head) < _MAGIC_BYTES and (more := next(blocks, b"")):
            head += more
        for magic, (what, hint) in _NOT_LOGS.items():
            if head.startswith(magic):
                raise UnreadableInputError(self.facts.name, f"this is {what}, not a log", hint)
        self.facts.compression = kind = compression(head)
        if kind is None:
            self._refuse_tar(head)
            yield head
            yield from blocks
            return
        produced = 0
        try:
            pieces = (
                self._only_member()
                if kind == "zip"
                else unpacked(kind, chain((head,), blocks), CHUNK_BYTES)
            )
            for piece in pieces:
                if not produced:
                    self._refuse_tar(piece)
                produced += len(piece)
                self._refuse_bomb(produced)
                yield piece
        except DamagedError as err:
            self.facts.damage = str(err)
            if not produced:
                hint = "No data could be read from it. Fetch the file again."
                raise UnreadableInputError(self.facts.name, str(err), hint) from err

    def _only_member(self) -> Iterator[bytes]:
        """Yields the only file in a zip archive, unpacked once more if it is compressed.

        Raises:
            UnreadableInputError: the archive has several files, or comes through a pipe.
        """
        what, hint = "this is a zip archive", "Unpack it and name the logs inside."
        if isinstance(self._file, io.TextIOBase) or not self._file.seekable():
            raise UnreadableInputError(self.facts.name, f"{what} from a pipe", hint)
        file = cast("IO[bytes]", self._file)
        archive, names = zip_archive(file)
        if len(names) != 1:
            listed = "".join(f"\n    {name}" for name in names[:_NAMED_MEMBERS])
            more = len(names) - _NAMED_MEMBERS
            listed += f"\n    and {more:,} more" if more > 0 else ""
            raise UnreadableInputError(
                self.facts.name, f"{what} of {len(names):,} files, not a log", f"{hint}{listed}"
            )
        self.facts.bytes = file.seek(0, io.SEEK_END)
        blocks = zip_pieces(partial(archive.open, names[0]), CHUNK_BYTES)
        head = next(blocks, b"")
        kind = compression(head)
        both = chain((head,), blocks)
        yield from both if kind in (None, "zip") else unpacked(kind, both, CHUNK_BYTES)

    def _refuse_tar(self, head: bytes) -> None:
        if is_tar(head):
            what, hint = "a tar archive", "Unpack it and name the logs inside."
            raise UnreadableInputError(self.facts.name, f"this is {what}, not a log", hint)

    def _refuse_bomb(self, produced: int) -> None:
        """Raises an error for a decompression bomb; no log compresses that well."""
        limit = self._limit
        if limit is None:
            limit = max(UNPACK_BYTES, UNPACK_RATIO * self.facts.bytes)
        if produced > limit:
            raise UnreadableInputError(
                self.facts.name,
                f"its {self.facts.bytes:,} bytes unpack to more than {limit >> 20:,} MiB",
                "Logs rarely compress that well. If this one does, raise the limit:",
                argument="unpack_limit",
                argument_value="64GiB",
            )

    def _ended(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """Yields blocks; an unfinished last line is not a chunk of its own."""
        is_file = getattr(self._file, "seekable", bool)()
        filled = filter(None, blocks)
        pairs = pairwise(chain(filled, [b""])) if is_file else zip(filled, repeat(b"\n"))
        for block, following in pairs:
            is_cut = not following and not block.endswith(b"\n")
            self.facts.ends_in_newline = not is_cut
            yield block + b"\n" if is_cut else block

    def _line_blocks(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """Yields blocks that end at a line end; lines over `LONG_LINE_BYTES` are truncated."""
        carry, skipping = b"", False
        for block in blocks:
            data = block
            if skipping:
                _, newline, data = data.partition(b"\n")
                skipping = not newline
                if skipping:
                    continue
            end = data.rfind(b"\n") + 1
            if end == len(data) and not carry:
                yield data
            elif end:
                yield b"".join((carry, memoryview(data)[:end]))
                carry = data[end:]
            else:
                carry += data
            if len(carry) > LONG_LINE_BYTES:
                yield carry[: LONG_LINE_BYTES + 1] + b"\n"
                carry, skipping = b"", True
        if carry:
            self.facts.ends_in_newline = False
            yield carry + b"\n"


def _whole_lines(file: IO[bytes] | IO[str]) -> bytes | str:
    """Reads a block that ends with a line, so that no rest has to be copied."""
    at = file.tell()
    file.seek(at + CHUNK_BYTES - _TAIL_BYTES)
    tail = file.read(_TAIL_BYTES)
    end = tail.rfind(b"\n") + 1 if isinstance(tail, bytes) else 0
    file.seek(at)
    is_inside = end and len(tail) == _TAIL_BYTES
    return file.read(CHUNK_BYTES - _TAIL_BYTES + end if is_inside else CHUNK_BYTES)


def _decoded(blocks: Iterator[bytes], facts: SourceFacts) -> Iterator[bytes]:
    head = next(blocks, b"").removeprefix(codecs.BOM_UTF8)
    facts.encoding = encoding = encoding_of(head)
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    has_only_cr: bool | None = None
    for block in chain((head,), blocks):
        data = block if encoding == "utf-8" else decoder.decode(block).encode()
        if has_only_cr is None:
            # Old editors and serial consoles; next to line feeds, it belongs to a progress bar.
            has_only_cr = b"\n" not in data and data.count(b"\r") > 1
        if has_only_cr:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        # A log that is truncated while the program writes to it has a run of NULs.
        yield data.replace(b"\0", b"") if b"\0" in data else data


def _open(origin: Input) -> tuple[IO[bytes] | IO[str], bool, str]:
    """Returns the open file, whether to close it, and its name for messages."""
    if isinstance(origin, str) and origin == "-":
        return sys.stdin.buffer, False, "<stdin>"
    if isinstance(origin, bytes | bytearray):
        return io.BytesIO(origin), False, "<bytes>"
    if not isinstance(origin, str | Path):
        if not hasattr(origin, "read"):
            raise BadSettingError(
                "origins",
                f"object of type {type(origin).__name__}",
                "paths, each as an argument of its own (`*paths`), URLs, frames, or open "
                r"files such as io.StringIO(text); for lines, io.StringIO('\n'.join(lines))",
            )
        return origin, False, str(getattr(origin, "name", "<stream>"))
    if is_url(str(origin)):
        return fetched(str(origin)), True, without_secrets(str(origin))
    path = Path(origin)
    try:
        return path.open("rb"), True, str(origin)
    except FileNotFoundError as err:
        raise not_found(str(origin)) from err
    except IsADirectoryError as err:
        problem, hint = "a folder, not a log", _hint_for(path)
        raise UnreadableInputError(str(origin) or "'' (this folder)", problem, hint) from err
    except OSError as err:
        raise not_opened(str(origin), err) from err


def not_opened(name: str, err: OSError) -> UnreadableInputError:
    """Returns the error for an input that the system cannot open."""
    problem = (err.strerror or str(err)).lower()
    return UnreadableInputError(name, problem, "May this user read it?")


def _hint_for(folder: Path) -> str:
    if folder.name and folder.with_name(f"{folder.name}.manifest.json").exists():
        return f"It is the output of a fleet: gctrace-analyze fleet {folder}"
    return (
        "Name one file in it, or several of one program.\n  To read each as a process of its own "
        f"(in Python, fleet({str(folder)!r})):\n    gctrace-analyze fleet {folder}"
    )


def encoding_of(head: bytes) -> str:
    """Returns the encoding that the beginning of an input shows, for `bytes.decode`."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        # Another shell may have appended ASCII; then the beginning is ASCII too, but for NUL bytes.
        return "utf-8" if _ASCII_RECORD.search(head) else "utf-16"
    sample = head[:4096]
    # ASCII in UTF-16 has a NUL in every other byte; in a run of NULs, every byte is one.
    odd, even = sample[1::2].count(0), sample[::2].count(0)
    if odd > len(sample) * 0.3 > even * 3:
        return "utf-16-le"
    return "utf-16-be" if even > len(sample) * 0.3 > odd * 3 else "utf-8"


def _cleaned(data: bytes) -> bytes:
    """Returns the data as UTF-8 without blanks at the ends of lines, and terminal escapes."""
    if core.contains_any(data[:LONG_LINE_BYTES], [b" \n"]):
        # An expression would look at each blank, which takes eight times as long.
        *lines, rest = data.split(b"\n")
        data = b"\n".join([*(line.rstrip(b" \t") for line in lines), rest])
    # A search for three bytes at once takes ten times as long.
    is_shown = b"^" in data and b"^[[" in data
    if core.is_plain(data) and not is_shown:
        return data
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
    if b"\x1b" in data or is_shown:
        data = _ESCAPES.sub(b"", data)
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError:
            data = data.decode(errors="replace").encode()
    return data


def _first_line(data: bytes) -> str:
    text = data[: 4 * FIRST_LINE_CHARS].lstrip(b"\n").split(b"\n")[0].decode(errors="replace")
    return text if len(text) <= FIRST_LINE_CHARS else text[:FIRST_LINE_CHARS] + "…"
