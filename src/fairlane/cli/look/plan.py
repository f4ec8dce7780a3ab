"""`fairlane plan`, `why`, `replay`: what would start, what holds a task, what was decided."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairlane.cli.look.plan_text import (
    hold_of,
    parts_text,
    plan_of,
    plan_text,
    reason_text,
    share_text,
)
from fairlane.cli.options import Call, takes_call
from fairlane.cli.output import (
    count,
    in_seconds,
    listed,
    ordinal,
    paint,
    print_json,
    safe,
    table,
    until_text,
    wrapped,
    write,
)
from fairlane.cli.values import read_input
from fairlane.model.errors import Invalid
from fairlane.model.instant import Instant, parse_instant
from fairlane.model.plan import Hold, ScoreParts
from fairlane.service import planning

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairlane.model.documents.parts import HeldDocument
    from fairlane.model.documents.reports import (
        DecisionDocument,
        DecisionsAnswer,
        ReplayedAnswer,
        WhyAnswer,
    )
    from fairlane.model.instant import Instant
    from fairlane.service.scenario import Scenario


_PLANNER = click.option(
    "--planner",
    type=click.Choice(planning.PLANNERS),
    default="lanes",
    help="lanes is quick; reference looks at every task. They agree.",
)
_SCENARIO = click.option(
    "--scenario", metavar="FILE", help="A situation instead of the queue; - is stdin."
)


@click.command("plan")
@_SCENARIO
@click.option(
    "--check", is_flag=True, help="Compare with the file's [expect]; exit 1 if it differs."
)
@_PLANNER
@takes_call
def plan_(call: Call, scenario: str | None, check: bool, planner: str) -> int:
    """What would start now, in order, and why the rest waits. Changes nothing.

    \b
    Example:
      fairlane plan
      fairlane plan --scenario examples/balanced.toml
      fairlane plan --scenario examples/depth-first.toml --check
      fairlane --json plan --scenario - < situation.json
    """
    if scenario is None:
        if check or planner != "lanes":
            hint = "Add --scenario FILE, such as --scenario examples/balanced.toml."
            raise Invalid("--check and --planner need a scenario", hint, code="usage")
        plan_queue(call)
        return 0
    call.here()
    from fairlane.service.scenario import check as compare

    situation = read_scenario(call, scenario)
    plan = planning.plan_scenario(situation, planner)
    differences = compare(situation, plan) if check else []
    if call.json:
        document = planning.plan_document(plan, situation.snapshot, situation.policy)
        print_json(document | ({"differences": differences} if check else {}))
    elif check:
        picks = situation.expect.picks
        size = "no picks were named" if picks is None else count(len(picks), "pick")
        write("\n".join(map(safe, differences or [f"as expected: {size}"])) + "\n")
    else:
        write(plan_text(plan, situation.policy) + "\n")
    return 1 if differences else 0


def plan_queue(call: Call) -> None:
    """The plan that a cycle would make now."""
    if call.json:
        print_json(call.ask("plan"))
        return
    if call.server is None:
        from fairlane.engine.look.planned import preview

        with call.context() as context, context.store.read() as reading:
            _, plan, policy = preview(context, reading)
    else:
        from fairlane.policy.policy import Policy

        plan, rules = plan_of(call.ask("plan")), call.ask("policy_show")
        policy = Policy.parse(rules["policy"], call.server)
    write(plan_text(plan, policy) + "\n")


def read_scenario(call: Call, name: str) -> Scenario:
    """The situation in a file or on standard input; `--now` plans it at another time."""
    from fairlane.service.scenario import load, parse

    if name == "-":
        return parse(read_input(), "stdin", call.fixed_now)
    return load(Path(name), call.fixed_now)


@click.command("why")
@click.argument("task", metavar="ID", envvar="FAIRLANE_TASK")
@_SCENARIO
@takes_call
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
    settings = [f"{key}={_toml(value)}" for key, value in policy.items() if key != "budget"]
    return f"fairlane policy set {shlex.join(settings)}" if settings else ""


def _toml(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


#: How many decisions `--list` shows.
LISTED = 50


@click.command("replay")
@click.argument("decision", type=click.IntRange(min=1), required=False, metavar="[DECISION]")
@click.option("--all", "every", is_flag=True, help="All that are recorded; the default.")
@click.option("--list", "listing", is_flag=True, help="Only list what is recorded.")
@click.option("--after", type=click.IntRange(min=0), default=0, metavar="N", help="For --list.")
@click.option("--show", "showing", is_flag=True, help="Only show what was decided.")
@_PLANNER
@takes_call
def replay(
    call: Call,
    decision: int | None,
    every: bool,
    listing: bool,
    showing: bool,
    after: int,
    planner: str,
) -> int:
    """Plan recorded decisions again, and say where the plan is another one (exit 1).

    \b
    Example:
      fairlane replay --all
      fairlane replay 12 --planner reference
      fairlane replay --list
      fairlane replay 12 --show
    """
    if decision is not None and (every or listing):
        raise Invalid("a decision and --all or --list were given", "Keep one.", code="usage")
    if listing:
        decisions: DecisionsAnswer = call.ask("decisions", cursor=after, limit=LISTED)
        text = _decisions(decisions["decisions"], call.clock.now())
        call.show(decisions, lambda: text or "no decision is recorded")
        return 0
    if showing:
        _show_decision(call, decision)
        return 0
    if decision is None and call.server is not None:
        hint = "Name one: fairlane replay 12. `fairlane replay --list` shows them."
        raise Invalid("all decisions: not over a URL", hint, code="usage")
    document: ReplayedAnswer = call.ask("replay", number=decision, planner=planner)
    call.show(document, lambda: _replayed_text(document))
    return 1 if document["different"] else 0


def _replayed_text(document: ReplayedAnswer) -> str:
    number = document["replayed"]
    if not number:
        return "no decision is recorded"
    if not document["different"]:
        return paint(f"{count(number, 'decision')} replayed, the same every time", "green")
    wrong = document["different"]
    lines = [paint(f"{len(wrong)} of {count(number, 'decision')} came out differently:", "red")]
    for decision in wrong:
        lines += [f"  decision {decision['decision']}"]
        lines += [safe(f"    {difference}") for difference in decision["differences"]]
    return "\n".join(lines)


def _show_decision(call: Call, decision: int | None) -> None:
    if decision is None:
        raise Invalid("--show needs a decision", "Name one: replay 12 --show.", code="usage")
    document = call.ask("decision", number=decision)
    holds: list[HeldDocument] = document["plan"]["holds"]
    rows = [(hold["code"], hold["count"], hold["reason"]) for hold in holds]
    parts = [_decisions([document], call.clock.now())]
    parts += [table(("held by", "tasks", "why"), rows, right=(1,))] if rows else []
    call.show(document, lambda: "\n\n".join(parts))


def _decisions(decisions: Sequence[DecisionDocument], now: Instant) -> str:
    rows = [
        (
            decision["decision"],
            until_text(parse_instant(decision["at"]), now),
            decision["reason"],
            len(decision["reclaims"]) or "",
            listed(decision["picks"][:8], len(decision["picks"])),
        )
        for decision in decisions
    ]
    return table(("#", "when", "reason", "reclaims", "picks"), rows, right=(0, 3))
