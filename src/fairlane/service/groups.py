"""Groups made, changed, and added as whole trees or as the chain of a recipe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from fairlane.engine.context import Context
from fairlane.engine.task_changes import TaskChanges
from fairlane.intake import fields, recipes
from fairlane.intake.fields import Records
from fairlane.intake.kinship import relatives
from fairlane.intake.routing import DEFAULT_PROJECT, Router, group_priority
from fairlane.intake.tree import Branch, branches
from fairlane.model.errors import FairlaneError, Invalid, NotFound, Refused, did_you_mean
from fairlane.model.names import SCHEMA
from fairlane.model.project import Group, ancestry
from fairlane.model.record import changed, replace
from fairlane.model.task import Status, Task
from fairlane.model.values import (
    NUMBER_MAX,
    Reader,
    check_name,
    is_name,
    name,
    read_all,
    text,
    whole,
)
from fairlane.service.reports.groups import View
from fairlane.service.reports.listing import every, lineage
from fairlane.service.tasks import Intake, RollBack, conclude, note
from fairlane.store.base import Filter, Reading, Writing

if TYPE_CHECKING:
    from fairlane.model.documents.groups import GroupAnswer, GroupSetAnswer, TreeAddedAnswer
    from fairlane.model.documents.tasks import AddedAnswer, RecipeAddedDocument

#: What can be changed, and how it is read.
READERS: dict[str, Reader[object]] = {
    "parent": name,
    "priority": whole(-NUMBER_MAX, NUMBER_MAX),
    "title": text,
}
_DEFAULT = Task("").priority


def add_group(
    context: Context,
    name: str,
    parent: str | None = None,
    priority: int | None = None,
    title: str | None = None,
    tree: Mapping[str, object] | None = None,
    project: str | None = None,
    dry_run: bool = False,
) -> GroupAnswer | TreeAddedAnswer:
    """A new group; with a tree its tasks and the groups under it too, all or none.

    One that is there is returned as it is, unless something else is asked.
    """
    asked = {"parent": parent, "priority": priority, "title": title}
    if tree is not None:
        whole = {**tree, **{key: value for key, value in asked.items() if value is not None}}
        return add_tree(context, name, whole, project=project, dry_run=dry_run)
    values = read(name, asked)
    with context.store.write() as tx:
        groups = tx.table(Group)
        made = joined(groups, name, values)
        created = name not in groups
        if created:
            put(context, tx, made, "group_added")
        return {"schema": SCHEMA, "created": created, "group": View(context, tx).document(name)}


def set_group(context: Context, name: str, values: Mapping[str, object]) -> GroupSetAnswer:
    """Change a group's parent, priority or title; null takes it away.

    Queued tasks that follow it follow it again. A task follows its group as long as it has the
    group's priority.
    """
    if not values:
        raise Invalid("there is nothing to change", "Give a key, such as --priority 10.")
    empty = {"parent": None, "priority": None, "title": ""}
    asked = {**{key: empty[key] for key in values if key in empty}, **read(name, values)}
    with context.store.write() as tx:
        lineage(tx, name)
        before = tx.table(Group)
        made = checked(before, changed(before[name], **asked))
        followed = _follow(tx, before, before | {name: made}, name)
        put(context, tx, made, "group_set", followed=followed)
        group = View(context, tx).document(name)
    return {"schema": SCHEMA, "group": group, "followed": followed}


def read(name: str, values: Mapping[str, object]) -> Mapping[str, object]:
    """The typed values of a group; null is the same as absent."""
    check_name("group", name)
    try:
        return read_all(READERS, values)
    except Invalid as error:
        raise error.within(f"group {name}") from None


def joined(groups: Mapping[str, Group], name: str, values: Mapping[str, object]) -> Group:
    """A new group, or the one that is there if nothing else is asked of it."""
    there = groups.get(name)
    made = checked(groups, changed(there or Group(name), **values))
    if there is not None and made != there:
        hint = f"To change it: fairlane group set {name} …"
        raise Refused(f"group {name} is there already", hint, code="exists")
    return made


def checked(groups: Mapping[str, Group], group: Group) -> Group:
    """A group whose parent is known and is none of those under it."""
    parents = {name: other.parent for name, other in groups.items()} | {group.name: group.parent}
    line = ancestry(group.name, parents.get)
    if closing := parents.get(line[-1]):
        raise Refused(f"a cycle of groups: {' → '.join((*line, closing))}", code="cycle")
    if line[-1] not in parents:
        near = did_you_mean(line[-1], groups)
        raise NotFound(f"there is no group {line[-1]!r}", near, code="unknown_group")
    return group


def put(context: Context, tx: Writing, group: Group, kind: str, **more: object) -> None:
    """Keep a group, with a line in the log."""
    tx.put(group)
    values = {"group": group.name, "parent": group.parent, "priority": group.priority}
    note(context, tx, kind, **values, **more)


def _follow(tx: Writing, before: Mapping[str, Group], after: Mapping[str, Group], name: str) -> int:
    """Queued tasks that had their group's priority get the one it has now; how many did."""
    followed = 0
    for member in lineage(tx, name):
        old, new = _priority(before, member), _priority(after, member)
        if old == new:
            continue
        queued = every(tx, Filter(status=(Status.QUEUED,), group=member))
        tasks = [  # what they wait for stays the same
            placed._replace(task=replace(placed.task, priority=new))
            for placed in queued
            if placed.task.priority == old
        ]
        tx.save(tasks, content=True)
        followed += len(tasks)
    return followed


def _priority(groups: Mapping[str, Group], name: str) -> int:
    """What a task of this group has that names none."""
    priority = group_priority(groups, name)
    return _DEFAULT if priority is None else priority


_Row = tuple[str, Mapping[str, object]]  # its place in the input, its fields


def add_tree(
    context: Context,
    name: str,
    tree: Mapping[str, object],
    *,
    project: str | None = None,
    force: bool = False,
    dry_run: bool = False,
) -> TreeAddedAnswer:
    """A group with its tasks and the groups under it; what cannot be routed is named, left out."""
    groups_of_tree = branches(name, tree)
    rows = [
        (f"{branch.name}, task {at}", {**task, "group": branch.name})
        for branch in groups_of_tree
        for at, task in enumerate(branch.tasks, 1)
    ]
    fill = {"project": project} if project else {}
    with suppress(RollBack), context.store.write() as tx:
        intake = Intake(context, tx, force)
        router = intake.router
        made = _join(router, groups_of_tree)
        unrouted = {} if project else _unrouted(tx, router, rows)
        routed = [row for row in rows if row[1].get("id") not in unrouted]
        _check(row for row in rows if row[1].get("id") in unrouted)
        records = Records([row for _, row in routed], lambda at: routed[at][0])
        added = intake.enter(intake.submit(records, fill))
        if not added["deferred"]:
            _log(context, tx, router)
        document = _document(context, tx, name, made, added, unrouted)
        conclude(document, dry_run)
    return document


def _join(router: Router, tree: Sequence[Branch]) -> dict[str, bool]:
    """The tree's groups where the router knows them; each with whether it is new."""
    made = {}
    for branch in tree:
        values = read(branch.name, branch.values)
        group = joined(router.groups, branch.name, values)
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
    for task, row in named.items():
        for need in _needs(row) if task not in known else ():
            dependents.setdefault(need, []).append(task)
    left = list(lost)
    for missing in left:
        for task in dependents.get(missing, ()):
            if task not in lost:
                lost[task] = f"it needs {missing}, which is left out"
                left.append(task)
    return lost


def _check(rows: Iterable[_Row]) -> None:
    """What is left out must be right all the same."""
    for where, row in rows:
        try:
            fields.read(row)
        except FairlaneError as error:
            raise error.within(where) from None


def _needs(row: Mapping[str, object]) -> list[str]:
    """What a task names, if it is what it should be; if not, its own check says so."""
    named = {key: value for key, value in row.items() if key in ("needs", "parent") and value}
    needs = named.get("needs", [])
    return list(relatives(named)) if isinstance(needs, list | tuple) else []


def _log(context: Context, tx: Writing, router: Router) -> None:
    changes = TaskChanges(tx, context.policy_for_reading(tx), context.now(), context.actor)
    for group in router.new_groups:
        changes.note("group_added", group=group.name, parent=group.parent, priority=group.priority)
    changes.close()


def _document(
    context: Context,
    tx: Writing,
    name: str,
    made: Mapping[str, bool],
    added: AddedAnswer,
    unrouted: Mapping[str, str],
) -> TreeAddedAnswer:
    known = tx.table(Group)
    group = View(context, tx).document(name) if name in known else None
    parents = {member: known[member].parent if member in known else None for member in made}
    return {
        "schema": SCHEMA,
        "created": made[name],
        "group": group,
        "tasks": added["tasks"],
        "groups": [
            {"name": member, "parent": parents[member], "created": new}
            for member, new in made.items()
        ],
        "unrouted": [{"id": task, "reason": reason} for task, reason in unrouted.items()],
        **added,
    }


def add_recipe(
    context: Context,
    recipe: str,
    work: Records | Iterable[Mapping[str, object]],
    defaults: Mapping[str, object] | None = None,
    *,
    again: bool = False,
    force: bool = False,
    dry_run: bool = False,
) -> RecipeAddedDocument:
    """The tasks of a recipe for one prompt: `ID-research`, …; all or none."""
    rows = list(work.rows if isinstance(work, Records) else work)
    if len(rows) != 1:
        raise Invalid(f"a recipe is for one prompt, not {len(rows)}", "Give one.", code="usage")
    asked = {**(defaults or {}), **rows[0]}
    values = {key: value for key, value in asked.items() if value is not None}
    if values.get("command"):
        raise Invalid("a recipe gives each step its prompt", "Take the command out.", code="usage")
    if not str(values.get("prompt") or "").strip():
        hint = 'Write it: fairlane add "Fix the login form" --recipe full.'
        raise Invalid("a recipe needs a prompt", hint, code="usage")
    with suppress(RollBack), context.store.write() as tx:
        intake = Intake(context, tx, force)
        router = intake.router
        template = recipes.find(recipe, router.projects.get(_project(router, values)), context.home)
        first = check_name("task", values["id"]) if values.get("id") else _free(tx, template)
        group = str(values.setdefault("group", first))
        _join_group(router, group, recipes.title_of(values))
        steps = template.records(first, values, context.home / "artifacts")
        records = Records(steps, lambda at: f"step {template.steps[at].name}")
        added = intake.enter(intake.submit(records), again)
        document: RecipeAddedDocument = {**added, "recipe": recipe, "group": group}
        conclude(document, dry_run)
    return document


def _project(router: Router, values: Mapping[str, object]) -> str:
    """Whose repository may have the recipe."""
    owner = router.owner(str(values["id"])) if values.get("id") else None
    return str(values.get("project") or owner or DEFAULT_PROJECT)


def _join_group(router: Router, name: str, title: str) -> None:
    """The steps' group, with the title of the whole where it is new."""
    if is_name(name) and name not in router.groups:
        router.groups[name] = Group(name, title=title)
        router.new_groups.append(router.groups[name])


def _free(tx: Writing, recipe: recipes.Recipe) -> str:
    """t1, t2, …: the first that no task and no group has."""
    while True:
        name = f"t{tx.number('task')}"
        if name not in tx.table(Group) and not _taken(tx, name, recipe):
            return name


def _taken(reading: Reading, name: str, recipe: recipes.Recipe) -> bool:
    return bool(reading.statuses([name, *(f"{name}-{step.name}" for step in recipe.steps)]))
