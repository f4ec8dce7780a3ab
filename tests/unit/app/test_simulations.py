"""Simulations of a server: one call at a time; one that nobody waits for ends."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from fairlane.app.shared_queue import SharedQueue
from fairlane.http.messages import status_of
from fairlane.model.documents.simulation import SimulateAnswer
from fairlane.model.errors import Busy, Invalid, TryLater
from fairlane.simulation import apart
from fairlane.simulation.simulate import Order, answer_here
from tests.unit.app.test_shared_queue import with_queue

WORKLOAD = {
    "days": 1,
    "work": {"default": {"duration": "20m", "tokens": 1000}},
    "source": [{"every": "1h"}],
}


class Gate:
    """Stands in for the processes: a run is made here, once the gate is open."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.open, self.ended = threading.Event(), threading.Event(), 0
        monkeypatch.setattr(apart.Apart, "answers", lambda _, orders: self._answers(orders))
        monkeypatch.setattr(apart.Apart, "end", lambda _: self._end())

    def _answers(self, orders: list[Order]) -> list[SimulateAnswer]:
        self.begun.set()
        self.open.wait()
        return [answer_here(order) for order in orders]

    def _end(self) -> None:
        self.ended += 1
        self.open.set()


async def asked(queue: SharedQueue, **values: object) -> Any:
    return await queue.ask("simulate", {"workload": WORKLOAD, **values})


def test_a_second_call_is_told_to_come_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)

    async def story(queue: SharedQueue) -> Any:
        first = asyncio.ensure_future(asked(queue, policies=["balanced"]))
        await asyncio.to_thread(gate.begun.wait)
        with pytest.raises(Busy, match="another simulation is under way") as busy:
            await asked(queue)
        assert status_of(busy.value) == 429
        gate.open.set()
        answer = await first
        again = await asked(queue, policies=["balanced"])
        return answer, again

    answer, again = with_queue(tmp_path, story)
    assert answer == again
    assert [row["name"] for row in answer["policies"]] == ["balanced"]
    assert answer["policies"][0]["done"] == 24


def test_a_call_that_is_given_up_ends_its_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)

    async def story(queue: SharedQueue) -> None:
        call = asyncio.ensure_future(asked(queue))
        await asyncio.to_thread(gate.begun.wait)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert gate.ended == 1
        assert (await asked(queue))["workload"] == "workload"

    with_queue(tmp_path, story)


def test_a_server_that_stops_ends_what_is_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)

    async def story(queue: SharedQueue) -> Any:
        call = asyncio.ensure_future(asked(queue))
        await asyncio.to_thread(gate.begun.wait)
        return call

    with_queue(tmp_path, story)
    assert gate.ended >= 1


def test_processes_answer_as_a_call_here_does(tmp_path: Path) -> None:
    async def story(queue: SharedQueue) -> Any:
        with pytest.raises(Invalid, match="workload: unknown key 'dayz'"):
            await queue.ask("simulate", {"workload": {"dayz": 1}})
        with pytest.raises(Invalid, match="unknown preset"):
            await asked(queue, policies=["/etc/passwd"])
        return await asked(queue, policies=["balanced", {"name": "two", "policy": {"caps.all": 2}}])

    answer = with_queue(tmp_path, story)
    assert [(row["name"], row["done"]) for row in answer["policies"]] == [
        ("balanced", 24), ("two", 24),
    ]  # fmt: skip


def test_stopped_is_no_mistake_of_the_caller() -> None:
    assert status_of(TryLater("the simulation was stopped")) == 503
