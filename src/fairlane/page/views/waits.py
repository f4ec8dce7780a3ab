"""What waits: notices, holds by reason, what is parked, pools and budgets."""

from __future__ import annotations

from typing import Any

from fairlane.model.instant import parse_instant
from fairlane.page.drawing import meter
from fairlane.page.html import Html, div, join, span, tag
from fairlane.page.icons import icon
from fairlane.page.parts import act, badge, card, dot, empty, project_of
from fairlane.page.views.scene import Scene
from fairlane.page.words import count, dollars, sentence, short, task_link, ticking

#: How many sentences, pauses, warnings and task ids a list shows; the rest is counted.
SENTENCES = 8
PAUSES = 4
WARNINGS = 4
NAMES = 3


def notice(now: Scene) -> Html:
    """What everybody should know first: pauses, and what is set up wrongly."""
    rows = [_paused(each) for each in now.paused[:PAUSES]]
    more = len(now.paused) - PAUSES
    if more > 0:
        link = tag("a", "projects and groups", href="/groups")
        told = tag("p", f"{count(more, 'more scope')} paused: see ", link, ".")
        rows.append(div("notice paused", icon("pause"), told, data_key="more"))
    said = [each["message"] for each in now.warnings[:WARNINGS]]
    more = len(now.warnings) - WARNINGS
    if more > 0:
        said.append(f"{count(more, 'more warning')}: `fairlane status` has them.")
    rows += [div("notice warning", icon("warn"), tag("p", each)) for each in said]
    return tag("section", rows, id="notice", aria_label="Notices", hidden=not rows)


def _paused(each: dict[str, Any]) -> Html:
    scope = each["scope"]
    what = "Everything is paused" if scope == "all" else f"{scope} is paused"
    by = f" by {each['by']}" if each["by"] else ""
    why = f": {each['reason']}" if each["reason"] else ""
    text = tag("p", tag("strong", what), f"{by}{why}. Nothing in it starts; what runs goes on.")
    button = act("resume", "Resume", "play", {"scope": scope}, label=f"Resume {scope}")
    return div("notice paused", icon("pause"), text, button, data_key=scope)


def holds(now: Scene) -> Html:
    """What waits, by reason, with how many and until when."""
    groups = []
    for title, rows in (("Ready, but held", now.held), ("Waiting", now.waiting)):
        if rows:
            listed = tag("ul", [_hold(each) for each in rows[:SENTENCES]], class_="rows")
            more = len(rows) - SENTENCES
            tail = tag("p", f"and {count(more, 'more reason')}", class_="quiet-text")
            groups.append(div("", tag("h3", title), listed, tail if more > 0 else None))
    total = now.queued["held"] + now.queued["waiting"]
    body = join(groups) if groups else empty("Nothing is held back.")
    return card("holds", "Why the rest waits", body, count(total, "task") if total else "")


def _hold(each: dict[str, Any]) -> Html:
    number = f"{each['count']:,}"
    names = [task_link(name, class_="mono") for name in each["tasks"][:NAMES]]
    more = tag(
        "a", f"all {number}", href=f"/tasks?held_by={each['code']}",
        aria_label=f"all {number} held by {each['code']}",
    )  # fmt: skip
    rest = more if each["count"] > len(names) else None
    words = div(
        "", tag("p", sentence(each["reason"])), div("facts", names, rest, frees(each["until"]))
    )
    key = f"{each['code']}:{each['reason'][:80]}"
    return tag("li", span("tally num", number), words, class_="hold", data_key=key)


def frees(until: str | None) -> Html | None:
    """A countdown, where time alone will help."""
    if not until:
        return None
    return span("until", "frees in ", ticking(parse_instant(until), until=True))


def parked(now: Scene) -> Html:
    """What needs a person."""
    rows = [_parked(each, now) for each in now.parked]
    hint = "What fails too often stops here and waits for you."
    body = tag("ul", rows, class_="rows") if rows else empty("Nothing is parked.", hint)
    more = now.parked_count - len(rows)
    link = tag("a", f"and {more:,} more", href="/tasks?status=parked", class_="more")
    told = count(now.parked_count, "task") if rows else ""
    return card("parked", "Parked", join(body, link if more > 0 else None), told)


def _parked(each: dict[str, Any], now: Scene) -> Html:
    facts = [project_of(each["project"], now.projects), span("mono", each["id"])]
    facts.append(span("", count(each["attempts"], "attempt")))
    words = div(
        "",
        task_link(each["id"], each["title"] or each["id"], class_="title"),
        tag("p", each["reason"] or "no reason was given", class_="reason"),
        div("facts", facts),
    )
    retry = act("retry", "Retry", "retry", {"task": each["id"]}, label=f"Retry {each['id']}")
    return tag("li", words, retry, class_="parked", data_key=each["id"])


def limits(now: Scene) -> Html:
    """Pools with their cooldown, and budgets as bars."""
    pools = tag("ul", [_pool(each) for each in now.pools], class_="rows")
    budgets = tag("ul", [_budget(each) for each in now.budgets], class_="rows")
    body = join(
        tag("h3", "Pools"),
        pools if now.pools else empty("No pool is known."),
        tag("h3", "Budgets"),
        budgets if now.budgets else tag("p", "No budget is set.", class_="quiet-text"),
    )
    return card("limits", "Limits", body)


def _pool(each: dict[str, Any]) -> Html:
    if each["paused"]:
        told = badge("paused", "warn")
    elif each["cooldown"]:
        left = ticking(parse_instant(each["until"]), until=True)
        told = span("until", "cools down, ", left, " left")
    elif each["probing"]:
        told = badge("probing", "warn")
    else:
        told = span("quiet-text", "open")
    tone = "warn" if each["cooldown"] or each["paused"] or each["probing"] else "good"
    cap = f" of {each['cap']}" if each["cap"] is not None else ""
    flying = span("num quiet-text end", f"{each['in_flight']}{cap} in flight")
    cause = tag("p", each["cause"], class_="reason") if each["cooldown"] and each["cause"] else None
    head = div("split", span("", dot(tone), each["name"]), told, flying)
    return tag("li", head, cause, data_key=each["name"])


def _budget(each: dict[str, Any]) -> Html:
    told = dollars if each["unit"] == "usd" else short
    used, reserved, limit = (told(each[key]) for key in ("used", "reserved", "limit"))
    tone = "bad" if each["fraction"] >= 1 else "warn" if each["warn"] else ""
    label = f"budget of {each['scope']}: {used} of {limit} used, {reserved} reserved"
    name = span("", f"{each['scope']} · {each['window']}")
    kept = f" + {reserved} reserved" if each["reserved"] else ""
    head = div("split", name, span("num end", f"{used}{kept} of {limit}"))
    until = frees(each["frees_at"])
    key = f"{each['scope']} {each['window']}"
    return tag("li", head, meter(each["fraction"], label, tone=tone), until, data_key=key)
