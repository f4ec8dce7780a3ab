"""cool-workflow: `scheduling-policy.json` becomes fail-closed rules with its numbers."""

from __future__ import annotations

from pathlib import Path

from fairlane.service.conversion import base
from fairlane.service.conversion.base import MILLISECONDS, Converted, count, number

_RULES = {
    "maxConcurrent": ("caps.all", count),
    "leaseTtlMs": ("lease.ttl", MILLISECONDS),
    "maxAttempts": ("retry.max_attempts", count),
    "backoffBaseMs": ("retry.base", MILLISECONDS),
    "backoffFactor": ("retry.factor", number),
    "backoffCapMs": ("retry.cap", MILLISECONDS),
}


def convert(path: Path) -> Converted:
    """A `scheduling-policy.json`, or the folder `registry` that holds it."""
    converted = Converted(preset="fail-closed")
    for file in base.inside(path, "scheduling-policy.json", "registry/scheduling-policy.json"):
        keys = base.read_json(file)
        keys.drop("schemaVersion")
        for name, (key, read) in _RULES.items():
            converted.rule(key, keys.take(name, read), name)
        converted.unknown += keys.unknown()
    converted.note(
        "A lease that expires under a process that lives on this machine is renewed; elsewhere it "
        "counts as one failed attempt, as before."
    )
    converted.note(
        "The queue comes in with `fairlane import queue.json PATH`; the file is left as it is."
    )
    return converted
