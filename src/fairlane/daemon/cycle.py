"""The cycle: look, plan, commit, launch, once. This page tells the story."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from threading import Event as Signal
from time import monotonic

from fairlane.daemon.crew import Member, member_of
from fairlane.daemon.folders import run_folder
from fairlane.daemon.launch import Launcher, LaunchFailed, session_of
from fairlane.executors.base import Handle
from fairlane.lifecycle.usage import Tokens
from fairlane.model.instant import SECOND
from fairlane.model.task import Task
from fairlane.policy.policy import Policy
from fairlane.service.desk import Desk
from fairlane.service.looking import Asker
from fairlane.service.rounds import Committed, commit_round
from fairlane.settings import host_name
from fairlane.store.base import Attempt

#: How many launches are prepared at once: a slow worktree holds up no other.
LAUNCHES_AT_ONCE = 4

Launched = tuple[Task, Attempt, Member | LaunchFailed]


class Cycle:
    """Starts what the plan says; what became of each launch comes back through `launched`."""

    def __init__(self, desk: Desk, launcher: Launcher) -> None:
        self._desk, self._launcher = desk, launcher
        self._threads = ThreadPoolExecutor(LAUNCHES_AT_ONCE, "launch")
        self._halt = Signal()
        self.launched: SimpleQueue[Launched] = SimpleQueue()
        self.launching = 0

    def once(self, policy: Policy, limit: int | None = None) -> Committed:
        """One round: what it leased is durable before anything is started."""
        desk = self._desk
        asker = Asker(desk.settings.worker.name, limit, desk.settings.worker.executor, host_name())
        with desk.store.write() as tx:
            # 1. Look. 2. Plan. 3. Commit: one fenced transaction.
            begun = monotonic()
            committed = commit_round(desk, tx, policy, desk.now(), asker)
            if committed.started:
                tx.put_value("cycle_seconds", round(monotonic() - begun, 6))
        # 4. Launch.
        for number, (task, attempt) in enumerate(committed.started):
            self._launch(task, attempt, policy, number * policy.capacity.spawn_delay)
        return committed

    def close(self) -> None:
        """Nothing more is started; what is being prepared is finished."""
        self._halt.set()
        self._threads.shutdown(wait=True)

    def _launch(self, task: Task, attempt: Attempt, policy: Policy, delay: int) -> None:
        self.launching += 1
        future = self._threads.submit(self._launch_later, task, attempt, policy, delay)
        future.add_done_callback(lambda done: done.result())

    def _launch_later(self, task: Task, attempt: Attempt, policy: Policy, delay: int) -> None:
        found: Member | LaunchFailed
        try:
            if delay:
                self._halt.wait(delay / SECOND)
                self._refuse_paused(task)
            attempt = self._launcher.launch(task, attempt, policy)
            found = self.member(task, attempt)
        except LaunchFailed as error:
            found = error
        except Exception as error:  # a bug here must not hold the lease for ever
            found = LaunchFailed(f"{type(error).__name__}: {error}")
        self.launched.put((task, attempt, found))

    def member(self, task: Task, attempt: Attempt) -> Member:
        """The process of an attempt, as it is watched."""
        with self._desk.store.read() as reading:
            project = reading.projects()[task.project]
            before = [each for each in reading.attempts(task.id) if each.fence < attempt.fence]
        agent = self._launcher.reader_of(task, project)
        session = session_of(agent, task, before)
        used = [each.tokens for each in before if each.session == session]
        baseline = Tokens(*(sum(counter) for counter in zip(*used, strict=True)))
        handle = Handle(attempt.pid or 0, attempt.pid_started or "")
        folder = run_folder(self._desk, attempt)
        known = baseline if session is not None else None
        return member_of(task, attempt, folder, agent, handle, known)

    def _refuse_paused(self, task: Task) -> None:
        """A pause between two starts of one cycle is respected."""
        with self._desk.store.read() as reading:
            scopes = {pause.scope for pause in reading.pauses()}
        names = {"all", f"project:{task.project}", f"kind:{task.kind}", f"task:{task.id}"}
        names |= {f"group:{task.group}", f"pool:{task.pool}"}
        if scopes & names:
            raise LaunchFailed("paused before its start", code="paused")
