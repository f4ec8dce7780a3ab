"""Apart: simulations in processes of their own, as many at once as there are processors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from fairlane.model.errors import FairlaneError, Invalid, Refused, TryLater
from fairlane.simulation.run import AttemptLine, Run, TaskLine

if TYPE_CHECKING:
    from fairlane.model.documents.simulation import SimulateAnswer
    from fairlane.simulation.simulate import Order

_T = TypeVar("_T")

#: `-P`: the folder in which it is called adds no modules.
_CHILD = (sys.executable, "-P", "-m", "fairlane.simulation.child")


class Apart:
    """Makes simulations once; `end` stops those under way, also from another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._children: list[subprocess.Popen[bytes]] = []
        self._ended = False

    def run(self, orders: Sequence[Order]) -> list[Run]:
        """The runs, in the order of their orders; the first error ends all of them."""
        return self._all(lambda order: unpacked(self._one(order, "run")), orders)

    def answers(self, orders: Sequence[Order]) -> list[SimulateAnswer]:
        """The same as documents: a run of a million tasks stays in the process that made it."""
        return self._all(lambda order: self._one(order, "answer"), orders)

    def _all(self, one: Callable[[Order], _T], orders: Sequence[Order]) -> list[_T]:
        at_once = min(len(orders), len(os.sched_getaffinity(0)))
        with ThreadPoolExecutor(at_once, "simulation") as threads:
            try:
                return list(threads.map(one, orders))
            finally:
                self.end()

    def end(self) -> None:
        """Kill what is under way; nothing more begins."""
        with self._lock:
            self._ended = True
            for child in self._children:
                child.kill()

    def _one(self, order: Order, wanted: str) -> Any:
        """What a child says."""
        with self._lock:
            if self._ended:
                raise _stopped()
            child = subprocess.Popen(
                (*_CHILD, wanted), stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            self._children.append(child)
        try:
            text = _answer_of(child, order)
        finally:
            with self._lock:
                self._children.remove(child)
        if self._ended:
            raise _stopped()
        return _read(text, child.returncode, order.name)


def _stopped() -> TryLater:
    return TryLater("the simulation was stopped", "Ask again.")


def _answer_of(child: subprocess.Popen[bytes], order: Order) -> bytes:
    """What a child prints; its input stays open until then: its end would end the child."""
    assert child.stdin is not None
    assert child.stdout is not None
    text = b""
    with suppress(BrokenPipeError), child:  # where it has died already, its exit code says more
        with suppress(BrokenPipeError):
            child.stdin.write(json.dumps(order).encode() + b"\n")
            child.stdin.flush()
        text = child.stdout.read()
    return text


def _read(text: bytes, code: int, name: str) -> Any:
    """What a child printed, or the error that it met."""
    if code != 0:
        hint = "There is not enough memory, or standard error has its trace."
        message = f"the simulation of {name!r} ended with exit code {code}"
        raise FairlaneError(message, hint, "internal")
    answer = json.loads(text)
    if "error" in answer:
        error, kind = answer["error"], Invalid if answer["invalid"] else Refused
        raise kind(error["message"], error["hint"], error["code"])
    return answer


def packed(run: Run) -> dict[str, Any]:
    """A run as JSON can hold it."""
    values = {field.name: getattr(run, field.name) for field in fields(run)}
    for key in ("weights", "lag", "held", "overshoot", "late"):
        values[key] = dict(values[key])
    rows = {"tasks": TaskLine, "attempts": AttemptLine}
    return values | {key: [*map(_row_of(kind), values[key])] for key, kind in rows.items()}


def _row_of(kind: type[TaskLine | AttemptLine]) -> attrgetter[tuple[object, ...]]:
    return attrgetter(*(field.name for field in fields(kind)))


def unpacked(document: Mapping[str, Any]) -> Run:
    """The run that `packed` has packed."""
    lists: dict[str, Any] = {
        "tasks": tuple(TaskLine(*row) for row in document["tasks"]),
        "attempts": tuple(AttemptLine(*row) for row in document["attempts"]),
        "slots": tuple((at, count) for at, count in document["slots"]),
        "undone": tuple((at, do, why) for at, do, why in document["undone"]),
    }
    return Run(**(dict(document) | lists))
