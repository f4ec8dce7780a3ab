"""Groups and projects: how far each is; counts come from lanes, and from tasks only while few."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from urllib.parse import urlencode

from fairlane.engine.context import Context
from fairlane.model.documents.groups import GroupDocument
from fairlane.model.project import Group, Pause, Project
from fairlane.page.drawing import meter
from fairlane.page.html import Child, Html, div, span, tag
from fairlane.page.parts import badge, card, empty, pause_button, project_of
from fairlane.page.shell import switch
from fairlane.page.words import colour, count
from fairlane.service.reports.groups import list_groups

#: With more tasks than this a group's progress is not counted task by task.
COUNTED_MAX = 20_000
SHOWN = 100


class Groups:
    """Projects and groups."""

    title = "Groups"
    place = "groups"
    address = "/groups"

    def regions(self, context: Context) -> dict[str, Html]:
        """Every part that can change."""
        with context.store.read() as reading:
            counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
            for row in reading.tallies():
                counts[row.project][str(row.status)] += row.count
            projects = reading.table(Project)
            paused = {row.scope for row in reading.table(Pause).values()}
            counted = sum(by.total() for by in counts.values()) <= COUNTED_MAX
            names = sorted(reading.table(Group).items())[:SHOWN]
        known = sorted(projects)
        rows = [
            _project(projects[name], counts[name], known, f"project:{name}" in paused)
            for name in known[:SHOWN]
        ]
        if counted:
            groups = [_counted(group) for group in list_groups(context)["groups"][:SHOWN]]
        else:
            groups = [
                _group(name, group.parent, f"group:{name}" in paused, meter(0, f"{name}: "))
                for name, group in names
            ]
        listed, about = tag("ul", rows, class_="rows"), count(len(rows), "project")
        return {
            "switch": switch(context),
            "projectlist": card("projectlist", "Projects", listed, about),
            "grouplist": _groups(groups, counted),
        }

    def frame(self, regions: Mapping[str, Html]) -> Html:
        """The layout of the regions."""
        parts = [regions["projectlist"], regions["grouplist"]]
        return div("narrow wide", tag("h1", "Projects and groups"), div("halves", parts))


def _groups(rows: list[Html], counted: bool) -> Html:
    hint = "A group follows tasks together; name one when you add a task."
    if not rows:
        return card("grouplist", "Groups", empty("There is no group.", hint))
    about = count(len(rows), "group") + ("" if counted else ", too many tasks to count")
    return card("grouplist", "Groups", tag("ul", rows, class_="rows"), about)


def _project(project: Project, by: Counter[str], known: list[str], paused: bool) -> Html:
    name, total, flying = project.name, by.total(), by["leased"] + by["running"]
    progress = f"{by['done']:,} of {total:,} done"
    link = f"/tasks?{urlencode({'project': name})}"
    head = div(
        "split",
        tag("a", project_of(name, known), href=link, class_="title"),
        span("quiet-text num", f"weight {project.weight}"),
        badge(f"{flying} in flight", "live") if flying else None,
        badge(f"{by['parked']} parked", "bad") if by["parked"] else None,
        span("num end", progress),
        pause_button(f"project:{name}", paused),
    )
    part = by["done"] / total if total else 0
    bar = meter(part, f"{name}: {progress}", tone=colour(name, known))
    return tag("li", head, bar, data_key=name)


def _counted(group: GroupDocument) -> Html:
    badges = [badge("stranded", "warn")] if group["stranded"] else []
    part = group["by_status"]["done"] / group["total"] if group["total"] else 0
    bar = meter(part, f"{group['name']}: {group['progress']}")
    return _group(group["name"], group["parent"], group["paused"], bar, group["progress"], badges)


def _group(
    name: str, parent: str | None, paused: bool, bar: Html, progress: str = "", badges: Child = None
) -> Html:
    head = div(
        "split",
        tag("a", name, href=f"/tasks?{urlencode({'group': name})}", class_="title"),
        span("quiet-text", f"under {parent}" if parent else ""),
        badges,
        span("num end", progress),
        pause_button(f"group:{name}", paused),
    )
    return tag("li", head, bar, data_key=name)
