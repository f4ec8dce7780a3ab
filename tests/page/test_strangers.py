"""What users and agents write is shown as text, wherever it is shown."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from fairlane.service import queue
from tests.page.windows import PHONE, opened, picture

pytestmark = pytest.mark.slow

EVIL = "<img src=x onerror=window.caught=1><script>window.caught=1</script>"
ESCAPES = "\x1b[31mred\x1b]0;title\x07 \u202eabc"
SHOWN = r"\x1b[31mred\x1b]0;title\x07 \u202eabc"


@pytest.fixture(scope="module")
def strange(house):
    """A running and a parked task with everything that should do harm."""
    house.policy("[retry]\nmax_attempts = 1\n")
    house.add({"id": "evil", "title": EVIL, "prompt": f"{EVIL}\n{ESCAPES}"})
    house.add({"id": "worse", "title": ESCAPES, "prompt": EVIL})
    leases = {each["task"]: each["lease"] for each in house.lease(2)}
    house.report(leases["evil"], f"{EVIL} {ESCAPES}")
    house.print("evil", 1, f"{EVIL}\n{ESCAPES}\n")
    house.print("evil", 1, "to stderr\n", "stderr")
    house.fail(leases["worse"], f"{EVIL} {ESCAPES}")
    queue.pause(house.context, "kind:review", EVIL)
    return house


def test_titles_notes_and_reasons_are_text(strange, browsing):
    page = opened(browsing)
    slot = page.locator(".slot.busy")
    expect(slot.locator(".title")).to_have_text(EVIL)
    expect(slot.locator(".line")).to_have_text(f"{EVIL} {SHOWN}")
    expect(page.locator("#parked .title")).to_have_text(SHOWN)
    expect(page.locator("#parked .reason")).to_contain_text(EVIL)
    expect(page.locator(".notice.paused")).to_contain_text(EVIL)
    page.locator(".bar").first.hover()
    expect(page.locator("#tip")).to_contain_text("evil")
    untouched(page)
    picture(page, "strangers")


def test_a_task_and_its_log_are_text(strange, browsing):
    page = opened(browsing, "/task/evil")
    expect(page.locator("h1")).to_have_text(EVIL)
    expect(page.locator("#says .prompt")).to_contain_text(SHOWN)
    log = raw_output(page)
    expect(log).to_have_text(f"{EVIL}\n{SHOWN}\n")
    strange.print("evil", 1, "one more line\n")
    expect(log).to_contain_text("one more line")
    assert log.evaluate("pre => [...pre.childNodes].every(each => each.nodeType === 3)")
    page.get_by_label("stderr").check()
    expect(log).to_have_text("to stderr\n")
    untouched(page)


def test_a_long_log_is_followed_until_somebody_reads(strange, browsing):
    strange.print("evil", 1, "".join(f"line {number}\n" for number in range(400)))
    page = opened(browsing, "/task/evil")
    log = raw_output(page)
    expect(log).to_contain_text("line 399")
    at_end = "pre => pre.scrollTop + pre.clientHeight >= pre.scrollHeight - 2"
    assert log.evaluate(at_end)
    page.locator("#log-follow").uncheck()
    log.evaluate("pre => { pre.scrollTop = 0; }")
    strange.print("evil", 1, "the very last\n")
    expect(log).to_contain_text("the very last")
    assert log.evaluate("pre => pre.scrollTop") == 0


def test_lists_and_addresses_are_text(strange, browsing):
    page = opened(browsing, f"/tasks?group={EVIL}&find={EVIL}")
    expect(page.get_by_role("alert")).to_contain_text("There is no task")
    untouched(page)
    page = opened(browsing, "/tasks")
    expect(page.locator(".tasklist .title").first).to_have_text(EVIL)
    untouched(page)
    answer = page.goto(f"/task/{EVIL}")
    assert answer is not None
    assert answer.status == 404
    expect(page.locator("main")).to_contain_text(EVIL)
    untouched(page)


def untouched(page) -> None:
    assert page.evaluate("window.caught") is None
    assert page.locator("main img, main script").count() == 0


def test_a_link_on_another_site_opens_the_page(house, browser):
    link = house.server.call("POST", "/api/v1/links", {}).document["path"]
    base = f"http://127.0.0.1:{house.server.port}"
    chat = f"<a href='{base}{link}'>open</a>"
    with browser.new_context() as stranger:
        stranger.route("http://chat.example/", lambda route: route.fulfill(body=chat))
        page = stranger.new_page()
        for _ in range(2):  # the second click finds the cookie
            page.goto("http://chat.example/")
            page.set_content(chat)
            page.get_by_text("open").click()
            expect(page).to_have_title("Overview · Fairlane")


def test_a_long_name_fits_a_phone(house, browser):
    house.add({"id": "a" * 60, "prompt": "x", "title": "many words " * 900})
    browsing = house.browsing(browser, viewport=PHONE)
    page = opened(browsing, f"/task/{'a' * 60}")
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    browsing.close()


def raw_output(page):
    """The text as it was printed; the page folds it."""
    page.locator("#log-open > summary").click()
    return page.locator("#log-text")
