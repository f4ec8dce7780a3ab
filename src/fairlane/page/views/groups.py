"""Groups and projects: how far each is; counts come from lanes, and from tasks only while few."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from fairlane.model.project import Project
from fairlane.page.drawing import meter
from fairlane.page.html import Html, div, span, tag
from fairlane.page.parts import act, badge, card, empty, project_of
from fairlane.page.switch import switch
from fairlane.page.words import colour, count
from fairlane.service.desk import Desk
from fairlane.service.reports.groups import list_groups
from fairlane.store.base import Reading

#: With more tasks than this a group's progress is not counted task by task.
COUNTED_MAX = 20_000
SHOWN = 100


class Groups:
    """Projects and groups."""

    title = "Groups"
    place = "groups"
    address = "/groups"

    def regions(self, desk: Desk) -> dict[str, Html]:
        """Every part that can change."""
        with desk.store.read() as reading:
            counts: dict[str, Counter[str]] = {}
            for each in reading.tallies():
                counts.setdefault(each.project, Counter())[str(each.status)] += each.count
            projects = reading.projects()
            paused = {each.scope for each in reading.pauses()}
            counted = sum(by.total() for by in counts.values()) <= COUNTED_MAX
            bare = [] if counted else _bare(reading)
        known = sorted(projects)
        rows = [
            _project(
                projects[name], counts.get(name, Counter()), known, f"project:{name}" in paused
            )
            for name in known[:SHOWN]
        ]
        groups = list_groups(desk)["groups"][:SHOWN] if counted else bare
        return {
            "switch": switch(desk),
            "projectlist": card(
                "projectlist",
                "Projects",
                tag("ul", rows, class_="rows"),
                count(len(rows), "project"),
            ),
            "grouplist": _groups(groups, counted),
        }

    def frame(self, regions: Mapping[str, Html]) -> Html:
        """Where each part stands."""
        parts = [regions["projectlist"], regions["grouplist"]]
        return div("narrow wide", tag("h1", "Projects and groups"), div("halves", parts))


def _groups(found: list[dict[str, Any]], counted: bool) -> Html:
    hint = "A group follows tasks together; name one when you add a task."
    if not found:
        return card("grouplist", "Groups", empty("There is no group.", hint))
    about = count(len(found), "group") + ("" if counted else ", too many tasks to count")
    rows = tag("ul", [_group(each) for each in found], class_="rows")
    return card("grouplist", "Groups", rows, about)


def _bare(reading: Reading) -> list[dict[str, Any]]:
    """Groups without progress."""
    paused = {each.scope for each in reading.pauses()}
    rest = {"progress": "", "total": 0, "by_status": {}, "stranded": False}
    return [
        {"name": name, "parent": group.parent, "paused": f"group:{name}" in paused} | rest
        for name, group in sorted(reading.groups().items())[:SHOWN]
    ]


def _project(project: Project, by: Counter[str], known: list[str], paused: bool) -> Html:
    name, total, flying = project.name, by.total(), by["leased"] + by["running"]
    told = f"{by['done']:,} of {total:,} done"
    link = f"/tasks?{urlencode({'project': name})}"
    head = div(
        "split",
        tag("a", project_of(name, known), href=link, class_="title"),
        span("quiet-text num", f"weight {project.weight}"),
        badge(f"{flying} in flight", "live") if flying else None,
        badge(f"{by['parked']} parked", "bad") if by["parked"] else None,
        span("num end", told),
        _pause(f"project:{name}", paused),
    )
    part = by["done"] / total if total else 0
    bar = meter(part, f"{name}: {told}", tone=colour(name, known))
    return tag("li", head, bar, data_key=name)


def _group(each: dict[str, Any]) -> Html:
    name, total = each["name"], each["total"]
    link = f"/tasks?{urlencode({'group': name})}"
    head = div(
        "split",
        tag("a", name, href=link, class_="title"),
        span("quiet-text", f"under {each['parent']}" if each["parent"] else ""),
        badge("stranded", "warn") if each["stranded"] else None,
        span("num end", each["progress"]),
        _pause(f"group:{name}", each["paused"]),
    )
    part = each["by_status"].get("done", 0) / total if total else 0
    return tag("li", head, meter(part, f"{name}: {each['progress']}"), data_key=name)


def _pause(scope: str, paused: bool) -> Html:
    if paused:
        return act("resume", "Resume", "play", {"scope": scope}, label=f"Resume {scope}")
    return act("pause", "Pause", "pause", {"scope": scope}, label=f"Pause {scope}")
