"""The policy as an operation: show, check, compare, choose, change."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlane.model.errors import Invalid
from fairlane.policy import load
from fairlane.policy.policy import Policy
from fairlane.service import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlane.service.desk import Desk


def show(path: Path) -> dict[str, Any]:
    """The policy in force, each key with its value and where it came from."""
    from fairlane.policy.origin import sources

    return _shown(sources(path), str(path) if path.exists() else None)


def show_named(what: str) -> dict[str, Any]:
    """The same for a preset or another file."""
    from fairlane.policy.origin import sources

    if what in Policy.presets():
        return _shown([load.preset_layer(what)], None)
    named(what)
    return _shown(sources(what), what)


def _shown(layers: Sequence[load.Layer], file: str | None) -> dict[str, Any]:
    from fairlane.policy.origin import explain

    policy = Policy.of_layers(layers)
    rows = [{"key": row.key, "value": row.value, "origin": row.origin} for row in explain(layers)]
    return {
        "schema": SCHEMA,
        "preset": policy.preset_name,
        "file": file,
        "digest": policy.digest(),
        "keys": rows,
        "policy": policy.document(),
    }


def check(path: Path) -> dict[str, Any]:
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


def diff(a: str, b: str) -> dict[str, Any]:
    """The keys in which two policies differ; each is a preset or a file."""
    from fairlane.policy import edit

    rows = edit.diff(named(a), named(b))
    differences = [{"key": row.key, "a": row.a, "b": row.b} for row in rows]
    return {"schema": SCHEMA, "a": a, "b": b, "differences": differences}


def presets() -> dict[str, Any]:
    """The shipped policies."""
    rows = [{"name": name, "about": about} for name, about in Policy.presets().items()]
    return {"schema": SCHEMA, "presets": rows}


def use(path: Path, name: str) -> dict[str, Any]:
    """Write a policy file that uses a preset; the file before it is kept."""
    from fairlane.policy import edit

    backup = edit.use_preset(path, name)
    kept = None if backup is None else str(backup)
    return {"schema": SCHEMA, "file": str(path), "preset": name, "backup": kept}


def changes(assignments: Sequence[str]) -> dict[str, Any]:
    """`caps.all=8`, as keys with their values."""
    from fairlane.policy import edit

    return dict(edit.parse_assignment(assignment) for assignment in assignments)


def change(path: Path, assignments: Sequence[str]) -> dict[str, Any]:
    """Change keys (`caps.all=8`) and keep every comment; all of them, or none."""
    from fairlane.policy import edit

    before = Policy.load(path)
    given = changes(assignments)
    try:
        after = before.with_overrides({key: given[key] for key in given if key != "preset"})
    except Invalid as error:
        message = error.message.removeprefix("override: ")
        nearest = f"{error.hint} " if error.hint.startswith("Did you mean") else ""
        raise Invalid(message, f"{nearest}Nothing was changed.", error.error_code) from error
    for assignment in assignments:
        after = edit.set_key(path, assignment)
    rows = [{"key": row.key, "a": row.a, "b": row.b} for row in edit.diff(before, after)]
    return {"schema": SCHEMA, "file": str(path), "digest": after.digest(), "differences": rows}


def try_out(desk: Desk, what: str) -> dict[str, Any]:
    """What the next plan would do differently under another policy; nothing is changed."""
    from fairlane.policy import edit
    from fairlane.service.looking import look_and_plan

    other, now = named(what), desk.now()
    with desk.store.read() as reading:
        ours = desk.policy_for_reading(reading)
        before = look_and_plan(desk, reading, ours, now, ahead=True).plan
        after = look_and_plan(desk, reading, other, now, ahead=True).plan
    starts, tries = ([pick.task for pick in plan.picks] for plan in (before, after))
    rows = [{"key": row.key, "a": row.a, "b": row.b} for row in edit.diff(ours, other)]
    return {
        "schema": SCHEMA,
        "policy": what,
        "starts": {"now": starts, "then": tries},
        "gains": [name for name in tries if name not in starts],
        "loses": [name for name in starts if name not in tries],
        "reason": {"now": str(before.reason), "then": str(after.reason)},
        "differences": rows,
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
