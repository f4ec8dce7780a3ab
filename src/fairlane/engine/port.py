"""The port by which the runtime reaches the engine: here, or on a server elsewhere."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from functools import partial
from typing import Protocol

from fairlane.engine import attempts, checks
from fairlane.engine.attempts import Blocked, Finished, Leases, Progress
from fairlane.engine.context import Context
from fairlane.engine.end_attempt import Ending
from fairlane.engine.look.workers import Asker
from fairlane.engine.turn import Renewed
from fairlane.model.documents.tasks import LocalLeaseDocument
from fairlane.settings import host_name


class Port(Protocol):
    """The life of an attempt as its holder sees it; `engine.attempts` says what each does."""

    def lease(self, *, limit: int | None = None, only: Sequence[str] | None = None) -> Leases: ...
    def blocked(self, leases: Iterable[str]) -> dict[str, Blocked]: ...
    def start(self, started: Mapping[str, str | None]) -> Renewed: ...
    def renew(self, leases: Iterable[str], waiting: Container[str] = ()) -> Renewed: ...
    def stops(self, leases: Iterable[str]) -> dict[str, str]: ...
    def progress(self, reported: Mapping[str, Progress]) -> Renewed: ...
    def checked(
        self,
        lease: str,
        rows: Sequence[Mapping[str, object]],
        work: Mapping[str, object] | None = None,
    ) -> Renewed: ...
    def finish(self, endings: Mapping[str, Ending]) -> dict[str, Finished]: ...
    def open_here(self, known: Container[str] = ()) -> list[LocalLeaseDocument]: ...
    def present(self) -> None: ...


class LocalPort:
    """The engine of this machine, asked by its own worker."""

    def __init__(self, context: Context) -> None:
        worker = context.settings.worker
        asker = Asker(worker.name, None, worker.executor, host_name())
        self.lease = partial(attempts.lease, context, asker)
        self.blocked = partial(attempts.blocked, context)
        self.start = partial(attempts.start, context)
        self.renew = partial(attempts.renew, context)
        self.stops = partial(attempts.stops, context)
        self.progress = partial(attempts.progress, context)
        self.checked = partial(checks.record, context)
        self.finish = partial(attempts.finish, context)
        self.open_here = partial(attempts.open_here, context)
        self.present = partial(attempts.present, context)
        #: What is done in a block of it is durable together.
        self.one_commit = context.store.sharing
