"""An explanation as people read it: the verdict first, then every reason, then what would help."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

from fairlead.cli.output import listed, paint, safe, until_text, wrapped
from fairlead.cli.plan_text import parts_text, reason_text, share_text
from fairlead.model.instant import parse_instant

if TYPE_CHECKING:
    from fairlead.model.instant import Instant
    from fairlead.planner.why import Why
    from fairlead.service.scenario import Scenario


def why_text(answer: Why, scenario: Scenario) -> str:
    """The whole answer, part by part."""
    task = next(each for each in scenario.tasks if each.id == answer.task)
    parts = [
        _verdict(answer),
        _holds(answer, scenario.now),
        _place(answer, task.project, task.kind),
    ]
    if answer.holds:
        parts.append(_changes(answer, scenario.now))
    return "\n\n".join(part for part in parts if part)


def _verdict(answer: Why) -> str:
    starts = answer.verdict.startswith("starts")
    text = f"{answer.task} {'' if starts else 'is '}{answer.verdict}."
    return paint(
        wrapped(safe(text), 0), "bold", "green" if starts or not answer.holds else "yellow"
    )


def _holds(answer: Why, now: Instant) -> str:
    if not answer.holds:
        return ""
    wide = max(len(hold.code) for hold in answer.holds)
    lines = [paint("Every rule that holds it:", "bold")]
    for hold in answer.holds:
        lead = f"  {hold.code:{wide}}  "
        lines.append(wrapped(safe(reason_text(hold, now)), len(lead), lead))
        if hold.misconfigured:
            lines.append(paint(f"{'':{len(lead)}}nothing will free this by itself", "red"))
    return "\n".join(lines)


def _place(answer: Why, project: str, kind: str) -> str:
    """Where it stands: its place in its project, its score, its project's share."""
    rows: list[tuple[str, str]] = []
    if answer.position is not None:
        behind = f", behind {listed(answer.ahead, answer.position - 1)}" if answer.ahead else ""
        text = f"{ordinal(answer.position)} among the ready tasks of {project}{behind}"
        rows.append(("place", text))
    if answer.score is not None:
        rows.append(("score", f"{answer.score.total} = {parts_text(kind, answer.score)}"))
    if answer.share and share_text(answer.share):
        rows.append(("share", f"{project} {share_text(answer.share)}"))
    if not rows:
        return ""
    lines = [wrapped(safe(text), 9, f"  {name}  ") for name, text in rows]
    return "\n".join([paint("Where it stands:", "bold"), *lines])


def _changes(answer: Why, now: Instant) -> str:
    if not answer.would_start_if:
        return "No single change would start it now, and no pair that was tried."
    lines = [paint("It would start now if:", "bold", "green")]
    for change in answer.would_start_if:
        lines.append(wrapped(safe(_sentence(change.sentence, change.apply, now)), 4, "  - "))
        command = _command(change.apply)
        if command:
            lines.append(paint(f"      {safe(command)}", "dim"))
    return "\n".join(lines)


def _sentence(sentence: str, apply: dict[str, Any], now: Instant) -> str:
    at = apply.get("at")
    if isinstance(at, str) and at in sentence:
        return f"{sentence}, {until_text(parse_instant(at), now)}"
    return sentence


def _command(apply: dict[str, Any]) -> str:
    """What to type, where one command makes the change."""
    if set(apply) != {"policy"}:
        return ""
    settings = [
        f"{key}={_toml(value)}" for key, value in apply["policy"].items() if key != "budget"
    ]
    return f"fairlead policy set {shlex.join(settings)}" if settings else ""


def _toml(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def ordinal(number: int) -> str:
    """`1st`, `2nd`, `13th`."""
    ends = {1: "st", 2: "nd", 3: "rd"}
    end = "th" if number % 100 in (11, 12, 13) else ends.get(number % 10, "th")
    return f"{number}{end}"
