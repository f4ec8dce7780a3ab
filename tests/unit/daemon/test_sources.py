"""Sources are asked in threads: whatever they do, the one who asks goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import pytest

from fairlane.clock import SYSTEM, Waker
from fairlane.daemon import sources as module
from fairlane.daemon.sources import Sources
from fairlane.intake.sources import cards
from fairlane.intake.sources.base import Found, Where, WriteBack
from fairlane.model.errors import Refused
from fairlane.service import tasks
from fairlane.service.reports import listing
from fairlane.service.reports.status import status
from fairlane.service.sync import write_back
from fairlane.store.sqlite.store import SqliteStore
from tests.unit.contexts import TestContext
from tests.waiting import until

LINE = {"prompt": "go", "agent": "shell"}


class Keeper:
    """Sources of one home, turned by hand."""

    def __init__(self, home: Path, *rules: dict[str, Any], what: str = "up") -> None:
        self.store = SqliteStore.open(home / "fairlane.db")
        self.office = TestContext(home, {"source": list(rules)}, self.store)
        self.waker = Waker()
        self.said: list[str] = []
        self.sources = Sources(self.office.context, self.said.append, self.waker, what)
        self.applied = 0

    def limit(self, seconds: float) -> None:
        """How long the source's program may take."""
        state = self.sources._states[0]
        state.source = state.source._replace(where=replace(state.source.where, seconds=seconds))

    def turn(self) -> None:
        SYSTEM.wait(0.02, self.waker, *self.sources.waitables())
        self.waker.clear()
        self.applied += self.sources.look()
        self.sources.tell()

    def until(self, what: Callable[[], Any]) -> None:
        def so_now() -> bool:
            so = bool(what())
            if not so:
                self.turn()
            return so

        until(so_now)

    def gave_up(self) -> bool:
        """Whether no answer is awaited any more."""
        job = self.sources._states[0].job
        return job is None or job.given_up

    def ids(self) -> list[str]:
        return [row["id"] for row in listing.list_tasks(self.office.context)["tasks"]]

    def close(self) -> None:
        self.sources.close()
        self.waker.close()
        self.store.close()


@pytest.fixture
def keep(tmp_path: Path) -> Iterator[Callable[..., Keeper]]:
    made: list[Keeper] = []

    def make(**rule: Any) -> Keeper:
        made.append(Keeper(tmp_path, rule))
        return made[-1]

    yield make
    for each in made:
        each.close()


def has(file: Path, text: str) -> bool:
    return file.exists() and file.read_text() == text


def test_a_program_that_hangs_is_ended_said_once_and_asked_again(
    keep: Callable[..., Keeper], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GRACE_SECONDS", 0.0)
    flag, asked, line = tmp_path / "works", tmp_path / "asked", json.dumps(LINE | {"id": "a"})
    script = f"printf . >> {asked}; test -e {flag} || sleep 3600; echo '{line}'"
    keeper = keep(type="jsonl", command=["sh", "-c", script], every="100ms")
    keeper.limit(3600)
    keeper.sources.begin()
    for dots in (".", ".."):
        keeper.until(partial(has, asked, dots))
        assert not keeper.gave_up()  # it hangs, and nobody waits for it
        keeper.limit(0)
        keeper.until(keeper.gave_up)
        keeper.limit(3600)
    (said,) = keeper.said
    assert "cannot be asked" in said
    flag.touch()
    keeper.until(lambda: keeper.ids() == ["a"])
    assert keeper.said[1:] == [f"source jsonl sh -c {script} works again"]


def test_a_link_to_itself_is_said_once_and_read_when_it_is_mended(
    keep: Callable[..., Keeper], tmp_path: Path
) -> None:
    file = tmp_path / "tasks.jsonl"
    file.symlink_to(file.name)
    keeper = keep(type="jsonl", path=str(file), every="100ms")
    keeper.sources.begin()
    keeper.until(lambda: keeper.said)
    assert "Too many levels of symbolic links" in keeper.said[0]
    file.unlink()
    file.write_text(json.dumps(LINE | {"id": "a"}))
    keeper.until(lambda: keeper.ids() == ["a"])


def test_what_has_nothing_new_is_not_followed_again(
    keep: Callable[..., Keeper], tmp_path: Path
) -> None:
    asked, line = tmp_path / "asked", json.dumps(LINE | {"id": "a"})
    script = f"echo . >> {asked}; echo '{line}'"
    keeper = keep(type="jsonl", command=["sh", "-c", script], every="100ms")
    keeper.sources.begin()
    keeper.until(lambda: asked.exists() and len(asked.read_text().split()) >= 4)
    assert keeper.applied == 1


def comes(keeper: Keeper, task: str) -> bool:
    return keeper.ids()[-1] == task


def test_what_is_deferred_comes_in_as_there_is_room(
    keep: Callable[..., Keeper], tmp_path: Path
) -> None:
    file = tmp_path / "tasks.jsonl"
    file.write_text("".join(json.dumps(LINE | {"id": name}) + "\n" for name in "abcde"))
    keeper = keep(type="jsonl", path=str(file), every="1h")
    keeper.office.policy("caps.all = 1\nbackpressure.soft = 1\nbackpressure.hard = 2\n")
    keeper.sources.begin()
    keeper.until(lambda: keeper.ids() == ["a", "b", "c"])
    status_says = "2 deferred until the queue has room"
    assert any(status_says in row["message"] for row in status(keeper.office.context)["warnings"])
    for last in "de":
        (lease,) = keeper.office.lease()
        keeper.turn()
        applied = keeper.applied
        keeper.turn()
        assert keeper.applied == applied  # no room: nothing is looked at again
        keeper.office.finish(lease["lease"])
        keeper.until(partial(comes, keeper, last))
    keeper.turn()
    assert not any(
        "deferred" in row["message"] for row in status(keeper.office.context)["warnings"]
    )


def test_what_is_deferred_rests_between_two_looks_and_is_not_forgotten(
    keep: Callable[..., Keeper], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REST_TIMES", 10**9)  # at most as long as `every`
    file = tmp_path / "tasks.jsonl"
    file.write_text("".join(json.dumps(LINE | {"id": name}) + "\n" for name in "abcd"))
    keeper = keep(type="jsonl", path=str(file), every="1h")
    keeper.office.policy("caps.all = 1\nbackpressure.soft = 1\nbackpressure.hard = 2\n")
    keeper.sources.begin()
    keeper.until(lambda: keeper.ids() == ["a", "b", "c"])
    assert not keeper.sources.unfinished  # there is no room
    (lease,) = keeper.office.lease()
    keeper.office.finish(lease["lease"])
    applied = keeper.applied
    keeper.turn()
    assert keeper.applied == applied
    assert keeper.sources.unfinished
    keeper.sources._states[0].follow_at = 0.0
    keeper.until(partial(comes, keeper, "d"))
    assert not keeper.sources.unfinished


def test_sources_take_turns_when_there_is_room_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REST_TIMES", 0)  # the turn decides, not who has rested
    rules: list[dict[str, Any]] = []
    for name in "ab":
        file = tmp_path / f"{name}.jsonl"
        rows = [LINE | {"id": f"{name}{number}"} for number in range(6)]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        rules.append({"type": "jsonl", "path": str(file), "every": "1h"})
    keeper = Keeper(tmp_path, *rules)
    keeper.office.policy("caps.all = 1\nbackpressure.soft = 1\nbackpressure.hard = 1\n")
    keeper.sources.begin()
    keeper.until(lambda: all(state.deferred for state in keeper.sources._states))
    known = len(keeper.ids())
    for number in range(4):
        (lease,) = keeper.office.lease()
        keeper.office.finish(lease["lease"])
        keeper.until(partial(lambda count: len(keeper.ids()) == count, known + number + 1))
    came = [name[0] for name in keeper.ids()[-4:]]
    assert sorted(came) == ["a", "a", "b", "b"]
    assert came[0] != came[1]
    keeper.close()


def test_what_is_held_there_is_not_followed_again_while_nothing_changes(
    keep: Callable[..., Keeper], tmp_path: Path
) -> None:
    file = tmp_path / "tasks.jsonl"
    rows = [LINE | {"id": name, "needs": ["elsewhere"]} for name in "abcde"]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    keeper = keep(type="jsonl", path=str(file), every="1h")
    keeper.office.policy("caps.all = 1\nbackpressure.soft = 1\nbackpressure.hard = 9\n")
    keeper.sources.begin()
    keeper.until(lambda: keeper.ids() == ["a", "b"])
    for _ in range(3):
        keeper.turn()
    assert (keeper.applied, keeper.ids()) == (1, ["a", "b"])
    tasks.cancel(keeper.office.context, ["a"])
    keeper.until(partial(comes, keeper, "c"))


def test_a_file_that_is_being_written_is_read_when_it_is_left_alone(
    keep: Callable[..., Keeper], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "tasks.jsonl"
    rows = [json.dumps(LINE | {"id": f"i{number}"}) + "\n" for number in range(5)]
    file.write_text("".join(rows))
    keeper = keep(type="jsonl", path="tasks.jsonl")
    keeper.sources.begin()
    keeper.until(lambda: len(keeper.ids()) == 5)
    with file.open("w") as writing:  # an editor that empties the file first
        with monkeypatch.context() as patient:
            for name in ("QUIET_SECONDS", "RESTLESS_SECONDS"):  # it pauses for less, however slow
                patient.setattr(module, name, 3600)
            for row in rows[:-1]:
                keeper.until(lambda: keeper.sources.due_in() < inf)
                writing.write(row)
                writing.flush()
                keeper.turn()
        writing.write(rows[-1])
    keeper.turn()
    keeper.until(lambda: not keeper.sources.reading)
    with keeper.store.read() as reading:
        assert "canceled" not in {event.kind for event in reading.events()}


def test_a_file_is_noticed_and_otherwise_never_looked_at(
    keep: Callable[..., Keeper], tmp_path: Path
) -> None:
    file = tmp_path / "tasks.jsonl"
    file.write_text("\n")
    keeper = keep(type="jsonl", path="tasks.jsonl", every="100ms")
    keeper.sources.begin()
    keeper.until(lambda: keeper.applied == 1)
    assert keeper.sources.due_in() == float("inf")
    with file.open("a") as writing:
        writing.write(json.dumps(LINE | {"id": "a"}) + "\n")
    keeper.until(lambda: keeper.ids() == ["a"])


def test_a_folder_that_comes_later_is_found(keep: Callable[..., Keeper], tmp_path: Path) -> None:
    keeper = keep(type="jsonl", path="later/tasks.jsonl", every="100ms")
    keeper.sources.begin()
    keeper.until(lambda: keeper.said)
    (tmp_path / "later").mkdir()
    (tmp_path / "later" / "tasks.jsonl").write_text(json.dumps(LINE | {"id": "a"}) + "\n")
    keeper.until(lambda: keeper.ids() == ["a"])
    keeper.until(lambda: keeper.sources.due_in() == float("inf"))  # now it is watched


class Choosy:
    """Cards of which one cannot be told."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []

    def read(self, where: Where) -> Found:
        return cards.read(where)

    def write(self, where: Where, told: Sequence[WriteBack]) -> list[str]:
        if "a" in [each.id for each in told]:
            raise Refused("the bead is gone")
        self.heard += [(each.id, each.status) for each in told]
        return [each.id for each in told]


def test_one_item_that_cannot_be_told_does_not_hold_up_the_others(
    keep: Callable[..., Keeper], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Choosy()
    monkeypatch.setattr(write_back, "source_named", lambda name: source)
    (tmp_path / "cards").mkdir()
    for name in "ab":
        text = f"---\nagent_flow: code\nagent_status:\n---\n# {name}\n"
        (tmp_path / "cards" / f"{name}.md").write_text(text)
    keeper = keep(type="cards", path="cards", write_back=True)
    keeper.sources.begin()
    keeper.until(lambda: source.heard == [("b", "queued")])
    keeper.until(lambda: keeper.said)
    tasks.cancel(keeper.office.context, ["b"])
    keeper.until(lambda: source.heard[1:] == [("b", "canceled")])  # not only after a minute
    assert [said.partition(" cannot ")[2] for said in keeper.said] == [
        "be told of a: the bead is gone"
    ]


def test_run_asks_once_and_down_asks_nobody(tmp_path: Path) -> None:
    (tmp_path / "tasks.jsonl").write_text(json.dumps(LINE | {"id": "a"}) + "\n")
    for what, expected in (("down", []), ("run", ["a"])):
        rule = {"type": "jsonl", "path": "tasks.jsonl", "every": "100ms"}
        keeper = Keeper(tmp_path, rule, what=what)
        keeper.sources.begin()
        assert keeper.sources.reading == (what == "run")
        keeper.until(partial(lambda each: not each.sources.reading, keeper))
        assert keeper.ids() == expected
        assert keeper.sources.due_in() == float("inf")
        keeper.close()


def test_a_source_that_is_closed_before_it_began_is_closed(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path, {"type": "cards", "path": "cards", "write_back": True})
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    keeper.sources.close()
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
    keeper.close()
