"""The lease document: everything that the holder of a lease needs to run its attempt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from fairlane.agents.contract import Agent, agents, argv_of, clean, in_sandbox, starts_alike
from fairlane.engine.context import Context, run_path
from fairlane.intake import templates
from fairlane.model.documents.tasks import LeaseDocument, LocalLeaseDocument
from fairlane.model.errors import FairlaneError
from fairlane.model.instant import SECOND, Micros, show_instant
from fairlane.model.project import Project
from fairlane.model.record import dataclass
from fairlane.model.task import Attempt, Task, agent_of
from fairlane.policy.policy import Policy
from fairlane.settings import Settings
from fairlane.store.base import Reading

#: The prompt of an agent that resumes its session.
GO_ON = "Your last attempt ended before the work was done{why}. Go on from where you were."
_LOCAL = LocalLeaseDocument.__annotations__.keys() - LeaseDocument.__annotations__.keys()


@dataclass(frozen=True, slots=True)
class Leased:
    """One lease with the rows that its document is made of."""

    task: Task
    attempt: Attempt
    project: Project
    earlier: tuple[Attempt, ...]  # ended attempts of the task, oldest first


def read_leases(reading: Reading, rows: Sequence[tuple[Task, Attempt]]) -> list[Leased]:
    """The rows of these leases."""
    projects = reading.table(Project) if rows else {}
    return [
        Leased(
            task,
            attempt,
            projects[task.project],
            tuple(row for row in reading.attempts(task.id) if row.fence < attempt.fence)
            if attempt.number > 1
            else (),
        )
        for task, attempt in rows
    ]


def lease_documents(
    context: Context, policy: Policy, leases: Sequence[Leased]
) -> list[LocalLeaseDocument]:
    """The documents of these leases, with what only a holder on this host may see."""
    known = _Agents(context.settings) if leases else None
    return [_document(context, policy, lease, known) for lease in leases if known is not None]


class _Agents:
    """The agents of some leases, each found once for a project."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._known = settings, agents(settings)
        self._found: dict[tuple[str, str], Agent | None] = {}
        #: Command lines of those that start all tasks of a project alike.
        self.alike: dict[tuple[str, str], list[str]] = {}

    def named(self, name: str, project: str) -> Agent | None:
        """The agent as it is started in this project; None: it is not known here."""
        if (name, project) not in self._found:
            agent = self._known.get(name)
            if agent is not None and self._settings.is_confined(name, project):
                agent = in_sandbox(agent)
            self._found[name, project] = agent
        return self._found[name, project]


def public(document: LocalLeaseDocument) -> LeaseDocument:
    """The document without what stays on this host."""
    public = dict(document)
    for name in _LOCAL:
        del public[name]
    return cast("LeaseDocument", public)


def _document(
    context: Context,
    policy: Policy,
    lease: Leased,
    known: _Agents,
) -> LocalLeaseDocument:
    task, attempt, project = lease.task, lease.attempt, lease.project
    default = context.settings.agent  # a task of an older store may have no agent and no pool
    name = agent_of(task.agent, project.agent, default, bool(task.command))
    agent, key = known.named(name, task.project), (name, task.project)
    session = _session(agent, lease)
    prompt, argv, problem = task.prompt, known.alike.get(key, []), ""
    try:
        prompt = clean(_prompt(context, lease, resumed=session is not None))
        if agent is None:
            problem = f"agent {name} is not known here"
        elif session is not None or not argv:
            argv = list(argv_of(agent, task, prompt, session))
            if session is None and starts_alike(agent):
                known.alike[key] = argv
    except FairlaneError as error:
        argv, problem = [], error.message
    return {
        **_public(policy, lease, name, session, prompt, argv),
        "run": run_path(context.home, attempt),
        "subject": task.title or task.prompt.strip().split("\n")[0],
        "handle": attempt.handle,
        "env": dict(task.env),
        "executor": attempt.executor,
        "direct": attempt.direct,
        "pool": task.pool or context.settings.agent_pool(name),
        "baseline": _baseline(lease, session),
        "workspaces": None if project.workspaces is None else list(project.workspaces),
        "pr": list(project.pr),
        "hooks": project.hooks,
        "problem": problem,
    }


def _public(
    policy: Policy, lease: Leased, agent: str, session: str | None, prompt: str, argv: list[str]
) -> LeaseDocument:
    task, attempt, project = lease.task, lease.attempt, lease.project
    return {
        "lease": attempt.lease,
        "task": task.id,
        "fence": attempt.fence,
        "attempt": attempt.number,
        "expires_at": show_instant(attempt.expires_at),
        "worker": attempt.worker,
        "project": task.project,
        "kind": task.kind,
        "agent": agent,
        "title": task.title,
        "prompt": prompt,
        "command": list(task.command),
        "argv": [*argv],
        "session": session,
        "timeout": _seconds(task.timeout or policy.attempt.timeout),
        "silence": _seconds(policy.attempt.silence),
        "workspace": attempt.workspace,
        "repo": project.repo,
        "base": task.base or project.base,
        "branch": f"fairlane/{task.id}" if project.repo else None,
        "start": [],
        "checks": [],
        "merge": task.merge,
        "artifacts": list(task.artifacts),
        "vars": dict(task.vars),
        "meta": dict(task.meta),
        "estimate_tokens": attempt.estimate,
        "url": None,
        "token": None,
    }


def _session(agent: Agent | None, lease: Leased) -> str | None:
    """The session that a retry resumes, where the program can."""
    if lease.task.session != "resume" or agent is None or not agent.resumes or not lease.earlier:
        return None
    return lease.earlier[-1].session


def _baseline(lease: Leased, session: str | None) -> tuple[int, int, int, int] | None:
    if session is None:
        return None
    used = [row.tokens for row in lease.earlier if row.session == session]
    first, second, third, fourth = (sum(counter) for counter in zip(*used, strict=True))
    return first, second, third, fourth


def _prompt(context: Context, lease: Leased, resumed: bool) -> str:
    """The template filled; with the last error where an agent starts anew after a failure."""
    earlier = lease.earlier
    error = next((row.detail for row in reversed(earlier) if row.detail), "")
    if resumed:
        return GO_ON.format(why=f" ({error})" if error else "")
    text = _filled(context, lease, error)
    failed = any(row.outcome in ("failed", "lost", "launch_failed") for row in earlier)
    if failed and error and "{error}" not in text:
        text += f"\n\nAn earlier attempt at this failed: {error}\n"
    return text


def _filled(context: Context, lease: Leased, error: str) -> str:
    task, project = lease.task, lease.project
    name = task.template or project.template
    if name is None or name == templates.NONE:
        return task.prompt or task.title
    values = {
        "id": task.id,
        "title": task.title,
        "prompt": task.prompt,
        "project": task.project,
        "kind": task.kind,
        "group": task.group or "",
        "parent": task.parent or "",
        "agent": task.agent or "",
        "base": task.base or project.base or "",
        "workspace": lease.attempt.workspace or "",
        "priority": str(task.priority),
        "attempt": str(lease.attempt.number),
        "error": error,
        "artifacts": " ".join(task.artifacts),
    }
    return templates.render(templates.find(name, project, context.home), values, task.vars)


def _seconds(length: Micros | None) -> float | None:
    return None if length is None else length / SECOND
