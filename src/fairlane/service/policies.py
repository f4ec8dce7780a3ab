"""The policy as an operation: show, check, compare, choose, change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from fairlane.model.errors import Invalid
from fairlane.model.names import SCHEMA
from fairlane.policy import edit, load
from fairlane.policy.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairlane.engine.context import Context
    from fairlane.model.documents import admin


def show(context: Context) -> admin.PolicyAnswer:
    """The policy in force, each key with where its value came from."""
    return show_file(context.policy_file)


def show_file(path: Path) -> admin.PolicyAnswer:
    """The policy of a file, which may be missing."""
    return _shown(edit.sources(path), str(path) if path.exists() else None)


def show_named(what: str) -> admin.PolicyAnswer:
    """The same for a preset or another file."""
    if what in Policy.presets():
        return _shown([load.preset_layer(what)], None)
    named(what)
    return _shown(edit.sources(what), what)


def _shown(layers: Sequence[load.Layer], file: str | None) -> admin.PolicyAnswer:
    policy = Policy.of_layers(layers)
    rows: list[admin.PolicyKeyDocument] = [
        {"key": row.key, "value": row.value, "origin": row.origin} for row in edit.explain(layers)
    ]
    return {
        "schema": SCHEMA,
        "preset": policy.preset_name,
        "file": file,
        "digest": policy.digest(),
        "keys": rows,
        "policy": policy.document(),
    }


def check(path: Path) -> admin.PolicyCheckedAnswer:
    """A policy file that can be used; otherwise an error that names all that is wrong with it."""
    problems = load.problems(path)
    if len(problems) == 1:
        raise Invalid(problems[0].message, problems[0].hint, code="invalid_policy")
    if problems:
        lines = [f"{problem.message} ({problem.hint})" for problem in problems]
        hint = f"{len(problems)} things are wrong; nothing of this policy is used."
        raise Invalid("\n".join(lines), hint, code="invalid_policy")
    policy = Policy.load(path)
    return {
        "schema": SCHEMA,
        "file": str(path),
        "ok": True,
        "preset": policy.preset_name,
        "digest": policy.digest(),
    }


def diff(a: str, b: str) -> admin.PolicyDiffAnswer:
    """The keys in which two policies differ; each is a preset or a file."""
    return {"schema": SCHEMA, "a": a, "b": b, "differences": _differences(named(a), named(b))}


def _differences(a: Policy, b: Policy) -> list[admin.PolicyDifferenceDocument]:
    return [{"key": row.key, "a": row.a, "b": row.b} for row in edit.diff(a, b)]


def presets() -> admin.PresetsAnswer:
    """The shipped policies."""
    shipped = Policy.presets().items()
    return {
        "schema": SCHEMA,
        "presets": [{"name": name, "about": about} for name, about in shipped],
    }


def use(path: Path, name: str) -> admin.PolicyUsedAnswer:
    """Write a policy file that uses a preset; the file before it is kept."""
    backup = edit.use_preset(path, name)
    saved = None if backup is None else str(backup)
    return {"schema": SCHEMA, "file": str(path), "preset": name, "backup": saved}


def changes(assignments: Sequence[str]) -> dict[str, object]:
    """`caps.all=8`, as keys with their values."""
    return dict(edit.parse_assignment(assignment) for assignment in assignments)


def change(context: Context, changes: Mapping[str, object]) -> admin.PolicyChangedAnswer:
    """Change keys of the policy, such as {"caps.all": 8}; all of them, or none."""
    if not changes:
        raise Invalid("there is nothing to change", 'Give a key, such as {"caps.all": 8}.')
    words = [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in changes.items()]
    return change_file(context.policy_file, words)


def change_file(path: Path, assignments: Sequence[str]) -> admin.PolicyChangedAnswer:
    """Change keys (`caps.all=8`) and keep every comment; all of them, or none."""
    before = Policy.load(path)
    values = changes(assignments)
    try:
        after = before.with_overrides({key: values[key] for key in values if key != "preset"})
    except Invalid as error:
        message = error.message.removeprefix("override: ")
        hint = f"{error.hint} Nothing was changed."
        raise Invalid(message, hint, error.error_code) from error
    for assignment in assignments:
        after = edit.set_key(path, assignment)
    return {
        "schema": SCHEMA,
        "file": str(path),
        "digest": after.digest(),
        "differences": _differences(before, after),
    }


def try_out(context: Context, what: str) -> admin.PolicyTriedAnswer:
    """What the next plan would do differently under another policy; nothing is changed."""
    from fairlane.engine.look.planned import look_and_plan

    other, now = named(what), context.now()
    with context.store.read() as reading:
        ours = context.policy_for_reading(reading)
        before = look_and_plan(context, reading, ours, now).plan
        after = look_and_plan(context, reading, other, now).plan
    starts, tries = ([pick.task for pick in plan.picks] for plan in (before, after))
    return {
        "schema": SCHEMA,
        "policy": what,
        "starts": {"now": starts, "then": tries},
        "gains": [name for name in tries if name not in starts],
        "loses": [name for name in starts if name not in tries],
        "reason": {"now": str(before.reason), "then": str(after.reason)},
        "differences": _differences(ours, other),
    }


def named(what: str) -> Policy:
    """The policy of a file, or a preset by its name."""
    if what in Policy.presets():
        return Policy.preset(what)
    path = Path(what)
    if path.exists() or path.suffix == ".toml" or "/" in what:
        if not path.exists():
            raise Invalid(f"{what}: there is no such file", "Give a file or the name of a preset.")
        return Policy.load(path)
    return Policy.preset(what)  # an error that names the nearest
