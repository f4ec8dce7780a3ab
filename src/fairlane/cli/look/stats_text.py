"""Numbers over time as people read them."""

from __future__ import annotations

from typing import Any

from fairlane.cli.keep.facts import usd
from fairlane.cli.look.summary_text import length
from fairlane.cli.output import about, count, paint, table
from fairlane.model.instant import parse_instant


def stats_text(document: dict[str, Any]) -> str:
    """Shares first, then waits and durations, then how good the estimates were."""
    span = about(parse_instant(document["now"]) - parse_instant(document["since"]))
    flow = document["throughput"]
    head = f"The last {span}: {count(flow['done'], 'task')} done, {flow['per_hour']:g} an hour"
    parts = [paint(head, "bold"), _shares(document["projects"]), _times(document)]
    parts.append(_estimates(document["estimates"]))
    return "\n\n".join(part for part in parts if part)


def _shares(projects: list[dict[str, Any]]) -> str:
    if not projects:
        return "No project has used anything."
    rows = [
        (
            each["project"],
            each["weight"],
            f"{each['share']:.1%}",
            f"{each['target']:.1%}",
            f"{each['tokens']:,}",
            usd(each["usd"]),
            each["starts"],
            each["completions"],
            _lag(each),
        )
        for each in projects
    ]
    head = ("project", "weight", "share", "due", "tokens", "cost", "starts", "done", "behind")
    return paint("Shares:", "bold") + "\n" + table(head, rows, right=(1, 2, 3, 4, 5, 6, 7))


def _lag(project: dict[str, Any]) -> str:
    if project["lag"] is None:
        return ""
    if not project["lag"]:
        return "nobody"
    bound = f"at most {project['bound']:,} are possible"
    return f"{project['behind']} by {project['lag']:,} weighted tokens ({bound})"


def _times(document: dict[str, Any]) -> str:
    rows = []
    for words, told in (("waits", document["waits"]), ("durations", document["durations"])):
        if told["count"]:
            rows.append((words, told["count"], length(told["p50"]), length(told["p95"])))
    for each in document["projects"] if len(document["projects"]) > 1 else []:
        told = each["waits"]
        if told["count"]:
            name = f"waits of {each['project']}"
            rows.append((name, told["count"], length(told["p50"]), length(told["p95"])))
    return table(("", "count", "half within", "95 % within"), rows, right=(1,)) if rows else ""


def _estimates(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return ""
    lines = [
        (
            each["project"],
            each["kind"],
            each["agent"] or "",
            each["attempts"],
            f"{each['estimated']:,}",
            f"{each['used']:,}",
            f"{each['within']:.0%}",
        )
        for each in rows
    ]
    head = ("project", "kind", "agent", "attempts", "estimated", "used", "within")
    title = paint("Estimates (about 70 % should be within):", "bold")
    return title + "\n" + table(head, lines, right=(3, 4, 5, 6))
