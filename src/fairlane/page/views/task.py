"""One task: what it says, what happened to it, why it waits, and what its attempts print."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from fairlane.model.instant import parse_instant
from fairlane.page.html import Child, Html, div, join, span, tag
from fairlane.page.icons import icon
from fairlane.page.parts import act, badge, card, project_of, status_badge
from fairlane.page.switch import switch
from fairlane.page.views import log, record
from fairlane.page.views.waits import frees
from fairlane.page.words import (
    count,
    dollars,
    length,
    plain,
    sentence,
    short,
    shortened,
    task_link,
    ticking,
)
from fairlane.service import whys
from fairlane.service.desk import Desk
from fairlane.service.reports.listing import show

_IN_FLIGHT = ("leased", "running")
#: How many ways to start it are told.
CHANGES = 6


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
        task, attempts = found["task"], found["attempts"]
        with desk.store.read() as reading:
            projects = sorted(reading.projects())
        queued, why = task["status"] == "queued", whys.why(desk, self.task)
        return {
            "switch": switch(desk),
            "head": _head(task, attempts, projects),
            "why": _why(task, why) if queued else _stands(task, why["verdict"], attempts),
            "attempts": record.attempts(task, attempts),
            "says": record.says(found),
            "history": record.history(found["events"]),
            "logmark": log.mark(desk, task, attempts),
            "dialog-edit": record.edit(task),
        }

    def frame(self, regions: Mapping[str, Html]) -> Html:
        """Where each part stands."""
        left = div("", regions["why"], regions["attempts"], log.panel(), regions["history"])
        side = tag("aside", regions["says"], aria_label="What it says")
        rest = join(regions["dialog-edit"], regions["logmark"])
        return div("narrow wide", regions["head"], div("task", left, side), rest)


def _head(task: dict[str, Any], attempts: list[dict[str, Any]], projects: list[str]) -> Html:
    name = task["id"]
    age = span("", "added ", ticking(parse_instant(task["created_at"])), " ago")
    facts = [status_badge(task["status"]), span("mono", name)]
    facts += [project_of(task["project"], projects), span("", task["kind"]), age]
    spent = [each["usd"] for each in attempts if each["usd"] is not None]
    if spent:
        facts.append(span("num", dollars(sum(spent))))
    if task["stop_requested"]:
        facts.append(badge("stopping", "bad"))
    back = tag("a", "Tasks", href="/tasks")
    slash = span("", " / ", aria_hidden="true")
    trail = tag("nav", back, slash, name, class_="trail", aria_label="Where you are")
    heading = tag("h1", shortened(task["title"] or name))
    titled = div("titled", heading, div("buttons", _buttons(task)))
    return tag("section", trail, titled, div("facts", facts), id="head", aria_label="Task")


def _buttons(task: dict[str, Any]) -> list[Html]:
    """What can be done with it as it stands."""
    name, status = task["id"], task["status"]
    found = []
    if status in ("queued", "parked"):
        edit = (icon("edit"), span("", "Edit"))
        found.append(tag("button", *edit, type="button", class_="button", data_open="edit"))
    if status == "parked" or task["backoff_until"]:
        found.append(act("retry", "Retry", "retry", {"task": name}))
    if status == "queued":
        scope = {"scope": f"task:{name}"}
        verb, words, sign = (
            ("resume", "Resume", "play") if task["paused"] else ("pause", "Pause", "pause")
        )
        found.append(act(verb, words, sign, scope, label=f"{words} {name}"))
    if status not in ("done", "canceled"):
        ask = f"{name} is taken out for good"
        ask += "; what runs is stopped." if status in _IN_FLIGHT else "."
        found.append(act("cancel", "Cancel", "cancel", {"task": name}, kind="danger", confirm=ask))
    return found


def _why(task: dict[str, Any], why: dict[str, Any]) -> Html:
    """Why it does not run, and what would start it."""
    verdict = sentence(why["verdict"])
    body: list[Child] = [tag("p", verdict, class_="verdict")]
    if why["holds"]:
        first, *others = why["holds"]
        body.append(_holders(first))  # its reason is the verdict
        body.append(tag("ul", [_hold(each) for each in others], class_="rows"))
    if why["position"]:
        ahead = why["position"] - 1
        tail = f", {count(ahead, 'task')} ahead." if ahead else "."
        body.append(tag("p", f"Place {why['position']} in its project{tail}", class_="quiet-text"))
    changes = [tag("li", plain(each["change"])) for each in why["would_start_if"][:CHANGES]]
    if changes:
        body += [tag("h3", "It would start if"), tag("ul", changes, class_="changes")]
    score = why["score"]
    if score:
        parts = [f"{key} {value:,}" for key, value in score.items() if key != "total" and value]
        told = f"Score {score['total']:,}" + (f": {', '.join(parts)}" if parts else "")
        body.append(tag("p", told, class_="quiet-text num"))
    return card("why", "Why it waits", join(*body))


def _stands(task: dict[str, Any], verdict: str, attempts: list[dict[str, Any]]) -> Html:
    """How it ended, or where it runs, and what it took."""
    words = sentence(verdict)
    body: list[Child] = [tag("p", words, class_="verdict")]
    if task["reason"] and task["reason"] not in words:
        body.append(tag("p", task["reason"], class_="reason"))
    took = sum(
        parse_instant(each["ended_at"]) - parse_instant(each["leased_at"])
        for each in attempts
        if each["ended_at"]
    )
    if took:
        tokens = sum(each["tokens"]["input"] + each["tokens"]["output"] for each in attempts)
        told = f"{count(len(attempts), 'attempt')}, {length(took)} at work, {short(tokens)} tokens."
        body.append(tag("p", told, class_="quiet-text num"))
    return card("why", "How it stands", join(*body))


def _hold(each: dict[str, Any]) -> Html:
    return tag("li", tag("p", sentence(each["reason"])), _holders(each))


def _holders(each: dict[str, Any]) -> Html:
    """Whom it waits for, and until when."""
    names = [task_link(name, class_="mono") for name in each["holders"][:5]]
    return div("facts", names, frees(each["until"]))
