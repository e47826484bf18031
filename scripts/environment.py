"""Creates the Python environment of the scripts: `.venv` in the checkout."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".venv"
BIN = HOME / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")

_GET_RUST = "Install it from https://rustup.rs; plain `scripts/test` tests without the core."


def ensure(extra: str = "", *, core: bool = False) -> None:
    """Installs the package in editable mode with an extra, unless that is done already.

    Args:
        extra: optional dependencies, as pyproject.toml names them.
        core: exit if the compiled core cannot be built; otherwise it is built if Rust is there.
    """
    if sys.version_info < (3, 11):  # noqa: UP036  # pyproject.toml was not checked yet
        sys.exit(f"Python 3.11 or newer is needed; this is {sys.version.split()[0]}.")
    # Without the compiled files, each program that a test starts takes most of a second longer.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    import tomllib  # Python 3.10, which gets the message above, has none.

    sources = [path for path in (ROOT / "core").glob("src/*") if path.is_file()]
    parts = (*sorted((ROOT / "core").glob("*.*")), *sorted(sources))
    # Settings of linters, tests and ceilings change nothing that is installed.
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    installed = repr((settings["build-system"], settings["project"], settings["tool"]["hatch"]))
    content = b"".join(path.read_bytes() for path in parts) + installed.encode()
    wanted = hashlib.sha256(content).hexdigest()
    marker = HOME / f"installed-{extra or 'plain'}"
    is_installed = marker.exists() and marker.read_text() == wanted
    # An installation without the core removes an older one.
    if is_installed and (not core or has_core()):
        return
    say(f"creating the environment in {HOME.relative_to(ROOT)} (once; a minute or two) …")
    if not PYTHON.exists():
        try:
            venv.create(HOME, with_pip=True, clear=HOME.exists())
        except subprocess.CalledProcessError:
            sys.exit(
                "This Python has no pip to install with (Debian: apt install python3-venv)."
            )
    _install(f"{ROOT}[{extra}]" if extra else str(ROOT), core=core)
    for done in {marker, HOME / "installed-plain"}:
        done.write_text(wanted)


def has_core() -> bool:
    """Returns whether the compiled core was built in this checkout."""
    return any((ROOT / "gctrace_analyzer").glob("_core.*"))


def _install(target: str, *, core: bool) -> None:
    environment = dict(os.environ)
    if not shutil.which("cargo"):
        # Where rustup installs it, for shells that were not started since.
        environment["PATH"] += os.pathsep + str(Path.home() / ".cargo" / "bin")
    if core:
        environment["GCTRACE_ANALYZER_CORE"] = "require"
        if not shutil.which("cargo", path=environment["PATH"]):
            sys.exit(f"The compiled core is needed here, and there is no Rust. {_GET_RUST}")
    # Most modules of the libraries are never loaded, and compiling all takes half of the time.
    quick = ("--no-compile", "--disable-pip-version-check")
    pip = (PYTHON, "-m", "pip", "install", "--quiet", *quick)
    # uv takes half of pip's time; pip also knows the indexes that are set for it alone.
    # On a terminal, uv shows what it downloads and builds.
    quiet = () if sys.stderr.isatty() else ("--quiet",)
    uv = (BIN / "uv", "pip", "install", *quiet, "--python", PYTHON, "-e", target)
    if all(
        not subprocess.run(
            [str(word) for word in words], check=False, env=environment
        ).returncode
        for words in ((*pip, "uv"), uv)
    ):
        return
    try:
        run(*pip, "-e", target, env=environment)
    except SystemExit:
        if core:
            say(f"Was it the compiled core? It needs the Rust of core/Cargo.toml. {_GET_RUST}")
        raise


def inside(extra: str = "") -> None:
    """Restarts the script in the environment, for scripts that import the package."""
    ensure(extra)
    if Path(sys.prefix).resolve() != HOME.resolve():
        os.execv(PYTHON, [str(PYTHON), *sys.argv])


def run(*command: str | Path, **settings: object) -> None:
    """Runs a command in the checkout; exits with its exit code if it fails."""
    code = subprocess.run([str(word) for word in command], cwd=ROOT, check=False, **settings)  # type: ignore[call-overload]  # passed on unchanged
    if code.returncode:
        sys.exit(code.returncode)


def browser() -> str | None:
    """Returns the path of Chromium or Chrome; None if neither is installed."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


def say(message: str) -> None:
    """Prints a progress message to standard error."""
    print(message, file=sys.stderr, flush=True)
