"""Inputs of every kind: encoded, split, damaged, huge."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import random
import re
import socket
import subprocess
import sys
import zlib
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from polars.testing import assert_frame_equal

import gctrace_analyzer as gca
from gctrace_analyzer.errors import BadSettingError, MissingInputError, UnreadableInputError
from gctrace_analyzer.ingest import sources
from gctrace_analyzer.testing import read_text
from tests.conftest import SAMPLES
from tests.helpers.lines import LINES
from tests.helpers.logs import logfile

if TYPE_CHECKING:
    from collections.abc import Iterator

LOG = (SAMPLES / "steady-go1.26.log").read_bytes()

CYCLES = 33


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_windows_encodings_are_read(encoding: str) -> None:
    text = LOG.decode().replace("\n", "\r\n")
    run = gca.read(io.BytesIO(text.encode(encoding)))
    assert len(run.cycles) == CYCLES
    assert run.cycles["line_no"].to_list() == read_text(LOG).cycles["line_no"].to_list()


def test_carriage_returns_and_colours_are_removed() -> None:
    line = LINES["gc18"].replace(" (forced)", "")
    run = read_text(f"\x1b[32m{line}\x1b[0m\r\n\x1b]0;title\x07{line}\r\n")
    assert len(run.cycles) == 2
    assert not run.cycles["repaired"].any()


@pytest.mark.parametrize("chunk_bytes", [sources.CHUNK_BYTES, 2000])
def test_lines_may_end_with_carriage_returns_alone(
    chunk_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "CHUNK_BYTES", chunk_bytes)
    text = "".join(
        f"2026-11-23T10:00:{n % 60:02}Z {line}\n"
        for n, line in enumerate(LOG.decode().split("\n"))
    )
    expected = gca.read(io.BytesIO(text.encode())).cycles
    run = gca.read(io.BytesIO(text.replace("\n", "\r").encode()))
    for name in ("line_no", "logged_at", "gc_num"):
        assert run.cycles[name].to_list() == expected[name].to_list()


def test_a_carriage_return_among_line_feeds_is_within_a_line() -> None:
    run = read_text(f"10 %\r20 %\r{LINES['gc18']}\n{LINES['gc18']}\n")
    assert run.cycles["line_no"].to_list() == [1, 2]


def test_a_run_of_nuls_is_stripped() -> None:
    run = read_text(
        LINES["gc18"].encode() + b"\n" + b"\0" * 5000 + LINES["gc16"].encode() + b"\n"
    )
    assert run.cycles["line_no"].to_list() == [1, 2]


def test_a_text_file_object_is_read() -> None:
    assert len(gca.read(io.StringIO(LOG.decode())).cycles) == CYCLES


def test_several_parts_are_one_log() -> None:
    lines = LOG.splitlines(keepends=True)
    first, second = io.BytesIO(b"".join(lines[:40])), io.BytesIO(b"".join(lines[40:]))
    run = gca.read(first, second)
    assert len(run.cycles) == CYCLES
    assert len(run.processes) == 1


def test_a_part_without_cycles_is_only_a_warning() -> None:
    with pytest.warns(gca.GctraceWarning, match="none of them gctrace"):
        run = gca.read(io.BytesIO(b"no trace here\n"), io.BytesIO(LOG))
    assert len(run.cycles) == CYCLES
    with pytest.warns(gca.GctraceWarning, match="empty"):
        gca.read(io.BytesIO(b""), io.BytesIO(LOG))


def test_the_chunk_size_does_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read_text(LOG * 3)
    for size in (97, 1000, 4096):
        monkeypatch.setattr(sources, "CHUNK_BYTES", size)
        parts = read_text(LOG * 3)
        assert parts.cycles.equals(whole.cycles)
        assert parts.processes.equals(whole.processes)


def test_a_record_torn_across_chunks_is_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    record = LINES["gc18"]
    log = f"{record[:30]}2026/11/21 04:02:39.56 cache refresh\n{record[30:]}\n"
    monkeypatch.setattr(sources, "CHUNK_BYTES", 64)
    run = read_text("2026/11/21 04:02:39.50 starting\n" + log)
    assert run.cycles["repaired"].to_list() == [True]


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="reads peak memory from /proc"
)
def test_a_very_long_line_is_rejected_without_using_its_memory(tmp_path: Path) -> None:
    path = tmp_path / "long.log"
    with path.open("wb") as file:
        file.write(LINES["gc18"].encode() + b"\n")
        for _ in range(100):
            file.write(b"x" * (1 << 20))
        file.write(b"\n" + LINES["gc18"].replace("gc 1 @0.0", "gc 2 @1.0").encode() + b"\n")
    code = (
        "import sys, gctrace_analyzer as g; r = g.read(sys.argv[1]);"
        "print(r.cycles['line_no'].to_list(), r.rejected['line_no'].to_list(),"
        # Not getrusage, whose peak counts the process that this one was forked from.
        "int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0]) // 1024)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=True
    )
    lines, peak_mib = done.stdout.rsplit(" ", 1)
    assert lines == "[1, 3] [2]"
    assert int(peak_mib) < 180


def test_a_first_line_that_looks_like_zlib_is_a_line() -> None:
    assert len(read_text(f"x^2 + y^2\n{LINES['gc18']}\n").cycles) == 1
    assert len(read_text(f"x\u0680\n{LINES['gc18']}\n").cycles) == 1
    assert len(read_text(f"x\x01 control\n{LINES['gc18']}\n").cycles) == 1
    assert zlib.compress(b"")[:1] == b"x"


@pytest.mark.parametrize(
    ("data", "error", "useful"),
    [
        (b"", gca.NoDataError, "0 bytes"),
        (b"hello\nworld\n", gca.NoDataError, "First line: 'hello'.*\n.*GODEBUG=gctrace=1"),
        (b"PK\x03\x04rest", gca.UnreadableInputError, "zip archive"),
        (b"a.log".ljust(257, b"\0") + b"ustar\x0000", gca.UnreadableInputError, "tar archive"),
        (
            gzip.compress(b"a.log".ljust(257, b"\0") + b"ustar  \0", mtime=0),
            gca.UnreadableInputError,
            "tar archive",
        ),
        (b"\x7fELFrest", gca.UnreadableInputError, "executable"),
        (b"LPKSHHRHrest", gca.UnreadableInputError, "journalctl --file"),
        (random.Random(1).randbytes(5000), gca.GctraceError, ""),
    ],
)
def test_an_input_that_is_not_a_log_is_a_clear_error(
    data: bytes, error: type[Exception], useful: str
) -> None:
    with pytest.raises(error, match=f"(?s){useful}"):
        gca.read(io.BytesIO(data))


def test_a_missing_file_and_a_directory_are_clear_errors(tmp_path: Path) -> None:
    with pytest.raises(gca.UnreadableInputError, match=r"no such file.\n.*Looked for it in"):
        gca.read(tmp_path / "absent.log")
    with pytest.raises(gca.UnreadableInputError, match=r"a folder, not a log"):
        gca.read(tmp_path)


def test_strict_makes_the_first_rejected_line_an_error() -> None:
    log = f"{LINES['gc18']}\n{LINES['gc18'][:40]}\n"
    with pytest.raises(gca.UnreadableInputError, match=":2: cut short"):
        gca.read(io.BytesIO(log.encode()), strict=True)


def test_a_log_of_rejected_lines_is_a_run_without_cycles() -> None:
    run = read_text(LINES["gc18"][:40])
    assert len(run.cycles) == 0
    assert len(run.rejected) == 1
    assert not run.sources[0].ends_in_newline


@pytest.mark.parametrize(
    "text",
    [
        "> # runtime.MemStats\n> # Alloc = 8124656\n> # Sys = 71125256\n> # NumGC = 112",
        f"BenchmarkA-8\n{LINES['gc18']}\n50000000\t        28.5 ns/op",
        f"{LINES['gc18']}\n{LINES['gc18'][:40]}",
    ],
)
def test_a_last_line_is_read_the_same_without_its_line_end(text: str) -> None:
    cut, whole = (gca.read(io.BytesIO(each.encode())) for each in (text, f"{text}\n"))
    assert not cut.sources[0].ends_in_newline
    assert (cut.sources[0].kind, cut.sources[0].found) == (
        whole.sources[0].kind,
        whole.sources[0].found,
    )
    for table in ("cycles", "memstats", "benchmarks", "rejected"):
        assert_frame_equal(cut.table(table), whole.table(table))


def test_a_decompression_bomb_is_refused(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.gz"
    bomb.write_bytes(gzip.compress(b"\n" * (64 << 20)))
    with pytest.raises(UnreadableInputError, match="unpack_limit="):
        gca.read(bomb, unpack_limit="16MiB")


def test_a_document_above_the_limit_is_an_error() -> None:
    with (
        sources.Source(io.BytesIO(b"[" + b" " * 100 + b"]")) as source,
        pytest.raises(gca.UnreadableInputError, match="this kind of input is read whole"),
    ):
        source.whole(50)


def test_the_first_bytes_may_come_one_by_one() -> None:
    class Slow(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(1 if self.tell() < 20 else size)

    packed = Slow(gzip.compress(LOG))
    run = gca.read(packed)
    assert run.sources[0].compression == "gzip"
    assert len(run.cycles) == CYCLES


def test_a_line_that_is_too_long_is_cut_in_every_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "CHUNK_BYTES", 100)
    monkeypatch.setattr(sources, "LONG_LINE_BYTES", 300)
    with sources.Source(io.BytesIO(b"first\n" + b"x" * 1000 + b"\nlast\n")) as source:
        lines = b"".join(source.chunks()).split(b"\n")
    assert [lines[0], *lines[2:]] == [b"first", b"last", b""]
    assert lines[1] == b"x" * 301


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(LOG)))
    run = gca.read("-")
    assert (run.sources[0].name, len(run.cycles)) == ("<stdin>", CYCLES)


def test_a_socket_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        with pytest.raises(gca.UnreadableInputError, match="no such device"):
            gca.read("socket")


def test_an_unknown_kind_is_an_error_with_the_known_ones() -> None:
    with pytest.raises(gca.BadSettingError, match="journal"):
        gca.read(io.BytesIO(LOG), kind="jurnal")  # type: ignore[arg-type]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_letters_outside_ascii_are_read_from_windows_encodings(encoding: str) -> None:
    """The lines of the pacer contain a ∆, and a cell of its own is not two letters."""
    text = f"{LINES['gc18']}\r\n{LINES['pacer_new']}\r\n"
    run = gca.read(io.BytesIO(text.encode(encoding)))
    assert run.table("pacer")["goal_distance_bytes"].to_list() == [61224]


def test_a_log_that_powershell_began_and_another_shell_continued_is_read() -> None:
    begin = f"start\r\n{LINES['gc18']}\r\n".encode("utf-16")
    run = gca.read(io.BytesIO(begin + LOG))
    known = gca.read(io.BytesIO(LOG)).cycles
    assert run.cycles["gc_num"].to_list()[1:] == known["gc_num"].to_list()
    assert run.rejected.is_empty()


def chunks_of(data: bytes, **options: int) -> tuple[list[bytes], sources.SourceFacts]:
    with sources.Source(io.BytesIO(data), **options) as source:
        return list(source.chunks()), source.facts


def test_what_is_known_of_an_input_after_reading_it() -> None:
    data = b"\n\nfirst line\nsecond"
    chunks, facts = chunks_of(gzip.compress(data))
    assert b"".join(chunks) == data + b"\n"
    assert (facts.first, facts.ends_in_newline, facts.encoding) == (
        "first line",
        False,
        "utf-8",
    )
    assert (facts.compression, facts.bytes) == ("gzip", len(gzip.compress(data)))
    assert facts.damage is None
    _, facts = chunks_of("één\r\n".encode("utf-16"))
    assert (facts.first, facts.ends_in_newline, facts.encoding) == ("één", True, "utf-16")


@pytest.mark.parametrize("length", [119, 120, 121])
def test_a_first_line_over_120_characters_is_shortened(length: int) -> None:
    _, facts = chunks_of("é".encode() * length + b"\nnext\n")
    assert facts.first == "é" * min(length, 120) + "…" * (length > 120)


@pytest.mark.parametrize(
    ("escaped", "clean"),
    [
        (b"^[[0;1;39mred^[[0m", b"red"),
        (b"\x1b[0;31mred\x1b[0m", b"red"),
        (b"\x1b[2K\x1b[1Gprogress", b"progress"),
        (b"\x1b[?25lhidden\x1b[?25h", b"hidden"),
        (b"\x1b[1 qcursor", b"cursor"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x07", b"link"),
        (b"\x1bMup", b"up"),
        (b"\x1b]0;never ends", b"\x1b]0;never ends"),
        (b"\x1b7kept", b"\x1b7kept"),
        (b"cut \x1b[", b"cut \x1b["),
    ],
)
def test_terminal_escapes_are_removed(escaped: bytes, clean: bytes) -> None:
    chunks, _ = chunks_of(b"a " + escaped + b"\nnext \x1b[1mline\n")
    assert chunks == [b"a " + clean + b"\nnext line\n"]


def test_bytes_that_are_not_text_are_replaced() -> None:
    chunks, _ = chunks_of(b"caf\xe9\r\nna\xc3\xafve\rx\n")
    assert b"".join(chunks).decode() == "caf\ufffd\nnaïve\rx\n"


@pytest.mark.parametrize("size", [1, 5, 12, 13, 20, 1000])
def test_the_first_bytes_that_were_looked_at_are_read_again(size: int) -> None:
    data = b"line one\nline two\nline three\n"
    with sources.Source(io.BytesIO(data)) as source:
        raw, text = source.head(size)
        assert (raw, text) == (data[:size], data[:size].decode())
        assert b"".join(source.chunks()) == data
    with sources.Source(io.BytesIO(data)) as source:
        source.head(size)
        assert source.whole(len(data)) == data


def test_the_first_bytes_are_looked_at_as_clean_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "CHUNK_BYTES", 10)
    with sources.Source(io.BytesIO("\ufeffone\r\ntwo three four\r\n".encode())) as source:
        raw, text = source.head(16)
        assert len(raw) == 16
        assert text == "one\ntwo thre"


def test_a_document_may_be_as_large_as_the_limit() -> None:
    with sources.Source(io.BytesIO(b"x" * 100)) as source:
        assert source.whole(100) == b"x" * 100
    with sources.Source(io.BytesIO(b"\xef\xbb\xbf{\r\n}")) as source:
        assert source.text(100) == "{\n}"
        assert source.facts.first == "{"
    with (
        sources.Source(io.BytesIO(b"x" * (3 << 20))) as source,
        pytest.raises(UnreadableInputError, match="larger than 2 MiB") as error,
    ):
        source.whole(2 << 20)
    assert error.value.argument == "unpack_limit"


def test_the_blocks_of_a_file_end_with_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of a line would have to be copied to the next block."""
    monkeypatch.setattr(sources, "CHUNK_BYTES", 1000)
    monkeypatch.setattr(sources, "_TAIL_BYTES", 300)
    data = b"".join(b"%d %s\n" % (n, b"x" * (n % 60 + 1)) for n in range(500))
    path = tmp_path / "run.log"
    path.write_bytes(data)
    with sources.Source(path) as source:
        blocks = list(source._blocks())
    assert b"".join(blocks) == data
    assert all(block.endswith(b"\n") and 700 < len(block) <= 1000 for block in blocks[:-1])
    path.write_bytes(data + b"y" * 5000 + b"\n" + data)
    with sources.Source(path) as source:
        assert b"".join(source.chunks()) == path.read_bytes()
        assert source.facts.bytes == path.stat().st_size


@pytest.mark.parametrize(
    ("ratio", "least", "refused"), [(40, 0, False), (20, 0, True), (20, 10**6, False)]
)
def test_a_bomb_unpacks_to_more_than_a_limit_and_many_times_its_size(
    ratio: int, least: int, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "UNPACK_RATIO", ratio)
    monkeypatch.setattr(sources, "UNPACK_BYTES", least)
    data = os.urandom(3000).hex().encode() * 16 + b"\n"  # about 30 times smaller
    packed = gzip.compress(data)
    assert 20 < len(data) / len(packed) < 40
    if not refused:
        assert b"".join(chunks_of(packed)[0]) == data
        return
    with pytest.raises(
        UnreadableInputError, match=f"its {len(packed):,} bytes unpack to more"
    ) as error:
        chunks_of(packed)
    assert (error.value.argument, error.value.argument_value) == ("unpack_limit", "64GiB")


@pytest.mark.parametrize("problem", [OSError(5, "Input/output error"), OSError("disk Gone")])
def test_an_error_of_the_system_is_named(
    problem: OSError, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise problem

    monkeypatch.setattr(Path, "open", fails)
    with pytest.raises(UnreadableInputError, match=r"input/output error|disk gone") as error:
        sources.Source("run.log")
    assert "May this user read it?" in str(error.value)


def test_only_files_that_were_opened_here_are_closed(tmp_path: Path) -> None:
    given = io.BytesIO(LOG)
    with sources.Source(given) as source:
        assert source.facts.name == "<stream>"
        list(source.chunks())
    assert not given.closed
    path = tmp_path / "run.log"
    path.write_bytes(LOG)
    with sources.Source(path) as source:
        list(source.chunks())
        file = source._file
    assert file.closed
    with path.open("rb") as opened, sources.Source(opened) as source:
        assert source.facts.name == str(path)


def test_a_damaged_archive_is_read_up_to_the_damage(tmp_path: Path) -> None:
    packed = gzip.compress(
        b"".join(b"line %d %s\n" % (n, os.urandom(9).hex().encode()) for n in range(50_000))
    )
    chunks, facts = chunks_of(packed[: len(packed) // 2])
    assert b"".join(chunks).startswith(b"line 0 ")
    assert facts.damage
    with pytest.raises(UnreadableInputError, match="Fetch the file again"):
        chunks_of(packed[:12])


@pytest.mark.parametrize("before", [0, 299, 300, 301])
def test_only_lines_over_the_limit_are_cut(
    before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "CHUNK_BYTES", 64)
    monkeypatch.setattr(sources, "LONG_LINE_BYTES", 300)
    data = b"first\n" + b"x" * before + b"\nlast\n"
    lines = b"".join(chunks_of(data)[0]).split(b"\n")
    assert lines == [b"first", b"x" * before, b"last", b""]


def test_a_long_line_at_the_end_of_an_input_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "CHUNK_BYTES", 64)
    monkeypatch.setattr(sources, "LONG_LINE_BYTES", 300)
    assert b"".join(chunks_of(b"y" * 1000)[0]) == b"y" * 301 + b"\n"


def test_what_is_no_path_says_what_to_pass(tmp_path: Path) -> None:
    for wrong in (3, None):
        with pytest.raises(BadSettingError, match="an argument of its own"):
            gca.read(wrong)  # type: ignore[arg-type]
    with pytest.raises(MissingInputError, match=r"pass io\.StringIO\(text\)"):
        gca.read(LINES["gc18"] + "\n")
    with pytest.raises(
        MissingInputError,
        match=r"^the argument: the text of a log, not a path.*\n.*StringIO\(text\)",
    ):
        gca.read(f"{LINES['gc18']}\n" * 1000)
    with pytest.raises(MissingInputError, match=f"Looked for it in {re.escape(str(tmp_path))}"):
        gca.read(tmp_path / "none.log")


@pytest.fixture
def web(tmp_path: Path) -> Iterator[str]:
    """The address of a server of the files in a folder."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_url_is_read_like_a_file(web: str, tmp_path: Path) -> None:
    log = logfile(tmp_path / "run.log", [LINES["gc18"]])
    (tmp_path / "run.log.gz").write_bytes(gzip.compress(log.read_bytes()))
    for name in ("run.log", "run.log.gz"):
        run = gca.read(f"{web}/{name}?token=secret")
        assert len(run.cycles) == 1
        assert run.sources[0].name == f"{web}/{name}"


def test_a_url_that_cannot_be_fetched_is_an_error(web: str) -> None:
    with pytest.raises(UnreadableInputError, match="cannot be fetched: HTTP Error 404"):
        gca.read(f"{web}/none.log")
    with pytest.raises(UnreadableInputError, match="Connection refused"):
        gca.read("http://127.0.0.1:9/run.log")
    with pytest.raises(
        UnreadableInputError, match=r"figures at \S+:9/metrics or \S+:9/debug/vars"
    ):
        gca.read("http://127.0.0.1:9/")
    with pytest.raises(MissingInputError, match="http:// and https:// are read"):
        gca.read("s3://logs/run.log")


def test_a_parquet_file_says_how_it_is_read(tmp_path: Path) -> None:
    run = gca.read(logfile(tmp_path / "run.log", [LINES["gc18"]]))
    run.cycles.write_parquet(tmp_path / "cycles.parquet")
    with pytest.raises(UnreadableInputError, match="read_parquet"):
        gca.read(tmp_path / "cycles.parquet")
    assert repr(run).endswith(": 1 cycle, 1 process>")


def test_the_error_for_a_folder_says_how_it_is_read(tmp_path: Path) -> None:
    with pytest.raises(
        gca.UnreadableInputError, match=r"Name one file .*\n.*\n +gctrace-analyze fleet /"
    ):
        gca.read(tmp_path)


def test_a_file_may_be_named_like_the_beginning_of_a_record(tmp_path: Path) -> None:
    path = logfile(tmp_path / "gc run.log", [LINES["gc18"]])
    with contextlib.chdir(tmp_path):
        assert len(gca.read(path.name).cycles) == 1
