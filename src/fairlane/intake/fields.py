"""The records and fields that callers may give a task: one reader each, nothing else accepted."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, TypedDict

from fairlane.model import values
from fairlane.model.amounts import TOKENS_MAX
from fairlane.model.errors import FairlaneError, Invalid
from fairlane.model.instant import Instant, Micros
from fairlane.model.record import dataclass, filled, layout, names
from fairlane.model.task import SETUP, Check, Status, Task
from fairlane.model.values import once

MERGES = ("keep", "merge", "pr")
SESSIONS = ("resume", "fresh")
CARRIES = ("needs", "base")
CONTEXTS = ("needs", "none")
CHECKS_MAX = 50
CHECK_NAME_MAX = 64


if TYPE_CHECKING:

    class TaskValues(TypedDict, total=False):
        """Typed values of a task by field: what a caller gave, then what follows from it."""

        id: str
        project: str
        kind: str
        title: str
        prompt: str
        template: str | None
        base: str
        merge: str
        session: str
        carry: str
        context: str
        checks: tuple[Check, ...]
        no_checks: bool
        agent: str
        command: tuple[str, ...]
        priority: int
        parent: str
        needs: tuple[str, ...]
        artifacts: tuple[str, ...]
        group: str
        parallel: bool
        locks: tuple[str, ...]
        workspace: str
        pool: str | None
        labels: tuple[str, ...]
        estimate_tokens: int
        timeout: Micros
        max_attempts: int
        not_before: Instant
        vars: dict[str, str]
        env: dict[str, str]
        meta: dict[str, object]
        # Fields that only Fairlane sets.
        seq: int
        depth: int
        created_at: Instant
        ready_since: Instant
        artifacts_missing: tuple[str, ...]
        source_hold: str
        failures: int
        status: Status
        parked_at: Instant
        reason: str

else:
    TaskValues = dict  # what each may hold is for type checkers alone


def artifact(value: object) -> str:
    """A relative path that stays where it is."""
    path = values.line(value)
    parts = PurePosixPath(path).parts
    if path.startswith(("/", "~")) or ".." in parts or not parts:
        raise Invalid(f"{path!r} leaves its folder", "Give a relative path without '..'.")
    return str(PurePosixPath(path))


def label(value: object) -> str:
    """What a worker must have: `gpu`, `os=linux`."""
    written = values.line(value)
    if any(letter.isspace() or letter == "," for letter in written):
        raise values.wrong("a label", value, "Write it as gpu or os=linux.")
    return written


def variables(value: object) -> dict[str, str]:
    """Names with text or numbers."""
    pairs = values.table(value)
    for key, content in pairs.items():
        if not isinstance(content, str | int | float):
            raise values.wrong("text", content, "Give text or a number.").within(key)
    return {values.text(key): values.text(str(content)) for key, content in pairs.items()}


def meta(value: object) -> dict[str, object]:
    """The caller's own data: any JSON object."""
    document = dict(values.table(value))
    try:
        size = len(json.dumps(document, allow_nan=False).encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"not JSON: {error}") from error
    if size > values.TEXT_MAX:
        raise Invalid(f"{size} bytes are too many", f"Use at most {values.TEXT_MAX}.")
    return document


def check(value: object) -> Check:
    """A check: its command line, or a table with `argv` and perhaps `name` and `timeout`."""
    if not isinstance(value, Mapping):
        argv = values.program(value)
        return Check(_check_name(argv), argv)
    given = values.read_all(_CHECK, value)
    if "argv" not in given:
        raise Invalid("a check without argv", 'Write it as {"argv": ["make", "test"]}.')
    return Check(
        given.get("name") or _check_name(given["argv"]), given["argv"], given.get("timeout")
    )


def checks(value: object) -> tuple[Check, ...]:
    """Checks, each with a name of its own; those that were given none make room for the others."""
    items = values.entries(value, CHECKS_MAX)
    asked, read = [check(item) for item in items], list[Check]()
    given = [isinstance(item, Mapping) and bool(item.get("name")) for item in items]
    names = [one.name for one, is_given in zip(asked, given, strict=True) if is_given]
    for at, one in enumerate(asked):
        if (given[at] and names.count(one.name) > 1) or one in asked[:at]:
            raise values.twice(one.name)
        if one.name == SETUP:
            raise Invalid(f"no check can be called {one.name!r}", "Give it another name.")
        read.append(one if given[at] else renamed(one, names))
        names += [] if given[at] else [read[-1].name]
    return tuple(read)


def renamed(check: Check, taken: Container[str]) -> Check:
    """The check with a name that is not taken: its own, or with a number."""
    name, number = check.name, 1
    while name in taken:
        number += 1
        name = f"{check.name} ({number})"
    return check._replace(name=name)


def _check_name(argv: Sequence[str]) -> str:
    """What a check without a name is called: its first two words."""
    words = " ".join(argv[:2]).split()
    return " ".join(words)[:CHECK_NAME_MAX] or "check"


def _named_check(value: object) -> str:
    name = values.line(value).strip()
    if not name or len(name) > CHECK_NAME_MAX:
        raise values.wrong("the name of a check", value, f"Use 1 to {CHECK_NAME_MAX} letters.")
    return name


_CHECK: dict[str, values.Reader[object]] = {
    "name": _named_check,
    "argv": values.program,
    "timeout": values.positive_duration,
}


#: Every field that a caller may give.
READERS: dict[str, values.Reader[object]] = {
    "id": values.name,
    "project": values.name,
    "kind": values.name,
    "title": values.text,
    "prompt": values.text,
    "template": values.name,
    "base": values.line,
    "merge": values.choice(MERGES),
    "session": values.choice(SESSIONS),
    "carry": values.choice(CARRIES),
    "context": values.choice(CONTEXTS),
    "checks": checks,
    "no_checks": values.flag,
    "agent": values.name,
    "command": values.command,
    "priority": values.whole(-values.NUMBER_MAX, values.NUMBER_MAX),
    "parent": values.name,
    "needs": values.names,
    "artifacts": values.several(artifact),
    "group": values.name,
    "parallel": values.flag,
    "locks": values.lines,
    "workspace": values.name,
    "pool": values.name,
    "labels": values.several(label),
    "estimate_tokens": values.whole(0, TOKENS_MAX),
    "timeout": values.positive_duration,
    "max_attempts": values.whole(1, 10**6),
    "not_before": values.moment,
    "vars": variables,
    "env": values.environment,
    "meta": meta,
}
#: Fields that only Fairlane sets.
_OURS = frozenset(names(Task)) - frozenset(READERS)


def read(record: Mapping[str, object]) -> TaskValues:
    """The typed values of a record; null is the same as absent."""
    values: dict[str, object] = {}
    for key, value in record.items():
        if value is None:
            continue
        reader = READERS.get(key)
        if reader is None:
            raise _unknown(key)
        try:
            values[key] = reader(value)
        except Invalid as error:
            raise error.within(key) from None
    return values  # type: ignore[return-value]  # a cast costs a call for each task


def defaults(names: Iterable[str]) -> dict[str, object]:
    """The default values of these fields."""
    values: dict[str, object] = {}
    for key in names:
        if key not in READERS:
            raise _unknown(key)
        values[key] = _LAYOUT.blank[_LAYOUT.places[key]]
    return values


def _unknown(key: object) -> Invalid:
    if key in _OURS:
        return Invalid(f"field {key!r} is not for callers: Fairlane sets it", "Take it out.")
    return values.unknown("field", key, READERS)


_LAYOUT = layout(Task)


def new_task(values: TaskValues) -> Task:
    """`Task(**values)` for values that are typed already: a large file is mostly this line."""
    row = _LAYOUT.blank.copy()
    for key, value in values.items():
        row[_LAYOUT.places[key]] = value
    return filled(Task, row)


@dataclass(frozen=True, slots=True)
class Records:
    """What one call gives. `where` names a record by its place; empty where it needs no name."""

    rows: Sequence[Mapping[str, object]]
    where: Callable[[int], str]

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, object]]) -> Records:
        """Plain records; one alone needs no name."""
        return cls(rows, lambda at: f"task {at + 1}" if len(rows) > 1 else "")

    def located(self, error: FairlaneError, at: int) -> FairlaneError:
        """The same error with the name of the record that it is about."""
        where = self.where(at)
        return error.within(where) if where else error


def parse_jsonl(
    text: str, origin: str, skip: Callable[[str, Invalid], None] | None = None
) -> Records:
    """One task a line; empty lines are left out, a bad one is refused by name or told to `skip`."""
    lines = text.split("\n")
    numbers = [at for at, line in enumerate(lines) if line and not line.isspace()]
    written = [lines[at] for at in numbers] if len(numbers) < len(lines) else lines

    def where(at: int) -> str:
        return f"{origin}:{numbers[at] + 1}"

    try:  # all at once: a file of a hundred thousand lines is mostly this
        rows = json.loads(f"[{','.join(written)}]", object_pairs_hook=once)
    except (ValueError, RecursionError):
        rows = None
    if rows is None or len(rows) != len(written) or set(map(type, rows)) - {dict}:
        rows, good = [], []
        for at, line in enumerate(written):
            try:
                rows.append(_row(line))
                good.append(numbers[at])
            except Invalid as error:
                if skip is None:
                    raise error.within(where(at)) from error
                skip(where(at), error)
        numbers = good
    return Records(rows, where)


def _row(line: str) -> dict[str, object]:
    hint = 'Each line is one task, such as {"id": "a", "prompt": "Fix the build"}.'
    try:
        row = json.loads(line, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise Invalid(f"not JSON: {error}", hint) from error
    if not isinstance(row, dict):
        raise Invalid(f"not a task: {line[:60]!r}", hint)
    return row
