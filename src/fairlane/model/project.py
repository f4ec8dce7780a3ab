"""Projects, groups and budgets; pools, workers, pauses and usage: what starts depend on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from operator import itemgetter
from typing import TypeVar

from fairlane.model.instant import Instant, to_instants
from fairlane.model.record import NamedTuple, dataclass
from fairlane.model.task import Check

#: Clocks count tokens per unit of weight in millionths, so that every quotient is whole.
CLOCK_SCALE = 1_000_000
#: The latest time of a share clock: the largest whole number that SQLite and Postgres keep.
CLOCK_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Budget:
    """Most tokens or dollars in a window for a scope."""

    scope: str  # all, project:P, pool:P, group:G
    tokens: int | None = None
    usd: int | None = None  # micro-dollars
    window: str = "24h"
    warn_at: Fraction = Fraction(4, 5)
    on_exceeded: str = "finish"


@dataclass(frozen=True, slots=True)
class Project:
    """Who the work is for. The numbers below `template` are what planning knows of it."""

    name: str
    weight: int = 1  # 0: only when nobody else wants the slot
    max_in_flight: int | None = None
    budgets: tuple[Budget, ...] = ()
    status: str = "active"  # active, paused, archived
    workspaces: tuple[str, ...] | None = None  # None: not needed
    repo: str | None = None
    base: str | None = None
    prefix: str | None = None
    agent: str | None = None
    template: str | None = None
    pr: tuple[str, ...] = ()  # the command that opens a pull request from a branch
    merge: str | None = None  # of tasks that say nothing: keep, merge, pr
    carry: str | None = None  # of tasks that say nothing; None: as the policy says
    context: str | None = None
    checks: tuple[Check, ...] = ()  # what must succeed before a task is done
    setup: tuple[str, ...] = ()  # the command that runs once in a new worktree
    setup_files: tuple[str, ...] = ()  # globs: it runs again when these files change
    protect: tuple[str, ...] | None = None  # globs: a change there is not merged by itself
    hooks: str = "ours"  # whose git hooks run when Fairlane calls git: none (ours), or repo

    tokens: int = 0  # used in the share window; in a snapshot with what is in flight, else without
    starts: int = 0  # in the share window
    completions: int = 0  # in the share window
    clock: int | None = None  # v, in CLOCK_SCALE; None: follows from `tokens`
    present: bool = True  # could start something when last planned


@dataclass(frozen=True, slots=True)
class Group:
    """Tasks followed together; done when all are done."""

    name: str
    parent: str | None = None
    priority: int | None = None  # of its tasks that name none, and of groups under it
    title: str = ""


def groups_under(groups: Mapping[str, Group], name: str) -> list[str]:
    """A group and all groups under it."""
    below: dict[str, list[str]] = {}
    for group in groups.values():
        if group.parent is not None:
            below.setdefault(group.parent, []).append(group.name)
    names = [name]
    for above in names:
        names += [child for child in below.get(above, ()) if child not in names]
    return names


def charge(tokens: int, weight: int) -> int:
    """What tokens add to a project's clock; weight 0 moves no clock."""
    return tokens * CLOCK_SCALE // weight if weight else 0


@dataclass(frozen=True, slots=True)
class Pool:
    """A provider account whose limits are shared."""

    name: str
    until: Instant | None = None  # end of the cooldown
    hits: int = 0  # throttles in a row; above 0 after `until`: not proved healthy yet
    cause: str = ""

    def __post_init__(self) -> None:
        to_instants(self, "until")


@dataclass(frozen=True, slots=True)
class Worker:
    """A process that runs attempts on one machine."""

    name: str
    slots: int | None = None  # None: holds what it asked for
    labels: tuple[str, ...] = ()
    live: bool = True


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing in its scope starts."""

    scope: str  # all, project:P, kind:K, pool:P, group:G, task:T
    by: str = ""
    since: Instant | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        to_instants(self, "since")


@dataclass(frozen=True, slots=True)
class Usage:
    """What was spent in one scope and window, and when parts of it leave the window."""

    scope: str
    window: str | None = None  # None: the same for every window
    tokens: int = 0
    usd: int = 0  # micro-dollars
    leaves: tuple[tuple[Instant, int, int], ...] = ()  # (at, tokens, micro-dollars), by time


@dataclass(frozen=True, slots=True)
class History:
    """What finished attempts of one (project, kind, agent) tell about the next."""

    project: str
    kind: str
    agent: str | None
    estimate: int  # tokens, 70th percentile
    tokens: int = 0  # of the attempts whose cost is known
    usd: int = 0  # their cost in micro-dollars


def ancestry(group: str | None, parent_of: Callable[[str], str | None]) -> list[str]:
    """A group and the groups above it, nearest first; a cycle ends the list."""
    names: list[str] = []
    while group is not None and group not in names:
        names.append(group)
        group = parent_of(group)
    return names


def usage_scopes(
    project: str, pool: str | None, group: str | None, parent_of: Callable[[str], str | None]
) -> list[str]:
    """The scopes of budgets in which the usage of a task counts."""
    scopes = ["all", f"project:{project}"]
    if pool is not None:
        scopes.append(f"pool:{pool}")
    return scopes + [f"group:{name}" for name in ancestry(group, parent_of)]


def clock_after(clock: int, by: int) -> int:
    """A share clock that has moved; at either end it stays where it is."""
    return max(-CLOCK_MAX, min(CLOCK_MAX, clock + by))


class Tokens(NamedTuple):
    """Four disjoint counters; which of them make up "tokens" is the policy's choice."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0


def counted(tokens: Sequence[int], count: Iterable[str]) -> int:
    """The tokens that count in shares, budgets and estimates; four counters, as in `Tokens`."""
    return sum(_reader(tuple(count))(tokens))


def each_counted(rows: Iterable[Sequence[int]], count: Iterable[str]) -> list[int]:
    """The same for many."""
    return list(map(sum, map(_reader(tuple(count)), rows)))


@cache
def _reader(count: tuple[str, ...]) -> Callable[[Sequence[int]], Sequence[int]]:
    """Reads the counters of these names."""
    places = sorted({Tokens._fields.index(name) for name in count})
    if len(places) > 1:
        return itemgetter(*places)
    return lambda tokens: [tokens[place] for place in places]


def clock_correction(estimate_charged: int, used: int, weight: int, ended: bool) -> int:
    """How a project's clock must differ from the charge that was taken at the start.

    While the attempt runs the project has received max(used, estimate), when it has ended, what
    was used. `weight` is the one kept with the lease.
    """
    received = used if ended else max(used, estimate_charged)
    return charge(received, weight) - charge(estimate_charged, weight)


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """The row of a worker."""

    name: str
    host: str = ""
    slots: int | None = None
    labels: tuple[str, ...] = ()
    seen_at: Instant = 0


@dataclass(frozen=True, slots=True)
class PolicyText:
    """A policy that decisions were made by; the first text of a digest stays."""

    digest: str
    text: str


#: A row of a small table: few enough that all of a table are read at once.
SmallRow = Project | Group | Pool | WorkerRow | Pause | History | PolicyText


Small = TypeVar("Small", Project, Group, Pool, WorkerRow, Pause, History, PolicyText)


#: Those of which a row can be dropped.
Droppable = Project | WorkerRow | Pause


_KEYS = {Pause: "scope", PolicyText: "digest"}


def key_of(row: SmallRow) -> str:
    """What a row of a small table is found by."""
    if isinstance(row, History):
        return "\0".join((row.project, row.kind, row.agent or ""))
    return str(getattr(row, _KEYS.get(type(row), "name")))
