"""Gas Town: a town's settings become batch-dispatch rules, its rigs become projects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairlane.model.instant import parse_duration, parse_instant, show_duration
from fairlane.service.conversion import reading
from fairlane.service.conversion.base import Converted, Paused
from fairlane.service.conversion.reading import Keys, count, flag, signed, text

SETTINGS = "settings/config.json"
STATE = ".runtime/scheduler-state.json"
RIGS = "mayor/rigs.json"
#: The town's own beads: they coordinate, and are no work.
TOWN_PREFIX = "hq-"


def convert(path: Path) -> Converted:
    """A town's `settings/config.json`, or the town's folder; what lies beside it is read too."""
    found = Converted(preset="batch-dispatch")
    file = reading.inside(path, SETTINGS, "config.json")[0]
    town = file.parent.parent if file.parent.name == "settings" else file.parent
    _rules(reading.read_json(file), found)
    if (town / STATE).is_file():
        _pause(reading.read_json(town / STATE), found)
    if (town / RIGS).is_file():
        _rigs(reading.read_json(town / RIGS), found)
    found.settings["agent"] = "claude"
    found.called["agent"] = "polecats are Claude Code"
    found.note(
        "A launch failure that is the third in a row parks the task with the last error; there it "
        "closed the context bead, and the work was no longer to be seen."
    )
    found.note(
        "Beads come in with `fairlane import beads PATH [ID…]`; an epic or convoy becomes a group."
    )
    return found


def _rules(keys: Keys, found: Converted) -> None:
    keys.drop("type", "version")
    most = keys.take("scheduler.max_polecats", signed)
    deferred = most is not None and most > 0
    told = "no max_polecats" if most is None else f"max_polecats = {most}"
    found.rule("capacity.mode", "deferred" if deferred else "direct", told)
    found.rule("capacity.batch", keys.take("scheduler.batch_size", count), "batch_size")
    found.rule("capacity.spawn_delay", keys.take("scheduler.spawn_delay", _delay), "spawn_delay")
    found.rule("caps.all", most if deferred else "none", told)
    if not deferred:
        found.note(
            "Without a positive max_polecats a sling starts at once. Here that is "
            'capacity.mode = "direct" without a cap; a cap of 0 would let nothing start.'
        )
    found.unknown += keys.unknown()


def _delay(value: Any) -> str:
    return show_duration(parse_duration(text(value)))


def _pause(keys: Keys, found: Converted) -> None:
    """Nothing starts in a town that is paused; when it dispatched last is not brought over."""
    keys.drop("last_dispatch_at", "last_dispatch_count")
    paused = keys.take("paused", flag)
    by, at = keys.take("paused_by", text), keys.take("paused_at", _moment)
    if paused:
        found.pauses.append(Paused(by=by or "", at=at, reason="paused in Gas Town"))
    found.unknown += [f"{Path(STATE).name}: {key}" for key in keys.unknown()]


def _moment(value: Any) -> int:
    return parse_instant(text(value))


def _rigs(keys: Keys, found: Converted) -> None:
    """Each rig is a project; ids that begin with its prefix belong to it."""
    for key, prefix in keys.take_all("rigs.", str).items():
        rig, _, name = key.partition(".")
        values = found.projects.setdefault(rig, {})
        if name == "beads.prefix":
            values["prefix"] = f"{prefix.rstrip('-')}-"
    for rig, values in list(found.projects.items()):
        if values.get("prefix") == TOWN_PREFIX:
            del found.projects[rig]
    if found.projects:
        found.note(
            "A rig becomes a project without a repository: "
            "`fairlane project set RIG --repo PATH` gives it the clone to work in."
        )
