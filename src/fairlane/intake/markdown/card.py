"""Cards as files: which there are, in which phase and column, and how their tasks are called."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from fairlane.model.values import is_name

#: The columns of a board; a card stays the same when it moves between them.
COLUMNS = ("backlog", "in-progress", "done")
#: Longer names are cut, which leaves room for a mark.
_LENGTH_MAX = 100
#: Letters that have no plainer form in Unicode.
_SPELLED = str.maketrans({"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ı": "i"})
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
    plain = {text: _plain(text) for text in ids}
    for text in sorted(plain, key=lambda text: ".".join(plain[text]) != text.replace("/", ".")):
        parts = plain[text]
        name = ".".join(filter(None, parts)).removesuffix(".lock")
        if name in taken or not all(parts) or not is_name(name):
            name = f"{name[:_LENGTH_MAX].rstrip('._-') or 'card'}-{_mark(text)}"
        taken.add(name)
        found[text] = name
    return found


def _plain(text: str) -> list[str]:
    """The parts of a path with nothing in them that a name cannot have."""
    ascii_only = unicodedata.normalize("NFKD", text.translate(_SPELLED))
    ascii_only = ascii_only.encode("ascii", "ignore").decode()
    return [
        re.sub(r"[^A-Za-z0-9._-]+|\.\.+", "-", part).strip("._-") for part in ascii_only.split("/")
    ]


def _mark(text: str) -> str:
    return sha256(text.encode(errors="surrogateescape")).hexdigest()[:8]
