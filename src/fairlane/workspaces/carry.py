"""Carry: a task starts from the work of the tasks that it needs, and takes in what is new there.

The commit at which a task's own work starts is recorded in the home folder before its branch is
made. Everything is merged without a checkout; a conflict changes nothing and names both tasks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from fairlane.model.errors import Refused, listed
from fairlane.model.record import dataclass, replace
from fairlane.workspaces import git, plain_files, repository, tree
from fairlane.workspaces.plain_files import NotPlain

#: The codes of refusals that no other launch would change: a person looks at them.
CONFLICT, MISSING = PROBLEMS = ("carry_conflict", "carry_missing")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
#: A task may need a thousand others.
_RECORD_BYTES_MAX = 1 << 20


class Carried(NamedTuple):
    """The work of a task: the commit that its branch had when it was done."""

    task: str
    head: str


@dataclass(frozen=True, slots=True)
class Start:
    """Where a task's own work starts."""

    commit: str
    carried: tuple[Carried, ...] = ()  # the work of others in it that the base did not have
    seen: tuple[Carried, ...] = ()  # all that was there to carry, also what the base had


class _Merge(NamedTuple):
    """A merge that was tried: its tree, or the files in conflict."""

    tree: str
    files: tuple[str, ...] = ()
    clean: bool = True


def start_for(repo: git.Checkout, task: str, base: str, starts: Sequence[tuple[str, str]]) -> Start:
    """The start of a new branch: the base commit, or the work that is carried, merged in order."""
    seen = tuple(Carried(*each) for each in starts)
    _refuse_missing(repo, task, seen)
    carried = tuple(each for each in seen if not is_in(repo, each.head, base))
    if not carried:
        return Start(base, (), seen)
    # What has landed comes by the base as a whole: there it may be squashed, or changed since.
    parts = [each if each in carried else Carried(each.task, base) for each in seen]
    return Start(_joined(repo, task, parts[0].head, parts), carried, seen)


def is_in(repo: git.Checkout, head: str, base: str) -> bool:
    """Whether a commit has all of another: as its history, or because a merge changes nothing.

    The latter is so where it was squashed or rebased. If the same lines were changed again since,
    a merge conflicts, and its patches are looked for.
    """
    if git.is_ancestor(repo, head, base):
        return True
    merged = _merge(repo, base, head)
    if not merged.clean:
        return _has_patches(repo, head, base)
    return merged.tree == git.run(repo, "rev-parse", f"{base}^{{tree}}")


def _has_patches(repo: git.Checkout, head: str, base: str) -> bool:
    """Whether a commit has the patches of another: each of them, or all in one."""
    fork = _fork(repo, base, head)
    if fork == head:
        return False
    squashed = _commit(repo, git.run(repo, "rev-parse", f"{head}^{{tree}}"), [fork], "Squashed")
    found = (git.run(repo, "cherry", base, each).splitlines() for each in (squashed, head))
    return any(rows and all(row.startswith("-") for row in rows) for rows in found)


def not_in_base(repo: git.Checkout, branch: str, base: str) -> tuple[str, ...]:
    """The tasks whose work a branch started from, and that the base does not have by now."""
    start = start_of(repo, branch)
    left = start.carried if start is not None else ()
    tasks = (
        each.task
        for each in left
        if git.commit_of(repo, each.head) is None or not is_in(repo, each.head, base)
    )
    return tuple(dict.fromkeys(tasks))


def take_in(
    repo: git.Checkout,
    at: git.Checkout,
    branch: str,
    base: str,
    starts: Sequence[tuple[str, str]],
    moved: Callable[[], None],
) -> None:
    """Merge what is new in the needed tasks into a work tree that is on the task's branch.

    What is uncommitted there is committed first. `moved` is called after each commit of ours. A
    conflict is refused and leaves the files as they were.
    """
    task, head = branch.partition("/")[2], _head(repo, branch)
    old = start_of(repo, branch) or Start(_fork(repo, base, head))
    seen = tuple(Carried(*each) for each in starts)
    new = [each for each in seen if each not in old.seen]
    _refuse_missing(repo, task, new)
    new = [each for each in new if not is_in(repo, each.head, head)]
    if not new:
        if seen != old.seen:
            _record(repo, branch, replace(old, seen=seen))
        return
    _joined_tree(repo, at, task, head, new)  # a conflict is found before anything is committed
    if tree.is_dirty(at):
        tree.refuse_nested(at, base)
        tree.commit_all(at, "Left over by an earlier attempt")
        moved()
        head = _head(repo, branch)
    start = replace(_renewed(repo, task, old, new), seen=seen)
    _move(repo, at, branch, old, (_taking_in(repo, at, task, head, start, new), start))
    moved()
    _record(repo, branch, start)


def _taking_in(
    repo: git.Checkout,
    at: git.Checkout,
    task: str,
    head: str,
    start: Start,
    new: Sequence[Carried],
) -> str:
    """The commit at which a branch goes on: the new start itself where it has no work yet."""
    if git.is_ancestor(repo, head, start.commit):
        return start.commit
    has_all = all(git.is_ancestor(repo, each.head, start.commit) for each in new)
    parents = [start.commit] if has_all else [each.head for each in new]
    text = f"Take in {listed([each.task for each in new], 5)}"
    return _commit(repo, _joined_tree(repo, at, task, head, new), [head, *parents], text)


def _move(
    repo: git.Checkout, at: git.Checkout, branch: str, old: Start, following: tuple[str, Start]
) -> None:
    """A clean work tree and its branch go forward to a commit; nothing else there is changed."""
    _record(repo, branch, old, following)
    words = ("merge", "--quiet", "--no-stat", "--ff-only", "--no-overwrite-ignore", following[0])
    try:
        git.run(at, *words, settings=[(f"branch.{branch}.mergeOptions", "")])
    except git.GitError:
        _record(repo, branch, old)  # git looks before it writes: nothing has changed
        raise


def complete(repo: git.Checkout, at: git.Checkout, branch: str, moved: Callable[[], None]) -> None:
    """After a crash while work was taken in: the tree was clean, and nobody has worked in it."""
    current, following = _read(repo, branch)
    head = git.commit_of(repo, f"refs/heads/{branch}")
    if current is None or following is None or head is None:
        return
    merged, start = following
    if not git.is_ancestor(repo, head, merged):
        _record(repo, branch, current)
        return
    (at.own / "index.lock").unlink(missing_ok=True)
    git.run(at, "read-tree", "--reset", "-u", merged)
    git.run(repo, "update-ref", f"refs/heads/{branch}", merged, head)
    moved()
    _record(repo, branch, start)


def _renewed(repo: git.Checkout, task: str, old: Start, new: Sequence[Carried]) -> Start:
    """The start after new work came in: the old one with it, so that own work is what follows.

    Where these conflict though the branch does not (its agent has made the same change), own work
    counts from the newest of the new heads: it then shows too much rather than too little.
    """
    try:
        commit = _joined(repo, task, old.commit, new)
    except Refused:
        commit = new[-1].head
    later = {each.task: each.head for each in new}
    kept = [
        each
        for each in old.carried
        if each.task not in later or not git.is_ancestor(repo, each.head, later[each.task])
    ]
    return Start(commit, (*kept, *new))


def start_of(repo: git.Checkout, branch: str) -> Start | None:
    """Where the own work of a task's branch starts; None: nobody has recorded it."""
    current, following = _read(repo, branch)
    if following is not None:
        merged, start = following
        if git.is_ancestor(repo, merged, f"refs/heads/{branch}"):
            return start
    return current


def keep_start(repo: git.Checkout, branch: str, start: Start) -> None:
    """Record it, before the branch is made."""
    _record(repo, branch, start)


def _joined(repo: git.Checkout, task: str, first: str, others: Sequence[Carried]) -> str:
    """One commit that has a first one and these, merged in order; new only where it must be."""
    commit = first
    for number, each in enumerate(others):
        if git.is_ancestor(repo, each.head, commit):
            continue
        if git.is_ancestor(repo, commit, each.head):
            commit = each.head
            continue
        merged = _merge(repo, commit, each.head)
        if not merged.clean:
            raise _conflict(repo, task, others[:number], each, merged.files)
        text = f"Start of {task}: {listed([row.task for row in others[: number + 1]], 5)}"
        commit = _commit(repo, merged.tree, [commit, each.head], text)
    return commit


def _joined_tree(
    repo: git.Checkout, at: git.Checkout, task: str, head: str, new: Sequence[Carried]
) -> str:
    """The tree of a branch with new work merged into it."""
    commit, found = head, ""
    for number, each in enumerate(new):
        merged = _merge(repo, commit, each.head)
        if not merged.clean:
            raise _conflict(repo, task, new[:number], each, merged.files, at)
        found = merged.tree
        if number + 1 < len(new):
            commit = _commit(repo, found, [commit, each.head], f"Take in {each.task}")
    return found


def _merge(repo: git.Checkout, ours: str, theirs: str) -> _Merge:
    """Merge two commits without a checkout."""
    words = ("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", ours, theirs)
    done = git.call(repo, *words, code_ok=(0, 1, 128))
    if done.returncode == 128:
        if "unrelated histories" not in done.stderr:
            raise git.GitError(f"git merge-tree in {repo.path}: {done.stderr.strip()}")
        return _Merge("", (), clean=False)
    found, *files = done.stdout.rstrip("\0").split("\0")
    return _Merge(found.strip(), tuple(files), done.returncode == 0)


def _commit(repo: git.Checkout, found: str, parents: Iterable[str], message: str) -> str:
    words = [word for parent in parents for word in ("-p", parent)]
    return git.run(repo, "commit-tree", found, *words, "-m", message, settings=git.committer(repo))


def _conflict(
    repo: git.Checkout,
    task: str,
    before: Sequence[Carried],
    new: Carried,
    files: Sequence[str],
    at: git.Checkout | None = None,
) -> Refused:
    """Both sides by name: the first of those before it with which it conflicts, or the task."""
    other = next(
        (each.task for each in before if not _merge(repo, each.head, new.head).clean), None
    )
    what = listed([plain_files.shown(name) for name in files], 3) or "they share no history"
    by_hand = "Merge them into the base branch"
    if at is not None:
        by_hand = f"Merge it by hand (`git -C {at.path} merge {new.head[:12]}`)"
    others = other or (task if at is not None else listed([each.task for each in before], 3))
    message = f"the work of {others} and {new.task} conflicts: {what}"
    return Refused(message, f"{by_hand}, then `fairlane retry {task}`.", CONFLICT)


def _refuse_missing(repo: git.Checkout, task: str, starts: Iterable[Carried]) -> None:
    for each in starts:
        if not _COMMIT.fullmatch(each.head) or git.commit_of(repo, each.head) is None:
            message = f"{repo.path} does not have the work of {each.task} ({each.head[:12]})"
            words = (f"pause task:{task}", f"retry {task}", f"edit {task} --carry base")
            steps = ", ".join(f"`fairlane {each}`" for each in (*words, f"resume task:{task}"))
            hint = f"To start it from its base branch: {steps}."  # no other way edits one in time
            raise Refused(f"{message}, from which {task} starts", hint, MISSING)


def _fork(repo: git.Checkout, base: str, head: str) -> str:
    """Where a branch left its base, for one of which nobody has recorded it."""
    found = git.call(repo, "merge-base", base, head, code_ok=(0, 1, 128)).stdout.split()
    return found[0] if found else head


def _head(repo: git.Checkout, branch: str) -> str:
    commit = git.commit_of(repo, f"refs/heads/{branch}")
    if commit is None:
        raise git.GitError(f"{repo.path} has no branch {branch}")
    return commit


def _file(repo: git.Checkout, branch: str) -> Path:
    return repository.folder_for(repo) / "starts" / branch.replace("/", "~")


def _record(
    repo: git.Checkout, branch: str, start: Start, following: tuple[str, Start] | None = None
) -> None:
    """Write it whole; `following`: what holds as soon as the branch has this commit."""
    document: dict[str, object] = _document(start)
    if following is not None:
        document["following"] = {"head": following[0], **_document(following[1])}
    file = _file(repo, branch)
    file.parent.mkdir(mode=0o700, exist_ok=True)
    repository.replace(file, json.dumps(document) + "\n")


def _document(start: Start) -> dict[str, object]:
    return {"commit": start.commit, "carried": start.carried, "seen": start.seen}


def _read(repo: git.Checkout, branch: str) -> tuple[Start | None, tuple[str, Start] | None]:
    """What is recorded, and what holds as soon as the branch has a commit."""
    with suppress(NotPlain, ValueError, KeyError, TypeError, RecursionError):
        document = json.loads(plain_files.bytes_of(_file(repo, branch), _RECORD_BYTES_MAX))
        following = document.get("following")
        later = None if following is None else (str(following["head"]), _start(following))
        return _start(document), later
    return None, None


def _start(document: dict[str, object]) -> Start:
    def rows(name: str) -> tuple[Carried, ...]:
        found = document[name]
        if not isinstance(found, list):
            raise TypeError(name)
        return tuple(Carried(str(task), str(head)) for task, head in found)

    return Start(str(document["commit"]), rows("carried"), rows("seen"))
