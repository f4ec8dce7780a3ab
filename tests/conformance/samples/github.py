"""Issues of a repository, as a stand-in for `gh` prints them: with the fields of any age."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from fairlane.intake.sources.base import Where
from fairlane.testing.source_suite import Sample

URL = "https://github.com/acme/shop/issues"
#: A `gh` that prints the documented JSON: the fields that were asked for, of the issues in a file.
#: It knows as many fields as the older one that `--old` makes of it.
STAND_IN = """\
import json, pathlib, sys
fields = sys.argv[sys.argv.index("--json") + 1].split(",")
known = "assignees body createdAt labels milestone number state stateReason title updatedAt url"
known = known.split() + ([] if "--old" in sys.argv else
    "blockedBy blocking issueType parent subIssues subIssuesSummary".split())
for field in fields:
    if field not in known:
        listed = "\\n  ".join(sorted(known))
        sys.exit(f'Unknown JSON field: "{field}"\\nAvailable fields:\\n  {listed}')
issues = json.loads(pathlib.Path(__file__).with_name("issues.json").read_text())
print(json.dumps([{k: v for k, v in each.items() if k in fields} if isinstance(each, dict) else each
                  for each in issues]))
"""


def issue(number: int, title: str, state: str = "OPEN", **more: Any) -> dict[str, Any]:
    """One issue with the fields that every one has."""
    return {
        "number": number, "title": title, "body": "", "labels": [], "assignees": [], "state": state,
        "stateReason": "", "createdAt": "2026-01-30T12:00:00Z", "url": f"{URL}/{number}",
        "updatedAt": "2026-01-30T12:00:00Z", "milestone": None, "parent": None,
        "blockedBy": {"nodes": [], "totalCount": 0}, "subIssues": {"nodes": [], "totalCount": 0},
    } | more  # fmt: skip


def named(*numbers: int, state: str = "OPEN") -> dict[str, Any]:
    """Issues as another one names them."""
    nodes = [{"number": each, "state": state, "url": f"{URL}/{each}"} for each in numbers]
    return {"nodes": nodes, "totalCount": len(nodes)}


def issues() -> list[dict[str, Any]]:
    """Three issues are free; one is blocked by another, one is part of a third."""
    return [
        issue(12, "Fix the login form", labels=[{"name": "P1"}, {"name": "in progress"}]),
        issue(13, "Write the page", body="As in the sketch."),
        issue(14, "Speed it up", blockedBy=named(3, state="CLOSED")),
        issue(15, "Ship it", blockedBy=named(12, 13)),
        issue(16, "A whole", subIssues=named(17)),
        issue(17, "Its part", parent={"number": 16, "url": f"{URL}/16"}, blockedBy=named(15)),
    ]


def stand_in(folder: Path, rows: list[Any]) -> tuple[str, ...]:
    """The argument vector of a `gh` that knows these issues."""
    program = folder / "gh.py"
    program.write_text(STAND_IN, encoding="utf-8")
    (folder / "issues.json").write_text(json.dumps(rows), encoding="utf-8")
    return (sys.executable, str(program), "issue", "list")


def make(folder: Path) -> Sample:
    """What the stand-in prints follows the file beside it."""
    command = stand_in(folder, issues())
    file = folder / "issues.json"

    def rows() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
        return found

    def change(item: str, **values: str) -> None:
        changed = [row | values if str(row["number"]) == item else row for row in rows()]
        file.write_text(json.dumps(changed), encoding="utf-8")

    def spoil() -> str:
        file.write_text(json.dumps([*rows(), {"number": 99}]), encoding="utf-8")
        return "record 7 of 7"

    fields = "number,title,body,labels,state,stateReason,url,parent,subIssues,blockedBy"
    return Sample(
        Where(command=(*command, "--json", fields)),
        ("12", "13", "14"),
        lambda item, title: change(item, title=title),
        lambda item: change(item, state="CLOSED", stateReason="COMPLETED"),
        spoil,
    )
