"""Offer: push a task's branch, then the project's own command opens a pull request for it.

The command runs in the user's repository folder, outside the worktree, with the user's environment
and credentials. Both see the repository through our view: no hook, program or setting that an agent
wrote. Its words may name `{branch}`, `{base}` and `{title}`.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryFile

from fairlane.model.errors import Refused
from fairlane.model.project import Project
from fairlane.model.task import Task
from fairlane.model.visible import last_lines, visible
from fairlane.workspaces import checkouts, clone, git, remotes, repository
from fairlane.workspaces.place import Place
from fairlane.workspaces.plain_files import NotPlain, line_of

#: No command of a project may hang for longer.
SECONDS_MAX = 600
#: What is read of the end of each output.
_BYTES_MAX = 64 * 1024
_TITLE_MAX = 200
_URL_MAX = 2000
#: How branches may be sent: nothing that runs a command of the repository's choice.
_PROTOCOLS = "file:git:http:https:ssh"
_PLACEHOLDER = re.compile(r"\{(branch|base|title)\}")


def offer(
    place: Place, repo: git.Checkout, head: str | None, project: Project, task: Task
) -> str | None:
    """Push this commit as the task's branch and run the project's command.

    The answer is the address that it printed last, if it is one.
    """
    assert place.branch is not None
    at = (clone if place.mode == "clone" else checkouts).verified(repo, place.path)
    base = place.base or "HEAD"
    _push(repo, remotes.check(repo, base), place.branch, head)
    values = {"branch": place.branch, "base": base, "title": title_of(task)}
    argv = [_filled(word, values) for word in project.pr]
    try:
        code, out, err = _run(argv, repo.path, at.environment_of_user)
    except OSError as error:
        reason = error.strerror or str(error)
        hint = f'`fairlane project set {project.name} --pr "gh pr create --fill"` changes it.'
        raise Refused(f"{visible(argv[0])}: {reason}", hint, "pr") from error
    if code:
        said = last_lines(f"{out}\n{err}") or "it printed nothing"
        hint = f"{place.branch} is pushed; `fairlane retry {task.id}` runs its agent again."
        raise Refused(f"{visible(argv[0])}: exit {code}: {said}", hint, "pr")
    return _url(out)


def title_of(task: Task) -> str:
    """One line for people; it never begins as an option does."""
    text = task.title or task.prompt.strip().split("\n")[0]
    return visible(text).strip().lstrip("-").strip()[:_TITLE_MAX] or task.id


def _filled(word: str, values: Mapping[str, str]) -> str:
    """A word with its placeholders filled, in one pass: a value is never looked at again."""
    filled = _PLACEHOLDER.sub(lambda found: values[found[1]], word)
    return filled.lstrip("-") if not word.startswith("-") else filled


def _push(repo: git.Checkout, remote: str, branch: str, commit: str | None) -> None:
    """Push; what was pushed before may be replaced, what others pushed there may not."""
    if commit is None:
        raise Refused(f"{repo.path} has no branch {branch}", code="no_branch")
    name = f"refs/heads/{branch}"
    record = repository.folder_for(repo) / "pushed" / branch.replace("/", "~")
    lease = f"--force-with-lease={name}:{_line(record)}"
    verify = () if repo.hooks else ("--no-verify",)
    words = ("push", "--quiet", "--recurse-submodules=no", *verify, lease, remote)
    words = (*words, f"{commit}:{name}")
    env = repo.environment_of_user | {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": _PROTOCOLS,
    }
    git.execute(repo.path, words, env, seconds=SECONDS_MAX)
    record.parent.mkdir(mode=0o700, exist_ok=True)
    repository.replace(record, f"{commit}\n")


def _line(path: Path) -> str:
    try:
        return line_of(path)
    except NotPlain:
        return ""


def _run(argv: list[str], folder: Path, env: Mapping[str, str]) -> tuple[int, str, str]:
    """Run the user's command; its exit code, and the ends of its outputs."""
    with TemporaryFile() as out, TemporaryFile() as err:
        try:
            with subprocess.Popen(
                argv, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                start_new_session=True,
            ) as process:  # fmt: skip
                try:
                    code = process.wait(SECONDS_MAX)
                except BaseException:
                    git.end(process)
                    raise
        except subprocess.TimeoutExpired as error:
            message = f"{visible(argv[0])} took over {SECONDS_MAX}s"
            raise Refused(message, "It was ended.", "pr") from error
        ends = []
        for file in (out, err):
            file.seek(max(0, file.seek(0, os.SEEK_END) - _BYTES_MAX))
            ends.append(file.read().decode("utf-8", "replace"))
    return code, ends[0], ends[1]


def _url(out: str) -> str | None:
    """The last line, if it is an address."""
    lines = [line.strip() for line in out.splitlines() if line.strip()]
    last = lines[-1] if lines else ""
    is_url = last.startswith(("https://", "http://")) and last.isprintable() and " " not in last
    return last if is_url and len(last) <= _URL_MAX else None
