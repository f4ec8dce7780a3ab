"""The tables of a scenario, read strictly; all of them except the tasks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from fairlane.model import values
from fairlane.model.errors import Invalid, did_you_mean
from fairlane.model.instant import WRITE_INSTANT, Instant, Micros
from fairlane.model.project import Budget, Group, Pause, Pool, Project, Usage, Worker, ancestry
from fairlane.model.record import replace
from fairlane.model.values import COUNT_MAX, Reader, dollars
from fairlane.policy.load import project_budgets

if TYPE_CHECKING:
    from fairlane.policy.policy import Policy

_T = TypeVar("_T")
#: A hint looks through this many ids for the nearest, and lists this many where none is near.
IDS_COMPARED_MAX, IDS_LISTED_MAX = 5000, 10


class Table:
    """One table; `where` names it in errors."""

    def __init__(self, where: str, content: object, known: Sequence[str]) -> None:
        self.where = where
        self.title = ""  # its own name or id, once that was read
        self.number = 0  # its place among those of its sort, from 1
        if not isinstance(content, Mapping):
            raise values.wrong("a table", content, "Give keys with values.").within(where)
        self.values = {key: value for key, value in content.items() if value is not None}
        for key in self.values:
            if key not in known:
                raise values.unknown("key", key, known).within(where)

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def error(self, key: str, message: str, hint: str = "") -> Invalid:
        """A complaint about one key."""
        return Invalid(f"{self.where}: {key}: {message}", hint)

    def read(self, key: str, reader: Reader[_T]) -> _T | None:
        """The typed value of a key; None where it is absent."""
        return self.typed(key, self.values[key], reader) if key in self.values else None

    def typed(self, key: str, value: object, reader: Reader[_T]) -> _T:
        """A value of this key; a complaint about it names this table."""
        try:
            return reader(value)
        except Invalid as error:
            raise error.within(f"{self.where}: {key}") from error

    def text(self, key: str) -> str | None:
        """Any text."""
        return self.read(key, values.text)

    def name(self, key: str) -> str | None:
        """The name of a task, project, group or workspace."""
        return self.read(key, values.name)

    def word(self, key: str) -> str | None:
        """One line of text."""
        return self.read(key, values.line)

    def words(self, key: str) -> tuple[str, ...] | None:
        """Lines of text, each given once."""
        return self.read(key, values.lines)

    def names(self, key: str) -> tuple[str, ...] | None:
        """Names, each given once."""
        return self.read(key, values.names)

    def whole(self, key: str, least: int = 0) -> int | None:
        """A whole number, not below `least`."""
        return self.read(key, values.whole(least))

    def choice(self, key: str, words: Iterable[str]) -> str | None:
        """One of a few words."""
        return self.read(key, values.choice(tuple(words)))

    def moment(self, key: str) -> Instant | None:
        """A time: a TOML date-time or an RFC 3339 string, with a zone."""
        return self.read(key, moment)

    def length(self, key: str) -> Micros | None:
        """A duration such as 5m, never negative."""
        return self.read(key, _age)

    def list_of(self, key: str) -> list[object]:
        """A list of tables or values."""
        value = self.values.get(key, [])
        if not isinstance(value, list):
            hint = f"Write [[{key}]] above each table."
            raise values.wrong("a list", value, hint).within(f"{self.where}: {key}")
        return value


def moment(value: object) -> Instant:
    """A time with a zone, as TOML or text writes it."""
    if isinstance(value, int):
        raise values.wrong("a time", value, WRITE_INSTANT)
    return values.moment(value)


def _age(value: object) -> Micros:
    if isinstance(value, str) and value.startswith("-"):
        hint = "For a clock that went wrong, give `created` a time in the future."
        raise Invalid(f"{value!r} is out of range: it cannot be negative", hint)
    return values.duration(value)


def nearest(word: str, known: Collection[str]) -> str:
    """A hint with the nearest of many ids; long lists are left out."""
    if len(known) > IDS_COMPARED_MAX:
        return ""
    hint = did_you_mean(word, known)
    return hint if hint.startswith("Did") or len(known) <= IDS_LISTED_MAX else ""


PROJECT_KEYS = (
    "name", "weight", "tokens", "starts", "completions", "max_in_flight", "status", "workspaces",
    "budgets", "prefix", "agent",
)  # fmt: skip
PROJECT_STATUSES = ("active", "paused", "archived")
WORKER_KEYS = ("name", "slots", "labels")
POOL_KEYS = ("name", "cooldown_until", "hits", "cause")
GROUP_KEYS = ("name", "parent")
USAGE_KEYS = ("scope", "tokens", "usd", "window")
PAUSE_KEYS = ("scope", "by", "since", "reason")

PAUSE_SCOPES = ("project", "kind", "pool", "group", "task")
USAGE_SCOPES = ("project", "pool", "group")


_DOLLARS = dollars(COUNT_MAX // 10**6)


class World(NamedTuple):
    """Everything but the tasks."""

    projects: dict[str, Project]
    workers: tuple[Worker, ...]
    pools: tuple[Pool, ...]
    groups: tuple[Group, ...]
    usage: tuple[Usage, ...]
    pauses: tuple[Pause, ...]


def read_world(top: Table, policy: Policy) -> World:
    """All tables but `task`, `policy` and `expect`."""
    projects = [_project(table, policy) for table in tables(top, "project", PROJECT_KEYS)]
    workers = [_worker(table) for table in tables(top, "worker", WORKER_KEYS)]
    pools = [_pool(table) for table in tables(top, "pool", POOL_KEYS)]
    return World(
        projects={project.name: project for project in projects},
        workers=tuple(workers),
        pools=tuple(pools),
        groups=_groups(top),
        usage=tuple(_usage(top)),
        pauses=tuple(_pauses(top)),
    )


def tables(top: Table, key: str, known: Sequence[str], label: str = "name") -> list[Table]:
    """The tables of one sort, each called by its own name; a name is given once."""
    result: list[Table] = []
    titles: set[str] = set()
    for number, content in enumerate(top.list_of(key), 1):
        where = f"{top.where}: {key} {number}"
        named = content.get(label) if isinstance(content, dict) else None
        if isinstance(named, str) and named.isprintable():
            where = f"{top.where}: {key} {named}"
        table = Table(where, content, known)
        table.title, table.number = table.name(label) or "", number
        if not table.title:
            raise table.error(label, "missing", f"Give every such table its own {label}.")
        if table.title in titles:
            raise table.error(label, f"{table.title!r} appears twice", "Give each its own.")
        titles.add(table.title)
        result.append(table)
    return result


def scope_of(table: Table, key: str, text: object, sorts: Sequence[str]) -> str:
    """A scope such as `all` or `project:web`."""
    sort, colon, name = text.partition(":") if isinstance(text, str) else ("", "", "")
    if text == "all" or (sort in sorts and name.strip() and name.isprintable()):
        return str(text)
    known = ", ".join(("all", *(f"{kind}:NAME" for kind in sorts)))
    hint = did_you_mean(sort, ("all", *sorts)) if sort and sort not in sorts else ""
    if sort in sorts or not colon:
        hint = hint if hint.startswith("Did") else "Write it as all or project:web."
    raise table.error(key, f"{text!r} is no scope: accepted is {known}", hint)


def _project(table: Table, policy: Policy) -> Project:
    name = table.title
    weight = table.whole("weight")
    return Project(
        name=name,
        weight=1 if weight is None else weight,
        max_in_flight=table.whole("max_in_flight"),
        budgets=_budgets(table, name, policy),
        status=table.choice("status", PROJECT_STATUSES) or "active",
        workspaces=table.names("workspaces"),
        prefix=table.word("prefix"),
        agent=table.word("agent"),
        tokens=table.whole("tokens") or 0,
        starts=table.whole("starts") or 0,
        completions=table.whole("completions") or 0,
    )


def _budgets(table: Table, project: str, policy: Policy) -> tuple[Budget, ...]:
    """A project's own budgets, read by the rules of the policy; their scope is the project."""
    try:
        return project_budgets(table.list_of("budgets"), project, policy.share.window)
    except Invalid as error:
        raise table.error("budgets", error.message, error.hint) from error


def _worker(table: Table) -> Worker:
    return Worker(name=table.title, slots=table.whole("slots"), labels=table.words("labels") or ())


def _pool(table: Table) -> Pool:
    return Pool(
        name=table.title,
        until=table.moment("cooldown_until"),
        hits=table.whole("hits") or 0,
        cause=table.text("cause") or "",
    )


def _groups(top: Table) -> tuple[Group, ...]:
    read = tables(top, "group", GROUP_KEYS)
    parents = {table.title: table.name("parent") for table in read}
    for table in read:
        above = ancestry(table.title, parents.get)
        if closing := parents.get(above[-1]):
            raise table.error("parent", f"a cycle: {' -> '.join([*above, closing])}")
    return tuple(Group(name, parent) for name, parent in parents.items())


def _usage(top: Table) -> list[Usage]:
    rows: list[Usage] = []
    for number, content in enumerate(top.list_of("usage"), 1):
        table = Table(f"{top.where}: usage {number}", content, USAGE_KEYS)
        if "scope" not in table:
            raise table.error("scope", "missing", "Write it as all or project:web.")
        scope = scope_of(table, "scope", table.values["scope"], USAGE_SCOPES)
        row = Usage(
            scope=scope,
            window=table.word("window"),
            tokens=table.whole("tokens") or 0,
            usd=table.read("usd", _DOLLARS) or 0,
        )
        if any((row.scope, row.window) == (other.scope, other.window) for other in rows):
            raise table.error("scope", f"{scope!r} appears twice", "Keep one of them.")
        rows.append(row)
    return rows


def _pauses(top: Table) -> list[Pause]:
    pauses: list[Pause] = []
    for number, value in enumerate(top.list_of("paused"), 1):
        if not isinstance(value, dict):
            pause = Pause(scope_of(top, "paused", value, PAUSE_SCOPES))
        else:
            table = Table(f"{top.where}: paused {number}", value, PAUSE_KEYS)
            pause = Pause(
                scope=scope_of(table, "scope", table.values.get("scope"), PAUSE_SCOPES),
                by=table.word("by") or "",
                since=table.moment("since"),
                reason=table.text("reason") or "",
            )
        if any(pause.scope == other.scope for other in pauses):
            raise top.error("paused", f"{pause.scope!r} appears twice", "Keep one of them.")
        pauses.append(pause)
    return pauses


def with_spent(usage: tuple[Usage, ...], scope: str, tokens: int) -> tuple[Usage, ...]:
    """The usage with what attempts in flight have used counted in, in one scope."""
    if any(row.scope == scope for row in usage):
        return tuple(
            replace(row, tokens=row.tokens + tokens) if row.scope == scope else row for row in usage
        )
    if scope == "all" or scope.startswith("project:"):
        return usage  # follows from the projects
    return (*usage, Usage(scope, tokens=tokens))
