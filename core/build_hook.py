"""Builds the compiled core with the package, if this machine can; hatchling runs it.

Without Rust, or if the build fails for whatever reason, the package is installed without the core
and reads the same, only slower. The environment variable GCTRACE_ANALYZER_CORE decides otherwise:

    GCTRACE_ANALYZER_CORE=off pip install .        never build it (the wheel fits every machine)
    GCTRACE_ANALYZER_CORE=require pip install .    fail if it cannot be built
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import sys_tags

VARIABLE = "GCTRACE_ANALYZER_CORE"
MODULE = "_core.pyd" if os.name == "nt" else "_core.abi3.so"
LONGEST_S = 900
_EARLIEST = "cp311"


class CoreBuildHook(BuildHookInterface[Any]):
    """Adds the core to wheels; an editable installation gets it in the source folder."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Builds the core before the wheel is put together.

        Raises:
            SystemExit: it is required and could not be built.
        """
        setting = os.environ.get(VARIABLE, "")
        package = Path(self.root) / "gctrace_analyzer"
        if version == "editable":
            # If it is not built again, an older one must not stay: its results may differ.
            (package / MODULE).unlink(missing_ok=True)
        if setting == "off":
            return
        try:
            library = build(Path(self.root) / "core")
        except (OSError, subprocess.SubprocessError, LookupError) as err:
            if setting == "require":
                sys.exit(f"{VARIABLE}=require, but the compiled core was not built: {err}")
            self.app.display_info(f"without the compiled core: {err}")
            return
        if version == "editable":
            # Under a new name first: nobody loads half a file.
            shutil.copyfile(library, package / f"{MODULE}.new")
            (package / f"{MODULE}.new").replace(package / MODULE)
            return
        build_data["force_include"][str(library)] = f"gctrace_analyzer/{MODULE}"
        build_data["pure_python"] = False
        build_data["tag"] = f"{_EARLIEST}-abi3-{platform()}"


def build(folder: Path) -> Path:
    """Returns the library that cargo builds from the folder.

    Raises:
        LookupError: there is no Rust here, or it builds no library.
        subprocess.SubprocessError: the build failed, or took too long.
    """
    cargo = shutil.which("cargo")
    if cargo is None:
        message = "cargo was not found"
        raise LookupError(message)
    command = [cargo, "build", "--release", "--locked", "--lib", "--message-format=json"]
    # Without a network it must fail soon.
    patience = {"CARGO_NET_RETRY": "1", "CARGO_HTTP_TIMEOUT": "15"}
    # The stable interface needs no interpreter: without one, cargo does not build it again for each
    # environment. The module must not be linked to the library of one version of Python.
    python = {"PYO3_NO_PYTHON": "1", "PYO3_BUILD_EXTENSION_MODULE": "1"}
    if os.name == "nt":
        python = {"PYO3_PYTHON": sys.executable}
    linker: dict[str, str] = {}
    if sys.platform == "darwin":
        # The symbols of Python are found when the module is loaded.
        linker = {"RUSTFLAGS": "-C link-arg=-undefined -C link-arg=dynamic_lookup"}
    done = subprocess.run(
        command,
        cwd=folder,
        env={**patience, **linker, **os.environ, **python},
        stdout=subprocess.PIPE,
        timeout=LONGEST_S,
        check=True,
    )
    for line in reversed(done.stdout.splitlines()):
        message = json.loads(line)
        if message["reason"] == "compiler-artifact" and message["target"]["name"] == "_core":
            endings = (".so", ".dylib", ".dll")
            return Path(next(name for name in message["filenames"] if name.endswith(endings)))
    message = "cargo named no library"
    raise LookupError(message)


def platform() -> str:
    """Returns the platform in the name of a wheel that fits this machine."""
    names = (tag.platform for tag in sys_tags())
    return next(name for name in names if not name.startswith(("manylinux", "musllinux")))
