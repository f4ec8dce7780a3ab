"""`fairlane why`: what holds one task, and what would start it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from fairlane.cli.call import Call
from fairlane.cli.look.plan_text import hold_of, parts_text, reason_text, share_text
from fairlane.cli.output import in_seconds, listed, ordinal, paint, safe, until_text, wrapped
from fairlane.cli.verb import ID, verb
from fairlane.model.instant import Instant, parse_instant
from fairlane.model.plan import Hold, ScoreParts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlane.cli.verb import Options
    from fairlane.model.documents.reports import WhyAnswer
    from fairlane.service.scenario import Scenario

#: A situation in a file, for `plan` too.
SCENARIO: Options = {
    "--scenario": {"metavar": "FILE", "help": "A situation instead of the queue; - is stdin."}
}


def read_scenario(call: Call, name: str) -> Scenario:
    """The situation in a file or on standard input; `--now` plans it at another time."""
    from fairlane.cli.values import read_input
    from fairlane.service.scenario import load, parse

    if name == "-":
        return parse(read_input(), "stdin", call.fixed_now)
    return load(Path(name), call.fixed_now)


@verb("why", SCENARIO, argument="task", settings=ID)
def why(call: Call, task: str, scenario: str | None) -> None:
    """Why a task does not start: every rule that holds it, and what would start it now.

    \b
    Example:
      fairlane why t4
      fairlane why --scenario examples/balanced.toml review-2
    """
    if scenario is not None:
        call.here()
        situation = read_scenario(call, scenario)
        from fairlane.service import planning

        answer = planning.why_scenario(situation, task).document()
        kind = next(row.kind for row in situation.tasks if row.id == task)
        now = situation.now
    else:
        answer, kind = _why(call, task)
        now = call.clock.now()
    call.show(answer, lambda: why_text(answer, kind, now))


def _why(call: Call, task: str) -> tuple[WhyAnswer, str]:
    """The answer, and the task's kind, whose score has its name."""
    if call.elsewhere() is None:
        from fairlane.service.explain import why_with_kind

        with call.context() as context:
            return why_with_kind(context, task)
    answer: WhyAnswer = call.ask("why", task=task)
    return answer, "" if call.json else str(call.ask("show", task=task)["task"]["kind"])


def why_text(answer: WhyAnswer, kind: str, now: Instant) -> str:
    """The whole answer, part by part; `kind` is the task's."""
    holds = [hold_of(hold) for hold in answer["holds"]]
    parts = [_verdict(answer), _holds(holds, now), _place(answer, kind)]
    if holds:
        parts.append(_changes(answer, now))
    return "\n\n".join(part for part in parts if part)


def _verdict(answer: WhyAnswer) -> str:
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


def _place(answer: WhyAnswer, kind: str) -> str:
    """Its place in its project, its score, its project's share."""
    rows: list[tuple[str, str]] = []
    share, position, ahead = answer["share"] or {}, answer["position"], answer["ahead"]
    project = share.get("project", "its project")
    if position is not None:
        behind = f", behind {listed(ahead, position - 1)}" if ahead else ""
        rows.append(("place", f"{ordinal(position)} among the ready tasks of {project}{behind}"))
    if (terms := answer["score"]) is not None:
        score = ScoreParts(terms["kind"], terms["age"], terms["depth"], terms["retries"])
        rows.append(("score", f"{score.total} = {parts_text(kind, score)}"))
    if share_text(share):
        rows.append(("share", f"{project} {share_text(share)}"))
    if not rows:
        return ""
    lines = [wrapped(safe(text), 9, f"  {name}  ") for name, text in rows]
    return "\n".join([paint("Where it stands:", "bold"), *lines])


def _changes(answer: WhyAnswer, now: Instant) -> str:
    if not answer["would_start_if"]:
        return "No single change would start it now, and no pair that was tried."
    lines = [paint("It would start now if:", "bold", "green")]
    for change in answer["would_start_if"]:
        sentence = _sentence(change["change"], change["apply"], now)
        lines.append(wrapped(safe(sentence), 4, "  - "))
        command = _command(change["apply"])
        if command:
            lines.append(paint(f"      {safe(command)}", "dim"))
    return "\n".join(lines)


def _sentence(sentence: str, apply: Mapping[str, object], now: Instant) -> str:
    at = apply.get("at")
    if isinstance(at, str) and at in sentence:
        return f"{sentence}, {until_text(parse_instant(at), now)}"
    return sentence


def _command(apply: Mapping[str, object]) -> str:
    """What to type, where one command makes the change."""
    policy = apply.get("policy")
    if not isinstance(policy, dict) or len(apply) > 1:
        return ""
    import shlex

    settings = [f"{key}={_toml(value)}" for key, value in policy.items() if key != "budget"]
    return f"fairlane policy set {shlex.join(settings)}" if settings else ""


def _toml(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
