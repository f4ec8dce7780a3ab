"""Cards with drawings: the timeline, shares, throughput and waits."""

from __future__ import annotations

from fairlead.model.instant import SECOND, parse_instant
from fairlead.page.drawing import columns, lines, meter, timeline
from fairlead.page.html import Child, Html, join, tag
from fairlead.page.parts import as_table, card, dot, empty, project_of
from fairlead.page.scene import SPANS, Scene
from fairlead.page.words import colour, count, dollars, length, moment, short, task_link

#: How many attempts the table beside the timeline lists, the newest.
LISTED = 30


def timeline_card(now: Scene) -> Html:
    """Who ran when."""
    seen = [bar for bar in now.bars if not bar["to"] or parse_instant(bar["to"]) >= now.start]
    running = sum(bar["to"] is None for bar in seen)
    label = f"{count(len(seen), 'attempt')} in the last {now.span}, {running} of them running"
    tools = tag(
        "nav", [_span(key, now.span) for key in SPANS], class_="spans", aria_label="Time shown"
    )
    if not seen:
        return card("timeline", "Who ran when", empty("Nothing ran in this time."), "", tools)
    names = sorted({bar["project"] for bar in seen})
    legend = [project_of(name, now.projects) for name in names[:8]]
    drawing = timeline(seen, now.start, now.end, label, lambda name: colour(name, now.projects))
    listed = [
        [
            task_link(bar["task"]),
            bar["project"],
            bar["outcome"] or "running",
            moment(parse_instant(bar["from"])),
            moment(parse_instant(bar["to"])) if bar["to"] else "",
        ]
        for bar in reversed(seen[-LISTED:])
    ]
    head = ["Task", "Project", "Outcome", "From", "To"]
    told = as_table("Who ran when, newest first", head, listed)
    body = join(tag("div", legend, class_="legend"), drawing, told)
    return card(
        "timeline",
        "Who ran when",
        body,
        label + (", older ones left out" if now.left_out else ""),
        tools,
    )


def _span(key: str, chosen: str) -> Html:
    current = "true" if key == chosen else None
    return tag("a", key, href=f"/?span={key}", aria_current=current, data_key=key)


def shares_card(now: Scene) -> Html:
    """Each project's share against its target."""
    rows = []
    for each in now.shares:
        share, target = each["share"], each["target"]
        label = (
            f"{each['project']} used {share:.0%} of all tokens; its weight asks for {target:.0%}"
        )
        head = tag(
            "div", project_of(each["project"], now.projects),
            tag("span", f"weight {each['weight']}", class_="quiet-text num"),
            tag("span", f"{short(each['tokens'])} tok · {dollars(each['usd'])}", class_="quiet-text num"),
            tag("span", f"{share:.0%}", tag("span", f" / {target:.0%}", class_="of"), class_="num end"),
            class_="split",
        )  # fmt: skip
        bar = meter(share, label, target, colour(each["project"], now.projects))
        rows.append(tag("li", head, bar, data_key=each["project"]))
    body = tag("ul", rows, class_="rows shares") if rows else empty("Nobody has used anything yet.")
    return card("shares", "Shares", body, "used / target by weight" if rows else "")


def throughput_card(now: Scene) -> Html:
    """What was done over time."""
    rows = now.trend["buckets"]
    values = [row["completions"] for row in rows]
    step = length(now.trend["step_seconds"] * SECOND)
    total = sum(values)
    label = f"{count(total, 'task')} done in the last {now.span}, at most {max(values)} in {step}"
    tips = [f"{row['completions']} done · {short(row['tokens'])} tokens" for row in rows]
    listed = [
        [moment(parse_instant(row["at"])), row["completions"], row["starts"], f"{row['tokens']:,}"]
        for row in rows
        if row["starts"] or row["completions"]
    ]
    told = as_table(
        "Throughput", ["From", "Done", "Started", "Tokens"], list(reversed(listed)), (1, 2, 3)
    )
    body = join(columns(values, tips, label), _axis(now), told)
    return card("done", "Throughput", body, f"{count(total, 'task')} done · a bar is {step}")


def waits_card(now: Scene) -> Html:
    """How long tasks were ready before they started."""
    rows = now.trend["buckets"]
    half, most = ([row[key] for row in rows] for key in ("wait_p50", "wait_p95"))
    known = [value for value in most if value is not None]
    if not known:
        return card("waits", "Waits", empty("Nothing started in this time."), "")
    top = length(round(max(known) * SECOND))
    label = f"Waits before starting in the last {now.span}: 95 of 100 tasks at most {top}"
    listed: list[list[Child]] = [
        [moment(parse_instant(row["at"])), _wait(row["wait_p50"]), _wait(row["wait_p95"])]
        for row in rows
        if row["wait_p50"] is not None
    ]
    told = as_table("Waits", ["From", "Half waited", "95 of 100"], list(reversed(listed)), (1, 2))
    legend = tag(
        "div",
        tag("span", dot("p50"), "half waited less"),
        tag("span", dot("p95"), "95 of 100 waited less"),
        class_="legend",
    )
    body = join(legend, lines([("p95", most), ("p50", half)], label), _axis(now), told)
    return card("waits", "Waits", body, f"at most {top}")


def _wait(seconds: float | None) -> str:
    return "" if seconds is None else length(round(seconds * SECOND))


def _axis(now: Scene) -> Html:
    """Where the drawing begins and ends."""
    return tag("div", moment(parse_instant(now.trend["since"])), tag("span", "now"), class_="axis")
