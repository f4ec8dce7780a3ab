"""One browser and one served home a file of tests."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.page.windows import MILLISECONDS, House, chromium

expect.set_options(timeout=MILLISECONDS)


@pytest.fixture(scope="module")
def browser():
    """While it is there its loop runs, and nobody else in this process can run one."""
    program = chromium()
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    found = House(tmp_path_factory.mktemp("home"))
    found.start()
    yield found
    found.server.stop()
    found.close()


@pytest.fixture
def browsing(house, browser):
    found = house.browsing(browser)
    yield found
    found.close()
