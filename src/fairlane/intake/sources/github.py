"""GitHub issues: what `gh issue list --json` prints, from a file or from `gh` itself.

Labels are hints: `priority:high` or `P1`, and `kind:review`; no label keeps an issue from being
taken. What blocks an issue comes first, by its field or by its text. An issue with sub-issues is a
group and its last task; a milestone is a group for issues that are part of none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fairlane.intake import outline
from fairlane.intake.files import parse_json, read_text
from fairlane.intake.naming import name_for
from fairlane.intake.sources.base import Collection, Found, Standing, Where
from fairlane.intake.trackers import gh, issue_text
from fairlane.model.errors import Invalid
from fairlane.model.values import is_name

WHAT = gh.WHAT
PROGRAM = (gh.PROGRAM,)
PRIORITIES = {
    "critical": 25, "urgent": 25, "p0": 25, "high": 50, "p1": 50, "medium": 100, "p2": 100,
    "low": 150, "p3": 150,
}  # fmt: skip
_URL = re.compile(r"https?://[^/]+/([^/]+/[^/]+)/issues/\d+")
_READ = (
    "number", "title", "body", "labels", "state", "stateReason", "parent", "subIssues",
    "subIssuesSummary", "blockedBy", "blocking", "updatedAt",
)  # fmt: skip


def read(where: Where) -> Found:
    """Every issue of the file or of `gh`."""
    text = where.text
    if text is None and where.path is not None and _is_given(where.path):
        text = read_text(where.path, WHAT)
    listed = gh.Gh(where).issues() if text is None else gh.Listed(text, False, _unknown)
    rows = parse_json(listed.text, where.name, WHAT)
    if not isinstance(rows, list):
        raise Invalid(f"{where.name}: not a list of issues", f"Give {WHAT}.", code="unreadable")
    listing = _Listing([row for row in rows if isinstance(row, dict)], listed)
    origin = where.name if where.command is None else where.command[0]
    places = [f"{origin}, record {at} of {len(rows)}" for at in range(1, len(rows) + 1)]
    entries, left_out = outline.each_valid(zip(places, rows, strict=True), listing.entries)
    return outline.Outline(entries, last=True).found(listing.groups.values(), left_out)


def _unknown(repository: str, number: str) -> None:
    """Nobody can be asked about issues that are not in a file."""


def _is_given(path: Path) -> bool:
    """Whether this is a file, or something in its place, rather than a folder or OWNER/NAME."""
    return path.exists() and not path.is_dir()


class _Listing:
    """Issues that were listed together, and who belongs to whom among them."""

    def __init__(self, rows: Sequence[Mapping[str, object]], listed: gh.Listed) -> None:
        self._listed = {_key(row).casefold() for row in rows}
        self._above = {
            _key(sub).casefold(): _key(row) for row in rows for sub in _nodes(row, "subIssues")
        }
        self._all_open = listed.all_open and len(rows) < gh.LIMIT
        self._state_of = listed.state_of
        self.groups: dict[str, Collection] = {}  # milestones, and parents that are not listed

    def entries(self, place: str, row: object) -> Iterator[outline.Entry]:
        """One issue."""
        issue = outline.table_of(row)
        outline.line_of(issue, "number")
        title = outline.line_of(issue, "title")
        labels = [str(node.get("name", "")) for node in _nodes(issue, "labels")]
        under, parent = self._place(issue)
        whole = f"{parent.id} {parent.title}".strip() if parent else ""
        text = [("", issue.get("body")), ("Issue", issue.get("url")), ("Part of", whole)]
        record = {
            "id": _task_id(issue),
            "title": title,
            "prompt": outline.prompt_of(title, text),
            "meta": outline.leftover(issue, _READ) | {"labels": labels},
        } | _hints(labels)
        needs, outside = self._blockers(issue)
        group = parent or self._milestone(issue)
        yield outline.Entry(
            _short(_key(issue)),
            record,
            Standing.OPEN if _is_open(issue) else Standing.CLOSED,
            tuple(needs),
            under,
            group.id if group else None,
            "blocked by " + ", ".join(outside) if outside else "",
            "" if _is_open(issue) else str(issue.get("stateReason") or "closed").lower(),
            place,
            outline.text_of(issue.get("body")),
        )

    def _blockers(self, issue: Mapping[str, object]) -> tuple[list[str], list[str]]:
        """What comes first: issues that are listed, and open ones that are not."""
        named = [_key(node) for node in _nodes(issue, "blockedBy") if _is_open(node)]
        closed = [_key(node) for node in _nodes(issue, "blockedBy") if not _is_open(node)]
        if _is_open(issue):
            named += [key for key in self._said(issue) if key not in closed]
        needs: list[str] = []
        outside: list[str] = []
        for key in dict.fromkeys(named):
            if key.casefold() in self._listed:
                needs.append(_short(key))
            else:
                outside.append(key)
        return needs, outside

    def _said(self, issue: Mapping[str, object]) -> Iterator[str]:
        """The issues that its text waits for, without those that are known to be closed."""
        own = _key(issue)
        for repository, number in issue_text.blockers(outline.text_of(issue.get("body"))):
            key = f"{repository or _repository(own)}#{number}"
            here = _repository(key).casefold() == _repository(own).casefold()
            if key.casefold() == own.casefold():
                continue
            if key.casefold() in self._listed:
                yield key
            elif not (here and self._all_open):
                state = self._state_of(_repository(_address(issue, key)), number)
                if str(state).upper() != "CLOSED":
                    yield key

    def _place(self, issue: Mapping[str, object]) -> tuple[str | None, Collection | None]:
        """The issue that it is part of: one that is listed, or one that is only named."""
        parent = issue.get("parent")
        named = parent if isinstance(parent, dict) else {}
        above = _key(named) if named else self._above.get(_key(issue).casefold())
        if above is None or above.casefold() in self._listed:
            return (None if above is None else _short(above)), None
        here = _repository(above) == _repository(_key(issue))
        shown = _short(above) if here else above
        made = Collection(shown, _task_id(named), str(named.get("title", "")))
        return None, self.groups.setdefault(above, made)

    def _milestone(self, issue: Mapping[str, object]) -> Collection | None:
        milestone = issue.get("milestone")
        title = milestone.get("title") if isinstance(milestone, dict) else milestone
        if not isinstance(title, str) or not title.strip():
            return None
        name = name_for(_repository(_key(issue)).rpartition("/")[2] or "gh", title)
        made = Collection(f"milestone:{title}", name, title)
        return self.groups.setdefault(made.id, made)


def _key(issue: Mapping[str, object]) -> str:
    """`owner/name#12`; `#12` where the issue has no address."""
    address = _URL.match(str(issue.get("url", "")))
    return f"{address[1] if address else ''}#{issue.get('number')}"


def _address(issue: Mapping[str, object], key: str) -> str:
    """The key of another issue with the host of this one, where that is not github.com."""
    host = re.match(r"https?://([^/]+)/", str(issue.get("url", "")))
    usual = host is None or host[1] == "github.com" or not _repository(key)
    return key if usual or host is None else f"{host[1]}/{key}"


def _repository(key: str) -> str:
    return key.rpartition("#")[0]


def _short(key: str) -> str:
    return key.rpartition("#")[2]


def _task_id(issue: Mapping[str, object]) -> str:
    """`name-12`, by the repository's name; `gh-12` without one."""
    key = _key(issue)
    return name_for(_repository(key).rpartition("/")[2] or "gh", _short(key))


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
