"""A real Chromium that drives the app; skipped, with the reason, where there is none."""

import os
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from c3prof.app.run import Run
from c3prof.app.server import bound_socket, wsgi_server
from tests.conftest import ROOT

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--no-first-run"]
QUIET = ("ResizeObserver loop", "net::ERR_ABORTED")
"""What browsers say of things that are in order: a layout that settles, a request whose page was left."""


@pytest.fixture(scope="session")
def chromium():
    path = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("no Chromium on PATH (Debian: apt install chromium)")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium) -> Iterator["Page"]:
    context = chromium.new_context(viewport={"width": 1400, "height": 900}, color_scheme="light")
    yield Page(context.new_page())
    context.close()


class Page:
    """A tab that remembers what went wrong in it: console errors, script errors, requests that failed or left this machine."""

    def __init__(self, tab):
        self.tab, self.problems = tab, []
        tab.on("console", lambda message: self.problems.append(message.text) if message.type in ("error", "warning") else None)
        tab.on("pageerror", lambda error: self.problems.append(str(error)))
        tab.on("requestfailed", lambda request: self.problems.append(f"{request.url}: {request.failure}"))
        tab.on("request", lambda request: None if request.url.startswith(LOCAL) else self.problems.append(f"asked {request.url}"))
        tab.on("dialog", lambda dialog: (self.problems.append(f"dialog {dialog.message}"), dialog.dismiss()))

    def open(self, address: str, selector: str = ".page") -> None:
        self.tab.goto(address)
        self.tab.wait_for_selector(selector, timeout=60_000)

    def until(self, condition: str, seconds: float = 30) -> None:
        """Waits until a condition holds. The tab's policy forbids the eval that playwright's own wait would use."""
        end = time.monotonic() + seconds
        while not self.tab.evaluate(condition):
            assert time.monotonic() < end, f"after {seconds} s not yet: {condition}"
            self.tab.wait_for_timeout(50)

    def shot(self, name: str) -> None:
        """A screenshot among the artefacts."""
        folder = Path(os.environ.get("C3PROF_ARTIFACTS", ROOT / "artifacts"))
        folder.mkdir(parents=True, exist_ok=True)
        self.tab.screenshot(path=folder / f"{name}.png", full_page=True)

    def is_clean(self) -> None:
        """No problem but those that browsers report about nothing."""
        assert [problem for problem in self.problems if not any(quiet in problem for quiet in QUIET)] == []


LOCAL = ("http://127.0.0.1:", "data:", "blob:", "file:", "about:")


@contextmanager
def served(run: Run, other: Run | None = None, token: str | None = None) -> Iterator[str]:
    """The address at which a run is served while the block lasts."""
    listener = bound_socket("127.0.0.1", 0)
    server = wsgi_server(run, other, listener, host="127.0.0.1", token=token)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()
        listener.close()
