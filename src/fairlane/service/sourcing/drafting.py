"""Drafts: what the task of an item would be, and to which project and group it goes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fairlane.intake import fields
from fairlane.intake.routing import Router
from fairlane.intake.sources.base import Collection, Found, Item
from fairlane.model.project import Group
from fairlane.service.sourcing.naming import name_for

#: What an item's record does not decide.
_APART = ("id", "needs")


class Unroutable(Exception):
    """Nothing says to which project an item belongs."""


@dataclass(slots=True)
class Draft:
    """An item on its way to be a task, or to change one."""

    item: Item
    task: str
    values: dict[str, Any]  # what the source says
    given: dict[str, Any] = field(default_factory=dict)  # what the import adds: project, group
    needs: tuple[str, ...] = ()
    hold: str = ""  # what its source, or an item that is not here, keeps it from
    taken: str = ""  # why its source says that somebody else works on it
    settled: bool = False  # its needs stay as they are: others would lead around
    returns: bool = False  # its task was canceled on its source's account, and comes back
    follows: bool = False  # not asked for: only what it waits for is looked at

    @property
    def group(self) -> str | None:
        """The group that it goes to."""
        return self.values.get("group") or self.given.get("group")

    def row(self) -> dict[str, Any]:
        """A record as callers give it."""
        return {"id": self.task, **self.values, **self.given, "needs": self.needs}

    def beside(self) -> dict[str, Any]:
        """What only a source can say of a new task."""
        return {"source_hold": self.hold, "failures": self.item.failures}


def draft(item: Item, names: Mapping[str, str], source: str, groups: Mapping[str, str]) -> Draft:
    """The typed values of an item's record; a bad one is refused."""
    record = {key: value for key, value in item.record.items() if key not in _APART}
    if item.group is not None:
        record["group"] = groups.get(item.group) or name_for(item.group)
    if record.get("parent") in names:
        record["parent"] = names[record["parent"]]
    values = fields.read(record)
    values["meta"] = values.get("meta", {}) | {"source": source, "source_id": item.id}
    return Draft(item, names[item.id], values)


def route(draft: Draft, router: Router, project: str | None, group: str | None) -> None:
    """A new task's project: its own, the one that is asked for, the one of its prefix."""
    if "project" not in draft.values:
        found = project or router.owner(draft.task)
        if found is None and router.has_prefixes:
            raise Unroutable(
                f"{draft.item.id} cannot be routed: it names no project and begins with no "
                "project's prefix; --project gives one"
            )
        if found is not None:
            draft.given["project"] = found
    probe = {"id": draft.task, **draft.values, **draft.given}
    probe.pop("group", None)  # groups are made once it is sure that somebody joins them
    router.complete(probe)
    if group is not None and "group" not in draft.values:
        draft.given["group"] = group


def group_names(found: Found) -> dict[str, str]:
    """Collection -> the name of its group."""
    return {each.id: name_for(each.name or each.id) for each in found.collections}


def make_groups(router: Router, found: Found, drafts: Iterable[Draft], top: str | None) -> None:
    """New groups for those that join them, each with the groups above it."""
    names = group_names(found)
    known = {names[each.id]: each for each in found.collections}
    for joined in dict.fromkeys(draft.group for draft in drafts):
        name, below = joined, set[str]()
        while name is not None and name not in router.groups:
            below.add(name)
            each = known.get(name) or Collection(name, name)
            over = top if each.parent is None else names.get(each.parent) or name_for(each.parent)
            made = Group(name, None if over in below else over, title=each.title)
            router.groups[name] = made
            router.new_groups.append(made)
            name = made.parent
