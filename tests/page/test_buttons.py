"""Every button, with the store looked at afterwards."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from fairlane.model.task import Status
from fairlane.service import projects, queue
from tests.page.windows import opened

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True, scope="module")
def stocked(house):
    """What every test here finds; tests of one file may run in several processes."""
    projects.add_project(house.context, "web")
    house.add({"id": "first", "prompt": "the first"})


def test_add_a_task(house, browsing):
    page = opened(browsing)
    page.get_by_role("button", name="Add task").click()
    form = page.locator("#dialog-add form")
    expect(form.get_by_label("Prompt")).to_be_focused()
    form.get_by_label("Prompt").fill("Fix the login form\nand test it")
    form.get_by_label("Project").fill("web")
    form.get_by_label("Kind").fill("review")
    form.get_by_label("Agent").fill("demo")
    form.get_by_label("Priority").fill("7")
    form.get_by_label("Group").fill("release")
    form.get_by_label("Needs").fill("first")
    form.get_by_role("button", name="Add task").click()
    told = page.locator(".toast").first
    expect(told).to_contain_text("Added")
    name = (told.get_by_role("link", name="Open it").get_attribute("href") or "").rpartition("/")[2]
    task = house.task(name)
    assert (task.prompt, task.project) == ("Fix the login form\nand test it", "web")
    assert (task.kind, task.agent, task.priority) == ("review", "demo", 7)
    assert (task.group, task.needs) == ("release", ("first",))
    expect(page.locator("#dialog-add")).to_be_hidden()


def test_what_is_refused_says_what_to_do_and_changes_nothing(house, browsing):
    before = count(house)
    page = opened(browsing, "/tasks")
    page.keyboard.press("a")
    form = page.locator("#dialog-add form")
    form.get_by_role("button", name="Add task").click()
    expect(form.get_by_role("alert")).to_have_text(
        "prompt is empty\nSay what the agent is asked to do."
    )
    form.get_by_label("Prompt").fill("x")
    form.get_by_label("Project").fill("no such one")
    form.get_by_role("button", name="Add task").click()
    expect(form.get_by_role("alert")).to_contain_text("no such one")
    assert form.get_by_label("Prompt").input_value() == "x"
    assert count(house) == before


def test_edit_sends_only_what_differs(house, browsing):
    house.add({"id": "edited", "prompt": "before", "group": "release", "needs": ["first"]})
    page = opened(browsing, "/task/edited")
    page.get_by_role("button", name="Edit", exact=True).click()
    form = page.locator("#dialog-edit form")
    form.get_by_label("Priority").fill("3")
    form.get_by_label("Prompt").fill("after")
    form.get_by_label("Not before").fill("2099-01-02T03:04:05")
    form.get_by_label("Project").fill("web")
    form.get_by_label("Group").fill("")
    form.get_by_role("button", name="Save").click()
    expect(page.locator(".toast")).to_contain_text("Changed edited.")
    task = house.task("edited")
    assert (task.prompt, task.priority, task.project, task.group) == ("after", 3, "web", None)
    assert task.not_before is not None
    assert task.needs == ("first",)
    expect(page.locator("#says")).to_contain_text("after")
    expect(page.locator("#why")).to_contain_text("first")


def test_cancel_asks_first(house, browsing):
    house.add({"id": "unwanted", "prompt": "no"})
    page = opened(browsing, "/task/unwanted")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="No", exact=True).click()
    assert house.task("unwanted").status is Status.QUEUED
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#confirm-text")).to_have_text("unwanted is taken out for good.")
    page.get_by_role("button", name="Yes").click()
    expect(page.locator("#head .status")).to_have_text("canceled")
    assert house.task("unwanted").status is Status.CANCELED
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)


def test_pause_and_resume_one_task(house, browsing):
    house.add({"id": "calm", "prompt": "later"})
    page = opened(browsing, "/task/calm")
    page.get_by_role("button", name="Pause calm").click()
    resume = page.get_by_role("button", name="Resume calm")
    expect(resume).to_be_visible()
    assert "task:calm" in house.pauses()
    resume.click()
    expect(page.get_by_role("button", name="Pause calm")).to_be_visible()
    assert "task:calm" not in house.pauses()


def test_pause_and_resume_a_project(house, browsing):
    page = opened(browsing, "/groups")
    page.get_by_role("button", name="Pause project:web").click()
    resume = page.get_by_role("button", name="Resume project:web")
    expect(resume).to_be_visible()
    assert house.pauses() == ["project:web"]
    resume.click()
    expect(page.get_by_role("button", name="Pause project:web")).to_be_visible()
    assert house.pauses() == []


def test_two_windows_stay_in_step_when_everything_is_paused(house, browsing):
    one, other = opened(browsing), opened(browsing)
    one.get_by_role("button", name="Pause everything").click()
    banner = other.locator(".notice.paused")
    expect(banner).to_contain_text("Everything is paused")
    assert house.pauses() == ["all"]
    banner.get_by_role("button", name="Resume all").click()
    expect(one.locator(".notice.paused")).to_have_count(0)
    expect(one.get_by_role("button", name="Pause everything")).to_be_visible()
    assert house.pauses() == []


def test_change_a_cap(house, browsing):
    house.policy("# mine\n[caps]\nall = 2\n")
    page = opened(browsing)
    expect(page.locator("#numbers .value").first).to_contain_text("/ 2")
    page.get_by_role("button", name="Change cap").click()
    form = page.locator("#dialog-cap form")
    expect(form.get_by_label("At most")).to_have_value("2")
    form.get_by_label("At most").fill("5")
    form.get_by_role("button", name="Set cap").click()
    expect(page.locator("#numbers .value").first).to_contain_text("/ 5")
    assert house.context.policy().caps["all"] == 5
    assert house.context.policy_file.read_text().startswith("# mine\n")
    page.get_by_role("button", name="Change cap").click()
    form.get_by_label("What").fill("kind:review")
    form.get_by_label("At most").fill("1")
    form.get_by_role("button", name="Set cap").click()
    expect(page.locator(".toast").last).to_contain_text("Cap kind:review is 1 now.")
    assert house.context.policy().caps["kind:review"] == 1


def test_a_parked_task_is_retried_from_the_overview(house, browsing):
    house.policy("[retry]\nmax_attempts = 1\n[caps]\nall = 2\n")
    house.add({"id": "hard", "prompt": "too hard", "priority": 0})
    lease = house.lease()[0]
    assert lease["task"] == "hard"
    house.fail(lease["lease"], "exit 3")
    page = opened(browsing)
    parked = page.locator("#parked li").filter(has_text="too hard")
    expect(parked).to_contain_text("exit 3")
    parked.get_by_role("button", name="Retry hard").click()
    expect(page.locator("#parked")).to_contain_text("Nothing is parked.")
    assert house.task("hard").status is Status.QUEUED


def test_an_action_that_fails_is_told_with_a_hint(house, browsing):
    house.add({"id": "gone", "prompt": "x"})
    page = opened(browsing, "/task/gone")
    page.route("**/page/live*", lambda route: route.abort())
    house.server.ask("POST", "/tasks/gone/cancel")
    page.evaluate(
        """() => { const button = document.createElement("button"); button.dataset.do = "retry";
        button.dataset.with = JSON.stringify({task: "nobody"}); document.body.append(button);
        button.click(); }"""
    )
    toast = page.locator(".toast.bad")
    expect(toast).to_contain_text("nobody")
    expect(toast.locator("p")).to_have_count(2)


def test_pausing_elsewhere_shows_here(house, browsing):
    page = opened(browsing)
    queue.pause(house.context, "kind:review", "release day")
    expect(page.locator(".notice.paused")).to_contain_text("release day")
    queue.resume(house.context, "kind:review")
    expect(page.locator(".notice.paused")).to_have_count(0)


def count(house) -> int:
    with house.context.store.read() as reading:
        return sum(each.count for each in reading.tallies())
