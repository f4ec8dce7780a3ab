"""What a task changed, on its page: branch, merge, checks, and a diff to read."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.page.test_looks import AXE, serious
from tests.page.test_strangers import untouched
from tests.page.windows import PHONE, opened, picture
from tests.page.workshop import ANSWER, EVIL, NASTY_NAME, workshop

pytestmark = pytest.mark.slow
LEFT = "each => Math.round(each.getBoundingClientRect().left)"
TOP = "each => Math.round(each.getBoundingClientRect().top)"


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    home = tmp_path_factory.mktemp("work") / "home"
    home.mkdir()
    found = workshop(home)
    found.start()
    yield found
    found.server.stop()
    found.close()


def file_of(page, name):
    return page.locator("details.file").filter(has=page.locator(f".path:text-is('{name}')"))


def test_branch_merge_checks_and_session_are_told(house, browsing):
    page = opened(browsing, "/task/nice")
    expect(page.locator("main")).to_contain_text("48.3k tokens")  # what a cache took in counts
    expect(page.locator("#attempts tbody td").nth(4)).to_have_text("48.2k")
    work = page.locator("#work")
    expect(work).to_contain_text("fairlane/nice")
    expect(work).to_contain_text("6 files, +15 −3")
    expect(work).to_contain_text("worktrees/shop/nice")
    expect(work).to_contain_text("It changes protected files: .github/workflows/test.yml")
    expect(work.locator(".badge.warn")).to_have_text("waiting")
    expect(work.locator(".commits li")).to_contain_text("A cart refuses a count below one")
    expect(work).to_contain_text("0b7c8a51-demo")
    expect(page.locator("#answer pre")).to_have_text(ANSWER)
    checks = page.locator("#checks")
    expect(checks).to_contain_text("2 of 2 passed in attempt 1")
    expect(checks.locator("tbody tr td:first-child")).to_have_text(["python3 -c", "git diff"])
    with page.expect_response("**/page/raw?*") as answer:
        checks.get_by_role("link", name="Log of python3 -c, attempt 1").click()
    assert answer.value.text() == "41 passed\n"


def test_a_check_after_one_that_failed_was_not_run(house, browsing):
    page = opened(browsing, "/task/broken")
    results = page.locator("#checks tbody .badge")
    expect(results).to_have_text(["passed", "passed", "failed", "not run"])


def test_checks_run_again_by_a_button(house, browsing):
    page = opened(browsing, "/task/nice")
    page.locator("#checks").get_by_role("button", name="Run again").click()
    expect(page.get_by_text("All 2 checks passed.")).to_be_visible()


def test_a_diff_is_read_with_signs_numbers_and_marks(house, browsing):
    page = opened(browsing, "/task/nice")
    expect(page.locator("details.file")).to_have_count(6)
    cart = file_of(page, "src/shop/cart.py")
    expect(cart.locator(".hunk").first).to_contain_text("@@ -12,11 +12,13 @@ class Cart:")
    gone = cart.locator("del").filter(has_text="total = total")
    expect(gone.locator("i")).to_have_attribute("data-o", "21")
    expect(gone.locator(".w").first).to_have_text("= ")
    come = cart.locator("ins").filter(has_text="a count below one")
    expect(come.locator(".s")).to_have_text('"""Put something in; a count below one is refused."""')
    expect(file_of(page, ".github/workflows/test.yml").locator("summary")).to_contain_text(
        "protected"
    )
    expect(file_of(page, "docs/cart.md").locator("summary")).to_contain_text(
        "docs/old-name.md → docs/cart.md"
    )
    logo = file_of(page, "logo.bin")
    expect(logo.locator("summary")).to_contain_text("binary")
    logo.locator("summary").click()
    expect(logo).to_contain_text("its contents are not shown")


def test_side_by_side_is_kept_and_only_where_there_is_room(house, browser):
    browsing = house.browsing(browser)
    page = opened(browsing, "/task/nice")
    cart = file_of(page, "src/shop/cart.py")
    gone, come = cart.locator("del").last, cart.locator("ins").last
    assert gone.evaluate(TOP) < come.evaluate(TOP)
    page.get_by_role("button", name="Side by side").press("Enter")
    assert gone.evaluate(TOP) == come.evaluate(TOP)
    assert gone.evaluate(LEFT) < come.evaluate(LEFT)
    page.reload()
    page.wait_for_selector("#live.on")
    expect(page.locator("#diff-sides")).to_have_attribute("aria-pressed", "true")
    assert gone.evaluate(TOP) == come.evaluate(TOP)
    same = cart.locator(".block.both > .copy").first
    expect(same).to_be_visible()
    page.set_viewport_size({"width": 360, "height": 740})
    expect(page.locator("#diff-sides")).to_be_hidden()
    expect(same).to_be_hidden()
    assert gone.evaluate(TOP) < come.evaluate(TOP)
    browsing.close()


def test_hostile_names_and_contents_are_text_and_large_files_come_when_opened(house, browsing):
    page = opened(browsing, "/task/nasty")
    files = page.locator("details.file")
    expect(files).to_have_count(4)
    expect(page.locator("#changes ins")).to_have_count(0)
    evil = files.first
    shown = NASTY_NAME.replace("\u202e", r"\u202e").replace("\x1b", r"\x1b").replace("\n", r"\n")
    expect(evil.locator(".path")).to_have_text(shown)
    evil.locator("summary").click()
    expect(evil.locator("ins")).to_have_count(3)
    expect(evil.locator("ins").first).to_contain_text(f"</pre></code>{EVIL}<script>")
    expect(evil.locator("ins").first).to_contain_text(r"\x1b[31m \u202eabc\u200b")
    many = file_of(page, "many.py")
    many.locator("summary").press("Enter")
    expect(many.locator("ins")).to_have_count(3000)
    expect(many.locator(".left-out")).to_contain_text("fairlane diff nasty -- many.py")
    long = file_of(page, "long.txt")
    long.locator("summary").click()
    expect(long.locator(".left-out, ins").first).to_be_visible()
    assert len(page.content()) < 2_000_000
    assert page.evaluate("document.documentElement.scrollWidth") <= 1440
    untouched(page)


def test_without_the_script_a_diff_can_be_read(house, browser):
    browsing = house.browsing(browser, java_script_enabled=False)
    page = browsing.new_page()
    page.goto("/task/nice")
    expect(file_of(page, "web/cart.ts").locator("ins")).to_contain_text('"1 item"')
    page.goto("/task/nasty")
    many = file_of(page, "many.py")
    many.locator("summary").click()
    many.get_by_role("link", name="Show its diff").click()
    expect(many.locator("ins").first).to_have_text("line_0 = 0")
    browsing.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious_and_pictures_are_kept(house, browser, theme):
    browsing = house.browsing(browser, bypass_csp=True, color_scheme=theme)
    browsing.add_init_script(AXE)
    page = opened(browsing, "/task/nice")
    picture(page, f"changes-{theme}")
    assert not serious(page, theme)
    page.get_by_role("button", name="Side by side").click()
    picture(page, f"sides-{theme}")
    assert not serious(page, theme, "#changes")
    browsing.close()


def test_a_phone_reads_it_without_scrolling_sideways(house, browser):
    browsing = house.browsing(browser, viewport=PHONE, has_touch=True, is_mobile=True)
    for name in ("nice", "nasty"):
        page = opened(browsing, f"/task/{name}")
        page.evaluate("document.querySelectorAll('details.file').forEach(each => each.open = true)")
        expect(page.locator("#changes a.load")).to_have_count(0)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        picture(page, f"phone-{name}")
        page.close()
    browsing.close()
