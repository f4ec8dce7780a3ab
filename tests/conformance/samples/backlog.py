"""A folder `backlog` with a board of its own statuses."""

from __future__ import annotations

import re
from pathlib import Path

from fairlane.intake.sources.base import Where
from fairlane.testing.source_suite import Sample

CONFIG = """\
project_name: "Shop"
default_status: "Next"
statuses: ["Next", "Doing", "Review", "Shipped"]
task_prefix: "back"
"""
TASKS = {
    "BACK-1": ("Fix the login form", "Next", "priority: high\nlabels: [web]"),
    "BACK-2": ("Write the page", "Next", "milestone: spring"),
    "BACK-10": ("Speed it up", "Next", "assignee: ['@ann']\ndependencies: [back-4]"),
    "BACK-4": ("Over", "Shipped", ""),
    "BACK-5": ("Somebody is at it", "Doing", ""),
    "BACK-6": ("Waits", "Next", "dependencies:\n  - task-1"),
    "BACK-7": ("A whole", "Next", ""),
    "BACK-7.1": ("Its part", "Next", "parent_task_id: BACK-7\ndependencies: [BACK-6]"),
}
BODY = """\

## Description

<!-- SECTION:DESCRIPTION:BEGIN -->
What is to be done.
<!-- SECTION:DESCRIPTION:END -->

## Acceptance Criteria
<!-- AC:BEGIN -->
- [ ] It works
<!-- AC:END -->
"""
#: What telling changes.
TOLD = re.compile(
    rb"^(?:status|updated_date): .*\n|\n## Implementation Notes\n\n<!-- .*\n(?:- .*\n)*<!-- .*\n",
    re.MULTILINE,
)


def make(folder: Path) -> Sample:
    """Three tasks are free; two wait, one is taken, one is closed, one is a group."""
    tasks = folder / "shop" / "backlog" / "tasks"
    tasks.mkdir(parents=True)
    (tasks.parent / "config.yml").write_text(CONFIG, encoding="utf-8")

    def file(item: str) -> Path:
        return next(tasks.glob(f"{item.lower()} - *.md"))

    def change(item: str, key: str, value: str) -> None:
        text = file(item).read_text(encoding="utf-8")
        changed = re.sub(rf"^{key}: .*$", f"{key}: {value}", text, count=1, flags=re.MULTILINE)
        file(item).write_text(changed, encoding="utf-8")

    def spoil() -> str:
        (tasks / "back-66 - Broken.md").write_text("---\nid: [\n---\n", encoding="utf-8")
        return "back-66 - Broken.md"

    def kept() -> bytes:
        texts = [path.read_bytes() for path in sorted(tasks.parent.rglob("*")) if path.is_file()]
        return re.sub(TOLD, b"", b"".join(texts))

    for item, (title, status, more) in TASKS.items():
        head = f"---\nid: {item}\ntitle: {title}\nstatus: {status}\n{more}".rstrip()
        path = tasks / f"{item.lower()} - {title.replace(' ', '-')}.md"
        path.write_text(f"{head}\n---\n{BODY}", encoding="utf-8")
    return Sample(
        Where(folder / "shop"),
        ("BACK-1", "BACK-2", "BACK-10"),
        lambda item, title: change(item, "title", title),
        lambda item: change(item, "status", "Shipped"),
        spoil,
        kept=kept,
    )
