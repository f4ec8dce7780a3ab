"""`fairlane pool`: accounts whose limits are shared."""

from __future__ import annotations

from typing import Any

import click

from fairlane.cli.keep.facts import facts, shown
from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import paint, print_json, safe, table, until_text, write
from fairlane.model.instant import Instant, parse_instant


@click.group("pool")
@common
def command() -> None:
    """Accounts whose limits are shared: cooldowns, caps, what is in flight.

    \b
    Example:
      fairlane pool list
    """


@command.command("list")
@common
@pass_call
def list_(call: Call) -> None:
    """Every pool that an agent, a task or the settings name.

    \b
    Example:
      fairlane pool list
    """
    document = call.ask("pool_list")
    if call.json:
        print_json(document)
        return
    now = call.clock.now()
    rows = [(each["name"], in_flight(each), pool_text(each, now)) for each in document["pools"]]
    head = ("pool", "in flight", "how it is")
    write((table(head, rows, right=(1,)) if rows else "there is no pool") + "\n")


@command.command("show")
@click.argument("name", metavar="POOL")
@common
@pass_call
def show(call: Call, name: str) -> None:
    """One pool.

    \b
    Example:
      fairlane pool show anthropic
    """
    document = call.ask("pool_show", name=name)
    if call.json:
        print_json(document)
        return
    pool = document["pool"]
    told = {"in flight": in_flight(pool), "is": pool_text(pool, call.clock.now())}
    told["throttled"] = f"{pool['hits']} in a row" if pool["hits"] else ""
    write(paint(safe(name), "bold") + "\n" + facts(told) + "\n")


def in_flight(pool: dict[str, Any]) -> str:
    """`2 of 4`, `2`."""
    cap = shown(pool["cap"])
    return f"{pool['in_flight']}{f' of {cap}' if cap else ''}"


def pool_text(pool: dict[str, Any], now: Instant) -> str:
    """How a pool is, in words."""
    if pool["paused"]:
        return "paused" + (f": {pool['reason']}" if pool["reason"] else "")
    cause = f": {pool['cause']}" if pool["cause"] else ""
    if pool["cooldown"]:
        return f"cools down{cause}, ends {until_text(parse_instant(pool['until']), now)}"
    return f"is tried again with one task{cause}" if pool["probing"] else "well"
