"""loopr: `loopr.yml` becomes depth-first rules, `loops.jsonl` becomes tasks."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TypeVar

from fairlane.intake import files
from fairlane.intake.fields import parse_jsonl
from fairlane.model.errors import Invalid, listed
from fairlane.model.task import Status
from fairlane.model.values import TEXT_MAX, check_name, none_of, take, text, whole
from fairlane.service.conversion import base
from fairlane.service.conversion.base import UNCHANGED, Brought, Converted, Keys, count, signed
from fairlane.service.conversion.formats.loopr.folder import (
    STORE,
    Folder,
    latest,
    shared_outputs,
)

T = TypeVar("T")
KINDS = ("plan", "spec", "phase", "code")
#: Key of the score -> what loopr calls it.
_SCORE = {
    "score.age_per_minute": "age_boost_per_minute",
    "score.age_max": "age_boost_max",
    "score.depth_per_level": "depth_boost_per_level",
    "score.retry_penalty": "retry_penalty_per_iteration",
    "score.retry_penalty_max": "retry_penalty_max",
}
_STATUS = {
    "pending": Status.QUEUED,
    "paused": Status.QUEUED,
    "complete": Status.DONE,
    "invalidated": Status.CANCELED,
    "running": Status.PARKED,
    "rebasing": Status.PARKED,
    "failed": Status.PARKED,
}
_KNOWN = (
    "id", "loop_type", "parent_id", "input_artifact", "output_artifacts", "status", "iteration",
    "max_iterations", "created_at", "updated_at", "title", "prompt", "prompt_path", "description",
    "progress", "context",
)  # fmt: skip
#: Known, and kept in `meta` too.
_KEPT = ("output_artifacts", "prompt_path", "context")
_PARKED = (
    "Loops that are running, rebasing or failed are parked, so that nothing starts twice. "
    "`fairlane retry ID` queues one again."
)
_PAUSED = "Paused loops stay paused; `fairlane resume task:ID` lets one start."
_ARTIFACTS = (
    "A loop waits until its input_artifact exists where loopr has it: an absolute path, or one in "
    "loopr's folder. `fairlane why ID` shows the path."
)
_VALIDATION = (
    "Fairlane does not run validation_command: the prompt asks the agent to, and its result "
    "decides whether an attempt succeeded."
)
_BARE = (
    "The file names no prompt for these loops, so an agent would get the name alone: {names}. "
    "`fairlane edit ID --prompt-file FILE` gives one before it starts."
)
_VERSIONS = "Where several lines have the same id, only the newest is read."
_MILLISECONDS_MAX = 10**14
_PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z0-9_]+)\s*\}\}")
_FILES = ("loopr.yml", "loops.jsonl", f"{STORE}/loops.jsonl")


def convert(path: Path) -> Converted:
    """A `loopr.yml`, a file of loops, or the folder that holds both."""
    converted = Converted()
    found = base.inside(path, *_FILES)
    loops = [file for file in found if file.suffix == ".jsonl"]
    for file in found:
        if file not in loops:
            _rules(base.read_yaml(file), converted)
    if loops:
        _Loops(loops[0], converted).read()
    if converted.preset is None:
        converted.note(
            "There is no loopr.yml, so the rules in force stay. `fairlane policy use depth-first` "
            "takes loopr's defaults."
        )
    return converted


def _rules(keys: Keys, converted: Converted) -> None:
    converted.preset = "depth-first"
    converted.rule(
        "cycle.interval",
        keys.take("scheduler.poll_interval_secs", base.SECONDS),
        "poll_interval_secs",
    )
    for name in ("max_loops", "max_concurrent_loops"):
        converted.rule("caps.all", keys.take(f"concurrency.{name}", count), name)
    converted.note_a_zero()
    limits: dict[str, object] = {**keys.take_all("concurrency.per_type.", count)}
    unlimited = dict.fromkeys(KINDS, "none")  # the preset would limit them
    for kind, limit in (unlimited | limits).items():
        called = f"per_type.{kind}" if kind in limits else f"per_type has no {kind}"
        converted.rule(f"caps.kind:{kind}", limit, called)
    calls = keys.take("concurrency.max_api_calls", count)
    converted.rule("caps.pool:anthropic", calls, "max_api_calls")
    for kind in KINDS:
        converted.rule(f"score.kind.{kind}", keys.take(f"scheduler.priority.{kind}", signed), kind)
    for key, name in _SCORE.items():
        converted.rule(key, keys.take(f"scheduler.priority.{name}", count), name)
    converted.settings["agent"] = "claude"
    converted.called["agent"] = "loopr calls the Anthropic API"
    if calls is not None:
        converted.note(_calls_note(calls, converted.policy.get("caps.all")))
    converted.note(
        "per_type counted only what one tick started; a cap counts everything in flight of "
        "that kind."
    )
    converted.unknown += keys.unknown()


def _calls_note(calls: int, loops: object) -> str:
    """What a bound on calls does here, until calls themselves are bounded."""
    text = (
        'max_api_calls bounded calls of the API; caps."pool:anthropic" bounds attempts in flight '
        "on that account, because agents make their own calls."
    )
    if not isinstance(loops, int) or calls >= loops:
        return text
    return (
        f"At most {calls} loops run at once although max_loops is {loops}, until calls are capped "
        f"by a gateway: {text} `fairlane policy set caps.pool:anthropic={loops}` lets {loops} run."
    )


class _Loops:
    """The loops of one file; one that cannot be brought over is left out by name."""

    def __init__(self, file: Path, converted: Converted) -> None:
        self.file, self.converted = file, converted
        self.folder = Folder(file)
        self.shared: dict[str, set[object]] = {}
        self.names: dict[str, str] = {}  # of ids that cannot be names here

    def read(self) -> None:
        """All lines; a file without a single good one is refused."""
        converted = self.converted

        def skip(where: str, error: Invalid) -> None:
            converted.skip("?", error.message, where)

        records = parse_jsonl(files.read_text(self.file, base.WHAT), self.file.name, skip)
        if converted.skipped and not records.rows:
            first = converted.skipped[0]
            raise Invalid(f"{self.file.parent / first.where}: {first.reason}", UNCHANGED)
        rows = latest(dict(enumerate(records.rows)))
        self.shared = shared_outputs(rows.values())
        self.names = base.renamed([row.get("id") for row in rows.values()], "task", converted)
        for at, row in rows.items():
            try:
                converted.tasks.append(self._task(row, records.where(at)))
            except Invalid as error:
                converted.skip(row.get("id", "?"), error.message, records.where(at))
        odd = dict.fromkeys(key for row in rows.values() for key in _odd(row))
        converted.unknown += [f"{self.file.name}: {key} (kept in meta)" for key in odd]
        self._notes(odd, len(rows) < len(records.rows))

    def _notes(self, odd: Collection[str], versions: bool) -> None:
        tasks = self.converted.tasks
        bare = [
            str(task.record["id"])
            for task in tasks
            if not task.status.final and "prompt" not in task.record
        ]
        notes = {
            _VERSIONS: versions,
            _PARKED: any(task.status is Status.PARKED for task in tasks),
            _PAUSED: any(task.paused for task in tasks),
            _ARTIFACTS: any(task.artifacts for task in tasks),
            _VALIDATION: "validation_command" in odd,
            _BARE.format(names=listed(bare, base.NAMED_MAX)): bool(bare),
        }
        self.converted.notes += [text for text, holds in notes.items() if holds]

    def _task(self, row: Mapping[str, object], where: str) -> Brought:
        """One loop; what has no field of its own is kept in `meta`."""
        word = row.get("status", "pending")
        if not isinstance(word, str) or word not in _STATUS:
            raise none_of(word, _STATUS).within("status")
        status = _STATUS[word]
        own, parent = row.get("id"), row.get("parent_id")
        name = self._name(own)
        meta = {key: value for key, value in row.items() if key not in _KNOWN}
        meta |= {key: row[key] for key in _KEPT if row.get(key)}
        artifact = _take(
            row, "input_artifact", lambda path: self.folder.input(path, parent, self.shared)
        )
        ended = status in (Status.DONE, Status.CANCELED)
        record = {
            "id": name,
            "kind": row.get("loop_type", "code"),
            "title": row.get("title") or base.first_line(_context(row).get("task")) or name,
            "prompt": None if ended else self._prompt(str(own), row, artifact),
            "parent": self.names.get(parent, parent) if isinstance(parent, str) else parent,
            "max_attempts": _take(row, "max_iterations", whole(1, 10**6)),
            "meta": meta,
        }
        return Brought(
            {key: value for key, value in record.items() if value not in (None, {})},
            status,
            created_at=_take(row, "created_at", _instant),
            ended_at=_take(row, "updated_at", _instant) if ended else None,
            failures=max(0, (_take(row, "iteration", whole(0)) or 0) - 1),
            reason="" if word in ("pending", "complete") else f"{word} in loopr",
            where=where,
            artifacts=(artifact,) if artifact and not ended else (),
            paused=word == "paused",
        )

    def _name(self, own: object) -> str:
        """What its task is called."""
        if own in (None, ""):
            raise Invalid("it has no id")
        known = self.names.get(own) if isinstance(own, str) else None
        return known or check_name("task", own)

    def _prompt(self, own: str, row: Mapping[str, object], artifact: str | None) -> str | None:
        """What loopr gives the model, with where its input is; None where the loop says nothing."""
        said = _take(row, "prompt", text)
        if not said:
            said = _take(row, "prompt_path", lambda path: self.folder.prompt(own, path)) or ""
        context = _context(row)
        said = _filled(said, context)
        task = context.get("task")
        parts = [said, task if isinstance(task, str) and task not in said else ""]
        parts.append(_take(row, "description", text) or "")
        if not any(part.strip() for part in parts):
            parts = [_take(row, "title", text) or ""]
        if artifact:
            parts.append(f"Your input is {artifact}.")
        parts = [part.strip() for part in parts if part.strip()]
        if not parts:
            return None
        return "\n\n".join([*parts, *self._rest(own, row)])

    def _rest(self, own: str, row: Mapping[str, object]) -> list[str]:
        """How its end is known, and what happened so far."""
        parts = []
        outputs = row.get("output_artifacts")
        if isinstance(outputs, list) and outputs:
            paths = [
                self.folder.artifact(path, own if str(path) in self.shared else None)
                for path in outputs
            ]
            parts.append(f"Write your result to {', '.join(paths)}.")
        command = _take(row, "validation_command", text)
        if command and command.strip():
            parts.append(f"You are done when this command succeeds: {command.strip()}")
        progress = _take(row, "progress", text)
        if progress and progress.strip():
            parts.append(f"## Previous Attempts\n\n{progress.strip()}")
        return parts


def _odd(row: Mapping[str, object]) -> list[str]:
    """The keys that have no field of their own."""
    inner = [f"context.{key}" for key in _context(row) if key != "task"]
    return [key for key in row if key not in _KNOWN] + inner


def _context(row: Mapping[str, object]) -> Mapping[str, object]:
    context = row.get("context")
    return context if isinstance(context, dict) else {}


def _filled(said: str, context: Mapping[str, object]) -> str:
    """A prompt with the values of its placeholders; one that nobody gave stays as it is."""
    size = 0

    def fill(found: re.Match[str]) -> str:
        nonlocal size
        value = context.get(found[1])
        shown = str(value) if isinstance(value, str | int | float) else found[0]
        size += len(shown)
        if size > TEXT_MAX:
            raise Invalid(f"its prompt is longer than {TEXT_MAX:,} characters")
        return shown

    return _PLACEHOLDER.sub(fill, said)


def _take(row: Mapping[str, object], key: str, read: Callable[[object], T]) -> T | None:
    """A typed value; None where it is absent or null."""
    return None if row.get(key) is None else take(row, key, read)


def _instant(value: object) -> int:
    """Milliseconds there, microseconds here."""
    return whole(0, _MILLISECONDS_MAX)(value) * 1000
