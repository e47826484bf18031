"""A real browser, and pages opened in it."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")


def the_browser() -> str | None:
    """Chromium as Debian names it, or as others do."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        path = the_browser() or playwright.chromium.executable_path
        if not os.access(path, os.X_OK):
            pytest.skip("no Chromium here: `scripts/test --all` installs it")
        # Containers run tests as root and give Chromium no sandbox of its own.
        launched = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield launched
        launched.close()


@contextmanager
def opened(
    browser: Any, path: Path, address: str = "", **settings: Any
) -> Iterator[tuple[Any, list[str]]]:
    """The page of a report, and what it complained of or asked of the network."""
    context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **settings})
    page, wrong = context.new_page(), []
    page.on("console", lambda said: wrong.append(f"{said.type}: {said.text}"))
    page.on("pageerror", lambda error: wrong.append(str(error)))

    def dismissed(dialog: Any) -> None:
        wrong.append("a dialog")
        dialog.dismiss()

    page.on("dialog", dismissed)
    page.on(
        "request",
        lambda request: (
            None
            if request.url.startswith(("file:", "data:", "blob:"))
            else wrong.append(request.url)
        ),
    )
    page.goto(path.as_uri() + address)
    yield page, wrong
    context.close()
