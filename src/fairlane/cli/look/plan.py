"""`fairlane plan` and `replay`: what would start, what was decided."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairlane.cli.call import Call
from fairlane.cli.look.plan_text import plan_of, plan_text
from fairlane.cli.look.why import SCENARIO, read_scenario
from fairlane.cli.options import takes_call, takes_options
from fairlane.cli.output import count, listed, paint, print_json, safe, table, until_text, write
from fairlane.model.errors import Invalid
from fairlane.model.instant import Instant, parse_instant
from fairlane.service import planning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlane.model.documents.parts import HeldDocument
    from fairlane.model.documents.reports import (
        DecisionDocument,
        DecisionsAnswer,
        ReplayedAnswer,
    )


_PLANNER = click.option(
    "--planner",
    type=click.Choice(planning.PLANNERS),
    default="lanes",
    help="lanes is quick; reference looks at every task. They agree.",
)


@click.command("plan")
@takes_options(SCENARIO)
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
