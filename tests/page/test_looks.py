"""How it looks: phone and desktop, light and dark; axe finds nothing serious."""

from __future__ import annotations

from importlib.resources import files
from typing import Any, Literal

import pytest
from playwright.sync_api import Page, expect

from fairlane.service import projects
from tests.page.windows import PHONE, opened, picture

pytestmark = pytest.mark.slow

AXE = (files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")
VIEWS = {"overview": "/", "tasks": "/tasks", "task": "/task/web-1", "groups": "/groups"}
DIALOGS = {"/": ("add", "cap", "keys"), "/task/web-9": ("edit",)}
MOVING = "document.getAnimations().filter(each => each.playState === 'running').length"
Theme = Literal["light", "dark"]
POLICY = """\
[caps]
all = 4
"kind:review" = 1
[retry]
max_attempts = 1
[[budget]]
scope = "all"
tokens = 900000
window = "24h"
"""


@pytest.fixture(scope="module")
def full(house):
    """A bit of everything: running, done, held, waiting, parked, a budget, groups, a cooldown."""
    house.policy(POLICY)
    for name, weight in (("web", 3), ("api", 2)):
        projects.add_project(house.context, name, {"weight": weight})
    long = "a-very-long-name-without-any-space-that-must-not-widen-the-page" * 2
    house.add(*({"id": f"web-{n}", "project": "web", "prompt": f"Task {n}"} for n in range(1, 9)))
    house.add({"id": "web-9", "project": "web", "prompt": long, "needs": ["web-8"], "group": "g"})
    house.add({"id": "api-1", "project": "api", "kind": "review", "prompt": "Look at it"})
    first = house.lease(4)
    house.finish(first[0]["lease"])
    house.fail(first[1]["lease"], f"exit 1: {long}")
    house.report(first[2]["lease"], "half of it is done", 900)
    for lease in house.lease(1):
        house.print(lease["task"], 1, "a line\n")
    return house


@pytest.fixture
def examined(full, browser):
    """A browser in which axe may be loaded, which no address of the page could do by itself."""
    found = full.browsing(browser, bypass_csp=True)
    found.add_init_script(AXE)
    yield found
    found.close()


def test_axe_finds_nothing_serious_in_any_view(examined):
    for name, path in VIEWS.items():
        page = opened(examined, path)
        for details in page.locator("details").all():
            details.locator("summary").click()
        for theme in ("light", "dark"):
            assert not serious(page, theme), f"{name}, {theme}: {serious(page, theme)}"
        page.close()


def test_axe_finds_nothing_serious_in_any_dialog(examined):
    for path, names in DIALOGS.items():
        page = opened(examined, path)
        for name in names:
            page.locator(f"[data-open={name}]").first.click()
            expect(page.get_by_role("dialog")).to_be_visible()
            for theme in ("light", "dark"):
                found = serious(page, theme, "dialog[open]")
                assert not found, f"{name}, {theme}: {found}"
            page.keyboard.press("Escape")
        page.close()


def test_axe_would_find_what_is_wrong(examined):
    page = opened(examined)
    page.evaluate("document.getElementById('find').removeAttribute('aria-label')")
    page.evaluate("document.getElementById('find').removeAttribute('placeholder')")
    assert "label" in [each["rule"] for each in serious(page, "light", "header")]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_themes_follow_the_system_and_pictures_are_kept(full, browser, theme):
    browsing = full.browsing(browser, color_scheme=theme)
    for name in ("overview", "task"):
        page = opened(browsing, VIEWS[name])
        picture(page, f"{name}-{theme}")
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == {"light": "rgb(247, 248, 249)", "dark": "rgb(11, 13, 16)"}[theme]
        page.close()
    browsing.close()


def test_a_phone_never_scrolls_sideways(full, browser):
    browsing = full.browsing(browser, viewport=PHONE, has_touch=True, is_mobile=True)
    for name, path in VIEWS.items():
        page = opened(browsing, path)
        if name == "overview":
            picture(page, "phone")
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= PHONE["width"], f"{name} is {wide} wide"
        page.close()
    page = opened(browsing)
    page.get_by_role("button", name="Add task").tap()
    box = page.get_by_role("dialog").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= PHONE["width"]
    browsing.close()


def test_a_wide_desktop_and_a_reader_without_motion(full, browser):
    size = {"width": 2560, "height": 1300}
    browsing = full.browsing(browser, viewport=size, reduced_motion="no-preference")
    page = opened(browsing)
    assert page.evaluate(MOVING) > 0
    page.emulate_media(reduced_motion="reduce")
    assert page.evaluate(MOVING) == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 2560
    picture(page, "wide")
    browsing.close()


def test_there_are_landmarks_headings_and_a_quiet_voice(full, browsing):
    page = opened(browsing)
    for role in ("banner", "main", "search"):
        expect(page.get_by_role(role)).to_have_count(1)
    assert page.get_by_role("heading", level=1).count() == 1
    expect(page.locator("#said")).to_have_attribute("aria-live", "polite")
    for name in ("Slots", "Next up", "Who ran when", "Why the rest waits", "Parked", "Limits"):
        expect(page.get_by_role("region", name=name, exact=True)).to_be_visible()
    expect(page.get_by_role("img", name="attempts in the last")).to_be_visible()


def serious(page: Page, theme: Theme, part: str = "html") -> list[dict[str, Any]]:
    """What axe calls serious or critical, in short; in the dark only colours differ."""
    page.emulate_media(color_scheme=theme)
    only = {"runOnly": ["color-contrast"]} if theme == "dark" else {}
    found = page.evaluate("([part, only]) => axe.run(part, only)", [part, only])["violations"]
    return [
        {"rule": each["id"], "where": [node["html"][:160] for node in each["nodes"][:3]]}
        for each in found
        if each["impact"] in ("serious", "critical")
    ]
