"""Groups made and changed: their parents form no cycle, and queued tasks follow their priority."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fairlane.intake import fields
from fairlane.intake.routing import group_priority
from fairlane.model.errors import Invalid, NotFound, Refused, did_you_mean
from fairlane.model.names import check_name
from fairlane.model.project import Group
from fairlane.model.task import Status
from fairlane.service import SCHEMA
from fairlane.service.desk import Desk
from fairlane.service.journal import Journal
from fairlane.service.reports.groups import View
from fairlane.service.reports.listing import every, lineage
from fairlane.store.base import Filter, Writing

#: What can be changed, and how it is read.
READERS: dict[str, fields.Reader] = {
    "parent": fields.name,
    "priority": fields.whole(-fields.NUMBER_MAX, fields.NUMBER_MAX),
    "title": fields.text,
}
_DEFAULT: int = fields.defaults(["priority"])["priority"]


def add_group(
    desk: Desk,
    name: str,
    parent: str | None = None,
    priority: int | None = None,
    title: str | None = None,
) -> dict[str, Any]:
    """A new group; one that is there is returned as it is, unless something else is asked."""
    values = read(name, {"parent": parent, "priority": priority, "title": title})
    with desk.store.write() as tx:
        groups = tx.groups()
        made = joined(groups, name, values)
        created = name not in groups
        if created:
            put(desk, tx, made, "group_added")
        return {"schema": SCHEMA, "created": created, "group": View(desk, tx).document(name)}


def set_group(desk: Desk, name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Change a group; null takes a value away. Queued tasks that follow it follow it again.

    A task follows its group as long as it has the group's priority.
    """
    if not values:
        raise Invalid("there is nothing to change", "Give a key, such as --priority 10.")
    empty: dict[str, Any] = {"parent": None, "priority": None, "title": ""}
    given = {key: empty[key] for key in values if key in empty} | read(name, values)
    with desk.store.write() as tx:
        lineage(tx, name)
        before = tx.groups()
        made = checked(before, replace(before[name], **given))
        followed = _follow(tx, before, before | {name: made}, name)
        put(desk, tx, made, "group_set", followed=followed)
        group = View(desk, tx).document(name)
    return {"schema": SCHEMA, "group": group, "followed": followed}


def read(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The typed values of a group; null is the same as absent."""
    check_name("group", name)
    found = {}
    for key, value in values.items():
        if key not in READERS:
            raise Invalid(f"group {name}: unknown key {key!r}", did_you_mean(key, READERS))
        if value is not None:
            try:
                found[key] = READERS[key](value)
            except Invalid as error:
                raise Invalid(f"group {name}: {key}: {error.message}", error.hint) from None
    return found


def joined(groups: Mapping[str, Group], name: str, values: Mapping[str, Any]) -> Group:
    """A new group, or the one that is there if nothing else is asked of it."""
    there = groups.get(name)
    made = checked(groups, replace(there or Group(name), **values))
    if there is not None and made != there:
        hint = f"To change it: fairlane group set {name} …"
        raise Refused(f"group {name} is there already", hint, code="exists")
    return made


def checked(groups: Mapping[str, Group], group: Group) -> Group:
    """A group whose parent is known and is none of those under it."""
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


def put(desk: Desk, tx: Writing, group: Group, kind: str, **more: Any) -> None:
    """Keep a group, with a line in the log."""
    tx.put_group(group)
    journal = Journal(tx, desk.policy_for_reading(tx), desk.now(), desk.actor)
    journal.note(kind, group=group.name, parent=group.parent, priority=group.priority, **more)
    journal.close()


def _follow(tx: Writing, before: Mapping[str, Group], after: Mapping[str, Group], name: str) -> int:
    """Queued tasks that had their group's priority get the one it has now; how many did."""
    followed = 0
    for member in lineage(tx, name):
        old, new = _priority(before, member), _priority(after, member)
        if old == new:
            continue
        queued = every(tx, Filter(status=(Status.QUEUED,), group=member))
        tasks = [  # what they wait for stays the same
            each._replace(task=replace(each.task, priority=new))
            for each in queued
            if each.task.priority == old
        ]
        tx.rewrite(tasks)
        followed += len(tasks)
    return followed


def _priority(groups: Mapping[str, Group], name: str) -> int:
    """What a task of this group has that names none."""
    found = group_priority(groups, name)
    return _DEFAULT if found is None else found
