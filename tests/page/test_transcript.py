"""What the agent said, on a task's page: live, folded, searchable, bounded, and as text."""

from __future__ import annotations

import os
import sys

import pytest
from playwright.sync_api import expect

from fairlane.engine.end_attempt import Report
from fairlane.service.transcript_parts import ENTRIES, part
from tests import holder
from tests.page.said import ended, many, result, said, tool
from tests.page.test_running import daemon
from tests.page.test_strangers import ESCAPES, EVIL, SHOWN, untouched
from tests.page.windows import PHONE, House, opened, picture
from tests.waiting import until

pytestmark = pytest.mark.slow
LONG = "\n".join(f"test {number} passed" for number in range(40))
AT_END = "box => box.scrollTop + box.clientHeight >= box.scrollHeight - 2"


@pytest.fixture(scope="module")
def talking(house):
    """A task whose agent has said something of every kind, and one that talks without end."""
    house.policy('[retry]\nmax_attempts = 3\nbase = "1ms"\n[caps]\nall = 20\n')
    for name in ("talk", "grow", "huge", "evil", "again"):
        house.add({"id": name, "prompt": f"Do {name}", "agent": "claude"})
    leases = {each["task"]: each["lease"] for each in house.lease(20)}
    house.print("talk", 1, said("I look at the tests first.") + tool("Bash", command="make test"))
    house.print("talk", 1, result(LONG) + tool("Read", file_path="src/parser.py") + result("x"))
    house.print("talk", 1, said("It is fixed.") + ended("All 40 tests pass now."))
    done = Report((900, 100, 0, 0), result={"answer": "All 40 tests pass now."})
    holder.complete(house.context, [leases["talk"]], done)
    house.print("grow", 1, said("I begin."))
    house.print("huge", 1, many(range(3000)))
    house.print("evil", 1, said(f"{EVIL}{ESCAPES}") + tool(EVIL, command=f"{EVIL} {ESCAPES}"))
    house.print("evil", 1, result(f"{EVIL}\n{ESCAPES}\n") + f"{EVIL} no JSON\n" + "\x00\xff\n")
    house.print("again", 1, said("The first try."))
    house.fail(leases["again"], "exit 1")
    return house


def test_what_was_said_and_done_stands_there_with_the_answer_apart(talking, browsing):
    page = opened(browsing, "/task/talk")
    expect(page.locator("#answer pre")).to_have_text("All 40 tests pass now.")
    entries = page.locator("#entries > li")
    expect(entries).to_have_count(8)
    expect(page.locator(".entry.tool").first).to_have_text("Bash make test")
    expect(page.locator(".entry.tool").last).to_have_text("Read src/parser.py")
    expect(page.locator(".entry.turn")).to_contain_text("900 in, 100 out, 3.0k cached")
    expect(page.locator(".entry.answer")).to_contain_text("All 40 tests pass now.")
    assert not page.get_by_text("Detail", exact=True).count()


def test_a_result_is_one_line_that_opens(talking, browsing):
    page = opened(browsing, "/task/talk")
    folded = page.locator(".entry.result details")
    expect(folded.locator("summary")).to_contain_text("test 0 passed 40 lines")
    expect(folded.locator("pre")).to_be_hidden()
    folded.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(folded.locator("pre")).to_contain_text("test 39 passed")
    page.keyboard.press("Enter")
    expect(folded.locator("pre")).to_be_hidden()


def test_a_filter_hides_the_rest_and_opens_what_it_finds(talking, browsing):
    page = opened(browsing, "/task/talk")
    page.keyboard.press("f")
    expect(page.locator("#transcript-find")).to_be_focused()
    page.keyboard.type("TEST 39")
    expect(page.locator("#entries > li:visible")).to_have_count(1)
    expect(page.locator(".entry.result pre").first).to_be_visible()
    expect(page.locator("#transcript-about")).to_have_text("1 of 8 entries")
    page.keyboard.press("Escape")
    expect(page.locator("#entries > li:visible")).to_have_count(8)
    expect(page.locator(".entry.result pre").first).to_be_hidden()


def test_it_grows_while_the_agent_works_and_is_followed_until_somebody_reads(talking, browsing):
    page = opened(browsing, "/task/grow")
    expect(page.locator("#entries")).to_have_text("I begin.")
    talking.print("grow", 1, many(range(30)) + tool("Bash", command="sleep"))
    expect(page.locator(".entry.tool")).to_have_text("Bash sleep")
    box = page.locator("#transcript-box")
    assert box.evaluate(AT_END)
    page.locator("#transcript-follow").uncheck()
    box.evaluate("box => { box.scrollTop = 0; }")
    talking.print("grow", 1, said("Much later."))
    expect(page.locator(".entry.said").last).to_have_text("Much later.")
    assert box.evaluate("box => box.scrollTop") == 0
    expect(page.locator("#entries > li")).to_have_count(33)


def test_a_window_holds_few_entries_and_reads_earlier_ones_when_asked(talking, browsing):
    page = opened(browsing, "/task/huge")
    entries = page.locator("#entries > li")
    expect(entries).to_have_count(ENTRIES)
    expect(entries.first).to_have_text("word number 2800")
    page.get_by_role("link", name="Show earlier").click()
    expect(entries).to_have_count(2 * ENTRIES)
    expect(entries.first).to_have_text("word number 2600")
    page.locator("#transcript-find").fill("number 1999")
    expect(page.locator("#entries > li:visible")).to_have_count(0)
    page.keyboard.press("Enter")  # nothing here fits: it looks further back
    expect(page.locator("#entries > li:visible")).to_have_text("word number 1999")
    page.locator("#transcript-find").fill("")
    talking.print("huge", 1, many(range(3000, 5000)))
    expect(entries.last).to_have_text("word number 4999")
    assert entries.count() < 1500


def test_parts_are_bounded_and_fit_each_other(talking):
    found = part(talking.context, "huge")
    seen = [entry["text"] for _, entry in found.entries]
    while found.start:
        found = part(talking.context, "huge", before=found.start)
        assert len(found.entries) <= ENTRIES
        seen = [entry["text"] for _, entry in found.entries] + seen
    assert seen == [f"word number {number}" for number in range(len(seen))]
    assert len(seen) >= 3000
    ahead = part(talking.context, "huge", cursor="0.0.1")
    assert [entry["text"] for _, entry in ahead.entries] == seen[:ENTRIES]


def test_attempts_can_be_chosen_and_the_file_is_one_click_away(talking, browsing):
    until(talking.lease)
    talking.print("again", 2, said("The second try."))
    page = opened(browsing, "/task/again")
    expect(page.locator("#entries")).to_have_text("The second try.")
    page.get_by_role("link", name="Attempt 1", exact=True).click()
    expect(page.locator("#entries")).to_have_text("The first try.")
    page.wait_for_selector("#live.on")
    talking.print("again", 2, said("It goes on."))
    raw = page.get_by_role("link", name="Raw file")
    with page.expect_response("**/page/raw?*") as answer:
        raw.click()
    assert answer.value.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.value.headers["x-content-type-options"] == "nosniff"
    assert answer.value.text() == said("The first try.")


def test_what_agents_write_is_text(talking, browsing):
    page = opened(browsing, "/task/evil")
    expect(page.locator(".entry.said")).to_have_text(f"{EVIL}{SHOWN}")
    expect(page.locator(".entry.tool")).to_have_text(f"{EVIL} {EVIL} {SHOWN}")
    page.locator(".entry.result summary").click()
    expect(page.locator(".entry.result pre")).to_have_text(f"{EVIL}\n{SHOWN}")
    expect(page.locator(".entry.line").first).to_have_text(f"{EVIL} no JSON")
    talking.print("evil", 1, said(f"{EVIL} again"))
    expect(page.locator(".entry.said").last).to_have_text(f"{EVIL} again")
    untouched(page)
    picture(page, "transcript-strangers")


def test_without_the_script_it_can_be_read(talking, browser):
    browsing = talking.browsing(browser, java_script_enabled=False, viewport=PHONE)
    page = browsing.new_page()
    page.goto("/task/huge")
    expect(page.locator("#entries > li").last).to_contain_text("word number")
    expect(page.locator("#transcript-find")).to_be_hidden()
    first = page.locator("#entries > li").first.text_content()
    page.get_by_role("link", name="Show earlier").click()
    expect(page.locator("#entries > li")).to_have_count(ENTRIES)
    assert page.locator("#entries > li").first.text_content() != first
    page.goto("/task/talk")
    page.locator(".entry.result summary").click()
    expect(page.locator(".entry.result pre").first).to_be_visible()
    browsing.close()


AGENT = f"""\
print({said("I really run.")!r}, end="", flush=True)
open({{gate!r}}).read()
print({tool("Bash", command="ls")!r} + {result("a")!r} + {ended("Done for real.")!r}, flush=True)
"""


def test_a_real_attempt_is_shown_while_it_runs(tmp_path, browser, request):
    """Its agent waits at a pipe until the page has shown its first words."""
    gate, script = tmp_path / "gate", tmp_path / "agent.py"
    os.mkfifo(gate)
    script.write_text(AGENT.replace("{gate!r}", repr(str(gate))), encoding="utf-8")
    house = House(tmp_path / "home")
    settings = f'[agents.scripted]\nargv = ["{sys.executable}", "{script}"]\nparser = "claude"\n'
    (house.home / "fairlane.toml").write_text(settings, encoding="utf-8")
    house.add({"id": "real", "prompt": "x", "agent": "scripted"})
    house.start()
    request.addfinalizer(house.close)
    request.addfinalizer(house.server.stop)
    browsing = house.browsing(browser)
    page = opened(browsing, "/task/real")
    with daemon(house.home):
        expect(page.locator(".entry.said").first).to_contain_text("I really run.")
        expect(page.locator("#answer")).to_be_hidden()
        gate.write_text("go")
        expect(page.locator(".entry.answer")).to_contain_text("Done for real.")
        expect(page.locator("#answer pre")).to_have_text("Done for real.")
        expect(page.locator("#entries time").first).to_be_attached()
    browsing.close()
