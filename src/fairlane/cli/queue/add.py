"""`fairlane add`, and the options that give a task its fields."""

from __future__ import annotations

import re
from contextlib import nullcontext
from typing import TYPE_CHECKING, TypeAlias

from fairlane.cli.call import Call
from fairlane.cli.output import count, listed, ordinal, safe, warn
from fairlane.cli.values import LIST_BYTES_MAX, argv, moment, pairs, read_text, token_count
from fairlane.cli.verb import verb
from fairlane.model.errors import Invalid, Refused
from fairlane.model.instant import show_instant

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fairlane.cli.verb import Options
    from fairlane.intake.fields import Records
    from fairlane.model.documents.tasks import AddedAnswer, AddedDocument
    from fairlane.model.instant import Instant


#: Option -> its settings; the field has the option's name unless `_FIELDS` says otherwise.
FIELDS: Options = {
    "--project": {"metavar": "P", "help": "Whose it is; default: default."},
    "--kind": {"metavar": "K", "help": "plan, spec, phase, code, review, …; default: code."},
    "--agent": {"metavar": "A", "help": "Who does it: claude, codex, …"},
    "--priority": {"type": int, "metavar": "N", "help": "Lower goes first; default: 100."},
    "--title": {"metavar": "TEXT", "help": "What people read."},
    "--prompt-file": {"metavar": "FILE", "help": "The prompt from a file; - is stdin."},
    "--group": {"metavar": "G", "help": "Followed together with others; made on first use."},
    "--artifact": {"multiple": True, "metavar": "PATH", "help": "Waits until it exists; repeat."},
    "--lock": {"multiple": True, "metavar": "NAME", "help": "At most one holds it; repeat."},
    "--workspace": {"metavar": "W", "help": "The workspace it prefers."},
    "--pool": {"metavar": "P", "help": "Whose limits it shares; default: the agent's."},
    "--label": {
        "multiple": True,
        "metavar": "L",
        "help": "What its worker must have: gpu; repeat.",
    },
    "--estimate": {"metavar": "TOKENS", "help": "What it may use; default: from history."},
    "--timeout": {"metavar": "LENGTH", "help": "Stopped after this long: 30m, 4h."},
    "--max-attempts": {"type": int, "metavar": "N", "help": "Parked after so many failures."},
    "--not-before": {"metavar": "TIME", "help": "Not earlier: a time, or 2h from now."},
    "--template": {"metavar": "NAME", "help": "The prompt's template; none = as it is."},
    "--base": {"metavar": "BRANCH", "help": "Where its worktree starts."},
    "--merge": {"metavar": "HOW", "help": "After success: keep, merge or pr; default: project's."},
    "--carry": {
        "metavar": "FROM",
        "help": "Start from its needs' work (needs) or the base (base).",
    },
    "--context": {"metavar": "C", "help": "Tell the agent what its needs did: needs or none."},
    "--check": {
        "multiple": True,
        "metavar": "CMD",
        "help": 'Must pass before it is done: "make test" (repeatable; added to the project\'s).',
    },
    "--no-checks/--checks": {"default": None, "help": "Run no checks, not even the project's."},
    "--var": {"multiple": True, "metavar": "K=V", "help": "For the template; repeat."},
    "--env": {"multiple": True, "metavar": "K=V", "help": "For its process; never shown; repeat."},
    "--meta": {"multiple": True, "metavar": "K=V", "help": "Your own; repeat."},
    "--parallel/--serial": {"default": None, "help": "Beside others of its group."},
}
#: Option's name -> field.
_FIELDS = {
    "artifact": "artifacts",
    "lock": "locks",
    "label": "labels",
    "estimate": "estimate_tokens",
    "var": "vars",
    "check": "checks",
}
_PAIRS = ("var", "env", "meta")
_COMMAS = ("needs", "label")


def record(options: Mapping[str, object], now: Instant) -> dict[str, object]:
    """The fields that the options give; an option that is absent gives none."""
    values: dict[str, object] = {}
    for name, value in options.items():
        if value is None or value == () or name in ("prompt", "prompt_file"):
            continue
        field = _FIELDS.get(name, name)
        if not isinstance(value, tuple):
            values[field] = value
        elif name in _PAIRS:
            values[field] = pairs(f"--{name}", value)
        elif name == "check":
            values[field] = (
                "none" if value == ("none",) else [argv("--check", one) for one in value]
            )
        else:
            split = [part for text in value for part in text.split(",") if part]
            values[field] = split if name in _COMMAS else list(value)
    prompt = _prompt(options.get("prompt"), options.get("prompt_file"))
    if prompt is not None:
        values["prompt"] = prompt
    _read(values, "estimate_tokens", "--estimate", token_count)
    _read(values, "not_before", "--not-before", lambda text: show_instant(moment(text, now)))
    return values


def _read(values: dict[str, object], name: str, option: str, read: Callable[[str], object]) -> None:
    """Replace the text of an option by its value; `none` stays."""
    text = values.get(name)
    if not isinstance(text, str) or text == "none":
        return
    try:
        values[name] = read(text)
    except Invalid as error:
        raise Invalid(f"{option}: {error.message}", error.hint) from None


def _prompt(argument: object, file: object) -> str | None:
    if argument is not None and file is not None:
        raise Invalid("a prompt and --prompt-file were given", "Keep one of them.", code="usage")
    if file is not None:
        return read_text(str(file), "prompt")
    if argument is None:
        return None
    return read_text("-", "prompt") if argument == "-" else str(argument)


#: What `--file` gives for every task itself.
_ONE_ONLY = ("id", "title", "prompt", "command")
#: The recipes that come with Fairlane, for the help; a test compares.
RECIPES = "best-of-two, fix, full, plan"
#: How a server names one of many tasks.
_NAMED = r"task ([0-9]+): "
#: Kind and project of a single task, and whether it waits; None: not needed.
Look: TypeAlias = "tuple[str, str, bool] | None"


#: The options that are not fields of a task.
_HOW: Options = {
    "--id": {"metavar": "ID", "help": "Its name; default: t1, t2, …"},
    "--parent": {"metavar": "ID", "help": "The task that makes this one."},
    "--need": {
        "name": "needs",
        "multiple": True,
        "metavar": "ID",
        "help": "Waits for it; repeat.",
    },
    "--again": {"is_flag": True, "help": "Put a task that is done or canceled back."},
    "--force": {"is_flag": True, "help": "Even with another project's prefix in its id."},
    "--file": {
        "metavar": "TASKS.jsonl",
        "help": "Many, one a line; - is stdin. All or nothing.",
    },
    "--chain": {"is_flag": True, "help": "With --file: each needs the one before."},
    "--recipe": {"metavar": "NAME", "help": f"A chain out of one prompt: {RECIPES}, your own."},
    "--dry-run": {"is_flag": True, "help": "Say what would be added; change nothing."},
}


@verb(
    "add",
    FIELDS | _HOW,
    argument="prompt",
    settings={"required": False, "metavar": "[PROMPT] [-- COMMAND...]"},
    rest="command",
    hint='Put the prompt in quotes: fairlane add "Fix the login form".',
)
def add(
    call: Call,
    /,
    again: bool,
    force: bool,
    file: str | None,
    chain: bool,
    recipe: str | None,
    dry_run: bool,
    **options: object,
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
    fields = record(options, call.clock.now())
    if recipe is not None and file is not None:
        raise Invalid("--recipe and --file were given", "Keep one of them.", code="usage")
    records = _records(file, fields, chain)
    how: dict[str, object] = {"again": again, "force": force, "chain": chain, "dry_run": dry_run}
    how["recipe"] = recipe
    how["defaults"] = fields if file else None
    ask = _add_there if call.elsewhere() is not None else _add_here
    document, look = ask(call, records, how)
    code = call.show_added(document, lambda: added_text(document, look))
    warnings = [row["warning"] for row in document["tasks"] if "warning" in row]
    if warnings and not call.json:
        warn(warnings[-1])
    return code


def _add_here(call: Call, records: Records, how: dict[str, object]) -> tuple[AddedAnswer, Look]:
    """Add to the home folder; in direct mode what was added starts at once."""
    from fairlane.app import answer_here

    with call.context() as context:
        direct = context.policy().capacity.mode == "direct"  # then it has commits of its own
        with nullcontext() if direct or call.json else context.store.sharing():
            document: AddedAnswer = answer_here(context, "add", tasks=records, **how)
            look = None
            if len(document["tasks"]) == 1 and not call.json:
                with context.store.read() as reading:
                    placed = reading.placed(document["tasks"][0]["id"])
                if placed is not None:  # not a dry run
                    look = placed.task.kind, placed.task.project, bool(placed.wait)
    return document, look


def _add_there(call: Call, records: Records, how: dict[str, object]) -> tuple[AddedAnswer, Look]:
    """Add at the server; a task that it refuses is named by its line."""
    try:
        document: AddedAnswer = call.ask("add", tasks=records.rows, **how)
    except Invalid as error:
        at = re.match(_NAMED, error.message)
        if at is None:
            raise
        plain = Invalid(error.message[at.end() :], error.hint, error.error_code)
        raise records.located(plain, int(at[1]) - 1) from None
    rows = document["tasks"]
    if call.json or len(rows) != 1 or not rows[0]["created"] or how["dry_run"]:
        return document, None
    try:
        task = call.ask("show", task=rows[0]["id"])["task"]
    except Refused:  # an attempt adds children, and sees its own task alone
        return document, None
    waits = not task["ready"] and task["status"] == "queued"
    return document, (task["kind"], task["project"], waits)


def _records(file: str | None, fields: dict[str, object], chain: bool) -> Records:
    from fairlane.intake.fields import Records, parse_jsonl

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
    text = read_text(file, "JSONL file", LIST_BYTES_MAX)
    return parse_jsonl(text, "stdin" if file == "-" else file)


def added_text(document: AddedAnswer, look: Look) -> str:
    """What was added, and when its turn is. `look`: kind and project of one, and if it waits."""
    rows = document["tasks"]
    would = "would be " if document.get("dry_run") else ""
    new = [row for row in rows if row["created"]]
    known = [row for row in rows if not row["created"]]
    if len(rows) == 1:
        return _one(rows[0], look, would)
    parts = []
    if new:
        names = [row["id"] for row in new]
        shown = names if len(names) <= 5 else [f"{names[0]} … {names[-1]}"]
        parts.append(f"{count(len(new), 'task')} {would}added: {listed(shown)}")
    if known:
        names = [row["id"] for row in known]
        parts.append(f"{count(len(known), 'task')} known already: {listed(names[:5], len(names))}")
    return safe("; ".join(parts) or "nothing to add")


def _one(row: AddedDocument, look: Look, would: str) -> str:
    name = row["id"]
    if not row["created"]:
        return safe(f"{name} is known already: {row['status']}")
    if look is None:
        return safe(f"{name} {would}added{place(row['position'])}")
    kind, project, waits = look
    turn = ": waits" if waits else place(row["position"])
    return safe(f"added {name} ({kind}, {project}){turn}")


def place(position: int | None) -> str:
    """`: next`, `: next but one`, `: 7th of its project`."""
    if position is None:
        return ""
    if position <= 2:
        return ": next" if position == 1 else ": next but one"
    return f": {ordinal(position)} of its project"
