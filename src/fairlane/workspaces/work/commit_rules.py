"""Commit rules: what git ignores and converts by the files of one commit alone.

An agent can write the rules of its work tree, and without a sandbox those of the repository.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from fairlane.workspaces import git

#: Which files have rules.
_FILES = (".gitignore", ".gitattributes")
_REGULAR = ("100644", "100755")
#: What git says where no program converts a file.
NO_FILTER = "unspecified"


class CommitRules:
    """A work tree with nothing but the rules of a commit, for the folders of some files."""

    def __init__(self, at: git.Checkout, commit: str, folder: Path, names: Iterable[str]) -> None:
        folder.mkdir()
        settings = (("core.excludesFile", os.devnull), ("core.attributesFile", os.devnull))
        self._at, self._tree = at, folder
        self._env = git.environment(settings) | {
            "GIT_DIR": str(folder / ".git"),
            "GIT_WORK_TREE": str(folder),
            "GIT_ATTR_NOSYSTEM": "1",
        }
        self._run("init", "--quiet", "--template=")
        self._write_rules(commit, {above for name in names for above in _folders(name)})

    def ignored(self, names: Sequence[str]) -> set[str]:
        """Those of some files that are ignored."""
        given = os.fsencode("\0".join(names))
        words = ("check-ignore", "--no-index", "-z", "--stdin")
        return set(os.fsdecode(self._run(*words, given=given, code_ok=(0, 1))).split("\0"))

    def filter_of(self, name: str) -> str:
        """The program that converts a file, by its name."""
        return filter_of(self._tree, self._env, name)

    def checked_out(self, name: str, blob: str) -> bytes:
        """The bytes of a file as git would write them."""
        words = ("hash-object", "-w", "--no-filters", "--stdin")
        here = self._run(*words, given=self._bytes_of(blob)).decode().strip()
        return self._run("cat-file", "--filters", f"--path={name}", here)

    def _write_rules(self, commit: str, folders: set[str]) -> None:
        for row in git.names(self._at, "ls-tree", "-r", "-z", "--full-tree", commit):
            about, _, name = row.partition("\t")
            mode, _, blob = about.split()
            above, _, file = name.rpartition("/")
            if file in _FILES and mode in _REGULAR and above in folders and _is_inside(above):
                place = self._tree / above
                place.mkdir(parents=True, exist_ok=True)
                (place / file).write_bytes(self._bytes_of(blob))

    def _bytes_of(self, blob: str) -> bytes:
        at = self._at
        return git.execute(at.path, ("cat-file", "blob", blob), at.environment).stdout

    def _run(self, *words: str, given: bytes = b"", code_ok: tuple[int, ...] = (0,)) -> bytes:
        return git.execute(self._tree, words, self._env, code_ok, given).stdout


def filter_of(folder: Path, env: dict[str, str], name: str) -> str:
    """The program that converts a file, by the rules that a work tree has."""
    words = ("check-attr", "-z", "filter", "--", name)
    return os.fsdecode(git.execute(folder, words, env).stdout).split("\0")[2]


def _folders(name: str) -> list[str]:
    """The folders above a file, the work tree itself included."""
    parts = name.split("/")[:-1]
    return ["/".join(parts[:count]) for count in range(len(parts) + 1)]


def _is_inside(folder: str) -> bool:
    parts = folder.casefold().split("/") if folder else []
    return not {"", ".", "..", ".git"}.intersection(parts)
