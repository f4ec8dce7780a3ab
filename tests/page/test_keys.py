"""Everything can be reached with keys, and the focus can be seen."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.page.windows import opened

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def listed(house):
    house.add(*({"id": f"k{number}", "prompt": f"task {number}"} for number in range(3)))
    return house


def test_keys_open_dialogs_and_escape_closes_them(listed, browsing):
    page = opened(browsing)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("a")
    prompt = page.get_by_role("dialog", name="Add a task").get_by_label("Prompt")
    expect(prompt).to_be_focused()
    page.keyboard.type("a p ? / g t")  # letters in a field are letters
    expect(prompt).to_have_value("a p ? / g t")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_keys_go_to_places_and_through_lists(listed, browsing):
    page = opened(browsing)
    page.keyboard.press("g")
    page.keyboard.press("t")
    page.wait_for_url("**/tasks")
    page.wait_for_selector("#live.on")
    for key in ("j", "j", "j", "k"):
        page.keyboard.press(key)
    expect(page.locator("li:focus-within .title")).to_have_text("task 1")
    page.keyboard.press("Enter")
    page.wait_for_url("**/task/k1")
    page.wait_for_selector("#live.on")
    page.keyboard.press("g")
    page.keyboard.press("o")
    page.wait_for_url(lambda address: address.endswith("/"))


def test_find_goes_to_a_task_or_says_there_is_none(listed, browsing):
    page = opened(browsing)
    page.keyboard.press("/")
    expect(page.locator("#find")).to_be_focused()
    page.keyboard.type("k2")
    page.keyboard.press("Enter")
    page.wait_for_url("**/task/k2")
    page.wait_for_selector("#live.on")
    page.keyboard.press("/")
    page.keyboard.type("k99")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("There is no task 'k99'.")


def test_tab_shows_where_it_is_and_can_skip_the_bar(listed, browsing):
    page = opened(browsing)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("Tab")
    style = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert style == "solid"


def test_the_focus_stays_where_it_is_while_things_change(listed, browsing):
    page = opened(browsing, "/tasks")
    page.keyboard.press("j")
    expect(page.locator("li:focus-within .title")).to_be_focused()
    listed.add({"id": "late", "prompt": "late"})
    expect(page.locator(".tasklist li")).to_have_count(4)
    expect(page.locator("li:focus-within .title")).to_be_focused()


def test_the_theme_is_kept(listed, browsing):
    page = opened(browsing)
    button = page.locator("#theme")
    expect(button).to_have_attribute("aria-label", "Theme: system")
    button.click()
    button.click()
    expect(button).to_have_attribute("aria-label", "Theme: dark")
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == "rgb(11, 13, 16)"
