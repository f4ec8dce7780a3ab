"""`fairlane run` and `demo`: cycles in the foreground."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairlane.careful_files import make_home
from fairlane.cli.call import Call
from fairlane.cli.kinds import DURATION
from fairlane.cli.options import takes_call
from fairlane.cli.output import count, paint, print_json, table, warn, write
from fairlane.clock import SYSTEM
from fairlane.model.documents.reports import StatsAnswer, SummaryAnswer
from fairlane.model.errors import TryLater
from fairlane.model.instant import SECOND

if TYPE_CHECKING:
    from fairlane.daemon.main import RunOptions
    from fairlane.daemon.server_process import ServerProcess
    from fairlane.engine.context import Context


@click.command("run")
@click.option("--once", is_flag=True, help="One cycle; wait for what it started.")
@click.option("--until-idle", is_flag=True, help="Until nothing more can start (default).")
@click.option("--max-wait", type=DURATION, metavar="TIME", help="Wait at most this long idle.")
@click.option("--batch", type=click.IntRange(min=1), metavar="N", help="At most N starts a cycle.")
@click.option("--dry-run", is_flag=True, help="Show what would start; change nothing.")
@click.option("--fail", is_flag=True, help="Exit 1 if anything was parked.")
@takes_call
def run(
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
    from fairlane.daemon.main import RunOptions

    call.here()
    if dry_run:
        from fairlane.cli.look.plan import plan_queue

        plan_queue(call)
        return 0
    wait = None if max_wait is None else max_wait / SECOND
    options = RunOptions(once=once, until_idle=not once, max_wait=wait, limit=batch)
    with call.context() as context:
        return _run(call, context, options, fail)


def _run(call: Call, context: Context, options: RunOptions, fail: bool) -> int:
    from fairlane.cli.work.view import Bar
    from fairlane.daemon.main import Daemon
    from fairlane.service.reports import status

    bar = Bar(silent=call.json)
    daemon = Daemon(context, "run", say=bar.say, tick=bar.tick)
    daemon.run(options)
    bar.close()
    if daemon.stopping and daemon.attempts.running.attempts:
        going = count(len(daemon.attempts.running.attempts), "agent")
        warn(f"{going} left running; `fairlane run` or `fairlane up` takes them in again")
    ended, parked = daemon.attempts.ended, daemon.attempts.parked
    counted = {"ended": ended, "parked_now": parked}
    document = {**status.status(context), **counted} if call.json else counted
    lines = [f"{count(ended, 'attempt')} ended" + (f", {parked} parked." if parked else ".")]
    lines += ["Parked tasks: fairlane list --status parked"] if parked else []
    waits = daemon.decided is not None and daemon.decided.waiting > 0
    lines += ["What waits, and why: fairlane status"] if waits else []
    call.show(document, lambda: "\n".join(lines))
    return 1 if fail and parked else 0


@click.command("demo")
@click.option("--seconds", type=float, default=6.0, metavar="S", help="Longest work of a task.")
@click.option("--serve", is_flag=True, help="Open the page too; it stays until Ctrl-C.")
@click.option("--seed", type=int, default=7, metavar="N", help="Another seed, another story.")
@takes_call
def demo_(call: Call, seconds: float, serve: bool, seed: int) -> None:
    """Forty tasks in three projects, eight slots, no account: about a minute, then the story.

    Some attempts fail, one is throttled, one task is parked. Its home folder is a new one.

    \b
    Example:
      fairlane demo
      fairlane demo --serve
    """
    from fairlane.app import open_context
    from fairlane.cli.work.view import Screen
    from fairlane.daemon.main import Daemon, RunOptions
    from fairlane.service import demo
    from fairlane.service.reports import stats, summary

    call.here()
    home = call.home or Path(tempfile.mkdtemp(prefix="fairlane-demo-"))
    make_home(home)
    (home / "policy.toml").write_text(demo.POLICY, encoding="utf-8")
    (home / "fairlane.toml").write_text(demo.SETTINGS, encoding="utf-8")
    context = open_context(home, None, call.clock)
    demo.prepare(context, seed, seconds)
    servant = _serve(call, home) if serve else None
    screen = Screen(context, "fairlane demo", silent=call.json)
    try:
        Daemon(context, "demo", say=screen.say, tick=screen.tick).run(RunOptions(until_idle=True))
    except BaseException:
        if servant is not None:
            servant.close()
        raise
    finally:
        screen.close()
    past, numbers = summary.summary(context), stats.stats(context)
    if call.json:
        document = {"home": str(home), "summary": past, "stats": numbers}
        print_json({"schema": "fairlane/1", **document})
    else:
        write(_story(context, past, numbers, home))
    if servant is not None:
        _stay(servant, call.json)


def _serve(call: Call, home: Path) -> ServerProcess:
    """Serve the dashboard at a free port; it is open before the first task starts."""
    from fairlane.cli.work import serve
    from fairlane.daemon.server_process import ServerProcess

    serve.refuse_missing()
    call.home = home
    servant = ServerProcess(
        serve.words(call, "serve", "--until-eof", "--port", "0"), sys.stderr.buffer, warn
    )
    servant.look()
    try:
        link = serve.new_link(home) if serve.wait_for_server(home) else None
    except BaseException:
        servant.close()
        raise
    if link is None:
        servant.close()
        raise TryLater("the page did not come up", "What it said stands above.", "not_served")
    print(f"open {link}", file=sys.stderr, flush=True)
    if serve.has_screen():
        serve.open_browser(home, link)
    return servant


def _stay(servant: ServerProcess, quiet: bool) -> None:
    """Keep the dashboard open until an interrupt."""
    if not quiet:
        write("The page stays open: look around. Ctrl-C ends it.\n")
    sys.stdout.flush()
    try:
        while servant.is_there:
            servant.look()
            SYSTEM.wait(0.5)
    finally:
        servant.close()


def _story(context: Context, past: SummaryAnswer, numbers: StatsAnswer, home: Path) -> str:
    attempts = past["attempts"]
    tried = count(sum(attempts.values()), "attempt")
    trouble = f"{attempts['failed']} failed, {attempts['throttled']} throttled"
    lines = [
        paint("The demo is over. What happened:", "bold"),
        "",
        f"  {count(past['done']['count'], 'task')} done in {tried}: {trouble}",
        f"  {past['tokens']:,} tokens, ${past['usd']:.2f}",
        "",
        paint("Who used what, beside what their weights ask for:", "bold"),
        _shares(numbers),
        "  (the forty tasks differ in size: whoever has no work left leaves its share to others)",
        "",
    ]
    for task in past["parked"]["tasks"]:
        lines += [paint(f"Parked: {task['id']}", "bold", "red"), f"  {task['reason']}", ""]
    lines += [
        paint("Look around:", "bold"),
        f"  export FAIRLANE_HOME={home}",
        "  fairlane why api-10              why it does not run, and what to do",
        "  fairlane show web-6              the throttled one: every attempt, tokens and cost",
        "  fairlane stats --plot demo.svg   shares, usage, and who ran when",
        "  fairlane replay --all            every decision planned again: the same bytes",
        "",
        paint("With your own agents:", "bold"),
        "  unset FAIRLANE_HOME",
        '  fairlane init && fairlane add "Fix the login form" && fairlane up',
        "",
    ]
    return "\n".join(lines)


def _shares(numbers: StatsAnswer) -> str:
    rows = []
    for project in numbers["projects"]:
        if project["tokens"]:
            share, target = project["share"] or 0, project["target"] or 0
            bar = "█" * round(share * 30)
            row = (project["project"], project["weight"], f"{target:.0%}", f"{share:.0%}", bar)
            rows.append(row)
    return table(("project", "weight", "target", "got", ""), rows, right=(1, 2, 3))
