"""Gas Town: a town's settings become batch-dispatch rules, its rigs become projects."""

from __future__ import annotations

from pathlib import Path

from fairlane.model.instant import parse_duration, parse_instant, show_duration
from fairlane.model.values import flag, text
from fairlane.service.conversion import base
from fairlane.service.conversion.base import Converted, Keys, Paused, count, signed
from fairlane.service.conversion.formats.gastown import agents, rigs

SETTINGS = "settings/config.json"
#: Where a pause is kept; the second one only where the first is missing, as in Gas Town itself.
STATES = (".runtime/scheduler-state.json", ".runtime/queue-state.json")
RIGS = "mayor/rigs.json"
#: Slots where nothing limits how many start at once; the daemon fits them to its open files.
DIRECT_SLOTS = 1000


def convert(path: Path) -> Converted:
    """A town's `settings/config.json`, or the town's folder; the files next to it are read too."""
    converted = Converted(preset="batch-dispatch")
    if path.is_dir() and (path / RIGS).is_file() and not (path / SETTINGS).is_file():
        town, keys = path, Keys({}, str(path / SETTINGS))
        converted.note(f"There is no {SETTINGS}, so these are the defaults of Gas Town.")
    else:
        file = base.inside(path, SETTINGS, "config.json")[0]
        town = file.parent.parent if file.parent.name == "settings" else file.parent
        keys = base.read_json(file)
    _rules(keys, converted)
    agents.convert(keys, converted)
    converted.unknown += keys.unknown()
    state = next((town / name for name in STATES if (town / name).is_file()), None)
    if state is not None:
        _pause(base.read_json(state), state.name, converted)
    if (town / RIGS).is_file():
        rigs.convert(town / RIGS, town, converted)
    converted.note(
        "A launch failure that is the third in a row parks the task with the last error; there it "
        "closed the context bead, and the work was no longer visible."
    )
    converted.note(
        "Beads come in with `fairlane import beads PATH [ID…]`; an epic or convoy becomes a group. "
        "Where some beads are slung, the others come in only when you name them."
    )
    return converted


def _rules(keys: Keys, converted: Converted) -> None:
    keys.drop("type", "version")
    most = keys.take("scheduler.max_polecats", signed)
    batch = keys.take("scheduler.batch_size", count)
    delay = keys.take("scheduler.spawn_delay", _delay)
    called = "no max_polecats" if most is None else f"max_polecats = {most}"
    if most is None or most <= 0:
        _direct(converted, called)
        return
    converted.rule("capacity.mode", "deferred", called)
    if batch == 0:
        batch = 1
        converted.note("batch_size is 0, which Gas Town refuses to set: its default, 1, is used.")
    converted.rule("capacity.batch", batch, "batch_size")
    converted.rule("capacity.spawn_delay", delay, "spawn_delay")
    converted.rule("caps.all", most, called)


def _direct(converted: Converted, called: str) -> None:
    """All that is slung starts at once: no batch, no pause between starts, no cap, many slots."""
    converted.rule("capacity.mode", "direct", called)
    converted.rule("capacity.batch", "none", "batch_size is for max_polecats > 0")
    converted.rule("capacity.spawn_delay", "0s", "spawn_delay is for max_polecats > 0")
    converted.rule("caps.all", "none", called)
    converted.settings["worker.slots"] = DIRECT_SLOTS
    converted.called["worker.slots"] = "so that nothing waits for a slot"
    converted.note(
        "Without a positive max_polecats a sling starts at once. Here that is "
        'capacity.mode = "direct" without a cap; a cap of 0 would let nothing start. '
        "`fairlane import` starts what it brings in, so name the beads, or pause first."
    )


def _delay(value: object) -> str:
    return show_duration(parse_duration(text(value) or "0s"))


def _pause(keys: Keys, name: str, converted: Converted) -> None:
    """Nothing starts in a town that is paused; when it dispatched last is not brought over."""
    keys.drop("last_dispatch_at", "last_dispatch_count")
    paused = keys.take("paused", flag)
    by, at = keys.take("paused_by", text), keys.take("paused_at", _moment)
    if paused:
        converted.pauses.append(Paused(by=by or "", at=at, reason="paused in Gas Town"))
        converted.note(f"The town is paused ({name}): `fairlane resume` lets work start.")
    converted.unknown += [f"{name}: {key}" for key in keys.unknown()]


def _moment(value: object) -> int | None:
    return parse_instant(text(value)) if value else None
