"""Actions: what can be done from the page; each asks one operation, as every interface does."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias
from urllib.parse import quote

from fairlane.app.shared_queue import SharedQueue
from fairlane.model.documents.tasks import AddedAnswer, CheckedAnswer
from fairlane.model.errors import Invalid, Refused, TryLater
from fairlane.model.record import dataclass
from fairlane.model.values import COUNT_MAX, digits, whole

_SCOPE = re.compile(r"[a-z]+(:[A-Za-z0-9._*-]+)?")
#: What a form gives: texts by name.
Form: TypeAlias = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Done:
    """What happened, and where to look."""

    message: str
    go: str | None = None


async def add(queue: SharedQueue, form: Form) -> Done:
    """Add a task."""
    task: dict[str, object] = {"prompt": _needed(form, "prompt", "what the agent is asked to do")}
    for name in ("project", "kind", "agent", "group", "title"):
        if form.get(name, "").strip():
            task[name] = form[name].strip()
    if form.get("priority", "").strip():
        task["priority"] = _whole(form, "priority")
    needs = [word.strip() for word in form.get("needs", "").split(",") if word.strip()]
    if needs:
        task["needs"] = needs
    answer: AddedAnswer = await queue.ask("add", {"tasks": [task]})
    if answer["deferred"]:
        raise TryLater(answer["message"], answer["hint"], "deferred")
    row = answer["tasks"][0]
    message = f"Added {row['id']}. {row.get('warning', '')}".strip()
    return Done(message, f"/task/{quote(row['id'], safe='')}")


async def edit(queue: SharedQueue, form: Form) -> Done:
    """Change what a task says; only fields that differ are sent."""
    changes: dict[str, object] = {}
    for name in ("title", "prompt", "project"):
        if name in form:
            changes[name] = form[name].strip() if name != "prompt" else form[name]
    for name in ("group", "not_before"):
        if name in form:
            changes[name] = form[name].strip() or None
    if "priority" in form:
        changes["priority"] = _whole(form, "priority")
    if not changes:
        raise Invalid("nothing was changed", "Change a field first.")
    await queue.ask("edit", {"ids": [_task(form)], "changes": changes})
    return Done(f"Changed {_task(form)}.")


async def cancel(queue: SharedQueue, form: Form) -> Done:
    """Take a task out for good."""
    await queue.ask("cancel", {"ids": [_task(form)], "reason": "canceled on the page"})
    return Done(f"Canceled {_task(form)}.")


async def retry(queue: SharedQueue, form: Form) -> Done:
    """Put a parked task back."""
    await queue.ask("retry", {"ids": [_task(form)]})
    return Done(f"{_task(form)} is queued again.")


async def check(queue: SharedQueue, form: Form) -> Done:
    """Run the checks of a task again; a failed one is told with its last line."""
    answer: CheckedAnswer = await queue.ask("check", {"task": _task(form)})
    failed = [row for row in answer["checks"] if not row["passed"]]
    if failed:
        names = ", ".join(row["name"] for row in failed)
        last = failed[0]["tail"].rstrip().rpartition("\n")[2] or failed[0]["problem"]
        raise Refused(f"Failed: {names}.", last, code="check_failed")
    many = len(answer["checks"])
    return Done("The check passed." if many == 1 else f"All {many} checks passed.")


async def pause(queue: SharedQueue, form: Form) -> Done:
    """Start nothing more in a scope."""
    scope = form.get("scope", "all")
    await queue.ask("pause", {"scope": scope, "reason": form.get("reason", "")})
    return Done("Paused everything." if scope == "all" else f"Paused {scope}.")


async def resume(queue: SharedQueue, form: Form) -> Done:
    """Go on."""
    scope = form.get("scope", "all")
    await queue.ask("resume", {"scope": scope})
    return Done("Going on." if scope == "all" else f"Resumed {scope}.")


async def cap(queue: SharedQueue, form: Form) -> Done:
    """Change a cap of the policy."""
    scope = _needed(form, "scope", "what is capped")
    value = _whole(form, "value")
    if not _SCOPE.fullmatch(scope):
        raise Invalid(f"no cap can be for {scope!r}", "Write all, project:NAME or kind:NAME.")
    key = f'caps."{scope}"' if ":" in scope else f"caps.{scope}"
    await queue.ask("policy_set", {"changes": {key: value}})
    return Done(f"Cap {scope} is {value} now.")


#: Every action by its name.
ACTIONS: Mapping[str, Callable[[SharedQueue, Form], Awaitable[Done]]] = {
    action.__name__: action for action in (add, edit, cancel, retry, check, pause, resume, cap)
}


def _task(form: Form) -> str:
    return _needed(form, "task", "which task")


def _needed(form: Form, name: str, what: str) -> str:
    text = form.get(name, "").strip()
    if not text:
        raise Invalid(f"{name} is empty", f"Say {what}.")
    return text


def _whole(form: Form, name: str) -> int:
    try:
        return whole(-COUNT_MAX)(digits(form.get(name, "").strip()))
    except Invalid as error:
        raise error.within(name) from None
