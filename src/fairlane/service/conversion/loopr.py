"""loopr: `loopr.yml` becomes depth-first rules, `loops.jsonl` becomes tasks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fairlane.intake import fields, files
from fairlane.intake.fields import parse_jsonl
from fairlane.model.errors import Invalid
from fairlane.model.task import Status
from fairlane.model.values import check_name, none_of, whole
from fairlane.service.conversion import base
from fairlane.service.conversion.base import UNCHANGED, Brought, Converted, Keys, count, signed

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
    "complete": Status.DONE,
    "invalidated": Status.CANCELED,
    "running": Status.PARKED,
    "paused": Status.PARKED,
    "rebasing": Status.PARKED,
    "failed": Status.PARKED,
}
_KNOWN = (
    "id", "loop_type", "parent_id", "input_artifact", "output_artifacts", "status", "iteration",
    "max_iterations", "created_at", "updated_at", "title", "prompt",
)  # fmt: skip
_PARKED = (
    "Loops that are running, paused, rebasing or failed come in parked: nothing starts twice. "
    "`fairlane retry ID` puts one back."
)
_ARTIFACTS = (
    "input_artifact is looked for in artifacts/PARENT of the home folder: copy there what a loop "
    "waits for. One that no parent makes is kept in meta."
)


def convert(path: Path) -> Converted:
    """A `loopr.yml`, a file of loops, or the folder that holds both."""
    converted = Converted()
    for file in base.inside(path, "loopr.yml", "loops.jsonl"):
        if file.suffix == ".jsonl":
            _loops(file, converted)
        else:
            _rules(base.read_yaml(file), converted)
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
    for kind, limit in keys.take_all("concurrency.per_type.", count).items():
        converted.rule(f"caps.kind:{kind}", limit, f"per_type.{kind}")
    calls = keys.take("concurrency.max_api_calls", count)
    converted.rule("caps.pool:anthropic", calls, "max_api_calls")
    for kind in KINDS:
        converted.rule(f"score.kind.{kind}", keys.take(f"scheduler.priority.{kind}", signed), kind)
    for key, name in _SCORE.items():
        converted.rule(key, keys.take(f"scheduler.priority.{name}", count), name)
    converted.settings["agent"] = "claude"
    converted.called["agent"] = "loopr calls the Anthropic API"
    if calls is not None:
        converted.note(
            'max_api_calls bounded calls of the API; caps."pool:anthropic" bounds attempts in '
            "flight on that account, because agents make their own calls."
        )
    converted.note(
        "per_type counted only what one tick started; a cap counts everything in flight of "
        "that kind."
    )
    converted.unknown += keys.unknown()


def _loops(file: Path, converted: Converted) -> None:
    records = parse_jsonl(files.read_text(file, base.WHAT), str(file))
    odd: dict[str, None] = {}
    for at, row in enumerate(records.rows):
        try:
            converted.tasks.append(_task(row))
        except Invalid as error:
            raise Invalid(f"{records.where(at)}: {error.message}", UNCHANGED) from None
        odd |= dict.fromkeys(key for key in row if key not in _KNOWN)
    if any(task.status is Status.PARKED for task in converted.tasks):
        converted.note(_PARKED)
    if any("artifacts" in task.record for task in converted.tasks):
        converted.note(_ARTIFACTS)
    converted.unknown += [f"{file.name}: {key} (kept in meta)" for key in odd]


def _task(row: Mapping[str, object]) -> Brought:
    """One loop; what has no field of its own is kept in `meta`."""
    word = row.get("status", "pending")
    if not isinstance(word, str) or word not in _STATUS:
        raise none_of(word, _STATUS).within("status")
    status = _STATUS[word]
    name = check_name("task", row.get("id"))
    meta = {key: value for key, value in row.items() if key not in _KNOWN}
    artifact = _artifact(row)
    for key in ("output_artifacts", *(() if artifact else ("input_artifact",))):
        if row.get(key):
            meta[key] = row[key]
    record = {
        "id": name,
        "kind": row.get("loop_type", "code"),
        "title": row.get("title") or name,
        "prompt": row.get("prompt"),
        "parent": row.get("parent_id"),
        "artifacts": [artifact] if artifact else None,
        "max_attempts": row.get("max_iterations"),
        "meta": meta,
    }
    ended = status in (Status.DONE, Status.CANCELED)
    return Brought(
        {key: value for key, value in record.items() if value not in (None, {})},
        status,
        created_at=_instant(row, "created_at"),
        ended_at=_instant(row, "updated_at") if ended else None,
        failures=max(0, _whole(row, "iteration") - 1),
        reason=f"{word} in loopr" if status in (Status.PARKED, Status.CANCELED) else "",
    )


def _artifact(row: Mapping[str, object]) -> str | None:
    """What its parent makes; a loop without a parent, or a path of its own, has no place here."""
    if not row.get("input_artifact") or not row.get("parent_id"):
        return None
    try:
        return fields.artifact(row["input_artifact"])
    except Invalid:
        return None


def _instant(row: Mapping[str, object], key: str) -> int | None:
    """Milliseconds there, microseconds here."""
    return _whole(row, key) * 1000 if row.get(key) is not None else None


def _whole(row: Mapping[str, object], key: str) -> int:
    try:
        return whole(0)(row.get(key, 0))
    except Invalid as error:
        raise error.within(key) from None
