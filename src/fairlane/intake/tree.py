"""A tree: a group with its tasks and the groups under it, out of one file."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fairlane.model.errors import Invalid, did_you_mean
from fairlane.model.names import check_name

#: How deep groups may stand in each other.
DEPTH_MAX = 32
KEYS = ("name", "title", "parent", "priority", "tasks", "groups")
_HINT = 'Write it as {"tasks": [{"id": "a", "prompt": "…"}], "groups": [{"name": "g", …}]}.'


@dataclass(frozen=True, slots=True)
class Branch:
    """One group of a tree, with its own tasks."""

    name: str
    values: Mapping[str, Any]  # title, parent, priority: those that are given
    tasks: tuple[Mapping[str, Any], ...]


def parse_tree(text: str, origin: str) -> dict[str, Any]:
    """The tree that a text of JSON or TOML is."""
    as_json = text.lstrip().startswith("{")
    try:
        tree = json.loads(text) if as_json else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        form = "JSON" if as_json else "TOML"
        raise Invalid(f"{origin}: not {form}: {error}", _HINT) from error
    if not isinstance(tree, dict):
        raise Invalid(f"{origin}: not a tree", _HINT)
    return tree


def branches(name: str, tree: Mapping[str, Any]) -> list[Branch]:
    """The groups of a tree, each after the one above it; a name appears once."""
    told = tree.get("name", name)
    if told != name:
        hint = f"Give its name: fairlane group add {told} --file …"
        raise Invalid(f"the tree is of group {told!r}, not of {name!r}", hint)
    found = list(_walk(name, tree, None, 0))
    for each, times in Counter(branch.name for branch in found).items():
        if times > 1:
            raise Invalid(f"group {each} appears twice in the tree", "Give it another name.")
    return found


def _walk(name: str, tree: Mapping[str, Any], above: str | None, depth: int) -> Iterator[Branch]:
    check_name("group", name)
    if depth > DEPTH_MAX:
        raise Invalid(f"group {name}: deeper than {DEPTH_MAX} groups", "Make the tree flatter.")
    for key in tree:
        if key not in KEYS:
            raise Invalid(f"group {name}: unknown key {key!r}", did_you_mean(str(key), KEYS))
    values = {key: tree[key] for key in ("title", "parent", "priority") if key in tree}
    if above is not None:
        if values.get("parent", above) != above:
            hint = "Take `parent` out: its place says it."
            raise Invalid(f"group {name} stands under {above}, not {values['parent']}", hint)
        values["parent"] = above
    tasks = tuple(_records(name, tree, "tasks"))
    for at, task in enumerate(tasks, 1):
        if task.get("group", name) != name:
            hint = "Take `group` out: its place says it."
            raise Invalid(f"group {name}: task {at} is of group {task['group']!r}", hint)
    yield Branch(name, values, tasks)
    for at, each in enumerate(_records(name, tree, "groups"), 1):
        if "name" not in each:
            raise Invalid(f"group {name}: group {at} under it has no name", "Give it one.")
        yield from _walk(each["name"], each, name, depth + 1)


def _records(name: str, tree: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    found = tree.get(key) or []
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise Invalid(f"group {name}: {key}: not a list of tables", _HINT)
    return found
