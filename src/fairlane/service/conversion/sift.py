"""Sift: a bad piece of work is left out by name, with all that waits for it; the rest stays."""

from __future__ import annotations

from collections.abc import Callable, Collection

from fairlane.intake import fields
from fairlane.intake.fields import TaskValues
from fairlane.intake.kinship import misfits, relatives
from fairlane.intake.sources.base import LeftOut
from fairlane.model.errors import FairlaneError
from fairlane.service.conversion.base import Brought, Converted


def sift(
    converted: Converted,
    check: Callable[[TaskValues], object],
    known: Callable[[set[str]], Collection[str]],
) -> tuple[list[Brought], list[LeftOut]]:
    """The tasks that can come in, and what is left out.

    `check` refuses values that do not fit, `known` says which of some tasks exist here.
    """
    out = list(converted.skipped)
    drafts: dict[str, TaskValues] = {}
    good: dict[str, Brought] = {}
    for task in converted.tasks:
        try:
            values = fields.read(task.record)
            check(values.copy())
        except FairlaneError as error:
            out.append(_left_out(task, error.message))
            continue
        name = values["id"]
        if name in drafts:
            out.append(_left_out(task, f"another one has this id: {good[name].where}"))
        else:
            drafts[name], good[name] = values, task
    named = {name for draft in drafts.values() for name in relatives(draft)} - drafts.keys()
    gone = {item.id for item in out} - drafts.keys()
    for name, reason in misfits(drafts, known(named) if named else (), gone).items():
        out.append(_left_out(good.pop(name), reason))
    return list(good.values()), out


def _left_out(task: Brought, reason: str) -> LeftOut:
    return LeftOut(str(task.record.get("id")), reason, task.where, bad=True)
