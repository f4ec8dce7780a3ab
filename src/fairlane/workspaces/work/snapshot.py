"""Snapshot: the files of a work tree as a tree of git, by an index of ours.

The work tree, its index and its branch stay as they are.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fairlane.model.errors import Refused
from fairlane.model.record import replace
from fairlane.workspaces import git, repository, tree
from fairlane.workspaces.plain_files import NotPlain, bytes_of

#: A larger file that nobody has committed is not kept.
FILE_BYTES_MAX = 32 << 20
#: Nothing is kept where so much, or so many, would be left out.
LEFT_OUT_MAX = 1000
_INDEX_BYTES_MAX = 1 << 28


@contextmanager
def snapshot(
    at: git.Checkout, head: str | None, keeps: bool = True
) -> Iterator[tuple[str, git.Checkout]]:
    """The tree of all that lies in a work tree, and the checkout whose index has it.

    `head` is a commit that git has. Objects go to the repository, or, unless
    it `keeps` them, to a folder that is gone afterwards.
    """
    tree.check_no_pipes(at)
    folder = Path(tempfile.mkdtemp(prefix="snapshot.", dir=repository.folder_for(at)))
    try:
        also = [("GIT_INDEX_FILE", str(folder / "index"))]
        if not keeps:
            (folder / "objects").mkdir()
            objects = at.common / "objects"
            also += [("GIT_OBJECT_DIRECTORY", str(folder / "objects"))]
            also += [("GIT_ALTERNATE_OBJECT_DIRECTORIES", str(objects))]
        view = replace(at, also=tuple(also))
        _add_all(view, _fill_index(at, view, folder / "index", head))
        yield git.run(view, "write-tree"), view
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def objects_of(view: git.Checkout) -> Path | None:
    """The folder of a snapshot's own objects, if it has one."""
    folder = dict(view.also).get("GIT_OBJECT_DIRECTORY")
    return None if folder is None else Path(folder)


def _fill_index(at: git.Checkout, view: git.Checkout, index: Path, head: str | None) -> list[str]:
    """The work tree's own index knows which files are unchanged; without it all are read.

    Of a clone, the index is ours, and does not know what its agent committed: `head` has that.
    Returns the repositories that the index names.
    """
    is_clone = not at.own.is_relative_to(at.common)
    try:
        index.write_bytes(bytes_of(at.own / "index", _INDEX_BYTES_MAX))
        if is_clone and head is not None:
            git.run(view, "read-tree", "-m", head)
        return tree.links_of(view)
    except (NotPlain, git.GitError):
        index.unlink(missing_ok=True)
        if head is not None:
            git.run(view, "read-tree", head)
        return tree.links_of(view)


def _add_all(view: git.Checkout, links: list[str]) -> None:
    """Everything but repositories inside, submodules, and files that are too large."""
    left_out = sorted({*links, *_not_taken(view)})
    if len(left_out) > LEFT_OUT_MAX:
        hint = "`fairlane workspaces` lists its folder."
        message = f"{view.path} has {len(left_out)} large files and repositories inside"
        raise Refused(message, hint, "too_large")
    specs = [b".", *(b":(exclude,top,literal)" + os.fsencode(name) for name in left_out)]
    words = ("add", "-A", "--ignore-errors", "--pathspec-from-file=-", "--pathspec-file-nul")
    env = view.environment  # a file may vanish under a running agent: exit 1, the rest is there
    git.execute(view.path, words, env, code_ok=(0, 1), given=b"\0".join(specs))
    gone = [link for link in links if not os.path.lexists(view.path / link)]
    if gone:
        git.run(view, "update-index", "--force-remove", "--", *gone)


def _not_taken(view: git.Checkout) -> Iterator[str]:
    words = ("ls-files", "--others", "--modified", "--exclude-standard", "-z")
    for name in git.names(view, *words):
        if name.endswith("/"):  # a repository of its own
            yield name.rstrip("/")
        elif _size(view.path / name) > FILE_BYTES_MAX:
            yield name


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0  # it was removed
