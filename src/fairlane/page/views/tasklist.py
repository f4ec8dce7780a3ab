"""The list of tasks: filters, one page at a time, each with what holds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from fairlane.model.errors import FairlaneError
from fairlane.model.instant import parse_instant
from fairlane.model.task import Status
from fairlane.page.html import Html, div, join, span, tag
from fairlane.page.icons import icon
from fairlane.page.parts import badge, card, empty, field, project_of, status_badge
from fairlane.page.switch import switch
from fairlane.page.views.waits import frees
from fairlane.page.words import count, task_link, ticking
from fairlane.planner.readiness import GATE, SENTENCES
from fairlane.service.desk import Desk
from fairlane.service.reports.listing import list_tasks

#: How many tasks a page holds, and how many names a choice offers.
PAGE = 50
CHOICES = 200
#: What a task has that was given none.
PRIORITY = 100
#: Gates by which the list can be narrowed, in words.
_HELD_BY = {
    "paused": "a pause", "cooldown": "a cooldown", "budget": "a budget", "caps": "a cap",
    "locks": "a lock", "workspace": "no workspace", "worker": "no free worker",
    GATE: "others or time",
}  # fmt: skip


class TaskList:
    """Tasks, narrowed by a query."""

    title = "Tasks"
    place = "tasks"

    def __init__(self, query: Sequence[tuple[str, str]]) -> None:
        given = [(key, value) for key, value in query if value and key in _NAMES]
        one = dict(given)
        self.statuses = [value for key, value in given if key == "status"][:8]
        self.only: dict[str, str] = {
            key: one[key] for key in ("project", "kind", "group", "held_by") if key in one
        }
        self.find = one.get("find", "")
        cursor = one.get("cursor", "0")
        self.cursor = int(cursor) if cursor.isdigit() and len(cursor) < 16 else 0
        self.address = "/tasks" + (f"?{urlencode(given)}" if given else "")

    def regions(self, desk: Desk) -> dict[str, Html]:
        """The filters and the page."""
        with desk.store.read() as reading:
            projects, groups = sorted(reading.projects()), sorted(reading.groups())[:CHOICES]
            kinds = sorted({each.kind for each in reading.tallies()})
        return {
            "switch": switch(desk),
            "filters": self._filters(projects, kinds, groups),
            "tasklist": self._list(desk, projects),
        }

    def frame(self, regions: Mapping[str, Html]) -> Html:
        """Where each part stands."""
        missing = None
        if self.find:
            words = tag("p", f"There is no task {self.find!r}.")
            missing = div("notice warning", icon("warn"), words, role="alert")
        return div("narrow", tag("h1", "Tasks"), missing, regions["filters"], regions["tasklist"])

    def _filters(self, projects: list[str], kinds: list[str], groups: list[str]) -> Html:
        chips = [self._chip(str(each)) for each in Status]
        holds = {**_HELD_BY, **{code: code.replace("_", " ") for code in SENTENCES}}
        known = self.only.get("held_by")
        if known and known not in holds:
            holds[known] = known.replace("_", " ")
        selects = [
            self._choice("Project", "project", {name: name for name in projects[:CHOICES]}),
            self._choice("Kind", "kind", {name: name for name in kinds[:CHOICES]}),
            self._choice("Group", "group", {name: name for name in groups}),
            self._choice("Held by", "held_by", holds),
        ]
        chosen = tag("fieldset", tag("legend", "Status", class_="sr"), chips)
        clear = tag("a", "Clear", href="/tasks", class_="button")
        go = tag("button", "Show", type="submit", class_="button")
        named = {"action": "/tasks", "data_auto": "true", "class_": "filters"}
        rest = (go, clear if self.address != "/tasks" else None)
        body = tag("form", chosen, selects, *rest, aria_label="Filters", **named)
        return tag("section", body, id="filters", aria_label="Filters")

    def _chip(self, status: str) -> Html:
        checked = status in self.statuses
        box = tag("input", type="checkbox", name="status", value=status, checked=checked)
        return tag("label", box, span("", status), class_="chip")

    def _choice(self, label: str, name: str, choices: Mapping[str, str]) -> Html:
        chosen = self.only.get(name, "")
        if chosen and chosen not in choices:
            choices = {**choices, chosen: chosen}
        options = [tag("option", "any", value="", selected=not chosen)]
        options += [
            tag("option", words, value=value, selected=value == chosen)
            for value, words in choices.items()
        ]
        return field(label, tag("select", options, name=name))

    def _list(self, desk: Desk, projects: list[str]) -> Html:
        page = {"after": self.cursor, "limit": PAGE}
        try:
            found = list_tasks(desk, status=self.statuses, **page, **self.only)  # type: ignore[arg-type]
        except FairlaneError as error:
            return card("tasklist", "Matching", empty(error.message, error.hint))
        rows = [_row(each, projects) for each in found["tasks"]]
        if not rows:
            hint = "Choose other filters, or add a task with the button above."
            return card("tasklist", "Matching", empty("No task fits.", hint))
        body = join(
            tag("ol", rows, class_="tasklist", data_list=True), self._pages(found["cursor"])
        )
        about = f"{count(len(rows), 'task')} on this page, oldest first"
        return card("tasklist", "Matching", body, about)

    def _pages(self, following: int | None) -> Html:
        kept = [("status", each) for each in self.statuses] + list(self.only.items())
        links = []
        if self.cursor:
            href = f"/tasks?{urlencode(kept)}"
            links.append(tag("a", "First page", href=href, class_="button"))
        if following is not None:
            href = f"/tasks?{urlencode([*kept, ('cursor', str(following))])}"
            links.append(tag("a", "Next page", href=href, class_="button", rel="next"))
        return tag("nav", links, class_="pages", aria_label="Pages")


_NAMES = frozenset({"status", "project", "kind", "group", "held_by", "find", "cursor"})


def _row(each: dict[str, Any], projects: list[str]) -> Html:
    hold = each["hold"]
    facts = [
        project_of(each["project"], projects),
        span("", each["kind"]),
        span("mono", each["id"]),
    ]
    if each["group"]:
        facts.append(tag("a", each["group"], href=f"/tasks?{urlencode({'group': each['group']})}"))
    if each["priority"] != PRIORITY:
        facts.append(badge(f"priority {each['priority']}"))
    if each["attempts"]:
        facts.append(span("", count(each["attempts"], "attempt")))
    why = hold["reason"] if hold else each["reason"]
    if why:
        facts.append(span("why", why))
    link = task_link(each["id"], each["title"] or each["id"], class_="title")
    words = div("", link, div("facts", facts, frees(hold["until"] if hold else None)))
    when = ticking(parse_instant(each["ended_at"] or each["created_at"]))
    since = "ended" if each["ended_at"] else "added"
    age = span(
        "age", span("sr", f"{since} "), when, span("sr", " ago"), title=f"{since} so long ago"
    )
    return tag("li", status_badge(each["status"]), words, age, data_key=each["id"])
