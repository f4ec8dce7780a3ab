"""What a browser may do with the cookie of the page: what the page has buttons for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NoReturn

from fairlane.model.errors import Forbidden
from fairlane.service.operations.table import OPERATIONS

#: Fields that the forms of the page give a new task, and that they change.
ADDS = ("prompt", "project", "kind", "agent", "group", "title", "priority", "needs")
EDITS = ("title", "prompt", "project", "group", "not_before", "priority")
#: Arguments of `add` that the page gives.
_WITH = ("tasks", "dry_run")
#: Keys of the policy that the page changes begin so.
_CAPS = "caps."


def permit_page(name: str, arguments: Mapping[str, object]) -> None:
    """Refuse an operation, or a field of one, that the page does not have."""
    if not OPERATIONS[name].page:
        _refuse(name)
    if name == "add":
        _only("add", arguments, _WITH)
        tasks = arguments.get("tasks")
        for task in tasks if isinstance(tasks, list) else ():
            _only("add", task, ADDS)
    elif name == "edit":
        _only("edit", arguments.get("changes"), EDITS)
    elif name == "policy_set":
        changes = arguments.get("changes")
        for key in changes if isinstance(changes, Mapping) else ():
            if not key.startswith(_CAPS):
                _refuse(f"policy_set: {key}")


def _only(name: str, given: object, known: Collection[str]) -> None:
    for key in given if isinstance(given, Mapping) else ():
        if key not in known:
            _refuse(f"{name}: {key}")


def _refuse(what: str) -> NoReturn:
    raise not_for_page(what)


def not_for_page(what: str) -> Forbidden:
    """Something that a browser may not do."""
    hint = "The page has no button for it; use the command line, or the token."
    return Forbidden(f"{what[:200]}: not with the cookie of the page", hint)
