"""The record of a task: its attempts, what it says, its history, and the form that changes it."""

from __future__ import annotations

from typing import Any

from fairlane.model.instant import parse_instant
from fairlane.page.dialogs import dialog, form, line
from fairlane.page.html import Child, Html, div, join, span, tag
from fairlane.page.parts import badge, card, empty, field, table
from fairlane.page.words import (
    count,
    dollars,
    length,
    moment,
    sentence,
    short,
    shortened,
    task_link,
    ticking,
)

_WORDS = {
    "added": "was added", "leased": "was given to a worker", "parked": "was parked",
    "retry": "was put back", "cancel": "was canceled", "edited": "was changed",
    "throttled": "was throttled", "lost": "was lost", "released": "was given back",
    "launch_failed": "could not be launched",
}  # fmt: skip
_TONES = {
    "succeeded": "good", "failed": "bad", "launch_failed": "bad", "lost": "bad",
    "throttled": "warn", "environment": "warn", None: "live",
}  # fmt: skip
#: What nobody reads in the data of an event.
_INNER = frozenset({"fence", "lease", "expires_at"})
#: How many dependents are named, and how much of an event's data is shown.
NAMED = 20
DATA_LETTERS = 300


def attempts(task: dict[str, Any], found: list[dict[str, Any]]) -> Html:
    """Every try, newest first."""
    if not found:
        return card("attempts", "Attempts", empty("It has not been started."))
    head = ["#", "Outcome", "Started", "Took", "In", "Out", "Cost", "Worker", "Detail", "Log"]
    rows = [_attempt(each, task["status"]) for each in reversed(found)]
    body = table("Attempts, newest first", head, rows, (0, 3, 4, 5, 6))
    return card("attempts", "Attempts", body, count(len(found), "attempt"))


def _attempt(each: dict[str, Any], status: str) -> list[Child]:
    start = parse_instant(each["started_at"] or each["leased_at"])
    end, tokens = each["ended_at"], each["tokens"]
    number = each["attempt"]
    button = tag(
        "button", "Log", type="button", class_="quiet", data_attempt=number,
        aria_label=f"Log of attempt {number}",
    )  # fmt: skip
    return [
        number,
        badge(each["outcome"] or status, _TONES.get(each["outcome"], "")),
        moment(start),
        length(parse_instant(end) - start) if end else ticking(start),
        short(tokens["input"]),
        short(tokens["output"]),
        dollars(each["usd"]),
        each["worker"] or "",
        span("detail", each["detail"] or each["note"]),
        button,
    ]


def says(found: dict[str, Any]) -> Html:
    """What was asked for."""
    task = found["task"]
    title = task["title"] if shortened(task["title"]) != task["title"] else ""
    texts = (("Title", title), ("Prompt", task["prompt"]), ("Command", " ".join(task["command"])))
    body: list[Child] = []
    for name, words in texts:
        if words:
            box = {"class_": "prompt", "tabindex": "0", "role": "group", "aria_label": name}
            body += [tag("h3", name), tag("pre", words, **box)]
    rows = [div("", tag("dt", name), tag("dd", value)) for name, value in _facts(found)]
    body.append(tag("dl", rows, class_="says"))
    return card("says", "What it says", join(*body))


def _facts(found: dict[str, Any]) -> list[tuple[str, Child]]:
    task = found["task"]
    estimate, not_before = task["estimate_tokens"], task["not_before"]
    rows: list[tuple[str, Child]] = [
        ("Priority", task["priority"]),
        ("Agent", task["agent"]),
        ("Pool", task["pool"]),
        ("Group", task["group"]),
        ("Parent", task_link(task["parent"]) if task["parent"] else None),
        ("Workspace", task["workspace"]),
        ("Locks", ", ".join(task["locks"])),
        ("Labels", ", ".join(task["labels"])),
        ("Timeout", task["timeout"]),
        ("Most attempts", task["max_attempts"]),
        ("Estimate", f"{estimate:,} tokens" if estimate else None),
        ("Artifacts", ", ".join(task["artifacts"])),
        ("Environment", ", ".join(task["env"])),
        ("Not before", moment(parse_instant(not_before)) if not_before else None),
        ("Needs", _others(found["needs"])),
        ("Needed by", _others(found["dependents"][:NAMED])),
    ]
    return [(name, value) for name, value in rows if value not in (None, "")]


def _others(rows: list[dict[str, Any]]) -> Html:
    return join(
        *(div("", task_link(each["id"], class_="mono"), f" {each['status']}") for each in rows)
    )


def history(events: list[dict[str, Any]]) -> Html:
    """What happened, newest first."""
    rows = []
    for each in reversed(events):
        words = _WORDS.get(each["kind"], each["kind"].replace("_", " "))
        data = [
            f"{key.replace('_', ' ')} {value}"
            for key, value in each["data"].items()
            if key not in _INNER and value not in (None, "", [], {})
        ]
        told = ", ".join(data)[:DATA_LETTERS]
        text = div("", tag("p", sentence(words)), tag("p", told, class_="quiet-text"))
        at = moment(parse_instant(each["at"]))
        rows.append(tag("li", at, text, data_key=str(each["number"])))
    return card("history", "History", tag("ol", rows, class_="history"), "newest first")


def edit(task: dict[str, Any]) -> Html:
    """The dialog that changes what it says; only what differs is sent."""
    not_before = parse_instant(task["not_before"]) // 1000 if task["not_before"] else ""
    number = tag("input", type="number", name="priority", value=task["priority"], step=1)
    when = tag("input", type="datetime-local", name="not_before", step=1, data_instant=not_before)
    project = line("project", value=task["project"], list="known-projects")
    group = line("group", value=task["group"] or "", list="known-groups")
    fields = (
        tag("input", type="hidden", name="task", value=task["id"]),
        field("Title", line("title", value=task["title"])),
        field("Prompt", tag("textarea", task["prompt"], name="prompt", rows=6)),
        div(
            "columns",
            field("Priority", number, "A smaller number starts earlier.", "edit"),
            field("Not before", when, "In your own time.", "edit"),
            field("Project", project),
            field("Group", group),
        ),
    )
    return dialog("edit", f"Edit {task['id']}", form("edit", "Save", *fields), wide=True)
