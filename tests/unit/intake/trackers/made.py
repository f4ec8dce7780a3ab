"""Files as trackers leave them on real disks: odd names, all line ends, half written, too much."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from hypothesis import strategies as st

WORDS = st.sampled_from(
    ["Login form", "Größe: ändern", "don't", 'say "hi"', "日本語", "a #hash", "@ann", "- dash",
     "🎯 aim", "trailing:", "[P] not a tag", "null", "10", "*star*", "a\tb", "x" * 300],
)  # fmt: skip
REASONS = st.sampled_from(
    ["", "failed: exit 1", "a\nb", "--> <!--", "\x1b[31mred", "ä" * 500, "---"]
)
STATUSES = ("queued", "leased", "running", "parked", "done", "canceled")


class Board(NamedTuple):
    """The files of a Backlog.md board: name -> content, and the ids of those that are whole."""

    files: dict[str, bytes]
    whole: dict[str, str]  # name of the file -> id


ASSIGNEES = st.sampled_from(
    ["assignee: []", "assignee: @ann", "assignee: [@ann, '@bob']", "assignee:\n  - '@ann'", ""]
)
EXTRA = st.sampled_from(
    ["", "ordinal: 1000", "priority: high", "labels: [web, 'a: b']", "# a comment",
     "due: 2026-01-30", "milestone: m-1", "mine: {a: 1}", "updated_date: '2026-01-01 10:00'",
     "documentation: []"],
)  # fmt: skip
NOTES = "## Implementation Notes\n\n"
BODIES = st.sampled_from(
    ["", "\n", "\n## Description\n\nDo it.", "\nstatus: To Do\n",
     ("\n## Description\n\n<!-- SECTION:DESCRIPTION:BEGIN -->\nDo it.\n"
     "<!-- SECTION:DESCRIPTION:END -->\n\n## Acceptance Criteria\n<!-- AC:BEGIN -->\n"
     "- [ ] It works\n<!-- AC:END -->\n"),
     f"\n{NOTES}<!-- SECTION:NOTES:BEGIN -->\nmine\n<!-- SECTION:NOTES:END -->\n",
     f"\n{NOTES}mine\n\n## Final Summary\n\nall\n",
     f"\nx\n\n{NOTES}- 2026-01-01 Fairlane: parked\n"],
)  # fmt: skip
HEADS = st.lists(EXTRA, max_size=3, unique_by=lambda text: text.partition(":")[0])


@st.composite
def pages(draw: st.DrawFn, name: str, known: list[str]) -> str:
    """One task's file."""
    status = draw(st.sampled_from(["To Do", "In Progress", "Done", "'To Do'", "to do", None]))
    lines = [f"id: {name}", f"title: {json.dumps(draw(WORDS), ensure_ascii=False)}"]
    lines += [] if status is None else [f"status: {status}{draw(st.sampled_from(['', '  # x']))}"]
    lines += [draw(ASSIGNEES), *draw(HEADS)]
    if known:
        needs = draw(st.lists(st.sampled_from([*known, "task-999"]), max_size=2))
        lines += [f"dependencies: [{', '.join(needs)}]"]
        above = draw(st.sampled_from([None, *known]))
        lines += [f"parent_task_id: {above}"] if above else []
    head = "\n".join(line for line in lines if line)
    return f"---\n{head}\n---\n{draw(BODIES)}"


@st.composite
def boards(draw: st.DrawFn) -> Board:
    """A board of a few tasks; some files are cut, doubled or no text."""
    files: dict[str, bytes] = {}
    whole: dict[str, str] = {}
    for number in range(1, draw(st.integers(1, 5)) + 1):
        name = draw(st.sampled_from([f"task-{number}", f"TASK-{number}", f"back-{number}.1"]))
        page = draw(pages(name, [*whole.values()]))
        text = page.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))
        content = draw(st.sampled_from(["", "\ufeff"])).encode() + text.encode()
        file = f"{name.lower()} - x.md"
        fate = draw(st.sampled_from(["whole"] * 6 + ["cut", "binary", "empty"]))
        if fate == "whole":
            whole[file] = name
        elif fate == "cut":
            content = content[: draw(st.integers(0, max(0, page.index("---\n", 4) - 1)))]
        else:
            content = b"" if fate == "empty" else b"\xff\xfe" + content
        files[file] = content
    return Board(files, whole)


def _task(number: object, title: str, more: dict[str, Any]) -> dict[str, Any]:
    return {"id": number, "title": title, **more}


TASK_STATUS = st.sampled_from(["pending", "in-progress", "done", "deferred", "review", "odd", None])
TASK_MORE = st.fixed_dictionaries(
    {},
    optional={
        "description": WORDS, "details": WORDS,
        "priority": st.sampled_from(["high", "low", 7, None]),
        "updatedAt": st.just("2026-01-01T00:00:00.000Z"), "mine": st.just({"status": "pending"}),
        "dependencies": st.lists(st.sampled_from([1, "2", "1.1", 99]), max_size=2),
        "testStrategy": st.just('"status": "pending"'), "complexity": st.just(3.50),
    },
)  # fmt: skip


@st.composite
def task_rows(draw: st.DrawFn, count: int) -> list[dict[str, Any]]:
    """Tasks or subtasks with ids as numbers or text; some have no status."""
    rows = []
    for number in range(1, count + 1):
        row = _task(draw(st.sampled_from([number, str(number)])), draw(WORDS), draw(TASK_MORE))
        status = draw(TASK_STATUS)
        rows.append(row if status is None else row | {"status": status})
    return rows


@st.composite
def task_files(draw: st.DrawFn) -> str:
    """A tasks.json in either shape, set in any way."""
    tags: dict[str, Any] = {}
    for tag in draw(st.sampled_from([["master"], ["master", "next year"], ["other"]])):
        rows = draw(task_rows(draw(st.integers(0, 3))))
        for row in rows:
            if draw(st.booleans()):
                row["subtasks"] = draw(task_rows(draw(st.integers(0, 3))))
        tags[tag] = {"tasks": rows, "metadata": {"version": 1.0}}
    document = tags["master"] if [*tags] == ["master"] and draw(st.booleans()) else tags
    indent = draw(st.sampled_from([2, 4, "\t", None]))
    text = json.dumps(document, indent=indent, ensure_ascii=draw(st.booleans()))
    text = text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))
    return draw(st.sampled_from(["", "\ufeff"])) + text + draw(st.sampled_from(["", "\n"]))


LINES = st.lists(
    st.one_of(
        st.builds(
            "{}- [{}] {} {}{}{}".format,
            st.sampled_from(["", "  ", "\t"]),
            st.sampled_from([" ", "x", "X", "?"]),
            st.sampled_from(["T001", "T002a", "T3", "**T004**:", "T" + "X" * 2, "t5", "write it"]),
            st.sampled_from(["[P] ", "[US1] [P] ", "[X] ", ""]),
            WORDS,
            st.sampled_from(["", " (depends on T001, T002a)", " (depends on T001-T009)"]),
        ),
        st.sampled_from(
            ["## Phase 1: Setup", "## Phase 2: Foundational", "## Phase 3: User Story 1 (P1)", "##",
             "## Polish", "### Tests", "", "    - more", "```", "  ```", "text", "<!--", "-->"],
        ),
    ),
    max_size=20,
)  # fmt: skip
