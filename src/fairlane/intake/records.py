"""Records: tasks as callers give them, with the words that name each one in an error."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fairlane.model.errors import Invalid
from fairlane.model.record import dataclass


@dataclass(frozen=True, slots=True)
class Records:
    """What one call gives. `where` names a record by its place."""

    rows: Sequence[Mapping[str, Any]]
    where: Callable[[int], str]

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]]) -> Records:
        """Plain records; one alone needs no name."""
        return cls(rows, lambda at: f"task {at + 1}: " if len(rows) > 1 else "")


def parse_jsonl(text: str, origin: str) -> Records:
    """One task a line; empty lines are left out, a bad one is named."""
    lines = text.split("\n")
    numbers = [at for at, line in enumerate(lines) if line and not line.isspace()]
    kept = [lines[at] for at in numbers] if len(numbers) < len(lines) else lines

    def where(at: int) -> str:
        return f"{origin}:{numbers[at] + 1}: "

    try:  # all at once: a file of a hundred thousand lines is mostly this
        rows = json.loads(f"[{','.join(kept)}]")
    except (ValueError, RecursionError):
        rows = None
    if rows is None or len(rows) != len(kept) or set(map(type, rows)) - {dict}:
        rows = [_row(line, where(at)) for at, line in enumerate(kept)]
    return Records(rows, where)


def _row(line: str, where: str) -> dict[str, Any]:
    hint = 'Each line is one task, such as {"id": "a", "prompt": "Fix the build"}.'
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Invalid(f"{where}not JSON: {error}", hint) from error
    if not isinstance(row, dict):
        raise Invalid(f"{where}not a task: {line[:60]!r}", hint)
    return row
