"""`fairlane list` and `fairlane show`: tasks in a table, and one task whole."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from fairlane.cli.call import Call
from fairlane.cli.output import (
    about,
    checks_text,
    cut,
    in_seconds,
    listed,
    paint,
    relative,
    safe,
    table,
    unsaid,
    until_text,
    wrapped,
)
from fairlane.cli.queue.work_text import results_text, work_text
from fairlane.cli.verb import ID, verb
from fairlane.model.instant import parse_instant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairlane.model.documents.parts import HoldDocument
    from fairlane.model.documents.tasks import (
        AttemptDocument,
        EventDocument,
        FullTaskDocument,
        TaskAnswer,
        TaskDocument,
        TasksAnswer,
    )
    from fairlane.model.instant import Instant


#: How many tasks people see unless they ask for more.
ROWS_SHOWN = 50


@verb(
    "list",
    {
        "--project": {"metavar": "P", "help": "Only of this project."},
        "--kind": {"metavar": "K", "help": "Only of this kind."},
        "--status": {"multiple": True, "metavar": "S", "help": "Only with this status; repeat."},
        "--group": {"metavar": "G", "help": "Only of this group."},
        "--held-by": {"metavar": "HOLD", "help": "Only held by this gate or code: cap, needs, …"},
        "--limit": {"type": int, "min": 1, "metavar": "N", "help": "At most this many."},
        "--after": {"type": int, "min": 0, "default": 0, "metavar": "CURSOR", "hidden": True},
    },
)
def list_(
    call: Call, /, status: tuple[str, ...], limit: int | None, after: int, **filters: str | None
) -> None:
    """Tasks in the order in which they were added, each with what it waits for.

    \b
    Example:
      fairlane list --status queued --project web
      fairlane list --held-by cap
      fairlane list --status parked --json
    """
    bound = limit if limit is not None or call.json else ROWS_SHOWN
    statuses = [name for names in status for name in names.split(",")]
    document = call.ask("list", status=statuses, cursor=after, limit=bound, **filters)
    narrowed = any((status, after, *filters.values()))
    nothing = "no task fits" if narrowed else 'no task yet: fairlane add "…"'
    call.show(document, lambda: list_text(document, call.clock.now()) or nothing)


@verb("show", {}, argument="task", settings=ID)
def show(call: Call, task: str) -> None:
    """One task: what it says, what holds it, its attempts, its last events.

    \b
    Example:
      fairlane show t4
    """
    document = call.ask("show", task=task)
    call.show(document, lambda: show_text(document, call.clock.now()))


#: Fields that `show` tells when they are set, with the words for them.
_FACTS = {
    "project": "project",
    "kind": "kind",
    "agent": "agent",
    "pool": "pool",
    "group": "group",
    "parent": "parent",
    "priority": "priority",
    "labels": "labels",
    "locks": "locks",
    "workspace": "workspace",
    "artifacts": "artifacts",
    "estimate_tokens": "estimate",
    "timeout": "timeout",
    "max_attempts": "max attempts",
    "template": "template",
    "base": "base",
    "vars": "vars",
    "env": "env (names)",
    "meta": "meta",
}
_TIMES = {
    "created_at": "added",
    "not_before": "not before",
    "backoff_until": "tries again",
    "parked_at": "parked",
    "ended_at": "ended",
}
_PROMPT_LINES = 12


def show_text(document: TaskAnswer, now: Instant) -> str:
    """The whole task, part by part."""
    task = document["task"]
    parts = [_head(task, now), _facts(document, now), _prompt(task), _answer(document)]
    parts += [work_text(document, now), results_text(document["checks"])]
    parts += [_attempts(document["attempts"], now), _events(document["events"], now)]
    return "\n\n".join(part for part in parts if part)


def _head(task: FullTaskDocument, now: Instant) -> str:
    word = word_of(task)
    title = f": {safe(cut(task['title'], 60))}" if task["title"] else ""
    lines = [paint(safe(task["id"]), "bold") + title, ""]
    colour = TINT.get(word, "yellow")
    why = reason_of(task, now, whole=True)
    lead = paint(word, "bold", colour)
    lines.append(
        f"  {lead}" + (wrapped(safe(f" {why}"), 2, f"  {word}:")[2 + len(word) :] if why else "")
    )
    lease = task["lease"]
    if lease:
        ends = until_text(parse_instant(lease["expires_at"] or ""), now)
        lines.append(safe(f"  lease {lease['lease']} of {lease['worker']}, ends {ends}"))
    return "\n".join(line for line in lines if line)


def _facts(document: TaskAnswer, now: Instant) -> str:
    task = document["task"]
    fields: Mapping[str, object] = task
    told = [name for name in _FACTS if fields[name] or fields[name] == 0]
    rows = [(_FACTS[name], _value(name, fields[name])) for name in told]
    if task["merge"] != "keep":  # what becomes of branches by default
        rows.append(("merge", task["merge"]))
    if document["needs"] or task["parent"]:
        rows += [("carry", task["carry"]), ("context", task["context"])]
    if task["checks"]:
        rows.append(("checks", checks_text(task["checks"])))
    if task["no_checks"]:
        rows.append(("checks", "none, not even its project's"))
    if task["parallel"] is not None:
        rows.append(("parallel", "yes" if task["parallel"] else "no"))
    if task["command"]:
        rows.append(("command", " ".join(task["command"])))
    for links, words in ((document["needs"], "needs"), (document["dependents"], "needed by")):
        named = [f"{link['id']} ({link['status']})" for link in links]
        rows += [(words, listed(named[:10], len(named)))] if named else []
    rows += [
        (words, relative(parse_instant(time), now))
        for name, words in _TIMES.items()
        if isinstance(time := fields[name], str)
    ]
    wide = max(len(words) for words, _ in rows)
    return "\n".join(wrapped(safe(text), wide + 4, f"  {words:{wide}}  ") for words, text in rows)


def _value(name: str, value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}={_inner(inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return ", ".join(map(_inner, value))
    return f"{value:,} tokens" if name == "estimate_tokens" else str(value)


def _inner(value: object) -> str:
    """Words as they are, tables and lists as JSON."""
    nested = isinstance(value, (dict, list))
    return json.dumps(value, ensure_ascii=False) if nested else str(value)


def _prompt(task: FullTaskDocument) -> str:
    return _quoted("Prompt:", task["prompt"])


def _answer(document: TaskAnswer) -> str:
    """What its last attempt said in the end."""
    where = f"; all of it: fairlane logs {document['task']['id']}"
    return _quoted("Answer:", document["answer"] or "", where)


def _quoted(title: str, text: str, where: str = "") -> str:
    """The first lines of a text."""
    lines = text.splitlines()
    if not lines:
        return ""
    rest = len(lines) - _PROMPT_LINES
    more = [safe(f"  … {rest} lines more{where}")] if rest > 0 else []
    shown = [wrapped(safe(line), 4) for line in lines[:_PROMPT_LINES]]
    return "\n".join([paint(title, "bold"), *shown, *more])


def _attempts(attempts: list[AttemptDocument], now: Instant) -> str:
    if not attempts:
        return ""
    rows: list[Sequence[object]] = []
    for attempt in attempts:
        began, ended = parse_instant(attempt["leased_at"]), attempt["ended_at"]
        took = max(0, (now if ended is None else parse_instant(ended)) - began)
        tokens, usd = attempt["tokens"], attempt["usd"]
        counted = tokens["input"] + tokens["output"] + tokens["cache_write"]
        rows.append(
            (
                attempt["attempt"],
                attempt["lease"],
                attempt["worker"] or "",
                until_text(began, now),
                about(took).replace("less than ", "<"),
                f"{counted:,}",
                f"{tokens['cache_read']:,}",
                "" if usd is None else f"${usd:.2f}",
                attempt["outcome"] or "in flight",
                attempt["detail"] or ("" if ended else attempt["note"]),
            )
        )
    head = ["#", "lease", "worker", "began", "took", "tokens", "cached"]
    head += ["cost", "outcome", "detail"]
    if not any(attempt["tokens"]["cache_read"] for attempt in attempts):
        del head[6]
        rows = [[*row[:6], *row[7:]] for row in rows]
    tint = {"succeeded": "green", "in flight": "cyan"}
    tint |= dict.fromkeys(("failed", "check_failed", "lost"), "red")
    numbers = (0, *range(5, len(head) - 2))
    return paint("Attempts:", "bold") + "\n" + table(head, rows, right=numbers, tint=tint)


def _events(events: list[EventDocument], now: Instant) -> str:
    from fairlane.cli.look.events import event_line

    lines = [event_line(event, now, task=False) for event in events]
    return "\n".join([paint("Last events:", "bold"), *lines]) if lines else ""


#: Status -> its colour.
TINT = {
    "ready": "green",
    "held": "yellow",
    "leased": "cyan",
    "running": "cyan",
    "done": "green",
    "parked": "red",
    "canceled": "dim",
}
TITLE_MAX = 26


def list_text(document: TasksAnswer, now: Instant) -> str:
    """A table of tasks, empty without any; columns that say nothing are left out."""
    rows = document["tasks"]
    if not rows:
        return ""
    grouped = any(row["group"] for row in rows)
    head = ["task", "status", "project", "kind", *(["group"] if grouped else [])]
    head += ["prio", "tries", "age", "title", "why"]
    lines: list[list[object]] = []
    for row in rows:
        line: list[object] = [row["id"], word_of(row), row["project"], row["kind"]]
        line += [row["group"] or ""] if grouped else []
        line += [row["priority"], row["attempts"] or "", _age(row, now)]
        merge = "not merged by Fairlane" if row["merge_state"] == "waiting" else ""
        lines.append([*line, cut(row["title"], TITLE_MAX), reason_of(row, now) or merge])
    if not any(row["title"] for row in rows):
        head.remove("title")
        lines = [[*line[:-2], line[-1]] for line in lines]
    at = head.index("prio")
    drawn = table(head, lines, right=(at, at + 1, at + 2), tint=TINT)
    more = (
        "" if document.get("cursor") is None else "\n  … and more: give --limit, or narrow the list"
    )
    return drawn + paint(more, "dim")


def word_of(row: TaskDocument) -> str:
    """The status; of a queued task whether it is ready, held or waits."""
    if row["status"] != "queued":
        return "stopping" if row["stop_requested"] else row["status"]
    if not row["ready"]:
        return "waits"
    return "held" if row["hold"] else "ready"


def reason_of(row: TaskDocument, now: Instant, whole: bool = False) -> str:
    """Why it is where it is."""
    hold = row["hold"]
    return hold_text(hold, now, whole) if hold else row["stop_requested"] or row["reason"]


def hold_text(hold: HoldDocument, now: Instant, whole: bool = False) -> str:
    """The sentence of a hold, with its end; `whole`: with the holders that it does not name."""
    others = unsaid(hold["code"], hold["reason"], hold["holders"]) if whole else []
    by = f" (by {listed(others[:3], len(others))})" if others else ""
    text = in_seconds(hold["reason"]) + by
    until = hold["until"]
    return text if until is None else f"{text}, {until_text(parse_instant(until), now)}"


def _age(row: TaskDocument, now: Instant) -> str:
    return about(max(0, now - parse_instant(row["created_at"]))).split(" ")[0].replace("less", "0s")
