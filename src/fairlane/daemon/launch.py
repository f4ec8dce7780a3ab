"""Launch: a durable lease becomes a process: prompt, workspace, command line, runner."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from fairlane import workspaces
from fairlane.agents.adapter import Agent, agents, expanded, launch_of
from fairlane.daemon import folders
from fairlane.daemon.prompt import prompt_of
from fairlane.executors.base import After, Executor, Orders
from fairlane.executors.masks import patterns
from fairlane.executors.runfiles import put
from fairlane.model.errors import FairlaneError, Shortage
from fairlane.model.event import Happening
from fairlane.model.instant import SECOND, Micros
from fairlane.model.project import Project
from fairlane.model.shipped import agent_of
from fairlane.model.task import Task
from fairlane.policy.policy import Policy
from fairlane.service.desk import Desk
from fairlane.service.ending import Report
from fairlane.service.holding import Ending
from fairlane.store.base import Attempt, Reading

#: Set in git's hooks, for instance; they name a repository that is not the attempt's.
_GIT_PLACES = frozenset(
    f"GIT_{name}"
    for name in (
        "ALTERNATE_OBJECT_DIRECTORIES", "COMMON_DIR", "DIR", "INDEX_FILE", "NAMESPACE",
        "OBJECT_DIRECTORY", "PREFIX", "WORK_TREE",
    )
)  # fmt: skip


#: What a failed launch counts as, by the code of its error; every other one is the task's own.
_COUNTS_AS = {
    "paused": Happening.RELEASED,
    "taken": Happening.RELEASED,
    Shortage.code: Happening.ENVIRONMENT,
}


class LaunchFailed(FairlaneError):
    """An attempt could not be started."""

    code = "launch_failed"

    @property
    def ending(self) -> Ending:
        """How the attempt ends."""
        happening = _COUNTS_AS.get(self.error_code, Happening.LAUNCH_FAILED)
        return Ending(happening, Report(detail=self.message))


class Launcher:
    """Turns leases into processes."""

    def __init__(self, desk: Desk, executor: Executor, after: After | None = None) -> None:
        self._desk, self._executor, self._after = desk, executor, after
        self._agents = agents(desk.settings)

    def agent_of(self, task: Task, project: Project) -> Agent:
        """Who runs a task; an agent that is not known here cannot."""
        default = self._desk.settings.agent
        name = agent_of(task.agent, project.agent, default, bool(task.command))
        agent = self._agents.get(name)
        if agent is None:
            raise LaunchFailed(f"agent {name} is not known here", "Name it in fairlane.toml.")
        return agent

    def reader_of(self, task: Task, project: Project) -> Agent:
        """Whose output is read; of an agent that has left the settings only the exit code is."""
        try:
            return self.agent_of(task, project)
        except LaunchFailed:
            return self._agents["shell"]

    def launch(self, task: Task, attempt: Attempt, policy: Policy) -> Attempt:
        """Start it; the attempt then carries the number of its process."""
        try:
            orders = self._orders(task, attempt, policy)
            handle = self._executor.launch(orders)
        except LaunchFailed:
            raise
        except Shortage as error:
            raise LaunchFailed(error.message, error.hint, error.code) from error
        except FairlaneError as error:
            raise LaunchFailed(error.message, error.hint) from error
        except OSError as error:
            missing = folders.missing(error, folders.run_folder(self._desk, attempt))
            code = Shortage.code if missing else None
            raise LaunchFailed(missing or str(error), code=code) from error
        return replace(attempt, pid=handle.pid, pid_started=handle.pid_started)

    def _orders(self, task: Task, attempt: Attempt, policy: Policy) -> Orders:
        with self._desk.store.read() as reading:
            project = reading.projects()[task.project]
            before = [each for each in reading.attempts(task.id) if each.ended_at is not None]
            self._refuse_taken(reading, attempt)
        agent = self.agent_of(task, project)
        place = workspaces.prepare(
            self._desk.home, self._desk.settings, project, task, attempt.workspace
        )
        folder = folders.make(folders.run_folder(self._desk, attempt))
        session = session_of(agent, task, before)
        prompt = prompt_of(self._desk, task, attempt, project, before, resumed=session is not None)
        put(folder / "prompt.md", prompt)
        launch = launch_of(agent, task, prompt, session)
        settings = self._desk.settings
        pool = task.pool or agent.pool
        pool_env = settings.pools[pool].env if pool and pool in settings.pools else {}
        env = self._environment(task, attempt, place.path)
        return Orders(
            folder=folder,
            argv=launch.argv,
            cwd=place.path,
            env={**_own_environment(), **launch.env, **expanded(pool_env), **task.env, **env},
            stdin=launch.stdin,
            stop=launch.stop,
            grace=launch.grace,
            final=launch.final,
            timeout=_seconds(task.timeout or policy.attempt.timeout),
            silence=_seconds(policy.attempt.silence),
            max_bytes=settings.log.max_bytes,
            mask=patterns(settings.log.mask, {**os.environ, **launch.env, **pool_env, **task.env}),
            after=self._after if policy.capacity.mode == "direct" else None,
        )

    def _refuse_taken(self, reading: Reading, attempt: Attempt) -> None:
        """Two attempts never share a folder: who holds the older lease has it."""
        desk, projects = self._desk, reading.projects()

        def folder(one: Attempt) -> Path:
            project = projects[one.project]
            return workspaces.path_of(desk.home, desk.settings, project, one.task, one.workspace)

        older = [each for each in reading.open_attempts() if each.fence < attempt.fence]
        for each in older:
            if each.executor != "none" and folder(each) == folder(attempt):
                raise LaunchFailed(f"{folder(each)} is taken by {each.task}", code="taken")

    def _environment(self, task: Task, attempt: Attempt, place: Path) -> dict[str, str]:
        """What the attempt sees of Fairlane."""
        found = {
            "FAIRLANE_TASK": task.id,
            "FAIRLANE_ATTEMPT": str(attempt.number),
            "FAIRLANE_LEASE": attempt.lease,
            "FAIRLANE_FENCE": str(attempt.fence),
            "FAIRLANE_PROJECT": task.project,
            "FAIRLANE_HOME": str(self._desk.home),
            "FAIRLANE_ARTIFACTS": str(folders.make(folders.artifact_folder(self._desk, task.id))),
            "FAIRLANE_WORKSPACE": str(place),
        }
        if "TRACEPARENT" in os.environ:
            found["TRACEPARENT"] = os.environ["TRACEPARENT"]
        return found


def session_of(agent: Agent, task: Task, before: list[Attempt]) -> str | None:
    """The session that a retry goes on with, where the program can."""
    if task.session != "resume" or not agent.resumes or not before:
        return None
    return before[-1].session


def _own_environment() -> dict[str, str]:
    """This process's environment, without what would lead git into another repository."""
    return {name: value for name, value in os.environ.items() if name not in _GIT_PLACES}


def _seconds(length: Micros | None) -> float | None:
    return None if length is None else length / SECOND
