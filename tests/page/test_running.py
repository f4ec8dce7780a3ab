"""The demo running live: numbers move without a reload, and a lost connection comes back."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import expect

from fairlane.service import demo
from tests.http.served import ENV
from tests.page.windows import House, number, opened, picture
from tests.waiting import LIMIT_SECONDS

pytestmark = pytest.mark.slow


@contextmanager
def demo_house(home: Path) -> Iterator[House]:
    """A home where everything is ready for the demo."""
    house = House(home)
    house.policy(demo.POLICY)
    (house.home / "fairlane.toml").write_text(demo.SETTINGS, encoding="utf-8")
    demo.prepare(house.context, seconds=1.0)
    house.start()
    try:
        yield house
    finally:
        house.server.stop()
        house.close()


@contextmanager
def daemon(home: Path) -> Iterator[None]:
    """It runs until nothing is left to do."""
    words = [sys.executable, "-m", "fairlane", "--home", str(home), "run", "--until-idle"]
    null = subprocess.DEVNULL
    process = subprocess.Popen(words, env=ENV, stderr=null, stdout=null)
    try:
        yield
    finally:
        process.terminate()
        process.wait(LIMIT_SECONDS)


def test_the_demo_moves_without_a_reload(tmp_path, browser):
    with demo_house(tmp_path) as house:
        browsing = house.browsing(browser)
        page, other = opened(browsing), opened(browsing, "/tasks?status=running&status=done")
        page.evaluate("window.marker = 'same document'")
        expect(page.locator(".slot.free")).to_have_count(8)
        expect(page.locator("#next li").first).to_contain_text("weight")
        with daemon(house.home):
            busy = page.locator(".slot.busy").first
            expect(busy.locator("time")).to_have_text(re.compile(r"^\d+s$"))
            expect(page.locator(".bar.good").first).to_be_attached()
            expect(number(page, "Done today")).not_to_have_text("0")
            expect(other.locator(".status.done").first).to_be_visible()
            picture(page, "running")
            parked = page.locator("#parked")
            expect(parked).to_contain_text("Fix the race in checkout")
            expect(number(page, "Done today")).to_have_text("39")
            expect(number(page, "Parked")).to_have_text("1")
            expect(page.locator(".slot.free")).to_have_count(8)
        assert page.evaluate("window.marker") == "same document"
        browsing.close()


def test_a_lost_connection_comes_back_by_itself(house, browser):
    house.add({"id": "before", "prompt": "before"})
    browsing = house.browsing(browser)
    page = opened(browsing, "/tasks")
    page.evaluate("window.marker = 'same document'")
    expect(page.locator("[data-list] li")).to_have_count(1)
    house.kill()
    live = page.locator("#live")
    expect(live).to_have_text("Reconnecting…")
    page.get_by_role("button", name="Pause everything").click()
    expect(page.locator(".toast.bad")).to_contain_text("The server cannot be reached.")
    house.add({"id": "meanwhile", "prompt": "meanwhile"})
    house.start()
    expect(live).to_have_text("Live")
    expect(page.locator("[data-list] li")).to_have_count(2)
    assert page.evaluate("window.marker") == "same document"
    page.get_by_role("button", name="Pause everything").click()
    expect(page.get_by_role("button", name="Resume everything")).to_be_visible()
    assert house.pauses() == ["all"]
    browsing.close()


def test_a_stopped_server_does_not_wait_for_windows(house, browser):
    browsing = house.browsing(browser)
    page = opened(browsing)
    assert house.server.stop() in (0, 143)
    expect(page.locator("#live")).to_have_text("Reconnecting…")
    house.start()
    expect(page.locator("#live")).to_have_text("Live")
    browsing.close()


def test_whoever_is_let_in_no_more_is_told_how_to_come_back(house, browser):
    browsing = house.browsing(browser)
    page = opened(browsing)
    browsing.clear_cookies()
    house.kill()
    house.start()
    expect(page.locator("#live")).to_have_text("Signed out: `fairlane link` lets you in")
    browsing.close()
