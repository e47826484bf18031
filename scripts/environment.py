"""Makes the Python environment the scripts run in: `.venv` in the checkout."""

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


def ensure(extra: str = "") -> None:
    """Installs the package, editable, with an extra; at once if nothing has changed."""
    if sys.version_info < (3, 11):  # noqa: UP036  # nothing has looked at pyproject.toml yet
        sys.exit(f"Python 3.11 or newer is needed; this is {sys.version.split()[0]}.")
    wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    stamp = HOME / f"installed-{extra or 'plain'}"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    say(f"making the environment in {HOME.relative_to(ROOT)} (once) …")
    if not PYTHON.exists():
        try:
            venv.create(HOME, with_pip=True, clear=HOME.exists())
        except subprocess.CalledProcessError:
            sys.exit(
                "This Python has no pip to install with (Debian: apt install python3-venv)."
            )
    target = f"{ROOT}[{extra}]" if extra else str(ROOT)
    run(PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-e", target)
    for done in {stamp, HOME / "installed-plain"}:
        done.write_text(wanted)


def inside(extra: str = "") -> None:
    """Goes on in the environment, for scripts that load the package themselves."""
    ensure(extra)
    if Path(sys.prefix).resolve() != HOME.resolve():
        os.execv(PYTHON, [str(PYTHON), *sys.argv])


def run(*command: str | Path, **settings: object) -> None:
    """Runs a command in the checkout; ends this script with its exit code if it fails."""
    code = subprocess.run([str(word) for word in command], cwd=ROOT, check=False, **settings)  # type: ignore[call-overload]  # passed on as they are
    if code.returncode:
        sys.exit(code.returncode)


def browser() -> str | None:
    """Chromium as Debian names it, or as others do; None if there is none."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


def say(message: str) -> None:
    """Tells what is going on, apart from results."""
    print(message, file=sys.stderr, flush=True)
