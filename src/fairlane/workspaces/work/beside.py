"""Beside: protected files as they lie in a work tree, where they differ from what is merged.

Checks run in the work tree. So a file there that no commit has can make them pass as well as a
change of one: what an agent left there, and what one check left for the next.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from fairlane.model.record import replace
from fairlane.workspaces import git, repository, submodules, tree
from fairlane.workspaces.plain_files import NotPlain, bytes_of
from fairlane.workspaces.work.changes import Change
from fairlane.workspaces.work.commit_rules import NO_FILTER, CommitRules, filter_of
from fairlane.workspaces.work.protect import Protection

#: Largest protected file that is compared by its bytes; a larger one counts as changed.
_BYTES_MAX = 64 << 20
_SHA1_DIGITS = 40


def look_beside(at: git.Checkout, start: str, head: str, protection: Protection) -> None:
    """Show `protection` every file that it protects and that is otherwise than in `head`.

    What is ignored counts where it was not ignored at `start`: checks leave such files, too.
    """
    tree.check_no_pipes(at)
    folder = Path(tempfile.mkdtemp(prefix="beside.", dir=repository.folder_for(at)))
    try:
        for name in _found(at, start, head, protection, folder):
            text = os.fsencode(name).decode("utf-8", "replace")
            protection.look(Change(text, "M"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _found(
    at: git.Checkout, start: str, head: str, protection: Protection, folder: Path
) -> Iterator[str]:
    view = _with_index(at, folder / "index")
    git.run(view, "read-tree", head)
    rows = [row.partition("\t") for row in git.names(view, "ls-files", "--stage", "-z")]
    known = [
        f"{about}\t{name}"
        for about, _, name in rows
        if protection.protects(name) and not about.startswith(submodules.LINK)
    ]
    links = [name for about, _, name in rows if about.startswith(submodules.LINK)]
    if known:
        yield from _changed(_with_index(at, folder / "protected"), known)
        yield from _converted(at, start, known, folder / "attributes")
    others = ("ls-files", "--others", "-z", "--exclude-standard")
    new = (*git.names(view, *others), *(submodules.untracked(at) if links else ()))
    yield from filter(protection.fits, new)
    ignored = _files(at.path, git.names(view, *others, "--ignored"))
    names = [name for name in ignored if protection.protects(name)]
    if names:
        rules = CommitRules(at, start, folder / "ignore", names)
        yield from sorted({*names} - rules.ignored(names))


def _with_index(at: git.Checkout, index: Path) -> git.Checkout:
    return replace(at, also=(*at.also, ("GIT_INDEX_FILE", str(index))))


def _changed(view: git.Checkout, rows: Sequence[str]) -> list[str]:
    """Those of some entries whose file differs; what the user leaves out does not."""
    given = os.fsencode("\0".join(rows))
    git.run(view, "read-tree", "--empty")
    git.execute(view.path, ("update-index", "-z", "--index-info"), view.environment, given=given)
    git.call(view, "update-index", "-q", "--refresh", code_ok=(0, 1))  # it reads the files
    found = git.names(view, "diff-files", "--name-only", "-z")
    if repository.was_sparse(view):
        return [name for name in found if os.path.lexists(view.path / name)]
    return found


def _converted(at: git.Checkout, start: str, rows: Sequence[str], folder: Path) -> Iterator[str]:
    """Those that git takes for the same, but only because it converts them.

    What the rules of `start` convert is the same: line ends, say, or a file of git-lfs.
    """
    differing: dict[str, tuple[str, bytes]] = {}
    for row in rows:
        about, _, name = row.partition("\t")
        mode, blob, _ = about.split()
        if mode.startswith("100") and os.path.lexists(at.path / name):
            try:
                data = bytes_of(at.path / name, _BYTES_MAX)
            except NotPlain:
                yield name
                continue
            if _blob_of(data, len(blob)) != blob:
                differing[name] = blob, data
    if not differing:
        return
    rules = CommitRules(at, start, folder, differing)
    for name, (blob, data) in differing.items():
        program = rules.filter_of(name)
        if program == NO_FILTER:
            if rules.checked_out(name, blob) != data:
                yield name
        elif filter_of(at.path, at.environment, name) != program:
            yield name


def _blob_of(data: bytes, digits: int) -> str:
    """The name that git gives to bytes."""
    make = hashlib.sha1 if digits == _SHA1_DIGITS else hashlib.sha256
    return make(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _files(tree: Path, names: Iterable[str]) -> Iterator[str]:
    """Files by their names; of a folder that is a repository git names no more than that."""
    for name in names:
        if not name.endswith("/"):
            yield name
            continue
        for above, _, files in os.walk(tree / name):
            yield from (os.path.relpath(f"{above}/{file}", tree) for file in files)
