"""Git: every call is an argument vector with a time limit, and says what went wrong."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fairlane.model.errors import Refused

#: No call may hang a cycle.
SECONDS_MAX = 120
#: Who commits where the repository names nobody.
_NOBODY = ("-c", "user.name=Fairlane", "-c", "user.email=fairlane@localhost")
#: Nobody is there to type a passphrase.
_UNSIGNED = ("-c", "commit.gpgsign=false")
#: What git writes into a worktree's lock while it makes it.
_BEING_MADE = "initializing"


class GitError(Refused):
    """Git refused."""

    code = "git"


def git(folder: Path, *words: str, code_ok: tuple[int, ...] = (0,)) -> str:
    """What git prints, without the last line's end."""
    return call(folder, *words, code_ok=code_ok).stdout.rstrip("\n")


def call(
    folder: Path, *words: str, code_ok: tuple[int, ...] = (0,)
) -> subprocess.CompletedProcess[str]:
    """One call of git in a folder."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env |= {"GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true", "LC_ALL": "C"}
    try:
        found = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, env=env, check=False,
            encoding="utf-8", errors="replace", timeout=SECONDS_MAX, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except FileNotFoundError as error:
        raise GitError("git is not installed", "Install git, or take `repo` off.") from error
    except subprocess.TimeoutExpired as error:
        raise GitError(f"git {words[0]} took over {SECONDS_MAX}s in {folder}") from error
    if found.returncode not in code_ok:
        said = (found.stderr.strip() or found.stdout.strip()).splitlines()
        raise GitError(f"git {' '.join(words[:2])} in {folder}: {said[-1] if said else 'failed'}")
    return found


def top_of(folder: Path) -> Path | None:
    """The work tree in which a folder lies; None: in no repository."""
    if not folder.is_dir():
        return None
    found = call(folder, "rev-parse", "--show-toplevel", code_ok=(0, 128))
    return Path(found.stdout.strip()).resolve() if found.returncode == 0 else None


def branch_of(folder: Path) -> str | None:
    """The branch that is checked out; None: none."""
    found = call(folder, "symbolic-ref", "--quiet", "--short", "HEAD", code_ok=(0, 1))
    return found.stdout.strip() or None


def commit_of(folder: Path, name: str) -> str | None:
    """The commit that a name stands for."""
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    return call(folder, *words, code_ok=(0, 1, 128)).stdout.strip() or None


def is_dirty(folder: Path) -> bool:
    """Whether anything is not committed; what is ignored does not count."""
    return bool(git(folder, "status", "--porcelain", "--untracked-files=normal"))


def is_ancestor(folder: Path, older: str, newer: str) -> bool:
    """Whether everything of one commit is in another."""
    found = call(folder, "merge-base", "--is-ancestor", older, newer, code_ok=(0, 1, 128))
    return found.returncode == 0


def commit_all(folder: Path, message: str) -> None:
    """Commit whatever is there, as whoever the repository names."""
    git(folder, "add", "-A")
    git(folder, *committer(folder), "commit", "--quiet", "--no-verify", "-m", message)


def committer(folder: Path) -> tuple[str, ...]:
    """The options of a commit by whoever the repository names, else by Fairlane."""
    known = all(configured(folder, f"user.{what}") for what in ("name", "email"))
    return _UNSIGNED if known else (*_NOBODY, *_UNSIGNED)


def configured(folder: Path, name: str) -> str | None:
    """What the repository, or its user, says of a name."""
    return call(folder, "config", name, code_ok=(0, 1)).stdout.strip() or None


def checkouts(repo: Path) -> dict[Path, str | None]:
    """Every work tree that is there, with the branch that it is on."""
    found: dict[Path, str | None] = {}
    for block in git(repo, "worktree", "list", "--porcelain").split("\n\n"):
        words = dict(line.partition(" ")[::2] for line in block.splitlines())
        folder = Path(words.get("worktree", ""))
        if "bare" not in words and folder.is_dir():
            branch = words.get("branch")
            found[folder.resolve()] = branch.removeprefix("refs/heads/") if branch else None
    return found


def own_folder(folder: Path) -> Path:
    """Where git keeps what belongs to this work tree alone."""
    return Path(git(folder, "rev-parse", "--absolute-git-dir"))


def shared_folder(folder: Path) -> Path:
    """Where git keeps what all work trees of a repository share."""
    return (folder / git(folder, "rev-parse", "--git-common-dir")).resolve()


def is_half_made(folder: Path) -> bool:
    """Whether git was interrupted while it made this worktree."""
    try:
        return (own_folder(folder) / "locked").read_text().strip() == _BEING_MADE
    except OSError:
        return False


@contextmanager
def one_at_a_time(home: Path, repo: Path) -> Iterator[None]:
    """Changes of a repository's branches and worktrees take turns."""
    folder = home / "locks"
    folder.mkdir(mode=0o700, exist_ok=True)
    name = hashlib.sha256(str(repo).encode()).hexdigest()[:16]
    with (folder / f"{name}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
