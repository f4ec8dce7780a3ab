"""An explanation as people read it: the verdict first, then every reason, then what would help."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

from fairlane.cli.look.plan_text import parts_text, reason_text, share_text
from fairlane.cli.look.plan_told import hold_told
from fairlane.cli.output import in_seconds, listed, paint, safe, until_text, wrapped
from fairlane.cli.queue.text import ordinal
from fairlane.model.instant import parse_instant
from fairlane.model.plan import Hold, ScoreParts

if TYPE_CHECKING:
    from fairlane.model.instant import Instant


def why_text(answer: dict[str, Any], kind: str, now: Instant) -> str:
    """The whole answer, part by part; `kind` is the task's."""
    holds = [hold_told(each) for each in answer["holds"]]
    parts = [_verdict(answer), _holds(holds, now), _place(answer, kind)]
    if holds:
        parts.append(_changes(answer, now))
    return "\n\n".join(part for part in parts if part)


def _verdict(answer: dict[str, Any]) -> str:
    starts = answer["verdict"].startswith("starts")
    text = f"{answer['task']} {'' if starts else 'is '}{in_seconds(answer['verdict'])}."
    calm = starts or not (answer["holds"] or answer["status"] == "parked")
    return paint(wrapped(safe(text), 0), "bold", "green" if calm else "yellow")


def _holds(holds: list[Hold], now: Instant) -> str:
    if not holds:
        return ""
    wide = max(len(hold.code) for hold in holds)
    lines = [paint("Every rule that holds it:", "bold")]
    for hold in holds:
        lead = f"  {hold.code:{wide}}  "
        lines.append(wrapped(safe(reason_text(hold, now)), len(lead), lead))
        if hold.misconfigured:
            lines.append(paint(f"{'':{len(lead)}}nothing will free this by itself", "red"))
    return "\n".join(lines)


def _place(answer: dict[str, Any], kind: str) -> str:
    """Where it stands: its place in its project, its score, its project's share."""
    rows: list[tuple[str, str]] = []
    share, position, ahead = answer["share"] or {}, answer["position"], answer["ahead"]
    project = share.get("project", "its project")
    if position is not None:
        behind = f", behind {listed(ahead, position - 1)}" if ahead else ""
        rows.append(("place", f"{ordinal(position)} among the ready tasks of {project}{behind}"))
    if answer["score"] is not None:
        score = ScoreParts(*(answer["score"][name] for name in ScoreParts._fields))
        rows.append(("score", f"{score.total} = {parts_text(kind, score)}"))
    if share_text(share):
        rows.append(("share", f"{project} {share_text(share)}"))
    if not rows:
        return ""
    lines = [wrapped(safe(text), 9, f"  {name}  ") for name, text in rows]
    return "\n".join([paint("Where it stands:", "bold"), *lines])


def _changes(answer: dict[str, Any], now: Instant) -> str:
    if not answer["would_start_if"]:
        return "No single change would start it now, and no pair that was tried."
    lines = [paint("It would start now if:", "bold", "green")]
    for each in answer["would_start_if"]:
        lines.append(wrapped(safe(_sentence(each["change"], each["apply"], now)), 4, "  - "))
        command = _command(each["apply"])
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
    return f"fairlane policy set {shlex.join(settings)}" if settings else ""


def _toml(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
