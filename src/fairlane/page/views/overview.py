"""The overview: slots, what is next, what waits and why, who ran when, who got what."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from fairlane.engine.context import Context
from fairlane.model.instant import parse_instant
from fairlane.model.project import CLOCK_SCALE
from fairlane.page.drawing import meter
from fairlane.page.html import Html, div, icon, join, span, tag
from fairlane.page.parts import badge, card, empty, project_of
from fairlane.page.shell import switch
from fairlane.page.views import charts, waits
from fairlane.page.views.scene import SPANS, RunningLine, Scene, scene
from fairlane.page.words import dollars, short, task_link, ticking
from fairlane.service.reports.timeline import UpcomingDocument

_TAGS = re.compile(r"<[^>]*>")
#: How many free slots are drawn; more are counted.
FREE_SHOWN = 12


class Overview:
    """Everything at a glance."""

    title = "Overview"
    place = "overview"

    def __init__(self, query: Mapping[str, str]) -> None:
        self._span = query.get("span") if query.get("span") in SPANS else None
        self.address = "/" + (f"?{urlencode({'span': self._span})}" if self._span else "")

    def regions(self, context: Context) -> dict[str, Html]:
        """Every part that can change, by its id."""
        now = scene(context, self._span)
        return {
            "switch": switch(context),
            "notice": waits.notice(now),
            "numbers": numbers(now),
            "slots": slots(now),
            "next": next_up(now),
            "timeline": charts.timeline_card(now),
            "holds": waits.holds(now),
            "parked": waits.parked(now),
            "limits": waits.limits(now),
            "shares": charts.shares_card(now),
            "done": charts.throughput_card(now),
            "waits": charts.waits_card(now),
        }

    def frame(self, regions: Mapping[str, Html]) -> Html:
        """The layout of the regions."""
        parts = [region for name, region in regions.items() if name != "switch"]
        return join(tag("h1", "Overview", class_="sr"), div("overview", parts))


def numbers(now: Scene) -> Html:
    """The big numbers."""
    cap, flying, queued = now.room["cap"], now.room["in_flight"], now.queued
    of = span("of", f" / {cap}") if cap is not None else None
    soon = queued["ready"] - queued["held"]
    may = "none" if not queued["ready"] else f"{soon:,} may start now" if soon else "all held"
    need = "need a person" if now.parked_count else "none"
    tone = "alarm" if now.parked_count else ""
    cells = [
        _number("In flight", join(f"{flying:,}", of), f"{now.mode} · {now.preset}", "#slots"),
        _number("Ready", f"{queued['ready']:,}", may, "/tasks?status=queued"),
        _number("Held", f"{queued['held']:,}", "ready, but kept back", "#holds"),
        _number("Waiting", f"{queued['waiting']:,}", "for others or a time", "#holds"),
        _number("Parked", f"{now.parked_count:,}", need, "/tasks?status=parked", tone),
        _number("Done today", f"{now.done:,}", "since midnight", "/tasks?status=done"),
        _number("Cost today", dollars(now.usd), "as agents report it", "#shares"),
    ]
    title = tag("h2", "How things stand", class_="sr")
    return tag("section", title, tag("dl", cells, class_="numbers"), id="numbers", class_="card")


def _number(name: str, value: Html | str, about: str, href: str, tone: str = "") -> Html:
    said = f"{name}: {_TAGS.sub('', value)}"
    words = tag("dd", tag("a", value, href=href, aria_label=said), class_="value num")
    return div(tone, tag("dt", name), words, tag("dd", about, class_="about"), data_key=name)


def slots(now: Scene) -> Html:
    """What runs, oldest first, and what is free."""
    cells = [_slot(line, now) for line in now.running]
    free = now.room["free"]
    cells += [
        tag("li", span("", "Free"), class_="slot free", data_key=f"free{number}")
        for number in range(min(free or 0, FREE_SHOWN))
    ]
    if free and free > FREE_SHOWN:
        cells.append(tag("li", f"and {free - FREE_SHOWN:,} more free", class_="slot free"))
    if not cells:
        cells = [tag("li", "No slot is open.", class_="slot free")]
    summary = f"{len(now.running):,} busy" + (f", {free:,} free" if free is not None else "")
    cap, flying = now.room["cap"], now.room["in_flight"]
    if cap is not None and free is not None and free < cap - flying:
        summary += f"; the cap allows {cap:,}, the workers have fewer slots"
    change = {"type": "button", "class_": "quiet", "data_open": "cap"}
    tools = tag("button", icon("cap"), "Change cap", **change)
    return card("slots", "Slots", tag("ol", cells, class_="slots"), summary, tools)


def _slot(run: RunningLine, now: Scene) -> Html:
    link = task_link(run["task"], run["title"] or run["task"], class_="title")
    age = ticking(parse_instant(run["started_at"] or run["leased_at"]))
    pulse = span("pulse", aria_hidden="true")
    runs = span("age", span("sr", "for "), age)
    words = [project_of(run["project"], now.projects), span("mono", run["task"])]
    if run["attempt"] > 1:
        words.append(badge(f"attempt {run['attempt']}"))
    if run["stop_requested"]:
        words.append(badge("stopping", "bad"))
    used, estimate = run["tokens"] or 0, run["estimate_tokens"] or 0
    cost = f" · {dollars(run['usd'])}" if run["usd"] else ""
    words.append(span("num end", f"{short(used)} tok{cost}"))
    line = run["line"] or ("starting" if run["status"] == "leased" else "no output yet")
    label = f"{used:,} of about {estimate:,} tokens"
    return tag(
        "li",
        div("head", pulse, link, runs),
        div("facts", words),
        tag("p", line[:200], class_="line mono"),
        meter(used / estimate if estimate else 0, label),
        class_="slot busy",
        data_key=run["lease"],
    )


def next_up(now: Scene) -> Html:
    """What starts next, numbered, with why."""
    rows = [_next(row, now) for row in now.next_up]
    about = "as slots free up" if now.room["free"] == 0 else "now"
    if any(row["scope"] == "all" for row in now.paused):
        body = empty("Nothing starts while everything is paused.")
    elif rows:
        body = tag("ol", rows, class_="next rows")
    else:
        body = empty(*_nothing(now))
    return card("next", "Next up", body, about if rows else "")


def _nothing(now: Scene) -> tuple[str, str]:
    """Why nothing is next, and where to look."""
    if not now.queued["total"]:
        return "The queue is empty.", "Press a to add a task."
    hint = "Below stands what the rest waits for."
    if now.queued["ready"]:
        return "Nothing may start now.", hint
    return "Nothing is ready to start.", hint


def _next(row: UpcomingDocument, now: Scene) -> Html:
    parts = [f"{key} {value:,}" for key, value in row["score_parts"].items() if value]
    facts = [
        project_of(row["project"], now.projects),
        span("", row["kind"]),
        span("num", share_words(row["share"])),
        span("num", f"score {row['score']:,}: {', '.join(parts)}" if parts else "score 0"),
    ]
    link = task_link(row["task"], row["title"] or row["task"], class_="title")
    return tag("li", link, div("facts", facts), data_key=row["task"])


def share_words(share: Mapping[str, Any]) -> str:
    """Whose turn it is, in the numbers that decide: least used for its weight goes first."""
    weight = f"weight {share['weight']}"
    if share.get("clock") is not None:
        return f"{short(share['clock'] / CLOCK_SCALE)} tok a weight"
    if share.get("received") is not None:
        return f"{weight}, got {short(share['received'])} of {short(share['received_by_all'])}"
    return weight
