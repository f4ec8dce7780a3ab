"""Git: every call is an argument vector with a time limit, and says what went wrong."""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fairlane.model.errors import MISSING, Refused, Shortage, told_in
from fairlane.model.record import dataclass
from fairlane.workspaces.overrides import Setting, environment, without_programs

#: No call may hang a cycle.
SECONDS_MAX = 120
#: Who commits where the repository names nobody.
_NOBODY = (("user.name", "Fairlane"), ("user.email", "fairlane@localhost"))
#: Calls that may run a filter or a driver; the others read names and references only.
_WITH_FILES = frozenset({"add", "checkout", "commit", "merge", "merge-tree", "status", "worktree"})


class GitError(Refused):
    """Git refused."""

    code = "git"


@dataclass(frozen=True, slots=True)
class Checkout:
    """A work tree with its git folders: git looks for neither, whatever lies in the tree."""

    path: Path
    own: Path  # what belongs to this work tree alone
    common: Path  # what all work trees of the repository share


def git(at: Checkout, *words: str, settings: Iterable[Setting] = ()) -> str:
    """What git prints, without the last line's end."""
    return call(at, *words, settings=settings).stdout.rstrip("\n")


def call(
    at: Checkout, *words: str, code_ok: tuple[int, ...] = (0,), settings: Iterable[Setting] = ()
) -> subprocess.CompletedProcess[str]:
    """One call of git in a checkout, without the programs that its configuration names."""
    more = [*settings, *(programs_off(at) if words[0] in _WITH_FILES else ())]
    done = _run(at.path, words, environment(more) | _places(at), code_ok)
    out, err = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)


def programs_off(at: Checkout) -> list[Setting]:
    """Settings that take back the programs that this checkout's configuration names."""
    words = ("config", "--list", "--show-scope", "-z")
    return without_programs(os.fsdecode(_run(at.path, words, environment() | _places(at)).stdout))


def names(at: Checkout, *words: str) -> list[str]:
    """What git prints with `-z`, exactly."""
    done = _run(at.path, words, environment() | _places(at))
    return [each for each in os.fsdecode(done.stdout).split("\0") if each]


def shown(name: str) -> str:
    """A name out of a repository, fit for a message."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)


def discover(folder: Path) -> Checkout | None:
    """The checkout in which a folder of the user's lies; None: in no repository."""
    if not folder.is_dir():
        return None
    words = ("rev-parse", "--show-toplevel", "--absolute-git-dir", "--git-common-dir")
    done = _run(folder, words, environment(), (0, 128))
    if done.returncode:
        return None
    lines = os.fsdecode(done.stdout).splitlines()
    if len(lines) != 3:
        raise GitError(f"{folder} has a configuration that git cannot be asked about")
    top, own, common = lines
    at = Checkout(Path(top).resolve(), Path(own).resolve(), (folder / common).resolve())
    if at.own == at.path / ".git" and at.common != at.own:  # only worktrees share a folder
        hint = f"Look at {at.own / 'commondir'}: git never writes it there."
        raise GitError(f"{at.own} leads into another repository: {at.common}", hint)
    return at


def _places(at: Checkout) -> dict[str, str]:
    places = {"GIT_DIR": at.own, "GIT_WORK_TREE": at.path, "GIT_COMMON_DIR": at.common}
    return {name: str(path) for name, path in places.items()}


def _run(
    folder: Path, words: tuple[str, ...], env: dict[str, str], code_ok: tuple[int, ...] = (0,)
) -> subprocess.CompletedProcess[bytes]:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, env=env, check=False,
            timeout=SECONDS_MAX, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except FileNotFoundError as error:
        raise GitError("git is not installed", "Install git, or take `repo` off.") from error
    except OSError as error:
        if error.errno in MISSING:
            raise
        raise GitError(f"git {words[0]} in {folder}: {error}") from error
    except subprocess.TimeoutExpired as error:
        raise GitError(f"git {words[0]} took over {SECONDS_MAX}s in {folder}") from error
    if done.returncode not in code_ok:
        text = (done.stderr.strip() or done.stdout.strip()).decode("utf-8", "replace")
        what = f"git {' '.join(words[:2])} in {folder}"
        if missing := told_in(text):
            raise Shortage(f"{what}: {missing}")
        last = (text.splitlines() or ["failed"])[-1]
        raise GitError(f"{what}: {last}", _hint(last))
    return done


def _hint(said: str) -> str:
    """Which command helps where git misses what Fairlane takes away from it."""
    if "filter '" in said:
        return (
            "Filters of a repository's own configuration do not run, agents can write there:"
            " `git config --global filter.NAME.clean COMMAND` (and smudge, process) allows one."
        )
    if "promisor" in said:
        return "Nothing is fetched for a task: `git fetch --refetch` gets what the clone left out."
    return ""


def branch_of(at: Checkout) -> str | None:
    """The branch that is checked out; None: none."""
    done = call(at, "symbolic-ref", "--quiet", "--short", "HEAD", code_ok=(0, 1))
    return done.stdout.strip() or None


def commit_of(at: Checkout, name: str) -> str | None:
    """The commit that a name stands for."""
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    return call(at, *words, code_ok=(0, 1, 128)).stdout.strip() or None


def is_dirty(at: Checkout) -> bool:
    """Whether anything is not committed; what is ignored, and inside submodules, does not count."""
    words = ("--porcelain", "--untracked-files=normal", "--ignore-submodules=dirty")
    return bool(git(at, "status", *words))


def is_ancestor(at: Checkout, older: str, newer: str) -> bool:
    """Whether everything of one commit is in another."""
    done = call(at, "merge-base", "--is-ancestor", older, newer, code_ok=(0, 1, 128))
    return done.returncode == 0


def committer(at: Checkout) -> tuple[Setting, ...]:
    """The settings of a commit by whoever the repository names, else by Fairlane."""
    known = all(configured(at, f"user.{what}") for what in ("name", "email"))
    return () if known else _NOBODY


def configured(at: Checkout, name: str) -> str | None:
    """What the repository, or its user, says of a name."""
    return call(at, "config", name, code_ok=(0, 1)).stdout.strip() or None


@contextmanager
def one_at_a_time(home: Path, repo: Path) -> Iterator[None]:
    """Changes of a repository's branches and worktrees take turns."""
    folder = home / "locks"
    folder.mkdir(mode=0o700, exist_ok=True)
    name = hashlib.sha256(str(repo).encode()).hexdigest()[:16]
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        held = os.open(folder / f"{name}.lock", flags, 0o600)
    except OSError as error:
        if error.errno in MISSING:
            raise
        raise GitError(f"{folder / name}.lock cannot be used: {error.strerror}") from error
    try:
        if not stat.S_ISREG(os.fstat(held).st_mode):
            raise GitError(f"{folder / name}.lock is no regular file", "Remove it.")
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)
