"""Many callers of one home at once: nothing is given twice, and writes share commits."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from fairlane.app import actor_name, open_context, shared_queue
from fairlane.app.event_hub import LAG_MAX, Listener
from fairlane.app.shared_queue import SharedQueue
from fairlane.engine.context import Context
from fairlane.executors import executor_named
from fairlane.executors.base import Ended, Handle
from fairlane.model.documents.tasks import EventDocument
from fairlane.model.errors import Invalid, NotFound
from fairlane.service import queue as queue_operations
from fairlane.service import tasks
from fairlane.service.operations import call
from fairlane.service.reports import listing
from tests.waiting import LIMIT_SECONDS, until


def with_queue(home: Path, story: Callable[[SharedQueue], Awaitable[Any]]) -> Any:
    async def told() -> Any:
        queue = SharedQueue(lambda: open_context(home))
        await queue.open()
        try:
            return await story(queue)
        finally:
            await queue.close()

    return asyncio.run(told())


def filled(home: Path, count: int) -> None:
    home.mkdir(exist_ok=True)
    (home / "policy.toml").write_text('preset = "balanced"\n[caps]\nall = "none"\n')
    context = open_context(home)
    tasks.add(context, [{"prompt": f"do {number}"} for number in range(count)])
    context.store.close()


def test_many_workers_at_once_share_the_work_and_the_commits(tmp_path: Path) -> None:
    filled(tmp_path, 40)

    async def worker(queue: SharedQueue) -> list[str]:
        mine: list[str] = []
        while True:
            found = (await queue.ask("lease", {"limit": 1}))["leases"]
            if not found:
                return mine
            mine.append(found[0]["task"])
            done = await queue.ask("complete", {"lease": found[0]["lease"], "tokens": 5})
            assert done["status"] == "done"

    async def story(queue: SharedQueue) -> list[list[str]]:
        return await asyncio.gather(*(worker(queue) for _ in range(8)))

    shares = with_queue(tmp_path, story)
    every = [task for share in shares for task in share]
    assert sorted(every) == sorted(f"t{number}" for number in range(1, 41))
    # Every commit takes one decision; without sharing there would be one for each lease.
    with sqlite3.connect(tmp_path / "fairlane.db") as held:
        (decisions,) = held.execute("SELECT count(*) FROM decisions").fetchone()
    assert decisions < 40


def test_slow_diffs_delay_no_other_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path, 1)
    begun, may_end = threading.Semaphore(0), threading.Event()

    def answer(context: Context, name: str, **values: Any) -> Any:
        if name != "diff":
            return call.answer(context, name, **values)
        begun.release()
        assert may_end.wait(LIMIT_SECONDS)
        return {"task": values["task"]}

    monkeypatch.setattr(shared_queue, "answer", answer)

    async def story(queue: SharedQueue) -> list[dict[str, str]]:
        diffs = [asyncio.ensure_future(queue.ask("diff", {"task": "t1"})) for _ in range(5)]
        assert await asyncio.to_thread(begun.acquire, timeout=LIMIT_SECONDS)
        listed = await asyncio.wait_for(queue.ask("list"), LIMIT_SECONDS)
        assert [row["id"] for row in listed["tasks"]] == ["t1"]
        may_end.set()
        return list(await asyncio.gather(*diffs))

    assert with_queue(tmp_path, story) == [{"task": "t1"}] * 5


def test_one_that_fails_is_undone_alone(tmp_path: Path) -> None:
    filled(tmp_path, 1)

    async def story(queue: SharedQueue) -> Any:
        return await asyncio.gather(
            queue.ask("add", {"tasks": [{"prompt": "good"}]}),
            queue.ask("add", {"tasks": [{"prompt": "x"}, {"prompt": "bad", "project": "no"}]}),
            queue.ask("complete", {"lease": "nobody"}),
            queue.ask("cancel", {"ids": ["t1"]}),
            queue.ask("list", {"limit": "ten"}),
            return_exceptions=True,
        )

    added, refused, unknown, canceled, invalid = with_queue(tmp_path, story)
    assert added["tasks"][0]["created"] is True
    assert isinstance(refused, NotFound)
    assert isinstance(unknown, NotFound)
    assert canceled["tasks"][0]["status"] == "canceled"
    assert isinstance(invalid, Invalid)
    assert "limit: not a whole number" in invalid.message
    context = open_context(tmp_path)
    assert [row["title"] for row in listing.list_tasks(context)["tasks"]] == ["do 0", "good"]
    assert context.store.check() == []
    context.store.close()


def test_in_direct_mode_what_is_added_starts_at_once(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    (tmp_path / "policy.toml").write_text('preset = "balanced"\ncapacity.mode = "direct"\n')

    async def story(queue: SharedQueue) -> Any:
        work = {"id": "now", "agent": "shell", "command": ["touch", str(mark)]}
        return await queue.ask("add", {"tasks": [work]})

    assert with_queue(tmp_path, story)["tasks"][0]["status"] == "running"
    context = open_context(tmp_path)
    with context.store.read() as reading:
        (attempt,) = reading.attempts("now")
    context.store.close()
    assert attempt.direct
    executor = executor_named("process")
    handle = Handle(tmp_path / "runs" / "now" / "1", attempt.handle or "")
    assert handle.text
    until(lambda: isinstance(executor.poll(handle), Ended))
    assert mark.exists()


def test_who_waits_for_work_gets_it_when_it_comes(tmp_path: Path) -> None:
    filled(tmp_path, 0)

    async def story(queue: SharedQueue) -> Any:
        waiting = asyncio.create_task(queue.ask("lease", {"limit": 1, "wait": "30s"}))
        await queue.ask("add", {"tasks": [{"id": "late", "prompt": "x"}]})
        return await waiting

    assert [each["task"] for each in with_queue(tmp_path, story)["leases"]] == ["late"]


def test_work_that_comes_while_a_waiting_caller_asks_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path, 0)
    monkeypatch.setattr(shared_queue, "ASK_SECONDS", 300.0)  # an event alone ends the wait

    async def story(queue: SharedQueue) -> Any:
        real, heard = queue._writer.write, queue.events.listen()

        async def write_then_add(*call: Any) -> Any:
            monkeypatch.setattr(queue._writer, "write", real)
            answer = await real(*call)
            await queue.ask("add", {"tasks": [{"id": "late", "prompt": "x"}]})
            await heard.queue.get()  # every listener has it
            return answer

        monkeypatch.setattr(queue._writer, "write", write_then_add)
        return await asyncio.wait_for(queue.ask("lease", {"limit": 1, "wait": "5m"}), 10)

    assert [lease["task"] for lease in with_queue(tmp_path, story)["leases"]] == ["late"]


def test_listeners_hear_every_event_in_order_whoever_made_it(tmp_path: Path) -> None:
    filled(tmp_path, 1)

    async def story(queue: SharedQueue) -> list[tuple[int, str | None]]:
        listener = queue.events.listen()
        await queue.ask("add", {"tasks": [{"id": "here", "prompt": "x"}]})
        await asyncio.to_thread(elsewhere)
        heard: list[tuple[int, str | None]] = []
        while not heard or heard[-1][1] != "there":
            told = await asyncio.wait_for(listener.queue.get(), 10)
            assert told is not None
            heard.append((told["number"], told["task"]))
        return heard

    def elsewhere() -> None:
        context = open_context(tmp_path)
        tasks.add(context, [{"id": "there", "prompt": "x"}])
        context.store.close()

    heard = with_queue(tmp_path, story)
    assert [task for _, task in heard] == ["here", "there"]
    assert heard[1][0] == heard[0][0] + 1


@pytest.mark.parametrize("extra", [0, 1])
def test_a_listener_that_lags_too_far_is_let_go(extra: int) -> None:
    listener = Listener()
    event: EventDocument = {
        "number": 1, "at": "2026-01-30T12:00:00Z", "kind": "added", "task": "t1",
        "project": None, "data": {},
    }  # fmt: skip
    assert listener.send([event] * (LAG_MAX + extra)) is (extra == 0)
    last = None
    while not listener.queue.empty():
        last = listener.queue.get_nowait()
    assert (last is None) is (extra == 1)


def test_a_long_clear_delays_no_other_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It writes beside the shared writer, and lets others write between its parts."""
    filled(tmp_path, 3)
    monkeypatch.setattr(queue_operations, "PART", 1)
    over = threading.Event()
    monkeypatch.setattr(Context, "give_way", lambda *_: over.wait(LIMIT_SECONDS))

    async def story() -> int:
        queue = SharedQueue(lambda: open_context(tmp_path))
        await queue.open()
        clearing = asyncio.ensure_future(queue.ask("clear"))
        while (await queue.ask("status"))["queued"]["total"] == 3:
            await asyncio.sleep(0.01)
        await queue.ask("add", {"tasks": [{"prompt": "more"}]})
        over.set()
        cleared = await clearing
        await queue.close()
        return int(cleared["count"])

    assert asyncio.run(story()) == 3
    context = open_context(tmp_path)
    with context.store.read() as reading:
        events = reading.events(limit=100)
    context.store.close()
    assert {each.data["by"] for each in events if each.kind == "cleared"} == {actor_name()}
