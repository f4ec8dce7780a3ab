"""`fairlane demo`: a finished little world without any account."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import count, paint, print_json, table, warn, write
from fairlane.model.errors import TryLater

if TYPE_CHECKING:
    from fairlane.daemon.servant import Servant
    from fairlane.service.desk import Desk


@click.command("demo")
@click.option("--seconds", type=float, default=6.0, metavar="S", help="Longest work of a task.")
@click.option("--serve", is_flag=True, help="Open the page too; it stays until Ctrl-C.")
@click.option("--seed", type=int, default=7, metavar="N", help="Another seed, another story.")
@common
@pass_call
def command(call: Call, seconds: float, serve: bool, seed: int) -> None:
    """Forty tasks in three projects, eight slots, no account: about a minute, then the story.

    Some attempts fail, one is throttled, one task is parked. Its home folder is a new one.

    \b
    Example:
      fairlane demo
      fairlane demo --serve
    """
    from fairlane.app import open_desk
    from fairlane.cli.work.view import Screen
    from fairlane.daemon.main import Daemon, Wish
    from fairlane.service import demo
    from fairlane.service.reports import stats, summary

    call.here()
    home = call.home or Path(tempfile.mkdtemp(prefix="fairlane-demo-"))
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    (home / "policy.toml").write_text(demo.POLICY, encoding="utf-8")
    (home / "fairlane.toml").write_text(demo.SETTINGS, encoding="utf-8")
    desk = open_desk(home, None, call.clock)
    demo.prepare(desk, seed, seconds)
    servant = _serve(call, home) if serve else None
    screen = Screen(desk, "fairlane demo", silent=call.json)
    try:
        Daemon(desk, "demo", say=screen.say, tick=screen.tick).run(Wish(until_idle=True))
    except BaseException:
        _end(servant)
        raise
    finally:
        screen.close()
    told = {"summary": summary.summary(desk), "stats": stats.stats(desk)}
    if call.json:
        print_json({"schema": "fairlane/1", "home": str(home), **told})
    else:
        write(_story(desk, told["summary"], told["stats"], home))
    if servant is not None:
        _stay(servant, call.json)


def _serve(call: Call, home: Path) -> Servant:
    """The page, at a port that is free; who looks on has it open before the first task starts."""
    from fairlane.cli.work.serving import (
        has_screen,
        new_link,
        refuse_missing,
        wait_for_server,
        words,
    )
    from fairlane.daemon.servant import Servant

    refuse_missing()
    call.home = home
    servant = Servant(words(call, "--port", "0"), sys.stderr.buffer, warn)
    servant.look()
    try:
        link = new_link(home) if wait_for_server(home) else None
    except BaseException:
        servant.close()
        raise
    if link is None:
        servant.close()
        raise TryLater("the page did not come up", "What it said stands above.", "not_served")
    print(f"open {link}", file=sys.stderr, flush=True)
    if has_screen():
        click.launch(link)
    return servant


def _stay(servant: Servant, quiet: bool) -> None:
    """The page goes on until an interrupt."""
    if not quiet:
        write("The page stays open: look around. Ctrl-C ends it.\n")
    sys.stdout.flush()
    pause = Event()
    try:
        while servant.is_there:
            servant.look()
            pause.wait(0.5)
    finally:
        servant.close()


def _end(servant: Servant | None) -> None:
    if servant is not None:
        servant.close()


def _story(desk: Desk, past: dict[str, Any], numbers: dict[str, Any], home: Path) -> str:
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
    for each in past["parked"]["tasks"]:
        lines += [paint(f"Parked: {each['id']}", "bold", "red"), f"  {each['reason']}", ""]
    lines += [
        paint("Look around:", "bold"),
        f"  export FAIRLANE_HOME={home}",
        "  fairlane why api-10              why it does not run, and what to do",
        "  fairlane show web-6              the throttled one: every attempt, tokens and cost",
        "  fairlane stats --plot demo.svg   shares, usage, and who ran when",
        "  fairlane replay --all            every decision planned again: the same bytes",
        "",
        paint("With your own agents:", "bold"),
        '  fairlane init && fairlane add "Fix the login form" && fairlane up',
        "",
    ]
    return "\n".join(lines)


def _shares(numbers: dict[str, Any]) -> str:
    rows = []
    for each in numbers["projects"]:
        if each["tokens"]:
            share, target = each["share"] or 0, each["target"] or 0
            bar = "█" * round(share * 30)
            row = (each["project"], each["weight"], f"{target:.0%}", f"{share:.0%}", bar)
            rows.append(row)
    return table(("project", "weight", "target", "got", ""), rows, right=(1, 2, 3))
