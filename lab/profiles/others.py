"""What else is handed over as a profile: other kinds, other languages, damaged files."""

from __future__ import annotations

import gzip
import io
import re
import subprocess
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from lab.own import HERE
from lab.profiles.programs import BUILT, built, go
from lab.profiles.recorder import environment, fetched, reports

FETCHED = {
    "heap.pb.gz": "heap",
    "allocs.pb.gz": "allocs",
    "heap.txt": "heap?debug=1",
    "allocs.txt": "allocs?debug=1",
    "goroutine.pb.gz": "goroutine",
    "goroutine.txt": "goroutine?debug=1",
    "goroutine-stacks.txt": "goroutine?debug=2",
    "mutex.pb.gz": "mutex",
    "block.pb.gz": "block",
    "threadcreate.pb.gz": "threadcreate",
    "cpu.pb.gz": "profile?seconds=5",
}
SECONDS_BEFORE = 3

IS = {
    "heap.pb.gz": "Go heap",
    "allocs.pb.gz": "Go heap",
    "heap.pb": "Go heap",
    "heap.txt": "Go heap",
    "allocs.txt": "Go heap",
    "test-memprofile.out": "Go heap",
    "goroutine.pb.gz": "Go goroutine",
    "goroutine.txt": "Go goroutine",
    "goroutine-stacks.txt": "Go goroutine, stacks in full",
    "cpu.pb.gz": "Go CPU",
    "mutex.pb.gz": "Go mutex",
    "block.pb.gz": "Go block",
    "threadcreate.pb.gz": "Go threadcreate",
    "profiles.zip": "Go heap, twice",
    "folder": "Go heap, twice",
    "truncated.pb.gz": "truncated",
    "truncated.pb": "truncated",
    "empty.pb.gz": "empty",
    "empty-inside.pb.gz": "empty",
    "without-samples.pb.gz": "Go heap without samples",
    "java-allocations.pb.gz": "Java",
    "java-flight-recorder.pb.gz": "Java",
    "native-malloc.pb.gz": "C++",
    "recording.jfr": "Java Flight Recorder",
    "perf.data": "perf",
}
"""What each file is."""

PERF_DATA = b"PERFILE2" + (104).to_bytes(8, "little") + (144).to_bytes(8, "little") + bytes(160)
"""The begin of perf.data: magic, sizes of the header and an attribute (perf/util/header.h)."""
FLIGHT_RECORDING = b"FLR\0" + bytes([0, 2, 0, 1]) + bytes(60)
"""The begin of a chunk of JDK Flight Recorder: magic, major and minor version."""


def record_others(folder: Path) -> list[dict[str, Any]]:
    """Writes all of `IS` into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    fetch(folder)
    heap = (folder / "heap.pb.gz").read_bytes()
    raw = gzip.decompress(heap)
    (folder / "heap.pb").write_bytes(raw)
    (folder / "truncated.pb.gz").write_bytes(heap[: len(heap) * 2 // 3])
    (folder / "truncated.pb").write_bytes(raw[: len(raw) * 2 // 3])
    (folder / "empty.pb.gz").write_bytes(b"")
    (folder / "empty-inside.pb.gz").write_bytes(gzip.compress(b"", mtime=0))
    (folder / "perf.data").write_bytes(PERF_DATA)
    (folder / "recording.jfr").write_bytes(FLIGHT_RECORDING)
    go(["run", ".", str(folder)], HERE / "go" / "foreign")
    test_profile(folder / "test-memprofile.out")
    together(folder)
    return [{"name": name, "is": kind} for name, kind in IS.items()]


def fetch(folder: Path) -> None:
    """Fetches every profile of a server, and what pprof makes of some of them."""
    program = built("requests")
    with tempfile.NamedTemporaryFile() as errors:
        server = subprocess.Popen(
            [program, "-seconds", "0", "-pprof", "127.0.0.1:0"],
            env=environment(),
            stderr=errors,
        )
        try:
            address = None
            while not address:
                text = Path(errors.name).read_text()
                address = re.search(r"http://\S+/debug/pprof/", text)
            fetched(f"{address[0]}profile?seconds={SECONDS_BEFORE}")
            for name, path in FETCHED.items():
                (folder / name).write_bytes(fetched(address[0] + path))
        finally:
            server.terminate()
            server.wait()
    reports(folder / "heap.pb.gz", folder / "pprof-heap")
    for name in ("heap.txt", "allocs.txt"):
        # The text has addresses and comments; pprof takes the names from the executable.
        top = ["-sample_index=alloc_space", "-unit=B", "-nodefraction=0", "-top"]
        text = go(["tool", "pprof", *top, str(program), str(folder / name)], BUILT)
        (folder / "pprof-heap" / f"{name}.alloc_space.txt").write_text(text)
    cpu = go(["tool", "pprof", "-top", "-nodefraction=0", str(folder / "cpu.pb.gz")], BUILT)
    (folder / "pprof-heap" / "cpu.txt").write_text(cpu)


def test_profile(path: Path) -> None:
    """Writes the profile of `go test -memprofile`."""
    with tempfile.TemporaryDirectory() as scratch:
        words = ["-run=^$", "-bench=Record", "-benchtime=4000x", f"-memprofile={path}"]
        go(
            ["test", "-trimpath", "-o", f"{scratch}/ledger.test", *words, "."],
            HERE / "go" / "ledger",
        )


def together(folder: Path) -> None:
    """Writes two profiles into a zip, and the same two into a folder."""
    data = io.BytesIO()
    (folder / "folder").mkdir(exist_ok=True)
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("heap.pb.gz", "allocs.pb.gz"):
            content = (folder / name).read_bytes()
            # A fixed time, so that the archive depends on its contents alone.
            archive.writestr(zipfile.ZipInfo(f"profiles/{name}"), content)
            (folder / "folder" / name).write_bytes(content)
    (folder / "profiles.zip").write_bytes(data.getvalue())
