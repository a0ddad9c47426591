"""A headless Chromium and axe-core for the tests of the page. Both are looked for, and what is absent skips a test."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.npm import npm_package

AXE = "4.14.1"
NAMES = ("chromium", "chromium-browser", "google-chrome")
#: everything is slow where six people share two cores
PATIENCE_MS = 90_000


def chromium() -> str:
    """Debian's Chromium, or another."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium is installed (apt-get install chromium)")
    return found


def axe_script() -> str:
    """axe-core from the registry, kept in the user's cache and never in the project."""
    return (npm_package("axe-core", AXE, "axe.min.js") / "axe.min.js").read_text(encoding="utf-8")


@dataclass
class Opened:
    """A page and everything that it complained of or asked for."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def violations(self) -> list[str]:
        """What axe-core has against the page. It runs in a world of its own: the page's policy stays in force."""
        session = self.page.context.new_cdp_session(self.page)
        frame = session.send("Page.getFrameTree")["frameTree"]["frame"]["id"]
        world = session.send("Page.createIsolatedWorld", {"frameId": frame, "worldName": "axe"})
        where = {"contextId": world["executionContextId"], "returnByValue": True, "awaitPromise": True}
        session.send("Runtime.evaluate", {"expression": axe_script(), **where})
        asked = "axe.run().then((found) => JSON.stringify(found.violations.map((one) => [one.id, one.nodes[0].html])))"
        found = session.send("Runtime.evaluate", {"expression": asked, **where})
        return [f"{name}: {where_}" for name, where_ in json.loads(found["result"]["value"])]


@contextmanager
def opened(path: Path, **options: Any) -> Iterator[Opened]:
    """The file in a browser of its own."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"], timeout=PATIENCE_MS
        )
        try:
            context = browser.new_context(**options)
            context.set_default_timeout(PATIENCE_MS)
            found = Opened(context.new_page())
            found.page.on("console", lambda said: found.complaints.append(f"{said.type}: {said.text}"))
            found.page.on("pageerror", lambda error: found.complaints.append(str(error)))
            found.page.on("dialog", lambda dialog: (found.complaints.append("a dialog"), dialog.dismiss()))
            found.page.on("request", lambda request: found.requests.append(request.url))
            found.page.goto(path.as_uri())
            yield found
        finally:
            browser.close()
