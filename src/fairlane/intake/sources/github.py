"""GitHub issues: what `gh issue list --json` prints, from a file or from `gh` itself.

Fields that an older `gh` does not know are left out. Labels are hints: `priority:high` or `P1`,
and `kind:review`; no label keeps an issue from being taken. What blocks an issue comes first; an
issue with open sub-issues is a group.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fairlane.clock import SYSTEM
from fairlane.intake import outline
from fairlane.intake.files import Printed, ask, parse_json, read_text
from fairlane.intake.sources.base import Collection, Found, Standing, Where
from fairlane.model.errors import Invalid, TryLater
from fairlane.model.values import is_name

WHAT = "a file of `gh issue list --json …`, a repository's folder, or OWNER/NAME"
PROGRAM = ("gh",)
FIELDS = (
    "number", "title", "body", "labels", "assignees", "milestone", "state", "stateReason",
    "createdAt", "updatedAt", "url", "issueType", "parent", "subIssues", "blockedBy",
)  # fmt: skip
#: gh itself gives 30.
LIMIT = "1000"
PRIORITIES = {
    "critical": 25, "urgent": 25, "p0": 25, "high": 50, "p1": 50, "medium": 100, "p2": 100,
    "low": 150, "p3": 150,
}  # fmt: skip
NOT_LOGGED_IN = 4
_URL = re.compile(r"https?://[^/]+/([^/]+/[^/]+)/issues/\d+")
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
_UNKNOWN = re.compile(r'[Uu]nknown JSON field:?\s*"?(\w+)')
_KNOWN = re.compile(r"^\s+(\w+)$", re.MULTILINE)
_READ = (
    "number", "title", "body", "labels", "state", "stateReason", "parent", "subIssues",
    "subIssuesSummary", "blockedBy", "blocking", "updatedAt",
)  # fmt: skip
_QUIET = {"GH_PROMPT_DISABLED": "1", "GH_NO_UPDATE_NOTIFIER": "1", "NO_COLOR": "1"}


def read(where: Where) -> Found:
    """Every issue of the file or of `gh`."""
    text = where.text
    if text is None and where.path is not None and _is_given(where.path):
        text = read_text(where.path, WHAT)
    if text is None:
        text = _ask(where)
    rows = parse_json(text, where.name, WHAT)
    if not isinstance(rows, list):
        raise Invalid(f"{where.name}: not a list of issues", f"Give {WHAT}.", code="unreadable")
    listing = _Listing([row for row in rows if isinstance(row, dict)])
    origin = where.name if where.command is None else where.command[0]
    places = [f"{origin}, record {at} of {len(rows)}" for at in range(1, len(rows) + 1)]
    entries, left_out = outline.each_valid(zip(places, rows, strict=True), listing.entries)
    return outline.Outline(entries).found(listing.parents.values(), left_out)


def _is_given(path: Path) -> bool:
    """Whether this is a file, or something in its place, rather than a folder or OWNER/NAME."""
    return path.exists() and not path.is_dir()


class _Listing:
    """Issues that were listed together, and who belongs to whom among them."""

    def __init__(self, rows: Sequence[Mapping[str, object]]) -> None:
        self._listed = {_key(row) for row in rows}
        self._above = {_key(sub): _key(row) for row in rows for sub in _nodes(row, "subIssues")}
        self.parents: dict[str, Collection] = {}  # issues that are named as parents, but not listed

    def entries(self, place: str, row: object) -> Iterator[outline.Entry]:
        """One issue."""
        issue = outline.table_of(row)
        outline.line_of(issue, "number")
        title = outline.line_of(issue, "title")
        labels = [str(node.get("name", "")) for node in _nodes(issue, "labels")]
        record = {
            "id": _task_id(issue),
            "title": title,
            "prompt": outline.prompt_of(
                title, [("", issue.get("body")), ("Issue", issue.get("url"))]
            ),
            "meta": outline.leftover(issue, _READ) | {"labels": labels},
        } | _hints(labels)
        blockers = [node for node in _nodes(issue, "blockedBy") if _is_open(node)]
        outside = [_key(node) for node in blockers if _key(node) not in self._listed]
        under, group = self._place(issue)
        yield outline.Entry(
            _short(_key(issue)),
            record,
            Standing.OPEN if _is_open(issue) else Standing.CLOSED,
            tuple(_short(_key(node)) for node in blockers if _key(node) in self._listed),
            under,
            group,
            "blocked by " + ", ".join(outside) if outside else "",
            "" if _is_open(issue) else str(issue.get("stateReason") or "closed").lower(),
            place,
        )

    def _place(self, issue: Mapping[str, object]) -> tuple[str | None, str | None]:
        """The issue that it is part of: one that is listed, or one that is only named."""
        parent = issue.get("parent")
        above = _key(parent) if isinstance(parent, dict) else self._above.get(_key(issue))
        if above is None or above in self._listed:
            return (None if above is None else _short(above)), None
        here = _repository(above) == _repository(_key(issue))
        shown, named = _short(above) if here else above, parent if isinstance(parent, dict) else {}
        made = Collection(shown, _task_id(named), str(named.get("title", "")))
        return None, self.parents.setdefault(above, made).id


def _key(issue: Mapping[str, object]) -> str:
    """`owner/name#12`; `#12` where the issue has no address."""
    address = _URL.match(str(issue.get("url", "")))
    return f"{address[1] if address else ''}#{issue.get('number')}"


def _repository(key: str) -> str:
    return key.rpartition("#")[0]


def _short(key: str) -> str:
    return key.rpartition("#")[2]


def _task_id(issue: Mapping[str, object]) -> str:
    """`name-12`, by the repository's name; `gh-12` without one."""
    key = _key(issue)
    return outline.as_name(_repository(key).rpartition("/")[2] or "gh", _short(key))


def _is_open(issue: Mapping[str, object]) -> bool:
    return str(issue.get("state") or "OPEN").upper() != "CLOSED"


def _nodes(issue: Mapping[str, object], key: str) -> list[dict[str, object]]:
    """A list of records, bare or as `{"nodes": […]}`."""
    value = issue.get(key)
    if isinstance(value, dict):
        return _nodes(value, "nodes") if "nodes" in value else []
    return [node for node in outline.list_of(issue, key) if isinstance(node, dict)]


def _hints(labels: Sequence[str]) -> dict[str, object]:
    """Priority and kind from labels."""
    hints: dict[str, object] = {}
    for label in labels:
        sort, sign, word = label.lower().replace("/", ":").partition(":")
        word = word.strip() if sign else sort.strip()
        if sort == "kind" and sign and is_name(word):
            hints.setdefault("kind", word)
        elif word in PRIORITIES and (sort in ("priority", "prio") or re.fullmatch(r"p\d", word)):
            hints.setdefault("priority", PRIORITIES[word])
    return hints


def _ask(where: Where) -> str:
    """What `gh` prints, asked for fewer fields where it knows fewer."""
    argv = list(where.command or _command(where))
    folder = where.path if where.path is not None and where.path.is_dir() else None
    end = SYSTEM.monotonic() + where.seconds
    for _ in FIELDS:
        printed = ask(argv, max(0.1, end - SYSTEM.monotonic()), folder, _QUIET)
        if printed.code == 0:
            return printed.out
        fewer = _fewer(argv, printed.err)
        if fewer is None:
            raise _refused(printed)
        argv = fewer
    raise TryLater("gh knows none of the fields", "Use a newer gh.", "source_unavailable")


def _command(where: Where) -> tuple[str, ...]:
    issues = ("gh", "issue", "list", "--state", "open", "--limit", LIMIT)
    asked = (*issues, "--json", ",".join(FIELDS))
    if where.path is None or where.path.is_dir():
        return asked
    if not _REPOSITORY.fullmatch(str(where.path)):
        raise Invalid(f"{where.path}: there is no such file", f"Give {WHAT}.", code="unreadable")
    return (*asked, "--repo", str(where.path))


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
