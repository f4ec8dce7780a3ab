"""Setup: a home folder with commented settings and policy; what is there is never overwritten."""

from __future__ import annotations

import os
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

from fairlane.model.errors import Invalid
from fairlane.service import SCHEMA
from fairlane.service.house.token import home_token
from fairlane.settings import FILE

#: The programs that are looked for, the one that is used first first.
AGENTS = ("claude", "codex", "gemini", "opencode")
POLICY_FILE = "policy.toml"


def init(home: Path) -> dict[str, Any]:
    """Make what is missing, and say what there is."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        hint = "Give another folder with --home or FAIRLANE_HOME."
        raise Invalid(f"{home}: no home folder: {error.strerror}", hint) from error
    found = installed()
    agent = f'agent = "{found[0]["name"]}"' if found else '# agent = "claude"'
    lead = f"{agent:28} # for tasks whose project names none"
    texts = {FILE: _page(FILE).replace("{agent}", lead), POLICY_FILE: _page(POLICY_FILE)}
    made = [str(home / name) for name, text in texts.items() if _write(home / name, text)]
    home_token(home)
    kept = [str(home / name) for name in texts if str(home / name) not in made]
    return {"schema": SCHEMA, "home": str(home), "made": made, "kept": kept, "agents": found}


def installed() -> list[dict[str, str]]:
    """The agents whose program is on the path."""
    found = ((name, shutil.which(name)) for name in AGENTS)
    return [{"name": name, "path": path} for name, path in found if path]


def _page(name: str) -> str:
    return files("fairlane.service.house").joinpath(name).read_text(encoding="utf-8")


def _write(path: Path, text: str) -> bool:
    """A new file, readable by the owner only; one that is there stays."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    return True
