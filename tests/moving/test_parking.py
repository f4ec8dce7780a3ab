"""What is parked in its source comes in parked; whoever retries it, here or there, has his way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairlane.intake.sources.base import Where
from fairlane.model.instant import SECOND, show_instant
from fairlane.model.task import Task
from fairlane.service import tasks
from fairlane.service.sync import importing, write_back
from fairlane.service.sync.close import undo
from fairlane.service.sync.importing import ImportOptions
from tests import holder
from tests.unit.contexts import TestContext

pytestmark = pytest.mark.slow

ENTRY = {"id": "q-1", "priority": 100, "status": "pending"}


class Queue:
    """A queue.json that is imported again and again."""

    def __init__(self, office: TestContext, file: Path) -> None:
        self.office, self.where, self.file = office, Where(file), file

    def put(self, *entries: dict[str, Any]) -> None:
        self.file.write_text(json.dumps({"schemaVersion": 1, "entries": entries}))

    def entry(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.file.read_text())["entries"][0]
        return found

    def bring(self, *entries: dict[str, Any], sync: bool = False) -> Any:
        if entries:
            self.put(*entries)
        options = ImportOptions(sync=sync)
        return importing.bring_in(self.office.context, "queue.json", self.where, options)

    def tell(self) -> list[str]:
        return list(write_back.tell(self.office.context, "queue.json", self.where)["written"])

    def task(self, name: str = "q-1") -> Task:
        with self.office.context.store.read() as reading:
            return reading.tasks([name])[name]

    def leases(self) -> dict[str, Any]:
        found = holder.lease(self.office.context, 9, "w", ())["leases"]
        return {row["task"]: row for row in found}


@pytest.fixture
def office(tmp_path: Path) -> TestContext:
    return TestContext(tmp_path)


@pytest.fixture
def queue(office: TestContext, tmp_path: Path) -> Queue:
    return Queue(office, tmp_path / "queue.json")


PARKED = ENTRY | {"status": "parked", "parkedReason": "exit 1", "attempts": 3}


def test_a_parked_entry_is_a_parked_task_and_retry_brings_it_back(queue: Queue) -> None:
    answer = queue.bring(PARKED)
    assert answer["parked"] == [{"id": "q-1", "reason": "exit 1"}]
    task = queue.task()
    assert (task.status, task.reason, task.failures) == ("parked", "exit 1", 3)
    assert queue.leases() == {}
    tasks.retry(queue.office.context, ["q-1"])
    assert (queue.task().status, queue.task().failures) == ("queued", 0)
    assert list(queue.leases()) == ["q-1"]


def test_what_was_retried_here_is_not_parked_again_by_the_same_file(queue: Queue) -> None:
    queue.bring(PARKED)
    tasks.retry(queue.office.context, ["q-1"])
    assert queue.bring(sync=True)["unchanged"] == ["q-1"]
    assert queue.task().status == "queued"


def test_a_retry_is_written_back(queue: Queue) -> None:
    queue.bring(PARKED)
    assert queue.tell() == [], "the file says so already"
    tasks.retry(queue.office.context, ["q-1"])
    assert queue.tell() == ["q-1"]
    assert queue.entry() == ENTRY | {"status": "ready", "attempts": 0}


def test_a_reset_there_frees_it_here(queue: Queue) -> None:
    queue.bring(PARKED)
    answer = queue.bring(ENTRY | {"attempts": 0}, sync=True)
    assert answer["changed"] == [{"id": "q-1", "fields": ["status", "failures"]}]
    assert (queue.task().status, queue.task().failures) == ("queued", 0)


def test_what_is_parked_there_later_is_parked_here(queue: Queue) -> None:
    queue.bring(ENTRY)
    queue.bring(PARKED, sync=True)
    assert (queue.task().status, queue.task().reason) == ("parked", "exit 1")
    queue.bring(PARKED | {"parkedReason": "exit 2"}, sync=True)
    assert queue.task().reason == "exit 2"


def test_a_parked_entry_that_is_over_ends_and_undo_takes_it_back(queue: Queue) -> None:
    queue.bring(PARKED)
    queue.bring(PARKED | {"status": "cancelled"}, sync=True)
    assert queue.task().status == "canceled"
    queue.bring(PARKED | {"id": "q-2"})
    assert [row["id"] for row in undo(queue.office.context)["canceled"]] == ["q-2"]


def test_what_returns_parked_is_parked(queue: Queue) -> None:
    queue.bring(PARKED)
    queue.bring(PARKED | {"status": "cancelled"}, sync=True)
    queue.bring(PARKED, sync=True)
    assert queue.task().status == "parked"


def test_the_age_of_an_entry_is_kept(queue: Queue) -> None:
    now = queue.office.context.now()
    old, new = show_instant(now - 90 * SECOND), show_instant(now - 30 * SECOND)
    future = show_instant(now + 3600 * SECOND)
    queue.bring(
        ENTRY | {"id": "new", "enqueuedAt": new},
        ENTRY | {"id": "ahead", "enqueuedAt": future},
        ENTRY | {"id": "old", "enqueuedAt": old},
    )
    ages = {name: now - queue.task(name).created_at for name in ("old", "new", "ahead")}
    assert ages == {"old": 90 * SECOND, "new": 30 * SECOND, "ahead": 0}
    assert queue.task("old").seq < queue.task("new").seq < queue.task("ahead").seq


@pytest.mark.parametrize(
    ("seconds", "attempts", "status", "failures"),
    [(60, 0, None, None), (-60, 0, "queued", 1), (-60, 2, "parked", 3)],
)
def test_a_lease_there_holds_until_it_expires(
    queue: Queue, seconds: int, attempts: int, status: str | None, failures: int | None
) -> None:
    until = show_instant(queue.office.context.now() + seconds * SECOND)
    answer = queue.bring(
        ENTRY | {"status": "leased", "leaseExpiresAt": until, "attempts": attempts}
    )
    if status is None:
        (left_out,) = answer["skipped"]
        assert left_out["reason"] == f"it is leased until {until}; --force imports it"
        return
    task = queue.task()
    assert (task.status, task.failures) == (status, failures)
    assert task.reason == ("its lease expired (attempt 3 of 3)" if status == "parked" else "")


def test_our_own_lease_does_not_expire_by_what_the_file_says(queue: Queue) -> None:
    queue.bring(ENTRY)
    (row,) = queue.leases().values()
    queue.tell()
    assert queue.entry()["status"] == "leased"
    queue.office.wait(240 * SECOND)
    holder.heartbeat(queue.office.context, row["lease"])
    queue.office.wait(240 * SECOND)
    assert queue.bring(sync=True)["unchanged"] == ["q-1"]
    assert queue.task().status == "running"


def test_what_needs_a_parked_one_says_so(office: TestContext, tmp_path: Path) -> None:
    queue = Queue(office, tmp_path / "queue.json")
    queue.bring(PARKED)
    office.add({"id": "after", "needs": ["q-1"], "prompt": "x"})
    assert list(queue.leases()) == []


def test_meta_is_in_the_lease(queue: Queue) -> None:
    entry = ENTRY | {
        "appId": "site", "repo": "/srv/site", "runId": "r1", "workflowId": "fix",
        "inputs": {"page": "login"},
    }  # fmt: skip
    queue.bring(entry)
    meta = queue.leases()["q-1"]["meta"]
    assert {key: meta[key] for key in ("appId", "repo", "runId", "workflowId", "inputs")} == {
        key: entry[key] for key in ("appId", "repo", "runId", "workflowId", "inputs")
    }
