"""A hundred thousand queued tasks: the page asks for lanes and pages, never for everything."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.sync_api import BrowserContext, expect

from fairlane.model.task import Task
from fairlane.store.base import Placed
from tests.page.windows import House, number, opened
from tests.waiting import until

pytestmark = pytest.mark.slow

MANY = 100_000
#: What a document, or a part that is sent after it, may hold.
BYTES_MAX = 120_000


def crowd(house: House) -> None:
    """Straight into the store: intake has tests of its own, and takes four times as long."""
    house.policy("[caps]\nall = 4\n")
    kinds, now = ("code", "review"), house.context.now()
    first = Task("", project="default", created_at=now, ready_since=now)
    with house.context.store.write() as tx:
        seq = tx.number("seq", MANY)
        for start in range(0, MANY, 10_000):
            some = range(start, start + 10_000)
            tx.insert([
                Placed(replace(first, id=f"t{at}", seq=seq + at, title=f"{at}", kind=kinds[at % 2]))
                for at in some
            ])  # fmt: skip
    house.lease(4)


def test_a_hundred_thousand_tasks_are_no_burden(house, browsing):
    crowd(house)  # once: it takes longer than everything that is looked at
    views_are_small_and_answer(browsing)
    filters_pages_and_buttons_work(browsing)
    what_is_sent_is_small(house, browsing)


def views_are_small_and_answer(browsing: BrowserContext) -> None:
    sizes = {}
    for path in ("/", "/tasks", "/tasks?held_by=caps", "/task/t77777", "/groups"):
        reply = browsing.request.get(path)
        assert reply.ok
        sizes[path] = len(reply.body())
    assert max(sizes.values()) < BYTES_MAX, sizes
    page = opened(browsing)
    expect(number(page, "In flight")).to_have_text("4 / 4")
    expect(number(page, "Held")).to_have_text(f"{MANY - 4:,}")
    expect(page.locator("#holds .tally")).to_have_text(f"{MANY - 4:,}")
    assert page.locator("li").count() < 100


def filters_pages_and_buttons_work(browsing: BrowserContext) -> None:
    page = opened(browsing, "/tasks")
    rows = page.locator("[data-list] > li")
    expect(rows).to_have_count(50)
    page.locator("#filters").get_by_label("Kind").select_option("review")
    page.wait_for_url("**/tasks?kind=review*")
    expect(rows.first).to_contain_text("review")
    page.get_by_role("link", name="Next page").click()
    page.wait_for_url("**cursor=*")
    expect(rows.first).to_contain_text("t101")
    page.locator("#find").fill("t77777")
    page.keyboard.press("Enter")
    page.wait_for_url("**/task/t77777")
    expect(page.locator("#why")).to_contain_text("full: 4 of 4 in flight")
    page.wait_for_selector("#live.on")
    page.get_by_role("button", name="Pause t77777").click()
    expect(page.get_by_role("button", name="Resume t77777")).to_be_visible()


def what_is_sent_is_small(house: House, browsing: BrowserContext) -> None:
    page = opened(browsing)
    page.evaluate(
        """() => {
            window.heard = [];
            const source = new EventSource("/page/live?view=/");
            source.addEventListener("regions", (event) => {
                const parts = Object.keys(JSON.parse(event.data)).length;
                window.heard.push([event.data.length, parts]);
            });
        }"""
    )
    until(lambda: page.evaluate("window.heard.length"))
    house.add({"id": "late", "prompt": "late"})
    until(lambda: page.evaluate("window.heard.length") > 1)
    expect(number(page, "Ready")).to_have_text(f"{MANY - 4:,}")  # one came, one is paused
    heard = page.evaluate("window.heard")
    assert max(size for size, _ in heard) < BYTES_MAX
    assert heard[0][1] == 12, "all parts first"
    assert heard[-1][1] < 12, "then only those that changed"
