"""One task as people read it: where it stands, what it says, what was tried, what happened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlane.cli.output import (
    about,
    cut,
    listed,
    paint,
    relative,
    safe,
    table,
    until_text,
    wrapped,
)
from fairlane.cli.queue.text import TINT, hold_text, word_of
from fairlane.model.instant import parse_instant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlane.model.instant import Instant

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


def show_text(document: dict[str, Any], now: Instant) -> str:
    """The whole task, part by part."""
    task = document["task"]
    parts = [_head(task, now), _facts(document, now), _prompt(task)]
    parts += [_attempts(document["attempts"], now), _events(document["events"], now)]
    return "\n\n".join(part for part in parts if part)


def _head(task: dict[str, Any], now: Instant) -> str:
    word = word_of(task)
    title = f": {safe(cut(task['title'], 60))}" if task["title"] else ""
    lines = [paint(safe(task["id"]), "bold") + title, ""]
    colour = TINT.get(word, "yellow")
    hold = task["hold"]
    why = hold_text(hold, now) if hold else task["stop_requested"] or task["reason"]
    lead = paint(word, "bold", colour)
    lines.append(
        f"  {lead}" + (wrapped(safe(f" {why}"), 2, f"  {word}:")[2 + len(word) :] if why else "")
    )
    lease = task["lease"]
    if lease:
        ends = until_text(parse_instant(lease["expires_at"]), now)
        lines.append(safe(f"  lease {lease['lease']} of {lease['worker']}, ends {ends}"))
    return "\n".join(line for line in lines if line)


def _facts(document: dict[str, Any], now: Instant) -> str:
    task = document["task"]
    rows = [(words, _value(task[name])) for name, words in _FACTS.items() if task[name]]
    if task["parallel"] is not None:
        rows.append(("parallel", "yes" if task["parallel"] else "no"))
    if task["command"]:
        rows.append(("command", " ".join(task["command"])))
    for name, words in (("needs", "needs"), ("dependents", "needed by")):
        named = [f"{each['id']} ({each['status']})" for each in document[name]]
        rows += [(words, listed(named[:10], len(named)))] if named else []
    rows += [
        (words, relative(parse_instant(task[name]), now))
        for name, words in _TIMES.items()
        if task[name]
    ]
    wide = max(len(words) for words, _ in rows)
    return "\n".join(wrapped(safe(text), wide + 4, f"  {words:{wide}}  ") for words, text in rows)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}={each}" for key, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:,} tokens" if isinstance(value, int) and value > 9999 else str(value)


def _prompt(task: dict[str, Any]) -> str:
    lines = task["prompt"].splitlines()
    if not lines:
        return ""
    more = [f"  … {len(lines) - _PROMPT_LINES} lines more"] if len(lines) > _PROMPT_LINES else []
    shown = [wrapped(safe(line), 4) for line in lines[:_PROMPT_LINES]]
    return "\n".join([paint("Prompt:", "bold"), *shown, *more])


def _attempts(attempts: list[dict[str, Any]], now: Instant) -> str:
    if not attempts:
        return ""
    rows: list[Sequence[object]] = []
    for each in attempts:
        began = parse_instant(each["leased_at"])
        ended = now if each["ended_at"] is None else parse_instant(each["ended_at"])
        rows.append(
            (
                each["attempt"],
                each["lease"],
                each["worker"] or "",
                until_text(began, now),
                about(max(0, ended - began)).replace("less than ", "<"),
                f"{sum(each['tokens'].values()) - each['tokens']['cache_read']:,}",
                f"{each['tokens']['cache_read']:,}",
                "" if each["usd"] is None else f"${each['usd']:.2f}",
                each["outcome"] or "in flight",
                each["detail"] or each["note"],
            )
        )
    head = ["#", "lease", "worker", "began", "took", "tokens", "cached"]
    head += ["cost", "outcome", "detail"]
    if not any(each["tokens"]["cache_read"] for each in attempts):
        del head[6]
        rows = [[*row[:6], *row[7:]] for row in rows]
    tint = {"succeeded": "green", "failed": "red", "lost": "red", "in flight": "cyan"}
    numbers = (0, *range(5, len(head) - 2))
    return paint("Attempts:", "bold") + "\n" + table(head, rows, right=numbers, tint=tint)


def _events(events: list[dict[str, Any]], now: Instant) -> str:
    from fairlane.cli.look.events_text import event_line

    lines = [event_line(each, now, task=False) for each in events]
    return "\n".join([paint("Last events:", "bold"), *lines]) if lines else ""
