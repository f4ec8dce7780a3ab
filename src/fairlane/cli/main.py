"""`fairlane`: one command, from its words to its exit code; which module has which verb."""

from __future__ import annotations

import gc
import os
import signal
import sys
from typing import TYPE_CHECKING, NoReturn

from fairlane.cli import quick
from fairlane.cli.output import print_error
from fairlane.model.errors import NO_ROOM, FairlaneError, Invalid, TryLater

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Title -> its verbs, each with its module and the line that the list of verbs shows.
SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "The queue": {
        "add": ("queue.add", "Put a task into the queue, or a file of them."),
        "list": ("queue.tasks", "Tasks, with what each waits for."),
        "show": ("queue.tasks", "One task: what it says, its attempts, its history."),
        "edit": ("queue.edit", "Change tasks that have not started."),
        "cancel": ("queue.edit", "Take tasks out for good; what runs is stopped."),
        "retry": ("queue.edit", "Put parked or waiting tasks back, counters cleared."),
        "pause": ("queue.edit", "Start nothing more: all, or a project, kind, pool, group, task."),
        "resume": ("queue.edit", "Go on after a pause."),
        "clear": ("queue.edit", "Cancel what is queued, after showing what."),
    },
    "Work from elsewhere": {
        "import": ("bring", "Make tasks of what is in a file, cards, beads, issues."),
        "sync": ("bring", "Ask the configured sources, and follow what they say."),
        "undo": ("bring", "Take back an import that has not started."),
    },
    "What happens, and why": {
        "status": ("look.status", "In flight, queued, held by which rule, parked, budgets."),
        "plan": ("look.plan", "What would start now, and why the rest waits."),
        "why": ("look.why", "Why one task does not start, and what would start it."),
        "summary": ("look.reports", "What happened while nobody looked."),
        "stats": ("look.reports", "Shares against targets, waits, durations, tokens, cost."),
        "events": ("look.events", "The log of everything that happened."),
        "simulate": ("look.simulate", "Compare policies on a described workload, in virtual time."),
        "replay": ("look.plan", "Plan recorded decisions again; exit 1 where they differ."),
    },
    "Running agents": {
        "demo": ("work.run", "Forty tasks, three projects, no account: about a minute."),
        "run": ("work.run", "Start what may start, in the foreground, until nothing more can."),
        "up": ("work.daemon", "The daemon: start whatever is added."),
        "down": ("work.daemon", "End the daemon; agents go on, or are stopped."),
        "serve": ("work.serve", "The HTTP API and the page, without a daemon."),
        "link": ("work.serve", "A link that opens the page, once."),
        "drain": ("work.daemon", "Start nothing more, and wait for what runs."),
        "logs": ("work.logs", "What an agent said and did: live, folded, or as written."),
        "diff": ("work.diff", "What an attempt changed."),
        "open": ("work.open", "The folder of a task: its path, a shell or an editor there."),
        "mcp": ("work.mcp", "The verbs as tools for agents, over MCP."),
        "check": ("work.check", "Run the checks of a task again, in its workspace."),
        "workspaces": ("work.attempts", "The worktrees of tasks, and what is safe to remove."),
    },
    "Doing the work yourself": {
        "lease": ("pull", "Take what may start now."),
        "heartbeat": ("pull", "Keep a lease."),
        "report": ("pull", "Tell progress, tokens and cost of what runs."),
        "complete": ("pull", "The work is done."),
        "release": ("pull", "Give it back: untouched, failed, throttled."),
        "reclaim": ("pull", "End the leases that have run out."),
    },
    "Rules and house": {
        "policy": ("admin.policy", "The rules: show, check, compare, choose, change."),
        "project": ("admin.project", "Who the work is for: weight, cap, repository."),
        "group": ("admin.group", "Tasks followed together, and how far they are."),
        "pool": ("admin.resource", "Accounts whose limits are shared."),
        "worker": ("admin.resource", "Machines that take work."),
        "convert": ("bring", "Move over from another scheduler: its files become ours."),
        "init": ("admin.home", "Make the home folder, with commented settings and policy."),
        "doctor": ("admin.home", "All that is wrong, or would be recovered; changes nothing."),
        "service": ("admin.home", "Start the daemon when you log in."),
        "backup": ("admin.home", "A consistent copy of the store."),
        "migrate": ("admin.home", "Bring the store to the latest schema."),
        "completion": ("admin.home", "Completion for bash, zsh or fish."),
    },
}
#: Verb -> its module, and its line.
VERBS = {verb: row for verbs in SECTIONS.values() for verb, row in verbs.items()}

INTERRUPTED, TERMINATED = 130, 143
#: Objects that trigger a garbage collection; importing alone makes thousands.
OBJECTS_MANY = 100_000


class _Terminated(BaseException):
    """SIGTERM arrived."""


def main() -> NoReturn:
    """The console script."""
    gc.set_threshold(OBJECTS_MANY)  # a command is over before there is anything to collect
    signal.signal(signal.SIGTERM, _terminate)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # under `nohup` Python leaves it out
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # inherited as ignored, it hides exit codes
    code = run(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:  # the reader has seen enough, or the disk is full
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            code = code or int(not isinstance(error, BrokenPipeError))
    if "click" in sys.modules:  # a verb of any kind, perhaps with threads
        sys.exit(code)
    os._exit(code)  # all is closed and written; to free each object would take ten milliseconds


def run(arguments: Sequence[str]) -> int:
    """One command; every error becomes its exit code, and a document with `--json`."""
    as_json = wants_json(arguments)
    try:
        plain = quick.read(arguments, VERBS)
        if plain is not None:
            return plain.perform()
        from fairlane.cli.commands import perform

        return perform(arguments, as_json)
    except FairlaneError as error:
        return _unwritten(error, as_json)
    except BrokenPipeError:
        return 0
    except OSError as error:  # the disk is full, a folder cannot be read
        return _unwritten(_system(error), as_json)
    except KeyboardInterrupt:
        return INTERRUPTED
    except _Terminated:
        return TERMINATED
    except Exception as error:
        return _unexpected(error, as_json)


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether `--json` is among the options, before any `--`."""
    ours = list(arguments)
    return "--json" in (ours[: ours.index("--")] if "--" in ours else ours)


def _unwritten(error: FairlaneError, as_json: bool) -> int:
    """Print an error, on standard error if standard output fails; the exit code stays."""
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


def _unexpected(error: Exception, as_json: bool) -> int:
    if isinstance(error, RuntimeError) and "home directory" in str(error):  # of `expanduser`
        hint = "Set HOME, or write paths without ~."
        return print_error(Invalid(f"~: {error}".rstrip("."), hint, "no_home"), as_json)
    sys.excepthook(type(error), error, error.__traceback__)
    return print_error(_bug(error), as_json)


def _bug(error: Exception) -> FairlaneError:
    message = f"{type(error).__name__}: {error}"
    return FairlaneError(message, "This is a bug in Fairlane; the trace above helps.", "internal")


def _terminate(number: int, frame: object) -> NoReturn:
    raise _Terminated
