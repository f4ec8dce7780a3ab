"""Named SQL: `-- name: x`, then the statement, up to the next name."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from fairlane.store.sqlite.rows import ATTEMPT_COLUMNS, TASK_COLUMNS

HERE = Path(__file__).parent


@cache
def queries() -> dict[str, str]:
    """Every statement of `queries.sql` by its name."""
    found: dict[str, str] = {}
    for part in (HERE / "queries.sql").read_text(encoding="utf-8").split("-- name: ")[1:]:
        name, _, statement = part.partition("\n")
        statement = statement.replace("{task}", TASK_COLUMNS).replace("{attempt}", ATTEMPT_COLUMNS)
        found[name.strip()] = statement.strip()
    return found


@cache
def migrations() -> tuple[tuple[int, str, str], ...]:
    """Number, name and text of every migration, in order."""
    files = sorted((HERE / "migrations").glob("*.sql"))
    return tuple((int(f.name[:4]), f.stem, f.read_text(encoding="utf-8")) for f in files)
