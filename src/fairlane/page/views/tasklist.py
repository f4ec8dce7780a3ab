"""The list of tasks: filters, one page at a time, each with what holds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from fairlane.engine.context import Context
from fairlane.model.documents.tasks import TaskDocument
from fairlane.model.errors import FairlaneError
from fairlane.model.instant import parse_instant
from fairlane.model.project import Group, Project
from fairlane.model.task import Status
from fairlane.page.html import Html, div, icon, join, span, tag
from fairlane.page.parts import badge, card, chip, empty, field, project_of, status_badge
from fairlane.page.shell import switch
from fairlane.page.views.waits import frees
from fairlane.page.words import count, task_link, ticking
from fairlane.planner.readiness import GATE, SENTENCES
from fairlane.service.reports.listing import list_tasks

#: How many tasks a page holds, and how many names a choice offers.
PAGE = 50
CHOICES = 200
#: What a task has that was given none.
PRIORITY = 100
#: Filters of one value, and every name in a query.
_ONLY: tuple[str, ...] = ("project", "kind", "group", "held_by")
_NAMES = frozenset({"status", "find", "cursor", *_ONLY})
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
        pairs = [(key, value) for key, value in query if value and key in _NAMES]
        one = dict(pairs)
        self.statuses = [value for key, value in pairs if key == "status"][:8]
        self.only = {key: one[key] for key in _ONLY if key in one}
        self.find = one.get("find", "")
        cursor = one.get("cursor", "0")
        self.cursor = int(cursor) if cursor.isdigit() and len(cursor) < 16 else 0
        self.address = "/tasks" + (f"?{urlencode(pairs)}" if pairs else "")

    def regions(self, context: Context) -> dict[str, Html]:
        """The filters and the page."""
        with context.store.read() as reading:
            projects = sorted(reading.table(Project))
            groups = sorted(reading.table(Group))[:CHOICES]
            kinds = sorted({tally.kind for tally in reading.tallies()})
        return {
            "switch": switch(context),
            "filters": self._filters(projects, kinds, groups),
            "tasklist": self._list(context, projects),
        }

    def frame(self, regions: Mapping[str, Html]) -> Html:
        """The layout of the regions."""
        missing = None
        if self.find:
            words = tag("p", f"There is no task {self.find!r}.")
            missing = div("notice warning", icon("warn"), words, role="alert")
        return div("narrow", tag("h1", "Tasks"), missing, regions["filters"], regions["tasklist"])

    def _filters(self, projects: list[str], kinds: list[str], groups: list[str]) -> Html:
        chips = [chip("checkbox", "status", str(row), row in self.statuses) for row in Status]
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

    def _list(self, context: Context, projects: list[str]) -> Html:
        page = {"cursor": self.cursor, "limit": PAGE}
        try:
            answer = list_tasks(context, status=self.statuses, **page, **self.only)  # type: ignore[arg-type]
        except FairlaneError as error:
            return card("tasklist", "Matching", empty(error.message, error.hint))
        rows = [_row(task, projects) for task in answer["tasks"]]
        if not rows:
            hint = "Choose other filters, or add a task with the button above."
            return card("tasklist", "Matching", empty("No task fits.", hint))
        listed = tag("ol", rows, class_="tasklist", data_list=True)
        about = f"{count(len(rows), 'task')} on this page, oldest first"
        return card("tasklist", "Matching", join(listed, self._pages(answer["cursor"])), about)

    def _pages(self, following: int | None) -> Html:
        query = [("status", status) for status in self.statuses] + list(self.only.items())
        links = []
        if self.cursor:
            href = f"/tasks?{urlencode(query)}"
            links.append(tag("a", "First page", href=href, class_="button"))
        if following is not None:
            href = f"/tasks?{urlencode([*query, ('cursor', str(following))])}"
            links.append(tag("a", "Next page", href=href, class_="button", rel="next"))
        return tag("nav", links, class_="pages", aria_label="Pages")


def _row(task: TaskDocument, projects: list[str]) -> Html:
    hold = task["hold"]
    facts = [project_of(task["project"], projects), span("", task["kind"])]
    facts.append(span("mono", task["id"]))
    if task["group"]:
        facts.append(tag("a", task["group"], href=f"/tasks?{urlencode({'group': task['group']})}"))
    if task["priority"] != PRIORITY:
        facts.append(badge(f"priority {task['priority']}"))
    if task["attempts"]:
        facts.append(span("", count(task["attempts"], "attempt")))
    why = hold["reason"] if hold else task["reason"]
    if why:
        facts.append(span("why", why))
    link = task_link(task["id"], task["title"] or task["id"], class_="title")
    words = div("", link, div("facts", facts, frees(hold["until"] if hold else None)))
    when = ticking(parse_instant(task["ended_at"] or task["created_at"]))
    since = "ended" if task["ended_at"] else "added"
    since_when = (span("sr", f"{since} "), when, span("sr", " ago"))
    age = span("age", *since_when, title=f"{since} so long ago")
    return tag("li", status_badge(task["status"]), words, age, data_key=task["id"])
