"""`fairlane replay`: plan recorded decisions again."""

from __future__ import annotations

from typing import Any

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import count, listed, paint, print_json, safe, table, until_text, write
from fairlane.model.errors import Invalid
from fairlane.model.instant import Instant, parse_instant
from fairlane.service.plans import PLANNERS

#: How many decisions `--list` shows.
LISTED = 50


@click.command("replay")
@click.argument("decision", type=click.IntRange(min=1), required=False, metavar="[DECISION]")
@click.option("--all", "every", is_flag=True, help="All that are recorded; the default.")
@click.option("--list", "listing", is_flag=True, help="Only list what is recorded.")
@click.option("--after", type=click.IntRange(min=0), default=0, metavar="N", help="For --list.")
@click.option("--show", "showing", is_flag=True, help="Only show what was decided.")
@click.option(
    "--planner",
    type=click.Choice(PLANNERS),
    default="lanes",
    help="lanes is quick; reference looks at every task. They agree.",
)
@common
@pass_call
def command(
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
        _list(call, call.ask("decisions", cursor=after, limit=LISTED))
        return 0
    if showing:
        _show(call, decision)
        return 0
    if decision is None and call.server is not None:
        hint = "Name one: fairlane replay 12. `fairlane replay --list` shows them."
        raise Invalid("all decisions: not over a URL", hint, code="usage")
    document = call.ask("replay", number=decision, planner=planner)
    if call.json:
        print_json(document)
    else:
        write(_text(document) + "\n")
    return 1 if document["different"] else 0


def _text(document: dict[str, Any]) -> str:
    number = document["replayed"]
    if not number:
        return "no decision is recorded"
    if not document["different"]:
        return paint(f"{count(number, 'decision')} replayed, the same every time", "green")
    wrong = document["different"]
    lines = [paint(f"{len(wrong)} of {count(number, 'decision')} came out differently:", "red")]
    for each in wrong:
        lines += [f"  decision {each['decision']}"]
        lines += [safe(f"    {difference}") for difference in each["differences"]]
    return "\n".join(lines)


def _list(call: Call, document: dict[str, Any]) -> None:
    if call.json:
        print_json(document)
        return
    now = call.clock.now()
    rows = [_row(each, now) for each in document["decisions"]]
    head = ("#", "when", "reason", "reclaims", "picks")
    write((table(head, rows, right=(0, 3)) if rows else "no decision is recorded") + "\n")


def _show(call: Call, decision: int | None) -> None:
    if decision is None:
        raise Invalid("--show needs a decision", "Name one: replay 12 --show.", code="usage")
    document = call.ask("decision", number=decision)
    if call.json:
        print_json(document)
        return
    rows = [_row(document, call.clock.now())]
    held = [(each["code"], each["count"], each["reason"]) for each in document["plan"]["holds"]]
    write(table(("#", "when", "reason", "reclaims", "picks"), rows, right=(0, 3)) + "\n")
    write(f"\n{table(('held by', 'tasks', 'why'), held, right=(1,))}\n" if held else "")


def _row(each: dict[str, Any], now: Instant) -> tuple[object, ...]:
    picks = listed(each["picks"][:8], len(each["picks"]))
    when = until_text(parse_instant(each["at"]), now)
    return each["decision"], when, each["reason"], len(each["reclaims"]) or "", picks
