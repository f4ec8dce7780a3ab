"""Drafts: the task that an item would become, with its id, project, group and needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NotRequired, TypedDict

from fairlane.intake import fields
from fairlane.intake.fields import TaskValues
from fairlane.intake.kinship import cycle_error, cycles
from fairlane.intake.naming import marked, name_for
from fairlane.intake.routing import Router
from fairlane.intake.sources.base import Collection, Found, Item, Standing
from fairlane.model.project import Group
from fairlane.model.record import dataclass, field
from fairlane.model.task import Status, Task
from fairlane.model.values import LIST_MAX, is_name
from fairlane.service.sync.mapping import Entry, untouched
from fairlane.store.base import Reading


def task_ids(items: Iterable[Item], entries: Mapping[str, Entry]) -> dict[str, str]:
    """Item -> task: as before, as the source calls it, or as near to that as a name can be."""
    names = {item: str(entry["task"]) for item, entry in entries.items()}
    taken = set(names.values())
    new = [item for item in items if item.id not in names]
    for item in sorted(new, key=lambda item: not is_name(_wanted(item))):  # proper names first
        name = name_for(_wanted(item))
        if name in taken:
            name = marked(name, item.id)
        taken.add(name)
        names[item.id] = name
    return names


def _wanted(item: Item) -> str:
    name = item.record.get("id")
    return name if isinstance(name, str) and name else item.id


#: The statuses in which a task is waited for though its source calls its item closed: who works on
#: it may have closed it there before the end.
_GOES_ON = (Status.LEASED, Status.RUNNING, Status.DONE)
#: What an item's record does not decide.
_APART = ("id", "needs")


class Unroutable(Exception):
    """Nothing says to which project an item belongs."""


@dataclass(slots=True)
class Draft:
    """An item on its way to be a task, or to change one."""

    item: Item
    task: str
    values: TaskValues  # what the source says
    defaults: TaskValues = field(default_factory=TaskValues)  # what the import adds: project, group
    needs: tuple[str, ...] = ()
    hold: str = ""  # what its source, or an item that is not here, keeps it from
    taken: str = ""  # why its source says that somebody else works on it
    settled: bool = False  # its needs stay as they are: others would lead around
    returns: bool = False  # its task is over because of its source, or `again`; it is queued anew
    again: bool = False  # a person has put the item back
    follows: bool = False  # not asked for: only what it waits for is looked at

    @property
    def group(self) -> str | None:
        """The group that it joins."""
        return self.values.get("group") or self.defaults.get("group")

    def row(self) -> dict[str, object]:
        """A record as callers give it."""
        return {"id": self.task, **self.values, **self.defaults, "needs": self.needs}

    def beside(self) -> TaskValues:
        """What only a source can say of a new task."""
        values: TaskValues = {"source_hold": self.hold, "failures": self.item.failures}
        if self.item.created_at is not None:
            values["created_at"] = self.item.created_at
        if self.item.parked:
            values |= {"status": Status.PARKED, "reason": self.item.parked}
        return values


def draft_of(item: Item, names: Mapping[str, str], source: str, groups: Mapping[str, str]) -> Draft:
    """The typed values of an item's record; a bad one is refused."""
    record = {key: value for key, value in item.record.items() if key not in _APART}
    if item.group is not None:
        record["group"] = groups.get(item.group) or name_for(item.group)
    parent = record.get("parent")
    if isinstance(parent, str) and parent in names:
        record["parent"] = names[parent]
    values = fields.read(record)
    values["meta"] = values.get("meta", {}) | {"source": source, "source_id": item.id}
    return Draft(item, names[item.id], values)


def route(draft: Draft, router: Router, project: str | None, group: str | None) -> None:
    """A new task's project: its own, the one that is asked for, the one of its prefix."""
    if "project" not in draft.values:
        owner = project or router.owner(draft.task)
        if owner is None and router.has_prefixes:
            raise Unroutable(
                f"{draft.item.id} cannot be routed: it names no project and begins with no "
                "project's prefix; --project gives one"
            )
        if owner is not None:
            draft.defaults["project"] = owner
    probe: TaskValues = {"id": draft.task, **draft.values, **draft.defaults}
    probe.pop("group", None)  # groups are made once it is sure that somebody joins them
    router.complete(probe)
    if group is not None and "group" not in draft.values:
        draft.defaults["group"] = group


def group_names(content: Found) -> dict[str, str]:
    """Collection -> the name of its group."""
    return {
        collection.id: name_for(collection.name or collection.id)
        for collection in content.collections
    }


def make_groups(router: Router, content: Found, drafts: Iterable[Draft], top: str | None) -> None:
    """New groups for those that join them, each with the groups above it."""
    names = group_names(content)
    known = {names[collection.id]: collection for collection in content.collections}
    for joined in dict.fromkeys(draft.group for draft in drafts):
        name, below = joined, set[str]()
        while name is not None and name not in router.groups:
            below.add(name)
            collection = known.get(name) or Collection(name, name)
            over = (
                top
                if collection.parent is None
                else names.get(collection.parent) or name_for(collection.parent)
            )
            made = Group(name, None if over in below else over, title=collection.title)
            router.groups[name] = made
            router.new_groups.append(made)
            name = made.parent


class Edges(TypedDict):
    """The tasks for which one waits."""

    needs: tuple[str, ...]
    parent: NotRequired[str]


@dataclass(slots=True)
class Kin:
    """Which item is which task, which are here, and which are over."""

    reading: Reading
    names: Mapping[str, str]  # item -> task
    tasks: Mapping[str, Task]  # those that are known
    closed: frozenset[str]  # items that are over in their source
    over: frozenset[str]  # tasks whose items are closed, or not there any more
    others: dict[str, Status] = field(default_factory=dict)  # tasks of other origin


def closed_and_over(
    content: Found, entries: Mapping[str, Entry]
) -> tuple[frozenset[str], frozenset[str]]:
    """Items that are closed; and the tasks of those, and of items that are not there any more."""
    closed = {item.id for item in content.items if item.standing is Standing.CLOSED}
    named = {item.id for item in content.items} | {skipped.id for skipped in content.left_out}
    over = (entry["task"] for item, entry in entries.items() if item in closed or item not in named)
    return frozenset(closed), frozenset(over)


def connect(kin: Kin, drafts: dict[str, Draft]) -> list[tuple[Draft, str]]:
    """Give every draft its needs and its hold; return those that can never start, and why."""
    out: list[tuple[Draft, str]] = []
    named = {need for draft in drafts.values() for need in draft.item.needs} - kin.names.keys()
    parents = {draft.values["parent"] for draft in drafts.values() if "parent" in draft.values}
    foreign = (named | parents) - set(kin.names.values())  # one of ours is known by its item
    kin.others = kin.reading.statuses(foreign) if foreign else {}
    while True:
        for draft in drafts.values():
            _resolve(kin, draft, drafts)
        wrong = _crowded(drafts) or _orphans(kin, drafts) or _around(kin, drafts)
        if not wrong:
            return out
        out += wrong
        for draft, _ in wrong:
            if draft.task in kin.tasks:
                draft.settled, draft.needs = True, kin.tasks[draft.task].needs
            else:
                del drafts[draft.task]


def _crowded(drafts: Mapping[str, Draft]) -> list[tuple[Draft, str]]:
    """Those that need more than a task can."""
    return [
        (draft, f"it needs more than {LIST_MAX:,} others")
        for draft in drafts.values()
        if len(draft.needs) > LIST_MAX and not draft.settled
    ]


def _orphans(kin: Kin, drafts: Mapping[str, Draft]) -> list[tuple[Draft, str]]:
    """New ones whose parent is not here."""
    out = []
    for draft in drafts.values():
        parent = draft.values.get("parent")
        known = parent is None or parent in drafts or parent in kin.tasks or parent in kin.others
        if not known and draft.task not in kin.tasks:
            out.append((draft, f"its parent {parent!r} is not known"))
    return out


def _around(kin: Kin, drafts: Mapping[str, Draft]) -> list[tuple[Draft, str]]:
    """The first one of each cycle."""
    out = []
    places = {name: at for at, name in enumerate(drafts)}
    for around in cycles(_graph(kin, drafts)):
        free = [name for name in around if name in drafts and not drafts[name].settled]
        if free:
            first = drafts[min(free, key=places.__getitem__)]
            out.append((first, cycle_error(around).message))
    return out


def _resolve(kin: Kin, draft: Draft, drafts: Mapping[str, Draft]) -> None:
    needs: list[str] = []
    absent: list[str] = []
    for item in draft.item.needs:
        task = kin.names.get(item)
        if task is None and item in kin.others:
            needs.append(item)
        elif task is not None and (task in drafts or _is_here(kin, item, task)):
            needs.append(task)
        elif item not in kin.closed:
            absent.append(item)
    if not draft.settled:
        draft.needs = tuple(dict.fromkeys((*needs, *_going_on(kin, draft))))
    missing = f"needs {', '.join(absent)}, which is not imported" if absent else ""
    draft.hold = "; ".join(filter(None, (draft.item.blocked, draft.taken, missing)))


def _going_on(kin: Kin, draft: Draft) -> list[str]:
    """Tasks that it waited for before and that go on, though their items are over.

    A source such as `bd list` does not name those any more.
    """
    before = kin.tasks.get(draft.task)
    needs = () if before is None else before.needs
    return [name for name in needs if name in kin.over and kin.tasks[name].status in _GOES_ON]


def _is_here(kin: Kin, item: str, task: str) -> bool:
    """Whether there is a task to wait for; of an item that is over, one in flight or done."""
    known = kin.tasks.get(task)
    return known is not None and (item not in kin.closed or known.status in _GOES_ON)


def _graph(kin: Kin, drafts: Mapping[str, Draft]) -> dict[str, Edges]:
    """Who waits for whom, as far as a new edge can lead around."""
    graph: dict[str, Edges] = {}
    moved = False
    for name, draft in drafts.items():
        task = kin.tasks.get(name)
        if task is None:
            graph[name] = {"needs": draft.needs}
            if "parent" in draft.values:
                graph[name]["parent"] = str(draft.values["parent"])
        elif draft.returns or untouched(task):
            graph[name] = _edges(task, draft.needs)
            moved = moved or draft.needs != task.needs
    if moved:
        _add_store(kin.reading, graph)
    return graph


def _add_store(reading: Reading, graph: dict[str, Edges]) -> None:
    """The tasks of the store that can be reached: an edge that moves may lead back through them."""
    left = _ends(graph.values()) - graph.keys()
    while left:
        tasks = reading.tasks(left)
        graph |= {name: _edges(task, task.needs) for name, task in tasks.items()}
        left = _ends(graph[name] for name in tasks) - graph.keys()


def _ends(edges: Iterable[Edges]) -> set[str]:
    return {end for row in edges for end in (*row["needs"], row.get("parent")) if end}


def _edges(task: Task, needs: tuple[str, ...]) -> Edges:
    return {"needs": needs, "parent": task.parent} if task.parent else {"needs": needs}
