"""Beside: protected files as they lie in a work tree, where they differ from what is merged.

Checks run in the work tree. So a file there that no commit has can make them pass as well as a
change of one: what an agent left there, and what one check left for the next.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from fairlane.workspaces import git, repository, submodules, tree
from fairlane.workspaces.work.changes import Change
from fairlane.workspaces.work.protect import Protection


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
    others = ("ls-files", "--others", "-z", "--exclude-standard")
    new = (*git.names(view, *others), *(submodules.untracked(at) if links else ()))
    yield from filter(protection.fits, new)
    ignored = git.names(view, *others, "--ignored", "--directory")
    names = [name for name in ignored if protection.protects(name.rstrip("/"))]
    if names:
        yield from _newly_ignored(view, start, names)


def _with_index(at: git.Checkout, index: Path) -> git.Checkout:
    return replace(at, also=(*at.also, ("GIT_INDEX_FILE", str(index))))


def _changed(view: git.Checkout, rows: Sequence[str]) -> list[str]:
    """Those of some entries whose file differs; what the user leaves out does not."""
    given = os.fsencode("\0".join(rows))
    git.run(view, "read-tree", "--empty")
    git.execute(view.path, ("update-index", "-z", "--index-info"), view.environment, given=given)
    git.call(view, "update-index", "-q", "--refresh", code_ok=(0, 1))  # it reads the files
    found = git.names(view, "diff-files", "--name-only", "-z")
    if git.configured(view, "core.sparsecheckout") == "true":
        return [name for name in found if os.path.lexists(view.path / name)]
    return found


def _newly_ignored(view: git.Checkout, start: str, names: Sequence[str]) -> Iterator[str]:
    """Those that are ignored by a rule which the repository did not have."""
    words = ("check-ignore", "--verbose", "--no-index", "-z", "--stdin")
    given = os.fsencode("\0".join(names))
    done = git.execute(view.path, words, view.environment, code_ok=(0, 1), given=given)
    fields = os.fsdecode(done.stdout).split("\0")
    for file, _, rule, name in zip(*(fields[at::4] for at in range(4)), strict=False):
        shown = git.call(view, "cat-file", "-p", f"{start}:{file}", code_ok=(0, 128))
        if shown.returncode or rule not in map(str.strip, shown.stdout.splitlines()):
            yield name.rstrip("/")
