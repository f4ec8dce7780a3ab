"""Gas Town: a town's settings become batch-dispatch rules, its rigs become projects."""

from __future__ import annotations

from pathlib import Path

from fairlane.model.instant import parse_duration, parse_instant, show_duration
from fairlane.model.values import flag, text
from fairlane.service.conversion import base
from fairlane.service.conversion.base import Converted, Keys, Paused, count, signed

SETTINGS = "settings/config.json"
STATE = ".runtime/scheduler-state.json"
RIGS = "mayor/rigs.json"
#: The town's own beads: they coordinate, and are no work.
TOWN_PREFIX = "hq-"


def convert(path: Path) -> Converted:
    """A town's `settings/config.json`, or the town's folder; the files next to it are read too."""
    converted = Converted(preset="batch-dispatch")
    file = base.inside(path, SETTINGS, "config.json")[0]
    town = file.parent.parent if file.parent.name == "settings" else file.parent
    _rules(base.read_json(file), converted)
    if (town / STATE).is_file():
        _pause(base.read_json(town / STATE), converted)
    if (town / RIGS).is_file():
        _rigs(base.read_json(town / RIGS), converted)
    converted.settings["agent"] = "claude"
    converted.called["agent"] = "polecats are Claude Code"
    converted.note(
        "A launch failure that is the third in a row parks the task with the last error; there it "
        "closed the context bead, and the work was no longer to be seen."
    )
    converted.note(
        "Beads come in with `fairlane import beads PATH [ID…]`; an epic or convoy becomes a group."
    )
    return converted


def _rules(keys: Keys, converted: Converted) -> None:
    keys.drop("type", "version")
    most = keys.take("scheduler.max_polecats", signed)
    deferred = most is not None and most > 0
    called = "no max_polecats" if most is None else f"max_polecats = {most}"
    converted.rule("capacity.mode", "deferred" if deferred else "direct", called)
    converted.rule("capacity.batch", keys.take("scheduler.batch_size", count), "batch_size")
    converted.rule(
        "capacity.spawn_delay", keys.take("scheduler.spawn_delay", _delay), "spawn_delay"
    )
    converted.rule("caps.all", most if deferred else "none", called)
    if not deferred:
        converted.note(
            "Without a positive max_polecats a sling starts at once. Here that is "
            'capacity.mode = "direct" without a cap; a cap of 0 would let nothing start.'
        )
    converted.unknown += keys.unknown()


def _delay(value: object) -> str:
    return show_duration(parse_duration(text(value)))


def _pause(keys: Keys, converted: Converted) -> None:
    """Nothing starts in a town that is paused; when it dispatched last is not brought over."""
    keys.drop("last_dispatch_at", "last_dispatch_count")
    paused = keys.take("paused", flag)
    by, at = keys.take("paused_by", text), keys.take("paused_at", _moment)
    if paused:
        converted.pauses.append(Paused(by=by or "", at=at, reason="paused in Gas Town"))
    converted.unknown += [f"{Path(STATE).name}: {key}" for key in keys.unknown()]


def _moment(value: object) -> int:
    return parse_instant(text(value))


def _rigs(keys: Keys, converted: Converted) -> None:
    """Each rig is a project; ids that begin with its prefix belong to it."""
    for key, prefix in keys.take_all("rigs.", str).items():
        rig, _, name = key.partition(".")
        values = converted.projects.setdefault(rig, {})
        if name == "beads.prefix":
            values["prefix"] = f"{prefix.rstrip('-')}-"
    for rig, values in list(converted.projects.items()):
        if values.get("prefix") == TOWN_PREFIX:
            del converted.projects[rig]
    if converted.projects:
        converted.note(
            "A rig becomes a project without a repository: "
            "`fairlane project set RIG --repo PATH` gives it the clone to work in."
        )
