"""Agency: `project/config.yaml` becomes serial-lanes rules; cards are imported as they are."""

from __future__ import annotations

from pathlib import Path

from fairlane.service.conversion import base
from fairlane.service.conversion.base import Converted, count


def convert(path: Path) -> Converted:
    """A `config.yaml`, or the folder `project` that holds it."""
    converted = Converted(preset="serial-lanes")
    for file in base.inside(path, "config.yaml", "project/config.yaml"):
        keys = base.read_yaml(file)
        converted.rule("caps.all", keys.take("agents.maxConcurrent", count), "agents.maxConcurrent")
        for flow, limit in keys.take_all("agents.perFlow.", count).items():
            converted.rule(f"caps.kind:{flow}", limit, f"agents.perFlow.{flow}")
        for ours, theirs in (("soft", "softLimit"), ("hard", "hardLimit")):
            most = keys.take(f"queue.{theirs}", count)
            converted.rule(f"backpressure.{ours}", most, f"queue.{theirs}")
        converted.unknown += keys.unknown()
    converted.settings["agent"] = "codex"
    converted.called["agent"] = "Agency starts Codex"
    converted.note(
        "A serial card locked its phase and flow when it was queued; here the lock is taken with "
        "the lease, so any number may be queued and a card that waits after a failure holds "
        "nothing."
    )
    converted.note(
        "Cards come in with `fairlane import cards PATH`; `--write-back` keeps their status."
    )
    return converted
