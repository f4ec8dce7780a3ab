"""cool-workflow: `scheduling-policy.json` becomes fail-closed rules with its numbers."""

from __future__ import annotations

from pathlib import Path

from fairlane.service.conversion import reading
from fairlane.service.conversion.base import Converted
from fairlane.service.conversion.reading import MILLISECONDS, count, number

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
    found = Converted(preset="fail-closed")
    for file in reading.inside(path, "scheduling-policy.json", "registry/scheduling-policy.json"):
        keys = reading.read_json(file)
        keys.drop("schemaVersion")
        for name, (key, read) in _RULES.items():
            found.rule(key, keys.take(name, read), name)
        found.unknown += keys.unknown()
    found.note(
        "A lease that expires under a process that lives on this machine is renewed; elsewhere it "
        "counts as one failed attempt, as before."
    )
    found.note(
        "The queue comes in with `fairlane import queue.json PATH`; the file is left as it is."
    )
    return found
