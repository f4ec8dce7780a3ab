"""Setups: whether a project's setup has run in a work tree, and with which files.

A stamp in the home folder says so; it is taken away when the work tree is made anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from fairlane.workspaces import checkouts, clone, git, repository, tree
from fairlane.workspaces.place import Place
from fairlane.workspaces.plain_files import NotPlain, line_of

#: How much of all files that `setup_files` names is read; of the rest the size counts.
_BYTES_MAX = 256 << 20
_CHUNK = 1 << 20


def is_due(place: Place, argv: Sequence[str], files: Sequence[str]) -> bool:
    """Whether the setup must run before an agent starts here."""
    if place.repo is None or place.branch is None or not argv:
        return False
    try:
        return line_of(_stamp(place.repo, place.path)) != _digest(place, place.repo, argv, files)
    except NotPlain:
        return True


def note_done(place: Place, argv: Sequence[str], files: Sequence[str]) -> None:
    """The setup has run here, with the files as they are now."""
    assert place.repo is not None
    stamp = _stamp(place.repo, place.path)
    stamp.parent.mkdir(mode=0o700, exist_ok=True)
    repository.replace(stamp, f"{_digest(place, place.repo, argv, files)}\n")


def _stamp(repo: git.Checkout, path: Path) -> Path:
    return repository.stamp_of(repo, path)


def _digest(place: Place, repo: git.Checkout, argv: Sequence[str], files: Sequence[str]) -> str:
    """The command, and the names and contents of the files that the globs name."""
    rows: list[list[str]] = []
    if files:
        at = (clone if place.mode == "clone" else checkouts).verified(repo, place.path)
        tree.check_no_pipes(at)
        words = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--")
        names = git.names(at, *words, *(f":(glob,top){pattern}" for pattern in files))
        left = _BYTES_MAX
        for name in sorted(set(names)):
            content, size = _content(place.path / name, left)
            rows.append([name, content])
            left -= size
    text = json.dumps([list(argv), rows], ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _content(path: Path, most: int) -> tuple[str, int]:
    """A digest of a file, of its size where it is too large, or of where a link leads."""
    try:
        if path.is_symlink():
            return f"link {path.readlink()}", 0
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return "none", 0
    with os.fdopen(number, "rb") as file:
        about = os.fstat(number)
        if not stat.S_ISREG(about.st_mode) or about.st_size > most:
            return f"size {about.st_size}", 0
        digest = hashlib.sha256()
        while part := file.read(_CHUNK):
            digest.update(part)
    return digest.hexdigest(), about.st_size
