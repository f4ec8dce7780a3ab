"""`fairlane run`: cycles in the foreground."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import count, print_json, warn, write
from fairlane.cli.values import DURATION
from fairlane.model.instant import SECOND

if TYPE_CHECKING:
    from fairlane.service.desk import Desk


@click.command("run")
@click.option("--once", is_flag=True, help="One cycle; wait for what it started.")
@click.option("--until-idle", is_flag=True, help="Until nothing more can start (default).")
@click.option("--max-wait", type=DURATION, metavar="TIME", help="Wait at most this long idle.")
@click.option("--batch", type=click.IntRange(min=1), metavar="N", help="At most N starts a cycle.")
@click.option("--dry-run", is_flag=True, help="Show what would start; change nothing.")
@click.option("--fail", is_flag=True, help="Exit 1 if anything was parked.")
@common
@pass_call
def command(
    call: Call,
    once: bool,
    until_idle: bool,
    max_wait: int | None,
    batch: int | None,
    dry_run: bool,
    fail: bool,
) -> int:
    """Start what may start, until nothing more can. Backoffs and cooldowns are waited for.

    \b
    Example:
      fairlane run --until-idle
      fairlane run --once --batch 2
      fairlane run --dry-run
    """
    from fairlane.daemon.main import Wish

    with call.desk() as desk:
        if dry_run:
            return _dry_run(call, desk)
        wait = None if max_wait is None else max_wait / SECOND
        wish = Wish(once=once, until_idle=not once, max_wait=wait, limit=batch)
        return _run(call, desk, wish, fail)


def _run(call: Call, desk: Desk, wish: object, fail: bool) -> int:
    from fairlane.cli.work.view import Bar
    from fairlane.daemon.main import Daemon, Wish
    from fairlane.service.reports import status

    assert isinstance(wish, Wish)
    bar = Bar(silent=call.json)
    daemon = Daemon(desk, "run", say=bar.say, tick=bar.tick)
    daemon.run(wish)
    bar.close()
    if daemon.stopping and daemon.crew.members:
        going = count(len(daemon.crew.members), "agent")
        warn(f"{going} left running; `fairlane run` or `fairlane up` takes them in again")
    if call.json:
        document = status.status(desk)
        print_json(document | {"ended": daemon.ended, "parked_now": daemon.parked})
    else:
        parked = f", {daemon.parked} parked" if daemon.parked else ""
        write(f"{count(daemon.ended, 'attempt')} ended{parked}.\n")
    return 1 if fail and daemon.parked else 0


def _dry_run(call: Call, desk: Desk) -> int:
    from fairlane.cli.look.plan_text import plan_text
    from fairlane.service import rounds

    with desk.store.read() as reading:
        _, plan, policy = rounds.preview(desk, reading)
    if call.json:
        print_json(rounds.plan(desk))
    else:
        write(plan_text(plan, policy) + "\n")
    return 0
