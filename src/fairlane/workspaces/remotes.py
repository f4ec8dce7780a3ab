"""Remotes: where the branches of a repository are pushed."""

from __future__ import annotations

import re

from fairlane.model.errors import Refused
from fairlane.workspaces import git, repository
from fairlane.workspaces.plain_files import line_of, shown

_NAME = re.compile(r"[A-Za-z0-9_][\w./-]*")


def check(repo: git.Checkout, base: str) -> str:
    """The remote to which branches are pushed; refused where there is none, or it has changed.

    Agents can write the repository's settings: where a remote leads when Fairlane first sees it,
    before any attempt, is where branches go.
    """
    named = git.configured(repo, f"branch.{base}.remote") or ""
    remote = named if _NAME.fullmatch(named) and _address(repo, named) else "origin"
    address = _address(repo, remote)
    if not address:
        hint = f"Add one: git -C {repo.path} remote add origin URL."
        raise Refused(f"{repo.path} has no remote to push to", hint, "no_remote")
    record = repository.folder_for(repo) / repository.REMOTES / remote.replace("/", "~")
    if not record.exists():
        record.parent.mkdir(mode=0o700, exist_ok=True)
        repository.replace(record, f"{address}\n")
    elif (before := line_of(record)) != address:
        hint = f"If you changed it: `fairlane project set PROJECT --repo {repo.path}` accepts it."
        message = f"remote {remote} leads to {shown(address)} now; it led to {before} before"
        raise Refused(message, hint, repository.Unsafe.code)
    return remote


def _address(repo: git.Checkout, remote: str) -> str:
    for key in ("pushurl", "url"):
        words = ("config", "--get-all", f"remote.{remote}.{key}")
        lines = git.call(repo, *words, code_ok=(0, 1)).stdout.splitlines()
        if lines:
            return " ".join(lines)
    return ""
