"""Sync: every configured source once. One that cannot be asked warns, and changes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from pathlib import Path
from typing import NamedTuple, TypedDict

from fairlane.engine.context import Context, slots_of
from fairlane.intake import files
from fairlane.intake.queue_depth import measure
from fairlane.intake.sources import source_named
from fairlane.intake.sources.base import Found, Where
from fairlane.model.documents import admin, sources
from fairlane.model.errors import FairlaneError, NotFound, TryLater, did_you_mean
from fairlane.model.event import Event
from fairlane.model.instant import MINUTE, SECOND, Instant, show_instant
from fairlane.model.names import SCHEMA
from fairlane.model.record import replace
from fairlane.service.sync import importing, write_back
from fairlane.service.sync.kinds import with_kinds
from fairlane.service.sync.mapping import source_key
from fairlane.settings import FILE, SourceRule
from fairlane.store.base import Reading

#: The same result is noted again only after this time.
NOTED_EVERY = MINUTE
#: How many conflicts are kept.
CONFLICTS_KEPT = 5


class Result(TypedDict):
    """What came of asking a source."""

    ok: bool
    error: admin.ErrorDocument | None
    counts: dict[str, int]
    conflicts: list[sources.ReasonDocument]


class LastResult(Result):
    """The last one, as the store keeps it."""

    at: Instant


class Room(NamedTuple):
    """How many more tasks the queue takes up to each limit; None: any number."""

    hard: int | None
    soft: int | None


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


def configured(context: Context) -> list[Configured]:
    """Every source of the settings; paths are relative to the home folder."""
    return [Configured(rule, _where(context, rule)) for rule in context.settings.source]


def sync(
    context: Context, only: str | None = None, dry_run: bool = False, write_back: bool = False
) -> sources.SyncAnswer:
    """Ask every configured source once, and follow what it says."""
    context.policy()  # a broken one refuses everything
    rows: list[sources.ImportAnswer | sources.FailedSourceDocument] = []
    for source in _chosen(context, only):
        row = _sync(context, source, dry_run)
        if "error" not in row and (write_back or source.rule.write_back):
            row["written"], row["untold"] = write_results(context, source, dry_run)
        rows.append(row)
    return {"schema": SCHEMA, "dry_run": dry_run, "sources": rows, "warnings": _warnings(rows)}


def _sync(
    context: Context, source: Configured, dry_run: bool
) -> sources.ImportAnswer | sources.FailedSourceDocument:
    try:
        content = ask(source)
    except Exception as error:  # a source is somebody else's code too
        return failed(context, source, explained(error), dry_run)
    try:
        return follow(context, source, content, dry_run)
    except FairlaneError as error:
        return failed(context, source, error, dry_run)


def follow(
    context: Context, source: Configured, content: Found, dry_run: bool = False
) -> sources.ImportAnswer:
    """What the source has now becomes tasks, changes them, or cancels them; that is remembered."""
    options = importing.ImportOptions(project=source.rule.project, dry_run=dry_run, sync=True)
    row = importing.apply(context, source.rule.type, source.where, content, options)
    if not dry_run:
        counts = {name: len(rows) for name, rows in row.items() if isinstance(rows, list)}
        conflicts = row["conflicts"][:CONFLICTS_KEPT]
        _remember(
            context, source, {"ok": True, "error": None, "counts": counts, "conflicts": conflicts}
        )
    return row


def room(context: Context) -> Room:
    """What the queue has room for now."""
    policy = context.policy()
    with context.store.read() as reading:
        pressure = measure(reading, policy, slots_of(context.settings, policy), context.now())
    if pressure is None:
        return Room(None, None)
    return Room(pressure.left(pressure.hard), pressure.left(pressure.soft))


def next_expiry(context: Context, content: Found) -> float:
    """In how many seconds somebody's lease of an item expires: then it may start here."""
    now = context.now()
    ends = (item.taken_until for item in content.items if item.taken_until is not None)
    return min(((end - now) / SECOND for end in ends if end > now), default=inf)


def failed(
    context: Context, source: Configured, error: FairlaneError, dry_run: bool = False
) -> sources.FailedSourceDocument:
    """The source could not be asked: remembered until it works again; nothing else changes."""
    document = error.document()["error"]
    if not dry_run:
        _remember(context, source, {"ok": False, "error": document, "counts": {}, "conflicts": []})
    return {"source": source.rule.type, "path": source.where.name, "error": document}


def write_results(
    context: Context, source: Configured, dry_run: bool = False
) -> tuple[list[str], list[sources.FailedWriteDocument]]:
    """What was written back, or would be, and what could not."""
    if dry_run:
        return write_back.untold(context, source.rule.type, source.where), []
    try:
        answer = write_back.tell(context, source.rule.type, source.where)
    except FairlaneError as error:  # made up for by the next sync
        return [], [{"id": None, "message": error.message}]
    return answer["written"], answer["failed"]


def warnings(context: Context, reading: Reading) -> list[str]:
    """The configured sources that failed when they were asked last, or did not agree with us."""
    texts = []
    for source in configured(context):
        last: LastResult | None = reading.value(f"sync:{source.key}")
        if last and last["error"]:
            text = f"source {source.name} cannot be asked: {last['error']['message']}"
            texts.append(f"{text} ({show_instant(last['at'])})")
        texts += [clash(source, conflict) for conflict in last["conflicts"]] if last else []
        if last and last["counts"].get("deferred"):
            waiting = last["counts"]["deferred"]
            texts.append(f"source {source.name}: {waiting} deferred until the queue has room")
    return texts


def clash(source: Configured, conflict: sources.ReasonDocument) -> str:
    """What a source and Fairlane do not agree on."""
    return f"source {source.name}: {conflict['id']}: {conflict['reason']}"


def ask(source: Configured) -> Found:
    """What the source has now; it may take long. What reads files can be fed by a program too."""
    kind, where = source.rule.type, source.where
    if where.path is not None and where.path.is_file() and not where.path.stat().st_size:
        hint = "Where nothing is left to do, cancel the tasks yourself."
        raise TryLater(f"{where.path} is empty; it may be being written", hint, "source_empty")
    if where.command is not None and not _asks(kind):
        printed = files.ask(where.command, where.seconds, where.home)
        if printed.code != 0:
            said = printed.err.splitlines()[:1] or [f"exit {printed.code}"]
            raise TryLater(f"{where.command[0]}: {said[0]}", "Run it by hand to see more.")
        where = replace(where, command=None, text=printed.out)
    return with_kinds(source_named(kind).read(where), source.rule.kinds)


def can_be_watched(source: Configured) -> bool:
    """Whether its files tell of changes; not where a program is asked in a folder."""
    path = source.where.path
    return path is not None and not (_asks(source.rule.type) and path.is_dir())


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


def _where(context: Context, rule: SourceRule) -> Where:
    if rule.command is not None:
        return Where(command=rule.command, home=context.home)
    return Where(path=context.home / Path(rule.path or "").expanduser(), home=context.home)


def _chosen(context: Context, only: str | None) -> list[Configured]:
    """All, or those of a type, a path or a name."""
    sources = configured(context)
    if only is None:
        return sources
    chosen = [source for source in sources if only in _words(source)]
    if not chosen:
        known = [word for source in sources for word in _words(source)]
        hint = did_you_mean(only, known) or f"Add a [[source]] to {FILE} in the home folder."
        raise NotFound(f"no source {only!r} is configured", hint)
    return chosen


def _words(source: Configured) -> set[str]:
    return {source.rule.type, source.where.name, source.name, source.rule.path or source.where.name}


def _warnings(rows: Iterable[sources.ImportAnswer | sources.FailedSourceDocument]) -> list[str]:
    texts = []
    for row in rows:
        name = f"{row['source']} {row['path']}"
        if "error" in row:
            texts.append(f"source {name} cannot be asked: {row['error']['message']}")
            continue
        for failure in row.get("untold", ()):
            whom = name if failure["id"] is None else f"{name}: {failure['id']}"
            texts.append(f"source {whom} cannot be told: {failure['message']}")
    return texts


def _remember(context: Context, source: Configured, result: Result) -> None:
    """Remember the last result of a source; log when it fails, and when it works again."""
    now, name = context.now(), f"sync:{source.key}"
    with context.store.write() as tx:
        before: LastResult | None = tx.value(name)
        same = before is not None and before == {**result, "at": before["at"]}
        if before is not None and same and now - before["at"] < NOTED_EVERY:
            return
        tx.put_value(name, {"at": now, **result})
        if (before is None or before["ok"]) != result["ok"]:
            kind = "source_healthy" if result["ok"] else "source_failed"
            reason = result["error"]["message"] if result["error"] else ""
            data = {"source": source.rule.type, "path": source.where.name, "reason": reason}
            tx.log([Event(0, now, kind, data=data)])
