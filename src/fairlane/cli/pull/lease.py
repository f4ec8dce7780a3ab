"""`fairlane lease`: take what may start now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import count, first_line, paint, print_json, safe, table, until_text, write
from fairlane.cli.values import DURATION
from fairlane.model.instant import SECOND, parse_instant

if TYPE_CHECKING:
    from fairlane.model.instant import Instant


@click.command("lease")
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="At most this many.")
@click.option("--worker", metavar="W", help="Who asks; default: the name of this machine.")
@click.option("--label", "labels", multiple=True, metavar="L", help="What this worker has: gpu.")
@click.option("--wait", type=DURATION, default="0s", help="Wait this long for something: 30s.")
@common
@pass_call
def command(
    call: Call, limit: int | None, worker: str | None, labels: tuple[str, ...], wait: int
) -> None:
    """Take what may start now. Each lease is yours until it expires: keep it with `heartbeat`.

    \b
    Example:
      fairlane lease --limit 1 --worker box1
      fairlane lease --label gpu --wait 30s --json
    """
    document = call.ask("lease", limit=limit, worker=worker, labels=labels, wait=wait / SECOND)
    if call.json:
        print_json(document)
    else:
        write(_text(document, call.clock.now()) + "\n")


def _text(document: dict[str, Any], now: Instant) -> str:
    from fairlane.cli.look.plan_text import ENDED
    from fairlane.model.plan import Reason

    taken = document["leases"]
    if not taken:
        return f"Nothing to take. {ENDED[Reason(document['reason'])]}"
    title = paint(f"{count(len(taken), 'lease').capitalize()} taken:", "bold", "green")
    rows = [
        (
            each["lease"],
            each["task"],
            each["project"],
            each["kind"],
            each["attempt"],
            until_text(parse_instant(each["expires_at"]), now),
            safe(each["title"] or first_line(each["prompt"]) or " ".join(each["command"])),
        )
        for each in taken
    ]
    head = ("lease", "task", "project", "kind", "attempt", "expires", "what")
    return f"{title}\n{table(head, rows, right=(4,))}"
