"""The collections of tests/corpus: one archive each, unpacked next to it."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import tarfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "corpus"
ENDING = ".tar.gz"


def names() -> list[str]:
    """Returns the names of the collections."""
    return sorted(path.name.removesuffix(ENDING) for path in FOLDER.glob(f"*{ENDING}"))


def unpack_all() -> None:
    """Unpacks what is not unpacked yet, or was from an older archive."""
    for name in names():
        unpack(name)


def unpack(name: str) -> None:
    """Unpacks a collection, unless that is done; files that were added to its folder stay.

    Several programs may do so at the same time.
    """
    data = _archive(name).read_bytes()
    folder, wanted = FOLDER / name, hashlib.sha256(data).hexdigest()
    state = _state(name)
    before = json.loads(state.read_text()) if state.exists() else {"files": []}
    # Files may be missing after a checkout of a commit that had them as files.
    if before.get("sha256") == wanted and all(
        (folder / path).exists() for path in before["files"]
    ):
        return
    files = contents(data)
    for gone in set(before["files"]) - files.keys():
        (folder / gone).unlink(missing_ok=True)
    for path, content in files.items():
        _write(folder / path, content)
    _write(state, json.dumps({"sha256": wanted, "files": sorted(files)}).encode())


def contents(archive: bytes) -> dict[str, bytes]:
    """Returns the files of an archive by their paths."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        members = [member for member in tar.getmembers() if member.isfile()]
        return {member.name: tar.extractfile(member).read() for member in members}  # type: ignore[union-attr]  # they are files


def pack(name: str) -> list[str]:
    """Writes the archive of a collection from its folder; returns what changed, in words."""
    folder, archive = FOLDER / name, _archive(name)
    files = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    old = contents(archive.read_bytes()) if archive.exists() else {}
    if files == old:
        return []
    data = packed(files)
    _write(archive, data)
    state = {"sha256": hashlib.sha256(data).hexdigest(), "files": sorted(files)}
    _write(_state(name), json.dumps(state).encode())
    changed = [path for path in files.keys() & old.keys() if files[path] != old[path]]
    return [
        *(f"added {path}" for path in sorted(files.keys() - old.keys())),
        *(f"changed {path}" for path in sorted(changed)),
        *(f"removed {path}" for path in sorted(old.keys() - files.keys())),
    ]


def packed(files: dict[str, bytes]) -> bytes:
    """Returns an archive that depends on the files alone, not on who packs it and when."""
    tar_bytes = io.BytesIO()
    with tarfile.open(fileobj=tar_bytes, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path, content in sorted(files.items()):
            member = tarfile.TarInfo(path)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return gzip.compress(tar_bytes.getvalue(), mtime=0)


def _archive(name: str) -> Path:
    return FOLDER / f"{name}{ENDING}"


def _state(name: str) -> Path:
    """Returns the file with the hash of the archive that was unpacked and the files from it."""
    return FOLDER / f".{name}.unpacked"


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    partial.write_bytes(data)
    partial.replace(path)
