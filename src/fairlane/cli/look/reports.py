"""`fairlane summary` and `fairlane stats`: what happened, and how the shares came out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairlane.cli.admin.resource import usd
from fairlane.cli.call import Call
from fairlane.cli.options import takes_call
from fairlane.cli.output import about, count, cut, paint, safe, table, until_text, wrapped
from fairlane.model.instant import SECOND, parse_instant

if TYPE_CHECKING:
    from fairlane.model.documents.reports import (
        CheckStatDocument,
        DoneDocument,
        DoneTasksDocument,
        EstimateDocument,
        FailedDocument,
        NeedDocument,
        ShareDocument,
        StatsAnswer,
        SummaryAnswer,
        UsedDocument,
    )
    from fairlane.model.instant import Instant


@click.command("summary")
@click.option("--since", default="12h", metavar="LENGTH|TIME", help="How far back; default: 12h.")
@takes_call
def summary(call: Call, since: str) -> None:
    """What happened while nobody looked: done, cost, parked and why, waits, what needs you.

    \b
    Example:
      fairlane summary
      fairlane summary --since 2d
    """
    document = call.ask("summary", since=since)
    call.show(document, lambda: summary_text(document))


_DONE_SHOWN, _FAILED_SHOWN = 15, 8
_TITLE_MAX, _ANSWER_MAX = 44, 80
#: What needs a person -> the command that helps.
_HELPS = {"task": "retry", "merge": "diff"}


def summary_text(document: SummaryAnswer) -> str:
    """The whole answer, what matters most first."""
    now = parse_instant(document["now"])
    parts = [
        _head(document, now),
        _needs(document["needs_person"]),
        _done(document["done"], now),
        _failed(document["failures"], now),
        _projects(document["projects"]),
        _waits(document),
    ]
    return "\n\n".join(part for part in parts if part)


def _head(document: SummaryAnswer, now: Instant) -> str:
    span = about(now - parse_instant(document["since"]))
    done = document["done"]["count"]
    words = [paint(f"{count(done, 'task')} done", "bold", "green" if done else "dim")]
    parked = document["parked"]["count"]
    words += [paint(f"{parked} parked", "bold", "red")] if parked else []
    words.append(f"{document['in_flight']} in flight, {document['queued']['total']} queued")
    words += [f"{document['tokens']:,} tokens", *filter(None, [usd(document["usd"])])]
    return f"In the last {span}: " + ", ".join(words)


def _needs(rows: list[NeedDocument]) -> str:
    if not rows:
        return ""
    lines = [paint("What needs you:", "bold", "yellow")]
    for need in rows:
        kind, _, name = need["what"].partition(":")
        command = _HELPS.get(kind)
        shown = name if command else need["what"]
        lines.append(wrapped(safe(f"{shown}: {need['why']}"), 4, "  "))
        if command:
            lines.append(paint(safe(f"    fairlane {command} {name}"), "dim"))
    return "\n".join(lines)


def _done(done: DoneTasksDocument, now: Instant) -> str:
    rows = [
        (
            task["id"],
            task["project"],
            task["kind"],
            until_text(parse_instant(task["ended_at"]), now),
            length(task["seconds"]),
            f"{task['tokens']:,}",
            usd(task["usd"]),
            _title(task),
        )
        for task in done["tasks"][-_DONE_SHOWN:]
    ]
    if not rows:
        return ""
    head = ("task", "project", "kind", "ended", "took", "tokens", "cost", "title")
    more = done["count"] - len(rows)
    text = paint("Done:", "bold", "green") + "\n" + table(head, rows, right=(4, 5, 6))
    return text + (paint(f"\n  … and {more} before", "dim") if more > 0 else "")


def _title(task: DoneDocument) -> str:
    """What it was, and the beginning of its answer."""
    title, answer = cut(task["title"], _TITLE_MAX), cut(task["answer"] or "", _ANSWER_MAX)
    return f"{title}: {answer}" if title and answer else title or answer


def _failed(rows: list[FailedDocument], now: Instant) -> str:
    if not rows:
        return ""
    lines = [paint("Attempts that failed:", "bold")]
    for row in rows[-_FAILED_SHOWN:]:
        what = f"{row['outcome']}: {row['detail']}" if row["detail"] else row["outcome"]
        when = until_text(parse_instant(row["ended_at"]), now)
        text = f"{row['id']}, attempt {row['attempt']}, {when}: {what}"
        lines.append(wrapped(safe(text), 4, "  "))
    return "\n".join(lines)


def _projects(projects: list[UsedDocument]) -> str:
    if len(projects) < 2:
        return ""
    rows = [
        (row["project"], row["starts"], row["completions"], f"{row['tokens']:,}", usd(row["usd"]))
        for row in projects
    ]
    head = ("project", "starts", "done", "tokens", "cost")
    return paint("By project:", "bold") + "\n" + table(head, rows, right=(1, 2, 3, 4))


def _waits(document: SummaryAnswer) -> str:
    waits = document["waits"]
    if not waits["count"]:
        return ""
    half, most = _most(waits["p50"]), _most(waits["p90"])
    return f"Half of the starts waited {half}, nine of ten {most}."


def _most(seconds: float | None) -> str:
    text = about(int((seconds or 0) * SECOND))
    return text if text.startswith("less") else f"at most {text}"


def length(seconds: float | None) -> str:
    """`3m 20s`, `<1s`."""
    return "" if seconds is None else about(int(seconds * SECOND)).replace("less than ", "<")


@click.command("stats")
@click.option("--since", metavar="LENGTH|TIME", help="How far back; default: the share window.")
@click.option("--plot", metavar="FILE.svg|.png", help="Draw shares, usage and the timeline.")
@takes_call
def stats(call: Call, since: str | None, plot: str | None) -> None:
    """Shares against targets with the bound, waits, durations, tokens, cost, estimates.

    \b
    Example:
      fairlane stats --since 7d
      fairlane stats --plot week.svg
    """
    document: StatsAnswer = call.ask("stats", since=since)
    if plot is not None:
        from fairlane.cli.look.plot import draw, svg

        draw(svg(document), Path(plot))
    drawn = "" if plot is None else f"\n\ndrawn: {safe(plot)}"
    call.show(document, lambda: stats_text(document) + drawn)


def stats_text(document: StatsAnswer) -> str:
    """Shares first, then waits and durations, then how good the estimates were."""
    span = about(parse_instant(document["now"]) - parse_instant(document["since"]))
    flow = document["throughput"]
    head = f"The last {span}: {count(flow['done'], 'task')} done, {flow['per_hour']:g} an hour"
    parts = [paint(head, "bold"), _shares(document["projects"]), _times(document)]
    parts.append(_estimates(document["estimates"]))
    parts.append(_checks(document["checks"]))
    return "\n\n".join(part for part in parts if part)


def _checks(checks: list[CheckStatDocument]) -> str:
    if not checks:
        return ""
    rows = [
        (row["project"], row["check"], row["runs"], f"{row['failed'] / row['runs']:.0%}")
        for row in checks
    ]
    head = ("project", "check", "runs", "failed first")
    return paint("Checks:", "bold") + "\n" + table(head, rows, right=(2, 3))


def _shares(projects: list[ShareDocument]) -> str:
    if not projects:
        return "No project has used anything."
    rows = [
        (
            project["project"],
            project["weight"],
            f"{project['share']:.1%}",
            f"{project['target']:.1%}",
            f"{project['tokens']:,}",
            usd(project["usd"]),
            project["starts"],
            project["completions"],
            _lag(project),
        )
        for project in projects
    ]
    head = ("project", "weight", "share", "due", "tokens", "cost", "starts", "done", "behind")
    return paint("Shares:", "bold") + "\n" + table(head, rows, right=(1, 2, 3, 4, 5, 6, 7))


def _lag(project: ShareDocument) -> str:
    if project["lag"] is None:
        return ""
    if not project["lag"]:
        return "nobody"
    bound = f"at most {project['bound']:,} are possible"
    return f"{project['behind']} by {project['lag']:,} weighted tokens ({bound})"


def _times(document: StatsAnswer) -> str:
    spreads = {"waits": document["waits"], "durations": document["durations"]}
    if len(document["projects"]) > 1:
        spreads |= {f"waits of {row['project']}": row["waits"] for row in document["projects"]}
    rows = [
        (name, spread["count"], length(spread["p50"]), length(spread["p95"]))
        for name, spread in spreads.items()
        if spread["count"]
    ]
    return table(("", "count", "half within", "95 % within"), rows, right=(1,))


def _estimates(estimates: list[EstimateDocument]) -> str:
    if not estimates:
        return ""
    rows = [
        (
            row["project"],
            row["kind"],
            row["agent"] or "",
            row["attempts"],
            f"{row['estimated']:,}",
            f"{row['used']:,}",
            f"{row['within']:.0%}",
        )
        for row in estimates
    ]
    head = ("project", "kind", "agent", "attempts", "estimated", "used", "within")
    title = paint("Estimates (about 70 % should be within):", "bold")
    return title + "\n" + table(head, rows, right=(3, 4, 5, 6))
