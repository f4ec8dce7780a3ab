"""Cards with drawings: the timeline, shares, throughput and waits; each also as a table."""

from __future__ import annotations

from typing import Any

from fairlane.model.instant import SECOND, parse_instant
from fairlane.page.drawing import columns, lines, meter, timeline
from fairlane.page.html import Child, Html, div, join, span, tag
from fairlane.page.parts import as_table, card, dot, empty, project_of
from fairlane.page.views.scene import SPANS, Scene
from fairlane.page.words import colour, count, dollars, length, moment, short, task_link

#: How many attempts the table beside the timeline lists, the newest.
LISTED = 30
#: How many projects have a bar of their own, those that used most; how many have a colour named.
SHARES, NAMED = 10, 8


def timeline_card(now: Scene) -> Html:
    """Who ran when."""
    seen = [bar for bar in now.bars if not bar["to"] or parse_instant(bar["to"]) >= now.start]
    running = sum(bar["to"] is None for bar in seen)
    label = f"{count(len(seen), 'attempt')} in the last {now.span}, {running} of them running"
    chosen = [_span(key, now.span) for key in SPANS]
    tools = tag("nav", chosen, class_="spans", aria_label="Time shown")
    if not seen:
        return card("timeline", "Who ran when", empty("Nothing ran in this time."), "", tools)
    names = sorted({bar["project"] for bar in seen})
    legend = [project_of(name, now.projects) for name in names[:NAMED]]
    if len(names) > NAMED:
        legend.append(span("", f"and {len(names) - NAMED} more"))
    drawing = timeline(seen, now.start, now.end, label, lambda name: colour(name, now.projects))
    head = ["Task", "Project", "Outcome", "From", "To"]
    listed = [_attempt(bar) for bar in reversed(seen[-LISTED:])]
    told = as_table("Who ran when, newest first", head, listed)
    about = label + (", older ones left out" if now.left_out else "")
    body = join(div("legend", legend), drawing, told)
    return card("timeline", "Who ran when", body, about, tools)


def _attempt(bar: dict[str, Any]) -> list[Child]:
    end = moment(parse_instant(bar["to"])) if bar["to"] else ""
    start = moment(parse_instant(bar["from"]))
    return [task_link(bar["task"]), bar["project"], bar["outcome"] or "running", start, end]


def _span(key: str, chosen: str) -> Html:
    current = "true" if key == chosen else None
    return tag("a", key, href=f"/?span={key}", aria_current=current, data_key=key)


def shares_card(now: Scene) -> Html:
    """Each project's share against its target."""
    if not now.shares:
        return card("shares", "Shares", empty("Nobody used anything yet."))
    most = sorted(now.shares, key=lambda each: -each["tokens"])[:SHARES]
    rows = [_share(each, now) for each in now.shares if each in most]
    rest = [
        [each["project"], each["weight"], *(f"{each[key]:.0%}" for key in ("share", "target"))]
        for each in now.shares
        if each not in most
    ]
    head = ["Project", "Weight", "Used", "Target"]
    told = as_table("Shares of the others", head, rest, (1, 2, 3), f"and {len(rest)} more")
    body = join(tag("ul", rows, class_="rows shares"), told if rest else None)
    return card("shares", "Shares", body, "used / target by weight")


def _share(each: dict[str, Any], now: Scene) -> Html:
    name, share, target = each["project"], each["share"], each["target"]
    label = f"{name} used {share:.0%} of all tokens; its weight asks for {target:.0%}"
    used = f"weight {each['weight']} · {short(each['tokens'])} tok · {dollars(each['usd'])}"
    numbers = span("num end", f"{share:.0%}", span("of", f" / {target:.0%}"))
    head = div("split", project_of(name, now.projects), span("quiet-text num", used), numbers)
    bar = meter(share, label, target, colour(name, now.projects))
    return tag("li", head, bar, data_key=name)


def throughput_card(now: Scene) -> Html:
    """What was done over time."""
    rows = now.trend["buckets"]
    values = [row["completions"] for row in rows]
    step = length(now.trend["step_seconds"] * SECOND).replace(" 00s", "").replace(" 00m", "")
    total = count(sum(values), "task")
    label = f"{total} done in the last {now.span}, at most {max(values)} in {step}"
    tips = [f"{row['completions']} done · {short(row['tokens'])} tokens" for row in rows]
    listed: list[list[Child]] = [
        [_from(row), row["completions"], row["starts"], f"{row['tokens']:,}"]
        for row in reversed(rows)
        if row["starts"] or row["completions"]
    ]
    head = ["From", "Done", "Started", "Tokens"]
    told = as_table("Throughput", head, listed, (1, 2, 3))
    body = join(columns(values, tips, label), _axis(now), told)
    return card("done", "Throughput", body, f"{total} done, a bar is {step}")


def waits_card(now: Scene) -> Html:
    """How long tasks were ready before they started."""
    rows = now.trend["buckets"]
    half, most = ([row[key] for row in rows] for key in ("wait_p50", "wait_p95"))
    known = [value for value in most if value is not None]
    if not known:
        return card("waits", "Waits", empty("Nothing started in this time."), "")
    top = _wait(max(known))
    label = f"Waits before starting in the last {now.span}: 95 of 100 tasks at most {top}"
    listed: list[list[Child]] = [
        [_from(row), _wait(row["wait_p50"]), _wait(row["wait_p95"])]
        for row in reversed(rows)
        if row["wait_p50"] is not None
    ]
    told = as_table("Waits", ["From", "Half waited", "95 of 100"], listed, (1, 2))
    legend = [span("", dot("p50"), "half"), span("", dot("p95"), "95 of 100")]
    drawing = lines([("p95", most), ("p50", half)], label)
    body = join(drawing, _axis(now), told)
    return card(
        "waits", "Waits", body, f"ready until started, at most {top}", div("legend", legend)
    )


def _wait(seconds: float) -> str:
    return length(round(seconds * SECOND))


def _from(row: dict[str, Any]) -> Html:
    return moment(parse_instant(row["at"]))


def _axis(now: Scene) -> Html:
    """Where the drawing begins and ends."""
    return div("axis", moment(parse_instant(now.trend["since"])), span("", "now"))
