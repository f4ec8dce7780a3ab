"""The list of tasks: filters, one page at a time, each with what holds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from fairlead.model.errors import FairleadError
from fairlead.model.instant import parse_instant
from fairlead.model.task import Status
from fairlead.page.html import Html, join, tag
from fairlead.page.parts import badge, card, empty, field, project_of, status_badge
from fairlead.page.switch import switch
from fairlead.page.words import count, task_link, ticking
from fairlead.planner.readiness import GATE, SENTENCES
from fairlead.service.desk import Desk
from fairlead.service.reports.listing import list_tasks

#: How many tasks a page holds, and how many names a choice offers.
PAGE = 50
CHOICES = 200
#: Gates by which the list can be narrowed, in words.
_HELD_BY = {
    "paused": "a pause", "cooldown": "a cooldown", "budget": "a budget", "caps": "a cap",
    "locks": "a lock", "workspace": "no workspace", "worker": "no free worker", GATE: "others or time",
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
            words = f"There is no task {self.find!r}."
            missing = tag("p", words, class_="notice warning", role="alert")
        title = tag("h1", "Tasks")
        return tag("div", title, missing, regions["filters"], regions["tasklist"], class_="narrow")

    def _filters(self, projects: list[str], kinds: list[str], groups: list[str]) -> Html:
        chips = [
            tag("label", tag("input", type="checkbox", name="status", value=str(each),
                checked=str(each) in self.statuses), tag("span", str(each)), class_="chip")
            for each in Status
        ]  # fmt: skip
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
        legend = tag("legend", "Status", class_="sr")
        clear = (
            tag("a", "Clear", href="/tasks", class_="button") if self.address != "/tasks" else None
        )
        go = tag("button", "Show", type="submit", class_="button")
        body = tag("form", tag("fieldset", legend, chips), selects, go, clear, action="/tasks",
                   data_auto=True, aria_label="Filters", class_="filters")  # fmt: skip
        return tag("section", body, id="filters", aria_label="Filters")

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
        try:
            found = list_tasks(
                desk, status=self.statuses, after=self.cursor, limit=PAGE, **self.only
            )
        except FairleadError as error:
            return card("tasklist", "Matching", empty(error.message, error.hint))
        rows = [_row(each, projects) for each in found["tasks"]]
        if not rows:
            hint = "Choose other filters, or add a task with the button above."
            return card("tasklist", "Matching", empty("No task fits.", hint))
        body = tag("ol", rows, class_="tasklist", data_list=True)
        return card("tasklist", "Matching", join(body, self._pages(found["cursor"])),
                    f"{count(len(rows), 'task')} on this page, oldest first")  # fmt: skip

    def _pages(self, following: int | None) -> Html:
        kept = [("status", each) for each in self.statuses] + list(self.only.items())
        first = following_page = None
        if self.cursor:
            first = tag("a", "First page", href=f"/tasks?{urlencode(kept)}", class_="button")
        if following is not None:
            query = urlencode([*kept, ("cursor", str(following))])
            following_page = tag(
                "a", "Next page", href=f"/tasks?{query}", class_="button", rel="next"
            )
        return tag("nav", first, following_page, class_="pages", aria_label="Pages")


_NAMES = frozenset({"status", "project", "kind", "group", "held_by", "find", "cursor"})


def _row(each: dict[str, Any], projects: list[str]) -> Html:
    hold = each["hold"]
    why = hold["reason"] if hold else each["reason"]
    until = None
    if hold and hold["until"]:
        until = tag(
            "span", "in ", ticking(parse_instant(hold["until"]), until=True), class_="until"
        )
    facts = [project_of(each["project"], projects), tag("span", each["kind"])]
    facts.append(tag("span", each["id"], class_="mono"))
    if each["group"]:
        facts.append(tag("a", each["group"], href=f"/tasks?{urlencode({'group': each['group']})}"))
    if each["priority"]:
        facts.append(badge(f"priority {each['priority']}"))
    if each["attempts"]:
        facts.append(tag("span", count(each["attempts"], "attempt")))
    if why:
        facts.append(tag("span", why, class_="why"))
    age = ticking(parse_instant(each["ended_at"] or each["created_at"]))
    return tag(
        "li", status_badge(each["status"]),
        tag("div", task_link(each["id"], each["title"] or each["id"], class_="title"),
            tag("div", facts, until, class_="facts")),
        age, data_key=each["id"],
    )  # fmt: skip
