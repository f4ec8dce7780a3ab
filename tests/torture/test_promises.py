"""What is watched as a whole: ordinary use breaks no promise; launches, replays, and the end."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from fairlane.executors.base import Orders
from fairlane.model.record import changed
from fairlane.service import queue, tasks
from fairlane.store.base import Placed
from fairlane.store.memory.store import MemoryStore
from fairlane.store.sqlite.store import SqliteStore
from fairlane.testing.torture.promises import PROMISES, Broken
from tests.properties.test_random_hour import DEEDS
from tests.torture import test_promises_of_attempts, test_promises_of_rounds
from tests.torture.office import WatchedOffice, leased
from tests.torture.watched import WatchedHour

#: What an hour has in addition, and what is done most once more.
MORE = (
    "lease", "lease", "complete", "jump", "checked", "throttle", "fail_launch", "move", "rule",
    "spoil", "clear",
)  # fmt: skip


@pytest.fixture
def office(tmp_path: Path) -> WatchedOffice:
    return WatchedOffice(tmp_path)


def spend(hour: WatchedHour, seed: int, deeds: int) -> None:
    chance = random.Random(seed)
    for number in range(deeds):
        hour.do((chance.choice(DEEDS + MORE), chance.randrange(400), chance.randrange(400)))
        if number % 100 == 0:
            hour.checker.full([hour.context])
    hour.checker.full([hour.context], everything=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_an_hour_of_use_breaks_no_promise(seed, tmp_path):
    hour = WatchedHour(tmp_path, MemoryStore())
    spend(hour, seed, 350)
    assert hour.checker.counts["caps"]
    assert hour.checker.counts["outcomes"]
    assert hour.checker.replayed


@pytest.mark.slow
def test_an_hour_of_use_on_a_file_breaks_no_promise(tmp_path):
    store = SqliteStore.open(tmp_path / "fairlane.db")
    store.connection.execute("PRAGMA synchronous = OFF")
    try:
        spend(WatchedHour(tmp_path, store), 7, 300)
    finally:
        store.close()


def test_every_promise_says_what_it_is():
    promises = [promise for rows in PROMISES.values() for promise in rows]
    assert len({promise.name for promise in promises}) == len(promises)
    assert all(promise.sentence.endswith(".") for promise in promises)
    assert {promise.number for promise in promises} >= set(range(1, 10))


def test_every_promise_has_something_that_breaks_it():
    cases = [*test_promises_of_rounds.CASES.all, *test_promises_of_attempts.CASES.all]
    promises = {promise.name for rows in PROMISES.values() for promise in rows}
    assert promises - {name for name, _ in cases} == {"launches", "everything ends"}  # below


def orders(home: Path, lease: str, fence: str, name: str = "1") -> Orders:
    env = {"FAIRLANE_LEASE": lease, "FAIRLANE_FENCE": fence}
    return Orders(home / "runs" / "a" / name, ("true",), home, env)


def test_a_lease_is_launched_once_and_its_checks_as_often_as_they_run(office, tmp_path):
    lease = leased(office)
    office.checker.launched("up", orders(tmp_path, lease, "1"))
    for _ in range(2):
        office.checker.launched("up", orders(tmp_path, lease, "1", "1.check.0"))
    with pytest.raises(Broken, match="which up has launched"):
        office.checker.launched("other", orders(tmp_path, lease, "1"))


@pytest.mark.parametrize(("lease", "fence"), [("L1", "2"), ("L9", "1")])
def test_nothing_is_launched_without_its_durable_lease(office, tmp_path, lease, fence):
    leased(office)
    with pytest.raises(Broken, match="launches"):
        office.checker.launched("up", orders(tmp_path, lease, fence))


def settled(office: WatchedOffice) -> None:
    office.checker.settled(office.clock.at, "up", ["box"])


def test_what_waits_for_a_person_may_stay(office):
    office.add({"id": "a"}, {"id": "b", "needs": ["a"]}, {"id": "c", "group": "g"}, {"id": "d"})
    tasks.cancel(office.context, ["a"])
    queue.pause(office.context, "group:g")
    queue.pause(office.context, "task:d")
    settled(office)


def test_what_could_start_must_have_started(office):
    office.add({"id": "a"})
    with pytest.raises(Broken, match="nothing holds it"):
        settled(office)


def test_what_is_in_flight_must_have_ended(office):
    leased(office)
    with pytest.raises(Broken, match="still open"):
        settled(office)


@pytest.mark.parametrize("wait", ["needs", "backoff", "upstreams"])
def test_a_wait_for_nothing_is_no_reason(office, wait):
    office.add({"id": "a"})
    office.model.put_task(Placed(office.task("a"), wait))
    with pytest.raises(Broken, match="it waits with code"):
        settled(office)


def test_a_store_that_does_not_agree_is_found(office):
    leased(office)
    office.model.put_task(Placed(changed(office.task("a"), reason="another")))
    with pytest.raises(Broken, match="reason is '' in the store"):
        office.checker.full()


def test_a_decision_that_cannot_be_planned_again_is_found(office):
    leased(office)
    office.checker.full([office.context])
    assert office.checker.replayed == 1
    office.add({"id": "b"})
    office.lease()
    with office.watched.inner.write() as tx:
        (decision,) = tx.decisions(1)
        memory = tx._decisions
        memory[2] = changed(decision, at=decision.at + 1)
    office.model.decisions[2] = memory[2]
    with pytest.raises(Broken, match="decision 2 by lanes"):
        office.checker.full([office.context])
