"""What waits: notices, holds by reason, what is parked, pools and budgets."""

from __future__ import annotations

from fairlane.model.documents.admin import BudgetDocument, PoolDocument
from fairlane.model.documents.parts import HeldDocument, PauseDocument
from fairlane.model.documents.tasks import TaskDocument
from fairlane.model.instant import parse_instant
from fairlane.page.drawing import meter
from fairlane.page.html import Html, div, icon, join, span, tag
from fairlane.page.parts import act, badge, card, dot, empty, pause_button, project_of
from fairlane.page.views.scene import Scene
from fairlane.page.words import count, dollars, sentence, short, task_link, ticking

#: How many sentences, pauses, warnings and task ids a list shows; the rest is counted.
SENTENCES = 8
PAUSES = 4
WARNINGS = 4
NAMES = 3


def notice(now: Scene) -> Html:
    """Notices at the top: pauses and warnings."""
    rows = [_paused(row) for row in now.paused[:PAUSES]]
    more = len(now.paused) - PAUSES
    if more > 0:
        link = tag("a", "projects and groups", href="/groups")
        more_text = tag("p", f"{count(more, 'more scope')} paused: see ", link, ".")
        rows.append(div("notice paused", icon("pause"), more_text, data_key="more"))
    said = [row["message"] for row in now.warnings[:WARNINGS]]
    more = len(now.warnings) - WARNINGS
    if more > 0:
        said.append(f"{count(more, 'more warning')}: `fairlane status` has them.")
    rows += [div("notice warning", icon("warn"), tag("p", row)) for row in said]
    return tag("section", rows, id="notice", aria_label="Notices", hidden=not rows)


def _paused(pause: PauseDocument) -> Html:
    scope = pause["scope"]
    what = "Everything is paused" if scope == "all" else f"{scope} is paused"
    by = f" by {pause['by']}" if pause["by"] else ""
    why = f": {pause['reason']}" if pause["reason"] else ""
    text = tag("p", tag("strong", what), f"{by}{why}. Nothing in it starts; what runs goes on.")
    return div("notice paused", icon("pause"), text, pause_button(scope, True), data_key=scope)


def holds(now: Scene) -> Html:
    """What waits, by reason, with how many and until when."""
    groups = []
    for title, rows in (("Ready, but held", now.held), ("Waiting", now.waiting)):
        if rows:
            listed = tag("ul", [_hold(hold) for hold in rows[:SENTENCES]], class_="rows")
            more = len(rows) - SENTENCES
            tail = tag("p", f"and {count(more, 'more reason')}", class_="quiet-text")
            groups.append(div("", tag("h3", title), listed, tail if more > 0 else None))
    total = now.queued["held"] + now.queued["waiting"]
    body = join(groups) if groups else empty("Nothing is held back.")
    return card("holds", "Why the rest waits", body, count(total, "task") if total else "")


def _hold(hold: HeldDocument) -> Html:
    number = f"{hold['count']:,}"
    names = [task_link(name, class_="mono") for name in hold["tasks"][:NAMES]]
    more = tag(
        "a", f"all {number}", href=f"/tasks?held_by={hold['code']}",
        aria_label=f"all {number} held by {hold['code']}",
    )  # fmt: skip
    rest = more if hold["count"] > len(names) else None
    facts = div("facts", names, rest, frees(hold["until"]))
    words = div("", tag("p", sentence(hold["reason"])), facts)
    key = f"{hold['code']}:{hold['reason'][:80]}"
    return tag("li", span("tally num", number), words, class_="hold", data_key=key)


def frees(until: str | None) -> Html | None:
    """A countdown, where time alone will help."""
    if not until:
        return None
    return span("until", "frees in ", ticking(parse_instant(until), until=True))


def parked(now: Scene) -> Html:
    """What needs a person."""
    rows = [_parked(task, now) for task in now.parked]
    hint = "What fails too often stops here and waits for you."
    body = tag("ul", rows, class_="rows") if rows else empty("Nothing is parked.", hint)
    more = now.parked_count - len(rows)
    link = tag("a", f"and {more:,} more", href="/tasks?status=parked", class_="more")
    summary = count(now.parked_count, "task") if rows else ""
    return card("parked", "Parked", join(body, link if more > 0 else None), summary)


def _parked(task: TaskDocument, now: Scene) -> Html:
    facts = [project_of(task["project"], now.projects), span("mono", task["id"])]
    facts.append(span("", count(task["attempts"], "attempt")))
    words = div(
        "",
        task_link(task["id"], task["title"] or task["id"], class_="title"),
        tag("p", task["reason"] or "no reason was given", class_="reason"),
        div("facts", facts),
    )
    retry = act("retry", "Retry", "retry", {"task": task["id"]}, aria_label=f"Retry {task['id']}")
    return tag("li", words, retry, class_="parked", data_key=task["id"])


def limits(now: Scene) -> Html:
    """Pools with their cooldown, and budgets as bars."""
    pools = tag("ul", [_pool(row) for row in now.pools], class_="rows")
    budgets = tag("ul", [_budget(row) for row in now.budgets], class_="rows")
    body = join(
        tag("h3", "Pools"),
        pools if now.pools else empty("No pool is known."),
        tag("h3", "Budgets"),
        budgets if now.budgets else tag("p", "No budget is set.", class_="quiet-text"),
    )
    return card("limits", "Limits", body)


def _pool(pool: PoolDocument) -> Html:
    if pool["paused"]:
        state = badge("paused", "warn")
    elif pool["until"] is not None:  # it cools down
        left = ticking(parse_instant(pool["until"]), until=True)
        state = span("until", "cools down, ", left, " left")
    elif pool["probing"]:
        state = badge("probing", "warn")
    else:
        state = span("quiet-text", "open")
    tone = "warn" if pool["cooldown"] or pool["paused"] or pool["probing"] else "good"
    cap = f" of {pool['cap']}" if pool["cap"] is not None else ""
    flying = span("num quiet-text end", f"{pool['in_flight']}{cap} in flight")
    cause = tag("p", pool["cause"], class_="reason") if pool["cooldown"] and pool["cause"] else None
    head = div("split", span("", dot(tone), pool["name"]), state, flying)
    return tag("li", head, cause, data_key=pool["name"])


def _budget(budget: BudgetDocument) -> Html:
    shown = dollars if budget["unit"] == "usd" else short
    used, reserved, limit = (shown(budget[key]) for key in ("used", "reserved", "limit"))
    tone = "bad" if budget["fraction"] >= 1 else "warn" if budget["warn"] else ""
    label = f"budget of {budget['scope']}: {used} of {limit} used, {reserved} reserved"
    name = span("", f"{budget['scope']} · {budget['window']}")
    extra = f" + {reserved} reserved" if budget["reserved"] else ""
    head = div("split", name, span("num end", f"{used}{extra} of {limit}"))
    until = frees(budget["frees_at"])
    key = f"{budget['scope']} {budget['window']}"
    return tag("li", head, meter(budget["fraction"], label, tone=tone), until, data_key=key)
