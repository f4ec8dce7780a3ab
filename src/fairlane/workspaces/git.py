"""Git: the one place that calls it, with our own configuration and a time limit."""

from __future__ import annotations

import fcntl
import hashlib
import os
import signal
import stat
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Timer
from typing import IO

from fairlane.clock import poll
from fairlane.model.errors import MISSING, Refused, Shortage, shortage_in
from fairlane.model.record import dataclass, replace
from fairlane.model.visible import last_lines

Setting = tuple[str, str]

#: No call may hang a cycle.
SECONDS_MAX = 120
#: How long one change of a repository waits for another.
LOCK_SECONDS_MAX = 300
#: Settings of every call; they win over all files, also the user's.
_ALWAYS: tuple[Setting, ...] = (
    ("core.fsmonitor", "false"),
    ("core.pager", "cat"),
    ("core.alternateRefsCommand", "true"),
    ("core.protectHFS", "true"),
    ("core.protectNTFS", "true"),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("merge.verifySignatures", "false"),
    ("merge.autoStash", "false"),
    ("gpg.program", "false"),
    ("gpg.openpgp.program", "false"),
    ("gpg.x509.program", "false"),
    ("gpg.ssh.program", "false"),
    ("gpg.ssh.defaultKeyCommand", ""),
    ("status.submoduleSummary", "false"),
    ("submodule.recurse", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("rerere.enabled", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("advice.graftFileDeprecated", "false"),  # an error of git is told whole, and only it
)
_NO_HOOKS = ("core.hooksPath", os.devnull)
#: The environment of every call: no prompts, no network, no replaced objects.
_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_PAGER": "cat",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": os.devnull,
    "LC_ALL": "C",
}
#: Who commits where the repository names nobody.
_NOBODY = (("user.name", "Fairlane"), ("user.email", "fairlane@localhost"))


class GitError(Refused):
    """Git refused; `said` is all that it printed."""

    code = "git"

    def __init__(
        self, message: str, hint: str = "", code: str | None = None, said: str = ""
    ) -> None:
        super().__init__(message, hint, code)
        self.said = said


@dataclass(frozen=True, slots=True)
class Checkout:
    """A work tree with its git folders: git looks for neither, whatever lies in the tree.

    Git sees `ours` in place of `common`: the same objects and references with a configuration
    that Fairlane wrote (`repository.py`).
    """

    path: Path
    own: Path  # what belongs to this work tree alone
    common: Path  # what all work trees of the repository share
    ours: Path
    hooks: bool = False  # whether the user allows the repository's own hooks
    settings: tuple[Setting, ...] = ()  # that hold in this work tree alone
    named: tuple[Path, Path] | None = None  # the folder that the user named, and its git folder
    also: tuple[Setting, ...] = ()  # more variables of every call: another index, other objects

    def with_tree(self, path: Path, own: Path, settings: Iterable[Setting] = ()) -> Checkout:
        """Another work tree of the same repository."""
        return replace(self, path=path, own=own, settings=tuple(settings))

    @property
    def environment(self) -> dict[str, str]:
        """Which work tree, git folder and configuration every git below sees."""
        settings = environment((*self.settings, *(() if self.hooks else (_NO_HOOKS,))))
        places = {"GIT_DIR": self.own, "GIT_WORK_TREE": self.path, "GIT_COMMON_DIR": self.ours}
        return settings | {name: str(path) for name, path in places.items()} | dict(self.also)

    @property
    def environment_of_user(self) -> dict[str, str]:
        """The same for a command that the user wrote: it may use the network and ask programs."""
        env = self.environment
        return {name: env[name] for name in env if name not in _ENVIRONMENT} | {
            name: os.environ[name] for name in ("LC_ALL",) if name in os.environ
        }


def environment(settings: Iterable[Setting] = ()) -> dict[str, str]:
    """The environment of a call of git, with more settings that win over all files."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return with_settings(env | _ENVIRONMENT, (*_ALWAYS, *settings))


def with_settings(env: dict[str, str], settings: Iterable[Setting]) -> dict[str, str]:
    """An environment with more settings."""
    number = int(env.get("GIT_CONFIG_COUNT", "0"))
    env = dict(env)
    for name, value in settings:
        env |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
        number += 1
    return env | {"GIT_CONFIG_COUNT": str(number)}


def run(at: Checkout, *words: str, settings: Iterable[Setting] = ()) -> str:
    """What git prints, without the last line's end."""
    return call(at, *words, settings=settings).stdout.rstrip("\n")


def call(
    at: Checkout, *words: str, code_ok: tuple[int, ...] = (0,), settings: Iterable[Setting] = ()
) -> subprocess.CompletedProcess[str]:
    """One call of git in a checkout."""
    done = execute(at.path, words, with_settings(at.environment, settings), code_ok)
    out, err = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)


def names(at: Checkout, *words: str) -> list[str]:
    """What git prints with `-z`, exactly."""
    done = execute(at.path, words, at.environment)
    return [name for name in os.fsdecode(done.stdout).split("\0") if name]


def execute(
    folder: Path, words: tuple[str, ...], env: dict[str, str], code_ok: tuple[int, ...] = (0,),
    given: bytes = b"", seconds: float = SECONDS_MAX,
) -> subprocess.CompletedProcess[bytes]:  # fmt: skip
    """One call of git, with what it gets as standard input; `Refused` where it fails."""
    what = f"git {' '.join(words[:2])} in {folder}"
    try:
        done = _limited(["git", "-C", str(folder), *words], env, given, seconds)
    except FileNotFoundError as error:
        raise GitError("git is not installed", "Install git, or take `repo` off.") from error
    except OSError as error:
        if error.errno in MISSING:
            raise
        raise GitError(f"git {words[0]} in {folder}: {error}") from error
    except subprocess.TimeoutExpired as error:
        raise GitError(f"git {words[0]} took over {seconds:g}s in {folder}") from error
    if done.returncode not in code_ok:
        text = (done.stderr.strip() or done.stdout.strip()).decode("utf-8", "replace")
        if missing := shortage_in(text):
            raise Shortage(f"{what}: {missing}")
        raise GitError(f"{what}: {last_lines(text) or 'failed'}", _hint(text), said=text)
    return done


@contextmanager
def output(
    folder: Path, words: tuple[str, ...], env: dict[str, str], seconds: float = SECONDS_MAX
) -> Iterator[IO[bytes]]:
    """What git prints, while it prints it; whoever has read enough leaves, and git ends."""
    argv = ["git", "-C", str(folder), *words]
    with subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env,
        start_new_session=True,
    ) as process:  # fmt: skip
        limit = Timer(seconds, end, (process,))
        limit.start()
        try:
            assert process.stdout is not None
            yield process.stdout
            if not process.stdout.read(1) and process.wait():  # all was read, so its end counts
                raise GitError(f"git {words[0]} in {folder} failed, or took over {seconds:g}s")
        finally:
            limit.cancel()
            end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a program in a session of its own, with whatever it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _limited(
    argv: list[str], env: dict[str, str], given: bytes, seconds: float
) -> subprocess.CompletedProcess[bytes]:
    """Run a program; at the time limit, whatever it started ends with it."""
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env,
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            out, err = process.communicate(given, timeout=seconds)
        except BaseException:
            end(process)
            raise
        return subprocess.CompletedProcess(argv, process.returncode, out, err)


def _hint(said: str) -> str:
    """Which command helps where git misses what Fairlane takes away from it."""
    if "filter '" in said:
        return (
            "Filters of a repository's own configuration do not run, agents can write there:"
            " `git config --global filter.NAME.clean COMMAND` (and smudge, process) allows one."
        )
    if "promisor" in said or "unable to read sha1 file" in said:
        return "Nothing is fetched for a task: `git fetch --refetch` gets what a clone left out."
    return ""


def branch_of(at: Checkout) -> str | None:
    """The branch that is checked out; None: none."""
    done = call(at, "symbolic-ref", "--quiet", "--short", "HEAD", code_ok=(0, 1))
    return done.stdout.strip() or None


def commit_of(at: Checkout, name: str) -> str | None:
    """The commit of a name."""
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    return call(at, *words, code_ok=(0, 1, 128)).stdout.strip() or None


def is_ancestor(at: Checkout, older: str, newer: str) -> bool:
    """Whether everything of one commit is in another."""
    done = call(at, "merge-base", "--is-ancestor", older, newer, code_ok=(0, 1, 128))
    return done.returncode == 0


def committer(at: Checkout) -> tuple[Setting, ...]:
    """The author of a commit: the repository's user, else Fairlane."""
    known = all(configured(at, f"user.{what}") for what in ("name", "email"))
    return () if known else _NOBODY


def configured(at: Checkout, name: str) -> str | None:
    """What the repository, or its user, says of a name."""
    return call(at, "config", name, code_ok=(0, 1)).stdout.strip() or None


@contextmanager
def one_at_a_time(home: Path, repo: Checkout) -> Iterator[None]:
    """Changes of a repository's branches and worktrees take turns."""
    folder = home / "locks"
    folder.mkdir(mode=0o700, exist_ok=True)
    with locked(folder / f"{hashlib.sha256(str(repo.common).encode()).hexdigest()[:16]}.lock"):
        yield


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One thread or process at a time, by a lock file."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        lock = os.open(path, flags, 0o600)
    except OSError as error:
        if error.errno in MISSING:
            raise
        raise GitError(f"{path} cannot be used: {error.strerror}") from error
    try:
        if not stat.S_ISREG(os.fstat(lock).st_mode):
            raise GitError(f"{path} is no regular file", "Remove it.")
        if not poll(lambda: _has_taken(lock), LOCK_SECONDS_MAX, every=0.02):
            message = f"another process has held {path} for over {LOCK_SECONDS_MAX}s"
            raise GitError(message, f"`fuser {path}` names it; `fairlane retry TASK` tries again.")
        yield
    finally:
        os.close(lock)


def _has_taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
