"""Shared writer: batches the writes of many callers into one commit."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass

from fairlane.clock import SYSTEM
from fairlane.engine.context import Context
from fairlane.engine.round import notice_files
from fairlane.service import pull
from fairlane.service.attempt_rights import actor_of
from fairlane.service.operations.call import Document, answer
from fairlane.service.operations.table import Operation

#: Most calls in one commit.
BATCH_MAX = 64
#: Whoever asks again so soon after an answer is expected to do so after the next one too.
PROMPT_SECONDS = 0.005
#: How long a commit waits at most for callers that are expected.
GATHER_SECONDS = 0.002

#: Calls that share no commit: mixed, each plan and each commit would serve half as many.
_APART = {"lease": "complete", "complete": "lease"}


@dataclass(slots=True, eq=False)
class _Call:
    """One call that waits for its answer."""

    operation: Operation
    arguments: Mapping[str, object]
    lease: str | None  # of the attempt that asks
    caller: object  # its connection
    future: asyncio.Future[Document]
    outcome: Document | BaseException | None = None

    def perform(self, context: Context) -> None:
        """By itself: an error rolls back this call alone."""
        try:
            self.outcome = answer(context, self.operation.name, **self.arguments)
        except Exception as error:
            self.outcome = error


class PromptCallers:
    """Callers that ask again as soon as they are answered: a commit waits for nobody else."""

    def __init__(self) -> None:
        self.expected: set[object] = set()  # to ask again now
        self._prompt: set[object] = set()  # asked again at once the last time
        self._answered: dict[object, float] = {}  # when: the last answers

    def asks(self, caller: object, now: float) -> None:
        """One of them, or somebody else."""
        answered = self._answered.pop(caller, None)
        if answered is not None and now - answered <= PROMPT_SECONDS:
            self._prompt.add(caller)
        else:
            self._prompt.discard(caller)
        self.expected.discard(caller)

    def answered(self, callers: Iterable[object], now: float) -> None:
        """Who stayed away since the last time is expected no longer."""
        self._prompt -= self.expected
        self.expected = self._prompt.intersection(callers)
        recent = {c: at for c, at in self._answered.items() if now - at <= PROMPT_SECONDS}
        self._answered = recent | dict.fromkeys(callers, now)


class SharedWriter:
    """One thread that writes everything that has arrived as one commit."""

    def __init__(self, context: Callable[[], Context]) -> None:
        self._context = context
        self._thread = threading.Thread(target=self._run, name="write", daemon=True)
        self._waiting: deque[_Call] = deque()
        self._arrived = threading.Condition()
        self._prompt = PromptCallers()
        self._gathering = False
        self._closing = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def open(self) -> None:
        """Begin; called in the loop that asks."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def close(self) -> None:
        """Answer what has arrived; blocks until the thread has ended."""
        with self._arrived:
            self._closing = True
            self._arrived.notify_all()
        self._thread.join()

    async def write(
        self,
        operation: Operation,
        arguments: Mapping[str, object],
        lease: str | None,
        caller: object = None,
    ) -> Document:
        """The answer of an operation once it is durable; `caller`: the connection that asks."""
        future: asyncio.Future[Document] = asyncio.get_running_loop().create_future()
        with self._arrived:
            self._waiting.append(_Call(operation, arguments, lease, caller, future))
            self._prompt.asks(caller, SYSTEM.monotonic())
            if not (
                self._gathering and self._prompt.expected
            ):  # a wake-up for each would cost more
                self._arrived.notify()
        return await future

    def _run(self) -> None:
        while calls := self._take():
            try:
                self._perform(self._context(), calls)
            except BaseException as error:  # the commit failed: none of them has happened
                for call in calls:
                    call.outcome = error
            with self._arrived:
                callers = [call.caller for call in calls if call.caller is not None]
                self._prompt.answered(callers, SYSTEM.monotonic())
            if self._loop is not None:
                self._loop.call_soon_threadsafe(_answer, calls)

    def _take(self) -> list[_Call]:
        """What has arrived; callers that come back at once get a moment to join."""
        with self._arrived:
            while not self._waiting and not self._closing:
                self._arrived.wait()
            if self._prompt.expected and not self._closing:
                self._gathering = True
                self._arrived.wait(GATHER_SECONDS)
                self._gathering = False
            waiting = list(self._waiting)
            other = _APART.get(waiting[0].operation.name) if waiting else None
            batch = [call for call in waiting if call.operation.name != other][:BATCH_MAX]
            taken = set(batch)
            self._waiting = deque(call for call in waiting if call not in taken)
            return batch

    def _perform(self, context: Context, calls: list[_Call]) -> None:
        """All of them in one commit; a single group has a transaction of its own."""
        own, own_lease, groups = context.actor, context.lease, _groups(calls)
        if len(groups) > 1 and any(call.operation.name == "lease" for call in calls):
            notice_files(context)
        try:
            with context.store.sharing() if len(groups) > 1 else nullcontext():
                for group in groups:
                    lease = group[0].lease
                    context.actor = actor_of(lease) if lease else own
                    context.lease = lease or own_lease
                    _perform_group(context, group)
        finally:
            context.actor, context.lease = own, own_lease


def _groups(calls: list[_Call]) -> list[list[_Call]]:
    """Calls that one function performs together."""
    groups: dict[object, list[_Call]] = {}
    for call in calls:
        sort = pull.batch_key(call.operation.name, call.arguments)
        groups.setdefault((call.lease, sort) if sort else call, []).append(call)
    return list(groups.values())


def _perform_group(context: Context, calls: list[_Call]) -> None:
    """Calls of one sort together; if that fails, one by one."""
    if len(calls) > 1:
        arguments = [call.arguments for call in calls]
        try:
            answers = pull.answer_batch(context, calls[0].operation.name, arguments)
        except Exception:  # one of them is bad: which one shows below
            answers = []
        for call, outcome in zip(calls, answers, strict=False):
            call.outcome = outcome
        if answers:
            return
    for call in calls:
        call.perform(context)


def _answer(calls: list[_Call]) -> None:
    """In the loop: every caller gets its own answer."""
    for call in calls:
        if call.future.cancelled():
            continue
        if isinstance(call.outcome, BaseException):
            call.future.set_exception(call.outcome)
        else:
            assert call.outcome is not None
            call.future.set_result(call.outcome)
