"""What a policy says about one lane: its scopes, caps, budgets and locks, looked up once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from fairlane.model.instant import Instant
from fairlane.model.plan import Hold
from fairlane.model.project import Budget, Pause, Project, Usage, ancestry
from fairlane.model.record import dataclass
from fairlane.model.snapshot import Snapshot
from fairlane.model.task import LaneKey, Shape, Task, shape_of
from fairlane.policy.policy import Policy


@dataclass(frozen=True, slots=True)
class BudgetLine:
    """One budget with what was spent of it."""

    budget: Budget
    in_policy: bool  # else the project's own
    limit: int
    spent: int
    usage: Usage | None

    @property
    def unit(self) -> str:
        """What it counts."""
        return "tokens" if self.budget.tokens is not None else "micro-dollars"


class Caps(dict[str, int | None]):
    """The cap of each scope, found when it is first asked for; None: it has no cap."""

    def __init__(self, policy: Policy, projects: Mapping[str, Project]) -> None:
        super().__init__()
        self._given, self._projects = policy.caps, projects

    def __missing__(self, scope: str) -> int | None:
        limit = self[scope] = self._find(scope)
        return limit

    def _find(self, scope: str) -> int | None:
        """The exact name wins over `*`; of a project's own number and its cap the smaller."""
        kind, _, name = scope.partition(":")
        exact = self._given.get(scope)
        if kind == "project":
            project = self._projects.get(name)
            own = project.max_in_flight if project else None
            named = [limit for limit in (own, exact) if limit is not None]
            if named:
                return min(named)
        if exact is not None or scope == "all":
            return exact
        return self._given.get(f"{kind}:*")


class LaneRules:
    """One lane as the gates see it: its own fields, and what the policy says of them."""

    __slots__ = (
        "agent", "caps", "checks", "group", "history", "kind", "labels", "locks", "pool", "project",
        "scopes", "shape", "workspace",
    )  # fmt: skip

    def __init__(self, shape: Shape, rules: Rules) -> None:
        self.shape = shape
        #: The checks of the gates that concern it; the round finds them when it first asks.
        self.checks: tuple[Callable[..., Iterable[Hold]], ...] = ()
        self.project, self.kind, self.agent, self.pool = shape[:4]
        self.workspace, self.labels, self.group = shape[6:]
        #: The names under which it is counted, in the order of the caps gate.
        self.scopes: tuple[str, ...] = rules.scopes(shape)
        caps = rules.caps
        #: The caps that bound it.
        self.caps = tuple(
            [(scope, limit) for scope in self.scopes if (limit := caps[scope]) is not None]
        )
        #: What finished attempts tell about its tasks.
        self.history = rules.history.get((self.project, self.kind, self.agent))
        #: The locks that it takes: its own, and the serial one if it is not parallel.
        self.locks: tuple[str, ...] = rules.locks(shape)

    def estimate(self, guess: int | None, default: int) -> int:
        """Tokens that an attempt will use: the caller's guess, history, or the policy's number."""
        if guess is not None:
            return guess
        return self.history.estimate if self.history else default

    def cost_of(self, tokens: int) -> int:
        """Micro-dollars that so many tokens cost, as far as history tells."""
        row = self.history
        return tokens * row.usd // row.tokens if row and row.tokens else 0


class Rules:
    """What the policy says, looked up once for every shape of lane."""

    def __init__(self, snapshot: Snapshot, policy: Policy, now: Instant) -> None:
        self._policy = policy
        self._groups = snapshot.groups
        self._lanes: dict[Shape, LaneRules] = {}
        self._owners: dict[LaneKey, LaneRules] = {}
        self.caps = Caps(policy, snapshot.projects)
        self.history = {(row.project, row.kind, row.agent): row for row in snapshot.history}
        self.pauses = pauses_by_scope(snapshot.projects.values(), snapshot.paused)
        self.spend(snapshot, now)

    def spend(self, snapshot: Snapshot, now: Instant) -> None:
        """What was spent of every budget by now."""
        self.budgets = _budget_lines(snapshot, self._policy, now)

    def of(self, shape: Shape) -> LaneRules:
        """The rules for a lane of this shape."""
        rules = self._lanes.get(shape)
        if rules is None:
            rules = self._lanes[shape] = LaneRules(shape, self)
        return rules

    def knows(self, shape: Shape) -> bool:
        """Whether this shape was looked up before."""
        return shape in self._lanes

    def known(self) -> Iterable[LaneRules]:
        """The rules of every shape that was looked up."""
        return self._lanes.values()

    def of_lane(self, key: LaneKey, shape: Shape) -> LaneRules:
        """The rules for this lane: those of its shape, unless it was set apart."""
        return (self._owners and self._owners.get(key)) or self.of(shape)

    def set_apart(self, key: LaneKey, shape: Shape) -> LaneRules:
        """Rules for this lane alone: something is reserved for it, and not for its likes."""
        return self._owners.setdefault(key, LaneRules(shape, self))

    def scopes(self, shape: Shape) -> tuple[str, ...]:
        """The names under which a task of this shape is counted."""
        return scopes_of(shape, self._groups)

    def locks(self, shape: Shape) -> tuple[str, ...]:
        """The locks that a task of this shape takes."""
        parallel = shape.parallel
        if parallel is None:
            parallel = self._policy.locks.parallel_default
        if parallel or self._policy.locks.serial == "none":
            return shape.locks
        place = f"group:{shape.group}" if shape.group else f"project:{shape.project}"
        return (*shape.locks, f"serial:{place}+{shape.kind}")


def scopes_of(shape: Shape, parents: Mapping[str, str | None]) -> tuple[str, ...]:
    """The names under which a task of this shape is counted; `parents`: of groups."""
    names = ["all", f"kind:{shape.kind}", f"project:{shape.project}"]
    if shape.pool is not None:
        names.append(f"pool:{shape.pool}")
    if shape.agent is not None:
        names.append(f"agent:{shape.agent}")
    if shape.group is not None:
        names += [f"group:{name}" for name in ancestry(shape.group, parents.get)]
    if shape.labels:
        names += [f"label:{label}" for label in shape.labels]
    return tuple(names)


def pauses_by_scope(projects: Iterable[Project], paused: Iterable[Pause]) -> dict[str, Pause]:
    """Pauses by scope; a project that is paused or archived counts as one."""
    pauses = {
        f"project:{project.name}": Pause(f"project:{project.name}", reason=project.status)
        for project in projects
        if project.status != "active"
    }
    return pauses | {pause.scope: pause for pause in paused}


def pause_of(
    task: Task, parents: Mapping[str, str | None], pauses: Mapping[str, Pause]
) -> Pause | None:
    """What pauses a task, if anything does."""
    scopes = (f"task:{task.id}", *scopes_of(shape_of(task.lane), parents))
    return next((pauses[scope] for scope in scopes if scope in pauses), None)


def _budget_lines(snapshot: Snapshot, policy: Policy, now: Instant) -> dict[str, list[BudgetLine]]:
    """Every budget with what was spent of it, by scope."""
    usage = {(used.scope, used.window): used for used in snapshot.usage}
    lines: dict[str, list[BudgetLine]] = {}
    owned = [(budget, True) for budget in policy.budget]
    for project in snapshot.projects.values():
        owned += [(budget, False) for budget in project.budgets]
    for budget, in_policy in owned:
        row = usage.get((budget.scope, budget.window)) or usage.get((budget.scope, None))
        limit = budget.tokens if budget.tokens is not None else budget.usd
        spent = _spent(budget, row, snapshot.projects, now)
        line = BudgetLine(budget, in_policy, limit or 0, spent, row)
        lines.setdefault(budget.scope, []).append(line)
    return lines


def _spent(budget: Budget, row: Usage | None, projects: Mapping[str, Project], now: Instant) -> int:
    if row is not None:
        total, part = (row.tokens, 1) if budget.tokens is not None else (row.usd, 2)
        return total - sum(leave[part] for leave in row.leaves if leave[0] <= now)
    if budget.tokens is None:
        return 0
    if budget.scope == "all":
        return sum(project.tokens for project in projects.values())
    kind, _, name = budget.scope.partition(":")
    return projects[name].tokens if kind == "project" and name in projects else 0
