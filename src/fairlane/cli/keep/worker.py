"""`fairlane worker`: machines that take work."""

from __future__ import annotations

from typing import Any

import click

from fairlane.cli.keep.facts import facts, shown
from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import listed, paint, print_json, safe, table, until_text, write
from fairlane.model.instant import Instant, parse_instant


@click.group("worker")
@common
def command() -> None:
    """Machines that take work: slots, labels, when they were seen.

    A worker is known from its first `fairlane lease` on.

    \b
    Example:
      fairlane worker list
    """


@command.command("list")
@common
@pass_call
def list_(call: Call) -> None:
    """Every worker that was seen.

    \b
    Example:
      fairlane worker list
    """
    document = call.ask("worker_list")
    if call.json:
        print_json(document)
        return
    now = call.clock.now()
    rows = [_row(each, now) for each in document["workers"]]
    head = ("worker", "host", "busy", "seen", "", "labels")
    text = table(head, rows, right=(2,), tint={"live": "green", "gone": "red"})
    nobody = "no worker was seen yet; a plan assumes this machine with its slots"
    write((text if rows else nobody) + "\n")


@command.command("show")
@click.argument("name", metavar="WORKER")
@common
@pass_call
def show(call: Call, name: str) -> None:
    """One worker with what it runs.

    \b
    Example:
      fairlane worker show box1
    """
    document = call.ask("worker_show", name=name)
    if call.json:
        print_json(document)
        return
    worker = document["worker"]
    row = _row(worker, call.clock.now())
    told = dict(zip(("host", "busy", "seen", "is", "labels"), map(str, row[1:]), strict=True))
    told["runs"] = listed(worker["tasks"][:20], len(worker["tasks"]))
    write(paint(safe(name), "bold") + "\n" + facts(told) + "\n")


def _row(each: dict[str, Any], now: Instant) -> tuple[object, ...]:
    slots = shown(each["slots"])
    return (
        each["name"],
        each["host"],
        f"{len(each['tasks'])}{f' of {slots}' if slots else ''}",
        until_text(parse_instant(each["seen_at"]), now),
        "live" if each["live"] else "gone",
        shown(each["labels"]),
    )
