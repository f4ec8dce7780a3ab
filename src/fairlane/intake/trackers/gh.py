"""`gh`, the command line of GitHub: asked for issues, with fewer fields where it knows fewer."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from fairlane.clock import SYSTEM
from fairlane.intake.files import Printed, ask, parse_json
from fairlane.intake.sources.base import Where
from fairlane.model.errors import Invalid, TryLater

WHAT = "a file of `gh issue list --json …`, a repository's folder, or [HOST/]OWNER/NAME"
PROGRAM = "gh"
FIELDS = (
    "number", "title", "body", "labels", "assignees", "milestone", "state", "stateReason",
    "createdAt", "updatedAt", "url", "issueType", "parent", "subIssues", "blockedBy",
)  # fmt: skip
#: gh itself gives 30.
LIMIT = 1000
#: How many single issues are asked for, beside the list.
VIEWS_MAX = 20
NOT_LOGGED_IN = 4
_HOST = r"[\w-]+(?:\.[\w-]+)+(?::\d+)?|localhost(?::\d+)?"
_REPOSITORY = re.compile(rf"(?:(?:{_HOST})/)?[\w.-]+/[\w.-]+")
_UNKNOWN = re.compile(r'[Uu]nknown JSON field:?\s*"?(\w+)')
_KNOWN = re.compile(r"^\s+(\w+)$", re.MULTILINE)
_QUIET = {"GH_PROMPT_DISABLED": "1", "GH_NO_UPDATE_NOTIFIER": "1", "NO_COLOR": "1"}


class Listed(NamedTuple):
    """What was printed."""

    text: str
    all_open: bool  # every open issue of the repository, as long as there are fewer than LIMIT
    state_of: Callable[[str, str], str | None]  # of an issue that is not in it


class Gh:
    """One turn with `gh`, which has a time for all of it."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self._end = SYSTEM.monotonic() + where.seconds
        self._views = 0

    def issues(self) -> Listed:
        """The open issues, or what the command of the settings prints."""
        argv = list(self._where.command or _command(self._where))
        for _ in FIELDS:
            printed = self._ask(argv)
            if printed.code == 0:
                return Listed(printed.out, self._where.command is None, self._state)
            fewer = _fewer(argv, printed.err)
            if fewer is None:
                raise _refused(printed)
            argv = fewer
        raise TryLater("gh knows none of the fields", "Use a newer gh.", "source_unavailable")

    def _state(self, repository: str, number: str) -> str | None:
        """`OPEN` or `CLOSED` of a single issue; None: that cannot be told."""
        program = (self._where.command or (PROGRAM,))[0]
        late = SYSTEM.monotonic() >= self._end
        if late or Path(program).name != PROGRAM or self._views == VIEWS_MAX:
            return None
        self._views += 1
        where = ("--repo", repository) if repository else ()
        try:
            printed = self._ask([program, "issue", "view", number, *where, "--json", "state"])
            found = parse_json(printed.out, program, WHAT) if printed.code == 0 else None
        except (TryLater, Invalid):
            return None
        return str(found.get("state")) if isinstance(found, dict) else None

    def _ask(self, argv: Sequence[str]) -> Printed:
        path = self._where.path
        folder = path if path is not None and path.is_dir() else None
        return ask(argv, max(0.1, self._end - SYSTEM.monotonic()), folder, _QUIET)


def _command(where: Where) -> tuple[str, ...]:
    issues = (PROGRAM, "issue", "list", "--state", "open", "--limit", str(LIMIT))
    asked = (*issues, "--json", ",".join(FIELDS))
    if where.path is None or where.path.is_dir():
        return asked
    name = str(where.path)
    if where.home is not None and where.path.is_relative_to(where.home):
        name = str(where.path.relative_to(where.home))  # of the settings, where paths begin there
    if not _REPOSITORY.fullmatch(name):
        raise Invalid(f"{where.path}: there is no such file", f"Give {WHAT}.", code="unreadable")
    return (*asked, "--repo", name)


def _fewer(argv: Sequence[str], err: str) -> list[str] | None:
    """The same question without the fields that this `gh` does not know."""
    unknown = _UNKNOWN.search(err)
    if unknown is None or "--json" not in argv[:-1]:
        return None
    at = argv.index("--json") + 1
    known = set(_KNOWN.findall(err[unknown.end() :]))
    asked = [name for name in argv[at].split(",") if name != unknown[1]]
    rest = [name for name in asked if not known or name in known]
    return [*argv[:at], ",".join(rest), *argv[at + 1 :]] if rest else None


def _refused(printed: Printed) -> TryLater:
    if printed.code == NOT_LOGGED_IN:
        message, hint = "gh is not logged in", "Log in: gh auth login."
        return TryLater(message, hint, "not_logged_in")
    reason = printed.err.splitlines()[0] if printed.err else f"exit {printed.code}"
    return TryLater(f"gh: {reason}", "Run it by hand to see more.", "source_unavailable")
