"""The lease document: everything that the holder of a lease needs to run its attempt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, cast

from fairlane.agents import sessions
from fairlane.agents.contract import (
    Agent,
    agents,
    argv_of,
    clean,
    given_environment,
    in_sandbox,
    starts_alike,
)
from fairlane.engine import checks, earlier_work
from fairlane.engine.context import Context, run_path
from fairlane.engine.earlier_work import Earlier
from fairlane.intake import templates
from fairlane.model.documents.parts import CheckDocument
from fairlane.model.documents.tasks import LeaseDocument, LocalLeaseDocument, StartDocument
from fairlane.model.errors import FairlaneError
from fairlane.model.instant import SECOND, Micros, show_instant
from fairlane.model.project import Project
from fairlane.model.record import dataclass
from fairlane.model.task import SETUP, Attempt, Task, agent_of
from fairlane.policy.policy import Policy
from fairlane.settings import Settings
from fairlane.store.base import Reading
from fairlane.workspaces import is_shared, path_of

#: The prompt of an agent that resumes its session.
GO_ON = "Your last attempt ended before the work was done{why}. Go on from where you were."
#: Outcomes after which a prompt says what went wrong.
_FAILED = ("failed", "check_failed", "lost", "launch_failed")
_LOCAL = LocalLeaseDocument.__annotations__.keys() - LeaseDocument.__annotations__.keys()


@dataclass(frozen=True, slots=True)
class Leased:
    """One lease with the rows that its document is made of."""

    task: Task
    attempt: Attempt
    project: Project
    earlier: tuple[Attempt, ...]  # ended attempts of the task, oldest first
    before: tuple[Earlier, ...] = ()  # its parent and its needs, where they are done


def read_leases(reading: Reading, rows: Sequence[tuple[Task, Attempt]]) -> list[Leased]:
    """The rows of these leases."""
    projects = reading.table(Project) if rows else {}
    looking = [task for task, _ in rows if _looks_back(task)]
    before = earlier_work.read(reading, looking, projects) if looking else {}
    return [
        Leased(
            task,
            attempt,
            projects[task.project],
            tuple(row for row in reading.attempts(task.id) if row.fence < attempt.fence)
            if attempt.number > 1
            else (),
            before.get(task.id, ()),
        )
        for task, attempt in rows
    ]


def _looks_back(task: Task) -> bool:
    """Whether it starts from earlier work, or its prompt tells of some."""
    has_some = bool(task.needs) or task.parent is not None
    return has_some and "needs" in (task.carry, task.context)


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
    pool = task.pool or context.settings.agent_pool(name)
    going_on = _going_on(context, agent, lease, pool)
    session = going_on.last.session if going_on is not None else None
    prompt, argv, problem = task.prompt, known.alike.get(key, []), ""
    try:
        prompt = clean(_prompt(context, lease, agent, going_on))
        if agent is None:
            problem = f"agent {name} is not known here"
        elif going_on is not None or not argv:
            word = going_on.word if going_on is not None else None
            argv = list(argv_of(agent, task, prompt, word))
            if session is None and starts_alike(agent):
                known.alike[key] = argv
    except FairlaneError as error:
        argv, problem = [], error.message
    return {
        **_public(policy, lease, name, session, prompt, argv),
        "start": _starts(context, lease),
        "run": run_path(context.home, attempt),
        "subject": task.title or task.prompt.strip().split("\n")[0],
        "handle": attempt.handle,
        "env": dict(task.env),
        "executor": attempt.executor,
        "direct": attempt.direct,
        "pool": pool,
        "baseline": _baseline(lease, session),
        "workspaces": None if project.workspaces is None else list(project.workspaces),
        "pr": list(project.pr),
        "setup": list(project.setup),
        "setup_files": list(project.setup_files),
        "project_checks": [list(check.argv) for check in project.checks],
        "protect": None if project.protect is None else list(project.protect),
        "checked": [dict(row) for row in attempt.checks],
        "work": None if attempt.work is None else dict(attempt.work),
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
        "checks": [_check(row) for row in attempt.checks if row["name"] != SETUP],
        "merge": task.merge,
        "artifacts": list(task.artifacts),
        "vars": dict(task.vars),
        "meta": dict(task.meta),
        "estimate_tokens": attempt.estimate,
        "url": None,
        "token": None,
    }


def _check(row: Mapping[str, object]) -> CheckDocument:
    """A check as its holder runs it."""
    return cast("CheckDocument", {name: row[name] for name in ("name", "argv", "timeout")})


def _starts(context: Context, lease: Leased) -> list[StartDocument]:
    """The work that it carries; nothing where attempts have no branch."""
    shared = not lease.before or is_shared(context.settings, lease.project)
    return [] if shared else earlier_work.starts(lease.before)


class _GoingOn(NamedTuple):
    """The session that a retry resumes."""

    last: Attempt  # the attempt that had it
    word: str  # by which its program finds it from the folder of this one


def _going_on(
    context: Context, agent: Agent | None, lease: Leased, pool: str | None
) -> _GoingOn | None:
    """Where a retry goes on; None: it starts anew."""
    task, attempt, project = lease.task, lease.attempt, lease.project
    if task.session != "resume" or agent is None or not agent.resumes:
        return None
    last = next((row for row in reversed(lease.earlier) if row.session), None)
    if last is None or not last.session or last.agent != attempt.agent:
        return None
    if attempt.executor == "none":  # whoever holds it knows its own folders
        return _GoingOn(last, last.session)
    if last.host != attempt.host:
        return None
    here, before = (
        path_of(context.home, context.settings, project, task.id, row.workspace)
        for row in (attempt, last)
    )
    worked = (last.work or {}).get("path")
    env = {**given_environment(context.settings, agent, pool), **task.env}
    folder = Path(worked) if isinstance(worked, str) else before
    word = sessions.resumed_by(agent, last.session, env, here, folder)
    return None if word is None else _GoingOn(last, word)


def _baseline(lease: Leased, session: str | None) -> tuple[int, int, int, int] | None:
    if session is None:
        return None
    used = [row.tokens for row in lease.earlier if row.session == session]
    first, second, third, fourth = (sum(counter) for counter in zip(*used, strict=True))
    return first, second, third, fourth


def _prompt(context: Context, lease: Leased, agent: Agent | None, going_on: _GoingOn | None) -> str:
    """The template filled; with the last error where an agent starts anew after a failure."""
    earlier = lease.earlier
    error = next((row.detail for row in reversed(earlier) if row.detail), "")
    failed_check = checks.output_of(earlier[-1]) if earlier else ""
    if going_on is not None:
        text = failed_check or GO_ON.format(why=f" ({error})" if error else "")
        base = lease.task.base or lease.project.base
        return _joined(text, earlier_work.news(lease.task, base, lease.before, going_on.last))
    runs_command = agent is not None and "{command}" in agent.argv
    text = _filled(context, lease, error, tells=not runs_command)
    failed = any(row.outcome in _FAILED for row in earlier)
    if earlier and not runs_command and lease.task.session == "resume":
        text = _joined(text, earlier_work.so_far(earlier[-1]))
    if failed_check:
        text += f"\n\nThis was tried before. {failed_check}"
    elif failed and error and "{error}" not in text:
        text += f"\n\nAn earlier attempt at this failed: {error}\n"
    return text


def _joined(text: str, more: str) -> str:
    return f"{text}\n\n{more}\n" if more else text


def _filled(context: Context, lease: Leased, error: str, tells: bool) -> str:
    """The template with its values; `tells`: with what came before, there or at its end."""
    task, project = lease.task, lease.project
    name = task.template or project.template
    artifacts = context.home / "artifacts"
    before = earlier_work.section(task, lease.before, artifacts) if tells else ""
    if name is None or name == templates.NONE:
        return _joined(task.prompt or task.title, before)
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
        "needs": before,
    }
    text = templates.find(name, project, context.home)
    filled = templates.render(text, values, task.vars)
    return filled if templates.uses(text, "needs", task.vars) else _joined(filled, before)


def _seconds(length: Micros | None) -> float | None:
    return None if length is None else length / SECOND
