"""Groups and projects: how far each is; counts come from lanes, and from tasks only while few."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from fairlead.page.drawing import meter
from fairlead.page.html import Html, tag
from fairlead.page.parts import act, badge, card, empty, project_of
from fairlead.page.switch import switch
from fairlead.page.words import colour, count
from fairlead.service.desk import Desk
from fairlead.service.reports.groups import list_groups
from fairlead.store.base import Reading

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
            counts: Counter[tuple[str, str]] = Counter()
            for each in reading.tallies():
                counts[each.project, str(each.status)] += each.count
            projects = reading.projects()
            paused = {each.scope for each in reading.pauses()}
            rows = [
                _project(
                    name, project.weight, counts, sorted(projects), f"project:{name}" in paused
                )
                for name, project in sorted(projects.items())[:SHOWN]
            ]
            small = counts.total() <= COUNTED_MAX
            bare = [] if small else _bare(reading)
        found = list_groups(desk)["groups"][:SHOWN] if small else bare
        groups = [_group(each) for each in found]
        hint = "A group follows tasks together: fairlead group add NAME, or give one when adding."
        body = tag("ul", groups, class_="rows") if groups else empty("There is no group.", hint)
        about = count(len(groups), "group") + ("" if small else ": only what is ready is counted")
        return {
            "switch": switch(desk),
            "projectlist": card(
                "projectlist",
                "Projects",
                tag("ul", rows, class_="rows"),
                count(len(rows), "project"),
            ),
            "grouplist": card("grouplist", "Groups", body, about if groups else ""),
        }

    def frame(self, regions: Mapping[str, Html]) -> Html:
        """Where each part stands."""
        parts = [regions["projectlist"], regions["grouplist"]]
        return tag(
            "div",
            tag("h1", "Projects and groups"),
            tag("div", parts, class_="halves"),
            class_="narrow wide",
        )


def _bare(reading: Reading) -> list[dict[str, Any]]:
    """Groups without progress."""
    return [
        {"name": name, "parent": group.parent, "progress": "", "total": 0, "by_status": {},
         "stranded": False, "paused": False}
        for name, group in sorted(reading.groups().items())
    ]  # fmt: skip


def _project(
    name: str, weight: int, counts: Counter[tuple[str, str]], known: list[str], paused: bool
) -> Html:
    by = {
        status: counts[name, status] for status in ("queued", "leased", "running", "done", "parked")
    }
    total = sum(by.values())
    done = by["done"]
    told = f"{done:,} of {total:,} done"
    flying = by["leased"] + by["running"]
    head = tag("div", tag("a", project_of(name, known), href=f"/tasks?{urlencode({'project': name})}", class_="title"),
               tag("span", f"weight {weight}", class_="quiet-text num"),
               badge(f"{flying} in flight", "live") if flying else None,
               badge(f"{by['parked']} parked", "bad") if by["parked"] else None,
               tag("span", told, class_="num end"), _pause(f"project:{name}", paused), class_="split")  # fmt: skip
    return tag(
        "li",
        head,
        meter(done / total if total else 0, f"{name}: {told}", tone=colour(name, known)),
        data_key=name,
    )


def _group(each: dict[str, Any]) -> Html:
    by, total = each["by_status"], each["total"]
    under = f"under {each['parent']}" if each["parent"] else ""
    head = tag("div", tag("a", each["name"], href=f"/tasks?{urlencode({'group': each['name']})}", class_="title"),
               tag("span", under, class_="quiet-text"), badge("stranded", "warn") if each["stranded"] else None,
               tag("span", each["progress"], class_="num end"), _pause(f"group:{each['name']}", each["paused"]), class_="split")  # fmt: skip
    part = by.get("done", 0) / total if total else 0
    return tag(
        "li", head, meter(part, f"{each['name']}: {each['progress']}"), data_key=each["name"]
    )


def _pause(scope: str, paused: bool) -> Html:
    if paused:
        return act("resume", "Resume", "play", {"scope": scope}, label=f"Resume {scope}")
    return act("pause", "Pause", "pause", {"scope": scope}, label=f"Pause {scope}")
