"""What is over in its source, and what is taken back."""

from __future__ import annotations

import pytest

from fairlane.intake.sources.base import Found, LeftOut, Standing
from fairlane.model.errors import NotFound, Refused
from fairlane.model.instant import DAY
from fairlane.model.project import Pause
from fairlane.service import queue, tasks
from fairlane.service.sync.close import undo
from tests.unit.service.test_importing import bring, conflicts, created, hold, item, task

CLOSED = {"standing": Standing.CLOSED}


# Sync


def test_what_is_closed_or_gone_is_canceled_if_it_has_not_started(office):
    bring(office, *(item(name) for name in "abcde"))
    office.finish(office.lease(1)[0]["lease"])
    office.lease(1)
    queue.pause(office.context, "task:d")
    left = [item("a", **CLOSED), item("b", **CLOSED), item("c", **CLOSED), item("e")]
    assert bring(office, *left)["canceled"] == [], "an import cancels nothing"
    answer = bring(office, *left, sync=True)
    assert answer["canceled"] == [
        {"id": "c", "reason": "closed in list"},
        {"id": "d", "reason": "gone from list"},
    ]
    assert conflicts(answer) == {"b": "closed in list, but it has started (it is leased)"}
    assert office.status_of(*"abcde") == ["done", "leased", "canceled", "canceled", "queued"]
    assert task(office, "c").reason == "closed in list"
    with office.context.store.read() as reading:
        assert reading.table(Pause) == {}


def test_what_opens_again_comes_back(office):
    bring(office, item("a"), item("b", "a"))
    bring(office, item("b", "a"), sync=True)
    assert (office.status_of("a"), hold(office, "b")) == (["canceled"], "upstream")
    answer = bring(office, item("a", title="New"), item("b", "a"), sync=True)
    assert (created(answer), answer["changed"], answer["import"]) == (["a"], [], None)
    assert (office.status_of("a"), hold(office, "b")) == (["queued"], "needs")
    assert task(office, "a").title == "New"
    assert bring(office, item("a", title="New"), item("b", "a"))["unchanged"] == ["a", "b"]


@pytest.mark.parametrize("upstream", ["hold", "cancel"])
def test_what_is_closed_keeps_nobody_waiting(office, upstream):
    office.policy(f'readiness.upstream = "{upstream}"\n')
    bring(office, item("a"), item("b", "a"))
    bring(office, item("a", **CLOSED), item("b", "a"), sync=True)
    assert office.status_of("a", "b") == ["canceled", "queued"]
    assert hold(office, "b") == ""


def test_a_broken_record_may_be_any_that_is_missing(office):
    bring(office, item("a"), item("b"))
    broken = Found(left_out=(LeftOut("line 2", "not JSON", bad=True),))
    assert bring(office, item("a"), found=broken, sync=True)["canceled"] == []
    named = Found(left_out=(LeftOut("b", "no title", bad=True),))
    assert bring(office, item("a"), found=named, sync=True)["canceled"] == []
    assert [row["id"] for row in bring(office, item("a"), sync=True)["canceled"]] == ["b"]


def test_what_was_done_and_compacted_is_not_done_again(office):
    bring(office, item("a"), item("b", "a"))
    office.finish(office.lease(1)[0]["lease"])
    office.finish(office.lease(1)[0]["lease"])
    office.wait(400 * DAY)
    with office.context.store.write() as tx:
        assert tx.compact(office.context.now() - DAY).tasks == 2
    answer = bring(office, item("a"), item("b", "a"), item("c", "a"), sync=True)
    assert (created(answer), answer["unchanged"]) == (["c"], ["a", "b"])
    assert (task(office, "c").needs, hold(office, "c")) == (("a",), "")


# Undo


def test_undo_cancels_what_has_not_started_once(office):
    assert bring(office, item("old"))["import"] == 1
    assert bring(office, item("old"), item("a"), item("b"), item("c"))["import"] == 2
    tasks.edit(office.context, ["a"], {"priority": 1})
    office.lease(1)
    tasks.cancel(office.context, ["b"])
    told = undo(office.context, dry_run=True)
    assert office.status_of("a", "b", "c") == ["leased", "canceled", "queued"]
    done = undo(office.context)
    assert told == done | {"dry_run": True}
    assert done["canceled"] == [{"id": "c", "reason": "import 2 undone"}]
    assert done["left"] == [
        {"id": "a", "reason": "it has started (it is leased)"},
        {"id": "b", "reason": "it is canceled"},
    ]
    assert (done["import"], done["source"], done["path"]) == (2, "list", "/backlog/list")
    assert task(office, "c").reason == "import 2 undone"
    with pytest.raises(Refused, match="import 2 was undone already"):
        undo(office.context)
    assert [row["id"] for row in undo(office.context, 1)["canceled"]] == ["old"]


def test_what_was_undone_comes_again_but_not_what_people_canceled(office):
    bring(office, item("a"), item("b"))
    tasks.cancel(office.context, ["b"])
    undo(office.context)
    answer = bring(office, item("a", title="New"), item("b"))
    assert (created(answer), answer["unchanged"], answer["import"]) == (["a"], ["b"], 2)
    assert office.status_of("a", "b") == ["queued", "canceled"]
    assert task(office, "a").title == "New"
    assert undo(office.context)["canceled"] == [{"id": "a", "reason": "import 2 undone"}]


def test_what_comes_back_says_what_its_source_says(office):
    full = item("a", prompt="Read this.", priority=7, locks=["x"])
    bring(office, full)
    undo(office.context)
    office.wait(400 * DAY)
    with office.context.store.write() as tx:
        tx.compact(office.context.now() - DAY)
    assert created(bring(office, item("a", prompt="Read this.", priority=7))) == ["a"]
    back = task(office, "a")
    assert (back.prompt, back.priority, back.locks) == ("Read this.", 7, ())
    assert back.meta == {"source": "list", "source_id": "a"}


def test_only_what_created_something_has_a_number(office):
    with pytest.raises(NotFound, match="nothing was imported"):
        undo(office.context)
    bring(office, item("a"))
    assert bring(office, item("a", title="New"))["import"] is None
    assert bring(office, item("a"), item("b"), sync=True)["import"] is None
    with pytest.raises(NotFound, match="there is no import 2") as refusal:
        undo(office.context, 2)
    assert refusal.value.hint == "The last one is 1."
    assert [row["id"] for row in undo(office.context)["canceled"]] == ["a"]
