"""Trees: groups, groups under them and all their tasks added at once, all or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fairlane.intake import fields
from fairlane.intake.family import relatives
from fairlane.intake.records import Records
from fairlane.intake.routing import Router
from fairlane.intake.submit import located, submit
from fairlane.intake.tree import Branch, branches
from fairlane.model.errors import FairlaneError
from fairlane.service import SCHEMA
from fairlane.service.desk import Desk
from fairlane.service.grouping import keeping
from fairlane.service.journal import Journal
from fairlane.service.reports.groups import View
from fairlane.service.tasks import Undone, enter, router_for
from fairlane.store.base import Reading, Writing

_Row = tuple[str, Mapping[str, Any]]  # where it stands, what it says


def add_tree(
    desk: Desk,
    name: str,
    tree: Mapping[str, Any],
    *,
    project: str | None = None,
    force: bool = False,
    dry_run: bool = False,
) -> dict[str, Any]:
    """A group with its tasks and the groups under it; what cannot be routed is named, left out."""
    found = branches(name, tree)
    rows = [
        (f"{branch.name}, task {at}: ", {**task, "group": branch.name})
        for branch in found
        for at, task in enumerate(branch.tasks, 1)
    ]
    fill = {"project": project} if project else {}
    try:
        with desk.store.write() as tx:
            policy, now = desk.policy(), desk.now()  # as of the turn, not of the wait for it
            router = router_for(desk, tx, force)
            made = _join(router, found)
            unrouted = {} if project else _unrouted(tx, router, rows)
            kept = [row for row in rows if row[1].get("id") not in unrouted]
            _check(row for row in rows if row[1].get("id") in unrouted)
            records = Records([row for _, row in kept], lambda at: kept[at][0])
            batch = submit(tx, router, policy, now, records, fill)
            added = enter(desk, tx, router, policy, now, batch, False)
            if not added["deferred"]:
                _log(desk, tx, router)
            document = _document(desk, tx, name, made, added, unrouted)
            if dry_run or added["deferred"]:
                raise Undone(document | ({"dry_run": True} if dry_run else {}))
    except Undone as undone:
        return undone.document
    return document


def _join(router: Router, found: Sequence[Branch]) -> dict[str, bool]:
    """The tree's groups where the router knows them; each with whether it is new."""
    made = {}
    for branch in found:
        values = keeping.read(branch.name, branch.values)
        group = keeping.joined(router.groups, branch.name, values)
        made[branch.name] = branch.name not in router.groups
        if made[branch.name]:
            router.groups[branch.name] = group
            router.new_groups.append(group)
    return made


def _unrouted(reading: Reading, router: Router, rows: Sequence[_Row]) -> dict[str, str]:
    """Ids that fit no project's prefix, where prefixes are in use, and whatever needs them."""
    if not router.has_prefixes:
        return {}
    named = {str(row["id"]): row for _, row in rows if row.get("id") is not None}
    known = reading.statuses(named)
    lost = {
        name: "its id begins with no project's prefix, and it names no project"
        for name, row in named.items()
        if name not in known and row.get("project") is None and router.owner(name) is None
    }
    dependents: dict[str, list[str]] = {}
    for name, row in named.items():
        for need in _needs(row) if name not in known else ():
            dependents.setdefault(need, []).append(name)
    left = list(lost)
    for missing in left:
        for name in dependents.get(missing, ()):
            if name not in lost:
                lost[name] = f"it needs {missing}, which is left out"
                left.append(name)
    return lost


def _check(rows: Iterable[_Row]) -> None:
    """What is left out must be right all the same."""
    for where, row in rows:
        try:
            fields.read(row)
        except FairlaneError as error:
            raise located(error, where) from None


def _needs(row: Mapping[str, Any]) -> list[str]:
    """What a task names, if it is what it should be; if not, its own check says so."""
    told = {key: value for key, value in row.items() if key in ("needs", "parent") and value}
    needs = told.get("needs", [])
    return list(relatives(told)) if isinstance(needs, list | tuple) else []


def _log(desk: Desk, tx: Writing, router: Router) -> None:
    journal = Journal(tx, desk.policy_for_reading(tx), desk.now(), desk.actor)
    for group in router.new_groups:
        journal.note("group_added", group=group.name, parent=group.parent, priority=group.priority)
    journal.close()


def _document(
    desk: Desk,
    tx: Writing,
    name: str,
    made: Mapping[str, bool],
    added: Mapping[str, Any],
    unrouted: Mapping[str, str],
) -> dict[str, Any]:
    known = tx.groups()
    group = View(desk, tx).document(name) if name in known else None
    groups = [
        {"name": each, "parent": known[each].parent if each in known else None, "created": new}
        for each, new in made.items()
    ]
    left = [{"id": each, "reason": reason} for each, reason in unrouted.items()]
    head = {"schema": SCHEMA, "created": made[name], "group": group}
    return head | {"tasks": [], "groups": groups, "unrouted": left} | dict(added)
