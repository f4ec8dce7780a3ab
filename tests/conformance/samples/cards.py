"""Cards in two phases."""

from __future__ import annotations

import re
from pathlib import Path

from fairlane.intake.sources.base import Where
from fairlane.testing.source_suite import Sample

CARD = """\
---
owner: ann
agent_flow: {flow}
agent_status: {status}
branch:
risk: low   # for now
parallelizable: false
---

# {title}

Summary:
{title}.

History:
- 2026-01-29 - Created by ann
"""
CARDS = {
    "phase-1-begin/backlog/login.md": ("implement", "idle", "Fix the login form"),
    "phase-1-begin/backlog/mine.md": ("null", "idle", "For a person"),
    "phase-1-begin/done/old.md": ("implement", "succeeded", "Over"),
    "phase-1-begin/in-progress/page.md": ("implement", "", "Write the page"),
    "phase-2-end/backlog/busy.md": ("research", "running", "Somebody is at it"),
    "phase-2-end/backlog/read.md": ("review", "null", "Read it all"),
}


def make(folder: Path) -> Sample:
    """Three cards are open; one is over, one taken, one for people."""
    root = folder / "project"
    for name, (flow, status, title) in CARDS.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(CARD.format(flow=flow, status=status, title=title), encoding="utf-8")

    def path_of(item: str) -> Path:
        phase, _, name = item.partition("/")
        return next((root / phase).glob(f"*/{name}.md"))

    def retitle(item: str, title: str) -> None:
        path = path_of(item)
        text = re.sub("^# .*$", f"# {title}", path.read_text("utf-8"), flags=re.MULTILINE)
        path.write_text(text, encoding="utf-8")

    def close(item: str) -> None:
        path = path_of(item)
        done = path.parent.parent / "done"
        done.mkdir(exist_ok=True)
        path.rename(done / path.name)

    def spoil() -> str:
        broken = root / "phase-2-end" / "backlog" / "broken.md"
        broken.write_text("---\nagent_flow: [\n---\n", encoding="utf-8")
        return "phase-2-end/broken"

    def kept() -> bytes:
        texts = [path.read_bytes() for path in sorted(root.rglob("*.md"))]
        return re.sub(rb"(?m)^(agent_status:.*|- \S+ - Fairlane: .*)\n", b"", b"".join(texts))

    ids = ("phase-1-begin/login", "phase-1-begin/page", "phase-2-end/read")
    return Sample(Where(root), ids, retitle, close, spoil, kept=kept)
