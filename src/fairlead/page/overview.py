"""The overview: slots, what is next, what waits and why, who ran when, who got what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from fairlead.model.instant import parse_instant
from fairlead.page import charts
from fairlead.page.drawing import meter
from fairlead.page.html import Html, join, tag
from fairlead.page.icons import icon
from fairlead.page.parts import act, badge, card, dot, empty, project_of
from fairlead.page.scene import SPANS, Scene, scene
from fairlead.page.switch import switch
from fairlead.page.words import count, dollars, short, task_link, ticking
from fairlead.service.desk import Desk

#: How many free slots are drawn; more are counted.
FREE_SHOWN = 12
#: How many sentences and tasks a list shows.
SENTENCES = 8


class Overview:
    """Everything at a glance."""

    title = "Overview"
    place = "overview"

    def __init__(self, query: Mapping[str, str]) -> None:
        self._span = query.get("span") if query.get("span") in SPANS else None
        self.address = "/" + (f"?{urlencode({'span': self._span})}" if self._span else "")

    def regions(self, desk: Desk) -> dict[str, Html]:
        """Every part that can change, by its id."""
        now = scene(desk, self._span)
        return {
            "switch": switch(desk),
            "notice": notice(now),
            "numbers": numbers(now),
            "slots": slots(now),
            "next": next_up(now),
            "timeline": charts.timeline_card(now),
            "holds": holds(now),
            "parked": parked(now),
            "shares": charts.shares_card(now),
            "limits": limits(now),
            "done": charts.throughput_card(now),
            "waits": charts.waits_card(now),
        }

    def frame(self, regions: Mapping[str, Html]) -> Html:
        """Where each part stands."""
        parts = [each for name, each in regions.items() if name != "switch"]
        return join(tag("h1", "Overview", class_="sr"), tag("div", parts, class_="overview"))


def notice(now: Scene) -> Html:
    """What everybody should know first: pauses, and what is set up wrongly."""
    rows = []
    for each in now.paused:
        what = "Everything is paused" if each["scope"] == "all" else f"{each['scope']} is paused"
        by = f" by {each['by']}" if each["by"] else ""
        why = f": {each['reason']}" if each["reason"] else ""
        text = tag("p", tag("strong", what), f"{by}{why}. Nothing in it starts; what runs goes on.")
        button = act("resume", "Resume", "play", {"scope": each["scope"]}, kind="solid",
                     label=f"Resume {each['scope']}")  # fmt: skip
        rows.append(tag("div", icon("pause"), text, button, class_="notice paused"))
    for each in now.warnings[:4]:
        rows.append(tag("div", icon("warn"), tag("p", each["message"]), class_="notice warning"))
    return tag("section", rows, id="notice", aria_label="Notices", hidden=not rows)


def numbers(now: Scene) -> Html:
    """The big numbers."""
    cap, flying = now.room["cap"], now.room["in_flight"]
    of = tag("span", f" / {cap}" if cap is not None else "", class_="of")
    queued = now.queued
    soon = queued["ready"] - queued["held"]
    cells = [
        _number(
            "In flight",
            join(f"{flying:,}", of),
            f"{now.mode} · {now.preset}",
            "/tasks?status=running&status=leased",
        ),
        _number(
            "Ready",
            f"{queued['ready']:,}",
            f"{soon:,} may start now" if soon else "all held",
            "/tasks?status=queued",
        ),
        _number("Held", f"{queued['held']:,}", "ready, but kept back", "#holds"),
        _number(
            "Waiting", f"{queued['waiting']:,}", "for others or a time", "/tasks?held_by=readiness"
        ),
        _number(
            "Parked",
            f"{now.parked_count:,}",
            "need a person" if now.parked_count else "none",
            "/tasks?status=parked",
            "alarm" if now.parked_count else "",
        ),
        _number("Done today", f"{now.done:,}", "since midnight", "/tasks?status=done"),
        _number("Cost today", dollars(now.usd), "as agents report it", "#shares"),
    ]
    title = tag("h2", "How things stand", class_="sr")
    return tag("section", title, tag("dl", cells, class_="numbers"), id="numbers", class_="card")


def _number(name: str, value: Html | str, about: str, href: str, tone: str = "") -> Html:
    words = tag("dd", tag("a", value, href=href, aria_label=None), class_="value num")
    return tag(
        "div",
        tag("dt", name),
        words,
        tag("dd", about, class_="about"),
        class_=tone or None,
        data_key=name,
    )


def slots(now: Scene) -> Html:
    """What runs, oldest first, and what is free."""
    cells = [_slot(each, now) for each in now.running]
    free = now.room["free"]
    if free:
        cells += [_free(number) for number in range(min(free, FREE_SHOWN))]
        if free > FREE_SHOWN:
            cells.append(tag("li", f"and {free - FREE_SHOWN:,} more free", class_="slot free more"))
    if not cells:
        cells = [tag("li", "No slot is open.", class_="slot free")]
    told = (
        count(len(now.running), "slot") + " busy" + (f", {free} free" if free is not None else "")
    )
    tools = tag("button", icon("cap"), "Change cap", type="button", class_="quiet", data_open="cap")
    return card("slots", "Slots", tag("ol", cells, class_="slots"), told, tools)


def _slot(each: dict[str, Any], now: Scene) -> Html:
    head = tag(
        "div", tag("span", class_="pulse", aria_hidden="true"),
        task_link(each["task"], each["title"] or each["task"], class_="title"),
        ticking(parse_instant(each["started_at"] or each["leased_at"])), class_="head",
    )  # fmt: skip
    estimate = each["estimate_tokens"] or 0
    used = each["tokens"] or 0
    words = [project_of(each["project"], now.projects), tag("span", each["task"], class_="mono")]
    if each["attempt"] > 1:
        words.append(badge(f"attempt {each['attempt']}"))
    if each["stop_requested"]:
        words.append(badge("stopping", "bad"))
    cost = f" · {dollars(each['usd'])}" if each["usd"] else ""
    words.append(tag("span", f"{short(used)} tok{cost}", class_="num end"))
    line = each["line"] or ("starting" if each["status"] == "leased" else "no output yet")
    label = f"{used:,} of about {estimate:,} tokens"
    bar = meter(used / estimate if estimate else 0, label)
    body = (head, tag("div", words, class_="facts"), tag("p", line[:200], class_="line mono"), bar)
    return tag("li", *body, class_="slot busy", data_key=each["lease"])


def _free(number: int) -> Html:
    return tag("li", tag("span", "Free"), class_="slot free", data_key=f"free{number}")


def next_up(now: Scene) -> Html:
    """What starts next, numbered, with why."""
    rows = [_next(each, now) for each in now.next_up]
    about = "as slots free up" if now.room["free"] == 0 else "now"
    if any(each["scope"] == "all" for each in now.paused):
        body = empty("Nothing starts while everything is paused.")
    elif rows:
        body = tag("ol", rows, class_="next rows")
    else:
        body = empty(
            "Nothing is ready to start.", "Add a task, or see below what the rest waits for."
        )
    return card("next", "Next up", body, about)


def _next(each: dict[str, Any], now: Scene) -> Html:
    parts = {key: value for key, value in each["score_parts"].items() if value}
    told = " + ".join(f"{key} {value:,}" for key, value in parts.items()) or "no points"
    why = f"score {each['score']:,} = {told}"
    share = _share_words(each["share"])
    facts = tag("div", project_of(each["project"], now.projects), tag("span", each["kind"]),
                tag("span", why, class_="num"), tag("span", share), class_="facts")  # fmt: skip
    return tag("li", task_link(each["task"], each["title"] or each["task"], class_="title"), facts,
               data_key=each["task"])  # fmt: skip


def _share_words(share: dict[str, Any]) -> str:
    """Whose turn it is, in the numbers of the share in force."""
    told = [f"{key} {value:,}" for key, value in share.items() if isinstance(value, int | float)]
    return ", ".join(told[:3])


def holds(now: Scene) -> Html:
    """What waits, by reason, with how many and until when."""
    groups = []
    for title, rows in (("Ready, but held", now.held), ("Waiting", now.waiting)):
        if rows:
            listed = tag("ul", [_hold(each) for each in rows[:SENTENCES]], class_="rows")
            more = len(rows) - SENTENCES
            tail = (
                tag("p", f"and {count(more, 'more reason')}", class_="quiet-text")
                if more > 0
                else None
            )
            groups.append(tag("div", tag("h3", title), listed, tail))
    total = now.queued["held"] + now.queued["waiting"]
    body = join(groups) if groups else empty("Nothing is held back.")
    return card("holds", "Why the rest waits", body, count(total, "task") if total else "")


def _hold(each: dict[str, Any]) -> Html:
    until = None
    if each["until"]:
        until = tag(
            "span", "frees in ", ticking(parse_instant(each["until"]), until=True), class_="until"
        )
    names = [task_link(name, class_="mono") for name in each["tasks"][:3]]
    more = tag("a", f"all {each['count']:,}", href=f"/tasks?held_by={each['code']}",
               aria_label=f"all {each['count']:,} held by {each['code']}")  # fmt: skip
    facts = tag("div", names, more if each["count"] > len(names) else None, until, class_="facts")
    number = tag("span", f"{each['count']:,}", class_="tally num")
    reason = tag("p", sentence(each["reason"]))
    return tag(
        "li",
        number,
        tag("div", reason, facts),
        class_="hold",
        data_key=f"{each['code']}:{each['reason'][:80]}",
    )


def sentence(reason: str) -> str:
    """A reason as a sentence."""
    return reason[:1].upper() + reason[1:]


def parked(now: Scene) -> Html:
    """What needs a person."""
    rows = []
    for each in now.parked:
        retry = act("retry", "Retry", "retry", {"task": each["id"]}, label=f"Retry {each['id']}")
        words = tag("div", task_link(each["id"], each["title"] or each["id"], class_="title"),
                    tag("p", each["reason"] or "no reason was given", class_="reason"),
                    tag("div", project_of(each["project"], now.projects), tag("span", each["id"], class_="mono"),
                        tag("span", count(each["attempts"], "attempt")), class_="facts"))  # fmt: skip
        rows.append(tag("li", words, retry, class_="parked", data_key=each["id"]))
    body = (
        tag("ul", rows, class_="rows")
        if rows
        else empty("Nothing is parked.", "What fails too often stops here and waits for you.")
    )
    more = now.parked_count - len(rows)
    tail = tag("a", f"and {more:,} more", href="/tasks?status=parked") if more > 0 else None
    return card(
        "parked", "Parked", join(body, tail), count(now.parked_count, "task") if rows else ""
    )


def limits(now: Scene) -> Html:
    """Pools with their cooldown, and budgets as bars."""
    pools = [_pool(each) for each in now.pools]
    budgets = [_budget(each) for each in now.budgets]
    body = [
        tag("h3", "Pools"),
        tag("ul", pools, class_="rows") if pools else empty("No pool is known."),
    ]
    body += [
        tag("h3", "Budgets"),
        tag("ul", budgets, class_="rows") if budgets else empty("No budget is set."),
    ]
    return card("limits", "Limits", join(body))


def _pool(each: dict[str, Any]) -> Html:
    cap = f" of {each['cap']}" if each["cap"] is not None else ""
    if each["paused"]:
        told = badge("paused", "warn")
    elif each["cooldown"]:
        told = tag(
            "span",
            "cools down, ",
            ticking(parse_instant(each["until"]), until=True),
            " left",
            class_="until",
        )
    elif each["probing"]:
        told = badge("probing", "warn")
    else:
        told = tag("span", "open", class_="quiet-text")
    name = tag("span", dot("warn" if each["cooldown"] or each["paused"] else "good"), each["name"])
    flying = tag("span", f"{each['in_flight']}{cap} in flight", class_="num quiet-text")
    cause = tag("p", each["cause"], class_="reason") if each["cooldown"] and each["cause"] else None
    return tag("li", tag("div", name, flying, told, class_="split"), cause, data_key=each["name"])


def _budget(each: dict[str, Any]) -> Html:
    money = each["unit"] == "usd"
    used, limit = ((dollars(each[key]) if money else short(each[key])) for key in ("used", "limit"))
    reserved = dollars(each["reserved"]) if money else short(each["reserved"])
    tone = "bad" if each["fraction"] >= 1 else "warn" if each["warn"] else ""
    label = f"budget of {each['scope']}: {used} of {limit} used, {reserved} reserved"
    head = tag(
        "div",
        tag("span", f"{each['scope']} · {each['window']}"),
        tag("span", f"{used} of {limit}", class_="num"),
        class_="split",
    )
    frees = None
    if each["frees_at"]:
        frees = tag(
            "p", "frees in ", ticking(parse_instant(each["frees_at"]), until=True), class_="until"
        )
    return tag(
        "li",
        head,
        meter(each["fraction"], label, tone=tone),
        frees,
        data_key=f"{each['scope']}{each['window']}",
    )
