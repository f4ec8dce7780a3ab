"""One task: what it says, what happened to it, why it waits, and what its attempts print."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from fairlead.model.instant import parse_instant
from fairlead.page.dialogs import dialog, form
from fairlead.page.html import Child, Html, join, tag
from fairlead.page.overview import sentence
from fairlead.page.parts import act, badge, card, empty, field, project_of, status_badge, table
from fairlead.page.switch import switch
from fairlead.page.words import count, dollars, length, moment, short, task_link, ticking
from fairlead.service import whys
from fairlead.service.desk import Desk
from fairlead.service.reports.listing import show

_IN_FLIGHT = ("leased", "running")
_WORDS = {
    "added": "was added", "leased": "was given to a worker", "started": "started",
    "succeeded": "succeeded", "failed": "failed", "parked": "was parked", "retry": "was put back",
    "cancel": "was canceled", "edited": "was changed", "throttled": "was throttled",
    "lost": "was lost", "released": "was given back", "launch_failed": "could not be launched",
}  # fmt: skip


class TaskView:
    """One task."""

    place = "tasks"

    def __init__(self, task: str) -> None:
        self.task = task
        self.title = task
        self.address = f"/task/{quote(task, safe='')}"

    def regions(self, desk: Desk) -> dict[str, Html]:
        """Every part that can change."""
        found = show(desk, self.task)
        task = found["task"]
        with desk.store.read() as reading:
            projects = sorted(reading.projects())
            paused = any(each.scope == f"task:{self.task}" for each in reading.pauses())
        why = whys.why(desk, self.task)
        return {
            "switch": switch(desk),
            "head": _head(task, found["attempts"], projects, paused),
            "why": _why(task, why),
            "attempts": _attempts(task, found["attempts"]),
            "says": _says(found),
            "history": _history(found["events"]),
            "logmark": _logmark(desk, task, found["attempts"]),
            "edit": _edit(task),
        }

    def frame(self, regions: Mapping[str, Html]) -> Html:
        """Where each part stands."""
        left = join(regions["why"], regions["attempts"], _log(), regions["history"])
        side = join(regions["says"])
        columns = tag(
            "div", tag("div", left), tag("aside", side, aria_label="What it says"), class_="task"
        )
        return tag(
            "div",
            regions["head"],
            columns,
            regions["edit"],
            regions["logmark"],
            class_="narrow wide",
        )


def _head(
    task: dict[str, Any], attempts: list[dict[str, Any]], projects: list[str], paused: bool
) -> Html:
    name, status = task["id"], task["status"]
    facts = [
        status_badge(status),
        tag("span", name, class_="mono"),
        project_of(task["project"], projects),
    ]
    facts += [
        tag("span", task["kind"]),
        tag("span", "added ", ticking(parse_instant(task["created_at"])), " ago"),
    ]
    spent = [each["usd"] for each in attempts if each["usd"] is not None]
    if spent:
        facts.append(tag("span", dollars(sum(spent)), class_="num"))
    if task["stop_requested"]:
        facts.append(badge("stopping", "bad"))
    buttons = []
    if status in ("queued", "parked"):
        edit = tag("button", "Edit", type="button", class_="button", data_open="edit")
        buttons.append(edit)
    if status == "parked" or task["backoff_until"]:
        buttons.append(act("retry", "Retry", "retry", {"task": name}, kind="solid"))
    if status == "queued":
        scope = {"scope": f"task:{name}"}
        pause = (
            act("resume", "Resume", "play", scope)
            if paused
            else act("pause", "Pause", "pause", scope)
        )
        buttons.append(pause)
    if status not in ("done", "canceled"):
        ask = f"{name} is taken out for good" + (
            "; what runs is stopped." if status in _IN_FLIGHT else "."
        )
        buttons.append(
            act("cancel", "Cancel", "cancel", {"task": name}, kind="danger", confirm=ask)
        )
    back = tag("a", "Tasks", href="/tasks")
    trail = tag(
        "nav",
        back,
        tag("span", " / ", aria_hidden="true"),
        name,
        class_="trail",
        aria_label="Where you are",
    )
    title = tag("h1", task["title"] or name)
    tools = tag("div", buttons, class_="buttons")
    return tag(
        "section",
        trail,
        tag("div", title, tools, class_="titled"),
        tag("div", facts, class_="facts"),
        id="head",
        aria_label="Task",
    )


def _why(task: dict[str, Any], why: dict[str, Any]) -> Html:
    """Why it does not run, and what would start it; or how it ended."""
    if task["status"] != "queued":
        words = sentence(why["verdict"])
        reason = (
            tag("p", task["reason"], class_="reason")
            if task["reason"] and task["reason"] not in words
            else None
        )
        return card("why", "How it stands", join(tag("p", words, class_="verdict"), reason))
    body: list[Child] = [tag("p", sentence(why["verdict"]), class_="verdict")]
    rows = [_hold(each) for each in why["holds"]]
    if rows:
        body.append(tag("ul", rows, class_="rows"))
    if why["position"]:
        ahead = why["position"] - 1
        body.append(
            tag(
                "p",
                f"Place {why['position']} in its project"
                + (f", {count(ahead, 'task')} ahead." if ahead else "."),
                class_="quiet-text",
            )
        )
    changes = [tag("li", sentence(each["change"])) for each in why["would_start_if"][:6]]
    if changes:
        body += [tag("h3", "It would start if"), tag("ul", changes, class_="changes")]
    score = why["score"]
    if score:
        parts = ", ".join(
            f"{key} {value:,}" for key, value in score.items() if key != "total" and value
        )
        body.append(
            tag(
                "p",
                f"Score {score['total']:,}" + (f": {parts}" if parts else ""),
                class_="quiet-text num",
            )
        )
    return card("why", "Why it waits", join(*body))


def _hold(each: dict[str, Any]) -> Html:
    until = None
    if each["until"]:
        until = tag(
            "span", "frees in ", ticking(parse_instant(each["until"]), until=True), class_="until"
        )
    names = [task_link(name, class_="mono") for name in each["holders"][:5]]
    return tag("li", tag("p", sentence(each["reason"])), tag("div", names, until, class_="facts"))


def _attempts(task: dict[str, Any], attempts: list[dict[str, Any]]) -> Html:
    if not attempts:
        return card("attempts", "Attempts", empty("It has not been started."))
    rows: list[list[Child]] = []
    for each in reversed(attempts):
        start = parse_instant(each["started_at"] or each["leased_at"])
        end = each["ended_at"]
        lasts = length(parse_instant(end) - start) if end else ticking(start)
        outcome = badge(
            each["outcome"] or task["status"],
            _TONES.get(each["outcome"], "live" if not end else ""),
        )
        told = each["detail"] or each["note"]
        tokens = each["tokens"]
        rows.append([
            each["attempt"], outcome, moment(start), lasts, short(tokens["input"]), short(tokens["output"]),
            dollars(each["usd"]), each["worker"] or "", tag("span", told, class_="detail"),
            tag("button", "Log", type="button", class_="quiet", data_attempt=each["attempt"], aria_label=f"Log of attempt {each['attempt']}"),
        ])  # fmt: skip
    head = ["Nr", "Outcome", "Started", "Took", "In", "Out", "Cost", "Worker", "Detail", "Log"]
    return card(
        "attempts",
        "Attempts",
        table("Attempts, newest first", head, rows, (0, 3, 4, 5, 6)),
        count(len(attempts), "attempt"),
    )


_TONES = {
    "succeeded": "good",
    "failed": "bad",
    "launch_failed": "bad",
    "lost": "bad",
    "throttled": "warn",
    "environment": "warn",
}


def _says(found: dict[str, Any]) -> Html:
    task = found["task"]
    body: list[Child] = []
    if task["prompt"]:
        body += [
            tag("h3", "Prompt"),
            tag(
                "pre",
                task["prompt"],
                class_="prompt",
                tabindex=0,
                role="group",
                aria_label="Prompt",
            ),
        ]
    if task["command"]:
        body += [
            tag("h3", "Command"),
            tag(
                "pre",
                " ".join(task["command"]),
                class_="prompt",
                tabindex=0,
                role="group",
                aria_label="Command",
            ),
        ]
    facts: list[tuple[str, Child]] = [
        (name, value)
        for name, value in (
            ("Priority", task["priority"]), ("Agent", task["agent"]), ("Pool", task["pool"]),
            ("Group", task["group"]), ("Parent", task["parent"]), ("Workspace", task["workspace"]),
            ("Locks", ", ".join(task["locks"])), ("Labels", ", ".join(task["labels"])),
            ("Timeout", task["timeout"]), ("Most attempts", task["max_attempts"]),
            ("Estimate", f"{task['estimate_tokens']:,} tokens" if task["estimate_tokens"] else None),
            ("Artifacts", ", ".join(task["artifacts"])), ("Variables of its environment", ", ".join(task["env"])),
        )
        if value not in (None, "")
    ]  # fmt: skip
    if task["not_before"]:
        facts.append(("Not before", moment(parse_instant(task["not_before"]))))
    for name, rows in (("Needs", found["needs"]), ("Needed by", found["dependents"][:20])):
        if rows:
            facts.append(
                (
                    name,
                    join(
                        *(
                            tag("span", task_link(each["id"], class_="mono"), f" {each['status']} ")
                            for each in rows
                        )
                    ),
                )
            )
    body.append(
        tag(
            "dl",
            [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts],
            class_="says",
        )
    )
    return card("says", "What it says", join(*body))


def _history(events: list[dict[str, Any]]) -> Html:
    rows = []
    for each in reversed(events):
        words = _WORDS.get(each["kind"], each["kind"].replace("_", " "))
        data = ", ".join(
            f"{key} {value}"
            for key, value in each["data"].items()
            if value not in (None, "", [], {})
        )
        rows.append(
            tag(
                "li",
                moment(parse_instant(each["at"])),
                tag("div", tag("p", sentence(words)), tag("p", data[:300], class_="quiet-text")),
                data_key=str(each["number"]),
            )
        )
    return card("history", "History", tag("ol", rows, class_="history"), "newest first")


def _log() -> Html:
    """The live log; its text comes apart, as text."""
    streams = [
        tag(
            "label",
            tag("input", type="radio", name="stream", value=name, checked=name == "stdout"),
            tag("span", name),
            class_="chip",
        )
        for name in ("stdout", "stderr")
    ]
    follow = tag(
        "label",
        tag("input", type="checkbox", id="log-follow", checked=True),
        tag("span", "Follow"),
        class_="chip",
    )
    tools = tag(
        "div",
        tag("fieldset", tag("legend", "Stream", class_="sr"), streams),
        follow,
        class_="log-tools",
    )
    text = tag("pre", id="log-text", tabindex=0, role="log", aria_label="Log", aria_live="off")
    return card(
        "log", "Log", join(tag("p", "", id="log-about", class_="quiet-text num"), text), "", tools
    )


def _logmark(desk: Desk, task: dict[str, Any], attempts: list[dict[str, Any]]) -> Html:
    """How much there is to read: the browser asks for the rest when this changes."""
    last = attempts[-1]["attempt"] if attempts else 0
    folder = desk.home / "runs" / task["id"] / str(last)
    sizes = {}
    for name in ("stdout", "stderr"):
        try:
            sizes[name] = (folder / f"{name}.log").stat().st_size
        except OSError:
            sizes[name] = 0
    return tag(
        "div",
        id="logmark",
        hidden=True,
        data_task=task["id"],
        data_attempt=last,
        data_stdout=sizes["stdout"],
        data_stderr=sizes["stderr"],
    )


def _edit(task: dict[str, Any]) -> Html:
    """The dialog that changes what it says; only what differs is sent."""
    not_before = parse_instant(task["not_before"]) // 1000 if task["not_before"] else ""
    fields = (
        tag("input", type="hidden", name="task", value=task["id"]),
        field("Title", tag("input", type="text", name="title", value=task["title"], autocomplete="off")),
        field("Prompt", tag("textarea", task["prompt"], name="prompt", rows=6)),
        tag("div",
            field("Priority", tag("input", type="number", name="priority", value=task["priority"], step=1)),
            field("Not before", tag("input", type="datetime-local", name="not_before", step=1, data_instant=not_before)),
            field("Project", tag("input", type="text", name="project", value=task["project"], list="known-projects", autocomplete="off")),
            field("Group", tag("input", type="text", name="group", value=task["group"] or "", list="known-groups", autocomplete="off")),
            class_="columns"),
    )  # fmt: skip
    return dialog("edit", f"Edit {task['id']}", form("edit", "Save", *fields), wide=True)
