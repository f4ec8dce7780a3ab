"""`fairlane release`: give it back."""

from __future__ import annotations

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import paint, print_json, safe, until_text, write
from fairlane.cli.values import DOLLARS, SECONDS, TIME, TOKENS, Counters, used
from fairlane.model.errors import Invalid
from fairlane.model.instant import SECOND, parse_instant, show_instant

#: How an attempt can end.
OUTCOMES = (
    "succeeded", "failed", "launch_failed", "throttled", "environment", "released", "canceled",
)  # fmt: skip


@click.command("release")
@click.argument("lease", metavar="LEASE", envvar="FAIRLANE_LEASE")
@click.option("--failed", is_flag=True, help="The work failed: it uses up an attempt.")
@click.option("--outcome", type=click.Choice(OUTCOMES), help="How it ended.")
@click.option("--reason", default="", metavar="TEXT", help="What went wrong; people see it.")
@click.option("--retry-after", type=SECONDS, metavar="S", help="The provider's wait: 30 or 5m.")
@click.option("--resets-at", type=TIME, help="When the provider's window opens again.")
@click.option("--tokens", type=TOKENS, help="All it used: input=N,output=N,… or a number.")
@click.option("--cost", type=DOLLARS, help="All it cost, in dollars.")
@common
@pass_call
def command(
    call: Call,
    lease: str,
    failed: bool,
    outcome: str | None,
    reason: str,
    retry_after: int | None,
    resets_at: int | None,
    tokens: Counters | None,
    cost: int | None,
) -> None:
    """Give it back: untouched, or failed, or as the outcome says.

    A throttle cools the whole pool down and uses up no attempt.

    \b
    Example:
      fairlane release L7
      fairlane release L7 --failed --reason "exit 1"
      fairlane release L7 --outcome throttled --retry-after 30
    """
    ended = _outcome(failed, outcome, retry_after is not None or resets_at is not None)
    document = call.ask(
        "release",
        lease=lease,
        outcome=ended,
        reason=reason,
        retry_after=None if retry_after is None else retry_after / SECOND,
        resets_at=None if resets_at is None else show_instant(resets_at),
        **used(tokens, cost),
    )
    if call.json:
        print_json(document)
    else:
        write(_text(call, document["task"]) + "\n")


def _outcome(failed: bool, outcome: str | None, waits: bool) -> str:
    if failed and outcome not in (None, "failed"):
        raise Invalid(f"--failed and --outcome {outcome} contradict each other", "Keep one.")
    if waits and (failed or outcome not in (None, "throttled")):
        hint = "Add --outcome throttled, or take the wait out."
        raise Invalid("--retry-after and --resets-at are of a throttle", hint)
    return outcome or ("failed" if failed else "throttled" if waits else "released")


def _text(call: Call, name: str) -> str:
    """Where the task stands now, and until when."""
    task = call.ask("show", task=name)["task"]
    if task["status"] == "queued":
        wait = task["backoff_until"]
        until = until_text(parse_instant(wait), call.clock.now()) if wait else ""
        return safe(f"{name} is queued{f'; tries again {until}' if until else ''}")
    why = f": {task['reason']}" if task["reason"] else ""
    return paint(safe(f"{name} is {task['status']}{why}"), "yellow")
