"""Recipes: one prompt becomes a chain of tasks in a group of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fairlane.intake import recipes
from fairlane.intake.records import Records
from fairlane.intake.routing import DEFAULT_PROJECT, Router
from fairlane.intake.submit import submit
from fairlane.model.errors import Invalid
from fairlane.model.names import check_name, is_name
from fairlane.model.project import Group
from fairlane.service.desk import Desk
from fairlane.service.tasks import Undone, enter, router_for
from fairlane.store.base import Reading, Writing


def add_recipe(
    desk: Desk,
    recipe: str,
    work: Records | Iterable[Mapping[str, Any]],
    defaults: Mapping[str, Any] | None = None,
    *,
    again: bool = False,
    force: bool = False,
    dry_run: bool = False,
) -> dict[str, Any]:
    """The tasks of a recipe for one prompt: `ID-research`, …; all or none."""
    rows = list(work.rows if isinstance(work, Records) else work)
    if len(rows) != 1:
        raise Invalid(f"a recipe is for one prompt, not {len(rows)}", "Give one.", code="usage")
    asked = {**(defaults or {}), **rows[0]}
    given = {key: value for key, value in asked.items() if value is not None}
    if given.get("command"):
        raise Invalid("a recipe gives each step its prompt", "Take the command out.", code="usage")
    if not str(given.get("prompt") or "").strip():
        hint = 'Write it: fairlane add "Fix the login form" --recipe full.'
        raise Invalid("a recipe needs a prompt", hint, code="usage")
    try:
        with desk.store.write() as tx:
            policy, now = desk.policy(), desk.now()  # as of the turn, not of the wait for it
            router = router_for(desk, tx, force)
            found = recipes.find(recipe, router.projects.get(_project(router, given)), desk.home)
            first = check_name("task", given["id"]) if given.get("id") else _free(tx, found)
            group = str(given.setdefault("group", first))
            _join(router, group, recipes.title_of(given))
            steps = found.records(first, given, desk.home / "artifacts")
            records = Records(steps, lambda at: f"step {found.steps[at].name}: ")
            batch = submit(tx, router, policy, now, records)
            document = enter(desk, tx, router, policy, now, batch, again)
            document |= {"recipe": recipe, "group": group}
            if dry_run or document["deferred"]:
                raise Undone(document | ({"dry_run": True} if dry_run else {}))
    except Undone as undone:
        return undone.document
    return document


def _project(router: Router, given: Mapping[str, Any]) -> str:
    """Whose repository may have the recipe."""
    owner = router.owner(str(given["id"])) if given.get("id") else None
    return str(given.get("project") or owner or DEFAULT_PROJECT)


def _join(router: Router, name: str, title: str) -> None:
    """The steps' group, with the title of the whole where it is new."""
    if is_name(name) and name not in router.groups:
        router.groups[name] = Group(name, title=title)
        router.new_groups.append(router.groups[name])


def _free(tx: Writing, recipe: recipes.Recipe) -> str:
    """t1, t2, …: the first that no task and no group has."""
    while True:
        name = f"t{tx.number('task')}"
        if name not in tx.groups() and not _taken(tx, name, recipe):
            return name


def _taken(reading: Reading, name: str, recipe: recipes.Recipe) -> bool:
    return bool(reading.statuses([name, *(f"{name}-{step.name}" for step in recipe.steps)]))
