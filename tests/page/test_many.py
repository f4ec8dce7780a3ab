"""A hundred thousand queued tasks: the page asks for lanes and pages, never for everything."""

from __future__ import annotations

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.page.windows import House, number, opened

pytestmark = pytest.mark.slow

MANY = 100_000
#: What a document, or a part that is sent after it, may hold.
BYTES_MAX = 120_000


def crowd(house: House) -> None:
    house.policy("[caps]\nall = 4\n")
    kinds = ("code", "review")
    for start in range(0, MANY, 25_000):
        records = (
            {"id": f"t{at}", "prompt": f"task {at}", "kind": kinds[at % 2]}
            for at in range(start, start + 25_000)
        )
        house.add(*records)
    house.lease(4)


def test_a_hundred_thousand_tasks_are_no_burden(house, context):
    crowd(house)  # once: it takes longer than everything that is looked at
    views_are_small_and_answer(context)
    filters_pages_and_buttons_work(context)
    what_is_sent_is_small(house, context)


def views_are_small_and_answer(context: BrowserContext) -> None:
    sizes = {}
    for path in ("/", "/tasks", "/tasks?held_by=caps", "/task/t77777", "/groups"):
        reply = context.request.get(path)
        assert reply.ok
        sizes[path] = len(reply.body())
    assert max(sizes.values()) < BYTES_MAX, sizes
    page = opened(context)
    assert number(page, "In flight") == 4
    assert number(page, "Held") == MANY - 4
    expect(page.locator("#holds .tally")).to_have_text(f"{MANY - 4:,}")
    assert page.locator("li").count() < 100


def filters_pages_and_buttons_work(context: BrowserContext) -> None:
    page = opened(context, "/tasks")
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


def what_is_sent_is_small(house: House, context: BrowserContext) -> None:
    page = opened(context)
    page.evaluate(
        """() => { window.heard = []; const source = new EventSource("/page/live?view=/");
        source.addEventListener("regions", (event) => window.heard.push(event.data.length)); }"""
    )
    house.add({"id": "late", "prompt": "late"})
    queued = page.locator("#numbers dl > div").nth(1).locator("dd").first
    expect(queued).to_have_text(f"{MANY - 4:,}")  # one came, one is paused
    heard = page.evaluate("window.heard")
    assert heard
    assert max(heard) < BYTES_MAX
    assert heard[-1] < heard[0] / 2, "after the first only what changed is sent"
