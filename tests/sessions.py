"""Sessions that programs have kept, as they find them again."""

from __future__ import annotations

import re
from pathlib import Path


def claude_keeps(config: Path, session: str, cwd: Path) -> Path:
    """A session of Claude that began in a folder; its file."""
    name = re.sub(r"[^A-Za-z0-9]", "-", str(cwd.resolve()))
    file = config / "projects" / name / f"{session}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("{}\n")
    return file


def codex_keeps(config: Path, session: str) -> Path:
    """A session of Codex; its file."""
    file = (
        config / "sessions" / "2026" / "01" / "30" / f"rollout-2026-01-30T12-00-00-{session}.jsonl"
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("{}\n")
    return file
