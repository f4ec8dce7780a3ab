"""What an attempt may do: hold its lease, look at its task, and add children within bounds.

Every interface asks here: `permit` for an operation, `Children` for what is added, and
`answer_attempt` for both with the answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from fairlane.model.errors import Forbidden
from fairlane.model.record import replace
from fairlane.model.task import SHELL, Attempt, agent_of
from fairlane.service.operations.call import Document, answer, fitting
from fairlane.service.operations.table import OPERATIONS

if TYPE_CHECKING:
    from fairlane.engine.context import Context
    from fairlane.intake.fields import TaskValues
    from fairlane.intake.routing import Router
    from fairlane.policy.policy import Policy
    from fairlane.store.base import Reading

#: Arguments of `add` that reach beyond new tasks.
_FAR = ("again", "force")
#: Fields of a child that its parent does not bound.
FREE = frozenset(
    {
        "id", "kind", "title", "prompt", "template", "session", "parent", "artifacts", "group",
        "carry", "context", "checks",
        "parallel", "locks", "workspace", "estimate_tokens", "not_before", "vars", "meta",
    }
)  # fmt: skip
#: Fields of a child that `Children` checks; a field that is in neither list is refused.
BOUNDED = frozenset(
    {
        "project", "agent", "command", "env", "pool", "base", "merge", "labels", "priority",
        "timeout", "max_attempts", "needs", "no_checks",
    }
)  # fmt: skip


def answer_attempt(
    context: Context, lease: str, name: str, arguments: Mapping[str, object]
) -> Document:
    """The answer of an operation to the attempt that holds this lease, and to it alone."""
    values = fitting(OPERATIONS[name], arguments)
    permit(context, name, values, lease, token=True)
    acting = replace(context, actor=actor_of(lease), lease=lease)
    return answer(acting, name, **values)


def actor_of(lease: str) -> str:
    """How the log names an attempt that shows its token."""
    return f"lease:{lease}"


def permit(
    context: Context, name: str, arguments: Mapping[str, object], lease: str, *, token: bool
) -> None:
    """Refuse an operation that this attempt may not call.

    `token`: the caller proved that it is the attempt, and that is all it may see. Without, it is a
    command inside the attempt, which also reads: it could open the store itself.
    """
    right = OPERATIONS[name].attempt
    if right == "lease" and arguments.get("lease") == lease:
        return
    if right in ("look", "task") and not token:
        return
    if right in ("task", "children"):
        with context.store.read() as reading:
            attempt = held(reading, lease)
        if right == "children":
            _refuse_far(arguments)
            return
        if arguments.get("task") == attempt.task:
            return
    raise not_for_attempts(name, token)


def not_for_attempts(what: str, token: bool = False) -> Forbidden:
    """An operation or a command that no attempt may call."""
    if token:
        hint = (
            "It heartbeats, reports, completes and releases its lease, reads its task, and adds"
            " children."
        )
        return Forbidden("the token of an attempt cannot do this", hint)
    hint = "A person decides this; outside an attempt FAIRLANE_LEASE is not set."
    return Forbidden(f"{what}: not inside an attempt", hint, code="inside_attempt")


def held(reading: Reading, lease: str) -> Attempt:
    """The attempt of a lease that has not ended."""
    attempt = reading.attempt(lease)
    if attempt is None:
        hint = "It was never given out here; for another home folder unset FAIRLANE_LEASE."
        raise Forbidden(f"no lease {lease!r}", hint, code="unknown_lease")
    if attempt.ended_at is not None:
        message = f"lease {lease} of {attempt.task} has ended ({attempt.outcome})"
        raise Forbidden(message, "What an attempt may do ends with its lease.", code="lease_ended")
    return attempt


def _refuse_far(arguments: Mapping[str, object]) -> None:
    for name in _FAR:
        if arguments.get(name):
            raise Forbidden(f"{name}: an attempt adds new tasks only", "Leave it out.")


class Children:
    """Bounds the tasks that one attempt adds, in the transaction that adds them."""

    def __init__(self, tx: Reading, policy: Policy, router: Router, lease: str) -> None:
        attempt = held(tx, lease)
        parent = tx.task(attempt.task)
        assert parent is not None  # an attempt is of a task
        self._tx, self._policy, self._parent = tx, policy, parent
        self._may = policy.attempt.may_add
        self._settings = router.settings
        project = self._project = router.project(parent.project)
        usual = agent_of(None, project.agent, router.settings.agent, False)
        #: A command has no prompts to give on: its children get the agent of the project.
        self._own_agent = usual if parent.agent in (None, SHELL) else str(parent.agent)

    def bound(self, draft: TaskValues, batch: Sequence[str]) -> None:
        """Fill in what a child has of its parent; refuse what it may not have.

        `batch`: the ids that are added together.
        """
        for field in draft:
            if field not in FREE and field not in BOUNDED:
                self._refuse(field, "an attempt cannot give it")
        parent = self._parent
        draft["parent"] = parent.id
        if draft.setdefault("project", parent.project) != parent.project:
            self._refuse("project", f"an attempt adds to its own project, {parent.project}")
        self._bound_process(draft)
        self._bound_branch(draft)
        self._bound_checks(draft)
        self._bound_place(draft)
        self._bound_needs(draft, batch)

    def refuse_known(self, ids: Sequence[str]) -> None:
        """Tasks that are there already are answered if they are its children."""
        for task in self._tx.tasks(ids).values():
            if task.parent != self._parent.id:
                self._refuse("id", f"{task.id} is the id of another task")

    def _bound_process(self, draft: TaskValues) -> None:
        """Which program runs, with which variables and account."""
        for field, allowed in (("command", self._may.command), ("env", self._may.env)):
            if draft.get(field) and not allowed:
                self._refuse(field, "an attempt cannot give it", f".{field} is false")
        own, agents = self._own_agent, self._may.agents
        if not draft.get("command") and agents != "any":
            draft.setdefault("agent", own)
        agent = draft.get("agent")
        free = agent is None or agents == "any" or (draft.get("command") and agent == SHELL)
        if not free and agent != own and (agents == "same" or agent not in agents):
            shown = agents if isinstance(agents, str) else ", ".join(agents)
            self._refuse("agent", f"{agent} is not the agent of its parent", f".agents is {shown}")
        self._bound_pool(draft)

    def _bound_pool(self, draft: TaskValues) -> None:
        """An account gives its variables to the process: the parent's, or that of its agent."""
        parent, agent = self._parent, draft.get("agent")
        usual = self._settings.agent_pool(agent) if agent else None
        if parent.pool is not None and agent is not None and agent == parent.agent:
            draft.setdefault("pool", parent.pool)
        if draft.get("pool") not in (None, usual, parent.pool):
            self._refuse("pool", f"{draft['pool']} is not the pool of its parent")

    def _bound_branch(self, draft: TaskValues) -> None:
        """Where the work begins, and where it may go."""
        parent = self._parent
        if parent.base is not None:
            draft.setdefault("base", parent.base)
        if draft.get("base") not in (None, parent.base, f"fairlane/{parent.id}"):
            self._refuse(
                "base", f"{draft['base']} is neither the base nor the branch of its parent"
            )
        draft.setdefault("merge", "keep" if parent.merge != self._project.merge else parent.merge)
        if draft["merge"] not in ("keep", parent.merge):
            self._refuse("merge", f"its parent has merge = {parent.merge}")

    def _bound_checks(self, draft: TaskValues) -> None:
        """A child may have more checks than its project asks for, not fewer."""
        if draft.get("no_checks") and not self._parent.no_checks:
            self._refuse("no_checks", "an attempt adds checks, it takes none off")

    def _bound_place(self, draft: TaskValues) -> None:
        """Which machine, how soon, how long, how often."""
        parent, policy = self._parent, self._policy
        for label in draft.get("labels", ()):
            if label not in parent.labels:
                self._refuse("labels", f"its parent does not have {label}")
        if parent.labels:
            draft["labels"] = parent.labels
        if draft.get("priority", parent.priority) < parent.priority:
            self._refuse("priority", f"that of its parent is {parent.priority}; lower goes first")
        timeout = parent.timeout or policy.attempt.timeout
        if timeout is not None and draft.get("timeout", timeout) > timeout:
            self._refuse("timeout", "that of its parent is shorter")
        attempts = parent.max_attempts or policy.retry.max_attempts
        if draft.get("max_attempts", attempts) > attempts:
            self._refuse("max_attempts", f"its parent has {attempts}")

    def _bound_needs(self, draft: TaskValues, batch: Sequence[str]) -> None:
        named = [need for need in draft.get("needs", ()) if need not in batch]
        for task in self._tx.tasks(named).values():
            if task.project != self._parent.project:
                self._refuse("needs", f"{task.id} is a task of another project")

    def _refuse(self, field: str, why: str, key: str = "") -> NoReturn:
        setting = f"attempt.may_add{key}" if key else "attempt.may_add"
        hint = f"The policy decides what an attempt may add: {setting}. A person may add it."
        raise Forbidden(f"{field}: {why}", hint, code="may_add")
