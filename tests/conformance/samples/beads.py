"""Beads, as a stand-in for `bd` prints them: `bd` itself cannot be run here."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from fairlane.intake.sources.base import Where
from fairlane.testing.source_suite import Sample

#: A `bd` that prints the documented JSON of the beads in a file, claims, closes, and keeps a
#: record of what it was asked. Ready is what is open and waits for nothing that is not closed.
STAND_IN = """\
import json, os, pathlib, sys
here = pathlib.Path(__file__).parent
beads = json.loads((here / "beads.json").read_text())
actor = os.environ.get("BEADS_ACTOR", "")
with (here / "calls.jsonl").open("a") as calls:
    calls.write(json.dumps([actor, os.getcwd(), *sys.argv[1:]]) + "\\n")
verb, *words = sys.argv[1:]
status = {bead.get("id"): bead.get("status") for bead in beads}
def free(bead):
    edges = [each["depends_on_id"] for each in bead.get("dependencies", [])
             if each["type"] in ("blocks", "waits-for", "conditional-blocks")]
    return bead.get("status") == "open" and all(status.get(each) == "closed" for each in edges)
def show(found):
    envelope = os.environ.get("BD_JSON_ENVELOPE") == "1"
    print(json.dumps({"schema_version": 1, "data": found} if envelope else found))
    if not envelope:
        print("note: the JSON output will change", file=sys.stderr)
if verb == "list":
    label = words[words.index("--label") + 1] if "--label" in words else None
    show([bead for bead in beads
          if (label in bead.get("labels", []) if label else not bead.get("ephemeral"))
          and ("--all" in words or bead.get("status") != "closed")])
elif verb == "ready":
    show([bead for bead in beads if free(bead)])
else:
    named = [bead for bead in beads if bead.get("id") == words[0]]
    if not named:
        sys.exit(f"Error: no issue found matching {words[0]!r}")
    if verb == "show":
        show(named)
    elif verb == "update" and words[1:] == ["--claim"]:
        if named[0].get("assignee", actor) != actor:
            sys.exit(f"Error: already claimed by {named[0]['assignee']}")
        named[0].update(status="in_progress", assignee=actor)
    elif verb == "close" and words[1] == "--reason":
        named[0].update(status="closed", close_reason=words[2])
    else:
        sys.exit(f"Error: unknown command {verb} {words}")
(here / "beads.json").write_text(json.dumps(beads))
"""


def bead(name: str, title: str, status: str = "open", **more: Any) -> dict[str, Any]:
    """One bead with the fields that every one has."""
    return {
        "id": name, "title": title, "status": status, "priority": 2, "issue_type": "task",
        "created_at": "2026-01-30T12:00:00Z", "updated_at": "2026-01-30T12:00:00Z",
    } | more  # fmt: skip


def edges(name: str, *targets: str, sort: str = "blocks") -> list[dict[str, str]]:
    """Dependencies of a bead, as `bd` prints them."""
    return [{"issue_id": name, "depends_on_id": each, "type": sort} for each in targets]


def beads() -> list[dict[str, Any]]:
    """Four beads are free, one of them in an epic; one waits, one is taken, one is a message."""
    inside = edges("gt-epic.1", "gt-epic", sort="parent-child")
    return [
        bead("gt-abc", "Fix the login form", priority=0, description="It hangs."),
        bead("gt-def", "Write the page", design="As in the sketch."),
        bead("gt-ghi", "Speed it up", dependencies=edges("gt-ghi", "gt-old")),
        bead("gt-jkl", "Ship it", dependencies=edges("gt-jkl", "gt-abc", "gt-def")),
        bead("gt-epic", "A whole", issue_type="epic"),
        bead("gt-epic.1", "Its part", dependencies=inside),
        bead("gt-mno", "Somebody is at it", "in_progress", assignee="ann"),
        bead("gt-old", "Over", "closed", close_reason="done"),
        bead("gt-msg", "Hello", issue_type="message"),
        bead("hq-abc", "The town's own"),
    ]


def stand_in(folder: Path, rows: list[Any]) -> tuple[str, ...]:
    """The words that start a `bd` that knows these beads."""
    program = folder / "bd.py"
    program.write_text(STAND_IN, encoding="utf-8")
    (folder / "beads.json").write_text(json.dumps(rows), encoding="utf-8")
    return (sys.executable, str(program))


def known(folder: Path) -> dict[str, dict[str, Any]]:
    """The beads as they are now."""
    return {row["id"]: row for row in json.loads((folder / "beads.json").read_text("utf-8"))}


def calls(folder: Path, *verbs: str) -> list[list[str]]:
    """What the stand-in was asked: actor, folder, words."""
    lines = (folder / "calls.jsonl").read_text("utf-8").splitlines()
    return [call for call in map(json.loads, lines) if not verbs or call[2] in verbs]


def make(folder: Path) -> Sample:
    """What the stand-in prints follows the file beside it."""
    command = stand_in(folder, beads())
    file = folder / "beads.json"

    def change(item: str, **values: str) -> None:
        rows = json.loads(file.read_text("utf-8"))
        changed = [row | values if row.get("id") == item else row for row in rows]
        file.write_text(json.dumps(changed), encoding="utf-8")

    def spoil() -> str:
        rows = [*json.loads(file.read_text("utf-8")), {"id": "gt-bad", "priority": 9}]
        file.write_text(json.dumps(rows), encoding="utf-8")
        return "gt-bad"

    def kept() -> bytes:
        told = ("status", "assignee", "close_reason")
        rows = [
            {key: value for key, value in row.items() if key not in told}
            for row in known(folder).values()
        ]
        return json.dumps(rows).encode()

    return Sample(
        Where(command=command),
        ("gt-abc", "gt-def", "gt-ghi", "gt-epic.1"),
        lambda item, title: change(item, title=title),
        lambda item: change(item, status="closed", close_reason="done"),
        spoil,
        kept=kept,
    )
