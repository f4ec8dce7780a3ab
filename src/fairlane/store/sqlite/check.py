"""Check: what is derived agrees with what it is derived from."""

from __future__ import annotations

import sqlite3

_CHECKS = {
    "lanes whose count is not the number of their tasks": """
        SELECT count(*) FROM lanes l WHERE ready <>
            (SELECT count(*) FROM tasks t WHERE t.lane = l.id)""",
    "tallies that do not count their tasks": """
        SELECT count(*) FROM (
            SELECT status, wait, project, kind, count(*) AS n FROM tasks GROUP BY 1, 2, 3, 4
            EXCEPT SELECT status, wait, project, kind, count FROM tallies)""",
    "tasks in flight without exactly one open attempt": """
        SELECT count(*) FROM tasks t WHERE (status IN ('leased', 'running')) <>
            (EXISTS (SELECT 1 FROM attempts a WHERE a.task = t.id AND a.ended_at IS NULL))""",
    "attempts with a number above their task's": """
        SELECT count(*) FROM attempts a JOIN tasks t ON t.id = a.task
        WHERE a.number > t.attempts""",
    "fences that were not given out": """
        SELECT count(*) FROM attempts
        WHERE fence >= (SELECT ifnull(max(next), 1) FROM numbers WHERE name = 'fence')""",
}


def problems(connection: sqlite3.Connection) -> list[str]:
    """Everything in a file that is whole and yet wrong, in words."""
    broken = connection.execute("PRAGMA foreign_key_check").fetchall()
    found = [f"{row[0]} row {row[1]} names a {row[2]} that is not there" for row in broken]
    for what, statement in _CHECKS.items():
        count = connection.execute(statement).fetchone()[0]
        if count:
            found.append(f"{count} {what}")
    return found
