"""Cards as files: which there are, in which phase and column, and how their tasks are called."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from fairlane.intake.naming import marked, plain
from fairlane.model.values import is_name

#: The columns of a board; a card stays the same when it moves between them.
COLUMNS = ("backlog", "in-progress", "done")
_PHASE = re.compile("phase-")
_NUMBER = re.compile(r"(\d+)")


class Card(NamedTuple):
    """One file, and how it is known."""

    id: str
    phase: str | None
    column: str | None
    path: Path


def cards_in(root: Path) -> Iterator[Card]:
    """Every Markdown file, by its path; what is hidden is no card."""
    if not root.is_dir():
        yield _card(root, root.parent)
        return
    for folder, folders, files in os.walk(root):
        folders[:] = sorted((name for name in folders if not name.startswith(".")), key=_place)
        for name in sorted(files, key=_place):
            if name.lower().endswith(".md") and not name.startswith("."):
                yield _card(Path(folder, name), root)


def _place(name: str) -> list[tuple[int, str]]:
    """Sort numbers as numbers: phase-2 before phase-10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in _NUMBER.split(name)]


def _card(path: Path, root: Path) -> Card:
    """Known by its phase and what lies below it, whichever folder was given."""
    parts = path.relative_to(root).parts[:-1]
    if not any(map(_PHASE.match, parts)):  # the folder given may lie inside a phase
        above = path.absolute().parent.parts
        phases = [at for at, part in enumerate(above) if _PHASE.match(part)]
        parts = above[phases[-1] :] if phases else parts
    first = next((at for at, part in enumerate(parts) if _PHASE.match(part)), None)
    phase, below = (None, parts) if first is None else (parts[first], parts[first + 1 :])
    folder = next((part for part in below if _column(part)), None)
    folders = [part for part in below if part != folder]
    name = "/".join([*([phase] if phase else []), *folders, path.stem])
    return Card(name, phase, _column(folder) if folder else None, path)


def _column(folder: str) -> str | None:
    """The column that a folder is: `In Progress` is one too."""
    plain = re.sub("[ _]", "-", folder.lower())
    return plain if plain in COLUMNS else None


def names(ids: Iterable[str]) -> dict[str, str]:
    """Each id with a name of its own: as it is written where that is a name, else near to it.

    Only one that would have the name of another gets a mark.
    """
    found: dict[str, str] = {}
    taken: set[str] = set()
    plain_parts = {text: [plain(part) for part in text.split("/")] for text in ids}
    exact = {text: ".".join(parts) == text.replace("/", ".") for text, parts in plain_parts.items()}
    for text in sorted(plain_parts, key=lambda text: not exact[text]):
        parts = plain_parts[text]
        name = ".".join(filter(None, parts)).removesuffix(".lock")
        if name in taken or not all(parts) or not is_name(name):
            name = marked(name, text)
        taken.add(name)
        found[text] = name
    return found
