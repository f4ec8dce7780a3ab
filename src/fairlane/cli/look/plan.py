"""`fairlane plan`: what would start now, and why the rest waits."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import count, print_json, safe, write
from fairlane.model.errors import Invalid
from fairlane.service import plans

if TYPE_CHECKING:
    from fairlane.model.plan import Plan
    from fairlane.policy.policy import Policy
    from fairlane.service.scenario import Scenario


@click.command("plan")
@click.option("--scenario", metavar="FILE", help="A situation instead of the queue; - is stdin.")
@click.option(
    "--check", is_flag=True, help="Compare with the file's [expect]; exit 1 if it differs."
)
@click.option(
    "--planner",
    type=click.Choice(plans.PLANNERS),
    default="lanes",
    help="lanes is quick; reference looks at every task. They agree.",
)
@common
@pass_call
def command(call: Call, scenario: str | None, check: bool, planner: str) -> int:
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
        _plan_queue(call)
        return 0
    call.here()
    situation = read_scenario(call, scenario)
    plan = plans.plan_scenario(situation, planner)
    differences = plans.check_scenario(situation, plan) if check else []
    if call.json:
        document = plans.plan_document(plan, situation.snapshot, situation.policy)
        print_json(document | ({"differences": differences} if check else {}))
    elif check:
        said = "\n".join(safe(each) for each in differences)
        write(f"{said}\n" if said else f"as expected: {_size(situation)}\n")
    else:
        from fairlane.cli.look.plan_text import plan_text

        write(plan_text(plan, situation.policy) + "\n")
    return 1 if differences else 0


def _plan_queue(call: Call) -> None:
    """The plan that a cycle would make now."""
    if call.json:
        print_json(call.ask("plan"))
        return
    plan, policy = _plan_there(call) if call.server is not None else _plan_here(call)
    from fairlane.cli.look.plan_text import plan_text

    write(plan_text(plan, policy) + "\n")


def _plan_here(call: Call) -> tuple[Plan, Policy]:
    from fairlane.service import rounds

    with call.desk() as desk, desk.store.read() as reading:
        _, plan, policy = rounds.preview(desk, reading)
    return plan, policy


def _plan_there(call: Call) -> tuple[Plan, Policy]:
    from fairlane.cli.look.plan_told import plan_told
    from fairlane.policy.policy import Policy

    plan, rules = plan_told(call.ask("plan")), call.ask("policy_show")
    return plan, Policy.parse(rules["policy"], str(call.server))


def read_scenario(call: Call, name: str) -> Scenario:
    """The situation in a file or on standard input; `--now` plans it at another time."""
    from fairlane.service.scenario import load, parse

    if name == "-":
        return parse(sys.stdin.buffer.read(), "stdin", call.fixed_now)
    return load(Path(name), call.fixed_now)


def _size(situation: Scenario) -> str:
    picks = situation.expect.picks
    return count(len(picks), "pick") if picks is not None else "no picks were named"
