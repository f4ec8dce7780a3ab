"""`fairlane stats`: shares against targets, waits, durations, tokens and cost."""

from __future__ import annotations

from pathlib import Path

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import print_json, safe, write


@click.command("stats")
@click.option("--since", metavar="LENGTH|TIME", help="How far back; default: the share window.")
@click.option("--plot", metavar="FILE.svg|.png", help="Draw shares, usage and the timeline.")
@common
@pass_call
def command(call: Call, since: str | None, plot: str | None) -> None:
    """Shares against targets with the bound, waits, durations, tokens, cost, estimates.

    \b
    Example:
      fairlane stats --since 7d
      fairlane stats --plot week.svg
    """
    document = call.ask("stats", since=since)
    if plot is not None:
        from fairlane.cli.look.plot import draw

        draw(document, Path(plot))
    if call.json:
        print_json(document)
        return
    from fairlane.cli.look.stats_text import stats_text

    write(stats_text(document) + "\n")
    if plot is not None:
        write(f"\ndrawn: {safe(plot)}\n")
