"""Agency: `project/config.yaml` becomes serial-lanes rules; cards are imported as they are."""

from __future__ import annotations

from pathlib import Path

from fairlane.service.conversion import reading
from fairlane.service.conversion.base import Converted
from fairlane.service.conversion.reading import count


def convert(path: Path) -> Converted:
    """A `config.yaml`, or the folder `project` that holds it."""
    found = Converted(preset="serial-lanes")
    for file in reading.inside(path, "config.yaml", "project/config.yaml"):
        keys = reading.read_yaml(file)
        found.rule("caps.all", keys.take("agents.maxConcurrent", count), "agents.maxConcurrent")
        for flow, limit in keys.take_all("agents.perFlow.", count).items():
            found.rule(f"caps.kind:{flow}", limit, f"agents.perFlow.{flow}")
        for ours, theirs in (("soft", "softLimit"), ("hard", "hardLimit")):
            limit = keys.take(f"queue.{theirs}", count)
            found.rule(f"backpressure.{ours}", limit, f"queue.{theirs}")
        found.unknown += keys.unknown()
    found.settings["agent"] = "codex"
    found.called["agent"] = "Agency starts Codex"
    found.note(
        "A serial card locked its phase and flow when it was queued; here the lock is taken with "
        "the lease, so any number may be queued and a card that waits after a failure holds "
        "nothing."
    )
    found.note(
        "Cards come in with `fairlane import cards PATH`; `--write-back` keeps their status."
    )
    return found
