"""`fairlane`: a group whose verbs are imported when they are called."""

from __future__ import annotations

import gc
import os
import signal
import sys
from importlib import import_module
from keyword import iskeyword
from typing import TYPE_CHECKING, NoReturn

import click

from fairlane import __version__
from fairlane.cli.options import Call, common
from fairlane.cli.output import print_error
from fairlane.model.errors import NO_ROOM, FairlaneError, Invalid, TryLater, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from click.shell_completion import CompletionItem

#: Title -> folder, and its verbs with the line that the list of verbs shows: one verb, one file.
SECTIONS: dict[str, tuple[str, dict[str, str]]] = {
    "The queue": (
        "queue",
        {
            "add": "Put a task into the queue, or a file of them.",
            "list": "Tasks, with what each waits for.",
            "show": "One task: what it says, its attempts, its history.",
            "edit": "Change tasks that have not started.",
            "cancel": "Take tasks out for good; what runs is stopped.",
            "retry": "Put parked or waiting tasks back, counters cleared.",
            "pause": "Start nothing more: all, or a project, kind, pool, group, task.",
            "resume": "Go on after a pause.",
            "clear": "Cancel what is queued, after showing what.",
        },
    ),
    "Work from elsewhere": (
        "bring",
        {
            "import": "Make tasks of what is in a file, cards, beads, issues.",
            "sync": "Ask the configured sources, and follow what they say.",
            "undo": "Take back an import that has not started.",
        },
    ),
    "What happens, and why": (
        "look",
        {
            "status": "In flight, queued, held by which rule, parked, budgets.",
            "plan": "What would start now, and why the rest waits.",
            "why": "Why one task does not start, and what would start it.",
            "summary": "What happened while nobody looked.",
            "stats": "Shares against targets, waits, durations, tokens, cost.",
            "events": "The log of everything that happened.",
            "replay": "Plan recorded decisions again; exit 1 where they differ.",
        },
    ),
    "Running agents": (
        "work",
        {
            "demo": "Forty tasks, three projects, no account: about a minute.",
            "run": "Start what may start, in the foreground, until nothing more can.",
            "up": "The daemon: start whatever is added.",
            "down": "End the daemon; agents go on, or are stopped.",
            "serve": "The HTTP API and the page, without a daemon.",
            "link": "A link that opens the page, once.",
            "drain": "Start nothing more, and wait for what runs.",
            "logs": "What an attempt printed.",
            "mcp": "The verbs as tools for agents, over MCP.",
            "workspaces": "The worktrees of tasks, and what is safe to remove.",
        },
    ),
    "Doing the work yourself": (
        "pull",
        {
            "lease": "Take what may start now.",
            "heartbeat": "Keep a lease.",
            "report": "Tell progress, tokens and cost of what runs.",
            "complete": "The work is done.",
            "release": "Give it back: untouched, failed, throttled.",
            "reclaim": "End the leases that have run out.",
        },
    ),
    "Rules and house": (
        "keep",
        {
            "policy": "The rules: show, check, compare, choose, change.",
            "project": "Who the work is for: weight, cap, repository.",
            "group": "Tasks followed together, and how far they are.",
            "pool": "Accounts whose limits are shared.",
            "worker": "Machines that take work.",
            "convert": "Move over from another scheduler: its files become ours.",
            "init": "Make the home folder, with commented settings and policy.",
            "doctor": "All that is wrong, or would be recovered; changes nothing.",
            "service": "Start the daemon when you log in.",
            "backup": "A consistent copy of the store.",
            "migrate": "Bring the store to the latest schema.",
            "completion": "Completion for bash, zsh or fish.",
        },
    ),
}
#: Verb -> the folder of its file.
VERBS = {verb: folder for folder, verbs in SECTIONS.values() for verb in verbs}

INTERRUPTED, TERMINATED = 130, 143
#: Garbage is looked for when so many objects were made; importing alone makes thousands.
OBJECTS_MANY = 100_000


class Verbs(click.Group):
    """The verbs by name; asking for the list imports none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs, by name."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb's own command, from its own file."""
        if cmd_name not in VERBS:
            return None
        file = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
        module = import_module(f"fairlane.cli.{VERBS[cmd_name]}.{file}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """A verb that is misspelled gets the nearest one."""
        completing = ctx.resilient_parsing  # a word that is not finished is no mistake
        if args and args[0] not in VERBS and not args[0].startswith("-") and not completing:
            raise Invalid(f"no such verb: {args[0]!r}", did_you_mean(args[0], VERBS), code="usage")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The verbs that begin so, without importing them; else the options."""
        from click.shell_completion import CompletionItem

        lines = {verb: line for _, verbs in SECTIONS.values() for verb, line in verbs.items()}
        found = [
            CompletionItem(verb, help=line)
            for verb, line in lines.items()
            if verb.startswith(incomplete)
        ]
        return found or click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of verbs, without importing them."""
        for title, (_, verbs) in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(f"{verb:{max(map(len, VERBS))}}", verbs[verb]) for verb in verbs]
                )


@click.group(
    cls=Verbs,
    name="fairlane",
    subcommand_metavar="VERB [ARGUMENTS]...",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@common
@click.version_option(__version__, message="fairlane %(version)s")
@click.pass_context
def fairlane(context: click.Context) -> None:
    """The scheduler for coding agents: a queue, and a reason for every decision.

    \b
    Example:
      fairlane add "Fix the login form" --project web
      fairlane why t1
    """
    context.ensure_object(Call)


class _Terminated(BaseException):
    """SIGTERM arrived."""


def main() -> NoReturn:
    """The console script."""
    gc.set_threshold(OBJECTS_MANY)  # a command is over before there is anything to collect
    signal.signal(signal.SIGTERM, _terminate)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # under `nohup` Python leaves it out
    code = run(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:  # the reader has seen enough, or the disk is full
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            code = code or int(not isinstance(error, BrokenPipeError))
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """One command; every error becomes its exit code, and a document with `--json`."""
    as_json = wants_json(arguments)
    try:
        code = fairlane.main(list(arguments), prog_name="fairlane", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        if as_json:
            return print_error(Invalid("no verb was given", "See --help.", code="usage"), True)
        click.echo(error.ctx.get_help() if error.ctx else "", err=True)
        return Invalid.exit_code
    except click.ClickException as error:
        return print_error(_usage(error), as_json)
    except FairlaneError as error:
        return _unwritten(error, as_json)
    except BrokenPipeError:
        return 0
    except OSError as error:  # the disk is full, a folder cannot be read
        return _unwritten(_system(error), as_json)
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except _Terminated:
        return TERMINATED
    except Exception as error:
        sys.excepthook(type(error), error, error.__traceback__)
        return print_error(_bug(error), as_json)


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether `--json` stands among the options, before any `--`."""
    ours = list(arguments)
    return "--json" in (ours[: ours.index("--")] if "--" in ours else ours)


def _unwritten(error: FairlaneError, as_json: bool) -> int:
    """An error; one that cannot be written goes to standard error, and its exit code remains."""
    for form in (as_json, False):
        try:
            return print_error(error, form)
        except BrokenPipeError:
            raise
        except OSError:
            continue
    return error.exit_code


def _system(error: OSError) -> FairlaneError:
    if error.errno in NO_ROOM:
        return TryLater(str(error), "Free some disk space.", "disk_full")
    return FairlaneError(str(error), "Nothing else was done.", "system")


def _usage(error: click.ClickException) -> Invalid:
    hint = ""
    if isinstance(error, click.UsageError) and error.ctx:
        hint = f"See {error.ctx.command_path} --help."
    return Invalid(error.format_message(), hint, code="usage")


def _bug(error: Exception) -> FairlaneError:
    message = f"{type(error).__name__}: {error}"
    return FairlaneError(message, "This is a bug in Fairlane; the trace above helps.", "internal")


def _terminate(number: int, frame: object) -> NoReturn:
    raise _Terminated
