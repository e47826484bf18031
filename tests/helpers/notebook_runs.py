"""Runs notebooks, and compares what they show with what is committed."""

from __future__ import annotations

import base64
import json
import math
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from jupyter_client.manager import KernelManager

SECONDS = 300
"""A cell may take that long on a busy machine; all take seconds."""

PLOTLY = "application/vnd.plotly.v1+json"
_NEAR = 2e-5
_ADDRESS = re.compile(r"0x[0-9a-f]+")
_STYLE_ID = re.compile(r"T_[0-9a-f]{5}")


_FORGET = """\
import matplotlib, polars
matplotlib.rcdefaults()
polars.Config.restore_defaults()
%reset -f
"""
"""Removes what the notebook before has left in the kernel, except modules."""


@contextmanager
def shared_kernel() -> Iterator[KernelManager]:
    """A kernel for several notebooks, which load the libraries once."""
    from jupyter_client.manager import KernelManager

    kernel = KernelManager()
    try:
        yield kernel
    finally:
        if kernel.has_kernel:
            kernel.shutdown_kernel(now=True)


def executed(path: Path, kernel: KernelManager | None = None) -> Any:
    """Returns the notebook as a kernel fills it, without times and random identifiers.

    Args:
        path: the notebook.
        kernel: a kernel that other notebooks have used; a fresh one without it.
    """
    # Both take seconds to load, which other tests need not wait for.
    import nbclient
    import nbformat

    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]  # nbformat has no types for it
    client = nbclient.NotebookClient(
        notebook,
        km=kernel,
        timeout=SECONDS,
        record_timing=False,
        resources={"metadata": {"path": str(path.parent)}},
    )
    if kernel is None:
        client.execute()
    else:
        forget = nbformat.v4.new_code_cell(_FORGET)  # type: ignore[no-untyped-call]  # the same
        notebook.cells.insert(0, forget)
        client.execute()
        del notebook.cells[0]
        assert client.kc is not None
        client.kc.stop_channels()
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"{path.stem[:2]}-{number:02}"
        cell.metadata = {}
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if PLOTLY in data:
                # It loads a script from the network, and hides the picture where there is none.
                data.pop("text/html", None)
            for kind in data.keys() & {"text/plain", "text/html"}:
                data[kind] = _steady(data[kind])
    return notebook


def written(notebook: Any) -> str:
    """Returns the notebook as text, with one line for each figure instead of one per number."""
    import nbformat

    figures: list[str] = []
    whole = json.loads(nbformat.writes(notebook))  # type: ignore[no-untyped-call]  # the same
    for cell in whole["cells"]:
        for output in cell.get("outputs", []):
            if PLOTLY in output.get("data", {}):
                data = _rounded(output["data"][PLOTLY])
                output["data"][PLOTLY] = f"figure {len(figures)}"
                figures.append(json.dumps(data, separators=(",", ":"), ensure_ascii=False))
    text = json.dumps(whole, indent=1, ensure_ascii=False, sort_keys=True)
    for number, figure in enumerate(figures):
        text = text.replace(f'"figure {number}"', figure, 1)
    return text + "\n"


def _rounded(value: Any) -> Any:
    """Returns plain values with six digits, which no pixel can show."""
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _steady(text: str) -> str:
    return _STYLE_ID.sub("T_table", _ADDRESS.sub("0x0", text))


def differences(one: Any, other: Any) -> Iterator[str]:
    """Yields where two notebooks show something else: texts exactly, figures by their data."""
    for cells in zip(one.cells, other.cells, strict=True):
        if cells[0].source != cells[1].source:
            yield f"cell {cells[0]['id']} has another source"
        outputs = [_shown(cell.get("outputs", [])) for cell in cells]
        if len(outputs[0]) != len(outputs[1]):
            yield f"cell {cells[0]['id']} shows {len(outputs[1])} outputs, not {len(outputs[0])}"
            continue
        for before, after in zip(*outputs, strict=True):
            if before.keys() != after.keys():
                yield f"cell {cells[0]['id']}: {sorted(after)} in place of {sorted(before)}"
            for kind in before.keys() & after.keys():
                if not _alike(before[kind], after[kind]):
                    yield f"cell {cells[0]['id']}: another {kind}"


def _shown(outputs: list[Any]) -> list[dict[str, Any]]:
    """Returns the outputs in a form that can be compared; pixels are not."""
    found = []
    for output in outputs:
        if output.output_type == "stream":
            found.append({output.name: output.text})
            continue
        data = dict(output.data)
        if "image/png" in data:
            data["image/png"] = len(base64.b64decode(data["image/png"])) > 1000
        if PLOTLY in data:
            data[PLOTLY] = json.loads(json.dumps(data[PLOTLY]))
        found.append(data)
    return found


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(_alike(a, b) for a, b in pairs)
    if isinstance(one, float) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=_NEAR, abs_tol=_NEAR)
    return bool(one == other)
