"""Clone: a git folder of its own for one task; its branch is fetched, and git never runs in it.

The agent owns everything in the clone. Fairlane makes it, and afterwards only reads files there.
For the work tree it has a git folder of its own (`own`, in the home folder), with which changes
are found and committed as in a worktree.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

from fairlane.model.errors import Refused
from fairlane.workspaces import checkouts, config, git, plain_files, repository, upload
from fairlane.workspaces.plain_files import NotPlain, bytes_of, line_of

_NOT_OPENED = frozenset({"hooks", "modules"})
#: A commit as references name it.
COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_PACKED_BYTES_MAX = 1 << 24
#: In our git folder of a clone: it is there until the clone is filled.
_BEING_MADE = "being_made"
#: In our git folder of a clone: the commit that the repository and the clone had last.
_TIP = "tip"


def tree_of(repo: git.Checkout, path: Path) -> git.Checkout:
    """The work tree of a clone with our git folder for it: the repository's branch is its HEAD."""
    clones = repository.folder_for(repo) / "clones"
    return repo.with_tree(path, clones / path.parent.name / path.name)


def is_clone(repo: git.Checkout, path: Path) -> bool:
    """Whether a folder of ours has a git folder of its own, and never was a worktree."""
    dot = path / ".git"
    return dot.is_dir() and not dot.is_symlink() and not checkouts.has_record(repo, path)


def verified(repo: git.Checkout, path: Path) -> git.Checkout:
    """The work tree of a clone that is safe to read, or an error that says what is wrong."""
    at = tree_of(repo, path)
    try:
        checkouts.check_folder(path)
        dot = path / ".git"
        if dot.is_symlink() or not dot.is_dir():
            raise NotPlain("it has no git folder" if path.is_dir() else "it is not there")
        if not (at.own / "HEAD").is_file():
            raise NotPlain("Fairlane did not make it")
        plain_files.check(dot, _NOT_OPENED)
        if repository.alternates_of(dot) - {str(repo.common / "objects")}:
            raise NotPlain("it reads objects of another repository")
    except (NotPlain, OSError) as error:
        raise checkouts.Unsafe(path, repo, str(error), "clone") from error
    return at


def ready(repo: git.Checkout, path: Path, branch: str, start: str, base: str) -> None:
    """A clone on the task's branch: the one of an earlier attempt, or a new one from `start`."""
    at = tree_of(repo, path)
    if (at.own / _BEING_MADE).exists():  # a crash: nobody has worked in it
        checkouts.check_folder(path)
        shutil.rmtree(path, ignore_errors=True)
    if os.path.lexists(path / ".git"):
        verified(repo, path)
        (path / ".git" / "index.lock").unlink(missing_ok=True)  # of one that was killed
    else:
        _make(at, branch, start)
    _tell(at, {base, branch})


def _make(at: git.Checkout, branch: str, start: str) -> None:
    path, dot = at.path, at.path / ".git"
    repository.stamp_of(at, path).unlink(missing_ok=True)  # it is not set up
    shutil.rmtree(at.own, ignore_errors=True)
    path.mkdir(mode=0o700, exist_ok=True)
    at.own.mkdir(mode=0o700, parents=True)
    (at.own / _BEING_MADE).touch()
    (at.own / "HEAD").write_text(f"ref: refs/heads/{branch}\n", encoding="utf-8")
    (at.own / "commondir").write_text(f"{at.common}\n", "utf-8")  # where git finds references
    if git.commit_of(at, f"refs/heads/{branch}") is None:
        git.run(at, "update-ref", f"refs/heads/{branch}", start, "0" * len(start))
    form = git.run(at, "rev-parse", "--show-object-format")
    words = ("init", "--quiet", "--template=", f"--object-format={form}", "-b", branch, ".")
    git.execute(path, words, git.environment())
    (dot / "objects" / "info" / "alternates").write_text(f"{at.common / 'objects'}\n", "utf-8")
    copy_shallow(at, dot)
    write_config(at, dot)
    git.run(at, "checkout", "--quiet", "--force")
    _agree(at, branch)
    (at.own / _BEING_MADE).unlink()


def write_config(at: git.Checkout, dot: Path) -> None:
    """The repository's settings as git sees them here, and who commits."""
    who = dict(git.committer(at)) or {
        name: git.configured(at, name) or "" for name in ("user.name", "user.email")
    }
    ours = (at.ours / "config").read_text("utf-8", "surrogateescape")
    text = f"{ours}{config.text_of([*who.items(), ('core.bare', 'false')])}"
    (dot / "config").write_text(text, "utf-8", "surrogateescape")


def copy_shallow(at: git.Checkout, folder: Path) -> None:
    """Tell a git folder where the history of the repository ends."""
    with suppress(FileNotFoundError):
        shutil.copyfile(at.common / "shallow", folder / "shallow")


def _tell(at: git.Checkout, branches: set[str]) -> None:
    """The clone finds the repository's branches as those of `origin`."""
    for branch in branches:
        if commit := git.commit_of(at, f"refs/heads/{branch}"):
            _put(at.path / ".git" / "refs" / "remotes" / "origin" / branch, commit)


def _agree(at: git.Checkout, branch: str) -> None:
    """The clone's branch and index are what the repository's branch and our index are."""
    commit = git.commit_of(at, "HEAD") or ""
    dot = at.path / ".git"
    _put(dot / "refs" / "heads" / branch, commit)
    shutil.copyfile(at.own / "index", dot / "index.new")
    (dot / "index.new").replace(dot / "index")
    (at.own / _TIP).write_text(commit, "utf-8")


def _put(path: Path, commit: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    repository.replace(path, f"{commit}\n")


def fetched(at: git.Checkout, repo: git.Checkout, branch: str) -> str:
    """The clone's last commit, brought into the repository under a name that `upload.drop` drops.

    Of its branch, or of what it has checked out instead; no branch of the repository changes.
    """
    try:
        commits = commits_of(at.path)
        commit = commits.get("HEAD") or commits.get(f"refs/heads/{branch_of(at.path)}")
        commit = commit or _tip_of(at, branch)
    except NotPlain as error:
        raise checkouts.Unsafe(at.path, repo, str(error), "clone") from error
    _bring(at, repo, commit)
    return commit


def fetch(at: git.Checkout, repo: git.Checkout, branch: str) -> None:
    """Bring the clone's branch into the repository; `Refused` where commits would be lost."""
    try:
        new = _tip_of(at, branch)
    except NotPlain as error:
        raise checkouts.Unsafe(at.path, repo, str(error), "clone") from error
    old = git.commit_of(repo, f"refs/heads/{branch}")
    if new != old:
        _bring(at, repo, new)
        try:
            _refuse_loss(at, repo, branch, new, old)
            words = ("update-ref", "-m", "fetched", f"refs/heads/{branch}", new)
            git.run(repo, *words, old or "0" * len(new))
        finally:
            upload.drop(repo, new)
        (at.own / _TIP).write_text(new, "utf-8")
    git.run(at, "read-tree", "HEAD")


def agree(at: git.Checkout, repo: git.Checkout, branch: str) -> None:
    """After a commit of ours the clone goes on from it."""
    verified(repo, at.path)
    _agree(at, branch)


def _bring(at: git.Checkout, repo: git.Checkout, commit: str) -> None:
    """Fetch one commit from a repository of ours that has the clone's objects and nothing else."""
    source = at.own / "source"
    shutil.rmtree(source, ignore_errors=True)
    (source / "refs" / "heads").mkdir(parents=True)
    (source / "HEAD").write_text("ref: refs/heads/work\n", "utf-8")
    (source / "refs" / "heads" / "work").write_text(f"{commit}\n", "utf-8")
    form = git.run(repo, "rev-parse", "--show-object-format")
    settings = [("core.repositoryformatversion", "1"), ("core.bare", "true")]
    text = config.text_of([*settings, ("extensions.objectformat", form)])
    (source / "config").write_text(text, "utf-8")
    (source / "objects").symlink_to(at.path / ".git" / "objects")
    copy_shallow(at, source)
    try:
        upload.fetch(repo, source, at.path / ".git" / "objects", commit)
    except git.GitError as error:
        causes = [line for line in error.said.splitlines() if "error: " in line] or [error.message]
        hint = "`fairlane workspaces` lists it; `fairlane retry TASK` lets its agent correct it."
        message = f"the branch of {at.path} cannot be fetched: {plain_files.shown(causes[0])}"
        raise Refused(message, hint, "fetch") from error
    finally:
        shutil.rmtree(source, ignore_errors=True)


def _refuse_loss(
    at: git.Checkout, repo: git.Checkout, branch: str, new: str, old: str | None
) -> None:
    for folder, out in checkouts.branches_out(repo).items():
        if out == branch:
            hint = f"`git -C {folder} checkout --detach` frees it, then `fairlane retry TASK`."
            raise Refused(f"{branch} is checked out in {folder}", hint, "in_the_way")
    with suppress(NotPlain):
        if old in (None, line_of(at.own / _TIP)):
            return  # the agent may write its own history anew
    if old is not None and not git.is_ancestor(repo, old, new):
        hint = f"Its clone finds them as origin/{branch}: `fairlane retry TASK` lets it go on."
        raise Refused(f"{branch} has commits that {at.path} does not have", hint, "diverged")


def branch_of(path: Path) -> str | None:
    """The branch that a clone is on; None: none."""
    head = line_of(path / ".git" / "HEAD")
    is_branch = head.startswith("ref: refs/heads/")
    return plain_files.shown(head.removeprefix("ref: refs/heads/")) if is_branch else None


def _tip_of(at: git.Checkout, branch: str) -> str:
    commit = commits_of(at.path).get(f"refs/heads/{branch}")
    if commit is None:
        raise NotPlain(f"it has no branch {branch}")
    return commit


def commits_of(path: Path) -> dict[str, str]:
    """Every reference of a clone with its commit, read from its files."""
    return commits_in(path / ".git")


def commits_in(dot: Path) -> dict[str, str]:
    """Every reference of a git folder with its commit."""
    found = {}
    if os.path.lexists(dot / "packed-refs"):
        for line in os.fsdecode(bytes_of(dot / "packed-refs", _PACKED_BYTES_MAX)).splitlines():
            commit, _, name = line.partition(" ")
            if COMMIT.fullmatch(commit):
                found[name] = commit
    for entry in plain_files.entries(dot / "refs"):
        if entry.is_file(follow_symlinks=False):
            found[os.path.relpath(entry.path, dot)] = line_of(Path(entry.path))
    found["HEAD"] = line_of(dot / "HEAD")
    return {name: text for name, text in found.items() if COMMIT.fullmatch(text)}


def remove(at: git.Checkout) -> None:
    """Take a clone away, and what we keep of it."""
    shutil.rmtree(at.path)
    shutil.rmtree(at.own, ignore_errors=True)
