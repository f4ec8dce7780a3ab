"""What came of a task, as `fairlane show` tells people: its work, its commits, its checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlane.cli.output import count, cut, paint, safe, table, until_text, width, wrapped
from fairlane.model.instant import parse_instant

if TYPE_CHECKING:
    from fairlane.model.documents.tasks import TaskAnswer
    from fairlane.model.documents.work import (
        AttemptCheckDocument,
        ChangeDocument,
        CommitDocument,
        MergeStateDocument,
        WorkDocument,
    )
    from fairlane.model.instant import Instant

#: How many files and commits people see.
FILES_SHOWN, COMMITS_SHOWN = 10, 5
_SHORT = 10  # letters of a commit's name
#: Widest name of a file or author beside what follows it.
_NAME_MAX, _AUTHOR_MAX = 48, 16


def work_text(document: TaskAnswer, now: Instant) -> str:
    """Branch, folder, files and commits."""
    work = document["work"]
    if work is None:
        return ""
    rows = [("branch", _branch(work)), ("folder", work["path"])]
    files = work["files"]
    if work["head"] is not None:
        rows.append(("changed", _changed(work)))
    if (merge := _merge(document["merge_state"])) != "":
        rows.append(("merge", merge))
    lines = [paint("Work:", "bold")]
    lines += [wrapped(safe(text), 13, f"  {name:7}    ") for name, text in rows]
    lines += [_file(file) for file in files[:FILES_SHOWN]]
    if more := len(files[FILES_SHOWN:]) + work["more_files"]:
        task = safe(document["task"]["id"])
        lines.append(f"    … {more:,} more: fairlane diff {task} --stat")
    lines += _commits(work["commits"], now)
    return "\n".join(lines)


def _branch(work: WorkDocument) -> str:
    return work["branch"] if work["base"] is None else f"{work['branch']}, from {work['base']}"


def _changed(work: WorkDocument) -> str:
    files, more = work["files"], work["more_files"]
    added, removed = (sum(file[what] for file in files) for what in ("added", "removed"))
    text = f"{count(len(files) + more, 'file')}, +{added:,} -{removed:,}" if files else "nothing"
    text += f" in the first {len(files):,}" if more else ""
    return f"{text}; not all of it is committed" if work["dirty"] else text


def _merge(state: MergeStateDocument) -> str:
    """What became of it; nothing where nothing was to be done."""
    if state["state"] == "none":
        return ""
    commit = f" as {state['commit'][:_SHORT]}" if state["commit"] else ""
    more = state["hold"]["reason"] if state["hold"] else state["detail"] or state["url"] or ""
    return f"{state['state']}{commit}" + (f": {more}" if more else "")


def _file(file: ChangeDocument) -> str:
    lines = "binary" if file["binary"] else f"+{file['added']:,} -{file['removed']:,}"
    name = cut(safe(file["path"]), min(_NAME_MAX, width() - 24))
    return f"    {file['change']} {name:{_NAME_MAX}} {lines}".rstrip()


def _commits(commits: list[CommitDocument], now: Instant) -> list[str]:
    lines = []
    for commit in commits[:COMMITS_SHOWN]:
        when = until_text(parse_instant(commit["at"]), now)
        tail = f" ({cut(safe(commit['author']), _AUTHOR_MAX)}, {when})"
        room = width() - _SHORT - 5 - len(tail)
        subject = cut(safe(commit["subject"]), max(10, room))
        lines.append(f"    {paint(safe(commit['id'][:_SHORT]), 'yellow')} {subject}{tail}")
    if len(commits) > COMMITS_SHOWN:
        lines.append(f"    … {len(commits) - COMMITS_SHOWN} more commits")
    return lines


def results_text(checks: list[AttemptCheckDocument]) -> str:
    """The checks of the last attempt that had any."""
    if not checks:
        return ""
    last = max(check["attempt"] for check in checks)
    rows = [
        (
            check["attempt"],
            _took(check["seconds"]),
            {True: "passed", False: "failed", None: "not run"}[check["passed"]],
            check["name"]
            if check["exit"] in (None, 0)
            else f"{check['name']} (exit {check['exit']})",
        )
        for check in checks
        if check["attempt"] == last
    ]
    head = ("#", "took", "result", "check")
    tint = {"passed": "green", "failed": "red"}
    return paint("Checks:", "bold") + "\n" + table(head, rows, right=(0, 1), tint=tint)


def _took(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.1f}s"
