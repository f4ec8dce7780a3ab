"""One task: what it says, what happened to it, why it waits, and what its attempts print."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from fairlane.engine.context import Context
from fairlane.model.documents.parts import HoldDocument
from fairlane.model.documents.reports import WhyAnswer
from fairlane.model.documents.tasks import AttemptDocument, FullTaskDocument
from fairlane.model.instant import parse_instant
from fairlane.model.project import Project
from fairlane.page.html import Child, Html, div, icon, join, span, tag
from fairlane.page.parts import act, badge, card, pause_button, project_of, shortened, status_badge
from fairlane.page.shell import switch
from fairlane.page.views import changes, record, transcript, work
from fairlane.page.views.waits import frees
from fairlane.page.words import (
    count,
    dollars,
    file_of,
    length,
    numbers,
    plain,
    sentence,
    short,
    task_address,
    task_link,
    ticking,
)
from fairlane.service import explain
from fairlane.service.reports.listing import show

_IN_FLIGHT = ("leased", "running")
#: Most changes to show that would start it.
CHANGES = 6


class TaskView:
    """One task; a query can name an attempt, and how far back its transcript is read."""

    place = "tasks"

    def __init__(self, task: str, query: Mapping[str, str] | None = None) -> None:
        self.task = self.title = task
        asked = numbers(query or {}, "attempt", "before", "now")
        self.attempt, self.before = asked.get("attempt"), asked.get("before")
        self.changes = changes.Asked(task, self.attempt, bool(asked.get("now")), file_of(query))
        self.address = task_address(task) + (f"?{urlencode(asked)}" if asked else "")

    def regions(self, context: Context) -> dict[str, Html]:
        """Every part that can change."""
        answer = show(context, self.task)
        task, attempts = answer["task"], answer["attempts"]
        with context.store.read() as reading:
            projects = sorted(reading.table(Project))
        queued, why = task["status"] == "queued", explain.why(context, self.task)
        return {
            "switch": switch(context),
            "head": _head(task, attempts, projects),
            "why": _why(why) if queued else _stands(task, why["verdict"], attempts),
            "answer": record.final_answer(answer),
            "work": work.work(answer),
            "checks": work.checks(answer),
            "attempts": record.attempts(task, attempts),
            "says": record.says(answer),
            "history": record.history(answer["events"]),
            "transcript-choice": self._choice(attempts),
            "logmark": record.log_mark(context, answer, self._read(attempts)),
            "dialog-edit": record.edit(task),
        }

    def lasting(self, context: Context) -> dict[str, Html]:
        """What the agent said: its window asks for what is new."""
        attempts = show(context, self.task)["attempts"]
        asked = transcript.Asked(self.task, self.attempt, self.before)
        choice = self._choice(attempts)
        return {
            "transcript": transcript.panel(context, asked, choice, bool(attempts)),
            "changes": changes.panel(context, self.changes),
        }

    def _read(self, attempts: list[AttemptDocument]) -> AttemptDocument | None:
        """The attempt that is read: the chosen one, or the last."""
        chosen = [row for row in attempts if self.attempt in (None, row["attempt"])]
        return chosen[-1] if chosen else None

    def _choice(self, attempts: list[AttemptDocument]) -> Html:
        numbered, read = [row["attempt"] for row in attempts], self._read(attempts)
        return transcript.choice(self.task, numbered, read["attempt"] if read else 0)

    def frame(self, regions: Mapping[str, Html]) -> Html:
        """The layout of the regions."""
        first = div("", *(regions[name] for name in ("why", "answer", "checks")))
        side = tag("aside", regions["says"], regions["work"], aria_label="What it says")
        then = div("", regions["transcript"], record.log_panel(), regions["attempts"])
        past = tag("aside", regions["history"], aria_label="What happened")
        rest = join(regions["dialog-edit"], regions["logmark"])
        rows = (div("task", first, side), regions["changes"], div("task", then, past))
        return div("narrow wide", regions["head"], *rows, rest)


def _head(task: FullTaskDocument, attempts: list[AttemptDocument], projects: list[str]) -> Html:
    name = task["id"]
    age = span("", "added ", ticking(parse_instant(task["created_at"])), " ago")
    facts = [status_badge(task["status"]), span("mono", name)]
    facts += [project_of(task["project"], projects), span("", task["kind"]), age]
    spent = [attempt["usd"] for attempt in attempts if attempt["usd"] is not None]
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


def _buttons(task: FullTaskDocument) -> list[Html]:
    """What can be done with it as it stands."""
    name, status = task["id"], task["status"]
    buttons = []
    if status in ("queued", "parked"):
        edit = (icon("edit"), span("", "Edit"))
        buttons.append(tag("button", *edit, type="button", class_="button", data_open="edit"))
    if status == "parked" or task["backoff_until"]:
        buttons.append(act("retry", "Retry", "retry", {"task": name}))
    if status == "queued":
        buttons.append(pause_button(f"task:{name}", bool(task["paused"]), name))
    if status not in ("done", "canceled"):
        ask = f"{name} is taken out for good"
        ask += "; what runs is stopped." if status in _IN_FLIGHT else "."
        take = act("cancel", "Cancel", "cancel", {"task": name}, "danger", data_confirm=ask)
        buttons.append(take)
    return buttons


def _why(why: WhyAnswer) -> Html:
    """Why it does not run, and what would start it."""
    verdict = sentence(why["verdict"])
    body: list[Child] = [tag("p", verdict, class_="verdict")]
    if why["holds"]:
        first, *others = why["holds"]
        body.append(_holders(first))  # its reason is the verdict
        body.append(tag("ul", [_hold(hold) for hold in others], class_="rows"))
    if why["position"]:
        ahead = why["position"] - 1
        tail = f", {count(ahead, 'task')} ahead." if ahead else "."
        body.append(tag("p", f"Place {why['position']} in its project{tail}", class_="quiet-text"))
    changes = [tag("li", plain(change["change"])) for change in why["would_start_if"][:CHANGES]]
    if changes:
        body += [tag("h3", "It would start if"), tag("ul", changes, class_="changes")]
    score = why["score"]
    if score:
        terms = [f"{name} {value:,}" for name, value in score.items() if name != "total" and value]
        text = f"Score {score['total']:,}" + (f": {', '.join(terms)}" if terms else "")
        body.append(tag("p", text, class_="quiet-text num"))
    return card("why", "Why it waits", join(*body))


def _stands(task: FullTaskDocument, verdict: str, attempts: list[AttemptDocument]) -> Html:
    """How it ended, or where it runs, and what it took."""
    words = sentence(verdict)
    body: list[Child] = [tag("p", words, class_="verdict")]
    if task["reason"] and task["reason"] not in words:
        body.append(tag("p", task["reason"], class_="reason"))
    took = sum(
        parse_instant(attempt["ended_at"]) - parse_instant(attempt["leased_at"])
        for attempt in attempts
        if attempt["ended_at"]
    )
    if took:
        counters = [attempt["tokens"] for attempt in attempts]
        whole = sum(row["input"] + row["cache_write"] + row["output"] for row in counters)
        tokens = short(whole)
        effort = f"{count(len(attempts), 'attempt')}, {length(took)} at work, {tokens} tokens."
        body.append(tag("p", effort, class_="quiet-text num"))
    return card("why", "How it stands", join(*body))


def _hold(hold: HoldDocument) -> Html:
    return tag("li", tag("p", sentence(hold["reason"])), _holders(hold))


def _holders(hold: HoldDocument) -> Html:
    """Whom it waits for, and until when."""
    names = [task_link(name, class_="mono") for name in hold["holders"][:5]]
    return div("facts", names, frees(hold["until"]))
