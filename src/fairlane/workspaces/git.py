"""Git: argument vectors with a time limit, without the programs that a repository names."""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fairlane.model.errors import MISSING, Refused, Shortage, shortage_in
from fairlane.model.record import dataclass

Setting = tuple[str, str]

#: Settings of every call: no hook, no monitor, no signature, nothing in the background.
_ALWAYS: tuple[Setting, ...] = (
    ("core.hooksPath", os.devnull),
    ("core.fsmonitor", "false"),
    ("core.pager", "cat"),
    ("commit.gpgSign", "false"),
    ("merge.verifySignatures", "false"),
    ("merge.autoStash", "false"),
    ("gpg.program", "false"),
    ("gpg.openpgp.program", "false"),
    ("gpg.x509.program", "false"),
    ("gpg.ssh.program", "false"),
    ("gpg.ssh.defaultKeyCommand", ""),
    ("status.submoduleSummary", "false"),
    ("submodule.recurse", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
)
#: The environment of every call: no prompts, no network.
_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_PAGER": "cat",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_NO_LAZY_FETCH": "1",
    "LC_ALL": "C",
}
#: Whose settings an agent can write.
_SCOPES_OF_AGENTS = ("local", "worktree")
#: Settings that name programs, by their first and last word, and their replacements.
_PROGRAMS = {
    ("core", "askpass"): "",
    ("core", "gitproxy"): "",
    ("core", "sshcommand"): "",
    ("credential", "helper"): "",
    ("diff", "command"): "",
    ("diff", "external"): "",
    ("diff", "textconv"): "",
    ("filter", "clean"): "",
    ("filter", "process"): "",
    ("filter", "smudge"): "",
    ("hook", "command"): "true",
    ("lfs", "clean"): "",
    ("lfs", "path"): "",
    ("lfs", "smudge"): "",
    ("lfs", "standalonetransferagent"): "",
    ("merge", "driver"): "false",  # that is a conflict; an empty one would drop a side
}


def environment(settings: Iterable[Setting] = ()) -> dict[str, str]:
    """The environment of a call of git, with more settings that win over all files."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env |= _ENVIRONMENT
    pairs = [*_ALWAYS, *settings]
    for number, (name, value) in enumerate(pairs):
        env |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return env | {"GIT_CONFIG_COUNT": str(len(pairs))}


def without_programs(listing: str) -> list[Setting]:
    """What puts the user's own programs, or none, in the place of those that a repository names.

    The listing is that of `git config --list --show-scope -z`.
    """
    of_user: dict[str, list[str]] = defaultdict(list)
    of_agents: dict[str, str] = {}
    fields = listing.split("\0")
    for scope, line in zip(fields[::2], fields[1::2], strict=False):
        name, _, value = line.partition("\n")
        if scope not in _SCOPES_OF_AGENTS:
            of_user[name].append(value)
        elif (stand_in := _PROGRAMS.get(_first_and_last(name))) is not None:
            of_agents[name] = stand_in
    overrides = []
    for name, stand_in in of_agents.items():
        overrides += [(name, stand_in), *((name, value) for value in of_user[name])]
    hooks = {_all_but_last(key) for key in (*of_agents, *of_user) if key.startswith("hook.")}
    return (
        overrides + _required(of_agents, of_user) + [(f"{key}.enabled", "false") for key in hooks]
    )


def _required(of_agents: Iterable[str], of_user: dict[str, list[str]]) -> list[Setting]:
    """A filter that does not run fails: without it, git would store a file as it must not be."""
    filters = [key for key in of_agents if key.startswith("filter.")]
    return [(f"{_all_but_last(key)}.required", "true") for key in filters if not of_user[key]]


def _first_and_last(name: str) -> tuple[str, str]:
    return name.partition(".")[0], name.rpartition(".")[2]


def _all_but_last(name: str) -> str:
    return name.rpartition(".")[0]


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


def run(at: Checkout, *words: str, settings: Iterable[Setting] = ()) -> str:
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
    return [name for name in os.fsdecode(done.stdout).split("\0") if name]


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
        if missing := shortage_in(text):
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
    """The commit of a name."""
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    return call(at, *words, code_ok=(0, 1, 128)).stdout.strip() or None


def is_dirty(at: Checkout) -> bool:
    """Whether anything is not committed; what is ignored, and inside submodules, does not count."""
    words = ("--porcelain", "--untracked-files=normal", "--ignore-submodules=dirty")
    return bool(run(at, "status", *words))


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
def one_at_a_time(home: Path, repo: Path) -> Iterator[None]:
    """Changes of a repository's branches and worktrees take turns."""
    folder = home / "locks"
    folder.mkdir(mode=0o700, exist_ok=True)
    name = hashlib.sha256(str(repo).encode()).hexdigest()[:16]
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        lock = os.open(folder / f"{name}.lock", flags, 0o600)
    except OSError as error:
        if error.errno in MISSING:
            raise
        raise GitError(f"{folder / name}.lock cannot be used: {error.strerror}") from error
    try:
        if not stat.S_ISREG(os.fstat(lock).st_mode):
            raise GitError(f"{folder / name}.lock is no regular file", "Remove it.")
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


#: The mode by which git stores another repository's commit instead of files.
_LINK = "160000 "


def commit_all(at: Checkout, message: str) -> None:
    """Commit everything as the repository's user; never look into submodules."""
    links = links_of(at)
    others = [f":(exclude,top,literal){link}" for link in links]
    run(at, "add", "-A", *(["--", ".", *others] if links else []))
    if links:
        run(at, "update-index", "--remove", "--", *links)
    words = ("commit", "--quiet", "--no-verify", "-m", message)
    run(at, *words, settings=committer(at))


def refuse_nested(at: Checkout, base: str | None) -> None:
    """Repositories that an agent made inside its worktree are named; their files would be lost."""
    untracked = names(at, "ls-files", "--others", "--exclude-standard", "-z")
    nested = [name.rstrip("/") for name in untracked if name.endswith("/")]
    if links := links_of(at):
        known = _registered(at, base)
        nested += [name for name in links if name not in known]
    if nested:
        more = f" and {len(nested) - 3} more" if len(nested) > 3 else ""
        listed = ", ".join(map(shown, sorted(nested)[:3]))
        raise Refused(
            f"{at.path} has repositories inside that cannot be committed: {listed}{more}",
            "Move them away or delete their .git, then `fairlane retry TASK`.",
            "nested",
        )


def links_of(at: Checkout) -> list[str]:
    """The submodules, and other repositories, that the index names."""
    return _paths(names(at, "ls-files", "--stage", "-z"))


def repositories_in(at: Checkout) -> list[str]:
    """Those of them that are checked out."""
    return [link for link in links_of(at) if os.path.lexists(at.path / link / ".git")]


def _registered(at: Checkout, base: str | None) -> frozenset[str]:
    """The submodules of the commit from which the work started."""
    start = call(at, "merge-base", base or "HEAD", "HEAD", code_ok=(0, 1, 128)).stdout.split()
    return frozenset(_paths(names(at, "ls-tree", "-r", "-z", start[0])) if start else ())


def _paths(lines: list[str]) -> list[str]:
    return [line.partition("\t")[2] for line in lines if line.startswith(_LINK)]
