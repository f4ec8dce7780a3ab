"""cool-workflow: `scheduling-policy.json` becomes fail-closed rules with its numbers."""

from __future__ import annotations

from pathlib import Path

from fairlane.model.errors import Invalid
from fairlane.service.conversion import base
from fairlane.service.conversion.base import (
    MILLISECONDS,
    UNCHANGED,
    Converted,
    Keys,
    count,
    number,
)

POLICY, QUEUE, REGISTRY = "scheduling-policy.json", "queue.json", "registry"
SCHEMA_VERSION = 1

_RULES = {
    "maxConcurrent": ("caps.all", count),
    "leaseTtlMs": ("lease.ttl", MILLISECONDS),
    "maxAttempts": ("retry.max_attempts", count),
    "backoffBaseMs": ("retry.base", MILLISECONDS),
    "backoffFactor": ("retry.factor", number),
    "backoffCapMs": ("retry.cap", MILLISECONDS),
}


def convert(path: Path) -> Converted:
    """A `scheduling-policy.json`, or the folder `registry` that holds it.

    A registry with a queue and without a policy has cool-workflow's defaults: the preset's.
    """
    converted = Converted(preset="fail-closed")
    places = [path / POLICY, path / REGISTRY / POLICY]
    queues = [path / QUEUE, path / REGISTRY / QUEUE]
    if any(queue.is_file() for queue in queues) and not any(place.is_file() for place in places):
        converted.note(f"There is no {POLICY}, so these are the defaults of cool-workflow.")
    else:
        for file in base.inside(path, POLICY, f"{REGISTRY}/{POLICY}"):
            _rules(base.read_json(file), converted)
    converted.note(
        "A lease that expires under a process that lives on this machine is renewed; elsewhere it "
        "counts as one failed attempt, as before."
    )
    converted.note(
        "The queue comes in with `fairlane import queue.json PATH`; the file is left as it is."
    )
    return converted


def _rules(keys: Keys, converted: Converted) -> None:
    version = keys.take("schemaVersion", lambda value: value)
    if version not in (None, SCHEMA_VERSION) or isinstance(version, bool):
        message = f"{keys.origin}: schemaVersion {version!r} is not known"
        raise Invalid(message, f"Give one with schemaVersion {SCHEMA_VERSION}. {UNCHANGED}")
    for name, (key, read) in _RULES.items():
        converted.rule(key, keys.take(name, read), name)
    if converted.policy.get("caps.all") == 0:
        converted.note(
            "maxConcurrent is 0: here nothing starts, where cool-workflow falls back to 1. "
            "To start work: `fairlane policy set caps.all=1`."
        )
    converted.unknown += keys.unknown()
