"""The pull protocol: take tasks, keep their leases, report, and give them back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from fairlane.cli.call import Call
from fairlane.cli.kinds import DOLLARS, DURATION, SECONDS, TIME, TOKENS
from fairlane.cli.options import takes_call
from fairlane.cli.output import count, first_line, listed, paint, safe, table, until_text
from fairlane.cli.values import Counters, read_text, used
from fairlane.model.errors import Invalid
from fairlane.model.instant import SECOND, parse_instant, show_instant
from fairlane.model.values import wrong

if TYPE_CHECKING:
    from fairlane.model.documents.tasks import HeldAnswer, LeasesAnswer, ReclaimedAnswer
    from fairlane.model.instant import Instant


@click.command("lease")
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="At most this many.")
@click.option("--worker", metavar="W", help="Who asks; default: the name of this machine.")
@click.option("--label", "labels", multiple=True, metavar="L", help="What this worker has: gpu.")
@click.option("--wait", type=DURATION, default="0s", help="Wait this long for something: 30s.")
@takes_call
def lease(
    call: Call, limit: int | None, worker: str | None, labels: tuple[str, ...], wait: int
) -> None:
    """Take what may start now. Each lease is yours until it expires: keep it with `heartbeat`.

    \b
    Example:
      fairlane lease --limit 1 --worker box1
      fairlane lease --label gpu --wait 30s --json
    """
    document = call.ask("lease", limit=limit, worker=worker, labels=labels, wait=wait / SECOND)
    call.show(document, lambda: _leases_text(document, call.clock.now()))


def _leases_text(document: LeasesAnswer, now: Instant) -> str:
    from fairlane.cli.look.plan_text import ENDED
    from fairlane.model.plan import Reason

    leases = document["leases"]
    if not leases:
        return f"Nothing to take. {ENDED[Reason(document['reason'])]}"
    title = paint(f"{count(len(leases), 'lease').capitalize()} taken:", "bold", "green")
    rows = [
        (
            lease["lease"],
            lease["task"],
            lease["project"],
            lease["kind"],
            lease["attempt"],
            until_text(parse_instant(lease["expires_at"]), now),
            safe(lease["title"] or first_line(lease["prompt"]) or " ".join(lease["command"])),
        )
        for lease in leases
    ]
    head = ("lease", "task", "project", "kind", "attempt", "expires", "what")
    return f"{title}\n{table(head, rows, right=(4,))}"


@click.command("heartbeat")
@click.argument("lease", metavar="LEASE", envvar="FAIRLANE_LEASE")
@takes_call
def heartbeat(call: Call, lease: str) -> None:
    """Keep a lease. The first heartbeat makes the task running; the answer says whether to stop.

    \b
    Example:
      fairlane heartbeat L7
    """
    document: HeldAnswer = call.ask("heartbeat", lease=lease)
    until = until_text(parse_instant(document["expires_at"]), call.clock.now())
    text = safe(f"{document['task']} is {document['status']}; the lease now ends {until}")
    call.show(document, lambda: text + stop_text(document))


def stop_text(document: HeldAnswer) -> str:
    """What the holder of a lease is asked to do."""
    return paint("; it is to stop", "bold", "yellow") if document["stop"] else ""


@click.command("report")
@click.argument("lease", metavar="[LEASE]", envvar="FAIRLANE_LEASE")
@click.option("--tokens", type=TOKENS, help="Used so far: input=N,output=N,… or a number.")
@click.option("--cost", type=DOLLARS, help="Dollars so far.")
@click.option("--note", default="", metavar="TEXT", help="What it is doing.")
@click.option("--progress", default="", metavar="TEXT", help="How far it is: 3/7, 40%.")
@takes_call
def report(
    call: Call, lease: str, tokens: Counters | None, cost: int | None, note: str, progress: str
) -> None:
    """Tell progress, tokens and cost of what runs. Totals so far, not what was added.

    An attempt that Fairlane started needs no LEASE: it is in FAIRLANE_LEASE.

    \b
    Example:
      fairlane report --progress 3/7 --note "tests are green"
      fairlane report L7 --tokens input=12000,output=800 --cost 0.21
    """
    words = ": ".join(part for part in (progress, note) if part)
    document: HeldAnswer = call.ask("report", lease=lease, note=words, **used(tokens, cost))
    text = safe(f"noted; {document['task']} is {document['status']}")
    call.show(document, lambda: text + stop_text(document))


@click.command("complete")
@click.argument("lease", metavar="LEASE", envvar="FAIRLANE_LEASE")
@click.option("--tokens", type=TOKENS, help="All it used: input=N,output=N,… or a number.")
@click.option("--cost", type=DOLLARS, help="All it cost, in dollars.")
@click.option("--result", metavar="FILE", help="What came of it: JSON or text; - is stdin.")
@click.option("--check", multiple=True, metavar="NAME=EXIT", help="What a check exited with.")
@takes_call
def complete(
    call: Call,
    lease: str,
    tokens: Counters | None,
    cost: int | None,
    result: str | None,
    check: tuple[str, ...],
) -> None:
    """The work is done. Once: the same again is no error and changes nothing.

    Who ran the work elsewhere also says what its checks exited with.

    \b
    Example:
      fairlane complete L7 --tokens input=12000,output=800 --cost 0.21
      fairlane complete L7 --result result.json --check "make test=0"
    """
    came = None if result is None else read_result(result)
    more = used(tokens, cost)
    if check:
        more["checks"] = [_check_result(text) for text in check]
    document: HeldAnswer = call.ask("complete", lease=lease, result=came, **more)
    call.show(document, lambda: _completed_text(document))


def _check_result(text: str) -> dict[str, object]:
    """`NAME=EXIT`; a name may have the sign in it."""
    name, _, code = text.rpartition("=")
    if not name or not code.lstrip("-").isdigit():
        raise wrong("NAME=EXIT", text, 'Write it as --check "make test=0".')
    return {"name": name, "exit": int(code)}


def _completed_text(document: HeldAnswer) -> str:
    task = safe(document["task"])
    if document.get("code") == "checks_pending":
        return f"noted; {task} is done when its checks have passed"
    if document["status"] != "done":
        return paint(f"a check failed; {task} is {document['status']}", "red")
    if document.get("code") == "already_done":
        return f"{task} was done already"
    late = " (late: its lease had run out, and nobody had taken it again)"
    return paint(f"{task} is done", "green") + (late if document.get("late") else "")


def read_result(name: str) -> dict[str, object]:
    """A result: an object as it is, anything else as text."""
    text = read_text(name, "result")
    try:
        result = json.loads(text)
    except (ValueError, RecursionError):
        result = None
    return result if isinstance(result, dict) else {"text": text}


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
@takes_call
def release(
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
    call.show(document, lambda: _released_text(call, document["task"]))


def _outcome(failed: bool, outcome: str | None, waits: bool) -> str:
    if failed and outcome not in (None, "failed"):
        raise Invalid(f"--failed and --outcome {outcome} contradict each other", "Keep one.")
    if waits and (failed or outcome not in (None, "throttled")):
        hint = "Add --outcome throttled, or take the wait out."
        raise Invalid("--retry-after and --resets-at are of a throttle", hint)
    return outcome or ("failed" if failed else "throttled" if waits else "released")


def _released_text(call: Call, name: str) -> str:
    """The status of the task now, and until when."""
    task = call.ask("show", task=name)["task"]
    if task["status"] == "queued":
        wait = task["backoff_until"]
        until = until_text(parse_instant(wait), call.clock.now()) if wait else ""
        return safe(f"{name} is queued{f'; tries again {until}' if until else ''}")
    why = f": {task['reason']}" if task["reason"] else ""
    return paint(safe(f"{name} is {task['status']}{why}"), "yellow")


@click.command("reclaim")
@takes_call
def reclaim(call: Call) -> None:
    """End every lease that has run out. A process that lives on this machine keeps its own.

    Without a daemon, results of agents that ended on this machine are taken in first, and in
    direct mode what is ready by then is started. A daemon does all this by itself.

    \b
    Example:
      fairlane reclaim
    """
    document = call.ask("reclaim")
    call.show(document, lambda: _reclaimed_text(document))


def _reclaimed_text(document: ReclaimedAnswer) -> str:
    lost, parked = document["reclaimed"], document["parked"]
    lines = [f"{count(len(lost), 'lease')} had run out: {_named(lost)}"]
    if not lost:
        lines = ["no lease has run out"]
    collected, started = document.get("taken_in"), document.get("started")
    lines += [f"taken in: {_named(collected)}"] if collected else []
    lines += [f"started: {_named(started)}"] if started else []
    lines += [paint(f"out of attempts, parked: {_named(parked)}", "yellow")] if parked else []
    return "\n".join(lines)


def _named(tasks: list[str]) -> str:
    return safe(listed(tasks[:20], len(tasks)))
