"""Actions: what can be done from the page; each asks one operation, as every interface does."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import quote

from fairlane.app.office import Office
from fairlane.model.errors import Invalid, TryLater

_SCOPE = re.compile(r"[a-z]+(:[A-Za-z0-9._*-]+)?")
#: What a form gives: texts by name.
Given: TypeAlias = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Told:
    """What happened, and where to look."""

    message: str
    go: str | None = None


async def add(office: Office, given: Given) -> Told:
    """Add a task."""
    task: dict[str, Any] = {"prompt": _needed(given, "prompt", "what the agent is asked to do")}
    for name in ("project", "kind", "agent", "group", "title"):
        if given.get(name, "").strip():
            task[name] = given[name].strip()
    if given.get("priority", "").strip():
        task["priority"] = _whole(given, "priority")
    needs = [word.strip() for word in given.get("needs", "").split(",") if word.strip()]
    if needs:
        task["needs"] = needs
    found = await office.ask("add", {"tasks": [task]})
    if found["deferred"]:
        raise TryLater(found["message"], found["hint"], "deferred")
    row = found["tasks"][0]
    told = f"Added {row['id']}. {row.get('warning', '')}".strip()
    return Told(told, f"/task/{quote(row['id'], safe='')}")


async def edit(office: Office, given: Given) -> Told:
    """Change what a task says; only fields that differ are sent."""
    changes: dict[str, Any] = {}
    for name in ("title", "prompt", "project"):
        if name in given:
            changes[name] = given[name].strip() if name != "prompt" else given[name]
    for name in ("group", "not_before"):
        if name in given:
            changes[name] = given[name].strip() or None
    if "priority" in given:
        changes["priority"] = _whole(given, "priority")
    if not changes:
        raise Invalid("nothing was changed", "Change a field first.")
    await office.ask("edit", {"ids": [_task(given)], "changes": changes})
    return Told(f"Changed {_task(given)}.")


async def cancel(office: Office, given: Given) -> Told:
    """Take a task out for good."""
    await office.ask("cancel", {"ids": [_task(given)], "reason": "canceled on the page"})
    return Told(f"Canceled {_task(given)}.")


async def retry(office: Office, given: Given) -> Told:
    """Put a parked task back."""
    await office.ask("retry", {"ids": [_task(given)]})
    return Told(f"{_task(given)} is queued again.")


async def pause(office: Office, given: Given) -> Told:
    """Start nothing more in a scope."""
    scope = given.get("scope", "all")
    await office.ask("pause", {"scope": scope, "reason": given.get("reason", "")})
    return Told("Paused everything." if scope == "all" else f"Paused {scope}.")


async def resume(office: Office, given: Given) -> Told:
    """Go on."""
    scope = given.get("scope", "all")
    await office.ask("resume", {"scope": scope})
    return Told("Going on." if scope == "all" else f"Resumed {scope}.")


async def cap(office: Office, given: Given) -> Told:
    """Change a cap of the policy."""
    scope = _needed(given, "scope", "what is capped")
    value = _whole(given, "value")
    if not _SCOPE.fullmatch(scope):
        raise Invalid(f"no cap can be for {scope!r}", "Write all, project:NAME or kind:NAME.")
    key = f'caps."{scope}"' if ":" in scope else f"caps.{scope}"
    await office.ask("policy_set", {"changes": {key: value}})
    return Told(f"Cap {scope} is {value} now.")


#: Every action by its name.
ACTIONS: Mapping[str, Callable[[Office, Given], Awaitable[Told]]] = {
    each.__name__: each for each in (add, edit, cancel, retry, pause, resume, cap)
}


def _task(given: Given) -> str:
    return _needed(given, "task", "which task")


def _needed(given: Given, name: str, what: str) -> str:
    found = given.get(name, "").strip()
    if not found:
        raise Invalid(f"{name} is empty", f"Say {what}.")
    return found


def _whole(given: Given, name: str) -> int:
    try:
        return int(given.get(name, "").strip())
    except ValueError:
        raise Invalid(f"{name}: not a whole number", "Write it as 8.") from None
