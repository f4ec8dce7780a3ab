"""Windows on a served home: a real browser, a real server, and the store beside them."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page

from fairlane.app import open_context
from fairlane.engine.context import Context
from fairlane.engine.end_attempt import Report
from fairlane.model.project import Pause
from fairlane.service import tasks
from tests import holder
from tests.http.served import Server
from tests.waiting import LIMIT_SECONDS

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
#: How long a browser waits for what must be shown.
MILLISECONDS = 1000 * LIMIT_SECONDS
#: Screenshots of this build.
PICTURES = Path(__file__).parents[2] / "build" / "screenshots"
DESKTOP = {"width": 1440, "height": 900}
PHONE = {"width": 360, "height": 740}


def chromium() -> str:
    """The browser of this machine; without one nothing here can be tested, and that is said."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.fail("there is no Chromium: apt-get install -y --no-install-recommends chromium")
    return found


class House:
    """A home folder, its server, and what its store says."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.context: Context = open_context(home)
        self.server = Server(home)
        self._cookies: Any = None

    def start(self) -> None:
        self.server.start()

    def kill(self) -> None:
        """The server is gone without a word."""
        os.kill(self.server.pid, signal.SIGKILL)
        self.server.stop()

    def browsing(self, browser: Browser, **options: Any) -> BrowserContext:
        """A browser that was let in by the link, once."""
        base = f"http://127.0.0.1:{self.server.port}"
        options.setdefault("viewport", DESKTOP)
        options.setdefault("reduced_motion", "reduce")  # whoever waits does not watch
        browsing = browser.new_context(base_url=base, storage_state=self._cookies, **options)
        browsing.set_default_timeout(MILLISECONDS)
        if self._cookies is None:
            page = browsing.new_page()
            page.goto(self.server.link)
            page.close()
            self._cookies = browsing.storage_state()
        return browsing

    def close(self) -> None:
        self.context.store.close()

    # The store

    def add(self, *records: Mapping[str, Any], **options: Any) -> None:
        tasks.add(self.context, records, **options)

    def lease(self, limit: int = 1) -> list[dict[str, Any]]:
        return [dict(lease) for lease in holder.lease(self.context, limit, "box")["leases"]]

    def report(self, lease: str, note: str, tokens: int = 0) -> None:
        holder.report(self.context, lease, Report((0, tokens, 0, 0)), note)

    def fail(self, lease: str, detail: str) -> None:
        holder.release(self.context, lease, "failed", Report(detail=detail))

    def finish(self, lease: str) -> None:
        holder.complete(self.context, [lease], Report((900, 100, 0, 0), 20_000))

    def policy(self, text: str) -> None:
        self.context.policy_file.write_text(text, encoding="utf-8")

    def print(self, task: str, attempt: int, text: str, stream: str = "stdout") -> None:
        """What an attempt prints."""
        folder = self.home / "runs" / task / str(attempt)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{stream}.log").open("a", encoding="utf-8") as log:
            log.write(text)

    def task(self, name: str) -> Any:
        with self.context.store.read() as reading:
            found = reading.task(name)
        assert found is not None, name
        return found

    def pauses(self) -> list[str]:
        with self.context.store.read() as reading:
            return [each.scope for each in reading.table(Pause).values()]


def opened(browsing: BrowserContext, path: str = "/") -> Page:
    """A window that has heard from the server; whatever goes wrong in it fails the test."""
    page = browsing.new_page()
    page.on("pageerror", lambda error: pytest.fail(f"{path}: {error}"))
    page.goto(path)
    page.wait_for_selector("#live.on")
    return page


def number(page: Page, name: str) -> Locator:
    """One of the big numbers."""
    cell = page.locator("#numbers dl > div").filter(has=page.locator(f"dt:text-is('{name}')"))
    return cell.locator("dd").first


def picture(page: Page, name: str) -> None:
    """Kept as a result of the build."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"{name}.png", full_page=True)
