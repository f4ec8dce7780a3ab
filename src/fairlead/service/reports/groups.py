"""Groups: tasks followed together; progress, and whether they are stranded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fairlead.intake import fields
from fairlead.model.errors import Invalid, NotFound, Refused, did_you_mean
from fairlead.model.names import check_name
from fairlead.model.project import Group
from fairlead.model.task import Status
from fairlead.service import SCHEMA
from fairlead.service.desk import Desk
from fairlead.service.journal import Journal
from fairlead.service.reports.holds import Holds
from fairlead.service.reports.listing import every, lineage
from fairlead.store.base import Filter, Reading, Writing

#: Holds that mean: there is no capacity for it.
_NO_CAPACITY = ("caps", "worker")
_PRIORITY = fields.whole(-fields.NUMBER_MAX, fields.NUMBER_MAX)


def list_groups(desk: Desk) -> dict[str, Any]:
    """Every group with its progress."""
    with desk.store.read() as reading:
        view = _View(desk, reading)
        rows = [view.document(name) for name in sorted(view.groups)]
    return {"schema": SCHEMA, "groups": rows}


def show_group(desk: Desk, name: str) -> dict[str, Any]:
    """One group with the ids of its own tasks."""
    with desk.store.read() as reading:
        lineage(reading, name)
        tasks = [
            {"id": placed.task.id, "status": str(placed.task.status)}
            for placed in every(reading, Filter(group=name))
        ]
        group = _View(desk, reading).document(name)
    return {"schema": SCHEMA, "group": group | {"tasks": tasks}}


def add_group(
    desk: Desk, name: str, parent: str | None = None, priority: int | None = None
) -> dict[str, Any]:
    """A new group; one that is there is returned as it is, unless something else is asked."""
    check_name("group", name)
    with desk.store.write() as tx:
        groups = tx.groups()
        made = _checked(groups, Group(name, parent, priority))
        created = name not in groups
        if not created and made not in (groups[name], Group(name)):
            hint = f"To change it: fairlead group set {name} …"
            raise Refused(f"group {name} is there already", hint, code="exists")
        if created:
            _put(desk, tx, made, "group_added")
        return {"schema": SCHEMA, "created": created, "group": _View(desk, tx).document(name)}


def set_group(desk: Desk, name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Change a group's parent or priority; null takes it away. Tasks that are there keep theirs."""
    for key in values:
        if key not in ("parent", "priority"):
            hint = did_you_mean(key, ("parent", "priority"))
            raise Invalid(f"group {name}: unknown key {key!r}", hint)
    if not values:
        raise Invalid("there is nothing to change", "Give a key, such as --priority 10.")
    with desk.store.write() as tx:
        lineage(tx, name)
        groups = tx.groups()
        made = _checked(groups, replace(groups[name], **values))
        _put(desk, tx, made, "group_set")
        return {"schema": SCHEMA, "group": _View(desk, tx).document(name)}


def _checked(groups: Mapping[str, Group], group: Group) -> Group:
    """A group whose parent is known and is none of those under it."""
    if group.priority is not None:
        _PRIORITY(group.priority)
    above, seen = group.parent, [group.name]
    while above is not None:
        if above in seen:
            raise Refused(f"a cycle of groups: {' → '.join((*seen, above))}", code="cycle")
        if above not in groups:
            near = did_you_mean(above, groups)
            raise NotFound(f"there is no group {above!r}", near, code="unknown_group")
        seen.append(above)
        above = groups[above].parent
    return group


def _put(desk: Desk, tx: Writing, group: Group, kind: str) -> None:
    tx.put_group(group)
    journal = Journal(tx, desk.policy_for_reading(tx), desk.now(), desk.actor)
    journal.note(kind, group=group.name, parent=group.parent, priority=group.priority)
    journal.close()


@dataclass(slots=True)
class _Own:
    """A group's own tasks, counted; those of groups under it come on top."""

    statuses: Counter[str] = field(default_factory=Counter)
    ready: int = 0


class _View:
    """All groups with what is counted in them; each one's tasks are counted once."""

    def __init__(self, desk: Desk, reading: Reading) -> None:
        self._reading, self._holds = reading, Holds(desk, reading)
        self.groups = reading.groups()
        self._own: dict[str, _Own] = {}
        self._paused = {pause.scope for pause in reading.pauses()}

    def document(self, name: str) -> dict[str, Any]:
        names = lineage(self._reading, name)
        counts: Counter[str] = Counter()
        for each in names:
            counts += self._count(each).statuses
        ready = sum(self._count(each).ready for each in names)
        total, done, parked = counts.total(), counts["done"], counts["parked"]
        told = f"{done} of {total} done" + (f", {parked} parked" if parked else "")
        group = self.groups[name]
        return {
            "name": name,
            "parent": group.parent,
            "priority": group.priority,
            "groups": sorted(names[1:]),
            "progress": told,
            "total": total,
            "by_status": {str(status): counts[str(status)] for status in Status},
            "ready": ready,
            "done": total > 0 and done == total,
            "stranded": bool(ready) and self._is_stranded(set(names), counts),
            "paused": f"group:{name}" in self._paused,
        }

    def _count(self, name: str) -> _Own:
        found = self._own.get(name)
        if found is None:
            found = self._own[name] = _Own()
            for placed in every(self._reading, Filter(group=name)):
                found.statuses[str(placed.task.status)] += 1
                found.ready += placed.task.status is Status.QUEUED and not placed.wait
        return found

    def _is_stranded(self, names: set[str], counts: Counter[str]) -> bool:
        """Ready tasks, nothing in flight, and no capacity for any of its kinds."""
        if counts["leased"] or counts["running"]:
            return False
        lanes = [lane for lane in self._holds.snapshot.lanes if lane.key.group in names]
        if any(pick.lane.group in names for pick in self._holds.plan.picks):
            return False
        holds = [self._holds.of_lane(lane.key) for lane in lanes]
        return bool(holds) and all(hold and hold.gate in _NO_CAPACITY for hold in holds)
