"""Sessions: whether a program finds a session from the folder of the next attempt, and how.

Sessions live in a folder of a machine. Claude finds one from any folder by its file, Codex by its
id; Gemini and OpenCode find one only from the folder where it began (OpenCode would wait for ever
in another). A program without a rule here gets the id, whatever the folder. A command line of the
user's own may keep its sessions anywhere: from the same folder it gets the id.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from fairlane.agents.contract import Agent, can_resume, shipped

#: What a session is called that is looked for in folders: nothing that leads elsewhere.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
#: Claude names the folder of a project by the path, cut at this length and then told apart.
_ENCODED_MAX = 200
#: How many entries are looked at in a folder of sessions.
_ENTRIES_MAX = 200_000


class Search(NamedTuple):
    """What is known when a session is to be resumed."""

    session: str
    folders: tuple[Path, ...]  # the program's own
    here: Path  # where the next attempt works
    before: Path  # where the last one worked


def resumed_by(
    agent: Agent, session: str, env: Mapping[str, str], here: Path, before: Path
) -> str | None:
    """The word by which the program resumes a session; None: it would not find it from here.

    `env` is the environment in which it runs.
    """
    rule = _RULES.get(agent.parser)
    if rule is None:
        return session if can_resume(session) and not session.startswith("/") else None
    if not _NAME.fullmatch(session):
        return None
    folders = tuple(_folder(env, *place) for place in agent.config)
    search = Search(session, folders, _real(here), _real(before))
    word = rule(search)
    is_own = agent.argv != shipped()[agent.parser].argv
    return _in_its_folder(search) if word is None and is_own else word


def _folder(env: Mapping[str, str], variable: str, default: str) -> Path:
    """A folder of a program: what a variable names, else its usual place."""
    named = env.get(variable) if variable else None
    home = env.get("HOME", "")
    return Path(named) if named else Path(home + default[1:] if default[:2] == "~/" else default)


def _claude(search: Search) -> str | None:
    """By its id from the folder where it is kept, from any other by its file."""
    name = f"{search.session}.jsonl"
    found = [
        Path(project.path, name)
        for folder in search.folders
        for project in _entries(folder / "projects")
        if _is_file(Path(project.path, name))
    ]
    encoded = re.sub(r"[^A-Za-z0-9]", "-", str(search.here))
    if any(_is_encoded(file.parent.name, encoded) for file in found):
        return search.session
    path = str(min(found)) if found else ""
    return path if path.isprintable() and path.startswith("/") else None


def _is_encoded(name: str, encoded: str) -> bool:
    if len(encoded) <= _ENCODED_MAX:
        return name == encoded
    return name.startswith(f"{encoded[:_ENCODED_MAX]}-")


def _codex(search: Search) -> str | None:
    """By its id from any folder, where its file is."""
    end = f"-{search.session}.jsonl"
    for folder in search.folders:
        for entry in _entries_below(folder / "sessions"):
            if entry.name.startswith("rollout-") and entry.name.endswith(end):
                return search.session
    return None


def _in_its_folder(search: Search) -> str | None:
    return search.session if search.here == search.before else None


_RULES: dict[str, Callable[[Search], str | None]] = {
    "claude": _claude,
    "codex": _codex,
    "gemini": _in_its_folder,
    "opencode": _in_its_folder,
}


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """What lies in a folder, up to a bound; nothing where it cannot be read."""
    found: list[os.DirEntry[str]] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                found.append(entry)
                if len(found) == _ENTRIES_MAX:
                    break
    except OSError:
        return found
    return found


def _entries_below(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Files below a folder, up to a bound, in its last folders first: they have the newest names.

    Links to folders are not followed.
    """
    folders, seen = [folder], 0
    while folders and seen < _ENTRIES_MAX:
        for entry in sorted(_entries(folders.pop()), key=lambda entry: entry.name):
            seen += 1
            if entry.is_dir(follow_symlinks=False):
                folders.append(Path(entry.path))
            elif entry.is_file():
                yield entry


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False
