"""Takes the pictures of a task's page for the documents: `python -m tests.page.take_pictures HOME`.

HOME is a new folder, and the pictures show its path: `/home/ada/.local/state/fairlane`, say.
"""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.page.windows import chromium, opened
from tests.page.workshop import workshop

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
WINDOW = {"width": 1200, "height": 800}
#: After each line of the agent, so that times differ as they do in real work.
PAUSE_SECONDS = 3.0


def main() -> None:
    """The top of the page, what the agent said, and what it changed."""
    home = Path(sys.argv[1])
    home.mkdir(parents=True)
    house = workshop(home, PAUSE_SECONDS)
    house.start()
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
            page = opened(house.browsing(browser, viewport=WINDOW), "/task/nice")
            page.screenshot(path=PICTURES / "page-task.png")
            page.locator("#transcript").screenshot(path=PICTURES / "page-transcript.png")
            page.get_by_role("button", name="Side by side").click()
            page.locator("#changes").screenshot(path=PICTURES / "page-diff.png")
            browser.close()
    finally:
        house.server.stop()
        house.close()


if __name__ == "__main__":
    main()
