"""Sync: every configured source once. One that cannot be asked warns, and changes nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from fairlane.intake import programs
from fairlane.intake.sources import source_named
from fairlane.intake.sources.base import Found, Where
from fairlane.model.errors import FairlaneError, NotFound, TryLater, did_you_mean
from fairlane.model.event import Event
from fairlane.model.instant import MINUTE, show_instant
from fairlane.service import SCHEMA
from fairlane.service.desk import Desk
from fairlane.service.sourcing import importing, telling
from fairlane.service.sourcing.remembered import source_key
from fairlane.settings import FILE, SourceRule
from fairlane.store.base import Reading

#: The same result is noted again only after this time.
NOTED_EVERY = MINUTE
#: How many conflicts are told.
CONFLICTS_KEPT = 5


class Configured(NamedTuple):
    """A source that the settings name."""

    rule: SourceRule
    where: Where

    @property
    def name(self) -> str:
        """How people see it."""
        return f"{self.rule.type} {self.where.name}"

    @property
    def key(self) -> str:
        """How it is known again."""
        return source_key(self.rule.type, self.where)


def configured(desk: Desk) -> list[Configured]:
    """Every source of the settings; paths are told from the home folder."""
    return [Configured(rule, _where(desk, rule)) for rule in desk.settings.source]


def sync(
    desk: Desk, only: str | None = None, dry_run: bool = False, write_back: bool = False
) -> dict[str, Any]:
    """Ask every configured source once, and follow what it says."""
    desk.policy()  # a broken one refuses everything
    rows = []
    for each in _chosen(desk, only):
        row = _sync(desk, each, dry_run)
        if "error" not in row and (write_back or each.rule.write_back):
            row |= told(desk, each, dry_run)
        rows.append(row)
    return {"schema": SCHEMA, "dry_run": dry_run, "sources": rows, "warnings": _warnings(rows)}


def _sync(desk: Desk, each: Configured, dry_run: bool) -> dict[str, Any]:
    try:
        found = ask(each)
    except Exception as error:  # a source is somebody else's code too
        return failed(desk, each, explained(error), dry_run)
    try:
        return follow(desk, each, found, dry_run)
    except FairlaneError as error:
        return failed(desk, each, error, dry_run)


def follow(desk: Desk, each: Configured, found: Found, dry_run: bool = False) -> dict[str, Any]:
    """What the source has now becomes tasks, changes them, or cancels them; that is remembered."""
    wish = importing.Wish(project=each.rule.project, dry_run=dry_run, sync=True)
    row = importing.apply(desk, each.rule.type, each.where, found, wish)
    if not dry_run:
        counts = {name: len(rows) for name, rows in row.items() if isinstance(rows, list)}
        conflicts = row["conflicts"][:CONFLICTS_KEPT]
        result = {"ok": True, "error": None, "counts": counts, "conflicts": conflicts}
        _remember(desk, each, result)
    return _named(each) | row


def failed(
    desk: Desk, each: Configured, error: FairlaneError, dry_run: bool = False
) -> dict[str, Any]:
    """The source could not be asked: remembered until it works again; nothing else changes."""
    document = error.document()["error"]
    if not dry_run:
        _remember(desk, each, {"ok": False, "error": document, "counts": {}, "conflicts": []})
    return _named(each) | {"error": document}


def told(desk: Desk, each: Configured, dry_run: bool = False) -> dict[str, Any]:
    """What was written back, or would be."""
    if dry_run:
        return {"written": telling.untold(desk, each.rule.type, each.where), "untold": []}
    try:
        answer = telling.tell(desk, each.rule.type, each.where)
    except FairlaneError as error:  # made up for by the next sync
        return {"written": [], "untold": [{"id": None, "message": error.message}]}
    return {"written": answer["written"], "untold": answer["failed"]}


def warnings(desk: Desk, reading: Reading) -> list[str]:
    """The configured sources that failed when they were asked last, or did not agree with us."""
    found = []
    for each in configured(desk):
        last = reading.value(f"sync:{each.key}")
        if last and not last["ok"]:
            text = f"source {each.name} cannot be asked: {last['error']['message']}"
            found.append(f"{text} ({show_instant(last['at'])})")
        found += [clash(each, conflict) for conflict in last["conflicts"]] if last else []
    return found


def clash(each: Configured, conflict: dict[str, Any]) -> str:
    """What a source and Fairlane do not agree on."""
    return f"source {each.name}: {conflict['id']}: {conflict['reason']}"


def ask(each: Configured) -> Found:
    """What the source has now; it may take long. What reads files can be fed by a program too."""
    kind, where = each.rule.type, each.where
    if where.path is not None and where.path.is_file() and not where.path.stat().st_size:
        hint = "Where nothing is left to do, cancel the tasks yourself."
        raise TryLater(f"{where.path} is empty; it may be being written", hint, "source_empty")
    if where.command is not None and not _asks(kind):
        printed = programs.ask(where.command, where.seconds, where.home)
        if printed.code != 0:
            said = printed.err.splitlines()[:1] or [f"exit {printed.code}"]
            raise TryLater(f"{where.command[0]}: {said[0]}", "Run it by hand to see more.")
        where = replace(where, command=None, text=printed.out)
    return importing.gather(kind, where)


def can_be_watched(each: Configured) -> bool:
    """Whether its files tell of changes; not where a program is asked in a folder."""
    path = each.where.path
    return path is not None and not (_asks(each.rule.type) and path.is_dir())


def _asks(kind: str) -> bool:
    """Whether a source asks a program by itself."""
    return hasattr(source_named(kind), "PROGRAM")


def explained(error: Exception) -> FairlaneError:
    """Whatever a source raised, as an error that people can read."""
    if isinstance(error, FairlaneError):
        return error
    if isinstance(error, OSError):
        return FairlaneError(str(error), "Check the path in fairlane.toml.", "source_failed")
    message = f"{type(error).__name__}: {error}"
    return FairlaneError(message, "This is a bug in the source.", "source_failed")


def _where(desk: Desk, rule: SourceRule) -> Where:
    if rule.command is not None:
        return Where(command=rule.command, home=desk.home)
    return Where(path=desk.home / Path(rule.path or "").expanduser(), home=desk.home)


def _chosen(desk: Desk, only: str | None) -> list[Configured]:
    """All, or those of a type, a path or a name."""
    found = configured(desk)
    if only is None:
        return found
    chosen = [each for each in found if only in _words(each)]
    if not chosen:
        known = [word for each in found for word in _words(each)]
        hint = did_you_mean(only, known) or f"Add a [[source]] to {FILE} in the home folder."
        raise NotFound(f"no source {only!r} is configured", hint)
    return chosen


def _words(each: Configured) -> set[str]:
    return {each.rule.type, each.where.name, each.name, each.rule.path or each.where.name}


def _named(each: Configured) -> dict[str, Any]:
    return {"source": each.rule.type, "path": each.where.name}


def _warnings(rows: list[dict[str, Any]]) -> list[str]:
    found = []
    for row in rows:
        name = f"{row['source']} {row['path']}"
        if "error" in row:
            found.append(f"source {name} cannot be asked: {row['error']['message']}")
        for each in row.get("untold", ()):
            whom = name if each["id"] is None else f"{name}: {each['id']}"
            found.append(f"source {whom} cannot be told: {each['message']}")
    return found


def _remember(desk: Desk, each: Configured, result: dict[str, Any]) -> None:
    """The last result of this source; the log is told when it fails, and when it works again."""
    now, name = desk.now(), f"sync:{each.key}"
    with desk.store.write() as tx:
        before = tx.value(name) or {"at": 0, "ok": True}
        if before == result | {"at": before["at"]} and now - before["at"] < NOTED_EVERY:
            return
        tx.put_value(name, {"at": now} | result)
        if before["ok"] != result["ok"]:
            kind = "source_healthy" if result["ok"] else "source_failed"
            reason = "" if result["ok"] else result["error"]["message"]
            data = {"source": each.rule.type, "path": each.where.name, "reason": reason}
            tx.log([Event(0, now, kind, data=data)])
