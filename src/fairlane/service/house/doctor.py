"""Doctor: all that is wrong, and what would be recovered; nothing is changed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from fairlane.clock import Clock
from fairlane.model.errors import FairlaneError
from fairlane.model.instant import Instant, show_instant
from fairlane.policy import load
from fairlane.service import SCHEMA
from fairlane.service.alive import has_ended, is_alive, is_here
from fairlane.service.desk import Desk
from fairlane.service.house import old_home, upkeep
from fairlane.service.house.setup import POLICY_FILE, installed
from fairlane.settings import FILE, Settings
from fairlane.store.base import Attempt, Reading

WRONG, NOTE, FINE = "wrong", "note", "fine"
#: Less room than this stops work; less than that is worth a word.
DISK_BYTES_MIN, DISK_BYTES_LOW = 100 << 20, 1 << 30


class Finding(NamedTuple):
    """One thing that was looked at."""

    level: str  # wrong: somebody must act; note: worth knowing; fine
    what: str
    message: str
    hint: str = ""


def examine(
    home: Path, db: str | None, default_url: str, clock: Clock, former: Path | None = None
) -> dict[str, Any]:
    """Look at everything; `ok` is false when something is wrong."""
    found = [*_home(home), *_old_home(home, former)]
    settings = Settings()
    try:
        settings = Settings.load(home / FILE)
        found.append(Finding(FINE, "settings", _file(home / FILE)))
    except FairlaneError as error:
        found.append(_error("settings", error))
    found += _policy(home / POLICY_FILE)
    found += _disk(home)
    found += _store(home, db or settings.store.url or default_url, settings, clock)
    rows = [each._asdict() for each in found]
    ok = all(each.level != WRONG for each in found)
    return {"schema": SCHEMA, "ok": ok, "home": str(home), "findings": rows}


def _home(home: Path) -> Iterator[Finding]:
    if not home.is_dir():
        hint = "`fairlane init` makes it; so does the first task."
        yield Finding(NOTE, "home", f"{home} is not there yet", hint)
        return
    mode = home.stat().st_mode & 0o777
    if mode & 0o077:
        text = f"{home} can be read by others (mode {mode:03o})"
        yield Finding(WRONG, "home", text, f"chmod 700 {home}")
    elif not os.access(home, os.W_OK | os.X_OK):
        yield Finding(WRONG, "home", f"{home} cannot be written", "Check who owns it.")
    else:
        yield Finding(FINE, "home", str(home))


def _old_home(home: Path, former: Path | None) -> Iterator[Finding]:
    try:
        old_home.refuse(home, former)
    except FairlaneError as error:
        yield _error("home", error)


def _file(path: Path) -> str:
    return str(path) if path.exists() else "no file: the defaults"


def _policy(path: Path) -> Iterator[Finding]:
    problems = load.problems(path) if path.exists() else []
    if not problems:
        yield Finding(FINE, "policy", _file(path))
    for each in problems:
        yield Finding(WRONG, "policy", each.message, each.hint)


def _disk(home: Path) -> Iterator[Finding]:
    place = next(each for each in (home, *home.parents) if each.exists())
    free = shutil.disk_usage(place).free
    text = f"{free / (1 << 30):.1f} GiB are free"
    if free < DISK_BYTES_MIN:
        yield Finding(WRONG, "disk", text, "Free some space: nothing can be written soon.")
    else:
        yield Finding(NOTE if free < DISK_BYTES_LOW else FINE, "disk", text)


def _store(home: Path, url: str, settings: Settings, clock: Clock) -> Iterator[Finding]:
    path = upkeep.sqlite_path(url)
    if path is None:
        hint = "Write it as sqlite:PATH."
        yield Finding(WRONG, "store", f"not the URL of a store: {url!r}", hint)
    elif not path.exists():
        yield Finding(NOTE, "store", f"{path} is not there yet", "The first task makes it.")
        yield from _agents(settings, set())
    else:
        try:
            found = list(_file_of_store(path))
            yield from found
            if all(each.level == FINE for each in found):
                yield from _contents(home, path, settings, clock)
        except FairlaneError as error:
            yield _error("store", error)


def _file_of_store(path: Path) -> Iterator[Finding]:
    """The file as it lies there; an older schema is only told of."""
    from fairlane.store.sqlite import migrate
    from fairlane.store.sqlite.check import problems
    from fairlane.store.sqlite.errors import corrupt
    from fairlane.store.sqlite.whole import damage

    with upkeep.reading_only(path) as connection:
        migrate.refuse_foreign(connection, path)
        text = damage(connection, path)
        if text:
            yield _error("store", corrupt(path, text))
            return
        version = migrate.schema_of(connection)
        if version < migrate.latest():
            text = f"{path} has schema {version}, to be brought to {migrate.latest()}"
            yield Finding(NOTE, "schema", text, "The next command does it, after a backup.")
            wrong = []
        else:
            wrong = problems(connection)
    for each in wrong:
        hint = "Stop, and go back to the last backup in the folder backups."
        yield Finding(WRONG, "store", each, hint)
    if not wrong:
        yield Finding(FINE, "store", f"{path} (schema {version}) is whole")


def _contents(home: Path, path: Path, settings: Settings, clock: Clock) -> Iterator[Finding]:
    """What is in a store that is whole and of today's schema."""
    from fairlane.store.sqlite.store import SqliteStore

    store = SqliteStore.open(path)
    try:
        desk = Desk(home, store, settings, clock, "doctor")
        with store.read() as reading:
            policy = desk.policy_for_reading(reading)
            now = desk.now()
            yield from _leases(home, reading, now)
            yield from _workers(reading, now, policy.lease.ttl)
            yield from _agents(settings, _agents_asked(reading, settings))
        yield from _warnings(desk)
    finally:
        store.close()


def _leases(home: Path, reading: Reading, now: Instant) -> Iterator[Finding]:
    attempts = reading.open_attempts()
    for each in attempts:
        told = _recovery(home, each, now)
        if told:
            hint = "The next round does it, or: fairlane reclaim."
            yield Finding(NOTE, "lease", f"{each.lease} of {each.task} {told}", hint)
    yield Finding(FINE, "leases", f"{len(attempts)} in flight")


def _recovery(home: Path, attempt: Attempt, now: Instant) -> str:
    """What would become of an attempt that nobody keeps."""
    alive, expired = is_alive(home, attempt), attempt.expires_at <= now
    ended = f"ran out at {show_instant(attempt.expires_at)}"
    if alive:
        return f"{ended}, but its process lives: it would be renewed" if expired else ""
    if has_ended(home, attempt):
        return "has ended: its result would be taken in"
    if expired:
        return f"{ended}: its attempt would be lost"
    if attempt.pid is not None and is_here(attempt):
        return f"has no process {attempt.pid} any more: its attempt would be lost"
    return ""


def _workers(reading: Reading, now: Instant, ttl: int) -> Iterator[Finding]:
    for row in reading.workers():
        if now - row.seen_at >= ttl:
            text = f"{row.name} was last seen at {show_instant(row.seen_at)}: it gets no work"
            yield Finding(NOTE, "worker", text, "It comes back with its next lease.")


def _agents_asked(reading: Reading, settings: Settings) -> set[str]:
    """The agents that work in the queue asks for."""
    asked = {lane.key.agent for lane in reading.lanes("created", 1)}
    asked |= {each.agent for each in reading.projects().values()} | {settings.agent}
    return {name for name in asked if name}


def _agents(settings: Settings, asked: set[str]) -> Iterator[Finding]:
    from fairlane.agents.adapter import installed as program_of
    from fairlane.agents.catalog import agents

    known = agents(settings)
    for name in sorted(asked):
        agent = known.get(name)
        if agent is None:
            text = f"there is no agent {name}, but work asks for it"
            yield Finding(WRONG, "agent", text, f"Add [agents.{name}] to {FILE}.")
        elif name != "shell" and program_of(agent) is None:
            text = f"{name} is not installed, but work asks for it"
            yield Finding(WRONG, "agent", text, "Install it, or choose another agent.")
    found = [each["name"] for each in installed()]
    text = f"installed: {', '.join(found)}" if found else "no agent program is on the path"
    yield Finding(FINE if found else NOTE, "agents", text)


def _warnings(desk: Desk) -> Iterator[Finding]:
    from fairlane.service.reports.status import status

    for each in status(desk)["warnings"]:
        if each["code"] != "policy":
            yield Finding(NOTE, each["code"], each["message"])


def _error(what: str, error: FairlaneError) -> Finding:
    return Finding(WRONG, what, error.message, error.hint)
