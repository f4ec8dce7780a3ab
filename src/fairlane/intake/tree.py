"""A tree: a group with its tasks and the groups under it, out of one file."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping

from fairlane.model.errors import Invalid, did_you_mean
from fairlane.model.record import dataclass
from fairlane.model.values import check_name, once

#: Deepest nesting of groups.
DEPTH_MAX = 32
KEYS = ("name", "title", "parent", "priority", "tasks", "groups")
_HINT = 'Write it as {"tasks": [{"id": "a", "prompt": "…"}], "groups": [{"name": "g", …}]}.'


@dataclass(frozen=True, slots=True)
class Branch:
    """One group of a tree, with its own tasks."""

    name: str
    values: Mapping[str, object]  # title, parent, priority: those that are given
    tasks: tuple[Mapping[str, object], ...]


def parse_tree(text: str, origin: str) -> dict[str, object]:
    """The tree that a text of JSON or TOML is."""
    as_json = text.lstrip().startswith("{")
    try:
        tree = json.loads(text, object_pairs_hook=once) if as_json else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        form = "JSON" if as_json else "TOML"
        raise Invalid(f"{origin}: not {form}: {error}", _HINT) from error
    if not isinstance(tree, dict):
        raise Invalid(f"{origin}: not a tree", _HINT)
    return tree


def branches(name: str, tree: Mapping[str, object]) -> list[Branch]:
    """The groups of a tree, each after the one above it; a name appears once."""
    written = tree.get("name", name)
    if written != name:
        hint = f"Give its name: fairlane group add {written} --file …"
        raise Invalid(f"the tree is of group {written!r}, not of {name!r}", hint)
    groups = list(_walk(name, tree, None, 0))
    for group, times in Counter(branch.name for branch in groups).items():
        if times > 1:
            raise Invalid(f"group {group} appears twice in the tree", "Give it another name.")
    return groups


def _walk(name: str, tree: Mapping[str, object], above: str | None, depth: int) -> Iterator[Branch]:
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
    for at, child in enumerate(_records(name, tree, "groups"), 1):
        if "name" not in child:
            raise Invalid(f"group {name}: group {at} under it has no name", "Give it one.")
        yield from _walk(check_name("group", child["name"]), child, name, depth + 1)


def _records(name: str, tree: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    rows = tree.get(key) or []
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise Invalid(f"group {name}: {key}: not a list of tables", _HINT)
    return rows
