"""Troubles: what is wrong around a daemon that works, for `status`, `doctor` and the event log."""

from __future__ import annotations

import os
from typing import NamedTuple

from fairlane.engine.context import Context
from fairlane.model.event import Event
from fairlane.model.instant import show_instant
from fairlane.settings import host_name
from fairlane.store.base import Reading

#: The value in the store that has them, by code.
_VALUE = "daemon_troubles"


class Trouble(NamedTuple):
    """One thing that people should know; `hint` says what helps."""

    code: str
    message: str
    hint: str
    since: str = ""


def report(context: Context, code: str, message: str, hint: str) -> None:
    """This daemon has a trouble, or the same one with other words; an event tells it."""
    with context.store.write() as tx:
        now, rows = context.now(), dict(tx.value(_VALUE) or {})
        since = rows[code]["since"] if code in rows else show_instant(now)
        owner = {"host": host_name(), "process": os.getpid()}
        rows[code] = {"message": message, "hint": hint, "since": since, **owner}
        tx.put_value(_VALUE, rows)
        data = {"code": code, "message": message, "hint": hint}
        tx.log([Event(0, now, "daemon_warning", data=data)])


def end(context: Context, code: str) -> None:
    """A trouble is over; nothing is written where there was none."""
    with context.store.read() as reading:
        if code not in (reading.value(_VALUE) or {}):
            return
    with context.store.write() as tx:
        rows = {name: row for name, row in (tx.value(_VALUE) or {}).items() if name != code}
        tx.put_value(_VALUE, rows or None)
        tx.log([Event(0, context.now(), "daemon_warning_over", data={"code": code})])


def current(reading: Reading) -> list[Trouble]:
    """Those of a daemon that lives, as far as this machine can tell."""
    rows = (reading.value(_VALUE) or {}).items()
    return [
        Trouble(code, row["message"], row["hint"], row["since"])
        for code, row in sorted(rows)
        if row["host"] != host_name() or _lives(row["process"])
    ]


def _lives(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
