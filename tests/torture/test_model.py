"""The model: it agrees with a store that wrote the same, and tells every row that differs."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlane.engine import compaction
from fairlane.engine.end_attempt import Report
from fairlane.model.instant import DAY, HOUR, MINUTE, parse_instant, show_instant
from fairlane.model.project import Group, Pause, Project
from fairlane.model.record import changed
from fairlane.model.task import Status, Task
from fairlane.policy.policy import Policy
from fairlane.service import groups, queue, tasks
from fairlane.store.base import Booking, Placed
from fairlane.store.memory.store import MemoryStore
from fairlane.store.sqlite.store import SqliteStore
from fairlane.testing.torture.model import Model, differences, facts, places
from fairlane.testing.torture.ports import Write
from tests.properties.test_random_hour import DEEDS
from tests.torture.office import WatchedOffice
from tests.torture.watched import WatchedHour

BALANCED = Policy.preset("balanced")
NOON = parse_instant("2026-01-30T12:34:56Z")


@pytest.fixture
def office(tmp_path: Path) -> WatchedOffice:
    """One where everything there is happens once."""
    made = WatchedOffice(tmp_path)
    made.policy('cooldown.base = "1s"\n')
    groups.add_group(made.context, "top")
    later = show_instant(made.clock.at + HOUR)
    made.add(
        {"id": "a", "agent": "claude"}, {"id": "b", "needs": ["a"]}, {"id": "c", "group": "top"},
        {"id": "d", "not_before": later}, {"id": "e", "agent": "claude"},
        {"id": "f", "command": ["true"]},
    )  # fmt: skip
    held = {each["task"]: each["lease"] for each in made.lease()}
    made.complete(held["a"], Report((5, 0, 7, 0), 12))
    made.fail(held["c"])
    made.fail(held["e"], outcome="throttled")
    queue.pause(made.context, "kind:plan")
    assert differences(made.model, made.watched.inner) == []
    return made


def change_task(**fields: Any) -> Callable[[Model], None]:
    def change(model: Model) -> None:
        model.put_task(model.tasks["a"]._replace(task=changed(model.task("a"), **fields)))

    return change


def change_attempt(model: Model) -> None:
    model.put_attempts([changed(model.attempts["L1"], detail="no")])


def forget_event(model: Model) -> None:
    model.events = model.events[1:]


def rename_event(model: Model) -> None:
    model.events[0] = changed(model.events[0], kind="nothing")


def forget_decision(model: Model) -> None:
    model.decisions.popitem()


WRONG: dict[str, tuple[Callable[[Model], object], str]] = {
    "a field": (change_task(title="another"), "task a: title is '' in the store"),
    "a status": (change_task(status=Status.PARKED, ended_at=None), "task a: status is"),
    "a place": (
        lambda model: model.put_task(Placed(model.task("b"), "backoff")), "task b stands",
    ),
    "a lane": (lambda model: model.put_task(Placed(model.task("b"), "parent")), "lane LaneKey("),
    "a task too many": (lambda model: model.tasks.pop("a"), "nobody has added it"),
    "a task lost": (
        lambda model: model.put_task(Placed(changed(model.task("a"), id="z", seq=99))),
        "task z is lost",
    ),
    "a timer": (
        lambda model: model.put_task(model.tasks["d"]._replace(due_at=5)), "timers are",
    ),
    "an attempt": (change_attempt, "attempt L1: detail"),
    "an open attempt": (lambda model: model.open.clear(), "open attempts are"),
    "an event lost": (
        lambda model: model.log(model.last_event + 1, [model.events[0]]), "is lost",
    ),
    "an event too many": (forget_event, "nobody logged it"),
    "another event": (rename_event, "event 1 is"),
    "a booking": (lambda model: model.book([Booking("all", 0, starts=1)]), "booked for all"),
    "a pause": (lambda model: model.tables[Pause].clear(), "Pause kind:plan"),
    "a group": (
        lambda model: model.tables[Group].update(g=Group("g")), "Group g is None in the store",
    ),
    "a clock": (
        lambda model: model.apply(Write("clocks", ({"default": (7, True)},))), "Project default",
    ),
    "a value": (lambda model: model.values.update(x=1), "value x is None in the store"),
    "a decision": (forget_decision, "is not recorded as it was made"),
    "a dependent": (lambda model: model.named["a"].clear(), "dependents of a"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "told"), WRONG.values(), ids=WRONG)
def test_a_row_that_differs_is_told(office, change, told):
    change(office.model)
    found = differences(office.model, office.watched.inner)
    assert any(told in text for text in found), found


def test_a_model_can_begin_with_any_store(office):
    assert differences(Model.of(office.watched.inner), office.watched.inner) == []


def test_what_was_compacted_is_as_the_store_has_it(office):
    tasks.cancel(office.context, ["d"])
    office.wait(60 * DAY)
    compaction.compact(office.context)
    assert office.task("d").meta == {"compacted": True}
    assert office.model.tries.keys() == {
        "a",
        "c",
        "e",
        "f",
    }  # "b" needs "a", the others are not over
    assert differences(office.model, office.watched.inner) == []


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_after_anything_store_and_model_agree(kind, tmp_path):
    inner = MemoryStore() if kind == "memory" else SqliteStore.open(tmp_path / "fairlane.db")
    if isinstance(inner, SqliteStore):
        inner.connection.execute("PRAGMA synchronous = OFF")
    hour, chance = WatchedHour(tmp_path, inner), random.Random(11)
    for number in range(200):
        hour.do((chance.choice(DEEDS), chance.randrange(400), chance.randrange(400)))
        if number % 10 == 0:
            assert differences(hour.checker.model, inner, everything=number % 50 == 0) == []
    inner.close()


# Plain rules


@pytest.mark.parametrize(
    ("window", "begin"),
    [
        ("5h", "2026-01-30T07:34:00Z"), ("90m", "2026-01-30T11:04:00Z"),
        ("day", "2026-01-30T00:00:00Z"), ("week", "2026-01-26T00:00:00Z"),
        ("month", "2026-01-01T00:00:00Z"),
    ],
)  # fmt: skip
def test_a_window_begins_with_a_whole_minute_or_the_calendar(window, begin):
    assert facts.window_begin(window, NOON) == parse_instant(begin)


def test_a_total_has_no_begin():
    assert facts.window_begin("total", NOON) is None


@pytest.mark.parametrize(
    ("caps", "own", "wanted"),
    [
        ({}, None, None), ({"project:*": 3}, None, 3), ({"project:*": 3}, 5, 5),
        ({"project:*": 3, "project:p": 4}, 5, 4), ({"project:p": 9}, 5, 5),
    ],
)  # fmt: skip
def test_the_smaller_of_a_projects_own_number_and_its_cap_holds(caps, own, wanted):
    policy = BALANCED.with_overrides({f"caps.{name}": cap for name, cap in caps.items()})
    project = Project("p", max_in_flight=own)
    assert facts.cap_of("project:p", policy, {"p": project}) == wanted


def test_the_serial_lock_is_of_group_and_kind():
    task = Task("a", parallel=False, group="g", locks=("x",))
    assert facts.locks_of(task, BALANCED) == {"x", "serial group g code"}
    off = BALANCED.with_overrides({"locks.serial": "none"})
    assert facts.locks_of(task, off) == {"x"}


@pytest.mark.parametrize(
    ("fields", "statuses", "code"),
    [
        ({}, {}, ""),
        ({"needs": ("n",)}, {"n": "running"}, "needs"),
        ({"needs": ("n",)}, {"n": "done"}, ""),
        ({"needs": ("n",), "paused": True}, {"n": "parked"}, "upstream"),
        ({"parent": "p", "artifacts_missing": ("x",)}, {"p": "queued"}, "parent"),
        ({"artifacts_missing": ("x",), "source_hold": "no"}, {}, "artifact"),
        ({"backoff_until": NOON + 1, "not_before": NOON + 1}, {}, "backoff"),
        ({"backoff_until": NOON, "not_before": NOON + 1}, {}, "not_before"),
        ({"source_hold": "no", "paused": True}, {}, "source"),
        ({"paused": True}, {}, "paused"),
    ],
)
def test_a_task_waits_for_the_first_of_the_codes(fields, statuses, code):
    task = Task("a", **fields)
    assert places.wait_of(task, lambda name: Status(statuses[name]), BALANCED, NOON) == code


def test_a_parked_task_reopens_when_launches_alone_failed():
    parked = Task("a", status=Status.PARKED, parked_at=NOON, failures=1, launch_failures=1)
    assert places.reopens_at(parked, BALANCED) == NOON + 15 * MINUTE
    for fields in ({"failures": 2}, {"half_opened": True}, {"launch_failures": 0}):
        assert places.reopens_at(changed(parked, **fields), BALANCED) is None
