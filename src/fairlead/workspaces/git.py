"""Git: every call is an argument vector with a time limit, and says what went wrong."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fairlead.model.errors import Refused

#: No call may hang a cycle.
SECONDS_MAX = 120
#: Who commits where the repository names nobody.
_NOBODY = ("-c", "user.name=Fairlead", "-c", "user.email=fairlead@localhost")


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
    env |= {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        found = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, env=env,
            timeout=SECONDS_MAX, stdin=subprocess.DEVNULL, check=False,
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
    return bool(git(folder, "status", "--porcelain"))


def is_ancestor(folder: Path, older: str, newer: str) -> bool:
    """Whether everything of one commit is in another."""
    found = call(folder, "merge-base", "--is-ancestor", older, newer, code_ok=(0, 1, 128))
    return found.returncode == 0


def commit_all(folder: Path, message: str) -> None:
    """Commit whatever is there, as whoever the repository names."""
    git(folder, "add", "-A")
    names_nobody = not call(folder, "config", "user.email", code_ok=(0, 1)).stdout.strip()
    who = _NOBODY if names_nobody else ()
    git(folder, *who, "commit", "--quiet", "--no-verify", "-m", message)


@contextmanager
def one_at_a_time(home: Path, repo: Path) -> Iterator[None]:
    """Changes of a repository's branches and worktrees take turns."""
    folder = home / "locks"
    folder.mkdir(mode=0o700, exist_ok=True)
    name = hashlib.sha256(str(repo).encode()).hexdigest()[:16]
    with (folder / f"{name}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
