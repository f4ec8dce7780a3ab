"""Upload: fetch one commit out of objects that an agent wrote, in bwrap where there is one."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from functools import cache
from pathlib import Path

from fairlane.workspaces import git, repository

#: Folders with programs and libraries.
_PROGRAMS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix", "/opt")
#: What git has in a folder of objects.
_OBJECTS = re.compile(r"[0-9a-f]{2}|pack|info|(tmp_|incoming-).*|maintenance\.lock|bulk-.*")
#: Where a fetched commit stays until its branch has it.
REFERENCE = "refs/fairlane/fetched"


def fetch(repo: git.Checkout, source: Path, objects: Path, commit: str) -> None:
    """Get `refs/heads/work` of a repository of ours; every object is checked on arrival."""
    readable = (source, objects, *objects_of(repo))
    program = [f"--upload-pack={shlex.join([*sandbox(readable), 'git-upload-pack'])}"]
    name = f"{REFERENCE}/{commit}"
    words = (
        "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules",
        "--no-auto-maintenance", *program, str(source), f"+refs/heads/work:{name}",
    )  # fmt: skip
    settings = [("fetch.fsckObjects", "true"), ("protocol.file.allow", "always")]
    env = git.with_settings(repo.environment, settings) | {
        "GIT_ALLOW_PROTOCOL": "file",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
    }
    drop(repo, commit)  # an agent can have made it lead to a branch
    git.execute(repo.path, words, env)


def drop(repo: git.Checkout, commit: str) -> None:
    """The branch has it now."""
    git.run(repo, "update-ref", "--no-deref", "-d", f"{REFERENCE}/{commit}")


def objects_of(repo: git.Checkout) -> tuple[Path, ...]:
    """The object folders that a clone of the repository reads."""
    own = repo.common / "objects"
    others = (own / name for name in sorted(repository.alternates_of(repo.common)))
    return own, *(folder for folder in others if _holds_objects(folder))


def _holds_objects(folder: Path) -> bool:
    """Whether there are objects and nothing else: a repository can name any folder."""
    try:
        return all(_OBJECTS.fullmatch(path.name) for path in folder.iterdir())
    except OSError:
        return False


def sandbox(readable: tuple[Path, ...]) -> list[str]:
    """The words before a program that reads these folders alone; none where bwrap cannot run."""
    if not _has_bwrap():
        return []
    return [*_bwrap(), *(word for path in readable for word in ("--ro-bind", str(path), str(path)))]


def _bwrap() -> list[str]:
    words = ["bwrap", "--unshare-all", "--die-with-parent", "--proc", "/proc", "--dev", "/dev"]
    for folder in _PROGRAMS:
        words += ["--ro-bind-try", folder, folder]
    return [*words, "--setenv", "HOME", "/nonexistent"]


@cache
def _has_bwrap() -> bool:
    """Whether bwrap is there and may make its namespaces."""
    if shutil.which("bwrap") is None:
        return False
    import subprocess

    done = subprocess.run(
        [*_bwrap(), "git", "--version"], capture_output=True, check=False, timeout=git.SECONDS_MAX,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return done.returncode == 0
