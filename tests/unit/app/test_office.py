"""Many callers of one home at once: nothing is given twice, and writes share commits."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from fairlane.app import open_desk
from fairlane.app.office import LAG_MAX, Listener, Office
from fairlane.model.errors import Invalid, NotFound
from fairlane.service import tasks


def in_office(home: Path, story: Callable[[Office], Awaitable[Any]]) -> Any:
    async def told() -> Any:
        office = Office(lambda: open_desk(home))
        await office.open()
        try:
            return await story(office)
        finally:
            await office.close()

    return asyncio.run(told())


def filled(home: Path, count: int) -> None:
    home.mkdir(exist_ok=True)
    (home / "policy.toml").write_text('preset = "balanced"\n[caps]\nall = "none"\n')
    desk = open_desk(home)
    tasks.add(desk, [{"prompt": f"do {number}"} for number in range(count)])
    desk.store.close()


def test_many_workers_at_once_share_the_work_and_the_commits(tmp_path: Path) -> None:
    filled(tmp_path, 40)

    async def worker(office: Office) -> list[str]:
        mine: list[str] = []
        while True:
            found = (await office.ask("lease", {"limit": 1}))["leases"]
            if not found:
                return mine
            mine.append(found[0]["task"])
            done = await office.ask("complete", {"lease": found[0]["lease"], "tokens": 5})
            assert done["status"] == "done"

    async def story(office: Office) -> list[list[str]]:
        return await asyncio.gather(*(worker(office) for _ in range(8)))

    shares = in_office(tmp_path, story)
    every = [task for share in shares for task in share]
    assert sorted(every) == sorted(f"t{number}" for number in range(1, 41))
    # Every commit takes one decision; without sharing there would be one for each lease.
    with sqlite3.connect(tmp_path / "fairlane.db") as held:
        (decisions,) = held.execute("SELECT count(*) FROM decisions").fetchone()
    assert decisions < 40


def test_one_that_fails_is_undone_alone(tmp_path: Path) -> None:
    filled(tmp_path, 1)

    async def story(office: Office) -> Any:
        return await asyncio.gather(
            office.ask("add", {"tasks": [{"prompt": "good"}]}),
            office.ask("add", {"tasks": [{"prompt": "x"}, {"prompt": "bad", "project": "no"}]}),
            office.ask("complete", {"lease": "nobody"}),
            office.ask("cancel", {"ids": ["t1"]}),
            office.ask("list", {"limit": "ten"}),
            return_exceptions=True,
        )

    added, refused, unknown, canceled, invalid = in_office(tmp_path, story)
    assert added["tasks"][0]["created"] is True
    assert isinstance(refused, NotFound)
    assert isinstance(unknown, NotFound)
    assert canceled["tasks"][0]["status"] == "canceled"
    assert isinstance(invalid, Invalid)
    assert "limit: not a whole number" in invalid.message
    desk = open_desk(tmp_path)
    assert [row["title"] for row in tasks.list_tasks(desk)["tasks"]] == ["do 0", "good"]
    assert desk.store.check() == []
    desk.store.close()


def test_in_direct_mode_what_is_added_starts_at_once(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    (tmp_path / "policy.toml").write_text('preset = "balanced"\ncapacity.mode = "direct"\n')

    async def story(office: Office) -> Any:
        work = {"id": "now", "agent": "shell", "command": ["touch", str(mark)]}
        return await office.ask("add", {"tasks": [work]})

    assert in_office(tmp_path, story)["tasks"][0]["status"] == "running"
    desk = open_desk(tmp_path)
    with desk.store.read() as reading:
        (attempt,) = reading.attempts("now")
    desk.store.close()
    assert attempt.direct
    assert attempt.pid is not None
    os.waitpid(attempt.pid, 0)
    assert mark.exists()


def test_who_waits_for_work_gets_it_when_it_comes(tmp_path: Path) -> None:
    filled(tmp_path, 0)

    async def story(office: Office) -> Any:
        waiting = asyncio.create_task(office.ask("lease", {"limit": 1, "wait": "30s"}))
        await office.ask("add", {"tasks": [{"id": "late", "prompt": "x"}]})
        return await waiting

    assert [each["task"] for each in in_office(tmp_path, story)["leases"]] == ["late"]


def test_listeners_hear_every_event_in_order_whoever_made_it(tmp_path: Path) -> None:
    filled(tmp_path, 1)

    async def story(office: Office) -> list[tuple[int, str]]:
        listener = office.listen()
        await office.ask("add", {"tasks": [{"id": "here", "prompt": "x"}]})
        await asyncio.to_thread(elsewhere)
        heard: list[tuple[int, str]] = []
        while not heard or heard[-1][1] != "there":
            told = await asyncio.wait_for(listener.queue.get(), 10)
            assert told is not None
            heard.append((told["number"], told["task"]))
        return heard

    def elsewhere() -> None:
        desk = open_desk(tmp_path)
        tasks.add(desk, [{"id": "there", "prompt": "x"}])
        desk.store.close()

    heard = in_office(tmp_path, story)
    assert [task for _, task in heard] == ["here", "there"]
    assert heard[1][0] == heard[0][0] + 1


@pytest.mark.parametrize("extra", [0, 1])
def test_a_listener_that_lags_too_far_is_let_go(extra: int) -> None:
    listener = Listener()
    assert listener.tell([{"number": 1}] * (LAG_MAX + extra)) is (extra == 0)
    last = None
    while not listener.queue.empty():
        last = listener.queue.get_nowait()
    assert (last is None) is (extra == 1)
