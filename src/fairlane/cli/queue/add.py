"""`fairlane add`: put a task into the queue, or a file of them."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import print_error, print_json, warn, write
from fairlane.cli.queue.fields import record, takes_fields
from fairlane.model.errors import Invalid, TryLater

if TYPE_CHECKING:
    from fairlane.intake.records import Records

#: What `--file` gives for every task itself.
_ONE_ONLY = ("id", "title", "prompt", "command")
#: The recipes that come with Fairlane, for the help; a test compares.
RECIPES = "best-of-two, fix, full, plan"
#: How a server names one of many tasks.
_NAMED = re.compile(r"task ([0-9]+): ")
#: Kind and project of the only task, and whether it waits; None where nobody reads it.
Look: TypeAlias = "tuple[str, str, bool] | None"


class _BeforeCommand(click.Command):
    """What stands after `--` is the task's own command line, whatever it looks like."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Ours are the arguments before `--`."""
        if "--" in args:
            at = args.index("--")
            ctx.meta["fairlane.command"] = args[at + 1 :]
            args = args[:at]
        return super().parse_args(ctx, args)


@click.command("add", cls=_BeforeCommand)
@click.argument("prompt", required=False, metavar="[PROMPT] [-- COMMAND...]")
@takes_fields
@click.option("--id", metavar="ID", help="Its name; default: t1, t2, …")
@click.option("--parent", metavar="ID", help="The task that makes this one.")
@click.option("--need", "needs", multiple=True, metavar="ID", help="Waits for it; repeat.")
@click.option("--again", is_flag=True, help="Put a task that is done or canceled back.")
@click.option("--force", is_flag=True, help="Even with another project's prefix in its id.")
@click.option("--file", metavar="TASKS.jsonl", help="Many, one a line; - is stdin. All or nothing.")
@click.option("--chain", is_flag=True, help="With --file: each needs the one before.")
@click.option("--recipe", metavar="NAME", help=f"A chain out of one prompt: {RECIPES}, your own.")
@click.option("--dry-run", is_flag=True, help="Say what would be added; change nothing.")
@common
@pass_call
@click.pass_context
def command(
    context: click.Context,
    call: Call,
    /,
    again: bool,
    force: bool,
    file: str | None,
    chain: bool,
    recipe: str | None,
    dry_run: bool,
    **given: Any,
) -> int:
    """Put a task into the queue. An id that is known returns what is there and changes nothing.

    PROMPT is what the agent is told; `-` reads it from standard input. After `--` comes a
    command line, which is run as it is.

    \b
    Example:
      fairlane add "Fix the login form" --project web --priority 10
      fairlane add --project web --kind review --need t1 -- make test
      fairlane add --file tasks.jsonl --group release --chain
      fairlane add "Log in with a passkey" --recipe full --project web
    """
    given["command"] = context.meta.get("fairlane.command", ())
    fields = record(given, call.clock.now())
    if recipe is not None and file is not None:
        raise Invalid("--recipe and --file were given", "Keep one of them.", code="usage")
    records = _records(file, fields, chain)
    how: dict[str, Any] = {"again": again, "force": force, "chain": chain, "dry_run": dry_run}
    how["recipe"] = recipe
    how["defaults"] = fields if file else None
    add = _add_there if call.server is not None else _add_here
    document, look = add(call, records, how)
    if call.json:
        print_json(document)
    elif document["deferred"]:
        print_error(TryLater(document["message"], document["hint"], "deferred"), False)
    else:
        _tell(document, look)
    return TryLater.exit_code if document["deferred"] else 0


def _add_here(call: Call, records: Records, how: dict[str, Any]) -> tuple[dict[str, Any], Look]:
    """Add to the home folder; in direct mode what was added starts at once."""
    from fairlane.app.here import answer_here
    from fairlane.service.operations import answer

    with call.desk() as desk:
        document = answer_here(
            desk, "add", lambda: answer(desk, "add", tasks=records, **how), how["dry_run"]
        )
        placed = None
        if len(document["tasks"]) == 1 and not call.json:
            with desk.store.read() as reading:
                placed = reading.placed(document["tasks"][0]["id"])
    if placed is None:  # a dry run, or many
        return document, None
    return document, (placed.task.kind, placed.task.project, bool(placed.wait))


def _add_there(call: Call, records: Records, how: dict[str, Any]) -> tuple[dict[str, Any], Look]:
    """Add at the server; a task that it refuses is named by its line."""
    try:
        document = call.ask("add", tasks=records.rows, **how)
    except Invalid as error:
        at = _NAMED.match(error.message)
        if at is None:
            raise
        where = records.where(int(at[1]) - 1)
        raise Invalid(where + error.message[at.end() :], error.hint, error.error_code) from None
    rows = document["tasks"]
    if call.json or len(rows) != 1 or not rows[0]["created"] or how["dry_run"]:
        return document, None
    task = call.ask("show", task=rows[0]["id"])["task"]
    return document, (
        task["kind"],
        task["project"],
        not task["ready"] and task["status"] == "queued",
    )


def _records(file: str | None, fields: dict[str, Any], chain: bool) -> Records:
    from fairlane.intake.records import Records, parse_jsonl

    if file is None:
        if chain:
            raise Invalid("--chain needs --file", "Give the tasks in a file, one a line.")
        if not any(fields.get(name) for name in _ONE_ONLY):
            hint = 'Write it: fairlane add "Fix the login form". Or see fairlane add --help.'
            raise Invalid("there is nothing to add: no prompt was given", hint, code="usage")
        return Records.of([fields])
    for name in _ONE_ONLY:
        if name in fields:
            raise Invalid(f"--file gives each task its own {name}", f"Take the {name} out.")
    return parse_jsonl(_text(file), "stdin" if file == "-" else file)


def _text(file: str) -> str:
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return data.decode("utf-8-sig")
    except OSError as error:
        raise Invalid(f"{file}: cannot be read: {error.strerror}", "Give a JSONL file.") from error
    except UnicodeDecodeError as error:
        raise Invalid(f"{file}: not UTF-8 text", "Give a JSONL file.") from error


def _tell(document: dict[str, Any], look: Look) -> None:
    from fairlane.cli.queue.text import added_text

    write(added_text(document, look) + "\n")
    warnings = [row["warning"] for row in document["tasks"] if "warning" in row]
    if warnings:
        warn(warnings[-1])
