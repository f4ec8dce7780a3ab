"""Cards with drawings: the timeline, shares, throughput and waits; each also as a table."""

from __future__ import annotations

from fairlane.model.instant import SECOND, parse_instant
from fairlane.page.drawing import columns, lines, meter, timeline
from fairlane.page.html import Child, Html, div, join, span, tag
from fairlane.page.parts import Rows, as_table, card, dot, empty, project_of
from fairlane.page.views.scene import SPANS, Scene
from fairlane.page.words import colour, count, dollars, length, moment, short, task_link
from fairlane.service.reports.stats import UsedShareDocument
from fairlane.service.reports.timeline import BucketDocument, RowBarDocument

#: How many attempts the table beside the timeline lists, the newest.
LISTED = 30
#: How many projects have a bar of their own, those that used most; how many have a colour named.
SHARES, NAMED = 10, 8


def timeline_card(now: Scene) -> Html:
    """Who ran when."""
    visible = [bar for bar in now.bars if not bar["to"] or parse_instant(bar["to"]) >= now.start]
    running = sum(bar["to"] is None for bar in visible)
    label = f"{count(len(visible), 'attempt')} in the last {now.span}, {running} of them running"
    chosen = [_span(key, now.span) for key in SPANS]
    tools = tag("nav", chosen, class_="spans", aria_label="Time shown")
    if not visible:
        return card("timeline", "Who ran when", empty("Nothing ran in this time."), "", tools)
    names = sorted({bar["project"] for bar in visible})
    legend = [project_of(name, now.projects) for name in names[:NAMED]]
    if len(names) > NAMED:
        legend.append(span("", f"and {len(names) - NAMED} more"))
    drawing = timeline(visible, now.start, now.end, label, lambda name: colour(name, now.projects))
    head = ["Task", "Project", "Outcome", "From", "To"]
    listed = [_attempt(bar) for bar in reversed(visible[-LISTED:])]
    drawn = as_table("Who ran when, newest first", head, listed)
    about = label + (", older ones left out" if now.left_out else "")
    body = join(div("legend", legend), drawing, drawn)
    return card("timeline", "Who ran when", body, about, tools)


def _attempt(bar: RowBarDocument) -> list[Child]:
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
    most = sorted(now.shares, key=lambda share: -share["tokens"])[:SHARES]
    rows = [_share(share, now) for share in now.shares if share in most]
    rest: Rows = [
        [share["project"], share["weight"], f"{share['share']:.0%}", f"{share['target']:.0%}"]
        for share in now.shares
        if share not in most
    ]
    head = ["Project", "Weight", "Used", "Target"]
    others = as_table("Shares of the others", head, rest, (1, 2, 3), f"and {len(rest)} more")
    body = join(tag("ul", rows, class_="rows shares"), others if rest else None)
    return card("shares", "Shares", body, "used / target by weight")


def _share(row: UsedShareDocument, now: Scene) -> Html:
    name, share, target = row["project"], row["share"], row["target"]
    label = f"{name} used {share:.0%} of all tokens; its weight asks for {target:.0%}"
    used = f"weight {row['weight']} · {short(row['tokens'])} tok · {dollars(row['usd'])}"
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
    listed: Rows = [
        [_from(row), row["completions"], row["starts"], f"{row['tokens']:,}"]
        for row in reversed(rows)
        if row["starts"] or row["completions"]
    ]
    head = ["From", "Done", "Started", "Tokens"]
    drawn = as_table("Throughput", head, listed, (1, 2, 3))
    body = join(columns(values, tips, label), _axis(now), drawn)
    return card("done", "Throughput", body, f"{total} done, a bar is {step}")


def waits_card(now: Scene) -> Html:
    """How long tasks were ready before they started."""
    rows = now.trend["buckets"]
    half, most = [row["wait_p50"] for row in rows], [row["wait_p95"] for row in rows]
    known = [value for value in most if value is not None]
    if not known:
        return card("waits", "Waits", empty("Nothing started in this time."), "")
    top = _wait(max(known))
    label = f"Waits before starting in the last {now.span}: 95 of 100 tasks at most {top}"
    listed: Rows = [
        [_from(row), _wait(row["wait_p50"]), _wait(row["wait_p95"])]
        for row in reversed(rows)
        if row["wait_p50"] is not None
    ]
    drawn = as_table("Waits", ["From", "Half waited", "95 of 100"], listed, (1, 2))
    legend = [span("", dot("p50"), "half"), span("", dot("p95"), "95 of 100")]
    drawing = lines([("p95", most), ("p50", half)], label)
    body = join(drawing, _axis(now), drawn)
    about = f"ready until started, at most {top}"
    return card("waits", "Waits", body, about, div("legend", legend))


def _wait(seconds: float | None) -> str:
    return length(round((seconds or 0) * SECOND))


def _from(row: BucketDocument) -> Html:
    return moment(parse_instant(row["at"]))


def _axis(now: Scene) -> Html:
    """Where the drawing begins and ends."""
    return div("axis", moment(parse_instant(now.trend["since"])), span("", "now"))
