"""Look: the diff of an attempt, from what git keeps or from its work tree, and its commits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fairlane.model.errors import NotFound
from fairlane.model.instant import SECOND, Instant
from fairlane.model.project import Project
from fairlane.model.record import dataclass
from fairlane.model.task import Task
from fairlane.settings import Settings
from fairlane.workspaces import checkouts, clone, git
from fairlane.workspaces.place import Place, place_of, repo_of
from fairlane.workspaces.work.changes import Change, changes, named
from fairlane.workspaces.work.patches import patches
from fairlane.workspaces.work.reading import Reader, reader_of
from fairlane.workspaces.work.record import start_of
from fairlane.workspaces.work.snapshot import objects_of, snapshot

#: Most commits that are told, and how long a look for them may take.
COMMITS_MAX, COMMITS_SECONDS = 50, 5.0
#: The last second that has a date of four digits.
SECONDS_MAX = 253_402_300_799
#: Longest subject or name of an author.
_TEXT_MAX = 500


@dataclass(frozen=True, slots=True)
class Diff:
    """What differs between two commits; a patch that is None was not asked for, or left out."""

    start: str
    head: str | None  # None: the work tree has no commit
    files: list[tuple[Change, str | None]]
    truncated: bool


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit of a task's work."""

    id: str
    subject: str
    author: str
    at: Instant


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of a diff."""

    files: Sequence[str] = ()  # only these, and what is below them
    stat: bool = False  # without the patches
    carried: bool = False  # from the base: with what others made, and the work started from


def recorded_diff(
    home: Path, project: Project, start: str, base: str | None, head: str, wanted: Wanted
) -> Diff:
    """The diff of work that was recorded; `base` is the commit that its base had then."""
    repo = repo_of(home, project)
    if wanted.carried and base is not None:
        start = _common(repo, base, head) or start
    for commit in (start, head):
        if git.call(repo, "cat-file", "-e", commit, code_ok=(0, 1, 128)).returncode:
            hint = "Its repository was replaced, or somebody removed refs/fairlane/keep."
            raise NotFound(f"{repo.path} does not have {commit[:12]} any more", hint, "no_work")
    return _diff(reader_of(repo), start, head, head, wanted)


def live_diff(
    home: Path,
    settings: Settings,
    project: Project,
    task: Task,
    workspace: str | None,
    sandboxed: bool,
    wanted: Wanted,
) -> Diff | None:
    """The diff of what lies in a work tree now; nothing there changes. None: it has no branch."""
    place = place_of(home, settings, project, task, workspace, sandboxed)
    if place.repo is None or place.branch is None:
        return None
    at, head = _now(place, place.repo)
    start = start_of(place.repo, place, head)
    if wanted.carried and head is not None:
        start = _common(place.repo, place.base or "HEAD", head) or start
    if start is None:
        return None
    with snapshot(at, head, keeps=False) as (tree, view):
        return _diff(reader_of(place.repo, objects_of(view)), start, tree, head, wanted)


def _now(place: Place, repo: git.Checkout) -> tuple[git.Checkout, str | None]:
    """The work tree, and its last commit that the repository has."""
    if place.mode == "clone":
        return clone.verified(repo, place.path), git.commit_of(repo, f"refs/heads/{place.branch}")
    at = checkouts.verified(repo, place.path)
    return at, git.commit_of(at, "HEAD")


def _common(repo: git.Checkout, base: str, head: str) -> str | None:
    done = git.call(repo, "merge-base", base, head, code_ok=(0, 1, 128))
    return done.stdout.strip() or None


def _diff(reader: Reader, start: str, end: str, head: str | None, wanted: Wanted) -> Diff:
    rows, more = changes(reader, start, end)
    asked = named(rows, wanted.files)
    if wanted.stat:
        return Diff(start, head, [(row, None) for row in asked], more > 0)
    texts, cut = patches(reader, start, end, rows, asked)
    return Diff(start, head, list(zip(asked, texts, strict=True)), cut or more > 0)


def commits(home: Path, project: Project, start: str, head: str) -> list[Commit]:
    """The commits of a task's own work, newest first, as far as they are told."""
    reader = reader_of(repo_of(home, project))
    form = "--format=%H%x00%s%x00%an%x00%at"
    words = ("log", "-z", f"-n{COMMITS_MAX}", "--encoding=UTF-8", "--no-color", "--no-mailmap")
    with reader.output(*words, form, head, f"^{start}", seconds=COMMITS_SECONDS) as pipe:
        data = pipe.read(COMMITS_MAX * 1 << 16)
    fields = [_short(text) for text in data.decode("utf-8", "replace").split("\0")]
    rows = zip(*(fields[at::4] for at in range(4)), strict=False)
    return [Commit(name, subject, author, _instant(at)) for name, subject, author, at in rows]


def _instant(seconds: str) -> Instant:
    """An agent can give its commits any time; one outside of the calendar is its nearest end."""
    known = int(seconds) if seconds.removeprefix("-").isdecimal() else 0
    return min(max(known, 0), SECONDS_MAX) * SECOND


def _short(text: str) -> str:
    return text[:_TEXT_MAX]
